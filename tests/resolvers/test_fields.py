"""What fields give: values of every kind, ends, the only neighbour, methods, what an index finds and projects."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, edge, many, node
from keygraph.dynamo.items import Item
from tests.conftest import MakeStore
from tests.resolvers.everything import everything
from tests.resolvers.worlds import World, world

SIZE = {"width": Decimal("120.5"), "height": Decimal(190), "depth": None}
FORMAT = {"size": SIZE, "pages": Decimal(320), "marks": ["novel", "history"]}
BOOK: Item = {
    "PK": "BOOK#1",
    "SK": "BOOK#1",
    "kind": "Book",
    "isbn": "1",
    "Isbn": "978-1",
    "title": "Ästhetik 📖",
    "genre": "history",
    "grade": Decimal(2),
    "published": "2024-01-15T10:30:00.250Z",
    "bought": "2024-02-29",
    "price": Decimal("12345678901234567890123456789012345.678"),
    "copies": Decimal(-(2**31)),
    "readTimes": Decimal(2**53 + 1),
    "weight": Decimal("0.1"),
    "isLent": False,
    "cover": b"\x00\xff",
    "words": ["b", "a", ""],
    "gaps": [Decimal(1), None, Decimal(3)],
    "colours": frozenset({"red", "blue"}),
    "format": FORMAT,
    "formats": [FORMAT],
    "extra": {
        "a": [Decimal(1), Decimal("1.5"), None, True],
        "b": frozenset({"y", "x"}),
        "c": b"\x01",
        "d": {},
    },
    "editorId": "ann",
    "GSI1PK": "GENRE#history",
    "GSI1SK": "2024-01-15T10:30:00.250Z#Ästhetik 📖",
    "GSI2PK": "BOOK",
    "GSI2SK": "2024-01-15T10:30:00.250Z",
}


def wrote(author: str, book: str, since: str, **attributes: Any) -> Item:
    return {
        "PK": f"AUTHOR#{author}",
        "SK": f"BOOK#{book}",
        "kind": "Wrote",
        "since": since,
        "GSI1PK": f"BOOK#{book}",
        "GSI1SK": f"AUTHOR#{author}",
        "GSI2PK": f"AUTHOR#{author}",
        "GSI2SK": since,
        **attributes,
    }


ITEMS: list[Item] = [
    BOOK,
    {"PK": "AUTHOR#ann", "SK": "AUTHOR#ann", "kind": "Author", "authorId": "ann", "name": "Ann"},
    wrote("ann", "1", "2024-01-15", share=Decimal("0.25"), translatorId="bob"),
    wrote("ann", "2", "2020-01-01"),
    {
        "PK": "NOTE#ann",
        "SK": "2024-03-01#007",
        "kind": "Note",
        "text": "n7",
        "GSI1PK": "NOTES",
        "GSI1SK": "2024-03-01",
    },
    {"PK": "NOTE#ann", "SK": "2024-03-01#012", "kind": "Note", "GSI1PK": "NOTES", "GSI1SK": "2024-03-01"},
    {"PK": "AUTHOR#ann", "SK": "HOME", "kind": "Home", "street": "Main Street"},
    {"PK": "BOOK#1", "SK": "PRICE#2024-01-01T00:00:00Z", "kind": "Price", "price": Decimal(5)},
    {"PK": "BOOK#1", "SK": "PRICE#2025-01-01T00:00:00Z", "kind": "Price", "price": Decimal(6)},
    {"PK": "BOOK#1#hall", "SK": "READ#2024-05-01#1", "kind": "Reading"},
    {"PK": "BOOK#1#hall", "SK": "READ#2024-05-01#2", "kind": "Reading"},
    {"PK": "BOOK#1", "SK": "COVER#red", "kind": "Cover", "gloss": True, "GSI1PK": "COVERS", "GSI1SK": "red"},
]


@pytest.fixture
async def all_kinds(make_store: MakeStore) -> World:
    made = world(everything, await make_store(everything.table))
    await made.put(*ITEMS)
    return made


async def test_values_of_every_kind(all_kinds: World) -> None:
    """A value would lose digits, characters or its kind on the way to a client."""
    size = "size { width height depth }"
    document = """{ book(isbn: "1") { isbn code title genre grade published bought price copies readTimes weight
      isLent cover words gaps colours format { pages marks %s } formats { %s } extra } }"""
    shown_size = {"width": 120.5, "height": 190.0, "depth": None}
    assert (await all_kinds.ask(document % (size, size)))["book"] == {
        "isbn": "1",
        "code": "978-1",
        "title": "Ästhetik 📖",
        "genre": "HISTORY",
        "grade": "HIGH",
        "published": "2024-01-15T10:30:00.250Z",
        "bought": "2024-02-29",
        "price": "12345678901234567890123456789012345.678",
        "copies": -(2**31),
        "readTimes": 2**53 + 1,
        "weight": 0.1,
        "isLent": False,
        "cover": "AP8=",
        "words": ["b", "a", ""],
        "gaps": [1, None, 3],
        "colours": ["blue", "red"],
        "format": {"pages": 320, "marks": ["NOVEL", "HISTORY"], "size": shown_size},
        "formats": [{"size": shown_size}],
        "extra": {"a": [1, 1.5, None, True], "b": ["x", "y"], "c": "AQ==", "d": {}},
    }


async def test_ends_and_edges(all_kinds: World) -> None:
    """An end would be missing, or an edge would show another edge's attributes."""
    document = """{
      book(isbn: "1") { editor { name } authors { edges { since share percent node { name } translator { authorId name } } } }
      author(authorId: "ann") { debut { since percent node { isbn title } } home { street author { authorId } } }
    }"""
    assert await all_kinds.ask(document) == {
        "book": {
            "editor": {"name": "Ann"},
            # Bob is named but has no item.
            "authors": {
                "edges": [
                    {
                        "since": "2024-01-15",
                        "share": "0.25",
                        "percent": "25 %",
                        "node": {"name": "Ann"},
                        "translator": None,
                    }
                ]
            },
        },
        "author": {
            "debut": {"since": "2020-01-01", "percent": "100 %", "node": None},
            "home": {"street": "Main Street", "author": {"authorId": "ann"}},
        },
    }


