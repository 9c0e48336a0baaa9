"""The graph: what everything that reads or serves a table begins with.

A graph is asked: which type is this item of, by which path does this node reach those, what key has the node with
these fields, may this text be an id at all? The first two it answers as a `Model`; the keys are decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from keygraph.check.counterparts import counterpart_mistakes
from keygraph.check.graph import graph_mistakes
from keygraph.check.naming import name_mistakes
from keygraph.check.table import table_mistakes
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput, Mistake, ModelError
from keygraph.keys.shapes import are_disjoint, is_special_case, shape
from keygraph.keys.template import Slot, Template
from keygraph.keys.union import NodeText, in_use
from keygraph.model.records import Keys, RecordType
from keygraph.names import camel
from keygraph.resolve.model import Model
from keygraph.resolve.options import graph_option_mistakes

_KEY_BYTES = (2048, 1024)
"""DynamoDB's limits on a partition key and a sort key."""


class Graph(Model):
    """The record types that live in one table.

    `Graph(table, *types, models=[], attribute_case="snake", type_attribute=None, formats={})`: list the types, or in
    `models` the modules that declare them, or both. The case ("snake", "camel" or "pascal") says how field names are
    written as attributes; the type attribute is that in which every item says its record type, where there is one;
    `formats` are formats for placeholders by their names, and the usual formats of Python types, in keys and attributes.
    """

    # --- Mistakes -------------------------------------------------------------------------------------

    def check(self) -> Graph:
        """The graph itself. Raises ModelError, with every mistake of the declaration, where it has any."""
        if self._mistakes:
            raise ModelError(self._mistakes)
        return self

    @cached_property
    def _mistakes(self) -> list[Mistake]:
        found = list(self.resolution.mistakes.found)
        found += table_mistakes(self.table)
        if not self.types and not found:
            found.append(
                Mistake(
                    "no-types",
                    "the graph",
                    "it lists no types.",
                    "Write Graph(table, User, …) or Graph(table, models=[module]).",
                )
            )
        found += graph_option_mistakes(self.attribute_case, self.type_attribute, self._formats)
        found += counterpart_mistakes(self)
        return found + graph_mistakes(self) + name_mistakes(self)

    # --- Keys -----------------------------------------------------------------------------------------

    def identity(self, record: RecordType, values: Mapping[str, object]) -> tuple[str, ...]:
        """The identity of a node or edge with those key fields, by argument name.

        Raises BadUserInput where they make no key that parses back to them.
        """
        texts = []
        for slot in record.identity:
            name = record.leaf_name(slot.path)
            value = values[name]
            text = "" if value is None else self.text_of(record, slot, value)
            if value is not None and not text:
                raise BadUserInput(f"{camel(name)} of {record.name}: it is empty")
            texts.append(text)
        identity = tuple(texts)
        self.check_identity(record, identity)
        return identity

    def text_of(self, record: RecordType, slot: Slot, value: object) -> str:
        """The text of a value in a slot. Raises BadUserInput where it has none, or one that says another value."""
        text, difference = self._rendered(record, slot, value)
        if difference:
            name = camel(record.leaf_name(slot.path))
            raise BadUserInput(f"{name} of {record.name}: its key would say another value")
        return text

    def bound_of(self, record: RecordType, slot: Slot, value: object, *, is_low: bool) -> str:
        """The text of a range's first or last value, which need not be one that a key can say.

        Raises BadUserInput where no text divides the keys there.
        """
        text, difference = self._rendered(record, slot, value)
        name = camel(record.leaf_name(slot.path))
        if not slot.text.has_order(text):
            raise BadUserInput(f"{name} of {record.name}: negative numbers do not stand in order in its key")
        if difference < 0 and is_low:
            # The smallest text above the one that was rounded down.
            return f"{text}\0"
        if difference > 0 and not is_low:
            raise BadUserInput(
                f"{name} of {record.name}: it says more than its key can; leave out the last digits"
            )
        return text

    def _rendered(self, record: RecordType, slot: Slot, value: object) -> tuple[str, int]:
        """The text of a value, and whether it says the value (0), a smaller one (-1) or a larger one (1)."""
        try:
            text = slot.text.render(value)
            return text, 0 if slot.lossy else slot.text.difference(text, value)
        except (ValueError, TypeError, AttributeError, OverflowError):
            name = camel(record.leaf_name(slot.path))
            raise BadUserInput(f"{name} cannot stand in a key of {record.name}") from None

    def check_identity(self, record: RecordType, identity: Iterable[str]) -> None:
        """Raises BadUserInput where those texts make no key of the type that parses back to them."""
        keys = record.table_keys
        texts = {**_texts(record, identity), **_shard_texts(keys, 0)}
        if record.is_virtual and keys.sort == keys.partition:
            # No item has its sort key.
            self.render(record, keys, 0, texts)
            return
        key = [self.render(record, keys, number, texts) for number in range(len(keys.templates))]
        item = {a.name: a.value(text) for a, text in zip(keys.attributes, key, strict=True)}
        for rival in self._whole_rivals(record, texts):
            if rival.accepts(item):
                raise BadUserInput(f"the key of this {record.name} would be that of a {rival.name}")

    def table_keys(self, record: RecordType, identity: tuple[str, ...]) -> list[Key]:
        """The keys under which the item with that identity can stand: one, or one for each shard."""
        if record.write_key is not None:
            return [record.write_key(identity)]
        texts, keys = _texts(record, identity), record.table_keys
        if not keys.shards:
            return [keys.rendered(texts)]
        return [keys.rendered({**texts, **_shard_texts(keys, shard)}) for shard in range(keys.shards)]

    def render(self, record: RecordType, keys: Keys, number: int, texts: Mapping[str, str | None]) -> str:
        """The text of the partition key (0) or the sort key (1) with those texts.

        Raises BadUserInput where it is empty or too long, does not parse back to the texts, or has the shape of
        another type's key there.
        """
        template = keys.templates[number]
        key = template.render(texts)
        if key and key.isascii() and len(key) <= _KEY_BYTES[number] and self._is_certain(keys, number):
            return key
        problem = self._problem(record, keys, number, key, texts)
        if key is None or problem is not None:
            slots = [slot for slot in template.slots if not slot.is_shard]
            names = ", ".join(camel(record.leaf_name(slot.path)) for slot in slots)
            raise BadUserInput(f"{names or 'the key'} of {record.name}: {problem}")
        return key

    def _is_certain(self, keys: Keys, number: int) -> bool:
        """Whether every key there that is neither empty nor too long parses back, and is of no other shape."""
        found = self._certain_found.get((keys, number))
        if found is None:
            template = keys.templates[number]
            found = self._certain_found[keys, number] = (
                (template.says_any_text or not template.slots)
                and not any(isinstance(slot.text, NodeText) for slot in keys.slots)
                and not self._rivals(keys, number, {})
            )
        return found

    @cached_property
    def _certain_found(self) -> dict[tuple[Keys, int], bool]:
        return {}

    def _problem(
        self, record: RecordType, keys: Keys, number: int, key: str | None, texts: Mapping[str, str | None]
    ) -> str | None:
        template = keys.templates[number]
        if not key or any(texts.get(slot.name) == "" for slot in template.slots):
            return "it is empty"
        try:
            size = len(key.encode())
        except UnicodeEncodeError:
            return "it is no text that can be stored"
        if size > _KEY_BYTES[number]:
            return f"its key has more than {_KEY_BYTES[number]} bytes"
        wanted = {slot.name: texts[slot.name] for slot in template.slots if texts.get(slot.name) is not None}
        if template.parse(key) != wanted:
            return "it would be read back as something else"
        for rival in self._rivals(keys, number, texts):
            if rival.parse(key) is not None:
                return f'it would be a key of another shape, "{rival}"'
        return None

    def _rivals(self, keys: Keys, number: int, texts: Mapping[str, str | None]) -> tuple[Template, ...]:
        """The shapes that the key attribute has elsewhere and of which the template is no special case."""
        own = in_use(keys.templates[: number + 1], texts)
        place = (keys.index_name, own)
        if place not in self._rivals_found:
            self._rivals_found[place] = self._find_rivals(keys, own)
        return self._rivals_found[place]

    @cached_property
    def _rivals_found(self) -> dict[tuple[str | None, tuple[Template, ...]], tuple[Template, ...]]:
        return {}

    def _whole_rivals(self, record: RecordType, texts: Mapping[str, str | None]) -> list[RecordType]:
        """The types of which a key of this one can be, as the edge from a node to itself has the node's own."""
        templates = in_use(record.table_keys.templates, texts)
        place = (record.name, templates)
        if place not in self._whole_rivals_found:
            own = shape(*templates)
            self._whole_rivals_found[place] = [
                other
                for other in self.types.values()
                if other is not record and not other.is_virtual and not record.is_virtual
                for theirs in [shape(*other.table_keys.templates)]
                if not is_special_case(own, theirs) and not are_disjoint(own, theirs)
            ]
        return self._whole_rivals_found[place]

    @cached_property
    def _whole_rivals_found(self) -> dict[tuple[str, tuple[Template, ...]], list[RecordType]]:
        return {}

    def _find_rivals(self, keys: Keys, templates: tuple[Template, ...]) -> tuple[Template, ...]:
        number = len(templates) - 1
        attribute = keys.attributes[number].name
        own, own_partition = shape(templates[number]), shape(templates[0])
        rivals: dict[Template, None] = {}
        for other in self.types.values():
            if other.is_virtual:
                continue
            for others in other.keys.values():
                for key, template in zip(others.attributes, others.templates, strict=False):
                    if key.name != attribute or is_special_case(own, shape(template)):
                        continue
                    is_elsewhere = number == 1 and are_disjoint(own_partition, shape(others.partition))
                    if not is_elsewhere and not are_disjoint(own, shape(template)):
                        rivals[template] = None
        return tuple(rivals)


def _texts(record: RecordType, identity: Iterable[str]) -> dict[str, str | None]:
    """The texts of an identity by slot; an optional one that is absent is empty there, and None here."""
    names = (slot.name for slot in record.identity)
    return {name: text or None for name, text in zip(names, identity, strict=True)}


def _shard_texts(keys: Keys, shard: int) -> dict[str, str]:
    return {slot.name: slot.text.render(shard) for slot in keys.slots if slot.is_shard}
