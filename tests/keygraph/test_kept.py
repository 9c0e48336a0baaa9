"""What a process keeps of what comes again: bounded in bytes, and counted."""

from __future__ import annotations

import gc
import re
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from time import monotonic

import pytest

from keygraph.dynamo.items import known_number, number_text, value_size
from keygraph.engines.sqlite.layout import decoder
from keygraph.kept import SizedCache, kept, kept_bytes
from keygraph.keys.types import Moment

ROOT = Path(__file__).parents[2]


def test_what_is_counted() -> None:
    before = kept_bytes().get("squares", 0)
    square = kept("squares", 3, 100)(lambda number: number * number)
    for number in range(5):
        assert square(number) == number * number
    assert kept_bytes()["squares"] == before + 300
    del square
    gc.collect()
    assert kept_bytes().get("squares", 0) == before


def test_there_are_no_others() -> None:
    found = {
        str(path.relative_to(ROOT))
        for package in ("keygraph", "resolvers", "server")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"\blru_cache\b|\bOrderedDict\[", path.read_text())
    }
    connections_are_counted_by_themselves = "server/keygraph_server/connections/gate.py"
    of_the_models_own_files = "keygraph/declare/docstrings.py"
    assert found == {"keygraph/kept.py", connections_are_counted_by_themselves, of_the_models_own_files}


NUMBERS = f"-0.{'0' * 85}1%036d7"
"""The longest that DynamoDB writes: 38 digits far behind the point."""
TIMES = "2024-01-01T00:00:00.%038d+00:00"
"""The longest that are taken."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "most", "remember", "form"),
    [
        ("numbers", 4096, known_number, NUMBERS),
        ("numbers", 4096, lambda text: number_text(Decimal(text)), NUMBERS),
        ("numbers", 4096, lambda text: value_size(Decimal(text)), NUMBERS),
        ("times", 4096, Moment.of_text, TIMES),
        ("projections", 256, lambda text: decoder(tuple((f"{text[-9:]}{n}",) for n in range(60))), NUMBERS),
    ],
)  # fmt: skip
def test_no_more_bytes_than_are_counted(
    name: str, most: int, remember: Callable[[str], object], form: str
) -> None:
    gc.collect()
    counted = kept_bytes().get(name, 0)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(most * 2):
        remember(form % number)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept_bytes()[name] >= counted
    assert after - before <= kept_bytes()[name]


def test_a_sized_cache_forgets_what_was_asked_for_first() -> None:
    cache: SizedCache[str, int] = SizedCache(100)
    for number in range(10):
        cache.keep(f"k{number}", number, 25)
        cache.used["k0"] = monotonic()
    assert cache["k0"] == 0
    assert (len(cache), cache.bytes) == (4, 100)
    cache.keep("large", 1, 26)
    assert cache.get("large") is None
    cache.keep("k0", 0, 20)
    assert (len(cache), cache.bytes) == (4, 95)
    SizedCache[str, int](0).keep("a", 1, 1)


def test_ever_new_values_push_out_none_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is used again after ten seconds stays, within five eighths of the bytes."""
    now = 0.0
    monkeypatch.setattr("keygraph.kept.monotonic", lambda: now)
    cache: SizedCache[int, int] = SizedCache(400)
    for key in range(5):
        cache.keep(key, key, 60)
    now = 10.1
    for key in range(3):
        cache.used[key] = now
    cache.keep(0, 0, 70)
    for number in range(10, 99):
        now += 0.01
        cache.keep(number, number, 100 if number == 50 else 50)
        now += 0.01
        cache.used[number] = now
        assert number in cache
        assert cache.bytes <= 400
    assert [*cache] == [0, 1, 2, 95, 96, 97, 98]
    now += 10
    for key in (2, 97, 98):
        cache.used[key] = now
    for number in range(100, 104):
        cache.keep(number, number, 100)
    assert [*cache] == [1, 2, 97, 98, 103]


@pytest.mark.long
def test_what_takes_the_place_of_others_is_collected() -> None:
    """Python's collector counts what is made less what is freed, and then looks at all that is cached."""
    cache: SizedCache[int, list[list[int]]] = SizedCache(10_000_000)
    young = 0
    for number in range(500):
        cache.keep(number, [[number] for _ in range(500)], 50_000)
        young = max(young, len(gc.get_objects(generation=0)) if number % 10 == 0 else 0)
    assert young < 50_000
