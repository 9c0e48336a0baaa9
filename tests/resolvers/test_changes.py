"""Subscriptions to changes: what each change of a record is to whoever listens."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, cast

import pytest

from keygraph import ID, JSON, Graph, Index, Many, Table, edge, node, read, stored, viewer
from keygraph import field as called
from keygraph.changes.stream import StreamReader
from keygraph.dynamo.items import Item, typed_item
from keygraph.dynamo.store import Answer, BatchGet, BatchWrite, PassingStore, Query, Request
from keygraph.dynamo.streams import ShardPosition, StreamRecord
from keygraph.engines.dynamodb.answers import stream_record
from keygraph.errors import ModelError, StreamTrimmed, Throttled
from keygraph_examples.commerce import graph as commerce
from keygraph_resolvers import build_schema
from keygraph_resolvers.live import Listener
from keygraph_resolvers.live.queries import _without_ids
from keygraph_resolvers.read.changes import RecordChange
from keygraph_resolvers.schema.types import check
from tests.clocks import until
from tests.conftest import MakeStore, on_exact_engines
from tests.resolvers import change_laws
from tests.resolvers.test_live import Live, answer_of, data_of, live_over
from tests.resolvers.worlds import shop_items

pytestmark = pytest.mark.timeout(60)

TABLES = int(os.environ.get("KEYGRAPH_TEST_TABLES", "6"))
by_place, by_giver = Index("ByPlace", "PK1", "SK1"), Index("ByGiver", "PK2", "SK2")
TABLE = Table("Club", partition_key="PK", sort_key="SK", indexes=[by_place, by_giver])
ORDER = "kind old { orderId status } new { orderId status customer { name } }"
PEOPLE = "subscription { personChanged { kind old { name email } new { name email } } }"


@pytest.fixture(params=["sqlite"])
def engine(request: pytest.FixtureRequest) -> str:
    return request.param  # type: ignore[no-any-return]  # pytest knows no types of parameters


@pytest.fixture
async def shop(make_store: MakeStore) -> AsyncIterator[Live]:
    async with live_over(commerce, await make_store(commerce.table), shop_items()) as live:
        yield live


async def hear(live: Live, document: str, **given: Any) -> Listener:
    """A listener whom changes reach from now on."""
    listener = await live.listen(document, **given)
    await until(lambda: listener.operation.reads.wanted is not None)
    return listener


async def change_of(listener: Listener) -> Any:
    """The next change that somebody hears of."""
    [change] = (await data_of(listener)).values()
    return change


def set_status(order: str, status: str) -> str:
    return f'mutation {{ updateOrder(input: {{orderId: "{order}", status: {status}}}) {{ order {{ orderId }} }} }}'


# --- What is sent -------------------------------------------------------------------------------------


@on_exact_engines
class TestChanges:
    async def test_what_is_created_changed_and_deleted(self, shop: Live) -> None:
        listener = await hear(shop, f'subscription {{ orderChanged(customerId: "12345") {{ {ORDER} }} }}')
        other = await hear(shop, 'subscription { orderChanged(orderId: "ORD002") { kind new { status } } }')
        await shop.ask(set_status("ORD001", "CANCELLED"))
        await shop.ask(set_status("ORD002", "CANCELLED"))
        order: Item = next(each for each in shop_items() if each["SK"] == "ORDER#ORD001")
        await shop.service.store.send(BatchWrite(deletes=(("ORDER#ORD001", "ORDER#ORD001"),)))
        await shop.service.store.send(BatchWrite(puts=(order,)))
        before, after = ({"orderId": "ORD001", "status": each} for each in ("SHIPPED", "CANCELLED"))
        customer = {"customer": {"name": "John Doe"}}
        assert await change_of(listener) == {"kind": "UPDATED", "old": before, "new": {**after, **customer}}
        assert await change_of(listener) == {"kind": "DELETED", "old": after, "new": None}
        assert await change_of(listener) == {"kind": "CREATED", "old": None, "new": {**before, **customer}}
        assert await change_of(other) == {"kind": "UPDATED", "new": {"status": "CANCELLED"}}

    async def test_an_edge(self, shop: Live) -> None:
        document = "kind old { quantity product { name } } changedAt"
        listener = await hear(
            shop, f'subscription {{ orderItemChanged(orderId: "ORD001") {{ {document} }} }}'
        )
        await shop.service.store.send(BatchWrite(deletes=(("ORDER#ORD001", "PRODUCT#ABC123"),)))
        change = await change_of(listener)
        assert change.pop("changedAt").startswith("20")
        old = {"quantity": 1, "product": {"name": "Wireless Headphones"}}
        assert change == {"kind": "DELETED", "old": old}


async def test_what_has_expired_is_deleted(shop: Live) -> None:
    """As DynamoDB Streams tells what its time to live has deleted."""
    listener = await hear(shop, 'subscription { orderChanged(orderId: "ORD001") { kind old { status } } }')
    order = next(each for each in shop_items() if each["SK"] == "ORDER#ORD001")
    record: dict[str, Any] = {
        "eventName": "REMOVE",
        "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"},
        "dynamodb": {
            "ApproximateCreationDateTime": 1.0,
            "Keys": typed_item({name: order[name] for name in ("PK", "SK")}),
            "OldImage": typed_item(order),
            "SequenceNumber": "1",
        },
    }
    await shop.queries.changed([stream_record(record["dynamodb"], commerce.table)])
    assert await change_of(listener) == {"kind": "DELETED", "old": {"status": "SHIPPED"}}


async def test_who_leaves_what_they_asked_for_is_heard_too(shop: Live) -> None:
    """An order that is given to another customer: whoever listens to the one or the other hears of it."""
    documents = [
        f'subscription {{ orderChanged(customerId: "{each}") {{ kind old {{ orderId }} new {{ orderId }} }} }}'
        for each in ("12345", "24680", "13579")
    ]
    one, other, neither = [await hear(shop, each) for each in documents]
    order = next(each for each in shop_items() if each["SK"] == "ORDER#ORD001")
    given = {**order, "customerId": "24680", "GSI1PK": "USER#24680"}
    await shop.service.store.send(BatchWrite(puts=(given,)))
    change = {"kind": "UPDATED", "old": {"orderId": "ORD001"}, "new": {"orderId": "ORD001"}}
    assert await change_of(one) == await change_of(other) == change
    assert not neither.operation.changes


async def test_what_changes_nothing_of_a_type_is_not_sent(shop: Live) -> None:
    """A stranger's attribute, an item that fits no type, and an attribute with the value that its absence means."""
    listener = await hear(shop, "subscription { tagChanged: productTagChanged { kind } }")
    orders = await hear(shop, f"subscription {{ orderChanged {{ {ORDER} }} }}")
    order = next(each for each in shop_items() if each["SK"] == "ORDER#ORD001")
    poison: Item = {"PK": "ORDER#", "SK": "?", "Type": "Order"}
    for item in ({**order, "theirs": "x"}, {**order, "theirs": "y"}, poison, {**order, "status": "pending"}):
        await shop.service.store.send(BatchWrite(puts=(item,)))
    assert (await change_of(orders))["new"]["status"] == "PENDING"
    assert not listener.operation.changes


