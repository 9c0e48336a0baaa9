"""Reads lists: a page of neighbors, their count, and the edges to nodes that a client names.

`ListStep.run` binds the list of each owner to the client's arguments (a `Connection`), and reads each: by the keys of
its items if all of them are known (`look_up_items`), whole if it is aggregated, else its page (`LoadEach`) and its count.
`PageStep.take` continues with the pages that have come together, and `PageStep.spread` starts the steps below with their
edges and nodes. Before that, what other items decide is read, if rules need them (`decided_lists`). What all of this
requests at most is in `list_worst`, with the same waits: "links", "items", "all", "count" and "page".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, cast
from weakref import ref

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput, FieldName, KeygraphError, again
from keygraph.graph import Graph
from keygraph.lists.describe import DescribedRequest, described_requests
from keygraph.lists.extent import NO_PAGE, Extent, Located, Place
from keygraph.lists.named_edges import edge_keys, in_list
from keygraph.lists.projection import attributes_of
from keygraph.lists.query import ListQuery
from keygraph.lists.reading import Found, count_requests, page_requests
from keygraph.model.paths import AccessPath, WalkedPath
from keygraph.model.permissions import Permissions, restricted_name
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph_resolvers.engine.requests import (
    All,
    Begun,
    Beside,
    GetItems,
    Load,
    LoadEach,
    Pause,
    Reads,
    Start,
    Work,
)
from keygraph_resolvers.engine.worst import Described, StepStart, Worst, weakly
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.naming.names import filterable_fields
from keygraph_resolvers.read.access import without_refused
from keygraph_resolvers.read.aggregates import RequestedAggregate
from keygraph_resolvers.read.connection import Connection, ConnectionPage, Edge, ListArguments
from keygraph_resolvers.read.loaders import CountOf, EdgesTo
from keygraph_resolvers.read.objects import ListObject, NodeReader, Object, end_reader
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.list_worst import ListWorst
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import ItemStep, Step


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
        self.breadth = len(path.keys.shard_texts)
        self.selected = selected
        self.path = path
        self._restricted = None if path.owner is None else restricted_name(path.owner, path.name)
        self.page = page
        self.has_total = has_total
        self._looks = looks
        is_by_key = selected.has_argument("to") and path.finds_by_node
        self._refusal = why_not_consistent(path) if is_consistent and not is_by_key else None
        self.may_be_known = may_be_known
        self.aggregates: Sequence[RequestedAggregate] = ()
        self.has_links = any(each.access is not None and each.access.links("read") for each in path.records)
        node = partial(
            Described,
            records=tuple(path.records),
            step=ref(self),
            path=path,
            field=selected,
            arguments=weakly(self.arguments),
        )
        reads = partial(partial, weakly(self._described))
        self.page_node = node(kind="read list", reads=reads("page"))
        self.whole_node = node(
            kind="read list",
            page=lambda run, _: f"all, at most {run.limits.read_budget:,} items",
            reads=reads("whole"),
        )
        self.count_node = node(kind="count", reads=reads("count"))

    def arguments(self, run: Run) -> ListArguments:
        """Returns what is the same for all owners. Raises BadUserInput, or GraphQLError."""
        if self._refusal is not None:
            raise again(self._refusal)
        selected = self.selected
        return selected.constant or selected.cached(
            run, lambda given: self._arguments(run, self.path, given, self._looks)
        )

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        return self.read(op, self.bind(op, objects))

    def bind(self, op: Run, owners: Sequence[Object]) -> list[Connection]:
        """Returns the lists of owners, except those for which the arguments cannot be used."""
        bound: list[Connection] = []
        if self._restricted is not None:
            owners = without_refused(op, owners, self.selected, self._restricted)
        try:
            arguments = self.arguments(op)
        except Exception as error:
            failure = as_value(error)
            for owner in owners:
                op.fail(owner.found, self.selected, failure)
            return bound
        for owner in owners:
            try:
                connection = arguments.of(op, owner)
            except Exception as error:
                op.fail(owner.found, self.selected, error)
                continue
            connection.answer = owner.found[self.selected] = None if self.path.is_one else ListObject()
            bound.append(connection)
        return bound

    def read(self, op: Run, connections: Sequence[Connection]) -> Begun:
        if self.has_links:
            return [Beside(self._when_visible(op, each)) for each in connections]
        return self.read_decided(op, connections)

    def _when_visible(self, op: Run, connection: Connection) -> Reads[Begun]:
        """Looks up the other items that decide whether the viewer sees anything of the list, and reads it."""
        owner, answer = connection.owner, connection.answer
        try:
            if self.is_read:
                [connection] = yield from decided_lists(
                    op, [connection], lambda: [self.arguments(op).of(op, owner)], "links"
                )
                connection.answer = answer
        except Exception as error:
            self.fail(connection, error)
            return []
        return self.read_decided(op, [connection])

    def read_decided(self, op: Run, connections: Sequence[Connection]) -> Begun:
        """Returns what reads lists of which it is known whether the viewer sees anything."""
        begun: Begun = []
        pages: list[Connection] = []
        for each in connections:
            if each.is_closed:
                begun += self.take_all(op, each, ())
            elif each.arguments.is_key_lookup or each.arguments.to is not None:
                if self.is_read:
                    begun.append(Beside(self._look_up(op, each)))
            elif self.aggregates_items:
                begun.append(Beside(self._aggregate(op, each)))
            else:
                if self.is_counted:
                    begun.append(Beside(self._count(op, each)))
                pages.append(each)
        return [*begun, *self._pages_of(pages)]

    def _pages_of(self, connections: Sequence[Connection]) -> Begun:
        if self.page is None or not connections:
            return []
        return [LoadEach([(each, each.query, each.goes_on) for each in connections])]

    def take(self, op: Run, answers: Sequence[tuple[Connection, Found | Exception]]) -> Begun:
        """Continues with the pages that have come."""
        return cast(PageStep, self.page).take(op, answers)

    def _look_up(self, op: Run, connection: Connection) -> Reads[Begun]:
        """Reads a list of which all items are known by their keys, or by their nodes."""
        nodes = connection.arguments.to
        items = yield from look_up_items(op, connection, nodes)
        if isinstance(items, Exception):
            self.fail(connection, items)
            return []
        return self.take_all(op, connection, in_list(connection.query, items, nodes))

    def _count(self, op: Run, connection: Connection) -> Reads[None]:
        count = yield Load(CountOf(connection.query.part(NO_PAGE), op.limits.count_pages), "count")
        answer = connection.answer
        if answer is None:
            return
        if self.has_total:
            answer.total = count
        for each in self.aggregates:
            if each.counts_only:
                answer.found[each.selected] = each.of_count(count) if isinstance(count, int) else count

    def _aggregate(self, op: Run, connection: Connection) -> Reads[Begun]:
        """Reads all of the list, or as much as the budget allows; the page and the count are a part of that."""
        page = self._pages_of([connection])
        is_page_separate = connection.arguments.has_cursor
        if is_page_separate:
            yield page
        budget, extent = op.limits.read_budget, self._whole_extent(op)
        wait = "count" if is_page_separate else "all"
        found = yield Load(connection.query.part(extent), wait, goes_on=True)
        begun = [] if is_page_separate else page
        if connection.answer is None:
            return begun
        if isinstance(found, Found) and found.resume is None and not found.more and len(found.items) < budget:
            return [*self.count_found(op, connection, found.items), *begun]
        missing = found if isinstance(found, Exception) else None
        connection.answer.found |= {each.selected: missing for each in self.aggregates}
        return [Beside(self._count(op, connection)), *begun] if self.is_counted else begun

    def _whole_extent(self, run: Run) -> Extent:
        """Returns all of it, or as much as the budget allows."""
        budget = run.limits.read_budget
        return Extent(budget, budget=budget, attributes=self.arguments(run).extent.attributes)

    @property
    def is_read(self) -> bool:
        """Whether something is requested from its lists that can be answered."""
        return self.page is not None or self.has_total or bool(self.aggregates)

    @cached_property
    def is_counted(self) -> bool:
        return self.has_total or any(each.counts_only for each in self.aggregates)

    @cached_property
    def aggregates_items(self) -> bool:
        """Whether all of the list is read, to aggregate it."""
        return any(not each.counts_only for each in self.aggregates)

    def take_all(
        self,
        op: Run,
        connection: Connection,
        found: Sequence[Located],
        order: Callable[[Place], Any] | None = None,
    ) -> Begun:
        """Continues with a list of which these are all items. Its page has that order; None for that of the table's keys
        among equal sort keys."""
        begun = self.count_found(op, connection, found)
        if self.page is not None:
            page = connection.page_among(found, order or connection.query.order_by_key)
            begun += self.page.take_pages(op, [(connection, page)])
        return begun

    def count_found(self, op: Run, connection: Connection, found: Sequence[Located]) -> Begun:
        """Sets the count and the aggregates of a list of which these are all items."""
        answer = connection.answer
        if answer is None:
            return []
        answer.total = len(found)
        objects = [Edge(connection.cursors, each) for each in found] if self.aggregates else []
        return [Work(each.add_to(answer.found, op, objects)) for each in self.aggregates]

    def fail(self, connection: Connection, error: Exception) -> None:
        """Keeps an error in place of all that is selected of a list."""
        kept, answer = as_value(error), connection.answer
        if answer is None:
            connection.owner.found[self.selected] = kept
        else:
            answer.page = answer.total = kept
            answer.found |= {each.selected: kept for each in self.aggregates}

    # --- What its selection needs ------------------------------------------------------------------------------

    @property
    def may_look_up(self) -> bool:
        """Whether it may be read by the keys of its items: the values of its arguments decide."""
        path, selected = self.path, self.selected
        if path.members:
            return False
        if selected.has_argument("to"):
            return path.finds_by_node
        is_narrowed = any(selected.has_argument(camel(argument.name)) for argument in path.ranged)
        return path.keys.index is None and (not path.rest.slots or is_narrowed)

    def deciding(self, graph: Graph) -> frozenset[str] | None:
        """Returns the attributes of items that decide whether they are in the list; None for all of them."""
        path, record, selected = self.path, self.path.record, self.selected
        checked = [
            each.slot for each in path.ranged if each.slot.lossy and selected.has_argument(camel(each.name))
        ]
        names = [name for slot in checked for name in record.needs_of(slot)]
        found = attributes_of(graph, record, names) if names else frozenset[str]()
        if found is None or not selected.has_argument("where"):
            return found
        fields = filterable_fields(path)
        compared = {each.attribute[0] for each in fields}
        compared |= {record.former[each.attribute][0] for each in fields if each.attribute in record.former}
        return found | compared | record.key_attributes

    @property
    def names_edges(self) -> bool:
        """Whether edges of it to named nodes are looked up."""
        return self.selected.has_argument("to")

    @property
    def needed(self) -> Mapping[RecordType, frozenset[str]]:
        """The ends that are needed of its items, by type: to continue to the nodes there, and to know the owners."""
        leads = self.names_edges or (self.page is not None and bool(self.page.nodes))
        return {
            each.record: each.ends_needed(leads=leads).union(
                *(each_aggregate.needed_of(each.record) for each_aggregate in self.aggregates)
            )
            for each in self.path.each
        }

    # --- What it costs ------------------------------------------------------------------------------------

    def worst(self, run: Run) -> Worst:
        most = None
        with suppress(Exception):  # nothing is read; the answer says why
            most = None if self.arguments(run).is_hidden(run) else self.most(run)
        if most is not None:
            yield from most.requests()
        elif self.node is not None:
            yield self.node

    def most(self, run: Run) -> ListWorst:
        """Returns the most that the list of one owner takes. Raises if the arguments cannot be used."""
        return ListWorst(self, self.arguments(run), run)

    # --- How it is explained --------------------------------------------------------------------------------

    @cached_property
    def node(self) -> Described | None:
        """What explain describes first; None if nothing is read of it."""
        if self.page is not None:
            return self.page_node
        if self.aggregates_items:
            return self.whole_node
        return self.count_node if self.is_counted else None

    def _described(
        self, node: Literal["page", "whole", "count"], run: Run, owner: tuple[str, ...] | None
    ) -> Iterator[DescribedRequest]:
        """Yields the requests for a part of the list, or for its edges to the nodes that the client names."""
        arguments, path = self.arguments(run), self.path
        if arguments.to is not None:
            count, between = len(arguments.to), path.keys_of_both_ends
            if between is None:
                raise BadUserInput(f"no key of {path.record.name} contains both its ends")
            pairs = zip(between.attributes, between.templates, strict=False)
            keys = " AND ".join(f"{key.name} = {template}" for key, template in pairs)
            times = f"{count} {'time' if count == 1 else 'times'}"
            yield DescribedRequest("Query", between.index_name, f"{keys}, {times}")
            return
        query = arguments.described(run, owner) or arguments.any_described
        if node == "whole":
            query = query.part(self._whole_extent(run))
        requests = count_requests(query) if node == "count" else page_requests(query)
        if requests:
            yield described_requests(run.graph, requests, len(path.keys.shard_texts))


def why_not_consistent(path: WalkedPath) -> BadUserInput | None:
    """Returns why a list cannot be read consistently: DynamoDB writes a global index after the table."""
    index = path.keys.index if isinstance(path, AccessPath) else None
    if index is None or index.local:
        return None
    owner = "" if path.owner is None else f" of {path.owner.name}"
    return BadUserInput(
        FieldName(path.name),
        f"{owner} is read from the global index {index.name}, which cannot be read consistently. "
        "Ask for it in another query, without @consistent.",
    )


@dataclass(eq=False)
class PageStep:
    """The page of a list: how it is read, and the steps that continue from its edges and nodes."""

    selected: SelectedField
    """The list."""
    path: AccessPath
    edges: Sequence[tuple[SelectedField, ItemStep]]
    """The fields that show its edges, with the steps that continue from them."""
    nodes: Sequence[tuple[SelectedField, Step]]
    only: ItemStep | None
    """Continues from an only neighbor."""
    copying: Mapping[SelectedField, NodeReader] = field(default_factory=dict)
    """The readers of nodes that edges have copies of."""

    def __post_init__(self) -> None:
        path = self.path
        self.suffix = f".{self.selected.key}"
        end = None if path.far_end is None else path.record.ends[path.far_end]
        self._far_of = None if end is None else end_reader(path.record, end)
        self.end_key = f"the end {path.record.name}.{path.far_end}"
        fields = (*self.edges, *self.nodes)
        self.children = [step for _, step in fields] if self.only is None else [self.only]

    def take(self, op: Run, answers: Sequence[tuple[Connection, Found | Exception]]) -> Begun:
        """Continues with what was read for pages, each of which may also need to know what is behind it."""
        begun: Begun = []
        pages: list[tuple[Connection, ConnectionPage]] = []
        for connection, found in answers:
            if isinstance(found, Exception):
                self.fail(connection, found)
                continue
            behind = connection.arguments.may_look_back and connection.part_behind(found)
            if isinstance(behind, ListQuery):
                begun.append(Beside(self._look_behind(op, connection, found, behind)))
            else:
                pages.append((connection, connection.page(found, is_behind=behind)))
        return [*begun, *self.take_pages(op, pages)]

    def _look_behind(self, op: Run, connection: Connection, found: Found, behind: ListQuery) -> Reads[Begun]:
        before = yield Load(behind, goes_on=True)
        if isinstance(before, Exception):
            self.fail(connection, before)
            return []
        return self.take_pages(
            op, [(connection, connection.page(found, is_behind=connection.is_behind(before)))]
        )

    def fail(self, connection: Connection, error: Exception) -> None:
        if connection.answer is None:
            connection.owner.found[self.selected] = as_value(error)
        else:
            connection.answer.page = as_value(error)

    def take_pages(self, op: Run, pages: Sequence[tuple[Connection, ConnectionPage]]) -> Begun:
        """Returns what continues from pages."""
        held: list[tuple[Connection, list[Edge]]] = []
        holding = op.meter.holding
        for connection, (edges, info) in pages:
            if connection.answer is not None:
                connection.answer.info = info
            else:
                del edges[1:]
            if holding is not None:
                try:
                    holding.take_page(len(edges))
                except KeygraphError as refusal:
                    self.fail(connection, refusal)
                    continue
            held.append((connection, edges))
        return self.spread(op, held)

    def spread(self, op: Run, pages: Sequence[tuple[Connection, list[Edge]]]) -> Begun:
        """Starts the steps below with the edges of pages and their nodes."""
        only: list[Edge] = []
        all_edges: list[Edge] = []
        nodes_below: list[list[Object]] = [[] for _ in self.nodes]
        for connection, edges in pages:
            answer = connection.answer
            if answer is None:
                connection.owner.found[self.selected] = edges[0] if edges else None
                only += edges[:1]
                continue
            answer.page = edges
            all_edges += edges
            for selected, _ in self.edges:
                answer.found[selected] = edges
            for (selected, _), below in zip(self.nodes, nodes_below, strict=True):
                nodes = answer.found[selected] = self.nodes_of(selected, edges)
                below += [node for node in nodes if node.error is None]
        begun: Begun = [Start(step, all_edges) for _, step in self.edges]
        begun += [Start(step, below) for (_, step), below in zip(self.nodes, nodes_below, strict=True)]
        return begun if self.only is None else [*begun, Start(self.only, only)]

    def nodes_of(self, selected: SelectedField, edges: Sequence[Edge]) -> Sequence[Object]:
        """Returns the nodes of a page's edges for a field that shows them; a node whose edge or key cannot be read has
        its error."""
        far_of, nodes = self.copying.get(selected, self._far_of), []
        if far_of is None:
            return edges
        for edge in edges:
            try:
                if edge.error is not None:
                    raise edge.error
                node = far_of(edge)
            except Exception as error:
                node = Object(self.path.nodes[0], ())
                node.error = as_value(error)
            if node is not None:
                nodes.append(node)
        return nodes

    def worst(self, run: Run) -> Worst:
        """Yields what continues from an edge."""
        for step in self.children:
            yield StepStart(step, key=self.end_key)


# --- What the viewer sees -----------------------------------------------------------------------------------


def learn(op: Run, keys: Iterable[Key], wait: str = "items") -> Reads[Exception | None]:
    """Looks up other items that rules need. Returns the error of the first that could not be read."""
    for key, answer in (yield GetItems([(key, key) for key in keys], wait)):
        if isinstance(answer, Exception):
            return answer
        cast(Permissions, op.access).learn(key, answer)
    return None


def decided_lists(
    op: Run, lists: list[Connection], make: Callable[[], list[Connection]], wait: str
) -> Reads[list[Connection]]:
    """Returns lists after the other items were read that decide whether the viewer sees anything of them: `make` makes
    them again. Raises its errors, and those of reading."""
    while unknown := dict.fromkeys(key for each in lists for key in each.unknown):
        failure = yield from learn(op, unknown, wait)
        if failure is not None:
            raise failure
        lists = make()
    return lists


def look_up_items(
    op: Run, connection: Connection, nodes: Iterable[tuple[str, ...]] | None, wait: str = "items"
) -> Reads[Sequence[Item] | Exception]:
    """Looks up the items of a list that lead to some nodes, or all of them if their keys are known, with the values of the
    other items that rules need."""
    query, answers = connection.query, list[Any]()
    if nodes is None or query.path.finds_by_node:
        keys = query.whole_keys or () if nodes is None else edge_keys(query, nodes)
        answers = [answer for _, answer in (yield GetItems([(None, key) for key in keys], wait))]
    else:
        answers = yield All([Load(EdgesTo(query, node), wait, goes_on=True) for node in nodes])
    items: list[Item] = []
    for answer in answers:
        if isinstance(answer, Exception):
            return answer
        items += answer if isinstance(answer, list) else [answer] if answer is not None else []
    if connection.query.form.send is None:
        return items  # no other item decides about them
    links, unknown = op.links, dict[Key, None]()
    decisions = [*links.decisions(connection.arguments.path, items, connection.conditions)]
    for each in decisions:
        unknown |= links.unknown(each)
        yield Pause()
    failure = yield from learn(op, unknown, wait)
    return [*map(links.with_values, items, decisions)] if failure is None else failure
