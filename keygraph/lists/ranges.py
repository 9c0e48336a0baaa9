"""The range of a sort key: its bounds, from a list's prefix and a client's arguments.

Each argument on the sort template's placeholders is a `Narrowing`; together they are one `Span`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from keygraph.dynamo.limits import SORT_KEY_BYTES
from keygraph.dynamo.order import EXTENSIBLE_BYTES, LAST, LAST_BYTE, last_below
from keygraph.dynamo.store import Above, AtLeast, AtMost, Below, Equals, Prefix, Range, Within
from keygraph.dynamo.table import KeyAttribute, KeyValue
from keygraph.errors import BadUserInput, FieldName
from keygraph.keys.template import Maybe, Slot, Template, Token
from keygraph.keys.text import IsoDatetime
from keygraph.keys.types import in_utc
from keygraph.model.paths import AccessPath, Argument


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values from `low` to `high`, both included; None is no bound. A time without a zone is one in UTC."""

    low: Any = None
    high: Any = None

    def contains(self, value: Any) -> bool:
        value = _in_order(value)
        if self.low is not None and value < _in_order(self.low):
            return False
        return self.high is None or bool(value <= _in_order(self.high))


def _in_order(value: Any) -> Any:
    return in_utc(value) if isinstance(value, datetime) else value


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A client's condition on one argument of the sort key, in texts."""

    eq: str | None = None
    low: str | None = None
    high: str | None = None
    prefix: str | None = None
    or_eq: str | None = None
    """Another text that the value of `eq` may have: a time with its offset."""
    values: ValueRange | None = None
    """The values from `low` to `high`, if texts between two others may belong to values outside theirs."""
    is_absent: bool = False
    """Whether an optional part of the key is absent."""

    def contains(self, text: str) -> bool:
        """Returns whether a text is wanted, as far as texts show it."""
        if not text.startswith(self.prefix or ""):
            return False
        if self.eq is not None:
            return text in (self.eq, self.or_eq)
        if self.values is not None:
            return True
        return (self.low is None or self.low <= text) and (self.high is None or text <= self.high)

    def fitted(self, slot: Slot) -> Narrowing:
        """Returns it as a range of the key, expressed by bounds.

        A number with more digits than the key's format has is out of order: it begins with another digit than 0.
        """
        if self.eq is not None:
            texts = (self.eq, self.or_eq or self.eq)
            return Narrowing(low=min(texts), high=max(texts))
        low, high = self.low, self.high
        if high is not None and slot.text.is_wider(high):
            high = None
        if low is not None and (slot.text.is_wider(low) or (high is None and self._hides_wider(low, slot))):
            low = "1"
        return Narrowing(None, low, high, self.prefix)

    def is_decided_by(self, slot: Slot) -> bool:
        """Returns whether every text of the slot in the range belongs to a wanted value."""
        if self.or_eq is not None:
            return False
        if self.values is None or slot.text.width is None:
            return self.values is None
        if self.high is None:
            return self.low is None or not (slot.text.is_wider(self.low) or self._hides_wider(self.low, slot))
        return self.high.startswith("0") and not (self.low is not None and slot.text.is_wider(self.low))

    @staticmethod
    def _hides_wider(low: str, slot: Slot) -> bool:
        """Returns whether numbers with more digits than the padding may come before a number in the key: 1000 before
        999."""
        return slot.text.may_be_wider and not low.startswith("0")

    def fills(self, slot: Slot) -> bool:
        """Returns whether what is in the key's range is expected to be in the range of values.

        Both bounds are as wide as the padding of their numbers: a wider number in between is left out, but nobody
        expects one, as 14 digits where times have 13 are the year 2286. Or of the times in the key's range only some of
        the first and the last second are left out.
        """
        if isinstance(slot.text, IsoDatetime) and self.values is not None:
            return True
        bounds = (self.low or "0", self.high or "0")
        return slot.text.width is not None and all(
            len(each) == slot.text.width and not each.startswith(("0", "-")) for each in bounds
        )


