"""Validates documents, with a budget of its own."""

from __future__ import annotations

from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    NoSchemaIntrospectionCustomRule,
    OverlappingFieldsCanBeMergedRule,
    validate,
)
from graphql.validation import ValidationContext

from keygraph_resolvers.plan.document_limits import DocumentLimit, caused
from keygraph_resolvers.schema.strawberry_internals import VALIDATION_RULES

MOST_ERRORS = 10
"""The most errors to report. Each takes up to a millisecond, because it searches for names that may have been meant."""
COMPARISONS = 10_000
"""The most comparisons of fields with one name, as graphql-core counts them. Each pair is compared."""


class _ComparingWithinBudget(OverlappingFieldsCanBeMergedRule):
    """Refuses documents that would need too many comparisons of fields."""

    def __init__(self, context: ValidationContext) -> None:
        super().__init__(context)
        self.rule_context.remaining_complexity_budget = COMPARISONS


_RULES = tuple(
    _ComparingWithinBudget if rule is OverlappingFieldsCanBeMergedRule else rule for rule in VALIDATION_RULES
)


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
