"""Lists of several types: one Query of one partition, and one page in the order of the keys."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from bench.bound.bound import bound
from bench.bound.items import Items
from keygraph import ID, Graph, Index, Table, many, node, read
from keygraph.dynamo.store import Query
from keygraph_resolvers import OperationRequest
from keygraph_resolvers.plan.explained import steps_json, steps_text
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.several_worlds import record_item, several, several_items, told_by_keys_alone
from tests.resolvers.worlds import World, filled, world
from tests.schemas import schema_of

lists = filled(
    several, [*several_items(), record_item("Message", "ann", "2024-02-01T10:00:00Z", expires=Decimal(1))]
)

without_types = filled(
    told_by_keys_alone,
    ({name: each for name, each in item.items() if name != "Type"} for item in several_items()),
)


ACTIVITY = """{ user(userId: "ann") { activity(ARGUMENTS) {
  edges { cursor node { __typename ... on Order { orderId } ... on Review { reviewId stars } } }
  nodes { ... on Order { orderId } ... on Review { reviewId } } totalCount pageInfo { hasNextPage }
} } }"""


def ids(found: list[dict[str, str]]) -> list[str]:
    return [each.get("orderId") or each["reviewId"] for each in found]


async def activity(asked: World, arguments: str) -> list[str]:
    found = (await asked.ask(ACTIVITY.replace("ARGUMENTS", arguments)))["user"]["activity"]
    assert ids(found["nodes"]) == ids([edge["node"] for edge in found["edges"]])
    return ids(found["nodes"])


async def test_one_page_has_all_types_in_the_order_of_the_keys(lists: World) -> None:
    found = (await lists.ask(ACTIVITY.replace("ARGUMENTS", "first: 6")))["user"]["activity"]
    assert ids(found["nodes"]) == ["o0", "o1", "o2", "o3", "r0", "r3"]
    assert found["edges"][4]["node"] == {"__typename": "Review", "reviewId": "r0", "stars": 0}
    assert found["totalCount"] == 8
    assert found["pageInfo"]["hasNextPage"]
    assert await activity(lists, "first: 3, direction: DESC") == ["r2", "r1", "r3"]
    assert await activity(lists, "last: 2") == ["r1", "r2"]


async def test_it_is_one_query_for_each_part_between_siblings(lists: World) -> None:
    lists.forget()
    await lists.ask('{ user(userId: "ann") { activity(first: 2) { nodes { __typename } } } }')
    [query] = [each for each in lists.tracer.requests if isinstance(each, Query)]
    assert query.index == "ByOwner"
    lists.forget()
    await lists.ask('{ user(userId: "ann") { things { nodes { __typename } } } }')
    assert lists.operations == {"GetItem": 1, "Query": 1}  # of drafts to messages; notes are behind those
    lists.forget()
    await lists.ask('{ user(userId: "ann") { activity { nodes { __typename } } } }')
    assert lists.operations == {"GetItem": 1, "Query": 2}  # around the likes
    lists.forget()
    await lists.ask('{ feed(day: "2024-01-01") { nodes { __typename } } }')
    assert lists.operations == {"Query": 3}  # the shards


async def test_types_and_conditions_choose(lists: World) -> None:
    await _types_and_conditions_choose(lists)
    assert await lists.codes('{ user(userId: "ann") { activity(types: []) { totalCount } } }') == [
        "BAD_USER_INPUT"
    ]
    lists.forget()
    await activity(lists, "types: [Review]")
    ranges = {str(each.range) for each in lists.tracer.requests if isinstance(each, Query)}
    assert ranges == {"Prefix(value='REVIEW#')"}


async def test_types_and_conditions_choose_where_keys_alone_tell_types(without_types: World) -> None:
    await _types_and_conditions_choose(without_types)


async def _types_and_conditions_choose(asked: World) -> None:
    assert await activity(asked, "types: [Review]") == ["r0", "r3", "r1", "r2"]
    reviews = ["r0", "r3", "r1", "r2"]
    assert await activity(asked, 'where: {order: {word: {eq: "a"}}}') == ["o0", "o2", *reviews]
    both = "where: {order: {total: {gte: 2}}, review: {stars: {eq: 0}}}"
    assert await activity(asked, both) == ["o2", "o3", "r0", "r3"]
    assert await activity(asked, "types: [Order], where: {order: {total: {gte: 2}}}") == ["o2", "o3"]
    counted = await asked.ask(f'{{ user(userId: "ann") {{ activity({both}) {{ totalCount }} }} }}')
    assert counted["user"]["activity"]["totalCount"] == 4


async def test_what_has_expired_is_not_counted_where_keys_alone_tell_types(without_types: World) -> None:
    expired = record_item("Message", "ann", "2024-02-01T10:00:00Z", expires=Decimal(1))
    await without_types.put({name: each for name, each in expired.items() if name != "Type"})
    for name in ("things", "neighbours"):
        fields = "totalCount aggregate { count } nodes { __typename }"
        found = await without_types.ask(f'{{ user(userId: "ann") {{ {name} {{ {fields} }} }} }}')
        listed = found["user"][name]
        assert listed["totalCount"] == listed["aggregate"]["count"] == len(listed["nodes"])


async def test_a_list_of_some_types_is_not_the_list_of_all(lists: World) -> None:
    alone = await lists.ask(
        '{ user(userId: "ann") { posted(first: 50) { totalCount nodes { __typename } } } }'
    )
    below = await lists.ask("""{ user(userId: "ann") { posted(types: [Photo], first: 50) { nodes { ... on Photo { user {
      posted { totalCount nodes { __typename } }
    } } } } } }""")
    assert {each["__typename"] for each in alone["user"]["posted"]["nodes"]} == {"Post", "Photo"}
    photos = below["user"]["posted"]["nodes"]
    assert photos
    assert [photo["user"]["posted"] for photo in photos] == [alone["user"]["posted"]] * len(photos)


async def test_the_store_filters_by_type(lists: World) -> None:
    lists.forget()
    await activity(lists, 'where: {order: {word: {eq: "a"}}}')
    filters = {str(each.filter) for each in lists.tracer.requests if isinstance(each, Query)}
    assert all("Order" in each and "Review" in each and "word" in each for each in filters)


async def test_cursors_hold_for_other_types_and_conditions(lists: World) -> None:
    found = (await lists.ask(ACTIVITY.replace("ARGUMENTS", "first: 2")))["user"]["activity"]
    after = f'after: "{found["edges"][1]["cursor"]}"'
    assert await activity(lists, f"first: 3, {after}") == ["o2", "o3", "r0"]
    assert await activity(lists, f"types: [Review, Order], first: 2, {after}") == ["o2", "o3"]
    assert await activity(lists, f"types: [Review], first: 2, {after}") == ["r0", "r3"]
    assert await activity(lists, f"direction: DESC, {after}") == ["o0"]


async def test_the_sort_key_narrows_where_the_types_have_nothing_in_common(lists: World) -> None:
    assert await activity(lists, 'sortKey: {beginsWith: "ORDER#2024-01-0"}') == ["o0", "o1", "o2", "o3"]
    assert await activity(lists, 'sortKey: {from: "ORDER#2024-01-03", to: "REVIEW#0"}') == [
        "o2",
        "o3",
        "r0",
        "r3",
    ]
    assert await activity(lists, 'sortKey: {eq: "REVIEW#1"}') == ["r1"]
    assert await activity(lists, 'sortKey: {from: "S"}') == []
    asked = '{ user(userId: "ann") { numbered(sortKey: {from: "1"}) { totalCount } } }'
    assert (await lists.ask(asked))["user"]["numbered"]["totalCount"] == 4
    many = '{ user(userId: "ann") { activity(sortKey: {from: "a", beginsWith: "b"}) { totalCount } } }'
    assert await lists.codes(many) == ["BAD_USER_INPUT"]


async def test_an_index_that_lacks_attributes_is_completed_by_type(lists: World) -> None:
    lists.forget()
    found = await lists.ask("{ latest(first: 4) { nodes { ... on Order { word } ... on Review { word } } } }")
    assert found["latest"]["nodes"] == [{"word": each} for each in "abab"]
    assert lists.operations == {"Query": 1}
    lists.forget()
    found = await lists.ask("{ latest(last: 4) { nodes { ... on Order { word } ... on Review { text } } } }")
    assert found["latest"]["nodes"][0] == {"text": "Text of r50"}
    assert lists.operations == {"Query": 1, "BatchGetItem": 1}


async def test_the_plan_shows_all_types(lists: World) -> None:
    explained = lists.service.explain(
        '{ user(userId: "ann") { activity(first: 2, where: {order: {total: {gt: 1}}}) { nodes { __typename } } } }'
    )
    text = steps_text(explained.steps)
    for shown in ("read list Order or Review", "REVIEW#", "total > 1"):
        assert shown in text
    [user] = steps_json(explained.steps)
    assert " or USER#{author.user_id} / REVIEW#{stars}" in user["steps"][0]["keys"]


LEAST = [
    '{ user(userId: "ann") { activity(types: [Review]) { nodes { ... on Review { stars } } } } }',
    '{ user(userId: "ann") { name posted { nodes { ... on Post { text } ... on Photo { url user { name } } } } } }',
    '{ order(orderId: "o2") { contents { nodes { ... on OrderItem { quantity product { title } } } } } }',
    '{ order(orderId: "o2") { contents { edges { node { ... on OrderItem { order { total } } } } totalCount } } }',
    '{ feed(day: "2024-01-01") { nodes { ... on Photo { user { name } } ... on Post { user { name } } } } }',
]


@in_one_world("document", LEAST)
async def test_it_takes_the_fewest_requests(lists: World, document: str) -> None:
    least = bound(schema_of(several), Items(several.table, several_items()), document)
    lists.forget()
    await lists.ask(document)
    assert sum(lists.operations.values()) == least.requests


async def test_each_type_is_aggregated_on_its_own(lists: World) -> None:
    document = """{ user(userId: "ann") { activity(first: 1, where: { review: { stars: { gte: 1 } } }) {
      totalCount aggregate { count order { count } review { count sum(field: STARS) groupBy(field: STARS) { key } } }
    } } }"""
    shown = (await lists.ask(ACTIVITY.replace("ARGUMENTS", "first: 100")))["user"]["activity"]["edges"]
    stars = [each["node"]["stars"] for each in shown if each["node"].get("stars")]
    orders = sum(each["node"]["__typename"] == "Order" for each in shown)
    answer = await lists.service.execute(OperationRequest(document, {}, with_cost=True))
    assert answer["data"]["user"]["activity"]["aggregate"] == {
        "count": orders + len(stars),
        "order": {"count": orders},
        "review": {
            "count": len(stars),
            "sum": str(sum(stars)),
            "groupBy": [
                {"key": key} for key in sorted({*stars}, key=lambda star: (-stars.count(star), str(star)))
            ],
        },
    }
    cost = answer["extensions"]["cost"]
    assert cost["actual"]["requests"] == 3  # the user, and both sides of what stands between the types
    for name in ("requests", "roundTrips", "items", "readUnits"):
        assert cost["actual"][name] <= cost["bound"][name], name


# --- What the viewer may not see ------------------------------------------------------------------------

by_time = Index("GSI1", "GSI1PK", "GSI1SK")


@node("POST#{post_id}", by_time("FEED", "{at}", lists=False), access=[read()])
class PublicPost:
    post_id: ID
    at: str


@node(
    "PHOTO#{photo_id}",
    by_time("FEED", "{at}", lists=False),
    access=[read(role="friend"), read(role="guest", fields=["photo_id"])],
)
class PrivatePhoto:
    photo_id: ID
    at: str


private = Graph(
    Table("Private", partition_key="PK", sort_key="SK", indexes=[by_time]),
    PublicPost,
    PrivatePhoto,
    type_attribute="type",
    lists={"feed": many(PublicPost | PrivatePhoto, index=by_time)},
)


async def test_a_type_that_is_hidden_is_absent(make_store: MakeStore) -> None:
    feed = world(private, await make_store(private.table))
    keys = {"POST#1": ("PublicPost", "1"), "PHOTO#2": ("PrivatePhoto", "2")}
    await feed.put(
        *(
            {"PK": key, "SK": key, "type": type_, "at": at, "GSI1PK": "FEED", "GSI1SK": at}
            for key, (type_, at) in keys.items()
        )
    )
    document = '{ feed(at: { from: "0" }) { nodes { __typename } } }'

    async def asked(*roles: str) -> Any:
        answer = await feed.service.execute(OperationRequest(document, viewer={"roles": [*roles]}))
        return answer["data"]["feed"] or answer["errors"][0]["extensions"]["code"]

    assert await asked("friend") == {"nodes": [{"__typename": "PublicPost"}, {"__typename": "PrivatePhoto"}]}
    assert await asked() == {"nodes": [{"__typename": "PublicPost"}]}
    assert await asked("guest") == "FORBIDDEN"
