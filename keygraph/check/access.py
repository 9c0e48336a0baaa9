"""Checks that access rules hide what they are about: nothing else may tell it.

A value is learned from whatever depends on it: from a list that a rule filters, from a write that a rule or a key
refuses, and from another field of the same attribute. So names of one attribute need the same rules, and what the server
derives from values that whoever writes may not read, such as a copy, can be in no rule and no key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import combinations, product
from typing import NamedTuple

from keygraph.access.grants import Grant, Grants, TypeAccess
from keygraph.access.language import Action
from keygraph.declare.declaration import OF_ENDS
from keygraph.dynamo.conditions import Path, paths_of
from keygraph.errors import Mistake
from keygraph.keys.shapes import is_special_case, shape
from keygraph.keys.template import Slot
from keygraph.keys.types import NUMBERS
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath, may_be_missing
from keygraph.model.record_keys import Keys
from keygraph.model.records import RecordType
from keygraph.resolve.access import WRITTEN_BY
from keygraph.resolve.derived import COUNTED, keys_of_numbers
from keygraph.resolve.record_types import RecordTypes
from keygraph.resolve.walks import NodeWalk

_Wrong = Iterator[tuple[str, str, str]]
"""Location, problem and fix of each mistake."""


def access_mistakes(model: RecordTypes) -> Iterator[Mistake]:
    """Yields everything by which a viewer would learn what rules hide, and rules that an index cannot decide."""
    for record in model.types.values():
        yield from (Mistake("kept", *wrong) for wrong in _kept_within_others(record))
        if record.access is not None:
            for check in (_open_copies, _names_of_one_attribute):
                yield from (Mistake("access", *wrong) for wrong in check(record, record.access))
            for check_all in (_values_in_keys, _open_tallies, _derived_in_use):
                found = dict.fromkeys(check_all(model, record, record.access))
                yield from (Mistake("access", *wrong) for wrong in found)
    yield from (Mistake("access", *wrong) for wrong in _rules_not_decided(model))


def _rules_not_decided(model: RecordTypes) -> _Wrong:
    """Finds lists on an index that lacks an attribute that a read rule uses."""
    for path in (member for each in model.paths for member in each.each):
        record, index = path.record, path.keys.index_name
        if record.access is None:
            continue
        # Whatever a list shows can also sort, filter and aggregate it, so who may read that is decided with the list.
        used = {
            name: f"{record.name}.{name}" for name in (*record.fields, *record.ends) if name in path.projected
        }
        found: dict[str, str] = {}
        for name, what in ((None, record.name), *used.items()):
            for attribute, *_ in sorted(record.access.paths("read", name)):
                if path.lacks(attribute):
                    found.setdefault(attribute, what)
        for attribute, what in found.items():
            problem = f"{index} does not project {attribute}, which decides who may read {what}."
            yield path.place, problem, f"Project {attribute} too."


# --- Who may read and write ---------------------------------------------------------------------------


def _writes(record: RecordType) -> list[Action]:
    """Returns the actions that change fields of a type's records."""
    actions: tuple[Action, ...] = ("create", "update")
    return [action for action in actions if not WRITTEN_BY[action].isdisjoint(record.writes)]


def _is_within(one: Grant, readers: Iterable[Grants], *, of_same: bool) -> bool:
    """Returns whether everybody whom a rule lets in is let in by these rules too. `of_same`: they are of the same type,
    so that a condition means the same in both."""
    return all(
        any(
            (other.roles is None or (one.roles is not None and one.roles <= other.roles))
            and (other.condition is None or (of_same and _has_all(one, other)))
            for other in group
        )
        for group in readers
    )


def _has_all(one: Grant, other: Grant) -> bool:
    mine, theirs = one.rule.where or {}, other.rule.where or {}
    return all(name in mine and mine[name] == operand for name, operand in theirs.items())


def _are_within(writers: Iterable[Grants], readers: Iterable[Grants], *, of_same: bool) -> bool:
    """Returns whether everybody who meets the rules of writers may read."""
    return all(
        any(all(_is_within(one, [wanted], of_same=of_same) for one in group) for group in writers)
        for wanted in readers
    )


# --- Names of one attribute ---------------------------------------------------------------------------


