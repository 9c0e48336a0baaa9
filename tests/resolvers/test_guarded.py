"""One answer for each viewer, under random rules. `tests.resolvers.guarded` asks more."""

from __future__ import annotations

import logging
import os

import pytest

from tests.resolvers.guarded import MODELS, run

OPERATIONS = int(os.environ.get("KEYGRAPH_TEST_OPERATIONS", "20"))
"""How many operations are made of each model."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MODELS)
async def test_one_answer_for_each_viewer(name: str) -> None:
    """Somebody would see what no rule lets them see, or not see what one does."""
    logging.getLogger("keygraph").disabled = True  # errors are meant, and many
    try:
        assert await run(OPERATIONS, 0, [name], lambda _: None) == []
    finally:
        logging.getLogger("keygraph").disabled = False
