"""Validates documents, with a budget of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from typing import Any, TypeVar, cast

import graphql
from graphql.validation import ValidationContext

from keygraph.declare.declaration import EVERY_WRITE
from keygraph.names import pascal, plural, snake
from keygraph_resolvers.errors import UNSENT, bare, shortened, words_of
from keygraph_resolvers.plan.document_limits import DocumentLimit, caused
from keygraph_resolvers.schema.strawberry_internals import VALIDATION_RULES

VisitorT = TypeVar("VisitorT", bound=graphql.Visitor)

MOST_ERRORS = 10
"""The most errors to report. Each takes up to a millisecond, because it searches for names that may have been meant."""
NO_SUBSCRIPTIONS = (
    "Live queries are off here, so there are no subscriptions: query again for what may have changed."
)
SENT_TO_WHO_LISTENS = "A subscription has many answers: send it over a WebSocket (graphql-transport-ws), or with Accept: text/event-stream."
_NAME = re.compile(r"((?<!\w)'\[*|(?<=\w)[.(])([A-Za-z_]\w*)")
"""A name in a message of graphql-core: of a type, a field or an argument, as in `'[Book!]'` and `'Query.book(isbn:)'`."""
_ALWAYS_NAMED = {*graphql.specified_scalar_types, "Query", "Mutation", "Subscription"}
COMPARISONS = 10_000
"""The most comparisons of fields with one name, as graphql-core counts them. Each pair is compared."""


class _ComparingWithinBudget(graphql.OverlappingFieldsCanBeMergedRule):
    """Refuses documents that would need too many comparisons of fields."""

    def __init__(self, context: ValidationContext) -> None:
        super().__init__(context)
        self.rule_context.remaining_complexity_budget = COMPARISONS


class _KindsOfOperations(graphql.KnownOperationTypesRule):
    """Refuses operations of a kind that the schema lacks, and says what there is instead of subscriptions."""

    def enter_operation_definition(self, node: graphql.OperationDefinitionNode, *args: Any) -> None:
        is_known = self.context.schema.get_root_type(node.operation) is not None
        if node.operation is graphql.OperationType.SUBSCRIPTION and not is_known:
            self.report_error(graphql.GraphQLError(NO_SUBSCRIPTIONS, node))
        else:
            super().enter_operation_definition(node, *args)


class _KnownFields(graphql.FieldsOnCorrectTypeRule):
    """Refuses fields that the schema lacks, and says how the model can offer a mutation of its types."""

    def enter_field(self, node: graphql.FieldNode, *args: Any) -> None:
        schema, type_ = self.context.schema, self.context.get_parent_type()
        if type_ is not None and type_ is schema.mutation_type and not self.context.hide_suggestions:
            omitted = None if self.context.get_field_def() else _omitted(schema, node.name.value)
            if omitted is not None:
                self.report_error(graphql.GraphQLError(omitted, node))
                return
        super().enter_field(node, *args)


def _omitted(schema: graphql.GraphQLSchema, mutation: str) -> str | None:
    """What to use instead of a mutation of one of the types, and how the model can offer it; None for another name."""
    for action in EVERY_WRITE:
        of, node = mutation.removeprefix(action), schema.get_type("Node")
        for type_ in (
            schema.get_possible_types(node) if of != mutation and graphql.is_interface_type(node) else ()
        ):
            several = of == pascal(plural(snake(type_.name)))
            if several or of == type_.name:
                added = f'"{action}", "bulk"' if several else f'"{action}"'
                offered = schema.mutation_type.fields if schema.mutation_type else {}
                names = [
                    f"{other}{type_.name}"
                    for other in EVERY_WRITE
                    if (other == "delete") == (action == "delete")
                ]
                there = " or ".join(f"'{name}'" for name in names if name in offered)
                use = f"Use {there}, or declare" if there else "Declare"
                return f"The model leaves out the mutation '{mutation}'. {use} {type_.name} with writes=[…, {added}]."
    return None


_INSTEAD: dict[type[graphql.ASTValidationRule], type[graphql.ASTValidationRule]] = {
    graphql.OverlappingFieldsCanBeMergedRule: _ComparingWithinBudget,
    graphql.KnownOperationTypesRule: _KindsOfOperations,
    graphql.FieldsOnCorrectTypeRule: _KnownFields,
}
_RULES = tuple(_INSTEAD.get(rule, rule) for rule in VALIDATION_RULES)


def visit_once(node: graphql.Node, visitor: VisitorT) -> VisitorT:
    """Visits a node and all below it. Returns the visitor, which references itself no more."""
    graphql.visit(node, visitor)
    visitor.enter_leave_map.clear()
    return visitor


def errors_of_rules(
    schema: graphql.GraphQLSchema,
    document: graphql.DocumentNode,
    rules: Iterable[type[graphql.ASTValidationRule]],
    most: int | None = None,
    *,
    sent: str | None = None,
) -> list[graphql.GraphQLError]:
    """Returns the errors that these rules find in a document, at most `most` and one that says that there are more. With
    its text in `sent`, they have no other names.

    What the rules keep is taken from them: only the garbage collector frees graphql-core's visitors.
    """
    made: list[graphql.ASTValidationRule] = []

    def making(
        rule: type[graphql.ASTValidationRule],
    ) -> Callable[[ValidationContext], graphql.ASTValidationRule]:
        def make(context: ValidationContext) -> graphql.ASTValidationRule:
            made.append(rule(context))
            return made[-1]

        return make

    try:
        errors = graphql.validate(
            schema,
            document,
            cast("list[type[graphql.ASTValidationRule]]", [*map(making, rules)]),
            max_errors=most,
            hide_suggestions=sent is not None,
        )
    finally:
        for each in made:
            vars(each.context).clear()
            vars(each).clear()
    if sent is None or not errors:
        return [*map(bare, errors)]
    words = words_of(sent)
    return [unnamed(error, words) for error in errors]


def unnamed(error: graphql.GraphQLError, sent: Container[str]) -> graphql.GraphQLError:
    """Returns an error without suggestions, and without the names of the schema that are not among the words that the client has
    sent."""

    def name(found: re.Match[str]) -> str:
        before, text = found.groups()
        return f"{before}{text if text in sent or text in _ALWAYS_NAMED else UNSENT}"

    error.message = _NAME.sub(name, shortened(error.message).partition(" Did you mean ")[0])
    return bare(error)


def validation_errors(
    schema: graphql.GraphQLSchema, document: graphql.DocumentNode, sent: str | None, *, introspection: bool
) -> list[graphql.GraphQLError]:
    """Returns the errors of a document, up to a limit; empty if it is valid. With its text in `sent`, they have no other
    names.

    `introspection` is whether it may ask for `__schema` and `__type`.
    """
    rules = _RULES if introspection else (*_RULES, graphql.NoSchemaIntrospectionCustomRule)
    errors = errors_of_rules(schema, document, rules, MOST_ERRORS, sent=sent)
    if errors and errors[-1].message == "Validation aborted.":
        message = (
            "This document selects too many fields of one name: select each once, or give them other aliases."
        )
        return [*errors[:-1], caused(DocumentLimit(message))]
    return errors
