"""One answer for each viewer: what the planned execution answers under random access rules, and what a naive one does.

`python -m tests.resolvers.guarded 10000` asks so many random operations of random tables under random rules and viewers. The
naive one (`tests.resolvers.naive`) reads everything and leaves out, field by field, what its viewer may not see. It reads the
rules as they are declared, and the values of fields as a model sees them: it knows no conditions, and no plan.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from keygraph.access.claims import Viewer
from keygraph.access.language import AccessRule, Action, Claim
from keygraph.dynamo.actions import changed
from keygraph.dynamo.conditions import at_path, paths_of
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable, DeleteTable
from keygraph.engines.open import open_store
from keygraph.errors import CorruptItem, Forbidden
from keygraph.model.paths import AccessPath, WalkedPath
from keygraph.model.permissions import fixed_by_list, is_decided_by_key
from keygraph.model.records import RecordType
from keygraph.resolve.walks import NodeWalk
from keygraph.walks.walk import Vertex
from keygraph_resolvers import NO_LIMITS, OperationRequest, Service, build_schema
from keygraph_resolvers.schema import field_kinds
from keygraph_resolvers.schema.definitions import kind_of
from keygraph_resolvers.schema.inputs import conditions
from keygraph_resolvers.schema.strawberry_internals import strawberry_field
from tests.resolvers.differential import MODELS, Served, model, run_served
from tests.resolvers.made_items import made_items
from tests.resolvers.made_operations import words_of
from tests.resolvers.made_rules import Rules, guarded, known_value, made_rules
from tests.resolvers.many_operations import main
from tests.resolvers.naive import Naive
from tests.resolvers.naive_lists import MOST_TERMS, NaiveLists, Thing
from tests.resolvers.naive_walks import NaiveWalks, Refused, Step
from tests.resolvers.naive_ways import Ask
from tests.resolvers.worlds import SECRET

# --- The naive reader ---------------------------------------------------------------------------------


def known_end(record: RecordType, name: str, item: Item) -> tuple[str, ...] | None:
    """The identity of the node at an end; None where the item has none that fits."""
    try:
        return record.end_identity(item, record.ends[name])
    except CorruptItem:
        return None


def own_name(kind: field_kinds.FieldKind | None) -> str | None:
    """The name of what a field of a record shows; None for what is no part of one."""
    match kind:
        case (
            field_kinds.Stored(of) | field_kinds.NodeAt(of) | field_kinds.Called(of) | field_kinds.WalkOf(of)
        ):
            return of.name
        case field_kinds.ListOf(path) if path.owner is not None:
            return path.name
    return None


class NaiveAccess:
    """What a viewer sees, by the rules as they were declared. Answers are yes, no, and None: the key does not tell."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.claims = rules.claims
        self._all_edges: bool | None = None
        """Whether every edge is there, or none; None: those that are."""

    def sees(self, record: RecordType, identity: tuple[str, ...], item: Item | None) -> bool | None:
        if item is None and self._rules.edges and not self._is_decided_by_edges(record, identity):
            return None
        return self.allows(record, "read", identity, item)

    def _is_decided_by_edges(self, record: RecordType, identity: tuple[str, ...]) -> bool:
        """Whether nothing of the record's own item is needed, whatever edges there are."""
        told = NaiveAccess(self._rules)
        decided = []
        for told._all_edges in (True, False):
            decided.append(told.allows(record, "read", identity, None) is not None)
        return all(decided)

    def allows(
        self, record: RecordType, action: Action, identity: tuple[str, ...], item: Item | None
    ) -> bool | None:
        said = [self._of_type(record, action)]
        wall = self._of_wall(record, action) or self._of_wall(record, "read")
        if wall:
            said.append(wall)
        return _all(_any(self._allows(rule, record, identity, item) for rule in rules) for rules in said)

    def _of_type(self, record: RecordType, action: Action) -> list[AccessRule]:
        own = [rule for rule in self._rules.types.get(record.name, ()) if action in rule.actions]
        return own or self._of_wall(record, action)

    def _of_wall(self, record: RecordType, action: Action) -> list[AccessRule]:
        """The rules of the graph: for a type, or for what it has no rules for, they stand alone."""
        if record.name in self._rules.outside:
            return []
        return [rule for rule in self._rules.wall if action in rule.actions]

    def reads(
        self, record: RecordType, name: str, identity: tuple[str, ...], item: Item | None
    ) -> bool | None:
        """Whether they read a field of a record that they see."""
        own, field = self._rules.own[record.name], record.fields.get(name)
        if field is not None and field.kept == "as_of":
            # The age of a value has its rules.
            return self.reads(record, field.kept_of, identity, item)
        method = record.methods.get(name)
        if method is not None and not own.get(name):
            needs = method.needs if method.needs is not None else (*record.fields, *record.ends)
            by_needs = _all([self.reads(record, need, identity, item) for need in needs])
            listing = [rule for rule in self._rules.types.get(record.name, ()) if name in (rule.fields or ())]
            if not listing:
                return by_needs
            # A rule without fields= covers a method only as far as its needs; one that names it allows it alone.
            listed = _any([self._allows(rule, record, identity, item) for rule in listing])
            return _all([self.writes(record, "read", name, identity, item), _any([listed, by_needs])])
        if name in {slot.path[0] for slot in record.identity}:
            return True
        return self.writes(record, "read", name, identity, item)

    def writes(
        self,
        record: RecordType,
        action: Action,
        name: str,
        identity: tuple[str, ...],
        item: Item | None,
    ) -> bool | None:
        """Whether they may do something with a field of a record with which they may do it."""
        rules, parts = self._of_type(record, action), list[bool | None]()
        said = [rule for rule in self._rules.own[record.name].get(name, ()) if action in rule.actions]
        if any(rule.fields is not None for rule in rules):
            granting = [rule for rule in rules if rule.fields is None or name in rule.fields]
            parts.append(_any(self._allows(rule, record, identity, item) for rule in granting))
        if said:
            parts.append(_any(self._allows(rule, record, identity, item) for rule in said))
        return _all(parts)

    def _allows(
        self, rule: AccessRule, record: RecordType, identity: tuple[str, ...], item: Item | None
    ) -> bool | None:
        roles = {rule.role} if isinstance(rule.role, str) else {*(rule.role or ())}
        if rule.role is not None and not roles & {*self.claims["roles"]}:
            return False
        return True if rule.where is None else self._holds(rule.where, record, identity, item, True)

    def _holds(
        self,
        where: Mapping[str, Any],
        record: RecordType,
        identity: tuple[str, ...],
        item: Item | None,
        is_positive: bool,
    ) -> bool | None:
        parts: list[bool | None] = []
        for name, said in where.items():
            if name == "not":
                inner = self._holds(said, record, identity, item, not is_positive)
                parts.append(None if inner is None else not inner)
            elif name in ("and", "or"):
                inners = [self._holds(each, record, identity, item, is_positive) for each in said]
                parts.append(_all(inners) if name == "and" else _any(inners))
            elif name in record.lists:
                parts.append(self._is_linked(record.name, identity or None, name, said, is_positive))
            elif (
                isinstance(said, Mapping)
                and name in record.ends
                and {*said} <= {*record.ends[name].members[0].lists}
            ):
                [(inner, wanted)] = said.items()
                is_known, _ = self._value(record, name, identity, item)
                node = None
                if is_known and name in record.key_fields:
                    node = record.end_readers[name](identity)
                elif is_known and item is not None:
                    node = known_end(record, name, item)
                owner = record.ends[name].members[0].name
                found = self._is_linked(owner, node or (), inner, wanted, is_positive)
                is_decided = is_known or not self._values(next(iter(wanted.values())))
                parts.append(found if is_decided else None)
            else:
                [(operator, wanted)] = (said if isinstance(said, Mapping) else {"eq": said}).items()
                wanted = wanted if isinstance(wanted, list) else [wanted]
                values = [each for one in wanted for each in self._values(one)]
                if not values:
                    parts.append(not is_positive)
                    continue
                is_known, value = self._value(record, name, identity, item)
                parts.append((value in values) is (operator != "ne") if is_known else None)
        return _all(parts)

    def _is_linked(
        self, owner: str, node: tuple[str, ...] | None, name: str, said: Mapping[str, Any], is_positive: bool
    ) -> bool | None:
        """Whether a node's list has an edge to the node that a rule says; None where no node is known."""
        [(_, wanted)] = said.items()
        values = self._values(wanted)
        if not values:
            return not is_positive
        if node is None or self._all_edges is not None:
            return self._all_edges
        return any(edge.near == node and edge.far in values for edge in self._rules.edges[owner, name])

    def _values(self, said: Any) -> list[Any]:
        if not isinstance(said, Claim):
            return [said.value if isinstance(said, Enum) else said]
        claim = self.claims.get(said.name)
        return claim if isinstance(claim, list) else [] if claim is None else [claim]

    def _value(
        self, record: RecordType, name: str, identity: tuple[str, ...], item: Item | None
    ) -> tuple[bool, Any]:
        if name in record.key_fields and name in record.ends:
            found = record.end_readers[name](identity)
            return True, None if found is None else found[0]
        if name in record.key_fields:
            number, value_of = record.places_in_identity[name]
            value = value_of(identity[number])
        elif item is None:
            return False, None
        else:
            value = known_value(record, name, item)
        return True, value.value if isinstance(value, Enum) else value


