"""Repairs what a verification found: for each problem the steps of one transaction, or why it stays.

An item whose node is missing is treated as if the node were deleted now, with its edges: an edge or a record goes, with
its mirror or counterpart; an optional end is removed. Of two items of an edge that differ, the right one is the one with
the higher `version()` or the later `updated()`, else that of the type that names the counterpart, else the one with the
smaller key. Keys of indexes are rendered from the item's values, and counts and sums set to what their lists have.

No write of others is lost: each transaction has the condition that what it depends on is as it was read, and if not, the
item is read and verified again. A write that changes a list changes the counts of its node with it, as mutations do.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias, cast

from uuid_utils import uuid4

from keygraph import errors
from keygraph.dynamo import actions
from keygraph.dynamo.conditions import And, Condition, Not, Path, at_path, put_at_path
from keygraph.dynamo.items import Item, Value, exact_sum
from keygraph.dynamo.rules import WriteRules
from keygraph.dynamo.store import BatchGet, Store, Transaction, Write
from keygraph.dynamo.table import Key
from keygraph.graph import Graph
from keygraph.model.expiry import now
from keygraph.model.node_shards import is_shard, node_of_shard
from keygraph.model.record_keys import Texts
from keygraph.model.records import End, RecordType
from keygraph.resolve.derived import as_stored, combined, is_storable, stored_value
from keygraph.tables.attributes import AttributeCounter
from keygraph.tables.backfill import Backfill, filled
from keygraph.tables.bulk import RatedStore, WriteRate, gathered, unwritten
from keygraph.tables.findings import Finding, FindingKind, Problem
from keygraph.tables.item_fields import item_fields
from keygraph.tables.totals import is_listed, tallies_of
from keygraph.writing import partners, rules
from keygraph.writing.context import Stored, WriteContext
from keygraph.writing.items import differences
from keygraph.writing.marks import ADDED, COPIED, MARK, UNMARKED, copying_mark
from keygraph.writing.presence import are_as_read, is_unchanged
from keygraph.writing.requests import Change
from keygraph.writing.sending.copying import copy_to_rest
from keygraph.writing.sending.sender import TransactionSender
from keygraph.writing.step import Addition, TransactionStep, again, merged
from keygraph.writing.steps import detaching_steps, following_steps
from keygraph.writing.tallies import additions, read_list_ends, with_rendered_keys

REPAIRS: dict[str, tuple[Problem, ...]] = {
    "ends": ("dangling",),
    "keys": ("key",),
    "mirrors": ("one-sided", "differing"),
    "copies": ("stale", "outdated", "interrupted"),
    "counts": ("miscounted",),
}
"""The problems that each kind of repair is for, in the order in which those of one item are repaired."""
_KINDS: dict[str, tuple[Problem, ...]] = {
    "values": ("missing",),
    "new copies": ("uncopied",),
    **REPAIRS,
}
"""With those that only a backfill makes. They are made first: keys may hold these values."""
BACKFILLED = ("values", "new copies", "keys", "counts")
_KIND_OF = {problem: kind for kind, problems in _KINDS.items() for problem in problems}
_ORDER = list(_KIND_OF)
_NEVER: dict[Problem, str] = {
    "unknown": "declare its type, name it in ignore=, or delete it",
    "unfit": "only you know what is right",
}
"""Why other problems are never repaired."""
_TRIES = 20
_ITEMS = 100
"""The most items that are repaired together in a segment of the table, with what they depend on in memory."""
_PAUSE = 0.05
"""The longest pause before another try, in seconds."""


class ItemChange(NamedTuple):
    """An item before and after a repair; None if there is none."""

    key: Key
    before: Item | None
    after: Item | None


Steps: TypeAlias = "list[TransactionStep] | str"
"""The steps of a repair, or the reason why there are none."""


Verify: TypeAlias = "Callable[[Sequence[Key]], Coroutine[Any, Any, list[Finding]]]"
"""Reads and verifies items, and returns their findings."""


# --- What a repair is ---------------------------------------------------------------------------------


def repair(write: WriteContext, findings: Sequence[Finding]) -> Steps:
    """Returns the steps that repair the first finding of an item, and with it further ones of its kind, or the reason
    why they stay. `write` knows the items with the keys that `needed` yields."""
    (problem, type_, _), _, item, *_ = findings[0]
    record = write.graph.types[type_ or ""]
    if write.graph.is_expired(item, now()):
        return "it has expired"
    match problem:
        case "dangling":
            made = _without_node(write, record, item, findings[0].name or "")
        case "key":
            made = _with_keys(write, record, item, findings)
        case "missing":
            made = [_rewritten(write, record, item, filled(write, record, item, findings))]
        case "one-sided" | "differing":
            made = _with_other(write, record, item)
        case "interrupted":
            # All copies of it are written.
            removal = actions.UpdateItem(write.key_of(item), (COPIED,), copying_mark(item).is_there)
            made = [TransactionStep(removal, again)]
        case "miscounted":
            made = _with_numbers(write, record, item, findings)
        case _:
            made = _with_copies(write, record, item, findings)
    if isinstance(made, str):
        return made
    if write.graph.tallies and problem not in (*REPAIRS["copies"], "uncopied"):
        made = [_with_additions(write, step) for step in made]
    steps = merged((((), step) for step in made), write.graph.table, write.refusals)
    steps = [_or_check(with_rendered_keys(write, step)) for step in steps]
    return str(write.refusals.found[0].message) if write.refusals.found else steps


def _or_check(step: TransactionStep) -> TransactionStep:
    """Returns the step, or a check if it changes nothing, because others have repaired the item: DynamoDB refuses an update
    without changes in a transaction."""
    action = step.action
    if not isinstance(action, actions.UpdateItem) or action.changes or action.condition is None:
        return step
    return replace(step, action=actions.CheckItem(action.key, action.condition), is_check=True)


def needed(write: WriteContext, key: Key) -> Iterator[Key]:
    """Yields the keys of what the repairs of an item depend on: it, its other item, and the nodes at their ends."""
    yield key
    graph, item = write.graph, write.stored.get(key)
    record = None if item is None else graph.recognise(item)
    if item is None or record is None:
        return
    items = [(record, item)]
    yield from graph.table_keys(record, record.read_identity(item) or ())
    if record.name in graph.correspondences:
        yield from partners.keys(write, record, [item])
        other = partners.stored(write, record, item)
        items += [] if other is None else [(graph.correspondences[record.name].other, other)]
    for own, each in items:
        for _, node, identity in named_nodes(own, each):
            yield from () if node.is_virtual else graph.table_keys(node, identity)


def named_nodes(
    record: RecordType, item: Item, identity: Texts | None = None
) -> Iterator[tuple[str, RecordType, Texts]]:
    """Yields each end of an item with the type and identity of its node. If several types have such keys, the first.
    What the item's identity decides is not read again, if it is given."""
    in_key = record.end_readers if identity is not None else {}
    for end in record.ends.values():
        own = in_key[end.name](identity) if identity is not None and end.name in in_key else None
        if own is None or "" in own:
            own = record.readable_end(item, end)
        if own is not None:
            (node, *_), texts = end.nodes(own)
            yield end.name, node, texts
    for end in record.list_ends.values():
        for _, own in record.readable_members(item, end):
            (node, *_), texts = end.nodes(own)
            yield end.name, node, texts


