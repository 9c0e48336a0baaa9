"""docs/capacity.md has what the queries of the benchmark cost now."""

from __future__ import annotations

import pytest

from bench import capacity


@pytest.mark.long
async def test_the_page_has_the_units_and_prices_of_now() -> None:
    """After another figure in docs/performance.md: `python -m bench.capacity --write`."""
    assert capacity.tables(await capacity.spent()) in capacity.PAGE.read_text("utf-8")
