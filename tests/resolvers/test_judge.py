"""The second judge: random operations of random models. `python -m tests.resolvers.judge` asks more."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.resolvers.judge.asking import Court, Wrong, court


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.getLogger("keygraph").disabled = True
    yield
    logging.getLogger("keygraph").disabled = False


@pytest.mark.parametrize("seed", range(12))
async def test_the_judge_agrees(seed: int, tmp_path: Path) -> None:
    async with court(seed, tmp_path) as before:
        for _ in range(12):
            await before.check()


@pytest.mark.parametrize("seed", [*range(9), 48])
async def test_the_judge_agrees_on_writes(seed: int, tmp_path: Path) -> None:
    async with court(seed, tmp_path) as before:
        clerk = before.clerk()
        for _ in range(4):
            for _ in range(12):
                await before.write(clerk)
            await before.check()


def _each(answer: Any, change: Callable[[dict[str, Any]], bool]) -> bool:
    """Changes the first object inside of an answer that can be changed."""
    if isinstance(answer, list):
        return any(_each(each, change) for each in answer)
    if not isinstance(answer, dict):
        return False
    return change(answer) or any(_each(each, change) for each in answer.values())


def _lose_a_row(found: dict[str, Any]) -> bool:
    return bool(found.get("edges") and found["edges"].pop(0))


def _turn_a_page(found: dict[str, Any]) -> bool:
    edges = found.get("edges", [])
    edges.reverse()
    return len(edges) > 1


def _miscount(found: dict[str, Any]) -> bool:
    if "totalCount" not in found:
        return False
    found["totalCount"] += 1
    return True


def _promise_more(found: dict[str, Any]) -> bool:
    if found.get("startCursor") is None:
        return False  # nothing is said of what is around an empty page
    found["hasNextPage"] = not found["hasNextPage"]
    return True


@pytest.mark.long
@pytest.mark.parametrize("change", [_lose_a_row, _turn_a_page, _miscount, _promise_more])
async def test_the_judge_sees_mistakes(change: Callable[[dict[str, Any]], bool], tmp_path: Path) -> None:
    found = changed = 0
    for seed in range(4):
        async with court(seed, tmp_path) as before:
            for _ in range(20):
                expected, tampered = await _tampered(before, change)
                changed += tampered
                found += expected
    assert changed > 8
    assert 0.8 * changed < found <= changed


async def _tampered(before: Court, change: Callable[[dict[str, Any]], bool]) -> tuple[bool, bool]:
    """Whether the judge found something in an operation whose answer was changed, and whether it was changed."""
    operation = await before.operation()
    execute, was_changed = before.service.execute, False
    known = dict(before.known_cursors), dict(before.known_ids)

    async def execute_wrongly(*given: Any) -> dict[str, Any]:
        nonlocal was_changed
        answer = await execute(*given)
        was_changed = _each(answer.get("data"), change)
        return answer

    before.service.execute = execute_wrongly  # type: ignore[method-assign,assignment]  # for this operation
    try:
        await before.ask(operation)
    except Wrong:
        return True, was_changed
    finally:
        before.service.execute = execute  # type: ignore[method-assign]
        if was_changed:
            # Nothing is learned from an answer that was changed.
            before.known_cursors, before.known_ids = known
    return False, was_changed
