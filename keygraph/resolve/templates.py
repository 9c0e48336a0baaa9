"""Writes key templates out: names are bound to fields, and ends replaced by the keys of their nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NoReturn

from keygraph.dynamo.table import Shards
from keygraph.keys.ambiguity import are_distinguishable
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
from keygraph.keys.types import FieldType
from keygraph.keys.union import NodeText, Variant, written_out
from keygraph.model.records import End, Method, RecordType
from keygraph.resolve.resolution import BrokenTemplate, Resolution

# --- The table's own keys -----------------------------------------------------------------------------


def table_templates(resolution: Resolution, record: RecordType) -> list[Template]:
    """Returns the templates of a type's own key, one for each key attribute. Raises BrokenTemplate."""
    if record.name in resolution.in_progress:
        problem = "its key refers to itself through an end."
        _refuse_keys(resolution, "circular-key", record, problem, "Write out the key's fields.")
    resolution.in_progress.add(record.name)
    try:
        shards = resolution.declarations[record.name].shards
        return [written(resolution, record, source, shards) for source in _sources(resolution, record)]
    finally:
        resolution.in_progress.discard(record.name)


def _refuse_keys(resolution: Resolution, kind: str, record: RecordType, problem: str, fix: str) -> NoReturn:
    if not resolution.is_broken(record):
        resolution.add(kind, record.name, problem, fix, breaks=record)
    raise BrokenTemplate


def _sources(resolution: Resolution, record: RecordType) -> list[str]:
    """Returns the templates as declared; a node's only template is also its second one."""
    sources = [key for key in resolution.declarations[record.name].keys if isinstance(key, str)]
    wanted = len(resolution.table.keys)
    if len(sources) == 1 and wanted == 2 and record.is_node:
        return sources * 2
    if len(sources) != wanted:
        given = "no template" if not sources else f"{len(sources)} template" + "s" * (len(sources) != 1)
        names = " and ".join(key.name for key in resolution.table.keys)
        problem = f"it has {given} for the table's key."
        _refuse_keys(resolution, "key-templates", record, problem, f"Give one for each of {names}.")
    return sources


def _identity(resolution: Resolution, record: RecordType) -> list[Slot]:
    """Returns the slots that identify a node of that type, before it has keys."""
    slots = [slot for template in table_templates(resolution, record) for slot in template.slots]
    return list({slot.name: slot for slot in slots if not slot.is_shard}.values())


# --- Writing out --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Site:
    """The template that is being written out, with its type and its source."""

    resolution: Resolution
    record: RecordType
    source: str
    shard: FieldType
    """The type of its `{shard}`."""

    def refuse(self, problem: str, fix: str) -> NoReturn:
        """Reports a mistake of the template. Raises BrokenTemplate."""
        source = self.source.encode(errors="backslashreplace").decode()
        problem = f'the template "{source}": {problem}'
        self.resolution.add("template", self.record.name, problem, fix, breaks=self.record)
        raise BrokenTemplate


def written(resolution: Resolution, record: RecordType, source: str, shards: Shards | None) -> Template:
    """Returns the template for this source, with `{shard}` for these shards. Raises BrokenTemplate.

    Each is made, and its mistake reported, once.
    """
    shard, templates = shard_type(shards), resolution.templates
    key = record.name, source, shard
    if key not in templates:
        templates[key] = None
        templates[key] = _write_out(_Site(resolution, record, source, shard))
    template = templates[key]
    if template is None:
        raise BrokenTemplate
    return template


def _write_out(site: _Site) -> Template:
    try:
        parts = read_source(site.source)
    except TemplateError as error:
        site.refuse(f"{error}.", 'Write it as "ORDER#{order_id}".')
    tokens: list[Token] = []
    for part in parts:
        if isinstance(part, str):
            tokens.append(part)
        else:
            made = _tokens(site, site.record, part, part.path)
            tokens.extend([Maybe(tuple(made))] if part.optional else made)
    template = Template(joined(tokens))
    for (each,) in written_out((template,)):
        _refuse_adjacent(site, each.tokens)
    return template


