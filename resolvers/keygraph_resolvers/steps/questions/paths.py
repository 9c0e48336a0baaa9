"""How one node is connected to another: a search from both ends by keys alone. Nodes are read only to be objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ref

from keygraph.errors import BadUserInput, again
from keygraph.model.paths import AccessPath, ListOfIds, WalkedPath, with_edges
from keygraph.model.records import RecordType
from keygraph.resolve.walks import FollowedList
from keygraph.walks.shortest import Directions, Followed, NodePath, PathEdge, ShortestPaths, shortest
from keygraph.walks.walk import Budget, Vertex, Walk
from keygraph_resolvers.engine.requests import Reads, Start
from keygraph_resolvers.engine.worst import KEY_OF, Described, StepStart, Times, Worst, weakly
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.naming.global_ids import read_any_id_or_key
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.read.walked import ViaEdge
from keygraph_resolvers.schema.field_kinds import PathsBetween
from keygraph_resolvers.schema.walk_types import MOST_LENGTH, USUAL_PATHS, list_name, named_lists
from keygraph_resolvers.steps.lists import why_not_consistent
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.steps.step import Step
from keygraph_resolvers.steps.walks.walk import WalkedLists, Walking, WalkPage, continue_edges
from keygraph_resolvers.steps.walks.worst import WalkedList, WalkMost, needed_of

_KEYS = ("the nodes of the path", "the edges of the path")


class PathObject(Object):
    """A path between nodes, or an edge of one, as an object of the answer."""

    __slots__ = ("length", "via")

    def __init__(self, length: int = 0, via: str = "") -> None:
        super().__init__(None, ())  # type: ignore[arg-type]  # it is no item
        self.length = length
        self.via = via


class PathArguments:
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
        self.wanted = 1 if not is_list else USUAL_PATHS if first is None else first
        if not 1 <= self.wanted <= run.limits.max_page_size:
            raise BadUserInput(f"first must be between 1 and {run.limits.max_page_size:,}")

    @property
    def against(self) -> list[AccessPath]:
        """The lists that follow the others against their direction; empty if any cannot be."""
        found = [each.against for each in self.lists]
        several = [path for each in found if each is not None for path in each.values()]
        return [] if None in found else [*dict.fromkeys(several)]

    @property
    def paths(self) -> list[WalkedPath]:
        return [*dict.fromkeys([*(each.path for each in self.lists), *self.against])]

    @property
    def nodes(self) -> list[RecordType]:
        found = (node for path in self.paths for node in (path.owner, *path.nodes) if node is not None)
        return [*dict.fromkeys((self.start.record, self.end.record, *found))]


@dataclass(eq=False)
class PathsStep(Step):
    """Searches for paths between two nodes."""

    selected: SelectedField
    followed: Sequence[FollowedList]
    """All lists that a client may ask to follow."""
    page: WalkPage
    is_consistent: bool
    is_alone: bool = False
    """Whether nothing else in the operation reads its lists."""

    def __post_init__(self) -> None:
        selected = self.selected
        self.suffix = selected.key
        self._is_list = isinstance(selected.kind, PathsBetween) and selected.kind.is_list
        self._node = Described(
            kind="walk",
            step=ref(self),
            field=selected,
            page=weakly(self._page_text),
            arguments=weakly(self.arguments),
            lists=weakly(self._lists),
        )

    @property
    def reads(self) -> Iterator[WalkedPath]:
        """The lists that it may read."""
        return (path for each in self.followed for path in (each.path, *(each.against or {}).values()))

    @property
    def needed(self) -> Iterator[tuple[RecordType, frozenset[str]]]:
        """The fields that it needs of its lists' items, and of nodes with access rules."""
        yield from needed_of(self.reads)
        for record in self.looked_for:
            names = [each.path.name for each in self.followed if each.path.owner is record]
            access = record.access
            yield record, frozenset(name for each in names if access for name in access.names("read", each))

    @property
    def looked_for(self) -> Iterator[RecordType]:
        """The types of nodes that it may read by key for lists of ids and access rules."""
        reads = [*self.reads]
        found = (node for path in reads for node in (path.owner, *path.nodes) if node is not None)
        read = {path.owner for path in reads if isinstance(path, ListOfIds)}
        return (record for record in dict.fromkeys(found) if record.access is not None or record in read)

    @property
    def looked_for_edges(self) -> Sequence[AccessPath]:
        """The lists whose edges it may read by key."""
        return with_edges(each.path for each in self.followed) if self.page.vias else []

    def arguments(self, run: Run) -> PathArguments:
        """The arguments. Raises BadUserInput, or GraphQLError."""
        found = self.selected.cached(run, lambda given: PathArguments(run, given, is_list=self._is_list))
        if self.is_consistent:
            refusal = next(filter(None, map(why_not_consistent, found.paths)), None)
            if refusal is not None:
                raise again(refusal)
        return found

    # --- Running ------------------------------------------------------------------------------------------

    def run(self, op: Run, objects: Sequence[Object]) -> Reads[None]:
        [root] = objects
        try:
            arguments = self.arguments(op)
            paths = [each.path for each in arguments.lists]
            lists = WalkedLists.shared(op, paths, arguments.against, is_alone=self.is_alone)
        except Exception as error:
            root.found[self.selected] = as_value(error)
            return
        root.found[self.selected] = None
        budget = Budget(op.limits.read_budget)
        walk = _walk(arguments, lists, budget, keeps_edges=bool(self.page.vias))
        result = yield from Walking(lists, walk, budget).run(arguments.start, arguments.end)
        if isinstance(result, Exception):
            root.found[self.selected] = result
            return
        if not result.is_complete:
            message = (
                f"no answer was found within {op.limits.read_budget:,} items: ask for a smaller maxLength"
            )
            root.found[self.selected] = BadUserInput(message)
            return
        objects = []
        for path in result.found:
            objects.append((yield from self._as_object(op, lists, arguments.start, path)))
        root.found[self.selected] = objects if self._is_list else objects[0] if objects else None

    def _as_object(self, op: Run, lists: WalkedLists, start: Vertex, path: NodePath) -> Reads[PathObject]:
        """Returns a path as an object, and starts the steps that continue from its nodes."""
        made, vertices = PathObject(len(path)), [start, *(each.end for each in path)]
        for selected, step in self.page.nodes:
            nodes = made.found[selected] = [Object(*each) for each in vertices]
            yield Start(step, nodes)
        for selected, fields, of_lists in self.page.edges:
            edges = made.found[selected] = [PathObject(via=list_name(each.declared)) for each in path]
            found = [(each, [_edge(lists, part) for part in path]) for each in of_lists]
            yield continue_edges(op, edges, vertices[1:], fields, found)
        return made

    # --- What it costs ------------------------------------------------------------------------------------

    def worst(self, run: Run) -> Worst:
        yield self._node
        try:
            arguments = self.arguments(run)
            paths = [each.path for each in arguments.lists]
            lists = WalkedLists(run, paths, arguments.against)
            levels, budget = max(1, arguments.most), run.limits.read_budget
            most = WalkMost(lists, arguments.paths, arguments.nodes, budget, levels)
        except Exception:
            return  # nothing is read; the answer says why
        yield from most.requests(1, most.items + 2)
        yield Times(arguments.wanted * (arguments.most + 1))
        edges = tuple(path.record for path in with_edges(paths))
        yield from self.page.worst(_KEYS, edges)

    # --- How it is explained --------------------------------------------------------------------------------

    def _page_text(self, run: Run, _: str) -> str:
        return "from both ends" if self.arguments(run).against else "from the first node"

    def _lists(self, run: Run) -> Iterator[StepStart]:
        """Yields the lists that the search may follow."""
        arguments, budget = self.arguments(run), run.limits.read_budget
        page = f"up to {arguments.most} levels, {budget:,} items in all"
        for path in arguments.paths:
            yield StepStart(WalkedList(path, budget, page), 2, key=KEY_OF)


