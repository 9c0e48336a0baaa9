"""Checks a graph whose types are valid on their own: paths, types that cannot be distinguished, projections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

from keygraph.declare.decorators import options_of
from keygraph.dynamo.conditions import holds
from keygraph.dynamo.limits import KEY_BYTES
from keygraph.errors import Mistake
from keygraph.keys.ambiguity import common_key, never_meet
from keygraph.keys.types import PLAIN, FieldType, encode
from keygraph.model.candidates import possible, stands_beside
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath, may_be_missing
from keygraph.model.records import DeclaredList, End, RecordType
from keygraph.resolve.fields import kept_name
from keygraph.resolve.record_types import RecordTypes
from keygraph.resolve.several import candidates_of, root_candidates
from keygraph.resolve.type_values import TypeValue, condition_on, has_value

_Wrong: TypeAlias = Iterator[tuple[str, str, str]]
"""Location, problem and fix of each mistake."""


def graph_mistakes(model: RecordTypes) -> Iterator[Mistake]:
    """Yields every mistake that this module checks for."""
    of_graph: dict[str, Callable[[RecordTypes], _Wrong]] = {
        "not-told-apart": _indistinct_types,
        "ignore": _ignored_items_of_types,
        "type-not-projected": _types_not_projected,
        "type-value": _type_values_not_written,
        "mirror-list": _lists_twice,
        "gather": _gathers_nothing,
        "ttl": _hidden_expiries,
        "was": _former_attributes_in_use,
    }
    of_type: dict[str, Callable[[RecordType], _Wrong]] = {
        "union-end": _members_without_item,
        "virtual-field": _fields_without_item,
        "external-key": _keys_of_others,
        "not-in-key": _fields_in_no_key,
        "optional-part": _fields_never_absent,
        "key-part": _fields_maybe_absent,
        "kept-key": _fields_set_in_key,
        "key-size": _keys_too_long,
    }
    yield from _lists_without_one_path(model)
    yield from _root_lists_without_one_path(model)
    for kind, check in of_graph.items():
        yield from (Mistake(kind, *wrong) for wrong in check(model))
    for kind, check_type in of_type.items():
        yield from (Mistake(kind, *wrong) for record in model.types.values() for wrong in check_type(record))


def _former_attributes_in_use(model: RecordTypes) -> _Wrong:
    """Finds fields whose former attribute holds something else, and those that keys hold, which need none."""
    for record in model.types.values():
        for field in record.fields.values() if record.former else ():
            if field.former is None:
                continue
            where, [name] = f"{record.name}.{field.name}", field.former
            others = [
                place.path[0]
                for place in record.places
                if place.attribute[0] == name and place.path[0] != field.name
            ]
            if name in {*model.type_values.attributes, *(key.name for key in model.table.key_attributes())}:
                others.append("a key, or the type of the item,")
            if others or field.attribute[0] == name:
                problem = (
                    f"was= names {name}, and {others[0] if others else 'the field itself'} is stored there."
                )
                yield where, problem, "Name the attribute that older items have."
            if field.name in record.key_fields or field.attribute[0] in record.key_attributes:
                yield where, "a key holds it, so its attribute has no other name.", "Remove was=."
            elif field.attribute[0] in model.type_values.attributes:
                problem = f"{field.attribute[0]} tells the types of items apart, and older items lack it."
                yield where, problem, "Write the attribute into all items first, and remove was=."


def _lists_without_one_path(model: RecordTypes) -> Iterator[Mistake]:
    for (owner, name), paths in model.list_candidates.items():
        if not paths:
            record = model.types[owner]
            yield Mistake("no-path", f"{owner}.{name}", *_why_no_list(record, record.lists[name]))
        elif len(paths) > 1:
            yield Mistake("several-paths", f"{owner}.{name}", *_why_several_paths(paths))
        elif wrong := _unmeant_arguments(paths[0], model.types[owner].lists[name].options.needs):
            yield Mistake("list-needs", f"{owner}.{name}", *wrong)


def _unmeant_arguments(path: AccessPath, meant: tuple[str, ...] | None) -> tuple[str, str] | None:
    """Explains which required arguments nobody expects, and how to fix it: the partition is that of another node. None if
    there are none, or if the model says that they are meant."""
    names = tuple(argument.name for argument in path.required)
    of, option = path.record, f"many(needs={names})".replace("'", '"')
    if meant is not None:
        problem = f"needs= names {' and '.join(meant) or 'nothing'}, and its required arguments are {' and '.join(names) or 'none'}."
        return None if {*meant} == {*names} else (problem, f"Write {option}." if names else "Remove needs=.")
    others = [each.name for each in path.required if each.slot.path[0] in of.ends]
    if not others or any(slot.name in path.known for slot in path.keys.partition.slots):
        return None
    problem = f"it reads the partition of another node ({path.keys}), so a client has to name {' and '.join(others)} too."
    fix = f"Give {of.name} an index whose partition template contains {{{path.end}}}, or say that it is meant: {option}."
    return problem, fix


def _root_lists_without_one_path(model: RecordTypes) -> Iterator[Mistake]:
    for name, given in (model.options.get("lists") or {}).items():
        where, options = f"the root's list {name}", options_of(given)
        if options is None or options.of is None:
            problem = f"{given!r} does not say which types it lists."
            yield Mistake(
                "root-list", where, problem, "Write many(Post | Photo), or many(Post, index=by_time)."
            )
            continue
        unusable = [each for each in model.records_of(options) if isinstance(each, str)]
        unlisted = [each for each in unusable if each not in model.resolution.types]
        if unusable and not unlisted:
            continue  # the mistakes of those types have been reported
        if unlisted:
            problem = (
                f"{' and '.join(unlisted)} {'is' if len(unlisted) == 1 else 'are'} not listed in the graph."
            )
            yield Mistake("root-list", where, problem, "List it in the graph.")
            continue
        if options.at is not None or options.access:
            problem = "at= and access= are for the lists of nodes."
            yield Mistake("root-list", where, problem, "Remove them: the rules of its types apply to it.")
        paths = model.root_candidates[name]
        if not paths:
            records = [each for each in model.records_of(options) if isinstance(each, RecordType)]
            every = [path for each in records for path in root_candidates(name, [each], options)]
            yield Mistake("no-path", where, *_why_no_partition(records, every))
        elif len(paths) > 1:
            yield Mistake("several-paths", where, *_why_several_paths(paths))


def _why_no_partition(records: Sequence[RecordType], paths: Sequence[AccessPath]) -> tuple[str, str]:
    """Explains why no partition has items of all types, given the paths of each, and how to fix it."""
    fix = "Give them one index with the same partition template, or declare a list of each."
    for one, other in combinations(paths, 2):
        partition, same = one.keys.partition, other.keys.partition
        if one.keys.index_name == other.keys.index_name and str(partition) == str(same):
            for mine, theirs in zip(partition.slots, same.slots, strict=False):
                types = [_annotation(each.text.type) for each in (mine, theirs)]
                if types[0] != types[1]:
                    fix = f"Declare {{{mine.name}}} with one type: it is {types[0]} in {one.record.name} and {types[1]} in {other.record.name}."
    return (
        f"no partition has items of all of {' and '.join(each.name for each in records)}: {_described(paths)}.",
        fix,
    )


def _annotation(type_: FieldType) -> str:
    """Returns a type as a model writes it."""
    names = {kind: getattr(annotation, "__name__", str(annotation)) for annotation, kind in PLAIN.items()}
    return type_.name if type_.python is not None else names.get(type_.kind, type_.name)


def _why_no_list(owner: RecordType, declared: DeclaredList) -> tuple[str, str]:
    """Explains why no path leads from the owner to the types it lists, and how to fix it."""
    several = [replace(declared, of=(record,)) for record in declared.of]
    for each in several:
        if not candidates_of(each.name, owner, each.of, each.options):
            return _why_no_path(owner, each)
    paths = [path for each in several for path in candidates_of(each.name, owner, each.of, each.options)]
    return _why_no_partition(declared.of, paths)


def _why_no_path(owner: RecordType, declared: DeclaredList) -> tuple[str, str]:
    """Explains why no path leads from the owner to the only type, and how to fix it."""
    [of], chosen = declared.of, declared.options
    ends = [end.name for end in of.ends.values() if owner in end.members]
    if chosen.at is not None and chosen.at not in ends:
        fix = f"Its ends of that type: {', '.join(ends) or 'none'}."
        return f"{of.name} has no end called {chosen.at} that is a {owner.name}.", fix
    if chosen.index is not None and chosen.index.name not in of.keys:
        fix = f"Call {chosen.index.name} with its templates on {of.name}."
        return f"{of.name} has no keys in {chosen.index.name}.", fix
    fix = f"Give {of.name} an index whose partition template contains that end."
    if not ends:
        held = [f"{of.name}.{end.name}" for end in of.list_ends.values() if owner in end.members]
        in_items = f", and no key can hold {' or '.join(held)}" if held else ""
        return f"there is no path to {of.name}: {of.name} has no end that is a {owner.name}{in_items}.", fix
    if chosen.at is not None:
        ends = [chosen.at]
    partial = _partial_path(owner, declared)
    if partial is not None:
        problem, fix = partial
        return f"there is no path to {of.name}: {problem}", fix
    placeholders = " or ".join(f"{{{end}}}" for end in ends)
    if chosen.index is None and not chosen.any_index:
        problem = f"the table's partition key of {of.name} does not contain {placeholders}."
        indexes = [f"index={name}" for name in of.keys if name is not None]
        fix = f"Choose an index: many({' or '.join(indexes)})." if indexes else fix
    else:
        problem = f"no partition key of {of.name} contains {placeholders}."
    return f"there is no path to {of.name}: {problem}", fix


def _partial_path(owner: RecordType, declared: DeclaredList) -> tuple[str, str] | None:
    """Explains what the key closest to a path lacks, and how to fix it; None if no key contains the owner."""
    [of] = declared.of
    found = [
        (path, path.undetermined)
        for path in possible(declared.name, owner, of, declared.options)
        if any(slot.name in path.known for slot in path.keys.slots)
    ]
    if not found:
        return None
    path, lacking = min(found, key=lambda each: len(each[1]))
    end = path.end or ""
    keys = f"its key in {path.keys.index_name}" if path.keys.index else "its table key"
    there = {slot.path for slot in path.keys.slots if slot.name in path.known and not slot.lossy}
    absent = [slot for slot in lacking if (end, *slot.path) not in there]
    names = " and ".join(f"{{{slot.under(end).name}}}" for slot in absent or lacking)
    if absent:
        problem = f"{keys} ({path.keys}) lacks {names}, so all of {owner.name} that differ only there would have the same list."
        fix = f"Put {names} into the partition template, or at the beginning of the sort template."
    else:
        problem = (
            f"in {keys} ({path.keys}), {names} comes after {{{path.rest.slots[0].name}}}, which is not known."
        )
        fix = f"Put it before that, or give {of.name} an index whose partition template contains {{{end}}}."
    return problem, fix


def _why_several_paths(paths: list[AccessPath]) -> tuple[str, str]:
    """Explains which paths lead to the type, and how to choose one."""
    if len({path.end for path in paths}) > 1:
        choices = [f'at="{path.end}"' for path in paths]
    else:
        choices = [f"index={path.keys.index_name}" for path in paths]
    problem = (
        f"several paths lead to {' and '.join(each.name for each in paths[0].records)}: {_described(paths)}."
    )
    return problem, f"Choose one: many({' or '.join(choices)})."


def _described(paths: Sequence[AccessPath]) -> str:
    several = len({path.record for path in paths}) > 1
    return "; ".join(
        f"{'.'.join(filter(None, (path.record.name * several, path.end)))} on {path.keys.index_name or 'the table'} ({path.keys})"
        for path in paths
    )


def _indistinct_types(model: RecordTypes) -> _Wrong:
    values = model.type_values
    for one, other in combinations([each for each in model.types.values() if not each.is_virtual], 2):
        if not values.are_distinguishable(one, other):
            mine, theirs = values.of(one), values.of(other)
            reason = "do not exclude each other by their type values"
            if mine == theirs:
                reason = "have the same type value" if any(mine.values()) else "have no type value"
            example = common_key(one.table_keys.templates, other.table_keys.templates)
            such = f"a key such as {' / '.join(example)}" if example else "a key"
            fix = "Give one of them its own type value or literal prefix"
            if lacking := sorted(theirs.keys() - mine.keys()):
                fix += f', or say that items of {one.name} do not have {lacking[0]}: type={{…, "{lacking[0]}": None}}'
            problem = f"its items cannot be distinguished from those of {other.name}: they {reason}, and {such} can belong to both ({one.table_keys} and {other.table_keys})."
            yield one.name, problem, f"{fix}."


def _ignored_items_of_types(model: RecordTypes) -> _Wrong:
    """Finds patterns that a type's keys fit too. A type value tells the type's items anyway."""
    for pattern, templates in model.ignored.items():
        for record in model.types.values():
            if record.is_virtual or any(model.type_values.of(record).values()):
                continue
            if not never_meet(templates, record.table_keys.templates):
                problem = f"ignore= has {pattern}, which keys of {record.name} can fit ({record.table_keys})."
                yield "the graph", problem, f"Write a pattern that no key of {record.name} fits."


def _members_without_item(record: RecordType) -> _Wrong:
    """Finds unions whose members have equal keys, so only reading distinguishes them, and one has no items."""
    for end in (*record.ends.values(), *record.list_ends.values()):
        for alike in end.alike:
            virtual = next((member for member in alike if member.is_virtual), None)
            if virtual is not None and len(alike) > 1:
                names = " and ".join(member.name for member in alike)
                problem = f"the keys of {names} are alike, and there is no item of {virtual.name} that tells its type."
                yield f"{record.name}.{end.name}", problem, f"Give {virtual.name} a key of its own."


def _types_not_projected(model: RecordTypes) -> _Wrong:
    """Finds lists on an index that lacks a type attribute, where keys alone do not distinguish the items."""
    values = model.type_values
    for path in model.paths:
        hidden = values.hidden(path.keys.index_name)
        for record, sibling in model.unrecognized(path):
            differing = {*values.of(record).items()} ^ {*values.of(sibling).items()}
            missing = " and ".join(sorted({name for name, _ in differing} & hidden) or sorted(hidden))
            problem = f"{path.keys.index_name} does not project {missing}, which tells {record.name} from {sibling.name}."
            yield path.place, problem, f"Project {missing} too."


def _type_values_not_written(model: RecordTypes) -> _Wrong:
    """Finds types whose writes would make items without the type's own values."""
    for record in model.types.values():
        if record.is_virtual or {"create", "put", "upsert", "update"}.isdisjoint(record.writes):
            continue
        for attribute, value in model.type_values.of(record).items():
            wrong = _why_not_written(record, attribute, value)
            if wrong is not None:
                yield record.name, *wrong


