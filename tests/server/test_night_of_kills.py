"""The commerce example's `reviewCount`, kept by the stream, is what it counts after everything was killed at random."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.night_of_kills import night


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_every_count_is_right_after_some_seconds_of_kills(tmp_path: Path) -> None:
    kills, mutations = await night(tmp_path, 6.0, seed=1)
    assert kills > 0
    assert mutations > 0
