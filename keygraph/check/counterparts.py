"""What can be wrong with the declaration of a mirror or a counterpart."""

from __future__ import annotations

from collections.abc import Iterator

from keygraph.errors import Mistake
from keygraph.model.counterparts import Correspondence, is_one_attribute, matched_ends
from keygraph.model.records import RecordType
from keygraph.resolve.record_types import RecordTypes


def counterpart_mistakes(model: RecordTypes) -> Iterator[Mistake]:
    """Every mistake of `mirror=` and `counterpart=`."""
    for record in model.types.values():
        if record.kind != "edge":
            if record.is_mirrored or record.counterpart:
                what = "mirror" if record.is_mirrored else "counterpart"
                yield Mistake(
                    what,
                    record.name,
                    f"a {record.kind} has no {what}.",
                    "Only edges can have one: remove it, or declare an edge.",
                )
        elif record.is_mirrored:
            yield from _of_mirror(model, record)
        elif record.counterpart:
            yield from _of_counterpart(model, record, record.counterpart)


def _of_mirror(model: RecordTypes, record: RecordType) -> Iterator[Mistake]:
    if record.counterpart:
        yield Mistake(
            "mirror",
            record.name,
            f"it is mirrored, and {record.counterpart} is its counterpart.",
            "An edge can have only one of the two: remove one.",
        )
        return
    first, second = (record.ends[name] for name in record.key_ends)
    found = model.correspondences.get(record.name)
    if found is None:
        yield Mistake(
            "mirror",
            record.name,
            f"its ends are a {first.type_name} and a {second.type_name}, which cannot be swapped.",
            'A mirror joins two nodes of one type; name another edge type: counterpart="…".',
        )
    elif is_one_attribute(record):
        yield Mistake(
            "mirror",
            record.name,
            f"{first.name} and {second.name} are stored in the same attributes, so its key is the same in "
            "both orders.",
            "Give each end its own attributes with stored().",
        )
    elif untold := found.untold:
        yield Mistake(
            "mirror",
            record.name,
            f"with its ends exchanged its key cannot be rendered: of {', '.join(untold)} it tells less than the key "
            "holds.",
            "Use the same lossless format for both ends.",
        )


def _of_counterpart(model: RecordTypes, record: RecordType, name: str) -> Iterator[Mistake]:
    def mistake(problem: str, mend: str) -> Mistake:
        return Mistake("counterpart", record.name, problem, mend)

    other = model.types.get(name)
    if other is None:
        if name not in model.resolution.types:
            yield mistake(
                f"its counterpart {name} is not listed in the graph.", "List it, or name another one."
            )
        return
    if other is record:
        yield mistake(
            "it is named as its own counterpart.",
            "Use mirror=True if the ends are swapped, or name the other edge type.",
        )
        return
    if other.kind != "edge":
        yield mistake(f"its counterpart {name} is a {other.kind}.", "Name an edge type.")
        return
    if other.is_mirrored:
        yield mistake(
            f"its counterpart {name} is mirrored.", "An edge can have only one of the two: remove one."
        )
        return
    if other.counterpart not in (None, record.name):
        yield mistake(
            f"its counterpart {name} has another one, {other.counterpart}.",
            "Counterparts come in pairs: let both name each other.",
        )
        return
    rivals = [each.name for each in model.types.values() if each.counterpart == name and each is not record]
    if rivals:
        yield mistake(
            f"{name} is the counterpart of {', '.join(rivals)} too.",
            "Counterparts come in pairs: leave one out.",
        )
        return
    if matched_ends(record, other) is None:
        yield mistake(
            f"its ends are {_shown_ends(record)}, those of {name} are {_shown_ends(other)}.",
            "Counterparts join the same two nodes. If both are of one type, give the ends the same names.",
        )
        return
    found = model.correspondences[record.name]
    yield from _of_untold(found)
    if other.counterpart is None:
        yield from _of_untold(model.correspondences[name])
    if other.counterpart is None or record.name < name:
        yield from _of_types(found)


def _of_untold(found: Correspondence) -> Iterator[Mistake]:
    if untold := found.untold:
        yield Mistake(
            "counterpart",
            found.one.name,
            f"an item of its counterpart {found.other.name} cannot be rendered from one of it, which does not tell "
            f"{', '.join(untold)}.",
            "Declare that here too, or make it optional there.",
        )


def _of_types(found: Correspondence) -> Iterator[Mistake]:
    for field in found.differing_types:
        mine, theirs = (record.fields[field].type.name for record in (found.one, found.other))
        yield Mistake(
            "counterpart",
            f"{found.one.name}.{field}",
            f"it is of type {mine} here and of type {theirs} in its counterpart {found.other.name}.",
            "Declare the same type in both, or rename one of them.",
        )


def _shown_ends(record: RecordType) -> str:
    return " and ".join(f"{name}: {record.ends[name].type_name}" for name in record.key_ends)
