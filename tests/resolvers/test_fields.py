"""What fields give: values of every kind, ends, the only neighbour, methods, what an index finds."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from keygraph import ID, Graph, Index, Table, node
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