def _all(parts: Any) -> bool | None:
    found = [*parts]
    return False if False in found else None if None in found else True


def _any(parts: Any) -> bool | None:
    found = [*parts]
    return True if True in found else None if None in found else False


class GuardedLists(NaiveLists):
    """Lists of what somebody sees."""

    access: NaiveAccess

    def list_of(self, path: AccessPath, owner: Thing | None, given: Mapping[str, Any]) -> Any:
        found = super().list_of(path, owner, given)
        for each in conditions(self._graph, path, given, MOST_TERMS):
            access = each.record.access
            if self._unknown().allows(each.record, "read", (), None) is False:
                continue
            for name in self._used(path, each, given):
                if access and access.is_restricted(name) and self._never(each.record, name):
                    raise Forbidden("no")
        return found

    def shows_lists_of(self, path: AccessPath, owners: Sequence[tuple[str, ...]]) -> bool:
        shown = [self._shows_list(path, owner) for owner in owners]
        if False in shown and None not in shown:
            raise Forbidden("no")
        return None not in shown

    def _shows_list(self, path: AccessPath, owner: tuple[str, ...]) -> bool | None:
        """Whether they may read a list of a node; None where they do not see the node."""
        record = path.owner
        assert record is not None
        sees = self.access.sees(record, owner, None)
        reads = self.access.reads(record, path.name, owner, None)
        if sees is None or (sees and reads is None):
            item = self.item_of(record, owner)
            if item is None:
                return None
            sees = self.access.sees(record, owner, item)
            reads = self.access.reads(record, path.name, owner, item)
        return bool(reads) if sees else None

    def _never(self, record: RecordType, name: str) -> bool:
        """Whether nobody's field is shown to the viewer: no item could change that."""
        return self._unknown().reads(record, name, (), None) is False

    def _unknown(self) -> NaiveAccess:
        """What the viewer sees where nothing is known of any item."""
        unknown = NaiveAccess(self.access._rules)
        unknown._value = lambda *_: (False, None)  # type: ignore[method-assign]
        return unknown

    def _used(self, path: AccessPath, each: AccessPath, given: Mapping[str, Any]) -> set[str]:
        record, where = each.record, conditions(self._graph, path, given, MOST_TERMS)[each]
        used = {slot.path[0] for slot in each.keys.slots if not slot.is_shard}
        for attribute in paths_of(where) if where is not None else ():
            used |= {name for name, field in record.fields.items() if field.attribute == attribute}
            used |= {name for name, end in record.ends.items() if attribute in end.attributes.values()}
        return used

    def _of_type(
        self,
        path: AccessPath,
        each: AccessPath,
        identity: tuple[str, ...] | None,
        required: Mapping[str, str | None],
        given: Mapping[str, Any],
    ) -> Iterator[Item]:
        record, used = each.record, self._used(path, each, given)
        fixed = dict(each.texts_of_owner(identity)) if identity is not None else {}
        fixed |= {argument.slot.name: required.get(argument.name) for argument in each.required}
        for item in super()._of_type(path, each, identity, required, given):
            own = record.read_identity(item) or ()
            # What a list's key says decides, also of an item whose attributes say something else.
            there = [told for told in fixed_by_list(each) if at_path(item, told.path) is not None]
            told = changed(item, [told.change(fixed) for told in there])
            if self.access.sees(record, own, told) is True and all(
                self.access.reads(record, name, own, item) for name in used
            ):
                yield item