def names_no_node(record: RecordType, item: Item, end: End) -> bool:
    """Returns whether an item has nothing at an end."""
    try:
        return record.end_identity(item, end) is None
    except errors.CorruptItem:
        return False


def _without_node(write: WriteContext, record: RecordType, item: Item, name: str) -> Steps:
    """Returns the steps that delete an item whose node is missing, or remove the end."""
    of_shard = node_of_shard(write.graph.types, write.graph.table, item) if is_shard(item) else None
    if of_shard is not None:
        delete = actions.DeleteItem(write.key_of(item), write.presence.there)
        check = actions.CheckItem(of_shard[1], Not(write.presence.there))
        return [
            TransactionStep(delete, again, before=item),
            TransactionStep(check, again, is_check=True, is_rule=True),
        ]
    nodes = [(node, own) for end, node, own in named_nodes(record, item) if end == name]
    if name in record.list_ends or not nodes:
        return "remove the id from the list"
    [(node, own)] = nodes
    references = [
        each for each in write.graph.references[node.name] if (each.record, each.end.name) == (record, name)
    ]
    if record.is_node and not references[0].is_removable:
        return f"{record.name} needs it: create the {node.name}, or delete the {record.name}"
    absent = Not(write.presence.there)
    checks = [actions.CheckItem(key, absent) for key in write.graph.table_keys(node, own)]
    steps = [TransactionStep(check, again, is_check=True, is_rule=True) for check in checks]
    return [*detaching_steps(write, references[:1], item), *steps]


