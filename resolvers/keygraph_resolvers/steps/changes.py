"""The changes of a type's records, each as the viewer sees it.

Without a change, the step says which ones the operation wants. With one, it decides by the rules what the viewer sees of
the record before and after it, and continues from both. What was hidden before and is visible now is created, and what is
hidden now is deleted; a change of what the viewer may not read is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeAlias, cast

from keygraph.dynamo.items import Item
from keygraph.errors import CorruptItem
from keygraph.graph import Graph
from keygraph.model.permissions import restricted_name
from keygraph.model.records import End, RecordType
from keygraph_resolvers.engine.requests import Begun, Reads, Start
from keygraph_resolvers.engine.worst import KeyLookups, StepStart, Wait, Worst
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.naming.global_ids import as_in_keys
from keygraph_resolvers.naming.names import change_arguments
from keygraph_resolvers.read.changes import RecordChange, WantedChanges
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.field_kinds import ChangesOf
from keygraph_resolvers.schema.inputs import key_value
from keygraph_resolvers.steps.get import Get, filter_visible
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import Step

CREATED, UPDATED, DELETED = "CREATED", "UPDATED", "DELETED"
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
            yield Wait("visible", 2 if record.is_mirrored else 1, 0)
        for fields in self._fields:
            for get in fields.values():
                yield StepStart(get, key="the key of what was changed")


def wanted_changes(graph: Graph, record: RecordType, given: Mapping[str, Any]) -> WantedChanges:
    """Returns the changes that the arguments of a field ask for. Raises BadUserInput."""
    texts = {
        slot.name: graph.given_text(
            record, slot, key_value(graph, record, slot, as_in_keys(name, slot, given[name]))
        )
        for name, slot in change_arguments(record).items()
        if given.get(name) is not None
    }
    return WantedChanges(record, tuple(texts), tuple(texts.values()))


def _visible_change(op: Run, wanted: WantedChanges) -> Reads[ChangeObject | None]:
    """Returns the change that an operation is run for, as the viewer sees it; None for nothing. Raises StoreError."""
    change = op.change
    if change is None:
        return None
    images = _images(change.record, change.identity, change.old, change.new)
    kind = yield from _visible_kind(op, images)
    if kind is None:
        return None
    mirrored = _mirrored(op.graph, change, wanted)
    if mirrored is not None and (yield from _visible_kind(op, mirrored)) is not None:
        return None
    old, new = images
    return ChangeObject(kind, change.at, (None if kind == CREATED else old, None if kind == DELETED else new))


def _images(record: RecordType, identity: tuple[str, ...], *items: Item | None) -> Images:
    old, new = (None if item is None else Object(record, identity, item) for item in items)
    return old, new


def _mirrored(graph: Graph, change: RecordChange, wanted: WantedChanges) -> Images | None:
    """Returns the other item of a mirrored edge before and after the change, if the operation wants that one too, and its
    key comes first: the change of both is then told by it."""
    record, items = change.record, (change.old, change.new)
    if not record.is_mirrored:
        return None
    try:
        others = [None if item is None else graph.counterpart(record, item) for item in items]
    except (CorruptItem, ValueError):
        return None
    there = [each for each in others if each is not None and wanted.fits(each.texts)]
    if not there or there[0].identity >= change.identity:
        return None
    identity = there[0].identity
    [key, *_] = graph.table_keys(record, identity)
    named = dict(zip([each.name for each in graph.table.keys], key, strict=True))
    return _images(
        record, identity, *(None if each is None else {**each.attributes, **named} for each in others)
    )


def _visible_kind(op: Run, images: Images) -> Reads[str | None]:
    """Returns what a change of a record is to the viewer; None if they see nothing of it. Raises the error of reading
    what decides."""
    there = [each for each in images if each is not None]
    record, is_update = there[0].record, len(there) == 2
    names = [name for name in _restricted(record) if name is not None and is_update]
    visible = yield from filter_visible(op, record, there, names=names)
    for each in there:
        if each.error is not None:
            raise each.error
    old, new = (each is not None and each in visible for each in images)
    if not old or not new:
        return DELETED if old else CREATED if new else None
    changed, access = _changed_names(record, *(each.read_item("") for each in there)), op.access
    for name in _named(record):
        before, after = (access is None or access.allows(each, "read", name) for each in there)
        if before != after or (after and name in changed):
            return UPDATED
    return None


def _named(record: RecordType) -> tuple[str, ...]:
    return (*record.fields, *record.ends, *record.methods)


def _restricted(record: RecordType) -> Iterator[str | None]:
    """Yields the names of what not everybody who sees a record may read, and None for the record."""
    yield None
    yield from (name for name in _named(record) if restricted_name(record, name))


def _changed_names(record: RecordType, old: Item, new: Item) -> Set[str]:
    """Returns the fields and ends of a record whose values differ, and the methods that need one of them."""
    readers = {name: record.reader(field) for name, field in record.fields.items()}
    readers |= {name: partial(_end_of, record, end) for name, end in record.ends.items()}
    changed = {name for name, read in readers.items() if _value(read, old) != _value(read, new)}
    methods = {
        name
        for name, method in record.methods.items()
        if (changed if method.needs is None else not changed.isdisjoint(method.needs))
    }
    return changed | methods


def _end_of(record: RecordType, end: End, item: Item) -> object:
    return record.end_identity(item, end)


def _value(read: Callable[[Item], object], item: Item) -> object:
    """Returns a value of an item; for one that does not fit its declaration, its error in words."""
    try:
        return read(item)
    except CorruptItem as error:
        return type(error), str(error)
