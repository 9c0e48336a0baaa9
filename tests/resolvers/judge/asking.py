"""Asks the product what the judge has ruled on, and tells in what they differ."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from graphql import GraphQLInputObjectType, get_named_type

from keygraph.dynamo.store import BatchWrite, CreateTable, DeleteTable, Scan, Store, pages
from keygraph.engines.open import open_store
from keygraph_resolvers import NO_LIMITS, Service, build_schema
from tests.resolvers.judge.asked import ByKey, EndAt, Leaf, ListAt, Said, Selected, Writer
from tests.resolvers.judge.items import GONE, Identity, Row, made_rows
from tests.resolvers.judge.making import made_model
from tests.resolvers.judge.operations import Maker
from tests.resolvers.judge.plain import Listing, Slot, Type, camel
from tests.resolvers.judge.plain import Path as Named
from tests.resolvers.judge.ruling import BROKEN, CursorOf, Either, IdOf, Judge, OneOf, Unknown
from tests.resolvers.judge.source import source
from tests.resolvers.judge.writing import Clerk
from tests.resolvers.worlds import SECRET

_OF_WHOLE_KEYS = ("eq", "ne", "in", "exists")
_ANYWHERE = ("first", "after", "last", "before", "direction", "where", "to")


class Wrong(AssertionError):
    """The product's answer is not the judge's."""


class Court:
    """A judge and the product, before the same table."""

    def __init__(self, judge: Judge, schema: Any, service: Service, store: Store, random: Random) -> None:
        self.judge = judge
        self.store = store
        self.model = judge.model
        self.schema = schema
        self.service = service
        self.random = random
        self.names: dict[tuple[Listing, Slot], str] = {}
        self.known_cursors: dict[tuple[Listing, Row], str] = {}
        self.known_ids: dict[tuple[Type, tuple[Any, ...]], str] = {}
        self.compared_names: dict[tuple[Type, Named], str] = {}
        self.asked = 0
        for listing in [*self.model.roots, *(each for type_ in self.model.types for each in type_.lists)]:
            for slot in (*listing.required, *listing.ranged):
                name = self._argument_name(listing, slot)
                if name is not None:
                    self.names[listing, slot] = name

    # --- What the schema offers -----------------------------------------------------------------------

    def _arguments(self, listing: Listing) -> dict[str, Any]:
        owner = self.schema.get_type(listing.owner.name) if listing.owner else self.schema.query_type
        arguments: dict[str, Any] = owner.fields[camel(listing.name)].args
        return arguments

    def _argument_name(self, listing: Listing, slot: Slot) -> str | None:
        names = [name for name in self._arguments(listing) if name not in _ANYWHERE]
        return _name_among(names, listing.type, slot.path)

    def operators(self, listing: Listing, slot: Slot) -> Sequence[str]:
        name = self.names.get((listing, slot))
        if name is None:
            return ()
        type_ = get_named_type(self._arguments(listing)[name].type)
        return [*type_.fields] if isinstance(type_, GraphQLInputObjectType) else ["eq"]

    def compared(self, listing: Listing) -> dict[Named, Sequence[str]]:
        where = get_named_type(self._arguments(listing)["where"].type)
        type_ = listing.type
        paths: list[Named] = [(name,) for name in type_.fields]
        paths += [
            (end.name, key)
            for end in type_.ends.values()
            for key in end.attributes
            if key in end.node.certain
        ]
        found = {}
        for path in paths:
            name = _name_among(where.fields, type_, path)
            if name is not None:
                self.compared_names[type_, path] = name
                offered = [*get_named_type(where.fields[name].type).fields]
                is_whole = len(path) == 2 and type_.ends[path[0]].is_whole
                # Whole keys have no order of their own, and a text may be in what is around the field.
                found[path] = [each for each in offered if not is_whole or each in _OF_WHOLE_KEYS]
        return found

    def takes(self, listing: Listing, argument: str) -> bool:
        return argument in self._arguments(listing)

    def cursors(self, listing: Listing, owner: Identity | None, said: Said) -> Sequence[Row]:
        rows = self.judge.orders.get(self.judge.instance(listing, owner, said), ())
        return [row for row in rows if (listing, row) in self.known_cursors]

    def ids(self, type_: Type) -> Sequence[Identity]:
        rows = self.judge.rows
        identities = [row.identity for row in rows if row.type is type_ and type_.kind == "node"]
        for row in rows:
            for end in row.type.ends.values() if row.type else ():
                if row.values[end.name] is not None and end.of(row.values[end.name]) is type_:
                    identities.append(row.values[end.name])
        return [
            each for each in dict.fromkeys(identities) if (type_, type_.canonical(each)) in self.known_ids
        ]

    # --- Writing --------------------------------------------------------------------------------------

    def clerk(self) -> Clerk:
        fields = self.schema.mutation_type.fields
        inputs = {
            name: get_named_type(each.args["input"].type)
            for name, each in fields.items()
            if "input" in each.args
        }
        return Clerk(self.model, self.judge.rows, inputs, _name_among, self.random)

    async def write(self, clerk: Clerk) -> None:
        """Sends one random mutation, and compares the whole table with what it must be. Raises Wrong."""
        if (mutation := clerk.mutation({row.key: row for row in self.judge.rows})) is None:
            return
        self.asked += 1
        errors = (await self.service.execute(mutation.text)).get("errors", ())
        codes = {error["extensions"]["code"] for error in errors}
        if (mutation.must_fail and not errors) or codes - mutation.codes:
            raise Wrong(f"{mutation.text}\n{errors}, expected {[*mutation.codes]}")
        rows = {row.key: row for row in self.judge.rows} if errors else mutation.rows
        items: dict[tuple[str, ...], Any] = {}
        async for page in pages(self.store, Scan(consistent=True)):
            items |= {tuple(item[name] for name in ("PK", "SK") if name in item): item for item in page.items}
        found = [
            f"{key}: {name} is {items.get(key, {}).get(name)!r}, expected {rows[key].item.get(name) if key in rows else None!r}"
            for key in items.keys() | rows.keys()
            for name in clerk.differences(rows.get(key), items.get(key, {}))
        ]
        if found:
            raise Wrong("\n".join([mutation.text, *found[:6]]))
        self.judge = Judge(self.model, [clerk.settled(row, items[key]) for key, row in rows.items()])
        self.known_cursors.clear()

    # --- Asking ---------------------------------------------------------------------------------------

    async def check(self) -> None:
        """Asks one random operation. Raises Wrong."""
        await self.ask(await self.operation())

    async def operation(self) -> dict[str, Selected]:
        """A random operation of which the judge knows the answer: the orders of its lists are learned."""
        operation = Maker(self.model, self.judge.rows, self, self.random).operation()
        while True:
            try:
                self.judge.answer(operation)
            except Unknown as unknown:
                await self.learn(unknown.listing, unknown.owner, unknown.said)
            else:
                return operation

    async def ask(self, operation: dict[str, Selected]) -> None:
        """Compares the product's answer with the judge's. Raises Wrong."""
        text, answer = await self.execute(operation)
        comparison = Comparison(dict(self.known_cursors), dict(self.known_ids))
        found = comparison.differences(self.judge.answer(operation), answer.get("data"), ())
        found += comparison.errors(answer.get("errors", ()))
        if found:
            raise Wrong("\n".join([text, *found[:6]]))
        self.known_cursors, self.known_ids = comparison.cursors, comparison.given_ids

    async def execute(self, operation: dict[str, Selected]) -> tuple[str, dict[str, Any]]:
        text = Writer(self.names, self.known_cursors, self.known_ids, self.compared_names).selection(
            operation
        )
        self.asked += 1
        return text, await self.service.execute(text)

    async def learn(self, listing: Listing, owner: Identity | None, said: Said) -> None:
        """Pages through a whole list, and keeps the order in which it is shown."""
        judge, instance = self.judge, self.judge.instance(listing, owner, said)
        members = judge.members(listing, owner, said)
        hidden = [row for row in members if row.type is None]
        # The engine's order of equal keys says which of two rows it is that look alike.
        members.sort(key=lambda row: judge.place(listing, row))
        is_there = (
            listing.owner is None
            or listing.owner.is_virtual
            or (listing.owner, listing.owner.canonical(owner or ())) in judge.nodes
        )
        if not is_there or listing.is_one:
            # Nobody can page through it.
            judge.orders[instance] = members
            return
        shown: list[Row] = []
        # A page of rows that say another type would show nothing.
        size, after = 50 if hidden else self.random.choice([1, 2, 3, 7, 50]), None
        while True:
            rows, is_more, text = await self.page(listing, owner, said, members, size, after)
            shown += rows
            if not is_more:
                break
            if not rows:
                raise Wrong(f"{text}\nan empty page that is not the last")
            after = rows[-1]
        if len(set(shown)) < len(shown):
            raise Wrong(f"{text}\nan item is shown on two pages")
        missing = [
            row
            for row in members
            if row not in shown and row not in hidden and not judge.is_doubtful(listing, row)
        ]
        if missing:
            raise Wrong(
                f"{text}\npaging by {size}, these are never shown: {[row.item for row in missing[:3]]}"
            )
        keys = [judge.sort_key(listing, row) for row in shown]
        if keys != sorted(keys):
            raise Wrong(f"{text}\npaging by {size}, the order is not that of the sort key: {keys}")
        if hidden:
            shown = sorted({*shown, *hidden}, key=lambda row: judge.place(listing, row))
        judge.orders[instance] = shown

    async def page(
        self,
        listing: Listing,
        owner: Identity | None,
        said: Said,
        members: list[Row],
        size: int,
        after: Row | None,
    ) -> tuple[list[Row], bool, str]:
        """One page of a whole list: the rows that it shows, and whether there are more."""
        judge, type_ = self.judge, listing.type
        leaves: dict[str, Any] = {
            name: Leaf(name) for name in type_.fields if all(row.values[name] is not GONE for row in members)
        }
        ends = {
            name: EndAt(end, {node: _named(node) for node in end.nodes})
            for name, end in type_.ends.items()
            if listing.far_end is None
        }
        asked = replace(Said(required=said.required), first=size, after=after)
        if listing.far_end:
            selected = ListAt(listing, asked, leaves, _named(listing.far_end.node), None, looks=True)
        else:
            selected = ListAt(
                listing, asked, {}, {**leaves, **ends, "kind": Leaf("__typename")}, None, looks=True
            )
        operation: dict[str, Selected] = {"list": selected}
        if listing.owner is not None:
            assert owner is not None
            operation = {"owner": ByKey(listing.owner, owner, operation)}
        text, answer = await self.execute(operation)
        data = answer["data"]
        if listing.owner is not None and data:
            data = data["owner"]
        # What no key can hold is an error, which is compared with the edges.
        if ("errors" in answer and not judge.model.awkward) or not data or not data["list"]:
            if any(
                judge._may_be_refused(iter([value for _, value in identity])) for identity in [owner or ()]
            ):
                return [], False, text
            raise Wrong(f"{text}\nno page: {answer}")
        rows: list[Row] = []
        left = list(members)
        for edge in data["list"]["edges"]:
            for row in [row for row in left if not judge.is_seen_through(selected, row)]:
                expected = judge._edge(selected, row)
                trial = Comparison(dict(self.known_cursors), dict(self.known_ids))
                if not trial.differences(expected, edge, ()):
                    left.remove(row)
                    rows.append(row)
                    self.known_cursors, self.known_ids = trial.cursors, trial.given_ids
                    break
            else:
                raise Wrong(
                    f"{text}\n{edge} is no item of the list, or shown twice\n{self._nearest(selected, left, edge)}"
                )
        return rows, data["list"]["pageInfo"]["hasNextPage"], text

    def _nearest(self, selected: ListAt, rows: Sequence[Row], edge: Any) -> str:
        """What would have to be otherwise for the edge to be one of the rows."""
        told = []
        for row in rows:
            trial = Comparison(dict(self.known_cursors), dict(self.known_ids))
            told.append(trial.differences(self.judge._edge(selected, row), edge, ()))
        return f"nearest: {min(told, key=len)}" if told else "no rows are left"


class Comparison:
    """Compares one answer with what is expected."""

    def __init__(
        self, cursors: dict[tuple[Listing, Row], str], ids: dict[tuple[Type, tuple[Any, ...]], str]
    ) -> None:
        self.cursors = cursors
        self.given_ids = ids
        self.broken: list[tuple[Any, ...]] = []
        self.refused: list[tuple[Any, ...]] = []

    def differences(self, expected: Any, actual: Any, path: tuple[Any, ...]) -> list[str]:
        match expected:
            case Either(inner):
                if actual is None:
                    self.refused.append(path)
                    return []
                return self.differences(inner, actual, path)
            case CursorOf(listing, row):
                return self._same(self.cursors, (listing, row), actual, path)
            case IdOf(type_, canonical):
                return self._same(self.given_ids, (type_, canonical), actual, path)
            case OneOf(values):
                return [] if actual in values else [_told(path, values, actual)]
            case dict() if isinstance(actual, dict) and expected.keys() == actual.keys():
                return [
                    each
                    for key, inner in expected.items()
                    for each in self.differences(inner, actual[key], (*path, key))
                ]
            case list() if isinstance(actual, list) and len(actual) == len(expected):
                return [
                    each
                    for number, inner in enumerate(expected)
                    for each in self.differences(inner, actual[number], (*path, number))
                ]
        if expected is BROKEN:
            self.broken.append(path)
            return [] if actual is None else [_told(path, "null, with an error", actual)]
        same = type(expected) is type(actual) and expected == actual
        return [] if same else [_told(path, expected, actual)]

    def _same(self, known: dict[Any, str], key: Any, actual: Any, path: tuple[Any, ...]) -> list[str]:
        if not isinstance(actual, str) or not actual:
            return [_told(path, "a text", actual)]
        others = [
            other for other, text in known.items() if text == actual and other[0] == key[0] and other != key
        ]
        if others:
            return [f"{'.'.join(map(str, path))}: {actual} is that of {others[0]}, not only of {key}"]
        return [] if known.setdefault(key, actual) == actual else [_told(path, known[key], actual)]

    def errors(self, errors: Sequence[dict[str, Any]]) -> list[str]:
        """An error stands below each null that should not be one, and nowhere else."""
        paths = [tuple(error.get("path", ())) for error in errors]
        found = [
            f"{path}: null without an error"
            for path in self.broken
            if not any(_is_below(each, path) for each in paths)
        ]
        may = [*self.broken, *self.refused]
        return found + [
            f"an error that is none: {error}"
            for error, path in zip(errors, paths, strict=True)
            if not any(_is_below(path, each) for each in may)
        ]


def _named(node: Type) -> dict[str, Selected]:
    return {name: Leaf(name) for name in (*node.identity, "id")}


def _name_among(names: Iterable[str], type_: Type, path: Named) -> str | None:
    """What a field is called, or a key field of the node at an end: after both, or as its attribute."""
    *ends, field = path
    wanted = {field}
    for end_name in ends:
        end = type_.ends[end_name]
        wanted = {f"{end_name}_{field}", f"{end_name}_{field.removeprefix(end.node.query + '_')}"}
        wanted.add(end.attributes[field])
    plain = {each.replace("_", "").lower() for each in wanted}
    found = [name for name in names if name.lower() in plain]
    return found[0] if len(found) == 1 else None


def _is_below(path: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return path[: len(other)] == other


def _told(path: tuple[Any, ...], expected: Any, actual: Any) -> str:
    return f"{'.'.join(map(str, path))}: {actual!r}, expected {expected!r}"


# --- Tables -------------------------------------------------------------------------------------------


@asynccontextmanager
async def court(seed: int, folder: Path) -> AsyncIterator[Court]:
    model = made_model(Random(seed), f"judged_{seed}")
    module = ModuleType(model.name)
    sys.modules[module.__name__] = module
    exec(compile(source(model), module.__name__, "exec"), module.__dict__)
    graph = module.graph
    rows = made_rows(model, Random(f"{seed} items"))
    schema = build_schema(graph)
    async with open_store(f"sqlite:{folder / f'{model.name}.db'}", graph.table) as store:
        await store.send(DeleteTable())
        await store.send(CreateTable())
        await store.send(BatchWrite(puts=tuple(row.item for row in rows)))
        service = Service(schema, store, secret=SECRET, limits=NO_LIMITS)
        yield Court(Judge(model, rows), schema._schema, service, store, Random(f"{seed} operations"))
    del sys.modules[module.__name__]


async def run(wanted: int, seed: int, tell: Callable[[str], None]) -> list[str]:
    """Asks that many operations in all, and gives what was found: of each table the first."""
    found: list[str] = []
    asked, turn, began = 0, seed, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        while asked < wanted:
            async with court(turn, Path(folder)) as before:
                clerk = before.clerk()
                try:
                    for number in range(60):
                        await before.check()
                        if number >= 30:  # the second half among writes
                            await before.write(clerk)
                except Wrong as wrong:
                    found.append(f"[{turn}] {wrong}")
                    tell(found[-1])
                asked += before.asked
            turn += 1
            if turn % 25 == 0:
                tell(f"{asked} operations, {time.monotonic() - began:.0f} s, {len(found)} found")
    tell(f"{asked} operations over {turn - seed} tables, {len(found)} found")
    return found
