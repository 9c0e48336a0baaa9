"""Validates documents, with a budget of its own."""

from __future__ import annotations

from typing import Any

from graphql import (
    ASTValidationRule,
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    KnownOperationTypesRule,
    NoSchemaIntrospectionCustomRule,
    OperationDefinitionNode,
    OperationType,
    OverlappingFieldsCanBeMergedRule,
    validate,
)
from graphql.validation import ValidationContext

from keygraph_resolvers.plan.document_limits import DocumentLimit, caused
from keygraph_resolvers.schema.strawberry_internals import VALIDATION_RULES

MOST_ERRORS = 10
"""The most errors to report. Each takes up to a millisecond, because it searches for names that may have been meant."""
NO_SUBSCRIPTIONS = (
    "There are no subscriptions here, over HTTP or a WebSocket: send queries and mutations, "
    "and query again for what may have changed."
)
COMPARISONS = 10_000
"""The most comparisons of fields with one name, as graphql-core counts them. Each pair is compared."""


class _ComparingWithinBudget(OverlappingFieldsCanBeMergedRule):
    """Refuses documents that would need too many comparisons of fields."""

    def __init__(self, context: ValidationContext) -> None:
        super().__init__(context)
        self.rule_context.remaining_complexity_budget = COMPARISONS


class _KindsOfOperations(KnownOperationTypesRule):
    """Refuses operations of a kind that the schema lacks, and says what there is instead of subscriptions."""

    def enter_operation_definition(self, node: OperationDefinitionNode, *args: Any) -> None:
        is_known = self.context.schema.get_root_type(node.operation) is not None
        if node.operation is OperationType.SUBSCRIPTION and not is_known:
            self.report_error(GraphQLError(NO_SUBSCRIPTIONS, node))
        else:
            super().enter_operation_definition(node, *args)


_INSTEAD: dict[type[ASTValidationRule], type[ASTValidationRule]] = {
    OverlappingFieldsCanBeMergedRule: _ComparingWithinBudget,
    KnownOperationTypesRule: _KindsOfOperations,
}
_RULES = tuple(_INSTEAD.get(rule, rule) for rule in VALIDATION_RULES)


def validation_errors(
    schema: GraphQLSchema, document: DocumentNode, *, introspection: bool, suggestions: bool
) -> list[GraphQLError]:
    """Returns the errors of a document, up to a limit; empty if it is valid.

    `introspection` is whether it may ask for `__schema` and `__type`, `suggestions` whether errors suggest names.
    """
    rules = _RULES if introspection else (*_RULES, NoSchemaIntrospectionCustomRule)
    errors = validate(schema, document, rules, max_errors=MOST_ERRORS, hide_suggestions=not suggestions)
    if errors and errors[-1].message == "Validation aborted.":
        told = (
            "This document selects too many fields of one name: select each once, or give them other aliases."
        )
        return [*errors[:-1], caused(DocumentLimit(told))]
    return errors
