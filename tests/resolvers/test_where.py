"""`where`: every comparison, joined and not, on attributes, ends, and fields that stand in keys alone."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Many, Table, node, record, stored
from tests.conftest import in_one_world
from tests.resolvers.worlds import World, book_item, filled, loan_item, member_item

LOANS: dict[str, dict[str, Any]] = {
    "ann": {"pages": 10, "note": "torn", "rating": Decimal("4.5"), "medium": "paper", "words": {"a", "b"}},
    "bob": {"pages": 20, "note": "tear", "rating": Decimal("4.50001"), "medium": "audio", "words": {"b"}},
    "cyd": {"pages": 9, "note": "", "medium": "paper"},
    "dan": {"pages": None, "note": None, "rating": Decimal(-1), "medium": "audio"},
    "eve": {},
}
DAYS = {member: f"2024-01-0{number}" for number, member in enumerate(LOANS, 1)}


@pytest.fixture
async def lent(books: World) -> World:
    await books.put(book_item("b"), *(member_item(member) for member in LOANS))
    for member, fields in LOANS.items():
        stored = {
            name: Decimal(value) if isinstance(value, int) else frozenset(value) if name == "words" else value
            for name, value in fields.items()
        }
        await books.put(loan_item(member, "b", DAYS[member], **stored))
    return books


PATHS = """query ($where: LoanWhere) {
  book(bookId: "b") { loans(where: $where) { totalCount nodes { memberId } } }
  loans(branch: "main", where: $where) { totalCount nodes { member { memberId } } }
}"""


async def found(lent: World, where: Any) -> list[str]:
    """The members whose loans match, by one index and by another that is spread; the counts agree."""
    answer = await lent.ask(PATHS, where=where)
    ids = [node["memberId"] for node in answer["book"]["loans"]["nodes"]]
    assert answer["book"]["loans"]["totalCount"] == len(ids)
    assert [node["member"]["memberId"] for node in answer["loans"]["nodes"]] == ids
    assert answer["loans"]["totalCount"] == len(ids)
    return ids


@in_one_world(
    ("where", "wanted"),
    [
        ({"pages": {"eq": 10}}, ["ann"]),
        ({"pages": {"ne": 10}}, ["bob", "cyd", "dan", "eve"]),
        ({"pages": {"lt": 10}}, ["cyd"]),
        ({"pages": {"lte": 10}}, ["ann", "cyd"]),
        ({"pages": {"gt": 10}}, ["bob"]),
        ({"pages": {"gte": 10}}, ["ann", "bob"]),
        ({"pages": {"gt": 9, "lt": 20}}, ["ann"]),
        ({"pages": {"between": {"from": 9, "to": 10}}}, ["ann", "cyd"]),
        ({"pages": {"in": [9, 20, 21]}}, ["bob", "cyd"]),
        ({"pages": {"in": []}}, []),
        ({"pages": {"exists": True}}, ["ann", "bob", "cyd"]),
        ({"pages": {"exists": False}}, ["dan", "eve"]),
        ({"pages": {"eq": None}}, ["dan", "eve"]),
        ({"pages": {"ne": None}}, ["ann", "bob", "cyd"]),
        ({"note": {"eq": ""}}, ["cyd"]),
        ({"note": {"beginsWith": "te"}}, ["bob"]),
        ({"note": {"beginsWith": ""}}, ["ann", "bob", "cyd"]),
        ({"note": {"contains": "or"}}, ["ann"]),
        ({"note": {"gt": "tear"}}, ["ann"]),
        ({"rating": {"eq": "4.50"}}, ["ann"]),
        ({"rating": {"gt": "4.5"}}, ["bob"]),
        ({"rating": {"lt": 0}}, ["dan"]),
        ({"rating": {"between": {"from": "-1", "to": 4.5}}}, ["ann", "dan"]),
        ({"medium": {"eq": "AUDIO"}}, ["bob", "dan"]),
        ({"medium": {"in": ["PAPER", "AUDIO"]}}, ["ann", "bob", "cyd", "dan"]),
        ({"medium": {"ne": "AUDIO"}}, ["ann", "cyd", "eve"]),
        ({"words": {"contains": "b"}}, ["ann", "bob"]),
        ({"words": {"contains": "a"}}, ["ann"]),
        ({"words": {"exists": False}}, ["cyd", "dan", "eve"]),
        # an end, and a field that stands in the indexes' keys alone
        ({"memberId": {"in": ["ann", "eve", "zoe"]}}, ["ann", "eve"]),
        ({"memberId": {"beginsWith": "d"}}, ["dan"]),
        ({"day": {"eq": "2024-01-03"}}, ["cyd"]),
        ({"day": {"between": {"from": "2024-01-02", "to": "2024-01-04"}}}, ["bob", "cyd", "dan"]),
        ({"day": {"exists": True}}, ["ann", "bob", "cyd", "dan", "eve"]),
        ({"day": {"eq": None}}, []),
        ({"branch": {"eq": "main"}}, ["ann", "bob", "cyd", "dan", "eve"]),
        ({"branch": {"ne": "main"}}, []),
        # joined, and not
        (None, list(LOANS)),
        ({}, list(LOANS)),
        ({"pages": None}, list(LOANS)),
        ({"pages": {}}, list(LOANS)),
        ({"pages": {"gte": 10}, "medium": {"eq": "AUDIO"}}, ["bob"]),
        ({"and": [{"pages": {"gte": 10}}, {"pages": {"lt": 20}}]}, ["ann"]),
        ({"and": []}, list(LOANS)),
        ({"or": []}, list(LOANS)),
        ({"or": [{}]}, list(LOANS)),
        ({"or": [{}, {"pages": {"eq": 9}}]}, ["cyd"]),
        ({"not": {}}, list(LOANS)),
        ({"or": [{"pages": {"eq": 9}}, {"medium": {"eq": "AUDIO"}}]}, ["bob", "cyd", "dan"]),
        ({"not": {"medium": {"eq": "AUDIO"}}}, ["ann", "cyd", "eve"]),
        ({"not": {"not": {"medium": {"eq": "AUDIO"}}}}, ["bob", "dan"]),
        ({"not": {"or": [{"pages": {"eq": 9}}, {"day": {"eq": "2024-01-01"}}]}}, ["bob", "dan", "eve"]),
        ({"or": [{"day": {"lt": "2024-01-02"}}, {"pages": {"eq": 20}}]}, ["ann", "bob"]),
        ({"day": {"gt": "2024-01-01"}, "pages": {"exists": True}}, ["bob", "cyd"]),
        (
            {"and": [{"or": [{"pages": {"eq": 9}}, {"pages": {"eq": 10}}]}], "medium": {"eq": "PAPER"}},
            ["ann", "cyd"],
        ),
        ({"or": [{"and": [{"pages": {"in": []}}]}, {"pages": {"eq": 9}}]}, ["cyd"]),
        ({"not": {"pages": {"in": []}}}, list(LOANS)),
    ],
)
async def test_what_is_found(lent: World, where: Any, wanted: list[str]) -> None:
    assert await found(lent, where) == wanted


@in_one_world(
    "where",
    [
        {"pages": {"lt": None}},
        {"note": {"beginsWith": None}},
        {"words": {"contains": None}},
        {"pages": {"in": list(range(101))}},
        {"pages": {"between": {"from": 1}}},
        {"pages": {"between": {"from": 1, "to": None}}},
        {"pages": {"between": None}},
        {"pages": {"between": {"from": 10, "to": 9}}},
        {"day": {"between": {"from": "2024-02-01", "to": "2024-01-01"}}},
        {"rating": {"eq": "NaN"}},
        {"rating": {"eq": "Infinity"}},
        {"rating": {"eq": "1e200"}},
        {"rating": {"eq": "1" * 39}},
        {"rating": {"eq": True}},
        {"rating": {"eq": 1e300}},
        {"note": {"eq": "\ud800"}},
        {"pages": {"eq": 2**31}},
        {"medium": {"eq": "paper"}},
        {"pages": {"exists": None}},
        {"nothing": {"eq": 1}},
    ],
)
async def test_what_cannot_be_compared(lent: World, where: Any) -> None:
    lent.forget()
    assert set(await lent.codes(PATHS, where=where)) == {"BAD_USER_INPUT"}
    assert not {"Query", "Count"} & lent.operations.keys()


@in_one_world(
    "where",
    [
        "{rating: {eq: 1e300}}",
        '{rating: {eq: "1e999999999999999999"}}',
        "{rating: {eq: %s}}" % ("9" * 300),
        "{pages: {eq: %s}}" % ("9" * 300),
        '{day: {eq: "2024-02-30"}}',
        "{medium: {eq: PAPYRUS}}",
    ],
)
async def test_literals_that_cannot_be_compared(lent: World, where: str) -> None:
    document = '{ loans(branch: "main", where: WHERE) { totalCount } }'.replace("WHERE", where)
    assert set(await lent.codes(document)) == {"GRAPHQL_VALIDATION_FAILED"}
    assert lent.operations == {}


async def test_one_hundred_values(lent: World) -> None:
    assert await found(lent, {"pages": {"in": [*range(1000, 1099), 9]}}) == ["cyd"]
    assert await found(lent, {"memberId": {"in": [*map(str, range(99)), "bob"]}}) == ["bob"]


@pytest.mark.parametrize(
    ("where", "predicate"),
    [
        ({"pages": {"gte": 500}}, lambda number: number >= 500),
        ({"note": {"contains": "7"}}, lambda number: "7" in str(number)),
        ({"not": {"or": [{"pages": {"lt": 590}}, {"note": {"eq": "595"}}]}}, lambda n: n >= 590 and n != 595),
        ({"memberId": {"beginsWith": "m59"}}, lambda number: 590 <= number <= 599),
    ],
)
async def test_long_lists(books: World, where: Any, predicate: Callable[[int], bool]) -> None:
    items = [
        loan_item(f"m{number:03d}", "b", "2024-01-01", pages=Decimal(number), note=str(number))
        for number in range(600)
    ]
    await books.put(book_item("b"), *items)
    document = """query ($where: LoanWhere) { book(bookId: "b") {
      loans(first: 100, where: $where) { totalCount nodes { memberId } pageInfo { hasNextPage } } } }"""
    loans = (await books.ask(document, where=where))["book"]["loans"]
    wanted = [f"m{number:03d}" for number in range(600) if predicate(number)]
    # Their day is one, so that their order is the store's.
    ids = {node["memberId"] for node in loans["nodes"]}
    assert ids <= set(wanted)
    assert len(ids) == min(100, len(wanted))
    assert loans["totalCount"] == len(wanted)
    assert loans["pageInfo"]["hasNextPage"] is (len(wanted) > 100)


# --- Defaults -----------------------------------------------------------------------------------------


@node("HOTEL#{hotel_id}")
class Hotel:
    hotel_id: ID
    rooms: Many[Room]


@record("{hotel}", "ROOM#{number}")
class Room:
    hotel: Hotel
    number: int
    kind: str = "plain"
    is_smoking: bool = False
    beds: int = 2
    currency: str = stored("rate", "cur", default="EUR")
    words: list[str] = stored(default=["quiet"])


HOTELS = Graph(Table("Hotels", partition_key="PK", sort_key="SK"), Hotel, Room).check()
ROOMS: list[dict[str, Any]] = [
    {},
    {"kind": "suite", "is_smoking": True, "beds": Decimal(4), "rate": {"cur": "USD"}, "words": ["loud"]},
    {"kind": None, "is_smoking": None, "beds": None, "rate": {"cur": None}, "words": None},
    {"kind": "plain", "is_smoking": False, "beds": Decimal(2), "rate": {"cur": "EUR"}, "words": ["quiet"]},
]


hotels = filled(
    HOTELS,
    [
        {"PK": "HOTEL#1", "SK": "HOTEL#1"},
        *({"PK": "HOTEL#1", "SK": f"ROOM#{number}", **room} for number, room in enumerate(ROOMS)),
    ],
)


@in_one_world(
    ("where", "wanted"),
    [
        ({"kind": {"eq": "plain"}}, [0, 2, 3]),
        ({"kind": {"ne": "plain"}}, [1]),
        ({"kind": {"ne": "suite"}}, [0, 2, 3]),
        ({"kind": {"in": ["plain", "other"]}}, [0, 2, 3]),
        ({"kind": {"in": ["suite"]}}, [1]),
        ({"kind": {"beginsWith": "pl", "contains": "ain"}}, [0, 2, 3]),
        ({"kind": {"beginsWith": "pl", "contains": "suite"}}, []),
        ({"kind": {"exists": True}}, [0, 1, 2, 3]),
        ({"kind": {"exists": False}}, []),
        ({"kind": {"eq": None}}, []),
        ({"kind": {"ne": None}}, [0, 1, 2, 3]),
        ({"kind": {"exists": True, "ne": "plain"}}, [1]),
        ({"isSmoking": {"eq": False}}, [0, 2, 3]),
        ({"beds": {"lte": 2}}, [0, 2, 3]),
        ({"beds": {"gt": 2}}, [1]),
        ({"beds": {"between": {"from": 1, "to": 3}}}, [0, 2, 3]),
        ({"currency": {"eq": "EUR"}}, [0, 2, 3]),
        ({"currency": {"ne": "EUR"}}, [1]),
        ({"words": {"contains": "quiet"}}, [0, 2, 3]),
        ({"words": {"contains": "loud"}}, [1]),
        ({"not": {"kind": {"eq": "plain"}}}, [1]),
        ({"not": {"kind": {"exists": False}}}, [0, 1, 2, 3]),
        ({"or": [{"kind": {"eq": "suite"}}, {"isSmoking": {"eq": False}}]}, [0, 1, 2, 3]),
        ({"or": [{"kind": {"exists": False}}, {"beds": {"eq": 4}}]}, [1]),
        ({"and": [{"kind": {"eq": "plain"}}, {"not": {"currency": {"eq": "EUR"}}}]}, []),
    ],
)
async def test_a_missing_value_is_its_default(hotels: World, where: Any, wanted: list[int]) -> None:
    document = """query ($where: RoomWhere) {
      hotel(hotelId: "1") { rooms(where: $where) { totalCount nodes { number } } } }"""
    found = (await hotels.ask(document, where=where))["hotel"]["rooms"]
    assert [node["number"] for node in found["nodes"]] == wanted
    assert found["totalCount"] == len(wanted)
