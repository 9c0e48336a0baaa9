"""The graph of one table: its record types, its mistakes, and the keys of nodes.

Everything that reads or serves a table starts from a `Graph`. Its base class `RecordTypes` finds the type of an item
and the path from one node to others. This module makes keys, and refuses values that cannot be keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

from keygraph.check.access import access_mistakes
from keygraph.check.counterparts import counterpart_mistakes
from keygraph.check.graph import graph_mistakes
from keygraph.check.summaries import summary_mistakes
from keygraph.check.table import table_mistakes, ttl_mistakes
from keygraph.dynamo.limits import KEY_BYTES
from keygraph.dynamo.order import LAST
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput, FieldName, Mistake, ModelError
from keygraph.kept import kept
from keygraph.keys.template import Slot, Template
from keygraph.model.record_keys import Keys
from keygraph.model.records import RecordType
from keygraph.resolve.collisions import KeyCollisions
from keygraph.resolve.options import graph_option_mistakes
from keygraph.resolve.record_types import RecordTypes

_Made = TypeVar("_Made")
_EMPTY = "is empty"
_LAST = "cannot contain the character U+10FFFF, which ends ranges of keys"
_OTHER = "would be read back from the key as another value"
_MOST_TRIED = 20
"""How many characters of a text are looked at to say why a key is refused."""


class Graph(RecordTypes):
    """The record types that live in one table.

    `Graph(table, *types, models=[], attribute_case="snake", type_attribute=None, formats={}, separator=None,
    store_key_fields=True, ttl_attribute=None, access=[], shared=[], lists={}, explore=False, paths=False, ignore=[],
    writes=None)`: pass types,
    modules that declare them (`models`), or both. The case ("snake", "camel" or "pascal") says how field names become
    attributes. The type attribute holds the record type of every item. `formats` are formats for placeholders by their
    names, and the usual formats of Python types, in keys and attributes. The separator is a character between the parts
    of keys that no text in them contains. With `store_key_fields=False`, writes leave out attributes whose values are
    in the item's keys. DynamoDB deletes expired items by the TTL attribute: that of `ttl()` fields, else `ttl`.

    `access` are rules for all types: one of them has to allow an access, in addition to the rules of its type. Every
    type has the fields that they name, in its own fields or in its key. `shared` are the types without these rules.

    `lists` are more lists at the root, by their names: `lists={"timeline": many(Post | Photo, index=gsi1)}` lists the
    items of several types in one partition. With `explore=True` every node has `neighbours`: everything in its
    partition of the table. With `paths=True` the root answers how one node is connected to another.

    `ignore` names items that are not the graph's, by patterns of their keys: `ignore=["SESSION#*", "USER#* / LOGIN#*"]`.
    `writes` is the `writes` of types that do not declare their own.
    """

    def made(self, make: Callable[[Graph], _Made]) -> _Made:
        """Returns what a function or a class makes of the graph. It is made only once."""
        if make not in self._made:
            self._made[make] = make(self)
        found: _Made = self._made[make]
        return found

    # --- Mistakes -------------------------------------------------------------------------------------

    def check(self) -> Graph:
        """Returns the graph itself. Raises ModelError with every mistake of the declaration if it has any."""
        if self.mistakes:
            raise ModelError(self.mistakes)
        return self

    @cached_property
    def mistakes(self) -> list[Mistake]:
        """All mistakes of the declaration. The code that makes a schema checks the schema's names."""
        found = [*self.resolution.mistakes, *table_mistakes(self.table)]
        if not self.types and not found:
            fix = "Write Graph(table, User, …) or Graph(table, models=[module])."
            found.append(Mistake("no-types", "the graph", "it lists no types.", fix))
        found += ttl_mistakes(self.table, self.ttl_attribute)
        found += graph_option_mistakes(self.options)
        found += counterpart_mistakes(self)
        found += graph_mistakes(self)
        found += access_mistakes(self)
        found += summary_mistakes(self)
        _ = self.walks, self.every_tally, self.every_copy  # their mistakes are found when they are resolved
        return [*found, *self.derived_mistakes]

    def on_table(self, name: str, indexes: Mapping[str, str] = MappingProxyType({})) -> Graph:
        """Returns the same graph in a table of another name, whose indexes may have other names too."""
        table = self.table.named(name, indexes)
        if indexes:
            return Graph(table, *self.classes, **self.options)
        other = copy(self)
        other.table = table
        other._begin_anew()
        return other

    # --- Keys -----------------------------------------------------------------------------------------

    def plain_lengths(self, keys: Keys) -> tuple[int, ...]:
        """Returns the lengths up to which ASCII keys always pass `checked_key`."""
        return self._collisions.plain_lengths(keys)

    @cached_property
    def _collisions(self) -> KeyCollisions:
        return KeyCollisions(self)

    def identity(self, record: RecordType, values: Mapping[str, object]) -> tuple[str, ...]:
        """Returns the identity of a node or edge with these key fields, by argument name.

        Raises BadUserInput if they make no key that parses back to them.
        """
        texts = tuple([self.given_text(record, slot, values[name]) for slot, name in _named_slots(record)])
        self.check_identity(record, texts)
        return texts

    def given_text(self, record: RecordType, slot: Slot, value: object | None) -> str:
        """Returns the text of a value of a key field; empty for None, which is an absent part.

        Raises BadUserInput for a value that `text_of` refuses, or whose text is empty.
        """
        if value is None:
            return ""
        text = self.text_of(record, slot, value)
        if not text:
            held = (keys for keys in record.keys.values() if slot.name in {each.name for each in keys.slots})
            raise _refused(
                record, slot, f" of {record.name} {_EMPTY}{_part_of(next(held, record.table_keys))}"
            )
        return text

    def text_of(self, record: RecordType, slot: Slot, value: object) -> str:
        """Returns the text of a value in a slot. Raises BadUserInput if it has none, or only one of another value."""
        if type(value) is str and value and slot.is_free and LAST not in value:
            return value  # as most are
        text, difference = self._rendered(record, slot, value)
        if difference:
            raise _refused(record, slot, f" of {record.name} would have another value in its key")
        if LAST in text:
            raise _refused(record, slot, f" of {record.name} {_LAST}")
        if text and not slot.text.accepts(text):
            declared = slot.text.declared
            form = declared.pattern if declared is not None else slot.text.format or slot.text.alphabet
            problem = "has a value that its key cannot hold" + (f": its text must fit {form}" if form else "")
            raise _refused(record, slot, f" of {record.name} {problem}")
        return text

    def bound_of(self, record: RecordType, slot: Slot, value: object, *, is_low: bool) -> str:
        """Returns the text of a range's first or last value, which need not be one that a key can hold.

        Raises BadUserInput if no text separates the keys there.
        """
        text, difference = self._rendered(record, slot, value)
        text = slot.text.bound(text, is_low=is_low)
        if slot.text.is_descending:
            is_low, difference = not is_low, -difference
        if slot.text.width is not None and text.startswith("-"):
            raise _refused(
                record,
                slot,
                f" of {record.name} cannot be negative here: its key does not sort negative numbers",
            )
        if difference < 0 and is_low:
            # The smallest text above the one that was rounded down.
            return f"{text}\0"
        if difference > 0 and not is_low:
            problem = "has more digits than its key can hold; remove the last digits"
            raise _refused(record, slot, f" of {record.name} {problem}")
        return text

    def _rendered(self, record: RecordType, slot: Slot, value: object) -> tuple[str, int]:
        """Returns the text of a value, and whether it means that value (0), a smaller one (-1) or a larger one (1)."""
        try:
            text = slot.text.render(value)
            return text, 0 if slot.lossy else slot.text.difference(text, value)
        except (ValueError, TypeError, AttributeError, OverflowError):
            raise _refused(record, slot, f" cannot be part of a key of {record.name}") from None

    def check_identity(self, record: RecordType, identity: Iterable[str]) -> None:
        """Raises BadUserInput if these texts make no key of the type that parses back to them."""
        identity = tuple(identity)
        most, without = self._collisions.plain_identities(record)
        write, all_texts = record.write_key, "".join(identity)
        is_short = len(all_texts) <= most and "" not in identity
        if most and write is not None and is_short and without.isdisjoint(all_texts):
            whole = "".join(write(identity))  # type: ignore[arg-type]  # plain keys are texts
            if len(whole) <= most and whole.isascii():
                return
        keys = record.table_keys
        texts = record.texts(identity) | keys.shard_texts[0]
        if record.is_virtual and keys.sort == keys.partition:
            # No item has its sort key.
            self.render(record, keys, 0, texts)
            return
        self.refuse_collisions(
            record, texts, [self.render(record, keys, number, texts) for number in range(len(keys.templates))]
        )

    def may_collide(self, record: RecordType) -> bool:
        """Returns whether `refuse_collisions` may refuse a key of the type."""
        return self._collisions.may_have(record)

    def refuse_collisions(
        self, record: RecordType, texts: Mapping[str, str | None], key: Iterable[str]
    ) -> None:
        """Raises BadUserInput if a table key of the type, with these texts, would be another type's key."""
        collisions = self._collisions.records(record, texts)
        if collisions:
            attributes = record.table_keys.attributes
            item = {a.name: a.value(text) for a, text in zip(attributes, key, strict=True)}
            for other in collisions:
                if other.read_identity(item) is not None:
                    raise BadUserInput(f"the key of this {record.name} would be that of a {other.name}")

    def table_keys(self, record: RecordType, identity: tuple[str, ...]) -> list[Key]:
        """Returns the keys that the item with that identity can have: one, or one for each shard."""
        if record.write_keys:
            return [write(identity) for write in record.write_keys]
        texts, keys = record.texts(identity), record.table_keys
        return [keys.rendered({**texts, **shard}) for shard in keys.shard_texts]

    def render(self, record: RecordType, keys: Keys, number: int, texts: Mapping[str, str | None]) -> str:
        """Returns the partition key (0) or the sort key (1) with those texts.

        Raises BadUserInput if it is empty or too long, does not parse back to the texts, or has the shape of another
        type's key there and nothing else tells the items apart: a sort key is compared together with its partition key.
        """
        return self.checked_key(record, keys, number, texts, keys.templates[number].render(texts))

    def checked_key(
        self,
        record: RecordType,
        keys: Keys,
        number: int,
        texts: Mapping[str, str | None],
        key: str | None,
    ) -> str:
        """Returns the partition key (0) or sort key (1) that was rendered from those texts. Raises as `render` does."""
        if key and len(key) <= self._collisions.plain_lengths(keys)[number] and key.isascii():
            return key
        problem = self._problem(record, keys, number, key, texts)
        if key is None or problem is not None:
            slots = [slot for slot in keys.templates[number].slots if not slot.is_shard]
            if problem == _EMPTY:
                empty = (
                    slot for slot in slots if not texts.get(slot.name) and slot.name not in keys.optional
                )
                slots, problem = [*empty][:1] or slots, f"{_EMPTY}{_part_of(keys)}"
            elif problem == _OTHER and key is not None:
                slots, problem = _separator_in(keys.templates[number], texts) or (slots, problem)
            names = [FieldName(record.leaf_name(slot.path)) for slot in slots]
            parts = [part for name in names for part in (" and ", name)][1:] or ["the key"]
            raise BadUserInput(*parts, f" of {record.name} {problem}")
        return key

    def _problem(
        self, record: RecordType, keys: Keys, number: int, key: str | None, texts: Mapping[str, str | None]
    ) -> str | None:
        """What is wrong with the values of the key, as the end of a sentence that begins with their names."""
        template = keys.templates[number]
        wanted = {name: text for name in template.slot_names if (text := texts.get(name)) is not None}
        if not key or "" in wanted.values():
            return _EMPTY
        encoding = keys.attributes[number].encoding
        try:
            size = len(key.encode(encoding))
        except UnicodeEncodeError:
            return f"cannot be written as {encoding}"
        if size > KEY_BYTES[number]:
            return f"would make a key of more than {KEY_BYTES[number]:,} bytes"
        if LAST in key:
            return _LAST
        found = template.parse(key)
        if found is None:
            return _OTHER
        # The text of a method may have in it what separates it from the rest: who reads such an index renders it anew.
        if found != wanted and (keys.index is None or not any(slot.computed for slot in template.slots)):
            return _OTHER
        rival = self._collisions.template(keys, number, texts, key)
        return None if rival is None else f'would make a key of another shape, "{rival}"'


@kept("what keys fix", 2048, 2_000)
def _named_slots(record: RecordType) -> list[tuple[Slot, str]]:
    """Returns the slots of a type's identity, with the names of the arguments that give them."""
    return [(slot, record.leaf_name(slot.path)) for slot in record.identity]


def _part_of(keys: Keys) -> str:
    """Returns the end of a message about a part of a key that is empty."""
    return f", and part of its key{f' in {keys.index_name}' if keys.index else ''}"


def _separator_in(template: Template, texts: Mapping[str, str | None]) -> tuple[list[Slot], str] | None:
    """Returns the slot with a character for which a key is read back as another value, and the problem."""
    own = {name: text for name in template.slot_names if (text := texts.get(name)) is not None}
    for slot in template.slots:
        text = own.get(slot.name, "")
        for character in [each for each in dict.fromkeys(text) if not each.isalnum()][:_MOST_TRIED]:
            without = {**own, slot.name: text.replace(character, "") or "x"}
            if template.parse(template.render(without) or "") == without:
                return [slot], f'cannot contain "{character}": it {_OTHER}'
    return None


def _refused(record: RecordType, slot: Slot, problem: str) -> BadUserInput:
    return BadUserInput(FieldName(record.leaf_name(slot.path)), problem)
