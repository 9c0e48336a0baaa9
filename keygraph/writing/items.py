"""Makes the items of a record type from the values of its fields, with all their keys.

An item has its fields and ends as attributes, its type value, the table's key, and the keys of every index for which it
has all parts. All problems with the values are reported at once (`Refusals`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, cast

from keygraph.codes import Code
from keygraph.dynamo.actions import AttributeChange, Remove, SetTo
from keygraph.dynamo.conditions import Path, at_path, put_at_path
from keygraph.dynamo.items import Item, Value, value_size
from keygraph.dynamo.rules import WriteRules
from keygraph.errors import (
    BadUserInput,
    FieldName,
    InputPath,
    ItemTooLarge,
    KeygraphError,
    Refusal,
    WriteRefused,
    without_frames,
)
from keygraph.graph import Graph
from keygraph.keys.template import Slot
from keygraph.model.instances import value_of_method
from keygraph.model.permissions import restricted_name
from keygraph.model.record_keys import Keys, Texts
from keygraph.model.records import End, RecordType
from keygraph.model.shared_attributes import (
    SharedAttributes,
    encoder_of,
    end_writer,
    field_writer,
)
from keygraph.names import public_path
from keygraph.resolve.derived import COUNTED, as_stored, combined
from keygraph.writing.requests import WriteRequest, place_of

_UNFIT = (ValueError, TypeError, AttributeError, OverflowError)
"""The exceptions for values that cannot be stored."""
_UNFIT_KEYS = "other values of the item do not fit its keys."
"""The problem with stored values of which not everybody may know."""
_NOTHING: Mapping[str, Any] = {}
_KeyPart: TypeAlias = tuple[str, Callable[[Mapping[str, str | None]], str | None], int]


class Replaced(NamedTuple):
    """The stored item that a new item replaces."""

    item: Item
    names: frozenset[str]
    """The fields and ends that change."""


class Refusals:
    """The problems of a write so far."""

    def __init__(self) -> None:
        self.found: list[Refusal] = []

    def add(self, path: InputPath, *parts: str, code: str = Code.BAD_USER_INPUT, **details: Any) -> None:
        """Adds a reason at its place in the input. A reason that occurs several times is added once."""
        self.put(Refusal(code, parts, path, details))

    def put(self, refusal: Refusal) -> None:
        """Adds a refusal, once."""
        if refusal not in self.found:
            self.found.append(refusal)

    def take(self, path: InputPath, error: KeygraphError) -> None:
        """Adds an error's message, at that place, or at the field there that it names. One at a field is enough."""
        parts = error.parts if isinstance(error, BadUserInput) else (str(error),)
        named = [part for part in parts if isinstance(part, FieldName)]
        if named and not isinstance(path[-1] if path else None, FieldName):
            path = (*path, named[0])
        if not path or not isinstance(path[-1], FieldName) or public_path(path) not in self.places:
            self.add(path, *parts, code=error.code)

    @property
    def places(self) -> set[InputPath]:
        """The places of the problems, with fields named as in the client's input."""
        return {public_path(each.path) for each in self.found}

    def stop(self) -> None:
        """Raises WriteRefused if there are problems."""
        if self.found:
            raise WriteRefused(self.found)

    def at(self, where: InputPath) -> RefusalsAt:
        return RefusalsAt(where, self)


class RefusalsAt(NamedTuple):
    """The place in the input that a write's new problems concern."""

    where: InputPath
    all: Refusals


