"""Examples: the operations of the file next to the model, and others generated from its schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias

from graphql import (
    FieldNode,
    GraphQLError,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLUnionType,
    ListValueNode,
    OperationDefinitionNode,
    StringValueNode,
    ast_from_value,
    get_named_type,
    is_leaf_type,
    parse,
    print_ast,
    separate_operations,
)
from graphql.type import is_required_argument, is_required_input_field

from keygraph_resolvers.plan.explain import stand_ins
from keygraph_resolvers.schema.definitions import kind_of
from keygraph_resolvers.schema.field_kinds import Called, FieldKind
from keygraph_resolvers.schema.strawberry_internals import core_schema
from keygraph_server.models import Model

if TYPE_CHECKING:
    from keygraph_resolvers import GraphSchema

_TRIED = 3
_PAGE = 5
_FIELDS = {0: 6, 1: 4}
"""How many fields an example selects at each nesting depth; lists are nested no deeper."""
_LISTS = 4
_MACHINERY = frozenset({"node", "nodes"})
"""Root fields of every Relay schema. They need global ids, which people do not know."""

ValuesOf: TypeAlias = Callable[[FieldKind], Mapping[str, object] | None]
"""Returns values for a root field's arguments that find something in the table; None if nothing is known."""


@dataclass(frozen=True, slots=True)
class ExampleOperation:
    """An operation to try, with everything that it needs."""

    name: str
    kind: str
    """`query` or `mutation`."""
    description: str
    """Empty if there is none."""
    document: str
    variables: str = ""
    """JSON; empty if it takes none."""
    is_made: bool = False
    """Whether it was generated from the schema."""
    first_field: str = ""
    """Its first field with its arguments, on one line."""


def nothing_known(kind: FieldKind) -> None:
    """No values, for use without the table."""


def examples_of(model: Model, values_of: ValuesOf = nothing_known) -> list[ExampleOperation]:
    """The examples of a model: the operations written for it, then those generated from its schema."""
    written = written_examples(model.queries or "")
    taken = {example.name for example in written}
    return written + [each for each in made_examples(model.schema, values_of) if each.name not in taken]


def queries_to_try(model: Model) -> list[ExampleOperation]:
    """The first three queries. The schema is built only if fewer are written."""
    written = _queries(written_examples(model.queries or ""))
    return (written if len(written) >= _TRIED else _queries(examples_of(model)))[:_TRIED]


def _queries(examples: list[ExampleOperation]) -> list[ExampleOperation]:
    return [example for example in examples if example.kind == "query"]


# --- Written -----------------------------------------------------------------------------------------


def written_examples(document: str) -> list[ExampleOperation]:
    """The named operations of a document, each with its fragments; none if it is not valid GraphQL."""
    try:
        separated = separate_operations(parse(document))
    except GraphQLError:
        return []
    found: list[ExampleOperation] = []
    for name, own in separated.items():
        each = next(part for part in own.definitions if isinstance(part, OperationDefinitionNode))
        if name and each.loc is not None:
            parts = [each, *(part for part in own.definitions if part is not each)]
            text = "\n\n".join(document[part.loc.start : part.loc.end] for part in parts if part.loc) + "\n"
            description = _comment_above(document, each.loc.start)
            found.append(
                ExampleOperation(name, each.operation.value, description, text, first_field=_head(each))
            )
    return found


def _head(operation: OperationDefinitionNode) -> str:
    """The first field of an operation with its arguments on one line, without its selection."""
    first = next((node for node in operation.selection_set.selections if isinstance(node, FieldNode)), None)
    if first is None:
        return ""
    arguments = ", ".join(" ".join(print_ast(argument).split()) for argument in first.arguments or ())
    return f"{first.name.value}({arguments})" if arguments else first.name.value


def _comment_above(document: str, start: int) -> str:
    """The comment directly before a position."""
    lines = document[:start].rstrip().splitlines()
    comment: list[str] = []
    while lines and lines[-1].lstrip().startswith("#"):
        comment.insert(0, lines.pop().lstrip().lstrip("#").strip())
    return " ".join(comment)


