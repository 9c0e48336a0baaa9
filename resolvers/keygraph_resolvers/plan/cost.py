"""What an operation will cost, from its plan and its arguments, before anything is read.

The rules are DynamoDB's (`keygraph.dynamo.prices`): a Query of a page of items adds their sizes up and is rounded up to
4 KB, a BatchGetItem rounds each item up, all reads are eventually consistent and cost half, a count costs what it
counts, each shard is a Query of its own, and what an index lacks is got by BatchGet as whole items. A range that is
split around other types' items is a Query for each piece that the page comes to, a node that is read with its lists is
one Query with them (`keygraph_resolvers.plan.shown`), and a node of which the key does not tell the type is got in any case.

**Requests and round trips are never more than estimated.** Every page is taken to be full, every node to exist and to be
another one; what is read with other things may have to be read apart after them. A list in whose range other things may
stand, or under a filter, looks at more than it gives: it is taken to send requests until the read budget is used up, and what hangs on it to be got without what hangs on other lists, since
nobody knows in which round trip it ends. This assumes that items are not more than twice as large on average as those
seen (`keygraph_resolvers.plan.statistics`), that a list that is counted is not more than twice as long as those seen, that what stands in
a range is declared, and that DynamoDB leaves nothing of a batch undone. Fields that are not the graph's, and
what methods read by themselves, are not counted.

**Items and read units are what is likely**, and likely requests and round trips are told beside the most: pages are as full, and items as large, as those seen. They can be less than
what an operation then costs, which is why a limit also holds while it runs.

The work is in proportion to the plan, in which a selection that several places share is one object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import cast

from keygraph.dynamo.limits import PAGE_BYTES
from keygraph.model.records import RecordType
from keygraph_resolvers.plan.arguments import Arguments
from keygraph_resolvers.plan.charges import NOTHING, Charge, keys_charge, requests_charge, total, written
from keygraph_resolvers.plan.field_plans import FieldPlan
from keygraph_resolvers.plan.list_costs import Joint, ListCost
from keygraph_resolvers.plan.plan import NeighbourNeeds, ObjectPlan, Plan, is_type_unknown
from keygraph_resolvers.plan.shown import ShownLists
from keygraph_resolvers.plan.statistics import Statistics
from keygraph_resolvers.read.context import RequestContext
from keygraph_resolvers.schema.global_ids import read_global_id
from keygraph_resolvers.schema.meanings import FarNode, ListOf, NodeById, NodeByKey, NodesByIds, OnlyOf

MOST_PLACES = 1000
"""How many places an estimate tells apart: through fragments a short document has any number of them."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an operation, or one place in it, will cost."""

    requests: int
    """At most."""
    round_trips: int
    """At most."""
    likely_requests: int
    likely_round_trips: int
    items: float
    read_units: float


@dataclass(frozen=True, slots=True)
class _Child:
    """An object that stands below a read: its plan, and what is known of it by then."""

    plan: ObjectPlan
    is_read: bool = False
    """Whether its item is there."""
    must_exist: bool = False
    """Whether it is read in any case, to know that it is there."""
    is_unknown: bool = False
    """Whether its type may have to be told by reading it, before anything else starts."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Something that is read for an object, or a step to other objects, and what hangs on it."""

    name: str
    """What it adds to the place in the query."""
    own: Charge
    """What it costs by itself; what hangs on it is there when this was read."""
    most: int = 1
    likely: float = 1.0
    """How many objects it gives."""
    below: tuple[tuple[_Child, ...], ...] = ()
    """The objects, of each of these groups one; and of a group nobody knows which."""
    is_apart: bool = False
    """Whether nobody knows when it ends."""
    is_late: bool = False
    """Whether it may be read one round trip later: with other things first, and apart after them."""


