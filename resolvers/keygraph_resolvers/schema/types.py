"""The GraphQL schema of a graph, derived by rule so that anyone who knows the model can write queries for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import strawberry
from strawberry.extensions import SchemaExtension
from strawberry.federation.schema import Schema as FederationSchema
from strawberry.schema.config import StrawberryConfig
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.base import StrawberryOptional
from strawberry.types.field import StrawberryField

from keygraph.declare.docstrings import class_docstring, member_docstrings
from keygraph.errors import Mistake, ModelError
from keygraph.graph import Graph
from keygraph.keys.template import Slot
from keygraph.keys.types import AttributeStyle, FieldType, field_type, is_list, is_optional, union_parts
from keygraph.lists.reading import may_count_unread
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import restricted_name
from keygraph.model.records import End, Method, RecordType
from keygraph.names import camel
from keygraph_resolvers.naming import descriptions
from keygraph_resolvers.naming.global_ids import are_identified_by_text
from keygraph_resolvers.naming.names import (
    ALSO_OF,
    FIRST,
    SKIP,
    change_arguments,
    change_field,
    change_type,
    connection_prefix,
    declared_types,
    field_name,
    has_changes,
    key_arguments,
    list_in_words,
    list_name,
    name_mistakes,
)
from keygraph_resolvers.schema import field_kinds as kinds
from keygraph_resolvers.schema.aggregate_types import aggregate_of_list
from keygraph_resolvers.schema.definitions import (
    CONSISTENT,
    ID_TYPE,
    OutputType,
    SchemaTypes,
    ServedField,
    UnionType,
    add_fields,
    argument,
    definition_of,
    list_of,
    nullable,
    object_type,
    own_field,
)
from keygraph_resolvers.schema.federation import entities_field, mark, service_field
from keygraph_resolvers.schema.inputs import (
    DEFAULT_PAGE_SIZE,
    DIRECTIONS,
    SortDirection,
    range_input,
    types_enum,
    where_input,
)
from keygraph_resolvers.schema.mutation_types import MutationTypes
from keygraph_resolvers.schema.scalars import SCALAR_MAP
from keygraph_resolvers.schema.strawberry_internals import core_schema
from keygraph_resolvers.schema.walk_types import WalkTypes, page_info_fields

_AT_MOST = "at most 100, unless the server says otherwise"
_EDGES = "The edges of the page; null for one that cannot be read."
_NODES = "The nodes of the edges, without those that do not exist."
_PAGE_INFO = "The position of the page in the list."
_CURSOR = "The position of the edge in the list, for `after` and `before`."
_COUNTED = "The number of edges; null with a warning if counting costs too much."
_UNREAD = " Edges that no page shows, because part of their key is not valid, are counted too."
_CHANGE_KINDS = {
    "CREATED": "It was created, or became visible to you.",
    "UPDATED": "Something that you may read has changed.",
    "DELETED": "It was deleted, has expired, or is no longer visible to you.",
}
_ALSO_OF = "Only edges whose node these other {} nodes have in this list too, by {}: at most 10."


class GraphSchema(strawberry.Schema):
    """A Strawberry schema that knows its graph."""

    graph: Graph
    remade: Callable[[Graph], GraphSchema]
    """Makes the schema of another graph with the same further fields and options."""
    is_subgraph = False
    """Whether an Apollo Federation router can include it in a supergraph."""

    @property
    def has_subscriptions(self) -> bool:
        """Whether clients may subscribe to the graph."""
        return core_schema(self).subscription_type is not None

    def process_errors(self, errors: Any, execution_context: Any = None) -> None:
        """Does nothing: the service handles errors, and logs only unexpected ones."""


class _Subgraph(FederationSchema, GraphSchema):
    """The schema of a graph as a subgraph of a supergraph. Version 2.3 of Federation has all that it uses."""

    is_subgraph = True

    def __init__(self, **options: Any) -> None:
        super().__init__(federation_version="2.3", **options)

    def _get_federation_query_type(self, query: Any, *_: object) -> Any:
        return query  # it has the fields of a subgraph already


def build_schema(
    graph: Graph,
    query: type | None = None,
    mutation: type | None = None,
    *,
    extensions: Iterable[type[SchemaExtension] | Callable[[], SchemaExtension]] = (),
    federation: bool = False,
    live: bool = False,
) -> GraphSchema:
    """Returns the schema of a graph.

    The fields of the Strawberry types `query` and `mutation` are added to the root's. `extensions` are Strawberry
    schema extensions: their hooks run around each operation, their `resolve` around the root fields of `query` and
    `mutation`. `federation` makes it a subgraph of Apollo Federation 2. `live` adds `Subscription`, whose fields are those
    of the graph in `Query`, and the changes of each type. Raises ModelError if the graph has mistakes.
    """
    return checked_types(graph).schema(
        query, mutation, extensions=extensions, federation=federation, live=live
    )


def check(graph: Graph) -> Graph:
    """Returns the graph. Raises ModelError with every mistake in its declaration and in the names of its schema."""
    checked_types(graph)
    return graph


def checked_types(graph: Graph) -> GraphTypes:
    """Returns the types of a graph's schema, for one schema. Raises ModelError if the graph has mistakes."""
    types = GraphTypes(graph)
    wrong = [*graph.mistakes, *name_mistakes(graph)]
    for (name, use), other in types.made.clashes.items():
        problem = f"the schema's name {name} is that of {other} too."
        wrong.append(Mistake("name-twice", use, problem, "Rename one."))
    if wrong:
        raise ModelError(wrong)
    return types


