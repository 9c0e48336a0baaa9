"""What a node keeps of a walk: the first nodes that it found, and how many it found.

They are in one attribute, a map of `total` and `nodes`. A node is a list of its type, the texts of its key, and its
distance, or its score and the number of paths that lead there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, cast

from keygraph.dynamo.items import Value, number
from keygraph.errors import CorruptItem
from keygraph.keys.types import INT_MAX
from keygraph.model.paths import WalkedPath
from keygraph.model.records import RecordType
from keygraph.resolve.walks import NodeWalk
from keygraph.walks.ranking import rank
from keygraph.walks.reach import Requested, from_node, reach
from keygraph.walks.walk import Budget, Hop, Vertex, Walk

KEPT_BUDGET = 100_000
"""The most items that a walk examines for what a node keeps, unless it declares another number."""


class KeptNode(NamedTuple):
    """A node that a walk found."""

    node: Vertex
    distance: int | None
    score: float | None = None
    paths: int | None = None


class KeptNodes(NamedTuple):
    """The first nodes that a walk found."""

    nodes: Sequence[KeptNode]
    total: int | None
    """How many it found; None if its budget ended it."""


def walk_to_keep(walk: NodeWalk, start: Vertex, weigh: Callable[[Hop], Any]) -> Walk[Value]:
    """Walks from a node, and returns what it keeps. `weigh` gives the weight of an edge in a ranking."""
    options, budget = walk.options, Budget(walk.options.budget or KEPT_BUDGET)
    lists = [_by_owner(level) for level in walk.levels]
    nodes: list[Value]
    if options.depth is not None:
        requested = Requested(options.keep, True, lambda node: node.record in walk.nodes)
        found = yield from reach(
            from_node(start), lambda node: lists[0].get(node.record, ()), options.depth, budget, requested
        )
        total = len(found.nodes) + len(found.others) if found.is_complete else None
        nodes = [_stored(each.node, Decimal(each.distance)) for each in found.nodes]
    else:
        ranking = yield from rank(
            start,
            len(lists),
            lambda node, level: lists[level].get(node.record, ()),
            budget,
            weigh,
            include_first=options.include_first,
        )
        total = len(ranking.nodes) if ranking.is_complete else None
        # Without everything that leads to a node, its score is not known.
        nodes = [
            _stored(node, *([_number(score), Decimal(paths)] if ranking.is_complete else []))
            for node, score, paths in ranking.nodes[: options.keep]
        ]
    return {"total": None if total is None else Decimal(total), "nodes": nodes}


def read_kept(walk: NodeWalk, value: object) -> KeptNodes:
    """Returns what a node keeps, given its attribute. Raises CorruptItem if it is not what `walk_to_keep` returns."""
    types = {record.name: record for record in walk.nodes}
    try:
        stored = cast(Mapping[str, Any], value)
        total = stored["total"]
        # The job may have kept more before `keep=` was changed.
        nodes = [_read(walk, types, each) for each in stored["nodes"][: walk.options.keep]]
        return KeptNodes(
            [each for each in nodes if each is not None], None if total is None else _count(total)
        )
    except (TypeError, ValueError, KeyError, AttributeError):
        place = f"{walk.owner.name}.{walk.name}"
        raise CorruptItem(f"{place} of an item is not what keygraph summarize keeps of a walk") from None


def _by_owner(paths: Sequence[WalkedPath]) -> Mapping[RecordType, Sequence[WalkedPath]]:
    return {each.owner: [path for path in paths if path.owner is each.owner] for each in paths if each.owner}


def _stored(node: Vertex, *numbers: Value) -> Value:
    return [node.record.name, [*node.identity], *numbers]


def _number(score: Any) -> Decimal:
    """Returns a score as DynamoDB holds it: what is nearer to 0 than any of its numbers is 0."""
    exact = Decimal(repr(float(score)))
    try:
        return number(exact)
    except ValueError:
        if abs(exact) < 1:
            return Decimal(0)
        raise


def _read(walk: NodeWalk, types: Mapping[str, RecordType], stored: Any) -> KeptNode | None:
    """Returns a node; None if it is of a type that the walk no longer finds."""
    name, identity, *numbers = stored
    if name not in types:
        return None
    is_key = isinstance(identity, list) and all(isinstance(text, str) for text in identity)
    if not is_key or len(identity) != len(types[name].identity):
        raise ValueError("no key of a node")
    node = Vertex(types[name], tuple(identity))
    if walk.is_reach:
        [distance] = numbers
        return KeptNode(node, _count(distance))
    if not numbers:
        return KeptNode(node, None)
    score, paths = numbers
    if not isinstance(score, Decimal):
        raise TypeError("no score")
    return KeptNode(node, None, float(score), int(paths))


def _count(stored: Any) -> int:
    """Returns a number of nodes or steps."""
    if not isinstance(stored, Decimal) or not 0 <= stored <= INT_MAX or stored % 1:
        raise ValueError("no number of nodes or steps")
    return int(stored)
