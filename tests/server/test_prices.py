"""The prices that the console and the docs compute with."""

from __future__ import annotations

from pathlib import Path

import pytest

from keygraph_server.prices import DATE, ON_DEMAND, Prices, prices_in_use

SUMMARIES = Path(__file__).parents[2] / "docs/summaries.md"


@pytest.fixture(autouse=True)
def no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


def test_a_million_units_cost_what_the_table_says() -> None:
    assert ON_DEMAND["eu-west-1"].usd(1_000_000, 2_000_000) == pytest.approx(0.1415 + 2 * 0.705)


def test_the_setting_decides_then_the_region_then_us_east_1(monkeypatch: pytest.MonkeyPatch) -> None:
    assert prices_in_use(None).source == f"on-demand in us-east-1, {DATE}"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    assert prices_in_use(None).prices == ON_DEMAND["eu-central-1"]
    assert prices_in_use("us-west-2").prices == ON_DEMAND["us-west-2"]
    assert prices_in_use("0.1/0.5").prices == Prices(0.1, 0.5)


def test_a_region_without_a_price_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "mars-north-1")
    assert prices_in_use(None).prices is None
    assert prices_in_use(None).source == "no price of mars-north-1 is known: set KEYGRAPH_PRICES"
    with pytest.raises(ValueError, match="'mars-north-1' is no region with a known price"):
        prices_in_use("mars-north-1")


def test_the_docs_compute_with_the_same() -> None:
    cheapest = ON_DEMAND["us-east-1"]
    text = f"USD {cheapest.read} per million read units and {cheapest.write} per million write units"
    assert text in SUMMARIES.read_text("utf-8")
