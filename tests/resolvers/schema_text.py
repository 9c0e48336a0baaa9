"""The text of a schema, in parts."""

from __future__ import annotations

import re

from keygraph_resolvers import build_schema
from tests.resolvers.everything import everything

SDL = build_schema(everything).as_str()

PAGING = '''
    """The number of edges from the start; 20 by default."""
    first: Int

    """Only edges after this cursor."""
    after: String

    """The number of edges from the end."""
    last: Int

    """Only edges before this cursor; none if `after` comes later."""
    before: String

    """The direction along the sort key."""
    direction: SortDirection = ASC'''
TO = '''

    """Only edges to the nodes with these ids."""
    to: [ID!]'''


def part(name: str, sdl: str = SDL) -> str:
    """The definition of a type, with its description."""
    found = re.search(
        rf'(?:^"""(?:[^"\n]*|\n[^"]*)"""\n)?^(?:type|input|enum|interface|scalar) {name}\b(?:[^{{\n]*\{{.*?^\}}|[^{{\n]*$)',
        sdl,
        re.MULTILINE | re.DOTALL,
    )
    assert found, name
    return found[0].replace(PAGING, "PAGING").replace(TO, "\n    TO")


def fields(name: str) -> list[str]:
    """The lines of a type that name its fields."""
    return re.findall(r"^  (\w.*)$", re.sub(r'"{3}(?s:.*?)"{3}', "", part(name)), re.MULTILINE)
