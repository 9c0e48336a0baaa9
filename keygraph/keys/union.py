"""Ends of several node types: how a node's key is written in a key, and how its type is found.

If the keys of the members are alike, an end is written out as for one type. If they differ, the whole partition key
stands for the node: `NodeText` is that placeholder, and its text determines the member.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from keygraph.keys.formats import Applied, Format
from keygraph.keys.template import Slot, Template, pattern, replaced, under
from keygraph.keys.text import KeyText


@dataclass(frozen=True)
class Variant:
    """Members whose keys are alike, and the template of their partition key."""

    members: tuple[str, ...]
    partition: Template


@dataclass(unsafe_hash=True)
class NodeText(KeyText):
    """The partition key of a node of one of several types, as the text of a placeholder.

    Its value is that text. Equal ones recognize the same types by the same keys.
    """

    variants: tuple[Variant, ...] = ()
    """The forms of the key; a special case of another form comes before it."""

    def __post_init__(self) -> None:
        patterns = (pattern(variant.partition.tokens, is_named=False) for variant in self.variants)
        self.pattern = f"(?:{'|'.join(patterns)})"

    def read(self, text: str) -> tuple[Variant, dict[str, str]]:
        """Returns the variant of a key, and the texts in it by slot. Raises ValueError for a key of no member."""
        for variant in self.variants:
            texts = variant.partition.parse(text)
            if texts is not None:
                return variant, texts
        raise ValueError("no key of a member")

    def render(self, value: object) -> str:
        """Returns the text itself. Raises ValueError if it is not a key of a member."""
        if not isinstance(value, str):
            raise ValueError("no text")
        self.read(value)
        return value

    def value(self, text: str) -> str:
        return text

    def accepts(self, text: str) -> bool:
        return any(variant.partition.parse(text) is not None for variant in self.variants)


class WholeKey(Format):
    """The format that writes the only key field of a node as the node's whole partition key."""


def whole_key(partition: Template, identity: Sequence[Slot]) -> WholeKey | None:
    """Returns how a partition key writes the node's only key field; None if the key does not determine it."""
    [slot, *others] = identity
    if others or slot.lossy or [each for each in partition.tokens if not isinstance(each, str)] != [slot]:
        return None
    is_last, text = partition.tokens[-1] == slot, slot.text
    return WholeKey(
        Applied(_rendered, (partition, slot)),
        Applied(_parsed, (partition, slot)),
        ordered=is_last and text.ordered,
        prefixes=is_last and text.has_prefixes,
        is_descending=text.is_descending,
    )


def _rendered(partition: Template, slot: Slot, value: object) -> str:
    return partition.render({slot.name: slot.text.render(value)}) or ""


def _parsed(partition: Template, slot: Slot, text: str) -> object:
    return slot.text.value((partition.parse(text) or {})[slot.name])


def written_out(templates: tuple[Template, ...]) -> Iterator[tuple[Template, ...]]:
    """Yields the templates with each placeholder of a union written out as each of its members' keys.

    A placeholder in several places is the same node in all of them.
    """
    for template in templates:
        for slot in template.slots:
            if isinstance(slot.text, NodeText):
                for variant in slot.text.variants:
                    yield from written_out(tuple(taking(each, slot, variant) for each in templates))
                return
    yield templates


def in_use(templates: tuple[Template, ...], texts: Mapping[str, str | None]) -> tuple[Template, ...]:
    """Returns the templates with each placeholder of a union written out as the key of its text's member."""
    for template in templates:
        for slot in template.slots:
            text = texts.get(slot.name)
            if isinstance(slot.text, NodeText) and text is not None and slot.text.accepts(text):
                variant, inner = slot.text.read(text)
                prefix = ".".join(slot.path)
                own = {f"{prefix}.{name}": each for name, each in inner.items()}
                written = tuple(taking(each, slot, variant) for each in templates)
                return in_use(written, {**texts, **own})
    return templates


def taking(template: Template, slot: Slot, variant: Variant) -> Template:
    """Returns the template with a placeholder of a union written out as one of its members' keys."""
    if slot.name not in template.slot_names:
        return template
    key = variant.partition.tokens
    for step in reversed(slot.path):
        key = under(key, step)
    return Template(replaced(template.tokens, lambda each: key if each.name == slot.name else (each,)))
