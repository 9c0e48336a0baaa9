"""The paths of values in the answer, made for reports alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TypeAlias

from keygraph_resolvers.answer.reports import Path, PathStep

PathOf: TypeAlias = Callable[[int], Path]
"""Makes the path of the value with this number."""


def root_path(number: int) -> Path:
    """The path of the root, with which all others begin."""
    return ()


def below_field(path_of: PathOf, step: PathStep) -> PathOf:
    """The paths of one field of objects."""
    return lambda number: (*path_of(number), step)


def in_lists(path_of: PathOf, ends: Sequence[int], *, is_nullable: bool) -> PathOf:
    """The paths of the elements of lists, counted through all lists. `ends` has the number after each list's last."""

    def path_of_element(number: int) -> Path:
        place = bisect_right(ends, number)
        index = number - (ends[place - 1] if place else 0)
        return (*path_of(place), PathStep(index, index, is_nullable))

    return path_of_element


def among(path_of: PathOf, numbers: Sequence[int]) -> PathOf:
    """The paths of some of the values."""
    return lambda number: path_of(numbers[number])
