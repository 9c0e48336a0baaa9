"""Finds conditions that no record can meet, by looking at the comparisons of each attribute on its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from keygraph.access.grants import Decision
from keygraph.dynamo import conditions
from keygraph.dynamo.items import Item

_MOST = 256
"""The most ways of meeting a condition that are examined."""


def is_contradiction(*parts: Decision) -> bool:
    """Returns whether no record meets all of these. Also False if there are too many ways to meet them."""
    if any(part is False for part in parts):
        return True
    several = [part for part in parts if not isinstance(part, bool)]
    alternatives = [[*_alternatives(each, is_positive=True)] for each in several]
    count = 1
    for each in alternatives:
        count *= len(each)
    if count > _MOST:
        return False
    return not any(
        _can_be([term for alternative in chosen for term in alternative]) for chosen in product(*alternatives)
    )


_Term = tuple[bool, conditions.Comparison]
"""A comparison, and whether it must hold or must not hold."""


def _alternatives(condition: conditions.Condition, *, is_positive: bool) -> Iterator[tuple[_Term, ...]]:
    """Yields the ways to meet a condition, each as comparisons that are all required."""
    match condition:
        case conditions.Not(inner):
            yield from _alternatives(inner, is_positive=not is_positive)
        case conditions.And(several) | conditions.Or(several):
            if isinstance(condition, conditions.And) is not is_positive:
                for each in several:
                    yield from _alternatives(each, is_positive=is_positive)
                return
            for number, chosen in enumerate(
                product(*(_alternatives(each, is_positive=is_positive) for each in several))
            ):
                if number > _MOST:
                    return
                yield tuple(term for alternative in chosen for term in alternative)
        case _:
            yield ((is_positive, condition),)


def _can_be(terms: Iterable[_Term]) -> bool:
    """Returns whether a record can meet all these comparisons."""
    by_path: dict[conditions.Path, list[_Term]] = {}
    for is_positive, comparison in terms:
        by_path.setdefault(comparison.path, []).append((is_positive, comparison))
    return all(_has_value(path, each) for path, each in by_path.items())


def _has_value(path: conditions.Path, terms: list[_Term]) -> bool:
    """Returns whether some value of an attribute, or its absence, meets all these comparisons of it."""
    if _are_met({}, terms):
        return True
    required = [each for is_positive, each in terms if is_positive]
    listed = [
        [each.value] if isinstance(each, conditions.Eq) else [*each.values]
        for each in required
        if isinstance(each, conditions.Eq | conditions.In)
    ]
    listed += [
        [each.value] for is_positive, each in terms if isinstance(each, conditions.Ne) and not is_positive
    ]
    if listed:
        return any(_are_met(conditions.item_with(path, value), terms) for value in listed[0])
    if any(isinstance(each, conditions.Exists) and not is_positive for is_positive, each in terms):
        return False  # it must be missing, and that is not enough
    return not _is_crossed(required)


def _are_met(item: Item, terms: Iterable[_Term]) -> bool:
    return all(conditions.holds(comparison, item) is is_positive for is_positive, comparison in terms)


def _is_crossed(required: Iterable[conditions.Comparison]) -> bool:
    """Returns whether a value would have to be above one bound and below a lower one."""
    lows: list[tuple[Any, bool]] = []
    highs: list[tuple[Any, bool]] = []
    for each in required:
        match each:
            case conditions.Between(_, low, high):
                lows.append((low, True))
                highs.append((high, True))
            case conditions.Gt(_, value) | conditions.Ge(_, value):
                lows.append((value, isinstance(each, conditions.Ge)))
            case conditions.Lt(_, value) | conditions.Le(_, value):
                highs.append((value, isinstance(each, conditions.Le)))
    return any(
        type(low) is type(high) and (low > high or (low == high and not (has_low and has_high)))
        for (low, has_low), (high, has_high) in product(lows, highs)
    )
