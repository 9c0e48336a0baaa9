"""Ranges of times are decided by instants: also in the second that a bound touches."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from keygraph import ID, Format, Graph, Many, Table, node, record, rule
from keygraph.dynamo.conditions import holds
from keygraph.dynamo.items import Item
from keygraph.keys.types import FieldType, Moment, in_utc
from keygraph.model.comparisons import comparison
from keygraph.tables.item_keys import ItemKeys
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.worlds import World, filled, world


@node("SITE#{site_id}")
class Site:
    site_id: ID
    visits: Many[Visit]


@record(
    "{site}",
    "AT#{at}",
    check=[rule({"left": {"gte": datetime(2024, 1, 1, 10, tzinfo=UTC)}}, "Left too early.")],
)
class Visit:
    site: Site
    at: datetime
    left: datetime | None


graph = Graph(Table("Sites", partition_key="PK", sort_key="SK"), Site, Visit)
TEXTS = [
    f"2024-01-01T{text}"
    for text in (
        "09:59:59.999999Z", "10:00:00.000Z", "10:00:00.25Z", "10:00:00.250001Z", "10:00:00.519139Z",
        "10:00:00.5Z", "10:00:00Z", "10:00:00", "10:00:01.000001Z", "10:00:01Z",
    )
]  # fmt: skip
BOUNDS = ["10:00:00Z", "10:00:00.25Z", "10:00:00.519139Z", "10:00:01Z", "11:00:01+01:00"]


def instant(text: str) -> datetime:
    return in_utc(datetime.fromisoformat(text))


sites = filled(
    graph,
    [
        {"PK": "SITE#1", "SK": "SITE#1"},
        *({"PK": "SITE#1", "SK": f"AT#{text}", "left": text} for text in TEXTS),
    ],
)


@in_one_world("bound", [f"2024-01-01T{text}" for text in BOUNDS])
async def test_what_is_in_a_range_is_decided_by_instants(sites: World, bound: str) -> None:
    answer = await sites.ask(
        """query ($at: DateTime!) { site(siteId: 1) {
            from: visits(at: {from: $at}) { totalCount nodes { at } }
            to: visits(at: {to: $at}) { totalCount nodes { at } }
            both: visits(at: {from: $at, to: $at}) { totalCount nodes { at } }
            lt: visits(where: {left: {lt: $at}}) { totalCount nodes { at } }
            lte: visits(where: {left: {lte: $at}}) { totalCount nodes { at } }
            gt: visits(where: {left: {gt: $at}}) { totalCount nodes { at } }
            gte: visits(where: {left: {gte: $at}}) { totalCount nodes { at } }
            between: visits(where: {left: {between: {from: $at, to: $at}}}) { totalCount nodes { at } }
        } }""",
        at=bound,
    )
    at, ordered = instant(bound), sorted(TEXTS)
    from_, to = (
        [text for text in ordered if instant(text) >= at],
        [text for text in ordered if instant(text) <= at],
    )
    both = [text for text in from_ if text in to]
    wanted = {
        "from": from_, "to": to, "both": both, "between": both, "gte": from_, "lte": to,
        "lt": [text for text in ordered if text not in from_], "gt": [text for text in ordered if text not in to],
    }  # fmt: skip
    found = {name: [each["at"] for each in made["nodes"]] for name, made in answer["site"].items()}
    assert found == wanted
    assert {name: made["totalCount"] for name, made in answer["site"].items()} == {
        name: len(each) for name, each in wanted.items()
    }


async def test_the_least_time_is_the_first_one(sites: World) -> None:
    """Both are in the order of the keys."""
    document = """{ site(siteId: 1) { visits(at: {from: "2024-01-01T10:00:00.25Z", to: "2024-01-01T10:00:01Z"}) {
        aggregate { first: min(field: AT) last: max(field: AT) least: min(field: LEFT) } nodes { at } } } }"""
    made = (await sites.ask(document))["site"]["visits"]
    times = [each["at"] for each in made["nodes"]]
    assert made["aggregate"] == {"first": times[0], "last": times[-1], "least": "2024-01-01T10:00:00.25Z"}


async def test_a_rule_of_times_is_decided_by_instants(sites: World) -> None:
    put = 'mutation ($left: DateTime!) { putVisit(input: {siteId: 1, at: "2024-02-01T00:00:00Z", left: $left}) { visit { left } } }'
    assert await sites.codes(put, left="2024-01-01T09:59:59.9Z") == ["BAD_USER_INPUT"]
    assert await sites.codes(put, left="2024-01-01T10:00:00.5Z") == []


MOMENTS = st.builds(
    "2024-01-0{}T0{}:00:0{}{}{}".format,
    st.sampled_from("12"), st.sampled_from("01"), st.sampled_from("01"),
    st.sampled_from(["", ".0", ".5", ".50", ".49", ".500001", ".999999", ".000001"]), st.sampled_from(["Z", "", "+00:00"]),
)  # fmt: skip


@given(MOMENTS, MOMENTS, st.sampled_from(["lt", "lte", "gt", "gte"]))
def test_conditions_of_times_compare_instants(stored: str, bound: str, operator: str) -> None:
    one, other = instant(stored), instant(bound)
    wanted = {"lt": one < other, "lte": one <= other, "gt": one > other, "gte": one >= other}[operator]
    assert (
        holds(comparison(FieldType("datetime"), ("at",), operator, Moment.of_text(bound)), {"at": stored})
        == wanted
    )


@node("CLOCK#{clock_id}", "{at}")
class Clock:
    clock_id: ID
    at: datetime
    read_at: datetime


def _milliseconds(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


clocks = Graph(
    Table("Clocks", partition_key="PK", sort_key="SK"),
    Clock,
    formats={datetime: Format(_milliseconds, datetime.fromisoformat, ordered=True)},
)


async def test_a_time_in_a_format_is_answered_as_it_is_stored(make_store: MakeStore) -> None:
    made = world(clocks.check(), await make_store(clocks.table))
    at, basic = "2023-04-01T12:00:05.001Z", "20230401T120005Z"
    await made.put({"PK": "CLOCK#1", "SK": at, "read_at": at}, {"PK": "CLOCK#2", "SK": at, "read_at": basic})
    document = "query ($id: ID!, $at: DateTime!) { clock(clockId: $id, at: $at) { at readAt } }"
    assert (await made.ask(document, id="1", at=at))["clock"] == {"at": at, "readAt": at}
    assert (await made.ask(document, id="2", at=at))["clock"]["readAt"] == "2023-04-01T12:00:05.000Z"


async def test_a_time_with_a_space_is_one_with_t(sites: World) -> None:
    spaced = "2024-01-01 10:00:00.5Z"
    written = """mutation ($at: DateTime!) {
      putVisit(input: {siteId: 1, at: $at, left: $at}) { visit { at left } }
      literal: putVisit(input: {siteId: 1, at: "2024-01-01 11:00:01Z", left: "2024-01-02 00:00:00Z"}) { visit { at } }
    }"""
    assert await sites.ask(written, at=spaced) == {
        "putVisit": {"visit": {"at": "2024-01-01T10:00:00.5Z", "left": "2024-01-01T10:00:00.5Z"}},
        "literal": {"visit": {"at": "2024-01-01T11:00:01Z"}},
    }
    asked = """query ($at: DateTime!) { site(siteId: 1) {
      eq: visits(at: {eq: $at}) { nodes { at } }
      range: visits(at: {from: $at, to: $at}) { nodes { at } }
      from: visits(at: {from: $at}) { totalCount }
      equal: visits(where: {left: {eq: $at}}) { nodes { at } }
      less: visits(where: {left: {lt: $at}}) { totalCount }
    } }"""
    usual = await sites.ask(asked, at=spaced.replace(" ", "T"))
    assert await sites.ask(asked, at=spaced) == usual
    assert usual["site"]["eq"] == usual["site"]["range"] == {"nodes": [{"at": "2024-01-01T10:00:00.5Z"}]}
    # Another program's key is found by the text that is read, as a time with an offset is.
    await sites.put({"PK": "SITE#1", "SK": f"AT#{spaced}", "left": spaced})
    both = [{"at": spaced}, {"at": "2024-01-01T10:00:00.5Z"}]
    again = (await sites.ask(asked, at=spaced))["site"]
    assert again["eq"]["nodes"] == again["equal"]["nodes"] == both


def test_a_key_with_such_a_time_is_named() -> None:
    item: Item = {"PK": "SITE#1", "SK": "AT#2024-01-01 10:00:00Z"}
    keys = ItemKeys(graph.types["Visit"])
    problem = "SK has a time with a space, which ranges do not find: write T, or declare its format"
    assert (keys.misread(item), [*keys.problems(item)]) == (problem, [problem])
    assert keys.misread({**item, "SK": "AT#2024-01-01T10:00:00Z"}) is None


async def test_a_page_beside_many_of_its_last_second_keeps_its_bound(sites: World) -> None:
    texts = [f"2024-02-01T10:00:00.{number:06d}Z" for number in range(1, 200)]
    await sites.put(
        *({"PK": "SITE#1", "SK": f"AT#{text}", "left": text} for text in (*texts, "2024-02-01T10:00:00Z"))
    )
    document = """query ($after: String) { site(siteId: 1) {
        visits(at: {from: "2024-02-01T00:00:00Z", to: "2024-02-01T10:00:00Z"}, first: 2, after: $after) {
          nodes { at } pageInfo { endCursor hasNextPage } } } }"""
    found, after = [], None
    for _ in range(30):
        answer = await sites.service.execute(OperationRequest(document, {"after": after}, with_cost=True))
        cost, page = answer["extensions"]["cost"], answer["data"]["site"]["visits"]
        for name in ("requests", "roundTrips", "items", "readUnits"):
            assert cost["actual"][name] <= cost["bound"][name], name
        found += page["nodes"]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert found == [{"at": "2024-02-01T10:00:00Z"}]
