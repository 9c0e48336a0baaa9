"""One answer: random operations on random tables, planned and naive. `tests.resolvers.differential` asks more."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.resolvers.differential import MODELS, Served, difference, errors_of, served
from tests.resolvers.made_operations import questions

OPERATIONS = int(os.environ.get("KEYGRAPH_TEST_OPERATIONS", "16"))
"""How many operations are made of each model."""

NUMBERS = st.lists(st.integers(0, 2**16), min_size=100, max_size=1000)
"""What an operation is chosen by: drawn at once, which is faster than one by one."""


@pytest.fixture(params=MODELS)
async def tables(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[Served]]:
    logging.getLogger("keygraph").disabled = True  # errors are meant, and many
    try:
        async with served(request.param, 0, tmp_path) as whole, served(request.param, 1, tmp_path) as awkward:
            yield [whole, awkward]
    finally:
        logging.getLogger("keygraph").disabled = False


@pytest.mark.timeout(600)
@given(data=st.data())
@settings(
    max_examples=OPERATIONS,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
async def test_one_answer(tables: list[Served], data: st.DataObject) -> None:
    chosen = iter(data.draw(NUMBERS))

    def choose(below: int) -> int:
        return next(chosen, 0) % below

    await tables[choose(2)].check(choose)


@pytest.mark.parametrize("tables", ["commerce", "everything", "several", "social", "walks"], indirect=True)
async def test_one_answer_to_every_question(tables: list[Served]) -> None:
    [whole, _] = tables
    documents = [*questions(whole.schema, whole.words, Random(0).randrange)]
    assert documents
    assert all([await whole.ask(each) for each in documents])


@pytest.mark.long
async def test_most_that_is_made_is_valid(tables: list[Served]) -> None:
    [whole, _] = tables
    asked = [await whole.check(Random(seed).randrange) for seed in range(12)]
    assert sum(each > 0 for each in asked) >= 8


def test_the_law_sees_differences() -> None:
    error = {"path": ["a", 0, "b"], "extensions": {"code": "CORRUPT_ITEM"}}
    answer = {"data": {"a": [{"b": None}]}, "errors": [error]}
    assert difference(answer, answer) is None
    assert difference(answer, {"data": {"a": [{"b": None}]}}) is not None
    assert difference(answer, {**answer, "data": {"a": [{"b": 1}]}}) is not None
    assert difference({"data": {"a": 1, "b": 2}}, {"data": {"b": 2, "a": 1}}) is not None
    other = {**error, "extensions": {"code": "INTERNAL"}}
    assert difference(answer, {**answer, "errors": [other]}) is not None
    elsewhere = {**error, "path": ["a", 0, "c"]}
    assert errors_of({"data": {"a": [None]}, "errors": [error]}) == {(("a", 0), "below")}
    below = {"data": {"a": [None]}, "errors": [error]}
    assert difference(below, {"data": {"a": [None]}, "errors": [error, elsewhere]}) is None
    assert difference(below, {"data": {"a": [None]}}) is not None