async def test_what_does_not_exist(all_kinds: World) -> None:
    """A node that is gone would be an error, or stand in the list as if it were there."""
    document = """{ author(authorId: "ann") { books { totalCount nodes { title } edges { node { title } since } } }
      keys: author(authorId: "ann") { books { nodes { isbn } } } }"""
    found = await all_kinds.ask(document)
    assert found["author"]["books"] == {
        "totalCount": 2,
        "nodes": [{"title": "Ästhetik 📖"}],
        "edges": [
            {"node": {"title": "Ästhetik 📖"}, "since": "2024-01-15"},
            {"node": None, "since": "2020-01-01"},
        ],
    }
    # Its key says nothing of its item.
    assert found["keys"]["books"]["nodes"] == [{"isbn": "1"}, {"isbn": "2"}]
    assert await all_kinds.ask(
        '{ book(isbn: "2") { isbn } author(authorId: "zed") { home { street } } }'
    ) == {
        "book": None,
        "author": None,
    }


async def test_one_neighbour(all_kinds: World) -> None:
    """Where there are several after all, another would come each time; where there is none, an error."""
    document = """{ book(isbn: "%s") { current { price since book { isbn } } coverStory { gloss node { name } } } }"""
    assert (await all_kinds.ask(document % "1"))["book"] == {
        "current": {"price": "5", "since": "2024-01-01T00:00:00Z", "book": {"isbn": "1"}},
        "coverStory": {"gloss": True, "node": {"name": "red"}},
    }
    await all_kinds.put(
        {**BOOK, "PK": "BOOK#3", "SK": "BOOK#3", "isbn": "3", "GSI1SK": "2024-01-15T10:30:00Z#x"}
    )
    assert (await all_kinds.ask(document % "3"))["book"] == {"current": None, "coverStory": None}


async def test_keys_of_several_fields(all_kinds: World) -> None:
    """A node whose key has an end and a number in it could not be asked for, or not again by its id."""
    document = (
        '{ note(authorId: "ann", day: "2024-03-01", number: %d) { id day number text author { name } } }'
    )
    note = (await all_kinds.ask(document % 7))["note"]
    assert note == {
        "id": note["id"],
        "day": "2024-03-01",
        "number": 7,
        "text": "n7",
        "author": {"name": "Ann"},
    }
    again = "query ($id: ID!) { node(id: $id) { __typename ... on Note { text } } }"
    assert (await all_kinds.ask(again, id=note["id"]))["node"] == {"__typename": "Note", "text": "n7"}
    assert (await all_kinds.ask(document % 8))["note"] is None
    assert await all_kinds.codes(document % -1) in ([], ["BAD_USER_INPUT"])
    lists = '{ author(authorId: "ann") { notes { nodes { number text } } } diary { nodes { number author { name } } } }'
    found = await all_kinds.ask(lists)
    assert found["author"]["notes"]["nodes"] == [{"number": 7, "text": "n7"}, {"number": 12, "text": None}]
    # They are of one day, so that their order there is the store's.
    assert sorted(node["number"] for node in found["diary"]["nodes"]) == [7, 12]