def _why_not_written(record: RecordType, attribute: str, value: TypeValue) -> tuple[str, str] | None:
    """Explains why written items may not have a type value, and how to fix it; None if all have it."""
    keys = [keys for keys in record.keys.values() if attribute in keys.names]
    templates = [template for each in keys for key, template in each.parts if key.name == attribute]
    fields = [field for field in record.fields.values() if field.attribute == (attribute,)]
    held: list[Field | End] = [*fields]
    held += [end for end in record.ends.values() if (attribute,) in end.attributes.values()]
    for field in [each for each in fields if each.has_default and each.default is not None]:
        if not holds(condition_on(attribute, value), {attribute: encode(field.type, field.default)}):
            problem = (
                f"the default of {field.name}, which type= is about, would make an item of another type."
            )
            return problem, "Change the default."
    if value is None:
        claim, what = f"its items have no {attribute}", held[0].name if held else "a key"
        problem = f"type= says that {claim}, and {what} is stored there."
        return (problem, "Store it elsewhere, or change type=.") if held or templates else None
    if isinstance(value, str):
        for place in record.places:
            if place.attribute[0] == attribute and (place.path[0] in record.ends or len(place.attribute) > 1):
                problem = f"type= says that its {attribute} is {value}, and {place.path[0]} is stored there."
                return problem, "Store it elsewhere, or change type=."
        wrong = [template for template in templates if not has_value(template, value)]
        problem = (
            f"type= says that its {attribute} is {value}, and its template is {wrong[0] if wrong else value}."
        )
        return (problem, "Make that text the template.") if wrong else None
    claim = f"its {attribute} begins with {value.text}" if value.text else f"its items have {attribute}"
    if templates:
        if not all(has_value(template, value) for template in templates):
            problem = f"type= says that {claim}, and its template is {templates[0]}."
            return problem, "Begin the template with that text."
        slots = [slot for each in keys for slot in each.slots if slot.name not in each.optional]
        optional = [slot.path[0] for slot in slots if not slot.is_shard and may_be_missing(record, slot)]
    else:
        optional = [each.name for each in held if each.optional]
        begins = any(field.type.is_text and field.type.written is None for field in fields) or any(
            (end.text or end.written)
            and all(has_value(each.table_keys.partition, value) for each in end.members)
            for end in held
            if isinstance(end, End)
        )
        is_created = not {"create", "put", "upsert"}.isdisjoint(record.writes)
        if is_created and (not held or (value.text and not begins)):
            fix = f"Store a text field in {attribute}, give it a template, or declare writes=False."
            return f"type= says that {claim}, and nothing writes that.", fix
    if not optional:
        return None
    return f"type= says that {claim}, and {optional[0]} may be absent.", f"Remove | None from {optional[0]}."


