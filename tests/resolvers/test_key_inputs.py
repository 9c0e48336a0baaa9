"""The keys of records in the inputs of mutations: keys with lossy formats, and with optional parts; and empty sets."""

from __future__ import annotations

import pytest
from graphql import GraphQLInputObjectType

from keygraph import ID, Format, Graph, Index, Many, Table, edge, node, record
from keygraph_resolvers import build_schema, check
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, world

# --- Lossy formats ------------------------------------------------------------------------------------


@node("REPO#{name:lower}", "REPO")
class Repo:
    name: ID

    issues: Many[Issue]
    stars: Many[Star]


@node("USER#{login:lower}", "USER")
class User:
    login: ID


@node("{repo}", "ISSUE#{number:04d}")
class Issue:
    repo: Repo
    number: int
    title: str

    comments: Many[Comment]


@record("{issue.repo}#{issue.number:04d}", "COMMENT#{at}")
class Comment:
    issue: Issue
    at: str
    text: str


@edge("{repo}", "STAR#{user.login:lower}")
class Star:
    repo: Repo
    user: User
    note: str | None


hub = check(
    Graph(
        Table("Hub", partition_key="PK", sort_key="SK"),
        *(Repo, User, Issue, Comment, Star),
        formats={"lower": Format(str.lower)},
        writes=True,
    )
)


@pytest.fixture
async def repos(make_store: MakeStore) -> World:
    made = world(hub, await make_store(hub.table))
    await made.ask(
        """mutation {
          book: createRepo(input: { name: "Book", issues: [{ number: 1, title: "Typo" }] }) { repo { name } }
          tea: createRepo(input: { name: "TEA" }) { repo { name } }
          ann: createUser(input: { login: "Ann" }) { user { login } }
          star: putStar(input: { repoName: "BOOK", userLogin: "ANN" }) { star { note } }
        }"""
    )
    return made


async def titles(repos: World) -> list[list[str]]:
    asked = '{ a: repo(name: "book") { ...Titles } b: repo(name: "tea") { ...Titles } }'
    found = await repos.ask(asked + " fragment Titles on Repo { issues { nodes { title } } }")
    return [[each["title"] for each in repo["issues"]["nodes"]] for repo in found.values()]


async def test_a_node_under_a_lossy_key_is_changed(repos: World) -> None:
    assert await titles(repos) == [["Typo"], []]
    answer = await repos.ask(
        'mutation { updateIssue(input: { repoName: "bOOk", number: 1, title: "Typos" }) '
        "{ issue { title repo { name } } } }"
    )
    assert answer["updateIssue"]["issue"] == {"title": "Typos", "repo": {"name": "Book"}}
    assert await titles(repos) == [["Typos"], []]
    answer = await repos.ask(
        'mutation { moveIssue(input: { repoName: "book", number: 1, to: { repoName: "Tea" } }) '
        "{ issue { title repo { name } } } }"
    )
    assert answer["moveIssue"]["issue"] == {"title": "Typos", "repo": {"name": "TEA"}}
    assert await titles(repos) == [[], ["Typos"]]
    answer = await repos.ask('mutation { deleteIssue(input: { repoName: "TEA", number: 1 }) { deletedId } }')
    assert answer["deleteIssue"]["deletedId"] == global_id(hub.types["Issue"], ("tea", "0001"))
    assert await titles(repos) == [[], []]


async def test_an_edge_between_lossy_keys_is_changed(repos: World) -> None:
    of_stars = '{ repo(name: "book") { stars { edges { note node { login } } } } }'
    key = 'repoName: "book", userLogin: "ANN"'
    answer = await repos.ask(
        f'mutation {{ updateStar(input: {{ {key}, note: "!" }}) {{ star {{ note }} }} }}'
    )
    assert answer["updateStar"]["star"] == {"note": "!"}
    found = await repos.ask(of_stars)
    assert found["repo"]["stars"]["edges"] == [{"note": "!", "node": {"login": "Ann"}}]
    await repos.ask(f"mutation {{ deleteStar(input: {{ {key} }}) {{ deletedId }} }}")
    assert (await repos.ask(of_stars))["repo"]["stars"]["edges"] == []


async def test_records_are_created_with_a_node_under_a_lossy_key(repos: World) -> None:
    answer = await repos.ask(
        'mutation { createIssue(input: { repoName: "TEA", number: 2, title: "Milk", '
        'comments: [{ at: "2024", text: "No." }] }) { issue { comments { nodes { text } } } } }'
    )
    assert answer["createIssue"]["issue"]["comments"]["nodes"] == [{"text": "No."}]


