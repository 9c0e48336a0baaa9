"""Resolves the values that the server derives from other items: counts and sums of lists, and copies of nodes'
fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, cast

from keygraph.declare.declaration import OF_ENDS
from keygraph.dynamo.conditions import Condition, Path, at_path, holds
from keygraph.dynamo.items import Item, Value, exact_sum, to_typed
from keygraph.dynamo.table import KeyAttribute
from keygraph.errors import CorruptItem, Mistake
from keygraph.keys.template import Slot
from keygraph.keys.types import AVERAGE_PARTS, NUMBERS, WHOLE_NUMBERS, encode
from keygraph.model.counterparts import Correspondence
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath
from keygraph.model.record_keys import Keys, Texts
from keygraph.model.records import End, RecordType
from keygraph.model.references import EndReference
from keygraph.names import with_article
from keygraph.resolve.access import fixed_condition
from keygraph.resolve.fields import VALUE, kept_name

COUNTED = OF_ENDS | {"count", "sum", "average"}
"""What is computed over a list: the kinds of fields that have tallies."""
AT, WRITES = "at", "writes"
"""The names in the map with the first or last item of a list: its sort key, and how often items were written."""
_LARGEST_INT = 2**31 - 1
Number: TypeAlias = "tuple[Path, Decimal]"
"""A number that a node keeps, by its attribute."""


def combined(field: Field, values: Iterable[Value]) -> Value:
    """Returns what a node stores in a field that is computed over a list, given what each item adds to it."""
    if field.kept in OF_ENDS:
        found = [each for value in values if (each := cast(dict[str, Any], value))[AT] is not None]
        choose = min if field.kept == "minimum" else max
        return dict(choose(found, key=itemgetter(AT))) if found else {AT: None, VALUE: None}
    if field.kept == "average":
        several = [cast(dict[str, Decimal], value) for value in values]
        return {name: exact_sum(each[name] for each in several) for name in AVERAGE_PARTS}
    return exact_sum(cast(Decimal, value) for value in values)


def is_storable(value: Value) -> bool:
    """Returns whether DynamoDB can hold such a value: a sum may be too large, or have too many digits."""
    try:
        to_typed(value)
    except ValueError:
        return False
    return True


def is_unfit(field: Field, value: Value) -> bool:
    """Returns whether a value is larger than its field, or a number of DynamoDB, can hold."""
    number = value.get(VALUE) if isinstance(value, dict) else value
    if field.type.kind == "int" and isinstance(number, Decimal) and abs(number) > _LARGEST_INT:
        return True
    return not is_storable(value)


def stored_value(field: Field, item: Item) -> Value:
    """Returns the value that a node stores in such a field; None if it is unknown."""
    value = cast(Value, at_path(item, field.kept_attribute))
    if field.kept in OF_ENDS and isinstance(value, dict):
        return {name: value.get(name) for name in (AT, VALUE)}
    return value


def age_of(record: RecordType, field: Field) -> Field:
    """Returns the field with the time for which another one was computed."""
    return record.fields[f"{field.name}_as_of"]


def stored_age(record: RecordType, field: Field, item: Item) -> datetime | None:
    """Returns the time for which a field of an item was computed; None if it has no such time."""
    found = record.readable_value(item, age_of(record, field))
    return found if isinstance(found, datetime) and found.tzinfo is not None else None


def as_stored(field: Field, value: Value, before: Item) -> Value:
    """Returns the attribute for a value that replaces the one of an item.

    That of the first or last item also counts how often items of the list were written, so that a transaction can have
    the condition that the list is as it was read.
    """
    if field.kept not in OF_ENDS or not isinstance(value, dict):
        return value
    writes = at_path(before, (*field.kept_attribute, WRITES))
    return {**value, WRITES: writes + 1 if isinstance(writes, Decimal) else Decimal(0)}


def numbers(field: Field, value: Value) -> Iterator[Number]:
    """Yields the numbers of which such a value consists. Those of a list are the sums of those of its items."""
    if field.kept in OF_ENDS:
        yield (*field.kept_attribute, WRITES), Decimal(1)
    elif isinstance(value, dict):
        yield from (((*field.attribute, name), cast(Decimal, number)) for name, number in value.items())
    else:
        yield field.attribute, cast(Decimal, value)


@dataclass(frozen=True, eq=False)
class Tally:
    """What the items of one type in a list add to a field of the list's node.

    Everything that keeps such a field goes by it: an item adds a value (`of`), and the values of all items make the one
    that the node stores (`combined`).
    """

    owner: RecordType
    field: Field
    path: AccessPath
    """The path of the list to that type."""
    source: Field | None
    """The field of the items that is computed with; None if they are counted."""
    condition: Condition | None
    """What an item meets to be counted; None if all are."""
    condition_names: frozenset[str]
    """The fields and ends in the condition."""

    @property
    def record(self) -> RecordType:
        return self.path.record

    @cached_property
    def names(self) -> frozenset[str]:
        """The fields and ends that determine what an item adds, and to which node."""
        slots = (slot for slot in self.path.keys.slots if not slot.is_shard)
        found = {name for slot in slots for name in self.record.needs_of(slot)}
        source = () if self.source is None else (self.source.name,)
        return frozenset({*found, self.path.end or "", *self.condition_names, *source})

    @property
    def is_constant(self) -> bool:
        """Whether each item of the list adds the same."""
        return self.source is None and self.condition is None

    @cached_property
    def at_end(self) -> Callable[[Item], Texts | None]:
        """A function that returns the identity of the node whose list has an item, or would have it with other keys."""
        record, owner, end = self.record, self.owner, self.record.ends[self.path.end or ""]

        def node(item: Item) -> Texts | None:
            identity = record.readable_end(item, end)
            if identity is None:
                return None
            members, own = end.nodes(identity)
            return own if owner in members else None

        return node

    @cached_property
    def node(self) -> Callable[[Item], Texts | None]:
        """A function that returns the identity of the node whose list has an item; None if no such list has it."""
        at_end, names = self.at_end, [key.name for key in self.path.keys.attributes]
        return lambda item: at_end(item) if all(name in item for name in names) else None

    def of(self, item: Item) -> tuple[Texts, Value] | None:
        """Returns the node whose list has an item, and what the item adds; None if it adds nothing to any."""
        node = self.node(item)
        if node is None or not (self.condition is None or holds(self.condition, self.record.completed(item))):
            return None
        try:
            return node, self._added(item)
        except CorruptItem:
            return None

    @cached_property
    def _added(self) -> Callable[[Item], Value]:
        """A function that returns what an item adds."""
        if self.source is None:
            return lambda item: Decimal(1)
        read, type_ = self.record.reader(self.source), self.source.type
        nothing, is_average = combined(self.field, ()), self.field.kept == "average"
        is_of_end, sort = self.field.kept in OF_ENDS, self.path.keys.attributes[-1].name
        # The job compares the values themselves, so the list need not be ordered by them.
        is_by_value = self.field.is_kept_later and self.field.kept != "latest"

        def added(item: Item) -> Value:
            value = read(item)
            if value is None and is_by_value:
                return nothing
            if value is None:
                return {**nothing, AT: item[sort]} if is_of_end and isinstance(nothing, dict) else nothing
            amount = encode(type_, value)
            if is_of_end:
                return {AT: amount if is_by_value else item[sort], VALUE: amount}
            return dict(zip(AVERAGE_PARTS, (amount, Decimal(1)), strict=True)) if is_average else amount

        return added


@dataclass(frozen=True, eq=False)
class Copy:
    """A field that copies a field of the node at an end."""

    field: Field
    end: End
    sources: Mapping[RecordType, Field]
    """The copied field, by the type of the node."""


class Follower(NamedTuple):
    """The copies in records of one type that follow the node at one of their ends."""

    reference: EndReference
    copies: tuple[Copy, ...]

    def is_of(self, names: Set[str]) -> bool:
        """Returns whether one of these fields of the node is copied."""
        return any(copy.sources[self.reference.node].name in names for copy in self.copies)


def resolve_copies(
    types: Mapping[str, RecordType],
    partners: Mapping[str, Correspondence],
    references: Mapping[str, tuple[EndReference, ...]],
    mistakes: list[Mistake],
) -> dict[str, tuple[Copy, ...]]:
    """Returns the copies of each type, by its name, and adds the mistakes in those that cannot be kept.

    `partners` are the types with another item that is kept in step; `references` are the ends that name each type.
    """
    found: dict[str, tuple[Copy, ...]] = {}
    for record in types.values():
        for field in record.fields.values():
            if field.kept != "copy":
                continue
            end, _, name = field.kept_of.partition(".")
            members = record.ends[end].members if end in record.ends else ()
            sources = {node: node.fields[name] for node in members if name in node.fields}
            wrong = [*_wrong_copy(record, field, sources, partners.get(record.name))]
            if field.follows and not wrong:
                named = {each: references.get(each.name, ()) for each in sources}
                wrong = [*_wrong_follower(record, field, sources, named)]
            mistakes += [Mistake("kept", f"{record.name}.{field.name}", *each) for each in wrong]
            if not wrong:
                found[record.name] = (*found.get(record.name, ()), Copy(field, record.ends[end], sources))
    return found


def resolve_followers(
    copies: Mapping[str, tuple[Copy, ...]], references: Mapping[str, tuple[EndReference, ...]]
) -> dict[str, tuple[Follower, ...]]:
    """Returns the copies that follow nodes of each type, by its name."""
    found: dict[str, tuple[Follower, ...]] = {}
    for node, several in references.items():
        for reference in several:
            own = copies.get(reference.record.name, ())
            following = tuple(each for each in own if each.field.follows and each.end is reference.end)
            if following and reference.path is not None:
                found[node] = (*found.get(node, ()), Follower(reference, following))
    return found


def _wrong_copy(
    record: RecordType, field: Field, sources: Mapping[RecordType, Field], pair: Correspondence | None
) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with a copy, and how to fix it."""
    name, _, of = field.kept_of.partition(".")
    end = record.ends.get(name)
    if end is None or not of:
        ends = ", ".join(record.ends) or "none"
        problem = f"{field.kept_of!r} is no field of the node at an end; its ends: {ends}."
        yield problem, 'Write copy("an_end.a_field").'
        return
    for node in end.members:
        source = sources.get(node)
        if source is None or node.is_virtual:
            lacking = "has no item" if node.is_virtual else f"has no field {of}"
            yield f"{node.name} {lacking}.", f"Name a field that is stored in items of {node.name}."
        elif source.shards:
            yield (
                f"{node.name}.{of} is spread over shards.",
                f"Name a field that items of {node.name} have alone.",
            )
        elif source.type != field.type:
            problem = f"{node.name}.{of} is of type {source.type.name}, and this of type {field.type.name}."
            yield problem, "Give both one type."
        elif (source.optional or end.optional) and not field.optional:
            yield f"{node.name}.{of} or {name} may be absent, and this may not.", "Annotate it with | None."
    if pair is not None and pair.is_mirror:
        problem = f"the other item of a {record.name} is written with it, and is named by its own ends."
        yield problem, f"Read {name}.{of} instead."
    elif pair is not None and not _is_in_both(field, pair):
        theirs = next((end for end, own in pair.ends.items() if own == name), name)
        problem = f"a {pair.other.name} is written with each {record.name}, and does not have it."
        yield problem, f'Declare it there too: {field.name} = copy("{theirs}.{of}").'
    keyed = record.slots.values() if field.is_kept_later else record.identity
    if any(field.name in (slot.path[0], *record.needs_of(slot)) for slot in keyed):
        problem = f"it is a part of {'a' if field.is_kept_later else 'the'} key of {record.name}."
        yield problem, f"Write {{{name}.{of}}} in the template, or take it out."


