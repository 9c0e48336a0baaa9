"""The payloads of mutations, and the steps that continue from the records in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from typing import Any, cast

from keygraph.dynamo.items import Item
from keygraph.writing.requests import Done, Move, WriteRequest
from keygraph_resolvers.engine.requests import Begun, Start
from keygraph_resolvers.engine.worst import StepStart, Worst
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.field_kinds import Writes
from keygraph_resolvers.steps.get import Get
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import Step


class Payload:
    """The payload of a mutation: the record that it wrote, or the key of a deleted one."""

    item: Item | None = None
    error: None = None
    is_missing = False

    def __init__(
        self, kind: Writes, request: WriteRequest, done: Done, client_mutation_id: str | None
    ) -> None:
        self.kind = kind
        self._request = request
        self.record = Object(done.record, done.identity, done.item)
        self.detached = done.detached
        self.is_new = done.is_new
        self.client_mutation_id = client_mutation_id
        self.found = self.record.found

    @property
    def payloads(self) -> tuple[Payload]:
        """The payloads of the mutation, as `Results` has them."""
        return (self,)

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def previous_id(self) -> str:
        """The global id of the record before it was moved."""
        return global_id(self.kind.record, cast(Move, self._request).identity)


@dataclass(eq=False)
class Results:
    """The results of several writes, or of one of them: what was found for its fields."""

    found: dict[Any, Any]
    payloads: Sequence[Payload] = ()
    """Those of the writes that were carried out."""
    client_mutation_id: str | None = None
    item: Item | None = None
    error: None = None
    is_missing: bool = False


@dataclass(eq=False)
class PayloadStep(Step):
    """Continues from the payloads of one kind of write."""

    name: InitVar[str]
    kind: Writes
    records: InitVar[Sequence[tuple[SelectedField, Get]]]
    """The fields with the written record."""
    ends: Sequence[Step]
    """They continue from the records' ends."""
    is_noted: Callable[[Run], bool]
    """Returns whether a write may have been carried out before, so that the record has to be read."""

    def __post_init__(self, name: str, records: Sequence[tuple[SelectedField, Get]]) -> None:
        self.suffix = f".{name}" if name else ""
        self._records = [_RecordStep(each, get, self._is_known) for each, get in records]
        self._steps: list[Step] = [*self._records, *self.ends]

    def _is_known(self, run: Run) -> bool:
        """Returns whether the written item is known, because all of it is written."""
        return self.kind.action in ("create", "put", "move") and not self.is_noted(run)

    def leads_on(self, op: Run, objects: Sequence[Object]) -> bool:
        """Returns whether anything is read, or decided by rules, for what is selected of the written records."""
        if op.access is None and all(each.item is not None for each in objects):
            return bool(self.ends) or any(each.leads_on for each in self._records)
        return bool(self._steps)

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        """Starts from `objects`, the written records."""
        return [Start(step, objects) for step in self._steps]

    def worst(self, run: Run) -> Worst:
        for step in self._steps:
            yield StepStart(step)


class _RecordStep(Step):
    """Continues from the record in a payload: without reading it, if its item is known."""

    def __init__(self, selected: SelectedField, get: Get, is_known: Callable[[Run], bool]) -> None:
        self.suffix = f".{selected.key}"
        self._get = get
        self._is_known = is_known
        self.leads_on = not get.fields.is_end
        """Whether something continues from records that are known."""

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        return [Start(self._get, objects)]

    def worst(self, run: Run) -> Worst:
        yield StepStart(self._get.fields if self._is_known(run) else self._get)