class CostEstimate:
    """The cost of one run of a plan, before it."""

    def __init__(
        self, plan: Plan, context: RequestContext, arguments: Arguments, statistics: Statistics
    ) -> None:
        self._plan = plan
        self._context = context
        self._arguments = arguments
        self._statistics = statistics
        self._shown = ShownLists(context, arguments)
        self._named = {
            below
            for each in plan.root.having(NodeByKey, NodeById, NodesByIds)
            if each.below
            for below in each.below.plans
        }
        self._met = Counter(
            below.record
            for each in plan.objects
            for selected in each.fields
            if selected.below
            for below in selected.below.plans
        )
        self._joint: dict[tuple[ObjectPlan, FieldPlan | None], Joint] = {}
        self._by_key: dict[ObjectPlan, tuple[_Part, ...]] = {}
        self._by_item: dict[ObjectPlan, tuple[_Part, ...]] = {}
        self._key_charge: dict[ObjectPlan, Charge] = {}
        self._item_charge: dict[ObjectPlan, Charge] = {}
        for each in plan.inner_first:
            if each is not plan.root:
                self._join(each)
                self._by_key[each] = (*self._lists(each), *map(self._step, each.key_ends))
                self._key_charge[each] = total(map(self._charged, self._by_key[each]))
                steps = map(self._step, each.item_ends)
                calls = (self._step(method, is_apart=True) for method in each.methods if method.below)
                self._by_item[each] = (*steps, *calls)
                self._item_charge[each] = total(map(self._charged, self._by_item[each]))
        self._roots = tuple(part for each in plan.root.fields for part in self._at_root(each))
        self.charge = total(map(self._charged, self._roots))

    @property
    def total(self) -> Estimate:
        return _estimate(self.charge)

    @property
    def dearest(self) -> tuple[str, float]:
        """The place in the query that costs most, and its read units."""
        return written(self.charge.trail), self.charge.dearest

    # --- Charges ---------------------------------------------------------------------------------------

    def _charged(self, part: _Part) -> Charge:
        charge = part.own
        if part.below and part.most:
            inner = total(map(self._alternatives, filter(None, part.below)))
            inner = inner.times(part.most, part.likely)
            charge += inner.after(charge.most.round_trips, charge.likely.round_trips)
        if part.is_late:
            charge = charge.or_later()
        return (charge.apart() if part.is_apart else charge).under(part.name)

    def _alternatives(self, children: tuple[_Child, ...]) -> Charge:
        first, *others = map(self._child, children)
        for each in others:
            first = first.either(each)
        return first

    def _child(self, child: _Child) -> Charge:
        by_key, by_item = self._key_charge[child.plan], self._item_charge[child.plan]
        get = self._get(child)
        if get is None:
            return by_key + by_item
        joint = self._joint.get((child.plan, None))
        later = by_item.after(1, 1)
        if self._may_be_known(child.plan):
            later = later.or_sooner()
        own = get + later
        if joint is not None and joint.is_late:
            own = own.or_later()
        if child.is_unknown:
            return (by_key + own).either(get + (by_key + by_item).after(1, 1))
        return by_key + own

    def _may_be_known(self, plan: ObjectPlan) -> bool:
        """Whether the object's item may have been read elsewhere before, so that what it tells starts at once."""
        return plan.record is not None and self._met[plan.record] > 1

    def _get(self, child: _Child) -> Charge | None:
        """The charge of reading the object's item; None where it is not read."""
        record = child.plan.record
        if child.is_read or record is None or record.is_virtual:
            return None
        if not (child.plan.needs_item or child.must_exist or child.is_unknown):
            return None
        keys = record.table_keys.shards or 1
        if (child.plan, None) in self._joint:
            return Charge(keys_charge(keys, 0, 0, 0).most, items=1)
        units = self._statistics.units_of_get(record) + (keys - 1) / 2
        likely = 1.0 if child.must_exist else self._statistics.distinct(record)
        return keys_charge(keys, keys * likely, likely, units * likely)

    # --- Parts ----------------------------------------------------------------------------------------

    def _at_root(self, selected: FieldPlan) -> Iterator[_Part]:
        match selected.meaning:
            case ListOf() | OnlyOf():
                yield from self._list(selected, None)
            case NodeByKey(record):
                yield self._nodes_at_root(selected, record, 1)
            case NodeById() | NodesByIds():
                try:
                    given, graph = self._arguments.of(selected), self._context.graph
                    texts = [given["id"]] if "id" in given else given["ids"]
                    records = Counter(read_global_id(graph, text)[0] for text in texts)
                except Exception:
                    return  # nothing is read; the answer says why
                for record, count in records.items():
                    yield self._nodes_at_root(selected, record, count)

    def _nodes_at_root(self, selected: FieldPlan, record: RecordType, count: int) -> _Part:
        below = cast("ObjectPlan", selected.below and selected.below.of(record.name))
        return _Part(selected.key, NOTHING, count, count, ((_Child(below, must_exist=True),),))

    def _step(self, selected: FieldPlan, *, is_apart: bool = False) -> _Part:
        """The step to the node at an end, or to that which a method gives."""
        match selected.meaning:
            case FarNode(path):
                # The place of an edge's node is that of the list.
                return _Part(
                    "", NOTHING, below=(_of(selected, is_read=path.far_end is None),), is_apart=is_apart
                )
        return _Part(selected.key, NOTHING, below=(_of(selected),), is_apart=is_apart)

    def _lists(self, plan: ObjectPlan) -> Iterator[_Part]:
        for selected in plan.lists:
            yield from self._list(selected, plan)

    def _list(self, selected: FieldPlan, owner: ObjectPlan | None) -> Iterator[_Part]:
        """The reads of a list; none where its arguments cannot be used."""
        try:
            shown = self._shown.of(selected)
        except Exception:
            return  # nothing is read; the answer says why
        needs, said = shown.needs, shown.said
        joint = self._joint.get((owner, selected)) if owner else None
        list_ = ListCost(self._context, self._statistics, shown, joint)
        if needs.has_total and said.to is None:
            yield _Part(selected.key, list_.count())
        charge = list_.page() if said.to is None else list_.named()
        if not needs.has_page:
            if said.to is not None:
                yield _Part(selected.key, charge)
            return
        most, likely = list_.most, list_.likely
        if needs.wants_whole and most:
            # The place of the whole items is that of the list.
            units = likely * self._statistics.units_of_get(needs.path.record)
            charge = charge.then(keys_charge(most, likely, likely, units))
        is_late = joint is not None and joint.is_late
        yield _Part(selected.key, charge, most, likely, tuple(_behind(needs)), list_.is_apart, is_late)

    def _join(self, plan: ObjectPlan) -> None:
        """Takes note of what is read together of an object."""
        is_wanted = plan.needs_item or plan in self._named
        for each in self._shown.together(plan, is_wanted=is_wanted):
            record = cast("RecordType", plan.record)
            sizes = [self._statistics.item_bytes(record, None)] if None in each.fields else []
            lists = [
                ListCost(self._context, self._statistics, self._shown.of(selected))
                for selected in each.fields
                if selected is not None
            ]
            sizes += [list_.bytes for list_ in lists]
            most = sizes[0] + sum(list_.most_bytes for list_ in lists)
            carrier = next(selected for selected in each.fields if selected is not None)
            list_before = False
            for selected in each.fields:
                self._joint[plan, selected] = Joint(
                    selected is carrier,
                    list_before or most > PAGE_BYTES,
                    selected is carrier and most > PAGE_BYTES,
                    sum(sizes),
                )
                list_before = list_before or selected is not None

    # --- By place -------------------------------------------------------------------------------------

    def by_place(self) -> dict[str, Estimate]:
        """What each place in the query will cost, as far as there are not too many.

        A BatchGet that several places share counts at each of them.
        """
        places: dict[str, _AtPlace] = {}
        waiting = [(part, "", _At(1, 1.0)) for part in reversed(self._roots)]
        while waiting:
            part, outer, at = waiting.pop()
            place = ".".join(filter(None, (outer, part.name)))
            if place not in places and len(places) >= MOST_PLACES:
                continue
            found = places.setdefault(place, _AtPlace())
            then = found.add(part.own, at, is_late=part.is_late).times(part.most, part.likely)
            for group in part.below if then.most else ():
                for child in group:
                    get, item_at = self._get(child), then
                    if get is not None:
                        joint = self._joint.get((child.plan, None))
                        item_at = found.add(get, then, is_late=joint is not None)
                        if self._may_be_known(child.plan):
                            item_at = then | item_at
                    key_at = then | item_at if child.is_unknown else then
                    waiting += [(each, place, item_at) for each in reversed(self._by_item[child.plan])]
                    waiting += [(each, place, key_at) for each in reversed(self._by_key[child.plan])]
        return {place: found.estimate for place, found in places.items() if found.moments}