def _with_keys(write: WriteContext, record: RecordType, item: Item, findings: Sequence[Finding]) -> Steps:
    """Returns the step that renders the keys of the indexes again that the findings are about."""
    keys, what = write.graph.made(item_fields)[record.name].keys, findings[0].kind.what
    new = keys.repaired(item, {each.kind.what for each in findings})
    before, after = ({*keys.problems(each)} for each in (item, new))
    if what in after or not after < before:
        is_index = what.startswith(tuple(f"{name}: " for name in record.keys if name))
        return "no other key follows from its values" if is_index else "its key in the table is not changed"
    return [_rewritten(write, record, item, new)]


def _rewritten(write: WriteContext, record: RecordType, item: Item, new: Item) -> TransactionStep:
    """Returns the step that makes an item the new one, if it is as it was read. Raises BadUserInput for one that DynamoDB
    refuses."""
    write.graph.made(_write_rules).check(new)
    changes = tuple(differences(item, new, item.keys() | new.keys()))
    update = actions.UpdateItem(write.key_of(item), changes, _as_read(write, record, item))
    return TransactionStep(update, again, before=item)


def _write_rules(graph: Graph) -> WriteRules:
    return WriteRules(graph.table)


def _with_other(write: WriteContext, record: RecordType, item: Item) -> Steps:
    """Returns the steps that write the other item of an edge, or make the wrong one of two as the right one requires."""
    graph, pair = write.graph, write.graph.correspondences[record.name]
    right, wrong = item, partners.stored(write, record, item)
    if wrong is not None and not _is_right(write, record, item, wrong):
        right, wrong = wrong, item
        pair = graph.correspondences[pair.other.name]
    new = partners.other(write, pair.one, right, ())
    if new is None:
        return str(write.refusals.found[0].message) if write.refusals.found else "it has no other item"
    same = actions.CheckItem(write.key_of(right), _as_read(write, pair.one, right))
    steps = [TransactionStep(same, again, is_check=True, is_rule=True)]
    if wrong is not None:
        if not pair.is_mirror:
            new = partners.changed(write, pair.one, wrong, new, ())
        if pair.other.read_identity(new) != pair.other.read_identity(wrong):
            return "its other item is that of another one: delete one of them"
        # What only its keys hold stays only there.
        names = {name for name in {*wrong, *new} if name in wrong or name not in pair.other.completed(wrong)}
        names -= {key.name for key in graph.table.keys}
        changes = tuple(differences(wrong, new, names))
        update = actions.UpdateItem(write.key_of(wrong), changes, _as_read(write, pair.other, wrong))
        steps.append(TransactionStep(update, again, before=wrong))
    else:
        keys = graph.table_keys(pair.other, pair.other.read_identity(new) or ())
        if any(write.stored.get(key) is not None for key in keys):
            return "an item of another type has its key"
        if pair.needed:
            return f"write the {pair.other.name} yourself: it needs {', '.join(pair.needed)}"
        absent = Not(write.presence.there)
        others = [actions.CheckItem(key, absent) for key in keys if key != write.key_of(new)]
        for _, node, own in named_nodes(pair.other, new):
            there = [key for key in graph.table_keys(node, own) if write.stored.get(key) is not None]
            if not there and not node.is_virtual:
                return "a node at one of its ends is missing"
            others += [actions.CheckItem(key, And((write.presence.there, UNMARKED))) for key in there[:1]]
        steps += [TransactionStep(each, again, is_check=True) for each in others]
        steps.append(TransactionStep(actions.PutItem(new, absent), again))
    rules.check(write, pair.other, new, ())
    return steps


