"""Reads lists: a page of neighbors, their count, and the edges to nodes that a client names."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput, FieldName, KeygraphError
from keygraph.graph import Graph
from keygraph.lists.listing import Located, Place
from keygraph.lists.named_edges import in_list
from keygraph.lists.projection import attributes_of
from keygraph.lists.reading import Extent, Found
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import restricted_name
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph_resolvers.naming.names import filterable_fields
from keygraph_resolvers.read.access import learned, without_refused
from keygraph_resolvers.read.aggregates import AskedAggregate
from keygraph_resolvers.read.connection import Connection, Edge, ListArguments, ShownPage
from keygraph_resolvers.read.loaders import CountOf, PageOf
from keygraph_resolvers.read.meter import Read
from keygraph_resolvers.read.objects import ListObject, Object, end_reader
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.explained import (
    NOTHING,
    Explained,
    View,
    Where,
    arguments_text,
    page_text,
)
from keygraph_resolvers.steps.list_cost import ListCost
from keygraph_resolvers.steps.list_requests import explain_requests
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import (
    AT_ONCE,
    NEVER,
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


@dataclass(slots=True, eq=False)
class BoundList:
    """A list of an owner that was not read yet."""

    step: ListStep
    owner: Object
    connection: Connection
    found: ListObject | None
    """None for an only neighbor, which is kept on the owner."""
    place: str
    aggregates: Sequence[AskedAggregate]
    """What is aggregated of it."""

    def fail(self, error: Exception, *, is_counted: bool = False, is_whole: bool = False) -> None:
        """Keeps what reading gave instead of the list's page; `is_counted`: and of its count; `is_whole`: of the list itself."""
        if self.found is None or is_whole:
            self.owner.found[self.step.selected] = error
        else:
            self.found.page = error
            if is_counted:
                self.found.total = error
                self.found.found |= {each.selected: error for each in self.aggregates}

    def learns(self, run: Run, came: Sequence[tuple[Any, Any]]) -> bool:
        """Records other items that were looked up for it. If one could not be read, the list fails."""
        failure = learned(run, came)
        if failure is not None:
            self.fail(failure, is_counted=True)
        return failure is None