def _edge(lists: WalkedLists, edge: PathEdge) -> ViaEdge | None:
    """An edge of a path as an edge of its list; None for an id."""
    if isinstance(edge.declared, ListOfIds):
        return None
    if edge.is_forward:
        found: ViaEdge = edge.edge.object()
        return found
    made: ViaEdge = edge.edge.object_in(lists.connection(edge.declared, edge.start), edge.end)
    return made


def _walk(
    arguments: PathArguments, lists: WalkedLists, budget: Budget, *, keeps_edges: bool
) -> Walk[ShortestPaths]:
    """The search, which does not find what the viewer may not see."""
    start, end = arguments.start, arguments.end
    if lists.is_hidden(start) or lists.is_hidden(end):
        return ShortestPaths()

    def forward(node: Vertex) -> list[Followed]:
        return [Followed(path, path) for path in lists.of(node)]

    def back(node: Vertex) -> list[Followed]:
        found = ((each.path, (each.against or {}).get(node.record)) for each in arguments.lists)
        return [Followed(read, path) for path, read in found if read is not None]

    def may_go(node: Vertex, declared: WalkedPath) -> bool:
        return declared in lists.of(node)

    directions = Directions(forward, back if arguments.against else None, may_go)
    most, wanted = arguments.most, arguments.wanted
    return (yield from shortest(start, end, directions, most, budget, wanted, keeps_edges=keeps_edges))
