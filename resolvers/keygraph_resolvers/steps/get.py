"""Reads nodes by their keys, including those that the root names, and continues from known objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput, CorruptItem
from keygraph.graph import Graph
from keygraph.model.permissions import is_told_by_key, restricted_name
from keygraph.model.records import RecordType
from keygraph_resolvers.errors import message_of
from keygraph_resolvers.naming.global_ids import read_global_id, read_global_ids
from keygraph_resolvers.naming.names import key_arguments
from keygraph_resolvers.read.access import learned, links_of, seen_by_key, without_refused
from keygraph_resolvers.read.connection import Edge
from keygraph_resolvers.read.objects import Entity, Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.federation import read_representation, told_item
from keygraph_resolvers.schema.field_kinds import Entities, FieldKind, NodeById, NodeByKey, NodesByIds
from keygraph_resolvers.schema.inputs import in_utc, key_value
from keygraph_resolvers.steps.explained import KEY_OF, NOTHING, Explained, View, Where
from keygraph_resolvers.steps.gather import Gather
from keygraph_resolvers.steps.list_cost import keys_cost
from keygraph_resolvers.steps.lists import BoundList, ListStep
from keygraph_resolvers.steps.selection import SelectedField, Selection
from keygraph_resolvers.steps.step import (
    AT_ONCE,
    Below,
    ItemStep,
    Priced,
    RoundTrips,
    Starts,
    Step,
    StepCost,
    later,
    union,
)


class Items(ItemStep):
    """Continues from objects by the fields of one selection."""

    def __init__(
        self,
        selection: Selection,
        lists: Sequence[ListStep],
        key_ends: Sequence[Step],
        item_steps: Sequence[Step],
        selves: Sequence[ItemStep] = (),
    ) -> None:
        """`lists` and `key_ends` need only the object's key, `item_steps` its item. `selves` continue from the same
        objects: the fields of an edge whose node is the edge's own item."""
        self.selection = selection
        self.lists = lists
        self.by_key = (*lists, *key_ends)
        self.by_item = item_steps
        record = selection.record
        self.gather = Gather(record, lists) if record is not None and record.gathers and lists else None
        # If one list has two names, the longer page is requested first, and the other one is a part of it.
        self._sorts = len({each.path for each in lists}) < len(lists)
        self._key_ends = key_ends
        self._selves = selves
        self.by_key_later = union(
            (*(each.later for each in self.by_key), *(each.by_key_later for each in selves))
        )
        self.by_item_later = union(
            (*(each.later for each in item_steps), *(each.by_item_later for each in selves))
        )
        self.later = self.by_key_later | self.by_item_later

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        self.start_by_key(run, objects, (), round_trip, place)
        self.go_on(run, objects, round_trip, place)

    def start_by_key(
        self, run: Run, objects: Sequence[Object], unread: Sequence[Object], round_trip: int, place: str
    ) -> None:
        for same in self._selves:
            same.start_by_key(run, objects, unread, round_trip, place)
        if self.gather is None and not self._sorts:
            for step in self.by_key:
                step.start(run, objects, round_trip, place)
            return
        wanted = set(unread)
        lists: dict[Object, list[BoundList]] = {}
        for step in self.lists:
            for one in step.bind(run, objects, place):
                lists.setdefault(one.owner, []).append(one)
        for each, bound in lists.items():
            bound.sort(key=lambda one: -one.connection.request.extent.count)
            # A single list, without the item, is not read with anything else.
            if self.gather is not None and (len(bound) > 1 or each in wanted):
                self.gather.promise(run, each, bound, round_trip, place, is_wanted=each in wanted)
            for one in bound:
                one.step.read(run, one, round_trip)
        for step in self._key_ends:
            step.start(run, objects, round_trip, place)

    def go_on(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        for same in self._selves:
            same.go_on(run, objects, round_trip, place)
        for step in self.by_item:
            step.start(run, objects, round_trip, place)

    def cost_by_key(self, run: Run, starts: Starts, *, is_wanted: bool) -> tuple[StepCost, Below]:
        cost = StepCost()
        below: list[tuple[Priced, Starts]] = []
        if self.gather is None:
            below += [(step, starts) for step in self.lists]
        else:
            cost, of_lists = self.gather.cost(run, starts, is_wanted=is_wanted)
            below += of_lists
        below += [(step, starts) for step in self._key_ends]
        for same in self._selves:
            own, of_same = same.cost_by_key(run, starts, is_wanted=is_wanted)
            cost.add(own)
            below += of_same
        return cost, below

    def below_items(self, starts: Starts) -> Below:
        own = [(step, starts) for step in self.by_item]
        return [*own, *(each for same in self._selves for each in same.below_items(starts))]

    def explained_below(
        self, view: View, where: Where, item_where: Where, own: Explained | None
    ) -> list[Explained]:
        record = self.selection.record
        by_key = replace(where, key=f"{KEY_OF}{record.name if record else ''}")
        found = [each for step in self.lists for each in step.explained(view, by_key)]
        if self.gather is not None and not (own is not None and own.problem):
            is_wanted = own is not None and own.is_read
            self.gather.explain(view, own if is_wanted else None, found, where.identity)
        found += [each for step in self._key_ends for each in step.explained(view, by_key)]
        found += [
            each for same in self._selves for each in same.explained_below(view, where, item_where, own)
        ]
        found += [each for step in self.by_item for each in step.explained(view, item_where)]
        return found


class Get(Step):
    """Reads the nodes of one selection, if it selects more than their keys contain."""

    def __init__(self, items: Items, record: RecordType, *, must_exist: bool = False) -> None:
        """`must_exist`: the nodes are read in any case, to check that they exist."""
        self.items = items
        self.record = record
        self.selection = items.selection
        self.must_exist = must_exist
        self.reads = not record.is_virtual and (must_exist or self.selection.needs_item)
        self.may_be_known = False
        """Whether an item of the type may have been read for another place of the query."""
        self._after = items.by_item_later
        self.later = items.by_key_later | (AT_ONCE | later(self._after) if self.reads else self._after)
        self._seen_after = seen_after(record, items.later, is_item_there=False)
        if not is_told_by_key(record):
            self.later |= AT_ONCE | later(self._seen_after)

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        if run.access is not None:
            objects, untold = seen_by_key(run.access, self.record, objects)
            if untold:
                # Nothing below them is read before it is known that the viewer sees them.
                then = partial(go_on_with, run, self.items, place)
                see(run, self.record, untold, place, round_trip, self._seen_after, then, reads=self.reads)
        unread = [each for each in objects if each.item is None] if self.reads else ()
        self.items.start_by_key(run, objects, unread, round_trip, place)
        if len(unread) < len(objects):
            there = [each for each in objects if each.item is not None] if unread else objects
            self.items.go_on(run, there, round_trip, place)
        if unread:
            look_up(run, self.record, unread, place, round_trip, self._after, partial(self._came, run, place))

    def _came(
        self, run: Run, place: str, came: list[tuple[Object, Item | Exception | None]], round_trip: int
    ) -> None:
        there = keep_items(run, came)
        if there:
            self.items.go_on(run, there, round_trip, place)

    def _is_untold(self, run: Run) -> bool:
        """Returns whether only a node's item may show that the viewer sees it."""
        return run.access is not None and not run.access.is_told(self.record)

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        if run.access is not None and run.access.decision(self.record) is False:
            return StepCost(), ()
        if self._is_untold(run):
            links = links_of(run, self.record)
            waits = 2 if any(each.needs_item for each in links) else 1
            cost, below = self.items.cost(run, starts.after(waits, at_least=0))
            cost.add(keys_cost([self.record], starts))
            for each in links:
                cost.add(keys_cost([each.record], starts.after(at_least=0) if each.needs_item else starts))
            return cost, below
        cost, below = self.items.cost_by_key(run, starts, is_wanted=self.reads)
        is_gathered = self.items.gather is not None and self.items.gather.reads_node(run)
        after = starts
        if self.reads:
            after = starts.after(2 if is_gathered else 1, at_least=0 if self.may_be_known else 1)
            if not is_gathered:
                cost.add(keys_cost([self.record], starts))
        return cost, [*below, *self.items.below_items(after)]

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        if not (self.selection.fields or self.must_exist) or not view.may_go_on():
            return
        access, is_untold = view.access(self.record, where.identity), self._is_untold(view.run)
        is_read = (self.reads or is_untold) and access != NOTHING
        shown = view.get(self.record, where, is_read=is_read)
        shown.access = access
        item_where = where.later() if is_read else where
        if access != NOTHING:
            shown.requests += tuple(
                view.link_request(each, where) for each in links_of(view.run, self.record)
            )
        if access != NOTHING:
            key_where = item_where if is_untold else where
            shown.steps = self.items.explained_below(
                view, key_where, item_where, None if is_untold else shown
            )
        yield shown


class EndStep(Step):
    """Continues from objects to the nodes at one of their ends."""

    def __init__(
        self,
        selected: SelectedField,
        record: RecordType,
        end: str,
        read: Callable[[Object], Object | None],
        nodes: Step,
        *,
        name: str,
    ) -> None:
        """`read` returns the node of an object. `name` is what the end adds to the place in the query."""
        self.suffix = f".{name}" if name else ""
        self._restricted = restricted_name(record, end)
        self._selected = selected
        self._key = f"the end {record.name}.{end}"
        self._read = read
        self._nodes = nodes
        self.later = nodes.later

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        selected, read, found = self._selected, self._read, []
        if self._restricted is not None:
            objects = without_refused(run.access, objects, selected, self._restricted)
        for each in objects:
            try:
                node = each.found[selected] = read(each)
            except Exception as error:
                each.found[selected] = error
                continue
            if node is not None:
                found.append(node)
        self._nodes.start(run, found, round_trip, place + self.suffix)

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        return StepCost(), [(self._nodes, starts)]

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        place = where.place + self.suffix
        yield from self._nodes.explained(view, Where(place, self._key, where.round_trip, where.is_many))


# --- Nodes that the root names --------------------------------------------------------------------------

NodeName: TypeAlias = tuple[RecordType, tuple[str, ...]]
"""A node's type and identity."""


class Named(Step):
    """Reads the nodes that a field of the root names."""

    def __init__(self, selected: SelectedField, gets: Mapping[str, Get]) -> None:
        self.suffix = selected.key
        self._selected = selected
        self._gets = gets

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        selected, [root] = self._selected, objects
        try:
            found = self._objects(run)
        except Exception as error:
            root.found[selected] = error
            return
        root.found[selected] = found if isinstance(selected.kind, NodesByIds) else found[0]
        for record, group in by_type(each for each in found if isinstance(each, Object)):
            self._gets[record.name].start(run, group, round_trip, place + self.suffix)

    def _objects(self, run: Run) -> Sequence[Object | BadUserInput]:
        if not isinstance(self._selected.kind, Entities):
            return [Object(record, identity) for record, identity in self._nodes(run)]
        given = self._selected.arguments(run)["representations"]
        return [_entity(*each) for each in zip(self._told(run), given, strict=True)]

    def bound_key(self, run: Run) -> Hashable:
        """Returns what decides its cost."""
        _, below = self.cost(run, Starts(1, AT_ONCE))
        return tuple((step, starts.count) for step, starts in below)

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        try:
            counted = Counter(record.name for record, _ in self._nodes(run))
        except Exception:
            return StepCost(), ()  # nothing is read; the answer says why
        return StepCost(), [(self._gets[name], starts.times(count)) for name, count in counted.items()]

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        gets, problem = dict.fromkeys(self._gets.values(), 1), None
        identity = None
        try:
            found = {*self._nodes(view.run)}
            counted = Counter(record.name for record, _ in found)
            gets = {get: counted[name] for name, get in self._gets.items() if name in counted}
            identity = next(iter(found))[1] if len(found) == 1 else None
        except Exception as error:
            # An invalid global id is not reported for a stand-in.
            if not any(f"'{value}'" in message_of(error) for value in view.stand_ins):
                problem = message_of(error)
        place = where.place + self.suffix
        for get, count in gets.items():
            key = self._key if count == 1 else f"{count} global ids"
            here = Where(place, key, where.round_trip, count > 1, identity, problem)
            yield from get.explained(view, here)

    def _nodes(self, run: Run) -> Sequence[NodeName]:
        """Returns the nodes. Raises BadUserInput or GraphQLError if the field names none."""
        return [each for each in self._told(run) if not isinstance(each, BadUserInput)]

    def _told(self, run: Run) -> Sequence[NodeName | BadUserInput]:
        """Returns the nodes; for a representation that names none, its error. Raises as `_nodes` does."""
        selected = self._selected
        return selected.constant or selected.told(run, partial(_named_nodes, run, selected.kind, self._gets))

    @property
    def _key(self) -> str:
        if isinstance(self._selected.kind, NodeByKey):
            return f"the argument {' and '.join(key_arguments(self._selected.kind.record))}"
        return "its global id"


def _named_nodes(
    run: Run, kind: FieldKind | None, gets: Mapping[str, Get], given: Mapping[str, Any]
) -> Sequence[NodeName | BadUserInput]:
    """Returns the nodes that a field names, of its possible types; a representation's error is only its own."""
    graph = run.graph
    match kind:
        case NodeByKey(record):
            values = {
                record.leaf_name(slot.path): key_value(
                    graph, record, slot, in_utc(name, slot, given.get(name))
                )
                for name, slot in key_arguments(record).items()
            }
            return [(record, graph.identity(record, values))]
        case Entities():
            return [_represented(graph, gets, each) for each in given["representations"]]
        case NodeById():
            found = [read_global_id(graph, given["id"])]
        case _:
            found = read_global_ids(graph, "ids", given["ids"], run.limits.max_ids)
    return [_served(gets, each) for each in found]


def _served(gets: Mapping[str, Get], named: NodeName) -> NodeName:
    """Returns the node. Raises BadUserInput if the field cannot have its type."""
    name = named[0].name
    if name not in gets:
        raise BadUserInput(f"no {name} can be asked for by its `id`")
    return named


def _represented(graph: Graph, gets: Mapping[str, Get], given: object) -> NodeName | BadUserInput:
    try:
        return _served(gets, read_representation(graph, given))
    except BadUserInput as error:
        return error


def _entity(named: NodeName | BadUserInput, given: Mapping[str, Any]) -> Entity | BadUserInput:
    try:
        if isinstance(named, BadUserInput):
            # A new one for each run: it may be cached with the document, and an error grows each time it is raised.
            raise BadUserInput(*named.parts)
        record, identity = named
        return Entity(record, identity, told_item(record, given))
    except BadUserInput as error:
        return error


# --- What steps share -----------------------------------------------------------------------------------


def seen_after(record: RecordType, after: RoundTrips, *, is_item_there: bool) -> RoundTrips:
    """Returns the round trips in which keys are requested after records were read of which the viewer may see some;
    `after`: when they are known to see them."""
    links = [] if record.access is None else record.access.links("read")
    is_later = any(each.needs_item or is_item_there for each in links)
    return after | AT_ONCE | later(after) if is_later else after


def see(
    run: Run,
    record: RecordType,
    objects: Sequence[Object],
    place: str,
    round_trip: int,
    after: RoundTrips,
    then: Callable[[Sequence[Object], int], None],
    *,
    reads: bool = False,
) -> None:
    """Continues with the objects after what decides whether the viewer sees them was read: their items, and other items
    that rules need. Objects that they do not see are then missing. `reads`: their items are wanted in any case."""
    access = run.access
    if access is None:
        then(objects, round_trip)
        return
    decided: list[Object] = []
    unread: list[Object] = []
    linked: list[tuple[tuple[Object, Key], Key]] = []
    left: Counter[Object] = Counter()
    for each in objects:
        if each.item is None:
            decision = access.of_key(record, each.identity)
        else:
            decision = access.of_whole(record, each.identity, each.item)
        links = access.unknown(record, decision, each.identity, each.item)
        linked += [((each, key), key) for key in links]
        left[each] = len(links)
        if decision is True:
            decided.append(each)
        elif decision is False or (each.item is not None and not links):
            each.is_missing = True
            decided.append(each)
        elif each.item is None and (reads or not access.is_linked(record, decision)):
            unread.append(each)
            left[each] += 1

    def go_on(some: Iterable[Object], arrived: int) -> None:
        left.subtract(some)
        ready = [each for each in dict.fromkeys(some) if not left[each]]
        told = [each for each in ready if each.is_missing or each.error]
        if told:
            then(told, arrived)
        if len(told) < len(ready):
            sound = [each for each in ready if not each.is_missing and not each.error]
            see(run, record, sound, place, arrived, after, then)

    def came(answers: list[tuple[Object, Item | Exception | None]], arrived: int) -> None:
        keep_items(run, answers)
        go_on([each for each, _ in answers], arrived)

    def links_came(answers: list[tuple[tuple[Object, Key], Any]], arrived: int) -> None:
        for (each, key), answer in answers:
            each.error = learned(run, [(key, answer)]) or each.error
        go_on([each for (each, _), _ in answers], arrived)

    if decided:
        then(decided, round_trip)
    if unread:
        look_up(run, record, unread, place, round_trip, after, came)
    if linked:
        run.scheduler.look_up(linked, place, round_trip, after, links_came)


def go_on_with(run: Run, items: Items, place: str, objects: Sequence[Object], round_trip: int) -> None:
    seen = [each for each in objects if not each.is_missing and not each.error]
    if seen:
        items.start(run, seen, round_trip, place)


def by_type(objects: Iterable[Object]) -> Iterable[tuple[RecordType, list[Object]]]:
    """Returns the objects of each type."""
    found: dict[RecordType, list[Object]] = {}
    for each in objects:
        found.setdefault(each.record, []).append(each)
    return found.items()


def look_up(
    run: Run,
    record: RecordType,
    objects: Iterable[Object],
    place: str,
    round_trip: int,
    after: frozenset[int],
    then: Callable[[list[tuple[Any, Item | Exception | None]], int], None],
) -> None:
    """Looks up nodes of a type by their keys; a node that may be in several shards is looked up in all."""
    write = record.write_key
    if write is not None:
        wanted = [(each, write(each.identity)) for each in objects]
    else:
        wanted = [(each, key) for each in objects for key in run.graph.table_keys(record, each.identity)]
        if record.table_keys.shards:
            then = partial(_shards_came, run, len(record.table_keys.shards), {}, then)
    run.scheduler.look_up(wanted, place, round_trip, after, then)


def _shards_came(
    run: Run,
    shards: int,
    seen: dict[Object, list[Item | Exception | None]],
    then: Callable[[list[tuple[Any, Item | Exception | None]], int], None],
    came: list[tuple[Object, Item | Exception | None]],
    round_trip: int,
) -> None:
    """Continues with the nodes that were looked up in all shards: with the item that was found in one of them.

    If two items are the node, it is not known which one is meant: that is the node's error.
    """
    ready: list[tuple[Any, Item | Exception | None]] = []
    for each, answer in came:
        answers = seen.setdefault(each, [])
        answers.append(answer)
        if len(answers) == shards:
            failed = [found for found in answers if isinstance(found, Exception)]
            there = [
                found
                for found in answers
                if found is not None
                and not isinstance(found, Exception)
                and run.graph.is_of(found, (each.record, *each.others))
            ]
            if len(there) > 1:
                problem = f"{each.record.name}: two items, in different shards, have the key of this one"
                failed.append(CorruptItem(problem))
            ready.append((each, (failed or there or [None])[0]))
    if ready:
        then(ready, round_trip)


def keep_items(run: Run, came: Iterable[tuple[Object, Item | Exception | None]]) -> list[Object]:
    """Keeps what was found for each node; returns those that exist."""
    graph, there = run.graph, []
    for each, answer in came:
        if isinstance(answer, Exception):
            each.error = answer
            continue
        record, own = each.record, None
        if answer is not None:
            own = graph.identifier(record, record.keys[None])(answer)
            if own is None and each.others and graph.is_of(answer, each.others):
                own = record.read_identity(answer) or each.identity
        if own is None or (own != each.identity and record.attributes_of_identity and not _takes(each, own)):
            each.is_missing = True
        else:
            each.item = answer
            there.append(each)
    return there


def _takes(found: Object, identity: tuple[str, ...]) -> bool:
    """Returns whether an object takes the identity of its whole item: it was read in a list, by a key that may be read
    in several ways. If it was looked up by its identity, it does not: the item is another object's."""
    if isinstance(found, Edge):
        found.identity = identity
    return isinstance(found, Edge)
