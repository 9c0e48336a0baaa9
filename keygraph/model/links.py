"""Links: whether another item exists whose key follows from a record and a rule, such as the viewer's membership.

A condition uses it like an attribute of the record, with a `LinkName` as its name; no item has it. Code that decides
the condition looks the other item up, and gives the record the result (`keygraph.model.permissions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from keygraph.dynamo.conditions import Condition, holds
from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import KEY_BYTES
from keygraph.dynamo.table import Key
from keygraph.errors import KeygraphError
from keygraph.keys.template import Slot
from keygraph.model.record_keys import Texts
from keygraph.model.records import End, RecordType


@dataclass(frozen=True, eq=False)
class Link:
    """The link from records to items of a list, of the record or of the node at one of its ends."""

    owner: RecordType
    end: End | None
    """The end whose node has the list; None if the record itself has it."""
    name: str
    """The name of the list in a rule."""
    record: RecordType
    """The type of the list's items."""
    determined: Mapping[str, tuple[int, Slot, Slot]]
    """For each slot of their identity that the node determines: the index of its text, its slot there and here."""
    names: frozenset[str]
    """The names that are read from them in addition to their keys."""

    @property
    def needs_item(self) -> bool:
        """Whether only the record's item determines the node."""
        return self.end is not None and self.end.name not in self.owner.key_fields

    def node(self, identity: Texts, item: Item | None) -> Texts | None:
        """Returns the identity of the node that has the list, as the record determines it; None if there is none.

        Raises LookupError if only the item determines it, and it is not given.
        """
        if self.end is None:
            return identity
        if not self.needs_item:
            return self.owner.end_readers[self.end.name](identity)
        if item is None:
            raise LookupError(f"{self.owner.name}.{self.end.name} is asked for before the item was read")
        try:
            return self.owner.end_identity(item, self.end)
        except KeygraphError:
            return None


class LinkName(str):
    """The name of the attribute that says whether a link's item exists, for one viewer."""

    link: Link
    texts: Mapping[str, str]
    """The texts of the slots that the rule gives."""
    condition: Condition | None
    """A further condition on the item."""

    __slots__ = ("condition", "link", "texts")

    def __new__(cls, link: Link, texts: Mapping[str, str], condition: Condition | None) -> Self:
        parts = [f"{link.record.slots[name].path[-1]}: {text}" for name, text in texts.items()]
        made = super().__new__(
            cls, f"{link.name}[{', '.join([*parts, *([str(condition)] if condition else [])])}]"
        )
        made.link, made.texts, made.condition = link, texts, condition
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.link, self.texts, self.condition

    def identity(self, node: Texts) -> Texts:
        """Returns the identity of the item in a node's list."""
        found = []
        for slot in self.link.record.identity:
            place = self.link.determined.get(slot.name)
            if place is None:
                found.append(self.texts[slot.name])
            else:
                number, source, wanted = place
                found.append(source.rewritten(node[number], wanted))
        return tuple(found)

    def key(self, node: Texts | None) -> Key | None:
        """Returns the table key of the item; None if there is no node, or no item can have that key."""
        if node is None:
            return None
        record, identity = self.link.record, self.identity(node)
        write = record.write_key
        key = write(identity) if write else record.table_keys.rendered(record.texts(identity))
        sizes = (len(part.encode() if isinstance(part, str) else b"") for part in key)
        return key if all(size <= most for size, most in zip(sizes, KEY_BYTES, strict=False)) else None

    def is_met(self, node: Texts | None, item: Item | None) -> bool:
        """Returns whether the item of the link's type that was found under that key meets the link."""
        record = self.link.record
        if node is None or item is None or record.read_identity(item) != self.identity(node):
            return False
        return self.condition is None or holds(self.condition, record.completed(item))


def links_in(paths: Sequence[tuple[str, ...]]) -> list[LinkName]:
    """Returns the links among the paths of a condition, each once."""
    return [*dict.fromkeys(path[0] for path in paths if isinstance(path[0], LinkName))]