async def test_one_run_serves_all_who_listen_and_changes_come_in_order(shop: Live) -> None:
    document = 'subscription { userChanged(userId: "12345") { new { name } } }'
    listeners = [await hear(shop, document) for _ in range(3)]
    runs = shop.queries.counts.runs
    names = [f"Name {number}" for number in range(25)]
    for name in names:
        await shop.rename(name)
    for listener in listeners:
        assert [(await change_of(listener))["new"]["name"] for _ in names] == names
    assert shop.queries.counts.runs - runs <= len(names) + 3


async def test_a_change_that_cannot_be_answered_waits_and_keeps_its_place(make_store: MakeStore) -> None:
    @dataclass
    class Failing(PassingStore):
        failures: int = field(default=0, kw_only=True)

        async def send(self, request: Request[Answer], /) -> Answer:
            if self.failures and isinstance(request, BatchGet | Query):
                self.failures -= 1
                raise Throttled("later")
            return await self.store.send(request)

    store = Failing(await make_store(commerce.table))
    async with live_over(commerce, store, shop_items()) as live:
        listener = await hear(live, f"subscription {{ orderChanged {{ {ORDER} }} }}")
        await live.ask(set_status("ORD001", "CANCELLED"))
        await live.ask(set_status("ORD002", "SHIPPED"))
        store.failures = 1
        for order in ("ORD001", "ORD002"):
            assert (await change_of(listener))["new"]["orderId"] == order


# --- Rules --------------------------------------------------------------------------------------------


@node(
    "PERSON#{person_id}",
    access=[read(where={"owner": viewer("sub")}), read(where={"groups": {"group": viewer("group")}})],
)
class Person:
    person_id: ID
    owner: str
    name: str
    email: str | None = None
    groups: Many[Membership]


