"""Resolves walks: the lists that each declared walk follows, the types of nodes it passes, and its mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from keygraph.declare.declaration import WalkOptions
from keygraph.errors import Mistake
from keygraph.model.paths import AccessPath
from keygraph.model.records import DeclaredWalk, RecordType

MOST_DEPTH = 100
NUMBERS = frozenset({"int", "long", "float", "decimal"})
TIMES = frozenset({"datetime", "date"})


@dataclass(frozen=True, eq=False)
class NodeWalk:
    """A walk of a node, with the lists that it follows."""

    name: str
    owner: RecordType
    nodes: tuple[RecordType, ...]
    """The types of the nodes that it returns."""
    options: WalkOptions
    levels: tuple[tuple[AccessPath, ...], ...]
    """For a ranking, the lists of each level; for a reach, one level with all lists."""
    description: str | None

    @property
    def is_reach(self) -> bool:
        return self.options.depth is not None

    @property
    def paths(self) -> tuple[AccessPath, ...]:
        """All lists, each once."""
        return tuple(dict.fromkeys(path for level in self.levels for path in level))

    @property
    def may_read_again(self) -> bool:
        """Whether it may read a list twice, because it finds a node at several levels."""
        later = [path for level in self.levels[1:] for path in level]
        return len(later) > len({*later})


Lists = Mapping[tuple[str, str], AccessPath]


def resolve_walks(
    types: Mapping[str, RecordType], lists: Lists
) -> tuple[dict[tuple[str, str], NodeWalk], list[Mistake]]:
    """Returns the walks by owner and name, and the mistakes in those that cannot be walked."""
    found: dict[tuple[str, str], NodeWalk] = {}
    mistakes = []
    for record in types.values():
        for declared in record.walks.values():
            walk = _walk(record, declared, lists)
            wrong = [*_wrong(walk)]
            mistakes += [Mistake("walk", f"{record.name}.{declared.name}", *each) for each in wrong]
            if not wrong:
                found[record.name, declared.name] = walk
    return found, mistakes


def _walk(owner: RecordType, declared: DeclaredWalk, lists: Lists) -> NodeWalk:
    options = declared.options
    if options.depth is None:
        levels: list[tuple[AccessPath, ...]] = []
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


def _lists_of(owners: Iterable[RecordType], names: Iterable[str], lists: Lists) -> tuple[AccessPath, ...]:
    """Returns the lists of these names that nodes of these types have."""
    found = (lists.get((owner.name, name)) for owner in owners for name in dict.fromkeys(names))
    return tuple(path for path in found if path is not None)


def _far(path: AccessPath) -> Sequence[RecordType]:
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
            owners = [walk.owner]
            if number and not walk.is_reach:
                owners = [node for path in walk.levels[number - 1] for node in _far(path)]
            if any(name in owner.lists for owner in owners):
                return  # the mistake of the list is reported there
            told = "none of the nodes that it reaches has a"
            if not walk.is_reach and not number:
                told = f"{walk.owner.name} has no"
            yield f"{told} list called {name}.", "Name a list: a field annotated Many[…] or One[…]."
            return
    for path in walk.paths:
        problem = _unusable(path)
        if problem is not None:
            owner = path.owner.name if path.owner else ""
            yield f"it cannot follow {owner}.{path.name}: {problem}.", "Name another list."
            return
    last = walk.levels[-1]
    ends = {node for path in last for node in _far(path)}
    for node in walk.nodes:
        if node not in ends:
            known = ", ".join(sorted(each.name for each in ends))
            yield f"its lists lead to no {node.name}, but to {known}.", "Annotate it with what they lead to."
    if options.weight is not None:
        yield from _wrong_field(last, "weight", options.weight, NUMBERS, "a number")
    decay = options.decay
    if decay is not None:
        if not _is_decay(decay):
            problem = f"decay={decay!r} is not a field and a positive time."
            yield problem, 'Write decay=("since", timedelta(days=30)).'
        else:
            yield from _wrong_field(last, "decay", decay[0], TIMES, "a time")


def _is_decay(given: object) -> bool:
    if not isinstance(given, tuple) or len(given) != 2:
        return False
    return isinstance(given[1], timedelta) and given[1] > timedelta(0)


def _unusable(path: AccessPath) -> str | None:
    """Returns why a walk cannot follow a list; None if it can."""
    if path.required:
        return f"it needs the argument {path.required[0].name}"
    if path.far_end is None:
        others = [record.name for record in path.records if not record.is_node]
        return f"{' and '.join(others)} leads to no other node" if others else None
    end = path.record.ends[path.far_end]
    return f"the key of {end.type_name} does not show its type" if end.is_ambiguous else None


def _wrong_field(
    paths: Sequence[AccessPath], option: str, name: str, kinds: frozenset[str], what: str
) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with a field of the last list's items."""
    for path in (member for each in paths for member in each.each):
        field = path.record.fields.get(name)
        if field is None or field.type.kind not in kinds:
            problem = f"{option}: {path.record.name} has no field {name} that is {what}."
            yield problem, f"Name a field of the items of {path.name}."
        elif name not in path.told:
            problem = f"{option}: {path.keys.index_name} does not project {path.record.name}.{name}."
            yield problem, "Project it too."
