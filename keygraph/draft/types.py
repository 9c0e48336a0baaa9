"""Turns kinds of items into record types: decides which are nodes and which join two nodes, and finds the parts of
their keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from keygraph.draft import fields
from keygraph.draft.keys import MAIN, KeyReader, VaryingPart, common_pattern, is_word, texts_in
from keygraph.draft.kinds import (
    Column,
    ItemKind,
    Kinds,
    Part,
    Texts,
    columns_of,
    parts_of,
    rows_of,
    signature_of,
    words_of,
)
from keygraph.draft.names import ScopeNames, field_name, is_generic, is_id, type_name, without_id
from keygraph.draft.parts import SHARD_PLACEHOLDER, DraftType, IndexCall, TemplatePart
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import KeyAttribute
from keygraph.keys.template import Reference
from keygraph.names import snake, words

_ENDINGS = {"date": "date", "datetime": "time"}
_MOST_KINDS = 60
_MOST_SHARDS = 200


class Drafter:
    """Makes the types of a sample: `types`, nodes first."""

    def __init__(self, kinds: Kinds) -> None:
        self.table = kinds.table
        self._kinds = kinds
        self.nodes: list[DraftType] = []
        self.others: list[DraftType] = []
        self._names = ScopeNames("")
        self._not_fields = _not_fields(kinds)
        found = sorted(kinds.found, key=lambda kind: -len(kind.items))[:_MOST_KINDS]
        found.sort(key=lambda kind: kinds.found.index(kind))
        of_nodes, of_others = _split(found)
        for kind in of_nodes:
            self._add_node(kind)
        for kind in of_others:
            if not kind.partition_columns or _node_there(self.nodes, kind.partition) is not None:
                continue
            if self._node_behind(kind) is None:
                # The sample has no item of the partition's node.
                ends = [n for n, part in enumerate(kind.partition, 1) if part in kind.partition_columns]
                self._virtual(kind.partition[: ends[-1]], 0)
        for kind in of_others:
            self.others.append(self._other(kind))
        for type_ in self.types:
            if not type_.is_virtual:
                self._add_attributes(type_, kinds.reader)
        self.slashed_dates = fields.settle_dates(self.types)

    @property
    def types(self) -> list[DraftType]:
        return [*self.nodes, *self.others]

    def _add_attributes(self, type_: DraftType, reader: KeyReader) -> None:
        """Adds what is not in the table's key: ends, keys in each index that holds items of the type, and fields."""
        fields.add_end_attributes(type_, self.nodes)
        done = {key.name for key in self.table.keys}
        for index in self.table.indexes:
            _IndexKeys(IndexCall(index), reader, type_, self.nodes, done).add()
        fields.add_fields(type_)
        if len(type_.items) == 1:
            type_.doubts.append("the sample has only one item of it")
        if type_.shards is not None:
            type_.doubts.append(f"{type_.shards} shards, if the sample has the last one")

    # --- Nodes ----------------------------------------------------------------------------------------

    def _add_node(self, kind: ItemKind) -> None:
        name = self._names.take(type_name(self._node_word(kind)))
        node = DraftType(name, "node", kind, type_value=kind.type_value, used=set(self._not_fields))
        node.names.take("id")
        node.partition = self._written(node, kind.partition, 0)
        node.sort = () if kind.has_equal_keys else self._written(node, kind.sort, 1)
        node.ids = rows_of(kind.partition_columns)
        self.nodes.append(node)

    def _node_word(self, kind: ItemKind) -> str:
        if kind.type_word:
            return kind.type_word
        own = [word for word in words_of(kind.sort) if word.lower() not in MAIN]
        found = words_of(kind.partition) or self._named_ids(kind) or own or self._index_words(kind)
        return (found or [self._plain_word(0, is_node=True)])[-1]

    def _named_ids(self, kind: ItemKind) -> list[str]:
        """Returns the name of the attribute that also holds the only varying part of the partition key, if it is an id."""
        keys, columns = {key.name for key in self.table.keys}, kind.partition_columns
        found = [
            without_id(name)
            for name in kind.items[0].keys() - keys
            if len(columns) == 1 and is_id(name) and not is_generic(name)
            if all(item.get(name) == text for item, text in zip(kind.items, columns[0].texts, strict=True))
        ]
        return sorted(filter(None, found))[:1]

    def _index_words(self, kind: ItemKind) -> list[str]:
        """Returns the first words of the kind's keys in indexes that no partition key of the table begins with."""
        taken = {word for other in self._kinds.found for word in words_of(other.partition)}
        found = dict.fromkeys(
            word
            for index in self.table.indexes
            for key in reversed(index.keys)
            for item in kind.items
            if (reading := self._kinds.reader.read(key, item)) is not None
            for word in words_of(part for part in reading.pattern[:1] if isinstance(part, str))
        )
        return [word for word in found if word not in taken][:1]

    def _plain_word(self, number: int, *, is_node: bool = False) -> str:
        """Returns a name for a key without words: from the name of its attribute, or of the table."""
        name = self.table.keys[number].name
        if not is_generic(name) and without_id(name):
            return without_id(name)
        whole = self.table.name
        word = (words(whole) or [""])[-1]
        if is_node and re.search("[a-z]s$", word) and not word.endswith("ss"):
            return re.sub("s$", "", re.sub("ies$", "ys", word))
        return "item" if is_node or number or self.table.sort is None else "owner"

    def _virtual(self, parts: Sequence[Part], number: int) -> DraftType:
        signature, ids = signature_of(parts), rows_of(parts)
        for node in self.nodes:
            if node.is_virtual and node.signature == signature:
                node.ids |= ids
                return node
        name = self._names.take(type_name((words_of(parts) or [self._plain_word(number)])[-1]))
        node = DraftType(name, "node", None, ids=ids)
        node.names.take("id")
        key = self.table.keys[number]
        node.partition = _template(
            node, parts, lambda column, word: fields.field_for(node, column, f"{word or name}_id", key)
        )
        node.doubts.append("the sample has no item for it")
        self.nodes.append(node)
        return node

    # --- Edges and records ----------------------------------------------------------------------------

    def _other(self, kind: ItemKind) -> DraftType:
        owner = _node_there(self.nodes, kind.partition)
        type_ = DraftType("", "record", kind, type_value=kind.type_value, used=set(self._not_fields))
        type_.partition = self._written(type_, kind.partition, 0, owner)
        type_.sort = self._written(type_, kind.sort, 1)
        targets = {part.path[0] for part in (*type_.partition, *type_.sort) if isinstance(part, Reference)}
        if len(targets & type_.ends.keys()) == 2:
            type_.kind = "edge"
        wording = self._other_words(kind, type_, owner)
        type_.name = self._names.take(*map(type_name, filter(None, [kind.type_word, wording])))
        return type_

    def _other_words(self, kind: ItemKind, type_: DraftType, owner: DraftType | None) -> str:
        """Returns a name for the type: its owner, the words of its sort key, and the node at the far end."""
        targets = [end.target.name for end in type_.ends.values()]
        behind_owner = kind.partition[len(owner.signature) if owner else 0 :] if targets else ()
        own = [*words_of(behind_owner), *words_of(kind.sort)]
        named = [word for word in own if type_name(word) not in targets]
        is_named = named and named[-1:] == [word for word in named if field_name(word, "") in type_.ends][-1:]
        far = targets[1:2] if type_.kind == "edge" and not is_named else []
        return "_".join([*targets[:1], *(named + far or ["item"])])

    # --- Templates ------------------------------------------------------------------------------------

    def _written(
        self, type_: DraftType, parts: Sequence[Part], number: int, owner: DraftType | None = None
    ) -> tuple[TemplatePart, ...]:
        """Returns the template of a key, which may begin with its owner. Adds the fields and ends it needs."""

        def node_at(at: int) -> DraftType | None:
            if number == 1 and type_.kind != "node":
                return self._node_at(type_, parts, at)
            return owner if at == 0 else None

        return _template(
            type_,
            parts,
            lambda column, word: self._placeholder(type_, column, word, number, is_whole=len(parts) == 1),
            node_at,
            lambda node, whole, word: (self._end(type_, node, whole, word),),
        )

    def _placeholder(
        self, type_: DraftType, column: Column, word: str, number: int, *, is_whole: bool
    ) -> Reference:
        """Returns the placeholder of a column: a shard, a value already in the key, a node's id, or else a field."""
        if column.shard:
            return _shard_of(type_, column)
        known = _known(type_, column) if number == 1 and column.is_certain else None
        if known is not None:
            return type_.placeholder(known)
        target = None
        if type_.kind != "node":
            behind = self._node_behind(type_.source) if number == 0 and type_.source is not None else None
            target = self._node_of_values(type_, column, word) if number == 1 else behind
        if target is not None:
            made = self._end(type_, target, (column,), word if number == 1 else "")
            return Reference((made.path[0], target.key_paths[0]))
        key = self.table.keys[number]
        is_named = not is_generic(key.name)
        if word and fields.are_emails(column.given):
            wanted = word
        elif word:
            wanted = f"{word}_{_ENDINGS.get(fields.text_annotation(column.given), 'id')}"
        elif is_whole and is_named and type_.kind != "node":
            wanted = key.name
        elif type_.kind == "node" and (is_whole or number == 0):
            wanted = key.name if is_whole and is_named and is_id(key.name) else f"{type_.name}_id"
        else:
            wanted = "label" if all(map(is_word, column.given)) else f"{'sort' if number else 'key'}_part"
        made = fields.field_for(type_, column, wanted, key, identifies=type_.kind == "node")
        return replace(made, optional=None in column.texts)

    def _end(self, type_: DraftType, node: DraftType, parts: Sequence[Part], word: str) -> Reference:
        """Adds an end to the type and returns the placeholder of the whole node."""
        is_verb = len(parts) == 1 and type_name(word) != node.name
        name = fields.add_end(type_, node, columns_of(parts), word if is_verb else "")
        if not node.is_virtual and not node.ids & rows_of(parts):
            type_.ends[name].doubts.append(f"the sample has no {node.name} with these ids")
        return Reference((name,))

    def _node_at(self, type_: DraftType, parts: Sequence[Part], at: int) -> DraftType | None:
        """Returns the node whose whole key starts at this part of a sort key; adds the node if it is missing."""
        if not isinstance(parts[at], str):
            return None
        node = _node_there(self.nodes, parts, at, partial(fields.can_be_end, type_))
        match parts[at:]:
            case [str() as word, _, Column(shard=False) as column] if node is None and is_word(word):
                return (
                    self._virtual(parts[at:], 1) if self._is_nodes(type_, parts[:at], word, column) else None
                )
        return node

    def _is_nodes(self, type_: DraftType, before: Sequence[Part], word: str, column: Column) -> bool:
        """Returns whether a word and a value are the key of a node without an item: they are the partition of an index,
        or another word precedes them."""
        attribute = fields.same_attribute(type_, column.texts)[0]
        is_text = attribute is None or isinstance(type_.items[0].get(attribute), str)
        if not is_text or fields.text_annotation(column.given) != "str" or fields.are_emails(column.given):
            return False
        if self._node_of_values(type_, column, word) is not None:
            return False
        sort = self.table.keys[1].name
        partitions = {index.partition for index in self.table.indexes}.difference(self.table.keys)
        return bool(words_of(before)) or any(
            all(item.get(key.name) == item.get(sort) for item in type_.items) for key in partitions
        )

    def _node_behind(self, kind: ItemKind) -> DraftType | None:
        """Returns the node whose ids stand behind another word in the partition keys: the user of `like/ada`."""
        columns = kind.partition_columns
        if len(columns) != 1 or not words_of(kind.partition) or _node_there(self.nodes, kind.partition):
            return None
        given = set(columns[0].given)
        if fields.may_coincide(given) or fields.are_emails(given):
            return None
        fitting = [
            node
            for node in self.nodes
            if node.is_known_by_partition and not node.is_virtual and given <= node.single_ids
        ]
        return fitting[0] if len(fitting) == 1 else None

    def _node_of_values(self, type_: DraftType, column: Column, word: str) -> DraftType | None:
        """Returns the node that has all or most of these values as its ids."""
        given = set(column.given)
        if fields.are_emails(given):
            return None
        best: dict[tuple[bool, float], DraftType] = {}
        attribute = fields.same_attribute(type_, column.texts)[0]
        for node in self.nodes:
            share = len(given & node.single_ids) / len(given)
            is_named = type_name(word) == node.name or (
                attribute is not None and is_id(attribute) and type_name(without_id(attribute)) == node.name
            )
            is_certain = is_named or not fields.may_coincide(given)
            if node.is_known_by_partition and is_certain and share > 0.5:
                best.setdefault((is_named, share), node)
        return best[max(best)] if best else None