class GuardedWalks(NaiveWalks):
    """Walks of somebody: a node that they do not see is not there, and nothing is found through it."""

    def __init__(self, naive: GuardedNaive, secret: bytes) -> None:
        super().__init__(naive.graph, naive.lists, secret)
        self._naive = naive
        if naive.graph.has_access_rules:
            self._run.rights = Viewer(naive.access.claims).rights(naive.graph.ruling_claims)

    def found(self, walk: NodeWalk, owner: Thing, given: Mapping[str, Any], *, is_counted: bool) -> Any:
        self._paths = walk.paths
        own = [path for path in walk.paths if path.owner is owner.record]
        found = super().found(walk, owner, given, is_counted=is_counted)
        is_refused = self._allowed(Vertex(owner.record, owner.identity), own) == []
        return Refused(Forbidden("no")) if own and is_refused else found

    def ways(
        self, start: Vertex, end: Vertex, paths: Sequence[WalkedPath], most: int
    ) -> list[tuple[Step, ...]]:
        self._paths = paths
        allowed = [
            self._allowed(node, [path for path in paths if path.owner is node.record])
            for node in (start, end)
        ]
        if allowed[0] == [] and any(path.owner is start.record for path in paths):
            raise Forbidden("no")
        return [] if None in allowed else super().ways(start, end, paths, most)

    def _allowed(self, owner: Vertex, paths: Sequence[WalkedPath]) -> list[WalkedPath] | None:
        """The lists of a node that are followed; None where the viewer does not see the node."""
        access = self._naive.access
        sees = access.sees(*owner, None)
        if sees is False:
            return None
        told = {path: access.reads(owner.record, path.name, owner.identity, None) for path in paths}
        if sees is None or None in told.values():
            found = self._naive._looked_up(Thing(*owner))
            if found is None:
                return None
            told = {path: access.reads(owner.record, path.name, owner.identity, found.item) for path in paths}
        return [path for path, is_allowed in told.items() if is_allowed]

    def _steps(self, owner: Vertex, paths: Iterable[WalkedPath]) -> Iterator[Step]:
        own = [path for path in paths if path.owner is owner.record]
        for step in super()._steps(owner, self._allowed(owner, own) or ()):
            theirs = [path for path in self._paths if path.owner is step.node.record]
            if self._allowed(step.node, theirs) is not None:
                yield step

    def _value(self, thing: Thing, name: str) -> Any:
        if not self._naive.access.reads(thing.record, name, thing.identity, thing.item):
            raise Forbidden("no")
        return super()._value(thing, name)