def _type_of_source(source: Any, info: Any, abstract: Any) -> str:
    name: str = source.record.name
    return name


class GraphTypes:
    """Makes the types of a schema, each once. Lists, walks and methods that cannot be resolved are left out."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.made = SchemaTypes(name for name, _, _ in declared_types(graph))
        self._direction = self.made.enum(SortDirection, "SortDirection", DIRECTIONS)
        described = "Something with an `id`, whatever its type."
        self._node = object_type("Node", described, is_interface=True, resolve_type=_type_of_source)
        add_fields(self._node, [self._id_field()])
        self._page_info = object_type("PageInfo", "The position of a page in its list.")
        add_fields(self._page_info, page_info_fields())
        self._walks = WalkTypes(self.made, self.node, self._edge)
        self.root = self._root_fields()
        self.written = MutationTypes(graph, self.made, self.object, self._end_field).fields()
        for record in graph.nodes:
            self.object(record)
        for path in graph.neighbours.values():
            self._node_of(path)  # a field of the same name may have taken the list's place

    def schema(
        self,
        query: type | None = None,
        mutation: type | None = None,
        *,
        extensions: Iterable[type[SchemaExtension] | Callable[[], SchemaExtension]] = (),
        federation: bool = False,
        live: bool = False,
    ) -> GraphSchema:
        """Returns the schema, as `build_schema` does."""
        extensions = tuple(extensions)
        root = object_type("Query", "Everything that can be read.")
        add_fields(root, self.root)
        if query is not None:
            add_fields(root, [self.own_field(field) for field in definition_of(query).fields])
        written = [*self.written]
        if mutation is not None:
            written += [self.own_field(field) for field in definition_of(mutation).fields]
        mutations = object_type("Mutation", "Everything that can be written.")
        add_fields(mutations, written)
        if federation:
            add_fields(root, self.federation_fields(lambda: schema.as_str()))
        made: Callable[..., GraphSchema] = _Subgraph if federation else GraphSchema
        schema = made(
            query=root,
            mutation=mutations if written else None,
            subscription=self.live_root() if live else None,
            directives=[CONSISTENT],
            extensions=extensions,
            types=[self.object(record) for record in self._graph.nodes],
            config=StrawberryConfig(scalar_map=SCALAR_MAP),
        )
        schema.graph = self._graph
        schema.remade = partial(
            build_schema,
            query=query,
            mutation=mutation,
            extensions=extensions,
            federation=federation,
            live=live,
        )
        # Tools such as GraphiQL list the types in the order in which introspection has them.
        named = core_schema(schema).type_map
        core_schema(schema).type_map = dict(sorted(named.items()))
        return schema

    # --- Values ---------------------------------------------------------------------------------------

    def output(self, type_: FieldType) -> OutputType:
        """The GraphQL type of a field's values."""
        return self.made.value(type_, self._struct)

    def _struct(self, type_: FieldType) -> type:
        cls = type_.cls

        def fields() -> Iterator[StrawberryField]:
            own_texts = member_docstrings(cls)
            for member in type_.members:
                of = self.output(member.type)
                described = own_texts.get(member.name) or descriptions.of_field(
                    cls.__name__, member.name, member.type
                )
                own = nullable(of) if member.optional else of
                yield ServedField(camel(member.name), own, kinds.Attribute(member.name), described)

        described = class_docstring(cls) or descriptions.of_type(cls.__name__)
        return self.made.object(cls.__name__, cls.__name__, described, fields)

    # --- Record types ---------------------------------------------------------------------------------

    def _id_field(self) -> StrawberryField:
        described = "A globally unique, opaque id. It is not a key."
        return ServedField("id", ID_TYPE, kinds.GlobalId(), described)

    def object(self, record: RecordType) -> type:
        """The object type of a node, a record, or an edge served as a record."""
        return self.made.object(
            record.name,
            record.name,
            descriptions.of_record(record),
            lambda: self._object_fields(record),
            [self._node],
        )

    def _object_fields(self, record: RecordType) -> Iterator[StrawberryField]:
        yield self._id_field()
        yield from self._member_fields(record, record.order)
        graph = self._graph
        lists = [graph.node_lists.get((record.name, name)) for name in record.lists]
        walks = [graph.walks.get((record.name, name)) for name in record.walks]
        yield from (self._list_field(path) for path in lists if path)
        yield from (self._walks.field(walk) for walk in walks if walk and self._are_usable(walk.nodes))
        if record.name in graph.neighbours:
            yield self._list_field(graph.neighbours[record.name])

    def _are_usable(self, records: Iterable[RecordType]) -> bool:
        return all(record.name in self._graph.types for record in records)

    def node(self, members: Sequence[RecordType]) -> OutputType:
        """The type of a node of one of these types: the object type, or a union."""
        if len(members) == 1:
            return self.object(members[0])
        ordered = self._graph.unions.get(frozenset(members)) or sorted(members, key=lambda each: each.name)
        use = f"the union of {' and '.join(member.name for member in ordered)}"
        return self._union("Or".join(member.name for member in ordered), use, ordered)

    def _node_of(self, path: AccessPath) -> OutputType:
        """The type of a list's nodes."""
        if path in self._graph.neighbours.values():
            return self._union(
                list_name(path).removesuffix("s"), f"the nodes of {list_in_words(path)}", path.records
            )
        return self.node(path.nodes)

    def _union(self, name: str, use: str, members: Sequence[RecordType]) -> UnionType:
        def make() -> UnionType:
            types = [self.object(each) for each in members]
            return UnionType(name, types, _type_of_source, descriptions.OF_SEVERAL)

        return self.made.once(name, use, make)

    def _stored_field(self, record: RecordType, field: Field) -> StrawberryField:
        name, type_ = field.name, self.output(field.type)
        own = nullable(type_) if field.may_be_null or restricted_name(record, name) else type_
        described, reason = descriptions.of_stored(record, field), record.deprecated(name)
        return ServedField(camel(name), own, kinds.Stored(field), described, deprecated=reason)

    def _end_field(self, record: RecordType, end: End) -> StrawberryField:
        type_, described = nullable(self.node(end.members)), descriptions.of_end(record, end)
        reason = record.deprecated(end.name)
        return ServedField(camel(end.name), type_, kinds.NodeAt(end), described, deprecated=reason)

    def _list_end_field(self, record: RecordType, field: Field, end: End) -> StrawberryField:
        """The nodes that a list or set names: whether one exists is known only when it is read."""
        made = list_of(nullable(self.node(end.members)))
        type_ = nullable(made) if field.may_be_null or restricted_name(record, field.name) else made
        arguments = [
            argument(
                FIRST, nullable(int), f"The number of nodes from the start: all by default, {_AT_MOST}."
            ),
            argument(SKIP, nullable(int), "The number of nodes to leave out before them."),
        ]
        reason = record.deprecated(field.name)
        return ServedField(
            camel(field.name), type_, kinds.NodesAt(end), descriptions.of_end(record, end), arguments, reason
        )

    def _member_fields(self, record: RecordType, names: Iterable[str]) -> Iterator[StrawberryField]:
        """The named fields, ends and methods as schema fields, in the order of the declaration."""
        for name in names:
            if name in record.list_ends:
                yield self._list_end_field(record, record.fields[name], record.list_ends[name])
            elif name in record.fields and name not in record.walks:
                yield self._stored_field(record, record.fields[name])
            elif name in record.ends:
                yield self._end_field(record, record.ends[name])
            elif name in record.methods and self._are_usable(record.methods[name].nodes):
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
            kinds.Called(method, parameters),
            descriptions.of_method(record, method),
            [self._method_argument(method, *names) for names in parameters.items()],
            record.deprecated(method.name),
        )

    def _annotated(self, annotation: Any, *, may_be_null: bool = False) -> OutputType:
        annotation, optional = is_optional(annotation)
        type_ = self.output(field_type(annotation, AttributeStyle()))
        return nullable(type_) if optional or may_be_null else type_

    def _method_argument(self, method: Method, graphql_name: str, name: str) -> StrawberryArgument:
        default, type_ = method.signature.parameters[name].default, self._annotated(method.hints[name])
        described = descriptions.of_key_part(name, optional=False)
        if default is inspect.Parameter.empty:
            return argument(graphql_name, type_, described)
        if isinstance(default, bool | int | float | str):
            return argument(graphql_name, type_, described, default)
        own = type_ if isinstance(type_, StrawberryOptional) else nullable(type_)
        return argument(graphql_name, own, described)

    # --- Lists ----------------------------------------------------------------------------------------

    def _list_field(self, path: AccessPath) -> StrawberryField:
        """The field of an access path: a connection, or the only neighbor."""
        arguments = [*self._list_arguments(path)]
        if not path.is_one:
            type_ = self._connection(path)
        else:
            type_ = self._edge(path) if path.far_end else self.object(path.record)
        kind, described, reason = kinds.ListOf(path), descriptions.of_list(path), _reason(path)
        return ServedField(camel(path.name), nullable(type_), kind, described, arguments, reason)

    def _list_arguments(self, path: AccessPath) -> Iterator[StrawberryArgument]:
        for required in path.required:
            type_ = self._key_scalar(required.slot, is_optional=required.optional)
            yield argument(camel(required.name), type_, descriptions.of_required(required))
        for ranged in path.ranged if path.is_one else ():
            described = f"Only one with this {descriptions.in_words(ranged.name)}."
            yield argument(camel(ranged.name), nullable(self.made.scalar(ranged.type)), described)
        if not path.is_one:
            yield from self._page_arguments(path)

    def _page_arguments(self, path: AccessPath) -> Iterator[StrawberryArgument]:
        number, text, ids = nullable(int), nullable(str), nullable(list_of(ID_TYPE))
        first = f"The number of edges from the start: {DEFAULT_PAGE_SIZE} by default, {_AT_MOST}."
        yield argument("first", number, first)
        yield argument("after", text, "Only edges after this cursor.")
        if len(path.keys.attributes) == 2:
            # Without a sort key there is no order to reverse.
            yield argument("last", number, f"The number of edges from the end: {_AT_MOST}.")
            yield argument("before", text, "Only edges before this cursor; none if `after` comes later.")
            direction, ascending = nullable(self._direction), SortDirection.ASC.value
            yield argument("direction", direction, "Whether the order ascends or descends.", ascending)
        for ranged in path.ranged:
            described = f"Only those whose `{camel(ranged.name)}` is in this range."
            yield argument(camel(ranged.name), nullable(range_input(self.made, ranged)), described)
        if path.members:
            types = nullable(list_of(types_enum(self.made, path)))
            yield argument("types", types, "Only those of these types.")
        where = nullable(where_input(self.made, path))
        yield argument("where", where, "Only those that match all of these conditions.")
        if path.finds_by_node or path.keys_of_both_ends:
            by = "`id` or key" if are_identified_by_text(path.nodes) else "`id`"
            yield argument("to", ids, f"Only edges to these nodes, by {by}: {_AT_MOST}.")
        if path.finds_common and path.owner is not None:
            by = "`id` or key" if are_identified_by_text([path.owner]) else "`id`"
            yield argument(ALSO_OF, ids, _ALSO_OF.format(path.owner.name, by))

    def _connection(self, path: AccessPath) -> type:
        def fields() -> list[StrawberryField]:
            edge, node = self._edge(path), self._node_of(path)
            counted = _COUNTED + (_UNREAD if may_count_unread(self._graph, path) else "")
            return [
                ServedField("edges", list_of(nullable(edge)), kinds.Edges(), _EDGES),
                ServedField("nodes", list_of(node), kinds.Nodes(), _NODES),
                ServedField("pageInfo", self._page_info, kinds.PageInfo(), _PAGE_INFO),
                ServedField("totalCount", nullable(int), kinds.TotalCount(), counted),
                *aggregate_of_list(self.made, path),
            ]

        name = f"{connection_prefix(path)}Connection"
        return self.made.object(name, list_in_words(path), f"A page of {descriptions.listed(path)}.", fields)

    def _edge(self, path: AccessPath) -> type:
        def fields() -> Iterator[StrawberryField]:
            record = path.record
            if not path.is_one:
                yield ServedField("cursor", str, kinds.Cursor(), _CURSOR)
            yield ServedField(
                "node", nullable(self._node_of(path)), kinds.FarNode(path), descriptions.of_far_node(path)
            )
            if path.far_end:
                names = [name for name in record.order if name not in record.key_ends]
                yield from self._member_fields(record, names)

        name = f"{connection_prefix(path)}Edge"
        return self.made.object(name, list_in_words(path), descriptions.of_edge(path), fields)

    # --- The root -------------------------------------------------------------------------------------

    def _root_fields(self) -> list[StrawberryField]:
        """The root fields: nodes by key and by global id, the lists at the root, and index lookups."""
        one, ids = nullable(self._node), list_of(ID_TYPE)
        given = argument("id", ID_TYPE, "The value of an `id` field.")
        several = argument("ids", ids, f"The values of `id` fields: {_AT_MOST}.")
        described = "The nodes with these ids, in the same order; null for each that does not exist."
        fields: list[StrawberryField] = [
            ServedField("node", one, kinds.NodeById(), "The node with this id.", [given]),
            ServedField("nodes", list_of(one), kinds.NodesByIds(), described, [several]),
        ]
        fields += [self._by_key_field(record) for record in self._graph.nodes]
        fields += [self._list_field(path) for path in self._graph.root_lists]
        fields += [self._list_field(path) for path in self._graph.finders]
        return [*fields, *self._walks.path_fields(self._graph, self._node)]

    def live_root(self) -> type:
        """The root of subscriptions: the fields of the graph, as in `Query`, and the changes of each type's records."""
        described = (
            "Everything that can be read, and is sent again whenever it has become another; and changes."
        )
        live = object_type("Subscription", described)
        add_fields(live, self.root)
        add_fields(
            live, [self._changes_field(each) for each in filter(has_changes, self._graph.types.values())]
        )
        return live

    def _changes_field(self, record: RecordType) -> StrawberryField:
        """The field with the changes of a type's records."""
        arguments = [
            argument(name, nullable(self.made.scalar(slot.text.type)), f"Only those with this `{name}`.")
            for name, slot in change_arguments(record).items()
        ]
        name, described = change_field(record), descriptions.of_changes(record)
        type_ = self.made.object(
            change_type(record),
            f"the changes of {record.name}",
            described,
            lambda: self._change_fields(record),
        )
        reason = record.notes.deprecated
        return ServedField(name, nullable(type_), kinds.ChangesOf(record), described, arguments, reason)

    def _change_fields(self, record: RecordType) -> Iterator[StrawberryField]:
        kind = self.made.names(
            "ChangeKind", "the kinds of changes", "What a change is to you.", _CHANGE_KINDS
        )
        yield ServedField("kind", kind, kinds.Attribute("kind"), "What the change is to you.")
        what, type_ = descriptions.in_words(record.name), nullable(self.object(record))
        for name, is_old, when in (("old", True, "before"), ("new", False, "after")):
            described = f"The {what} {when} the change; null if you could not see it."
            yield ServedField(name, type_, kinds.ChangedRecord(record, is_old), described)
        described = "When the change was made, about."
        moment = self.made.scalar(field_type(datetime, AttributeStyle()))
        yield ServedField("changedAt", moment, kinds.Attribute("changed_at"), described)

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
        return own_field(field, type_, kinds.OwnNode(members, has_elements))

    def _given_nodes(
        self, records: tuple[RecordType, ...], annotation: Any, *, is_list: bool, may_be_null: bool = False
    ) -> OutputType:
        """The type of nodes that user code returns: whether one exists is known only when it is read."""
        node = nullable(self.node(records))
        if not is_list:
            return node
        return nullable(list_of(node)) if may_be_null or is_optional(annotation)[1] else list_of(node)

    def _key_scalar(self, slot: Slot, *, is_optional: bool) -> OutputType:
        type_ = self.made.scalar(slot.text.type)
        return nullable(type_) if is_optional else type_

    def _by_key_field(self, record: RecordType) -> StrawberryField:
        arguments = []
        for name, slot in key_arguments(record).items():
            is_optional = slot.name in record.table_keys.optional
            type_ = self._key_scalar(slot, is_optional=is_optional)
            arguments.append(argument(name, type_, descriptions.of_key_part(name, optional=is_optional)))
        described = f"The {record.name} with {'this key' if len(arguments) == 1 else 'these keys'}."
        own, reason = nullable(self.object(record)), record.notes.deprecated
        return ServedField(field_name(record), own, kinds.NodeByKey(record), described, arguments, reason)

    def federation_fields(self, printed: Callable[[], str]) -> list[StrawberryField]:
        """Returns the fields that a router requests, and adds the directives to all types made so far."""
        from strawberry.federation.schema_directives import Shareable

        for record in self._graph.types.values():
            if (made := self.made.of_record(record.name)) is not None:
                mark(record, made)
        # Every subgraph with lists has a type with this name.
        definition_of(self._page_info).directives = [Shareable()]
        nodes = [self.object(record) for record in self._graph.nodes]
        return [entities_field(nodes, _type_of_source), service_field(printed)]


def _reason(path: AccessPath) -> str | None:
    """The deprecation reason of a list: its own, or that of its record type."""
    own = None if path.owner is None else path.owner.deprecated(path.name)
    far = path.nodes[0].notes.deprecated if len(path.nodes) == 1 else None
    return next((each for each in (own, path.record.notes.deprecated, far) if each is not None), None)