def _split(found: Sequence[ItemKind]) -> tuple[list[ItemKind], list[ItemKind]]:
    """Returns the kinds that are items of nodes, and the others."""
    groups: dict[object, list[ItemKind]] = {}
    for kind in found:
        # If the partition key is always the same, no other item belongs to the same node.
        is_alone = not kind.partition_columns
        if is_alone and all(column.shard for column in columns_of(kind.sort)):
            continue
        if is_alone or not kind.own_columns:
            groups.setdefault(kind if is_alone else signature_of(kind.partition), []).append(kind)
    chosen: list[ItemKind] = []
    for group in groups.values():
        ranked = sorted(
            group, key=lambda kind: (not kind.has_equal_keys, not _is_main(kind), -len(kind.items))
        )
        taken: set[tuple[str, ...]] = set()
        for kind in ranked:
            ids = rows_of(kind.partition)
            is_small = len(kind.items) < 3 and len(taken) < 2 and bool(words_of(kind.partition))
            if not taken or (not ids & taken and not is_small):
                chosen.append(kind)
                taken |= ids or {("",)}
    return [kind for kind in found if kind in chosen], [kind for kind in found if kind not in chosen]


def _not_fields(kinds: Kinds) -> set[str]:
    """Returns the attributes that are never fields: keys with generic names, and the type attribute."""
    keys = {key.name for key in kinds.table.keys}
    keys |= {key.name for key in kinds.table.key_attributes() if is_generic(key.name)}
    return keys | ({kinds.type_attribute} if kinds.type_attribute else set())