@edge("{person}", "GROUP#{group.group_id}", access=[read()])
class Membership:
    person: Person
    group: Group


@node("GROUP#{group_id}", access=[read()])
class Group:
    group_id: ID


@edge(
    "{one}",
    "LIKES#{other.group_id}",
    mirror=True,
    access=[read(where={"one": viewer("group")}), read(role="all")],
)
class Likes:
    one: Group
    other: Group
    since: int = field(default=0)


@node(
    "GIFT#{gift_id}",
    by_place("PLACE#{place}", "{gift_id}"),
    by_giver("{giver}", "{gift_id}"),
    access=[read(where={"is_open": True}), read(where={"giver": viewer("group")})],
)
class Gift:
    gift_id: ID
    is_open: bool
    place: str = stored(access=[read(role="all")])
    giver: Group = stored(access=[read(where={"giver": viewer("group")}), read(role="all")])
    note: str | None = None
    parts: list[int] | None = None

    @called(needs=("place",), access=[read()])
    def is_near(self) -> bool:
        return self.place.startswith("h")

    @called(needs=("place",), access=[read()])
    def number(self) -> int:
        if self.is_near():
            raise ValueError(self.place)
        return None  # type: ignore[return-value]  # an answer says the same of it

    @called(needs=("place",), access=[read()])
    def share(self) -> float:
        return float("nan")

    @called(needs=("place",), access=[read()])
    def shares(self) -> JSON:
        return {"home": self.share()}

    @called(needs=("place",), access=[read()])
    def letters(self) -> list[str]:
        return (each for each in "ab")  # type: ignore[return-value]  # no two are equal


club = Graph(TABLE, Person, Membership, Group, Likes, Gift)


def person(owner: str, name: str, **more: Any) -> Item:
    return {"PK": "PERSON#1", "SK": "PERSON#1", "person_id": "1", "owner": owner, "name": name, **more}


@pytest.fixture
async def members(make_store: MakeStore) -> AsyncIterator[Live]:
    async with live_over(club, await make_store(TABLE), [person("ann", "A")]) as live:
        yield live


async def test_each_viewer_hears_what_they_see(members: Live) -> None:
    store = members.service.store
    ann, bob, eve = [await hear(members, PEOPLE, viewer={"sub": each}) for each in ("ann", "bob", "eve")]
    await store.send(BatchWrite(puts=(person("ann", "B"),)))
    await store.send(BatchWrite(puts=(person("bob", "C"),)))
    await store.send(BatchWrite(deletes=(("PERSON#1", "PERSON#1"),)))
    a, b, c = ({"name": each, "email": None} for each in "ABC")
    assert await change_of(ann) == {"kind": "UPDATED", "old": a, "new": b}
    assert await change_of(ann) == {"kind": "DELETED", "old": b, "new": None}
    assert await change_of(bob) == {"kind": "CREATED", "old": None, "new": c}
    assert await change_of(bob) == {"kind": "DELETED", "old": c, "new": None}
    await until(lambda: not eve.operation.changes and eve.operation.task is None)
    assert not eve._waiting_answers


async def test_a_method_tells_no_change_of_what_a_viewer_may_not_read(members: Live) -> None:
    store, document = (
        members.service.store,
        "subscription { giftChanged { kind old { isNear } new { isNear } } }",
    )
    anybody, reader = [await hear(members, document, viewer={"roles": each}) for each in ([], ["all"])]
    for place in ("home", "hall", "lake", "sea", "hut"):
        await store.send(BatchWrite(puts=(gift(place, "a"),)))
    for listener, near in ((anybody, [True, False, True]), (reader, [True, True, False, False, True])):
        heard = [(await change_of(listener))["new"]["isNear"] for _ in near]
        assert heard == near
        assert not listener.operation.changes


async def test_a_method_that_fails_tells_no_change_to_a_live_query(members: Live) -> None:
    store, document = members.service.store, 'subscription { gift(giftId: "1") { number } }'
    await store.send(BatchWrite(puts=(gift("home", "a"),)))
    listener = await members.listen(document)
    assert (await answer_of(listener))["errors"][0]["extensions"]["code"] == "INTERNAL"
    await store.send(BatchWrite(puts=(gift("hall", "a"),)))
    await until(lambda: members.queries.counts.unchanged)
    await store.send(BatchWrite(deletes=(("GIFT#1", "GIFT#1"),)))
    assert await data_of(listener) == {"gift": None}


