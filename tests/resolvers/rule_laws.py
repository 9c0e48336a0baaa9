"""Laws of access rules, held for random tables, rules, viewers and operations; for mutations too.

`python -m tests.resolvers.rule_laws 10000` asks so many operations.

- What is hidden tells nothing: the answer is the same, with its errors and its cost report, where the records that the
  viewer does not see are not in the table, and where the fields that they may not read have other values.
- What a mutation writes, the rules allow, as `NaiveAccess` reads them: each record as it was, and as it is then. It writes
  what the same graph without rules would write; one that fails writes nothing.
- A mutation that the rules allow is not refused.

One thing tells, and cannot do otherwise: a write fails that needs the place of what is hidden, or would leave hidden records
without what they name. It is refused, then, where it is done with nothing there (`_in_the_way`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from graphql import get_nullable_type, is_composite_type, is_input_object_type, is_list_type

from keygraph.dynamo.conditions import put_at_path
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable, DeleteTable, Scan, Store
from keygraph.dynamo.table import Key
from keygraph.engines.open import open_store
from keygraph.graph import Graph
from keygraph.model.records import RecordType
from keygraph_resolvers import NO_LIMITS, OperationRequest, Service, build_schema
from keygraph_resolvers.schema import field_kinds
from keygraph_resolvers.schema.types import GraphSchema
from tests.resolvers.differential import errors_of, model, run_served
from tests.resolvers.guarded import MODELS, NaiveAccess
from tests.resolvers.made_items import made_items
from tests.resolvers.made_operations import Choose, Maker, Operation, Words, _kind, words_of
from tests.resolvers.made_rules import Rules, guarded, known_value, made_rules
from tests.resolvers.many_operations import main
from tests.resolvers.worlds import SECRET

Table = Mapping[Key, Item]
MARK = "_keygraph"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class _Frozen(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return NOW


@contextmanager
def same_moment() -> Iterator[None]:
    """What the server makes of its own is the same in each run."""
    numbers = count(1)

    def new_id() -> str:
        return f"01HZZZZZZZZZZZZZZZZZZZ{next(numbers):04d}"

    with (
        patch("keygraph.writing.requests.new_id", new_id),
        patch("keygraph_resolvers.schema.mutations.new_id", new_id),
        patch("keygraph.writing.context.datetime", _Frozen),
    ):
        yield


# --- Operations ---------------------------------------------------------------------------------------


class MutationMaker(Maker):
    """Makes mutations, mostly of what is there."""

    def __init__(
        self, schema: GraphSchema, words: Words, choose: Choose, known: Mapping[str, Sequence[Words]]
    ):
        super().__init__(schema, words, choose)
        self._known = known
        self._like: Words | None = None
        self.left = 14

    def mutation(self) -> tuple[str, Operation]:
        fields = self.schema.mutation_type.fields  # type: ignore[union-attr]  # models that are asked have one
        name = self.pick(sorted(fields))
        field = fields[name]
        record = getattr(_kind(field), "record", None)
        known = self._known.get(record.name if record else "", ())
        self._like = self.pick(known) if known else None
        given = ", ".join(
            f"{key}: {self.value(key, each.type)}"
            for key, each in field.args.items()
            if get_nullable_type(each.type) is not each.type or self.chance(3)
        )
        body = f"{{ made: {name}({given}) {self.selections(get_nullable_type(field.type), ('made',), 1)} }}"
        declared = ", ".join(f"${name}: {type_}" for name, (type_, _) in self.variables.items())
        fragments = "\n".join(f"fragment {name} on {on} {inner}" for name, on, inner in self.fragments)
        values = {name: value for name, (_, value) in self.variables.items()}
        head = f"mutation Made({declared})" if declared else "mutation Made"
        return name, Operation(f"{head} {body}\n{fragments}", values, self.cursors)

    def value(self, name: str, type_: Any) -> str:
        plain = get_nullable_type(type_)
        if self._like is None or is_list_type(plain) or is_input_object_type(plain) or self.chance(6):
            return super().value(name, type_)
        known = self._like.values.get(name)
        if not known or is_composite_type(plain):
            return super().value(name, type_)
        return self.literal(known[0], type_)


# --- What the rules say of writes ---------------------------------------------------------------------


class Judge:
    """What rules say of the difference between two tables."""

    def __init__(self, graph: Graph, rules: Rules) -> None:
        self.graph = graph
        self.access = NaiveAccess(rules)

    def refused(self, name: str, before: Table, after: Table, *, strict: bool) -> str | None:
        """What the viewer may not do of it. `strict`: a write of any field counts, whether it has another value or not."""
        keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
        told = {key: self._of(name, before.get(key), after.get(key), before, strict=strict) for key in keys}
        for key, problem in told.items():
            item = after.get(key) or before[key]
            record = self.graph.recognise(item)
            if problem is None or record is None:
                continue
            if record.is_mirrored and not strict:
                other = self.graph.counterpart(record, item)
                places = self.graph.table_keys(other.record, other.identity) if other else []
                # The item that the client writes may be as it was, and only the other one differ from it.
                others = ((before.get(place), after.get(place)) for place in places)
                if any(
                    pair != (None, None) and self._of(name, *pair, before, strict=strict) is None
                    for pair in others
                ):
                    continue
            return f"{key}: {problem}"
        return None

    def _of(
        self, name: str, old: Item | None, new: Item | None, before: Table, *, strict: bool
    ) -> str | None:
        one = None if old is None else self.graph.recognise(old)
        other = None if new is None else self.graph.recognise(new)
        is_move = name.startswith("move")
        if old is not None and new is not None and one is not None and one is other and not strict:
            pairs = ((each, known_value(one, each, old), known_value(one, each, new)) for each in one.fields)
            changed_fields = [each for each, value, later in pairs if value != later]
            if changed_fields and all(one.fields[each].follows for each in changed_fields):
                return None  # whoever may change the node changes its copies
        for record, item, action in (
            (one, old, "delete" if new is None and not is_move else "update"),
            (other, new, "create" if old is None and not is_move else "update"),
        ):
            if record is None or item is None:
                continue
            identity = record.read_identity(item) or ()
            if self.access.allows(record, action, identity, item) is not True:
                return f"{record.name} may not be {action}d"
            if item is old and self.access.sees(record, identity, item) is not True:
                return f"{record.name} is not seen"
            names = [*record.fields, *record.ends]
            if not strict:
                pair = (old or {}, new or {})
                values = [[known_value(record, each, item) for item in pair] for each in names]
                names = [each for each, (a, b) in zip(names, values, strict=True) if a != b]
                names = names if old is not None and new is not None else []
            if action != "delete":
                for each in names:
                    if self.access.writes(record, action, each, identity, item) is not True:
                        return f"{record.name}.{each} may not be {action}d"
            if strict and item is new and not self._sees_ends(record, item, before):
                return f"an end of {record.name} is not seen"
        return None

    def _sees_ends(self, record: RecordType, item: Item, table: Table) -> bool:
        for end in record.ends.values():
            identity = record.end_identity(item, end)
            if identity is None:
                continue
            members, own = end.nodes(identity)
            places = [table.get(key) for key in self.graph.table_keys(members[0], own)]
            there = next((each for each in places if each is not None), None)
            if not all(
                self.access.sees(
                    member, own, there if there is not None else ({} if member.is_virtual else None)
                )
                for member in members
            ):
                return False
        return True


# --- Tables -------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Laws:
    """A random table with random rules, of which the laws are asked."""

    name: str
    graph: Graph
    store: Store
    items: Sequence[Item]
    rules: Rules
    guarded: Service
    open: Service
    schema: GraphSchema
    words: Words
    known: Mapping[str, Sequence[Words]]

    def __post_init__(self) -> None:
        self.judge = Judge(self.guarded.schema.graph, self.rules)  # type: ignore[attr-defined]
        self.access = self.judge.access
        self._tables = [table for table in (self._without_hidden(), self._with_others()) if table is not None]

    async def check(self, choose: Choose) -> int:
        if choose(3) and self.schema._schema.mutation_type:
            name, operation = MutationMaker(self.schema, self.words, choose, self.known).mutation()
        else:
            name, operation = "", Maker(self.schema, self.words, choose).operation()
        found, table = await self._asked(self.guarded, self.items, operation)
        if _is_invalid(found):
            return 0
        before = self._by_key(self.items)
        try:
            if name:
                await self._check_written(name, operation, found, before, table)
            await self._check_told(name, operation, found, before, table)
        except AssertionError as error:
            said = f"{operation.document}\nvariables {json.dumps(operation.variables)}\nclaims {self.rules.claims}"
            raise AssertionError(f"{error}\n{said}\nanswer {json.dumps(found)[:20000]}") from None
        return 1

    async def _check_written(
        self, name: str, operation: Operation, found: Mapping[str, Any], before: Table, table: Table
    ) -> None:
        is_done = _is_done(found)
        kind = _kind(self.schema._schema.mutation_type.fields[name])  # type: ignore[union-attr]  # it was asked for
        is_several = isinstance(kind, field_kinds.WritesEach | field_kinds.WritesActions)
        if not is_done:
            assert table == before, f"failed, and wrote: {_changed(before, table)}"
        open_answer, open_table = await self._asked(self.open, self.items, operation)
        if _is_invalid(open_answer):
            return  # a list of everything has other arguments there
        is_open_done = _is_done(open_answer)
        if is_done:
            if not is_several:
                assert table == open_table, f"wrote something else: {_changed(table, open_table)}"
            problem = self.judge.refused(name, before, table, strict=False)
            assert problem is None, f"not allowed: {problem}"
        elif is_open_done and open_table != before and not is_several:
            problem = self.judge.refused(name, before, open_table, strict=True)
            assert problem is not None, "refused, and allowed"

    async def _check_told(
        self, name: str, operation: Operation, found: Mapping[str, Any], before: Table, table: Table
    ) -> None:
        for number, items in enumerate(self._tables):
            other, other_table = await self._asked(self.guarded, items, operation)
            if _said(other) == _said(found):
                continue
            if name and number == 0 and self._in_the_way(found, before, self._by_key(items), other_table):
                continue
            if name and number == 0 and self._are_in_the_way(found, other):
                continue
            if name and number == 1 and self._shows_more(items, table):
                continue
            if name and await self._races(operation, other):
                continue
            what = "hidden records" if number == 0 else "hidden fields"
            raise AssertionError(f"{what} tell something: without them {json.dumps(other)[:20000]}")

    def _are_in_the_way(self, found: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Whether both fail by hidden records alone that are in the place of new ones: edges that rules ask for are in both
        tables, and where one is not hidden, nothing else is told."""
        told, others = (
            {each["message"]: each["extensions"]["code"] for each in answer.get("errors", ())}
            for answer in (found, other)
        )
        linked = {f"You may not create this {each}." for each in self._asked_for()}
        return bool(others) and others.keys() <= linked and others.items() <= told.items()

    def _shows_more(self, others: Sequence[Item], table: Table) -> bool:
        """Whether the viewer may read, after their own write, of what they may not have read before."""
        there = self._by_key(self.items)
        changed = [
            (there[key], each) for each in others if there[key := self.graph.table.key_of(each)] != each
        ]
        moved = [item for key, item in table.items() if key not in there]
        for one, other in changed:
            item, record = table.get(self.graph.table.key_of(one)), self.graph.recognise(one)
            if record is None or item == one:
                continue
            names = [each.name for each in record.fields.values() if each.attribute[0] in one]
            differs = [
                each for each in names if known_value(record, each, one) != known_value(record, each, other)
            ]
            now = [each for each in moved if self.graph.recognise(each) is record] if item is None else [item]
            if any(
                self.access.reads(record, name, record.read_identity(each) or (), each)
                for name in differs
                for each in now
            ):
                return True
        return False

    async def _races(self, operation: Operation, other: Mapping[str, Any]) -> bool:
        """Whether an answer comes with what is hidden, too: inputs that are each for itself may be about one record, and
        nobody says which is first."""
        if not self._is_each(operation):
            return False
        again = [(await self._asked(self.guarded, self.items, operation))[0] for _ in range(8)]
        return any(_said(each) == _said(other) for each in again)

    def _is_each(self, operation: Operation) -> bool:
        return "atomic: false" in operation.document

    def _in_the_way(self, found: Mapping[str, Any], before: Table, less: Table, written: Table) -> bool:
        """Whether a write fails since what is hidden is in its place, or names what it takes away."""
        codes = {error["extensions"]["code"] for error in found.get("errors", ())}
        if any(error["message"].endswith("something names it.") for error in found.get("errors", ())):
            return True
        changed = {key for key in less.keys() | written.keys() if less.get(key) != written.get(key)}
        hidden = {self._named(before[key]) for key in before.keys() - less.keys()}
        if not codes & {"FORBIDDEN", "CONFLICT"} or not changed:
            return False
        return any(key not in written or self._named(written[key]) in hidden for key in changed)

    def _named(self, item: Item) -> tuple[str, tuple[str, ...]]:
        """The record of an item, which may stand in any of several shards."""
        record = self.graph.recognise(item)
        return ("", ()) if record is None else (record.name, record.read_identity(item) or ())

    async def _asked(
        self, service: Service, items: Sequence[Item], operation: Operation
    ) -> tuple[dict[str, Any], dict[Key, Item]]:
        await self.store.send(DeleteTable())
        await self.store.send(CreateTable())
        await self.store.send(BatchWrite(puts=tuple(items)))
        with same_moment():
            found = await asyncio.wait_for(
                service.execute(
                    OperationRequest(
                        operation.document, operation.variables, viewer=self.rules.claims, with_cost=True
                    )
                ),
                60,
            )
        return _without_times(found), self._by_key((await self.store.send(Scan())).items)

    def _by_key(self, items: Sequence[Item]) -> dict[Key, Item]:
        return {self.graph.table.key_of(item): item for item in items if MARK not in item}

    def _is_seen(self, record: RecordType, item: Item) -> bool:
        return self.access.sees(record, record.read_identity(item) or (), item) is True

    def _without_hidden(self) -> list[Item]:
        """The items without those that the viewer does not see."""
        told = [(self.graph.recognise(item), item) for item in self.items]
        asked = self._asked_for()
        return [
            item
            for record, item in told
            if record is None or record.name in asked or self._is_half_seen(record, item)
        ]

    def _is_half_seen(self, record: RecordType, item: Item) -> bool:
        """Whether the viewer sees a record, or the other item of one that is mirrored: it is one edge."""
        if self._is_seen(record, item) or not record.is_mirrored:
            return self._is_seen(record, item)
        other = self.graph.counterpart(record, item)
        places = self.graph.table_keys(other.record, other.identity) if other else []
        there = self._by_key(self.items)
        return any(place in there and self._is_seen(record, there[place]) for place in places)

    def _asked_for(self) -> set[str]:
        """The types of the edges that rules ask for."""
        return {record.name for edges in self.rules.edges.values() for _, _, record, _ in edges}

    def _with_others(self) -> list[Item]:
        """The items with other values of fields that the viewer may not read and that decide nothing."""
        random, found = Random(self.name), list[Item]()
        by_record: dict[RecordType, list[Item]] = {}
        for item in self.items:
            record = self.graph.recognise(item)
            if record is not None:
                by_record.setdefault(record, []).append(item)
        keys = {key.name for key in self.graph.table.key_attributes()} | {self.graph.type_attribute}
        for item in self.items:
            record = self.graph.recognise(item)
            changed = json_copy(item)
            if record is not None:
                identity = record.read_identity(item) or ()
                for field in record.fields.values():
                    hidden = self.access.reads(record, field.name, identity, item) is False
                    free = field.attribute[0] not in keys and not self._is_told(record, field.name)
                    if hidden and free and not any(s.path[0] == field.name for s in record.slots.values()):
                        other = random.choice(by_record[record])
                        value: Any = other
                        for part in field.attribute:
                            value = value.get(part) if isinstance(value, dict) else None
                        if value is not None:
                            put_at_path(changed, field.attribute, value)
            found.append(changed)
        return found

    def _is_told(self, record: RecordType, name: str) -> bool:
        """Whether a field decides something, or is what a method needs that rules name, and so may tell."""
        named = {each for rule in self.rules.types.get(record.name, ()) for each in rule.fields or ()}
        named |= self.rules.own[record.name].keys()
        told = [record.methods[each].needs for each in named & record.methods.keys()]
        return self._decides(record, name) or any(needs is None or name in needs for needs in told)

    def _decides(self, record: RecordType, name: str) -> bool:
        access = self.guarded.schema.graph.types[record.name].access
        return access is not None and any(
            name in access.names(action, each)
            for action in ("read", "create", "update", "delete")
            for each in (None, *record.order)
        )


