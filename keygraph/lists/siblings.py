"""How siblings are left out of the range that a list reads: by a bound, or by splitting it around their heads.

Both cost no filter, so that only wanted items are read. The rules:

- Ranges that hold only keys of other types are not read. The rest is one piece of the range (then a bound is enough),
  or several, each with a Query.
- A page is not split around a sibling at one known key, such as the node's own item: reading one more item costs less
  than a request.
- It is not split into more than `MOST_PIECES`. A piece costs a request, but only if the page reaches it; items that a
  filter leaves out are read and paid for, and there may be any number of them.
- Siblings that can be among the list's own keys are left in, for a filter, or to be recognized after they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeAlias

from keygraph.dynamo.order import EXTENSIBLE_BYTES
from keygraph.dynamo.table import KeyValue
from keygraph.kept import kept
from keygraph.keys.shapes import KeyInterval, Shape, is_special_case, key_intervals, shape, shape_of_one
from keygraph.keys.template import Slot, Template
from keygraph.keys.text import key_text
from keygraph.keys.types import FieldType
from keygraph.lists.ranges import Span
from keygraph.model.paths import AccessPath
from keygraph.model.record_keys import Keys
from keygraph.model.records import RecordType
from keygraph.resolve.record_types import RecordTypes

MOST_PIECES = 4


@dataclass(frozen=True, slots=True)
class ReadRange:
    """The parts of a range that are read for a list, and the siblings that are read with it."""

    span: Span
    pieces: tuple[Span, ...]
    """The parts of the range that are read, in order. None is empty."""
    singles: tuple[RecordType, ...] = ()
    """Siblings of which one item may be in the pieces, at a known key where the list has none."""
    others: tuple[RecordType, ...] = ()
    """Siblings of which any number may be in the pieces."""
    split: tuple[Span, ...] | None = None
    """The parts of the range if it is split around singles too; None if others are left in it."""


def reading_alone(span: Span) -> ReadRange:
    """Returns what is read if no siblings can be in the range."""
    pieces = () if span.is_empty else (span,)
    return ReadRange(span, pieces, split=pieces)


_Cut: TypeAlias = "tuple[KeyInterval, RecordType]"
"""A part that is left out of a range, and the sibling that has keys there."""
_Gap: TypeAlias = "tuple[Span, list[_Cut]]"
"""A part of the range without siblings' heads, and what is between it and the previous one."""


def without_siblings(
    model: RecordTypes,
    siblings: tuple[RecordType, ...],
    listed: Iterable[tuple[AccessPath, Mapping[str, str | None]]],
    partition: KeyValue,
    span: Span,
    *,
    is_described: bool = False,
) -> ReadRange:
    """Returns what is read of a partition's range for a list of these types, which fixes those texts of each, by slot.

    `is_described`: the partition is not a real one, but contains placeholders.
    """
    own = tuple((path, _texts_in(path.keys.sort, texts)) for path, texts in listed)
    if not siblings or not own or span.is_empty:
        return reading_alone(span)
    keys = own[0][0].keys
    if any(path.keys.sort is None for path, _ in own) or keys.attributes[1].type != "S":
        return ReadRange(span, (span,), others=siblings)
    beside = tuple(_standing(siblings, keys.index_name, partition, is_described=is_described))
    is_short = all(_is_short(span, each) for _, each in (*own, *beside))
    return (_kept_reading if is_short else _reading)(model, own, span, beside)


def _is_short(span: Span, texts: _Texts) -> bool:
    """Returns whether results about a range may be cached: clients decide how long texts are, and which they are."""
    length = len(str(span.low or "")) + len(str(span.high or ""))
    return length + sum(len(text) for _, text in texts if text is not None) <= _LONGEST_KEPT


_RANGES_KEPT, _RANGE_BYTES = 512, 8_000
_LONGEST_KEPT = 128
"""The longest texts of a range that are cached."""
_Texts: TypeAlias = "tuple[tuple[str, str | None], ...]"


