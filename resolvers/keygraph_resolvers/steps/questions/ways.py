"""How one node is connected to another: a search from both ends by keys alone. Nodes are read only to be shown."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from keygraph.errors import BadUserInput
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph.resolve.ways import FollowedList
from keygraph.walks.shortest import Followed, Stretch, Way, Ways, shortest
from keygraph.walks.walk import Budget, Vertex, Walk, Wanted
from keygraph_resolvers.errors import message_of
from keygraph_resolvers.naming.global_ids import read_any_id_or_key
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.read.walked import ViaEdge
from keygraph_resolvers.schema.field_kinds import WaysBetween
from keygraph_resolvers.schema.way_types import MOST_LENGTH, USUAL_WAYS, list_name, named_lists
from keygraph_resolvers.steps.explained import Explained, View, Where, arguments_text, joined
from keygraph_resolvers.steps.list_cost import keys_cost
from keygraph_resolvers.steps.list_requests import walked_request
from keygraph_resolvers.steps.lists import why_not_consistent
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import Below, Starts, Step, StepCost
from keygraph_resolvers.steps.walks.cost import WalkMost, undecided
from keygraph_resolvers.steps.walks.walk import AHEAD, EdgesStep, WalkedLists, Walking


class WayObject(Object):
    """A path between nodes, or an edge of one, as an object of the answer."""

    __slots__ = ("length", "via")

    def __init__(self, length: int = 0, via: str = "") -> None:
        super().__init__(None, ())  # type: ignore[arg-type]  # it is no item
        self.length = length
        self.via = via


@dataclass(frozen=True, slots=True)
class WayFields:
    """The fields that show nodes of paths, with the steps that continue from them."""

    nodes: Sequence[tuple[SelectedField, Step]]
    edges: Sequence[tuple[SelectedField, Sequence[tuple[SelectedField, Step]], Sequence[EdgesStep]]]
    """Each with the fields of an edge that show its node, and the edge of a list."""

    @property
    def of_nodes(self) -> list[Step]:
        nodes = (step for _, nodes, _ in self.edges for _, step in nodes)
        return [*(step for _, step in self.nodes), *nodes]

    @property
    def of_edges(self) -> list[Step]:
        return [step for each in self.of_lists for step in dict.fromkeys(each.steps.values())]

    @property
    def of_lists(self) -> list[EdgesStep]:
        return [each for _, _, edges in self.edges for each in edges]


class WayArguments:
    """The client's arguments."""

    def __init__(self, run: Run, given: Mapping[str, Any], *, is_list: bool) -> None:
        """`given` are the arguments by their GraphQL names. Raises BadUserInput."""
        self.lists: Sequence[FollowedList] = named_lists(run.graph, given["via"])
        owners = [each.path.owner for each in self.lists if each.path.owner is not None]
        nodes = [node for each in self.lists for node in each.path.nodes]
        self.start = Vertex(*read_any_id_or_key(run.graph, "from", [*dict.fromkeys(owners)], given["from"]))
        self.end = Vertex(*read_any_id_or_key(run.graph, "to", [*dict.fromkeys(nodes)], given["to"]))
        for name, end in (("from", self.start), ("to", self.end)):
            if not end.record.is_node:
                raise BadUserInput(f"{name}: {end.record.name} is no node")
        self.most: int = given["maxLength"]
        if not 0 <= self.most <= MOST_LENGTH:
            raise BadUserInput(f"maxLength must be between 0 and {MOST_LENGTH}")
        first = given.get("first")
        self.wanted = 1 if not is_list else USUAL_WAYS if first is None else first
        if not 1 <= self.wanted <= run.limits.max_page_size:
            raise BadUserInput(f"first must be between 1 and {run.limits.max_page_size:,}")

    @property
    def against(self) -> list[AccessPath]:
        """The lists that follow the others against their direction; empty if any cannot be."""
        found = [each.against for each in self.lists]
        several = [path for each in found if each is not None for path in each.values()]
        return [] if None in found else [*dict.fromkeys(several)]

    @property
    def paths(self) -> list[AccessPath]:
        """All lists that may be read."""
        return [*dict.fromkeys([*(each.path for each in self.lists), *self.against])]

    @property
    def nodes(self) -> list[RecordType]:
        """The types of the nodes that are visited."""
        found = (node for path in self.paths for node in (path.owner, *path.nodes) if node is not None)
        return [*dict.fromkeys((self.start.record, self.end.record, *found))]


