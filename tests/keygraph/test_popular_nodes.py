"""Numbers of popular nodes that are spread over shards: writes that add to them leave the node's item alone."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Long,
    Many,
    Table,
    average,
    copy,
    counts,
    edge,
    many,
    node,
    record,
    sums,
)
from keygraph.dynamo.actions import CheckItem, DeleteItem, PutItem, Remove, SetTo, UpdateItem, key_of
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Scan, Store, Transaction, Write
from keygraph.dynamo.table import Key
from keygraph.errors import WriteRefused
from keygraph.model.node_shards import is_shard, new_shard, shard_keys, with_shards
from keygraph.tables.repair import Repairs
from keygraph.writing import marks
from keygraph.writing.requests import Change, Create, Delete, Move, OnEdges, Put, Upsert
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.verified_net import told
from tests.keygraph.written import Written
from tests.tracing import HeldStore, TracingStore
from tests.verified import verified

pytestmark = pytest.mark.parametrize("engine", ENGINES)

by_star = Index("by-star", "gp", "gs")


@node("STAR#{name}")
class Star:
    name: ID
    town: str | None = None

    reviews: Many[Review]
    fans: Many[Follow] = many(at="star")
    friends: Many[Friend]
    reviews_count: int = counts("reviews", "stats_reviews", shards=3)
    stars: Long = sums("reviews.points", shards=3)
    mean: float | None = average("reviews.points", shards=3)
    good: int = counts("reviews", where={"points": {"gte": 4}}, shards=3)
    fans_count: int | None = counts("fans", shards=3)
    friends_count: int = counts("friends", shards=3)


@record("{star}", "REVIEW#{review_id}")
class Review:
    star: Star
    review_id: ID
    points: int | None = None
    text: str | None = None


@node("FAN#{name}", by_star("{idol}", "FAN#{name}"))
class Fan:
    name: ID
    idol: Star | None = None
    place: str | None = copy("idol.town", follows=True)

    stars: Many[Follow] = many(at="fan")


@edge("{fan}", "{star}", by_star("{star}", "{fan}"))
class Follow:
    fan: Fan
    star: Star


@edge("{one}", "FRIEND#{other.name}", mirror=True)
class Friend:
    one: Star
    other: Star


table = Table("Stars", partition_key="pk", sort_key="sk", indexes=[by_star])
graph = Graph(table, Star, Review, Fan, Follow, Friend, type_attribute="kind")
star, review, fan, follow, friend = graph.types.values()
ANN, BOB = ("Ann",), ("Bob",)
KEY = ("STAR#Ann", "STAR#Ann")
SHARDS = shard_keys(star, KEY)


class Stage(Written):
    """A store with a writer, and what popular nodes have."""

    async def items(self) -> list[Item]:
        return list((await self.store.send(Scan(consistent=True))).items)

    async def shards(self) -> list[Item]:
        return [each for each in await self.items() if is_shard(each)]

    async def total(self, *names: str, key: Key = KEY) -> list[Any]:
        """What a node has, added up."""
        batch = await self.store.send(BatchGet((key, *shard_keys(star, key)), consistent=True))
        item, *shards = batch.items
        assert item is not None
        whole = with_shards(star, item, shards)
        return [star.reader(star.fields[name])(whole) for name in names]

    async def repaired(self, kind: str = "counts") -> list[str]:
        repairs = Repairs(graph, self.store, [kind], lambda kind, changes: None)
        return told(await verified(graph, self.store, segments=1, repairs=repairs))

    async def sent(self, *requests: Any) -> list[Any]:
        """What is sent for requests."""
        tracing = TracingStore(self.store)
        await Written(graph, tracing).write(*requests)
        return tracing.requests


def keys_in(requests: list[Any]) -> set[Key]:
    """The keys of the actions of transactions."""
    transactions = [each for each in requests if isinstance(each, Transaction)]
    return {key_of(action, table) for each in transactions for action in each.actions}


def new_review(review_id: str, points: int | None = None, name: str = "Ann") -> Create:
    return Create(review, {"star": (name,), "review_id": review_id, "points": points})


@pytest.fixture
async def stage(make_store: MakeStore) -> Stage:
    graph.check()
    stage = Stage(graph, await make_store(table))
    await stage.write(*(Create(star, {"name": name}) for name in ("Ann", "Bob")))
    await stage.write(*(Create(fan, {"name": name}) for name in ("Cid", "Dan")))
    return stage


async def with_all_shards(stage: Stage) -> None:
    """Makes all shards of both stars."""
    number = 0
    while len(await stage.shards()) < 6:
        number += 1
        await stage.write(new_review(f"x{number}"), new_review(f"x{number}", name="Bob"))
        await stage.write(Delete(review, ("Ann", f"x{number}")), Delete(review, ("Bob", f"x{number}")))


async def test_a_counted_write_sends_nothing_about_the_node(stage: Stage) -> None:
    """Neither an addition to its item nor a check of it: one action on one of its shards is both."""
    await with_all_shards(stage)
    for request, reads in (
        (new_review("1", 5), 0),
        (Put(review, {"star": ANN, "review_id": "2", "points": 3}), 1),
        (Change(review, ("Ann", "1"), {"points": 2}), 1),
        (Upsert(review, {"star": ANN, "review_id": "1", "points": 4}), 1),
        (Delete(review, ("Ann", "2")), 1),
        (Create(follow, {"fan": ("Cid",), "star": ANN}), 0),
    ):
        sent = await stage.sent(request)
        assert [type(each) for each in sent] == [*[BatchGet] * reads, Transaction]
        keys = keys_in(sent)
        assert KEY not in keys
        assert len(keys & {*SHARDS}) == 1
    assert await stage.total("reviews_count", "stars", "mean", "good", "fans_count") == [1, 4, 4.0, 1, 1]
    assert await stage.wrong() == []


async def test_the_write_that_finds_a_shard_missing_makes_it(stage: Stage) -> None:
    sent = await stage.sent(new_review("1", 5))
    assert [type(each) for each in sent] == [Transaction, BatchGet, Transaction]
    assert keys_in(sent[2:]) >= {KEY}
    assert len(keys_in(sent[2:]) & {*SHARDS}) == 1
    [shard] = await stage.shards()
    assert shard == {"pk": shard["pk"], "sk": "STAR#Ann", "_keygraph": {"shard of": "Star"}}
    assert await stage.total("reviews_count", "stars") == [1, 5]
    assert (await stage.refusals(new_review("1", 5, name="Eve")))[0].code == "NOT_FOUND"


async def test_items_that_are_written_together_take_one_shard(stage: Stage) -> None:
    await with_all_shards(stage)
    [sent] = await stage.sent(*(new_review(str(number), number) for number in range(20)))
    assert len(sent.actions) == 21
    assert await stage.total("reviews_count", "stars") == [20, 190]


async def test_a_new_node_is_added_to_itself(stage: Stage) -> None:
    [sent] = await stage.sent(Create(star, {"name": "Eve"}), new_review("1", 5, name="Eve"))
    assert len(sent.actions) == 2
    assert await stage.total("reviews_count", "stars", key=("STAR#Eve", "STAR#Eve")) == [1, 5]
    await stage.write(Delete(review, ("Eve", "1")))
    assert await stage.total("reviews_count", "stars", key=("STAR#Eve", "STAR#Eve")) == [0, 0]


async def test_both_items_of_a_mirrored_edge_count(stage: Stage) -> None:
    await with_all_shards(stage)
    [sent] = await stage.sent(Create(friend, {"one": ANN, "other": BOB}))
    assert len(sent.actions) == 4
    assert KEY not in keys_in([sent])
    assert await stage.total("friends_count") == [1]
    await stage.write(Delete(friend, ("Bob", "Ann")))
    assert await stage.total("friends_count") == [0]
    assert await stage.wrong() == []


async def test_a_record_that_moves_is_counted_once(stage: Stage) -> None:
    await stage.write(new_review("1", 5))
    await stage.write(Move(review, ("Ann", "1"), {"review_id": "2"}))
    await stage.write(Move(review, ("Ann", "2"), {"star": BOB}))
    assert await stage.total("reviews_count", "good") == [0, 0]
    assert await stage.total("reviews_count", "good", key=("STAR#Bob", "STAR#Bob")) == [1, 1]
    assert await stage.wrong() == []


async def test_a_node_that_stays_keeps_its_shards(stage: Stage) -> None:
    """A delete that is refused removes the marks from the shards too."""
    await with_all_shards(stage)
    await stage.write(new_review("1", 5))
    assert (await stage.refusals(Delete(star, ANN)))[0].code == "CONFLICT"
    assert not any(marks.is_marked(each) for each in await stage.items())
    assert await stage.total("reviews_count", "stars") == [1, 5]
    await stage.write(new_review("2", 4))
    assert await stage.total("reviews_count", "stars") == [2, 9]


async def test_the_shards_of_a_deleted_node_are_deleted_with_it(stage: Stage) -> None:
    await with_all_shards(stage)
    await stage.write(*(new_review(str(number), number) for number in range(5)))
    await stage.write(
        Create(follow, {"fan": ("Cid",), "star": ANN}), Create(friend, {"one": ANN, "other": BOB})
    )
    [done] = await stage.write(Delete(star, ANN, on_edges=OnEdges.DETACH))
    assert done.detached == 7
    assert not [each for each in await stage.items() if "Ann" in str(each)]
    assert await stage.total("friends_count", key=("STAR#Bob", "STAR#Bob")) == [0]
    await stage.write(Create(star, {"name": "Ann"}))
    assert await stage.total("reviews_count", "stars", "mean", "fans_count") == [0, 0, None, 0]
    assert await stage.wrong() == []


async def test_a_node_with_more_items_than_a_transaction_holds_is_deleted(stage: Stage) -> None:
    await with_all_shards(stage)
    for start in range(0, 240, 80):
        await stage.write(*(new_review(f"{number:03d}", 1) for number in range(start, start + 80)))
    await stage.write(Delete(star, ANN, on_edges=OnEdges.DETACH))
    assert not [each for each in await stage.items() if "Ann" in str(each)]


async def test_a_node_that_moves_has_nothing_left(stage: Stage) -> None:
    """The node's own part need not be 0 when nothing names it: its shards have the opposite."""
    await stage.write(new_review("1", 5))  # finds a shard missing, and adds to the node
    await with_all_shards(stage)
    await stage.write(Delete(review, ("Ann", "1")))
    assert (await stage.item(*KEY) or {})["stars"] == 5
    await stage.write(Move(star, ANN, {"name": "Eve"}))
    assert await stage.total("reviews_count", "stars", "mean", key=("STAR#Eve", "STAR#Eve")) == [0, 0, None]
    assert [each["pk"] for each in await stage.shards() if "Ann" in str(each["pk"])] == []