def _hidden_expiries(model: RecordTypes) -> _Wrong:
    """Finds expiry fields stored outside the table's TTL attribute, and lists on an index that lacks it."""
    attribute = model.ttl_attribute
    for record in model.types.values():
        if record.expiry is not None and record.expiry.attribute != (attribute,):
            problem = f"it is stored in {record.expiry.attribute[0]}, and the table's TTL attribute is {attribute}: there is one."
            yield f"{record.name}.{record.expiry.name}", problem, f'Write ttl("{attribute}").'
    for path in model.paths:
        index = path.keys.index_name
        expiring = [record.name for record in path.records if record.expiry is not None]
        if expiring and not model.table.has(index, attribute):
            problem = f"{index} does not project {attribute}, by which expired items of {' and '.join(expiring)} are left out."
            fix = f'Project {attribute} too, or declare the field as stored(format=Epoch("s")), which hides nothing.'
            yield path.place, problem, fix


def _fields_without_item(record: RecordType) -> _Wrong:
    for name in (*record.fields, *record.ends) if record.is_virtual else ():
        if name not in record.key_fields:
            problem = "no item holds it, and it is not in the key."
            yield f"{record.name}.{name}", problem, "Add it to the key template, or remove it."


def _keys_of_others(record: RecordType) -> _Wrong:
    in_keys = {slot.path[0] for keys in record.keys.values() for slot in keys.slots}
    for field in record.fields.values():
        if field.is_external and field.name in in_keys:
            problem = "external=True says that another server has it, and it stands in a key."
            yield f"{record.name}.{field.name}", problem, "Remove external=True."


