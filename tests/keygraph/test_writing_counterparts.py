"""Counterparts with fields of their own, and with keys that stand on what changes: both items are written, or none."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from keygraph import ID, Graph, Table, edge, node, rule
from keygraph.dynamo.actions import DeleteItem
from keygraph.dynamo.store import Transaction
from keygraph.errors import WriteRefused
from keygraph.writing.context import WriteContext
from keygraph.writing.reads import needed
from keygraph.writing.records import new_item
from keygraph.writing.requests import Change, Create, Delete, Move, Put, WriteRequest
from keygraph.writing.sending.writer import write
from keygraph.writing.steps import transaction_steps
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.histories.asking import beginning
from tests.keygraph.histories.declared import graph
from tests.keygraph.histories.plain import Name
from tests.keygraph.histories.table import contents, mistakes
from tests.tracing import HeldStore

pytestmark = pytest.mark.parametrize("engine", ENGINES)

stay, member, seat, seated = (graph.types[name] for name in ("Stay", "Member", "Seat", "Seated"))
ENDS: dict[str, Any] = {"person": ("Ann",), "club": ("c1",)}


async def edges_after(make_store: MakeStore, *requests: WriteRequest) -> dict[Name, dict[str, Any]]:
    """The edges that are left, without their ends, of one write after the other. Nothing may be wrong with them."""
    store = await make_store(graph.table)
    writer = partial(write, graph, store)
    await writer(beginning())
    for request in requests:
        await writer([request])
    assert await mistakes(store) == []
    return {
        name: {field: value for field, value in values.items() if field not in ENDS}
        for name, values in (await contents(store)).items()
        if name[0] not in ("Person", "Club")
    }


SEAT: Name = ("Seat", ("Ann", "c1"))


async def test_a_counterpart_moves_with_what_its_key_stands_on(make_store: MakeStore) -> None:
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
    context = graph.made(WriteContext)
    old, _ = new_item(context, Put(seat, {**ENDS, "row": 1}))
    assert old is not None
    request = Put(seat, {**ENDS, "row": 2})
    stored = {graph.table.key_of(old): old}
    context = context.knowing({**dict.fromkeys(needed(context.knowing(stored), request)), **stored})
    made, _ = transaction_steps(context, [request])
    assert context.refusals.found == []
    assert DeleteItem(("CLUB#c1", "SEATED#01#Ann")) in [step.action for step in made]


def test_where_an_edge_has_changed_nothing_is_told_of_its_counterpart(engine: str) -> None:
    context = graph.made(WriteContext)
    old, _ = new_item(context, Put(seat, {**ENDS, "row": 1}))
    assert old is not None
    request = Change(seat, ("Ann", "c1"), {"row": 2})
    read = {**dict.fromkeys(needed(context, request)), graph.table.key_of(old): old}
    made, _ = transaction_steps(context.knowing(read), [request])
    made = [step for step in made if not step.is_added_to]  # the sum of rows that a person keeps
    assert [step.is_partner for step in made] == [False, True, True]


async def test_an_edge_whose_counterpart_is_of_another_one_is_refused(make_store: MakeStore) -> None:
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
    assert await edges_after(
        make_store,
        Put(member, {**ENDS, "since": 1, "role": "guest", "badge": "b"}),
        Change(stay, ("Ann", "c1"), {"role": "host"}, {"log": ["x"]}),
    ) == {
        ("Member", ("c1", "Ann")): {"since": 1, "role": "host", "badge": "b"},
        ("Stay", ("Ann", "c1")): {"since": 1, "role": "host", "log": ["x"]},
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
    store = await make_store(graph.table)
    put = Put(member, {**ENDS, "since": 1, "role": "host", "badge": "old"})
    await write(graph, store, [*beginning(), put])
    changes = [Change(member, ("c1", "Ann"), {"badge": "new"})]

    async def before(request: object) -> None:
        if isinstance(request, Transaction) and changes:
            await write(graph, store, [changes.pop()])

    await write(graph, HeldStore(store, before), [request_])
    left = (await contents(store))["Member", ("c1", person)]
    assert left.get("badge") == (None if isinstance(request_, Put) else "new")


async def test_a_counterpart_keeps_its_own_rules(make_store: MakeStore) -> None:
    store = await make_store(ruled.table)
    writer = partial(write, ruled, store)
    await writer([Create(ruled.types["Singer"], {"name": "Ann"})])
    await writer([Create(ruled.types["Choir"], {"choir_id": "c1"})])
    many = Change(coming, ("Ann", "c1"), {"count": 4})

    async def told(*requests: WriteRequest) -> list[str]:
        with pytest.raises(WriteRefused) as refused:
            await writer(requests)
        return [each.message for each in refused.value.refusals]

    assert await told(Put(coming, {**ENDS, "count": 4})) == [FEW]
    await writer([Put(coming, {**ENDS, "count": 3})])
    assert await told(many) == [FEW]
    await writer([Change(guest, ("c1", "Ann"), {"is_known": True})])
    await writer([many])