class ListStep(Step):
    """Reads the lists of some owners: their pages and their counts, if selected."""

    _arguments: type[ListArguments] = ListArguments

    def __init__(
        self,
        selected: SelectedField,
        path: AccessPath,
        page: PageStep | None,
        *,
        has_total: bool,
        looks: frozenset[str],
        may_be_known: bool,
        is_consistent: bool,
    ) -> None:
        """`looks` are the selected fields of pageInfo. `may_be_known`: the list may have been read for another place.

        `is_consistent`: the client asks for consistent reads.
        """
        self.suffix = selected.key if path.owner is None else f".{selected.key}"
        self.selected = selected
        self.path = path
        self._restricted = None if path.owner is None else restricted_name(path.owner, path.name)
        self.page = page
        self.has_total = has_total
        self._looks = looks
        self._refusal = self._why_not_consistent() if is_consistent else None
        self.may_be_known = may_be_known
        self.aggregates: Sequence[AskedAggregate] = ()
        after = page.after if page else NEVER
        self.later = union((AT_ONCE if self.may_look_up else NEVER, later(after)))
        if may_be_known:
            self.later |= after
        self._after_links = self.later
        """The round trips in which keys are requested after it is known whether the viewer sees anything of it."""
        self.has_links = any(each.access is not None and each.access.links("read") for each in path.records)
        if self.has_links:
            self.later |= AT_ONCE | later(self.later) | later(self.later, 2)

    @property
    def may_look_up(self) -> bool:
        """Whether it may be read by the keys of its items: the values of its arguments decide."""
        path, selected = self.path, self.selected
        if path.members:
            return False
        if selected.says("to"):
            return path.finds_by_node
        is_narrowed = any(selected.says(camel(argument.name)) for argument in path.ranged)
        return path.keys.index is None and (not path.rest.slots or is_narrowed)

    def deciding(self, graph: Graph) -> frozenset[str] | None:
        """Returns the attributes of items that decide whether they are in the list; None for all of them."""
        path, record, selected = self.path, self.path.record, self.selected
        checked = [each.slot for each in path.ranged if each.slot.lossy and selected.says(camel(each.name))]
        names = [name for slot in checked for name in record.needs_of(slot)]
        found = attributes_of(graph, record, names) if names else frozenset[str]()
        if found is None or not selected.says("where"):
            return found
        compared = {each.attribute[0] for each in filterable_fields(path)}
        return found | compared | record.key_attributes

    def _why_not_consistent(self) -> BadUserInput | None:
        """Returns why it cannot be read consistently: DynamoDB writes a global index after the table."""
        if self.selected.says("to") and self.path.finds_by_node:
            return None
        return why_not_consistent(self.path)

    @property
    def names_edges(self) -> bool:
        """Whether edges of it to named nodes are looked up."""
        return self.selected.says("to")

    @property
    def needed(self) -> Mapping[RecordType, frozenset[str]]:
        """The ends that are needed of its items, by type: to continue to the nodes there, and to know the owners."""
        leads = self.names_edges or (self.page is not None and self.page.shows_nodes)
        return {
            each.record: each.ends_needed(leads=leads).union(
                *(asked.needed_of(each.record) for asked in self.aggregates)
            )
            for each in self.path.each
        }

    def arguments(self, run: Run) -> ListArguments:
        """Returns what is the same for all owners. Raises BadUserInput, or GraphQLError."""
        if self._refusal is not None:
            raise self._refusal
        selected = self.selected
        return selected.constant or selected.told(
            run, lambda given: self._arguments(run, self.path, given, self._looks)
        )

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        for bound in self.bind(run, objects, place):
            self.read(run, bound, round_trip)

    def bind(self, run: Run, owners: Sequence[Object], place: str) -> Iterator[BoundList]:
        """Yields the lists of owners, except those for which the arguments cannot be used."""
        place, is_one, is_at_root = place + self.suffix, self.path.is_one, self.path.owner is None
        if self._restricted is not None:
            owners = without_refused(run.access, owners, self.selected, self._restricted)
        try:
            arguments = self.arguments(run)
        except Exception as error:
            for owner in owners:
                owner.found[self.selected] = error
            return
        for owner in owners:
            try:
                connection = arguments.of(run, None if is_at_root else owner)
            except Exception as error:
                owner.found[self.selected] = error
                continue
            found = owner.found[self.selected] = None if is_one else ListObject()
            yield BoundList(self, owner, connection, found, place, self.aggregates)

    def read(self, run: Run, bound: BoundList, round_trip: int) -> None:
        """Reads the list in that round trip."""
        connection = bound.connection
        if not self.is_read(bound):
            return
        if self.has_links and (unknown := connection.unknown):
            wanted = [(key, key) for key in unknown]
            then = partial(self._links_came, run, bound)
            look_all_up(run, bound.place, round_trip, self._after_links, wanted, then)
        elif connection.is_closed:
            self._all_came(run, bound, [], round_trip)
        elif connection.arguments.is_key_lookup:
            after = self._spread_after
            keys: list[tuple[Any, Key]] = [(bound, key) for key in connection.keys]
            look_all_up(run, bound.place, round_trip, after, keys, partial(self._all_came, run, bound))
        elif connection.arguments.to is not None:
            self._read_edges_to(run, bound, round_trip)
        else:
            self._read_parts(run, bound, round_trip)

    def _read_parts(self, run: Run, bound: BoundList, round_trip: int) -> None:
        """Reads the page and the count, or all of the list if it is aggregated: the others are a part of that."""
        if self.aggregates_items:
            budget, arguments = run.limits.read_budget, bound.connection.arguments
            has_page = self.page is not None and not arguments.has_cursor
            extent = Extent(budget, budget=budget, attributes=arguments.extent.attributes)
            after = self.page.after if self.page is not None and has_page else NEVER
            read = Read((bound.place,), round_trip, after, goes_on=True)
            whole = PageOf(bound.connection.neighbours, extent)
            run.scheduler.load(whole, read, partial(self._aggregated, run, bound))
            if has_page:
                return
        elif self._is_counted:
            self._count(run, bound, round_trip)
        if self.page is not None:
            self.page.read(run, bound, round_trip)

    def _count(self, run: Run, bound: BoundList, round_trip: int) -> None:
        request = CountOf(bound.connection.neighbours, run.limits.count_pages)
        run.scheduler.load(request, Read((bound.place,), round_trip), partial(_count_came, bound))

    def is_read(self, bound: BoundList) -> bool:
        """Returns whether something is requested from the list that can be answered."""
        return self.page is not None or self.has_total or bool(bound.aggregates)

    @property
    def _is_counted(self) -> bool:
        return self.has_total or any(each.counts_only for each in self.aggregates)

    @property
    def aggregates_items(self) -> bool:
        """Whether all of the list is read, to aggregate it."""
        return any(not each.counts_only for each in self.aggregates)

    def _aggregated(self, run: Run, bound: BoundList, answer: Found | Exception, round_trip: int) -> None:
        """Continues when all of the list has come, or as much as the budget allows."""
        if bound.found is None:
            return
        if (
            isinstance(answer, Found)
            and answer.resume is None
            and not answer.more
            and len(answer.items) < run.limits.read_budget
        ):
            self.count_found(run, bound, answer.items)
        else:
            missing = answer if isinstance(answer, Exception) else None
            bound.found.found |= {each.selected: missing for each in bound.aggregates}
            if self._is_counted:
                self._count(run, bound, round_trip)
        if self.page is not None and not bound.connection.arguments.has_cursor:
            self.page.read(run, bound, round_trip)

    # --- What other items decide --------------------------------------------------------------------------

    @property
    def _spread_after(self) -> RoundTrips:
        """The round trips in which keys are requested after all its items have come."""
        after = self.page.after if self.page else NEVER
        return after | AT_ONCE | later(after) if self.has_links else after

    def _links_came(self, run: Run, bound: BoundList, came: list[tuple[Any, Any]], round_trip: int) -> None:
        """Reads the list after the items have come that decide whether the viewer sees anything of it."""
        if bound.learns(run, came):
            owner = None if self.path.owner is None else bound.owner
            bound.connection = self.arguments(run).of(run, owner)
            self.read(run, bound, round_trip)

    # --- Lists of which all items are known by their keys, or by their nodes ------------------------------

    def _read_edges_to(self, run: Run, bound: BoundList, round_trip: int) -> None:
        """Reads the edges to the nodes that the client names, each by a Query of its own."""
        requests = bound.connection.edges_to
        after = self._spread_after
        came = when_all(len(requests), round_trip, partial(self._all_came, run, bound))
        for request in requests:
            read = Read((bound.place,), round_trip, after, goes_on=True)
            run.scheduler.load(request, read, lambda answer, arrived: came([(None, answer)], arrived))

    def _all_came(self, run: Run, bound: BoundList, came: list[tuple[Any, Any]], round_trip: int) -> None:
        """Continues with a list that has come completely: for each key an item or None, for each node items."""
        items: list[Item] = []
        for _, answer in came:
            if isinstance(answer, Exception):
                bound.fail(answer, is_counted=True)
                return
            items += answer if isinstance(answer, list) else [answer] if answer is not None else []
        if self.has_links and (unknown := bound.connection.unknown_of(items)):
            wanted = [(key, key) for key in unknown]
            then = partial(self._links_of_items_came, run, bound, items)
            look_all_up(run, bound.place, round_trip, self._spread_after, wanted, then)
        else:
            self._show_all(run, bound, items, round_trip)

    def _links_of_items_came(
        self, run: Run, bound: BoundList, items: Sequence[Item], came: list[tuple[Any, Any]], round_trip: int
    ) -> None:
        if bound.learns(run, came):
            self._show_all(run, bound, items, round_trip)

    def _show_all(self, run: Run, bound: BoundList, items: Sequence[Item], round_trip: int) -> None:
        connection = bound.connection
        found = in_list(connection.neighbours, connection.given(items), connection.arguments.to)
        self.show_found(run, bound, found, round_trip)

    def show_found(
        self,
        run: Run,
        bound: BoundList,
        found: Sequence[Located],
        round_trip: int,
        order: Callable[[Place], Any] | None = None,
    ) -> None:
        """Continues with a list of which these are all items. Its page has that order; None for that of the table's keys
        among equal sort keys."""
        self.count_found(run, bound, found)
        if self.page is not None:
            order = order or bound.connection.neighbours.order_by_key
            edges, info = bound.connection.page_among(found, order)
            if bound.found is not None:
                bound.found.info = info
            self.page.complete(run, bound, edges, round_trip)

    def count_found(self, run: Run, bound: BoundList, found: Sequence[Located]) -> None:
        """Sets the count and the aggregates of a list of which these are all items."""
        if bound.found is not None:
            bound.found.total = len(found)
            objects = [Edge(bound.connection, each) for each in found] if bound.aggregates else []
            for each in bound.aggregates:
                run.scheduler.spawn(each.add_to(bound.found.found, run, objects))

    # --- What it costs ------------------------------------------------------------------------------------

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        try:
            most = self.most(run)
            if self.arguments(run).is_unseen(run):
                return StepCost(), ()
        except Exception:
            return StepCost(), ()  # nothing is read; the answer says why
        whole, after = most.all(starts)
        cost, below = most.page(run, after)
        cost.add(most.count(after))
        cost.add(whole)
        return cost, below

    def most(self, run: Run) -> ListCost:
        """Returns the most that the list of one owner costs. Raises if the arguments cannot be used."""
        return ListCost.of(
            self.path,
            self.page,
            self.arguments(run),
            run,
            has_total=self._is_counted,
            may_be_known=self.may_be_known,
            has_aggregate=self.aggregates_items,
        )

    def bound_key(self, run: Run) -> Hashable:
        """Returns what decides its cost."""
        try:
            return self.most(run)
        except Exception:
            return None

    # --- How it is explained --------------------------------------------------------------------------------

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        place, [node, *_] = where.place + self.suffix, self.selected.nodes
        here = replace(where, place=place, key="" if self.path.owner is None else where.key)
        names, arguments = tuple(record.name for record in self.path.records), arguments_text(node)
        base = Explained("read list", here, names, path=self.path, arguments=arguments, source=self)
        if self.page is not None and view.may_go_on():
            shown = replace(
                base,
                page="1" if self.path.is_one else page_text(node),
                attributes=view.attributes(*self.path.records),
            )
            explain_requests(view, shown, where, self.path, self.arguments)
            shown.is_read = bool(shown.requests) or shown.problem is not None or shown.access == NOTHING
            is_many = where.is_many or not self.path.is_one
            shown.steps = [*self.page.explained(view, Where(place, "", where.round_trip + 1, is_many))]
            yield shown
        if self.aggregates_items and view.may_go_on():
            budget = f"all, at most {view.run.limits.read_budget:,} items"
            shown = replace(base, page=budget, attributes=view.attributes(self.path.record), steps=[])
            explain_requests(view, shown, where, self.path, self.arguments, is_whole=True)
            yield shown
        elif self._is_counted and view.may_go_on():
            shown = replace(base, kind="count", attributes=(), steps=[])
            explain_requests(view, shown, where, self.path, self.arguments)
            yield shown


