"""The bound, worked out by hand; and that operations cost no more than it, on every engine."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from bench.bound.bound import bound
from bench.bound.items import Items
from bench.bound.requests import RoundTrip
from bench.measuring import measured
from bench.operations import OPERATIONS
from bench.pages import with_part
from bench.plan_tables import COMMAND, PAGE, plan_text
from bench.worlds import PRICED, SHAPES, World, minute, worlds
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Store
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore
from tests.documents.round_trips import RoundTrips
from tests.schemas import schema_of


@cache
def small_worlds() -> dict[str, World]:
    """The worlds without the largest of the customers."""
    return {world.name: world for world in worlds(SHAPES[:2])}


def levels(world: str, document: str, **variables: Any) -> list[tuple[int, int, int]]:
    asked = small_worlds()[world]
    found = bound(schema_of(asked.graph), Items(asked.graph.table, asked.items), document, variables)
    return [(level.ranges, level.counts, level.keys) for level in found.levels]


# --- By hand ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("world", "document", "expected"),
    [
        # User and orders; items of five orders; 20 products and their categories; the categories that there are.
        (
            "commerce",
            """{ user(userId: "5x4x3") { name orders { nodes { items { nodes { name
              categories { nodes { name } } } } } } } }""",
            [(1, 0, 1), (5, 0, 0), (20, 0, 20), (0, 0, 60)],
        ),
        # What keys, edges and an index's own items tell is not read; but the user must be there.
        (
            "commerce",
            """{ user(userId: "5x4x3") { userId orders { nodes { total customer { userId }
              items { edges { quantity node { id } } } } } } }""",
            [(1, 0, 1), (5, 0, 0)],
        ),
        # Equal lists under aliases are one, and the longest page answers the others; the other direction is another.
        (
            "commerce",
            """{ user(userId: "5x4x3") { a: orders(first: 2) { nodes { total } } b: orders { nodes { status } }
              c: orders(last: 2) { nodes { total } } } }""",
            [(2, 0, 1)],
        ),
        # The five shards are asked at the same time; the products stand in the activities; they have one seller.
        (
            "commerce",
            """{ user(userId: "5x4x3") { activities { nodes { product { seller { name } } } } } }""",
            [(5, 0, 1), (0, 0, 5), (0, 0, 1)],
        ),
        # The customer was read as the root before the order tells that it is theirs.
        (
            "commerce",
            """{ user(userId: "5x4x3") { name } order(orderId: "5x4x3-000") { customer { email
              orders { totalCount } } } }""",
            [(0, 0, 2), (0, 1, 0)],
        ),
        # An order is gathered: it stands beside its items and is one Query with them; its last items are another.
        (
            "commerce",
            """{ order(orderId: "5x4x3-000") { total items { nodes { name } } } }""",
            [(1, 0, 0), (0, 0, 4)],
        ),
        (
            "commerce",
            """{ order(orderId: "5x4x3-000") { total items(last: 2) { nodes { id } } } }""",
            [(1, 0, 1)],
        ),
        # All orders of a user have come, so that the second asking for some and their number is answered.
        (
            "commerce",
            """{ user(userId: "5x4x3") { orders { nodes { customer { orders(first: 2) { totalCount nodes { total } }
              } } } } }""",
            [(1, 0, 1)],
        ),
        # A tag has no item.
        ("commerce", '{ tag(tagName: "new-5x4x3") { products { nodes { productId } } } }', [(1, 0, 0)]),
        # A pallet's container is found by the pallet's key, before the pallet was read.
        (
            "cargo",
            '{ box(boxId: "L00000000") { pallet { node { origin container { node { operator } } } } } }',
            [(1, 0, 1), (1, 0, 1), (0, 0, 1)],
        ),
        # Skipped fields cost nothing, fragments what stands in them.
        (
            "cargo",
            """{ pallet(palletId: "L00000") { ...f boxes @skip(if: true) { totalCount } } }
              fragment f on Pallet { ... on Pallet { container { linkedBy } } }""",
            [(1, 0, 1)],
        ),
        # Friends of p090 and p091 are the 22 from p080 to p101; the user and these two were read before.
        (
            "social",
            '{ user(userId: "p100") { name friends(first: 2) { nodes { name friends { nodes { name } } } } } }',
            [(1, 0, 1), (2, 0, 2), (0, 0, 19)],
        ),
        # A list whose key is whole is a key, with whatever else is read by key; so is its count.
        (
            "press",
            '{ section(sectionId: "s1") { name texts { nodes { title published { version } } } } }',
            [(1, 0, 1), (0, 0, 20)],
        ),
        (
            "commerce",
            f"""{{ order(orderId: "5x4x3-000") {{ items {{ nodes {{ name
              prices(timestamp: {{eq: "{PRICED}"}}) {{ totalCount }} }} }} }} }}""",
            [(1, 0, 0), (0, 0, 8)],
        ),
        # A filter of the client's is what a Query alone can apply; a range finds more than one.
        (
            "commerce",
            f"""{{ product(productId: "5x4x3-00000") {{
              a: prices(timestamp: {{eq: "{PRICED}"}}, where: {{price: {{gt: "1"}}}}) {{ nodes {{ price }} }}
              b: prices(timestamp: {{from: "{PRICED}"}}) {{ nodes {{ price }} }} }} }}""",
            [(2, 0, 1)],
        ),
        # Read backward too, an order stands beside its items where all of them are wanted.
        (
            "commerce",
            """{ order(orderId: "5x4x3-000") { total items(last: 4) { nodes { name } } } }""",
            [(1, 0, 0), (0, 0, 4)],
        ),
        # One Query reads in one direction: where the first of four ends is not known to whoever reads the last.
        (
            "commerce",
            """{ order(orderId: "5x4x3-000") { total a: items(first: 2) { nodes { id } }
              b: items(last: 2) { nodes { id } } } }""",
            [(2, 0, 0)],
        ),
        # Nobody knows beforehand that the first items of an order are none of those that an argument leaves.
        (
            "commerce",
            """{ order(orderId: "5x4x3-000") { total items(productId: {from: "5x4x3-00000"}) { nodes { id } } } }""",
            [(1, 0, 1)],
        ),
        # A range without keys is not read; whether a page of none has a next one is.
        (
            "commerce",
            """{ user(userId: "5x4x3") { a: customerOrders(orderId: {from: "b", to: "a"}) { totalCount nodes { total } }
              b: orders(first: 0) { nodes { total } } c: orders(first: 0, direction: DESC) {
              pageInfo { hasNextPage } } } }""",
            [(1, 0, 1)],
        ),
        # A page that is shorter than one above it, and begins where that one does, has come with it; a longer one has not.
        (
            "commerce",
            """{ user(userId: "5x4x3") { orders(first: 3) { nodes { customer { orders(first: 2) { nodes { total } }
              } } } } }""",
            [(1, 0, 1)],
        ),
        (
            "commerce",
            """{ user(userId: "5x4x3") { orders(first: 3) { nodes { customer { orders(first: 4) { nodes { total } }
              } } } } }""",
            [(1, 0, 1), (1, 0, 0)],
        ),
        # The 61st is found by the second request, which looks at the 33rd to the 96th; equal lists are searched once.
        (
            "commerce",
            f"""{{ tag(tagName: "lamp") {{
              a: products(first: 1, where: {{createdAt: {{eq: "{minute(60)}"}}}}) {{ edges {{ createdAt }} }}
              b: products(first: 1, where: {{createdAt: {{eq: "{minute(60)}"}}}}) {{ nodes {{ name }} }} }} }}""",
            [(1, 0, 0), (1, 0, 0), (0, 0, 1)],
        ),
        # The fourth is found by the first request; that there is no such one, when the second has come to the end.
        (
            "commerce",
            f"""{{ tag(tagName: "lamp") {{
              a: products(first: 1, where: {{createdAt: {{eq: "{minute(3)}"}}}}) {{ nodes {{ name }} }}
              b: products(first: 1, where: {{createdAt: {{lt: "2020-01-01T00:00:00Z"}}}}) {{ nodes {{ name }} }} }} }}""",
            [(2, 0, 0), (1, 0, 1)],
        ),
        # Nobody waits for a filtered list but what it leads to.
        (
            "commerce",
            f"""{{ a: tag(tagName: "lamp") {{ products(first: 1, where: {{createdAt: {{eq: "{minute(60)}"}}}}) {{
              nodes {{ name }} }} }} b: tag(tagName: "round-5x4x3") {{ products(first: 3) {{ nodes {{
              name seller {{ name }} }} }} }} }}""",
            [(2, 0, 0), (1, 0, 3), (0, 0, 2)],
        ),
        # A node that does not exist leads nowhere.
        ("social", '{ user(userId: "nobody") { name } }', [(0, 0, 1)]),
    ],
)
def test_what_keys_alone_allow(world: str, document: str, expected: list[tuple[int, int, int]]) -> None:
    assert levels(world, document) == expected


def test_a_hundred_keys_are_a_request() -> None:
    assert [RoundTrip(1, 2, keys).requests for keys in (0, 1, 100, 101, 200, 201)] == [3, 4, 4, 5, 5, 6]


def test_edges_to_named_nodes_are_keys() -> None:
    user = small_worlds()["social"].graph.types["User"]
    ids = [global_id(user, (f"p{number:03d}",)) for number in (99, 101, 150)]
    document = """query ($ids: [ID!]) { user(userId: "p100") { friends(to: $ids) { nodes { name } } } }"""
    assert levels("social", document, ids=ids) == [(0, 0, 4), (0, 0, 2)]


def test_edges_to_named_nodes_that_a_page_has_are_not_read() -> None:
    user = small_worlds()["social"].graph.types["User"]
    document = """query ($me: [ID!], $ids: [ID!]) { user(userId: "p100") { friends(first: %d) { nodes {
      friends(to: $me) { nodes { friends(to: $ids) { nodes { userId } } } } } } } }"""
    ids = [global_id(user, (f"p{number:03d}",)) for number in (91, 92, 200)]
    asked = {"me": [global_id(user, ("p100",))], "ids": ids}
    # Of twenty friends all have come where more were asked for; else the one who is none is looked for.
    assert levels("social", document % 21, **asked) == [(1, 0, 1), (0, 0, 20)]
    assert levels("social", document % 20, **asked) == [(1, 0, 1), (0, 0, 20), (0, 0, 1)]


def test_edges_to_named_nodes_are_ranges_where_more_than_the_ends_makes_their_key() -> None:
    skill = small_worlds()["talent"].graph.types["Skill"]
    ids = [global_id(skill, (str(1_000 + number),)) for number in (7, 9, 10)]
    document = """query ($a: [ID!], $b: [ID!]) { person(nodeId: 7) { a: skills(to: $a) { edges { level } }
      b: skills(to: $b) { totalCount nodes { skillName } } } }"""
    # The person has the first two of them.
    assert levels("talent", document, a=ids[:2], b=ids) == [(3, 0, 1), (0, 0, 2)]


def test_what_it_cannot_walk_is_refused() -> None:
    with pytest.raises(ValueError, match="cursors"):
        levels("social", '{ user(userId: "p100") { friends(after: "x") { totalCount } } }')
    searched = 'activities(where: {action: {eq: "login"}}) { nodes { action } }'
    with pytest.raises(ValueError, match="filtered"):
        levels("commerce", f'{{ user(userId: "5x4x3") {{ {searched} }} }}')
    for question, what in {
        '{ user(userId: "p100") { friends(alsoOf: ["p101"]) { nodes { name } } } }': "in common",
        '{ user(userId: "p100") { friends { aggregate { count } } } }': "aggregates",
        '{ user(userId: "p100") { peopleYouMayKnow { nodes { name } } } }': "walk",
        '{ path(from: "p100", to: "p101", via: [USER_FRIENDS]) { length } }': "paths",
    }.items():
        with pytest.raises(ValueError, match=what):
            levels("social", question)


# --- On every engine ----------------------------------------------------------------------------------

_QUICK = (
    "user, orders, items, products, categories 1×1×1",
    "user, orders, items, products, categories 5×4×3",
    "categories down four levels",
    "a menu of four levels, by what the edges tell",
    "a container, its pallets and their boxes 1×1×1",
    "a box, its pallet, all boxes of this, and their pallet again",
    "everything that is known of a person",
    "the friends of two people, to see whom they share",
)
"""Operations that need few items."""
_ONCE = (
    "a section's texts, with what is published of each",
    "five texts of a section, and from what is published of them back to it",
    "an order's products, with what each cost on a day",
    "an order with its last items",
    "a user's orders, and the first of them again from each",
    "a rare product of a tag, and the first of another with their sellers",
    "a user's friends, whose edges back to the user lead to edges that are there",
    "the edges to sixty people under two aliases",
    "what ties a person to some skills, under two aliases",
)
"""Quick ones too, in which something is asked for that a key tells, or that is read at another place."""


def _needed(world: World) -> Iterable[Item]:
    """The items of a world that the quick operations can meet, and some more."""
    for item in world.items:
        is_far = world.name == "social" and not "USER#p090" <= str(item["PK"]) <= "USER#p114"
        is_large = world.name == "cargo" and "_S" not in str(item["objectId"])
        is_large = is_large and "_L00003" not in str(item["objectId"])
        if not (is_far or is_large):
            yield item


async def _filled(make_store: MakeStore, world: World) -> tuple[Store, list[Item]]:
    store, items = await make_store(world.graph.table), list(_needed(world))
    for at in range(0, len(items), 250):
        await store.send(BatchWrite(tuple(items[at : at + 250])))
    return store, items


async def _differences(
    store: Store, world: World, items: list[Item], names: Iterable[str]
) -> dict[str, object]:
    """The operations of a world that cost other than the bound: requests by round trip, and what the meter says."""
    schema, known = schema_of(world.graph), Items(world.graph.table, items)
    asked = [each for each in OPERATIONS if each.name in names and each.world == world.name]
    assert asked
    found: dict[str, object] = {}
    for each in asked:
        rounds = RoundTrips(store)
        actual = await measured(schema, rounds, each.document, each.variables)
        least = bound(schema, known, each.document, each.variables)
        # The meter's word for it is not taken: what leaves together is seen, round by round.
        cost = ([len(round_) for round_ in rounds.rounds], actual.requests, actual.round_trips)
        wanted = ([level.requests for level in least.levels], least.requests, least.round_trips)
        if cost != wanted:
            found[each.name] = {"cost": cost, "bound": wanted}
    return found


@pytest.mark.parametrize("name", ["commerce", "cargo", "talent", "social"])
async def test_operations_cost_what_the_keys_allow(make_store: MakeStore, name: str) -> None:
    world = small_worlds()[name]
    store, items = await _filled(make_store, world)
    assert await _differences(store, world, items, _QUICK) == {}


@pytest.mark.parametrize("name", ["commerce", "talent", "social", "press"])
async def test_what_a_key_tells_or_has_come_is_not_read(make_store: MakeStore, name: str) -> None:
    world = small_worlds()[name]
    store, items = await _filled(make_store, world)
    assert await _differences(store, world, items, _ONCE) == {}


# --- The page -----------------------------------------------------------------------------------------


def test_the_page_is_of_these_operations() -> None:
    page = PAGE.read_text("utf-8")
    assert with_part(page, "printed plan", plan_text()) == page, f"{COMMAND} writes it anew"
    missing = [each.name for each in OPERATIONS if f"| {each.name} |" not in page]
    assert not missing, f"{COMMAND} writes them"
