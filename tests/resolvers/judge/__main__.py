"""Asks random operations of random models, and judges the answers: `python -m tests.resolvers.judge 10000 --seed 7`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys

from tests.resolvers.judge.asking import run


def main() -> None:
    """Runs as the command line says; the process has failed where something was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("operations", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)

    def tell(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    sys.exit(bool(asyncio.run(run(given.operations, given.seed, tell))))


if __name__ == "__main__":
    main()
