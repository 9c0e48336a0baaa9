"""Resolves walks: the lists that each declared walk follows, the types of nodes it passes, and its mistakes; and the
lists that paths between two nodes may follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from keygraph.declare.declaration import ListOptions, WalkOptions
from keygraph.errors import Mistake
from keygraph.keys.types import NUMBERS, Kind
from keygraph.model.candidates import candidates
from keygraph.model.paths import AccessPath, ListOfIds, WalkedPath, with_edges
from keygraph.model.records import DeclaredWalk, RecordType

MOST_DEPTH = 100
TIMES = frozenset[Kind]({"datetime", "date"})


@dataclass(frozen=True, eq=False)
class NodeWalk:
    """A walk of a node, with the lists that it follows."""

    name: str
    owner: RecordType
    nodes: tuple[RecordType, ...]
    options: WalkOptions
    levels: tuple[tuple[WalkedPath, ...], ...]
    """For a ranking, the lists of each level; for a reach, one level with all lists."""
    description: str | None

    @property
    def is_reach(self) -> bool:
        return self.options.depth is not None

    @property
    def paths(self) -> tuple[WalkedPath, ...]:
        """All lists, each once."""
        return tuple(dict.fromkeys(path for level in self.levels for path in level))

    @property
    def may_read_again(self) -> bool:
        """Whether it may read a list twice, because it finds a node at several levels."""
        later = [path for level in self.levels[1:] for path in level]
        return len(later) > len({*later})


Lists = Mapping[tuple[str, str], WalkedPath]


def resolve_walks(
    types: Mapping[str, RecordType], lists: Lists, mistakes: list[Mistake]
) -> dict[tuple[str, str], NodeWalk]:
    """Returns the walks by owner and name, and adds the mistakes in those that cannot be walked."""
    found: dict[tuple[str, str], NodeWalk] = {}
    for record in types.values():
        for declared in record.walks.values():
            walk = _walk(record, declared, lists)
            wrong = [*_wrong(walk)]
            mistakes += [Mistake("walk", f"{record.name}.{declared.name}", *each) for each in wrong]
            if not wrong:
                found[record.name, declared.name] = walk
    return found


def _walk(owner: RecordType, declared: DeclaredWalk, lists: Lists) -> NodeWalk:
    options = declared.options
    if options.depth is None:
        levels: list[tuple[WalkedPath, ...]] = []
        reached: Iterable[RecordType] = (owner,)
        for name in options.lists:
            level = _lists_of(reached, [name], lists)
            reached = [*dict.fromkeys(node for path in level for node in _far(path))]
            levels.append(level)
    else:
        levels, known = [_lists_of([owner], options.lists, lists)], {owner: None}
        while new := [node for path in levels[0] for node in _far(path) if node not in known]:
            known |= dict.fromkeys(new)
            levels = [_lists_of(known, options.lists, lists)]
    return NodeWalk(declared.name, owner, declared.of, options, tuple(levels), declared.description)


def _lists_of(owners: Iterable[RecordType], names: Iterable[str], lists: Lists) -> tuple[WalkedPath, ...]:
    found = (lists.get((owner.name, name)) for owner in owners for name in dict.fromkeys(names))
    return tuple(path for path in found if path is not None)


def _far(path: WalkedPath) -> Sequence[RecordType]:
    """Returns the types of the nodes that a list leads to."""
    return [node for node in path.nodes if node.is_node]


def _wrong(walk: NodeWalk) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with a walk, and how to fix it."""
    options, word = walk.options, "reach" if walk.is_reach else "ranked"
    if not options.lists or not all(isinstance(name, str) for name in options.lists):
        yield f"{word}() names no list.", f'Name the lists that it follows: {word}("children").'
        return
    for name, value, most in (("depth", options.depth, MOST_DEPTH), ("budget", options.budget, 2**31)):
        if value is not None and (type(value) is not int or not 1 <= value <= most):
            yield f"{name}={value!r} is not a number from 1 to {most:,}.", "Write such a number."
    for number, name in enumerate(options.lists):
        level = walk.levels[0] if walk.is_reach else walk.levels[number]
        if all(path.name != name for path in level):
            yield from _missing_list(walk, number)
            return
    for path in walk.paths:
        why = _unusable(path)
        if why is not None:
            yield f"it cannot follow {path.place}: {why}.", "Name another list."
            return
    last = walk.levels[-1]
    ends = {node for path in last for node in _far(path)}
    for node in walk.nodes:
        if node not in ends:
            known = ", ".join(sorted(each.name for each in ends))
            yield f"its lists lead to no {node.name}, but to {known}.", "Annotate it with what they lead to."
    if options.weight is not None:
        yield from _wrong_field(last, "weight", options.weight, NUMBERS, "a number")
    decay: Any = options.decay
    is_pair = isinstance(decay, tuple) and len(decay) == 2 and isinstance(decay[1], timedelta)
    if is_pair and decay[1] > timedelta(0):
        yield from _wrong_field(last, "decay", decay[0], TIMES, "a time")
    elif decay is not None:
        problem = f"decay={decay!r} is not a field and a positive time."
        yield problem, 'Write decay=("since", timedelta(days=30)).'


