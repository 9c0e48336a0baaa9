"""What fields give: values of every kind, ends, the only neighbour, methods, what an index finds and projects."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from keygraph import ID, Graph, Index, Many, Table, edge, many, node
from keygraph.dynamo.items import Item
from tests.conftest import MakeStore
from tests.resolvers.everything import everything
from tests.resolvers.worlds import World, filled, world

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

all_kinds = filled(everything, ITEMS)


async def test_values_of_every_kind(all_kinds: World) -> None:
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


async def test_root_lists_and_finders(all_kinds: World) -> None:
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


EVENTS = Index("ByTime", "Day", "At")


@node("EVENT#{event_id}", EVENTS("{place}", "{at}", lists="events"))
class Event:
    event_id: ID
    place: str
    at: datetime
    until: datetime | None
    """In no key."""


async def test_times_that_stand_in_keys_or_attributes(make_store: MakeStore) -> None:
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