async def test_an_empty_key_is_refused_under_a_lossy_key(repos: World) -> None:
    mutation = 'mutation { deleteIssue(input: { repoName: "", number: 1 }) { deletedId } }'
    assert ("BAD_USER_INPUT", "name of Repo is empty, and part of its key") in await repos.errors(mutation)


# --- Optional parts -----------------------------------------------------------------------------------


@node("HOTEL#{hotel_id}")
class Hotel:
    hotel_id: ID

    rooms: Many[Room]


@node("{hotel}", "ROOM#{number:04d}#{wing?}")
class Room:
    hotel: Hotel
    number: int
    wing: str | None
    beds: int

    nights: Many[Night]


@record("NIGHT#{room.hotel.hotel_id}#{room.number}#{room.wing?}", "{day}")
class Night:
    room: Room
    day: str
    guest: str | None


hotels = check(
    Graph(Table("Hotels", partition_key="PK", sort_key="SK"), Hotel, Room, Night, separator="#", writes=True)
)

WITHOUT = ["", ", wing: null"]
"""The ways to name a room that is in no wing."""
IN_WING = ', wing: "B"'


@pytest.fixture
async def rooms(make_store: MakeStore) -> World:
    made = world(hotels, await make_store(hotels.table))
    for wing in ("", IN_WING):
        room = f"{{ hotelId: 1, number: 7, beds: 1{wing} }}"
        hotel = "hotel: upsertHotel(input: { hotelId: 1 }) { hotel { hotelId } }"
        await made.ask(f"mutation {{ {hotel} createRoom(input: {room}) {{ room {{ beds }} }} }}")
    return made


async def stored_rooms(rooms: World) -> list[tuple[int, str | None, int]]:
    found = await rooms.ask("{ hotel(hotelId: 1) { rooms { nodes { number wing beds } } } }")
    return [(each["number"], each["wing"], each["beds"]) for each in found["hotel"]["rooms"]["nodes"]]


@pytest.mark.parametrize("wing", WITHOUT)
async def test_a_node_without_an_optional_part_is_changed(rooms: World, wing: str) -> None:
    key = f"hotelId: 1, number: 7{wing}"
    answer = await rooms.ask(f"mutation {{ updateRoom(input: {{ {key}, beds: 3 }}) {{ room {{ wing }} }} }}")
    assert answer["updateRoom"]["room"] == {"wing": None}
    assert await stored_rooms(rooms) == [(7, None, 3), (7, "B", 1)]
    await rooms.ask(
        f"mutation {{ moveRoom(input: {{ {key}, to: {{ number: 8 }} }}) {{ room {{ number }} }} }}"
    )
    assert await stored_rooms(rooms) == [(7, "B", 1), (8, None, 3)]
    answer = await rooms.ask(
        f"mutation {{ deleteRoom(input: {{ hotelId: 1, number: 8{wing} }}) {{ deletedId }} }}"
    )
    assert answer["deleteRoom"]["deletedId"] == global_id(hotels.types["Room"], ("1", "0008", ""))
    assert await stored_rooms(rooms) == [(7, "B", 1)]


async def test_a_move_takes_an_optional_part_away(rooms: World) -> None:
    move = "mutation { moveRoom(input: { hotelId: 1, number: 7%s, to: { wing: %s } }) { room { wing } } }"
    taken = await rooms.errors(move % (IN_WING, "null"))
    assert taken == [("ALREADY_EXISTS", "There is already a Room with this key.")]
    assert (await rooms.ask(move % ("", '"C"')))["moveRoom"]["room"] == {"wing": "C"}
    assert (await rooms.ask(move % (IN_WING, "null")))["moveRoom"]["room"] == {"wing": None}
    assert await stored_rooms(rooms) == [(7, None, 1), (7, "C", 1)]


