"""Compiles the document of an operation into its plan.

A validated document is compiled once for each combination of the variables in `@skip` and `@include`: its selections
(`keygraph_resolvers.plan.selections`) are made first, then a set of steps for each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from graphql import (
    FragmentDefinitionNode,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
)

from keygraph.graph import Graph
from keygraph.lists.aggregating import AggregateField
from keygraph.model.paths import AccessPath, WalkedPath
from keygraph.model.permissions import is_decided_by_key
from keygraph.model.records import End, RecordType
from keygraph.resolve.derived import Copy
from keygraph_resolvers.engine.worst import weakly
from keygraph_resolvers.naming.names import ALSO_OF, connection_prefix
from keygraph_resolvers.plan.plan import Plan, is_consistent
from keygraph_resolvers.plan.selections import Selections
from keygraph_resolvers.read.aggregates import RequestedAggregate, RequestedValue
from keygraph_resolvers.read.objects import NodeReader, Object, check_key, copying_reader, end_reader
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema import field_kinds as kinds
from keygraph_resolvers.steps.call import CallMethod, CallOwn
from keygraph_resolvers.steps.changes import ChangeStep
from keygraph_resolvers.steps.ends import EndStep, MembersStep
from keygraph_resolvers.steps.get import ByType, FieldsStep, Get, Named, NodesOfUnknownType
from keygraph_resolvers.steps.lists import ListStep, PageStep
from keygraph_resolvers.steps.partial_page import PartialPage
from keygraph_resolvers.steps.questions.common import CommonStep
from keygraph_resolvers.steps.questions.numbers import NumbersStep, ShardsStep, aggregated_names
from keygraph_resolvers.steps.questions.paths import PathsStep
from keygraph_resolvers.steps.selection import SelectedField, Selection
from keygraph_resolvers.steps.step import Step
from keygraph_resolvers.steps.walks.node_walks import KeptWalkStep, NodeWalkStep
from keygraph_resolvers.steps.walks.walk import EdgesStep, WalkPage
from keygraph_resolvers.steps.write import PayloadStep, WriteStep


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
    selections = Selections(schema, graph, fragments, booleans)
    root_type = cast(GraphQLObjectType, schema.get_root_type(operation.operation))
    root = selections.of(root_type.name, [operation.selection_set])
    steps = _Steps(graph, selections.made, operation)
    lists = [steps.list(each) for each in root.lists]
    by_name = (kinds.NodeByKey, kinds.NodeById, kinds.NodesByIds)
    named = [steps.named(each) for each in root.having(*by_name)]
    written = root.having(*kinds.MUTATIONS)
    writes = [steps.write(each, position) for position, each in enumerate(written)]
    own = [steps.own(each) for each in root.having(kinds.OwnNode)]
    paths = [steps.paths(each) for each in root.having(kinds.PathsBetween)]
    changes = [steps.changes(each) for each in root.having(kinds.ChangesOf)]
    by_field: dict[str, Step] = {
        step.suffix: step for step in (*lists, *named, *own, *paths, *changes, *writes)
    }
    roots = [by_field[each.key] for each in root.fields if each.key in by_field]
    start = FieldsStep(root, lists, [*named, *own, *paths, *changes], ())
    _tell_alone(selections.made, steps)
    return Plan(
        operation,
        graph,
        root,
        selections.made,
        start,
        roots,
        steps.lists,
        steps.walks,
        steps.members,
        steps.varying_gathers,
        steps.copied,
    )


def _tell_alone(selections: Sequence[Selection], steps: _Steps) -> None:
    """Marks the walks that are alone: nothing else requests what they have read, so they need not keep it."""
    read = Counter[WalkedPath](path for step in steps.lists for path in step.path.each)
    read.update(path for walk in steps.walks for path in {*walk.reads})
    places = Counter(below for selection in selections for below in selection.inner)
    of_one = [selections[-1]]  # the root
    for selection in of_one:
        for each in selection.having(kinds.NodeByKey, kinds.NodeById, kinds.NodeAt):
            of_one += [below for below in each.below.values() if places[below] == 1]
    fields = {each for selection in of_one for each in selection.fields}
    for walk in steps.walks:
        walk.is_alone = walk.selected in fields and all(read[path] == 1 for path in walk.reads)


_OF_A_PAGE = (kinds.Edges, kinds.Nodes, kinds.PageInfo)
"""The fields of a connection that need its page."""


class _Steps:
    """Makes the steps of one plan, one set for each selection."""

    def __init__(
        self, graph: Graph, selections: Sequence[Selection], operation: OperationDefinitionNode
    ) -> None:
        self.lists: list[ListStep] = []
        self.walks: list[NodeWalkStep | PathsStep] = []
        self.members: list[MembersStep] = []
        self.copied: dict[RecordType, set[str]] = {}
        """The copies in records of each type that answer for the nodes there."""
        self._is_consistent = is_consistent(operation)
        # After a write, a copy may be older than its node.
        self._has_copies = operation.operation is not OperationType.MUTATION and not self._is_consistent
        self._graph = graph
        self._fields: dict[Selection, FieldsStep] = {}
        self._gets: dict[tuple[Selection, bool, bool], Get] = {}
        self._met = Counter(below.record for selection in selections for below in selection.inner)
        self._met_lists = Counter(_path_of(each) for selection in selections for each in selection.lists)
        for selection in selections:  # inner ones first
            self._fields[selection] = self._made_fields(selection)
        gathers = [each.gather for each in self._fields.values() if each.gather is not None]
        self.varying_gathers = [each for each in gathers if any(one.selected.variables for one in each.lists)]

    def _made_fields(self, selection: Selection) -> FieldsStep:
        record = selection.record
        if record is None:
            # For an edge of a list of several types, the fields of the item itself depend on its type.
            return FieldsStep(
                selection, (), [self._itself(each) for each in selection.having(kinds.FarNode)], ()
            )
        calls = [self._call(record, each) for each in selection.having(kinds.Called)]
        stored = [cast(kinds.Stored, each.kind).field for each in selection.having(kinds.Stored)]
        spread = [field.name for field in stored if field.shards]
        lists = {each: self.list(each) for each in selection.lists}
        walks = {each: self.walk(each) for each in selection.having(kinds.WalkOf)}
        key_ends, item_ends = list[Step](), list[Step]()
        for each in (*selection.key_ends, *selection.item_ends):
            is_by_key = each in selection.key_ends
            if _is_itself(each):
                continue
            path = each.kind.path if isinstance(each.kind, kinds.FarNode) else None
            copies: Sequence[Copy] = ()
            if path is not None or not is_by_key or selection.needs_item:
                copies = self._copies_for(record, _end_of(record, each), each, path)
                selection.copied.update(copy.field.name for copy in copies)
            (key_ends if is_by_key and not copies else item_ends).append(self._end(record, each, copies))
        return FieldsStep(
            selection,
            [step for each, step in lists.items() if not selection.waits(each)],
            [
                *key_ends,
                *([ShardsStep(record, spread)] if spread else []),
                *(step for each, step in walks.items() if not selection.waits(each)),
            ],
            [
                *item_ends,
                *calls,
                *(step for each, step in {**lists, **walks}.items() if selection.waits(each)),
                *(NumbersStep(each) for each in lists if each.numbers),
            ],
            [self._fields[each.only] for each in selection.key_ends if _is_itself(each)],
        )

    def get(self, selection: Selection, *, must_exist: bool = False, is_copied: bool = False) -> Get:
        found = self._gets.get((selection, must_exist, is_copied))
        if found is None:
            record = cast(RecordType, selection.record)
            found = Get(self._fields[selection], record, must_exist=must_exist, is_copied=is_copied)
            found.may_be_known = self._met[record] > 1
            self._gets[selection, must_exist, is_copied] = found
        return found

    def _gets_of(
        self, selected: SelectedField, *, must_exist: bool = False, is_copied: bool = False
    ) -> dict[str, Get]:
        """The steps that read the nodes of a field, by the names of their types."""
        return {
            name: self.get(below, must_exist=must_exist, is_copied=is_copied)
            for name, below in selected.below.items()
        }

    def named(self, selected: SelectedField) -> Named:
        """The step of a root field that names nodes."""
        return Named(selected, self._gets_of(selected, must_exist=True))

    def own(self, selected: SelectedField) -> CallOwn:
        """The step of a root field that a user added and that returns a node."""
        return CallOwn(selected, self._nodes(selected, must_exist=True))

    def changes(self, selected: SelectedField) -> ChangeStep:
        """The step of a field with the changes of a type's records."""
        gets = {each: self.get(each.only) for each in selected.only.having(kinds.ChangedRecord)}
        old, new = (
            {each: get for each, get in gets.items() if cast(Any, each.kind).is_old is is_old}
            for is_old in (True, False)
        )
        return ChangeStep(selected, old, new)

    def write(self, selected: SelectedField, position: int) -> WriteStep:
        """The step of a mutation; `position` is its position among the operation's mutations."""
        step = WriteStep(selected, position)
        match selected.kind:
            case kinds.Writes() as kind:
                step.payloads = [self._payload("", kind, selected.only, step)]
            case kinds.WritesEach(action, record):
                kind = kinds.Writes(action, record)
                results = selected.only.having(kinds.ResultList)
                step.payloads = [self._payload(each.key, kind, each.only, step) for each in results]
            case _:
                step.payloads = [
                    self._payload(f"{results.key}.{each.key}", cast(kinds.Writes, each.kind), each.only, step)
                    for results in selected.only.having(kinds.ResultList)
                    for each in results.only.having(kinds.Writes)
                ]
        return step

    def _payload(self, name: str, kind: kinds.Writes, selection: Selection, step: WriteStep) -> PayloadStep:
        if kinds.Attribute(kinds.CREATED) in (each.kind for each in selection.having(kinds.Attribute)):
            step.read_before.add(kind)
        records = [(each, self.get(each.only)) for each in selection.having(kinds.WrittenRecord)]
        ends = [self._end(kind.record, each) for each in selection.having(kinds.NodeAt)]
        return PayloadStep(name, kind, records, ends, weakly(step.is_noted))

    def _nodes(self, selected: SelectedField, *, must_exist: bool = False, is_copied: bool = False) -> Step:
        gets = self._gets_of(selected, must_exist=must_exist, is_copied=is_copied)
        return NodesOfUnknownType(gets) if selected.is_type_unknown else _by_type(gets)

    def _itself(self, selected: SelectedField) -> Step:
        """The step of a field that is the item of an edge itself."""
        return _by_type({name: self._fields[below] for name, below in selected.below.items()})

    def _end(self, record: RecordType, selected: SelectedField, copies: Sequence[Copy] = ()) -> Step:
        nodes = partial(self._nodes, selected, is_copied=bool(copies))
        match selected.kind:
            case kinds.FarNode(path) if path.far_end is not None:
                end = record.ends[path.far_end]
                read = self._copying(selected, record, end_reader(record, end), copies)
                return EndStep(selected, record, end.name, read, nodes(), "")
            case kinds.NodesAt(end):
                step = MembersStep(self._graph, selected, record, end, self._nodes(selected))
                self.members.append(step)
                return step
            case kinds.NodeAt(end):
                read = self._copying(selected, record, self._checked(record, end), copies)
                return EndStep(selected, record, end.name, read, nodes(), f".{selected.key}")
        raise LookupError(f"{selected.name} is no end")

    def _copies_for(
        self, record: RecordType, end: End, selected: SelectedField, path: AccessPath | None = None
    ) -> Sequence[Copy]:
        """Returns the copies that answer what is selected of the node at an end, so that it is not read; none if more is
        selected, or only what its key answers. `path` is that of the list of which these are the edges."""
        if not self._has_copies or selected.is_type_unknown or (path is not None and path.members):
            return ()
        copies = [
            each
            for each in self._graph.copies.get(record.name, ())
            if each.field.follows and each.end is end and (path is None or each.field.name in path.projected)
        ]
        used = dict[Copy, None]()
        for below in selected.below.values() if copies else ():
            node = cast(RecordType, below.record)
            of = {each.sources[node].name: each for each in copies if node in each.sources}
            if not is_decided_by_key(node) or not below.is_answered_by(of.keys()):
                return ()
            methods = [node.methods[name].needs or () for name in below.named & node.methods.keys()]
            names = below.named.union(*methods) - node.key_fields
            used |= dict.fromkeys(copy for name, copy in of.items() if name in names)
        return tuple(used)

    def _copying(
        self, selected: SelectedField, record: RecordType, read: NodeReader, copies: Sequence[Copy]
    ) -> NodeReader:
        has_methods = any(below.having(kinds.Called) for below in selected.below.values())
        return copying_reader(self._graph, record, read, copies, has_methods=has_methods)

    def _checked(self, record: RecordType, end: End) -> NodeReader:
        """Returns a function that finds the node at an end and checks its key."""
        graph, read = self._graph, end_reader(record, end)

        def read_checked(owner: Object) -> Object | None:
            found = read(owner)
            if found is not None:
                check_key(graph, found, record, end.name)
            return found

        return read_checked

    def _call(self, record: RecordType, selected: SelectedField) -> CallMethod:
        called = cast(kinds.Called, selected.kind)
        return CallMethod(selected, record, called, self._nodes(selected) if called.method.nodes else None)

    def list(self, selected: SelectedField) -> ListStep:
        """The step of a list, or of an only neighbor."""
        path = _path_of(selected)
        if path.is_one:
            page_step = PartialPage if _lacks(path, [selected.only]) else PageStep
            page = page_step(selected, path, (), (), self._fields[selected.only])
            step = self._list_step(selected, page, has_total=False, looks=frozenset())
        else:
            step = self._connection(selected, path, selected.only)
        self.lists.append(step)
        return step

    # --- Walks --------------------------------------------------------------------------------------------

    def walk(self, selected: SelectedField) -> NodeWalkStep:
        walk, below = cast(kinds.WalkOf, selected.kind).walk, selected.only
        edges, nodes, infos = map(below.having, _OF_A_PAGE)
        page = None
        if edges or nodes or infos:
            page = self._walk_page(edges, nodes)
        step = (KeptWalkStep if walk.options.is_kept else NodeWalkStep)(
            selected,
            walk,
            page,
            has_total=bool(below.having(kinds.TotalCount)),
            looks_ahead=any(look.name == "hasNextPage" for info in infos for look in info.only.fields),
            is_consistent=self._is_consistent,
        )
        step.aggregates = self._aggregates(below)
        self.walks.append(step)
        return step

    def paths(self, selected: SelectedField) -> PathsStep:
        """The step of a root field that finds how nodes are connected."""
        nodes, edges = map(selected.only.having, (kinds.PathNodes, kinds.PathEdges))
        page = self._walk_page(edges, nodes)
        step = PathsStep(selected, self._graph.followed, page, is_consistent=self._is_consistent)
        self.walks.append(step)
        return step

    def _walk_page(self, edges: Iterable[SelectedField], nodes: Iterable[SelectedField]) -> WalkPage:
        of_edges = [
            (
                edge,
                [
                    (each, self._walked(each))
                    for each in edge.only.having(kinds.WalkedNode, kinds.PathEdgeNode)
                ],
                [self._edges(each) for each in edge.only.having(kinds.Via)],
            )
            for edge in edges
        ]
        return WalkPage(of_edges, [(each, self._walked(each)) for each in nodes])

    def _walked(self, selected: SelectedField) -> Step:
        """The step of a walk's nodes, whose keys identify their types."""
        return _by_type(self._gets_of(selected))

    def _edges(self, selected: SelectedField) -> EdgesStep:
        paths = cast(kinds.Via, selected.kind).paths
        below = {path: selected.below[f"{connection_prefix(path)}Edge"] for path in paths}
        return EdgesStep(
            selected,
            {path: self._fields[each] for path, each in below.items()},
            frozenset(path for path, each in below.items() if _lacks(path, _of_items(path, [each]))),
        )

    def _connection(self, selected: SelectedField, path: AccessPath, below: Selection) -> ListStep:
        edges, nodes, infos = map(below.having, _OF_A_PAGE)
        items = _of_items(path, [each.only for each in edges], nodes)
        looks = frozenset(look.name for info in infos for look in info.only.fields if look.kind is not None)
        page = None
        if edges or nodes or infos:
            page_step = PartialPage if _lacks(path, items, leads_on=bool(nodes)) else PageStep
            copying = dict[SelectedField, NodeReader]()
            for each in nodes if path.far_end is not None else ():
                end = path.record.ends[path.far_end or ""]
                if copies := self._copies_for(path.record, end, each, path):
                    copying[each] = self._copying(each, path.record, end_reader(path.record, end), copies)
                    self.copied.setdefault(path.record, set()).update(copy.field.name for copy in copies)
            page = page_step(
                selected,
                path,
                [(each, self._fields[each.only]) for each in edges],
                [
                    (
                        each,
                        self._itself(each)
                        if path.far_end is None
                        else self._nodes(each, is_copied=each in copying),
                    )
                    for each in nodes
                ],
                None,
                copying,
            )
        has_total = any(each not in selected.numbers for each in below.having(kinds.TotalCount))
        step = self._list_step(selected, page, has_total=has_total, looks=looks)
        step.aggregates = self._aggregates(below, selected.numbers)
        return step

    def _aggregates(
        self, below: Selection, numbers: Container[SelectedField] = ()
    ) -> Sequence[RequestedAggregate]:
        """Returns the requested aggregates of a connection, except those that its owner's numbers answer."""
        found = []
        for each in below.having(kinds.Aggregate):
            if any(value in numbers for value in each.only.fields):
                continue
            kind = cast(kinds.Aggregate, each.kind)
            named = [name for value in each.only.fields for name in aggregated_names(value, kind.fields)]
            needed = frozenset(kind.fields[name].source for name in named if name in kind.fields)
            if kind.record.access is not None:
                needed = needed.union(*(kind.record.access.names("read", name) for name in needed))
            values, of_types = _values_of(each.only, kind.fields), self._aggregates(each.only)
            found.append(RequestedAggregate(each, kind.record, values, needed, of_types))
        return found

    def _list_step(
        self, selected: SelectedField, page: PageStep | None, *, has_total: bool, looks: frozenset[str]
    ) -> ListStep:
        path = _path_of(selected)
        is_met = self._met_lists[path] > 1
        step_type = CommonStep if selected.has_argument(ALSO_OF) else ListStep
        return step_type(
            selected,
            path,
            page,
            has_total=has_total,
            looks=looks,
            may_be_known=is_met,
            is_consistent=self._is_consistent,
        )