class KeyArguments(NamedTuple):
    """A client's arguments for the key of a list."""

    required: Mapping[str, str | None] | None = None
    """The texts of the required arguments, by name; None if they are not known."""
    ranged: Mapping[str, Narrowing] = MappingProxyType({})
    """The conditions on the sort key, by the names of its arguments."""


NO_ARGUMENTS = KeyArguments()


@dataclass(frozen=True)
class Span:
    """A part of a sort key: every value from `low` to `high`; None is no bound.

    Both are included, unless `below` leaves `high` out, which is only for texts. The values of one key are all texts,
    all numbers or all bytes.
    """

    low: Any = None
    high: Any = None
    below: bool = False

    def contains(self, value: KeyValue) -> bool:
        if self.low is not None and value < self.low:
            return False
        return bool(self.high is None or (value < self.high if self.below else value <= self.high))

    def within(self, other: Span) -> Span:
        """Returns the part that both contain."""
        lows = [span.low for span in (self, other) if span.low is not None]
        highs = [(span.high, not span.below) for span in (self, other) if span.high is not None]
        high, is_included = min(highs, default=(None, True))
        return Span(max(lows, default=None), high, not is_included)

    def hull(self, later: Span) -> Span:
        """Returns both with what is between them."""
        return Span(self.low, later.high, later.below)

    @property
    def is_empty(self) -> bool:
        return self.low is not None and self.high is not None and bool(self.low > self._last)

    @property
    def only(self) -> Any:
        """The only value that it contains; None if there may be several, or none."""
        return self.low if self.low is not None and self.high is not None and self.low == self._last else None

    @property
    def _last(self) -> Any:
        return last_below(self.high) if self.below else self.high

    @cached_property
    def range(self) -> Range | None:
        """The condition on the sort key that DynamoDB takes. Lists of many owners have the same."""
        if self.low is None:
            if self.high is None:
                return None
            return Below(self.high) if self.below else AtMost(self.high)
        if self.high is None:
            # The smallest text above another one is that text followed by NUL.
            is_next = isinstance(self.low, str) and len(self.low) > 1 and self.low.endswith("\0")
            return Above(self.low[:-1]) if is_next else AtLeast(self.low)
        if self.only is not None:
            return Equals(self.low)
        if isinstance(self.low, str | bytes) and self._last == _end_of_prefix(self.low):
            return Prefix(self.low)
        return Within(self.low, self._last)


def _end_of_prefix(prefix: str | bytes) -> str | bytes:
    """Returns a bound that no key with a prefix is above."""
    return prefix + LAST if isinstance(prefix, str) else prefix.ljust(SORT_KEY_BYTES, LAST_BYTE)


def beginning_with(text: str) -> Span:
    """Returns every text that begins with this one."""
    return Span(text, text + LAST) if text else Span()


def hull_of(spans: Iterable[Span]) -> Span:
    """Returns all of the spans, in any order, with what is between them."""
    each = list(spans)
    lows = [span.low for span in each]
    last = max(each, key=lambda span: (span.high is None, span.high or "", not span.below))
    return Span(None if None in lows else min(lows), last.high, last.below)


# --- The sort key's range -----------------------------------------------------------------------------


def sort_span(
    path: AccessPath, prefix: str, texts: Mapping[str, str | None], ranged: Mapping[str, Narrowing]
) -> Span:
    """Returns the range that the arguments leave of the sort key: all but the last one given must be `eq`."""
    arguments = {argument.slot.name: argument for argument in path.ranged}
    given = {argument.slot.name: ranged[argument.name] for argument in path.ranged if argument.name in ranged}
    key = path.keys.attributes[-1]
    if len(path.keys.attributes) == 2 and key.type == "N":
        return _number_span(path, texts, arguments, given)
    tokens = _flat(path.rest.tokens, given)
    exact = prefix
    for number, token in enumerate(tokens):
        if isinstance(token, str):
            exact += token
            continue
        if isinstance(token, Maybe):
            absent = [slot.name for slot in Template(token.tokens).slots if slot.name in given]
            if not absent:
                break
            for name in absent:
                given.pop(name)
            continue
        text = texts.get(token.name)
        narrowing = Narrowing(eq=text) if text is not None else given.pop(token.name, None)
        if narrowing is None:
            break
        _refuse_unusable(arguments.get(token.name), narrowing)
        if narrowing.eq is None:
            _refuse_later(given, arguments, token.name)
        else:
            _refuse_cut(path, token, narrowing.eq)
        if narrowing.eq is None or narrowing.or_eq is not None:
            return span_of_key(key, _ranged_span(exact, narrowing.fitted(token), tokens[number + 1 :]))
        exact += narrowing.eq
    else:
        if path.keys.sort is not None:
            # A key that is absent as a whole is no key: no item has it.
            return span_of_key(key, Span(exact or "\0", exact))
    _refuse_later(given, arguments)
    return span_of_key(key, beginning_with(exact))


