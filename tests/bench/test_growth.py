"""How cost grows: that each step asks what it says, and what is told of many clients."""

from __future__ import annotations

from pathlib import Path

import pytest
from graphql import parse, validate

from bench.compare.figures import Point
from bench.compare.growth import (
    EDGES,
    LEVELS,
    SERIES,
    depth,
    fan_out,
    growth_text,
    items,
    kept_at_most_clients,
    steps,
)
from bench.measuring import filled_store
from keygraph_examples.commerce import graph
from keygraph_resolvers import Service
from tests.schemas import schema_of


def test_no_two_items_have_one_key() -> None:
    keys = [(item["PK"], item["SK"]) for item in items()]
    assert len(set(keys)) == len(keys)
    for edges in EDGES:
        assert sum(key[1] == f"CATEGORY#fan{edges}" and key[0] != key[1] for key in keys) == edges


def test_every_step_is_a_query_of_the_model() -> None:
    schema = schema_of(graph)._schema
    for step in steps(list(SERIES), 0.1):
        assert validate(schema, parse(step.query.document)) == []
    assert {step.at for step in steps(["levels"], 0.1)} == set(LEVELS)


@pytest.mark.long
async def test_a_query_of_three_levels_finds_ten_lines(tmp_path: Path) -> None:
    line = [item for item in items() if str(item["PK"]).startswith("CATEGORY#line")]
    async with filled_store(f"sqlite:{tmp_path}/line.db", graph, line) as store:
        service = Service(schema_of(graph), store, secret=b"of a test")
        found = [(await service.execute(depth(3).document))["data"]["category"]]
    for wanted in (10, 10, 10):
        found = [child for each in found for child in each["children"]["nodes"]]
        assert len(found) == wanted
    assert found[0] == {"name": "Line-0-2"}


def point(at: int, per_second: float, server: str = "keygraph", series: str = "clients") -> Point:
    return Point(series, at, server, 12.5, 1_234.5, per_second, 99.5, 64, 4)


@pytest.mark.parametrize(("rates", "kept"), [((50, 100, 90), 0.9), ((50, 80, 100), 1.0), ((), None)])
def test_a_collapse_under_many_clients_would_be_seen(rates: tuple[float, ...], kept: float | None) -> None:
    """What is told is the throughput with the most clients, not the best one; and of Keygraph, not of a peer."""
    points = [point(at, rate) for at, rate in zip((1, 16, 256), rates, strict=False)]
    assert kept_at_most_clients([*points, point(256, 1.0, "apollo"), point(256, 1.0, series="edges")]) == kept


def test_the_page_has_a_table_for_each_thing_that_varies() -> None:
    text = growth_text(
        [point(1_000, 50.0, "apollo", "edges"), point(256, 80.0), point(16, 100.0)], "growth.svg"
    )
    assert "| 1,000 | Apollo | 12.50 | 1,234.5 | 50.0 | 100 | 64 | 4 |" in text
    assert "| 256 | Keygraph | 12.50 | 1,234.5 | 80.0 | 100 | 64 | 4 |" in text
    assert "levels of a query" not in text
    assert text.rstrip().endswith("80% of the operations a second that it answers at best.")
    assert fan_out(10).variables == ({"category": "fan10", "first": 10},)
