"""The house: what a nested query passes stays few, is told as it is, nothing imports in circles, and nothing stands twice.

`python -m bench.house` prints what these tests hold.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable

import pytest

import keygraph_resolvers
from bench.house import (
    MODULES_WANTED,
    MOVES_WANTED,
    ROOT,
    TOLD_ONCE,
    Trace,
    circles,
    folder_sizes,
    import_rules,
    imports,
    nested_query_trace,
    sources_in,
    tracing,
    twins,
    two_way_folders,
)
from keygraph_server.settings import Settings, environment_name

MOST_IN_A_FOLDER = 14

_NAME = r"`(?:keygraph|keygraph_resolvers|keygraph_server)(?:\.\w+)+`"
_TOLD = re.compile(rf"^ *(?:[-*] |\d+\. )?({_NAME}(?:,\s+{_NAME})*):\s", re.MULTILINE)
"""How a text tells the way of a query: a line for each step, `keygraph_resolvers.plan.documents`: what it does. A line
may name several modules, with commas between them, and stand in a list."""


def told_modules(text: str) -> list[str]:
    """The modules of the way that a text tells, in its order."""
    return [name.strip("`") for line in _TOLD.findall(text) for name in re.findall(_NAME, line)]


# --- The trace ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trace() -> Trace:
    with pytest.MonkeyPatch.context() as patch:
        for name in Settings.model_fields:
            patch.delenv(environment_name(name), raising=False)
        return nested_query_trace()


def test_a_nested_query_passes_few_modules(trace: Trace) -> None:
    assert len(trace.modules) <= MODULES_WANTED, list(trace.modules)


def test_a_nested_query_moves_little_between_modules(trace: Trace) -> None:
    assert trace.moves <= MOVES_WANTED


@pytest.mark.parametrize("place", ["the docstring of keygraph_resolvers", "CONTRIBUTING.md"])
def test_the_way_of_a_query_is_told_as_it_is(trace: Trace, place: str) -> None:
    if place == "CONTRIBUTING.md":
        _, _, text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("\n## Where each thing lives\n")
        text = text.partition("\n## ")[0]
    else:
        text = keygraph_resolvers.__doc__ or ""
    assert told_modules(text) == list(trace.modules)


# --- Imports ------------------------------------------------------------------------------------------


def test_nothing_imports_in_circles() -> None:
    assert circles(imports()) == []


def test_folders_import_each_other_one_way() -> None:
    assert two_way_folders(imports()) == []


def test_folders_are_small() -> None:
    sizes = folder_sizes(imports())
    assert {folder: size for folder, size in sizes.items() if size > MOST_IN_A_FOLDER} == {}


def test_the_import_rules_are_kept() -> None:
    is_kept, said = import_rules()
    assert is_kept, said


# --- Told once ----------------------------------------------------------------------------------------


@pytest.mark.long
def test_nothing_stands_twice() -> None:
    assert twins(sources_in(*TOLD_ONCE)) == []


def test_twins_are_found_whatever_their_variables_are_called() -> None:
    one = """
def mean(values, weights):
    total = sum(value * weight for value, weight in zip(values, weights))
    count = sum(weights)
    if count == 0:
        return None
    return total / count
"""
    other = one.replace("mean", "average").replace("value", "price").replace("weight", "amount")
    assert twins({"one.py": one, "other.py": other})[0] == ["one.py:3", "other.py:3"]
    assert twins({"one.py": one, "other.py": other.replace("*", "+")}) == []


# --- How it is counted --------------------------------------------------------------------------------


def module(name: str, source: str, **known: Callable[..., object]) -> types.ModuleType:
    """A module of that name with that source, which is not imported."""
    made = types.ModuleType(name)
    made.__dict__.update(known)
    exec(compile(source, f"{name}.py", "exec"), made.__dict__)
    return made


def test_moves_go_there_and_back() -> None:
    inner = module(
        "keygraph.inner", "def double(number): return own(number)\ndef own(number): return 2 * number"
    )
    outer = module(
        "keygraph_resolvers.outer",
        "def all_doubled(numbers): return list(map(double, numbers))",
        double=inner.double,
    )
    with tracing() as found:
        assert outer.all_doubled([1, 2, 3]) == [2, 4, 6]
    assert list(found.modules) == ["keygraph_resolvers.outer", "keygraph.inner"]
    assert found.functions == {
        ("keygraph_resolvers.outer", "all_doubled"),
        ("keygraph.inner", "double"),
        ("keygraph.inner", "own"),
    }
    # Three calls, and their three returns.
    assert found.moves == 6


def test_circles_and_arrows_both_ways_are_found() -> None:
    imported = {
        "keygraph": {"keygraph.graph"},
        "keygraph.graph": {"keygraph.keys.text", "keygraph.errors"},
        "keygraph.keys.text": {"keygraph.errors", "keygraph.model.paths"},
        "keygraph.model.paths": {"keygraph.keys.types"},
        "keygraph.model.records": {"keygraph.model.readers"},
        "keygraph.model.readers": {"keygraph.model.records"},
    }
    assert circles(imported) == [["keygraph.model.readers", "keygraph.model.records"]]
    assert two_way_folders(imported) == [("keygraph.keys", "keygraph.model")]


def test_the_told_way_is_found() -> None:
    text = """A request passes

    1. `keygraph_server.app`: routes, see `keygraph_server.other`: it is no line of its own.
    2. `keygraph_resolvers.plan.documents`,
       `keygraph_resolvers.plan.compile`: the plan.
- `keygraph.engines.sqlite.engine`: the rows
and `keygraph.graph`: is none.
"""
    assert told_modules(text) == [
        "keygraph_server.app",
        "keygraph_resolvers.plan.documents",
        "keygraph_resolvers.plan.compile",
        "keygraph.engines.sqlite.engine",
    ]