def _names_of_one_attribute(record: RecordType, access: TypeAccess) -> _Wrong:
    """Finds fields and ends that are stored in one attribute, or one in the other, with different rules."""
    fixed = {record.attribute_of(slot.path) for slot in record.identity}
    paths: dict[str, set[Path]] = {}
    for place in record.places:
        paths.setdefault(place.path[0], set()).update({place.attribute} - fixed)
    for name, own in paths.items():
        if not own and name not in access.key and access.is_restricted(name):
            problem = f"it is stored in an attribute that is in the key of {record.name}, which everybody who sees the record knows."
            yield f"{record.name}.{name}", problem, "Remove its rules."
    for one, other in combinations(paths, 2):
        if not any(_overlap(path, own) for path in paths[one] for own in paths[other]):
            continue
        differing = [
            action
            for action in ("read", *_writes(record))
            if _rules_of(access, action, one) != _rules_of(access, action, other)
            if action != "read"
            or _is_revealed(access, paths, one, by=other)
            or _is_revealed(access, paths, other, by=one)
        ]
        if differing:
            problem = f"{one} is stored in the same attribute, and its rules for who may {differing[0]} it are not the same."
            yield f"{record.name}.{other}", problem, f"Give {one} and {other} the same access=[…]."


def _is_revealed(access: TypeAccess, paths: Mapping[str, set[Path]], name: str, *, by: str) -> bool:
    """Returns whether somebody who may read one name of some attributes, but not the other, would know all of it. Who
    reads the tenant of a user does not know the user."""
    is_covered = all(any(path[: len(own)] == own for own in paths[by]) for path in paths[name])
    readers = [*access.grants("read"), *access.grants("read", by)]
    return is_covered and not _are_within(readers, access.grants("read", name), of_same=True)


def _kept_within_others(record: RecordType) -> _Wrong:
    """Finds fields that only the server sets in attributes that clients write."""
    for field in record.fields.values() if record.writes else ():
        for place in record.places:
            if (
                field.kept
                and place.attribute != field.attribute
                and _overlap(field.attribute, place.attribute)
            ):
                problem = f"the server sets it, and whoever writes {place.path[0]}, which is stored in the same attribute, would overwrite it."
                yield f"{record.name}.{field.name}", problem, "Store it in another attribute."


def _overlap(one: Path, other: Path) -> bool:
    """Returns whether one of two attributes is the other, or holds it."""
    return one[: len(other)] == other[: len(one)]


def _rules_of(access: TypeAccess, action: Action, name: str) -> list[set[str]]:
    """Returns what the rules of a field require, besides those that let everybody in."""
    return [
        {f"{sorted(rule.roles or ())} {rule.rule.where}" for rule in group}
        for group in access.grants(action, name)
        if not any(rule.is_open for rule in group)
    ]


# --- Keys ---------------------------------------------------------------------------------------------


def _values_in_keys(model: RecordTypes, record: RecordType, access: TypeAccess) -> _Wrong:
    """Finds hidden fields about which it tells something if another text can be in a key. A method's text is made of the
    fields that it needs."""
    every_key = record.keys.values()
    pairs = ((keys, one, two) for keys in every_key for one, two in product(keys.slots, repeat=2))
    for keys, hidden, other in pairs:
        part = hidden.path[0]
        told = _told_in_keys(record, keys, hidden, other) if access.is_restricted(part) else ""
        for name, free in product(record.needs_of(hidden), record.needs_of(other)) if told else ():
            if free == name or not access.is_restricted(name):
                continue
            for writers, of_same, what in _writers(model, record, free):
                if what != name and not _are_within(writers, access.grants("read", part), of_same=of_same):
                    problem = f"it is in keys with {free}, so what {what} can be would tell {told} to viewers who may not read it."
                    fix = f"Take one of them out, or let only those write {what} who may read {name}."
                    yield f"{record.name}.{name}", problem, fix


def _told_in_keys(record: RecordType, keys: Keys, hidden: Slot, other: Slot) -> str:
    """Returns what it tells of a value if another one can be in the keys that have both; nothing if it is empty."""
    if hidden.is_shard or not _has_any_length(other):
        return ""
    may_lack = may_be_missing(record, hidden)
    if may_lack and hidden.name not in keys.optional and not _is_own_key(record, keys, other):
        return "if it has a value"  # without one, the index has no key that could be refused
    is_one_key = any({hidden, other} <= {*template.slots} for template in keys.templates)
    return "its length" if is_one_key and (may_lack or not _has_one_length(hidden)) else ""


