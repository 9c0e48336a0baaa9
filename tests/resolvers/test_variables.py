"""The values of variables: what graphql-core would read, whoever reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from graphql import GraphQLSchema, OperationDefinitionNode, build_schema, parse
from graphql.execution.values import VariableValues, get_variable_values

from keygraph_resolvers.plan.variables import InputReaders, read_variables

SCHEMA = """
enum Size { SMALL LARGE }
input Place { street: String! number: Int = 7 }
input Order { id: ID! total: Float note: String lines: [Line!]! sizes: [Size] place: Place }
input Line { product: ID! count: Int! extra: [[Int!]] }
input Choice @oneOf { id: ID name: String }
input Tree { value: Int children: [Tree!] }
type Query { a(order: Order, choice: Choice, tree: Tree, n: Int): Int }
"""
OPERATION = """
query ($order: Order!, $choice: Choice, $n: Int = 3, $size: Size! = LARGE, $flag: Boolean, $ids: [ID!]) { a(n: $n) }
"""
LINE = {"product": "p", "count": 1}
ORDER: Mapping[str, Any] = {"id": "o", "lines": [LINE]}
FITTING: list[Mapping[str, Any]] = [
    {"order": ORDER},
    {"order": {**ORDER, "total": 1, "note": None, "sizes": ["SMALL", None], "place": {"street": "s"}}},
    {"order": {**ORDER, "lines": [{**LINE, "extra": [[1, 2], None, []]}]}, "n": None, "flag": None},
    {"order": ORDER, "choice": {"id": "c"}, "n": 4, "size": "SMALL", "flag": False, "ids": ["a", 1]},
    {"order": ORDER, "choice": None, "ids": None, "unknown": 1},
]
OTHERS: list[Mapping[str, Any]] = [
    {},
    {"order": None},
    {"order": []},
    {"order": {"id": "o"}},
    {"order": {**ORDER, "id": None}},
    {"order": {**ORDER, "more": 1}},
    {"order": {**ORDER, "lines": [None]}},
    {"order": {**ORDER, "lines": [{**LINE, "count": "1"}]}},
    {"order": {**ORDER, "lines": [{**LINE, "count": None}]}},
    {"order": {**ORDER, "sizes": ["MIDDLE"]}},
    {"order": ORDER, "choice": {}},
    {"order": ORDER, "choice": {"id": None}},
    {"order": ORDER, "choice": {"id": "c", "name": None}},
    {"order": ORDER, "size": None},
    {"order": ORDER, "ids": ["a", None]},
    # Lists of one, which graphql-core makes of a value.
    {"order": {**ORDER, "lines": LINE}},
    {"order": ORDER, "ids": "a"},
]


def operation_of(text: str) -> OperationDefinitionNode:
    [definition] = parse(text).definitions
    assert isinstance(definition, OperationDefinitionNode)
    return definition


@pytest.fixture(scope="module")
def schema() -> GraphQLSchema:
    return build_schema(SCHEMA)


@pytest.mark.parametrize("given", FITTING)
def test_values_are_those_of_graphql_core(schema: GraphQLSchema, given: Mapping[str, Any]) -> None:
    operation = operation_of(OPERATION)
    variables = InputReaders(schema).variables(operation)
    assert variables is not None
    read = read_variables(variables, given)
    wanted = get_variable_values(schema, operation.variable_definitions or (), dict(given))
    assert isinstance(wanted, VariableValues)
    assert read is not None
    assert repr(read.coerced) == repr(wanted.coerced)
    told = [
        {name: (source.signature.name, source.value) for name, source in each.sources.items()}
        for each in (read, wanted)
    ]
    assert told[0] == told[1]


@pytest.mark.parametrize("given", OTHERS)
def test_what_does_not_fit_is_left_to_graphql_core(schema: GraphQLSchema, given: Mapping[str, Any]) -> None:
    variables = InputReaders(schema).variables(operation_of(OPERATION))
    assert variables is not None
    assert read_variables(variables, given) is None


def test_inputs_in_themselves_are_left_to_graphql_core(schema: GraphQLSchema) -> None:
    readers = InputReaders(schema)
    assert readers.variables(operation_of("query ($tree: Tree) { a(tree: $tree) }")) is None
    assert readers.variables(operation_of("query ($trees: [Tree!]) { a }")) is None
    assert readers.variables(operation_of("query ($choice: Choice) { a(choice: $choice) }")) is not None
