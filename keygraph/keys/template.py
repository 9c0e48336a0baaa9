"""Key templates: `ORDER#{order_id}` renders a key from fields and parses a key back into fields.

A template is written with names (`read_source` returns its parts); a record type binds the names to slots, which define
how their values are written in a key. A bound `Template` works only on texts: a mapping from slot names to the texts in
the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import dropwhile, pairwise
from string import Formatter
from typing import TypeAlias

from keygraph.keys.text import FreeText, KeyText

FieldPath: TypeAlias = tuple[str, ...]
"""The names from a record type to a field, through ends: `("customer", "user_id")`."""

KeyTexts: TypeAlias = "tuple[str | None, ...]"
"""The texts in a key, in the order of the template's slots."""
KeyReader: TypeAlias = "Callable[[str], KeyTexts | None]"

SHARD: FieldPath = ("shard",)
"""The path of the placeholder that spreads a partition, if no field has that name."""


class TemplateError(Exception):
    """The source cannot be read; the message says why."""


@dataclass(frozen=True)
class Reference:
    """A placeholder as it is written: a path of names, a format, and whether it is optional."""

    path: FieldPath
    format: str = ""
    optional: bool = False

    def __str__(self) -> str:
        spec = f":{self.format}" if self.format else ""
        return "{" + ".".join(self.path) + ("?" if self.optional else "") + spec + "}"


def read_source(source: str) -> tuple[str | Reference, ...]:
    """Returns the parts of a template as it is written. Raises TemplateError."""
    parts: list[str | Reference] = []
    try:
        for literal, name, spec, conversion in Formatter().parse(source):
            if literal:
                literal.encode()
                parts.append(literal)
            if name is None:
                continue
            optional = name.endswith("?")
            path = tuple(name.removesuffix("?").split("."))
            if conversion or not all(step.isidentifier() for step in path):
                raise TemplateError(f"{{{name}}} is not a field name")
            parts.append(Reference(path, spec or "", optional))
    except UnicodeEncodeError:
        raise TemplateError("it has a half of a surrogate pair, which no text can hold") from None
    except ValueError as error:
        raise TemplateError(str(error)) from None
    if not parts:
        raise TemplateError("it is empty")
    return tuple(parts)


@dataclass(frozen=True)
class Slot:
    """A placeholder bound to a field: its path, its form in the key, and its name in texts."""

    path: FieldPath
    text: KeyText
    computed: bool = False
    """Whether it is a method's text: it renders, and is never read back."""

    @cached_property
    def name(self) -> str:
        """The slot's name in texts: the path, and the format if there is one."""
        return ".".join(self.path) + (f":{self.text.format}" if self.text.format else "")

    @cached_property
    def is_shard(self) -> bool:
        return self.path == SHARD

    @cached_property
    def is_free(self) -> bool:
        """Whether every text is the text of itself."""
        return isinstance(self.text, FreeText) and self.text.takes_any_text and not self.text.declared

    @cached_property
    def lossy(self) -> bool:
        """Whether its text cannot be turned into a value again."""
        return self.text.lossy or self.computed

    def rewritten(self, text: str, wanted: Slot) -> str:
        """Returns its text as another slot of the same field writes it."""
        return text if self.text == wanted.text else wanted.text.render(self.text.value(text))

    def rewriter(self, wanted: Slot) -> Callable[[str], str] | None:
        """Returns a function that does this; None if both write the same."""
        return None if self.text == wanted.text else partial(self.rewritten, wanted=wanted)

    def under(self, end: str) -> Slot:
        """Returns the same slot, seen from a type that has an end to this one's type."""
        return Slot((end, *self.path), self.text, self.computed)


@dataclass(frozen=True)
class Maybe:
    """Tokens that are in a key only if all their slots have a text."""

    tokens: tuple[Token, ...]


Token: TypeAlias = str | Slot | Maybe


