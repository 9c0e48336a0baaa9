"""The two items of a mirrored edge that differ: each node loses what its own item contributed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Many, Table, average, counts, edge, latest, node, sums
from keygraph.dynamo.actions import DeleteItem, SetTo, UpdateItem
from keygraph.dynamo.store import Write
from keygraph.tables.repair import Repairs
from keygraph.writing.requests import Change, Create, Delete, Move, OnEdges, Put, Upsert
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.verified_net import told
from tests.keygraph.written import Written
from tests.verified import verified

pytestmark = pytest.mark.parametrize("engine", ENGINES)


@node("USER#{name}")
class User:
    name: ID
    friends: Many[Friend]
    close: int = counts("friends", where={"warmth": {"gte": 5}})
    total: int = sums("friends.warmth")
    mean: float | None = average("friends.warmth")
    last_warmth: int | None = latest("friends.warmth")


@edge("{one}", "FRIEND#{since}#{other.name}", mirror=True)
class Friend:
    one: User
    other: User
    since: int
    warmth: int = 1
    note: str | None = None


graph = Graph(Table("Net", partition_key="pk", sort_key="sk"), User, Friend).check()
user, friend = graph.types.values()
ANN, BOB, CY = ("Ann",), ("Bob",), ("Cy",)
EDGE = ("Ann", "2", "Bob")
NEW: dict[str, Any] = {"one": ANN, "other": BOB, "since": 2, "warmth": 3}


class Net(Written):
    async def verified(self, *repaired: str) -> list[str]:
        repairs = Repairs(graph, self.store, repaired, lambda kind, changes: None) if repaired else None
        return told(await verified(graph, self.store, repairs=repairs))

    async def kept(self, name: str) -> list[Any]:
        item = await self.item(f"USER#{name}", f"USER#{name}")
        assert item is not None
        return [user.reader(user.fields[each])(item) for each in ("close", "total", "mean", "last_warmth")]


@pytest.fixture
async def net(make_store: MakeStore) -> Net:
    """Ann's item of an edge says 3, and Bob's says 8."""
    net = Net(graph, await make_store(graph.table))
    await net.write(*(Create(user, {"name": name}) for name in ("Ann", "Bob", "Cy")))
    await net.write(Put(friend, {"one": CY, "other": BOB, "since": 1, "warmth": 6}), Put(friend, NEW))
    theirs = UpdateItem(("USER#Bob", "FRIEND#2#Ann"), (SetTo(("warmth",), Decimal(8)),))
    await net.store.send(Write(theirs))
    await net.verified("counts")
    assert [await net.kept(name) for name in ("Ann", "Bob")] == [[0, 3, 3.0, 3], [2, 14, 7.0, 8]]
    return net


NOTHING: list[Any] = [0, 0, None, None]


@pytest.mark.parametrize(
    ("request_", "ann", "bob"),
    [
        (Delete(friend, EDGE), NOTHING, [1, 6, 6.0, 6]),
        (Delete(friend, ("Bob", "2", "Ann")), NOTHING, [1, 6, 6.0, 6]),
        (Delete(user, ANN, on_edges=OnEdges.DETACH), None, [1, 6, 6.0, 6]),
        (Delete(user, BOB, on_edges=OnEdges.DETACH), NOTHING, None),
        (Change(friend, EDGE, {"warmth": 5}), [1, 5, 5.0, 5], [2, 11, 5.5, 5]),
        (Change(friend, EDGE, {}, added={"warmth": 1}), [0, 4, 4.0, 4], [1, 10, 5.0, 4]),
        (Put(friend, {**NEW, "warmth": 2}), [0, 2, 2.0, 2], [1, 8, 4.0, 2]),
        (Upsert(friend, {**NEW, "warmth": 2}), [0, 2, 2.0, 2], [1, 8, 4.0, 2]),
        (Move(friend, EDGE, {"since": 0}), [0, 3, 3.0, 3], [1, 9, 4.5, 6]),
        (Move(friend, ("Bob", "2", "Ann"), {"since": 3}), [1, 8, 8.0, 8], [2, 14, 7.0, 8]),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_each_node_loses_what_its_own_item_contributed(
    net: Net, request_: Any, ann: list[Any] | None, bob: list[Any] | None
) -> None:
    await net.write(request_)
    for name, expected in (("Ann", ann), ("Bob", bob)):
        assert expected is None or await net.kept(name) == expected
    assert await net.verified() == []


async def test_a_change_of_another_field_leaves_the_difference(net: Net) -> None:
    await net.write(Change(friend, EDGE, {"note": "x"}))
    assert [await net.kept(name) for name in ("Ann", "Bob")] == [[0, 3, 3.0, 3], [2, 14, 7.0, 8]]
    [wrong] = await net.verified()
    assert wrong.startswith("differing Friend: warmth differs in its mirror")


@pytest.mark.parametrize("new", [Create(friend, NEW), Put(friend, NEW), Upsert(friend, NEW)])
async def test_a_new_edge_replaces_the_one_item_that_is_left(net: Net, new: Any) -> None:
    await net.store.send(Write(DeleteItem(("USER#Ann", "FRIEND#2#Bob"))))
    await net.verified("counts")
    assert [await net.kept(name) for name in ("Ann", "Bob")] == [NOTHING, [2, 14, 7.0, 8]]
    await net.write(new)
    assert [await net.kept(name) for name in ("Ann", "Bob")] == [[0, 3, 3.0, 3], [1, 9, 4.5, 3]]
    assert await net.verified() == []