def _texts_in(template: Template | None, texts: Mapping[str, str | None]) -> _Texts:
    """Returns the texts that the template takes: those of lists in other partitions are mostly the same, or none."""
    names = template.slot_names if template else ()
    return tuple((name, texts[name]) for name in sorted(names) if name in texts)


def _standing(
    records: Iterable[RecordType], index: str | None, partition: KeyValue, *, is_described: bool
) -> Iterator[tuple[RecordType, _Texts]]:
    """Yields the types that may be in a partition, each with the texts that it gives their sort keys.

    `is_described`: the partition is not a real one, but contains placeholders; then types are included if their partitions
    begin alike.
    """
    for record in records:
        keys = record.keys[index]
        text = keys.attributes[0].text(partition)
        parsed = None if text is None else keys.partition.parse(text)
        if parsed is not None or (is_described and _begin_alike(keys, partition)):
            yield record, _texts_in(keys.sort, parsed or {})


def _reading(
    model: RecordTypes,
    listed: tuple[tuple[AccessPath, _Texts], ...],
    span: Span,
    beside: tuple[tuple[RecordType, _Texts], ...],
) -> ReadRange:
    """Returns what is read of the range beside these siblings."""
    begin = _common_beginning(span)
    own = [(path, _sort_shape(path.keys, texts)) for path, texts in listed]
    index = listed[0][0].keys.index_name
    cuts: list[_Cut] = []
    others: dict[RecordType, None] = {}
    for sibling, texts in beside:
        for theirs in key_intervals(_sort_shape(sibling.keys[index], texts), begin):
            if span.within(_span_of(theirs)).is_empty:
                continue
            cut = _cut(model, own, sibling, theirs)
            if cut is None:
                others[sibling] = None
            else:
                cuts.append((cut, sibling))
    if not cuts:
        return ReadRange(span, (span,), others=tuple(others), split=None if others else (span,))
    mine = [each for _, shape_ in own for each in key_intervals(shape_, begin)]
    gaps = _gaps(span, mine, sorted(cuts, key=lambda cut: cut[0].low))
    pieces, singles = _joined(gaps)
    if len(pieces) > MOST_PIECES:
        others |= dict.fromkeys(record for _, record in cuts)
        return ReadRange(span, (pieces[0].hull(pieces[-1]),), others=tuple(others))
    split = None if others or len(gaps) > MOST_PIECES else tuple(part for part, _ in gaps)
    return ReadRange(span, pieces, singles, tuple(others), split)


_kept_reading = kept("ranges", _RANGES_KEPT, _RANGE_BYTES)(_reading)


def _sort_shape(keys: Keys, texts: _Texts) -> Shape:
    """Returns the shape of a sort key that contains these texts; any text if no template is declared."""
    sort = keys.sort or Template((Slot(("",), key_text(FieldType("string"))),))
    return shape_of_one(sort.with_texts(dict(texts)))


def is_between(model: RecordTypes, partition: KeyValue, gap: Span, *, is_described: bool = False) -> bool:
    """Returns whether items of a declared type may be in a part of a partition of the table.

    `is_described`: the partition is not a real one, but contains placeholders.
    """
    records = [record for record in model.types.values() if not record.is_virtual]
    standing = _standing(records, None, partition, is_described=is_described)
    return any(
        (_kept_meets if _is_short(gap, texts) else _meets)(gap, record.table_keys, texts)
        for record, texts in standing
    )


def _meets(gap: Span, keys: Keys, texts: _Texts) -> bool:
    """Returns whether a sort key that contains these texts can be in a part of the range."""
    own = key_intervals(_sort_shape(keys, texts), _common_beginning(gap))
    return any(not gap.within(_span_of(each)).is_empty for each in own)


_kept_meets = kept("ranges", _RANGES_KEPT, _RANGE_BYTES)(_meets)


