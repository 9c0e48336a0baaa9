"""A naive execution of a schema, to hold the planned one against: each field by itself, on graphql-core's executor.

It shares with the planned one what a key, an item and an argument mean (`keygraph`, and the texts of cursors and
ids), and nothing of how an operation runs: no plan, no read-ahead, no loaders, no Query. The table is looked at as
one Scan of it, so that a list is what plain Python keeps of all items, sorted and sliced, and a node is looked up
whenever a field asks for it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, cast

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentSpreadNode,
    GraphQLIncludeDirective,
    GraphQLObjectType,
    GraphQLResolveInfo,
    GraphQLSkipDirective,
    InlineFragmentNode,
    SelectionSetNode,
    execute,
    get_named_type,
    is_abstract_type,
)
from graphql.execution.values import get_directive_values

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput, CorruptItem
from keygraph.graph import Graph
from keygraph.limits import Limits
from keygraph.lists.extent import Located
from keygraph.model.instances import bare_instance, instance
from keygraph.model.paths import AccessPath
from keygraph.model.records import End, RecordType
from keygraph.names import camel
from keygraph_resolvers.errors import public_error
from keygraph_resolvers.naming.global_ids import global_id, read_global_id
from keygraph_resolvers.read.objects import object_of_instance
from keygraph_resolvers.schema import field_kinds
from keygraph_resolvers.schema.definitions import ServedField
from keygraph_resolvers.schema.strawberry_internals import (
    core_schema,
    strawberry_field,
)
from keygraph_resolvers.schema.types import GraphSchema
from tests.resolvers.naive_lists import Entry, List, NaiveLists, Thing
from tests.resolvers.naive_walks import NaiveWalks, Sums, Walked, summed
from tests.resolvers.naive_ways import Ask, NaiveWays, WayEdge


class Naive:
    """Answers operations from all items of a table."""

    def __init__(
        self,
        schema: GraphSchema,
        items: Sequence[Item],
        secret: bytes,
        refused: AbstractSet[Key] = frozenset(),
        ask: Ask | None = None,
    ) -> None:
        """`refused` are the keys of items that the store refuses to get; `ask` asks the server which ways it shows."""
        self.schema = schema
        self.refused = refused
        self.graph: Graph = schema.graph
        self.by_key = {self.graph.table.key_of(item): item for item in items}
        self.lists = NaiveLists(self.graph, items, secret)
        self.walks = NaiveWalks(self.graph, self.lists, secret)
        self.ask = ask

    async def execute(
        self, document: DocumentNode, variables: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The response to an operation that is valid."""
        result: Any = execute(
            core_schema(self.schema),
            document,
            variable_values=dict(variables or {}),
            middleware=[self],
        )
        if inspect.isawaitable(result):
            result = await result
        errors = [public_error(error) for error in result.errors or ()]
        if result.data is None and errors and all("path" not in error for error in errors):
            return {"errors": errors}
        return {"data": result.data, **({"errors": errors} if errors else {})}

    # --- Fields ---------------------------------------------------------------------------------------

    def resolve(self, next_: Any, source: Any, info: GraphQLResolveInfo, **arguments: Any) -> Any:
        definition = info.parent_type.fields.get(info.field_name)
        served = strawberry_field(definition) if definition else None
        if not isinstance(served, ServedField):
            return _begun(next_(source, info, **arguments))
        return _begun(self._value(served.kind, source, info, arguments))

    def _value(
        self, kind: field_kinds.FieldKind, source: Any, info: GraphQLResolveInfo, given: Mapping[str, Any]
    ) -> Any:
        thing = source.thing if isinstance(source, Entry) else source
        match kind:
            case field_kinds.GlobalId():
                return global_id(thing.record, thing.identity)
            case field_kinds.Stored(field):
                return self._stored(thing, field)
            case field_kinds.NodesAt(end):
                return self._members(thing, end, given, info)
            case field_kinds.NodeAt(end):
                return self._node(self._end(thing, end), info)
            case field_kinds.FarNode(path):
                return self._far(path, thing, info)
            case field_kinds.Called(method):
                return self._called(method, thing, info, given)
            case field_kinds.ListOf(path) if path.is_one:
                page = self.lists.list_of(path, thing, given).page
                return page[0] if page and path.far_end else page[0].thing if page else None
            case field_kinds.ListOf(path):
                return self.lists.list_of(path, thing, given)
            case field_kinds.WalkOf(walk) if (
                walk.options.is_kept and self._stored(thing, walk.owner.fields[walk.name]) is None
            ):
                return None
            case field_kinds.WalkOf(walk):
                asked = selected_names(info, get_named_type(info.return_type))
                return self.walks.found(
                    walk, thing, given, is_counted=bool(asked & {"totalCount", "aggregate"})
                )
            case field_kinds.WalkedNode() | field_kinds.PathEdgeNode():
                return self._node(source.thing, info)
            case field_kinds.Via():
                return source.edge if isinstance(source, WayEdge) else source.via
            case field_kinds.PathsBetween(is_list):
                return NaiveWays(self.graph, self.walks, cast(Ask, self.ask)).found(given, is_list=is_list)
            case field_kinds.PathNodes():
                return [self._or_failed(each, info) for each in source.nodes]
            case field_kinds.PathEdges():
                return source.edges
            case field_kinds.Aggregate(record, fields):
                return self._sums(source, record, fields, info)
            case field_kinds.AggregateValue(function):
                return summed(source, function, given)
            case field_kinds.Edges():
                return source.page
            case field_kinds.Nodes() if isinstance(source, Walked):
                found = [self._or_failed(each.thing, info) for each in source.page]
                return [each for each in found if each is not None]
            case field_kinds.Nodes():
                return self._nodes(source, info)
            case field_kinds.PageInfo():
                return source.info
            case field_kinds.TotalCount():
                return len(source.whole)
            case field_kinds.Cursor():
                return source.cursor
            case field_kinds.Attribute(name):
                return getattr(source, name)
            case field_kinds.NodeByKey(record):
                names = {camel(record.leaf_name(slot.path)): slot for slot in record.identity}
                values = {record.leaf_name(slot.path): given.get(name) for name, slot in names.items()}
                return self._looked_up(Thing(record, self.graph.identity(record, values)))
            case field_kinds.NodeById():
                return self._looked_up(Thing(*read_global_id(self.graph, given["id"])))
            case field_kinds.NodesByIds():
                things = [Thing(*read_global_id(self.graph, text)) for text in given["ids"]]
                return [self._or_error(each) for each in things]

    def _or_failed(self, thing: Thing, info: GraphQLResolveInfo) -> Thing | Exception | None:
        try:
            return self._node(thing, info)
        except Exception as error:
            return error

    def _sums(
        self,
        source: List | Walked | Sums,
        record: RecordType,
        fields: Mapping[str, Any],
        info: GraphQLResolveInfo,
    ) -> Sums:
        if isinstance(source, List):
            located = [Located(item, of.read_identity(item) or (), of) for _, item, of in source.whole]
            return Sums(record, located, fields, len(located), located)
        if isinstance(source, Sums):
            of_type = [each for each in source.located if each.record is record]
            return Sums(record, of_type, fields, len(of_type), of_type)
        type_ = cast(Any, info.schema.get_type(f"{record.name}Aggregate"))
        things: list[Thing | None] = []
        if selected_names(info, type_) - {"count", "__typename"}:
            things = [self._looked_up(Thing(*node)) for node in source.whole]
        items = [
            Located(each.item, each.identity, record) for each in things if each and each.item is not None
        ]
        return Sums(record, items, fields, len(source.whole), items)

    def _stored(self, thing: Thing, field: Any) -> Any:
        if field.name in thing.record.key_fields:
            number, value_of = thing.record.places_in_identity[field.name]
            value = value_of(thing.identity[number])
        else:
            value = thing.record.reader(field)(self._item(thing))
        if not isinstance(value, set):
            return value
        return sorted(value, key=lambda member: getattr(member, "value", member))

    def _item(self, thing: Thing) -> Item:
        if thing.item is None:
            raise LookupError(f"{thing.record.name} was not looked up")
        return thing.item

    def _called(
        self,
        method: Any,
        thing: Thing,
        info: GraphQLResolveInfo,
        given: Mapping[str, Any],
    ) -> Any:
        if method.needs is not None and thing.record.key_fields.issuperset(method.needs):
            made = bare_instance(thing.record, thing.identity)
        else:
            made = instance(thing.record, self._item(thing), method.needs)
        names = {camel(name): name for name in method.parameters}
        answer = method.function(made, **{names[name]: given[name] for name in given})

        def node(found: Any) -> Any:
            if not method.nodes or found is None:
                return found
            source = object_of_instance(self.graph, method.nodes, found)
            return self._node(Thing(source.record, source.identity, others=source.others), info)

        async def awaited() -> Any:
            return node(await answer)

        return awaited() if inspect.isawaitable(answer) else node(answer)

    # --- Nodes ----------------------------------------------------------------------------------------

    def _end(self, thing: Thing, end: End) -> Thing | None:
        if end.name in thing.record.key_fields:
            identity = thing.record.end_readers[end.name](thing.identity)
        else:
            found = thing.record.end_identity(self._item(thing), end)
            if found is None:
                return None
            identity = found
        found_node = self._at(thing, end, identity)
        try:
            self.graph.check_identity(found_node.record, found_node.identity)
        except BadUserInput:
            raise CorruptItem(f"{thing.record.name}.{end.name}") from None
        return found_node

    def _members(self, thing: Thing, end: End, given: Mapping[str, Any], info: GraphQLResolveInfo) -> Any:
        """The nodes of a list of ids; one that cannot be told stands there as its error."""
        skip, first = given.get("skip") or 0, given.get("first")
        if skip < 0 or not 0 <= (first or 0) <= Limits().max_page_size:
            raise BadUserInput("skip")
        ids = thing.record.member_identities(self._item(thing), end)
        found: list[Any] = []
        for each in (ids or [])[skip:][:first]:
            try:
                found.append(self._node(self._named(thing, end, each), info))
            except Exception as error:
                found.append(error)
        return None if ids is None else found

    def _named(self, thing: Thing, end: End, identity: tuple[str, ...] | Exception) -> Thing:
        if isinstance(identity, Exception):
            raise identity
        return self._at(thing, end, identity)

    def _at(self, thing: Thing, end: End, identity: tuple[str, ...]) -> Thing:
        """The node at an end, of the first type that it can be of."""
        try:
            (record, *others), own = end.nodes(identity)
        except ValueError:
            raise CorruptItem(f"{thing.record.name}.{end.name}") from None
        return Thing(record, own, others=tuple(others))

    def _nodes(self, connection: List, info: GraphQLResolveInfo) -> list[Any]:
        """The nodes that there are; one that cannot be told stands there as its error."""
        found: list[Any] = []
        for entry in connection.page:
            try:
                found.append(self._far(connection.path, entry.thing, info))
            except Exception as error:
                found.append(error)
        return [each for each in found if each is not None]

    def _far(self, path: AccessPath, thing: Thing, info: GraphQLResolveInfo) -> Thing | None:
        if path.far_end is None:
            return thing
        end = path.record.ends[path.far_end]
        if end.name in path.record.key_fields:
            return self._node(self._at(thing, end, path.record.end_readers[end.name](thing.identity)), info)
        identity = path.record.end_identity(self._item(thing), end)
        return self._node(None if identity is None else self._at(thing, end, identity), info)

    def _node(self, thing: Thing | None, info: GraphQLResolveInfo) -> Thing | None:
        """A node that a key names: looked up where something is asked of it that its key does not say."""
        if thing is None:
            return None
        if thing.others:
            return self._looked_up(thing)
        type_ = info.schema.get_type(thing.record.name)
        if not any(self._is_of_item(thing.record, type_, name) for name in selected_names(info, type_)):
            return thing
        return self._looked_up(thing)

    def _is_of_item(self, record: RecordType, type_: Any, name: str) -> bool:
        if name == "__typename":
            return False
        served = cast(ServedField, strawberry_field(type_.fields[name]))
        match served.kind:
            case field_kinds.Stored(field):
                return field.name not in record.key_fields
            case field_kinds.NodeAt(end):
                return end.name not in record.key_fields
            case field_kinds.Called(method):
                return method.needs is None or not record.key_fields.issuperset(method.needs)
            case field_kinds.WalkOf(walk):
                return walk.options.is_kept
        return False

    def _looked_up(self, thing: Thing) -> Thing | None:
        if thing.record.is_virtual:
            return thing
        keys = self.graph.table_keys(thing.record, thing.identity)
        if not self.refused.isdisjoint(keys):
            raise BadUserInput("refused")
        items = [self.by_key[key] for key in keys if key in self.by_key]
        told = [(self.graph.recognise(item), item) for item in items]
        found = [
            Thing(record, thing.identity, item)
            for record, item in told
            if record in (thing.record, *thing.others)
        ]
        if len(found) > 1:
            raise CorruptItem(f"{thing.record.name}: in several shards")
        return found[0] if found else None

    def _or_error(self, thing: Thing) -> Thing | Exception | None:
        try:
            return self._looked_up(thing)
        except Exception as error:
            return error