def _is_main(kind: ItemKind) -> bool:
    sort_words = {word.lower() for word in words_of(kind.sort)}
    named = {part.lower() for part in kind.partition if isinstance(part, str)}
    return bool(sort_words) and sort_words <= MAIN | named


# --- Templates ----------------------------------------------------------------------------------------


def _template(
    type_: DraftType,
    parts: Sequence[Part],
    placeholder: Callable[[Column, str], Reference],
    node_at: Callable[[int], DraftType | None] = lambda at: None,
    end: Callable[[DraftType, Sequence[Part], str], tuple[TemplatePart, ...]] = lambda *_: (),
) -> tuple[TemplatePart, ...]:
    """Returns the template of a key. `end` writes whole nodes, `placeholder` other columns, given the word before."""
    made: list[TemplatePart] = []
    word, at = "", 0
    while at < len(parts):
        part, node = parts[at], node_at(at)
        if node is not None:
            size = len(node.signature)
            made += end(node, parts[at : at + size], word)
            at, word = at + size, ""
            continue
        at += 1
        if isinstance(part, str):
            word = part if is_word(part) else word
            made.append(part)
        else:
            known = len(type_.texts)
            made.append(placeholder(part, word))
            # The word has named the new field or end.
            word = word if len(type_.texts) == known else ""
    return tuple(made)


