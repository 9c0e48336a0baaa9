"""Checks the declarations of mirrors and counterparts."""

from __future__ import annotations

from collections.abc import Iterator

from keygraph.declare.declaration import WriteName
from keygraph.errors import Mistake
from keygraph.model.counterparts import matched_ends
from keygraph.model.records import RecordType
from keygraph.resolve.record_types import RecordTypes

_OF_NEW: tuple[WriteName, ...] = ("create", "put", "upsert")
"""The mutations that write a record where there was none."""


def counterpart_mistakes(model: RecordTypes) -> Iterator[Mistake]:
    """Yields every mistake in `mirror=` and `counterpart=`."""
    for record in model.types.values():
        what = "mirror" if record.is_mirrored else "counterpart"
        wrong = None
        if record.kind != "edge":
            if record.is_mirrored or record.counterpart:
                fix = "Only edges can have one: remove it, or declare an edge."
                wrong = f"a {record.kind} has no {what}.", fix
        elif record.is_mirrored:
            wrong = _wrong_mirror(model, record)
        elif record.counterpart:
            wrong = _wrong_counterpart(model, record, record.counterpart)
            if wrong is None and record.counterpart in model.types:
                yield from _of_items(model, record, model.types[record.counterpart])
        if wrong is not None:
            yield Mistake(what, record.name, *wrong)


def _wrong_mirror(model: RecordTypes, record: RecordType) -> tuple[str, str] | None:
    """Returns the problem and how to fix it; None if there is none."""
    if record.counterpart:
        return f"it is mirrored, and {record.counterpart} is its counterpart.", _ONE_OF_TWO
    first, second = (record.ends[name] for name in record.key_ends)
    found = model.correspondences.get(record.name)
    if found is None:
        problem = f"its ends are a {first.type_name} and a {second.type_name}, which cannot be swapped."
        return problem, 'A mirror joins two nodes of one type; name another edge type: counterpart="…".'
    if first.attributes == second.attributes:
        problem = f"{first.name} and {second.name} are stored in the same attributes, so its key is the same in both orders."
        return problem, "Give each end its own attributes with stored()."
    if lacking := found.undetermined:
        problem = f"with its ends exchanged its key cannot be rendered: of {', '.join(lacking)} it tells less than the key holds."
        return problem, "Use the same lossless format for both ends."
    return None


def _wrong_counterpart(model: RecordTypes, record: RecordType, name: str) -> tuple[str, str] | None:
    """Returns the problem and how to fix it; None if there is none."""
    other = model.types.get(name)
    if other is None:
        if name in model.resolution.types:
            return None
        return f"its counterpart {name} is not listed in the graph.", "List it, or name another one."
    if other is record:
        fix = "Use mirror=True if the ends are swapped, or name the other edge type."
        return "it is named as its own counterpart.", fix
    if other.kind != "edge":
        return f"its counterpart {name} is a {other.kind}.", "Name an edge type."
    if other.is_mirrored:
        return f"its counterpart {name} is mirrored.", _ONE_OF_TWO
    if other.counterpart not in (None, record.name):
        fix = "Counterparts come in pairs: let both name each other."
        return f"its counterpart {name} has another one, {other.counterpart}.", fix
    others = [each.name for each in model.types.values() if each.counterpart == name and each is not record]
    if others:
        fix = "Counterparts come in pairs: leave one out."
        return f"{name} is the counterpart of {', '.join(others)} too.", fix
    if matched_ends(record, other) is None:
        problem = f"its ends are {_ends_of(record)}, those of {name} are {_ends_of(other)}."
        fix = "Counterparts join the same two nodes. If both are of one type, give the ends the same names."
        return problem, fix
    return None


_ONE_OF_TWO = "An edge can have only one of the two: remove one."


def _of_items(model: RecordTypes, record: RecordType, other: RecordType) -> Iterator[Mistake]:
    """Yields the values of one counterpart that cannot be derived from the other; once per pair."""
    found = model.correspondences[record.name]
    for each in (found, model.correspondences[other.name]) if other.counterpart is None else (found,):
        name = each.other.name
        if lacking := each.undetermined:
            problem = f"an item of its counterpart {name} cannot be rendered from one of it, which does not tell {', '.join(lacking)}."
            fix = "Declare that here too, or make it optional there."
            yield Mistake("counterpart", each.one.name, problem, fix)
        elif each.needed and (made := [action for action in _OF_NEW if action in each.one.writes]):
            problem = f"{made[0]}{each.one.name} would write a {name} without {', '.join(each.needed)}, which every {name} needs."
            fix = f"Declare that here too, make it optional or give it a default there, or leave {', '.join(made)} out of writes= here."
            yield Mistake("counterpart", each.one.name, problem, fix)
    if other.counterpart is not None and other.name < record.name:
        return
    for field in found.fields:
        mine, theirs = (each.fields[field].type for each in (record, other))
        if mine != theirs:
            problem = (
                f"it is of type {mine.name} here and of type {theirs.name} in its counterpart {other.name}."
            )
            fix = "Declare the same type in both, or rename one of them."
            yield Mistake("counterpart", f"{record.name}.{field}", problem, fix)


def _ends_of(record: RecordType) -> str:
    return " and ".join(f"{name}: {record.ends[name].type_name}" for name in record.key_ends)
