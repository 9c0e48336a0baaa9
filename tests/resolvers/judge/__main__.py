"""Asks random operations of random models, and judges the answers: `python -m tests.resolvers.judge 10000 --seed 7`."""

from __future__ import annotations

from tests.resolvers.judge.asking import run
from tests.resolvers.many_operations import main

if __name__ == "__main__":
    main(__doc__, (), lambda wanted, seed, _, tell: run(wanted, seed, tell))
