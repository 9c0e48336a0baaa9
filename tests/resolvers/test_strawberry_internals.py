"""What is used of Strawberry that it does not document, in the version that is installed."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import strawberry
from strawberry.types import get_object_definition

from keygraph_resolvers import build_schema
from keygraph_resolvers.schema.definitions import ServedField, object_type
from keygraph_resolvers.schema.strawberry_internals import (
    core_schema,
    strawberry_field,
)
from tests.resolvers.worlds import library

ROOT = Path(__file__).parents[2]


def test_the_pinned_version_is_tested() -> None:
    assert f"strawberry-graphql=={version('strawberry-graphql')}" in (ROOT / "constraints.txt").read_text()


def test_internals_are_named_once() -> None:
    names = ("schema._schema", "__strawberry_definition__", "DEFINITION_BACKREF")
    found = {
        path.name
        for room in ("schema", "plan", "read", "answer", ".")
        for path in (ROOT / "resolvers" / "keygraph_resolvers" / room).glob("*.py")
        if any(name in path.read_text() for name in names)
    }
    assert found == {"strawberry_internals.py"}


def test_a_type_is_marked() -> None:
    definition = get_object_definition(object_type("Shell", "Of something."), strict=True)
    assert (definition.name, definition.description) == ("Shell", "Of something.")


def test_fields_are_found() -> None:
    query = core_schema(build_schema(library)).query_type
    assert query is not None
    assert isinstance(strawberry_field(query.fields["nodes"]), ServedField)


def test_an_added_field_is_found() -> None:
    @strawberry.type
    class Query:
        @strawberry.field
        def now(self) -> str:
            return ""

    query = core_schema(strawberry.Schema(Query)).query_type
    assert query is not None
    assert not isinstance(strawberry_field(query.fields["now"]), ServedField)
    schema = core_schema(strawberry.Schema(Query))
    assert strawberry_field(schema.type_map["__Type"].fields["name"]) is None  # type: ignore[attr-defined]  # an object type
