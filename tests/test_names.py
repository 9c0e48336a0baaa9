"""The names in the product: one class a name, the words of the field, and functions with few parameters.

Each figure may only sink: whoever lowers one writes the lower one here.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("keygraph", "resolvers", "server")
MOST_PARAMETERS = 7
CLASSES_OF_ONE_NAME = 8
NAMES_WITH_SUCH_WORDS = 54
FUNCTIONS_WITH_MANY_PARAMETERS = 7
"""`stored` and commands take options, which callers give by name. The others are
left over: `reach` of walks, and the DynamoDB engine's."""
WORDS = {
    "told": "projected, decided_by_key, cached, parsed",
    "untold": "the noun",
    "tells": "the verb for what it does",
    "shown": "described, rendered, visible",
    "show": "describe, render",
    "asked": "requested",
    "said": "fixed, has_argument, original",
    "says": "the verb for what it does",
    "sight": "Visible",
    "seen": "visible",
    "together": "CombinedQuery",
    "apart": "unbatched",
    "aside": "worker_thread",
    "holding": "MemoryLease",
    "came": "the generator itself",
    "stretch": "KeyInterval",
    "stretches": "key_intervals",
    "way": "Path",
    "ways": "paths",
    "marks": "delete_lock",
    "rivals": "collisions",
    "hindrance": "the plain word",
    "mend": "fix",
}
"""Words that meant too many things, with what to say instead."""


@cache
def trees() -> dict[str, ast.Module]:
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8")) for path in paths}


def names_in(tree: ast.AST) -> Iterator[str]:
    """The names that a tree gives: of classes, functions, parameters, variables and attributes."""
    for each in ast.walk(tree):
        match each:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def words_of(name: str) -> set[str]:
    """`is_told_by_key` and `ToldAttribute` are made of these words."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_no_two_classes_have_one_name() -> None:
    places = defaultdict(list)
    for path, tree in trees().items():
        for each in ast.walk(tree):
            if isinstance(each, ast.ClassDef):
                places[each.name.lstrip("_")].append(f"{path}:{each.lineno}")
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert len(twice) <= CLASSES_OF_ONE_NAME, twice


def test_words_with_too_many_meanings_are_not_used() -> None:
    counted: Counter[str] = Counter()
    for tree in trees().values():
        for name in names_in(tree):
            counted.update(words_of(name) & WORDS.keys())
    assert counted.total() <= NAMES_WITH_SUCH_WORDS, {
        f"{word} ({WORDS[word]})": count for word, count in counted.most_common()
    }


@pytest.mark.parametrize(("name", "words"), [("is_told_by_key", {"told"}), ("ToldAttribute", {"told"})])
def test_a_name_is_split_into_its_words(name: str, words: set[str]) -> None:
    assert words_of(name) & WORDS.keys() == words


def test_functions_have_few_parameters() -> None:
    many = [
        f"{path}:{each.lineno} {each.name}: {count}"
        for path, tree in trees().items()
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        if (count := parameter_count(each)) > MOST_PARAMETERS
    ]
    assert len(many) <= FUNCTIONS_WITH_MANY_PARAMETERS, many


def parameter_count(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The parameters without `self`."""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))