# --- Made --------------------------------------------------------------------------------------------


def made_examples(schema: GraphSchema, values_of: ValuesOf = nothing_known) -> list[ExampleOperation]:
    """A query for each root field of the graph, the first mutation, which puts the first item into an empty table, and
    the mutation that writes an edge of each type.

    Fields without required arguments come first. Arguments without a known value are variables.
    """
    core = core_schema(schema)
    roots = core.query_type.fields if core.query_type else {}
    fields = [(name, field) for name, field in roots.items() if name not in _MACHINERY]
    # The sort is stable: fields with the same number of required arguments stay in the schema's order.
    fields.sort(key=lambda entry: len(_required(entry[1])))
    made = [_query(name, field, values_of) for name, field in fields]
    mutations = core.mutation_type.fields if core.mutation_type else {}
    edges = [record.name for record in schema.graph.types.values() if record.kind == "edge"]
    writes = [[name for name in (f"put{edge}", f"create{edge}") if name in mutations][:1] for edge in edges]
    for name in dict.fromkeys([*islice(mutations, 1), *chain(*writes)]):
        made += _mutation(schema, name, mutations[name])
    return made


def _query(name: str, field: GraphQLField, values_of: ValuesOf) -> ExampleOperation:
    kind = kind_of(field)
    known = {} if kind is None else values_of(kind) or {}
    given, variables = [], []
    for argument, definition in field.args.items():
        literal = _literal(known.get(argument), definition.type)
        if literal is not None:
            given.append(f"{argument}: {literal}")
        elif is_required_argument(definition):
            variables.append(f"${argument}: {definition.type}")
            given.append(f"{argument}: ${argument}")
        elif argument == "first":
            given.append(f"first: {_PAGE}")
    title = name[0].upper() + name[1:]
    head = f"query {title}" + (f"({', '.join(variables)})" if variables else "")
    arguments = f"({', '.join(given)})" if given else ""
    document = _printed(f"{head} {{ {name}{arguments}{_selection(field.type)} }}")
    type_ = get_named_type(field.type)
    description = (type_.description if len(_required(field)) else field.description) or ""
    return ExampleOperation(
        title, "query", description.partition("\n\n")[0], document, "", True, f"{name}{arguments}"
    )


def _literal(value: object, type_: Any) -> str | None:
    """A value in GraphQL syntax; None if there is none."""
    if value is None:
        return None
    if get_named_type(type_).name == "ID":
        return print_ast(StringValueNode(value=str(value)))
    try:
        node = ast_from_value(value, type_)
    except (GraphQLError, TypeError, ValueError):  # a key may hold what its type cannot be
        return None
    if isinstance(node, ListValueNode) and len(node.values) == 1:
        # GraphQL accepts one value for the list. GraphiQL's explorer shows that, but not a list.
        node = node.values[0]
    return None if node is None else print_ast(node)


def _mutation(schema: GraphSchema, name: str, field: GraphQLField) -> Iterator[ExampleOperation]:
    """A mutation with a variable for each field that its input needs, and the record that it writes."""
    input_ = get_named_type(field.args["input"].type) if "input" in field.args else None
    payload = get_named_type(field.type)
    if not isinstance(input_, GraphQLInputObjectType) or not isinstance(payload, GraphQLObjectType):
        return
    needed = {key: each.type for key, each in input_.fields.items() if is_required_input_field(each)}
    variables = ", ".join(f"${key}: {type_}" for key, type_ in needed.items())
    given = ", ".join(f"{key}: ${key}" for key in needed)
    record, written = next(iter(payload.fields.items()))
    title = name[0].upper() + name[1:]
    head = f"mutation {title}" + (f"({variables})" if variables else "")
    body = f"{name}(input: {{{given}}})"
    document = _printed(f"{head} {{ {body} {{ {record}{_selection(written.type, 1)} }} }}")
    operations = [each for each in parse(document).definitions if isinstance(each, OperationDefinitionNode)]
    values = stand_ins(core_schema(schema), operations[0], {})
    texts = json.dumps(values, indent=2, default=str).replace('"$', '"')
    yield ExampleOperation(
        title, "mutation", "Change the variables before you run it.", document, texts, True, body
    )


