"""Access paths: how one node, or the root, reaches many items by one Query.

Unification finds an access path: an end of the wanted type is assumed to be the node, and then the path is the table or
the index whose partition template contains only literal text, values from the node's key, a shard and required
arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, takewhile
from operator import itemgetter
from typing import TypeAlias, cast

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import KeyType, KeyValue, Position
from keygraph.keys.template import FieldPath, Slot, Template, Token, replaced
from keygraph.keys.text import key_text
from keygraph.keys.types import FieldType, Kind, is_optional
from keygraph.keys.union import taking
from keygraph.model.record_keys import Keys, TextReader, Texts, text_writer
from keygraph.model.records import End, RecordType

SORT_KEY = "sort_key"
"""The name of the argument for a whole sort key."""
_KIND_OF_KEY: Mapping[KeyType, Kind] = {"S": "string", "N": "decimal", "B": "bytes"}
"""The kinds of fields that hold a key's values."""


@dataclass(frozen=True)
class Argument:
    """An argument for a slot of the path's templates."""

    name: str
    """In snake case."""
    slot: Slot
    optional: bool
    """Whether the part of the key may be absent: null selects that."""
    is_projected: bool = True
    """Whether the items that are read contain its value, even if its text in the key does not."""

    @property
    def type(self) -> FieldType:
        return self.slot.text.type

    def is_alike(self, other: Argument) -> bool:
        """Returns whether both, which have one text, allow the same conditions."""
        return (self.optional, self.is_projected) == (other.optional, other.is_projected)

    @property
    def has_range(self) -> bool:
        """Whether `from` and `to` are available: the texts sort as the values do. The key holds a method's text."""
        return self.slot.text.ordered and (not self.slot.lossy or self.slot.computed or self.is_projected)

    @property
    def has_time(self) -> bool:
        """Whether its texts begin with a time, so that a range of times is a range of texts."""
        return self.slot.text.time_bound is not None

    @property
    def is_text(self) -> bool:
        """Whether `beginsWith` is available: the value's beginning is the beginning of the text in the key."""
        return self.slot.text.has_prefixes or self.has_time