def _is_own_key(record: RecordType, keys: Keys, slot: Slot) -> bool:
    """Returns whether a slot is only in a partition key that is not longer than the one of a node at an end."""
    end = record.ends.get(slot.path[0])
    is_sorted = keys.sort is not None and slot in keys.sort.slots
    if end is None or is_sorted or {each.path[0] for each in keys.partition.slots} != {slot.path[0]}:
        return False
    owns = [each.table_keys.partition for each in end.members]
    written = {(each.path, each.text.declared) for own in owns for each in own.slots}
    # Another format may make a text longer.
    is_of_them = all(
        (each.path[1:], each.text.declared) in written for each in keys.partition.slots if each.path[1:]
    )
    return is_of_them and all(is_special_case(shape(own), shape(keys.partition)) for own in owns)


def _writers(
    model: RecordTypes, record: RecordType, name: str
) -> Iterator[tuple[Sequence[Grants], bool, str]]:
    """Yields the rules for who may change a field, whether they are those of the same record, and of what: itself, the end
    from whose node it is copied, what a copy follows, and items of which it is the value of one."""
    changed = [(record, name, False)]
    for place in changed:
        each, value, is_item = place
        field, rules, is_own = each.fields.get(value), each.access, place is changed[0]
        kept, source = (None, "") if field is None else (field.kept, field.kept_of)
        own, _, of = source.partition(".") if kept == "copy" or kept in OF_ENDS else (value, "", "")
        key = {slot.path[0] for slot in each.identity}
        names = set() if kept in OF_ENDS else _names_of_rest(each, own) - key
        written: list[tuple[Action, str]] = [("update", one) for one in sorted(names)]
        if is_item:  # Another one may be the last.
            written += [("create", own), ("delete", own), *(("move", one) for one in sorted(key))]
        for action, one in written:
            if action in {*_writes(each), *each.writes}:
                grants = [] if rules is None else [*rules.grants(action), *rules.grants(action, one)]
                yield grants, is_own, one if is_own else f"{each.name}.{one}"
        nodes = each.ends[own].members if field is not None and field.follows else ()
        others = [(node, of, False) for node in nodes]
        if kept in OF_ENDS and (each.name, own) in model.node_lists:
            others = [(item.record, of, True) for item in model.node_lists[each.name, own].each]
        changed += [other for other in others if other not in changed]


def _names_of_rest(record: RecordType, name: str) -> set[str]:
    """Returns a field or an end, and what else is stored in the attributes that it has besides the record's key."""
    fixed = {record.attribute_of(slot.path) for slot in record.identity}
    own = {each.attribute for each in record.places if each.path[0] == name} - fixed
    others = {each.path[0] for each in record.places if any(_overlap(each.attribute, path) for path in own)}
    return {name} | others


def _has_any_length(slot: Slot) -> bool:
    """Returns whether texts of a placeholder can fill a key."""
    is_short = slot.text.type.kind in NUMBERS | {"boolean", "enum", "datetime", "date"}
    return not (is_short and slot.text.declared is None) and any(
        more for steps in slot.text.char_steps for _, _, more in steps
    )


def _has_one_length(slot: Slot) -> bool:
    steps = slot.text.char_steps
    varies = any(absent or more for each in steps for _, absent, more in each)
    return not varies and len({*map(len, steps)}) == 1


# --- What the server derives --------------------------------------------------------------------------


class _HiddenValue(NamedTuple):
    """What a copy, count or sum holds, if not everybody may read that who sees the node with it."""

    name: str
    readers: Sequence[Grants]


def _sources(record: RecordType, field: Field) -> Iterator[_HiddenValue]:
    """Yields the fields that a copy copies, or a count or sum itself, if some may not read them."""
    name, _, of = field.kept_of.partition(".")
    if field.kept == "copy":
        found = [(node, of) for node in (record.ends[name].members if name in record.ends else ())]
    else:
        found = [(record, field.name)] if field.kept in COUNTED or field.is_only_by_job else []
    for node, each in found:
        if node.access is not None and node.access.is_restricted(each):
            yield _HiddenValue(f"{node.name}.{each}", node.access.grants("read", each))


