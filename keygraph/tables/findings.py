"""What a verification has found: how many items of each type, and what is wrong with how many of them.

A `Report` counts everything and keeps a few examples of each kind of finding, those with the smallest keys: whatever
the order in which items are read, the report is the same. It holds no value of an item but keys.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from keygraph.dynamo.items import from_typed, to_typed
from keygraph.dynamo.table import Key

Problem: TypeAlias = Literal["unknown", "unfit", "key", "dangling", "one-sided", "differing"]
"""No type accepts the item; it does not fit its declaration; a key is not what its attributes say; the node at an end
is missing; the mirror or counterpart is missing, or is not alike."""
PROBLEMS: tuple[Problem, ...] = get_args(Problem)


class FindingKind(NamedTuple):
    """What findings are counted by."""

    problem: Problem
    type: str | None
    """None where no type accepts the item."""
    what: str
    """In words that hold no value, so that there are few kinds."""


class Example(NamedTuple):
    """One item of a kind."""

    key: Key
    other: Key | None
    """The key of the node that is missing, or of the mirror or counterpart."""


class Finding(NamedTuple):
    """What is wrong with one item."""

    kind: FindingKind
    example: Example


@dataclass(slots=True)
class Findings:
    """The findings of one kind."""

    count: int = 0
    examples: list[Example] = field(default_factory=list)
    """Those with the smallest keys, in the order of keys."""


class Report:
    """What was found so far."""

    def __init__(self, most_examples: int) -> None:
        self.most_examples = most_examples
        self.items: Counter[str | None] = Counter()
        """How many items there are of each type; None for those that no type accepts."""
        self.found: dict[FindingKind, Findings] = {}

    @property
    def total(self) -> int:
        """How many items were read."""
        return self.items.total()

    def add(self, types: Mapping[str | None, int], findings: Iterable[Finding]) -> None:
        """Counts items that were read, by type, and what is wrong with them."""
        self.items.update(types)
        for kind, example in findings:
            found = self.found.setdefault(kind, Findings())
            found.count += 1
            insort(found.examples, example, key=_order)
            del found.examples[self.most_examples :]

    def ordered(self) -> list[tuple[FindingKind, Findings]]:
        """The findings by problem, type, and what it is."""
        return sorted(
            self.found.items(),
            key=lambda pair: (PROBLEMS.index(pair[0].problem), pair[0].type or "", pair[0].what),
        )

    # --- Kept between two runs ------------------------------------------------------------------------

    def kept(self) -> dict[str, Any]:
        """The report as JSON can say it; bytes in keys apart, which are to be written as base64."""
        return {
            "items": [[name, count] for name, count in self.items.items()],
            "found": [
                [
                    *kind,
                    found.count,
                    [[kept_key(key), other and kept_key(other)] for key, other in found.examples],
                ]
                for kind, found in self.found.items()
            ],
        }

    @classmethod
    def of_kept(cls, kept: Mapping[str, Any], most_examples: int) -> Report:
        """The report that was kept. Raises KeyError, TypeError or ValueError for what is none."""
        report = cls(most_examples)
        report.items.update({name: int(count) for name, count in kept["items"]})
        for problem, type_, what, count, examples in kept["found"]:
            made = [Example(key_of_kept(key), other and key_of_kept(other)) for key, other in examples]
            report.found[FindingKind(problem, type_, what)] = Findings(int(count), made)
        return report


def _order(example: Example) -> tuple[Key, Key]:
    return example.key, example.other or ()


def kept_key(key: Key) -> list[dict[str, Any]]:
    """A key, or a position in a table, as JSON can say it."""
    return [to_typed(value) for value in key]


def key_of_kept(kept: Iterable[Mapping[str, Any]]) -> Key:
    """The key that was kept. Raises KeyError, TypeError or ValueError for what is none."""
    return cast(Key, tuple(from_typed(value) for value in kept))
