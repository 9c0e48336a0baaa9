"""Writes key templates out: names are bound to fields, and ends replaced by the keys of their nodes."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import NoReturn

from keygraph.declare.declaration import Declaration
from keygraph.dynamo.table import Shards, Table
from keygraph.keys.ambiguity import are_told_apart
from keygraph.keys.shapes import goes_before, is_special_case, shape
from keygraph.keys.shards import shard_type
from keygraph.keys.template import (
    SHARD,
    FieldPath,
    Maybe,
    Reference,
    Slot,
    Template,
    TemplateError,
    Token,
    joined,
    read_source,
    under,
)
from keygraph.keys.text import UnusableFormat, key_text
from keygraph.keys.types import AttributeStyle, FieldType
from keygraph.keys.union import NodeText, Variant, written_out
from keygraph.model.mistakes import Mistakes
from keygraph.model.records import Method, RecordType


class BrokenTemplate(Exception):
    """A template that cannot be made; its mistake has been reported."""


@dataclass(frozen=True)
class _Site:
    """The template that is being written out, with its type and its source."""

    record: RecordType
    source: str
    shard: FieldType
    """The type of its `{shard}`."""


@dataclass(frozen=True)
class TemplateResolution:
    """Makes the templates of record types; each is made, and its mistake reported, once."""

    _table: Table
    _declarations: Mapping[str, Declaration]
    _style: AttributeStyle
    _mistakes: Mistakes
    _made: dict[_Site, Template | None] = field(default_factory=dict)
    _node_texts: dict[tuple[str, str], NodeText | BrokenTemplate | None] = field(default_factory=dict)
    _under_way: set[str] = field(default_factory=set)

    # --- The table's own keys -------------------------------------------------------------------------

    def table_templates(self, record: RecordType) -> list[Template]:
        """Returns the templates of a type's own key, one for each key attribute. Raises BrokenTemplate."""
        if record.name in self._under_way:
            raise self._refused_keys(
                "circular-key",
                record,
                "its key refers to itself through an end.",
                "Write out the key's fields.",
            )
        self._under_way.add(record.name)
        try:
            shards = self._declarations[record.name].shards
            return [self.written(record, source, shards) for source in self._sources(record)]
        finally:
            self._under_way.discard(record.name)

    def _refused_keys(self, kind: str, record: RecordType, problem: str, mend: str) -> BrokenTemplate:
        if not self._mistakes.is_broken(record):
            self._mistakes.add(kind, record.name, problem, mend, breaks=record.name)
        return BrokenTemplate()

    def _sources(self, record: RecordType) -> list[str]:
        """Returns the templates as declared; a node's only template is also its second one."""
        sources = [key for key in self._declarations[record.name].keys if isinstance(key, str)]
        wanted = len(self._table.keys)
        if len(sources) == 1 and wanted == 2 and record.is_node:
            return sources * 2
        if len(sources) == wanted:
            return sources
        given = "no template" if not sources else f"{len(sources)} template" + "s" * (len(sources) != 1)
        names = " and ".join(key.name for key in self._table.keys)
        problem = f"it has {given} for the table's key."
        raise self._refused_keys("key-templates", record, problem, f"Give one for each of {names}.")

    def _identity(self, record: RecordType) -> list[Slot]:
        """Returns the slots that identify a node of that type, before it has keys."""
        slots = [slot for template in self.table_templates(record) for slot in template.slots]
        return list({slot.name: slot for slot in slots if not slot.is_shard}.values())

    # --- Writing out ----------------------------------------------------------------------------------

    def written(self, record: RecordType, source: str, shards: Shards | None) -> Template:
        """Returns the template for this source, with `{shard}` for these shards. Raises BrokenTemplate."""
        site = _Site(record, source, shard_type(shards))
        if site not in self._made:
            self._made[site] = None
            self._made[site] = self._write_out(site)
        template = self._made[site]
        if template is None:
            raise BrokenTemplate
        return template

    def _write_out(self, site: _Site) -> Template:
        try:
            parts = read_source(site.source)
        except TemplateError as error:
            raise self._refused(site, f"{error}.", 'Write it as "ORDER#{order_id}".') from None
        tokens: list[Token] = []
        for part in parts:
            if isinstance(part, str):
                tokens.append(part)
            else:
                made = self._tokens(site, site.record, part, part.path)
                tokens.extend([Maybe(tuple(made))] if part.optional else made)
        template = Template(joined(tokens))
        for (written,) in written_out((template,)):
            self._look_for_neighbours(site, written.tokens)
        return template

    def _refused(self, site: _Site, problem: str, mend: str) -> BrokenTemplate:
        """Reports a mistake of the template, and returns the exception to raise."""
        name = site.record.name
        source = site.source.encode(errors="backslashreplace").decode()
        self._mistakes.add("template", name, f'the template "{source}": {problem}', mend, breaks=name)
        return BrokenTemplate()

    def _tokens(self, site: _Site, record: RecordType, reference: Reference, path: FieldPath) -> list[Token]:
        """Returns the literal text and slots that a path stands for, seen from that type."""
        name, *inner = path
        if name in record.fields and not inner:
            return [self._slot(site, reference, (name,), record.fields[name].type)]
        if name in record.methods and not inner:
            return [self._computed(site, reference, record.methods[name])]
        if name == SHARD[0] and not inner and name not in record.fields:
            return [self._slot(site, reference, SHARD, site.shard)]
        if name in record.order and self._mistakes.is_broken(record):
            raise BrokenTemplate  # its own mistake has been reported
        if name not in record.ends:
            raise self._refused(
                site,
                f"{reference} is not a field of {record.name}.",
                f"Its fields are {', '.join([*record.fields, *record.ends]) or 'none'}.",
            )
        members = record.ends[name].members
        if inner:
            keys = [self._key_field(site, member, reference, tuple(inner)) for member in members]
            if any(key != keys[0] for key in keys):
                raise self._refused(
                    site,
                    f"{reference} is written differently in the keys of {_all_of(members)}.",
                    "Give it one type and one format in all of them.",
                )
            own = keys[0]
        else:
            own = self._key(site, record, reference, name)
        return list(under(own, name))

    def _key_field(
        self, site: _Site, target: RecordType, reference: Reference, inner: FieldPath
    ) -> list[Token]:
        """Returns the tokens for a key field of a node."""
        own = self._tokens(site, target, reference, inner)
        paths = [slot.path for slot in self._identity(target)]
        # In an end of several types, the placeholder of the node determines a key field of the node.
        if not any(path[: len(inner)] == inner[: len(path)] for path in paths):
            fields = ", ".join(".".join(path) for path in paths)
            raise self._refused(
                site, f"{reference} names no key field of {target.name}.", f"A template can name {fields}."
            )
        return own

    def _key(self, site: _Site, record: RecordType, reference: Reference, end: str) -> list[Token]:
        """Returns the tokens for a whole node: its partition key, if that identifies it."""
        members = record.ends[end].members
        text = self.node_text(record, end)
        if text is not None:
            return [Slot((), text)]
        partition = self.table_templates(members[0])[0]
        identity = self._identity(members[0])
        if not _identifies(partition, identity):
            fields = ", ".join("{" + ".".join((end, *slot.path)) + "}" for slot in identity)
            raise self._refused(
                site,
                f"{reference} stands for the partition key of {_all_of(members)}, which does not identify it.",
                f"Write its key fields: {fields}.",
            )
        return list(partition.tokens)

    # --- Unions ---------------------------------------------------------------------------------------

    def node_text(self, record: RecordType, end: str) -> NodeText | None:
        """Returns the text of a node in a key if it may be of several types with different keys, or if one attribute
        holds several key fields; None for other ends. Raises BrokenTemplate if the text does not show which node it is."""
        key = (record.name, end)
        if key not in self._node_texts:
            self._node_texts[key] = BrokenTemplate()
            self._node_texts[key] = self._make_node_text(record, end)
        made = self._node_texts[key]
        if isinstance(made, BrokenTemplate):
            raise made
        return made

    def _make_node_text(self, record: RecordType, end: str) -> NodeText | None:
        alike: dict[tuple[Template, ...], list[RecordType]] = {}
        first, stored = record.ends[end].members[0], record.ends[end].stored
        for member in record.ends[end].members:
            alike.setdefault(tuple(self.table_templates(member)), []).append(member)
        is_whole = stored is not None and stored.whole_key and len(self._identity(first)) > 1
        if len(alike) == 1 and not is_whole:
            return None
        for (own, (mine, *_)), (others, (theirs, *_)) in combinations(alike.items(), 2):
            # Two members with different keys, which may still be ambiguous.
            names = f"{mine.name} and {theirs.name}"
            shapes = shape(*own), shape(*others)
            if is_special_case(*shapes) and is_special_case(*reversed(shapes)):
                self._refuse_end(
                    record,
                    end,
                    f"the keys of {names} are the same, but their fields have different names.",
                    "Give the key fields the same names, or give the keys different literal text.",
                )
            if not are_told_apart(own[:1], others[:1]):
                self._refuse_end(
                    record,
                    end,
                    f"a partition key can be of {names}: {own[0]} and {others[0]}.",
                    "Give each its own literal prefix, or make the keys the same.",
                )
        for templates, members in alike.items():
            slots = templates[0].slots
            if not _identifies(templates[0], self._identity(members[0])) or any(s.is_shard for s in slots):
                self._refuse_end(
                    record,
                    end,
                    f"the partition key of {members[0].name} does not identify it, so it does not show which node it is.",
                    "Put all its key fields into its partition template"
                    + (", or remove whole_key=True." if is_whole else "."),
                )
        # The order of the members in the annotation must not matter.
        special_first = sorted(
            alike, key=lambda one: (-sum(_goes_before(one, other) for other in alike), str(one[0]))
        )
        variants = (Variant(tuple(member.name for member in alike[each]), each[0]) for each in special_first)
        return NodeText(FieldType("id"), variants=tuple(variants))

    def _refuse_end(self, record: RecordType, end: str, problem: str, mend: str) -> NoReturn:
        self._mistakes.add("union-end", f"{record.name}.{end}", problem, mend, breaks=record.name)
        raise BrokenTemplate

    def _slot(self, site: _Site, reference: Reference, path: FieldPath, type_: FieldType) -> Slot:
        try:
            formats, alphabet = self._style.formats, self._style.alphabet
            declared = formats.get(reference.format) if reference.format else type_.written
            return Slot(path, key_text(type_, reference.format, declared, alphabet=alphabet))
        except UnusableFormat as error:
            mend = "Use another field or format."
            if reference.format.isidentifier():
                own = f'formats={{"{reference.format}": Format(…)}}'
                mend = f"Use another field or format, or declare it on the graph: {own}."
            raise self._refused(site, f"{reference}: {error}.", mend) from None

    def _computed(self, site: _Site, reference: Reference, method: Method) -> Slot:
        is_async = inspect.iscoroutinefunction(method.function)
        if is_async or method.needs is None or len(method.signature.parameters) > 1:
            raise self._refused(
                site,
                f"{method.name} cannot be part of a key.",
                "It must not be async or take arguments, and must name the fields it needs.",
            )
        if method.nodes or not method.types[0].is_text:
            raise self._refused(
                site,
                f"{method.name} returns no text.",
                "Annotate it as -> str, and return the text as the key has it.",
            )
        if reference.format:
            raise self._refused(
                site,
                f"{reference} has a format, and {method.name} writes its text itself.",
                f"Write {{{method.name}}}, and let the method return the text as the key has it.",
            )
        return Slot((method.name,), key_text(FieldType("string")), computed=True)

    def _look_for_neighbours(self, site: _Site, tokens: tuple[Token, ...]) -> None:
        """Refuses two adjacent placeholders, which cannot be separated unless the first one has a recognizable end."""
        without = [token for token in tokens if not isinstance(token, Maybe)]
        whole = [
            part for token in tokens for part in (token.tokens if isinstance(token, Maybe) else (token,))
        ]
        for flat in (whole, without):
            for before, token in pairwise(flat):
                if isinstance(before, Slot) and isinstance(token, Slot) and not before.text.has_own_end:
                    raise self._refused(
                        site,
                        "it cannot be parsed: "
                        f"there is no text between {{{before.name}}} and {{{token.name}}}.",
                        "Put literal text between them.",
                    )


def _all_of(members: Iterable[RecordType]) -> str:
    return " and ".join(member.name for member in members)


def _identifies(partition: Template, identity: Iterable[Slot]) -> bool:
    """Returns whether the partition key alone identifies the node."""
    return partition.slot_names >= {slot.name for slot in identity}


def _goes_before(own: tuple[Template, ...], others: tuple[Template, ...]) -> bool:
    """Returns whether a partition key that both could have belongs to the first one."""
    return goes_before(shape(own[0]), shape(others[0]))