def _fields_in_no_key(record: RecordType) -> _Wrong:
    held = {slot.path[0] for keys in record.keys.values() for slot in keys.slots if not slot.lossy}
    names = [field.name for field in record.fields.values() if field.in_key]
    for name in (*names, *(end.name for end in record.ends.values() if end.in_key)):
        if name not in held:
            problem = "in_key=True, and no key can be read back to it."
            yield f"{record.name}.{name}", problem, "Add it to a key template, or remove in_key=True."


def _fields_set_in_key(record: RecordType) -> _Wrong:
    """Finds fields that name a record, although the server sets them anew with a write."""
    names = {name for slot in record.identity for name in record.needs_of(slot)}
    for field in record.fields.values():
        if field.name in names and field.kept in ("created", "updated", "version"):
            problem = f"{kept_name(field.kept)} in the table's key: a write that is tried again would make another item."
            fix = "Let clients give it, or use new_id(), whose ids are in the order of creation."
            yield f"{record.name}.{field.name}", problem, fix


def _fields_maybe_absent(record: RecordType) -> _Wrong:
    """Finds fields that may be None, but without which an item has no key."""
    needed = {slot.path[0] for slot in record.identity if slot.name not in record.table_keys.optional}
    optional = [field.name for field in record.fields.values() if field.optional and not field.is_external]
    for name in (*optional, *(end.name for end in record.ends.values() if end.optional)):
        if name in needed:
            problem = "its annotation allows None, but without it an item has no key."
            fix = f"Remove | None, or write {{{name}?}} in the key if it may be absent."
            yield f"{record.name}.{name}", problem, fix