def _is_right(write: WriteContext, record: RecordType, item: Item, other: Item) -> bool:
    """Returns whether of two items that differ this is the right one."""
    pair = write.graph.correspondences[record.name]
    updated = [field for field in record.fields.values() if field.kept == "updated"]
    for field in [*([record.version] if record.version else []), *updated] if pair.is_mirror else []:
        mine, theirs = (record.reader(field)(each) for each in (item, other))
        if None not in (mine, theirs) and mine != theirs:
            return bool(mine > theirs)
    if (record.counterpart is None) != (pair.other.counterpart is None):
        return record.counterpart is not None
    return write.key_of(item) < write.key_of(other)


def _with_numbers(write: WriteContext, record: RecordType, item: Item, findings: Sequence[Finding]) -> Steps:
    """Returns the steps that set counts and sums. A missing one is first set to 0, so that mutations add to it. If shards
    of the node have parts of a number, the node gets the rest, on condition that they are as they were read."""
    wrong = [each for each in findings if each.kind.problem == "miscounted" and each.right is not None]
    wrong = [each for each in wrong if is_storable(each.right)]
    if not wrong:
        return "no number can hold it"
    fields = [(record.fields[each.name or ""], _own_part(record, each)) for each in wrong]
    right = [actions.SetTo(field.kept_attribute, as_stored(field, value, item)) for field, value in fields]
    missing = [
        actions.SetTo(field.kept_attribute, as_stored(field, combined(field, ()), item))
        for field, _ in fields
        if stored_value(field, item) is None
    ]
    changes = tuple(missing or right)
    same = [is_unchanged(each.path, item) for each in changes]
    update = actions.UpdateItem(write.key_of(item), changes, And((write.presence.is_there(record), *same)))
    names = [name for field, _ in fields for name in field.shard_attributes.values()]
    checks = [
        actions.CheckItem(key, Not(write.presence.there) if shard is None else _are_unchanged(names, shard))
        for key, shard in (findings[0].shards if names and not missing else ())
    ]
    return [
        TransactionStep(update, again, before=item),
        *(TransactionStep(check, again, is_check=True, is_rule=True) for check in checks),
    ]


def _are_unchanged(names: Iterable[str], shard: Item) -> Condition:
    return And(tuple([is_unchanged((name,), shard) for name in names]))


def _own_part(record: RecordType, finding: Finding) -> Value:
    """Returns what the node's own item must have of a number, given what it should be."""
    field = record.fields[finding.name or ""]
    shards = [shard for _, shard in finding.shards if shard is not None]
    whole: Item = {}
    put_at_path(whole, field.kept_attribute, finding.right)
    parts = {
        path: exact_sum(each for shard in shards if isinstance(each := shard.get(name), Decimal))
        for path, name in field.shard_attributes.items()
    }
    less = [actions.AddNumber(path, number.copy_negate()) for path, number in parts.items()]
    return cast(Value, at_path(actions.changed(whole, less), field.kept_attribute))