def _missing_list(walk: NodeWalk, number: int) -> Iterator[tuple[str, str]]:
    """Yields that none of the nodes there has the list of that number, unless its own mistake is reported elsewhere."""
    name, owners, subject = walk.options.lists[number], [walk.owner], f"{walk.owner.name} has no"
    if number and not walk.is_reach:
        owners = [node for path in walk.levels[number - 1] for node in _far(path)]
    if number or walk.is_reach:
        subject = "none of the nodes that it reaches has a"
    if not any(name in owner.lists for owner in owners):
        fix = "Name a list: a field annotated Many[…], One[…] or list[Ref[…]]."
        yield f"{subject} list called {name}.", fix


def _unusable(path: WalkedPath) -> str | None:
    """Returns why a walk cannot follow a list; None if it can."""
    if isinstance(path, ListOfIds):
        end = path.end
    elif path.required:
        return f"it needs the argument {path.required[0].name}"
    elif path.far_end is None:
        others = [record.name for record in path.records if not record.is_node]
        return f"{' and '.join(others)} leads to no other node" if others else None
    else:
        end = path.record.ends[path.far_end]
    return f"the key of {end.type_name} does not show its type" if end.is_ambiguous else None


def _wrong_field(
    paths: Sequence[WalkedPath], option: str, name: str, kinds: frozenset[Kind], what: str
) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with a field of the last list's items."""
    for ids in (each for each in paths if isinstance(each, ListOfIds)):
        problem = f"{option}: {ids.owner.name}.{ids.name} is a list of ids, which have no fields."
        yield problem, f"Remove {option}=, or let the walk end with a list of items."
    for path in (member for each in with_edges(paths) for member in each.each):
        field = path.record.fields.get(name)
        if field is None or field.type.kind not in kinds:
            problem = f"{option}: {path.record.name} has no field {name} that is {what}."
            yield problem, f"Name a field of the items of {path.name}."
        elif field.shards:
            yield f"{option}: {path.record.name}.{name} is spread over shards.", "Name another field."
        elif name not in path.projected:
            problem = f"{option}: {path.keys.index_name} does not project {path.record.name}.{name}."
            yield problem, "Project it too."


# --- Paths between nodes ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FollowedList:
    """A list that a path may follow."""

    path: WalkedPath
    against: Mapping[RecordType, AccessPath] | None
    """The lists that find the nodes leading to a node, by its type; None if no keys find all of them."""


Unrecognized: TypeAlias = Callable[[AccessPath], Iterator[object]]


def followed_list(path: WalkedPath, unrecognized: Unrecognized) -> FollowedList | None:
    """Returns a list as paths follow it; None for one that leads to no nodes, has several types, or needs arguments.
    `unrecognized` yields the types that a list's index does not tell apart."""
    if isinstance(path, ListOfIds):
        return None if path.end.is_ambiguous else FollowedList(path, None)
    leads = path.far_end is not None or (path.record.is_node and not path.members)
    if path.owner is None or path.required or not leads:
        return None
    against: dict[RecordType, AccessPath] | None = {}
    for node in path.nodes:
        found = _against(path, node, unrecognized)
        if found is None or against is None:
            against = None
        else:
            against[node] = found
    return FollowedList(path, against)


def _against(path: AccessPath, node: RecordType, unrecognized: Unrecognized) -> AccessPath | None:
    if path.far_end is None:
        return None
    if path.record.is_mirrored:
        return path if _is_visible_from_both_ends(path.record) else None
    if not _holds_all(path):
        return None  # from its far nodes, edges would be found that it does not show
    options = ListOptions(at=path.far_end, index=None, any_index=True)
    several = (
        each
        for each in candidates(path.name, node, path.record, options)
        if _holds_all(each) and not any(unrecognized(each))
    )
    return next((each for each in several if each.far_end == path.end and not each.required), None)


def _is_visible_from_both_ends(record: RecordType) -> bool:
    """Returns whether who sees one item of a mirrored edge sees the other: no rule uses its exchanged ends."""
    access = record.access
    if access is None:
        return True
    used = access.names("read")
    return not access.links("read") and used.isdisjoint(record.ends) and used.isdisjoint(record.key_fields)


def _holds_all(path: AccessPath) -> bool:
    """Returns whether the list's keys hold every item of the type, nothing in them is hidden from a viewer, and the items
    have what decides whether they are there: an index that no list reads may lack it."""
    record = path.record
    decisive = {attribute for attribute, *_ in record.access.paths("read")} if record.access else set()
    decisive |= {record.expiry.attribute[0]} if record.expiry is not None else set()
    if any(map(path.lacks, decisive)):
        return False
    for slot in path.keys.slots:
        name = slot.path[0]
        declared = record.fields.get(name) or record.ends.get(name)
        if slot.name in path.keys.optional or slot.computed or (declared is not None and declared.optional):
            return False
        if record.access is not None and not slot.is_shard and record.access.is_restricted(name):
            return False
    return True