def _tokens(site: _Site, record: RecordType, reference: Reference, path: FieldPath) -> list[Token]:
    """Returns the literal text and slots that a path stands for, seen from that type."""
    name, *inner = path
    if name in record.fields and not inner:
        return [_slot(site, reference, (name,), record.fields[name].type)]
    if name in record.methods and not inner:
        return [_computed(site, reference, record.methods[name])]
    if name == SHARD[0] and not inner and name not in record.fields:
        return [_slot(site, reference, SHARD, site.shard)]
    if name in record.order and site.resolution.is_broken(record):
        raise BrokenTemplate  # its own mistake has been reported
    if name not in record.ends:
        fix = f"Its fields are {', '.join([*record.fields, *record.ends]) or 'none'}."
        site.refuse(f"{reference} is not a field of {record.name}.", fix)
    end = record.ends[name]
    if not inner:
        return list(under(_key(site, record, reference, end), name))
    own, *others = [_key_field(site, member, reference, tuple(inner)) for member in end.members]
    if any(other != own for other in others):
        problem = f"{reference} is written differently in the keys of {_all_of(end.members)}."
        site.refuse(problem, "Give it one type and one format in all of them.")
    return list(under(own, name))


def _key_field(site: _Site, target: RecordType, reference: Reference, inner: FieldPath) -> list[Token]:
    own = _tokens(site, target, reference, inner)
    paths = [slot.path for slot in _identity(site.resolution, target)]
    # In an end of several types, the placeholder of the node determines a key field of the node.
    if not any(path[: len(inner)] == inner[: len(path)] for path in paths):
        fix = f"A template can name {', '.join('.'.join(path) for path in paths)}."
        site.refuse(f"{reference} names no key field of {target.name}.", fix)
    return own


def _key(site: _Site, record: RecordType, reference: Reference, end: End) -> list[Token]:
    """Returns the tokens for a whole node: its partition key, if that identifies it."""
    text = node_text(site.resolution, record, end)
    if text is not None:
        return [Slot((), text)]
    partition = table_templates(site.resolution, end.members[0])[0]
    identity = _identity(site.resolution, end.members[0])
    if not _identifies(partition, identity):
        fields = ", ".join("{" + ".".join((end.name, *slot.path)) + "}" for slot in identity)
        all_of = _all_of(end.members)
        problem = f"{reference} stands for the partition key of {all_of}, which does not identify it."
        site.refuse(problem, f"Write its key fields: {fields}.")
    return list(partition.tokens)


def _slot(site: _Site, reference: Reference, path: FieldPath, type_: FieldType) -> Slot:
    style = site.resolution.style
    declared = style.formats.get(reference.format) if reference.format else type_.written
    try:
        return Slot(path, key_text(type_, reference.format, declared, alphabet=style.alphabet))
    except UnusableFormat as error:
        fix = "Use another field or format."
        if reference.format.isidentifier():
            own = f'formats={{"{reference.format}": Format(…)}}'
            fix = f"Use another field or format, or declare it on the graph: {own}."
        site.refuse(f"{reference}: {error}.", fix)


def _computed(site: _Site, reference: Reference, method: Method) -> Slot:
    if method.needs is None or not method.is_plain:
        fix = "It must not be async or take arguments, and must name the fields it needs."
        site.refuse(f"{method.name} cannot be part of a key.", fix)
    if method.nodes or not method.types[0].is_text:
        fix = "Annotate it as -> str, and return the text as the key has it."
        site.refuse(f"{method.name} returns no text.", fix)
    if reference.format:
        fix = f"Write {{{method.name}}}, and let the method return the text as the key has it."
        site.refuse(f"{reference} has a format, and {method.name} writes its text itself.", fix)
    return Slot((method.name,), key_text(FieldType("string")), computed=True)


