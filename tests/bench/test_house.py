"""The house: what a nested query passes stays few, is told as it is, nothing imports in circles, and nothing stands twice.

`python -m bench.house` prints what these tests hold.
"""

from __future__ import annotations

import re

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
