"""Compares the attributes that a type's items have with those that its fields and ends are stored in.

A model need not declare every attribute, and an optional field may be absent everywhere. So a mismatch is not a problem
by itself; but a field that no item has, together with an attribute that no field has, is often a wrong name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeAlias

from keygraph.dynamo.conditions import Path, at_path
from keygraph.dynamo.items import Item
from keygraph.graph import Graph
from keygraph.model.records import RecordType
from keygraph.names import words
from keygraph.writing.marks import ADDED, COPYING, MARK

AttributeCounts: TypeAlias = "Counter[tuple[str, Path]]"
"""How many items of a type, by its name, have a value at a path."""
_MOST_PATHS = 10_000
"""With more different paths, attributes are data rather than names. New ones are not counted."""
_ALIKE = 0.8
"""How alike two names must be, out of 1, for one to be a likely mistake for the other."""
_MISSING = object()


@dataclass(frozen=True)
class Unmatched:
    """A field or an end whose attribute no item has, an attribute that no field has, or both, if one was meant."""

    type: str
    field: str | None
    """The field or end that no item has."""
    path: str
    """The attribute that it is stored in; without a field, the attribute that no field has."""
    count: int
    """How many items have the attribute that no field has; 0 if there is none."""
    meant: str | None = None
    """The attribute that was probably meant, in which no field is stored."""

    def __str__(self) -> str:
        if self.field is None:
            return f"no field is stored in {self.path}"
        stored = "" if self.field == self.path else f", which is stored in {self.path}"
        meant = (
            "" if self.meant is None else f"; {self.meant} was probably meant, in which no field is stored"
        )
        return f"no item has the field {self.field}{stored}{meant}"


class AttributeCounter:
    """Counts the attributes of items."""

    def __init__(self, graph: Graph) -> None:
        self._inner = {
            record.name: [place.attribute for place in record.places if len(place.attribute) > 1]
            for record in graph.types.values()
        }
        self._alike: Counter[tuple[str, tuple[str, ...], tuple[Path, ...]]] = Counter()
        """The number of items by their type and attributes: most items of a type have the same ones, in one order."""

    def add(self, record: RecordType, item: Item) -> None:
        """Count an item of the type."""
        inner = self._inner[record.name]
        own = (
            tuple([path for path in inner if at_path(item, path, _MISSING) is not _MISSING]) if inner else ()
        )
        self._alike[record.name, tuple(item), own] += 1

    @property
    def counts(self) -> AttributeCounts:
        """How many items have a value at each path."""
        found: AttributeCounts = Counter()
        for (type_, names, inner), count in self._alike.items():
            for path in (*((name,) for name in names), *inner):
                found[type_, path] += count
        return found


def merge(counts: AttributeCounts, more: Mapping[tuple[str, Path], int]) -> None:
    """Adds counts to others. The number of different paths stays bounded."""
    for key, count in more.items():
        if key in counts or len(counts) < _MOST_PATHS:
            counts[key] += count


def unmatched(graph: Graph, counts: AttributeCounts) -> Iterator[Unmatched]:
    """Yields what does not match, for each type that has items: fields first."""
    keys = {key.name for key in graph.table.key_attributes()}
    for record in graph.types.values():
        own = {path: count for (type_, path), count in counts.items() if type_ == record.name}
        if not own:
            continue
        declared = dict.fromkeys((place.path[0], place.attribute) for place in record.places)
        used = {
            ADDED,
            MARK,
            COPYING,
            *keys,
            *graph.type_values.attributes,
            *(path[0] for _, path in declared),
        }
        in_keys = record.attributes_in_keys - {
            key.name for each in record.keys.values() for key in each.attributes
        }
        spare = {path[0]: own[path] for path in sorted(own) if path[0] not in used}
        for name, path in declared:
            former = record.former.get(path)
            if path in own or former in own or path[0] in in_keys or path in record.former.values():
                continue
            if name in record.fields and record.fields[name].kept == "as_of":
                continue  # the value itself is named
            meant = _meant((name, path[-1]), spare) if len(path) == 1 else None
            count = spare.pop(meant) if meant is not None else 0
            yield Unmatched(record.name, name, ".".join(path), count, meant)
        for attribute, count in spare.items():
            yield Unmatched(record.name, None, attribute, count)


def _meant(names: Iterable[str], spare: Iterable[str]) -> str | None:
    """Returns the only attribute that is most like one of the names; None if none is similar enough."""
    ranked = sorted(((max(_likeness(name, each) for name in names), each) for each in spare), reverse=True)
    if not ranked or ranked[0][0] < _ALIKE or (len(ranked) > 1 and ranked[1][0] == ranked[0][0]):
        return None
    return ranked[0][1]


def _likeness(one: str, other: str) -> float:
    """Returns how alike two names are: 1 for the same words, 0.95 if one has all words of the other."""
    mine, theirs = words(one), words(other)
    if mine == theirs:
        return 1.0
    if mine and theirs and (set(mine) <= set(theirs) or set(theirs) <= set(mine)):
        return 0.95
    return SequenceMatcher(None, "".join(mine), "".join(theirs)).ratio()