def test_a_large_answer_with_a_failure_is_compared_at_once() -> None:
    text = b"0123456789abcdef0123456789abcde " * 250_000
    failed = {"errors": [{"extensions": {"id": "0" * 32}}]}
    began = time.thread_time()
    assert _without_ids(text, failed) == text
    assert time.thread_time() - began < 0.15


async def test_a_rule_that_reads_another_item_holds(members: Live) -> None:
    """Who is in a group sees its members: what their membership is when the change is sent decides."""
    store = members.service.store
    group = await hear(members, PEOPLE, viewer={"sub": "x", "group": "g"})
    other = await hear(members, PEOPLE, viewer={"sub": "x", "group": "h"})
    await store.send(BatchWrite(puts=({"PK": "PERSON#1", "SK": "GROUP#g"},)))
    await store.send(BatchWrite(puts=(person("ann", "B"),)))
    assert (await change_of(group))["new"]["name"] == "B"
    await until(lambda: not other.operation.changes and other.operation.task is None)
    assert not other._waiting_answers


async def test_an_edge_in_two_items_is_one_event(members: Live) -> None:
    store, document = members.service.store, "subscription { likesChanged { kind new { one { groupId } } } }"
    everybody = await hear(members, document, viewer={"roles": ["all"]})
    one, other = [await hear(members, document, viewer={"group": each}) for each in "ab"]
    of_b = 'subscription { likesChanged(oneId: "b") { kind new { one { groupId } } } }'
    narrowed = await hear(members, of_b, viewer={"roles": ["all"]})

    def pair(*names: str) -> tuple[Item, ...]:
        return tuple(
            {"PK": f"GROUP#{one}", "SK": f"LIKES#{other}"}
            for one, other in zip(names, reversed(names), strict=True)
        )

    await store.send(BatchWrite(puts=pair("a", "b")))
    await store.send(BatchWrite(puts=pair("c", "c")[:1]))
    created = [{"kind": "CREATED", "new": {"one": {"groupId": each}}} for each in "abc"]
    assert [await change_of(everybody) for _ in range(2)] == [created[0], created[2]]
    assert await change_of(one) == created[0]
    assert await change_of(other) == await change_of(narrowed) == created[1]


def gift(place: str, giver: str, **more: Any) -> Item:
    keys = {
        "PK": "GIFT#1",
        "SK": "GIFT#1",
        "PK1": f"PLACE#{place}",
        "SK1": "1",
        "PK2": f"GROUP#{giver}",
        "SK2": "1",
    }
    return {**keys, "gift_id": "1", "place": place, "giver_id": giver, "is_open": True, **more}


async def test_arguments_are_compared_only_with_what_the_viewer_may_read(members: Live) -> None:
    """Before and after: who sees the former giver does not learn the new one by listening to it."""
    store = members.service.store
    of_giver = 'subscription {{ giftChanged(giverId: "{}") {{ kind old {{ note }} new {{ note }} }} }}'
    everybody = {"roles": ["all"]}
    own, others, all_of_b, wanted = [
        await hear(members, of_giver.format(giver), viewer=claims)
        for giver, claims in (
            ("a", {"group": "a"}),
            ("b", {"group": "a"}),
            ("b", everybody),
            ("b", {"group": "b"}),
        )
    ]
    at_home = 'subscription { giftChanged(place: "home") { kind new { note } } }'
    placed = await hear(members, at_home, viewer=everybody)
    [refused] = (await answer_of(await members.listen(at_home, viewer={"group": "a"})))["errors"]
    assert refused["extensions"]["code"] == "FORBIDDEN"
    await store.send(BatchWrite(puts=(gift("home", "a"),)))
    await store.send(BatchWrite(puts=(gift("home", "b", note="x"),)))
    await store.send(BatchWrite(puts=(gift("home", "b", note="y"),)))
    notes = [{"note": each} for each in (None, "x", "y")]
    assert [await change_of(own) for _ in range(2)] == [
        {"kind": "CREATED", "old": None, "new": notes[0]},
        {"kind": "UPDATED", "old": notes[0], "new": notes[1]},
    ]
    for each in (all_of_b, wanted):
        assert await change_of(each) == {"kind": "UPDATED", "old": notes[0], "new": notes[1]}
        assert await change_of(each) == {"kind": "UPDATED", "old": notes[1], "new": notes[2]}
    assert [(await change_of(placed))["new"] for _ in notes] == notes
    assert not others._waiting_answers


