"""From kinds of items to record types: which are nodes, which join two of them, and what their keys hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from keygraph.draft.fields import (
    add_end,
    add_end_attributes,
    add_field,
    add_fields,
    are_emails,
    can_be_end,
    field_for,
    may_coincide,
    same_attribute,
    settle_dates,
    text_annotation,
)
from keygraph.draft.keys import (
    MAIN,
    VARYING,
    KeyReader,
    Pattern,
    VaryingPart,
    common_pattern,
    is_word,
    texts_in,
)
from keygraph.draft.kinds import Column, ItemKind, Kinds, Part, rows_of, signature_of, words_of
from keygraph.draft.names import Names, field_name, is_id, says_nothing, type_name, without_id
from keygraph.draft.parts import (
    SHARD_PLACEHOLDER,
    DraftType,
    IndexCall,
    TemplatePart,
    Texts,
)
from keygraph.dynamo.table import KeyAttribute, Table
from keygraph.keys.template import Reference
from keygraph.names import snake, words

_ENDINGS = {"date": "date", "datetime": "time"}
_MOST_KINDS = 60
_MOST_SHARDS = 200


class Drafter:
    """Makes the types of a sample: `types`, nodes first."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.table = kinds.table
        self.nodes: list[DraftType] = []
        self.others: list[DraftType] = []
        self._names = Names("")
        self._not_fields = _not_fields(kinds)
        found = sorted(kinds.found, key=lambda kind: -len(kind.items))[:_MOST_KINDS]
        found.sort(key=lambda kind: kinds.found.index(kind))
        of_nodes, of_others = _split(found)
        for kind in of_nodes:
            self._add_node(kind)
        for kind in of_others:
            self._add_virtual_owner(kind)
        for kind in of_others:
            self.others.append(self._other(kind))
        for type_ in self.types:
            if type_.source is not None:
                add_end_attributes(type_, self.nodes)
                _add_index_keys(self.table, kinds.reader, type_, self.nodes)
                add_fields(type_)
                _say_doubts(type_, type_.source)
        self.slashed_dates = settle_dates(self.types)

    @property
    def types(self) -> list[DraftType]:
        return [*self.nodes, *self.others]

    # --- Nodes ----------------------------------------------------------------------------------------

    def _add_node(self, kind: ItemKind) -> None:
        name = self._names.take(type_name(self._node_word(kind)))
        node = DraftType(name, "node", kind, type_value=kind.type_value, used=set(self._not_fields))
        node.names.take("id")
        node.partition = self._written(node, kind.partition, 0)
        node.sort = () if kind.has_equal_keys else self._written(node, kind.sort, 1)
        node.ids = rows_of(kind.partition_columns)
        node.shards = _shards(kind.partition) if SHARD_PLACEHOLDER in node.partition else None
        self.nodes.append(node)

    def _node_word(self, kind: ItemKind) -> str:
        if kind.type_value:
            return kind.type_value
        named = words_of(kind.partition)
        own = [word for word in kind.literals if word.lower() not in MAIN]
        return (named or own[-1:] or [self._plain_word(0, is_node=True)])[-1]

    def _plain_word(self, number: int, *, is_node: bool = False) -> str:
        """A name for a key without words: from the name of its attribute, or of the table."""
        name = self.table.keys[number].name
        if not says_nothing(name) and without_id(name):
            return without_id(name)
        whole = self.table.name
        word = (words(whole) or [""])[-1]
        if is_node and re.search("[a-z]s$", word) and not word.endswith("ss"):
            return re.sub("s$", "", re.sub("ies$", "ys", word))
        return "item" if is_node or number or self.table.sort is None else "owner"

    def _add_virtual_owner(self, kind: ItemKind) -> None:
        """Add a node for a partition if the sample has no item of such a node."""
        whole = kind.partition
        last = max(
            (n for n, part in enumerate(whole) if isinstance(part, Column) and not part.shard), default=-1
        )
        if last >= 0 and self._owner(kind.partition) is None:
            self._virtual(whole[: last + 1], 0)

    def _virtual(self, parts: Sequence[Part], number: int) -> DraftType:
        signature, ids = signature_of(parts), rows_of(parts)
        for node in self.nodes:
            if node.is_virtual and node.signature == signature:
                node.ids |= ids
                return node
        name = self._names.take(type_name((words_of(parts) or [self._plain_word(number)])[-1]))
        node = DraftType(name, "node", None, ids=ids)
        node.names.take("id")
        made: list[TemplatePart] = []
        word = ""
        for part in parts:
            if isinstance(part, str):
                word = part if is_word(part) else word
                made.append(part)
            else:
                made.append(field_for(node, part.texts, f"{word or name}_id", self.table.keys[number]))
        node.partition = tuple(made)
        node.doubts.append("the sample has no item for it")
        self.nodes.append(node)
        return node

    # --- Edges and records ----------------------------------------------------------------------------

    def _other(self, kind: ItemKind) -> DraftType:
        owner = self._owner(kind.partition)
        type_ = DraftType("", "record", kind, type_value=kind.type_value, used=set(self._not_fields))
        type_.partition = self._written(type_, kind.partition, 0, owner)
        type_.sort = self._written(type_, kind.sort, 1)
        type_.shards = _shards(kind.partition) if SHARD_PLACEHOLDER in type_.partition else None
        targets = {part.path[0] for part in (*type_.partition, *type_.sort) if isinstance(part, Reference)}
        in_key = [name for name in type_.ends if name in targets]
        if len(in_key) == 2:
            type_.kind = "edge"
        said = self._other_words(kind, type_)
        type_.name = self._names.take(*map(type_name, [kind.type_value, said] if kind.type_value else [said]))
        return type_

    def _other_words(self, kind: ItemKind, type_: DraftType) -> str:
        """A name for the type: its owner, the words of its sort key, and the node at the far end."""
        targets = [end.target.name for end in type_.ends.values()]
        said = [word for word in kind.literals if type_name(word) not in targets]
        is_said = said and said[-1:] == [word for word in said if field_name(word, "") in type_.ends][-1:]
        far = targets[1:2] if type_.kind == "edge" and not is_said else []
        if not said and not far:
            return "_".join([*targets[:1], "item"])
        return "_".join([*targets[:1], *said, *far])

    def _owner(self, parts: Sequence[Part]) -> DraftType | None:
        """The node to whose partition the items belong; if several fit, the one with these ids."""
        fitting: dict[tuple[int, int, bool], DraftType] = {}
        for node in self.nodes:
            if node.stands_at(signature_of(parts)):
                size = len(node.signature)
                common = len(node.ids & rows_of(parts[:size]))
                fitting.setdefault((size, common, not node.is_virtual), node)
        return fitting[max(fitting)] if fitting else None

    # --- Templates ------------------------------------------------------------------------------------

    def _written(
        self, type_: DraftType, parts: Sequence[Part], number: int, owner: DraftType | None = None
    ) -> tuple[TemplatePart, ...]:
        """The template of a key, which may begin with its owner. Adds the fields and ends that it needs to the type."""
        made: list[TemplatePart] = []
        word, at = "", 0
        while at < len(parts):
            part = parts[at]
            known = {texts: path for path, texts in type_.texts.items()}
            node = owner if at == 0 else None
            if number == 1 and type_.kind != "node":
                node = self._node_at(type_, parts, at)
            if node is not None:
                size = len(node.signature)
                made.append(self._end(type_, node, parts[at : at + size], word))
                at, word = at + size, ""
                continue
            at += 1
            if isinstance(part, str):
                word = part if is_word(part) else word
                made.append(part)
            elif part.shard:
                made.append(SHARD_PLACEHOLDER)
            elif number == 1 and part.texts in known:
                made.append(type_.placeholder(known[part.texts]))
            else:
                made.append(self._placeholder(type_, part, word, number, is_whole=len(parts) == 1))
                word = ""
        return tuple(made)

    def _placeholder(
        self, type_: DraftType, column: Column, word: str, number: int, *, is_whole: bool
    ) -> Reference:
        """The placeholder of one column: the id of a node with these values, else a field."""
        target = self._node_of_values(type_, column, word) if number == 1 and type_.kind != "node" else None
        if target is not None:
            made = self._end(type_, target, (column,), word)
            return Reference((made.path[0], target.key_paths[0]))
        attribute, format_ = same_attribute(type_, column.texts)
        key = self.table.keys[number]
        says = not says_nothing(key.name)
        if word and are_emails(column.texts):
            wanted = word
        elif word:
            wanted = f"{word}_{_ENDINGS.get(text_annotation(column.texts), 'id')}"
        elif is_whole and says and type_.kind != "node":
            wanted = key.name
        elif type_.kind == "node" and (is_whole or number == 0):
            wanted = key.name if is_whole and says and is_id(key.name) else f"{type_.name}_id"
        else:
            wanted = "label" if all(map(is_word, column.texts)) else f"{'sort' if number else 'key'}_part"
        return field_for(
            type_, column.texts, wanted, key, attribute, format_, identifies=type_.kind == "node"
        )

    def _end(self, type_: DraftType, node: DraftType, parts: Sequence[Part], word: str) -> Reference:
        """The placeholder of a whole node. Adds the end to the type."""
        columns = [part.texts for part in parts if isinstance(part, Column)]
        is_verb = len(parts) == 1 and type_name(word) != node.name
        name = add_end(type_, node, columns, word if is_verb else "")
        if not node.is_virtual and not node.ids & rows_of(parts):
            type_.ends[name].doubts.append(f"the sample has no {node.name} with these ids")
        return Reference((name,))

    def _node_at(self, type_: DraftType, parts: Sequence[Part], at: int) -> DraftType | None:
        """The node whose whole key is in a sort key from there on, added if it is missing."""
        for node in sorted(self.nodes, key=lambda node: -len(node.signature)):
            stands = parts[at : at + len(node.signature)]
            begins_with_word = isinstance(parts[at], str) and node.stands_at(signature_of(parts), at)
            columns = [part.texts for part in stands if isinstance(part, Column)]
            if begins_with_word and can_be_end(type_, node, columns):
                return node
        own = parts[at : at + 3]
        if len(own) < 3 or at + 3 != len(parts) or not isinstance(own[0], str) or not is_word(own[0]):
            return None
        column = own[2]
        if not isinstance(column, Column) or column.shard or not self._is_nodes(type_, parts, at, column):
            return None
        return self._virtual(own, 1)

    def _is_nodes(self, type_: DraftType, parts: Sequence[Part], at: int, column: Column) -> bool:
        """Whether a word and a value are the key of a node without an item: an index has them as its partition, or
        another word precedes them."""
        attribute = same_attribute(type_, column.texts)[0]
        is_text = attribute is None or isinstance(type_.items[0].get(attribute), str)
        if not is_text or text_annotation(column.texts) != "str" or are_emails(column.texts):
            return False
        if self._node_of_values(type_, column, str(parts[at])) is not None:
            return False
        sort = self.table.keys[1].name
        partitions = [
            index.partition.name for index in self.table.indexes if index.partition not in self.table.keys
        ]
        return bool(words_of(parts[:at])) or any(
            all(item.get(name) == item.get(sort) for item in type_.items) for name in partitions
        )

    def _node_of_values(self, type_: DraftType, column: Column, word: str) -> DraftType | None:
        """The node with all or most of these values as its ids."""
        given = set(column.texts)
        if are_emails(given):
            return None
        best: dict[tuple[bool, float], DraftType] = {}
        attribute = same_attribute(type_, column.texts)[0]
        for node in self.nodes:
            share = len(given & node.single_ids) / len(given)
            is_named = type_name(word) == node.name or (
                attribute is not None and is_id(attribute) and type_name(without_id(attribute)) == node.name
            )
            is_certain = is_named or not may_coincide(given)
            if node.is_known_by_partition and is_certain and share > 0.5:
                best.setdefault((is_named, share), node)
        return best[max(best)] if best else None


