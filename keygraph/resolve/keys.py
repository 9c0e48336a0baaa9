"""Makes the keys of record types in the table and the indexes, and the attributes of their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from keygraph.declare.declaration import Declaration, StoredAs
from keygraph.dynamo.conditions import Path
from keygraph.dynamo.table import Index, IndexKey, KeyAttribute, Shards, Table
from keygraph.keys.formats import Format
from keygraph.keys.shards import Shard, shards_of
from keygraph.keys.template import FieldPath, Slot, Template, under
from keygraph.keys.text import UnusableFormat, key_text
from keygraph.keys.types import AttributeStyle, FieldType
from keygraph.keys.union import NodeText, whole_key
from keygraph.model.mistakes import Mistakes
from keygraph.model.record_keys import Keys
from keygraph.model.records import End, RecordType
from keygraph.names import cased
from keygraph.resolve.options import SHARDS
from keygraph.resolve.templates import BrokenTemplate, TemplateResolution


def resolve_keys(
    table: Table,
    types: Mapping[str, RecordType],
    declarations: Mapping[str, Declaration],
    style: AttributeStyle,
    mistakes: Mistakes,
) -> None:
    """Gives each record type its keys in the table and the indexes, and its ends their attributes."""
    templates = TemplateResolution(table, declarations, style, mistakes)
    every = [
        _KeysOf(type_, declarations[type_.name], table, style, templates, mistakes)
        for type_ in types.values()
    ]
    for one in every:
        one.make_table_keys()
    for one in every:
        one.find_texts_of_ends()
    for one in every:
        if not one.is_broken:
            one.place_ends()
    for one in every:
        if not one.is_broken:
            one.make_index_keys()


@dataclass(frozen=True)
class _KeysOf:
    """The keys of one record type."""

    _record: RecordType
    _declaration: Declaration
    _table: Table
    _style: AttributeStyle
    _templates: TemplateResolution
    _mistakes: Mistakes

    @property
    def is_broken(self) -> bool:
        return self._mistakes.is_broken(self._record)

    def _tell(self, kind: str, problem: str, mend: str, *, where: str | None = None) -> None:
        self._mistakes.add(kind, where or self._record.name, problem, mend)

    def _refuse(self, kind: str, problem: str, mend: str) -> None:
        """Reports a mistake that makes the type unusable."""
        self._mistakes.add(kind, self._record.name, problem, mend, breaks=self._record.name)

    # --- Keys -----------------------------------------------------------------------------------------

    def make_table_keys(self) -> None:
        declaration = self._declaration
        try:
            made = self._templates.table_templates(self._record)
            # No item has a virtual node's sort key, so its partition template need not be valid there.
            has_one = self._record.is_virtual and made[-1] == made[0]
            templates = [
                template if number and has_one else self._fitted(attribute, template)
                for number, (attribute, template) in enumerate(zip(self._table.keys, made, strict=True))
            ]
        except BrokenTemplate:
            self._mistakes.break_silently(self._record)
            return
        sort = templates[1] if len(templates) == 2 else None
        shards = self._shards(None, templates[0], declaration.shards)
        if not shards:
            self._refuse_shard_in_sort(sort)
        self._record.keys[None] = Keys(
            None, self._table.keys, templates[0], sort, shards, declaration.lists, None
        )
        if self._record.is_node and not self._record.identity:
            self._refuse(
                "node-without-key-fields",
                "its key has no placeholder, so there could be only one such node.",
                "Add a field to its key template.",
            )
        if self._record.kind == "edge" and len(self._record.key_ends) != 2:
            ends = ", ".join(self._record.key_ends) or "none"
            self._refuse(
                "edge-ends",
                f"an edge has two ends in its table key; this one has {len(self._record.key_ends)} ({ends}).",
                "Put two ends into it, or declare a record.",
            )

    def _shards(self, index: Index | None, partition: Template, given: Shards | None) -> tuple[Shard, ...]:
        where = self._record.name if index is None else f"{self._record.name} in {index.name}"
        is_spread, shards = any(slot.is_shard for slot in partition.slots), shards_of(given)
        if is_spread and given is None:
            self._tell("shards", "its partition has {shard} and no shards=.", SHARDS, where=where)
        elif shards and not is_spread:
            problem = "it has shards= but no {shard} in its partition."
            self._tell("shards", problem, "Put {shard} into it.", where=where)
        return (shards or shards_of(1)) if is_spread else ()

    def _fitted(self, key: KeyAttribute, template: Template) -> Template:
        """Returns the template as written in a key of that type. Raises BrokenTemplate if that is impossible."""
        problem = None
        if key.type == "N":
            match template.tokens:
                # A field's own value or a shard, but not a method's text or a node.
                case (Slot(computed=False) as slot,) if not isinstance(slot.text, NodeText):
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
        self._refuse(
            "key-type",
            f'the template "{template}" for {key.name}, which is of type {key.type}: {problem}.',
            "Use a field of the key's type.",
        )
        raise BrokenTemplate

    def _refuse_shard_in_sort(self, sort: Template | None) -> None:
        is_spread = sort is not None and any(slot.is_shard for slot in sort.slots)
        if is_spread and not self.is_broken:
            self._refuse(
                "shards",
                "{shard} is in a sort key, where it has no effect.",
                "Move it to the partition template.",
            )

    def make_index_keys(self) -> None:
        calls: dict[str, IndexKey] = {}
        misused: set[str] = set()
        templates = {attribute.name: template for attribute, template in self._record.table_keys.parts}
        for call in self._declaration.keys:
            if not isinstance(call, IndexKey):
                continue
            named = next((index for index in self._table.indexes if index.name == call.index.name), None)
            if named is not None and named != call.index:
                self._refuse(
                    "other-index",
                    f"the index {call.index.name} that it calls has {_difference(call.index, named)}.",
                    "Declare the index once, and use it on the table and on the types.",
                )
            elif named is None:
                self._refuse(
                    "unknown-index",
                    f"the table {self._table.name} has no index {call.index.name}.",
                    f"List it: Table({self._table.name!r}, …, indexes=[…]).",
                )
            elif call.index.name in calls:
                self._refuse(
                    "index-twice", f"it is in {call.index.name} twice.", "An item is in an index only once."
                )
                misused.add(call.index.name)
            else:
                calls[call.index.name] = call
                if not self._assign(call, templates):
                    misused.add(call.index.name)
        for index in self._table.indexes:
            if index.name not in misused:
                self._make_keys_in(index, calls.get(index.name), templates)

    def _assign(self, call: IndexKey, templates: dict[str, Template]) -> bool:
        """Gives the call's templates to the index's key attributes: to all, or to those without a known template.

        Returns False on a mistake.
        """
        attributes = list(call.index.keys)
        if len(call.templates) < len(attributes):
            attributes = [key for key in attributes if self._known(key, templates) is None]
        if len(call.templates) > len(attributes):
            names = " and ".join(key.name for key in attributes)
            number = f"{len(call.templates)} template" + "s" * (len(call.templates) != 1)
            self._refuse(
                "key-templates",
                f"{call.index.name} is called with {number}.",
                f"It needs those of {names}." if names else "It needs none: all its keys are known.",
            )
            return False
        is_right = True
        shards = self._declaration.shards if call.shards is None else call.shards
        for attribute, source in zip(attributes, call.templates, strict=False):
            try:
                template = self._fitted(attribute, self._templates.written(self._record, source, shards))
            except BrokenTemplate:
                return False
            known = self._known(attribute, templates)
            # Equal spellings mean equal templates; only written-out templates have the graph's alphabet.
            if known is not None and str(known) != str(template):
                self._refuse("two-templates", *self._two_templates(attribute, call, template, templates))
                is_right = False
            templates[attribute.name] = template
        return is_right

    def _two_templates(
        self, key: KeyAttribute, call: IndexKey, template: Template, templates: Mapping[str, Template]
    ) -> tuple[str, str]:
        """Returns the problem of a template that a key attribute cannot have, and how to fix it."""
        if key.name in templates:
            problem = f"the attribute {key.name} has two templates: {templates[key.name]}, and {template} in {call.index.name}."
            return problem, "An attribute has one value: give one template, and leave the other out."
        held = self._known(key, templates)
        problem = f'{key.name} is the attribute of {held}, but {call.index.name} gives it the template "{template}".'
        return problem, f"Leave that template out, or store {held} in another attribute."

    def _known(self, key: KeyAttribute, templates: Mapping[str, Template]) -> Template | None:
        """Returns the template of a key attribute: one given before, or the field that is stored there."""
        if key.name in templates:
            return templates[key.name]
        for field in self._record.fields.values():
            if field.attribute == (key.name,):
                return _as_attribute(key, (field.name,), field.type)
        for end in self._record.ends.values():
            for slot in end.identity:
                if end.attributes[slot.path] == (key.name,):
                    if end.written is not None:
                        whole = end.members[0].table_keys.partition.tokens
                        return self._fitted(key, Template(under(whole, end.name)))
                    if slot.computed or isinstance(slot.text, NodeText):
                        return self._fitted(key, Template((slot.under(end.name),)))
                    return _as_attribute(key, (end.name, *slot.path), slot.text.type)
        return None

    def _make_keys_in(self, index: Index, call: IndexKey | None, templates: Mapping[str, Template]) -> None:
        partition = self._known(index.partition, templates)
        sort = None if index.sort is None else self._known(index.sort, templates)
        if partition is None or (call is None and index.sort is not None and sort is None):
            if call is not None and not self.is_broken:
                self._refuse(
                    "key-templates",
                    f"{index.name} is called without a template for {index.partition.name}.",
                    f'Say {index.name.lower()}("…").',
                )
            return
        shards = call.shards if call else None
        if shards is None and sort != self._record.table_keys.partition:
            self._refuse_shard_in_sort(sort)
        if shards is None and partition == self._record.table_keys.partition:
            shards = self._declaration.shards
        lists, finds = (call.lists, call.finds) if call else (None, None)
        self._record.keys[index.name] = Keys(
            index, index.keys, partition, sort, self._shards(index, partition, shards), lists, finds
        )

    # --- Attributes of ends ---------------------------------------------------------------------------

    def _change_ends(self, changed: Callable[[End], End]) -> None:
        """Changes each end; an end to an unusable type breaks this type too."""
        for end in list(self._record.ends.values()):
            try:
                if any(map(self._mistakes.is_broken, end.members)):
                    raise BrokenTemplate
                self._record.ends[end.name] = changed(end)
            except BrokenTemplate:
                self._mistakes.break_silently(self._record)

    def find_texts_of_ends(self) -> None:
        self._change_ends(lambda end: replace(end, text=self._templates.node_text(self._record, end.name)))

    def place_ends(self) -> None:
        self._change_ends(
            lambda end: replace(end, attributes=self._attributes(end), written=self._written(end))
        )

    def _written(self, end: End) -> Format | None:
        """Returns how the attribute of an end writes the node's only key field, if it holds the whole partition key."""
        if end.text is not None or end.stored is None or not end.stored.whole_key:
            return None
        node = end.members[0]
        is_text = self._table.partition.type == "S"
        found = whole_key(node.table_keys.partition, node.identity) if is_text else None
        if found is None:
            problem = f"its partition key, {node.table_keys.partition}, is no text with its key field in it."
            mend = "Store the key fields, without whole_key=True."
            self._tell("end-attributes", problem, mend, where=f"{self._record.name}.{end.name}")
        return found

    def _attributes(self, end: End) -> dict[FieldPath, Path]:
        stored, where = end.stored or StoredAs((), {}), f"{self._record.name}.{end.name}"
        if end.text is not None:
            if stored.attributes:
                problem = f"one attribute holds the key of a {end.type_name}, which tells the type."
                self._tell("end-attributes", problem, 'Write stored("name").', where=where)
            name = cased(self._record.leaf_name((end.name,)), self._style.case)
            return {(): stored.path or (name,)}
        paths = dict.fromkeys(slot.path for slot in end.identity)
        names = {end.members[0].leaf_name(path): path for path in paths}
        unknown = set(stored.attributes) - set(names)
        if unknown or (stored.path and len(paths) > 1):
            mend = f"Name one attribute for each: stored({', '.join(f'{name}=…' for name in names)})."
            problem = f"{end.type_name} has the key fields {', '.join(names)}."
            self._tell("end-attributes", problem, mend, where=where)
        placed: dict[FieldPath, Path] = {}
        for name, path in names.items():
            usual = cased(self._record.leaf_name((end.name, *path)), self._style.case)
            own = stored.attributes.get(name)
            placed[path] = (own,) if own is not None else stored.path or (usual,)
        return placed


def _as_attribute(key: KeyAttribute, path: FieldPath, type_: FieldType) -> Template | None:
    """Returns the template of a key that is an attribute: its value is written as stored, in no key's format."""
    try:
        text = key_text(type_, declared=type_.written, is_number=key.type == "N")
    except UnusableFormat:
        return None
    return Template((Slot(path, text),))


def _difference(called: Index, listed: Index) -> str:
    """Returns how an index that a type calls differs from the table's index of that name."""
    if called.keys != listed.keys:
        return f"the keys {called.shown_keys}, and the table's has {listed.shown_keys}"
    if called.projection != listed.projection:
        shown = [
            index.projection if isinstance(index.projection, str) else ", ".join(index.projection)
            for index in (called, listed)
        ]
        return f"the projection {shown[0]}, and the table's has {shown[1]}"
    return f"local={called.local}, and the table's has local={listed.local}"