def _with_copies(
    write: WriteContext, record: RecordType, item: Item, findings: Iterable[Finding]
) -> list[TransactionStep]:
    """Returns the steps that copy again what nodes have now."""
    wrong = {each.name for each in findings}
    values, ends, checks = dict[str, Any](), set[str](), list[TransactionStep]()
    for copy in write.graph.copies[record.name]:
        if copy.field.name not in wrong:
            continue
        if names_no_node(record, item, copy.end):
            values[copy.field.name] = None
            ends.add(copy.end.name)
        named = [(node, own) for end, node, own in named_nodes(record, item) if end == copy.end.name]
        for key in (key for node, own in named for key in write.graph.table_keys(node, own)):
            there = write.stored.get(key)
            of = None if there is None else write.graph.recognise(there)
            if there is not None and of is not None and of in copy.sources:
                source = copy.sources[of]
                values[copy.field.name] = of.reader(source)(there)
                ends.add(copy.end.name)
                same = actions.CheckItem(key, And(tuple(are_as_read(of, source.attributes, there))))
                checks.append(TransactionStep(same, again, is_check=True, is_rule=True))
    change = Change(record, record.read_identity(item) or (), values)
    return [*following_steps(write, change, ends, item), *checks]


def _as_read(write: WriteContext, record: RecordType, item: Item) -> Condition:
    """Returns the condition that an item is as it was read, except its counts and sums."""
    kept: set[Path] = {(ADDED,), (MARK,), *((key.name,) for key in write.graph.table.keys)}
    kept |= {field.kept_attribute for field in tallies_of(write.graph, record)}
    read = {*write.maker(record).paths((*record.fields, *record.ends)), *((name,) for name in item)}
    return And((write.presence.there, *are_as_read(record, sorted(read - kept), item)))


def _with_additions(write: WriteContext, step: TransactionStep) -> TransactionStep:
    """Returns the step with what it adds to nodes: an item with wrong keys is not in their lists."""
    if isinstance(step.action, actions.CheckItem):
        return step
    after = actions.outcome(replace(step.action, condition=None), step.before, write.graph.table)
    record = write.graph.recognise(step.before or after or {})
    found = list[Addition]()
    for tally in write.graph.tallies.get(record.name, ()) if record is not None else ():
        there = [
            each if each is not None and is_listed(write.graph, tally, each) else None
            for each in (step.before, after)
        ]
        found += additions(write, (tally,), *there)
    return replace(step, additions=tuple(found))


# --- Carrying it out ----------------------------------------------------------------------------------


@dataclass
class _Repaired:
    """An item that is being repaired."""

    key: Key
    findings: Sequence[Finding]
    next: list[Finding] = dataclasses.field(default_factory=list)
    """Those that are repaired now."""
    reasons: dict[FindingKind, str] = dataclasses.field(default_factory=dict)
    """Why others stay."""
    listed: set[Problem] = dataclasses.field(default_factory=set)
    """The problems whose repair a dry run has listed."""

    @property
    def kind(self) -> FindingKind:
        return self.next[0].kind


def _by_item(findings: Iterable[Finding]) -> dict[Key, list[Finding]]:
    found: dict[Key, list[Finding]] = {}
    for each in findings:
        found.setdefault(each.example.key, []).append(each)
    return found


def _why(error: Exception) -> str:
    """Returns why a repair cannot be computed. The model's own code may raise anything."""
    return (
        str(error)
        if isinstance(error, errors.KeygraphError)
        else f"it cannot be computed: {type(error).__name__}"
    )


