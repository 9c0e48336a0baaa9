"""No operation takes more requests or round trips than its bound. `tests.resolvers.bounds` asks more operations."""

from __future__ import annotations

import logging
from pathlib import Path
from random import Random

import pytest

from tests.resolvers.bounds import BOUNDED, exceeded
from tests.resolvers.differential import served


@pytest.mark.parametrize("name", BOUNDED)
async def test_no_operation_takes_more_than_its_bound(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("keygraph"), "disabled", True)  # errors are meant
    async with served(name, 0, tmp_path) as world:
        found = [each for seed in range(12) for each in await exceeded(world, Random(seed).randrange)]
    assert found == []