async def test_root_lists_and_finders(all_kinds: World) -> None:
    """What an index lists or finds would not be found, or be of another genre."""
    document = """{
      history: booksByGenre(genre: HISTORY, published: {from: "2024-01-15T00:00:00Z"}) { totalCount nodes { isbn } }
      novels: booksByGenre(genre: NOVEL) { nodes { isbn } }
      books { edges { node { title } } }
      found: bookByCode(code: "978-1") { isbn title }
      lost: bookByCode(code: "978-2") { isbn }
      covers { nodes { gloss book { title } shade { name } } }
      shade(name: "red") { name covers { edges { gloss node { title } } } }
    }"""
    assert await all_kinds.ask(document) == {
        "history": {"totalCount": 1, "nodes": [{"isbn": "1"}]},
        "novels": {"nodes": []},
        "books": {"edges": [{"node": {"title": "Ästhetik 📖"}}]},
        "found": {"isbn": "1", "title": "Ästhetik 📖"},
        "lost": None,
        "covers": {"nodes": [{"gloss": True, "book": {"title": "Ästhetik 📖"}, "shade": {"name": "red"}}]},
        "shade": {"name": "red", "covers": {"edges": [{"gloss": True, "node": {"title": "Ästhetik 📖"}}]}},
    }


async def test_methods(all_kinds: World) -> None:
    """A model's own method would not see its arguments, or the item that it needs."""
    document = """query ($end: String) { book(isbn: "1") { loudTitle reader { name }
      a: excerpt(length: 3) b: excerpt(length: 2, start: 1, end: $end) c: excerpt(length: 1, end: null) } }"""
    assert (await all_kinds.ask(document, end="…"))["book"] == {
        "loudTitle": "ÄSTHETIK 📖",
        "reader": {"name": "Ann"},
        "a": "Äst",
        "b": "st…",
        "c": "Ä",
    }
    await all_kinds.put({**BOOK, "editorId": "bob"})
    assert (await all_kinds.ask('{ book(isbn: "1") { reader { name } } }'))["book"] == {"reader": None}
    assert (await all_kinds.ask('{ book(isbn: "1") { reader { authorId } } }'))["book"] == {
        "reader": {"authorId": "bob"}
    }


async def test_readings_of_a_room(all_kinds: World) -> None:
    """An enum or a day in a sort key would not narrow the list."""
    document = """{ book(isbn: "1") { readings(room: "hall", %s) { nodes { room day grade } } } }"""
    high = await all_kinds.ask(document % 'day: {eq: "2024-05-01"}, grade: {eq: HIGH}')
    assert high["book"]["readings"]["nodes"] == [{"room": "hall", "day": "2024-05-01", "grade": "HIGH"}]
    both = await all_kinds.ask(document % 'day: {to: "2024-05-01"}')
    assert [node["grade"] for node in both["book"]["readings"]["nodes"]] == ["LOW", "HIGH"]


# --- Indexes that project less -------------------------------------------------------------------------

keys_only = Index("keys-only", "GSI1PK", "GSI1SK", projection="KEYS_ONLY")
some = Index("some", "GSI2PK", "GSI2SK", projection=["name"])


@node("CITY#{city_id}", keys_only("CITY", "{city_id}"), some("BY-NAME", "{name}", lists="cities_by_name"))
class City:
    city_id: ID
    name: str
    size: int


@node("TOWN#{town_id}")
class Town:
    town_id: ID

    roads_to: Many[Lane] = many()


@edge("LANE#{city.city_id}", "{town}", keys_only("{town}", "LANE#{city.city_id}"))
class Lane:
    city: City
    town: Town
    length: int