def _begun(answer: Any) -> Any:
    """The answer; one that is awaited is so whatever becomes of its siblings."""
    if not inspect.isawaitable(answer):
        return answer
    task = asyncio.ensure_future(answer)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


# --- Selections ---------------------------------------------------------------------------------------


def selected_names(info: GraphQLResolveInfo, type_: Any) -> set[str]:
    """The names of the fields that are selected below this one, of an object of that type."""

    def is_included(node: Any) -> bool:
        skip = get_directive_values(GraphQLSkipDirective, node, info.variable_values)
        include = get_directive_values(GraphQLIncludeDirective, node, info.variable_values)
        return not (skip and skip["if"]) and not (include and not include["if"])

    def applies(name: str) -> bool:
        condition_type = info.schema.get_type(name)
        return condition_type is type_ or (
            is_abstract_type(condition_type) and info.schema.is_sub_type(condition_type, type_)
        )

    def names(selections: SelectionSetNode | None) -> Iterator[str]:
        for node in selections.selections if selections else ():
            if not is_included(node):
                continue
            match node:
                case FieldNode():
                    yield node.name.value
                case InlineFragmentNode():
                    if node.type_condition is None or applies(node.type_condition.name.value):
                        yield from names(node.selection_set)
                case FragmentSpreadNode():
                    fragment = info.fragments[node.name.value]
                    if applies(fragment.type_condition.name.value):
                        yield from names(fragment.selection_set)

    assert isinstance(type_, GraphQLObjectType)
    return {name for node in info.field_nodes for name in names(node.selection_set)}