def _is_invalid(answer: Mapping[str, Any]) -> bool:
    return any(e["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED" for e in answer.get("errors", ()))


def _is_done(answer: Mapping[str, Any]) -> bool:
    return (answer.get("data") or {}).get("made") is not None


def _said(answer: Mapping[str, Any]) -> Any:
    """What an answer says, with its errors as far as the specification fixes them, and their words."""
    errors = errors_of(answer)
    words = [
        json.dumps({**error, "extensions": {**error["extensions"], "id": None}}, sort_keys=True)
        for error in answer.get("errors", ())
        if (tuple(error.get("path", ())), error["extensions"]["code"]) in errors
    ]
    extensions = json.dumps(answer.get("extensions"))
    return json.dumps(answer.get("data")), errors, sorted(words), extensions


def _without_times(answer: Any) -> Any:
    """An answer without how long anything took."""
    return _without(lambda name: name.endswith("Ms"), answer)


def _without(is_left_out: Callable[[str], bool], value: Any) -> Any:
    if isinstance(value, list):
        return [_without(is_left_out, each) for each in value]
    if isinstance(value, dict):
        return {name: _without(is_left_out, each) for name, each in value.items() if not is_left_out(name)}
    return "INTERNAL" if isinstance(value, str) and value.startswith("Something went wrong") else value


def json_copy(item: Any) -> Any:
    return {name: json_copy(value) for name, value in item.items()} if isinstance(item, dict) else item


def _changed(one: Table, other: Table) -> Any:
    return [
        (key, one.get(key), other.get(key))
        for key in one.keys() | other.keys()
        if one.get(key) != other.get(key)
    ]


@asynccontextmanager
async def served(name: str, seed: int, folder: Path) -> AsyncIterator[Laws]:
    """A random table of a model, with random rules and a viewer; the seed says which."""
    schema, sample = model(name)
    random = Random(f"laws {seed}")
    items = made_items(schema.graph, sample, random, awkward=seed % 3 == 0)
    made, rules = None, made_rules(schema.graph, items, random, writes=True)
    while made is None:
        made = guarded(schema.graph, rules)
        rules = rules if made is not None else made_rules(schema.graph, items, random, writes=True)
    async with open_store(f"sqlite:{folder / f'{name}-{seed}-laws.db'}", made.table) as store:
        await store.send(CreateTable())
        services = [
            Service(each, store, secret=SECRET, limits=NO_LIMITS) for each in (build_schema(made), schema)
        ]
        known: dict[str, list[Words]] = {}
        for item in items:
            record = schema.graph.recognise(item)
            if record is not None:
                known.setdefault(record.name, []).append(words_of(schema, [item]))
        words = words_of(schema, items)
        yield Laws(f"{name} {seed}", made, store, items, rules, *services, services[0].schema, words, known)


run = partial(run_served, served, of_each=25)  # type: ignore[arg-type]
"""Asks that many operations in all, and gives what was found."""

if __name__ == "__main__":
    main(__doc__, MODELS, run)
