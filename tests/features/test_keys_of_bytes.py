"""Ranges and `beginsWith` on sort keys of bytes, alone or beside other text: bytes sort unsigned, one by one."""

from __future__ import annotations

import base64
from collections.abc import Callable
from itertools import product

import pytest

from keygraph import ID, Format, Graph, Index, Many, Table, many, node, record
from keygraph.dynamo.items import Item
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.worlds import World, filled, world

by_hash = Index("by-hash", "HashPK", ("Hash", "B"))


@node("FEED#{feed_id}", "#")
class Feed:
    feed_id: ID

    events: Many[Event] = many()
    chunks: Many[Chunk] = many()
    all: Many[Event | Chunk] = many()


@record("{feed}", "e{at}", by_hash("HASHES", "{digest}", lists="by_digest"))
class Event:
    feed: Feed
    at: bytes
    digest: bytes


@record("{feed}", "n{name}#{part}")
class Chunk:
    feed: Feed
    name: bytes
    part: int


graph = Graph(
    Table("Feeds", partition_key="PK", sort_key=("SK", "B"), indexes=[by_hash]), Feed, Event, Chunk
).check()

VALUES = [b"\0", b"\0\xff", b"#", b"a", b"a\0", b"a\x7f", b"a\x80", b"a\xff", b"a\xff\xff", b"ab", b"b"]
VALUES += [b"\xc3\xa9", b"\xff"]
NAMES = [b"a", b"a#", b"a\x80", b"b"]
ITEMS: list[Item] = [
    {"PK": "FEED#1", "SK": b"#"},
    {"PK": "FEED#1", "SK": b"f", "by": "another program"},
    *({"PK": "FEED#1", "SK": b"e" + each, "HashPK": "HASHES", "Hash": each[::-1]} for each in VALUES),
    *({"PK": "FEED#1", "SK": b"n%b#%d" % each} for each in product(NAMES, (2, 10))),
]
BOUNDS = [b"\0", b"a", b"a\x80", b"a\xff", b"b", b"\xff", b"\xff\xff", b"a\0\0"]


def text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def ranges() -> list[tuple[dict[str, bytes], Callable[[bytes], bool]]]:
    """What a client can ask of such a key, and what Python finds."""
    made: list[tuple[dict[str, bytes], Callable[[bytes], bool]]] = []
    for bound in BOUNDS:
        made += [
            ({"eq": bound}, bound.__eq__),
            ({"from": bound}, bound.__le__),
            ({"to": bound}, bound.__ge__),
            ({"beginsWith": bound}, lambda each, it=bound: each.startswith(it)),
        ]
    made += [
        ({"from": low, "to": high}, lambda each, low=low, high=high: low <= each <= high)
        for low, high in product(BOUNDS[:4], BOUNDS[2:7:2])
    ]
    return made


feeds = filled(graph, ITEMS)


QUERIES = {
    "query ($range: Base64Range, $first: Int, $after: String, $direction: SortDirection) { feed(feedId: 1) {"
    " found: events(at: $range, first: $first, after: $after, direction: $direction) {"
    " totalCount nodes { value: at } pageInfo { endCursor hasNextPage } } } }": VALUES,
    "query ($range: Base64Range, $first: Int, $after: String, $direction: SortDirection) {"
    " found: byDigest(digest: $range, first: $first, after: $after, direction: $direction) {"
    " totalCount nodes { value: digest } pageInfo { endCursor hasNextPage } } }": [
        each[::-1] for each in VALUES
    ],
}


@pytest.mark.parametrize("query", QUERIES)
async def test_ranges_of_bytes(feeds: World, query: str) -> None:
    for range_, is_wanted in ranges():
        wanted = [text(each) for each in sorted(QUERIES[query]) if is_wanted(each)]
        for direction, first in (("ASC", 50), ("DESC", 3)):
            found: list[str] = []
            after = None
            while True:
                said = {operator: text(bound) for operator, bound in range_.items()}
                answer = await feeds.ask(query, range=said, first=first, after=after, direction=direction)
                page = answer.get("feed", answer)["found"]
                assert page["totalCount"] == len(wanted), range_
                found += [each["value"] for each in page["nodes"]]
                after = page["pageInfo"]["endCursor"]
                if not page["pageInfo"]["hasNextPage"]:
                    break
            assert (found if direction == "ASC" else found[::-1]) == wanted, range_


