"""The result of a verification: how many items each type has, and how many have which problem.

A `Report` counts everything and keeps a few examples of each kind of finding, those with the smallest keys, so the
order in which items are read does not matter. It holds no values of items except keys.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from keygraph.dynamo.items import Item, Value, from_typed, to_typed
from keygraph.dynamo.table import Key
from keygraph.tables.attributes import AttributeCounts, merge

Problem: TypeAlias = Literal[
    "unknown",
    "unfit",
    "key",
    "dangling",
    "one-sided",
    "differing",
    "miscounted",
    "stale",
    "outdated",
    "interrupted",
    "missing",
    "uncopied",
]
"""In this order: no type accepts the item; it does not fit its declaration; a key does not match the attributes; the
node at an end is missing; the mirror or counterpart is missing; it exists but differs; a count or sum does not match
its list; a copy that follows its source is not what that is now; another copy is not, or a node
still has the mark of an interrupted change of its copies, which are looked for only on request; an attribute that can be written is missing, and a copy is, which only a backfill looks for."""
PROBLEMS: tuple[Problem, ...] = get_args(Problem)


class FindingKind(NamedTuple):
    """The kind by which findings are counted."""

    problem: Problem
    type: str | None
    """None if no type accepts the item."""
    what: str
    """A text without values, so that there are few kinds."""


class Example(NamedTuple):
    """One item of a kind."""

    key: Key
    other: Key | None
    """The key of the missing node, or of the mirror or counterpart."""


class Finding(NamedTuple):
    """What is wrong with one item."""

    kind: FindingKind
    example: Example
    item: Item
    """The item as it was read."""
    name: str | None = None
    """The end, the count or sum, the copy, or the missing field."""
    right: Value = None
    """What a count or sum should be, or what a missing field can be."""
    reason: str | None = None
    """Why it is not repaired."""
    shards: tuple[tuple[Key, Item | None], ...] = ()
    """The shards of a node whose number is wrong, by key, as they were read."""


@dataclass(slots=True)
class Findings:
    """The findings of one kind."""

    count: int = 0
    examples: list[Example] = field(default_factory=list)
    """Those with the smallest keys, in order."""


IGNORED = "ignored items"
"""Stands for the type of items that are not the graph's (`Graph(ignore=…)`)."""


class Report:
    """The findings so far."""

    def __init__(self, most_examples: int) -> None:
        self.most_examples = most_examples
        self.items: Counter[str | None] = Counter()
        """The number of items of each type; None stands for items that no type accepts, IGNORED for those that none has
        to accept."""
        self.attributes: AttributeCounts = Counter()
        self.found: dict[FindingKind, Findings] = {}
        """Without what was repaired."""
        self.repaired: Counter[FindingKind] = Counter()
        self.repaired_items = 0
        """The number of items with findings that were repaired."""

    @property
    def total(self) -> int:
        """The number of items that were read."""
        return self.items.total()

    @property
    def problems(self) -> int:
        """The number of findings that are left."""
        return sum(found.count for found in self.found.values())

    def add(
        self, types: Mapping[str | None, int], attributes: AttributeCounts, findings: Iterable[Finding]
    ) -> None:
        """Counts items and their attributes by type, and their findings."""
        self.items.update(types)
        merge(self.attributes, attributes)
        for each in findings:
            kind = each.kind
            if each.reason is not None:
                kind = kind._replace(what=f"{kind.what} (not repaired: {each.reason})")
            found = self.found.setdefault(kind, Findings())
            found.count += 1
            insort(found.examples, each.example, key=lambda example: (example.key, example.other or ()))
            del found.examples[self.most_examples :]

    def add_repaired(
        self, found: Sequence[Finding], left: Sequence[Finding], written: AttributeCounts
    ) -> None:
        """Counts the findings that are not left, and their items. Attributes that were written are not missing."""
        merge(self.attributes, {key: written[key] for key in written.keys() - self.attributes.keys()})
        self.repaired += Counter(each.kind for each in found) - Counter(each.kind for each in left)
        before, after = (Counter(each.example.key for each in several) for several in (found, left))
        self.repaired_items += len(before - after)

    def ordered(self) -> list[tuple[FindingKind, Findings]]:
        """Returns the findings, sorted by problem, type and text."""
        return sorted(
            self.found.items(),
            key=lambda pair: (PROBLEMS.index(pair[0].problem), pair[0].type or "", pair[0].what),
        )

    # --- Saved between two runs -----------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON, except that keys may hold bytes, which are to be written in base64."""
        return {
            "items": [[name, count] for name, count in self.items.items()],
            "attributes": [[type_, path, count] for (type_, path), count in self.attributes.items()],
            "repaired": [[*kind, count] for kind, count in self.repaired.items()],
            "repaired_items": self.repaired_items,
            "found": [
                [
                    *kind,
                    found.count,
                    [[key_to_json(key), other and key_to_json(other)] for key, other in found.examples],
                ]
                for kind, found in self.found.items()
            ],
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any], most_examples: int) -> Report:
        """Returns the saved report. Raises KeyError, TypeError or ValueError if it is malformed."""
        report = cls(most_examples)
        report.items.update({name: int(count) for name, count in kept["items"]})
        for name, path, count in kept["attributes"]:
            report.attributes[name, tuple(path)] = int(count)
        report.repaired.update({FindingKind(*kind): int(count) for *kind, count in kept["repaired"]})
        report.repaired_items = int(kept["repaired_items"])
        for problem, type_, what, count, examples in kept["found"]:
            made = [Example(key_from_json(key), other and key_from_json(other)) for key, other in examples]
            report.found[FindingKind(problem, type_, what)] = Findings(int(count), made)
        return report


def key_to_json(key: Key) -> list[dict[str, Any]]:
    """Returns a key, or a position in the table, as JSON."""
    return [to_typed(value) for value in key]


def key_from_json(kept: Iterable[Mapping[str, Any]]) -> Key:
    """Returns the saved key. Raises KeyError, TypeError or ValueError if it is malformed."""
    return cast(Key, tuple(from_typed(value) for value in kept))