def joined(tokens: Iterable[Token]) -> tuple[Token, ...]:
    """Returns the tokens with adjacent literal texts joined, so that equal templates are equal."""
    joined: list[Token] = []
    for token in tokens:
        if isinstance(token, str) and joined and isinstance(joined[-1], str):
            joined[-1] += token
        else:
            joined.append(token)
    return tuple(joined)


def replaced(tokens: Iterable[Token], written: Callable[[Slot], Iterable[Token]]) -> tuple[Token, ...]:
    """Returns the tokens with each slot replaced by what `written` returns."""
    made: list[Token] = []
    for token in tokens:
        match token:
            case Slot():
                made.extend(written(token))
            case Maybe(inner):
                made.append(Maybe(replaced(inner, written)))
            case _:
                made.append(token)
    return joined(made)


def under(tokens: Iterable[Token], end: str) -> tuple[Token, ...]:
    """Returns the same tokens, seen from a type that has an end to this one's type."""
    return replaced(tokens, lambda slot: (slot.under(end),))


def _slots(tokens: Iterable[Token]) -> Iterator[Slot]:
    for token in tokens:
        if isinstance(token, Slot):
            yield token
        elif isinstance(token, Maybe):
            yield from _slots(token.tokens)


def _flat(tokens: Iterable[Token]) -> Iterator[str | Slot]:
    """Yields the tokens with optional parts written out."""
    for token in tokens:
        if isinstance(token, Maybe):
            yield from _flat(token.tokens)
        else:
            yield token


def is_certain(optional: Maybe, tokens: tuple[Token, ...]) -> bool:
    """Returns whether an optional part is always present, because each of its slots occurs outside of it too."""
    outside = {token.name for token in tokens if isinstance(token, Slot)}
    return {slot.name for slot in _slots(optional.tokens)} <= outside


def _with_texts(tokens: tuple[Token, ...], texts: Mapping[str, str | None]) -> tuple[Token, ...]:
    written: list[Token] = []
    for token in tokens:
        match token:
            case Slot(name=name):
                text = texts.get(name)
                written.append(token if text is None else text)
            case Maybe(inner):
                names = [slot.name for slot in _slots(inner)]
                if any(name in texts and texts[name] is None for name in names):
                    continue
                part = _with_texts(inner, texts)
                written.extend(part if all(texts.get(name) for name in names) else [Maybe(part)])
            case _:
                written.append(token)
    return tuple(written)


