"""The command line of what asks many random operations: how many, from which seed, of which model."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

Run: TypeAlias = Callable[[int, int, Sequence[str], Callable[[str], None]], Awaitable[list[str]]]
"""Asks that many operations from a seed on, of these models, tells what it does, and gives what was found."""


def main(doc: str | None, models: Sequence[str], run: Run) -> None:
    """Runs it as the command line says; the process has failed where something was found."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("operations", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    if models:
        parser.add_argument("--model", choices=models)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)

    def tell(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    async def found() -> list[str]:
        return await run(
            given.operations, given.seed, [given.model] if models and given.model else models, tell
        )

    sys.exit(bool(asyncio.run(found())))