def _printed(document: str) -> str:
    return print_ast(parse(document)) + "\n"


def _required(field: GraphQLField) -> list[str]:
    return [name for name, argument in field.args.items() if is_required_argument(argument)]


def _selection(type_: GraphQLOutputType, depth: int = 0) -> str:
    """The selection for a type: its first plain fields, and at the top its lists and the nodes that it refers to."""
    named = get_named_type(type_)
    if is_leaf_type(named):
        return ""
    if isinstance(named, GraphQLUnionType):
        return f" {{ __typename {_fragments(named, depth)} }}"
    if isinstance(named, GraphQLInterfaceType) and "id" in named.fields:
        return " { __typename id }"
    if not isinstance(named, GraphQLObjectType):
        return " { __typename }"
    if _is_connection(named):
        return f" {{ {_page(named, depth)} }}"
    chosen = _plain(named)[: _FIELDS.get(depth, 2)]
    if "node" in named.fields and not _required(named.fields["node"]):
        chosen.append(f"node{_selection(named.fields['node'].type, depth + 1)}")
    if depth == 0:
        # The nodes that it refers to, including those at the end of a `One` edge.
        ends = [entry for entry in _offered(named) if _leads_to_node(get_named_type(entry[1].type))]
        chosen += [f"{name}{_selection(field.type, 1)}" for name, field in ends[:_LISTS]]
        lists = [entry for entry in _offered(named) if _is_connection(get_named_type(entry[1].type))]
        for name, field in lists[:_LISTS]:
            page = f"(first: {_PAGE})" if "first" in field.args else ""
            chosen.append(f"{name}{page}{_selection(field.type, 1)}")
    return f" {{ {' '.join(chosen) or '__typename'} }}"


def _fragments(union: GraphQLUnionType, depth: int) -> str:
    """A fragment for each member. A name with different types is selected only on the first member."""
    types: dict[str, str] = {}
    parts = []
    for member in union.types:
        names = [
            name
            for name in _plain(member)[: _FIELDS.get(depth, 2)]
            if types.setdefault(name, str(member.fields[name].type)) == str(member.fields[name].type)
        ]
        parts.append(f"... on {member.name} {{ {' '.join(names) or '__typename'} }}")
    return " ".join(parts)


def _is_connection(type_: Any) -> bool:
    return isinstance(type_, GraphQLObjectType) and {"edges", "nodes", "pageInfo"} <= type_.fields.keys()


def _page(connection: GraphQLObjectType, depth: int) -> str:
    """The selection of a page: its nodes, or its edges if they have more than the node."""
    edge = get_named_type(connection.fields["edges"].type)
    nodes = _selection(connection.fields["nodes"].type, max(depth, 1))
    own = [name for name in _plain(edge) if name != "cursor"] if isinstance(edge, GraphQLObjectType) else []
    if not own:
        return f"nodes{nodes}"
    return f"edges {{ {' '.join(own[: _FIELDS[1]])} node{nodes} }}"


def _offered(type_: GraphQLObjectType) -> Iterator[tuple[str, GraphQLField]]:
    """The fields that need no further knowledge: no deprecated ones, and no methods of the model."""
    for name, field in type_.fields.items():
        is_left_out = _required(field) or field.deprecation_reason or isinstance(kind_of(field), Called)
        if not is_left_out and name != "id":
            yield name, field


def _plain(type_: GraphQLObjectType) -> list[str]:
    """The fields with a value, parts of keys first."""
    types = {name: get_named_type(field.type) for name, field in _offered(type_)}
    leaves = [name for name, named in types.items() if is_leaf_type(named)]
    return sorted(leaves, key=lambda name: types[name].name != "ID")


def _leads_to_node(type_: Any) -> bool:
    if isinstance(type_, GraphQLInterfaceType):
        return "id" in type_.fields
    if not isinstance(type_, GraphQLObjectType):
        return False
    return "node" in type_.fields or any(face.name == "Node" for face in type_.interfaces)