@pytest.mark.parametrize("wing", [*WITHOUT, IN_WING])
async def test_a_record_names_a_node_with_or_without_an_optional_part(rooms: World, wing: str) -> None:
    key = f'room: {{ hotelId: 1, number: 7{wing} }}, day: "Mon"'
    night = "night { guest room { wing } }"
    put = await rooms.ask(f"mutation {{ putNight(input: {{ {key} }}) {{ {night} }} }}")
    named = {"wing": "B" if wing == IN_WING else None}
    assert put["putNight"]["night"] == {"guest": None, "room": named}
    changed = await rooms.ask(f'mutation {{ updateNight(input: {{ {key}, guest: "Ann" }}) {{ {night} }} }}')
    assert changed["updateNight"]["night"] == {"guest": "Ann", "room": named}
    of_nights = f"{{ room(hotelId: 1, number: 7{wing}) {{ nights {{ nodes {{ day guest }} }} }} }}"
    assert (await rooms.ask(of_nights))["room"]["nights"]["nodes"] == [{"day": "Mon", "guest": "Ann"}]
    await rooms.ask(f"mutation {{ deleteNight(input: {{ {key} }}) {{ deletedId }} }}")
    assert (await rooms.ask(of_nights))["room"]["nights"]["nodes"] == []


@pytest.mark.parametrize(
    "mutation",
    [
        'createRoom(input: { hotelId: 1, number: 9, beds: 1, wing: "" }) { room { beds } }',
        'upsertRoom(input: { hotelId: 1, number: 7, beds: 1, wing: "" }) { room { beds } }',
        'updateRoom(input: { hotelId: 1, number: 7, beds: 1, wing: "" }) { room { beds } }',
        'moveRoom(input: { hotelId: 1, number: 7, wing: "B", to: { wing: "" } }) { room { beds } }',
        'deleteRoom(input: { hotelId: 1, number: 7, wing: "" }) { deletedId }',
    ],
)
async def test_an_empty_text_is_no_absent_part(rooms: World, mutation: str) -> None:
    before = await stored_rooms(rooms)
    assert await rooms.errors(f"mutation {{ {mutation} }}") == [
        ("BAD_USER_INPUT", "wing of Room is empty, and part of its key")
    ]
    assert await stored_rooms(rooms) == before


def test_what_a_key_input_requires() -> None:
    types = build_schema(hotels)._schema.type_map
    required = {}
    for name in ("CreateRoomInput", "UpdateRoomInput", "MoveRoomInput", "DeleteRoomInput", "RoomKey"):
        type_ = types[name]
        assert isinstance(type_, GraphQLInputObjectType)
        required[name] = {
            each: str(field.type) for each, field in type_.fields.items() if str(field.type).endswith("!")
        }
    key = {"hotelId": "ID!", "number": "Int!"}
    assert required == {
        "CreateRoomInput": {**key, "beds": "Int!"},
        "UpdateRoomInput": {},
        "MoveRoomInput": {"to": "MoveRoomToInput!"},
        "DeleteRoomInput": {"onEdges": "OnEdges!"},
        "RoomKey": key,
    }
    room_key = types["RoomKey"]
    assert isinstance(room_key, GraphQLInputObjectType)
    assert room_key.fields["wing"].description == "The wing. If omitted or null, the key without this part."


# --- Optional parts of an index -----------------------------------------------------------------------

by_name = Index("by-name", "NamePK", "NameSK")


@node("GUEST#{guest_id}", by_name("GUEST", "{last_name:upper}.{first_name?}.{guest_id}", lists="guests"))
class Guest:
    guest_id: ID
    last_name: str
    first_name: str | None


guests = check(
    Graph(
        Table("Guests", partition_key="PK", sort_key="SK", indexes=[by_name]),
        Guest,
        formats={"upper": Format(str.upper)},
        writes=True,
    )
)


async def test_only_the_empty_part_of_an_index_is_named(make_store: MakeStore) -> None:
    made = world(guests, await make_store(guests.table))
    create = 'mutation { createGuest(input: { guestId: 1, lastName: "Doe", firstName: "" }) { guest { lastName } } }'
    [error] = (await made.service.execute(create))["errors"]
    assert error["message"] == "firstName of Guest is empty, and part of its key in by-name"
    assert error["extensions"]["path"] == ["input", "firstName"]


# --- Sets ---------------------------------------------------------------------------------------------


@node("BOX#{box_id}")
class Box:
    box_id: ID
    tags: set[str] | None


boxes = check(Graph(Table("Boxes", partition_key="PK", sort_key="SK"), Box, writes=True))


@pytest.mark.parametrize("action", ["create", "update"])
async def test_an_empty_set_is_refused_at_its_field(make_store: MakeStore, action: str) -> None:
    made = world(boxes, await make_store(boxes.table))
    write = f"mutation {{ {action}Box(input: {{ boxId: 1, tags: [] }}) {{ box {{ tags }} }} }}"
    [error] = (await made.service.execute(write))["errors"]
    assert error["message"] == "tags cannot be stored: it is an empty set."
    assert error["extensions"]["path"] == ["input", "tags"]
