"""The GraphQL schema of a graph, derived by rule so that anyone who knows the model can write queries for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import strawberry
from strawberry.extensions import SchemaExtension
from strawberry.federation.schema_directives import Shareable
from strawberry.schema.config import StrawberryConfig
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.base import StrawberryOptional
from strawberry.types.field import StrawberryField

from keygraph.declare.docstrings import class_docstring, docstring, member_docstrings
from keygraph.graph import Graph
from keygraph.keys.template import Slot
from keygraph.keys.types import AttributeStyle, FieldType, field_type, is_list, is_optional, union_parts
from keygraph.lists.counting import may_count_unread
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import restricted_name
from keygraph.model.records import End, Method, RecordType
from keygraph.names import camel
from keygraph_resolvers.naming.descriptions import (
    in_words,
    of_edge,
    of_end,
    of_far_node,
    of_field,
    of_key_part,
    of_list,
    of_method,
    of_page,
    of_ranged,
    of_record,
    of_required,
    of_several,
    of_stored,
    of_type,
)
from keygraph_resolvers.naming.global_ids import are_told_by_text
from keygraph_resolvers.naming.names import (
    ALSO_OF,
    check,
    connection_prefix,
    field_name,
    key_arguments,
    neighbour_name,
    union_name,
)
from keygraph_resolvers.schema.aggregate_types import AggregateTypes
from keygraph_resolvers.schema.definitions import (
    CONSISTENT,
    OutputType,
    ServedField,
    UnionType,
    add_fields,
    argument,
    definition_of,
    enum_type,
    list_of,
    nullable,
    object_type,
    own_field,
)
from keygraph_resolvers.schema.federation import FederatedSchema, entities_field, mark, service_field
from keygraph_resolvers.schema.field_kinds import (
    Attribute,
    Called,
    Cursor,
    Edges,
    FarNode,
    FieldKind,
    GlobalId,
    ListOf,
    NodeAt,
    NodeById,
    NodeByKey,
    Nodes,
    NodesByIds,
    OwnNode,
    PageInfo,
    Stored,
    TotalCount,
)
from keygraph_resolvers.schema.inputs import DEFAULT_PAGE_SIZE, InputTypes, SortDirection
from keygraph_resolvers.schema.mutation_types import MutationTypes
from keygraph_resolvers.schema.scalars import SCALAR_MAP, SCALARS
from keygraph_resolvers.schema.walk_types import WalkTypes
from keygraph_resolvers.schema.way_types import way_fields

_AT_MOST = "at most 100, unless the server says otherwise"
_EDGES = "The edges of the page; null for one that cannot be read."
_NODES = "The nodes of the edges, without those that do not exist."
_PAGE_INFO = "The position of the page in the list."
_CURSOR = "The position of the edge in the list, for `after` and `before`."
_COUNTED = "The number of edges; null with a warning if counting costs too much."
_UNREAD = " Edges that no page shows, because part of their key is not valid, are counted too."
_ALSO_OF = "Only edges whose node these other {} nodes have in this list too, by {}: at most 10."


class GraphSchema(strawberry.Schema):
    """A Strawberry schema that knows its graph."""

    graph: Graph
    is_subgraph = False
    """Whether an Apollo Federation router can include it in a supergraph."""

    def process_errors(self, errors: Any, execution_context: Any = None) -> None:
        """Does nothing: the service handles errors, and logs only unexpected ones."""


class _Subgraph(FederatedSchema, GraphSchema):
    """The schema of a graph as a subgraph of a supergraph."""

    is_subgraph = True


def build_schema(
    graph: Graph,
    query: type | None = None,
    mutation: type | None = None,
    *,
    extensions: Iterable[type[SchemaExtension] | Callable[[], SchemaExtension]] = (),
    federation: bool = False,
) -> GraphSchema:
    """Returns the schema of a graph.

    The fields of the Strawberry types `query` and `mutation` are added to the root's. `extensions` are Strawberry
    schema extensions: their hooks run around each operation, their `resolve` around the root fields of `query` and
    `mutation`. `federation` makes it a subgraph of Apollo Federation 2. Raises ModelError if the graph has mistakes.
    """
    types = _Types(check(graph))
    root = object_type("Query", "Everything that can be read.")
    add_fields(root, types.root_fields())
    if query is not None:
        add_fields(root, [types.own_field(field) for field in definition_of(query).fields])
    written = types.mutations.fields()
    if mutation is not None:
        written += [types.own_field(field) for field in definition_of(mutation).fields]
    mutations = object_type("Mutation", "Everything that can be written.")
    add_fields(mutations, written)
    if federation:
        add_fields(root, types.federation_fields(lambda: schema.as_str()))
    made: Callable[..., GraphSchema] = _Subgraph if federation else GraphSchema
    schema = made(
        query=root,
        mutation=mutations if written else None,
        directives=[CONSISTENT],
        extensions=extensions,
        types=[types.object(record) for record in graph.nodes],
        config=StrawberryConfig(scalar_map=SCALAR_MAP),
    )
    schema.graph = graph
    return schema


def _type_of_source(source: Any, info: Any, abstract: Any) -> str:
    name: str = source.record.name
    return name


class _Types:
    """Makes the types of a schema, each once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._objects: dict[str, type] = {}
        self._enums: dict[type, OutputType] = {}
        self._structs: dict[type, type] = {}
        self._unions: dict[str, UnionType] = {}
        self._direction = enum_type(
            SortDirection, docstring(SortDirection.__doc__), member_docstrings(SortDirection)
        )
        self._inputs = InputTypes(self.scalar)
        self._node = object_type(
            "Node",
            "Something with an `id`, whatever its type.",
            is_interface=True,
            resolve_type=_type_of_source,
        )
        add_fields(self._node, [self._id_field()])
        self._page_info = object_type("PageInfo", "The position of a page in its list.")
        add_fields(self._page_info, _page_info_fields({}))
        self._aggregates = AggregateTypes()
        self._walks = WalkTypes(_page_info_fields, self.node, self._edge, self._aggregates)
        self.mutations = MutationTypes(graph, self.scalar, self.object, self._end_field)

    # --- Values ---------------------------------------------------------------------------------------

    def scalar(self, type_: FieldType) -> OutputType:
        """The GraphQL scalar or enum of a field's type."""
        if type_.kind == "enum":
            enum = cast(Any, type_.python)
            if enum not in self._enums:
                described = class_docstring(enum) or of_type(enum.__name__)
                self._enums[enum] = enum_type(enum, described, member_docstrings(enum))
            return self._enums[enum]
        return cast(OutputType, SCALARS[type_.kind])

    def output(self, type_: FieldType) -> OutputType:
        """The GraphQL type of a field's values."""
        if type_.of is not None:
            element = self.output(type_.of)
            return list_of(nullable(element) if type_.of_optional else element)
        if type_.kind == "object":
            return self._struct(type_)
        return self.scalar(type_)

    def _struct(self, type_: FieldType) -> type:
        cls = cast(type, type_.python)
        if cls not in self._structs:
            described = class_docstring(cls) or of_type(cls.__name__)
            made = self._structs[cls] = object_type(cls.__name__, described)
            descriptions = member_docstrings(cls)
            add_fields(
                made,
                [
                    ServedField(
                        camel(member.name),
                        nullable(self.output(member.type)) if member.optional else self.output(member.type),
                        Attribute(member.name),
                        description=descriptions.get(member.name)
                        or of_field(cls.__name__, member.name, member.type),
                    )
                    for member in type_.members
                ],
            )
        return self._structs[cls]

    # --- Record types ---------------------------------------------------------------------------------

    def _id_field(self) -> StrawberryField:
        return ServedField(
            "id",
            cast(type, strawberry.ID),
            GlobalId(),
            description="A globally unique, opaque id. It is not a key.",
        )

    def object(self, record: RecordType) -> type:
        """The object type of a node, a record, or an edge served as a record."""
        if record.name not in self._objects:
            made = object_type(record.name, of_record(record), interfaces=[self._node])
            self._objects[record.name] = made
            fields = [self._id_field(), *self._member_fields(record, record.order)]
            fields += [self.list_field(self._graph.path(record, name)) for name in record.lists]
            fields += [self._walks.field(self._graph.walks[record.name, name]) for name in record.walks]
            if record.name in self._graph.neighbours:
                fields.append(self.list_field(self._graph.neighbours[record.name]))
            add_fields(made, fields)
        return self._objects[record.name]

    def node(self, members: Sequence[RecordType]) -> OutputType:
        """The type of a node of one of these types: the object type, or a union."""
        if len(members) == 1:
            return self.object(members[0])
        ordered = self._graph.unions.get(frozenset(members)) or sorted(members, key=lambda each: each.name)
        return self._union(union_name(ordered), ordered)

    def _node_of(self, path: AccessPath) -> OutputType:
        """The type of a list's nodes."""
        if path in self._graph.neighbours.values():
            return self._union(neighbour_name(path), path.records)
        return self.node(path.nodes)

    def _union(self, name: str, members: Sequence[RecordType]) -> OutputType:
        if name not in self._unions:
            described = of_several(each.name for each in members)
            types = [self.object(each) for each in members]
            self._unions[name] = UnionType(name, types, _type_of_source, described)
        return self._unions[name]

    def _stored_field(self, record: RecordType, field: Field) -> StrawberryField:
        type_ = self.output(field.type)
        shown = nullable(type_) if field.may_be_null or restricted_name(record, field.name) else type_
        return self._told_field(record, field.name, shown, Stored(field), of_stored(record, field))

    def _end_field(self, record: RecordType, end: End) -> StrawberryField:
        type_ = nullable(self.node(end.members))
        return self._told_field(record, end.name, type_, NodeAt(end), of_end(record, end))

    @staticmethod
    def _told_field(
        record: RecordType, name: str, type_: Any, kind: FieldKind, described: str | None
    ) -> StrawberryField:
        """A field of a record without arguments."""
        return ServedField(camel(name), type_, kind, (), described, record.deprecated(name))

    def _member_fields(self, record: RecordType, names: Iterable[str]) -> Iterator[StrawberryField]:
        """The named fields, ends and methods as schema fields, in the order of the declaration."""
        for name in names:
            if name in record.fields:
                yield self._stored_field(record, record.fields[name])
            elif name in record.ends:
                yield self._end_field(record, record.ends[name])
            elif name in record.methods:
                yield self._method_field(record, record.methods[name])

    # --- Methods --------------------------------------------------------------------------------------

    def _method_field(self, record: RecordType, method: Method) -> StrawberryField:
        """The field of a method of the model, with the types of its annotations."""
        parameters = {camel(name): name for name in method.parameters}
        annotation = method.hints["return"]
        may_be_null = restricted_name(record, method.name) is not None
        type_ = (
            self._given_nodes(method.nodes, annotation, is_list=method.is_list, may_be_null=may_be_null)
            if method.nodes
            else self._annotated(annotation, may_be_null=may_be_null)
        )
        return ServedField(
            camel(method.name),
            type_,
            Called(method, parameters),
            [self._method_argument(method, *names) for names in parameters.items()],
            of_method(record, method),
            record.deprecated(method.name),
        )

    def _annotated(self, annotation: Any, *, may_be_null: bool = False) -> OutputType:
        annotation, optional = is_optional(annotation)
        type_ = self.output(field_type(annotation, AttributeStyle()))
        return nullable(type_) if optional or may_be_null else type_

    def _method_argument(self, method: Method, graphql_name: str, name: str) -> StrawberryArgument:
        default, type_ = method.signature.parameters[name].default, self._annotated(method.hints[name])
        described = of_key_part(name, optional=False)
        if default is inspect.Parameter.empty:
            return argument(graphql_name, type_, described)
        if isinstance(default, bool | int | float | str):
            return argument(graphql_name, type_, described, default)
        shown = type_ if isinstance(type_, StrawberryOptional) else nullable(type_)
        return argument(graphql_name, shown, described)

    # --- Lists ----------------------------------------------------------------------------------------

    def list_field(self, path: AccessPath) -> StrawberryField:
        """The field of an access path: a connection, or the only neighbor."""
        arguments = [
            argument(
                camel(required.name),
                self._key_scalar(required.slot, is_optional=required.optional),
                of_required(required),
            )
            for required in path.required
        ]
        described, reason = of_list(path), _reason(path)
        if path.is_one:
            arguments += [
                argument(
                    camel(ranged.name),
                    nullable(self.scalar(ranged.type)),
                    f"Only one with this {in_words(ranged.name)}.",
                )
                for ranged in path.ranged
            ]
            type_ = nullable(self._edge(path) if path.far_end else self.object(path.record))
            return ServedField(camel(path.name), type_, ListOf(path), arguments, described, reason)
        arguments += self._page_arguments(path)
        type_ = nullable(self._connection(path))
        return ServedField(camel(path.name), type_, ListOf(path), arguments, described, reason)

    def _page_arguments(self, path: AccessPath) -> list[StrawberryArgument]:
        text = nullable(str)
        arguments = [
            argument(
                "first",
                nullable(int),
                f"The number of edges from the start: {DEFAULT_PAGE_SIZE} by default, {_AT_MOST}.",
            ),
            argument("after", text, "Only edges after this cursor."),
        ]
        if len(path.keys.attributes) == 2:
            # Without a sort key there is no order to reverse.
            arguments += [
                argument("last", nullable(int), f"The number of edges from the end: {_AT_MOST}."),
                argument("before", text, "Only edges before this cursor; none if `after` comes later."),
                argument(
                    "direction",
                    nullable(self._direction),
                    "Whether the order ascends or descends.",
                    SortDirection.ASC.value,
                ),
            ]
        arguments += [
            argument(camel(ranged.name), nullable(self._inputs.range(ranged)), of_ranged(ranged))
            for ranged in path.ranged
        ]
        if path.members:
            types = nullable(list_of(self._inputs.types(path)))
            arguments.append(argument("types", types, "Only those of these types."))
        where = nullable(self._inputs.where(path))
        arguments.append(argument("where", where, "Only those that match all of these conditions."))
        if path.finds_by_node or path.keys_of_both_ends:
            ids = nullable(list_of(cast(type, strawberry.ID)))
            by = "`id` or key" if are_told_by_text(path.nodes) else "`id`"
            arguments.append(argument("to", ids, f"Only edges to these nodes, by {by}: {_AT_MOST}."))
        if path.finds_common and path.owner is not None:
            by = "`id` or key" if are_told_by_text([path.owner]) else "`id`"
            described = _ALSO_OF.format(path.owner.name, by)
            arguments.append(argument(ALSO_OF, nullable(list_of(cast(type, strawberry.ID))), described))
        return arguments

    def _connection(self, path: AccessPath) -> type:
        name = f"{connection_prefix(path)}Connection"
        if name not in self._objects:
            made = self._objects[name] = object_type(name, of_page(path))
            edge, node = self._edge(path), self._node_of(path)
            add_fields(
                made,
                [
                    ServedField("edges", list_of(nullable(edge)), Edges(), description=_EDGES),
                    ServedField("nodes", list_of(node), Nodes(), description=_NODES),
                    ServedField("pageInfo", self._page_info, PageInfo(), description=_PAGE_INFO),
                    ServedField(
                        "totalCount",
                        nullable(int),
                        TotalCount(),
                        description=_COUNTED + (_UNREAD if may_count_unread(self._graph, path) else ""),
                    ),
                    self._aggregates.of_list(path),
                ],
            )
        return self._objects[name]

    def _edge(self, path: AccessPath) -> type:
        name = f"{connection_prefix(path)}Edge"
        if name not in self._objects:
            record = path.record
            made = self._objects[name] = object_type(name, of_edge(path))
            node = nullable(self._node_of(path))
            cursor = [] if path.is_one else [ServedField("cursor", str, Cursor(), description=_CURSOR)]
            fields: list[StrawberryField] = [
                *cursor,
                ServedField("node", node, FarNode(path), description=of_far_node(path)),
            ]
            if path.far_end:
                attributes = [name for name in record.order if name not in record.key_ends]
                fields += self._member_fields(record, attributes)
            add_fields(made, fields)
        return self._objects[name]

    # --- The root -------------------------------------------------------------------------------------

    def root_fields(self) -> list[StrawberryField]:
        """The root fields: nodes by key and by global id, the lists at the root, and index lookups."""
        fields: list[StrawberryField] = [self._node_field(), self._nodes_field()]
        fields += [self._by_key_field(record) for record in self._graph.nodes]
        fields += [self.list_field(path) for path in self._graph.root_lists]
        fields += [self.list_field(path) for path in self._graph.finders]
        return [*fields, *way_fields(self._graph, self._node, self._walks.edges)]

    def own_field(self, field: StrawberryField) -> StrawberryField:
        """A field that a user added to the root. If it returns nodes of the model, the plan continues from them."""
        annotation = field.type_annotation and field.type_annotation.evaluate()
        by_class: dict[Any, RecordType] = {record.cls: record for record in self._graph.nodes}
        element, has_elements = is_list(annotation)
        records = [by_class.get(part) for part in union_parts(element)]
        members = tuple(record for record in records if record is not None)
        if not members or len(members) < len(records):
            return field
        type_ = self._given_nodes(members, annotation, is_list=has_elements)
        return own_field(field, type_, OwnNode(members, has_elements))

    def _given_nodes(
        self, records: tuple[RecordType, ...], annotation: Any, *, is_list: bool, may_be_null: bool = False
    ) -> OutputType:
        """The type of nodes that user code returns: whether one exists is known only when it is read."""
        node = nullable(self.node(records))
        if not is_list:
            return node
        return nullable(list_of(node)) if may_be_null or is_optional(annotation)[1] else list_of(node)

    def _key_scalar(self, slot: Slot, *, is_optional: bool) -> OutputType:
        type_ = self.scalar(slot.text.type)
        return nullable(type_) if is_optional else type_

    def _by_key_field(self, record: RecordType) -> StrawberryField:
        names = key_arguments(record)
        optional = record.table_keys.optional
        arguments = [
            argument(
                name,
                self._key_scalar(slot, is_optional=slot.name in optional),
                of_key_part(name, optional=slot.name in optional),
            )
            for name, slot in names.items()
        ]
        described = (
            f"The {record.name} with this key." if len(names) == 1 else f"The {record.name} with these keys."
        )
        type_, reason = nullable(self.object(record)), record.notes.deprecated
        return ServedField(field_name(record), type_, NodeByKey(record), arguments, described, reason)

    def _node_field(self) -> StrawberryField:
        id_argument = argument("id", cast(type, strawberry.ID), "The value of an `id` field.")
        return ServedField("node", nullable(self._node), NodeById(), [id_argument], "The node with this id.")

    def _nodes_field(self) -> StrawberryField:
        return ServedField(
            "nodes",
            list_of(nullable(self._node)),
            NodesByIds(),
            [argument("ids", list_of(cast(type, strawberry.ID)), f"The values of `id` fields: {_AT_MOST}.")],
            "The nodes with these ids, in the same order; null for each that does not exist.",
        )

    def federation_fields(self, printed: Callable[[], str]) -> list[StrawberryField]:
        """Returns the fields that a router requests, and adds the directives to all types made so far."""
        for record in self._graph.types.values():
            if record.name in self._objects:
                mark(record, self._objects[record.name])
        # Every subgraph with lists has a type with this name.
        definition_of(self._page_info).directives = [Shareable()]
        nodes = [self.object(record) for record in self._graph.nodes]
        return [entities_field(nodes, _type_of_source), service_field(printed)]


