"""What a naive reader finds between two nodes: every shortest way, of which the server may show any."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from keygraph.graph import Graph
from keygraph.limits import Limits
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.schema.walk_types import list_name
from keygraph_resolvers.steps.questions.paths import PathArguments
from tests.resolvers.naive_lists import Thing
from tests.resolvers.naive_walks import NaiveWalks, Step, ViaEntry

Ask: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Asks the server a document with variables."""


@dataclass(eq=False)
class WayEdge:
    thing: Thing
    via: str
    edge: ViaEntry | None


@dataclass(eq=False)
class Way:
    nodes: Sequence[Thing]
    edges: Sequence[WayEdge]

    @property
    def length(self) -> int:
        return len(self.edges)


class _Run:
    """What arguments know of a run."""

    limits = Limits()

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class NaiveWays:
    def __init__(self, graph: Graph, walks: NaiveWalks, ask: Ask) -> None:
        self._run = cast(Any, _Run(graph))
        self._walks = walks
        self._ask = ask

    async def found(self, given: Mapping[str, Any], *, is_list: bool) -> Any:
        """The way or the ways that the server shows, if each is a shortest one, and none is missing or there twice."""
        # This refuses what is no id, and the numbers; it decides nothing here.
        asked = PathArguments(self._run, given, is_list=is_list)
        every = self._walks.ways(asked.start, asked.end, [each.path for each in asked.lists], asked.most)
        by_names = {names: way for way in every for names in [_names(asked.start, way)]}
        several = {ids for ids, _ in by_names}
        shown = [] if not every else await self._shown(given, is_list=is_list)
        assert len({ids for ids, _ in shown}) == len(shown) == min(asked.wanted, len(several)), (
            f"{len(shown)} ways are shown of {len(several)}"
        )
        ways = [_way(Thing(*asked.start), by_names[each]) for each in shown]
        return ways if is_list else ways[0] if ways else None

    async def _shown(self, given: Mapping[str, Any], *, is_list: bool) -> list[tuple[Any, Any]]:
        """The ids of the nodes on the ways that the server shows, and the names of the lists between them."""
        field, first = ("paths", ", first: $first") if is_list else ("path", "")
        document = f"""query ($from: ID!, $to: ID!, $via: [ListName!]!, $most: Int!{", $first: Int" if is_list else ""}) {{
          shown: {field}(from: $from, to: $to, via: $via, maxLength: $most{first}) {{ nodes {{ id }} edges {{ via }} }}
        }}"""
        variables = {
            "from": given["from"],
            "to": given["to"],
            "via": [each.value for each in given["via"]],
            "most": given["maxLength"],
            "first": given.get("first"),
        }
        shown = (await self._ask(document, variables))["data"]["shown"]
        return [
            (tuple(node["id"] for node in way["nodes"]), tuple(edge["via"] for edge in way["edges"]))
            for way in (shown if is_list else [shown] if shown else [])
        ]


def _names(start: Any, way: Sequence[Step]) -> tuple[Any, Any]:
    nodes = (start, *(step.node for step in way))
    return tuple(global_id(*node) for node in nodes), tuple(list_name(step.path) for step in way)


def _way(start: Thing, steps: Sequence[Step]) -> Way:
    nodes = [start, *(Thing(*step.node) for step in steps)]
    edges = [
        WayEdge(Thing(*step.node), list_name(step.path), cast("ViaEntry | None", step.entry))
        for step in steps
    ]
    return Way(nodes, edges)