def _refuse_adjacent(site: _Site, tokens: tuple[Token, ...]) -> None:
    """Refuses two adjacent placeholders, which cannot be separated unless the first one has a recognizable end."""
    without = [token for token in tokens if not isinstance(token, Maybe)]
    whole = [part for token in tokens for part in (token.tokens if isinstance(token, Maybe) else (token,))]
    for before, token in (*pairwise(whole), *pairwise(without)):
        if isinstance(before, Slot) and isinstance(token, Slot) and not before.text.has_own_end:
            problem = f"there is no text between {{{before.name}}} and {{{token.name}}}."
            site.refuse(f"it cannot be parsed: {problem}", "Put literal text between them.")


# --- Unions -------------------------------------------------------------------------------------------


def node_text(resolution: Resolution, record: RecordType, end: End) -> NodeText | None:
    """Returns the text of a node in a key if it may be of several types with different keys, or if one attribute
    holds several key fields; None for other ends. Raises BrokenTemplate if the text does not show which node it is."""
    key, texts = (record.name, end.name), resolution.node_texts
    if key not in texts:
        texts[key] = BrokenTemplate()
        texts[key] = _make_node_text(resolution, record, end)
    made = texts[key]
    if isinstance(made, BrokenTemplate):
        raise made
    return made


def _make_node_text(resolution: Resolution, record: RecordType, end: End) -> NodeText | None:
    def refuse(problem: str, fix: str) -> NoReturn:
        resolution.add("union-end", f"{record.name}.{end.name}", problem, fix, breaks=record)
        raise BrokenTemplate

    alike: dict[tuple[Template, ...], list[RecordType]] = {}
    first, stored = end.members[0], end.stored
    for member in end.members:
        alike.setdefault(tuple(table_templates(resolution, member)), []).append(member)
    is_whole = stored is not None and stored.whole_key and len(_identity(resolution, first)) > 1
    if len(alike) == 1 and not is_whole:
        return None
    for (own, (mine, *_)), (others, (theirs, *_)) in combinations(alike.items(), 2):
        # Two members with different keys, which may still be ambiguous.
        names = f"{mine.name} and {theirs.name}"
        shapes = shape(*own), shape(*others)
        if is_special_case(*shapes) and is_special_case(*reversed(shapes)):
            refuse(
                f"the keys of {names} are the same, but their fields have different names.",
                "Give the key fields the same names, or give the keys different literal text.",
            )
        if not are_distinguishable(own[:1], others[:1]):
            problem = f"a partition key can be of {names}: {own[0]} and {others[0]}."
            refuse(problem, "Give each its own literal prefix, or make the keys the same.")
    for templates, members in alike.items():
        is_spread = any(slot.is_shard for slot in templates[0].slots)
        if is_spread or not _identifies(templates[0], _identity(resolution, members[0])):
            problem = f"the partition key of {members[0].name} does not identify it, so it does not show which node it is."
            fix = "Put all its key fields into its partition template"
            refuse(problem, f"{fix}, or remove whole_key=True." if is_whole else f"{fix}.")

    # The order of the members in the annotation must not matter.
    def rank(own: tuple[Template, ...]) -> tuple[int, str]:
        return -sum(goes_before(shape(own[0]), shape(other[0])) for other in alike), str(own[0])

    special_first = sorted(alike, key=rank)
    variants = (Variant(tuple(member.name for member in alike[each]), each[0]) for each in special_first)
    return NodeText(FieldType("id"), variants=tuple(variants))


def _all_of(members: Iterable[RecordType]) -> str:
    return " and ".join(member.name for member in members)


def _identifies(partition: Template, identity: Iterable[Slot]) -> bool:
    """Returns whether the partition key alone identifies the node."""
    return partition.slot_names >= {slot.name for slot in identity}