def _is_in_both(field: Field, pair: Correspondence) -> bool:
    """Returns whether both types of a pair of edges copy a field, from the same node and in the same way."""
    end, _, of = field.kept_of.partition(".")
    other = pair.other.fields.get(field.name)
    if other is None or other.kept != "copy" or other.follows != field.follows:
        return False
    theirs, _, name = other.kept_of.partition(".")
    return pair.ends.get(theirs) == end and name == of


def _wrong_follower(
    record: RecordType,
    field: Field,
    sources: Mapping[RecordType, Field],
    references: Mapping[RecordType, tuple[EndReference, ...]],
) -> Iterator[tuple[str, str]]:
    """Yields why a copy cannot follow its source, and how to fix it."""
    name, _, of = field.kept_of.partition(".")
    for node, source in sources.items():
        if source.kept not in (None, "created", "id"):
            yield f"the server sets {node.name}.{of}.", "Leave follows=True out, or copy another field."
        if node.expiry is not None:
            yield f"{node.name} expires, and nothing is written then.", "Leave follows=True out."
        named = [each for each in references[node] if each.record is record and each.end.name == name]
        if not all(each.is_found for each in named):
            problem = (
                f"no key finds every {record.name} of a {node.name}, so they could not be changed with it."
            )
            yield (
                problem,
                f"Give {record.name} an index whose partition key is {{{name}}}, or leave follows=True out.",
            )
    if any(field.name in rule.names for rule in record.rules):
        yield "a rule in check= is about it, and writes of other items change it.", "Remove the rule."
    if field.is_kept_later:
        yield "only the job writes it.", 'Leave out follows=True, or kept="job".'


