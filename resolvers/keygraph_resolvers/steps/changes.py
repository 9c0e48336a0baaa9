"""The changes of a type's records, each as the viewer sees it.

Without a change, the step says which ones the operation wants. With one, it reads the other items that decide what the
viewer sees of the record before and after it, and continues from both. Of a mirrored edge, it reads the two items where that
decides which of their changes the viewer is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

from keygraph.dynamo.items import Item
from keygraph.errors import CorruptItem
from keygraph.graph import Graph
from keygraph.model.permissions import Permissions, restricted_name
from keygraph.model.records import RecordType
from keygraph_resolvers.engine.requests import Begun, GetItems, Reads, Start
from keygraph_resolvers.engine.worst import KeyLookups, StepStart, Wait, Worst
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.naming.global_ids import as_in_keys
from keygraph_resolvers.naming.names import change_arguments
from keygraph_resolvers.read.access import forbidden
from keygraph_resolvers.read.changes import (
    CREATED,
    DELETED,
    UNDECIDED,
    RecordChange,
    WantedChanges,
    named,
    visible_kind,
)
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.field_kinds import ChangesOf
from keygraph_resolvers.schema.inputs import key_value
from keygraph_resolvers.steps.get import Get, filter_visible
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import Step

Images: TypeAlias = tuple[Object | None, Object | None]
"""A record before and after a change."""


class ChangeObject(Object):
    """A change, as an object of the answer."""

    __slots__ = ("changed_at", "images", "kind")

    def __init__(self, kind: str, at: float, images: Images) -> None:
        """`images` are the record before and after; None where the viewer sees none."""
        super().__init__(cast(RecordType, None), ())  # it is no item
        self.kind = kind
        self.changed_at = datetime.fromtimestamp(at, UTC)
        self.images = images


class ChangeStep(Step):
    """Answers with the change that an operation is run for."""

    def __init__(
        self, selected: SelectedField, old: Mapping[SelectedField, Get], new: Mapping[SelectedField, Get]
    ) -> None:
        """`old` and `new` are the fields with the record, each with the step that continues from it."""
        self.suffix = selected.key
        self._selected = selected
        self._record = cast(ChangesOf, selected.kind).record
        self._fields = (old, new)

    def run(self, op: Run, objects: Sequence[Object]) -> Reads[Begun]:
        [root] = objects
        begun = Begun()
        try:
            wanted = self._selected.cached(op, lambda given: wanted_changes(op.graph, self._record, given))
            _refuse_hidden(op.access, wanted)
            if op.wants_changes is not None:
                op.wants_changes(wanted)
            root.found[self._selected] = visible = yield from _visible_change(op, wanted)
        except Exception as error:
            root.found[self._selected] = as_value(error)
            return begun
        if visible is not None:
            for image, fields in zip(visible.images, self._fields, strict=True):
                visible.found |= dict.fromkeys(fields, image)
                begun += [Start(get, [image]) for get in fields.values() if image is not None]
        return begun

    def worst(self, run: Run) -> Worst:
        record, access = self._record, run.access
        decisions = (
            [] if access is None else [access.decision(record, "read", n) for n in _restricted(record)]
        )
        links = {link for each in decisions if access is not None for link in access.links(record, each)}
        for name in links:
            yield KeyLookups((name.link.record,), 4 if record.is_mirrored else 2)
        if links:
            yield Wait("visible", 1, 0)
        if record.is_mirrored:
            yield KeyLookups((record,), 2)
            yield Wait("mirror", 1, 0)
        for fields in self._fields:
            for get in fields.values():
                yield StepStart(get, key="the key of what was changed")


def wanted_changes(graph: Graph, record: RecordType, given: Mapping[str, Any]) -> WantedChanges:
    """Returns the changes that the arguments of a field ask for. Raises BadUserInput."""
    slots = {name: slot for name, slot in change_arguments(record).items() if given.get(name) is not None}
    texts = {
        slot.name: graph.given_text(
            record, slot, key_value(graph, record, slot, as_in_keys(name, slot, given[name]))
        )
        for name, slot in slots.items()
    }
    used = dict.fromkeys(slot.path[0] for slot in slots.values())
    restricted = tuple(name for name in used if restricted_name(record, name))
    return WantedChanges(record, tuple(texts), tuple(texts.values()), restricted)


def _refuse_hidden(access: Permissions | None, wanted: WantedChanges) -> None:
    """Raises Forbidden for arguments about what the viewer may never read of records that they may see."""
    record = wanted.record
    if access is not None and access.decision(record) is not False:
        for name in wanted.restricted:
            if access.decision(record, "read", name) is False:
                raise forbidden(record, name)


def _visible_change(op: Run, wanted: WantedChanges) -> Reads[ChangeObject | None]:
    """Returns the change that an operation is run for, as the viewer sees it; None for nothing. Raises the error of reading
    what decides."""
    change = op.change
    if change is None:
        return None
    kind = visible_kind(op.access, change, wanted)
    if kind is UNDECIDED:
        both = (change, change.mirror)
        known = [Object(*each) for one in both if one is not None for each in one.images]
        is_update = len(change.images) > 1
        names = [n for n in _restricted(change.record) if n and (is_update or n in wanted.restricted)]
        yield from filter_visible(op, change.record, known, names=names)
        for each in known:
            if each.error is not None:
                raise each.error
        kind = visible_kind(op.access, change, wanted)
    if kind is UNDECIDED and change.mirror is not None and change.is_of_both is None:
        change.is_of_both = yield from _agree(op, change, change.mirror)
        kind = visible_kind(op.access, change, wanted)
    if kind is None or kind is UNDECIDED:
        return None
    op.is_large = change.is_large
    record, identity = change.record, change.identity
    old, new = (None if item is None else Object(record, identity, item) for item in (change.old, change.new))
    return ChangeObject(kind, change.at, (None if kind == CREATED else old, None if kind == DELETED else new))


def _agree(op: Run, *changes: RecordChange) -> Reads[bool]:
    """Returns whether the two items of a mirrored edge, which these are changes of, are as each other now. Raises the error of
    reading them."""
    graph, record = op.graph, changes[0].record
    wanted = [(each, key) for each in changes for key in graph.table_keys(record, each.identity)]
    items: dict[RecordChange, Item | None] = dict.fromkeys(changes)
    for each, answer in (yield GetItems(wanted, "mirror")):
        if isinstance(answer, Exception):
            raise answer
        if answer is not None and graph.recognise(answer) is record:
            items[each] = answer
    one, other = items.values()
    if one is None or other is None:
        return one is other
    try:
        return not any(graph.correspondences[record.name].differences(one, other))
    except (CorruptItem, ValueError):
        return False


def _restricted(record: RecordType) -> Iterator[str | None]:
    """Yields the names of what not everybody who sees a record may read, and None for the record."""
    yield None
    yield from (name for name in named(record) if restricted_name(record, name))