async def test_a_hidden_field_by_which_an_index_is_sorted_decides_nothing(make_store: MakeStore) -> None:
    """An index leaves out an item without it. What arguments are compared with is there all the same."""
    by_shelf = Index("ByShelf", "ShelfPK", "SizeSK")

    @node("BOX#{box_id}", by_shelf("{shelf}", "{size}", lists="boxes"), access=[read()], writes=False)
    class Box:
        box_id: ID
        shelf: str
        name: str
        size: int | None = stored(access=[read(role="all")])

    table = Table("Boxes", partition_key="PK", sort_key="SK", indexes=[by_shelf])
    boxes = Graph(table, Box)
    key = {"PK": "BOX#1", "SK": "BOX#1", "box_id": "1", "shelf": "a"}
    async with live_over(boxes, await make_store(table), [{**key, "name": "A"}]) as live:
        document = 'subscription { boxChanged(shelf: "a") { new { name } } }'
        listener = await hear(live, document, viewer={"sub": "x"})
        await live.service.store.send(BatchWrite(puts=({**key, "name": "B"},)))
        assert await change_of(listener) == {"new": {"name": "B"}}


@pytest.mark.parametrize("hidden", ["by the record", "in a field", "by another item"])
async def test_changes_that_a_viewer_does_not_see_lose_none_of_theirs(
    make_store: MakeStore, hidden: str
) -> None:
    """The end of a subscription would tell that there were many."""
    items = [person("ann", "A"), gift("home", "a")]
    async with live_over(club, await make_store(TABLE), items, live_events=3) as live:
        gifts, claims = "subscription { giftChanged { new { note } } }", {"sub": "x", "group": "b"}
        one, document = (items[0], PEOPLE) if hidden == "by another item" else (items[1], gifts)
        listener = await hear(live, document, viewer=claims)
        closed = {"is_open": hidden != "by the record"}
        for number in range(20):
            old, new = (
                {**one, **closed, "place": f"{each}", "name": f"{each}"} for each in (number, number + 1)
            )
            key = str(one["PK"]), str(one["SK"])
            await live.queries.changed([StreamRecord(key, old, new, f"{number:03d}", 0.0)])
        await until(lambda: not listener.operation.changes and listener.operation.task is None)
        assert not listener.has_ended
        assert not listener._waiting_answers
        assert live.queries.held == listener.operation.size


async def test_an_edge_of_which_only_one_item_was_written_is_heard_too(members: Live) -> None:
    """Another program has forgotten the other item, whichever it is."""
    store, fields = members.service.store, "kind old { since } new { since }"
    listener = await hear(
        members, f"subscription {{ likesChanged {{ {fields} }} }}", viewer={"roles": ["all"]}
    )
    one, other = ({"PK": f"GROUP#{a}", "SK": f"LIKES#{b}"} for a, b in ("ab", "ba"))
    changes: list[tuple[list[Item], str, int | None, int | None]] = [
        ([other], "CREATED", None, 0),
        ([{**other, "since": Decimal(1)}], "UPDATED", 0, 1),
        ([one], "CREATED", None, 0),
        ([{**each, "since": Decimal(2)} for each in (other, one)], "UPDATED", 0, 2),
        ([{**other, "since": Decimal(3)}], "UPDATED", 2, 3),
        ([], "DELETED", 3, None),
    ]
    for items, kind, old, new in changes:
        await store.send(BatchWrite(tuple(items), deletes=() if items else (("GROUP#b", "LIKES#a"),)))
        images = ({"since": each} if each is not None else None for each in (old, new))
        assert await change_of(listener) == dict(zip(("kind", "old", "new"), (kind, *images), strict=True))


