"""The keys of drafted types in indexes: each part is matched with a field or an end of the same value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
)
from keygraph.dynamo.table import Index, KeyAttribute, Table
from keygraph.names import snake

_MOST_SHARDS = 200


def add_index_keys(table: Table, reader: KeyReader, type_: DraftType, nodes: Sequence[DraftType]) -> None:
    """Give the type its keys in each index that holds items of it."""
    done = {key.name for key in table.keys}
    for index in table.indexes:
        _IndexKeys(index, reader, type_, nodes, done).add()


@dataclass
class _IndexKeys:
    """The keys of one type in one index."""

    _index: Index
    _reader: KeyReader
    _type: DraftType
    _nodes: Sequence[DraftType]
    _done: set[str]
    """The key attributes that already have a template or are a field."""

    def add(self) -> None:
        type_, name = self._type, self._index.name
        rows = [all(key.holds(item.get(key.name)) for key in self._index.keys) for item in type_.items]
        if not any(rows):
            return
        call = IndexCall(self._index)
        for key in self._index.keys:
            template = self._template(key, call) if key.name not in self._done else None
            self._done.add(key.name)
            if template is not None:
                call.templates.append(template)
        if call.templates:
            type_.calls[name] = call
        if not all(rows):
            type_.doubts.append(f"{sum(rows)} of {len(rows)} are in the index {name}")
        if call.shards is not None:
            type_.doubts.append(f"{call.shards} shards in {name}, if the sample has the last one")

    # --- One key --------------------------------------------------------------------------------------

    def _template(self, key: KeyAttribute, call: IndexCall) -> tuple[TemplatePart, ...] | None:
        """The template of the key attribute; None if the attribute itself is a field, which needs none."""
        if key.name in self._type.used and not says_nothing(key.name):
            return None
        readings = [self._reader.read(key, item) for item in self._type.items]
        patterns = {reading.pattern for reading in readings if reading is not None}
        pattern = next(iter(patterns))
        nothing = (None,) * sum(isinstance(part, VaryingPart) for part in pattern)
        template = None
        if len(patterns) == 1:
            columns = list(zip(*(reading.texts if reading else nothing for reading in readings), strict=True))
            template = self._written(key, call, pattern, columns)
        if template is None:
            add_field(self._type, key.name)
        return template

    def _written(
        self, key: KeyAttribute, call: IndexCall, pattern: Pattern, columns: Sequence[Texts]
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
                placed = self._placeholder(key, part, columns[column], word, call, is_whole=is_whole)
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
        return key.type == "S" and key == self._index.partition and is_small

    def _placeholder(
        self,
        key: KeyAttribute,
        part: VaryingPart,
        column: Texts,
        word: str,
        call: IndexCall,
        *,
        is_whole: bool,
    ) -> Placeholder | None:
        if part.shard:
            return self._shard(column, call)
        known = self._known(column)
        if known is not None:
            return Placeholder(known, self._type.formats.get(known, ""))
        attribute, format_ = same_attribute(self._type, column)
        if attribute is not None:
            name = field_for(self._type, column, attribute, key, attribute, format_)
            return Placeholder((name,), self._type.formats.get((name,), ""))
        if self._looks_sharded(key, column):
            return self._shard(column, call)
        if is_whole:
            return None
        wanted = without_id(word) if word else f"{snake(key.name)}_part"
        name = field_for(self._type, column, f"{wanted}_value" if word else wanted, key, None)
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
        optional = len(rows) < len(self._type.items)
        return (Placeholder((add_end(self._type, node, columns, attributes, optional=optional),)),)
