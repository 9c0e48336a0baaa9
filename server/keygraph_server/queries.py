"""Queries to try: from the file next to the model, or made from its schema."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from graphql import (
    FieldNode,
    GraphQLError,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLObjectType,
    GraphQLOutputType,
    OperationDefinitionNode,
    build_schema,
    get_named_type,
    is_leaf_type,
    is_object_type,
    parse,
    print_ast,
)
from graphql.type import is_required_argument, is_required_input_field

from keygraph_server.models import Model

_SHOWN = 3
_MACHINERY = frozenset({"node", "nodes"})
"""Root fields of every Relay schema. They need global ids, which nobody knows by heart."""


@dataclass(frozen=True, slots=True)
class QueryToTry:
    """A named query, with its first field and its description."""

    name: str
    first_field: str
    """Its first field with its arguments."""
    description: str
    """The comment above it; empty if there is none."""


def document_to_try(model: Model) -> str:
    """The GraphQL document with the queries to try."""
    return model.queries or made_document(model)


def queries_to_try(document: str) -> list[QueryToTry]:
    """The first three named queries of a document; empty if it is not valid GraphQL."""
    try:
        definitions = parse(document).definitions
    except GraphQLError:
        return []
    found: list[QueryToTry] = []
    for definition in definitions:
        if not isinstance(definition, OperationDefinitionNode) or definition.name is None:
            continue
        fields = [node for node in definition.selection_set.selections if isinstance(node, FieldNode)]
        if fields and definition.loc is not None:
            description = _comment_above(document, definition.loc.start)
            found.append(QueryToTry(definition.name.value, _head(fields[0]), description))
    return found[:_SHOWN]


def _head(field: FieldNode) -> str:
    """A field with its arguments on one line, without its selection."""
    arguments = ", ".join(" ".join(print_ast(argument).split()) for argument in field.arguments or ())
    return f"{field.name.value}({arguments})" if arguments else field.name.value


def _comment_above(document: str, start: int) -> str:
    """The comment directly before a position."""
    lines = document[:start].rstrip().splitlines()
    comment: list[str] = []
    while lines and lines[-1].lstrip().startswith("#"):
        comment.insert(0, lines.pop().lstrip().lstrip("#").strip())
    return " ".join(comment)


def made_document(model: Model) -> str:
    """Three queries made from the schema: first lists without required arguments, then fields that need a key.

    After them, the first mutation, which puts the first item into an empty table.
    """
    schema = build_schema(model.schema.as_str())
    if schema.query_type is None:
        return ""
    fields = {name: field for name, field in schema.query_type.fields.items() if name not in _MACHINERY}
    # The sort is stable: fields with the same number of required arguments stay in the schema's order.
    easiest = sorted(fields.items(), key=lambda entry: len(_required(entry[1])))
    made = [_query(name, field) for name, field in easiest[:_SHOWN]]
    mutations = schema.mutation_type.fields.items() if schema.mutation_type else ()
    made += [_mutation(name, field) for name, field in islice(mutations, 1) if "input" in field.args]
    return "\n".join(made)


def _query(name: str, field: GraphQLField) -> str:
    required = _required(field)
    variables = ", ".join(f"${argument}: {field.args[argument].type}" for argument in required)
    given = [f"{argument}: ${argument}" for argument in required]
    if "first" in field.args and "first" not in required:
        given.append("first: 5")
    head = f"query {name[0].upper()}{name[1:]}" + (f"({variables})" if variables else "")
    arguments = f"({', '.join(given)})" if given else ""
    return print_ast(parse(f"{head} {{ {name}{arguments}{_selection(field.type)} }}")) + "\n"


def _mutation(name: str, field: GraphQLField) -> str:
    """A mutation with a variable for each field that its input needs, and the record that it writes."""
    input_, payload = get_named_type(field.args["input"].type), get_named_type(field.type)
    if not isinstance(input_, GraphQLInputObjectType) or not isinstance(payload, GraphQLObjectType):
        return ""
    needed = {key: each.type for key, each in input_.fields.items() if is_required_input_field(each)}
    variables = ", ".join(f"${key}: {type_}" for key, type_ in needed.items())
    given = ", ".join(f"{key}: ${key}" for key in needed)
    shown, written = next(iter(payload.fields.items()))
    head = f"mutation {name[0].upper()}{name[1:]}" + (f"({variables})" if variables else "")
    body = f"{name}(input: {{{given}}}) {{ {shown}{_selection(written.type)} }}"
    return print_ast(parse(f"{head} {{ {body} }}")) + "\n"


def _required(field: GraphQLField) -> list[str]:
    return [name for name, argument in field.args.items() if is_required_argument(argument)]


def _selection(type_: GraphQLOutputType) -> str:
    """The selection for a type: the nodes of a connection, or the first scalar fields."""
    named = get_named_type(type_)
    if is_leaf_type(named):
        return ""
    if not isinstance(named, GraphQLObjectType):
        return " { __typename }"
    nodes = named.fields.get("nodes")
    if nodes is not None and is_object_type(get_named_type(nodes.type)):
        return f" {{ nodes{_selection(nodes.type)} }}"
    plain = [
        name
        for name, field in named.fields.items()
        if name != "id" and is_leaf_type(get_named_type(field.type)) and not _required(field)
    ]
    return f" {{ {' '.join(plain[:4]) or '__typename'} }}"