def span_of_whole(path: AccessPath, narrowing: Narrowing) -> Span:
    """Returns the range for arguments on a sort key as one value."""
    [argument] = path.ranged
    _refuse_unusable(argument, narrowing)
    exact = None if narrowing.eq is None else Span(narrowing.eq, narrowing.eq)
    return span_of_key(path.keys.attributes[1], exact or _ranged_span("", narrowing, ()))


def fixed_texts(path: AccessPath, ranged: Mapping[str, Narrowing]) -> tuple[tuple[str, str | None], ...]:
    """Returns the texts that a client has given for the sort key's slots, by slot; None for an absent optional one."""
    return tuple(
        (argument.slot.name, narrowing.eq)
        for argument in path.ranged
        if (narrowing := ranged.get(argument.name)) is not None
        and (narrowing.eq is not None or narrowing.is_absent)
        and narrowing.or_eq is None
    )


def undecided(path: AccessPath, ranged: Mapping[str, Narrowing]) -> tuple[tuple[str, Narrowing], ...]:
    """Returns the conditions on values, by slot, that the order of the keys does not decide.

    1.5 sorts before 1 if `_` follows; a key of `a_b` begins as those of `a`; what follows shows an absent part; of
    padded numbers 10000 is between 0999 and 1001; and a text that loses a part of the value may belong to several.
    """
    found = []
    tokens, is_exact = path.rest.tokens, True
    for argument in path.ranged:
        narrowing = ranged.get(argument.name)
        if narrowing is None:
            continue
        if not is_exact or not narrowing.is_decided_by(argument.slot):
            # After a time with two texts, the key says no more.
            is_exact = is_exact and narrowing.or_eq is None
            found.append((argument.slot.name, narrowing))
            continue
        following = next((after for token, after in pairwise(tokens) if token == argument.slot), None)
        is_ambiguous = narrowing.is_absent
        if not argument.slot.lossy:
            is_ambiguous |= argument.slot.name in path.uncertain
        if isinstance(following, str):
            is_open = (
                argument.slot.lossy and argument.is_projected and argument.slot.text.can_hold(following[0])
            )
            is_ambiguous |= is_open or argument.slot.text.is_continued_by(following)
        has_bound = narrowing.low is not None or narrowing.high is not None
        if is_ambiguous or (has_bound and (argument.slot,) != tokens[-1:]):
            found.append((argument.slot.name, narrowing))
    return tuple(found)


def _refuse_cut(path: AccessPath, slot: Slot, text: str) -> None:
    """Raises BadUserInput if keys would be read back with another text there."""
    template = path.keys.sort
    may_be_cut = slot.name in path.uncertain and not slot.lossy
    if may_be_cut and template is not None and template.is_cut(slot, text):
        raise BadUserInput(
            FieldName(path.record.leaf_name(slot.path)),
            ": no key can hold this value, because it contains the text that separates it from the next part of the key",
        )


