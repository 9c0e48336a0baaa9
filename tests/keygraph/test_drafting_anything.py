"""Drafts of whatever a table holds: they can be served, name what they do not read, and are formatted."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keygraph.draft.draft import draft, imported_graph, mistakes_of, why_not_read
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Index, Table
from keygraph_resolvers import build_schema, check
from tests.keygraph.drafts import GSI1, both, ruff, table, under

WORDS = st.sampled_from(
    [
        *(
            "A",
            "USER",
            "ORDER",
            "user",
            "x",
            "1",
            "22",
            "META",
            "a b",
            "é",
            "{x}",
            "NAME",
            "SHARD1",
            "l",
            "id",
        ),
        *("2024-01-01", "2024-01-01T00:00:00Z", "Query", "\n", '"', "'", "\\"),
    ]
)
KEYS = st.builds(
    lambda words, separator: separator.join(words),
    st.lists(WORDS, min_size=1, max_size=4),
    st.sampled_from(["#", "|", "_", "-", "/", ":"]),
)
NUMBERS = st.integers(-5, 10**12).map(Decimal)
VALUES = st.one_of(
    *(KEYS, NUMBERS, st.booleans(), st.none(), st.binary(max_size=2), st.just({"a": Decimal(1)})),
    st.lists(st.one_of(KEYS, NUMBERS), max_size=2),
    st.sets(KEYS, min_size=1, max_size=2).map(frozenset),
    st.decimals(-5, 5, places=2),
)
ATTRIBUTES = st.sampled_from(
    [
        *(
            "id",
            "Id",
            "userId",
            "user_id",
            "orderId",
            "name",
            "type",
            "Type",
            "class",
            "first",
            "status",
            "date",
        ),
        *("GSI1PK", "GSI1SK", "x", "X", "é", "$", "shard", "node", "to", "a.b", "1"),
    ]
)
TABLES = [
    table(),
    table(
        GSI1,
        Index("inverted", "SK", "PK"),
        Index("by-status", "status"),
        Index("local", "PK", "x", local=True, projection="KEYS_ONLY"),
    ),
    Table("Things", partition_key="PK"),
    Table(
        "Things",
        partition_key="userId",
        sort_key=("n", "N"),
        indexes=[Index("ids", "orderId", ("m", "N"), projection=["name"])],
    ),
    Table("Things", partition_key=("b", "B"), sort_key="SK"),
]
KEYS_BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "S": KEYS,
    "N": st.integers(-3, 99).map(Decimal),
    "B": st.binary(min_size=1, max_size=2),
}


@st.composite
def samples(draw: st.DrawFn) -> tuple[Table, list[Item]]:
    """A table and some items that DynamoDB would hold in it."""
    declared = draw(st.sampled_from(TABLES))
    items: dict[Any, Item] = {}
    for attributes in draw(st.lists(st.dictionaries(ATTRIBUTES, VALUES, max_size=6), max_size=12)):
        item = {**attributes, **{key.name: draw(KEYS_BY_TYPE[key.type]) for key in declared.keys}}
        if declared.sort and declared.sort.type == declared.partition.type and draw(st.booleans()):
            item[declared.sort.name] = item[declared.partition.name]
        for key in declared.key_attributes():
            if key.name in item and not key.holds(item[key.name]):
                del item[key.name]
        items[declared.key_of(item)] = item
    return declared, list(items.values())


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(samples())
@pytest.mark.long
def test_every_draft_can_be_served_and_reads_what_it_does_not_name(sample: tuple[Table, list[Item]]) -> None:
    declared, items = sample
    text = draft(declared, items, check)
    with imported_graph(text) as graph:
        assert mistakes_of(graph, check) == ()
        build_schema(graph)
        refused = [item for item in items if why_not_read(graph, item) is not None]
    noun = "item" if len(refused) == 1 else "items"
    assert (f"{len(refused)} {noun} of the sample cannot be read" in text) == bool(refused)


def test_a_draft_of_anything_is_formatted() -> None:
    long = "a-very-long-word-in-a-key-" * 4
    items = [
        both(f"{long}#{n}", **{long: "x", "it's": 'a "quote"', "GSI1PK": long * 2, "GSI1SK": f'"{n}"'})
        for n in range(4)
    ]
    items += [under(f"{long}#{n}", f"\"{n}'#\\{n}", GSI1PK="{}", GSI1SK="\t") for n in range(4)]
    for length in (88, 110):
        text = draft(table(GSI1, Index(long, "SK", long, projection=[long, "it's"])), items)
        assert ruff("format", f"--line-length={length}", text=text) == text
