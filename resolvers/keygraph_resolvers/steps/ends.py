"""Continues from objects to the nodes that they name: at an end, or as the members of a list or set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from keygraph.dynamo.limits import ITEM_BYTES
from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph.model.permissions import restricted_name
from keygraph.model.records import End, RecordType
from keygraph_resolvers.engine.requests import Begun, Start
from keygraph_resolvers.engine.worst import StepStart, Unstarted, Worst
from keygraph_resolvers.naming.names import FIRST, SKIP
from keygraph_resolvers.read.access import without_refused
from keygraph_resolvers.read.objects import Object, members_of
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import Step


@dataclass(eq=False)
class EndStep(Step):
    """Continues from objects to the nodes at one of their ends."""

    selected: SelectedField
    record: RecordType
    end: str
    read: Callable[[Object], Object | None]
    """Returns the node of an object."""
    nodes: Step
    suffix: str

    def __post_init__(self) -> None:
        self._restricted = restricted_name(self.record, self.end)
        self._key = f"the end {self.record.name}.{self.end}"

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        selected, read, found = self.selected, self.read, []
        if self._restricted is not None:
            objects = without_refused(op, objects, selected, self._restricted)
        for each in objects:
            try:
                node = each.found[selected] = read(each)
            except Exception as error:
                op.fail(each.found, selected, error)
                continue
            if node is not None:
                found.append(node)
        return [Start(self.nodes, found)]

    def worst(self, run: Run) -> Worst:
        yield StepStart(self.nodes, key=self._key)


class MembersStep(Step):
    """Continues from objects to the nodes that a list or set of them names."""

    def __init__(
        self, graph: Graph, selected: SelectedField, record: RecordType, end: End, nodes: Step
    ) -> None:
        self.suffix = f".{selected.key}"
        self.selected = selected
        self._restricted = restricted_name(record, end.name)
        self._key = f"the members of {record.name}.{end.name}"
        self._read = partial(members_of, graph, record, end)
        self._nodes = nodes

    def _part(self, run: Run) -> slice:
        """Returns which part of the lists is requested. Raises BadUserInput."""
        first, skipped = self.selected.cached(run, lambda given: (given.get(FIRST), given.get(SKIP) or 0))
        most = run.limits.max_page_size
        if not 0 <= (first or 0) <= most:
            raise BadUserInput(f"{FIRST} must be between 0 and {most:,}")
        if not 0 <= skipped <= ITEM_BYTES:
            raise BadUserInput(f"{SKIP} must be between 0 and {ITEM_BYTES:,}")
        # One more than all shows that there are too many.
        return slice(skipped, skipped + (most + 1 if first is None else first))

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        selected, read, found = self.selected, self._read, list[Object]()
        if self._restricted is not None:
            objects = without_refused(op, objects, selected, self._restricted)
        for each in objects:
            try:
                nodes = each.found[selected] = read(each, self._part(op))
                if nodes is not None and len(nodes) > op.limits.max_page_size:
                    raise BadUserInput(
                        f"more than {op.limits.max_page_size:,} nodes: read a part of them, with {FIRST} and {SKIP}"
                    )
            except Exception as error:
                op.fail(each.found, selected, error)
                continue
            found += [node for node in nodes or () if isinstance(node, Object)]
        return [Start(self._nodes, found)]

    def worst(self, run: Run) -> Worst:
        try:
            part = self._part(run)
        except Exception:
            yield Unstarted((StepStart(self._nodes, key=self._key),), self._part)
            return
        most: int = min(part.stop - part.start, run.limits.max_page_size)
        if most:
            yield StepStart(self._nodes, most, key=self._key)