def _number_span(
    path: AccessPath,
    texts: Mapping[str, str | None],
    arguments: Mapping[str, Argument],
    given: Mapping[str, Narrowing],
) -> Span:
    """Returns the range of a sort key that is a number, and so a single slot."""
    slots = path.keys.sort.slots if path.keys.sort else ()
    for slot in slots:
        text = texts.get(slot.name)
        narrowing = Narrowing(eq=text) if text is not None else given.get(slot.name)
        if narrowing is None:
            continue
        _refuse_unusable(arguments.get(slot.name), narrowing)
        low, high = narrowing.eq or narrowing.low, narrowing.eq or narrowing.high
        return span_of_key(path.keys.attributes[1], Span(low, high))
    return Span()


def _flat(tokens: tuple[Token, ...], given: Mapping[str, Narrowing]) -> tuple[Token, ...]:
    """Returns the tokens with an optional part written out if an argument says that it is present."""
    flat: list[Token] = []
    for token in tokens:
        names = [slot.name for slot in Template(token.tokens).slots] if isinstance(token, Maybe) else ()
        conditions = [given[name] for name in names if name in given]
        if (
            isinstance(token, Maybe)
            and conditions
            and not any(narrowing.is_absent for narrowing in conditions)
        ):
            flat.extend(token.tokens)
        else:
            flat.append(token)
    return tuple(flat)


def _ranged_span(exact: str, narrowing: Narrowing, following: tuple[Token, ...]) -> Span:
    if narrowing.prefix is not None:
        return beginning_with(exact + narrowing.prefix)
    whole = beginning_with(exact)
    low = whole.low if narrowing.low is None else exact + narrowing.low
    if narrowing.high is None:
        return Span(low, whole.high)
    if not following:
        return Span(low, exact + narrowing.high)
    # Covers what follows the value in the key. A shorter value may come later there, because its separator is compared
    # with a character of the longer one.
    literal = following[0] if isinstance(following[0], str) else ""
    ends = (narrowing.high[:length] for length in range(1, len(narrowing.high) + 1))
    return Span(low, exact + max(end + literal + LAST for end in ends))


def _refuse_unusable(argument: Argument | None, narrowing: Narrowing) -> None:
    if argument is None:
        return
    name = FieldName(argument.name)
    is_range = narrowing.low is not None or narrowing.high is not None
    if (narrowing.eq is not None) + is_range + (narrowing.prefix is not None) != 1:
        raise BadUserInput(name, ": use eq, or from and to, or beginsWith")
    if "" in (narrowing.eq, narrowing.low, narrowing.high, narrowing.prefix):
        raise BadUserInput(name, " is empty")


def _refuse_later(
    given: Mapping[str, Narrowing], arguments: Mapping[str, Argument], ranged: str | None = None
) -> None:
    """Refuses an argument that is given after one which is not `eq`: after a range, or after one that is not given."""
    if not given:
        return
    slot, names = next(iter(given)), list(arguments)
    before = FieldName(arguments[ranged or names[names.index(slot) - 1]].name)
    how = " and must use eq" if ranged else ": give it with eq"
    raise BadUserInput(FieldName(arguments[slot].name), ": ", before, " comes before it in the key", how)


def span_of_key(key: KeyAttribute, span: Span) -> Span:
    """Returns a range of texts as one of a sort key's values. Raises BadUserInput for texts that no key has."""
    if key.type == "N":
        low, high = (None if text is None else key.value(text) for text in (span.low, span.high))
        return Span(low, high)
    most = EXTENSIBLE_BYTES if key.type == "S" else SORT_KEY_BYTES
    bounds: list[Any] = []
    for text in (span.low, span.high):
        if text is None:
            bounds.append(None)
            continue
        # Only the last character of all is above what an encoding has.
        beginning = text.removesuffix(LAST)
        try:
            stored = beginning.encode(key.encoding)
        except UnicodeEncodeError:
            raise BadUserInput(f"an argument of the list cannot be written as {key.encoding}") from None
        if len(stored) > most:
            raise BadUserInput(
                f"an argument of the list would make a key of more than {SORT_KEY_BYTES:,} bytes"
            )
        if key.type == "S":
            bounds.append(text)
        else:
            bounds.append(stored if beginning == text else _end_of_prefix(stored))
    return Span(*bounds)
