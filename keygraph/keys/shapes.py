"""Shapes: the form of a template's keys, regardless of the names of its placeholders.

`is_special_case`: by their form, is every key of one shape also a key of the other? `are_disjoint`: can no key have
both shapes? These two determine the type of items and refuse wrong ids. `key_intervals`: which ranges of the key order hold
the keys of a shape? This keeps siblings out of reads.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, count, product
from typing import TypeAlias, cast

from keygraph.dynamo.order import text_after_all
from keygraph.keys.pattern import AllBut, Chars, CharStep, common_char
from keygraph.keys.template import Slot, Template, Token, is_certain
from keygraph.keys.text import ANY_TEXT, KeyText
from keygraph.keys.union import written_out


@dataclass(frozen=True)
class Wildcard:
    """A placeholder in a shape; equal labels stand for equal text."""

    label: str
    text: KeyText


class _Border:
    """The border between a partition key and a sort key; no placeholder crosses it."""


_BORDER = _Border()
_Unit: TypeAlias = "str | Wildcard | _Border"
_Units: TypeAlias = tuple[_Unit, ...]
_LeftOut: TypeAlias = tuple[frozenset[str], ...]
"""The placeholders of each optional part that an alternative leaves out."""
Shape: TypeAlias = tuple[_Units, ...]
"""The alternatives of a shape (an optional part makes two, a union one for each member's key), each a sequence of
characters and wildcards."""


@cache
def shape(*templates: Template | None) -> Shape:
    """Returns the shape of a key: of one template, or of a partition template and a sort template together.

    A placeholder of a union makes one alternative for each key of its members.
    """
    return shape_of_one(*templates)


def shape_of_one(*templates: Template | None) -> Shape:
    """Returns the same for a template that contains the texts of one list, and so is not cached."""
    alternatives: list[_Units] = []
    for first, *others in written_out(tuple(each or Template(()) for each in templates)):
        parts = [_units(first.tokens)]
        parts += [[(_BORDER, *units) for units in _units(template.tokens)] for template in others]
        alternatives += [tuple(chain(*units)) for units in product(*parts)]
    return tuple(alternatives)


def _units(tokens: tuple[Token, ...]) -> list[_Units]:
    """Returns the alternatives, except those that leave out a part whose placeholders all occur elsewhere."""
    return [
        units
        for units, left_out in _alternatives(tokens)
        if not any(
            names <= {each.label for each in units if isinstance(each, Wildcard)} for names in left_out
        )
    ]


def _alternatives(tokens: tuple[Token, ...]) -> list[tuple[_Units, _LeftOut]]:
    alternatives: list[tuple[_Units, _LeftOut]] = [((), ())]
    for token in tokens:
        added: list[tuple[_Units, _LeftOut]]
        if isinstance(token, str):
            added = [(tuple(token), ())]
        elif isinstance(token, Slot):
            added = [((Wildcard(token.name, token.text),), ())]
        else:
            added = _alternatives(token.tokens)
            if not is_certain(token, tokens):
                names = frozenset(slot.name for slot in Template(token.tokens).slots)
                added = [((), (names,)), *added]
        alternatives = [
            ((*units, *more), (*left_out, *others))
            for units, left_out in alternatives
            for more, others in added
        ]
    return alternatives


# --- Special cases ------------------------------------------------------------------------------------


def is_special_case(special: Shape, general: Shape) -> bool:
    """Returns whether each alternative of the first has the form of one of the second.

    That is so if literal text, a narrower type, several parts or a repeated placeholder replace a placeholder.
    """
    return all(any(_covers(wide, 0, narrow, 0, {}) for wide in general) for narrow in special)


def is_narrower(special: Shape, general: Shape) -> bool:
    """Returns whether the first differs from the second by narrower placeholders alone: a key of both has the same text in
    each, as in `{policy_no:[A-Z]+}` and `{policy_no}`."""
    is_same_form = [*map(_form, special)] == [*map(_form, general)]
    return is_same_form and is_special_case(special, general) and not is_special_case(general, special)


def _form(units: _Units) -> list[_Unit | None]:
    """Returns the alternative of a shape with None in place of each placeholder."""
    return [None if isinstance(unit, Wildcard) else unit for unit in units]


def _covers(wide: _Units, i: int, narrow: _Units, j: int, bound: dict[str, _Units]) -> bool:
    while i < len(wide) and not isinstance(wide[i], Wildcard):
        if j == len(narrow) or narrow[j] != wide[i]:
            return False
        i, j = i + 1, j + 1
    if i == len(wide):
        return j == len(narrow)
    unit = cast(Wildcard, wide[i])
    if unit.label in bound:
        same = bound[unit.label]
        return narrow[j : j + len(same)] == same and _covers(wide, i + 1, narrow, j + len(same), bound)
    for end in range(j + 1, len(narrow) + 1):
        part = narrow[j:end]
        if part[-1] is _BORDER:
            return False
        if _is_within(part, unit.text) and _covers(wide, i + 1, narrow, end, {**bound, unit.label: part}):
            return True
    return False


def _is_within(part: _Units, text: KeyText) -> bool:
    if text.is_open:
        return True
    literal = "".join(unit for unit in part if isinstance(unit, str))
    if len(literal) == len(part):
        return text.accepts(literal)
    [only] = part if len(part) == 1 else (None,)
    if isinstance(only, Wildcard) and text.covers(only.text):
        return True
    return text.is_exact and _includes(text, part)


def goes_before(special: Shape, general: Shape) -> bool:
    """Returns whether a key with both shapes belongs to the first: the first is a special case of the second, or each
    of its alternatives is one of those that it meets."""
    if is_special_case(special, general):
        return not is_special_case(general, special)
    if len(special) == len(general) == 1:
        return False
    is_met = False
    for narrow, wide in product(special, general):
        if is_special_case((narrow,), (wide,)) and not is_special_case((wide,), (narrow,)):
            is_met = True
        elif not are_disjoint((narrow,), (wide,)):
            return False
    return is_met


# --- Disjoint shapes ----------------------------------------------------------------------------------

_Step: TypeAlias = "CharStep | tuple[_Border, bool, bool]"


@cache
def are_disjoint(one: Shape, other: Shape) -> bool:
    """Returns whether no key can have both shapes, by their characters; repeated placeholders count as different."""
    return next(_meetings(one, other), None) is None


def common_texts(one: Shape, other: Shape) -> Iterator[tuple[str, ...]]:
    """Yields keys that have both shapes by their characters, a partition key alone or with a sort key: the shortest of
    each alternative. Repeated placeholders count as different."""
    yield from map(_keys, _meetings(one, other))


def _keys(path: Iterable[str | _Border]) -> tuple[str, ...]:
    """Returns a partition key alone or with a sort key, given their characters."""
    texts = [""]
    for char in path:
        if isinstance(char, _Border):
            texts.append("")
        else:
            texts[-1] += char
    return tuple(texts)


def is_parsed(shape: Shape) -> bool:
    """Returns whether a format's `parse` alone says which texts are a placeholder's."""
    texts = (unit.text for units in shape for unit in units if isinstance(unit, Wildcard))
    return any(text.char_steps is ANY_TEXT and not text.is_exact for text in texts)


def every_common_text(one: Shape, other: Shape, most: int) -> list[tuple[str, ...]] | None:
    """Returns all keys that have both shapes by their characters; None if there are more than so many."""
    found: set[tuple[str, ...]] = set()
    for units, others in product(one, other):
        texts = _every_meeting(_automaton(units), _automaton(others), most)
        if texts is None:
            return None
        found |= {*map(_keys, texts)}
    return sorted(found) if len(found) <= most else None


def is_exact(shape: Shape) -> bool:
    """Returns whether every text written in this form is a key of the shape, except for repeated placeholders."""
    return all(unit.text.is_exact for units in shape for unit in units if isinstance(unit, Wildcard))


def _meetings(one: Shape, other: Shape) -> Iterator[list[str | _Border]]:
    for units, others in product(one, other):
        path = _meeting(_automaton(units), _automaton(others))
        if path is not None:
            yield path


@dataclass(frozen=True, slots=True)
class _Automaton:
    """The paths through a key: for each place the characters that lead to the next places, and equivalent places.

    The first place is 0, the last one is the end. The values of an enum are parallel paths: there are as many places as
    characters; writing out every key would take the product of all enums.
    """

    arrows: list[list[tuple[Chars | _Border, int]]]
    skips: list[list[int]]

    def place(self) -> int:
        self.arrows.append([])
        self.skips.append([])
        return len(self.arrows) - 1

    def add(self, at: int, steps: Iterable[_Step]) -> int:
        """Adds the characters of one way to write a part, from a place on. Returns the place after them."""
        for chars, may_be_absent, may_repeat in steps:
            then = self.place()
            self.arrows[at].append((chars, then))
            if may_repeat:
                self.arrows[then].append((chars, then))
            if may_be_absent:
                self.skips[at].append(then)
            at = then
        return at

    def reached(self, places: set[int]) -> frozenset[int]:
        """Returns the places and the equivalent ones."""
        found, waiting = set(places), [*places]
        while waiting:
            new = set(self.skips[waiting.pop()]) - found
            found |= new
            waiting += new
        return frozenset(found)

    def after(self, places: Iterable[int], char: str) -> frozenset[int]:
        """Returns the places after one more character."""
        arrows = (arrow for place in places for arrow in self.arrows[place])
        return self.reached(
            {then for chars, then in arrows if not isinstance(chars, _Border) and char in chars}
        )


@cache
def _automaton(units: _Units) -> _Automaton:
    return _automaton_of(map(_unit_steps, units))


def _automaton_of(parts: Iterable[Sequence[Iterable[_Step]]]) -> _Automaton:
    """Returns the paths through a key whose parts are each written in one of some ways."""
    automaton = _Automaton([[]], [[]])
    here = 0
    for part in parts:
        ends = [automaton.add(here, steps) for steps in part]
        here = automaton.place()
        for end in ends:
            automaton.skips[end].append(here)
    return automaton


def _meeting(one: _Automaton, other: _Automaton) -> list[str | _Border] | None:
    """Returns a text that leads through both; None if there is none."""
    end = len(one.arrows) - 1, len(other.arrows) - 1
    reached_from: dict[tuple[int, int], tuple[tuple[int, int], str | _Border] | None] = {(0, 0): None}
    waiting = deque([(0, 0)])
    while waiting:
        pair = waiting.popleft()
        if pair == end:
            return _text_to(pair, reached_from)
        for then, char in _following(one, other, pair, reached_from):
            reached_from[then] = pair, char
            if char:
                waiting.append(then)
            else:
                waiting.appendleft(then)
    return None


def _every_meeting(one: _Automaton, other: _Automaton, most: int) -> set[tuple[str | _Border, ...]] | None:
    """Returns all texts that lead through both; None if there are more than so many."""
    live, end = _leading_to_end(one, other), (len(one.arrows) - 1, len(other.arrows) - 1)
    found = set[tuple[str | _Border, ...]]()
    texts: dict[tuple[str | _Border, ...], set[tuple[int, int]]] = {(): {(0, 0)} & live}
    while texts:
        longer: dict[tuple[str | _Border, ...], set[tuple[int, int]]] = {}
        for text, pairs in texts.items():
            waiting = [*pairs]
            while waiting:
                here, there = waiting.pop()
                same = {(each, there) for each in one.skips[here]} | {
                    (here, each) for each in other.skips[there]
                }
                waiting += (same & live) - pairs
                pairs |= same & live
            if end in pairs:
                found.add(text)
            for here, there in pairs:
                for (chars, then), (theirs, others) in product(one.arrows[here], other.arrows[there]):
                    if (then, others) not in live or _common(chars, theirs) is None:
                        continue
                    if isinstance(chars, AllBut) and isinstance(theirs, AllBut):
                        return None
                    every = [chars] if isinstance(chars, _Border) else _characters(chars, theirs)
                    for char in every:
                        longer.setdefault((*text, char), set()).add((then, others))
            if len(longer) + len(found) > most:
                return None
        texts = longer
    return found


def _leading_to_end(one: _Automaton, other: _Automaton) -> set[tuple[int, int]]:
    """Returns the pairs of places from which the same characters lead to the ends of both."""
    before: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    known, waiting = {(0, 0)}, [(0, 0)]
    while waiting:
        pair = waiting.pop()
        for then, _ in _following(one, other, pair, ()):
            before[then].append(pair)
            if then not in known:
                known.add(then)
                waiting.append(then)
    end = len(one.arrows) - 1, len(other.arrows) - 1
    found, waiting = {end}, [end]
    while waiting:
        new = {*before[waiting.pop()]} - found
        found |= new
        waiting += new
    return found & known


def _following(
    one: _Automaton, other: _Automaton, pair: tuple[int, int], known: Container[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], str | _Border]]:
    """Yields the pairs of places after this one that are not known, with the character that leads to them; empty for
    equivalent places."""
    here, there = pair
    same = [(place, there) for place in one.skips[here]] + [(here, place) for place in other.skips[there]]
    yield from ((each, "") for each in same if each not in known)
    for (chars, then), (theirs, others) in product(one.arrows[here], other.arrows[there]):
        if (then, others) not in known and (char := _common(chars, theirs)) is not None:
            yield (then, others), char


def _text_to(
    pair: tuple[int, int],
    reached_from: Mapping[tuple[int, int], tuple[tuple[int, int], str | _Border] | None],
) -> list[str | _Border]:
    path = []
    step = reached_from[pair]
    while step is not None:
        before, char = step
        path.append(char)
        step = reached_from[before]
    return path[::-1]


def _unit_steps(unit: _Unit) -> Sequence[Sequence[_Step]]:
    """Returns the ways to write a part of a key."""
    if isinstance(unit, str):
        return [[(frozenset(unit), False, False)]]
    if isinstance(unit, Wildcard):
        return unit.text.char_steps
    return [[(unit, False, False)]]


def _common(one: Chars | _Border, other: Chars | _Border) -> str | _Border | None:
    if isinstance(one, _Border):
        return one if one is other else None
    return None if isinstance(other, _Border) else common_char(one, other)


def _characters(one: Chars, other: Chars | _Border) -> frozenset[str]:
    """Returns the characters that are in both, of which at least one names its characters."""
    if isinstance(other, _Border):
        return frozenset()
    if isinstance(one, AllBut):
        return frozenset() if isinstance(other, AllBut) else other - one.chars
    return one - other.chars if isinstance(other, AllBut) else one & other


@cache
def _includes(text: KeyText, part: _Units) -> bool:
    """Returns whether every text of the part has the form of the placeholder's texts."""
    wide, narrow = _automaton((Wildcard("", text),)), _automaton(part)
    classes = [chars for automaton in (wide, narrow) for arrows in automaton.arrows for chars, _ in arrows]
    # Characters that no class names are all alike: one of them represents all.
    named = set[str]()
    for chars in (each for each in classes if not isinstance(each, _Border)):
        named |= chars.chars if isinstance(chars, AllBut) else chars
    alphabet = [*named, next(char for char in map(chr, count()) if char not in named)]
    ends = len(wide.arrows) - 1, len(narrow.arrows) - 1
    start = wide.reached({0}), narrow.reached({0})
    visited, waiting = {start}, [start]
    while waiting:
        here, there = waiting.pop()
        if ends[1] in there and ends[0] not in here:
            return False
        for char in alphabet:
            pair = wide.after(here, char), narrow.after(there, char)
            if pair[1] and pair not in visited:
                visited.add(pair)
                waiting.append(pair)
    return True


# --- Where the keys of a shape are --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyInterval:
    """A part of a key's order: every text from `low` on, below `end` (None: to the end)."""

    text: str
    """The common beginning of its texts."""
    low: str
    end: str | None
    is_filled: bool
    """Whether each of its texts is a key of the shape."""

    @property
    def is_single(self) -> bool:
        """Whether it is one text."""
        return self.end == self.low + "\0"

    def widened(self) -> KeyInterval:
        """Returns every text that begins as its texts do."""
        return KeyInterval(self.text, self.text, text_after_all(self.text), is_filled=False)

    def meets(self, other: KeyInterval) -> bool:
        """Returns whether the two have a text in common."""
        return (other.end is None or self.low < other.end) and (self.end is None or other.low < self.end)


def key_intervals(shape: Shape, text: str) -> list[KeyInterval]:
    """Returns where the keys of the shape that begin with the text are: their literal part and one character more."""
    found: dict[KeyInterval, None] = {}
    for units in shape:
        for parts in product(*map(_unit_steps, units)):
            automaton = _automaton_of([[chain(*parts)]])
            places = automaton.reached({0})
            for char in text:
                places = automaton.after(places, char)
            if places:
                found[_key_interval(units, automaton, places, text)] = None
    return list(found)


def _key_interval(units: _Units, automaton: _Automaton, places: frozenset[int], text: str) -> KeyInterval:
    while True:
        chars = [chars for place in places for chars, _ in automaton.arrows[place]]
        can_end = len(automaton.arrows) - 1 in places
        known = [each for each in chars if isinstance(each, frozenset)]
        every = frozenset[str]().union(*known)
        if can_end or len(known) < len(chars) or len(every) != 1:
            break
        [char] = every
        text += char
        places = automaton.after(places, char)
    wildcards = [unit for unit in units if isinstance(unit, Wildcard)]
    if not chars:
        is_filled = not wildcards or (len(wildcards) == 1 and wildcards[0].text.takes_any_text)
        return KeyInterval(text, text, text + "\0", is_filled)
    if len(known) == len(chars):
        low = text if can_end else text + min(every)
        return KeyInterval(text, low, text_after_all(text + max(every)), is_filled=False)
    is_open = len(wildcards) == 1 and wildcards[0] is units[-1] and wildcards[0].text.takes_any_text
    return KeyInterval(text, text if can_end else text + "\0", text_after_all(text), is_open)