def _split(found: Sequence[ItemKind]) -> tuple[list[ItemKind], list[ItemKind]]:
    """The kinds that are items of nodes, and the others."""
    nodes: dict[tuple[str | None, ...], list[ItemKind]] = {}
    alone: list[list[ItemKind]] = []
    """Each kind whose partition key is always the same, since no other item is of the same node."""
    for kind in found:
        if not kind.partition_columns and kind.columns:
            alone.append([kind])
        elif kind.columns and not kind.own_columns:
            nodes.setdefault(signature_of(kind.partition), []).append(kind)
    chosen: list[ItemKind] = []
    for group in (*nodes.values(), *alone):
        ranked = sorted(
            group, key=lambda kind: (not kind.has_equal_keys, not _is_main(kind), -len(kind.items))
        )
        taken: set[tuple[str, ...]] = set()
        for kind in ranked:
            ids = rows_of(kind.partition)
            is_small = len(kind.items) < 3 and bool(words_of(kind.partition))
            if not taken or (not ids & taken and not is_small):
                chosen.append(kind)
                taken |= ids or {("",)}
    return [kind for kind in found if kind in chosen], [kind for kind in found if kind not in chosen]


def _not_fields(kinds: Kinds) -> set[str]:
    """The attributes that are never fields: keys with generic names, and the type."""
    keys = {key.name for key in kinds.table.keys}
    keys |= {key.name for key in kinds.table.key_attributes() if says_nothing(key.name)}
    return keys | ({kinds.type_attribute} if kinds.type_attribute else set())


