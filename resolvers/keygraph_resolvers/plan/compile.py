"""Compiles the document of an operation into its plan.

A validated document is compiled once for each combination of the variables in `@skip` and `@include`. Fields that the
specification merges are one field of the plan; a selection that several places share, through fragments, is one object
with one set of steps. The number of fields with all fragments spread was limited before
(`keygraph_resolvers.plan.document_limits`); a field of an interface is one for each type, so the plan has a limit too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from graphql import (
    EnumValueNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionNode,
    VariableNode,
    get_named_type,
    is_abstract_type,
    is_composite_type,
    is_object_type,
)

from keygraph.graph import Graph
from keygraph.lists.aggregating import AggregateField
from keygraph.model.paths import AccessPath
from keygraph.model.records import End, RecordType
from keygraph_resolvers.naming.names import ALSO_OF, connection_prefix
from keygraph_resolvers.plan.document_limits import DocumentLimit
from keygraph_resolvers.plan.plan import Plan, is_consistent
from keygraph_resolvers.read.aggregates import AskedAggregate, AskedValue
from keygraph_resolvers.read.objects import Object, check_key, end_reader
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema import field_kinds
from keygraph_resolvers.schema.definitions import kind_of
from keygraph_resolvers.schema.field_kinds import (
    CREATED,
    Aggregate,
    AggregateValue,
    Attribute,
    Called,
    FarNode,
    ListOf,
    NodeAt,
    OwnNode,
    ResultList,
    Via,
    WalkedNode,
    WalkOf,
    WaysBetween,
    Writes,
    WritesEach,
    WrittenRecord,
)
from keygraph_resolvers.schema.strawberry_internals import strawberry_field
from keygraph_resolvers.steps.call import CallMethod, CallOwn
from keygraph_resolvers.steps.get import EndStep, Get, Items, Named
from keygraph_resolvers.steps.lists import ListStep, PageStep
from keygraph_resolvers.steps.partial_page import PartialPage
from keygraph_resolvers.steps.payload import PayloadStep
from keygraph_resolvers.steps.questions.common import CommonStep
from keygraph_resolvers.steps.questions.numbers import NumbersStep, numbers_of
from keygraph_resolvers.steps.questions.ways import WayFields, WaysStep
from keygraph_resolvers.steps.selection import SelectedField, Selection
from keygraph_resolvers.steps.several_types import ByType, UntoldNodes
from keygraph_resolvers.steps.step import Step
from keygraph_resolvers.steps.walks.node_walks import NodeWalkStep, WalkPage
from keygraph_resolvers.steps.walks.walk import EdgesStep
from keygraph_resolvers.steps.write import WriteStep

MOST_FIELDS = 3_000
"""The most fields of a plan, each counted in every selection that contains it."""


def compile_plan(
    schema: GraphQLSchema,
    graph: Graph,
    operation: OperationDefinitionNode,
    fragments: Mapping[str, FragmentDefinitionNode],
    booleans: Mapping[str, bool],
) -> Plan:
    """Returns the plan of an operation of a validated document, for these values of the variables in its directives.

    Raises DocumentLimit if it has too many fields.
    """
    selections = _Selections(schema, graph, fragments, booleans)
    root_type = cast(GraphQLObjectType, schema.get_root_type(operation.operation))
    root = selections.of(root_type.name, [operation.selection_set])
    steps = _Steps(graph, selections.made, is_consistent=is_consistent(operation))
    lists = [steps.list(each) for each in root.lists]
    by_name = (field_kinds.NodeByKey, field_kinds.NodeById, field_kinds.NodesByIds)
    named = [steps.named(each) for each in root.having(*by_name)]
    written = root.having(*field_kinds.MUTATIONS)
    writes = [steps.write(each, position) for position, each in enumerate(written)]
    own = [steps.own(each) for each in root.having(OwnNode)]
    ways = [steps.ways(each) for each in root.having(WaysBetween)]
    by_field: dict[str, Step] = {step.suffix: step for step in (*lists, *named, *own, *ways, *writes)}
    roots = [by_field[each.key] for each in root.fields if each.key in by_field]
    start = Items(root, lists, [*named, *own, *ways], ())
    _tell_alone(selections.made, steps)
    return Plan(
        operation, graph, root, selections.made, start, roots, steps.lists, steps.walks, steps.gathers
    )


def _tell_alone(selections: Sequence[Selection], steps: _Steps) -> None:
    """Marks the walks that are alone: nothing else requests what they have read, so they need not keep it."""
    read = Counter(path for step in steps.lists for path in step.path.each)
    read.update(path for walk in steps.walks for path in {*walk.reads})
    places = Counter(below for selection in selections for below in selection.inner)
    of_one = [selections[-1]]  # the root
    for selection in of_one:
        for each in selection.having(field_kinds.NodeByKey, field_kinds.NodeById, NodeAt):
            of_one += [below for below in each.below.values() if places[below] == 1]
    fields = {each for selection in of_one for each in selection.fields}
    for walk in steps.walks:
        walk.is_alone = walk.selected in fields and all(read[path] == 1 for path in walk.reads)


_OF_A_PAGE = (field_kinds.Edges, field_kinds.Nodes, field_kinds.PageInfo)
"""The fields of a connection that need its page."""


class _Selections:
    """Makes the selections of one plan, each once."""

    def __init__(
        self,
        schema: GraphQLSchema,
        graph: Graph,
        fragments: Mapping[str, FragmentDefinitionNode],
        booleans: Mapping[str, bool],
    ) -> None:
        self.made: list[Selection] = []
        """The selections made so far, inner ones first."""
        self._schema = schema
        self._graph = graph
        self._fragments = fragments
        self._booleans = booleans
        self._by_nodes: dict[tuple[Any, ...], Selection] = {}
        self._fields = 0

    def of(self, type_name: str, selection_sets: Sequence[Any]) -> Selection:
        """Returns the selection that the selection sets make of an object of the type."""
        type_ = cast(GraphQLObjectType, self._schema.get_type(type_name))
        grouped = self._collected(type_, selection_sets)
        # The collected fields decide the selection, whichever fragments contain them.
        key = (type_name, *(tuple(map(_place_in_text, nodes)) for nodes in grouped.values()))
        found = self._by_nodes.get(key)
        if found is None:
            self._fields += len(grouped)
            if self._fields > MOST_FIELDS:
                told = (
                    f"This operation selects more than {MOST_FIELDS:,} fields of the types that it may find"
                )
                raise DocumentLimit(f"{told}: ask for it in several operations.")
            fields = tuple(self._field(type_, name, tuple(nodes)) for name, nodes in grouped.items())
            found = self._by_nodes[key] = Selection(type_, self._record_of(type_), fields)
            self.made.append(found)
        return found

    def _collected(
        self, type_: GraphQLObjectType, selection_sets: Sequence[Any]
    ) -> dict[str, list[FieldNode]]:
        """The fields by their keys in the answer, as the specification collects them (6.3.2)."""
        grouped: dict[str, list[FieldNode]] = {}
        seen: set[str] = set()

        def collect(selections: Sequence[SelectionNode]) -> None:
            for selection in selections:
                if not self._is_included(selection):
                    continue
                match selection:
                    case FieldNode():
                        name = selection.alias.value if selection.alias else selection.name.value
                        grouped.setdefault(name, []).append(selection)
                    case InlineFragmentNode():
                        condition = selection.type_condition
                        if condition is None or self._applies(condition.name.value, type_):
                            collect(selection.selection_set.selections)
                    case FragmentSpreadNode():
                        name = selection.name.value
                        fragment = self._fragments.get(name)
                        if fragment is None or name in seen:
                            continue
                        seen.add(name)
                        if self._applies(fragment.type_condition.name.value, type_):
                            collect(fragment.selection_set.selections)

        for selection_set in selection_sets:
            collect(selection_set.selections)
        return grouped

    def _applies(self, condition: str, type_: GraphQLObjectType) -> bool:
        if condition == type_.name:
            return True
        wanted = self._schema.get_type(condition)
        return is_abstract_type(wanted) and self._schema.is_sub_type(cast(Any, wanted), type_)

    def _is_included(self, selection: SelectionNode) -> bool:
        for directive in selection.directives or ():
            if directive.name.value not in ("skip", "include"):
                continue
            [condition] = directive.arguments or ()
            value: Any = condition.value
            says = self._booleans[value.name.value] if isinstance(value, VariableNode) else value.value
            if bool(says) == (directive.name.value == "skip"):
                return False
        return True

    def _field(self, owner: GraphQLObjectType, key: str, nodes: tuple[FieldNode, ...]) -> SelectedField:
        name = nodes[0].name.value
        definition = None if name == "__typename" else self._schema.get_field(owner, name)
        if definition is None:
            return SelectedField(key, nodes, owner, None, None, {})
        kind = kind_of(strawberry_field(definition))
        named = get_named_type(definition.type)
        below: dict[str, Selection] = {}
        if kind is not None and is_composite_type(named):
            types = [named] if is_object_type(named) else self._schema.get_possible_types(cast(Any, named))
            sets = [node.selection_set for node in nodes if node.selection_set]
            below = {type_.name: self.of(type_.name, sets) for type_ in types}
        made = SelectedField(key, nodes, owner, definition, kind, below)
        if isinstance(kind, ListOf) and len(below) == 1 and not kind.path.is_one:
            made.numbers = numbers_of(kind.path, nodes, made.only, _named_by)
        return made

    def _record_of(self, type_: GraphQLObjectType) -> RecordType | None:
        """The record type of an object, or of the item behind an edge."""
        record = self._graph.types.get(type_.name)
        if record is not None:
            return record
        for definition in type_.fields.values():
            kind = kind_of(strawberry_field(definition))
            if isinstance(kind, FarNode) and not kind.path.members:
                return kind.path.record
        return None


def _place_in_text(node: FieldNode) -> int:
    """The position of a field in the document, which identifies it."""
    if node.loc is None:
        raise LookupError("the document was parsed without locations")
    return node.loc.start


class _Steps:
    """Makes the steps of one plan, one set for each selection."""

    def __init__(self, graph: Graph, selections: Sequence[Selection], *, is_consistent: bool) -> None:
        self.lists: list[ListStep] = []
        self.walks: list[NodeWalkStep | WaysStep] = []
        self._is_consistent = is_consistent
        self._graph = graph
        self._items: dict[Selection, Items] = {}
        self._gets: dict[tuple[Selection, bool], Get] = {}
        self._met = Counter(below.record for selection in selections for below in selection.inner)
        self._met_lists = Counter(_path_of(each) for selection in selections for each in selection.lists)
        for selection in selections:  # inner ones first
            self._items[selection] = self._made_items(selection)
        self.gathers = [each.gather for each in self._items.values() if each.gather is not None]

    def _made_items(self, selection: Selection) -> Items:
        record = selection.record
        if record is None:
            # For an edge of a list of several types, the fields of the item itself depend on its type.
            return Items(selection, (), [self._itself(each) for each in selection.having(FarNode)], ())
        calls = [self._call(record, each) for each in selection.having(Called)]
        lists = {each: self.list(each) for each in selection.lists}
        walks = {each: self.walk(each) for each in selection.having(WalkOf)}
        return Items(
            selection,
            [step for each, step in lists.items() if not selection.waits(each)],
            [
                *(self._end(record, each) for each in selection.key_ends if not _is_itself(each)),
                *(step for each, step in walks.items() if not selection.waits(each)),
            ],
            [
                *(self._end(record, each) for each in selection.item_ends),
                *calls,
                *(step for each, step in {**lists, **walks}.items() if selection.waits(each)),
                *(NumbersStep(each) for each in lists if each.numbers),
            ],
            [self._items[each.only] for each in selection.key_ends if _is_itself(each)],
        )

    def get(self, selection: Selection, *, must_exist: bool = False) -> Get:
        """The step that reads the nodes of a selection."""
        found = self._gets.get((selection, must_exist))
        if found is None:
            record = cast(RecordType, selection.record)
            found = Get(self._items[selection], record, must_exist=must_exist)
            found.may_be_known = self._met[record] > 1
            self._gets[selection, must_exist] = found
        return found

    def named(self, selected: SelectedField) -> Named:
        """The step of a root field that names nodes."""
        gets = {name: self.get(below, must_exist=True) for name, below in selected.below.items()}
        return Named(selected, gets)

    def own(self, selected: SelectedField) -> CallOwn:
        """The step of a root field that a user added and that returns a node."""
        gets = {name: self.get(below, must_exist=True) for name, below in selected.below.items()}
        return CallOwn(selected, UntoldNodes(gets) if selected.is_type_unknown else ByType(gets))

    def write(self, selected: SelectedField, position: int) -> WriteStep:
        """The step of a mutation; `position` is its position among the operation's mutations."""
        step = WriteStep(selected, position)
        match selected.kind:
            case Writes() as kind:
                step.payloads = [self._payload("", kind, selected.only, step)]
            case WritesEach(action, record):
                kind = Writes(action, record)
                results = selected.only.having(ResultList)
                step.payloads = [self._payload(each.key, kind, each.only, step) for each in results]
            case _:
                step.payloads = [
                    self._payload(f"{results.key}.{each.key}", cast(Writes, each.kind), each.only, step)
                    for results in selected.only.having(ResultList)
                    for each in results.only.having(Writes)
                ]
        return step

    def _payload(self, name: str, kind: Writes, selection: Selection, step: WriteStep) -> PayloadStep:
        """The step that continues from payloads with this selection."""
        if Attribute(CREATED) in (each.kind for each in selection.having(Attribute)):
            step.read_before.add(kind)
        shown = [(each, self.get(each.only)) for each in selection.having(WrittenRecord)]
        ends = [self._end(kind.record, each) for each in selection.having(NodeAt)]
        return PayloadStep(name, kind, shown, ends, step.is_noted)

    def _nodes(self, selected: SelectedField) -> Step:
        """The step of the nodes that a field returns."""
        gets = {name: self.get(below) for name, below in selected.below.items()}
        if selected.is_type_unknown:
            return UntoldNodes(gets)
        return next(iter(gets.values())) if len(gets) == 1 else ByType(gets)

    def _itself(self, selected: SelectedField) -> Step:
        """The step of a field that is the item of an edge itself."""
        items = {name: self._items[below] for name, below in selected.below.items()}
        return next(iter(items.values())) if len(items) == 1 else ByType(items)

    def _end(self, record: RecordType, selected: SelectedField) -> Step:
        match selected.kind:
            case FarNode(path) if path.far_end is not None:
                end = record.ends[path.far_end]
                read = end_reader(record, end)
                return EndStep(selected, record, end.name, read, self._nodes(selected), name="")
            case NodeAt(end):
                read = self._checked(record, end)
                return EndStep(selected, record, end.name, read, self._nodes(selected), name=selected.key)
        raise LookupError(f"{selected.name} is no end")

    def _checked(self, record: RecordType, end: End) -> Callable[[Object], Object | None]:
        """Returns a function that finds the node at an end and checks its key."""
        graph, read = self._graph, end_reader(record, end)

        def read_checked(owner: Object) -> Object | None:
            found = read(owner)
            if found is not None:
                check_key(graph, found, record, end.name)
            return found

        return read_checked

    def _call(self, record: RecordType, selected: SelectedField) -> CallMethod:
        called = cast(Called, selected.kind)
        return CallMethod(selected, record, called, self._nodes(selected) if called.method.nodes else None)

    def list(self, selected: SelectedField) -> ListStep:
        """The step of a list, or of an only neighbor."""
        path = _path_of(selected)
        if path.is_one:
            page_step = PartialPage if _lacks(path, [selected.only]) else PageStep
            page = page_step(selected.key, path, (), (), self._items[selected.only])
            step = self._list_step(selected, page, has_total=False, looks=frozenset())
        else:
            step = self._connection(selected, path, selected.only)
        self.lists.append(step)
        return step

    # --- Walks --------------------------------------------------------------------------------------------

    def walk(self, selected: SelectedField) -> NodeWalkStep:
        """The step of a walk."""
        walk, below = cast(WalkOf, selected.kind).walk, selected.only
        edges, nodes, infos = map(below.having, _OF_A_PAGE)
        page = None
        if edges or nodes or infos:
            page = WalkPage(
                [
                    (
                        each,
                        [(node, self._walked(node)) for node in each.only.having(WalkedNode)],
                        [self._edges(via) for via in each.only.having(Via)],
                    )
                    for each in edges
                ],
                [(each, self._walked(each)) for each in nodes],
            )
        step = NodeWalkStep(
            selected,
            walk,
            page,
            has_total=bool(below.having(field_kinds.TotalCount)),
            looks_ahead=any(look.name == "hasNextPage" for info in infos for look in info.only.fields),
            is_consistent=self._is_consistent,
        )
        step.aggregates = self._aggregates(below)
        self.walks.append(step)
        return step

    def ways(self, selected: SelectedField) -> WaysStep:
        """The step of a root field that finds how nodes are connected."""
        nodes = selected.only.having(field_kinds.WayNodes)
        edges = selected.only.having(field_kinds.WayEdges)
        shown = WayFields(
            [(each, self._walked(each)) for each in nodes],
            [
                (
                    each,
                    [(node, self._walked(node)) for node in each.only.having(field_kinds.WayNode)],
                    [self._edges(edge) for edge in each.only.having(Via)],
                )
                for each in edges
            ],
        )
        step = WaysStep(selected, self._graph.followed, shown, is_consistent=self._is_consistent)
        self.walks.append(step)
        return step

    def _walked(self, selected: SelectedField) -> Step:
        """The step of a walk's nodes, whose keys identify their types."""
        gets = {name: self.get(below) for name, below in selected.below.items()}
        return next(iter(gets.values())) if len(gets) == 1 else ByType(gets)

    def _edges(self, selected: SelectedField) -> EdgesStep:
        """The steps of edges that walks followed."""
        paths = cast(Via, selected.kind).paths
        below = {path: selected.below[f"{connection_prefix(path)}Edge"] for path in paths}
        return EdgesStep(
            selected,
            {path: self._items[each] for path, each in below.items()},
            frozenset(path for path, each in below.items() if _lacks(path, _of_items(path, [each]))),
        )

    def _connection(self, selected: SelectedField, path: AccessPath, below: Selection) -> ListStep:
        edges, nodes, infos = map(below.having, _OF_A_PAGE)
        items = _of_items(path, [each.only for each in edges], nodes)
        looks = frozenset(look.name for info in infos for look in info.only.fields if look.kind is not None)
        page = None
        if edges or nodes or infos:
            page_step = PartialPage if _lacks(path, items, leads_on=bool(nodes)) else PageStep
            page = page_step(
                selected.key,
                path,
                [(each, self._items[each.only]) for each in edges],
                [(each, self._itself(each) if path.far_end is None else self._nodes(each)) for each in nodes],
                None,
            )
        has_total = any(each not in selected.numbers for each in below.having(field_kinds.TotalCount))
        step = self._list_step(selected, page, has_total=has_total, looks=looks)
        step.aggregates = self._aggregates(below, selected.numbers)
        return step

    def _aggregates(
        self, below: Selection, numbers: Container[SelectedField] = ()
    ) -> Sequence[AskedAggregate]:
        """Returns the requested aggregates of a connection, except those that its owner's numbers answer."""
        found = []
        for each in below.having(Aggregate):
            if any(value in numbers for value in each.only.fields):
                continue
            kind = cast(Aggregate, each.kind)
            named = [name for value in each.only.fields for name in _aggregated(value, kind.fields)]
            needed = frozenset(kind.fields[name].source for name in named if name in kind.fields)
            if kind.record.access is not None:
                needed = needed.union(*(kind.record.access.names("read", name) for name in needed))
            asked, of_types = _asked(each.only, kind.fields), self._aggregates(each.only)
            found.append(AskedAggregate(each, kind.record, asked, needed, of_types))
        return found

    def _list_step(
        self, selected: SelectedField, page: PageStep | None, *, has_total: bool, looks: frozenset[str]
    ) -> ListStep:
        path = _path_of(selected)
        is_met = self._met_lists[path] > 1
        step_type = CommonStep if selected.says(ALSO_OF) else ListStep
        return step_type(
            selected,
            path,
            page,
            has_total=has_total,
            looks=looks,
            may_be_known=is_met,
            is_consistent=self._is_consistent,
        )