async def test_a_mark_that_a_crash_left_on_a_shard_is_removed(stage: Stage) -> None:
    await with_all_shards(stage)
    left = SetTo((marks.MARK,), f"{marks.new_token()}1")
    for key in SHARDS:
        await stage.store.send(Write(UpdateItem(key, (left,))))
    await stage.write(new_review("1", 5))
    assert await stage.total("reviews_count") == [1]


async def test_nothing_names_a_node_whose_shards_are_marked(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_all_shards(stage)
    monkeypatch.setattr("keygraph.writing.sending.sender._TRIES", 3)
    refused: list[str] = []

    async def name_it(request: Any) -> None:
        if isinstance(request, Transaction) and any(
            not isinstance(each, CheckItem) and key_of(each, table) == KEY for each in request.actions
        ):
            own = Written(graph, stage.store)
            refused.extend(str(each.code) for each in await own.refusals(new_review("late", 1)))

    await Written(graph, HeldStore(stage.store, name_it)).write(Delete(star, ANN))
    assert refused == ["CONFLICT"]
    assert await stage.item("STAR#Ann", "REVIEW#late") is None


@pytest.mark.parametrize("on_edges", OnEdges)
async def test_a_node_is_deleted_while_others_add_to_it(stage: Stage, on_edges: OnEdges) -> None:
    await stage.write(new_review("first", 1))

    async def add(number: int) -> bool:
        try:
            await stage.write(new_review(str(number), number))
            if number % 3 == 0:
                await stage.write(Delete(review, ("Ann", str(number))))
        except WriteRefused:
            return False
        return True

    async def delete() -> bool:
        try:
            await stage.write(Delete(star, ANN, on_edges=on_edges))
        except WriteRefused:
            return False
        return True

    await asyncio.gather(*map(add, range(8)), delete(), *map(add, range(8, 16)))
    assert await stage.wrong() == []
    if await stage.item(*KEY) is None:
        assert not [each for each in await stage.items() if "Ann" in str(each)]


async def test_what_a_node_had_before_is_a_part_of_the_number(stage: Stage) -> None:
    """`shards=` can be turned on for a table in use."""
    before = SetTo(("stats_reviews",), Decimal(7))
    await stage.store.send(Write(UpdateItem(KEY, (before,))))
    await stage.write(new_review("1", 5))
    assert await stage.total("reviews_count") == [8]
    assert await stage.wrong() == [
        "miscounted Star: reviews_count does not match its list (1): STAR#Ann/STAR#Ann -> STAR#Ann/STAR#Ann"
    ]


async def test_a_wrong_number_is_repaired_beside_its_shards(stage: Stage) -> None:
    await with_all_shards(stage)
    await stage.write(*(new_review(str(number), number) for number in range(5)))
    for key, path in ((SHARDS[0], "stars"), (SHARDS[1], "mean.sum"), (KEY, "stars")):
        await stage.store.send(Write(UpdateItem(key, (SetTo((path,), Decimal(99)),))))
    assert len(await stage.wrong()) == 2
    assert await stage.repaired() == []
    assert await stage.total("reviews_count", "stars", "mean", "good") == [5, 10, 2.0, 1]
    assert await stage.wrong() == []


async def test_a_number_that_the_node_lacks_is_unknown_until_it_is_repaired(stage: Stage) -> None:
    await stage.store.send(Write(UpdateItem(KEY, (Remove(("fans_count",)),))))
    await with_all_shards(stage)
    await stage.write(Create(follow, {"fan": ("Cid",), "star": ANN}))
    await stage.write(Create(follow, {"fan": ("Dan",), "star": ANN}))
    assert await stage.total("fans_count") == [None]
    assert await stage.repaired() == []
    assert await stage.total("fans_count") == [2]
    assert await stage.wrong() == []


async def test_a_shard_without_its_node_is_found_and_deleted(stage: Stage) -> None:
    """Another program has deleted the node; a shard that no type has any more stays, and is named."""
    await with_all_shards(stage)
    await stage.store.send(Write(DeleteItem(KEY)))
    left = new_shard(table, star, (f"{SHARDS[0][0]}".replace("#0#", "#7#"), "STAR#Ann"))
    await stage.store.send(Write(PutItem(left)))
    unknown = "unknown None: a shard of a type that does not have it (1): _keygraph#shard#7#STAR#Ann/STAR#Ann"
    shards = ", ".join(f"{pk}/{sk} -> STAR#Ann/STAR#Ann" for pk, sk in SHARDS)
    assert await stage.wrong() == [unknown, f"dangling Star: a shard of a missing Star (3): {shards}"]
    assert [each.partition(" (")[0] for each in await stage.repaired("ends")] == [unknown.partition(" (")[0]]
    assert len(await stage.shards()) == 4


async def test_no_repair_loses_what_is_added_meanwhile(stage: Stage) -> None:
    await with_all_shards(stage)
    await stage.write(new_review("1", 5))
    await stage.store.send(Write(UpdateItem(KEY, (SetTo(("stars",), Decimal(50)),))))
    added = 0

    async def add(request: Any) -> None:
        nonlocal added
        if isinstance(request, Transaction) and added < 3:
            added += 1
            await Written(graph, stage.store).write(new_review(f"late{added}", 2))

    store: Store = HeldStore(stage.store, add)
    repairs = Repairs(graph, store, ["counts"], lambda kind, changes: None)
    await verified(graph, store, segments=1, repairs=repairs)
    assert added == 3
    assert await stage.total("stars", "reviews_count") == [11, 4]


async def test_a_node_that_is_named_and_changed_at_once(stage: Stage) -> None:
    """The first try finds the shard missing, and leaves no mark for the copies that follow: it would stop the second one."""
    await stage.write(Change(fan, ("Cid",), {"idol": ANN}))
    await stage.write(new_review("1", 5), Change(star, ANN, {"town": "Rome"}))
    assert (await stage.item("FAN#Cid", "FAN#Cid") or {})["place"] == "Rome"
    assert await stage.total("reviews_count") == [1]


async def test_a_write_that_copies_from_the_node_checks_the_node(stage: Stage) -> None:
    """The copy would not be found by a change of the node that happens at the same time."""
    await with_all_shards(stage)
    sent = await stage.sent(Change(fan, ("Cid",), {"idol": ANN}))
    assert KEY in keys_in(sent)
    assert not keys_in(sent) & {*SHARDS}
    await stage.write(Change(star, ANN, {"town": "Rome"}))
    assert (await stage.item("FAN#Cid", "FAN#Cid") or {})["place"] == "Rome"


async def test_numbers_that_are_too_large_together_stop_no_verification(stage: Stage) -> None:
    """Each of them is one that DynamoDB holds."""
    await stage.write(new_review("1", 3))
    [shard] = await stage.shards()
    for key in (KEY, table.key_of(shard)):
        await stage.store.send(Write(UpdateItem(key, (SetTo(("stars",), Decimal("9E125")),))))
    assert any("stars" in each for each in await stage.wrong())
