"""Idempotency keys: a write is carried out once, and answered alike each time; its note is nobody's item."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from keygraph import ID, Graph, Many, Table, edge, node, ttl
from keygraph.draft.draft import draft
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, PassingStore, Scan, Store, Transaction
from keygraph.dynamo.table import KeyType
from keygraph.errors import BadUserInput, Reason, TransactionCanceled, Unavailable, WriteRefused
from keygraph.names import NOTE
from keygraph.tables.bulk import whole_table
from keygraph.tables.sample import sample
from keygraph.writing.requests import Change, Create, Delete, Done, Move, OnEdges, Put, Upsert, WriteRequest
from keygraph.writing.sending.idempotency import IdempotencyKey, is_note, note_key
from keygraph.writing.sending.writer import write
from tests.conftest import ENGINES, MakeStore
from tests.verified import verified

pytestmark = pytest.mark.parametrize("engine", ENGINES)


@node("{name}", "PROFILE")
class Person:
    name: ID
    points: int = 0

    friends: Many[Friend]


@edge("{one}", "FRIEND#{other}", mirror=True)
class Friend:
    one: Person
    other: Person


graph = Graph(Table("Club", partition_key="pk", sort_key="sk"), Person, Friend, ttl_attribute="until").check()
person, friend = graph.types.values()


def key(name: str = "k", asked: bytes = b"this") -> IdempotencyKey:
    return IdempotencyKey((name,), asked, ("input", "idempotencyKey"))


async def items(store: Store) -> list[Item]:
    return (await store.send(Scan(consistent=True))).items


async def write_as(store: Store, request: WriteRequest, named: IdempotencyKey) -> Done:
    return (await write(graph, store, [request], named))[0]


@pytest.fixture
async def club(make_store: MakeStore) -> Store:
    store = await make_store(graph.table)
    people = [Create(person, {"name": name}) for name in ("Ann", "Bob")]
    await write(graph, store, [*people, Put(friend, {"one": ("Ann",), "other": ("Bob",)})])
    return store


@pytest.mark.parametrize(
    "request_",
    [
        Create(person, {"name": "Cy"}),
        Change(person, ("Ann",), {}, {"points": 1}),
        Delete(friend, ("Ann", "Bob")),
        Put(friend, {"one": ("Bob",), "other": ("Ann",)}),
    ],
)
async def test_the_second_time_is_answered_as_the_first_and_writes_nothing(
    club: Store, request_: WriteRequest
) -> None:
    first = await write_as(club, request_, key())
    after = sorted(map(str, await items(club)))
    second = await write_as(club, request_, key())
    assert (second.record, second.identity) == (first.record, first.identity)
    assert sorted(map(str, await items(club))) == after


@dataclass(eq=False)
class Overtaken(PassingStore):
    """A store through which another process sends the same write, once so many requests were sent."""

    request: WriteRequest
    after: int
    sent: int = 0
    other: Done | None = None

    async def send(self, request: Any, /) -> Any:
        self.sent += 1
        try:
            return await self.store.send(request)
        finally:
            if self.sent == self.after:
                self.other = await write_as(self.store, self.request, key())


@pytest.mark.parametrize(
    "request_",
    [
        Create(person, {"name": "Cy"}),
        Upsert(person, {"name": "Cy", "points": 1}),
        Change(person, ("Ann",), {}, {"points": 1}),
        Delete(person, ("Eve",)),
        Delete(person, ("Ann",), on_edges=OnEdges.DETACH),
        Delete(friend, ("Ann", "Bob")),
        Put(friend, {"one": ("Bob",), "other": ("Eve",)}),
        Move(person, ("Eve",), {"name": "Flo"}),
        Move(friend, ("Ann", "Bob"), {"other": ("Eve",)}),
    ],
)
async def test_the_slower_of_two_at_once_is_answered_as_the_faster_one(
    make_store: MakeStore, request_: WriteRequest
) -> None:
    people = [Create(person, {"name": name}) for name in ("Ann", "Bob", "Eve")]
    beginning = [*people, Put(friend, {"one": ("Ann",), "other": ("Bob",)})]
    alone: list[Item] = []
    for after in count():
        store = await make_store(graph.table)
        await write(graph, store, beginning)
        overtaken = Overtaken(store, request_, after)
        done = await write_as(overtaken, request_, key())
        left = sorted((item for item in await items(store) if not is_note(item)), key=str)
        if after == 0:
            alone = left
        elif overtaken.other is None:
            break
        else:
            other = overtaken.other
            assert (done.identity, done.detached) == (other.identity, other.detached), after
        assert left == alone, after


class HalfDone(Overtaken):
    """A store that refuses a transaction while the other write has changed all but the note."""

    async def send(self, request: Any, /) -> Any:
        if self.other is None and isinstance(request, Transaction):
            self.other = await write_as(self.store, self.request, key())
            failed = [Reason("ConditionalCheckFailed")] * (len(request.actions) - 1)
            raise TransactionCanceled([*failed, Reason("TransactionConflict")])
        return await self.store.send(request)


READABLE = {"asked": b"this", "done": [["Person", "Cy"]], "detached": [Decimal(0)], "new": [True]}


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"asked": b"this"},
        READABLE | {"done": [["Gone", "x"]]},
        READABLE | {"done": [["Person", Decimal(1)]]},
        READABLE | {"done": [["Person"]]},
        READABLE | {"new": ["yes"]},
        READABLE | {"detached": [Decimal("1e100")]},
    ],
)
async def test_a_note_that_cannot_be_read_is_a_conflict(club: Store, content: Any) -> None:
    """Another program has stored it, or the model had other types or another attribute for times."""
    names = dict(zip(("pk", "sk"), note_key(graph, ("k",)), strict=True))
    await club.send(BatchWrite(({**names, NOTE: content},)))
    with pytest.raises(WriteRefused) as refused:
        await write_as(club, Create(person, {"name": "Cy"}), key())
    assert [each.code for each in refused.value.refusals] == ["CONFLICT"]


async def test_a_write_waits_for_another_one_that_holds_the_note(club: Store) -> None:
    delete = Delete(person, ("Ann",), on_edges=OnEdges.DETACH)
    store = HalfDone(club, delete, 0)
    done = await write_as(store, delete, key())
    assert store.other is not None
    assert (done.identity, done.detached) == (("Ann",), store.other.detached)


async def test_another_write_under_the_same_key_is_a_conflict(club: Store) -> None:
    await write_as(club, Create(person, {"name": "Cy"}), key())
    for other in (Create(person, {"name": "Di"}), Delete(friend, ("Ann", "Bob"))):
        with pytest.raises(WriteRefused) as refused:
            await write_as(club, other, key(asked=b"that"))
        [refusal] = refused.value.refusals
        assert (refusal.code, refusal.path) == ("CONFLICT", ("input", "idempotencyKey"))
        assert refusal.message == (
            "This idempotency key was used for another write in the last 24 hours. Use a new one."
        )
    assert await write_as(club, Create(person, {"name": "Di"}), key("other", b"that"))


async def test_a_write_that_fails_may_use_its_key_again(club: Store) -> None:
    joined = Put(friend, {"one": ("Ann",), "other": ("Cy",)})
    with pytest.raises(WriteRefused):
        await write_as(club, joined, key())
    await write_as(club, Create(person, {"name": "Cy"}), key("other"))
    assert (await write_as(club, joined, key())).identity == ("Ann", "Cy")


class LosesAnswers(PassingStore):
    """A store that writes, and then is not there to say so."""

    async def send(self, request: Any, /) -> Any:
        answer = await self.store.send(request)
        if isinstance(request, Transaction):
            raise Unavailable("the connection was cut")
        return answer


async def test_a_write_whose_answer_was_lost(club: Store) -> None:
    added = Change(person, ("Ann",), {}, {"points": 5})
    with pytest.raises(Unavailable):
        await write_as(LosesAnswers(club), added, key())
    await write_as(club, added, key())
    assert [
        item["points"] for item in await items(club) if (item["pk"], item["sk"]) == ("Ann", "PROFILE")
    ] == [Decimal(5)]


async def test_notes_expire(club: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    added = Change(person, ("Ann",), {}, {"points": 1})
    await write_as(club, added, key())
    [note] = filter(is_note, await items(club))
    now = time.time()
    until = note["until"]
    assert isinstance(until, Decimal)
    assert 24 * 3600 - 60 <= int(until) - now <= 24 * 3600
    monkeypatch.setattr(time, "time", lambda: now + 25 * 3600)
    await write_as(club, added, key(asked=b"that"))
    assert [
        item["points"] for item in await items(club) if (item["pk"], item["sk"]) == ("Ann", "PROFILE")
    ] == [Decimal(2)]


async def test_notes_are_nobodys_items(club: Store) -> None:
    await write_as(club, Create(person, {"name": "Cy"}), key())
    assert len(await items(club)) == 6
    report = await verified(graph, club)
    assert (report.total, report.found) == (5, {})
    assert [item async for item in whole_table(club) if is_note(item)] == []
    found = await sample(club, 100)
    assert len(found) == 5
    assert "keygraph#" not in draft(graph.table, found)


@node("{number}")
class Count:
    number: int


@node("{mark}")
class Mark:
    mark: bytes


@pytest.mark.parametrize(
    ("cls", "type_", "values"), [(Count, "N", {"number": 7}), (Mark, "B", {"mark": b"7"})]
)
async def test_notes_in_tables_with_other_keys(
    make_store: MakeStore, cls: type, type_: KeyType, values: dict[str, Any]
) -> None:
    things = Graph(Table("Things", partition_key=("n", type_), sort_key=("m", type_)), cls)
    [thing] = things.check().types.values()
    store = await make_store(things.table)
    for _ in range(2):
        await write(things, store, [Create(thing, values)], key())
    assert len(await items(store)) == 2


@node("{name}")
class Guest:
    name: ID
    leaves: datetime | None = ttl("gone")


async def test_notes_expire_by_the_attribute_of_the_models_expiries(make_store: MakeStore) -> None:
    guests = Graph(Table("Guests", partition_key="pk"), Guest).check()
    store = await make_store(guests.table)
    await write(guests, store, [Create(guests.types["Guest"], {"name": "a"})], key())
    assert [item.keys() - {"pk"} for item in await items(store) if is_note(item)] == [{"_keygraph", "gone"}]


async def test_no_record_has_the_key_of_a_note(make_store: MakeStore) -> None:
    """Where a key may begin with any text, somebody could read, delete or write notes as records."""
    guests = Graph(Table("Guests", partition_key="pk"), Guest).check()
    store, guest = await make_store(guests.table), guests.types["Guest"]
    await write(guests, store, [Create(guest, {"name": "_keygraph"})], key())
    [note] = [item["pk"] for item in await items(store) if is_note(item)]
    problem = r'would make a key of another shape, "_keygraph#\{note\}"'
    with pytest.raises(BadUserInput, match=problem):
        guests.identity(guest, {"name": note})
    with pytest.raises(WriteRefused, match=problem):
        await write(guests, store, [Put(guest, {"name": note})])
