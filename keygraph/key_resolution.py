"""Making the keys of record types: key templates with their ends written out, and the attributes of ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from keygraph.conditions import Path
from keygraph.declaration import Declaration, StoredAs, declaration_of
from keygraph.key_text import KeyText, UnusableFormat
from keygraph.mistakes import Mistakes
from keygraph.names import cased
from keygraph.records import End, Keys, Method, RecordType
from keygraph.table import Index, IndexKey, KeyAttribute, Table
from keygraph.templates import (
    SHARD,
    FieldPath,
    Maybe,
    Reference,
    Slot,
    Template,
    TemplateError,
    Token,
    read_source,
)
from keygraph.types import FieldType


class _Broken(Exception):
    """A template that cannot be made; its mistake has been told."""


class KeyResolution:
    """Gives each record type its keys in the table and the indexes, and its ends their attributes."""

    def __init__(
        self,
        table: Table,
        types: Mapping[str, RecordType],
        declarations: Mapping[str, Declaration],
        case: str,
        mistakes: Mistakes,
    ) -> None:
        self._table = table
        self._types = types
        self._declarations = declarations
        self._case = case
        self._mistakes = mistakes
        self._table_templates: dict[tuple[str, int], Template | None] = {}

    def resolve(self) -> None:
        for record in self._types.values():
            self._make_table_keys(record)
        for record in self._mistakes.without_broken(self._types.values()):
            self._place_ends(record)
        for record in self._mistakes.without_broken(self._types.values()):
            self._make_index_keys(record)

    # --- Key templates --------------------------------------------------------------------------------

    def _table_sources(self, record: RecordType) -> list[str]:
        """The templates of the table's own key, as they are written: one for each key attribute."""
        sources = [key for key in self._declarations[record.name].keys if isinstance(key, str)]
        wanted = len(self._table.keys)
        if len(sources) == 1 and wanted == 2 and record.is_node:
            sources = sources * 2
        if len(sources) == wanted:
            return sources
        given = "no template" if not sources else f"{len(sources)} template" + "s" * (len(sources) != 1)
        names = " and ".join(key.name for key in self._table.keys)
        if not self._mistakes.is_broken(record):
            self._mistakes.add(
                "key-templates",
                record.name,
                f"it has {given} for the table's key.",
                f"Give one for each of {names}.",
                breaks=record.name,
            )
        raise _Broken

    def _table_template(self, record: RecordType, number: int) -> Template:
        """The partition (0) or the sort (1) template of a type's own key, with its ends written out."""
        key = (record.name, number)
        if key not in self._table_templates:
            self._table_templates[key] = None  # being made
            self._table_templates[key] = self._write_out(record, self._table_sources(record)[number])
        template = self._table_templates[key]
        if template is None:
            if not self._mistakes.is_broken(record):
                self._mistakes.add(
                    "circular-key",
                    record.name,
                    "its key is made of itself, through an end.",
                    "Write out the key's fields.",
                    breaks=record.name,
                )
            raise _Broken
        return template

    def _identity(self, record: RecordType) -> list[Slot]:
        slots: dict[str, Slot] = {}
        for number in range(len(self._table.keys)):
            for slot in self._table_template(record, number).slots:
                if not slot.is_shard:
                    slots.setdefault(slot.name, slot)
        return list(slots.values())

    def _write_out(self, record: RecordType, source: str) -> Template:
        try:
            parts = read_source(source)
        except TemplateError as error:
            self._template_mistake(record, source, f"{error}.", 'Write it as "ORDER#{order_id}".')
            raise _Broken from None
        tokens: list[Token] = []
        for part in parts:
            if isinstance(part, str):
                tokens.append(part)
            else:
                made = self._tokens(record, source, part, part.path, part.format)
                tokens.extend([Maybe(tuple(made))] if part.optional else made)
        template = Template(_joined(tokens))
        self._look_for_neighbouring_slots(record, source, template.tokens)
        return template

    def _template_mistake(self, record: RecordType, source: str, problem: str, mend: str) -> None:
        self._mistakes.add(
            "template", record.name, f'the template "{source}": {problem}', mend, breaks=record.name
        )

    def _tokens(
        self, record: RecordType, source: str, reference: Reference, path: FieldPath, spec: str
    ) -> list[str | Slot]:
        """The literal text and slots that a reference stands for, seen from that type."""
        name, *inner = path
        if name in record.fields and not inner:
            return [self._slot(record, source, reference, (name,), record.fields[name].type, spec)]
        if name in record.methods and not inner:
            return [self._computed(record, source, record.methods[name])]
        if name == SHARD[0] and not inner and name not in record.fields:
            return [self._slot(record, source, reference, SHARD, FieldType("int"), spec)]
        if name not in record.ends:
            self._template_mistake(
                record,
                source,
                f"{reference} is no field of {record.name}.",
                f"Its fields are {', '.join([*record.fields, *record.ends]) or 'none'}.",
            )
            raise _Broken
        target = record.ends[name].target
        if inner:
            own = self._tokens(target, source, reference, tuple(inner), spec)
            self._refuse_no_key_field(record, source, reference, target, tuple(inner))
            return [token.under(name) if isinstance(token, Slot) else token for token in own]
        partition = self._table_template(target, 0)
        if {slot.name for slot in self._identity(target)} - {slot.name for slot in partition.slots}:
            fields = ", ".join("{" + f"{name}.{'.'.join(slot.path)}" + "}" for slot in self._identity(target))
            self._template_mistake(
                record,
                source,
                f"{reference} stands for the partition key of {target.name}, which does not identify it.",
                f"Write its key fields: {fields}.",
            )
            raise _Broken
        tokens = [token for token in partition.tokens if not isinstance(token, Maybe)]
        return [token.under(name) if isinstance(token, Slot) else token for token in tokens]

    def _refuse_no_key_field(
        self, record: RecordType, source: str, reference: Reference, target: RecordType, inner: FieldPath
    ) -> None:
        paths = [slot.path for slot in self._identity(target)]
        if not any(path[: len(inner)] == inner for path in paths):
            fields = ", ".join(".".join(path) for path in paths)
            self._template_mistake(
                record,
                source,
                f"{reference} names no key field of {target.name}.",
                f"A template can name {fields}.",
            )
            raise _Broken

    def _slot(
        self,
        record: RecordType,
        source: str,
        reference: Reference,
        path: FieldPath,
        type_: FieldType,
        spec: str,
    ) -> Slot:
        try:
            return Slot(path, KeyText(type_, spec))
        except UnusableFormat as error:
            self._template_mistake(record, source, f"{reference}: {error}.", "Use another field or format.")
            raise _Broken from None

    def _computed(self, record: RecordType, source: str, method: Method) -> Slot:
        if method.is_async or method.needs is None or len(method.signature.parameters) > 1:
            self._template_mistake(
                record,
                source,
                f"{method.name} cannot stand in a key.",
                "It may be neither async nor take arguments, and says the fields it needs.",
            )
            raise _Broken
        return Slot((method.name,), KeyText(FieldType("string")), computed=True)

    def _look_for_neighbouring_slots(self, record: RecordType, source: str, tokens: Iterable[Token]) -> None:
        """Two placeholders with nothing between them cannot be told apart, unless the first has few texts."""
        before: Slot | None = None
        flat = [
            inner for token in tokens for inner in (token.tokens if isinstance(token, Maybe) else (token,))
        ]
        for token in flat:
            if isinstance(token, Slot) and before is not None and not _has_fixed_texts(before):
                self._template_mistake(
                    record,
                    source,
                    f"it cannot be parsed back: nothing stands between {{{before.name}}} and {{{token.name}}}.",
                    "Put literal text between them.",
                )
            before = token if isinstance(token, Slot) else None

    # --- Keys -----------------------------------------------------------------------------------------

    def _make_table_keys(self, record: RecordType) -> None:
        declaration = self._declarations[record.name]
        try:
            templates = [self._table_template(record, number) for number in range(len(self._table.keys))]
        except _Broken:
            self._mistakes.break_silently(record)
            return
        sort = templates[1] if len(templates) == 2 else None
        shards = self._shards(record, None, templates[0], declaration.shards)
        record.keys[None] = Keys(None, self._table.keys, templates[0], sort, shards, declaration.lists, None)
        if record.is_node and not record.identity:
            self._mistakes.add(
                "node-without-key-fields",
                record.name,
                "its key has no placeholder, so that there could be one of it alone.",
                "Put a field into its key template.",
                breaks=record.name,
            )
        if record.kind == "edge" and len(record.key_ends) != 2:
            ends = ", ".join(record.key_ends) or "none"
            self._mistakes.add(
                "edge-ends",
                record.name,
                f"an edge has two ends in its table key; this one has {len(record.key_ends)} ({ends}).",
                "Put two ends into it, or declare a record.",
                breaks=record.name,
            )

    def _shards(
        self, record: RecordType, index: Index | None, partition: Template, given: int | None
    ) -> int | None:
        where = record.name if index is None else f"{record.name} in {index.name}"
        is_spread = any(slot.is_shard for slot in partition.slots)
        if is_spread and (given is None or given < 1):
            self._mistakes.add(
                "shards", where, "its partition has {shard} and no number of shards.", "Say shards=5, or so."
            )
            return 1
        if given is not None and not is_spread:
            self._mistakes.add(
                "shards", where, "it has shards= but no {shard} in its partition.", "Put {shard} into it."
            )
            return None
        return given

    def _make_index_keys(self, record: RecordType) -> None:
        calls: dict[str, IndexKey] = {}
        templates = {
            attribute.name: template
            for attribute, template in zip(self._table.keys, record.table_keys.templates, strict=True)
        }
        for call in self._declarations[record.name].keys:
            if not isinstance(call, IndexKey):
                continue
            if call.index not in self._table.indexes:
                self._mistakes.add(
                    "unknown-index",
                    record.name,
                    f"the table {self._table.name} has no index {call.index.name}.",
                    f"List it: Table({self._table.name!r}, …, indexes=[…]).",
                )
            elif call.index.name in calls:
                self._mistakes.add(
                    "index-twice", record.name, f"it is in {call.index.name} twice.", "An item is there once."
                )
            else:
                calls[call.index.name] = call
                self._assign(record, call, templates)
        for index in self._table.indexes:
            self._make_keys_in(record, index, calls.get(index.name), templates)

    def _assign(self, record: RecordType, call: IndexKey, templates: dict[str, Template]) -> None:
        """Gives the call's templates to the index's key attributes: to all, or to those not known yet."""
        attributes = list(call.index.keys)
        if len(call.templates) < len(attributes):
            attributes = [key for key in attributes if self._known(record, key, templates) is None]
        if len(call.templates) > len(attributes):
            names = " and ".join(key.name for key in attributes) or "nothing"
            self._mistakes.add(
                "key-templates",
                record.name,
                f"{call.index.name} is called with {len(call.templates)} templates.",
                f"It needs those of {names}.",
            )
            return
        for attribute, source in zip(attributes, call.templates, strict=False):
            try:
                template = self._write_out(record, source)
            except _Broken:
                continue
            if templates.setdefault(attribute.name, template) != template:
                self._mistakes.add(
                    "two-templates",
                    record.name,
                    f"the attribute {attribute.name} has two templates: {templates[attribute.name]} and {template}.",
                    "An attribute has one value.",
                )

    def _known(
        self, record: RecordType, key: KeyAttribute, templates: Mapping[str, Template]
    ) -> Template | None:
        """The template of a key attribute: one given before, or the field that is stored there."""
        if key.name in templates:
            return templates[key.name]
        for field in record.fields.values():
            if field.attribute == (key.name,):
                try:
                    return Template((Slot((field.name,), KeyText(field.type)),))
                except UnusableFormat:
                    return None
        for end in record.ends.values():
            for slot in end.target.identity:
                if end.attributes[slot.path] == (key.name,):
                    return Template((slot.under(end.name),))
        return None

    def _make_keys_in(
        self, record: RecordType, index: Index, call: IndexKey | None, templates: Mapping[str, Template]
    ) -> None:
        partition = self._known(record, index.partition, templates)
        sort = None if index.sort is None else self._known(record, index.sort, templates)
        if partition is None or (call is None and index.sort is not None and sort is None):
            if call is not None and not self._mistakes.is_broken(record):
                self._mistakes.add(
                    "key-templates",
                    record.name,
                    f"{index.name} is called without a template for {index.partition.name}.",
                    f'Say {index.name.lower()}("…").',
                )
            return
        shards = call.shards if call else None
        if shards is None and partition == record.table_keys.partition:
            shards = record.table_keys.shards
        record.keys[index.name] = Keys(
            index,
            index.keys,
            partition,
            sort,
            self._shards(record, index, partition, shards),
            call.lists if call else None,
            call.finds if call else None,
        )

    # --- Attributes of ends ---------------------------------------------------------------------------

    def _place_ends(self, record: RecordType) -> None:
        given = {
            name: meaning
            for cls in reversed(record.cls.__mro__)
            if (declaration := declaration_of(cls)) is not None
            for name, meaning in declaration.own.items()
        }
        for end in list(record.ends.values()):
            if self._mistakes.is_broken(end.target):
                self._mistakes.break_silently(record)
                continue
            own = given.get(end.name)
            stored = own if isinstance(own, StoredAs) else StoredAs((), {})
            record.ends[end.name] = dataclasses.replace(end, attributes=self._attributes(record, end, stored))

    def _attributes(self, record: RecordType, end: End, stored: StoredAs) -> dict[FieldPath, Path]:
        paths = list(dict.fromkeys(slot.path for slot in end.target.identity))
        names = {end.target.leaf_name(path): path for path in paths}
        unknown = set(stored.attributes) - set(names)
        if unknown or (stored.path and len(paths) > 1):
            self._mistakes.add(
                "end-attributes",
                f"{record.name}.{end.name}",
                f"{end.target.name} has the key fields {', '.join(names)}.",
                f"Name one attribute for each: stored({', '.join(f'{name}=…' for name in names)}).",
            )
        placed: dict[FieldPath, Path] = {}
        for name, path in names.items():
            if name in stored.attributes:
                placed[path] = (stored.attributes[name],)
            elif stored.path:
                placed[path] = stored.path
            else:
                placed[path] = (cased(record.leaf_name((end.name, *path)), self._case),)
        return placed


def _joined(tokens: Iterable[Token]) -> tuple[Token, ...]:
    """The tokens with neighbouring literal texts as one, so that equal templates are equal."""
    joined: list[Token] = []
    for token in tokens:
        if isinstance(token, str) and joined and isinstance(joined[-1], str):
            joined[-1] += token
        else:
            joined.append(token)
    return tuple(joined)


_FIXED_KINDS = ("enum", "boolean", "date")


def _has_fixed_texts(slot: Slot) -> bool:
    return slot.text.type.kind in _FIXED_KINDS and not slot.text.format