class GuardedNaive(Naive):
    """A naive execution for one viewer."""

    def __init__(self, schema: Any, items: Sequence[Item], rules: Rules, ask: Ask) -> None:
        super().__init__(schema, items, SECRET, ask=ask)
        self.access = NaiveAccess(rules)
        self.lists = GuardedLists(self.graph, items, SECRET)
        self.lists.access = self.access
        self.walks = GuardedWalks(self, SECRET)

    def _value(self, kind: Any, source: Any, info: Any, given: Mapping[str, Any]) -> Any:
        thing = getattr(source, "thing", source)
        if isinstance(kind, field_kinds.AggregateValue):
            return self._aggregated(kind, source, info, given)
        name = own_name(kind)
        if name is not None:
            item = thing.item
            if item is None and not thing.record.is_virtual:
                found = super()._looked_up(thing)
                item = None if found is None else found.item
            if not self.access.reads(thing.record, name, thing.identity, item):
                raise Forbidden("no")
        return super()._value(kind, source, info, given)

    def _aggregated(
        self, kind: field_kinds.AggregateValue, source: Any, info: Any, given: Mapping[str, Any]
    ) -> Any:
        """A value of an aggregate, of a field that they read of each thing."""
        if kind.function not in ("count", "key"):
            name = source.fields[given["field"].value].source
            for each in source.located:
                if not self.access.reads(each.record, name, each.identity, each.item):
                    raise Forbidden("no")
        return super()._value(kind, source, info, given)

    def _node(self, thing: Thing | None, info: Any) -> Thing | None:
        if thing is None:
            return None
        if not thing.others:
            seen = self.access.sees(thing.record, thing.identity, None)
            if seen is False:
                return None
            if seen is None:
                return self._looked_up(thing)
        return super()._node(thing, info)

    def _is_of_item(self, record: RecordType, type_: Any, name: str) -> bool:
        if super()._is_of_item(record, type_, name):
            return True
        found = type_.fields.get(name)
        own = None if found is None else own_name(kind_of(strawberry_field(found)))
        access = record.access
        if own is None or access is None or not access.is_restricted(own):
            return False
        return not is_decided_by_key(record, own)

    def _looked_up(self, thing: Thing) -> Thing | None:
        if not thing.others and self.access.sees(thing.record, thing.identity, None) is False:
            return None
        found = super()._looked_up(thing)
        if found is None or not self.access.sees(found.record, found.identity, found.item):
            return None
        return found


