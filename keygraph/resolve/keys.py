"""Making the keys of record types in the table and the indexes, and the attributes of their ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from keygraph.dynamo.conditions import Path
from keygraph.dynamo.table import Index, IndexKey, KeyAttribute, Table
from keygraph.keys.template import FieldPath, Slot, Template
from keygraph.keys.text import UnusableFormat, key_text
from keygraph.keys.types import AttributeStyle
from keygraph.keys.union import NodeText
from keygraph.model.declaration import Declaration, StoredAs
from keygraph.model.mistakes import Mistakes
from keygraph.model.record_keys import Keys
from keygraph.model.records import End, RecordType
from keygraph.names import cased
from keygraph.resolve.templates import BrokenTemplate, TemplateResolution


@dataclass(frozen=True)
class KeyResolution:
    """Gives each record type its keys in the table and the indexes, and its ends their attributes."""

    _table: Table
    _types: Mapping[str, RecordType]
    _declarations: Mapping[str, Declaration]
    _style: AttributeStyle
    _mistakes: Mistakes

    @cached_property
    def _templates(self) -> TemplateResolution:
        return TemplateResolution(self._table, self._declarations, self._style.formats, self._mistakes)

    def resolve(self) -> None:
        for record in self._types.values():
            self._make_table_keys(record)
        for record in self._types.values():
            self._find_texts_of_ends(record)
        for record in self._mistakes.without_broken(self._types.values()):
            self._place_ends(record)
        for record in self._mistakes.without_broken(self._types.values()):
            self._make_index_keys(record)

    # --- Keys -----------------------------------------------------------------------------------------

    def _make_table_keys(self, record: RecordType) -> None:
        declaration = self._declarations[record.name]
        try:
            made = self._templates.table_templates(record)
            # No item has a virtual node's sort key, so that its partition template need not fit there too.
            has_one = record.is_virtual and made[-1] == made[0]
            templates = [
                template if number and has_one else self._fitted(record, attribute, template)
                for number, (attribute, template) in enumerate(zip(self._table.keys, made, strict=True))
            ]
        except BrokenTemplate:
            self._mistakes.break_silently(record)
            return
        sort = templates[1] if len(templates) == 2 else None
        shards = self._shards(record, None, templates[0], declaration.shards)
        if shards is None:
            self._refuse_shard_in_sort(record, sort)
        record.keys[None] = Keys(None, self._table.keys, templates[0], sort, shards, declaration.lists, None)
        if record.is_node and not record.identity:
            self._mistakes.add(
                "node-without-key-fields",
                record.name,
                "its key has no placeholder, so there could be only one such node.",
                "Add a field to its key template.",
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
        if given is not None and type(given) is not int:
            # It has been told.
            return 1 if is_spread else None
        if is_spread and (given is None or given < 1):
            self._mistakes.add(
                "shards",
                where,
                "its partition has {shard} and no number of shards.",
                "Add shards=5, for example.",
            )
            return 1
        if given is not None and not is_spread:
            self._mistakes.add(
                "shards", where, "it has shards= but no {shard} in its partition.", "Put {shard} into it."
            )
            return None
        return given

    def _fitted(self, record: RecordType, key: KeyAttribute, template: Template) -> Template:
        """The template as it stands in a key of that type. Raises BrokenTemplate where it cannot."""
        problem = None
        if key.type == "N":
            match template.tokens:
                case (Slot() as slot,) if _is_a_value(slot):
                    try:
                        text = key_text(slot.text.type, slot.text.format, slot.text.declared, is_number=True)
                        return Template((replace(slot, text=text),))
                    except UnusableFormat as error:
                        problem = str(error)
                case _:
                    problem = "a number is one placeholder and nothing else"
        elif key.type == "S" and any(slot.text.type.kind == "bytes" for slot in template.slots):
            problem = "bytes cannot be part of a key of type S"
        if problem is None:
            return template
        self._mistakes.add(
            "key-type",
            record.name,
            f'the template "{template}" for {key.name}, which is of type {key.type}: {problem}.',
            "Use a field of the key's type.",
            breaks=record.name,
        )
        raise BrokenTemplate

    def _refuse_shard_in_sort(self, record: RecordType, sort: Template | None) -> None:
        is_spread = sort is not None and any(slot.is_shard for slot in sort.slots)
        if is_spread and not self._mistakes.is_broken(record):
            self._mistakes.add(
                "shards",
                record.name,
                "{shard} is in a sort key, where it has no effect.",
                "Move it to the partition template.",
                breaks=record.name,
            )

    def _make_index_keys(self, record: RecordType) -> None:
        calls: dict[str, IndexKey] = {}
        misused: set[str] = set()
        templates = {attribute.name: template for attribute, template in record.table_keys.parts}
        for call in self._declarations[record.name].keys:
            if not isinstance(call, IndexKey):
                continue
            named = next((index for index in self._table.indexes if index.name == call.index.name), None)
            if named is not None and named != call.index:
                self._mistakes.add(
                    "other-index",
                    record.name,
                    f"the index {call.index.name} that it calls has {_difference(call.index, named)}.",
                    "Declare the index once, and use it on the table and on the types.",
                )
            elif named is None:
                self._mistakes.add(
                    "unknown-index",
                    record.name,
                    f"the table {self._table.name} has no index {call.index.name}.",
                    f"List it: Table({self._table.name!r}, …, indexes=[…]).",
                )
            elif call.index.name in calls:
                self._mistakes.add(
                    "index-twice",
                    record.name,
                    f"it is in {call.index.name} twice.",
                    "An item is in an index only once.",
                )
                misused.add(call.index.name)
            else:
                calls[call.index.name] = call
                if not self._assign(record, call, templates):
                    misused.add(call.index.name)
        for index in self._table.indexes:
            if index.name not in misused:
                self._make_keys_in(record, index, calls.get(index.name), templates)

    def _assign(self, record: RecordType, call: IndexKey, templates: dict[str, Template]) -> bool:
        """Gives the call's templates to the index's key attributes: to all, or to those not known yet.

        False where there is a mistake in that.
        """
        attributes = list(call.index.keys)
        if len(call.templates) < len(attributes):
            attributes = [key for key in attributes if self._known(record, key, templates) is None]
        if len(call.templates) > len(attributes):
            names = " and ".join(key.name for key in attributes)
            number = f"{len(call.templates)} template" + "s" * (len(call.templates) != 1)
            self._mistakes.add(
                "key-templates",
                record.name,
                f"{call.index.name} is called with {number}.",
                f"It needs those of {names}." if names else "It needs none: all its keys are known.",
            )
            return False
        is_right = True
        for attribute, source in zip(attributes, call.templates, strict=False):
            try:
                template = self._fitted(record, attribute, self._templates.written(record, source))
            except BrokenTemplate:
                return False
            known = self._known(record, attribute, templates)
            if known is not None and known != template:
                self._mistakes.add(
                    "two-templates",
                    record.name,
                    f"the attribute {attribute.name} has two templates: {known} and {template}.",
                    "An attribute has one value.",
                )
                is_right = False
            templates[attribute.name] = template
        return is_right

    def _known(
        self, record: RecordType, key: KeyAttribute, templates: Mapping[str, Template]
    ) -> Template | None:
        """The template of a key attribute: one given before, or the field that is stored there."""
        if key.name in templates:
            return templates[key.name]
        for field in record.fields.values():
            if field.attribute == (key.name,):
                try:
                    text = key_text(field.type, declared=field.type.written, is_number=key.type == "N")
                except UnusableFormat:
                    return None
                return Template((Slot((field.name,), text),))
        for end in record.ends.values():
            for slot in end.identity:
                if end.attributes[slot.path] == (key.name,):
                    return self._fitted(record, key, Template((slot.under(end.name),)))
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
        if shards is None and sort != record.table_keys.partition:
            self._refuse_shard_in_sort(record, sort)
        if shards is None and partition == record.table_keys.partition:
            shards = record.table_keys.shards
        shards = self._shards(record, index, partition, shards)
        lists, finds = (call.lists, call.finds) if call else (None, None)
        record.keys[index.name] = Keys(index, index.keys, partition, sort, shards, lists, finds)

    # --- Attributes of ends ---------------------------------------------------------------------------

    def _find_texts_of_ends(self, record: RecordType) -> None:
        for end in list(record.ends.values()):
            try:
                if any(map(self._mistakes.is_broken, end.members)):
                    raise BrokenTemplate
                text = self._templates.node_text(record, end.name)
                record.ends[end.name] = replace(end, text=text)
            except BrokenTemplate:
                self._mistakes.break_silently(record)

    def _place_ends(self, record: RecordType) -> None:
        for end in list(record.ends.values()):
            if any(map(self._mistakes.is_broken, end.members)):
                self._mistakes.break_silently(record)
            else:
                record.ends[end.name] = replace(end, attributes=self._attributes(record, end))

    def _attributes(self, record: RecordType, end: End) -> dict[FieldPath, Path]:
        stored = end.stored or StoredAs((), {})
        if end.text is not None:
            if stored.attributes:
                self._mistakes.add(
                    "end-attributes",
                    f"{record.name}.{end.name}",
                    f"one attribute holds the key of a {end.type_name}, which tells the type.",
                    'Write stored("name").',
                )
            name = cased(record.leaf_name((end.name,)), self._style.case)
            return {(): stored.path or (name,)}
        paths = dict.fromkeys(slot.path for slot in end.identity)
        names = {end.members[0].leaf_name(path): path for path in paths}
        unknown = set(stored.attributes) - set(names)
        if unknown or (stored.path and len(paths) > 1):
            self._mistakes.add(
                "end-attributes",
                f"{record.name}.{end.name}",
                f"{end.type_name} has the key fields {', '.join(names)}.",
                f"Name one attribute for each: stored({', '.join(f'{name}=…' for name in names)}).",
            )
        placed: dict[FieldPath, Path] = {}
        for name, path in names.items():
            usual = cased(record.leaf_name((end.name, *path)), self._style.case)
            own = stored.attributes.get(name)
            placed[path] = (own,) if own is not None else stored.path or (usual,)
        return placed


def _difference(called: Index, listed: Index) -> str:
    """In what an index that a type calls is another one than that of its name on the table."""
    names = [" and ".join(f"{key.name} ({key.type})" for key in index.keys) for index in (called, listed)]
    if called.keys != listed.keys:
        return f"the keys {names[0]}, and the table's has {names[1]}"
    if called.projection != listed.projection:
        shown = [
            index.projection if isinstance(index.projection, str) else ", ".join(index.projection)
            for index in (called, listed)
        ]
        return f"the projection {shown[0]}, and the table's has {shown[1]}"
    return f"local={called.local}, and the table's has local={listed.local}"


def _is_a_value(slot: Slot) -> bool:
    """Whether it is a field's own, so that it may be a number in a key."""
    return not slot.computed and not slot.is_shard and not isinstance(slot.text, NodeText)
