"""What is wrong with values that only the job computes: degrees, tops, ranks, walks, and counts and sums over two levels
of lists."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar

from keygraph.declare.declaration import OF_ENDS
from keygraph.errors import Mistake
from keygraph.keys.types import NUMBERS
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath, with_edges
from keygraph.model.records import RecordType
from keygraph.resolve.derived import keys_of_numbers, why_not_counted, why_not_summed
from keygraph.resolve.record_types import RecordTypes
from keygraph.resolve.walks import NodeWalk

MOST_IN_TOP = 100
"""The most values that a top holds: they are all in one item."""


def summary_mistakes(model: RecordTypes) -> Iterator[Mistake]:
    for record in model.types.values():
        for field in record.fields.values():
            if field.is_only_by_job:
                wrongs = _wrong(record, field, model.node_lists)
                if field.kept == "walk":
                    wrongs = _wrong_walk(record, field, model.walks.get((record.name, field.name)))
                for wrong in wrongs:
                    yield Mistake("kept", f"{record.name}.{field.name}", *wrong)


_Lists: TypeAlias = Mapping[tuple[str, str], AccessPath]
_T = TypeVar("_T")
_Wrong: TypeAlias = "Generator[tuple[str, str], None, _T | None]"
"""Yields what is wrong, and how to fix it."""


def _wrong(record: RecordType, field: Field, lists: _Lists) -> Iterator[tuple[str, str]]:
    """Yields what is wrong, and how to fix it."""
    if field.kept in OF_ENDS:
        yield (
            "a smallest, largest or last value is that of one list.",
            "Name a list of this node and a field.",
        )
        return
    if field.keeper != "job":
        yield "only the job computes something over two levels of lists.", 'Write kept="job".'
    if field.kept_where is not None:
        yield "where= is for a count or sum over one list.", "Leave it out."
    if keys_of_numbers(record, [field]):
        yield "it is in a key, which the job does not render again.", "Take it out of the template."
    if any(field.name in rule.names for rule in record.rules):
        yield "a rule in check= is about it, and the job changes it.", "Remove the rule."
    if field.kept == "rank":
        yield from _wrong_rank(record, field)
        return
    if not record.is_node:
        yield "only a node has lists.", "Move it to a node."
        return
    nodes = yield from (_wrong_degree if field.kept == "degree" else _wrong_levels)(record, field, lists)
    if nodes is None:
        return
    if field.kept == "top":
        yield from _wrong_top(field, nodes)
    elif field.type.written is not None:
        yield "it is not stored as a number.", "Remove the format of its type."


def _wrong_degree(record: RecordType, field: Field, lists: _Lists) -> _Wrong[list[RecordType]]:
    """Yields what is wrong with the lists whose edges are counted. Returns no nodes; None if a list is unknown."""
    for name in field.lists:
        paths = yield from _paths_of([record], name, lists)
        if paths is None:
            return None
        if any(each.far_end is None for path in paths for each in path.each):
            yield f"{name} is no list of edges.", f'Write counts("{name}", kept="job").'
    return []


def _wrong_levels(record: RecordType, field: Field, lists: _Lists) -> _Wrong[list[RecordType]]:
    """Yields what is wrong with a list, or with the lists of its nodes. Returns the nodes of the last one; None if a list
    is unknown."""
    owners, of = [record], field.kept_of.rpartition(".")[2]
    for level, name in enumerate(field.lists, 1):
        paths = yield from _paths_of(owners, name, lists)
        if paths is None:
            return None
        owners = [*dict.fromkeys(node for path in paths for node in path.nodes)]
        if level == len(field.lists) and field.kept != "count":
            for each in (each for path in paths for each in path.records):
                yield from why_not_summed(field, each, of)
                yield from _wrong_top_of(field, each, of) if field.kept == "top" else ()
        if level < len(field.lists) and not all(owner.is_node for owner in owners):
            yield f"the items of {name} are no nodes, and have no lists.", "Name a list of nodes or edges."
            return None
    return owners


def _paths_of(owners: Iterable[RecordType], name: str, lists: _Lists) -> _Wrong[list[AccessPath]]:
    """Yields why the job cannot count a list of these types. Returns its paths; None if one of them has no such list."""
    found = []
    for owner in owners:
        if name not in owner.lists:
            known = ", ".join(owner.lists) or "none"
            yield f"{name!r} is no list of {owner.name}; its lists: {known}.", "Name one of them."
            return None
        path = lists.get((owner.name, name))
        if path is None:
            return None  # the mistake of the list is reported there
        reason = why_not_counted(owner, path, by_job=True)
        if reason is not None:
            yield reason
        found.append(path)
    return found


def _wrong_top_of(field: Field, record: RecordType, of: str) -> Iterator[tuple[str, str]]:
    source, held = record.fields.get(of), field.type.of
    if source is not None and held is not None and held.kind in NUMBERS and held != source.type:
        problem = f"{record.name}.{of} is of type {source.type.name}, and this of type {field.type.name}."
        yield problem, "Annotate it as a list of them, or as list[ID] for the keys of the nodes."


def _wrong_top(field: Field, nodes: list[RecordType]) -> Iterator[tuple[str, str]]:
    if not 1 <= field.kept_size <= MOST_IN_TOP:
        yield f"{field.kept_size} is no number from 1 to {MOST_IN_TOP}.", 'Write top("a_list.a_field", 10).'
    kind = None if field.type.of is None else field.type.of.kind
    if kind not in NUMBERS and kind not in ("id", "string"):
        problem = f"it holds numbers or keys of nodes, and it is of type {field.type.name}."
        yield problem, "Annotate it as list[ID], or as a list of numbers."
    elif kind not in NUMBERS and any(not node.is_node or len(node.identity) != 1 for node in nodes):
        yield "it holds keys, and these are of nodes with one key field.", "Annotate it as a list of numbers."


def _wrong_walk(record: RecordType, field: Field, walk: NodeWalk | None) -> Iterator[tuple[str, str]]:
    if type(field.kept_size) is not int or not 1 <= field.kept_size <= MOST_IN_TOP:
        yield f"keep={field.kept_size!r} is no number from 1 to {MOST_IN_TOP}.", "Write keep=20, for example."
    if record.is_virtual:
        yield f"the table holds no item of {record.name} to keep it.", 'Leave out kept="job".'
    if walk is None or not field.is_kept_by_stream:
        return
    if (walk.options.depth or len(walk.levels)) > 1:
        problem = "one edge may change what nodes several lists away keep, and the stream changes the nodes of one list."
        yield (
            problem,
            'Write kept="job", or follow one list: ranked("friends"), or reach("friends", depth=1).',
        )
    for each in (member for path in with_edges(walk.paths) for member in path.each):
        if each.keys.index is not None and not each.keys.index.local:
            problem = f"{each.name} reads {each.keys.index_name}, which is written later than the table."
            yield problem, 'Write kept="job", or follow a list in the table\'s own keys.'


def _wrong_rank(record: RecordType, field: Field) -> Iterator[tuple[str, str]]:
    source, within = record.fields.get(field.kept_of), field.kept_within
    if source is None or source.type.kind not in NUMBERS | {"average"} or source.type.written is not None:
        yield f"{record.name} has no field {field.kept_of} that is stored as a number.", "Name another field."
    elif source.shards:
        yield f"{field.kept_of} is spread over shards.", "Name another field."
    elif source.kept == "rank":
        yield f"{field.kept_of} is a rank itself.", "Rank by what it ranks by."
    if within and within not in record.fields and within not in record.ends:
        names = ", ".join((*record.fields, *record.ends))
        yield f"{record.name} has no field or end {within}; it has {names}.", "Name one of them."
    if within and within in record.fields and record.fields[within].is_kept_later:
        yield f"only the job computes {within}.", "Name a field that mutations write."
