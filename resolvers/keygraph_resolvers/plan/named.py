"""The nodes that an operation names at its root: by their key fields, or by their global ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias

from keygraph.graph import Graph
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph_resolvers.errors import message_of
from keygraph_resolvers.plan.arguments import Arguments
from keygraph_resolvers.plan.explained import Explained, View, Where
from keygraph_resolvers.plan.get import Get
from keygraph_resolvers.plan.run import Run
from keygraph_resolvers.plan.selection import SelectedField
from keygraph_resolvers.plan.step import AT_ONCE, Below, Cost, Starts, Step
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.schema.field_kinds import NodeById, NodeByKey, NodesByIds
from keygraph_resolvers.schema.global_ids import read_global_id
from keygraph_resolvers.schema.inputs import key_value

NodeName: TypeAlias = tuple[RecordType, tuple[str, ...]]
"""A node's type and identity."""


class Named(Step):
    """Reads the nodes that a field of the root names."""

    def __init__(self, selected: SelectedField, gets: Mapping[str, Get]) -> None:
        self.name = selected.key
        self._selected = selected
        self._gets = gets
        self._named: Sequence[NodeName] | None = None

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        selected, [root] = self._selected, objects
        try:
            found = [Object(record, identity) for record, identity in self._nodes(run)]
        except Exception as error:
            root.found[selected] = error
            return
        root.found[selected] = found if isinstance(selected.kind, NodesByIds) else found[0]
        by_type: dict[str, list[Object]] = {}
        for each in found:
            by_type.setdefault(each.record.name, []).append(each)
        for name, group in by_type.items():
            self._gets[name].start(run, group, round_trip, self.below(place))

    def bound_key(self, run: Run) -> Hashable:
        """What decides what it costs."""
        _, below = self.cost(run, Starts(1, AT_ONCE))
        return tuple((step, starts.count) for step, starts in below)

    def cost(self, run: Run, starts: Starts) -> tuple[Cost, Below]:
        try:
            counted = Counter(record.name for record, _ in self._nodes(run))
        except Exception:
            return Cost(), ()  # nothing is read; the answer says why
        return Cost(), [(self._gets[name], starts.times(count)) for name, count in counted.items()]

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        gets, problem, identity = [*self._gets.values()], None, None
        try:
            found = self._nodes(view.run)
            names = {record.name for record, _ in found}
            gets = [get for name, get in self._gets.items() if name in names]
            identity = found[0][1] if len(found) == 1 else None
        except Exception as error:
            # Of a stand-in nobody wants to know that it is no global id.
            if not any(f"'{value}'" in message_of(error) for value in view.stand_ins):
                problem = message_of(error)
        place = self.below(where.place)
        here = Where(place, self._key, where.round_trip, identity=identity, problem=problem)
        for get in gets:
            yield from get.explained(view, here)

    def _nodes(self, run: Run) -> Sequence[NodeName]:
        """The nodes, told once for each run; for all runs, where no variable names them. Raises as `named_nodes`."""
        found = self._named or run.named.get(self._selected)
        if found is None:
            found = named_nodes(run.graph, self._selected, run.arguments)
            if self._selected.variables:
                run.named[self._selected] = found
            else:
                self._named = found
        return found

    @property
    def _key(self) -> str:
        if isinstance(self._selected.kind, NodeByKey):
            return f"the argument {' and '.join(_argument_names(self._selected.kind.record))}"
        return "its global id"


def named_nodes(graph: Graph, selected: SelectedField, arguments: Arguments) -> Sequence[NodeName]:
    """The nodes that a field of the root names. Raises BadUserInput or GraphQLError where it names none."""
    given = arguments.of(selected)
    match selected.kind:
        case NodeByKey(record):
            values = {
                record.leaf_name(slot.path): key_value(graph, record, slot, given.get(name))
                for name, slot in zip(_argument_names(record), record.identity, strict=True)
            }
            return [(record, graph.identity(record, values))]
        case NodeById():
            return [read_global_id(graph, given["id"])]
    return [read_global_id(graph, text) for text in given["ids"]]


def _argument_names(record: RecordType) -> list[str]:
    return [camel(record.leaf_name(slot.path)) for slot in record.identity]