def _by_type(steps: Mapping[str, Step]) -> Step:
    """The step for objects of these types: the only one, or one that distinguishes them."""
    return next(iter(steps.values())) if len(steps) == 1 else ByType(steps)


def _is_itself(selected: SelectedField) -> bool:
    """Whether the field of an edge is the edge's own item."""
    return isinstance(selected.kind, kinds.FarNode) and selected.kind.path.far_end is None


def _end_of(record: RecordType, selected: SelectedField) -> End:
    """The end of a field that is the node there."""
    kind = selected.kind
    return (
        kind.end
        if isinstance(kind, kinds.NodeAt)
        else record.ends[cast(kinds.FarNode, kind).path.far_end or ""]
    )


def _path_of(selected: SelectedField) -> AccessPath:
    """The path of a field that is a list or an only neighbor."""
    return cast(kinds.ListOf, selected.kind).path


def _of_items(
    path: AccessPath, edges: Sequence[Selection], nodes: Sequence[SelectedField] = ()
) -> list[Selection]:
    """Returns the selections of a list's items: those of its edges, and of its nodes if these are the items."""
    found = [*edges]
    if path.far_end is None:
        far = [node for edge in edges for node in edge.having(kinds.FarNode)]
        found += [below for each in (*nodes, *far) for below in each.below.values()]
    return found


def _lacks(path: AccessPath, items: Sequence[Selection], *, leads_on: bool = False) -> bool:
    """Whether the index that is read lacks selected fields, ends or methods of the items, or the far end if the list
    `leads_on` to the nodes there."""
    if path.keys.reads_whole_items:
        return False
    projected = {member.record: member.projected for member in path.each}
    if leads_on and path.far_end is not None and path.far_end not in path.projected:
        return True
    return any(each.record is not None and not each.named <= projected[each.record] for each in items)


def _values_of(selection: Selection, fields: Mapping[str, AggregateField]) -> list[RequestedValue]:
    """Returns the requested values of an aggregate, or of its groups."""

    def arguments(each: SelectedField, run: Run) -> tuple[AggregateField | None, int | None]:
        return each.cached(run, lambda given: (fields[given["field"].value], given.get("first")))

    return [
        RequestedValue(
            each,
            each.kind.function,
            partial(arguments, each),
            [value for below in each.below.values() for value in _values_of(below, fields)],
        )
        for each in selection.fields
        if isinstance(each.kind, kinds.AggregateValue)
    ]