def _open_copies(record: RecordType, access: TypeAccess) -> _Wrong:
    """Finds copies without rules of restricted fields: whoever may write the end could read the field through it. And
    those from restricted ends: they tell which node it is."""
    for field in record.fields.values():
        end = field.kept_of.partition(".")[0]
        hidden = [source.name for source in _sources(record, field)]
        hidden += [f"a field of {end}"] if field.kept == "copy" and access.is_restricted(end) else []
        if field.kept == "copy" and hidden and not access.guards(field.name):
            problem = f"it copies {hidden[0]}, which has access rules, and has none itself."
            fix = "Give it access=[…]; access=[read()] if everybody who sees the record may read it."
            yield f"{record.name}.{field.name}", problem, fix


def _open_tallies(model: RecordTypes, owner: RecordType, access: TypeAccess) -> _Wrong:
    """Finds counts, sums and what only the job computes without rules of what somebody who sees the node may not."""
    for field in (each for each in owner.fields.values() if each.is_only_by_job):
        hidden = None if access.guards(field.name) else _hidden_summary(model, owner, access, field)
        if hidden is not None:
            problem = f"it is computed from all of {hidden}, also what access rules hide from a viewer, and has no rules itself."
            fix = "Give it access=[…]; access=[read()] if everybody who sees the node may know it."
            yield f"{owner.name}.{field.name}", problem, fix
    tallies = [tally for several in model.every_tally.values() for tally in several]
    for field in owner.fields.values():
        name, _, of = field.kept_of.partition(".")
        path = model.node_lists.get((owner.name, name)) if field.kept in COUNTED else None
        if path is None or field.is_of_two_levels or access.guards(field.name):
            continue
        order = {slot.path[0] for slot in path.rest.slots} if field.kept in OF_ENDS else set[str]()
        used = {of, *order}.union(*(each.condition_names for each in tallies if each.field is field))
        if access.is_restricted(name) or any(_hides(access, each, used) for each in path.each):
            problem = f"it counts all of {name}, also what access rules hide from a viewer, and has no rules itself."
            fix = "Give it access=[…]; access=[read()] if everybody who sees the node may know it."
            yield f"{owner.name}.{field.name}", problem, fix


def _hidden_summary(model: RecordTypes, owner: RecordType, access: TypeAccess, field: Field) -> str | None:
    """Returns of what something is hidden from which only the job computes a field; None if nothing is."""
    if field.kept == "rank":
        names = [field.kept_of, *([field.kept_within] if field.kept_within else [])]
        is_partial = any(grant.condition is not None for group in access.grants("read") for grant in group)
        is_hidden = is_partial or any(access.is_restricted(name) for name in names)
        return f"the records of type {owner.name}" if is_hidden else None
    if field.kept == "walk":
        walk = model.walks.get((owner.name, field.name))
        return None if walk is None else _hidden_in_walk(owner, access, walk)
    is_nested, owners, of = field.is_of_two_levels, [owner], field.kept_of.rpartition(".")[2]
    for level, name in enumerate(field.lists):
        nodes: list[RecordType] = []
        for each in owners:
            own = access if each is owner else each.access or TypeAccess()
            path = model.node_lists.get((each.name, name))
            if path is None:
                continue
            used = {of} if field.kept not in ("degree", "count") and (level or not is_nested) else set[str]()
            used |= {path.far_end} if path.far_end and (is_nested or field.kept == "top") else set()
            nodes += path.nodes
            groups = [group for node in path.nodes for group in (node.access or own).grants("read")]
            leads_on = (is_nested and not level) or field.kept == "top"
            is_hidden = leads_on and not all(any(rule.is_open for rule in group) for group in groups)
            if own.is_restricted(name) or is_hidden or any(_hides(own, member, used) for member in path.each):
                return name
        owners = [*dict.fromkeys(nodes)] if is_nested else owners
    return None