def resolve_tallies(
    types: Mapping[str, RecordType],
    lists: Mapping[tuple[str, str], AccessPath],
    siblings: Callable[[AccessPath], Sequence[RecordType]],
    mistakes: list[Mistake],
) -> dict[str, tuple[Tally, ...]]:
    """Returns the tallies of the items of each type, by its name, and adds the mistakes in those that cannot be kept.

    `siblings` returns the other types whose items may be among those of a list.
    """
    found: dict[str, tuple[Tally, ...]] = {}
    for owner in types.values():
        for field in owner.fields.values():
            if field.kept not in COUNTED or field.is_of_two_levels:
                continue
            path = lists.get((owner.name, field.kept_of.partition(".")[0]))
            wrong, conditions = [*_wrong(owner, field, path)], list[_Condition]()
            if (
                path is not None
                and field.kept in OF_ENDS
                and not field.is_kept_later
                and not wrong
                and siblings(path)
            ):
                problem = f"items of {siblings(path)[0].name} may be between those of {path.name}."
                wrong.append((problem, "Begin their sort keys with another text."))
            try:
                conditions = [_condition(field, each.record) for each in path.each] if path else []
            except ValueError as error:
                fix = 'Write it as a filter: where={"status": {"ne": "cancelled"}}.'
                wrong.append((f"where= cannot be used: {error}.", fix))
            mistakes += [Mistake("kept", f"{owner.name}.{field.name}", *each) for each in wrong]
            for each, condition in zip(path.each, conditions, strict=True) if path and not wrong else ():
                tally = Tally(owner, field, each, _source(field, each.record), *condition)
                found[each.record.name] = (*found.get(each.record.name, ()), tally)
    return found


