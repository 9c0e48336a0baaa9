"""Laws of rules, for random rules and mutations, and with kept values. `tests.resolvers.rule_laws` and `kept_laws` ask more."""

from __future__ import annotations

import logging
import os

import pytest

from tests.resolvers import guarded, kept_laws, rule_laws
from tests.resolvers.guarded import MODELS
from tests.resolvers.many_operations import Run

pytestmark = pytest.mark.long

OPERATIONS = int(os.environ.get("KEYGRAPH_TEST_OPERATIONS", "20"))
"""How many operations are made of each model."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "run",
    [
        pytest.param(guarded.run, id="viewers"),
        pytest.param(rule_laws.run, id="rules"),
        pytest.param(kept_laws.run, id="kept"),
    ],
)
@pytest.mark.parametrize("name", MODELS)
async def test_the_laws_hold(name: str, run: Run) -> None:
    logging.getLogger("keygraph").disabled = True  # errors are meant, and many
    try:
        assert await run(OPERATIONS, 0, [name], lambda _: None) == []
    finally:
        logging.getLogger("keygraph").disabled = False