async def test_indexes_that_project_less(make_store: MakeStore) -> None:
    """What an index lacks would be missing, or be read where nobody asked for it."""
    graph = Graph(
        Table("Cities", partition_key="PK", sort_key="SK", indexes=[keys_only, some]),
        *(City, Town, Lane),
    )
    cities = world(graph, await make_store(graph.table))
    await cities.put(
        *(
            {
                "PK": f"CITY#{city}",
                "SK": f"CITY#{city}",
                "city_id": city,
                "name": f"N{city}",
                "size": Decimal(size),
                "GSI1PK": "CITY",
                "GSI1SK": city,
                "GSI2PK": "BY-NAME",
                "GSI2SK": f"N{city}",
            }
            for city, size in (("a", 1), ("b", 2))
        ),
        {"PK": "TOWN#t", "SK": "TOWN#t"},
        {"PK": "LANE#a", "SK": "TOWN#t", "length": Decimal(9), "GSI1PK": "TOWN#t", "GSI1SK": "LANE#a"},
    )
    assert await cities.ask("{ cities { nodes { cityId } } }") == {
        "cities": {"nodes": [{"cityId": "a"}, {"cityId": "b"}]}
    }
    assert cities.operations == {"Query": 1}
    cities.forget()
    assert await cities.ask("{ cities { nodes { name size } } }") == {
        "cities": {"nodes": [{"name": "Na", "size": 1}, {"name": "Nb", "size": 2}]}
    }
    assert cities.operations == {"Query": 1, "BatchGetItem": 1}
    cities.forget()
    by_name = await cities.ask("{ citiesByName { edges { node { name } } } }")
    assert [edge["node"] for edge in by_name["citiesByName"]["edges"]] == [{"name": "Na"}, {"name": "Nb"}]
    cities.forget()
    lanes = '{ town(townId: "t") { roadsTo { edges { %s node { name } } totalCount } } }'
    assert (await cities.ask(lanes % "length"))["town"]["roadsTo"] == {
        "edges": [{"length": 9, "node": {"name": "Na"}}],
        "totalCount": 1,
    }


@node("STOP#{stop_id}", keys_only("STOPS", "{stop_id}", lists="stops"))
class Stop:
    stop_id: ID
    name: str


async def test_the_index_does_not_say_the_type(make_store: MakeStore) -> None:
    """An item that says another type of itself would be answered as one of this type."""
    graph = Graph(
        Table("Stops", partition_key="PK", sort_key="SK", indexes=[keys_only]), Stop, type_attribute="kind"
    )
    stops = world(graph.check(), await make_store(graph.table))
    for number, kind in enumerate(("Stop", "Closed", "Stop")):
        key = {"PK": f"STOP#{number}", "SK": f"STOP#{number}", "GSI1PK": "STOPS", "GSI1SK": str(number)}
        await stops.put({**key, "kind": kind, "name": f"N{number}"})
    found = await stops.ask("{ stops { nodes { name } edges { node { name } } } }")
    names = [{"name": "N0"}, {"name": "N2"}]
    assert found == {"stops": {"nodes": names, "edges": [{"node": each} for each in names]}}


EVENTS = Index("ByTime", "Day", "At")


@node("EVENT#{event_id}", EVENTS("{place}", "{at}", lists="events"))
class Event:
    event_id: ID
    place: str
    at: datetime
    until: datetime | None
    """In no key."""


async def test_times_that_stand_in_keys_or_attributes(make_store: MakeStore) -> None:
    """An item would show the time of another one with the same key, or that of its key, which nobody updates."""
    graph = Graph(Table("Events", partition_key="PK", sort_key="SK", indexes=[EVENTS]), Event).check()
    events = world(graph, await make_store(graph.table))
    at, later, place = "2024-01-15T10:30:00Z", "2024-02-29T00:00:00Z", "p" * 300
    told: list[Item] = [{}, {"at": at}, {"at": later}, {"at": later, "until": at}]
    for of in ("here", place):
        items: list[Item] = [
            {"PK": f"EVENT#{of}{n}", "SK": f"EVENT#{of}{n}", "place": of, "Day": of, "At": at, **each}
            for n, each in enumerate(told)
        ]
        await events.put(*items)
        query = f'{{ events(place: "{of}") {{ nodes {{ eventId at until }} }} }}'
        for _ in range(2):
            found = (await events.ask(query))["events"]["nodes"]
            shown = {each["eventId"]: (each["at"], each["until"]) for each in found}
            assert shown == {
                f"{of}{n}": (each.get("at", at), each.get("until")) for n, each in enumerate(told)
            }


async def test_a_time_in_a_key_that_is_none(make_store: MakeStore) -> None:
    """One broken item would take the times of all others with it, or none would know which one it is."""
    graph = Graph(Table("Events", partition_key="PK", sort_key="SK", indexes=[EVENTS]), Event).check()
    events = world(graph, await make_store(graph.table))
    await events.put(
        {"PK": "EVENT#a", "SK": "EVENT#a", "place": "here", "Day": "here", "At": "2024-01-15T10:30:00Z"},
        {"PK": "EVENT#b", "SK": "EVENT#b", "place": "here", "Day": "here", "At": "x", "at": "soon"},
    )
    answer = await events.service.execute('{ events(place: "here") { edges { node { eventId at } } } }')
    assert answer["data"] == {
        "events": {"edges": [{"node": {"eventId": "a", "at": "2024-01-15T10:30:00Z"}}, {"node": None}]}
    }
    assert [error["path"] for error in answer["errors"]] == [["events", "edges", 1, "node", "at"]]
