"""Makes the keys of record types in the table and the indexes, and the attributes of their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from keygraph.declare.declaration import StoredAs
from keygraph.dynamo.conditions import Path
from keygraph.dynamo.table import Index, IndexKey, KeyAttribute, Shards
from keygraph.keys.formats import Format
from keygraph.keys.shards import Shard, shards_of
from keygraph.keys.template import FieldPath, Slot, Template, under
from keygraph.keys.text import BytesText, UnusableFormat, key_text
from keygraph.keys.types import FieldType
from keygraph.keys.union import NodeText, whole_key
from keygraph.model.record_keys import Keys
from keygraph.model.records import End, RecordType
from keygraph.names import cased
from keygraph.resolve.options import SHARDS
from keygraph.resolve.resolution import BrokenTemplate, Resolution
from keygraph.resolve.templates import node_text, table_templates, written


def resolve_keys(resolution: Resolution) -> None:
    """Gives each record type its keys in the table and the indexes, and its ends their attributes."""
    records = resolution.types.values()
    for record in records:
        _make_table_keys(resolution, record)
    for record in records:
        _change_ends(resolution, record, lambda of, end: replace(end, text=node_text(resolution, of, end)))
    for record in (each for each in records if not resolution.is_broken(each)):
        _change_ends(
            resolution,
            record,
            lambda of, end: replace(
                end, attributes=_attributes(resolution, of, end), written=_written(resolution, of, end)
            ),
        )
        for end in record.list_ends.values():
            if end.attributes:
                _place_list(resolution, record, end)
    for record in (each for each in records if not resolution.is_broken(each)):
        _make_index_keys(resolution, record)


# --- Keys ---------------------------------------------------------------------------------------------


def _make_table_keys(resolution: Resolution, record: RecordType) -> None:
    declaration, attributes = resolution.declarations[record.name], resolution.table.keys
    try:
        made = table_templates(resolution, record)
        # No item has a virtual node's sort key, so its partition template need not be valid there.
        has_one = record.is_virtual and made[-1] == made[0]
        templates = [
            template if number and has_one else _fitted(resolution, record, attribute, template)
            for number, (attribute, template) in enumerate(zip(attributes, made, strict=True))
        ]
    except BrokenTemplate:
        resolution.broken.add(record.name)
        return
    sort = templates[1] if len(templates) == 2 else None
    shards = _shards(resolution, record, None, templates[0], declaration.shards)
    if not shards:
        _refuse_shard_in_sort(resolution, record, sort)
    record.keys[None] = Keys(None, attributes, templates[0], sort, shards, declaration.lists, None)
    if record.is_node and not record.identity:
        problem = "its key has no placeholder, so there could be only one such node."
        fix = "Add a field to its key template."
        resolution.add("node-without-key-fields", record.name, problem, fix, breaks=record)
    if record.kind == "edge" and len(record.key_ends) != 2:
        ends = f"{len(record.key_ends)} ({', '.join(record.key_ends) or 'none'})"
        problem = f"an edge has two ends in its table key; this one has {ends}."
        resolution.add(
            "edge-ends", record.name, problem, "Put two ends into it, or declare a record.", breaks=record
        )


def _shards(
    resolution: Resolution, record: RecordType, index: Index | None, partition: Template, given: Shards | None
) -> tuple[Shard, ...]:
    where = record.name if index is None else f"{record.name} in {index.name}"
    is_spread, shards = any(slot.is_shard for slot in partition.slots), shards_of(given)
    if is_spread and given is None:
        resolution.add("shards", where, "its partition has {shard} and no shards=.", SHARDS)
    elif shards and not is_spread:
        problem = "it has shards= but no {shard} in its partition."
        resolution.add("shards", where, problem, "Put {shard} into it.")
    return (shards or shards_of(1)) if is_spread else ()


def _fitted(resolution: Resolution, record: RecordType, key: KeyAttribute, template: Template) -> Template:
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
    elif key.type == "S" and any(isinstance(slot.text, BytesText) for slot in template.slots):
        problem = "bytes cannot be part of a key of type S"
    if problem is None:
        return template
    problem = f'the template "{template}" for {key.name}, which is of type {key.type}: {problem}.'
    resolution.add("key-type", record.name, problem, "Use a field of the key's type.", breaks=record)
    raise BrokenTemplate


def _refuse_shard_in_sort(resolution: Resolution, record: RecordType, sort: Template | None) -> None:
    is_spread = sort is not None and any(slot.is_shard for slot in sort.slots)
    if is_spread and not resolution.is_broken(record):
        problem = "{shard} is in a sort key, where it has no effect."
        resolution.add("shards", record.name, problem, "Move it to the partition template.", breaks=record)


def _make_index_keys(resolution: Resolution, record: RecordType) -> None:
    calls: dict[str, IndexKey] = {}
    misused: set[str] = set()
    templates = {attribute.name: template for attribute, template in record.table_keys.parts}
    table = resolution.table
    for call in resolution.declarations[record.name].keys:
        if not isinstance(call, IndexKey):
            continue
        call = replace(call, index=table.own(call.index))
        name = call.index.name
        named = next((index for index in table.indexes if index.name == name), None)
        if named is not None and named != call.index:
            problem = f"the index {name} that it calls has {_difference(call.index, named)}."
            fix = "Declare the index once, and use it on the table and on the types."
            resolution.add("other-index", record.name, problem, fix, breaks=record)
        elif named is None:
            problem = f"the table {table.name} has no index {name}."
            fix = f"List it: Table({table.name!r}, …, indexes=[…])."
            resolution.add("unknown-index", record.name, problem, fix, breaks=record)
        elif name in calls:
            fix = "An item is in an index only once."
            resolution.add("index-twice", record.name, f"it is in {name} twice.", fix, breaks=record)
            misused.add(name)
        else:
            calls[name] = call
            if not _assign(resolution, record, call, templates):
                misused.add(name)
    for index in table.indexes:
        if index.name not in misused:
            _make_keys_in(resolution, record, index, calls.get(index.name), templates)


def _assign(
    resolution: Resolution, record: RecordType, call: IndexKey, templates: dict[str, Template]
) -> bool:
    """Gives the call's templates to the index's key attributes: to all, or to those without a known template.

    Returns False on a mistake.
    """
    attributes = list(call.index.keys)
    if len(call.templates) < len(attributes):
        attributes = [key for key in attributes if _known(resolution, record, key, templates) is None]
    if len(call.templates) > len(attributes):
        names = " and ".join(key.name for key in attributes)
        number = f"{len(call.templates)} template" + "s" * (len(call.templates) != 1)
        problem = f"{call.index.name} is called with {number}."
        fix = f"It needs those of {names}." if names else "It needs none: all its keys are known."
        resolution.add("key-templates", record.name, problem, fix, breaks=record)
        return False
    is_right = True
    shards = resolution.declarations[record.name].shards if call.shards is None else call.shards
    for key, source in zip(attributes, call.templates, strict=False):
        try:
            template = _fitted(resolution, record, key, written(resolution, record, source, shards))
        except BrokenTemplate:
            return False
        known = _known(resolution, record, key, templates)
        # Equal spellings mean equal templates; only written-out templates have the graph's alphabet.
        if known is not None and str(known) != str(template):
            problem = f'{key.name} is the attribute of {known}, but {call.index.name} gives it the template "{template}".'
            fix = f"Leave that template out, or store {known} in another attribute."
            if key.name in templates:
                problem = f"the attribute {key.name} has two templates: {known}, and {template} in {call.index.name}."
                fix = "An attribute has one value: give one template, and leave the other out."
            resolution.add("two-templates", record.name, problem, fix, breaks=record)
            is_right = False
        templates[key.name] = template
    return is_right


def _known(
    resolution: Resolution, record: RecordType, key: KeyAttribute, templates: Mapping[str, Template]
) -> Template | None:
    """Returns the template of a key attribute: one given before, or the field that is stored there."""
    if key.name in templates:
        return templates[key.name]
    for field in record.fields.values():
        if field.attribute == (key.name,):
            return _as_attribute(key, (field.name,), field.type)
    for end in record.ends.values():
        for slot in end.identity:
            if end.attributes[slot.path] != (key.name,):
                continue
            if end.written is not None:
                whole = Template(under(end.members[0].table_keys.partition.tokens, end.name))
                return _fitted(resolution, record, key, whole)
            if slot.computed or isinstance(slot.text, NodeText):
                return _fitted(resolution, record, key, Template((slot.under(end.name),)))
            return _as_attribute(key, (end.name, *slot.path), slot.text.type)
    return None


def _as_attribute(key: KeyAttribute, path: FieldPath, type_: FieldType) -> Template | None:
    """Returns the template of a key that is an attribute: its value is written as stored, in no key's format."""
    try:
        text = key_text(type_, declared=type_.written, is_number=key.type == "N")
    except UnusableFormat:
        return None
    return Template((Slot(path, text),))