def _fields_never_absent(record: RecordType) -> _Wrong:
    """Finds fields that a template allows to be absent, but whose annotation does not."""
    names = {
        slot.path[0] for keys in record.keys.values() for slot in keys.slots if slot.name in keys.optional
    }
    for field in record.fields.values():
        if field.name in names and not (field.optional or field.has_default):
            problem = f"{{{field.name}?}} says that it may be absent, and its annotation that it is not."
            fix = f"Annotate it with | None, or write {{{field.name}}}."
            yield f"{record.name}.{field.name}", problem, fix


def _lists_twice(model: RecordTypes) -> _Wrong:
    """Finds two lists of a mirrored edge meant as its two directions: a mirrored edge has none."""
    found: dict[tuple[str, str, str | None], AccessPath] = {}
    for path in model.node_lists.values():
        if path.owner is None or path.far_end is None or not path.record.is_mirrored:
            continue
        where = (path.owner.name, path.record.name, path.keys.index_name)
        other = found.setdefault(where, path)
        if other is not path:
            problem = f"it is the list {other.name} once more: {path.record.name} is mirrored, the same from both ends."
            yield f"{path.owner.name}.{path.name}", problem, "Remove one of them."


def _gathers_nothing(model: RecordTypes) -> _Wrong:
    for record in model.types.values():
        if not record.gathers:
            continue
        if record.is_virtual:
            why = "it has no item that could be read with its lists."
        elif record.table_keys.shards:
            why = "it is spread over shards and so is not in the partition of its lists."
        elif not any(stands_beside(path) for path in model.node_lists.values() if path.owner is record):
            why = "none of its lists reads its own partition of the table."
        else:
            continue
        yield record.name, f"gather=True, and {why}", "Remove gather=True."


def _keys_too_long(record: RecordType) -> _Wrong:
    """Finds keys whose literal text alone is longer than DynamoDB allows."""
    for keys in record.keys.values():
        limits = zip(("partition", "sort"), KEY_BYTES, strict=True)
        for (attribute, template), (which, most) in zip(keys.parts, limits, strict=False):
            size = sum(len(token.encode()) for token in template.tokens if isinstance(token, str))
            if size >= most:
                problem = f"its template for {attribute.name} has {size:,} bytes of literal text, and a {which} key {most:,} in all."
                yield record.name, problem, "Shorten the text."
