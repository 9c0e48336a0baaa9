"""Ambiguity: whether one key can belong to two types, shown by an example that both accept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain, islice, product
from typing import TypeAlias

from keygraph.keys import shapes
from keygraph.keys.template import Template
from keygraph.keys.text import KeyText
from keygraph.keys.types import Kind
from keygraph.keys.union import written_out

_Templates: TypeAlias = "tuple[Template, ...]"
"""The template of a partition key, or those of a partition key and a sort key."""

_MOST_TRIED = 256
"""The most keys of a template to try."""
_TIME = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
_SAMPLES: dict[Kind, Sequence[object]] = {
    "id": ("a", "1", "2024-01-02"),
    "string": ("a", "1", "2024-01-02"),
    "int": (1, 20240102),
    "long": (1, 20240102),
    "float": (1.0, 1.5),
    "decimal": (Decimal(1), Decimal("1.5")),
    "datetime": (_TIME, datetime(1970, 1, 1, tzinfo=UTC), _TIME.replace(tzinfo=None)),
    "date": (_TIME.date(), date(1970, 1, 1)),
    "bytes": (b"a", b"1"),
}
"""Sample values for texts, by kind."""


def are_distinguishable(one: _Templates, other: _Templates) -> bool:
    """Returns whether keys alone decide which of the two an item is: no key is of both, or one goes first."""
    mine, theirs = shapes.shape(*one), shapes.shape(*other)
    return shapes.goes_before(mine, theirs) or shapes.goes_before(theirs, mine) or never_meet(one, other)


def never_meet(one: _Templates, other: _Templates) -> bool:
    """Returns whether no key is of both: their forms have no text in common, or a few, and not both accept one of these.

    Too many texts to try count as a key of both: whether repeated placeholders can be alike is not worked out. What a
    format's `parse` takes is known of single texts only, so with one, no key is of both if none is found.
    """
    mine, theirs = shapes.shape(*one), shapes.shape(*other)
    if shapes.are_disjoint(mine, theirs):
        return True
    if shapes.is_exact(mine) and shapes.is_exact(theirs):
        return False
    if shapes.is_parsed(mine) or shapes.is_parsed(theirs):
        return common_key(one, other) is None
    every = shapes.every_common_text(mine, theirs, _MOST_TRIED)
    return every is not None and not any(_accepts(one, key) and _accepts(other, key) for key in every)


def common_key(one: _Templates, other: _Templates) -> tuple[str, ...] | None:
    """Returns a key that is of both; None if none is found."""
    written = {
        char
        for units in (*shapes.shape(*one), *shapes.shape(*other))
        for unit in units
        if isinstance(unit, str)
        for char in unit
    }
    candidates = chain(
        _filled(one),
        _filled(other),
        _written_alike(one, other),
        *(_tried(each, sorted(written)) for each in (one, other)),
    )
    return next((key for key in candidates if _accepts(one, key) and _accepts(other, key)), None)


def _written_alike(one: _Templates, other: _Templates) -> Iterator[tuple[str, ...]]:
    """Yields keys that have the form of both; then those in which a placeholder, or all of one of the two keys, has the
    same text in all places as in one of these."""
    alike = [*shapes.common_texts(shapes.shape(*one), shapes.shape(*other))]
    yield from alike
    for own, others in ((one, other), (other, one)):
        for template, text in ((template, key[place]) for key in alike for place, template in enumerate(own)):
            parsed = template.parse(text) or {}
            for texts in (*({name: part} for name, part in parsed.items()), parsed):
                fixed = (each.with_texts(texts) for each in own)
                yield from shapes.common_texts(shapes.shape_of_one(*fixed), shapes.shape(*others))


def _filled(templates: _Templates) -> Iterator[tuple[str, ...]]:
    """Yields keys with samples in place of the placeholders."""
    for written in written_out(templates):
        samples = {slot.name: _samples(slot.text) for template in written for slot in template.slots}
        for number in range(max(map(len, samples.values()), default=1)):
            texts = {name: each[number % len(each)] for name, each in samples.items() if each}
            keys = [template.render(texts) for template in written]
            if None not in keys:
                yield tuple(key or "" for key in keys)


def _tried(templates: _Templates, chars: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yields keys with some samples, and with these characters, as placeholders' texts: only they may match repeats."""
    for written in written_out(templates):
        slots = {slot.name: slot.text for template in written for slot in template.slots}
        tried = [[*dict.fromkeys([*filter(text.accepts, chars), *_samples(text)])] for text in slots.values()]
        for values in islice(product(*tried), _MOST_TRIED):
            keys = [template.render(dict(zip(slots, values, strict=True))) for template in written]
            if None not in keys:
                yield tuple(key or "" for key in keys)


def _samples(text: KeyText) -> Sequence[str]:
    found = list(text.choices[:3])
    for value in _SAMPLES.get(text.type.kind, ()):
        with suppress(ValueError, TypeError, AttributeError, OverflowError):
            found.append(text.render(value))
    return [each for each in found if text.accepts(each)] or text.shortest


def _accepts(templates: _Templates, key: tuple[str, ...]) -> bool:
    for written in written_out(templates):
        found = [template.parse(text) for template, text in zip(written, key, strict=True)]
        texts: dict[str, str] = {}
        if all(
            each is not None and all(texts.setdefault(name, text) == text for name, text in each.items())
            for each in found
        ):
            return True
    return False
