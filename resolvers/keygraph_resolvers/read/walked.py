"""The results of walks, as connections: their arguments, their edges, and the cursors that continue them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from keygraph.errors import BadUserInput
from keygraph.keys.types import INT_MAX
from keygraph.lists.extent import Located, Place
from keygraph.resolve.walks import NodeWalk
from keygraph.walks.reach import Standing
from keygraph.walks.walk import Vertex
from keygraph_resolvers.naming.names import connection_prefix
from keygraph_resolvers.read.connection import Edge, ListCursors, page_size
from keygraph_resolvers.read.cursors import Seal, key_value, plain_value
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run

_MOST_IN_ALL_EDGES = 1_000
"""The most nodes whose discovery the cursors of all edges record. With more, only the last edge's cursor does."""
_LONGEST_CURSOR = 900_000
"""The most characters of a cursor: a request with it must not be larger than servers usually allow, a megabyte."""


class WalkCount(NamedTuple):
    """The count made for the first page: a page after it does not count again."""

    depth: int
    total: int | None
    """None: more than the budget allows."""


class Behind(NamedTuple):
    """The contents of a cursor of a reach."""

    number: int
    """How many nodes come before."""
    standing: Standing | None = None
    """Where the walk continues; None: at its beginning."""
    skipped: int = 0
    """How many nodes that are found from there on come before too."""
    counted: WalkCount | None = None


class WalkEdge(Object):
    """A node that a walk has found, with details of how it was found."""

    __slots__ = ("_cursor", "distance", "paths", "score")

    def __init__(
        self,
        cursor: Callable[[], str],
        distance: int | None = None,
        score: float | None = None,
        paths: int | None = None,
    ) -> None:
        super().__init__(None, ())  # type: ignore[arg-type]  # it is no item
        self._cursor = cursor
        self.distance = distance
        self.score = score
        self.paths = None if paths is None or paths > INT_MAX else paths

    @property
    def cursor(self) -> str:
        return self._cursor()


class ViaEdge(Edge):
    """An edge that a walk has followed."""

    __slots__ = ("is_read_elsewhere",)

    def __init__(self, cursors: ListCursors, located: Located, *, is_read_elsewhere: bool = False) -> None:
        """`is_read_elsewhere`: it was read in another list, from its end."""
        super().__init__(cursors, located)
        self.is_read_elsewhere = is_read_elsewhere

    @property
    def type_name(self) -> str:
        return f"{connection_prefix(self.cursors.query.path)}Edge"


@dataclass(eq=False)
class WalkEnds:
    """The place of a page of a walk's results. Its cursors are made when they are requested."""

    _goes_on: bool
    """Whether something may follow it."""
    has_previous_page: bool
    _start: Callable[[], str] | None
    _end: Callable[[], str] | None
    _is_whole: bool = True
    """Whether everything that its order needs was read."""

    @property
    def start_cursor(self) -> str | None:
        return None if self._start is None else self._start()

    @cached_property
    def end_cursor(self) -> str | None:
        return None if self._end is None else self._end()

    @cached_property
    def _is_cut(self) -> bool:
        """Whether there is more than a cursor holds."""
        return self._goes_on and len(self.end_cursor or "") > _LONGEST_CURSOR

    @property
    def has_next_page(self) -> bool:
        return self._goes_on and not self._is_cut

    @property
    def is_complete(self) -> bool:
        return self._is_whole and not self._is_cut


class WalkArguments:
    """A client's arguments of a walk: the same for all owners, and not part of a run."""

    def __init__(self, run: Run, walk: NodeWalk, given: Mapping[str, Any]) -> None:
        """`given` are the arguments by their GraphQL names. Raises BadUserInput."""
        self.size, _ = page_size(run.limits, given)
        self.after: str | None = given.get("after")
        most = walk.options.depth
        distance = given.get("maxDistance")
        if distance is not None and most is not None and not 1 <= distance <= most:
            raise BadUserInput(f"maxDistance must be between 1 and {most:,}")
        self.depth: int = distance or most or len(walk.levels)
        limit = run.limits.read_budget
        self.budget = min(walk.options.budget or limit, limit)


class WalkCursors:
    """Makes and reads the cursors of one walk of one node."""

    def __init__(self, run: Run, walk: NodeWalk, owner: tuple[str, ...]) -> None:
        names = [[each.name for each in level] for level in walk.levels]
        self._seal: Seal = run.cursors.seal(["walk", walk.owner.name, walk.name, names, owner])
        self._rights = run.rights
        self._types = run.graph.types
        self.counted: WalkCount | None = None
        """The count of the nodes that are reached, which cursors hold, if it is known."""

    def of(self, behind: Behind, *, is_last: bool = True, is_hidden: bool = False) -> str:
        """Returns a cursor. Only the one of a page's last edge holds everything that a walk needs to continue. `is_hidden`:
        the walk has stopped at an item that the viewer need not see."""
        number, standing, skipped, counted = behind
        size = 0 if standing is None else len(standing.digests) + len(standing.owners) + len(standing.found)
        if standing is None or not (is_last or size <= _MOST_IN_ALL_EDGES):
            return self._seal.sealed([number, number, counted])
        place = standing.after
        after = None if place is None else [place.shard, *map(plain_value, place.position)]
        digests = b64encode(b"".join(sorted(standing.digests))).decode()
        owners, found = (
            [[each.record.name, *each.identity] for each in nodes]
            for nodes in (standing.owners, standing.found)
        )
        held = [number, skipped, counted, standing.distance, owners, found, digests]
        held += [standing.path, self._rights]
        return self._seal.sealed(held, [after]) if is_hidden else self._seal.sealed([*held, after])

    def behind(self, text: str) -> Behind:
        """Returns the contents of a cursor. Raises BadUserInput if it is not one of this walk.

        A walk begins anew if somebody with other rights made the cursor: what it has found may lie behind hidden nodes.
        """
        number, skipped, counted, *rest = self._seal.opened("after", text)
        counted = counted and WalkCount(*counted)
        if not rest:
            return Behind(number, None, skipped, counted)
        distance, owners, found, digests, path, rights, after = rest
        if rights != self._rights:
            return Behind(0)
        joined = b64decode(digests)
        place = None if after is None else Place(after[0], tuple(map(key_value, after[1:])))
        return Behind(
            number,
            Standing(
                distance,
                self._vertices(owners),
                self._vertices(found),
                frozenset(joined[start : start + 8] for start in range(0, len(joined), 8)),
                path,
                place,
            ),
            skipped,
            counted,
        )

    def of_node(self, node: Vertex, number: int) -> str:
        """Returns the cursor of a ranked node with `number` nodes before it."""
        return self._seal.sealed([number, node.record.name, *node.identity])

    def node(self, text: str) -> tuple[int, Vertex]:
        """Returns the contents of a ranked node's cursor. Raises BadUserInput if it is not one of this walk."""
        number, name, *identity = self._seal.opened("after", text)
        return number, Vertex(self._types[name], tuple(identity))

    def _vertices(self, plain: Sequence[Sequence[str]]) -> list[Vertex]:
        return [Vertex(self._types[each[0]], tuple(each[1:])) for each in plain]