class ItemMaker:
    """Makes the items of one record type."""

    def __init__(self, graph: Graph, record: RecordType) -> None:
        self._graph = graph
        self.record = record
        self._rules = WriteRules(graph.table)
        self._key_names = frozenset(key.name for key in graph.table.key_attributes())
        names = {field.attribute[0] for field in record.fields.values()}
        names |= {path[0] for end in record.ends.values() for path in end.attributes.values()}
        record_names = (*record.fields, *record.ends)
        self._input_names = {name: self._find_input_name(name) for name in record_names}
        self.shared = SharedAttributes(record)
        self._paths = self.shared.paths
        every_path = Counter(path for paths in self._paths.values() for path in paths)
        self._own_paths = {path for path, count in every_path.items() if count == 1 and len(path) == 1}
        """The attributes that hold a single field."""
        self._encoders = {
            name: encoder_of(field, record.list_ends.get(name)) for name, field in record.fields.items()
        }
        writers = {name: field_writer(field, self._encoders[name]) for name, field in record.fields.items()}
        writers |= {name: end_writer(end) for name, end in record.ends.items()}
        self._writers = {
            name: [(path, path in self._own_paths, encoded) for path, encoded in several]
            for name, several in writers.items()
        }
        """The attributes that store a field or an end: whether they hold it alone, and the functions for their values."""
        copied = {field.name for field in record.fields.values() if field.kept == "copy"}
        # DynamoDB stores no empty set: the default of an absent attribute is one.
        own = [field for field in record.fields.values() if field.has_default]
        absent = {field.name for field in own if field.type.kind == "set" and not field.default}
        self._required = [
            name for name in record_names if not self.is_optional(name) and name not in copied | absent
        ]
        self._defaults = {field.name: field.default for field in own if field.name not in absent}
        self._type: Item = graph.type_values.written(record)
        self.counted = [field for field in record.fields.values() if field.kept in COUNTED]
        """What is computed over lists: new records have empty ones."""
        self._readers = [
            (slot, self._end_text(slot), self._reader(slot))
            for slot in record.slots.values()
            if not slot.is_shard
        ]
        """The functions for the text of each slot: from the identity of the node at an end, and from the attributes."""
        self._in_key = [name for name in record.keyed_names if self._is_in_key(name)]
        self._identity = [slot.name for slot in record.identity]
        self.own_keys = self._key_names - names
        """The attributes that are only keys for this type."""

    def _is_in_key(self, name: str) -> bool:
        """Returns whether an attribute is left out if a key holds the same value."""
        expiry = self.record.expiry
        if expiry is not None and expiry.name == name:
            return False  # DynamoDB's TTL is an attribute
        if not self._graph.store_key_fields:
            return True
        field, end = self.record.fields.get(name), self.record.ends.get(name)
        stored = end.stored if end is not None else None
        return field.in_key if field is not None else stored is not None and stored.in_key

    # --- Attributes -------------------------------------------------------------------------------------

    def attributes(self, values: Mapping[str, Any], at: RefusalsAt) -> Item:
        """Returns the attributes of a whole record, with defaults for missing values."""
        item: Item = {}
        given = {**self._defaults, **values} if self._defaults else values
        there = {name: given[name] for name in self._input_names if given.get(name) is not None}
        self.place(item, there, at)
        for field in self.counted:
            if not field.is_kept_later:
                put_at_path(item, field.kept_attribute, as_stored(field, combined(field, ()), {}))
        for name in self._required:
            # Fields stored in one attribute need only one value.
            if name not in there and all(at_path(item, path) is None for path in self._paths[name]):
                self.refuse(name, at, f" of {self.record.name} is missing.")
        # Another value of a field that is stored there is refused by its rule.
        for name, value in self._type.items():
            item.setdefault(name, value)
        return item

    def input_name(self, name: str) -> FieldName:
        return self._input_names.get(name) or FieldName(name)

    def _find_input_name(self, name: str) -> FieldName:
        end = self.record.ends.get(name)
        if end is not None and len(end.identity) == 1:
            return FieldName(self.record.leaf_name((name, *end.identity[0].path)))
        return FieldName(name if end is not None else self.record.fields[name].input_name)

    def is_optional(self, name: str) -> bool:
        """Returns whether a field or an end may be missing."""
        field = self.record.fields.get(name)
        return self.record.ends[name].optional if field is None else field.optional

    def paths(self, names: Iterable[str]) -> list[Path]:
        """Returns the attributes of fields and ends."""
        return [*dict.fromkeys(path for name in names for path in self._paths[name])]

    def place(self, item: Item, values: Mapping[str, Any], at: RefusalsAt) -> None:
        """Puts the values of fields into their attributes, and the key fields of the nodes at ends into theirs."""
        for name, value in values.items():
            try:
                for path, is_own, encoded in self._writers[name]:
                    stored = encoded(value)
                    if is_own and stored is not None:
                        item[path[0]] = stored
                    elif stored is not None:
                        self._put(item, path, stored, name, at)
            except _UNFIT as error:
                self.refuse(name, at, f" cannot be stored: it is {error}.")

    def encoded(self, name: str, value: Any, at: RefusalsAt) -> Value:
        """Returns the value of a field as it is stored; None if it cannot be stored."""
        try:
            return self._encoders[name](value)
        except _UNFIT as error:
            self.refuse(name, at, f" cannot be stored: it is {error}.")
            return None

    def refuse(self, name: str, at: RefusalsAt, *problem: str) -> None:
        """Refuses the value of a field or end, at its place in the input. `problem` follows its name."""
        field_name = self.input_name(name)
        at.all.add((*at.where, field_name), field_name, *problem)

    def _put(self, item: Item, path: Path, value: Value, name: str, at: RefusalsAt) -> None:
        """Puts a value where another field may have put one."""
        there = at_path(item, path)
        if there is not None and there != value:
            self.refuse_other(name, at)
        put_at_path(item, path, value)

    def refuse_other(self, name: str, at: RefusalsAt) -> None:
        """Refuses the value of a field or end that is stored in one attribute with another value."""
        self.refuse(name, at, " differs from another value that is stored in the same attribute")

    # --- Keys -------------------------------------------------------------------------------------------

    def with_keys(
        self,
        item: Item,
        at: RefusalsAt,
        given: Mapping[str, Any] = _NOTHING,
        replaced: Replaced | None = None,
    ) -> tuple[Item, Texts]:
        """Returns the item with all its keys, and the texts that identify it; no keys if there are problems.

        `given` are values that the item was made from; they are not read from it again. What only index keys of a
        replaced item hold stays in them.
        """
        texts = self._texts(item, given, at, replaced)
        if replaced is None or at.all.found:
            return self.with_rendered(item, texts, at)
        held = self._held_in_indexes(replaced)
        texts |= {name: text for name, text in held.items() if texts.get(name) is None}
        others = self.own_keys - self.record.key_attributes
        kept = {name: replaced.item[name] for name in others & replaced.item.keys()}
        return self.with_rendered(item | kept, texts, at, replaced)

    def _held_in_indexes(self, replaced: Replaced) -> dict[str, str]:
        """Returns the texts of slots, except changing ones, in the index keys of a stored item."""
        found: dict[str, str] = {}
        for key, template in (
            part for keys in self.record.keys.values() if keys.index for part in keys.parts
        ):
            texts = template.parse(key.text(replaced.item.get(key.name)) or "") or {}
            staying = (slot.name for slot in template.slots if not self._follows(slot, replaced.names))
            found |= {name: texts[name] for name in staying if texts.get(name) and name not in found}
        return found

    def with_rendered(
        self, item: Item, texts: Mapping[str, str | None], at: RefusalsAt, replaced: Replaced | None = None
    ) -> tuple[Item, Texts]:
        """Returns the item with the keys that these texts give, by slot, and the texts that identify it."""
        identity = tuple([texts.get(name) or "" for name in self._identity])
        made = item.copy()
        if at.all.found:
            # Values missing here would be reported a second time.
            return made, identity
        has_absent = "" in texts.values()
        for keys, parts in self._key_parts:
            own, is_index = texts, keys.index is not None
            if has_absent and not is_index:
                own = {name: text or None for name, text in texts.items()}
            if keys.shards:
                own = {**own, **keys.shard_of(identity)}
            rendered = [render(own) for _, render, _ in parts]
            if is_index and not all(rendered):
                made |= self._halves(keys, own, at, replaced)
                continue
            for number, (name, _, most) in enumerate(parts):
                text = rendered[number]
                if text and len(text) <= most and text.isascii():
                    made[name] = text
                else:
                    made |= self._key_attribute(keys, number, text, own, at)
            if not is_index and self._may_collide and not at.all.found:
                try:
                    self._graph.refuse_collisions(self.record, own, [text or "" for text in rendered])
                except BadUserInput as error:
                    at.all.take(at.where, error)
        return self._without_keyed(made) if self._in_key else made, identity

    def _halves(
        self, keys: Keys, texts: Mapping[str, str | None], at: RefusalsAt, replaced: Replaced | None
    ) -> Item:
        """Returns the keys of an index that the item has although fields do not make both: stored ones that do not
        change, and those beside one, or with a value that nothing else holds.

        Refuses to change a stored key that has another, unknown value.
        """
        found: Item = {}
        made: dict[int, str] = {}
        changed = frozenset[str]() if replaced is None else replaced.names
        if replaced is not None and not any(self._follows(slot, changed) for slot in keys.slots):
            return {name: replaced.item[name] for name in keys.names & replaced.item.keys()}
        for number, (key, template) in enumerate(keys.parts):
            text, slots = template.render(texts), [slot for slot in template.slots if not slot.is_shard]
            there = None if replaced is None else replaced.item.get(key.name)
            changing = [slot for slot in slots if self._follows(slot, changed)]
            unknown = [slot for slot in slots if not texts.get(slot.name) and slot.name not in keys.optional]
            if text:
                made[number] = text
            elif there is not None and not changing:
                found[key.name] = there
            elif there is not None and unknown and not any(slot in changing for slot in unknown):
                names = " and ".join(self.input_name(slot.path[0]) for slot in unknown)
                problem = f" of {self.record.name} cannot be changed: "
                unmatched = f"{key.name} of the item does not match {template}, and {names} is unknown."
                if any(restricted_name(self.record, slot.path[0]) for slot in unknown):
                    unmatched = _UNFIT_KEYS
                self.refuse(changing[0].path[0], at, problem, unmatched)
        if not found:
            made = {
                number: text
                for number, text in made.items()
                if any(self._is_held(slot, replaced) for slot in keys.templates[number].slots)
            }
        for number, text in made.items():
            found |= self._key_attribute(keys, number, text, texts, at)
        return found

    def _is_held(self, slot: Slot, replaced: Replaced | None) -> bool:
        """Returns whether no attribute of an item, nor the table's key, holds the value of a slot."""
        is_in_table_key = self.record.source(slot, self.record.identity) is not None
        if slot.is_shard or is_in_table_key or slot.path[0] in self._in_key:
            return slot.path[0] in self._in_key and not is_in_table_key
        if replaced is None or self._follows(slot, replaced.names):
            return False
        attribute = self.record.attribute_of(slot.path)
        return attribute is not None and at_path(self.record.current(replaced.item), attribute) is None

    def _without_keyed(self, item: Item) -> Item:
        """Returns the item without the attributes whose values its keys hold too."""
        for name in self._in_key:
            paths = {path[0] for path in self.paths([name])}
            without = {key: value for key, value in item.items() if key not in paths}
            if self._value(without, name) == self._value(item, name):
                item = without
        return item

    def _value(self, item: Item, name: str) -> object:
        """Returns the value of a field or an end, as it is read."""
        end = self.record.ends.get(name)
        try:
            if end is not None:
                return self.record.end_identity(item, end)
            return self.record.reader(self.record.fields[name])(item)
        except KeygraphError as error:
            return without_frames(error)

    @cached_property
    def _key_parts(self) -> list[tuple[Keys, list[_KeyPart]]]:
        """Each key of the type, and for its parts the attribute, the function for the text, and up to which length ASCII
        text is its value without a check. That makes an edge's keys in 3.1 µs instead of 5.5. Computed with the first key,
        when all types of the graph are known."""
        return [(keys, self._parts_of(keys)) for keys in self.record.keys.values()]

    @cached_property
    def _may_collide(self) -> bool:
        return self._graph.may_collide(self.record)

    def _parts_of(self, keys: Keys) -> list[_KeyPart]:
        pairs = zip(keys.parts, self._graph.plain_lengths(keys), strict=False)
        return [(key.name, each.render, most if key.type == "S" else 0) for (key, each), most in pairs]

    def _key_attribute(
        self, keys: Keys, number: int, text: str | None, texts: Mapping[str, str | None], at: RefusalsAt
    ) -> Item:
        """Returns the attribute of the partition key (0) or the sort key (1) after checking its text."""
        try:
            text = self._graph.checked_key(self.record, keys, number, texts, text)
        except BadUserInput as error:
            slots = keys.templates[number].slots
            names = [self.input_name(slot.path[0]) for slot in slots if not slot.is_shard]
            at.all.take((*at.where, *names[:1]), error)
        attribute = keys.attributes[number]
        return {attribute.name: attribute.value(text or "")}

    def texts_after(self, identity: Texts, item: Item, changed: Iterable[str]) -> dict[str, str | None]:
        """Returns the texts of the table key after these fields and ends have changed. Raises KeygraphError for a text
        that the item does not determine."""
        names, texts = frozenset(changed), dict[str, str | None]()
        for slot, text in zip(self.record.identity, identity, strict=True):
            texts[slot.name] = self._reader(slot)(item) if self._follows(slot, names) else text
        return texts

    def _texts(
        self, item: Item, given: Mapping[str, Any], at: RefusalsAt, replaced: Replaced | None
    ) -> dict[str, str | None]:
        """Returns the texts, by slot, that the attributes of an item give to its keys; no shards. An empty text that
        was already stored is an absent part."""
        texts: dict[str, str | None] = {}
        for slot, text_of_end, read in self._readers:
            if at.all.found and slot.computed:
                continue  # what it needs may be missing
            try:
                identity = None if text_of_end is None else given.get(slot.path[0])
                texts[slot.name] = (
                    read(item) if identity is None or text_of_end is None else text_of_end(identity)
                )
            except KeygraphError as error:
                name = slot.path[0]
                path = self.record.attribute_of(slot.path)
                is_stored = replaced is not None and name not in replaced.names
                if is_stored and path is not None and at_path(item, path) == "":
                    continue
                if replaced is not None and self._lacks_number(slot, item):
                    continue
                if is_stored and restricted_name(self.record, name):
                    at.all.add(at.where, f"{self.record.name}: {_UNFIT_KEYS}", code=error.code)
                else:
                    at.all.take((*at.where, self.input_name(name)), error)
        return texts

    def _lacks_number(self, slot: Slot, item: Item) -> bool:
        """Returns whether a text depends on a count or sum that an item does not have, so that no value can be given."""
        needed = (field for field in self.counted if self._follows(slot, frozenset((field.name,))))
        return any(at_path(item, field.kept_attribute) is None for field in needed)

    def _end_text(self, slot: Slot) -> Callable[[Texts], str | None] | None:
        """Returns a function that makes a slot's text from the identity of the node at its end; None without an end."""
        end = self.record.ends.get(slot.path[0])
        return None if end is None else end_text(end, slot)

    def _reader(self, slot: Slot) -> Callable[[Item], str | None]:
        """Returns a function that makes a slot's text from an item. It raises KeygraphError for an invalid text."""
        record, name, text_of = self.record, slot.path[0], self._graph.given_text
        end, text_of_end = record.ends.get(name), self._end_text(slot)
        if end is not None and text_of_end is not None:

            def of_end(item: Item) -> str | None:
                identity = record.end_identity(item, end)
                return None if identity is None else text_of_end(identity)

            return of_end
        if slot.computed:

            def of_method(item: Item) -> str | None:
                made = value_of_method(record, name, item)
                return made if isinstance(made, str) and made else None

            return of_method
        read, attribute = record.reader(record.fields[name]), record.fields[name].attribute
        is_copied, is_optional = record.fields[name].kept == "copy", attribute in record.empty_is_missing

        def of_field(item: Item) -> str | None:
            if is_copied and at_path(item, attribute) is None:
                return None  # the node is not known yet
            value = "" if is_optional and at_path(item, attribute) == "" else read(item)
            return None if value is None else text_of(record, slot, value)

        return of_field

    def check_texts(self, item: Item, names: Iterable[str], at: RefusalsAt) -> None:
        """Refuses values of these fields, in the attributes of an item, that no key can have."""
        for slot, _, read in self._readers:
            if slot.path[0] in names and slot.path[0] in self.record.fields:
                try:
                    read(item)
                except KeygraphError as error:
                    at.all.take((*at.where, self.input_name(slot.path[0])), error)

    # --- Sizes ------------------------------------------------------------------------------------------

    def check(
        self, item: Item, given: Iterable[str], request: WriteRequest, refusals: Refusals
    ) -> int | None:
        """Returns the size of an item. Refuses one that DynamoDB would refuse; if it is too large, at the largest of
        the given fields and ends."""
        if refusals.found:
            return None
        try:
            size = self._rules.check(item)
            if self._may_be_of_another and self._graph.recognise(item) is not self.record:
                refusals.add(request.where, f"That would be no {self.record.name}.")
            return size
        except ItemTooLarge as error:
            largest = max(given, key=lambda name: self._size(item, name), default=None)
            at = place_of(request, largest)
            at = at if largest is None else (*at, self.input_name(largest))
            refusals.add(at, *error.parts, code=error.code)
        except BadUserInput as error:
            refusals.take(request.where, error)
        return None

    @cached_property
    def _may_be_of_another(self) -> bool:
        """Whether the keys in indexes make an item one of another type with the same key; the rules know of its fields."""
        types = self._graph.type_values
        return types.share_keys(self.record) and not self.own_keys.isdisjoint(types.attributes)

    def _size(self, item: Item, name: str) -> int:
        values = [at_path(item, path) for path in self.paths([name])]
        return sum(value_size(cast(Value, value)) for value in values if value is not None)

    # --- Changes ----------------------------------------------------------------------------------------

    def without_own_keys(self, item: Item) -> Item:
        """Returns the attributes of a stored item without its keys, including values that only keys hold."""
        whole = self.record.completed(item)
        return {
            name: value for name, value in whole.items() if name not in self.own_keys or name in self._type
        }

    def keys_that_follow(self, names: Iterable[str]) -> list[Keys]:
        """Returns the keys that hold one of these fields or ends, or are computed from one."""
        changed = frozenset(names)
        return [
            keys
            for keys in self.record.keys.values()
            if any(self._follows(slot, changed) for slot in keys.slots)
        ]

    def _follows(self, slot: Slot, changed: frozenset[str]) -> bool:
        """Returns whether the text of a slot depends on one of these fields and ends."""
        return not changed.isdisjoint(self.record.needs_of(slot))

    def sources(self, keys: Iterable[Keys]) -> set[str]:
        """Returns the fields and ends that these keys are made from."""
        slots = (slot for each in keys for slot in each.slots if not slot.is_shard)
        return {name for slot in slots for name in self.record.needs_of(slot)}


def differences(before: Item, after: Item, names: Iterable[str]) -> list[AttributeChange]:
    """Returns the changes that turn the attributes of one item into those of the other."""
    return [
        SetTo((name,), after[name]) if name in after else Remove((name,))
        for name in sorted(names)
        if name in before.keys() ^ after.keys() or before.get(name) != after.get(name)
    ]


def end_text(end: End, slot: Slot) -> Callable[[Texts], str | None]:
    """Returns a function that makes the text of a key's slot from the identity of the node at an end."""
    found = [(number, own) for number, own in enumerate(end.identity) if own.path == slot.path[1:]]
    same = next((number for number, own in found if own.text == slot.text), None)
    if same is not None:
        return lambda identity: identity[same] or None
    others = [(number, own) for number, own in found if not own.lossy]

    def rewritten(identity: Texts) -> str | None:
        texts = (own.rewritten(identity[number], slot) for number, own in others if identity[number])
        return next(texts, None) or None

    return rewritten
