"""What is used of Strawberry that it does not document, in the version that is installed."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from unittest.mock import Mock

import graphql
import pytest
import strawberry
from graphql.utilities import coerce_input_value

from keygraph_resolvers import build_schema
from keygraph_resolvers.schema.definitions import ServedField
from keygraph_resolvers.schema.strawberry_internals import core_schema, strawberry_field
from tests.resolvers.worlds import library

ROOT = Path(__file__).parents[2]


def test_the_pinned_version_is_tested() -> None:
    assert f"strawberry-graphql=={version('strawberry-graphql')}" in (ROOT / "constraints.txt").read_text()


def test_internals_are_named_once() -> None:
    names = ("schema._schema", "__strawberry_definition__", "DEFINITION_BACKREF", "CustomGraphQLEnumType")
    found = {
        path.name
        for room in ("schema", "plan", "read", "answer", ".")
        for path in (ROOT / "resolvers" / "keygraph_resolvers" / room).glob("*.py")
        if any(name in path.read_text() for name in names)
    }
    assert found == {"strawberry_internals.py"}


def test_an_added_field_is_found() -> None:
    @strawberry.type
    class Query:
        @strawberry.field
        def now(self) -> str:
            return ""

    schema = core_schema(strawberry.Schema(Query))
    assert schema.query_type is not None
    assert not isinstance(strawberry_field(schema.query_type.fields["now"]), ServedField)
    assert strawberry_field(schema.type_map["__Type"].fields["name"]) is None  # type: ignore[attr-defined]  # an object type


def test_no_name_is_suggested_while_a_value_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = Mock(return_value="")
    monkeypatch.setattr("graphql.type.definition.did_you_mean_enum_value", searched)
    direction = core_schema(build_schema(library)).type_map["SortDirection"]
    assert coerce_input_value("DOWN", direction) is graphql.Undefined  # type: ignore[arg-type]  # an enum
    searched.assert_not_called()