def _make_keys_in(
    resolution: Resolution,
    record: RecordType,
    index: Index,
    call: IndexKey | None,
    templates: Mapping[str, Template],
) -> None:
    partition = _known(resolution, record, index.partition, templates)
    sort = None if index.sort is None else _known(resolution, record, index.sort, templates)
    if partition is None or (call is None and index.sort is not None and sort is None):
        if call is not None and not resolution.is_broken(record):
            problem = f"{index.name} is called without a template for {index.partition.name}."
            fix = f'Say {index.name.lower()}("…").'
            resolution.add("key-templates", record.name, problem, fix, breaks=record)
        return
    own, shards = record.table_keys.partition, call.shards if call else None
    if shards is None and sort != own:
        _refuse_shard_in_sort(resolution, record, sort)
    if shards is None and partition == own:
        shards = resolution.declarations[record.name].shards
    lists, finds = (call.lists, call.finds) if call else (None, None)
    spread = _shards(resolution, record, index, partition, shards)
    record.keys[index.name] = Keys(index, index.keys, partition, sort, spread, lists, finds)


def _difference(called: Index, listed: Index) -> str:
    """Returns how an index that a type calls differs from the table's index of that name."""
    if called.keys != listed.keys:
        return f"the keys {called.shown_keys}, and the table's has {listed.shown_keys}"
    if called.projection != listed.projection:
        own, other = (
            index.projection if isinstance(index.projection, str) else ", ".join(index.projection)
            for index in (called, listed)
        )
        return f"the projection {own}, and the table's has {other}"
    return f"local={called.local}, and the table's has local={listed.local}"