_MOST_MOMENTS = 1 << 12
"""Round trips are told apart up to this one."""


@dataclass(frozen=True, slots=True)
class _At:
    """When a place is come to, as bits, and how often."""

    most: int
    likely: float
    moments: int = 1
    likely_moments: int = 1

    def times(self, most: int, likely: float) -> _At:
        return _At(self.most * most, self.likely * likely, self.moments, self.likely_moments)

    def __or__(self, other: _At) -> _At:
        """At either of the two."""
        moments = self.moments | other.moments
        return _At(self.most, self.likely, moments, self.likely_moments | other.likely_moments)


@dataclass(slots=True)
class _AtPlace:
    """What one place costs."""

    charge: Charge = NOTHING
    moments: int = 0
    likely_moments: int = 0

    def add(self, charge: Charge, at: _At, *, is_late: bool) -> _At:
        """Counts what is read there, and gives when that has come."""
        if not charge.most.round_trips:
            return at
        if is_late:
            # The request with others counts here too, and nobody else's keys are in it.
            charge = charge.or_later() + requests_charge(1, 0, int(not charge.likely.requests), 0, 0)
        sent, after = _spread(at.moments, charge.most.round_trips)
        likely_sent, likely_after = _spread(at.likely_moments, charge.likely.round_trips)
        most = replace(charge.most, moments=sent if charge.most.keys else 0)
        self.charge += replace(charge, most=most).times(at.most, at.likely)
        self.moments |= sent
        self.likely_moments |= likely_sent
        return _At(at.most, at.likely, after, likely_after)

    @property
    def estimate(self) -> Estimate:
        most, likely = (each.bit_count() for each in (self.moments, self.likely_moments))
        return replace(_estimate(self.charge), round_trips=most, likely_round_trips=likely)