def _is_itself(selected: SelectedField) -> bool:
    """Whether the field of an edge is the edge's own item."""
    return isinstance(selected.kind, FarNode) and selected.kind.path.far_end is None


def _path_of(selected: SelectedField) -> AccessPath:
    """The path of a field that is a list or an only neighbor."""
    return cast(ListOf, selected.kind).path


def _of_items(
    path: AccessPath, edges: Sequence[Selection], nodes: Sequence[SelectedField] = ()
) -> list[Selection]:
    """Returns the selections of a list's items: those of its edges, and of its nodes if these are the items."""
    found = [*edges]
    if path.far_end is None:
        far = [node for edge in edges for node in edge.having(FarNode)]
        found += [below for each in (*nodes, *far) for below in each.below.values()]
    return found


def _lacks(path: AccessPath, items: Sequence[Selection], *, leads_on: bool = False) -> bool:
    """Whether the index that is read lacks selected fields, ends or methods of the items, or the far end if the list
    `leads_on` to the nodes there."""
    if path.tells_all:
        return False
    told = {member.record: member.told for member in path.each}
    if leads_on and path.far_end is not None and path.far_end not in path.told:
        return True
    return any(each.record is not None and not each.named <= told[each.record] for each in items)


def _asked(selection: Selection, fields: Mapping[str, AggregateField]) -> list[AskedValue]:
    """Returns the requested values of an aggregate, or of its groups."""

    def arguments(each: SelectedField, run: Run) -> tuple[AggregateField | None, int | None]:
        return each.told(run, lambda given: (fields[given["field"].value], given.get("first")))

    return [
        AskedValue(
            each,
            each.kind.function,
            partial(arguments, each),
            [asked for below in each.below.values() for asked in _asked(below, fields)],
        )
        for each in selection.fields
        if isinstance(each.kind, AggregateValue)
    ]


def _named_by(selected: SelectedField, kind: Aggregate) -> list[str]:
    """The fields of items that a value of an aggregate uses."""
    return [kind.fields[name].source for name in _aggregated(selected, kind.fields)]


def _aggregated(selected: SelectedField, fields: Mapping[str, AggregateField]) -> Iterator[str]:
    """The names that a value of an aggregate may use: all of them if a variable gives the name."""
    for node in selected.nodes:
        for argument in node.arguments or ():
            if argument.name.value == "field":
                value = argument.value
                yield from [value.value] if isinstance(value, EnumValueNode) else fields
    for below in selected.below.values():
        for each in below.fields:
            yield from _aggregated(each, fields)