@dataclass(frozen=True, eq=False)
class AccessPath:
    """A list of `record` items in one partition of the table or an index.

    `owner` is the node that has the list and `end` the end of `record` that is this node; both are None for a list at
    the root.
    """

    name: str
    owner: RecordType | None
    record: RecordType
    end: str | None
    keys: Keys
    is_one: bool = False
    description: str | None = None
    members: tuple[AccessPath, ...] = ()
    """For a list of several types, the path to each, in one partition. The path itself is then the path to the first,
    except for what is overridden here."""
    is_member: bool = False
    """Whether it is one of those: their edges are served as records, as at the root."""
    names: tuple[str, ...] = ()
    """The names of the required arguments of such a list, if this type's own differ."""

    @property
    def place(self) -> str:
        """Where clients find it: `User.orders`."""
        return f"{self.owner.name if self.owner else 'the root'}.{self.name}"

    def __repr__(self) -> str:
        return f"<path {self.place}: {self.record.name} on {self.keys.index_name or 'the table'}>"

    @cached_property
    def far_end(self) -> str | None:
        """The end of an edge at which the neighbor's node is; None if the neighbor is not an edge's node.

        An edge has two ends in its table key; from another end, and from the root, it is served as a record.
        """
        ends = self.record.key_ends
        if self.record.kind != "edge" or self.end not in ends or self.members or self.is_member:
            return None
        return ends[1] if self.end == ends[0] else ends[0]

    @property
    def nodes(self) -> tuple[RecordType, ...]:
        """The types of `node` in the list's edges: the types of the node at the far end, or the item's own type."""
        return self.record.ends[self.far_end].members if self.far_end else self.records

    @property
    def each(self) -> tuple[AccessPath, ...]:
        """The path to each type that it lists."""
        return self.members or (self,)

    @cached_property
    def records(self) -> tuple[RecordType, ...]:
        return tuple(member.record for member in self.each)

    @cached_property
    def item_bytes(self) -> int:
        """The size of an item, in bytes, for the cost bound: the largest."""
        return max(record.item_bytes for record in self.records)

    @cached_property
    def expires(self) -> bool:
        """Whether items that it lists expire."""
        return any(record.expiry is not None for record in self.records)

    def canonical(self, template: Template) -> tuple[Token, ...]:
        """Returns the tokens of a template with the owner's key and a client's arguments instead of the type's own
        names: those of two types are equal if one text is in both."""
        end = self.end if self.end is not None and self.record.ends[self.end].text is not None else None

        def written(slot: Slot) -> tuple[Slot]:
            source = self.known.get(slot.name)
            path = ("", *source.path) if source is not None else (self.record.leaf_name(slot.path),)
            if source is None and slot.path[0] == end:
                path = ("", *slot.path[1:])  # written out as the owner's key
            return (slot if slot.is_shard else Slot(path, slot.text, slot.computed),)

        return replaced(self.of_owner(template).tokens, written)

    @cached_property
    def known(self) -> Mapping[str, Slot]:
        """The slots of this path's type that the owner's key determines, by name, with the end's or owner's slot.

        Slots with one path, or whose fields are stored in one attribute.
        """
        if self.owner is None or self.end is None:
            return {}
        end = self.record.ends[self.end]
        of_owner = dict.fromkeys((*end.identity, *self.owner.identity))
        known = {}
        for slot in self.record.slots.values():
            sources = [
                source for source in of_owner if self.record.is_same(slot.path, (self.end, *source.path))
            ]
            same = [source for source in sources if source.text == slot.text]
            if not slot.computed:
                same += [source for source in sources if not source.lossy]
            if same:
                known[slot.name] = same[0]
        return known

    @cached_property
    def undetermined(self) -> tuple[Slot, ...]:
        """The parts of the owner's identity, as the end has them, that are neither in the partition nor in the known
        part of the sort key."""
        if self.end is None:
            return ()
        standing = [
            (slot, self.known[slot.name])
            for template in (self.keys.partition, self.prefix)
            for slot in template.slots
            if slot.name in self.known
        ]
        # A text that loses a part of the value may belong to other nodes too.
        texts = {source.name for slot, source in standing if slot.text == source.text}
        values = {source.path for slot, source in standing if not slot.lossy}
        identity = self.record.ends[self.end].identity
        return tuple(slot for slot in identity if slot.name not in texts and slot.path not in values)

    @property
    def leads(self) -> bool:
        """Whether it reads the owner's list: its keys hold the owner's whole identity, or its last part without any
        arguments, and the items contain the others.

        In the table's own key, the others are in that key itself: otherwise one item would belong to several owners.
        """
        if self.end is None or not self.undetermined:
            return self.end is not None
        has = self._keys_have if self.keys.index is None else self._has
        is_chosen = self.record.ends[self.end].identity[-1] not in self.undetermined
        return (
            is_chosen and not self.required and all(has(self.end, *slot.path) for slot in self.undetermined)
        )

    @cached_property
    def required(self) -> tuple[Argument, ...]:
        """The required arguments: the slots of the partition that the owner does not determine.

        Without an optional one, its part of the key is absent.
        """
        own = [
            self._argument(slot)
            for slot in self.keys.partition.slots
            if slot.name not in self.known and not slot.is_shard
        ]
        names = self.names or [argument.name for argument in own]
        return tuple(replace(argument, name=name) for argument, name in zip(own, names, strict=True))

    @cached_property
    def slot_names(self) -> frozenset[str]:
        return frozenset(slot.name for slot in self.keys.slots)

    @cached_property
    def _split(self) -> tuple[Template, Template]:
        known = self.known.keys() | {argument.slot.name for argument in self.required}
        return self.keys.sort.head(known) if self.keys.sort else (Template(()), Template(()))

    @property
    def prefix(self) -> Template:
        """The sort template up to the first unknown slot."""
        return self._split[0]

    @property
    def rest(self) -> Template:
        """The sort template from the first unknown slot."""
        return self._split[1]

    @cached_property
    def reads_table_keys(self) -> bool:
        """Whether the keys that are read are the table's, maybe swapped: then they determine the type of an item."""
        return are_tables(self.record, self.keys)

    @cached_property
    def reads_others(self) -> bool:
        """Whether it also reads items that belong to other nodes: their keys hold the same part of the identity; or the
        prefix ends in a value that may continue, so that 3 finds items of 30; or it has a choice that begins another
        one."""
        if self.members:
            return any(member.reads_others for member in self.members)
        if self.undetermined:
            return True
        tokens = self.prefix.tokens
        if self.rest.tokens and isinstance((tokens or ("",))[-1], Slot):
            return True
        return any(
            isinstance(token, Slot) and isinstance(following, str) and token.text.is_continued_by(following)
            for token, following in pairwise(tokens)
        )

    @cached_property
    def ranged(self) -> tuple[Argument, ...]:
        """The arguments on the sort key, from left to right: the slots after the prefix.

        None if a node has at most one item: its field takes only the required arguments. For several types, those that
        come first in all of their sort keys; if there are none, the sort key itself.
        """
        if self.is_one and self.owner is not None:
            return ()
        if self.members:
            return self._common or self._whole_sort_key
        required = {argument.slot.name for argument in self.required}
        return tuple(
            self._argument(slot)
            for slot in self.rest.slots
            if slot.name not in self.known and slot.name not in required and not slot.is_shard
        )

    @cached_property
    def _common(self) -> tuple[Argument, ...]:
        """The arguments on the sort keys of all its types, in which they follow the same text."""
        sorts = [member.canonical(member.keys.sort or Template(())) for member in self.members]
        names: list[str] = []
        for token, *others in zip(*sorts, strict=False):
            if any(other != token for other in others) or not isinstance(token, str | Slot):
                break
            names += token.path if isinstance(token, Slot) else ()
        first, *more = ({each.name: each for each in member.ranged} for member in self.members)
        common = takewhile(
            lambda name: name in first and all(each[name].is_alike(first[name]) for each in more),
            filter(None, names),
        )
        return tuple(first[name] for name in common)

    @property
    def _whole_sort_key(self) -> tuple[Argument, ...]:
        """The sort key as one value, of which an argument sets a range."""
        attributes = self.keys.attributes
        if len(attributes) < 2:
            return ()
        type_ = FieldType(_KIND_OF_KEY[attributes[1].type])
        text = key_text(type_, is_number=attributes[1].type == "N")
        return (Argument(SORT_KEY, Slot((SORT_KEY,), text), optional=False),)

    @cached_property
    def uncertain(self) -> Mapping[str, TextReader | None]:
        """The slots whose text the range of a key does not guarantee, by name, with the reader of the item's attribute.

        A value may contain the text that separates it from what follows: a key of `a` and `b#c` begins as those of
        `a#b`.
        """
        keys, record = self.keys, self.record
        partition = keys.partition
        found = set(partition.uncertain)
        if keys.sort is not None:
            found |= keys.sort.open_ended | keys.sort.uncertain
            found -= partition.slot_names - partition.uncertain
        readers: dict[str, TextReader | None] = {}
        for template in keys.templates:
            is_read_back = True
            for slot in template.slots:
                read = record.text_reader(slot)
                is_read_back = is_read_back and not slot.lossy
                # What follows a rendered text, which may contain the separator, has no certain place.
                if slot.name in found and (read is not None or is_read_back):
                    readers[slot.name] = read
        return readers

    @cached_property
    def is_uncertain(self) -> bool:
        """Whether that is so for what every list of the path fixes."""
        if self.members:
            return any(member.is_uncertain for member in self.members)
        fixed = self.known.keys() | {argument.slot.name for argument in self.required}
        return not fixed.isdisjoint(self.uncertain)

    def ends_needed(self, *, leads: bool = True) -> frozenset[str]:
        """Returns the ends that are needed of its items: for their owners and, if the list `leads` on, for its
        nodes."""
        ends = (self.far_end if leads else None, self.end if self.undetermined else None)
        return frozenset(end for end in ends if end is not None)

    def texts_of_item(self, item: Item) -> dict[str, str] | None:
        """Returns the texts of an item's keys here, from its attributes if they are uncertain; None if it has none of
        these keys."""
        texts = self.keys.parse(item)
        if texts is not None:
            for name, read in self.uncertain.items():
                own = read(item) if read is not None else None
                if own is not None:
                    texts[name] = own
                elif name in self._absent_with_attribute:
                    texts.pop(name, None)
        return texts

    @cached_property
    def _absent_with_attribute(self) -> frozenset[str]:
        """The uncertain slots that have no text in an item without the attribute, however its key is read."""
        record, table, index = self.record, self.record.table, self.keys.index_name
        return frozenset(
            slot.name
            for slot in self.keys.slots
            if self.uncertain.get(slot.name)
            and not record.reads_from(self.keys, slot.path)
            and (attribute := record.attribute_of(slot.path))
            and table.has(index, attribute[0])
        )

    @cached_property
    def attributes_of_uncertain(self) -> frozenset[str]:
        """The attributes that contain the uncertain texts."""
        attributes = [
            self.record.attribute_of(slot.path) for slot in self.keys.slots if self.uncertain.get(slot.name)
        ]
        return frozenset(attribute[0] for attribute in attributes if attribute is not None)

    def of_owner(self, template: Template) -> Template:
        """Returns the template with the owner's own key if its end could be a node of another type too."""
        end = self.record.ends[self.end] if self.end is not None else None
        if end is None or end.text is None or self.owner is None:
            return template
        [slot] = (slot.under(end.name) for slot in end.identity)
        [own] = (variant for variant in end.text.variants if self.owner.name in variant.members)
        return taking(template, slot, own)

    def _argument(self, slot: Slot) -> Argument:
        is_in_item = slot.lossy and self.projected.issuperset(self.record.needs_of(slot))
        return Argument(self.record.leaf_name(slot.path), slot, slot.name in self.keys.optional, is_in_item)

    def texts_of_owner(self, identity: tuple[str, ...]) -> dict[str, str | None]:
        """Returns the texts that the owner's identity gives to the slots of this path's type; None for an absent
        optional one."""
        end = self._end_with_text
        texts = (
            identity
            if end is None or self.owner is None
            else (*identity, *end.identity_of(self.owner, identity))
        )
        return {
            name: (texts[place] or None) if wanted is None else _rewritten(source, texts[place], wanted)
            for name, place, source, wanted in self._sources_of_texts
        }

    def partition_writer(self, fixed: Mapping[str, str | None]) -> Callable[[Texts], str] | None:
        """Returns a function that writes the partition key of an owner's list from the owner's identity.

        `fixed` are the texts of the required arguments, by slot. None if inserting texts in their places is not enough.
        """
        if self.owner is None or self.owner.table_keys.optional or self._end_with_text is not None:
            return None
        places = {name: place for name, place, _, rewritten in self._sources_of_texts if rewritten is None}
        template = self.keys.partition.with_texts(fixed)
        slots = [token for token in template.tokens if not isinstance(token, str)]
        is_plain = all(isinstance(slot, Slot) and slot.name in places for slot in slots)
        return text_writer(template, places) if is_plain else None

    @cached_property
    def _end_with_text(self) -> End | None:
        """The owner's end, if a node there is identified by something else than its own identity."""
        end = None if self.end is None else self.record.ends[self.end]
        return None if end is None or end.text is None else end

    @cached_property
    def _sources_of_texts(self) -> tuple[tuple[str, int, Slot, Slot | None], ...]:
        """For each slot that the owner's key determines: its place in the owner's identity, or in the end's after that,
        and the slot to rewrite it as, if it is written differently."""
        if self.owner is None or self.end is None:
            return ()
        end = self.record.ends[self.end]
        names = [slot.name for slot in self.owner.identity]
        if end.text is not None:
            names += [slot.name for slot in end.identity]
        places = {name: place for place, name in enumerate(names)}
        wanted = {name: (self.record.slots[name], source) for name, source in self.known.items()}
        if self.undetermined:
            # These distinguish the items from those of other nodes.
            wanted |= {own.name: (own, slot) for slot in end.identity for own in [slot.under(end.name)]}
        return tuple(
            (name, places[source.name], source, None if source.text == slot.text else slot)
            for name, (slot, source) in wanted.items()
        )

    @cached_property
    def owner_slots(self) -> tuple[str, ...]:
        """The names of the slots of the owner's identity."""
        end = self.end
        return () if end is None else tuple(slot.under(end).name for slot in self.record.ends[end].identity)

    def owner_of(self, item: Item) -> tuple[str, ...] | None:
        """Returns the texts of the owner's identity from an item; None if it does not show whose it is."""
        return None if self.end is None else self.record.readable_end(item, self.record.ends[self.end])

    @cached_property
    def position(self) -> tuple[str, ...]:
        """The attributes of an item's position in the table or index that is read."""
        return tuple(key.name for key in self.record.table.position(self.keys.index_name))

    @cached_property
    def position_of(self) -> Callable[[Item], Position]:
        """A function that returns an item's position in what is read. It raises KeyError if the item lacks a key."""
        if len(self.position) == 1:
            [only] = self.position
            return lambda item: (cast(KeyValue, item[only]),)
        return itemgetter(*self.position)

    @cached_property
    def projected(self) -> frozenset[str]:
        """The fields, ends and methods of the type that the items read here contain.

        All of them, unless an index projects less; what it lacks is read from the table.
        """
        record = self.record
        names = {name for name in record.fields if self._has(name)}
        ends = record.ends.values()
        names |= {end.name for end in ends if all(self._has(end.name, *path) for path in end.attributes)}
        for method in record.methods.values():
            if self.keys.reads_whole_items or (method.needs is not None and names.issuperset(method.needs)):
                names.add(method.name)
        return frozenset(names)

    def lacks(self, attribute: str) -> bool:
        """Returns whether the items read here have an attribute neither themselves nor in their keys."""
        held = (place.attribute[0] for place in self.record.places if place.path[0] in self.projected)
        return not self.record.table.has(self.keys.index_name, attribute) and attribute not in held

    def _has(self, *path: str) -> bool:
        """Returns whether the items read here have the field of a placeholder, in a key or an attribute."""
        attribute = self.record.attribute_of(path)
        both = (attribute, self.record.former.get(attribute, attribute)) if attribute is not None else ()
        index = self.keys.index_name
        is_projected = bool(both) and all(self.record.table.has(index, each[0]) for each in both)
        return is_projected or self._keys_have(*path)

    def _keys_have(self, *path: str) -> bool:
        """Returns whether the keys that the items read here have determine the field of a placeholder."""
        return any(
            self.record.is_same(path, slot.path) and self.record.reads_from(keys, path)
            for keys in self.record.keys.values()
            if keys.names <= {*self.position}
            for slot in keys.slots
            if not slot.lossy
        )

    @property
    def finds_by_node(self) -> bool:
        """Whether the two ends make the whole table key, so that the edge to a node is found by its key."""
        return bool(self._paths_of_ends) and all(
            slot.path in self._paths_of_ends for slot in self.record.identity
        )

    @cached_property
    def is_by_node(self) -> bool:
        """Whether lists of different owners have the edges to one node at the same place: in all sort keys of a list,
        the common beginning is followed by that node's key and nothing else, and no other edge of the list has it."""
        end = None if self.far_end is None else self.record.ends[self.far_end]
        if end is None or not self.finds_by_node or len(self.keys.attributes) < 2:
            return False
        wanted = {(end.name, *slot.path) for slot in end.identity}
        slots = self.rest.slots
        return {slot.path for slot in slots} == wanted and not any(slot.lossy for slot in slots)

    @property
    def finds_common(self) -> bool:
        """Whether the nodes common to several lists are found without reading whole lists."""
        return not self.is_one and (self.finds_by_node or self.keys_of_both_ends is not None)

    @cached_property
    def _paths_of_ends(self) -> frozenset[FieldPath]:
        """The paths in keys for the two ends of an edge; empty if the path does not go from end to end."""
        ends = (self.end, self.far_end)
        if None in ends:
            return frozenset()
        return frozenset((name, *path) for name in ends if name for path in self.record.ends[name].attributes)

    @cached_property
    def keys_of_both_ends(self) -> Keys | None:
        """The keys by which one Query finds the edges between two nodes: both ends are the partition and the beginning
        of the sort key. None if there are none; the table comes before indexes.

        An index that is not the list's own has all its edges, and tells nothing that some viewer may not read.
        """
        wanted = self._paths_of_ends
        if not wanted:
            return None
        for keys in self.record.keys.values():
            known = {slot.name for slot in keys.slots if slot.path in wanted and not slot.lossy}
            head = (keys.sort or Template(())).head(known)[0]
            is_fixed = all(slot.name in known or slot.is_shard for slot in keys.partition.slots)
            fixed = {slot.path for template in (keys.partition, head) for slot in template.slots}
            if not is_fixed or not keys.reads_whole_items or not wanted <= fixed:
                continue
            if keys.index == self.keys.index or hold_all(self.record, keys, known):
                return keys
        return None

    def edge_texts(self, near: tuple[str, ...], far: tuple[str, ...]) -> dict[str, str | None]:
        """Returns the texts, by slot, that the owner and a node at the far end give to the keys of the edges between
        them; None for an absent optional one.

        `near` is the owner's identity, `far` that of the far end.
        """
        given: dict[FieldPath, tuple[Slot, str]] = {}
        if self.owner is not None and self.end is not None:
            near = self.record.ends[self.end].identity_of(self.owner, near)
        for end, identity in ((self.end, near), (self.far_end, far)):
            if end is not None:
                slots = self.record.ends[end].identity
                given |= {(end, *slot.path): (slot, text) for slot, text in zip(slots, identity, strict=True)}
        texts: dict[str, str | None] = {}
        for slot in self.record.slots.values():
            if slot.path in given:
                source, text = given[slot.path]
                texts[slot.name] = _rewritten(source, text, slot)
        return texts