def _is_main(kind: ItemKind) -> bool:
    said = {word.lower() for word in kind.literals}
    named = {part.lower() for part in kind.partition if isinstance(part, str)}
    return bool(said) and said <= MAIN | named


def _shards(parts: Iterable[Part]) -> int | None:
    numbers = [int(text) for part in parts if isinstance(part, Column) and part.shard for text in part.texts]
    return max(numbers) + 1 if numbers else None


def _say_doubts(type_: DraftType, kind: ItemKind) -> None:
    if len(kind.items) == 1:
        type_.doubts.append("the sample has only one item of it")
    if type_.shards is not None:
        type_.doubts.append(f"{type_.shards} shards, if the sample has the last one")


# --- Keys in indexes ----------------------------------------------------------------------------------


def _add_index_keys(table: Table, reader: KeyReader, type_: DraftType, nodes: Sequence[DraftType]) -> None:
    """Give the type its keys in each index that holds items of it."""
    done = {key.name for key in table.keys}
    for index in table.indexes:
        _IndexKeys(IndexCall(index), reader, type_, nodes, done).add()


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
        for key in index.keys:
            template = self._template(key) if key.name not in self._done else None
            self._done.add(key.name)
            if template is not None:
                call.templates.append(template)
        if call.templates:
            type_.calls[index.name] = call
        if not all(rows):
            type_.doubts.append(f"{sum(rows)} of {len(rows)} are in the index {index.name}")
        if call.shards is not None:
            type_.doubts.append(f"{call.shards} shards in {index.name}, if the sample has the last one")

    # --- One key --------------------------------------------------------------------------------------

    def _template(self, key: KeyAttribute) -> tuple[TemplatePart, ...] | None:
        """The template of the key attribute; None if the attribute itself is a field, which needs none."""
        if key.name in self._type.used and not says_nothing(key.name):
            return None
        readings = [self._reader.read(key, item) for item in self._type.items]
        patterns = {reading.pattern for reading in readings if reading is not None}
        pattern = common_pattern(patterns)
        template = None
        # An attribute with a name of its own may well be a field whose values have separators in them.
        if pattern is not None and (len(patterns) == 1 or says_nothing(key.name)):
            nothing = (None,) * sum(isinstance(part, VaryingPart) for part in pattern)
            rows = (texts_in(reading, pattern) if reading else nothing for reading in readings)
            template = self._written(key, pattern, list(zip(*rows, strict=True)))
        if template is None:
            add_field(self._type, key.name)
        return template

    def _written(
        self, key: KeyAttribute, pattern: Pattern, columns: Sequence[Texts]
    ) -> tuple[TemplatePart, ...] | None:
        """The template for keys of one pattern, whose varying parts have these texts; None if it is just a value."""
        is_whole = pattern == (VARYING,)
        if is_whole and not says_nothing(key.name) and not self._looks_sharded(key, columns[0]):
            return None
        self._type.used.add(key.name)
        made: list[TemplatePart] = []
        word, at, column = "", 0, 0
        while at < len(pattern):
            part = pattern[at]
            node = self._node_at(pattern, at, columns[column:]) if isinstance(part, str) else None
            if node is not None:
                width = len(node.key_paths)
                made += self._end(node, columns[column : column + width])
                at, column = at + len(node.signature), column + width
                continue
            if isinstance(part, str):
                word = part if is_word(part) else word
                made.append(part)
            else:
                placed = self._placeholder(key, part, columns[column], word, is_whole=is_whole)
                if placed is None:
                    return None
                made.append(placed)
                column, word = column + 1, ""
            at += 1
        return tuple(made)

    def _looks_sharded(self, key: KeyAttribute, column: Texts) -> bool:
        given = [text for text in column if text is not None]
        is_small = all(
            text.isdigit() and (text == "0" or text[0] != "0") and int(text) < _MOST_SHARDS for text in given
        )
        return key.type == "S" and key == self._call.index.partition and is_small

    def _placeholder(
        self, key: KeyAttribute, part: VaryingPart, column: Texts, word: str, *, is_whole: bool
    ) -> Reference | None:
        known = None if part.shard else self._known(column)
        if known is not None:
            return self._type.placeholder(known)
        attribute, format_ = (None, "") if part.shard else same_attribute(self._type, column)
        if attribute is not None:
            return field_for(self._type, column, attribute, key, attribute, format_)
        if part.shard or self._looks_sharded(key, column):
            numbers = [int(text) for text in column if text is not None]
            self._call.shards = max(self._call.shards or 1, *(number + 1 for number in numbers))
            return SHARD_PLACEHOLDER
        if is_whole:
            return None
        wanted = f"{without_id(word)}_value" if word else f"{snake(key.name)}_part"
        return field_for(self._type, column, wanted, key)

    def _known(self, column: Texts) -> tuple[str, ...] | None:
        """The field, or the key field of an end, with the same value in all items that have the key."""
        rows = [number for number, text in enumerate(column) if text is not None]
        fitting = [
            path
            for path, texts in self._type.texts.items()
            if all(texts[number] == column[number] for number in rows)
        ]
        return min(fitting, key=len, default=None)

    # --- Ends -----------------------------------------------------------------------------------------

    def _node_at(self, pattern: Pattern, at: int, columns: Sequence[Texts]) -> DraftType | None:
        """The node whose whole partition key is there; if several fit, the one with these ids."""
        fitting: dict[tuple[int, int], DraftType] = {}
        signature = [None if isinstance(part, VaryingPart) else part for part in pattern]
        for node in self._nodes:
            if node.stands_at(signature, at):
                width = len(node.key_paths)
                rows = {row for row in zip(*columns[:width], strict=True) if None not in row}
                common = len(rows & node.ids)
                is_other = (
                    common * 2 <= len(rows) and (self._known(columns[0]) or ("",))[0] in self._type.fields
                )
                if not is_other and can_be_end(self._type, node, columns[:width]):
                    fitting.setdefault((len(node.signature), common), node)
        return fitting[max(fitting)] if fitting else None

    def _end(self, node: DraftType, columns: Sequence[Texts]) -> tuple[TemplatePart, ...]:
        """The placeholder of a node: of an end that is the same, of the type itself, or of a new end."""
        rows = [number for number, text in enumerate(columns[0]) if text is not None]

        def is_same(path: tuple[str, ...], column: Texts) -> bool:
            texts = self._type.texts.get(path)
            return texts is not None and all(texts[number] == column[number] for number in rows)

        pairs = list(zip(node.key_paths, columns, strict=True))
        for name, end in self._type.ends.items():
            if end.target is node and all(is_same((name, field), column) for field, column in pairs):
                return (Reference((name,)),)
        if node is self._type and all(is_same((field,), column) for field, column in pairs):
            return node.partition
        return (Reference((add_end(self._type, node, columns, ids_only=True),)),)