def _spread(moments: int, round_trips: int) -> tuple[int, int]:
    """When requests are sent that take up to so many round trips from those moments on, and when they have come."""
    sent, width = moments, 1
    while width < min(round_trips, _MOST_MOMENTS):
        step = min(width, round_trips - width)
        sent, width = sent | sent << step, width + step
    sent &= (1 << _MOST_MOMENTS) - 1
    return sent, sent << 1 if round_trips else moments


def _estimate(charge: Charge) -> Estimate:
    return Estimate(
        int(charge.most.requests),
        charge.most.round_trips,
        ceil(charge.likely.requests),
        charge.likely.round_trips,
        round(charge.items, 1),
        round(charge.read_units, 1),
    )


def _of(selected: FieldPlan, *, is_read: bool = False) -> tuple[_Child, ...]:
    """The objects that a field gives, each of which is of one of the types that it can be."""
    is_unknown = not is_read and is_type_unknown(selected)
    plans = selected.below.plans if selected.below else ()
    return tuple(_Child(plan, is_read, is_unknown=is_unknown) for plan in plans)


def _behind(needs: NeighbourNeeds) -> Iterator[tuple[_Child, ...]]:
    """What stands behind each edge of a page."""
    if needs.path.is_one:
        yield (_Child(needs.items[0], is_read=True),)
    for each in needs.edges:
        yield _of(each, is_read=True)
    for each in needs.nodes:
        yield _of(each, is_read=needs.path.far_end is None)