def why_not_consistent(path: AccessPath) -> BadUserInput | None:
    """Returns why a list cannot be read consistently: DynamoDB writes a global index after the table."""
    index = path.keys.index
    if index is None or index.local:
        return None
    owner = "" if path.owner is None else f" of {path.owner.name}"
    return BadUserInput(
        FieldName(path.name),
        f"{owner} is read from the global index {index.name}, which cannot be read consistently. "
        "Ask for it in another query, without @consistent.",
    )


def _count_came(bound: BoundList, answer: int | Exception | None, round_trip: int) -> None:
    if bound.found is None:
        return
    if bound.step.has_total:
        bound.found.total = answer
    for each in bound.aggregates:
        if each.counts_only:
            counted: Any = each.of_count(answer) if isinstance(answer, int) else answer
            bound.found.found[each.selected] = counted


class PageStep(Priced):
    """The page of a list: how it is read, and the steps that continue from its edges and nodes."""

    def __init__(
        self,
        name: str,
        path: AccessPath,
        edges: Sequence[tuple[SelectedField, ItemStep]],
        nodes: Sequence[tuple[SelectedField, Step]],
        only: ItemStep | None,
    ) -> None:
        """`name` is the list's. `edges` and `nodes` are the fields that show them, with the steps that continue from
        them; `only` continues from an only neighbor."""
        self.suffix = f".{name}" if name else ""
        self.path = path
        self.edges = edges
        self.nodes = nodes
        self.only = only
        end = None if path.far_end is None else path.record.ends[path.far_end]
        self._far_of = None if end is None else end_reader(path.record, end)
        self.shows_nodes = bool(nodes)
        self.children = [step for _, step in (*edges, *nodes)] if only is None else [only]
        self.after = union(each.later for each in self.children)
        """The round trips in which keys are requested when it is there."""

    def read(self, run: Run, bound: BoundList, round_trip: int) -> None:
        connection = bound.connection
        read = Read((bound.place,), round_trip, self.after, connection.goes_on)
        run.scheduler.load(connection.request, read, partial(self._came, run, bound))

    def _came(self, run: Run, bound: BoundList, answer: Found | Exception, round_trip: int) -> None:
        if isinstance(answer, Exception):
            bound.fail(answer)
            return
        shown = bound.connection.page_of(answer)
        if isinstance(shown, PageOf):
            read = Read((bound.place,), round_trip, self.after, True)
            run.scheduler.load(shown, read, partial(self._behind_came, run, bound, answer))
        else:
            self.show(run, bound, shown, round_trip)

    def _behind_came(
        self, run: Run, bound: BoundList, found: Found, answer: Found | Exception, round_trip: int
    ) -> None:
        if isinstance(answer, Exception):
            bound.fail(answer)
        else:
            self.show(run, bound, bound.connection.page_behind(found, answer), round_trip)

    def show(self, run: Run, bound: BoundList, shown: ShownPage, round_trip: int) -> None:
        edges, info = shown
        if bound.found is not None:
            bound.found.info = info
        else:
            del edges[1:]
        self.complete(run, bound, edges, round_trip)

    def complete(self, run: Run, bound: BoundList, edges: Sequence[Edge], round_trip: int) -> None:
        """Continues from the edges of a page."""
        if run.meter.holding is not None:
            try:
                run.meter.holding.take_page(len(edges))
            except KeygraphError as refusal:
                # Its frames hold all that was read, and each list adds some.
                bound.fail(refusal.with_traceback(None))
                return
        self.spread(run, bound, edges, round_trip)

    def spread(self, run: Run, bound: BoundList, edges: Sequence[Edge], round_trip: int) -> None:
        """Starts the steps that continue from the edges of a page."""
        found, place = bound.found, bound.place
        if found is None:
            bound.owner.found[bound.step.selected] = edges[0] if edges else None
            if self.only is not None:
                self.only.start(run, edges[:1], round_trip, place)
            return
        found.page = edges
        for selected, step in self.edges:
            found.found[selected] = edges
            step.start(run, edges, round_trip, place)
        for selected, nodes_step in self.nodes:
            nodes = found.found[selected] = self.nodes_of(edges)
            nodes_step.start(run, [node for node in nodes if node.error is None], round_trip, place)

    def nodes_of(self, edges: Sequence[Edge]) -> Sequence[Object]:
        """Returns the nodes of a page's edges; a node whose edge or key cannot be read has its error."""
        far_of, nodes = self._far_of, []
        if far_of is None:
            return edges
        for edge in edges:
            try:
                if edge.error is not None:
                    raise edge.error
                node = far_of(edge)
            except Exception as error:
                node = Object(self.path.nodes[0], ())
                node.error = error
            if node is not None:
                nodes.append(node)
        return nodes

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        """Returns the steps that continue from so many edges."""
        return StepCost(), [(step, starts) for step in self.children]

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        at = replace(where, key=f"the end {self.path.record.name}.{self.path.far_end}")
        for step in self.children:
            yield from step.explained(view, at)


Came: TypeAlias = Callable[[list[tuple[Any, Any]], int], None]
"""Takes answers with the objects that wanted them, and the next round trip."""


def look_all_up(
    run: Run,
    place: str,
    round_trip: int,
    after: frozenset[int],
    wanted: Sequence[tuple[Any, Key]],
    then: Came,
) -> None:
    """Looks up items by their keys, and continues when all have come."""
    came = when_all(len(wanted), round_trip, then)
    if wanted:
        run.scheduler.look_up(wanted, place, round_trip, after, came)


def when_all(count: int, round_trip: int, then: Came) -> Came:
    """Returns a function that collects answers, and continues when there are `count`: at once for none."""
    found: list[tuple[Any, Any]] = []
    latest = round_trip

    def came(some: list[tuple[Any, Any]], arrived: int) -> None:
        nonlocal latest
        found.extend(some)
        latest = max(latest, arrived)
        if len(found) == count:
            then(found, latest)

    if not count:
        then([], round_trip)
    return came
