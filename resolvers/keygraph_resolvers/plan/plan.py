"""The plan of an operation: its selections, the steps that read them, and the attributes that both need.

A plan's content never changes; runs cache prepared values on it for the next ones. It is made once for a document by
`keygraph_resolvers.plan.compile`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from graphql import OperationDefinitionNode, OperationType

from keygraph.graph import Graph
from keygraph.lists.projection import Attributes
from keygraph.model.records import RecordType
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema import field_kinds as kinds
from keygraph_resolvers.schema.definitions import CONSISTENT
from keygraph_resolvers.steps.call import CallOwn
from keygraph_resolvers.steps.ends import MembersStep
from keygraph_resolvers.steps.gather import Gather
from keygraph_resolvers.steps.get import FieldsStep, Named
from keygraph_resolvers.steps.lists import ListStep
from keygraph_resolvers.steps.partial_page import PartialPage
from keygraph_resolvers.steps.questions.paths import PathsStep
from keygraph_resolvers.steps.selection import SelectedField, Selection
from keygraph_resolvers.steps.step import Step
from keygraph_resolvers.steps.walks.node_walks import NodeWalkStep
from keygraph_resolvers.steps.write import WriteStep


def is_consistent(operation: OperationDefinitionNode) -> bool:
    return any(directive.name.value == CONSISTENT.python_name for directive in operation.directives or ())


@dataclass(eq=False)
class Plan:
    """The reads and the answer of an operation."""

    operation: OperationDefinitionNode
    graph: Graph
    root: Selection
    selections: Sequence[Selection]
    """Each once, inner ones first."""
    steps: FieldsStep
    """Starts all steps of the root."""
    roots: Sequence[Step]
    """The steps of the root in the order of the document."""
    lists: Sequence[ListStep]
    walks: Sequence[NodeWalkStep | PathsStep]
    members: Sequence[MembersStep]
    varying_gathers: Sequence[Gather]
    """The reads of nodes with their lists of which variables decide how much they request."""
    copied: Mapping[RecordType, AbstractSet[str]]
    """The copies in records of each type that answer for the nodes of lists."""
    bounds: dict[Any, Any] = field(default_factory=dict)
    """The bounds of its runs, by the values that decide them, as computed by `keygraph_resolvers.plan.bound`."""
    refused: dict[bytes, Any] = field(default_factory=dict)
    """The bounds of mutations that were refused, by hashes of what was given: preparing a thousand writes takes long."""
    rows: dict[Selection, Any] = field(default_factory=dict)
    """The writers of objects, as prepared by `keygraph_resolvers.answer`."""

    @cached_property
    def is_mutation(self) -> bool:
        """Whether the root fields are answered one after the other."""
        return self.operation.operation == OperationType.MUTATION

    @cached_property
    def is_consistent(self) -> bool:
        """Whether the client asks for consistent reads throughout."""
        return is_consistent(self.operation)

    @cached_property
    def reads_consistently(self) -> bool:
        """Whether its reads see the last write, except in global indexes: payloads of mutations and live answers do too."""
        return self.is_consistent or self.is_mutation or self.is_live

    @cached_property
    def is_live(self) -> bool:
        """Whether it is answered again whenever its answer has become another."""
        return self.operation.operation == OperationType.SUBSCRIPTION

    @cached_property
    def varying(self) -> Sequence[Step]:
        """The steps of which variables decide how much they request."""
        fields = [step for step in (*self.lists, *self.walks, *self.members) if step.selected.variables]
        return [*(step for step in self.roots if isinstance(step, Named)), *fields, *self.writes]

    @cached_property
    def writes(self) -> list[WriteStep]:
        return [step for step in self.roots if isinstance(step, WriteStep)]

    @cached_property
    def mutations(self) -> dict[str, WriteStep | CallOwn]:
        """The steps of a mutation, by the fields' keys."""
        return {step.suffix: step for step in self.roots if isinstance(step, WriteStep | CallOwn)}

    @cached_property
    def foreign(self) -> tuple[SelectedField, ...]:
        """The root fields that the graph does not answer: introspection, and those that a user added."""
        return tuple(each for each in self.root.fields if each.kind is None and each.definition is not None)

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """The keys of the root fields that graphql-core executes itself."""
        return tuple(each.key for each in self.foreign)

    @cached_property
    def changing(self) -> list[RecordType]:
        """The types whose changes it listens to."""
        return [each.kind.record for each in self.root.fields if isinstance(each.kind, kinds.ChangesOf)]

    # --- What it needs of items ---------------------------------------------------------------------------

    @cached_property
    def needed(self) -> Mapping[RecordType, frozenset[str] | None]:
        """The fields, ends and methods of each record type that the operation requests anywhere; None for all.

        There is one answer for the whole operation, so that an item is read once for all its places.
        """
        found: dict[RecordType, frozenset[str] | None] = {}
        for step in self.lists:
            # An item that only leads to a node needs its type, its keys and that end.
            for listed, ends in step.needed.items():
                found[listed] = (found.get(listed) or frozenset()) | ends
        for record in self.changing:
            # Its rules decide what the viewer sees of a change; the two items of a mirrored edge are compared.
            found[record] = None if record.is_mirrored else frozenset()
        for copying, copies in self.copied.items():
            found[copying] = (found.get(copying) or frozenset()) | copies
        for walk in self.walks:
            for record, more in walk.needed:
                found[record] = (found.get(record) or frozenset()) | more
        for selection in self.selections:
            if selection.record is None:
                continue
            record = selection.record
            names: frozenset[str] | None = selection.named
            for method in (record.methods[name] for name in selection.named & record.methods.keys()):
                names = None if names is None or method.needs is None else names | set(method.needs)
            before = found.get(record, frozenset())
            found[record] = None if names is None or before is None else before | names
        for record, needed in found.items():
            if record.access is not None and needed is not None:
                found[record] = needed | record.access.names("read")
        links = [each for record in found if record.access for each in record.access.links("read")]
        for link in links:
            before = found.get(link.record, frozenset())
            found[link.record] = None if before is None else before | link.names
        return found

    def is_secretive(self, run: Run) -> bool:
        """Whether its actual cost would reveal the amount of data that the viewer may not see."""
        access = run.access
        if access is None:
            return False

        def reads_fields(record: RecordType) -> bool:
            stored = (*record.fields, *record.ends)
            return all(access.decision(record, "read", name) is True for name in stored)

        def reads_all(record: RecordType) -> bool:
            return access.decision(record) is True and reads_fields(record)

        if self.writes or self.walks:
            # Writes read what they name and what refers to it, and walks read any list on their way.
            return not all(map(reads_all, self.graph.types.values()))
        paths = [path for step in self.lists for path in step.path.each]
        read_along = {sibling for path in paths for sibling in self.graph.siblings(path)}
        by_key = (*self.needed, *self.looked_for)
        read_along |= {other for record in by_key for other in self.graph.with_same_key(record)}
        return not (
            all(
                access.decision(record) is False
                or (access.is_decided_by_key(record) and reads_fields(record))
                for record in self.needed
            )
            and all(map(access.is_decided_by_key, paths))
            and all(map(reads_all, read_along))
        )

    @cached_property
    def attributes(self) -> Attributes:
        """The attributes of items that it requests."""
        by_key = [(step.path, step.deciding(self.graph)) for step in self.lists if step.may_look_up]
        by_key += ((path, frozenset()) for walk in self.walks for path in walk.looked_for_edges)
        return Attributes.of(self.graph, self.needed, by_key)

    @cached_property
    def looked_for(self) -> frozenset[RecordType]:
        """The types of the items that may be read by key."""
        fields = (
            each
            for selection in self.selections
            for each in selection.having(
                kinds.NodeAt,
                kinds.FarNode,
                kinds.Called,
                kinds.NodeByKey,
                kinds.NodeById,
                kinds.NodesByIds,
                kinds.OwnNode,
                kinds.WalkedNode,
                kinds.WrittenRecord,
            )
            if not isinstance(each.kind, kinds.FarNode) or each.kind.path.far_end is not None
        )
        nodes = {below.record for each in fields for below in each.below.values() if below.record}
        nodes.update(record for record in self.changing if record.is_mirrored)
        of_walks = (record for walk in self.walks for record in walk.looked_for)
        by_key = (step for step in self.lists if step.may_look_up or isinstance(step.page, PartialPage))
        return frozenset(nodes.union((record for step in by_key for record in step.path.records), of_walks))


def field_at(plan: Plan, place: str) -> str | None:
    """The schema coordinate of a place: `User.orders` for `friend.orders`. None if the plan has no such place."""
    selections: tuple[Selection, ...] = (plan.root,)
    found: SelectedField | None = None
    for key in place.split("."):
        fields = (each for selection in selections for each in _with_places(selection))
        found = next((each for each in fields if each.key == key), None)
        if found is None:
            return None
        selections = tuple(found.below.values())
    return None if found is None else f"{found.owner.name}.{found.name}"


def _with_places(selection: Selection) -> Iterator[SelectedField]:
    """The fields whose keys are part of places. Those of a connection's page are in between."""
    for each in selection.fields:
        if isinstance(each.kind, kinds.Edges | kinds.Nodes | kinds.FarNode):
            for below in each.below.values():
                yield from _with_places(below)
        else:
            yield each
