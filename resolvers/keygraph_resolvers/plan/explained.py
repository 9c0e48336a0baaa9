"""A plan for display: a tree of what is read and written, with the DynamoDB request of each step, as text or as JSON.

`keygraph_resolvers.plan.explain` makes the tree, and `keygraph explain` prints it. Unknown keys are shown as the
placeholders of their templates, and variables without a value as stand-ins.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from graphql import FieldNode, ListValueNode, VariableNode, print_ast

from keygraph.access.grants import Decision
from keygraph.errors import InputPath, KeygraphError, Refusal, WriteRefused
from keygraph.lists.describe import DescribedRequest, described_condition
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import ListConditions
from keygraph.names import public_path
from keygraph.writing.sending.describe import DescribedAction, DescribedTransaction
from keygraph_resolvers.engine.worst import KEY_OF, Described, StepKind
from keygraph_resolvers.errors import RefusedPart, message_of
from keygraph_resolvers.schema.inputs import DEFAULT_PAGE_SIZE

_IN_BRACKETS = re.compile(r"\[[^\[\]]{1,40}\]")
_HELD = "\u00a0"
"""A space that does not allow a line break."""
_OF_WRITES = ("read first", "mark", "find what names", "write")


@dataclass(frozen=True, slots=True)
class Where:
    """The place of a step in the tree, and the objects that it is started for."""

    place: str
    """The keys of the answer that lead to it, such as `user.orders.items`."""
    key: str
    """The source of the keys of the objects that it is started for."""
    round_trip: int
    """The first possible round trip."""
    is_many: bool = False
    """Whether it may be started for several objects."""
    identity: tuple[str, ...] | None = None
    """The identity of the only object that it is started for, if it is known."""
    problem: str | None = None
    """Why the objects cannot be determined."""


@dataclass
class Explained:
    """One read of a plan, for every object above it."""

    kind: StepKind
    where: Where
    types: tuple[str, ...]
    """The record types of what is read: several if the key does not determine which."""
    attributes: tuple[str, ...] | None = None
    """The attributes requested from each item; None for all of it."""
    path: AccessPath | None = None
    page: str = ""
    """The number of neighbors, as the operation says it."""
    arguments: str = ""
    """The other arguments of a list in the operation."""
    sent: dict[DescribedRequest, int] = field(default_factory=dict)
    """The requests sent to DynamoDB, each with its round trip; empty if it is read together with another step."""
    combined_with: tuple[str, ...] = ()
    """The places that the same request reads."""
    problem: str | None = None
    """Why it cannot be read."""
    is_read: bool = True
    """Whether it costs a request: what a key contains is answered without one."""
    transactions: tuple[DescribedTransaction, ...] = ()
    """The transactions of a write: one, or one for each case of what is read first."""
    access: str = ""
    """The condition for the viewer to see it; empty if they see everything."""
    steps: list[Explained] = field(default_factory=list)
    source: Described | None = field(default=None, repr=False)
    is_queried: bool = field(default=False, repr=False)
    """Whether the requests of its source are there."""

    def send(self, request: DescribedRequest, round_trip: int) -> None:
        """Adds a request, which is sent in that round trip."""
        if not self.sent:
            self.where = replace(self.where, round_trip=round_trip)
        self.is_read = True
        self.sent.setdefault(request, round_trip)

    @property
    def requests(self) -> tuple[DescribedRequest, ...]:
        return tuple(self.sent)

    @property
    def last_round_trip(self) -> int:
        """The last round trip in which something is sent for it, or below it."""
        is_sent = self.is_read and self.problem is None
        own = [*self.sent.values(), self.where.round_trip if is_sent else 0]
        return max([*own, *(each.last_round_trip for each in self.steps)])


NOTHING = "nobody"
"""The text for something that the viewer does not see."""


def access_text(decision: Decision) -> str:
    """Returns the condition for the viewer to see something."""
    if isinstance(decision, bool):
        return "" if decision else NOTHING
    return described_condition(decision)


def list_access_text(conditions: ListConditions) -> str:
    """Returns the condition for the viewer to see an item of a list: for several types, the condition of each."""
    texts = {each.record.name: access_text(decision) for each, decision in conditions.items()}
    if len(texts) == 1 or not any(texts.values()):
        return next(iter(texts.values()))
    return "; ".join(f"{name}: {text or 'always'}" for name, text in texts.items())


def page_text(node: FieldNode) -> str:
    """Returns the size of a list's page, as it was written."""
    given = {each.name.value: each.value for each in node.arguments or ()}
    for name in ("last", "first"):
        if name in given:
            value = given[name]
            return f"{name} {f'${value.name.value}' if isinstance(value, VariableNode) else print_ast(value)}"
    return f"first {DEFAULT_PAGE_SIZE}"


def arguments_text(node: FieldNode) -> str:
    """Returns the arguments of a list without the size of its page, as they were written."""
    return ", ".join(
        f"{each.name.value}: {_shortened(each.value)}"
        for each in node.arguments or ()
        if each.name.value not in ("first", "last")
    )


