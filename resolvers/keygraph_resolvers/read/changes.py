"""Changes of records: what an operation wants to hear of, what a change of an item is to the model, and to a viewer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

from keygraph.dynamo.items import Item
from keygraph.errors import CorruptItem
from keygraph.graph import Graph
from keygraph.keys.types import is_optional
from keygraph.lists.checks import value_reader
from keygraph.model.instances import value_of_method
from keygraph.model.permissions import KnownRecord, Permissions, restricted_name
from keygraph.model.records import RecordType
from keygraph.writing.sending.idempotency import is_own
from keygraph_resolvers.naming.names import change_arguments
from keygraph_resolvers.read.meter import held_bytes
from keygraph_resolvers.schema.scalars import value_in_answer

_log = logging.getLogger(__name__)

CREATED, UPDATED, DELETED = "CREATED", "UPDATED", "DELETED"
UNDECIDED = "UNDECIDED"
"""Other items decide what a change is to a viewer."""
Texts: TypeAlias = Mapping[str, str | None]
"""The texts in the keys of a record, by slot."""


class WantedChanges(NamedTuple):
    """The changes of the records of a type that have these texts in their keys, before or after."""

    record: RecordType
    names: tuple[str, ...] = ()
    """The names of the slots."""
    texts: tuple[str, ...] = ()
    restricted: tuple[str, ...] = ()
    """The fields among them that not everybody who sees a record may read."""

    def fits(self, texts: Texts) -> bool:
        return all(texts.get(name) == text for name, text in zip(self.names, self.texts, strict=True))


@dataclass(eq=False)
class RecordChange:
    """A change of one record. If an item becomes one of another type, that is a change of two records."""

    graph: Graph
    record: RecordType
    identity: tuple[str, ...]
    old: Item | None
    """None if there was no record of the type."""
    new: Item | None
    at: float
    """When it was made, in seconds since 1970."""
    waits: int = 0
    """For how many operations it is kept."""
    is_of_both: bool | None = None
    """Whether both items of a mirrored edge were changed; None if that is not known yet."""

    @cached_property
    def _held(self) -> tuple[int, bool]:
        return held_bytes((self.old, self.new))

    @property
    def size(self) -> int:
        """The memory that it takes, in bytes."""
        return self._held[0]

    @property
    def is_large(self) -> bool:
        """Whether it has so many values that they are compared, and written in answers, in a thread."""
        return self._held[1]

    def compared(self) -> RecordChange:
        """Returns it after its values were compared."""
        if len(self.images) > 1:
            _ = self.changed
        return self

    @cached_property
    def images(self) -> list[KnownRecord]:
        """The record before and after the change, without what did not exist."""
        items = (self.old, self.new)
        return [KnownRecord(self.record, self.identity, each) for each in items if each is not None]

    @cached_property
    def texts(self) -> list[Texts]:
        """The texts of its images, by which arguments narrow changes."""
        return [self._texts(each.item or {}) for each in self.images]

    def _texts(self, item: Item) -> Texts:
        found: dict[str, str | None] = {}
        for keys in self.record.keys.values():
            key, partition = keys.parts[0]
            found |= partition.parse(key.text(item.get(key.name)) or "") or {}
        # Whether an index has the item may depend on what a viewer may not read: its values come first.
        for slot in change_arguments(self.record).values():
            with suppress(Exception):
                value = value_reader(self.record, slot)(item)
                found[slot.name] = None if value is None else slot.text.render(value)
        return found | self.record.texts(self.identity)

    @cached_property
    def changed(self) -> Set[str]:
        """The fields and ends whose values differ, and the methods that need one of them. A method that may be read without
        those is called: only its own changes are told."""
        record = self.record
        readers = {name: record.reader(field) for name, field in record.fields.items()}
        readers |= {name: partial(record.end_identity, end=end) for name, end in record.ends.items()}
        changed = {name for name, read in readers.items() if self._is_changed(read)}
        methods = {
            name
            for name, method in record.methods.items()
            if (used := changed if method.needs is None else changed.intersection(method.needs))
            if method.nodes
            or not (method.is_plain and all(restricted_name(record, each) for each in used))
            or self._is_changed(partial(_answer_of_method, record, name))
        }
        return changed | methods

    def _is_changed(self, read: Callable[[Item], object]) -> bool:
        return _value(read, self.old or {}) != _value(read, self.new or {})

    @cached_property
    def mirror(self) -> RecordChange | None:
        """The change of the other item of a mirrored edge, if its key comes first: a change of both is told by it."""
        record, items = self.record, (self.old, self.new)
        if not record.is_mirrored:
            return None
        try:
            others = [None if item is None else self.graph.counterpart(record, item) for item in items]
        except (CorruptItem, ValueError):
            return None
        there = [each for each in others if each is not None]
        if not there or there[0].identity >= self.identity:
            return None
        identity = there[0].identity
        [key, *_] = self.graph.table_keys(record, identity)
        named = self.graph.table.attributes_of(key)
        old, new = (None if each is None else {**each.attributes, **named} for each in others)
        mirror = RecordChange(self.graph, record, identity, old, new, self.at)
        mirror.texts = [each.texts for each in there]
        return mirror


def record_changes(graph: Graph, old: Item | None, new: Item | None, at: float) -> Iterator[RecordChange]:
    """Yields what a change of an item is to the model: nothing for an item of no type, or on which the model fails."""
    try:
        before, after = (
            None if item is None or is_own(item) else graph.identified(item) for item in (old, new)
        )
    except Exception as error:
        _log.warning("A change is skipped: the model fails with %s", type(error).__name__)
        return
    if before == after and before is not None:
        yield RecordChange(graph, *before, old, new, at)
        return
    if before is not None:
        yield RecordChange(graph, *before, old, None, at)
    if after is not None:
        yield RecordChange(graph, *after, None, new, at)


# --- What a change is to a viewer ---------------------------------------------------------------------


def visible_kind(access: Permissions | None, change: RecordChange, wanted: WantedChanges) -> str | None:
    """Returns what a change is to a viewer who wants these; None for nothing, `UNDECIDED` if other items decide it.

    What is hidden before the change and visible after it is created, and the other way around, deleted. Arguments are
    compared only with what the viewer may read.
    """
    kind, mirror = _kind(access, change, wanted), change.mirror
    if kind is None or mirror is None:
        return kind
    other = _kind(access, mirror, wanted)
    if other is None:
        return kind
    if other is UNDECIDED or change.is_of_both is None:
        return UNDECIDED
    return None if change.is_of_both else kind


def _kind(access: Permissions | None, change: RecordChange, wanted: WantedChanges) -> str | None:
    images = change.images
    fitting = [wanted.fits(texts) for texts in change.texts]
    visible: list[bool | None] = [True] * len(images)
    if access is not None:
        visible = [_allowed(access, each, None) for each in images]
        fits = [
            _all_of([is_visible, does_fit, *(_allowed(access, image, name) for name in wanted.restricted)])
            for is_visible, does_fit, image in zip(visible, fitting, images, strict=True)
        ]
    else:
        fits = [*fitting]
    if not any(each is not False for each in fits):
        return None
    if None in visible or True not in fits:
        return UNDECIDED
    if len(images) < 2:
        return CREATED if change.old is None else DELETED
    if not all(visible):
        return DELETED if visible[0] else CREATED
    is_undecided = False
    for name in named(change.record):
        is_restricted = access is not None and restricted_name(change.record, name)
        if not is_restricted:
            if name in change.changed:
                return UPDATED
            continue
        before, after = (access is None or _allowed(access, each, name) for each in images)
        if before is None or after is None:
            is_undecided = True
        elif before != after or (after and name in change.changed):
            return UPDATED
    return UNDECIDED if is_undecided else None


def _allowed(access: Permissions, image: KnownRecord, name: str | None) -> bool | None:
    """Returns whether a viewer may read a record, or a field of it; None if other items decide it."""
    decision = access.decide(image, "read", name)
    return decision if isinstance(decision, bool) else None


def _all_of(decisions: Sequence[bool | None]) -> bool | None:
    return False if False in decisions else None if None in decisions else True


def named(record: RecordType) -> tuple[str, ...]:
    """Returns the names of all that is stored in a record, or computed from it."""
    return (*record.fields, *record.ends, *record.methods)


def _answer_of_method(record: RecordType, name: str, item: Item) -> object:
    method = record.methods[name]
    _, optional = is_optional(method.hints["return"])
    return value_in_answer(method.types[0], value_of_method(record, name, item), is_optional=optional)


def _value(read: Callable[[Item], object], item: Item) -> object:
    """Returns a value of an item; for one that does not fit its declaration, its error in words. Those of a method that
    fails are told to nobody."""
    try:
        return read(item)
    except CorruptItem as error:
        return CorruptItem, str(error)
    except Exception:
        return Exception