def _node_there(
    nodes: Iterable[DraftType],
    parts: Sequence[Part],
    at: int = 0,
    can_be: Callable[[DraftType, Sequence[Part]], bool] = lambda node, whole: True,
) -> DraftType | None:
    """Returns the node whose whole partition key is at this place; if several fit, the one with these ids."""
    fitting: dict[tuple[int, int, bool], DraftType] = {}
    for node in nodes:
        whole = parts[at : at + len(node.signature)]
        if node.stands_at(signature_of(parts), at) and can_be(node, whole):
            fitting.setdefault((len(whole), len(node.ids & rows_of(whole)), not node.is_virtual), node)
    return fitting[max(fitting)] if fitting else None


def _shard_of(keyed: DraftType | IndexCall, column: Column) -> Reference:
    """Returns the placeholder of a shard's number, and updates the number of shards in the type or index call."""
    keyed.shards = max(keyed.shards or 1, *(int(text) + 1 for text in column.given))
    return SHARD_PLACEHOLDER


def _known(type_: DraftType, column: Column) -> tuple[str, ...] | None:
    """Returns the field, or the key field of an end, with the same value in all items that have the key."""
    fitting = [path for path, texts in type_.texts.items() if column.equals(texts)]
    return min(fitting, key=len, default=None)


# --- Keys in indexes ----------------------------------------------------------------------------------