def _begin_alike(keys: Keys, described: KeyValue) -> bool:
    """Returns whether the keys' partition and one with placeholders have the same text before the first placeholder."""
    begin, text = (keys.partition.tokens or ("",))[0], str(described).partition("{")[0]
    own = begin if isinstance(begin, str) else ""
    return own.startswith(text) and text.startswith(own)


def filled(
    path: AccessPath, spans: Iterable[Span], texts: Mapping[str, str | None]
) -> tuple[Span, ...] | None:
    """Returns the parts of the spans in which every key fits the list's sort template; None if that is not known.

    It is known if only one placeholder, for which any text is valid, follows what the list fixes.
    """
    sort = path.keys.sort
    if sort is None or path.keys.attributes[1].type != "S":
        return None
    parts: list[Span] = []
    for span in spans:
        for mine in key_intervals(shape_of_one(sort.with_texts(texts)), _common_beginning(span)):
            if not mine.is_filled:
                return None
            parts.append(span.within(_span_of(mine)))
    return tuple(part for part in parts if not part.is_empty)


def _common_beginning(span: Span) -> str:
    """Returns the common beginning of every text of the range."""
    pairs = zip(span.low or "", span.high or "", strict=False)
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _cut(
    model: RecordTypes, own: Iterable[tuple[AccessPath, Shape]], sibling: RecordType, theirs: KeyInterval
) -> KeyInterval | None:
    """Returns what is left out of the range for a sibling there; None if the list itself has keys in it."""
    if len(theirs.text.encode()) > EXTENSIBLE_BYTES:
        return None
    mine = [(path, each) for path, own_shape in own for each in key_intervals(own_shape, theirs.text)]
    meeting = {path for path, each in mine if each.meets(theirs)}
    if not meeting:
        return theirs if mine or theirs.is_single else theirs.widened()
    return theirs if all(_is_more_special(model, sibling, path, theirs) for path in meeting) else None


def _is_more_special(model: RecordTypes, sibling: RecordType, path: AccessPath, theirs: KeyInterval) -> bool:
    """Returns whether all items there are the sibling's, though the list has keys there: the special key wins among
    types of one value, whose items are distinguished by the table's key."""
    if not path.reads_table_keys or not theirs.is_filled:
        return False
    if model.type_values.of(sibling) != model.type_values.of(path.record):
        return False
    shapes = [shape(*record.table_keys.templates) for record in (sibling, path.record)]
    return is_special_case(*shapes) and not is_special_case(*shapes[::-1])


def _gaps(span: Span, own: list[KeyInterval], cuts: list[_Cut]) -> list[_Gap]:
    """Returns the parts of the range between the siblings' heads in which the list can have keys."""
    gaps: list[_Gap] = []
    between: list[_Cut] = []
    low: str | None = ""
    for cut in [*cuts, None]:
        end = None if cut is None else cut[0].low
        if low is not None and (end is None or low < end):
            gap = KeyInterval("", low, end, is_filled=False)
            part = span.within(_span_of(gap))
            if not part.is_empty and any(mine.meets(gap) for mine in own):
                gaps.append((part, between))
                between = []
        if cut is not None:
            between.append(cut)
            reach = cut[0].end
            low = None if low is None or reach is None else max(low, reach)
    return gaps


def _joined(gaps: list[_Gap]) -> tuple[tuple[Span, ...], tuple[RecordType, ...]]:
    """Returns the gaps, joined where only single keys are between them, and the types of those keys."""
    pieces: list[Span] = []
    singles: list[RecordType] = []
    for part, between in gaps:
        if pieces and all(interval.is_single for interval, _ in between):
            pieces[-1] = pieces[-1].hull(part)
            singles.extend(record for _, record in between)
        else:
            pieces.append(part)
    return tuple(pieces), tuple(singles)


def _span_of(interval: KeyInterval) -> Span:
    # No key is empty, so NUL is the smallest.
    low = None if interval.low in ("", "\0") else interval.low
    if interval.is_single:
        return Span(interval.low, interval.low)
    return Span(low, interval.end, below=interval.end is not None)
