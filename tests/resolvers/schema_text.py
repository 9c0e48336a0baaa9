"""The text of a schema, in parts."""

from __future__ import annotations

import re

from keygraph_resolvers import build_schema
from tests.resolvers.everything import everything

SDL = build_schema(everything).as_str()

PAGING = '''
    """How many from the beginning; 20 unless said."""
    first: Int

    """Only what follows the edge with this cursor."""
    after: String

    """How many from the end."""
    last: Int

    """Only what precedes this cursor's edge: none if `after` is behind."""
    before: String

    """Along the sort key or against it."""
    direction: SortDirection = ASC'''
TO = '''

    """Only the edges to the nodes with these ids."""
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
    return re.findall(r"^  (\w.*)$", part(name), re.MULTILINE)