@in_one_world(
    ("arguments", "wanted"),
    [
        ('name: {eq: "YQ=="}', [b"a#10", b"a#2"]),
        ('name: {from: "YQ==", to: "YSM="}', [b"a##10", b"a##2", b"a#10", b"a#2"]),
        ('name: {from: "YYA="}', [b"a\x80#10", b"a\x80#2", b"b#10", b"b#2"]),
        ('name: {beginsWith: "YQ=="}', [b"a##10", b"a##2", b"a#10", b"a#2", b"a\x80#10", b"a\x80#2"]),
        ('name: {eq: "YYA="}, part: {eq: 2}', [b"a\x80#2"]),
    ],
)
async def test_bytes_before_other_text(feeds: World, arguments: str, wanted: list[bytes]) -> None:
    asked = f"{{ feed(feedId: 1) {{ chunks({arguments}) {{ totalCount nodes {{ name part }} }} }} }}"
    found = (await feeds.ask(asked))["feed"]["chunks"]
    shown = [b"%b#%d" % (base64.b64decode(each["name"]), each["part"]) for each in found["nodes"]]
    assert (shown, found["totalCount"]) == (wanted, len(wanted))


@pytest.mark.parametrize(
    ("range_", "wanted"),
    [
        ({"beginsWith": b"ea\xff"}, [b"a\xff", b"a\xff\xff"]),
        ({"from": b"e\xc3", "to": b"na#2"}, [b"\xc3\xa9", b"\xff", b"a#10", b"a#2", b"a##10", b"a##2"]),
        ({"to": b"e#"}, [b"\0", b"\0\xff", b"#"]),
    ],
)
async def test_the_whole_key_of_several_types(
    feeds: World, range_: dict[str, bytes], wanted: list[bytes]
) -> None:
    query = """query ($range: Base64Range) { feed(feedId: 1) { all(sortKey: $range) { nodes {
      ... on Event { at } ... on Chunk { name part } } } } }"""
    asked = {operator: text(bound) for operator, bound in range_.items()}
    found = (await feeds.ask(query, range=asked))["feed"]["all"]["nodes"]
    shown = [
        base64.b64decode(each["at"])
        if "at" in each
        else b"%b#%d" % (base64.b64decode(each["name"]), each["part"])
        for each in found
    ]
    assert shown == sorted(wanted[:-4]) + sorted(wanted[-4:]) if "from" in range_ else shown == wanted


async def test_what_is_sent(feeds: World) -> None:
    """A range reads no more than its keys, and explain shows its bounds in base64."""
    query = "query ($low: Base64!) { feed(feedId: 1) { events(at: %s) { nodes { at } } } }"

    def sent(range_: str, **variables: str) -> list[str]:
        explained = feeds.service.explain(query % range_, variables).steps
        return [request.keys for request in explained[0].steps[0].requests]

    assert sent("{beginsWith: $low}", low="YQ==") == ["PK = FEED#1 AND begins_with(SK, ZWE=)"]
    assert sent("{from: $low}") == [r"PK = FEED#1 AND SK BETWEEN ZQA= AND ZQ==\xFF…"]
    assert sent('{from: $low, to: "YWI="}', low="YQ==") == ["PK = FEED#1 AND SK BETWEEN ZWE= AND ZWFi"]


shelf = Table("Blobs", partition_key="PK", sort_key="SK")


async def test_bytes_in_a_key_of_text(make_store: MakeStore) -> None:
    """A format writes bytes as text: then they may be in any key, with ranges and prefixes as the format says."""

    @record("BLOBS", "{digest:hex}", lists="blobs")
    class Blob:
        digest: bytes

    hexes = Format(bytes.hex, bytes.fromhex, ordered=True, prefixes=True, pattern="[0-9a-f]+")
    made = world(Graph(shelf, Blob, formats={"hex": hexes}).check(), await make_store(shelf))
    await made.put(*({"PK": "BLOBS", "SK": each.hex()} for each in VALUES))
    for range_, is_wanted in ranges():
        asked = ", ".join(f'{operator}: "{text(bound)}"' for operator, bound in range_.items())
        found = (await made.ask(f"{{ blobs(digest: {{{asked}}}) {{ nodes {{ digest }} }} }}"))["blobs"][
            "nodes"
        ]
        assert [each["digest"] for each in found] == [
            text(each) for each in sorted(VALUES) if is_wanted(each)
        ]


async def test_text_that_a_key_of_bytes_cannot_hold(make_store: MakeStore) -> None:
    table = Table("Names", partition_key=("Name", "B"))

    @node("{name}")
    class Named:
        name: str

    made = world(Graph(table, Named).check(), await make_store(table))
    assert await made.errors('{ named(name: "\u0142") { name } }') == [
        ("BAD_USER_INPUT", "name of Named cannot be written as Latin-1")
    ]
