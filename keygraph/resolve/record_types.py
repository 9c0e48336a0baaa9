"""The record types of one table, linked together: the paths between them, and the type of an item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache, cached_property, wraps
from inspect import signature
from itertools import combinations
from types import ModuleType
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack

from keygraph.access.language import AccessRule, claims_in
from keygraph.declare.declaration import ListOptions, Writes
from keygraph.declare.decorators import options_of
from keygraph.dynamo.conditions import Condition
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.table import Table
from keygraph.errors import Mistake
from keygraph.keys.formats import Format
from keygraph.keys.shapes import are_disjoint, is_special_case, shape
from keygraph.keys.template import Slot, Template
from keygraph.keys.text import key_text
from keygraph.keys.types import AttributeStyle, FieldType, union_parts
from keygraph.model.candidates import best, is_listable
from keygraph.model.counterparts import Correspondence, Counterpart, correspondences
from keygraph.model.paths import AccessPath, ListOfIds, WalkedPath
from keygraph.model.permissions import restricted_name
from keygraph.model.record_keys import IdentityReader, Keys
from keygraph.model.records import RecordType
from keygraph.model.references import EndReference, references
from keygraph.names import CASES, plural, snake
from keygraph.resolve import derived
from keygraph.resolve.options import are_writes, is_name, is_separator
from keygraph.resolve.records import resolve
from keygraph.resolve.resolution import Resolution
from keygraph.resolve.several import candidates_of, neighbours, root_candidates
from keygraph.resolve.type_values import Beginning, TypeValues, has_value
from keygraph.resolve.walks import FollowedList, NodeWalk, followed_list, resolve_walks

_CALL = "Write Graph(Table(…), User, …): the table first, then the types."
_NEAREST = 3
"""How many templates near to an item's key a message shows."""


_Given = ParamSpec("_Given")
_Derived = TypeVar("_Derived", derived.Tally, derived.Copy)


def _called_as_graph(init: Callable[_Given, None]) -> Callable[_Given, None]:
    """Returns the constructor with a TypeError that says how to call `Graph`, instead of one that names this class."""
    wanted = signature(init)

    @wraps(init)
    def checked(*args: _Given.args, **options: _Given.kwargs) -> None:
        try:
            given = wanted.bind(*args, **options)
            for name in options.keys() - GraphOptions.__annotations__.keys():
                raise TypeError(f"got an unexpected keyword argument {name!r}")
        except TypeError as error:
            raise TypeError(f"Graph(): {error}. {_CALL}") from None
        table = given.arguments["table"]
        if not isinstance(table, Table):
            raise TypeError(f"Graph(): {getattr(table, '__name__', repr(table))} is not a Table. {_CALL}")
        init(*args, **options)

    return checked


class GraphOptions(TypedDict, total=False):
    """The options of a graph, which `Graph` describes."""

    models: Sequence[ModuleType]
    attribute_case: str
    type_attribute: str | None
    formats: Mapping[str | type, Format] | None
    separator: str | None
    store_key_fields: bool
    ttl_attribute: str | None
    access: Sequence[AccessRule]
    shared: Sequence[type]
    lists: Mapping[str, object] | None
    explore: bool
    paths: bool
    ignore: Sequence[str]
    writes: Writes