async def test_many_values_are_compared_and_written_beside_others(
    members: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading thousands of values takes the event loop tens of milliseconds. They count as the memory that they take."""
    threads, compared = list[int](), RecordChange.compared

    def noticed(change: RecordChange) -> RecordChange:
        threads.append(threading.get_ident())
        return compared(change)

    monkeypatch.setattr(RecordChange, "compared", noticed)
    document = "subscription { giftChanged { new { note parts } } }"
    listener = await hear(members, document, viewer={"group": "a"})
    free = members.queries.held
    old, new = (gift("home", "a", parts=[Decimal(1)] * number) for number in (4_000, 5_000))
    await members.queries.changed([StreamRecord(("GIFT#1", "GIFT#1"), old, new, "1", 0.0)])
    assert members.queries.held - free > 9_000 * 100
    assert len((await change_of(listener))["new"]["parts"]) == 5_000
    assert threads
    assert threading.get_ident() not in threads


def test_names_in_the_schema_are_the_models_own() -> None:
    @node("A#{a_id}")
    class Thing:
        a_id: ID

    @node("B#{b_id}")
    class ThingChanged:
        b_id: ID

    @node("C#{c_id}")
    class ThingChangedPayload:
        c_id: ID

    with pytest.raises(ModelError) as wrong:
        check(Graph(TABLE, Thing, ThingChanged))
    assert "2 fields are called thingChanged" in str(wrong.value)
    with pytest.raises(ModelError) as wrong:
        check(Graph(TABLE, Thing, ThingChangedPayload))
    assert "ThingChangedPayload is the type of the changes of Thing" in str(wrong.value)


def test_a_virtual_node_has_no_changes() -> None:
    live = build_schema(commerce, live=True)._schema.subscription_type
    assert live is not None
    assert "tagChanged" not in live.fields
    assert {*live.fields["orderChanged"].args} == {"orderId", "customerId"}


# --- Limits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [{"live_events": 5}, {"live_memory": 4_000}])
async def test_who_reads_slowly_is_told_that_events_were_lost(
    make_store: MakeStore, limits: dict[str, int]
) -> None:
    store = await make_store(commerce.table)
    async with live_over(commerce, store, shop_items(), **limits) as live:
        document = 'subscription { userChanged(userId: "12345") { new { name } } }'
        slow = await hear(live, document)
        for number in range(100):
            await live.rename(f"Name {number}")
            if slow.has_ended:
                break
            # Changes may be read later than they are written.
            await until(lambda: slow.has_ended or (slow._waiting is not None and slow._waiting.done()))
            await until(lambda: slow.has_ended or not (slow.operation.changes or slow.operation.task))
        await until(lambda: slow.has_ended)
        assert (await change_of(slow))["new"]["name"] == "Name 0"
        [error] = (await answer_of(slow))["errors"]
        assert error["extensions"] == {"code": "EVENTS_LOST"}
        assert await slow.next() is None
        counts = live.queries.counts
        assert (live.queries.held, live.queries.listeners, counts.lost) == (0, 0, 1)


async def test_changes_that_the_stream_lost_end_the_subscription(shop: Live) -> None:
    listener = await hear(shop, f"subscription {{ orderChanged {{ {ORDER} }} }}")
    await shop.ask(set_status("ORD001", "CANCELLED"))
    assert (await change_of(listener))["new"]["status"] == "CANCELLED"
    reader = cast(StreamReader, shop.queries._changes)
    read_on = reader.read

    async def lost() -> Any:
        reader.read = read_on  # type: ignore[method-assign]  # it was one time
        reader.positions = dict.fromkeys(reader.positions, ShardPosition())  # what is left
        raise StreamTrimmed("gone")

    reader.read = lost  # type: ignore[method-assign]  # the next time
    [error] = (await answer_of(listener))["errors"]
    assert error["extensions"] == {"code": "EVENTS_LOST"}
    again = await hear(shop, f"subscription {{ orderChanged {{ {ORDER} }} }}")
    await shop.ask(set_status("ORD001", "PENDING"))
    assert (await change_of(again))["new"]["status"] == "PENDING"


async def test_nothing_is_left_of_those_who_have_gone(shop: Live) -> None:
    listener = await hear(shop, f"subscription {{ orderChanged {{ {ORDER} }} }}")
    order = next(each for each in shop_items() if each["SK"] == "ORDER#ORD001")
    for at in range(3):
        new = {**order, "status": "pending" if at % 2 else "cancelled"}
        await shop.queries.changed([StreamRecord(("ORDER#ORD001", "ORDER#ORD001"), order, new, str(at), 0.0)])
    listener.end()
    assert (shop.queries.held, bool(shop.queries.index.changes)) == (0, False)


async def test_an_argument_that_is_no_key_is_refused(shop: Live) -> None:
    """The subscription ends: it would wait for changes that are never sent."""
    listener = await shop.listen('subscription { orderChanged(orderId: "") { kind } }')
    answer = await answer_of(listener)
    assert [each["extensions"]["code"] for each in answer["errors"]] == ["BAD_USER_INPUT"]
    assert await listener.next() is None


# --- The law ------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_what_is_heard_is_what_has_changed_of_what_the_viewer_reads() -> None:
    counts = await change_laws.run(TABLES, 0)
    assert counts.wrong == []
    assert counts.events > 0
    assert counts.hidden > 0
