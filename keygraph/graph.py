"""The graph: a table and the record types in it, tied together and checked.

Everything that reads or serves a table begins with a `Graph` and asks it: which type is this item of, by which path
does this node reach those, what key has the node with these fields, may this text be an id at all?
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property

from keygraph.checking import graph_mistakes
from keygraph.conditions import Condition, Eq
from keygraph.errors import BadUserInput, Mistake, ModelError
from keygraph.items import Value
from keygraph.key_text import KeyText
from keygraph.names import CASES, camel
from keygraph.naming import list_name, name_mistakes
from keygraph.paths import AccessPath, best, candidates, is_listable
from keygraph.records import Keys, RecordType
from keygraph.resolution import Resolution
from keygraph.shapes import are_disjoint, is_special_case, shape
from keygraph.table import Key, Table
from keygraph.templates import Slot, Template
from keygraph.types import FieldType

_KEY_BYTES = (2048, 1024)
"""DynamoDB's limits on a partition key and a sort key."""


class Graph:
    """The record types that live in one table.

    `attribute_case` ("snake", "camel" or "pascal") says how field names are written as attributes;
    `type_attribute` names the attribute in which every item says its record type, where there is one.
    """

    def __init__(
        self,
        table: Table,
        *types: type,
        attribute_case: str = "snake",
        type_attribute: str | None = None,
    ) -> None:
        self.table = table
        self.type_attribute = type_attribute
        self._classes = types
        self._case = attribute_case

    # --- What was declared ----------------------------------------------------------------------------

    @cached_property
    def _resolution(self) -> Resolution:
        return Resolution(self.table, self._classes, self._case if self._case in CASES else "snake")

    @cached_property
    def types(self) -> Mapping[str, RecordType]:
        """The record types by name, in the order of the declaration; those without mistakes in their keys."""
        return {record.name: record for record in self._resolution.sound_types}

    @property
    def nodes(self) -> list[RecordType]:
        return [record for record in self.types.values() if record.is_node]

    @cached_property
    def list_candidates(self) -> dict[tuple[str, str], list[AccessPath]]:
        """For each list that a node declares, by owner and name, the best paths; `check` wants exactly one."""
        return {
            (record.name, declared.name): best(
                candidates(declared.name, record, declared.of, declared.options)
            )
            for record in self.types.values()
            for declared in record.lists.values()
            if declared.of.name in self.types
        }

    @cached_property
    def node_lists(self) -> dict[tuple[str, str], AccessPath]:
        """The access path of each list that a node declares, by owner and name."""
        found = {}
        for (owner, name), paths in self.list_candidates.items():
            declared = self.types[owner].lists[name]
            if len(paths) == 1:
                found[owner, name] = replace(
                    paths[0], is_one=declared.is_one, description=declared.description
                )
        return found

    def path(self, owner: RecordType, name: str) -> AccessPath:
        """The access path of a list that a node declares."""
        return self.node_lists[owner.name, name]

    @cached_property
    def root_lists(self) -> tuple[AccessPath, ...]:
        """The lists at the root."""
        return tuple(
            AccessPath(keys.lists or list_name(record), None, record, None, keys)
            for record in self.types.values()
            if not record.is_virtual
            for keys in record.keys.values()
            if keys.lists or (keys.lists is None and keys.finds is None and is_listable(record, keys))
        )

    @cached_property
    def finders(self) -> tuple[AccessPath, ...]:
        """The fields at the root that find one item by an index."""
        return tuple(
            AccessPath(keys.finds, None, record, None, keys, is_one=True)
            for record in self.types.values()
            for keys in record.keys.values()
            if keys.finds
        )

    @property
    def paths(self) -> list[AccessPath]:
        """Every access path that is offered."""
        return [*self.node_lists.values(), *self.root_lists, *self.finders]

    # --- Mistakes -------------------------------------------------------------------------------------

    def check(self) -> Graph:
        """The graph itself. Raises ModelError, with every mistake of the declaration, where it has any."""
        if self._mistakes:
            raise ModelError(self._mistakes)
        return self

    @cached_property
    def _mistakes(self) -> list[Mistake]:
        found = list(self._resolution.mistakes.found)
        if self._case not in CASES:
            found.append(
                Mistake(
                    "attribute-case",
                    "the graph",
                    f"attribute_case={self._case!r} is none.",
                    f"It is one of {', '.join(CASES)}.",
                )
            )
        return found + graph_mistakes(self) + name_mistakes(self)

    # --- Telling items apart --------------------------------------------------------------------------

    def type_value(self, record: RecordType) -> str | None:
        """What the type attribute says of the type; None where items do not say it."""
        return record.type_value if self.type_attribute else None

    @cached_property
    def types_by_value(self) -> dict[str | None, list[RecordType]]:
        """The types of which there are items, by the value of the type attribute; special keys first."""
        groups: dict[str | None, list[RecordType]] = {}
        for record in self.types.values():
            if not record.is_virtual:
                groups.setdefault(self.type_value(record), []).append(record)
        return {value: _special_first(group) for value, group in groups.items()}

    @cached_property
    def _types_by_key(self) -> list[RecordType]:
        return _special_first([record for record in self.types.values() if not record.is_virtual])

    def recognise(self, item: Mapping[str, Value], keys: Keys | None = None) -> RecordType | None:
        """The type that the item is of; None where no declared type accepts it.

        `keys` says what the item was read from, if not from the table: an index may lack the type attribute.
        """
        if (
            keys is not None
            and self.type_attribute
            and not self.table.has(keys.index_name, self.type_attribute)
        ):
            candidates = self._types_by_key
        else:
            value = item.get(self.type_attribute) if self.type_attribute else None
            if value is not None and not isinstance(value, str):
                return None
            candidates = self.types_by_value.get(value, [])
        return next((record for record in candidates if record.accepts(item)), None)

    def why_refused(self, item: Mapping[str, Value]) -> str:
        """Why no declared type accepts the item, in one line without its values."""
        for key in self.table.keys:
            if not key.holds(item.get(key.name)):
                return f"its key attribute {key.name} is missing or not of type {key.type}"
        groups = self.types_by_value
        value = item.get(self.type_attribute) if self.type_attribute else None
        group = groups.get(value) if value is None or isinstance(value, str) else None
        if group is None:
            known = ", ".join(sorted(str(value) for value in groups if value is not None))
            said = "it has no" if value is None else "no declared type has its"
            return f"{said} {self.type_attribute} (the declared ones: {known})"
        shapes = "; ".join(f"{record.name}: {record.table_keys}" for record in group)
        return f"its key fits none of the templates ({shapes})"

    # --- Keys -----------------------------------------------------------------------------------------

    def identity(self, record: RecordType, values: Mapping[str, object]) -> tuple[str, ...]:
        """The identity of a node or edge with those key fields, by argument name.

        Raises BadUserInput where they make no key that parses back to them.
        """
        texts = []
        for slot in record.identity:
            value = values[record.leaf_name(slot.path)]
            texts.append(self.text_of(record, slot, value))
        identity = tuple(texts)
        self.check_identity(record, identity)
        return identity

    def text_of(self, record: RecordType, slot: Slot, value: object) -> str:
        """The text of a value in a slot. Raises BadUserInput where it has none."""
        try:
            return slot.text.render(value)
        except (ValueError, TypeError, AttributeError, OverflowError):
            name = camel(record.leaf_name(slot.path))
            raise BadUserInput(f"{name} cannot stand in a key of {record.name}") from None

    def check_identity(self, record: RecordType, identity: Iterable[str]) -> None:
        """Raises BadUserInput where those texts make no key of the type that parses back to them."""
        texts = dict(zip((slot.name for slot in record.identity), identity, strict=True))
        keys = record.table_keys
        if keys.shards:
            texts |= {slot.name: "0" for slot in keys.slots if slot.is_shard}
        for number in range(len(keys.templates)):
            self.render(record, keys, number, texts)

    def table_keys(self, record: RecordType, identity: tuple[str, ...]) -> list[Key]:
        """The keys under which the item with that identity can stand: one, or one for each shard."""
        texts = dict(zip((slot.name for slot in record.identity), identity, strict=True))
        keys = record.table_keys
        found: list[Key] = []
        for shard in range(keys.shards or 1):
            shard_texts = {slot.name: slot.text.render(shard) for slot in keys.slots if slot.is_shard}
            parts = [template.render({**texts, **shard_texts}) for template in keys.templates]
            found.append(tuple(part for part in parts if part is not None))
        return found

    def render(self, record: RecordType, keys: Keys, number: int, texts: Mapping[str, str | None]) -> str:
        """The partition key (0) or the sort key (1) with those texts.

        Raises BadUserInput where it is empty or too long, does not parse back to the texts, or has the shape of
        another type's key there.
        """
        template = keys.templates[number]
        key = template.render(texts)
        names = ", ".join(camel(record.leaf_name(slot.path)) for slot in template.slots if not slot.is_shard)
        problem = self._problem(record, keys, number, key, texts)
        if key is None or problem is not None:
            raise BadUserInput(f"{names or 'the key'} of {record.name}: {problem}")
        return key

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
        for rival in self._rivals(record, keys, number):
            if rival.parse(key) is not None:
                return f'it would be a key of another shape, "{rival}"'
        return None

    def _rivals(self, record: RecordType, keys: Keys, number: int) -> tuple[Template, ...]:
        cached = self._rivals_found.get((record.name, keys.index_name, number))
        if cached is None:
            cached = self._find_rivals(keys, number)
            self._rivals_found[record.name, keys.index_name, number] = cached
        return cached

    @cached_property
    def _rivals_found(self) -> dict[tuple[str, str | None, int], tuple[Template, ...]]:
        return {}

    def _find_rivals(self, keys: Keys, number: int) -> tuple[Template, ...]:
        """The shapes that the key attribute has elsewhere and of which the template is no special case."""
        attribute = keys.attributes[number].name
        own, own_partition = shape(keys.templates[number]), shape(keys.partition)
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

    # --- Siblings -------------------------------------------------------------------------------------

    def siblings(self, path: AccessPath) -> tuple[RecordType, ...]:
        """The other types of which items can stand inside the range that the path reads."""
        if path not in self._siblings_found:
            self._siblings_found[path] = self._find_siblings(path)
        return self._siblings_found[path]

    @cached_property
    def _siblings_found(self) -> dict[AccessPath, tuple[RecordType, ...]]:
        return {}

    def _find_siblings(self, path: AccessPath) -> tuple[RecordType, ...]:
        partition, prefix = shape(path.keys.partition), path.prefix
        anything = Slot(("",), KeyText(FieldType("string")))
        ranges = [shape(prefix)]
        if path.rest.tokens or path.keys.sort is None:
            ranges.append(shape(Template((*prefix.tokens, anything))))
        found = []
        for other in self.types.values():
            keys = other.keys.get(path.keys.index_name)
            if other is path.record or other.is_virtual or keys is None:
                continue
            theirs = shape(keys.partition)
            # A key of a more special shape is refused as a value of this one: it is never this partition.
            is_refused = is_special_case(theirs, partition) and not is_special_case(partition, theirs)
            if is_refused or are_disjoint(theirs, partition):
                continue
            if keys.sort is None or any(not are_disjoint(shape(keys.sort), range_) for range_ in ranges):
                found.append(other)
        return tuple(found)

    def type_condition(self, path: AccessPath) -> Condition | None:
        """The filter that tells the path's items by their type attribute; None where it cannot.

        It cannot where items do not say their type, where the attribute is a key of what is read, or where the
        index does not project it.
        """
        value, attribute = self.type_value(path.record), self.type_attribute
        if value is None or attribute is None:
            return None
        if attribute in {key.name for key in path.keys.attributes} or not self.table.has(
            path.keys.index_name, attribute
        ):
            return None
        return Eq((attribute,), value)


def _special_first(records: list[RecordType]) -> list[RecordType]:
    """The types so that one whose key is a special case of another's comes before it."""
    shapes = {record.name: shape(*record.table_keys.templates) for record in records}

    def generality(record: RecordType) -> int:
        return -sum(is_special_case(shapes[record.name], other) for other in shapes.values())

    return sorted(records, key=generality)