_Condition: TypeAlias = "tuple[Condition | None, frozenset[str]]"


def _condition(field: Field, record: RecordType) -> _Condition:
    """Returns the condition on items of a type to be counted, with its names. Raises ValueError if it has no meaning."""
    made = None if field.kept_where is None else fixed_condition(record, field.kept_where)
    return (None, frozenset()) if made is None else made


def _source(field: Field, record: RecordType) -> Field | None:
    return None if field.kept == "count" else record.fields.get(field.kept_of.partition(".")[2])


def _wrong(owner: RecordType, field: Field, path: AccessPath | None) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with a count or sum, and how to fix it."""
    name, _, of = field.kept_of.partition(".")
    if not owner.is_node:
        yield "only a node has lists.", "Move it to a node."
        return
    has_source = field.kept != "count"
    if name not in owner.lists or has_source != bool(of):
        lists = ", ".join(owner.lists) or "none"
        problem = f"{field.kept_of!r} is no {'field of the items of a list' if has_source else 'list'}; its lists: {lists}."
        written = f'("{next(iter(owner.lists), "a_list")}{".a_field" * has_source}")'
        yield problem, f"Write {kept_name(field.kept or 'count').removesuffix('()')}{written}."
        return
    if path is None:
        return  # the mistake of the list is reported there
    reason = why_not_counted(owner, path, by_job=field.keeper == "job")
    if reason is not None:
        yield reason
    if any(field.name in rule.names for rule in owner.rules):
        yield "a rule in check= is about it, and writes of other items change it.", "Remove the rule."
    yield from _wrong_key(owner, field)
    yield from _wrong_shards(owner, field, path) if field.shards else ()
    is_restricted = owner.access is not None and owner.access.is_restricted(field.name)
    if is_restricted and field.kept == "sum" and field.type.kind == "int" and not field.is_kept_later:
        problem = "who may not read it but adds to it could find it out: what would make it larger than 32 bits is refused."
        yield problem, "Annotate it as Long."
    if field.kept not in ("count", "sum") and not field.optional:
        yield "it is null while the list is empty.", "Annotate it with | None."
    if field.kept in OF_ENDS:
        yield from _wrong_end(field, path, of)
        return
    for record in path.records if has_source else ():
        yield from why_not_summed(field, record, of)
    if field.type.written is not None:
        yield "it is not stored as a number.", "Remove the format of its type."


MOST_SHARDS = 50
"""The most items over which the numbers of a node are spread: they are deleted in one transaction with it."""


def _wrong_shards(owner: RecordType, field: Field, path: AccessPath) -> Iterator[tuple[str, str]]:
    """Yields why a number cannot be spread over shards, or why that would spread nothing, and how to fix it."""
    if type(field.shards) is not int or not 2 <= field.shards <= MOST_SHARDS:
        yield (
            f"shards={field.shards!r} is no number from 2 to {MOST_SHARDS}.",
            "Write shards=10, for example.",
        )
    elif field.shards != owner.shard_count:
        yield (
            f"the numbers of {owner.name} are spread over {owner.shard_count} shards.",
            "Give all one number.",
        )
    if field.is_kept_later:
        yield f"the {field.keeper} writes the node alone.", "Leave out shards=."
    if owner.table_keys.shards or owner.table_keys.attributes[0].type != "S":
        of = "is spread over shards" if owner.table_keys.shards else "is no text"
        yield f"the partition key of {owner.name} {of}, so its shards have no keys.", "Leave out shards=."
    names = {attribute.name for keys in owner.keys.values() for attribute in keys.attributes}
    if keys_of_numbers(owner, [field]) or not names.isdisjoint(
        (field.attribute[0], *field.shard_attributes.values())
    ):
        yield (
            "it stands in a key, and no item has the whole number.",
            "Take it out of the key, or leave out shards=.",
        )
    if field.kept == "sum" and field.type.kind == "int":
        yield "no item has the whole number, to refuse one of more than 32 bits.", "Annotate it as Long."
    for each in owner.fields.values():
        is_of_list = each.kept in COUNTED and each.lists[:1] == [path.name] and not each.is_of_two_levels
        if is_of_list and not each.is_kept_later and not each.shards:
            fix = f'Give {each.name} shards= too, or kept="job".'
            yield f"{each.name} counts the same list, and every item would still change the node.", fix
    for record in path.records:
        for each in record.fields.values():
            end = each.kept_of.partition(".")[0]
            if each.kept == "copy" and not each.is_kept_later and end in {one.end for one in path.each}:
                problem = (
                    f"{record.name}.{each.name} is copied from the node, which every write would still check."
                )
                yield problem, 'Give the copy kept="job", or leave out shards=.'
    for method in owner.methods.values():
        if method.needs is None or field.name in method.needs:
            problem = f"the method {method.name} is called with what the node's item has of it."
            yield problem, "Name what the method needs with @field(needs=…), without this field."


def why_not_summed(field: Field, record: RecordType, of: str) -> Iterator[tuple[str, str]]:
    """Yields why a field of the items of a list cannot be added up, and how to fix it."""
    summed = record.fields.get(of)
    if summed is None or summed.type.kind not in NUMBERS or summed.type.written is not None:
        problem = f"{record.name} has no field {of} that is stored as a number."
        yield problem, f"Name a field of the items of {field.lists[-1]}."
    elif summed.shards:
        yield f"{record.name}.{of} is spread over shards.", f"Name another field of {record.name}."
    elif field.type.kind in WHOLE_NUMBERS and summed.type.kind not in WHOLE_NUMBERS:
        problem = f"{record.name}.{of} is of type {summed.type.name}, and this of type {field.type.name}."
        yield problem, f"Annotate it as {with_article(summed.type.name)}."


def _wrong_end(field: Field, path: AccessPath, of: str) -> Iterator[tuple[str, str]]:
    """Yields why no transaction can keep the value of the first or last item of a list: a write that removes this item
    must find the next one in one read."""
    source, first = _source(field, path.record), path.rest.slots[0] if path.rest.slots else None
    if source is None:
        yield f"{path.record.name} has no field {of}.", f"Name a field of the items of {path.name}."
    elif source.shards:
        yield f"{path.record.name}.{of} is spread over shards.", f"Name another field of {path.record.name}."
    elif source.type != field.type:
        problem = (
            f"{path.record.name}.{of} is of type {source.type.name}, and this of type {field.type.name}."
        )
        yield problem, "Give both one type."
    if field.is_kept_later:
        if path.keys.sort is None or any(_source(field, each) is None for each in path.records):
            yield f"not all items of {path.name} have {of} and a sort key.", "Name another list."
        elif field.kept != "latest" and field.type.kind not in NUMBERS | {"date"}:
            yield "the job compares numbers and dates.", "Name another field."
        return
    fix = f"Name a list in the table's own keys, of one type, {'in one partition' if field.kept == 'latest' else f'whose sort key begins with {of}'}."
    if path.members or path.keys.index is not None or path.keys.shards or path.keys.sort is None:
        yield "when its item is removed, one consistent read cannot find the next one in this list.", fix
    elif field.kept != "latest" and (first is None or first.path != (of,) or not first.text.ordered):
        yield f"{path.name} is not ordered by {of}, so the next value could not be found by one read.", fix
    elif first is not None and first.text.is_descending:
        yield f"the sort key of {path.name} descends.", "Name a list whose sort key ascends."
    elif path.reads_others or path.is_uncertain:
        yield f"items of other nodes may be between those of {path.name}.", fix
    if field.kept_where is not None:
        yield "it is kept of all items.", 'Leave where= out, or write kept="job".'


def why_not_counted(owner: RecordType, path: AccessPath, *, by_job: bool = False) -> tuple[str, str] | None:
    """Returns why the server, or the job, cannot keep the count of a list, and how to fix it; None if it can."""
    if path.required:
        problem = f"{path.name} needs the argument {path.required[0].name}: it is many lists."
        return problem, "Name a list without such arguments."
    expiring = [each.name for each in (owner, *path.records) if each.expiry is not None]
    if expiring and not by_job:
        problem = f"items of {expiring[0]} expire, and nothing is written then."
        return problem, "Remove it: read the list's totalCount or aggregate."
    for each in path.each:
        end = each.record.ends[each.end or ""]
        if end.is_ambiguous:
            problem = (
                f"the key at {each.record.name}.{end.name} does not show whether it belongs to {owner.name}."
            )
            return problem, f"Give {owner.name} a key of its own."
    return None


def keys_of_numbers(owner: RecordType, fields: Iterable[Field]) -> list[Keys]:
    """Returns the keys of a node that are rendered from one of these fields, other than a key that is the field's own
    attribute."""
    attributes = {field.name: field.attribute for field in fields}

    def is_rendered(attribute: KeyAttribute, slot: Slot) -> bool:
        is_other = slot.computed or (attribute.name,) != attributes.get(slot.path[0])
        return is_other and not attributes.keys().isdisjoint(owner.needs_of(slot))

    return [
        keys
        for keys in owner.keys.values()
        if any(is_rendered(attribute, slot) for attribute, template in keys.parts for slot in template.slots)
    ]


def _wrong_key(owner: RecordType, field: Field) -> Iterator[tuple[str, str]]:
    """Yields the mistake of a key that no transaction can render again with every item that is counted."""
    for keys in keys_of_numbers(owner, [field]):
        if keys.index is None or field.is_kept_later:
            of = "the table" if keys.index is None else keys.index_name
            problem = f"the key of {owner.name} in {of} is made of it, and would change with every item."
            fix = f'Store it in the key of an index as a number: Index("…", "…", ("{field.attribute[0]}", "N")).'
            yield problem, fix
            return