class Repairs:
    """The repairs of a verification. Each item is repaired by itself, however many others are repaired at once."""

    def __init__(
        self,
        graph: Graph,
        store: Store,
        kinds: Iterable[str] | None,
        listen: Callable[[FindingKind, list[ItemChange]], None],
        *,
        rate: WriteRate | None = None,
        is_dry_run: bool = False,
        backfill: Backfill | None = None,
    ) -> None:
        """`kinds` are keys of `REPAIRS`; other problems are left. None: all, but of copies only those that follow their
        source: others may differ on purpose. `listen` is called with each repair. A dry run
        computes what would be done first, and writes nothing. A backfill looks for nothing but what items lack, and its
        `kinds` are `BACKFILLED`."""
        several = [_KINDS[kind] for kind in (REPAIRS if kinds is None else kinds)]
        self.problems = frozenset(
            each for problems in several for each in problems if kinds is not None or each != "outdated"
        )
        self.backfill = backfill
        self._store = RatedStore(unwritten(store) if is_dry_run else store, rate or WriteRate())
        self._context = graph.made(WriteContext)
        self._listen = listen
        self._is_dry_run = is_dry_run
        self.written = AttributeCounter(graph)
        """The attributes that repairs have written."""

    async def repair(self, findings: Iterable[Finding], verify: Verify) -> list[Finding]:
        """Repairs the items of these findings. Returns what is left, with the reasons."""
        items = waiting = [_Repaired(key, own) for key, own in _by_item(findings).items()]
        for _ in range(_TRIES):
            parts = [waiting[start : start + _ITEMS] for start in range(0, len(waiting), _ITEMS)]
            is_any_made = any([await self._repair(part, verify) for part in parts])
            waiting = [item for item in items if item.reasons]
            if not is_any_made or not waiting:
                break
            # What stays may be possible now that others are repaired.
            for item in waiting:
                item.reasons.clear()
        return [finding for item in items for finding in self._left(item)]

    async def _repair(self, items: Sequence[_Repaired], verify: Verify) -> bool:
        """Repairs items together. In each round, what their repairs depend on is read, several are written at once, and
        those that may have changed are verified again. Returns whether any was repaired."""
        is_any_made = False
        for _ in range(_TRIES):
            waiting = [item for item in items if self._has_next(item)]
            if not waiting:
                break
            stored = await self._read(waiting)
            made = await gathered(self._made(item, stored) for item in waiting)
            is_any_made = is_any_made or True in made
            again = {
                item.key: item for item, is_made in zip(waiting, made, strict=True) if is_made is not None
            }
            if not again:
                continue
            if False in made:
                await asyncio.sleep(random.uniform(0, _PAUSE))
            found = _by_item(await verify([*again]))
            for key, item in again.items():
                item.findings = found.get(key, [])
        return is_any_made

    def _has_next(self, item: _Repaired) -> bool:
        """Sets the findings of an item that are repaired next. Returns whether there are any."""
        several = [
            each
            for each in item.findings
            if each.kind.problem in self.problems - item.listed and each.kind not in item.reasons
            if each.reason is None
        ]
        first = min((each.kind.problem for each in several), key=_ORDER.index, default=None)
        item.next = [each for each in several if each.kind.problem == first]
        if first == "missing":
            # One write has both.
            item.next += [each for each in several if each.kind.problem == "key"]
        return bool(several)

    def _left(self, item: _Repaired) -> list[Finding]:
        """Returns the findings of an item that stay, with the reasons."""
        self._has_next(item)
        left = {each.kind: "others change it all the time" for each in item.next}
        never = {each.kind: self._never(each) for each in item.findings if each.kind.problem in _NEVER}
        reasons = {**left, **never, **item.reasons}
        return [each._replace(reason=each.reason or reasons.get(each.kind)) for each in item.findings]

    def _never(self, finding: Finding) -> str:
        type_ = self._context.graph.types.get(finding.kind.type or "")
        field = type_.fields.get(finding.name or "") if type_ else None
        is_copy = field is not None and field.kept == "copy"
        return "--only copies or a backfill writes it" if is_copy else _NEVER[finding.kind.problem]

    def _is_read(self, item: _Repaired) -> bool:
        """Returns whether an item is read again. If not, its repair depends on nothing else, and its condition is that the
        item is as it was verified."""
        return item.kind.problem not in ("missing", "key") or item.kind.type in self._context.graph.tallies

    async def _read(self, items: Iterable[_Repaired]) -> Stored:
        """Returns what the repairs of items depend on."""
        stored = dict[Key, Item | None]()
        several = [item for item in items if self._is_read(item)]
        while keys := tuple(dict.fromkeys(key for item in several for key in self._unread(item, stored))):
            batch = await self._store.send(BatchGet(keys, consistent=True))
            stored |= zip(keys, batch.items, strict=True)
        return stored

    def _unread(self, item: _Repaired, stored: Stored) -> list[Key]:
        try:
            return [key for key in needed(self._context.knowing(stored), item.key) if key not in stored]
        except Exception as error:
            item.reasons[item.kind] = _why(error)
            return []

    async def _made(self, item: _Repaired, stored: Stored) -> bool | None:
        """Makes the next repair of an item. Returns whether it is made, and None if the item need not be verified again."""
        stored = stored if self._is_read(item) else {item.key: item.next[0].item}
        made = item.reasons.get(item.kind) or await self._steps(item, stored)
        if made is None:
            return False
        sent = made if isinstance(made, str) else await self._send(item.next[0], made[0])
        if isinstance(made, str) or isinstance(sent, str):
            item.reasons[item.kind] = str(sent).rstrip(".")
            return None
        if not sent:
            return False
        steps, changes = made
        self._listen(item.kind, changes)
        if not self._is_dry_run:
            self._count_written(changes)
            return True
        is_gone = any(isinstance(each.action, actions.DeleteItem) for each in steps)
        for each in item.next:
            item.listed.update(_ORDER if is_gone else _KINDS[_KIND_OF[each.kind.problem]])
        return None

    async def _steps(
        self, item: _Repaired, stored: Stored
    ) -> tuple[list[TransactionStep], list[ItemChange]] | str | None:
        """Returns the steps of the next repair of an item, and how they change items; the reason if there is none, and None if
        the item has changed since it was verified."""
        if stored[item.key] != item.next[0].item:
            return None
        write = self._context.knowing(stored)
        write.list_ends = {}
        try:
            steps = repair(write, item.next)
            if await read_list_ends(write, self._store.send):
                steps = repair(write.separate(), item.next)
            if isinstance(steps, str):
                return steps
            # Another item of the repair may have a value to which nothing can be added.
            return steps, self._changes(stored, steps)
        except errors.StoreError:
            raise
        except Exception as error:
            return _why(error)

    async def _send(self, finding: Finding, steps: Sequence[TransactionStep]) -> bool | str:
        """Sends the steps. Returns False if something has changed since it was read, and the reason if they cannot be
        sent."""
        if finding.kind.problem == "interrupted":
            return self._is_dry_run or await self._copy_to_rest(finding)
        sent = tuple(step.action for step in steps)
        request: Any = Transaction(sent, uuid4().hex)
        if len(sent) == 1 and not isinstance(sent[0], actions.CheckItem):
            request = Write(sent[0])
        try:
            await self._store.send(request)
        except (errors.ConditionFailed, errors.TransactionCanceled):
            return False
        except errors.BadUserInput as error:
            return str(error)
        return True

    async def _copy_to_rest(self, finding: Finding) -> bool | str:
        """Goes on with an interrupted change of copies, which removes the mark in the end. Returns the same as `_send`."""
        record = self._context.graph.types[finding.kind.type or ""]
        identity = record.read_identity(finding.item) or ()
        sender = TransactionSender(self._context, self._store, [Change(record, identity, {})])
        try:
            await copy_to_rest(sender, record, identity)
        except (errors.BadUserInput, errors.WriteRefused) as error:
            return str(error)
        return True

    def _count_written(self, changes: Iterable[ItemChange]) -> None:
        for _, before, after in changes:
            record = self._context.graph.recognise(after or {})
            if record is not None:
                new = {
                    name: value for name, value in (after or {}).items() if (before or {}).get(name) != value
                }
                self.written.add(record, new)

    def _changes(self, stored: Stored, steps: Iterable[TransactionStep]) -> list[ItemChange]:
        table, changes = self._context.graph.table, []
        for action in (step.action for step in steps):
            if isinstance(action, actions.CheckItem):
                continue
            key = actions.key_of(action, table)
            before = stored.get(key)
            after = actions.outcome(replace(action, condition=None), before, table)
            changes += [ItemChange(key, before, after)] if before != after else []
        return changes