class RecordTypes:
    """The record types of a table, whether or not the declaration has mistakes."""

    @_called_as_graph
    def __init__(self, table: Table, *types: type, **options: Unpack[GraphOptions]) -> None:
        self.table = table
        self.classes = types
        self.options = options
        self.type_attribute = options.get("type_attribute")
        self.store_key_fields = options.get("store_key_fields", True)
        self.has_paths = options.get("paths", False)
        """Whether the root has fields for paths from node to node."""
        self.derived_mistakes: list[Mistake] = []
        """The mistakes in walks, tallies and copies."""
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Makes the caches that belong to this object, and to no copy of it."""
        self._made: dict[Callable[..., Any], Any] = {}
        """The results of `made`, by the function that makes them."""
        self.identifier: Callable[[RecordType, Keys], IdentityReader] = cache(self._make_identifier)
        """Returns a function that reads the identity of an item that was read by these keys; None for other types."""
        self.siblings: Callable[[AccessPath], tuple[RecordType, ...]] = cache(self._find_siblings)
        """Returns the other types whose items can be inside the range that the path reads."""
        self.with_same_key: Callable[[RecordType], tuple[RecordType, ...]] = cache(self._find_same_key)
        """Returns the other types whose items can have a type's table key."""

    # --- What was declared ----------------------------------------------------------------------------

    @cached_property
    def resolution(self) -> Resolution:
        """The record types with their mistakes."""
        case = self.options.get("attribute_case")
        given: Mapping[Any, object] = self.options.get("formats") or {}
        separator = self.options.get("separator")
        types = (self.classes, tuple(self.options.get("models", ())))
        style = AttributeStyle(
            case if case in CASES else CASES[0],
            {name: each for name, each in given.items() if isinstance(each, Format)},
            separator if is_separator(separator) else None,
        )
        access, shared = self.options.get("access", ()), tuple(self.options.get("shared", ()))
        # A mistake is reported with the other options.
        given_writes = self.options.get("writes")
        writes = given_writes if are_writes(given_writes) else None
        return resolve(self.table, types, style, access, shared, self.type_attribute, writes)

    @cached_property
    def types(self) -> Mapping[str, RecordType]:
        """The record types by name, in the order of the declaration; those without mistakes in their keys."""
        resolution = self.resolution
        return {n: record for n, record in resolution.types.items() if n not in resolution.broken}

    @property
    def nodes(self) -> list[RecordType]:
        return [record for record in self.types.values() if record.is_node]

    @cached_property
    def list_candidates(self) -> dict[tuple[str, str], list[AccessPath]]:
        """The best paths for each list that a node declares, by owner and name; `check` wants exactly one."""
        return {
            (record.name, declared.name): best(
                candidates_of(declared.name, record, declared.of, declared.options)
            )
            for record in self.types.values()
            for declared in record.lists.values()
            if all(of.name in self.types for of in declared.of)
        }

    @cached_property
    def node_lists(self) -> dict[tuple[str, str], AccessPath]:
        """The access path of each list that a node declares, by owner and name."""
        found = {}
        for (owner, name), paths in self.list_candidates.items():
            declared = self.types[owner].lists[name]
            if len(paths) == 1:
                found[owner, name] = replace(
                    paths[0], is_one=declared.is_one, description=declared.description
                )
        return found

    def records_of(self, options: ListOptions) -> list[RecordType | str]:
        """Returns the types that a list at the root declares; as text if it is not a type of the graph."""
        by_class: dict[object, RecordType] = {record.cls: record for record in self.types.values()}
        parts = union_parts(options.of)
        return [by_class.get(part) or str(getattr(part, "__name__", part)) for part in parts]

    @cached_property
    def root_candidates(self) -> dict[str, list[AccessPath]]:
        """The best paths for each list at the root that the graph declares; `check` wants exactly one."""
        found = {}
        for name, given in (self.options.get("lists") or {}).items():
            options = options_of(given)
            records = [] if options is None else self.records_of(options)
            known = [record for record in records if isinstance(record, RecordType)]
            if options is not None and records and len(known) == len(records):
                if options.index is not None:
                    options = replace(options, index=self.table.own(options.index))
                found[name] = best(root_candidates(name, known, options))
        return found

    @cached_property
    def neighbours(self) -> Mapping[str, AccessPath]:
        """The path from each node, by its name, to everything in its partition, if the graph is explored.

        Types are left out if a list of the node has access rules of its own for them.
        """
        found = {}
        for node in self.nodes if self.options.get("explore") else ():
            lists = [
                self.node_lists.get((node.name, name)) for name in node.lists if restricted_name(node, name)
            ]
            ruled = {record for path in lists if path is not None for record in path.records}
            found[node.name] = neighbours(node, [each for each in self.types.values() if each not in ruled])
        return {name: path for name, path in found.items() if path is not None}

    @cached_property
    def _lists_of_ids(self) -> Mapping[tuple[str, str], ListOfIds]:
        """The lists of nodes in nodes' own items, by owner and name."""
        return {
            (node.name, end.name): ListOfIds(node, end, end.name, end.members, end.description)
            for node in self.nodes
            for end in node.list_ends.values()
        }

    @cached_property
    def walks(self) -> Mapping[tuple[str, str], NodeWalk]:
        """The walks that nodes declare, by owner and name."""
        return resolve_walks(self.types, {**self.node_lists, **self._lists_of_ids}, self.derived_mistakes)

    @cached_property
    def every_tally(self) -> Mapping[str, tuple[derived.Tally, ...]]:
        """The counts and sums of the items of each type, by its name, whoever keeps them."""
        return derived.resolve_tallies(self.types, self.node_lists, self.siblings, self.derived_mistakes)

    @cached_property
    def tallies(self) -> Mapping[str, tuple[derived.Tally, ...]]:
        """The counts and sums that writes of the items of each type change, by its name."""
        return _kept_by_transactions(self.every_tally)

    @cached_property
    def every_copy(self) -> Mapping[str, tuple[derived.Copy, ...]]:
        """The fields of each type that are copied from nodes at its ends, by its name, whoever copies them."""
        return derived.resolve_copies(
            self.types, self.correspondences, self.references, self.derived_mistakes
        )

    @cached_property
    def followers(self) -> Mapping[str, tuple[derived.Follower, ...]]:
        """The copies that follow nodes of each type, by its name."""
        return derived.resolve_followers(self.copies, self.references)

    @cached_property
    def copies(self) -> Mapping[str, tuple[derived.Copy, ...]]:
        """The fields of each type that are copied from nodes at its ends when it is written, by its name."""
        return _kept_by_transactions(self.every_copy)

    @cached_property
    def followed(self) -> tuple[FollowedList, ...]:
        """The lists that paths from node to node may follow."""
        paths: tuple[WalkedPath, ...] = (*self.node_lists.values(), *self._lists_of_ids.values())
        found = (followed_list(each, self.unrecognized) for each in (paths if self.has_paths else ()))
        return tuple(each for each in found if each is not None)

    @cached_property
    def root_lists(self) -> tuple[AccessPath, ...]:
        declared = [paths[0] for paths in self.root_candidates.values() if len(paths) == 1]
        by_keys = (
            AccessPath(keys.lists or plural(snake(record.name)), None, record, None, keys)
            for record in self.types.values()
            if not record.is_virtual
            for keys in record.keys.values()
            if keys.lists or (keys.lists is None and keys.finds is None and is_listable(record, keys))
        )
        return (*declared, *by_keys)

    @cached_property
    def finders(self) -> tuple[AccessPath, ...]:
        """The fields at the root that find one item by an index."""
        return tuple(
            AccessPath(keys.finds, None, record, None, keys, is_one=True)
            for record in self.types.values()
            for keys in record.keys.values()
            if keys.finds
        )

    @property
    def paths(self) -> list[AccessPath]:
        """Every access path that is offered."""
        return [*self.node_lists.values(), *self.neighbours.values(), *self.root_lists, *self.finders]

    # --- Access ---------------------------------------------------------------------------------------

    @cached_property
    def has_access_rules(self) -> bool:
        """Whether there are rules for who may see and change what; without them everybody may."""
        return any(record.access is not None for record in self.types.values())

    @cached_property
    def ruling_claims(self) -> frozenset[str]:
        """The names of the claims that rules compare."""
        accesses = [record.access for record in self.types.values() if record.access is not None]
        return frozenset(
            name for access in accesses for grant in access.every for name in claims_in(grant.rule.where)
        )

    # --- Mirrors and counterparts ---------------------------------------------------------------------

    @cached_property
    def correspondences(self) -> Mapping[str, Correspondence]:
        """How each edge type with a mirror or a counterpart determines its other items, by its name."""
        return correspondences(self.types)

    def counterpart(self, record: RecordType, item: Item) -> Counterpart | None:
        """Returns the other item of an edge that is mirrored or has a counterpart; None if it is neither, or if a
        mirrored edge leads to the node where it begins: it is its own mirror.

        Raises CorruptItem or ValueError if the item does not determine it.
        """
        found = self.correspondences.get(record.name)
        if found is None:
            return None
        other = found.counterpart(item, self.type_values.written(found.other))
        return None if found.is_mirror and other.identity == record.read_identity(item) else other

    @cached_property
    def references(self) -> Mapping[str, tuple[EndReference, ...]]:
        """The places where records name nodes of each type, by its name."""
        return {node.name: references(node, self.types, self.correspondences) for node in self.nodes}

    # --- Unions ---------------------------------------------------------------------------------------

    @cached_property
    def unions(self) -> dict[frozenset[RecordType], tuple[RecordType, ...]]:
        """The unions of ends, methods and lists, each with its members in the order in which they are first named."""
        found: dict[frozenset[RecordType], tuple[RecordType, ...]] = {}
        for record in self.types.values():
            named = [end.members for end in (*record.ends.values(), *record.list_ends.values())]
            named += [method.nodes for method in record.methods.values()]
            named += [declared.of for declared in record.lists.values()]
            for members in named:
                if len(members) > 1:
                    found.setdefault(frozenset(members), members)
        for walk in self.walks.values():
            if len(walk.nodes) > 1:
                found.setdefault(frozenset(walk.nodes), walk.nodes)
        for path in self.root_lists:
            if path.members:
                found.setdefault(frozenset(path.records), path.records)
        return found

    # --- Recognizing items ----------------------------------------------------------------------------

    @cached_property
    def type_values(self) -> TypeValues:
        """The values of the type attributes in items."""
        return TypeValues(self.table, self.types, self.type_attribute)

    def recognise(self, item: Mapping[str, Value]) -> RecordType | None:
        """Returns the type of an item that was read from the table; None if no declared type accepts it."""
        match = self.identified(item)
        return None if match is None else match[0]

    def identified(
        self, item: Mapping[str, Value], keys: Keys | None = None
    ) -> tuple[RecordType, tuple[str, ...]] | None:
        """Returns the type of the item, and the texts that identify it; None if no declared type accepts it.

        `keys` are those that the item was read by, if not the table's: an index may lack the type attribute.
        """
        index = keys.index_name if keys else None
        candidates = self.type_values.candidates(item, index)
        if index is not None and self.type_values.hidden(index):
            # The keys there tell more than a type attribute that is not projected: those that they fit come first.
            candidates = [record for record in candidates if index in record.keys]
            candidates.sort(key=lambda record: record.keys[index].parse(item) is None)
        for record in candidates:
            identity = record.read_identity(item)
            if identity is not None:
                return record, identity
        return None

    def is_of(self, item: Mapping[str, Value], records: Sequence[RecordType]) -> bool:
        """Returns whether the item, which was read from the table, has one of the types."""
        if len(records) == 1:
            [record] = records
            return self.identifier(record, record.keys[None])(item) is not None
        return self.recognise(item) in records

    @cached_property
    def expires(self) -> bool:
        """Whether items of any type expire."""
        return any(record.expiry is not None for record in self.types.values())

    @cached_property
    def ttl_attribute(self) -> str:
        """The attribute by which DynamoDB deletes expired items: a table has one."""
        declared = [record.expiry.attribute[0] for record in self.types.values() if record.expiry is not None]
        given = self.options.get("ttl_attribute")
        return next(iter(declared), "ttl") if given is None else given

    def is_expired(self, item: Mapping[str, Value], at: Decimal) -> bool:
        """Returns whether an item that was read from the table counts as absent at a time (`keygraph.model.expiry`)."""
        value = item.get(self.ttl_attribute) if self.expires else None
        if type(value) is not Decimal or value > at:
            return False
        record = self.recognise(item)
        return record is not None and record.expiry is not None

    def _make_identifier(self, record: RecordType, keys: Keys) -> IdentityReader:
        values = self.type_values.of(record)
        exact = {name: value for name, value in values.items() if not isinstance(value, Beginning)}
        is_decided = len(exact) == len(values) and self.type_values.hidden(keys.index_name).isdisjoint(values)
        if values and is_decided and self.type_values.is_alone(record):
            return record.identity_reader(exact)
        return lambda item: (
            match[1] if (match := self.identified(item, keys)) and match[0] is record else None
        )

    @cached_property
    def ignored(self) -> dict[str, tuple[Template, ...]]:
        """The patterns of items that are not the graph's, each with its templates of the table's keys."""
        found, given = {}, self.options.get("ignore", ())
        for pattern in filter(is_name, given if isinstance(given, list | tuple) else ()):
            texts = pattern.split(" / ", 1) if self.table.sort else [pattern]
            texts += ["*"] * (len(self.table.keys) - len(texts))
            found[pattern] = tuple(_wildcards(text) for text in texts)
        return found

    def ignores(self, item: Mapping[str, Value]) -> bool:
        """Returns whether the item, which no declared type accepts, is one that the graph does not describe."""
        texts = [key.text(item.get(key.name)) for key in self.table.keys]
        return any(
            all(
                text is not None and each.read(text) is not None
                for each, text in zip(templates, texts, strict=True)
            )
            for templates in self.ignored.values()
        )

    def why_refused(self, item: Mapping[str, Value]) -> str:
        """Returns why no declared type accepts the item, in one line without its values."""
        for key in self.table.keys:
            if not key.holds(item.get(key.name)):
                return f"its key attribute {key.name} is missing or not of type {key.type}"
        group = self.type_values.candidates(item, None)
        if not group:
            return self.type_values.why_refused(item)
        return f"its key fits none of the templates: {self._nearest(item, group)}"

    def _nearest(self, item: Mapping[str, Value], group: Sequence[RecordType]) -> str:
        """Returns the templates nearest to a key of the item, and what is wrong with each."""
        found = [(record, record.table_keys.mismatch(item)) for record in group]
        nearest = max(mismatch[:2] for _, mismatch in found)
        # Keys that fit all templates may still not be read back.
        number = min(nearest[0], len(self.table.keys) - 1)
        described = [
            f"{record.table_keys.templates[number]} of {record.name} ({mismatch.why})"
            for record, mismatch in found
            if mismatch[:2] == nearest
        ]
        others = f", or {len(described) - _NEAREST:,} others" if len(described) > _NEAREST else ""
        return f"{self.table.keys[number].name} does not fit {', '.join(described[:_NEAREST])}{others}"

    # --- Siblings -------------------------------------------------------------------------------------

    def may_look_alike(self, record: RecordType, other: RecordType, keys: Keys) -> bool:
        """Returns whether these keys of the first type may look like the other's: something else tells their items
        apart, which is the table's key for an index, and their type attributes.

        Not so where a key alone says what an end names, nor in another type's partition that is divided into shards.
        """
        if keys.index is not None:
            return self.type_values.are_distinguishable(
                record, other, self.type_values.hidden(keys.index_name)
            )
        return (
            not other.table_keys.shards
            and self.type_values.exclude(record, other)
            and not self.share_an_end(record, other)
        )

    def unrecognized(self, path: AccessPath) -> Iterator[tuple[RecordType, RecordType]]:
        """Yields the types of which a list's index does not tell what its items are: it lacks a type attribute."""
        hidden = self.type_values.hidden(path.keys.index_name)
        others = [(own, each) for own in path.records for each in self.siblings(path)] if hidden else []
        for one, other in (*others, *(combinations(path.records, 2) if hidden else ())):
            if not self.type_values.are_distinguishable(one, other, hidden):
                yield one, other

    def share_an_end(self, record: RecordType, other: RecordType) -> bool:
        """Returns whether an end names nodes of both types."""
        return any({record, other} <= {*members} for members in self._members_of_ends)

    @cached_property
    def _members_of_ends(self) -> list[tuple[RecordType, ...]]:
        """The nodes of each end that names nodes of several types."""
        return [
            end.members
            for record in self.types.values()
            for end in (*record.ends.values(), *record.list_ends.values())
            if len(end.members) > 1
        ]

    def _find_same_key(self, record: RecordType) -> tuple[RecordType, ...]:
        own = shape(*record.table_keys.templates)
        return tuple(
            other
            for other in self.types.values()
            if other is not record
            and not other.is_virtual
            and not are_disjoint(own, shape(*other.table_keys.templates))
        )

    def _find_siblings(self, path: AccessPath) -> tuple[RecordType, ...]:
        if path.members:
            # Items between those of two types are in its range too.
            there = [other for member in path.members for other in self._in_partition(member)]
            return tuple(other for other in dict.fromkeys(there) if other not in path.records)
        prefix = path.of_owner(path.prefix)
        anything = Slot(("",), key_text(FieldType("string")))
        ranges = [shape(prefix)]
        if path.rest.tokens or path.keys.sort is None:
            ranges.append(shape(Template((*prefix.tokens, anything))))
        found = []
        for other in self._in_partition(path):
            sort = other.keys[path.keys.index_name].sort
            if sort is None or any(not are_disjoint(shape(sort), range_) for range_ in ranges):
                found.append(other)
        return tuple(found)

    def _in_partition(self, path: AccessPath) -> Iterator[RecordType]:
        """Yields the other types whose items can be in the partition that the path reads."""
        partition = shape(path.of_owner(path.keys.partition))
        for other in self.types.values():
            keys = other.keys.get(path.keys.index_name)
            if other is path.record or other.is_virtual or keys is None:
                continue
            theirs = shape(keys.partition)
            # A key with a more special shape is refused as a value of this one: it is never this partition.
            is_refused = (
                is_special_case(theirs, partition)
                and not is_special_case(partition, theirs)
                and not self.may_look_alike(path.record, other, path.keys)
            )
            if not is_refused and not are_disjoint(theirs, partition):
                yield other

    def type_condition(self, path: AccessPath) -> Condition | None:
        """Returns the filter for the items of the path's type by their type attributes; None if there cannot be one.

        That is so if there are none, if one is a key of the table or index that is read, or if the index does not
        project it.
        """
        values, (partition, template) = self.type_values.of(path.record), path.keys.parts[0]
        fixed = values.get(partition.name)
        # Everything in the partition has this value.
        besides = {partition.name} if fixed is not None and has_value(template, fixed) else set[str]()
        unusable = (path.keys.names | self.type_values.hidden(path.keys.index_name)) - besides
        return None if values.keys() & unusable else self.type_values.condition(path.record, besides)


def _kept_by_transactions(by_name: Mapping[str, tuple[_Derived, ...]]) -> Mapping[str, tuple[_Derived, ...]]:
    found = {
        name: tuple(each for each in several if not each.field.is_kept_later)
        for name, several in by_name.items()
    }
    return {name: several for name, several in found.items() if several}


def _wildcards(pattern: str) -> Template:
    """Returns the template of a text in which `*` stands for any characters, at least one."""
    parts: list[str | Slot] = []
    for number, literal in enumerate(pattern.split("*")):
        if number:
            parts.append(Slot((f"any{number}",), key_text(FieldType("string"))))
        if literal:
            parts.append(literal)
    return Template(tuple(parts))
