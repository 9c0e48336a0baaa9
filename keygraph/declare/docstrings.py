"""Reads the strings under fields and enum members from a class's source."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Iterator
from functools import lru_cache


def member_docstrings(cls: type) -> dict[str, str]:
    """Returns the string under each field or enum member of the class itself, by name.

    Empty if the source is missing: then only the descriptions are lost.
    """
    try:
        file = inspect.getsourcefile(cls)
        linecache.checkcache(file)
        source = "".join(linecache.getlines(file or "", vars(sys.modules[cls.__module__])))
        return _of_classes(source).get(cls.__qualname__, {})
    except (KeyError, OSError, SyntaxError, TypeError):
        return {}


# A model's classes are read one after the other, and parsing a file takes milliseconds.
@lru_cache(maxsize=8)
def _of_classes(source: str) -> dict[str, dict[str, str]]:
    """Returns the strings of every class in a file, by its qualified name."""
    found: dict[str, dict[str, str]] = {}
    for name, definition in _classes(ast.parse(source), ""):
        found.setdefault(name, _of_members(definition))
    return found


def _classes(parent: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for each in ast.iter_child_nodes(parent):
        if isinstance(each, ast.expr):  # a class is never in one, and they are most of a file
            continue
        inner = prefix
        match each:
            case ast.ClassDef(name=name):
                yield prefix + name, each
                inner = f"{prefix}{name}."
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                inner = f"{prefix}{name}.<locals>."
        yield from _classes(each, inner)


def _of_members(definition: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                match following:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        found[name] = inspect.cleandoc(text)
    return found


def docstring(text: str | None) -> str | None:
    """Returns a docstring without its indentation; None for none."""
    return inspect.cleandoc(text) if text and text.strip() else None


def class_docstring(cls: type) -> str | None:
    """Returns a class's docstring if a person wrote it: dataclasses and enums generate their own."""
    text = cls.__dict__.get("__doc__")
    return None if text is None or text.startswith(f"{cls.__name__}(") else docstring(text)
