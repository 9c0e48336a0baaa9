"""The text of a schema, in parts, without its descriptions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from graphql import parse, print_ast, visit
from graphql.language.visitor import Visitor

from keygraph_resolvers import build_schema
from tests.resolvers.everything import everything

SDL = build_schema(everything).as_str()

PAGING = "first: Int, after: String, last: Int, before: String, direction: SortDirection = ASC"


class _WithoutDescriptions(Visitor):
    def leave(self, node: Any, *_: object) -> Any:
        return replace(node, description=None) if getattr(node, "description", None) else None


def part(name: str, sdl: str = SDL) -> str:
    [found] = [
        each for each in parse(sdl).definitions if getattr(getattr(each, "name", None), "value", "") == name
    ]
    return (
        print_ast(visit(found, _WithoutDescriptions()))
        .replace(PAGING, "PAGING")
        .replace("to: [ID!], alsoOf: [ID!]", "TO")
    )


def shows(text: str) -> None:
    """Holds that the schema has this definition."""
    assert part(text.split()[1]) == text


def fields(name: str) -> list[str]:
    """The lines of a type that name its fields."""
    return re.findall(r"^  (\w.*)$", part(name), re.MULTILINE)
