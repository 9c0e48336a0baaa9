"""Values that a key does not hold as they are: with the separator in them, absent from an optional part, left over."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from keygraph import ID, Format, Graph, Index, Many, Table, edge, field, many, node, record, stored
from keygraph.dynamo.items import Item
from keygraph.tables.item_keys import ItemKeys
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.worlds import World, filled, world
from tests.verified import verified

by_place = Index("ByPlace", "Country", "Place")
by_email = Index("ByEmail", "EmailPK", "EmailSK")


async def findings(world: World) -> list[str]:
    report = await verified(world.graph, world.tracer.store, segments=1)
    return [f"{kind.type}: {kind.what}" for kind, _ in report.ordered()]


# --- The separator in a value -------------------------------------------------------------------------


@node("STORE#{store_id}", by_place("{country}", "{state}#{city}#{postcode}", lists="stores"))
class Shop:
    store_id: ID
    country: str
    state: str
    city: str
    postcode: str


@node("CITY#{name}")
class City:
    name: ID
    streets: Many[Street] = many()


@record("STREETS", "{city.name}#{street}")
class Street:
    city: City = stored("town")
    street: str


SHOPS = Graph(Table("Shops", partition_key="PK", sort_key="SK", indexes=[by_place]), Shop, City, Street)


def shop(number: int, state: str, city: str, postcode: str) -> Item:
    return {
        "PK": f"STORE#{number}",
        "SK": f"STORE#{number}",
        "country": "UAE",
        "state": state,
        "city": city,
        "postcode": postcode,
        "Country": "UAE",
        "Place": f"{state}#{city}#{postcode}",
    }


shops = filled(
    SHOPS,
    [
        shop(1, "DU", "Dubai", "100"),
        shop(2, "DU", "Dubai#Marina", "200"),
        shop(3, "DU", "Dubai Hills", "300"),
        shop(4, "DU#X", "Dubai", "400"),
        *(
            {"PK": "STREETS", "SK": f"{city}#{street}", "town": city, "street": street}
            for city, street in (("Dubai", "A"), ("Dubai#Marina", "B"), ("Dubai", "C#D"))
        ),
    ],
)


async def test_a_value_that_no_key_can_hold_is_refused(shops: World) -> None:
    query = '{ stores(country: "UAE", state: {eq: "DU"}, city: {eq: "Dubai#Marina"}) { nodes { storeId } } }'
    [(code, message)] = await shops.errors(query)
    assert (code, message.partition(":")[0]) == ("BAD_USER_INPUT", "city")
    # The last part of a key may hold anything.
    assert await shops.ask(
        '{ stores(country: "UAE", state: {eq: "DU"}, city: {eq: "Dubai"}, postcode: {eq: "1#2"}) { totalCount } }'
    ) == {"stores": {"totalCount": 0}}


async def test_lists_of_a_node_are_checked_too(shops: World) -> None:
    streets = await shops.ask('{ city(name: "Dubai") { streets { totalCount nodes { street } } } }')
    assert streets == {"city": None}
    await shops.put(
        {"PK": "CITY#Dubai", "SK": "CITY#Dubai"}, {"PK": "CITY#Dubai#Marina", "SK": "CITY#Dubai#Marina"}
    )
    for name, wanted in (("Dubai", ["A", "C#D"]), ("Dubai#Marina", ["B"])):
        answer = await shops.ask(
            "query ($name: ID!) { city(name: $name) { streets { totalCount nodes { street } } } }", name=name
        )
        assert answer["city"]["streets"] == {
            "totalCount": len(wanted),
            "nodes": [{"street": street} for street in wanted],
        }


async def test_the_bound_holds_where_others_are_read_too(shops: World) -> None:
    await shops.put(
        {"PK": "CITY#Dubai", "SK": "CITY#Dubai"},
        *(
            {"PK": "STREETS", "SK": f"Dubai#{number:04d}", "town": "Dubai#x", "street": "A"}
            for number in range(400)
        ),
    )
    answer = await shops.service.execute(
        OperationRequest('{ city(name: "Dubai") { streets(first: 2) { nodes { street } } } }', with_cost=True)
    )
    assert answer["data"] == {"city": {"streets": {"nodes": [{"street": "A"}, {"street": "C#D"}]}}}
    cost = answer["extensions"]["cost"]
    for name in ("requests", "roundTrips", "items"):
        assert cost["actual"][name] <= cost["bound"][name]


async def test_verify_names_items_whose_keys_are_read_otherwise(shops: World) -> None:
    assert await findings(shops) == [
        "Shop: ByPlace: Place is read back with another city and postcode: a value contains the text between them",
        "Shop: ByPlace: Place is read back with another state and city and postcode: a value contains the text between them",
        "Street: SK is read back with another city_name and street: a value contains the text between them",
        "Street: city points to a missing City",
    ]


async def test_the_last_character_is_refused(shops: World) -> None:
    last = "\U0010ffff"
    query = "query ($country: String!, $state: String!) { stores(country: $country, state: {eq: $state}) { totalCount } }"
    assert await shops.codes("query ($id: ID!) { shop(storeId: $id) { city } }", id=last) == [
        "BAD_USER_INPUT"
    ]
    assert await shops.codes(query, country=last, state="x") == ["BAD_USER_INPUT"]
    assert await shops.codes(query, country="x", state=f"{last}{last}x") == ["BAD_USER_INPUT"]
    await shops.put({"PK": "STREETS", "SK": f"{last}{last}#A", "town": last * 2, "street": "A"})
    assert "Street: SK has the character U+10FFFF, which ends ranges of keys" in await findings(shops)


# --- Methods in keys of indexes -----------------------------------------------------------------------


@node("ORDER#{order_id}", by_place("{state_key}", "{state_key}#{order_id}", lists="orders_in"))
class Order:
    order_id: ID
    state: str
    month: str

    @field(needs=("state", "month"))
    def state_key(self) -> str:
        return f"{self.state}#{self.month}"


def test_the_text_of_a_method_may_hold_the_separator() -> None:
    graph = Graph(SHOPS.table, Order).check()
    order = graph.types["Order"]
    texts = {"state_key": "OPEN#05", "order_id": "7"}
    assert graph.render(order, order.keys["ByPlace"], 1, texts) == "OPEN#05#7"
    item: Item = {"PK": "ORDER#7", "SK": "ORDER#7", "Country": "OPEN#05", "Place": "OPEN#05#7"}
    told = {**item, "order_id": "7", "state": "OPEN", "month": "05"}
    assert list(ItemKeys(order).problems(told)) == []
    assert ItemKeys(order).misread(told) is None


# --- Ends whose key can be read in several ways --------------------------------------------------------


@node("ROOM#{floor}#{name}", item=False)
class Room:
    floor: ID
    name: ID


@record("BOOKINGS", "{number:03d}#{room}")
class Booking:
    number: int
    room: Room = stored(floor="floor", name="room")


async def test_an_end_is_the_node_that_its_attributes_say(make_store: MakeStore) -> None:
    graph = Graph(Table("Rooms", partition_key="PK", sort_key="SK"), Room, Booking).check()
    made = world(graph, await make_store(graph.table))
    rooms = [("a", "b#c"), ("a#b", "c")]
    for number, (floor, name) in enumerate(rooms):
        key = {"PK": "BOOKINGS", "SK": f"{number:03d}#ROOM#a#b#c"}
        await made.put({**key, "floor": floor, "room": name})
    answer = await made.service.execute("{ bookings { nodes { room { floor name } } } }")
    # No key is that of the second one: it would be read as that of the first.
    assert answer["data"]["bookings"]["nodes"] == [{"room": {"floor": "a", "name": "b#c"}}, {"room": None}]
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["CORRUPT_ITEM"]


# --- Optional parts -----------------------------------------------------------------------------------

by_day = Index("ByDay", "DayPK", "DaySK")
by_version = Index("ByVersion", "VersionPK", "VersionSK")


@node(
    "DOC#{doc_id}",
    "V{version?}",
    by_version("DOCS", "{version?}", lists="by_version"),
)
class Document:
    doc_id: ID
    version: int | None
    reviews: Many[Review] = many()


@record(
    "DOC#{document.doc_id}",
    "REVIEW#V{document.version?}#{review_id}",
    by_day("DAYS", "{desk?}#{day}", lists="on_days"),
)
class Review:
    document: Document
    review_id: ID
    desk: str | None
    day: date
    other: Document | None


@edge("{one}", "TO#{two}")
class Link:
    one: Desk
    two: Desk


@node("DESK#{name}#{room?}")
class Desk:
    name: ID
    room: str | None
    links: Many[Link] = many(at="one")


DOCUMENTS = Graph(
    Table("Documents", partition_key="PK", sort_key="SK", indexes=[by_day, by_version]),
    Document,
    Review,
    Desk,
    Link,
)


def review(document: str, version: str, number: int, desk: str = "", **fields: Any) -> Item:
    item: Item = {
        "PK": f"DOC#{document}",
        "SK": f"REVIEW#V{version}#{number}",
        "day": f"2024-01-0{number}",
        "DayPK": "DAYS",
        "DaySK": f"{desk}#2024-01-0{number}",
        **fields,
    }
    return {**item, "desk": desk} if desk else item


documents = filled(
    DOCUMENTS,
    [
        {"PK": "DOC#1", "SK": "V"},
        {"PK": "DOC#1", "SK": "V2", "VersionPK": "DOCS", "VersionSK": "2"},
        review("1", "", 1, other_doc_id="1"),
        review("1", "2", 2, desk="north"),
        review("1", "2", 3),
        review("1", "", 4, desk="#2"),
        {"PK": "DESK#a#", "SK": "DESK#a#"},
        {"PK": "DESK#a#7", "SK": "DESK#a#7"},
        {"PK": "DESK#a#", "SK": "TO#DESK#a#7"},
    ],
)


async def test_a_node_is_asked_for_without_its_optional_part(documents: World) -> None:
    query = """query ($version: Int) {
      document(docId: "1", version: $version) { id version reviews { totalCount nodes { reviewId } } }
    }"""
    first = (await documents.ask(query))["document"]
    assert (await documents.ask(query, version=None))["document"] == first
    assert first["version"] is None
    assert first["reviews"] == {"totalCount": 2, "nodes": [{"reviewId": "1"}, {"reviewId": "4"}]}
    second = (await documents.ask(query, version=2))["document"]
    assert second["reviews"] == {"totalCount": 2, "nodes": [{"reviewId": "2"}, {"reviewId": "3"}]}
    again = await documents.ask(
        "query ($id: ID!) { node(id: $id) { ... on Document { version } } }", id=first["id"]
    )
    assert again == {"node": {"version": None}}


@in_one_world(
    ("desk", "wanted"),
    [
        ("", ["1", "4", "3", "2"]),
        ("desk: {eq: null}", ["1", "3"]),
        ("desk: null", ["1", "3"]),
        ('desk: {eq: null}, day: {from: "2024-01-02"}', ["3"]),
        ('desk: {eq: "north"}', ["2"]),
        ('desk: {eq: "north"}, day: {eq: "2024-01-01"}', []),
        ('desk: {from: "a"}', ["2"]),
    ],
)
async def test_null_asks_for_the_absent_part(documents: World, desk: str, wanted: list[str]) -> None:
    arguments = f"({desk})" if desk else ""
    answer = await documents.ask(f"{{ onDays{arguments} {{ totalCount nodes {{ reviewId }} }} }}")
    assert sorted(each["reviewId"] for each in answer["onDays"]["nodes"]) == sorted(wanted)
    assert answer["onDays"]["totalCount"] == len(wanted)


async def test_no_key_is_without_all_of_it(documents: World) -> None:
    found = await documents.ask(
        "{ all: byVersion { totalCount } none: byVersion(version: null) { totalCount nodes { version } } }"
    )
    assert found == {"all": {"totalCount": 1}, "none": {"totalCount": 0, "nodes": []}}


@pytest.mark.parametrize(
    "arguments", ["day: {eq: null}", 'desk: {eq: null, from: "a"}', "day: {eq: null}, desk: null"]
)
async def test_null_is_not_ignored(documents: World, arguments: str) -> None:
    assert await documents.codes(f"{{ onDays({arguments}) {{ totalCount }} }}") == ["BAD_USER_INPUT"]


async def test_ends_without_an_optional_part(documents: World) -> None:
    answer = await documents.ask(
        "{ onDays(desk: null, first: 1) { nodes { document { docId version id } other { id version } } } }"
    )
    [first] = answer["onDays"]["nodes"]
    assert first["document"]["version"] is None
    assert first["other"]["id"] == first["document"]["id"]
    links = await documents.ask('{ desk(name: "a") { links { edges { node { room } } } } }')
    assert links == {"desk": {"links": {"edges": [{"node": {"room": "7"}}]}}}
    to = (await documents.ask('{ desk(name: "a", room: "7") { id } }'))["desk"]["id"]
    named = await documents.ask(
        'query ($to: [ID!]) { desk(name: "a") { links(to: $to) { edges { node { name } } } } }', to=[to]
    )
    assert named == {"desk": {"links": {"edges": [{"node": {"name": "a"}}]}}}


async def test_verify_misses_no_end_that_is_there(documents: World) -> None:
    assert await findings(documents) == []


@record("TOURS", "{number:03d}", by_day("TOURS", "{guide?:lower}#{place:lower}#{note}", lists="by_guide"))
class Tour:
    number: int
    guide: str | None
    place: str
    note: str


async def test_an_absent_part_is_what_the_item_says(make_store: MakeStore) -> None:
    table = Table("Tours", partition_key="PK", sort_key="SK", indexes=[by_day])
    made = world(Graph(table, Tour, formats={"lower": Format(str.lower)}).check(), await make_store(table))
    for number, note in enumerate(("b", "b#c#d")):
        item: Item = {"PK": "TOURS", "SK": f"{number:03d}", "place": "A", "note": note}
        await made.put({**item, "DayPK": "TOURS", "DaySK": f"#a#{note}"})
    found = await made.ask("{ byGuide(guide: {eq: null}) { totalCount nodes { number } } }")
    assert found == {"byGuide": {"totalCount": 2, "nodes": [{"number": 0}, {"number": 1}]}}


# --- Leftovers in indexes -----------------------------------------------------------------------------


@node("USER#{user_id}", by_email("MAIL#{email}", "{joined}#{nick}", finds="user_by_email"))
class User:
    user_id: ID
    email: str | None
    joined: date
    nick: str | None = stored(in_key=True)


USERS = Graph(
    Table("Users", partition_key="PK", sort_key="SK", indexes=[by_email]), User, attribute_case="camel"
)


@pytest.fixture
async def users(make_store: MakeStore) -> World:
    made = world(USERS.check(), await make_store(USERS.table))
    for name, email, index_email in (
        ("ann", "a@x", "a@x"),
        ("bob", None, "undefined"),
        ("cyd", None, "old@x"),
    ):
        item: Item = {
            "PK": f"USER#{name}",
            "SK": f"USER#{name}",
            "userId": name,
            "EmailPK": f"MAIL#{index_email}",
            "EmailSK": f"2024-01-01#{name}!",
        }
        await made.put({**item, "email": email} if email else item)
    return made


async def test_verify_names_leftovers(users: World) -> None:
    advice = "declare it with stored(in_key=True) if only the key has it"
    assert await findings(users) == [
        f"User: ByEmail: EmailPK has a value for email, which the item lacks: {advice}",
        "User: ByEmail: EmailPK has undefined for email: is it a leftover?",
    ]