def _shortened(value: Any) -> str:
    if isinstance(value, ListValueNode) and len(value.values) > 3:
        return f"[{len(value.values)} values]"
    text = print_ast(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# --- By round trip ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request of a round trip, which may serve several places; or the same request for each parent object."""

    round_trip: int
    target: str
    """The operation and its index, and whether it only counts: `Query by-day COUNT`."""
    places: tuple[str, ...]
    """The places that it reads or writes."""
    is_per_parent: bool = False
    """Whether one is sent for each parent object."""


def sent_requests(steps: Iterable[Explained]) -> list[SentRequest]:
    """Returns the requests by round trip: one BatchGetItem has all keys that are looked up in one round trip."""
    found: dict[Any, SentRequest] = {}
    lookups: dict[int, list[tuple[str, DescribedRequest]]] = {}
    for step in _all_steps(steps):
        if step.problem is not None:
            continue
        place = step.where.place
        for request, trip in step.sent.items():
            if request.operation in ("GetItem", "BatchGetItem"):
                lookups.setdefault(trip, []).append((place, request))
            else:
                target = f"{request.target} COUNT" if request.counts else request.target
                sent = SentRequest(trip, target, (place, *step.combined_with), step.where.is_many)
                # A list that has several names is read once.
                same = place if sent.is_per_parent else (step.path, step.arguments, request.keys)
                before = found.get((trip, target, same, request.is_backward), sent)
                places = tuple(dict.fromkeys((*before.places, *sent.places)))
                found[trip, target, same, request.is_backward] = replace(sent, places=places)
        if step.transactions:
            trip = step.where.round_trip
            found[trip, len(found)] = SentRequest(trip, "TransactWriteItems", (place,))
    for trip, keys in lookups.items():
        is_one = all(each.operation == "GetItem" and each.keys == keys[0][1].keys for _, each in keys)
        places = tuple(dict.fromkeys(place for place, _ in keys))
        found[trip, "keys"] = SentRequest(trip, "GetItem" if is_one else "BatchGetItem", places)
    return sorted(found.values(), key=lambda each: each.round_trip)


def _all_steps(steps: Iterable[Explained]) -> Iterator[Explained]:
    for step in steps:
        yield step
        yield from _all_steps(step.steps)


# --- As text and as JSON ------------------------------------------------------------------------------


def steps_text(steps: Sequence[Explained], width: int = 100) -> str:
    """Returns the steps as a tree of lines of at most `width` characters, each with its requests below it."""
    return "".join(f"{line}\n" for line in _lines(steps, width))


def _lines(steps: Sequence[Explained], width: int) -> Iterator[str]:
    for step in steps:
        first, *more = _wrapped(described(step), width)
        yield first
        bar = "│    " if step.steps else "     "
        yield from (f"{bar}{line}" for line in more)
        for request in step.requests:
            yield from (f"{bar}{line}" for line in request_lines(request, width - len(bar)))
        for transaction in step.transactions:
            yield from (f"{bar}{line}" for line in transaction_lines(transaction, width - len(bar)))
        for number, child in enumerate(step.steps):
            is_last = number == len(step.steps) - 1
            head, rest = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            for line_number, line in enumerate(_lines([child], width - 3)):
                yield (rest if line_number else head) + line


def round_trip_lines(steps: Iterable[Explained], width: int = 100) -> Iterator[str]:
    """Yields the requests of each round trip, one a line."""
    last = 0
    for sent in sent_requests(steps):
        head = f"round trip {sent.round_trip}: "
        first = head if sent.round_trip != last else " " * len(head)
        last = sent.round_trip
        *others, place = sent.places
        places = f"{', '.join(others)} and {place}" if others else place
        line = f"{first}{sent.target} for {places}{', one per parent' if sent.is_per_parent else ''}"
        yield from _wrapped(line, width, indent=" " * (len(head) + 2))


def described(step: Explained) -> str:
    kind, where = step.kind if step.is_read else step.kind.removeprefix("get "), step.where
    parts = [f"{where.place}: {kind} {' or '.join(step.types)}"]
    if step.kind in _OF_WRITES:
        pass
    elif not where.key:
        parts.append("from the root")
    elif where.is_many and where.key.startswith(KEY_OF):
        parts.append(f"by {KEY_OF}each {where.key.removeprefix(KEY_OF).removeprefix('the ')}")
    elif where.is_many and where.key.startswith("the "):
        parts.append(f"by {where.key} of each")
    else:
        parts.append(f"by {where.key}")
    if step.page:
        parts.append(f"– {step.page}")
    if step.arguments:
        parts.append(f"({step.arguments})")
    if step.is_read:
        parts.append(f"[round trip {where.round_trip}]")
    elif step.access != NOTHING:
        is_of_list = step.path is not None or step.kind == "walk"
        parts.append(f"[not read: {'no items are asked for' if is_of_list else 'the key has everything'}]")
    if step.combined_with:
        parts.append(f"[together with {' and '.join(step.combined_with)}]")
    if step.access:
        parts.append("[not seen]" if step.access == NOTHING else f"[seen if {step.access}]")
    if step.problem is not None:
        problem = "refused" if step.kind == "write" else "cannot be read"
        parts.append(f"[{problem}: {step.problem}]")
    return " ".join(parts)


def request_lines(request: DescribedRequest, width: int) -> Iterator[str]:
    """Yields a request as lines: the operation and its keys, then its other parts."""
    rows = [(f"{request.target}:", request.keys)]
    if request.filter:
        rows.append(("  filter:", request.filter))
    if request.projection:
        rows.append(("  attributes:", request.projection))
    parts = [f"at most {request.limit} item{'' if request.limit == 1 else 's'}"] if request.limit else []
    parts += ["backward"] if request.is_backward else []
    parts += ["count only"] if request.counts else []
    if parts:
        rows.append(("  page:", ", ".join(parts)))
    for head, text in rows:
        yield from _wrapped(f"{head} {text}", width, indent="    ")


def transaction_lines(transaction: DescribedTransaction, width: int) -> Iterator[str]:
    """Yields a transaction as lines: each action with its key."""
    count = len(transaction.actions)
    head = f"TransactWriteItems {transaction.case}".rstrip()
    yield f"{head}: {count} action{'' if count == 1 else 's'}"
    for action in transaction.actions:
        yield from (f"  {line}" for line in action_lines(action, action.operation, width - 2))
    for note in transaction.notes:
        yield from _wrapped(f"  {note}", width, indent="    ")


def action_lines(action: DescribedAction, operation: str, width: int) -> Iterator[str]:
    """Yields an action as lines: the operation and its key, then what it writes, its condition, and its failure."""
    yield from _wrapped(f"{operation}: {action.keys}", width, indent="    ")
    rows = [("for", path_text(action.path)), ("attributes", action.attributes)]
    rows += [("changes", action.changes), ("condition", action.condition)]
    if action.condition is not None:
        rows += [("else", failure_text(failure, action.path)) for failure in action.failures]
        rows += [] if action.failures else [("else", "tried again: another write was faster")]
    for name, text in rows:
        if text:
            yield from _wrapped(f"  {name}: {text}", width, indent="      ")


def path_text(path: InputPath) -> str:
    """Returns a place in an input: `input.items[2].quantity`."""
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in public_path(path)]
    return "".join(parts).removeprefix(".")