class WaysStep(Step):
    """Searches for paths between two nodes."""

    def __init__(
        self,
        selected: SelectedField,
        followed: Sequence[FollowedList],
        fields: WayFields,
        *,
        is_consistent: bool,
    ) -> None:
        """`followed` are all lists that a client may ask to follow."""
        self.suffix = selected.key
        self.selected = selected
        self._followed = followed
        self._fields = fields
        self._is_consistent = is_consistent
        self._is_list = isinstance(selected.kind, WaysBetween) and selected.kind.is_list
        self.is_alone = False
        """Whether nothing else in the operation reads its lists."""
        self.later = frozenset(range(AHEAD))

    @property
    def reads(self) -> Iterator[AccessPath]:
        """The lists that it may read."""
        return (path for each in self._followed for path in (each.path, *(each.against or {}).values()))

    @property
    def needed(self) -> Iterator[tuple[RecordType, frozenset[str]]]:
        """The fields that it needs of its lists' items, and of nodes with access rules."""
        for path in self.reads:
            yield path.record, path.ends_needed()
        for record in self.looked_for:
            names = [each.path.name for each in self._followed if each.path.owner is record]
            access = record.access
            yield record, frozenset(name for each in names if access for name in access.names("read", each))

    @property
    def looked_for(self) -> Iterator[RecordType]:
        """The types of nodes that it may read by key for access rules."""
        found = (node for path in self.reads for node in (path.owner, *path.nodes) if node is not None)
        return (record for record in dict.fromkeys(found) if record.access is not None)

    @property
    def looked_for_edges(self) -> Sequence[AccessPath]:
        """The lists whose edges it may read by key."""
        return [each.path for each in self._followed] if self._fields.of_lists else []

    def arguments(self, run: Run) -> WayArguments:
        """The arguments. Raises BadUserInput, or GraphQLError."""
        found = self.selected.told(run, lambda given: WayArguments(run, given, is_list=self._is_list))
        if self._is_consistent:
            refusal = next(filter(None, map(why_not_consistent, found.paths)), None)
            if refusal is not None:
                raise refusal
        return found

    # --- Running ------------------------------------------------------------------------------------------

    def start(self, run: Run, objects: Sequence[Object], round_trip: int, place: str) -> None:
        [root], place = objects, place + self.suffix
        try:
            arguments = self.arguments(run)
            lists = WalkedLists(run, [each.path for each in arguments.lists], arguments.against)
            lists.is_shared = not self.is_alone
        except Exception as error:
            root.found[self.selected] = error
            return
        root.found[self.selected] = None
        then = partial(self._came, run, lists, root, place)
        walk = _walk(arguments, lists, run.limits.read_budget, keeps_edges=bool(self._fields.of_lists))
        walking = Walking(lists, walk, place, self.later, then)
        walking.start(arguments.start, round_trip, arguments.end)

    def _came(
        self,
        run: Run,
        lists: WalkedLists,
        root: Object,
        place: str,
        ways: Ways | Exception,
        round_trip: int,
    ) -> None:
        if isinstance(ways, Exception):
            root.found[self.selected] = ways
            return
        if not ways.is_complete:
            told = f"no answer was found within {run.limits.read_budget:,} items: ask for a smaller maxLength"
            root.found[self.selected] = BadUserInput(told)
            return
        start = self.arguments(run).start
        shown = [self._shown(run, lists, start, way, round_trip, place) for way in ways.found]
        root.found[self.selected] = shown if self._is_list else shown[0] if shown else None

    def _shown(
        self, run: Run, lists: WalkedLists, start: Vertex, way: Way, round_trip: int, place: str
    ) -> WayObject:
        """Returns a path as an object, and starts the steps that continue from its nodes."""
        made, vertices = WayObject(len(way)), [start, *(each.end for each in way)]
        for selected, step in self._fields.nodes:
            nodes = made.found[selected] = [Object(*each) for each in vertices]
            step.start(run, nodes, round_trip, place)
        for selected, fields, of_lists in self._fields.edges:
            edges = made.found[selected] = [WayObject(via=list_name(each.declared)) for each in way]
            for field, step in fields:
                nodes = [Object(*each) for each in vertices[1:]]
                for edge, node in zip(edges, nodes, strict=True):
                    edge.found[field] = node
                step.start(run, nodes, round_trip, place)
            for shown in of_lists:
                found = [_edge(lists, each) for each in way]
                for edge, of_list in zip(edges, found, strict=True):
                    edge.found[shown.selected] = of_list
                shown.start(run, found, place, round_trip)
        return made

    # --- What it costs ------------------------------------------------------------------------------------

    def cost(self, run: Run, starts: Starts) -> tuple[StepCost, Below]:
        try:
            arguments = self.arguments(run)
            most = self.most(run, arguments)
        except Exception:
            return StepCost(), ()  # nothing is read; the answer says why
        chain = most.round_trips
        cost = StepCost(
            most.requests,
            0,
            set(),
            max(starts.round_trips) + chain - 1,
            most.items,
            most.read_units,
            is_open=True,
        )
        for record in undecided(run, arguments.paths, arguments.nodes):
            keys = keys_cost([record], starts.after(chain, at_least=0), most.items + 2)
            cost.add(replace(keys, apart=most.items + 2))
        found = starts.after(chain, at_least=0).times(arguments.wanted * (arguments.most + 1))
        for _ in self._fields.of_lists:
            cost.add(keys_cost([each.path.record for each in arguments.lists], found))
        below = [(step, found) for step in self._fields.of_nodes]
        below += [(step, found.after(1, at_least=0)) for step in self._fields.of_edges]
        return cost, below

    def most(self, run: Run, arguments: WayArguments) -> WalkMost:
        """The most that the search takes."""
        paths = arguments.paths
        lists = WalkedLists(run, [each.path for each in arguments.lists], arguments.against)
        is_decided = not undecided(run, paths, arguments.nodes)
        budget = run.limits.read_budget
        return WalkMost.of(run, lists, paths, budget, max(1, arguments.most), is_decided=is_decided)

    def bound_key(self, run: Run) -> Hashable:
        """The values that decide its cost."""
        try:
            arguments = self.arguments(run)
        except Exception:
            return None
        return tuple(arguments.paths), arguments.most, arguments.wanted, tuple(arguments.nodes)

    # --- How it is explained --------------------------------------------------------------------------------

    def explained(self, view: View, where: Where) -> Iterator[Explained]:
        if not view.may_go_on():
            return
        place, [node, *_] = where.place + self.suffix, self.selected.nodes
        shown = Explained(
            "walk", replace(where, place=place), (), arguments=arguments_text(node), source=self
        )
        yield shown
        try:
            arguments = self.arguments(view.run)
        except Exception as error:
            shown.problem = message_of(error)
            return
        shown.types = tuple(each.name for each in arguments.nodes)
        budget = view.run.limits.read_budget
        shown.page = "from both ends" if arguments.against else "from the first node"
        for path in arguments.paths:
            owner = path.owner.name if path.owner else ""
            said = f"up to {arguments.most} levels, {budget:,} items in all"
            step = Explained(
                "read list",
                Where(place, f"the key of {owner}", where.round_trip, is_many=True),
                (path.record.name,),
                attributes=view.attributes(path.record),
                path=path,
                page=said,
                source=self,
            )
            step.requests = (walked_request(view, path, budget),)
            shown.steps.append(step)
        after = Where(place, "the nodes of the path", where.round_trip + 1, is_many=True)
        if self._fields.of_lists:
            edges = dict.fromkeys(each.path.record for each in arguments.lists)
            shown.steps.append(
                joined([view.get(each, replace(after, key="the edges of the path")) for each in edges])
            )
        for child in self._fields.of_nodes:
            shown.steps += child.explained(view, after)
        for child in self._fields.of_edges:
            shown.steps += child.explained(view, after.later())