@dataclass
class _IndexKeys:
    """The keys of one type in one index."""

    _call: IndexCall
    _reader: KeyReader
    _type: DraftType
    _nodes: Sequence[DraftType]
    _done: set[str]
    """The key attributes that already have a template or are a field."""

    def add(self) -> None:
        type_, call, index = self._type, self._call, self._call.index
        rows = [all(key.holds(item.get(key.name)) for key in index.keys) for item in type_.items]
        if not any(rows):
            return
        templates: dict[str, tuple[TemplatePart, ...]] = {}
        for key in index.keys:
            if key.name not in self._done and (template := self._template(key)) is not None:
                templates[key.name] = template
            self._done.add(key.name)
        if templates and not self._is_absent_elsewhere(templates, rows):
            # Nothing else says which items are in the index.
            name, _ = templates.popitem()
            fields.add_field(type_, name)
        call.templates += templates.values()
        if call.templates:
            type_.calls[index.name] = call
        if not all(rows):
            type_.doubts.append(f"{sum(rows)} of {len(rows)} are in the index {index.name}")
        if call.shards is not None:
            type_.doubts.append(f"{call.shards} shards in {index.name}, if the sample has the last one")

    def _is_absent_elsewhere(
        self, templates: Mapping[str, Sequence[TemplatePart]], rows: Sequence[bool]
    ) -> bool:
        """Returns whether each item that is not in the index lacks a value of one of its keys there."""
        paths = {part.path for parts in templates.values() for part in parts if isinstance(part, Reference)}
        attributes = {key.name for key in self._call.index.keys if key.name not in templates}
        in_keys: list[Texts] = []
        for path, texts in self._type.texts.items():
            if {path, path[:1]} & paths:
                stored = self._type.attributes_of(path)
                attributes.update(stored)
                in_keys += [] if stored else [texts]

        def is_absent(row: int, item: Item) -> bool:
            return not attributes <= item.keys() or any(texts[row] is None for texts in in_keys)

        return all(is_in or is_absent(row, self._type.items[row]) for row, is_in in enumerate(rows))

    # --- One key --------------------------------------------------------------------------------------

    def _template(self, key: KeyAttribute) -> tuple[TemplatePart, ...] | None:
        """Returns the template of the key attribute; None if the attribute itself is a field, which needs none."""
        type_, is_named = self._type, not is_generic(key.name)
        if key.name in type_.used and is_named:
            return None
        readings = [self._reader.read(key, item) for item in type_.items]
        patterns = {reading.pattern for reading in readings if reading is not None}
        pattern = common_pattern(patterns)
        template = None
        # An attribute with a name of its own may well be a field whose values have separators in them.
        if pattern is not None and (len(patterns) == 1 or not is_named):
            nothing = (None,) * sum(isinstance(part, VaryingPart) for part in pattern)
            parts = parts_of(pattern, [texts_in(each, pattern) if each else nothing for each in readings])
            template = self._written(key, parts, is_named=is_named)
        if template is None:
            fields.add_field(type_, key.name)
        return template

    def _written(
        self, key: KeyAttribute, parts: Sequence[Part], *, is_named: bool
    ) -> tuple[TemplatePart, ...] | None:
        """Returns the template for keys with these parts; None if they are just values."""
        type_ = self._type
        type_.used.add(key.name)
        match parts:
            case [Column() as value]:
                is_field = is_named and not self._looks_sharded(key, value)
                placed = None if is_field else self._placed(key, value)
                return None if placed is None else (placed,)

        def can_be(node: DraftType, whole: Sequence[Part]) -> bool:
            rows = rows_of(whole)
            known = _known(type_, columns_of(whole)[0]) or ("",)
            is_other = len(rows & node.ids) * 2 <= len(rows) and known[0] in type_.fields
            return not is_other and fields.can_be_end(type_, node, whole)

        def placeholder(column: Column, word: str) -> Reference:
            wanted = f"{without_id(word)}_value" if word else f"{snake(key.name)}_part"
            return self._placed(key, column) or fields.field_for(type_, column, wanted, key)

        def node_at(at: int) -> DraftType | None:
            return _node_there(self._nodes, parts, at, can_be) if isinstance(parts[at], str) else None

        return _template(type_, parts, placeholder, node_at, self._end)

    def _looks_sharded(self, key: KeyAttribute, column: Column) -> bool:
        is_small = all(
            text.isdigit() and (text == "0" or text[0] != "0") and int(text) < _MOST_SHARDS
            for text in column.given
        )
        return key.type == "S" and key == self._call.index.partition and is_small

    def _placed(self, key: KeyAttribute, column: Column) -> Reference | None:
        """Returns the placeholder of a column that is a shard or repeats another value; None for a value of its own."""
        if column.shard:
            return _shard_of(self._call, column)
        known = _known(self._type, column)
        if known is not None:
            return self._type.placeholder(known)
        attribute = fields.same_attribute(self._type, column.texts)[0]
        if attribute is not None:
            return fields.field_for(self._type, column, attribute, key)
        return _shard_of(self._call, column) if self._looks_sharded(key, column) else None

    def _end(self, node: DraftType, parts: Sequence[Part], word: str) -> tuple[TemplatePart, ...]:
        """Returns the placeholder of a node: of an end that is the same, of the type itself, or of a new end."""
        columns = columns_of(parts)

        def are_at(*end: str) -> bool:
            paths = [(*end, field) for field in node.key_paths]
            return all(
                column.equals(self._type.texts.get(path, ()))
                for path, column in zip(paths, columns, strict=True)
            )

        for name, end in self._type.ends.items():
            if end.target is node and are_at(name):
                return (Reference((name,)),)
        if node is self._type and are_at():
            return node.partition
        return (Reference((fields.add_end(self._type, node, columns, ids_only=True),)),)