# --- Attributes of ends -------------------------------------------------------------------------------


def _change_ends(
    resolution: Resolution, record: RecordType, changed: Callable[[RecordType, End], End]
) -> None:
    """Changes each end, and those of lists; an end to an unusable type breaks this type too."""
    for ends in (record.ends, record.list_ends):
        for name, end in ends.items():
            try:
                if any(map(resolution.is_broken, end.members)):
                    raise BrokenTemplate
                ends[name] = changed(record, end)
            except BrokenTemplate:
                resolution.broken.add(record.name)


def _written(resolution: Resolution, record: RecordType, end: End) -> Format | None:
    """Returns how the attribute of an end writes the node's only key field, if it holds the whole partition key."""
    if end.text is not None or end.stored is None or not end.stored.whole_key:
        return None
    node, is_text = end.members[0], resolution.table.partition.type == "S"
    found = whole_key(node.table_keys.partition, node.identity) if is_text else None
    if found is None:
        problem = f"its partition key, {node.table_keys.partition}, is no text with its key field in it."
        fix = "Store the key fields, without whole_key=True."
        resolution.add("end-attributes", f"{record.name}.{end.name}", problem, fix)
    return found


def _place_list(resolution: Resolution, record: RecordType, end: End) -> None:
    """Gives a list or set of nodes the attribute and the type of its end."""
    fields, [(path, attribute)], [slot] = record.fields, end.attributes.items(), end.identity
    names = [*fields]
    before = names[: names.index(end.name)]
    for other in fields.values():
        is_list = other.name in record.list_ends
        if other.attribute == attribute and (not is_list or other.name in before):
            problem = f"the attribute {'.'.join(attribute)} is stored by {other.name} already."
            fix = 'Give one of them another: stored("name").'
            resolution.add("attribute-twice", f"{record.name}.{end.name}", problem, fix)
    field = fields[end.name]
    of, ids_name = replace(field.type, of=end.attribute_type(slot)), end.leaf_name(path)
    fields[end.name] = replace(field, attribute=attribute, type=of, ids_name=ids_name)


def _attributes(resolution: Resolution, record: RecordType, end: End) -> dict[FieldPath, Path]:
    stored, where = end.stored or StoredAs((), {}), f"{record.name}.{end.name}"
    if end.text is not None:
        if stored.attributes:
            problem = f"one attribute holds the key of a {end.type_name}, which tells the type."
            resolution.add("end-attributes", where, problem, 'Write stored("name").')
        return {(): stored.path or (cased(end.leaf_name(()), resolution.style.case),)}
    names = {end.members[0].leaf_name(slot.path): slot.path for slot in end.identity}
    if end.is_list and len(names) > 1:
        problem = f"a member is one value, and {end.type_name} has the key fields {', '.join(names)}."
        resolution.add("end-attributes", where, problem, "Store whole keys: stored(whole_key=True).")
        raise BrokenTemplate
    if {*stored.attributes} - {*names} or (stored.path and len({slot.path for slot in end.identity}) > 1):
        problem = f"{end.type_name} has the key fields {', '.join(names)}."
        fix = f"Name one attribute for each: stored({', '.join(f'{name}=…' for name in names)})."
        resolution.add("end-attributes", where, problem, fix)
    placed: dict[FieldPath, Path] = {}
    for name, path in names.items():
        own = stored.attributes.get(name)
        usual = stored.path or (cased(end.leaf_name(path), resolution.style.case),)
        placed[path] = usual if own is None else (own,)
    return placed