def _edge(lists: WalkedLists, stretch: Stretch) -> ViaEdge:
    """An edge of a path as an edge of its list."""
    if stretch.is_forward:
        found: ViaEdge = stretch.edge.object()
        return found
    connection = lists.connection(Wanted(stretch.declared, stretch.start, 1))
    made: ViaEdge = stretch.edge.object_in(connection, stretch.end)
    return made


def _walk(arguments: WayArguments, lists: WalkedLists, budget: int, *, keeps_edges: bool) -> Walk[Ways]:
    """The search, which does not find what the viewer may not see."""
    start, end = arguments.start, arguments.end
    if lists.is_hidden(start) or lists.is_hidden(end):
        return Ways()

    def followed(node: Vertex) -> list[Followed]:
        return [Followed(path, path) for path in lists.of(node)]

    def against(node: Vertex) -> list[Followed]:
        found = ((each.path, (each.against or {}).get(node.record)) for each in arguments.lists)
        return [Followed(read, path) for path, read in found if read is not None]

    def may_go(node: Vertex, declared: AccessPath) -> bool:
        return declared in lists.of(node)

    back = against if arguments.against else None
    return (
        yield from shortest(
            start,
            end,
            followed,
            back,
            arguments.most,
            Budget(budget),
            arguments.wanted,
            may_go,
            keeps_edges=keeps_edges,
        )
    )