def failure_text(failure: Refusal, described_at: InputPath = ()) -> str:
    """Returns the message for a client, with its code, and its place in the input if that is not shown yet."""
    place = "" if failure.path == described_at else f" at {path_text(failure.path)}"
    return f"{failure.code}{place}: {message_of(RefusedPart(failure))}"


def problem_text(error: KeygraphError) -> str:
    """Returns why a write is refused, each reason with its place in the input."""
    if isinstance(error, WriteRefused):
        return "; ".join(map(failure_text, error.refusals))
    return message_of(error)


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Returns the text in lines, broken at spaces, except those in brackets."""
    held = _IN_BRACKETS.sub(lambda found: found[0].replace(" ", _HELD), text)
    lines = textwrap.wrap(
        held, max(width, 40), subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return [line.replace(_HELD, " ") for line in lines]


def steps_json(steps: Sequence[Explained]) -> list[dict[str, Any]]:
    return [
        {
            "kind": step.kind,
            "place": step.where.place,
            "types": list(step.types),
            "keyFrom": step.where.key or None,
            "isRead": step.is_read,
            "roundTrip": step.where.round_trip if step.is_read else None,
            "index": step.path.keys.index_name if step.path else None,
            "keys": " or ".join(str(each.keys) for each in step.path.each) if step.path else None,
            "page": step.page or None,
            "arguments": step.arguments or None,
            "attributes": None if step.attributes is None else list(step.attributes),
            "together": list(step.combined_with),
            "problem": step.problem,
            **({"access": step.access} if step.access else {}),
            "requests": [
                {
                    "operation": each.operation,
                    "index": each.index,
                    "keys": each.keys,
                    "filter": each.filter,
                    "attributes": each.projection,
                    "limit": each.limit,
                    "forward": not each.is_backward,
                    "counts": each.counts,
                    "atOnce": each.times,
                }
                for each in step.requests
            ],
            "transactions": [
                {
                    "case": each.case or None,
                    "actions": [_action_json(action) for action in each.actions],
                    "notes": list(each.notes),
                }
                for each in step.transactions
            ],
            "steps": steps_json(step.steps),
        }
        for step in steps
    ]


def sent_json(steps: Iterable[Explained]) -> list[dict[str, Any]]:
    """Returns the requests by round trip as JSON."""
    return [
        {
            "roundTrip": sent.round_trip,
            "request": sent.target,
            "paths": list(sent.places),
            "onePerParent": sent.is_per_parent,
        }
        for sent in sent_requests(steps)
    ]


def _action_json(action: DescribedAction) -> dict[str, Any]:
    return {
        **asdict(action),
        "path": [*public_path(action.path)],
        "failures": [
            {"code": each.code, "message": message_of(RefusedPart(each)), "path": [*public_path(each.path)]}
            for each in action.failures
        ],
    }
