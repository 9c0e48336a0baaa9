"""From declarations to record types: annotations, key templates with their ends written out, attributes.

`resolve` never raises for a mistake of the declaration; it collects them all. A type with a mistake is left out of
what comes after, so that one mistake is told once.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING
from types import SimpleNamespace
from typing import Any, Literal

from keygraph.conditions import Path
from keygraph.declaration import (
    Declaration,
    ListOptions,
    Many,
    One,
    StoredAs,
    declaration_of,
    method_options,
)
from keygraph.docstrings import docstring, member_docstrings
from keygraph.errors import Mistake
from keygraph.key_text import KeyText, UnusableFormat
from keygraph.names import cased
from keygraph.records import DeclaredList, End, Field, Keys, Method, RecordType
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
from keygraph.types import FieldType, UnknownType, field_type, is_optional


class _Broken(Exception):
    """A template that cannot be made; its mistake has been told."""


def leaf_name(record: RecordType, path: FieldPath) -> str:
    """The snake-case name of a field or of an end's key field, as arguments and attributes are called.

    An end is `<end>_id`, or `<end>_<field>` where its node has several key fields, and so on inward.
    """
    name, *inner = path
    if name not in record.ends or not inner:
        return name
    target = record.ends[name].target
    if len(target.identity) == 1:
        return f"{name}_id"
    return f"{name}_{leaf_name(target, tuple(inner))}"


class Resolution:
    """The record types of a list of classes, and what is wrong with them."""

    def __init__(self, table: Table, classes: Sequence[type], case: str) -> None:
        self.table = table
        self.case = case
        self.mistakes: list[Mistake] = []
        self.types: dict[str, RecordType] = {}
        self._declarations: dict[str, Declaration] = {}
        self._broken: set[str] = set()
        self._table_templates: dict[tuple[str, int], Template | None] = {}
        for cls in classes:
            self._add(cls)
        for record in self.types.values():
            self._read_fields(record)
        for record in self.types.values():
            self._make_table_keys(record)
        for record in self.sound_types:
            self._place_ends(record)
        for record in self.sound_types:
            self._make_index_keys(record)

    @property
    def sound_types(self) -> list[RecordType]:
        """The types whose fields and table keys are known."""
        return [record for record in self.types.values() if record.name not in self._broken]

    def _mistake(self, kind: str, where: str, problem: str, mend: str, *, breaks: str | None = None) -> None:
        self.mistakes.append(Mistake(kind, where, problem, mend))
        if breaks is not None:
            self._broken.add(breaks)

    # --- Classes --------------------------------------------------------------------------------------

    def _add(self, cls: type) -> None:
        name = getattr(cls, "__name__", str(cls))
        declaration = declaration_of(cls) if inspect.isclass(cls) else None
        if declaration is None or declaration.kind == "fields":
            self._mistake(
                "not-a-type", name, "it is no node, edge or record.", "Decorate it, or leave it out of the graph."
            )
            return
        if name in self.types:
            self._mistake("duplicate-type", name, "two types have this name.", "Rename one of them.")
            return
        self._declarations[name] = declaration
        self.types[name] = RecordType(
            name=name,
            cls=cls,
            kind=declaration.kind,
            type_value=declaration.type_value,
            is_virtual=declaration.is_virtual,
            description=docstring(declaration.docstring),
            table=self.table,
        )

    # --- Fields ---------------------------------------------------------------------------------------

    def _read_fields(self, record: RecordType) -> None:
        own: dict[str, StoredAs | ListOptions] = {}
        descriptions: dict[str, str] = {}
        annotations: dict[str, tuple[Any, Mapping[str, Any], Mapping[str, Any]]] = {}
        for cls in reversed(record.cls.__mro__):
            declaration = declaration_of(cls)
            if declaration is None:
                continue
            own.update(declaration.own)
            descriptions.update(member_docstrings(cls))
            seen: Mapping[str, Any] = vars(sys.modules[cls.__module__])
            listed = {name: type_.cls for name, type_ in self.types.items()}
            for name, annotation in inspect.get_annotations(cls).items():
                annotations[name] = (annotation, seen, {**declaration.namespace, **listed})
        for name, (annotation, seen, names) in annotations.items():
            found = self._evaluate(record, name, annotation, seen, names)
            if found is not None:
                self._read_field(record, name, found, own.get(name), descriptions.get(name))
        self._read_methods(record)
        self._look_for_shared_attributes(record)

    def _evaluate(
        self,
        record: RecordType,
        name: str,
        annotation: Any,
        seen: Mapping[str, Any],
        names: Mapping[str, Any],
    ) -> Any:
        holder: Any = SimpleNamespace(__annotations__={name: annotation})
        try:
            return typing.get_type_hints(holder, dict(seen), dict(names), include_extras=True)[name]
        except (NameError, TypeError, SyntaxError, AttributeError) as error:
            self._mistake(
                "unknown-name",
                f"{record.name}.{name}",
                f"its annotation cannot be read: {error}.",
                "Import the name, or list the type in the graph.",
                breaks=record.name,
            )
            return None

    def _read_field(
        self,
        record: RecordType,
        name: str,
        annotation: Any,
        own: StoredAs | ListOptions | None,
        description: str | None,
    ) -> None:
        where = f"{record.name}.{name}"
        annotation, optional = is_optional(annotation)
        if typing.get_origin(annotation) in (Many, One):
            self._read_list(record, name, annotation, own, description)
            return
        if isinstance(own, ListOptions):
            self._mistake(
                "not-a-list",
                where,
                "many() and one() stand on the right of Many[…] and One[…].",
                "Annotate it so.",
            )
            return
        target = self._listed(annotation)
        if target is not None and target.is_node:
            record.ends[name] = End(name, target, optional, {}, description)
            return
        if isinstance(annotation, type) and declaration_of(annotation) is not None:
            problem = "is no node" if target is not None else "is not listed in the graph"
            self._mistake(
                "unknown-end",
                where,
                f"{annotation.__name__} {problem}.",
                "An end is a node that the graph lists.",
                breaks=record.name,
            )
            return
        try:
            type_ = field_type(annotation, self.case)
        except UnknownType as error:
            self._mistake(
                "unknown-type",
                where,
                f"{error}.",
                "Use a type of DESIGN's section on attributes, or list the type in the graph.",
                breaks=record.name,
            )
            return
        if name == "id" and record.is_node:
            self._mistake(
                "field-called-id",
                where,
                "`id` is the global id of a node.",
                f'Name the field otherwise: {record.name.lower()}_id: ID = stored("id").',
            )
        if name == SHARD[0]:
            self._mistake(
                "field-called-shard", where, "`shard` is the placeholder of a shard.", "Name the field otherwise."
            )
        attribute = own.path if own is not None and own.path else (cased(name, self.case),)
        if own is not None and own.attributes:
            self._mistake(
                "attributes-of-no-end",
                where,
                "stored() names one attribute for each key field, but this is no end.",
                'Write stored("name").',
            )
        default = self._default(record.cls, name)
        record.fields[name] = Field(name, type_, optional, attribute, default, description)

    def _default(self, cls: type, name: str) -> Any:
        for declared in dataclasses.fields(cls):
            if declared.name == name:
                if declared.default_factory is not MISSING:
                    return declared.default_factory()
                return declared.default
        return MISSING

    def _listed(self, annotation: Any) -> RecordType | None:
        for record in self.types.values():
            if record.cls is annotation:
                return record
        return None

    def _read_list(
        self,
        record: RecordType,
        name: str,
        annotation: Any,
        own: StoredAs | ListOptions | None,
        description: str | None,
    ) -> None:
        where = f"{record.name}.{name}"
        [of] = typing.get_args(annotation)
        target = self._listed(of)
        if not record.is_node:
            self._mistake(
                "list-on-no-node", where, "only a node has lists.", "Move it to the node at one of the ends."
            )
        elif target is None:
            self._mistake(
                "unknown-neighbour",
                where,
                f"{getattr(of, '__name__', of)} is not listed in the graph.",
                "List it in the graph.",
            )
        else:
            options = own if isinstance(own, ListOptions) else ListOptions(None, None)
            is_one = typing.get_origin(annotation) is One
            record.lists[name] = DeclaredList(name, target, is_one, options, description)

    def _read_methods(self, record: RecordType) -> None:
        for cls in reversed(record.cls.__mro__):
            for name, function in vars(cls).items():
                options = method_options(function)
                if options is None:
                    continue
                unknown = [
                    need for need in options.needs or () if need not in record.fields and need not in record.ends
                ]
                if unknown:
                    self._mistake(
                        "unknown-need",
                        f"{record.name}.{name}",
                        f"it needs {', '.join(unknown)}, which {record.name} does not have.",
                        "Name stored fields of the type.",
                    )
                    continue
                hints = self._method_hints(record, name, function)
                if hints is not None:
                    signature = inspect.signature(function)
                    record.methods[name] = Method(
                        name, function, options.needs, signature, hints, docstring(function.__doc__)
                    )

    def _method_hints(self, record: RecordType, name: str, function: Any) -> dict[str, Any] | None:
        listed = {type_.name: type_.cls for type_ in self.types.values()}
        names: dict[str, Any] = {**self._declarations[record.name].namespace, **listed}
        try:
            hints = typing.get_type_hints(function, localns=names, include_extras=True)
        except (NameError, TypeError) as error:
            self._mistake(
                "unknown-name",
                f"{record.name}.{name}",
                f"its annotations cannot be read: {error}.",
                "Import the name.",
            )
            return None
        if "return" not in hints:
            self._mistake(
                "unknown-type", f"{record.name}.{name}", "it does not say what it returns.", "Annotate it."
            )
            return None
        return hints

    def _look_for_shared_attributes(self, record: RecordType) -> None:
        holders: dict[Path, str] = {}
        for field in record.fields.values():
            other = holders.setdefault(field.attribute, field.name)
            if other != field.name:
                self._mistake(
                    "attribute-twice",
                    f"{record.name}.{field.name}",
                    f"the attribute {'.'.join(field.attribute)} is stored by {other} already.",
                    'Give one of them another: stored("name").',
                )

    # --- Key templates --------------------------------------------------------------------------------

    def _table_sources(self, record: RecordType) -> list[str]:
        """The templates of the table's own key, as they are written: one for each key attribute."""
        sources = [key for key in self._declarations[record.name].keys if isinstance(key, str)]
        wanted = len(self.table.keys)
        if len(sources) == 1 and wanted == 2 and record.is_node:
            sources = sources * 2
        if len(sources) == wanted:
            return sources
        given = "no template" if not sources else f"{len(sources)} template" + "s" * (len(sources) != 1)
        names = " and ".join(key.name for key in self.table.keys)
        if record.name not in self._broken:
            self._mistake(
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
            if record.name not in self._broken:
                self._mistake(
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
        for number in range(len(self.table.keys)):
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
        self._mistake("template", record.name, f'the template "{source}": {problem}', mend, breaks=record.name)

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
        flat = [inner for token in tokens for inner in (token.tokens if isinstance(token, Maybe) else (token,))]
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
            templates = [self._table_template(record, number) for number in range(len(self.table.keys))]
        except _Broken:
            self._broken.add(record.name)
            return
        sort = templates[1] if len(templates) == 2 else None
        shards = self._shards(record, None, templates[0], declaration.shards)
        record.keys[None] = Keys(
            None, self.table.keys, templates[0], sort, shards, declaration.lists, None
        )
        if record.is_node and not record.identity:
            self._mistake(
                "node-without-key-fields",
                record.name,
                "its key has no placeholder, so that there could be one of it alone.",
                "Put a field into its key template.",
                breaks=record.name,
            )
        if record.kind == "edge" and len(record.key_ends) != 2:
            ends = ", ".join(record.key_ends) or "none"
            self._mistake(
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
            self._mistake(
                "shards", where, "its partition has {shard} and no number of shards.", "Say shards=5, or so."
            )
            return 1
        if given is not None and not is_spread:
            self._mistake(
                "shards", where, "it has shards= but no {shard} in its partition.", "Put {shard} into it."
            )
            return None
        return given

    def _make_index_keys(self, record: RecordType) -> None:
        calls: dict[str, IndexKey] = {}
        templates = {
            attribute.name: template
            for attribute, template in zip(self.table.keys, record.table_keys.templates, strict=True)
        }
        for call in self._declarations[record.name].keys:
            if not isinstance(call, IndexKey):
                continue
            if call.index not in self.table.indexes:
                self._mistake(
                    "unknown-index",
                    record.name,
                    f"the table {self.table.name} has no index {call.index.name}.",
                    f"List it: Table({self.table.name!r}, …, indexes=[…]).",
                )
            elif call.index.name in calls:
                self._mistake(
                    "index-twice", record.name, f"it is in {call.index.name} twice.", "An item is there once."
                )
            else:
                calls[call.index.name] = call
                self._assign(record, call, templates)
        for index in self.table.indexes:
            self._make_keys_in(record, index, calls.get(index.name), templates)

    def _assign(self, record: RecordType, call: IndexKey, templates: dict[str, Template]) -> None:
        """Gives the call's templates to the index's key attributes: to all, or to those not known yet."""
        attributes = list(call.index.keys)
        if len(call.templates) < len(attributes):
            attributes = [key for key in attributes if self._known(record, key, templates) is None]
        if len(call.templates) > len(attributes):
            names = " and ".join(key.name for key in attributes) or "nothing"
            self._mistake(
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
                self._mistake(
                    "two-templates",
                    record.name,
                    f"the attribute {attribute.name} has two templates: {templates[attribute.name]} and {template}.",
                    "An attribute has one value.",
                )

    def _known(self, record: RecordType, key: KeyAttribute, templates: Mapping[str, Template]) -> Template | None:
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
            if call is not None and record.name not in self._broken:
                self._mistake(
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
            if end.target.name in self._broken:
                self._broken.add(record.name)
                continue
            own = given.get(end.name)
            stored = own if isinstance(own, StoredAs) else StoredAs((), {})
            record.ends[end.name] = dataclasses.replace(end, attributes=self._attributes(record, end, stored))

    def _attributes(self, record: RecordType, end: End, stored: StoredAs) -> dict[FieldPath, Path]:
        paths = list(dict.fromkeys(slot.path for slot in end.target.identity))
        names = {leaf_name(end.target, path): path for path in paths}
        unknown = set(stored.attributes) - set(names)
        if unknown or (stored.path and len(paths) > 1):
            self._mistake(
                "end-attributes",
                f"{record.name}.{end.name}",
                f"{end.target.name} has the key fields {', '.join(names)}.",
                "Name one attribute for each: "
                f"stored({', '.join(f'{name}=…' for name in names)}).",
            )
        placed: dict[FieldPath, Path] = {}
        for name, path in names.items():
            if name in stored.attributes:
                placed[path] = (stored.attributes[name],)
            elif stored.path:
                placed[path] = stored.path
            else:
                placed[path] = (cased(leaf_name(record, (end.name, *path)), self.case),)
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


_FIXED_KINDS: tuple[Literal["enum", "boolean", "date"], ...] = ("enum", "boolean", "date")


def _has_fixed_texts(slot: Slot) -> bool:
    return slot.text.type.kind in _FIXED_KINDS and not slot.text.format
