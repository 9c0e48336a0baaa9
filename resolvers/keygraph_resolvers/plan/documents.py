"""Documents: parsed, validated and planned once, and kept for the next time that the same text comes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    NoSchemaIntrospectionCustomRule,
    OperationDefinitionNode,
    VariableNode,
    Visitor,
    parse,
    specified_rules,
    visit,
)
from strawberry.schema.schema import validate_document

from keygraph.graph import Graph
from keygraph_resolvers.plan.compile import compile_plan
from keygraph_resolvers.plan.plan import Plan

LONGEST_KEPT = 64 * 1024
"""Documents of more characters are not kept: a few of them would fill the memory that the others need."""
CHARACTERS_KEPT = 1_000_000
"""How long all that are kept may be together: parsed, a character takes about a hundred bytes."""


_RULES = tuple(specified_rules)


@dataclass(eq=False)
class Document:
    """A document: what is wrong with it, or its operations and their plans."""

    ast: DocumentNode
    """Without definitions where it cannot be parsed."""
    errors: list[GraphQLError]
    plans: dict[tuple[str | None, tuple[bool, ...]], Plan] = field(default_factory=dict)

    @cached_property
    def operations(self) -> list[OperationDefinitionNode]:
        return [each for each in self.ast.definitions if isinstance(each, OperationDefinitionNode)]

    @cached_property
    def fragments(self) -> dict[str, FragmentDefinitionNode]:
        definitions = self.ast.definitions
        return {each.name.value: each for each in definitions if isinstance(each, FragmentDefinitionNode)}

    @cached_property
    def deciding(self) -> tuple[str, ...]:
        """The variables that `@skip` and `@include` ask."""
        found: dict[str, None] = {}

        class Directives(Visitor):
            def enter_directive(self, node: Any, *_: Any) -> None:
                if node.name.value in ("skip", "include") and isinstance(
                    node.arguments[0].value, VariableNode
                ):
                    found[node.arguments[0].value.name.value] = None

        visit(self.ast, Directives())
        return tuple(found)

    def operation(self, name: str | None) -> OperationDefinitionNode | None:
        """The operation of that name; without a name the only one."""
        if name is None:
            return self.operations[0] if len(self.operations) == 1 else None
        return next((each for each in self.operations if each.name and each.name.value == name), None)


_MOST_PLANS = 32
"""How many plans one document keeps: each combination of the variables of its directives is one."""


class Documents:
    """The documents of a schema that were asked last, and their plans."""

    def __init__(self, schema: Any, graph: Graph, kept: int, *, introspection: bool = True) -> None:
        """`schema` is graphql-core's; `kept` is how many documents are kept.

        `introspection` is whether they may ask for `__schema` and `__type`.
        """
        self._schema = schema
        self._graph = graph
        self._rules = _RULES if introspection else (*_RULES, NoSchemaIntrospectionCustomRule)
        self._most = kept
        self._kept: OrderedDict[str, Document] = OrderedDict()
        """The one that was asked last stands last."""
        self._characters = 0

    def read(self, text: str) -> Document:
        """The document of a text. Its errors are those of parsing, or of validation."""
        found = self._kept.get(text)
        if found is not None:
            self._kept.move_to_end(text)
            return found
        found = self._read(text)
        if len(text) <= LONGEST_KEPT:
            self._keep(text, found)
        return found

    def _keep(self, text: str, document: Document) -> None:
        self._kept[text] = document
        self._characters += len(text)
        while len(self._kept) > self._most or self._characters > CHARACTERS_KEPT:
            oldest, _ = self._kept.popitem(last=False)
            self._characters -= len(oldest)

    def _read(self, text: str) -> Document:
        try:
            ast = parse(text)
        except GraphQLError as error:
            return Document(DocumentNode(definitions=()), [error])
        return Document(ast, validate_document(self._schema, ast, self._rules))

    def plan(
        self, document: Document, operation: OperationDefinitionNode, variables: Mapping[str, Any]
    ) -> Plan:
        """The plan of a query, with what the variables say to its directives."""
        booleans = {name: bool(variables.get(name)) for name in document.deciding}
        key = (operation.name.value if operation.name else None, tuple(booleans.values()))
        found = document.plans.get(key)
        if found is None:
            if len(document.plans) >= _MOST_PLANS:
                document.plans.pop(next(iter(document.plans)))
            found = document.plans[key] = compile_plan(
                self._schema, self._graph, operation, document.fragments, booleans
            )
        return found