@dataclass(frozen=True)
class Template:
    """Literal text and slots, which may repeat."""

    tokens: tuple[Token, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.tokens)

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Every slot once, in the order of the template."""
        return tuple({slot.name: slot for slot in _slots(self.tokens)}.values())

    @cached_property
    def slot_names(self) -> frozenset[str]:
        return frozenset(slot.name for slot in self.slots)

    def parse(self, key: str) -> dict[str, str] | None:
        """Returns the texts in the key, by slot name; None if it is not a key of this template.

        An absent slot inside `Maybe` is not in the result.
        """
        texts = self.read(key)
        if texts is None:
            return None
        return {slot.name: text for slot, text in zip(self.slots, texts, strict=True) if text is not None}

    @cached_property
    def read(self) -> KeyReader:
        """A function that reads the texts in a key, in the order of `slots`; it returns None for a key of another
        template. The text of an absent slot inside `Maybe` is None."""
        if not self.slots:
            literal = self.render({}) or ""
            return lambda key: () if key == literal else None
        if self._around is not None:
            return _one_slot_reader(*self._around, self.slots[0].text)
        return _pattern_reader(self)

    @cached_property
    def _around(self) -> tuple[str, str] | None:
        """The text before and after the only slot: most keys have one, and are read without a pattern. None for
        others."""
        match joined(("", *self.tokens, "")):
            case (str(before), Slot(), str(after)):
                return before, after
        return None

    @property
    def takes_any_text(self) -> bool:
        """Whether its only slot takes any text, and every text in it can be read back."""
        return self._around is not None and self.slots[0].text.takes_any_text

    @property
    def beginning(self) -> str | None:
        """The literal text at the start of every key, if any text may follow it; None for other templates."""
        if not self.takes_any_text or self._around is None or self._around[1]:
            return None
        return self._around[0]

    @property
    def is_decided_by_beginning(self) -> bool:
        """Whether every text that begins as its keys do is one of them."""
        return not self.slots or self.beginning is not None

    @cached_property
    def open_ended(self) -> frozenset[str]:
        """The slots whose text may be longer in a key that begins with a given text and what follows it.

        That is so if the text can contain its separator from the rest.
        """
        return frozenset(
            token.name
            for token, following in pairwise(_flat(self.tokens))
            if isinstance(token, Slot) and isinstance(following, str) and token.text.can_hold(following[0])
        )

    @cached_property
    def uncertain(self) -> frozenset[str]:
        """The slots whose text may be read from a key in another way than it was written: a text and a later one can
        contain their separator."""
        flat = tuple(_flat(self.tokens))
        found: set[str] = set()
        for number, (token, following) in enumerate(pairwise(flat)):
            if not (isinstance(token, Slot) and isinstance(following, str)):
                continue
            later = [each for each in flat[number + 1 :] if isinstance(each, Slot)]
            if token.text.can_hold(following[0]) and any(each.text.can_hold(following[0]) for each in later):
                found |= {each.name for each in (token, *later)}
        return frozenset(found)

    def is_cut(self, slot: Slot, text: str) -> bool:
        """Returns whether a key with the text there is read back with another one, whatever follows it."""
        if slot.name not in self.uncertain:
            return False
        samples = {each.name: each.text.shortest[0] for each in self.slots}
        rest = Template(tuple(dropwhile(lambda token: token != slot, _flat(self.tokens))))
        found = rest.parse(rest.render({**samples, slot.name: text}) or "")
        return found is not None and found.get(slot.name) != text

    def mismatch(self, key: str) -> tuple[int, str]:
        """Returns how many tokens fit a key of another template, and what is wrong with the next one."""
        match = None
        for count, token in enumerate(self.tokens, 1):
            rest = "" if count == len(self.tokens) else "(?s:.*)"
            match = re.fullmatch(pattern(self.tokens[:count], is_named=True) + rest, key)
            if match is None:
                return count - 1, _what_lacks(token, self.tokens[: count - 1])
        texts = match.groups() if match else ()
        for slot, text in zip(self.slots, texts, strict=True):
            if text is not None and not slot.text.accepts(text):
                return len(self.tokens), _what_lacks(slot, ())
        return len(self.tokens), "it would be written otherwise"

    @cached_property
    def render(self) -> Callable[[Mapping[str, str | None]], str | None]:
        """A function that makes the key from texts by slot name; it returns None if a slot outside `Maybe` has no text,
        or the key would be empty."""
        if any(isinstance(token, Maybe) for token in self.tokens):
            return self._rendered
        names = [token.name for token in self.tokens if isinstance(token, Slot)]
        parts = ["%s" if isinstance(token, Slot) else str(token).replace("%", "%%") for token in self.tokens]
        filled = "".join(parts).__mod__

        def render(texts: Mapping[str, str | None]) -> str | None:
            own = tuple(map(texts.get, names))
            return None if None in own else filled(own) or None

        return render

    def _rendered(self, texts: Mapping[str, str | None]) -> str | None:
        parts = []
        for token in self.tokens:
            if isinstance(token, str):
                parts.append(token)
            elif isinstance(token, Slot):
                text = texts.get(token.name)
                if text is None:
                    return None
                parts.append(text)
            else:
                parts.append(Template(token.tokens).render(texts) or "")
        return "".join(parts) or None

    def with_texts(self, texts: Mapping[str, str | None]) -> Template:
        """Returns the template with these texts in place of their slots; an optional part with a None is left out."""
        return Template(_with_texts(self.tokens, texts))

    def head(self, known: Collection[str]) -> tuple[Template, Template]:
        """Returns the template up to the first unknown slot, and the rest from there."""
        for count, token in enumerate(self.tokens):
            if not all(slot.name in known for slot in _slots((token,))):
                return Template(self.tokens[:count]), Template(self.tokens[count:])
        return self, Template(())

    def __str__(self) -> str:
        return _source(self.tokens, is_optional=False)


def _what_lacks(token: Token, before: tuple[Token, ...]) -> str:
    """Returns why a key ends before the token, in words."""
    if isinstance(token, Slot):
        return f"no {token.text.type.name} stands for {_source((token,), is_optional=False)}"
    text = _source((token,), is_optional=False)
    if not before:
        return f'it does not begin with "{text}"'
    return f'no "{text}" follows {_source(before[-1:], is_optional=False)}'


def _source(tokens: tuple[Token, ...], *, is_optional: bool) -> str:
    """Returns the tokens as they are written."""
    parts = []
    for token in tokens:
        match token:
            case str():
                parts.append(token.replace("{", "{{").replace("}", "}}"))
            case Slot():
                parts.append(str(Reference(token.path, token.text.format, is_optional)))
            case Maybe(inner):
                parts.append(_source(inner, is_optional=True))
    return "".join(parts)


# --- Reading keys -------------------------------------------------------------------------------------


def _one_slot_reader(before: str, after: str, text_of: KeyText) -> KeyReader:
    start, behind, accepts = len(before), len(after), text_of.accepts
    least = start + behind

    def read_between(key: str) -> KeyTexts | None:
        if len(key) > least and key.startswith(before) and key.endswith(after):
            text = key[start : len(key) - behind]
            return (text,) if accepts(text) else None
        return None

    return read_between if text_of.takes_any_text else _remembering(read_between)


def _remembering(read: KeyReader) -> KeyReader:
    """Returns a function that reads the same, and remembers the last key: one key is read for several fields of an item."""
    last: tuple[str | None, KeyTexts | None] = (None, None)

    def remembered(key: str) -> KeyTexts | None:
        nonlocal last
        known, texts = last
        if known != key:
            texts = read(key)
            last = key, texts
        return texts

    return remembered


def _pattern_reader(template: Template) -> KeyReader:
    fullmatch, slots = re.compile(pattern(template.tokens, is_named=True)).fullmatch, template.slots
    names = [slot.name for slot in _slots(template.tokens)]
    optional = [token for token in template.tokens if isinstance(token, Maybe)]
    repeats_optional = any(names.count(slot.name) > 1 for slot in _slots(optional))

    def matched(key: str) -> KeyTexts | None:
        match = fullmatch(key)
        if match is None:
            return None
        texts = match.groups()
        for slot, text in zip(slots, texts, strict=True):
            if text is not None and not slot.text.accepts(text):
                return None
        if repeats_optional:
            # An optional part whose slots occur elsewhere too is present exactly if they are.
            named = {slot.name: text for slot, text in zip(slots, texts, strict=True)}
            return texts if template.render(named) == key else None
        return texts

    return _remembering(matched)


def pattern(tokens: tuple[Token, ...], *, is_named: bool) -> str:
    """Returns a regular expression for the keys; `accepts` of the slots' texts decides the rest.

    `is_named`: each slot is a group, and a repeated one has one text.
    """
    groups: dict[str, str] = {}

    def written(part: tuple[Token, ...]) -> str:
        parts = []
        for token in part:
            match token:
                case str():
                    parts.append(re.escape(token))
                case Maybe(inner):
                    parts.append(f"(?:{written(inner)})" + ("" if is_certain(token, tokens) else "?"))
                case Slot() if not is_named:
                    parts.append(f"(?:{token.text.pattern})")
                case Slot() if token.name in groups:
                    parts.append(f"(?P={groups[token.name]})")
                case Slot():
                    groups[token.name] = f"s{len(groups)}"
                    parts.append(f"(?P<{groups[token.name]}>{token.text.pattern})")
        return "".join(parts)

    return written(tokens)