def _reason(path: AccessPath) -> str | None:
    """The deprecation reason of a list: its own, or that of its record type."""
    own = None if path.owner is None else path.owner.deprecated(path.name)
    far = path.nodes[0].notes.deprecated if len(path.nodes) == 1 else None
    return next((each for each in (own, path.record.notes.deprecated, far) if each is not None), None)


def _page_info_fields(described: Mapping[str, str]) -> list[StrawberryField]:
    """The fields of a page's position, with some descriptions replaced."""
    text = nullable(str)

    def shown(name: str, type_: OutputType, attribute: str, description: str) -> StrawberryField:
        return ServedField(name, type_, Attribute(attribute), description=described.get(name, description))

    return [
        shown(
            "hasNextPage",
            bool,
            "has_next_page",
            "Whether edges follow the page: with `first`, edges before the cursor `before`. Also true if the server "
            "stopped looking for matching edges; `endCursor` is then where to continue.",
        ),
        shown(
            "hasPreviousPage",
            bool,
            "has_previous_page",
            "Whether edges precede the page: with `last`, edges after the cursor `after`. Also true if the server "
            "stopped looking for matching edges; with `last`, `startCursor` is then where to continue.",
        ),
        shown("startCursor", text, "start_cursor", "The cursor of the first edge."),
        shown(
            "endCursor",
            text,
            "end_cursor",
            "The cursor of the last edge. Pass it as `after` to get the next page.",
        ),
    ]