def _hidden_in_walk(owner: RecordType, access: TypeAccess, walk: NodeWalk) -> str | None:
    """Returns a list of a walk of which something is hidden; None if nothing is."""
    for path in walk.paths:
        own = access if path.owner is owner or path.owner is None else path.owner.access or TypeAccess()
        groups = [group for node in path.nodes for group in (node.access or own).grants("read")]
        is_hidden = own.is_restricted(path.name) or not all(
            any(each.is_open for each in group) for group in groups
        )
        for member in path.each if isinstance(path, AccessPath) else ():
            used = walk.options.weighing | {member.far_end or ""}
            is_hidden = is_hidden or _hides(own, member, used)
        if is_hidden:
            return path.place
    return None


def _hides(access: TypeAccess, path: AccessPath, used: Set[str]) -> bool:
    """Returns whether rules may hide an item of a list, why it is in the list, or what is `used` of it, from somebody who
    sees the owner. `access` are the owner's rules."""
    record, rules = path.record, path.record.access or TypeAccess()
    names = {slot.path[0] for slot in path.keys.slots if not slot.is_shard and may_be_missing(record, slot)}
    groups = [each for name in {path.end or "", *names, *used} if name for each in rules.grants("read", name)]
    return any(
        not any(rule.is_open for rule in group)
        and not (group is rules.walls.get("read") and _is_same_wall(access, path))
        and not _are_within(access.grants("read"), [group], of_same=False)
        for group in (*rules.grants("read"), *groups)
    )


def _is_same_wall(access: TypeAccess, path: AccessPath) -> bool:
    """Returns whether the graph's own rules let a viewer see all items of a list, or neither them nor the owner: the
    key of the owner decides."""
    record, owner = path.record, path.owner
    walls = access.walls.get("read", ()), (record.access or access).walls.get("read", ())
    if owner is None or len(walls[0]) != len(walls[1]):
        return False
    end = record.ends[path.end or ""]
    held = {
        end.attributes[slot.path]: owner.attribute_of(slot.path) for slot in end.identity if end.text is None
    }
    return all(
        not theirs.links and {held.get(each) for each in theirs.paths} == mine.paths
        for mine, theirs in zip(*walls, strict=True)
    )


def _derived_in_use(model: RecordTypes, record: RecordType, access: TypeAccess) -> _Wrong:
    """Finds copies, counts and sums of what some may not read, on which it depends what a write or a rule refuses."""
    for field in record.fields.values():
        for source in _sources(record, field):
            for use, fix in [*_uses(model, record, access, field, source)][:1]:
                problem = (
                    f"{use}, so refused writes would tell of {source.name}, which some viewers may not read."
                )
                yield f"{record.name}.{field.name}", problem, fix


def _uses(
    model: RecordTypes, record: RecordType, access: TypeAccess, field: Field, source: _HiddenValue
) -> Iterator[tuple[str, str]]:
    """Yields what depends on a derived field, and how to fix it."""
    path, end, is_copy = field.attribute, field.kept_of.partition(".")[0], field.kept == "copy"
    writers = [[*access.grants(each), *access.grants(each, end)] for each in _writes(record)]
    if is_copy and not all(_are_within(each, source.readers, of_same=False) for each in writers):
        if path[0] in model.type_values.of(record):
            yield "type= is about its attribute", "Store it in another attribute."
        if any(_overlap(path, each) for rule in record.rules for each in paths_of(rule.condition)):
            yield "a rule in check= is about it", "Remove the rule."
        in_keys = {name for slot in record.slots.values() for name in record.needs_of(slot)}
        if field.name in in_keys or path[0] in {key.name for key in record.table.key_attributes()}:
            yield "it stands in a key", "Take it out of the template."
        for place in record.places:
            if place.path[0] != field.name and _overlap(path, place.attribute):
                yield (
                    f"it is stored in the same attribute as {place.path[0]}",
                    "Store it in another attribute.",
                )
    if field.kept in COUNTED and not field.is_kept_later and keys_of_numbers(record, [field]):
        # A number that the text of a key cannot hold is refused.
        yield "it stands in a key", "Take it out of the template."
    for each in model.types.values():
        for rule in [] if each.access is None else each.access.every:
            linked = {name for link in rule.links if link.record is record for name in link.names}
            is_about = (
                each is record and any(_overlap(path, own) for own in rule.paths)
            ) or field.name in linked
            if is_about and not _is_within(rule, source.readers, of_same=each is record and not is_copy):
                yield f"an access rule of {each.name} is about it", "Remove it from the rule."
