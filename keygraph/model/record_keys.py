"""The keys that a record type has, in the table or in an index: written from its fields, and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from keygraph.dynamo.items import Value
from keygraph.dynamo.table import Index, Key, KeyAttribute
from keygraph.keys.template import Slot, Template


@dataclass(frozen=True, eq=False)
class Keys:
    """The keys that a record type has in the table (`index` is None) or in an index."""

    index: Index | None
    attributes: tuple[KeyAttribute, ...]
    partition: Template
    sort: Template | None
    """None where there is no sort key, or where nobody said what stands in it."""
    shards: int | None
    lists: str | Literal[False] | None
    finds: str | None

    @cached_property
    def index_name(self) -> str | None:
        return self.index.name if self.index else None

    def __str__(self) -> str:
        return " / ".join(str(template) for template in self.templates)

    @cached_property
    def templates(self) -> tuple[Template, ...]:
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Every slot of the two templates once."""
        return tuple({slot.name: slot for template in self.templates for slot in template.slots}.values())

    def rendered(self, texts: Mapping[str, str | None]) -> Key:
        """The key's values with those texts, by slot name."""
        pairs = ((attribute, template.render(texts)) for attribute, template in self.parts)
        return tuple([attribute.value(text) for attribute, text in pairs if text is not None])

    @cached_property
    def parts(self) -> tuple[tuple[KeyAttribute, Template], ...]:
        """Each key attribute with its template."""
        return tuple(zip(self.attributes, self.templates, strict=False))

    def parse(self, item: Mapping[str, Value]) -> dict[str, str] | None:
        """The texts in the item's keys here; None where it has none of these keys, or others."""
        texts: dict[str, str] = {}
        for attribute, template in self.parts:
            text = attribute.text(item.get(attribute.name))
            found = None if text is None else template.parse(text)
            if found is None or any(texts.get(name, text) != text for name, text in found.items()):
                return None
            texts.update(found)
        return texts
