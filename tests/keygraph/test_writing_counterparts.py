"""Counterparts with fields of their own, and with keys that stand on what changes: both items are written, or none."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph import ID, Graph, Table, edge, node, rule
from keygraph.dynamo.actions import DeleteItem
from keygraph.dynamo.store import Store, Transaction
from keygraph.errors import WriteRefused
from keygraph.writing.items import Refusals
from keygraph.writing.requests import Change, Create, Delete, Move, OnEdges, Put, WriteRequest
from keygraph.writing.sending.writer import Writer
from keygraph.writing.steps import StepMaker
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.histories.asking import beginning
from tests.keygraph.histories.declared import graph
from tests.keygraph.histories.plain import Name
from tests.keygraph.histories.table import contents, mistakes

pytestmark = pytest.mark.parametrize("engine", ENGINES)

stay, member, seat, seated = (graph.types[name] for name in ("Stay", "Member", "Seat", "Seated"))
ENDS: dict[str, Any] = {"person": ("Ann",), "club": ("c1",)}


async def edges_after(make_store: MakeStore, *requests: WriteRequest) -> dict[Name, dict[str, Any]]:
    """The edges that are left, without their ends, of one write after the other. Nothing may be wrong with them."""
    store = await make_store(graph.table)
    writer = Writer(graph, store)
    await writer.write(beginning())
    for request in requests:
        await writer.write([request])
    assert await mistakes(store) == []
    return {
        name: {field: value for field, value in values.items() if field not in ENDS}
        for name, values in (await contents(store)).items()
        if name[0] not in ("Person", "Club")
    }


SEAT: Name = ("Seat", ("Ann", "c1"))


async def test_a_counterpart_moves_with_what_its_key_stands_on(make_store: MakeStore) -> None:
    """The old counterpart would stay, and point to an edge that says something else."""
    put = Put(seat, {**ENDS, "row": 1, "color": "red"})
    expected = {SEAT: {"row": 2}, ("Seated", ("c1", "02", "Ann")): {"row": 2}}
    assert await edges_after(make_store, put, Put(seat, {**ENDS, "row": 2})) == expected
    soft = Change(seated, ("c1", "01", "Ann"), {"cushion": "soft"})
    assert await edges_after(make_store, put, soft, Change(seat, ("Ann", "c1"), {"row": 2})) == {
        SEAT: {"row": 2, "color": "red"},
        ("Seated", ("c1", "02", "Ann")): {"row": 2, "color": "red", "cushion": "soft"},
    }
    assert await edges_after(make_store, put, Delete(seated, ("c1", "01", "Ann"))) == {}


def test_a_counterpart_that_was_not_read_goes_all_the_same(engine: str) -> None:
    """The edge is read before its counterpart. Both may be gone then, and be back when the transaction is carried out."""
    steps, refusals = graph.made(StepMaker), Refusals()
    old, _ = steps.new(Put(seat, {**ENDS, "row": 1}))
    assert old is not None
    request = Put(seat, {**ENDS, "row": 2})
    stored = {graph.table.key_of(old): old}
    read = {**dict.fromkeys(steps.needed(request, stored)), **stored}
    made, _ = steps.steps([request], read, refusals)
    assert refusals.found == []
    assert DeleteItem(("CLUB#c1", "SEATED#01#Ann")) in [step.action for step in made]


def test_where_an_edge_has_changed_nothing_is_told_of_its_counterpart(engine: str) -> None:
    """Of two who give an edge the same new place, the slower one would be told that the place is taken: by the same edge."""
    steps = graph.made(StepMaker)
    old, _ = steps.new(Put(seat, {**ENDS, "row": 1}))
    assert old is not None
    request = Change(seat, ("Ann", "c1"), {"row": 2})
    read = {**dict.fromkeys(steps.needed(request)), graph.table.key_of(old): old}
    made, _ = steps.steps([request], read, Refusals())
    made = [step for step in made if not step.is_added_to]  # the sum of rows that a person keeps
    assert [step.is_partner for step in made] == [False, True, True]


async def test_an_edge_whose_counterpart_is_of_another_one_is_refused(make_store: MakeStore) -> None:
    """The other edge would be left without its counterpart."""
    with pytest.raises(WriteRefused) as refused:
        await edges_after(
            make_store, Put(seated, {**ENDS, "row": 1}), Put(seated, {**ENDS, "row": 2}, ("input",))
        )
    assert [(each.code, each.message, each.path) for each in refused.value.refusals] == [
        (
            "CONFLICT",
            "The Seat of this Seated is that of another one: change or delete that one first.",
            ("input",),
        )
    ]


async def test_a_counterpart_keeps_what_is_its_own(make_store: MakeStore) -> None:
    """Its index key would stand on an old value, or its own fields be lost."""
    assert await edges_after(
        make_store,
        Put(member, {**ENDS, "since": 1, "role": "guest", "badge": "b"}),
        Change(stay, ("Ann", "c1"), {"role": "host"}, {"log": ["x"]}),
    ) == {
        ("Member", ("c1", "Ann")): {"since": 1, "role": "host", "badge": "b"},
        ("Stay", ("Ann", "c1")): {"since": 1, "role": "host", "log": ["x"]},
    }


async def test_a_node_is_deleted_with_edges_and_their_counterparts(make_store: MakeStore) -> None:
    """A counterpart whose key says more than its edge would be left alone."""
    puts = [
        Put(seat, {**ENDS, "row": 1, "color": "red"}),
        Put(member, {**ENDS, "since": 1, "badge": "b"}),
    ]
    detached = Delete(graph.types["Club"], ("c1",), on_edges=OnEdges.DETACH)
    assert await edges_after(make_store, *puts, detached) == {}
    person = Delete(graph.types["Person"], ("Ann",), on_edges=OnEdges.DETACH)
    assert await edges_after(make_store, *puts, person) == {}


async def test_an_edge_is_moved_with_its_counterpart(make_store: MakeStore) -> None:
    """The counterpart would stay where it was, or lose what is its own."""
    put = Put(seat, {**ENDS, "row": 1, "color": "red"})
    soft = Change(seated, ("c1", "01", "Ann"), {"cushion": "soft"})
    moved = Move(seat, ("Ann", "c1"), {"person": ("Bob",)})
    assert await edges_after(make_store, put, soft, moved) == {
        ("Seat", ("Bob", "c1")): {"row": 1, "color": "red"},
        ("Seated", ("c1", "01", "Bob")): {"row": 1, "color": "red", "cushion": "soft"},
    }


async def test_what_is_its_own_moves_with_a_counterpart(make_store: MakeStore) -> None:
    """It would be lost where no key needs it."""
    put = Put(stay, {**ENDS, "since": 1, "log": ["x"]})
    assert await edges_after(make_store, put, Move(member, ("c1", "Ann"), {"person": ("Bob",)})) == {
        ("Stay", ("Bob", "c1")): {"since": 1, "log": ["x"]},
        ("Member", ("c1", "Bob")): {"since": 1},
    }


# --- Rules --------------------------------------------------------------------------------------------

FEW = "A guest brings no more than there are."


@node("SINGER#{name}")
class Singer:
    name: ID


@node("CHOIR#{choir_id}")
class Choir:
    choir_id: ID


@edge("{person}", "COMES#{club.choir_id}", counterpart="Guest")
class Coming:
    person: Singer
    club: Choir
    count: int


@edge(
    "{club}",
    "GUEST#{person.name}",
    check=[rule({"or": [{"count": {"lte": 3}}, {"is_known": {"eq": True}}]}, FEW)],
)
class Guest:
    club: Choir
    person: Singer
    count: int
    is_known: bool = False


ruled = Graph(Table("Ruled", partition_key="pk", sort_key="sk"), Singer, Choir, Coming, Guest).check()
coming, guest = ruled.types["Coming"], ruled.types["Guest"]


class Overtaken:
    """A store through which another process carries out a write before the first transaction."""

    def __init__(self, store: Store, request: WriteRequest) -> None:
        self._store = store
        self._request: WriteRequest | None = request
        self.table = store.table

    async def send(self, request: Any, /) -> Any:
        other, self._request = (
            (self._request, None) if isinstance(request, Transaction) else (None, self._request)
        )
        if other is not None:
            await Writer(graph, self._store).write([other])
        return await self._store.send(request)

    async def close(self) -> None:
        await self._store.close()


@pytest.mark.parametrize(
    ("request_", "person"),
    [
        (Move(stay, ("Ann", "c1"), {"person": ("Bob",)}), "Bob"),
        (Change(stay, ("Ann", "c1"), {"since": 2}), "Ann"),
        (Put(stay, {**ENDS, "since": 1, "role": "guest"}), "Ann"),
    ],
)
async def test_what_only_an_index_key_of_a_counterpart_holds_is_as_it_was_read(
    make_store: MakeStore, request_: WriteRequest, person: str
) -> None:
    """A change at the same time would be lost: no attribute of the counterpart says that there was one."""
    store = await make_store(graph.table)
    put = Put(member, {**ENDS, "since": 1, "role": "host", "badge": "old"})
    await Writer(graph, store).write([*beginning(), put])
    change = Change(member, ("c1", "Ann"), {"badge": "new"})
    await Writer(graph, Overtaken(store, change)).write([request_])
    left = (await contents(store))["Member", ("c1", person)]
    assert left.get("badge") == (None if isinstance(request_, Put) else "new")


async def test_a_counterpart_keeps_its_own_rules(make_store: MakeStore) -> None:
    """A put or a change of the other side would write what its own put refuses."""
    store = await make_store(ruled.table)
    writer = Writer(ruled, store)
    await writer.write([Create(ruled.types["Singer"], {"name": "Ann"})])
    await writer.write([Create(ruled.types["Choir"], {"choir_id": "c1"})])
    many = Change(coming, ("Ann", "c1"), {"count": 4})

    async def told(*requests: WriteRequest) -> list[str]:
        with pytest.raises(WriteRefused) as refused:
            await writer.write(requests)
        return [each.message for each in refused.value.refusals]

    assert await told(Put(coming, {**ENDS, "count": 4})) == [FEW]
    await writer.write([Put(coming, {**ENDS, "count": 3})])
    assert await told(many) == [FEW]
    await writer.write([Change(guest, ("c1", "Ann"), {"is_known": True})])
    await writer.write([many])
