"""Laws of rules, for random rules and mutations. `tests.resolvers.rule_laws` asks more."""

from __future__ import annotations

import logging
import os

import pytest

from tests.resolvers.guarded import MODELS
from tests.resolvers.rule_laws import run

pytestmark = pytest.mark.long

OPERATIONS = int(os.environ.get("KEYGRAPH_TEST_OPERATIONS", "20"))
"""How many operations are made of each model."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MODELS)
async def test_the_laws_hold(name: str) -> None:
    """What is hidden would tell something, or somebody write what no rule allows."""
    logging.getLogger("keygraph").disabled = True  # errors are meant, and many
    try:
        assert await run(OPERATIONS, 0, [name], lambda _: None) == []
    finally:
        logging.getLogger("keygraph").disabled = False
