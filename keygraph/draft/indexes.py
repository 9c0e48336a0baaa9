"""The keys of drafted types in indexes: each part is matched with a field or an end of the same value."""

from __future__ import annotations

from collections.abc import Sequence

from keygraph.draft.attributes import (
    add_end,
    add_field,
    can_be_end,
    end_attributes,
    field_for,
    same_attribute,
)
from keygraph.draft.keys import VARYING, KeyReader, Pattern, VaryingPart, is_word
from keygraph.draft.names import is_id, says_nothing, without_id
from keygraph.draft.parts import (
    SHARD_PLACEHOLDER,
    DraftType,
    IndexCall,
    Placeholder,
    TemplatePart,
    Texts,
    joined,
)
from keygraph.dynamo.table import Index, KeyAttribute, Table
from keygraph.names import snake

_MOST_SHARDS = 200


def add_index_keys(table: Table, reader: KeyReader, type_: DraftType, nodes: Sequence[DraftType]) -> None:
    """Give the type its keys in each index that holds items of it."""
    done = {key.name for key in table.keys}
    for index in table.indexes:
        _IndexKeys(table, index, reader, type_, nodes, done).add()


class _IndexKeys:
    """The keys of one type in one index."""

    def __init__(
        self,
        table: Table,
        index: Index,
        reader: KeyReader,
        type_: DraftType,
        nodes: Sequence[DraftType],
        done: set[str],
    ) -> None:
        self._table = table
        self._index = index
        self._reader = reader
        self._type = type_
        self._nodes = nodes
        self._done = done
        """The key attributes that already have a template or are a field."""
        self._items = type_.source.items if type_.source else []
        self._rows = [
            number
            for number, item in enumerate(self._items)
            if all(key.holds(item.get(key.name)) for key in index.keys)
        ]

    def add(self) -> None:
        if not self._rows:
            return
        unknown = [key for key in self._index.keys if key.name not in self._done]
        call = IndexCall(self._index)
        for key in unknown:
            template = self._template(key, call)
            self._done.add(key.name)
            if template is not None:
                call.templates.append(template)
                self._type.used.add(key.name)
        if call.templates:
            self._type.calls[self._index.name] = call
        if len(self._rows) < len(self._items):
            self._type.doubts.append(
                f"{len(self._rows)} of {len(self._items)} are in the index {self._index.name}"
            )
        if call.shards is not None:
            self._type.doubts.append(
                f"{call.shards} shards in {self._index.name}, if the sample has the last one"
            )

    # --- One key --------------------------------------------------------------------------------------

    def _template(self, key: KeyAttribute, call: IndexCall) -> tuple[TemplatePart, ...] | None:
        """The template of the key attribute; None if the attribute itself is a field."""
        if key.name in self._type.used and not says_nothing(key.name):
            return None
        found = self._patterned(key)
        if found is None:
            self._as_field(key)
            return None
        pattern, columns = found
        if all(isinstance(part, str) for part in pattern):
            return joined([str(part) for part in pattern])
        is_whole = pattern == (VARYING,)
        if is_whole and not says_nothing(key.name) and not self._looks_sharded(key, columns[0]):
            self._as_field(key)
            return None
        self._type.used.add(key.name)
        made: list[TemplatePart] = []
        word, at, column = "", 0, 0
        while at < len(pattern):
            part = pattern[at]
            if isinstance(part, str):
                node = self._node_at(pattern, at, columns[column:])
                if node is not None:
                    width = len(node.key_paths)
                    made += self._end(node, columns[column : column + width])
                    at, column = at + len(node.signature), column + width
                    continue
                word = part if is_word(part) else word
                made.append(part)
            else:
                placed = self._placeholder(key, part, columns[column], word, call, is_whole=is_whole)
                if placed is None:
                    self._as_field(key)
                    return None
                made.append(placed)
                column, word = column + 1, ""
            at += 1
        return joined(made)

    def _as_field(self, key: KeyAttribute) -> None:
        """Make the attribute itself a field, which needs no template."""
        add_field(self._type, key.name)

    def _patterned(self, key: KeyAttribute) -> tuple[Pattern, list[Texts]] | None:
        """The one pattern of the attribute, with its columns; None if there are several."""
        readings = [
            (number, self._reader.read(key.name, value) if isinstance(value, str) else None, key.text(value))
            for number, item in enumerate(self._items)
            if key.holds(value := item.get(key.name))
        ]
        read = [(number, reading or _whole(text or "")) for number, reading, text in readings]
        patterns = {reading[0] for _, reading in read}
        if len(patterns) != 1:
            return None
        [pattern] = patterns
        texts = {number: reading[1] for number, reading in read}
        width = len(read[0][1][1])
        columns = [
            tuple(texts[number][place] if number in texts else None for number in range(len(self._items)))
            for place in range(width)
        ]
        return pattern, columns

    def _looks_sharded(self, key: KeyAttribute, column: Texts) -> bool:
        given = [text for text in column if text is not None]
        is_small = all(
            text.isdigit() and (text == "0" or text[0] != "0") and int(text) < _MOST_SHARDS for text in given
        )
        return key.type == "S" and key == self._index.partition and is_small

    def _placeholder(
        self,
        key: KeyAttribute,
        hole: VaryingPart,
        column: Texts,
        word: str,
        call: IndexCall,
        *,
        is_whole: bool,
    ) -> Placeholder | None:
        if hole.shard:
            return self._shard(column, call)
        known = self._known(column)
        if known is not None:
            return Placeholder(known, self._type.formats.get(known, ""))
        attribute, format_ = same_attribute(self._type, column)
        if attribute is not None:
            name = field_for(self._type, column, [attribute], key, attribute, format_)
            return Placeholder((name,), self._type.formats.get((name,), ""))
        if self._looks_sharded(key, column):
            return self._shard(column, call)
        if is_whole:
            return None
        wanted = without_id(word) if word else f"{snake(key.name)}_part"
        name = field_for(self._type, column, [f"{wanted}_value" if word else wanted], key, None)
        return Placeholder((name,))

    def _shard(self, column: Texts, call: IndexCall) -> Placeholder:
        call.shards = max(call.shards or 1, *(int(text) + 1 for text in column if text is not None))
        return SHARD_PLACEHOLDER

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
        fitting: list[tuple[int, int, DraftType]] = []
        signature = [None if isinstance(part, VaryingPart) else part for part in pattern]
        for node in self._nodes:
            if node.stands_at(signature, at):
                width = len(node.key_paths)
                rows = {row for row in zip(*columns[:width], strict=True) if None not in row}
                common = len(rows & node.ids)
                is_other = common * 2 <= len(rows) and self._is_field(columns[0])
                if not is_other and can_be_end(self._type, node, columns[:width]):
                    fitting.append((len(node.signature), common, node))
        found = max(fitting, key=lambda each: each[:2], default=None)
        return found[2] if found else None

    def _is_field(self, column: Texts) -> bool:
        known = self._known(column)
        return known is not None and known[0] in self._type.fields

    def _end(self, node: DraftType, columns: Sequence[Texts]) -> tuple[TemplatePart, ...]:
        """The placeholder of a node: of an end that is the same, of the type itself, or of a new end."""
        rows = [number for number, text in enumerate(columns[0]) if text is not None]

        def is_same(path: tuple[str, ...], column: Texts) -> bool:
            texts = self._type.texts.get(path)
            return texts is not None and all(texts[number] == column[number] for number in rows)

        fields = node.key_paths
        for name, end in self._type.ends.items():
            pairs = zip(fields, columns, strict=True)
            if end.target is node and all(is_same((name, field), column) for field, column in pairs):
                return (Placeholder((name,)),)
        if node is self._type and all(
            is_same((field,), column) for field, column in zip(fields, columns, strict=True)
        ):
            return node.partition
        attributes = end_attributes(self._type, node, columns)
        if not all(map(is_id, attributes.values())):
            attributes = {}
        optional = len(rows) < len(self._items)
        return (Placeholder((add_end(self._type, node, columns, attributes, optional=optional),)),)


def _whole(text: str) -> tuple[Pattern, tuple[str, ...]]:
    return (VARYING,), (text,)