@dataclass(frozen=True, eq=False)
class ListOfIds:
    """A list of nodes whose ids are in the owner's own item."""

    owner: RecordType
    end: End
    name: str
    nodes: tuple[RecordType, ...]
    description: str | None

    @property
    def place(self) -> str:
        return f"{self.owner.name}.{self.name}"


WalkedPath: TypeAlias = AccessPath | ListOfIds
"""A list that walks follow."""


def with_edges(paths: Iterable[WalkedPath]) -> tuple[AccessPath, ...]:
    """Returns the paths whose edges are items."""
    return tuple(path for path in paths if isinstance(path, AccessPath))


def _rewritten(source: Slot, text: str, wanted: Slot) -> str | None:
    """Returns the text of one slot as another one of the same field writes it; None for an absent optional one."""
    return source.rewritten(text, wanted) if text else None


def hold_all(
    record: RecordType, keys: Keys, known: Collection[str] = (), *, has_hidden: bool = False
) -> bool:
    """Returns whether every record of a type is in these keys if it has these slots: an index lacks records with a
    missing part. Unless `has_hidden`, nothing else in them is hidden from a viewer who sees the record."""
    if keys.index is None:
        return True
    access = None if has_hidden else record.access
    return not any(
        (slot.name not in keys.optional and may_be_missing(record, slot))
        or (access is not None and access.is_restricted(slot.path[0]))
        for slot in keys.slots
        if slot.name not in known and not slot.is_shard
    )


def may_be_missing(record: RecordType, slot: Slot) -> bool:
    """Returns whether a record may have no text for a slot."""
    name = slot.path[0]
    if name in record.methods:
        return is_optional(record.methods[name].hints.get("return"))[1]
    return record.ends[name].optional if name in record.ends else record.fields[name].optional


def are_tables(record: RecordType, keys: Keys) -> bool:
    """Returns whether these keys are the table's, maybe swapped."""
    return keys.names == {key.name for key in record.table.keys}