# --- Tables -------------------------------------------------------------------------------------------


class Asked(Service):
    """A service that one viewer asks."""

    claims: Mapping[str, Any]

    async def execute(
        self, request: OperationRequest | str, variables: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        if isinstance(request, str):
            request = OperationRequest(request, variables)
        request.viewer = self.claims
        return await super().execute(request)


@asynccontextmanager
async def served(name: str, seed: int, folder: Path) -> AsyncIterator[Served]:
    """A random table of a model, with random rules and a viewer; the seed says which."""
    schema, sample = model(name)
    random = Random(f"guarded {seed}")
    items = made_items(schema.graph, sample, random, awkward=seed % 3 != 0)
    graph = None
    rules = made_rules(schema.graph, items, random)
    while graph is None:
        graph = guarded(schema.graph, rules)
        rules = rules if graph is not None else made_rules(schema.graph, items, random)
    own = build_schema(graph)
    async with open_store(f"sqlite:{folder / f'{name}-{seed}-guarded.db'}", graph.table) as store:
        await store.send(DeleteTable())
        await store.send(CreateTable())
        await store.send(BatchWrite(puts=tuple(items)))
        planned = Asked(own, store, secret=SECRET, limits=NO_LIMITS)
        planned.claims = rules.claims
        yield Served(
            name, own, planned, GuardedNaive(own, items, rules, planned.execute), words_of(own, items)
        )


run = partial(run_served, served, of_each=10)
"""Asks that many operations in all, and gives what was found."""

if __name__ == "__main__":
    main(__doc__, MODELS, run)
