"""The pages in `docs/` that show how a model's queries become requests: what is generated in them.

A page is written by hand, but for three things. The block after each GraphQL block has the requests that this query
sends when it is asked of the model's sample, after `keygraph summarize`. The table after `<!-- paths -->` has every access path of the model with
its request. A console block that begins with `keygraph describe` has what that command prints, without the descriptions
of the types. After a change,

    python -m tests.documents.pages

writes both anew.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from keygraph import Graph
from keygraph.dynamo.store import BatchWrite, CreateTable, Request, Store
from keygraph.engines.dynamodb.requests import render
from keygraph.engines.open import open_store
from keygraph.lists.describe import DescribedRequest, key_request, path_request
from keygraph.names import camel
from keygraph_resolvers.naming.names import field_name
from tests.documents.round_trips import RoundTrips
from tests.documents.samples import NAMES, graph_of, sample_of
from tests.documents.served import Served, written_down
from tests.keygraph.summarized import summarize
from tests.server.command_line import run

DOCS = Path(__file__).parents[2] / "docs"

_QUERY = re.compile(
    r"^```graphql\n(?P<query>.*?)^```\n\n```text\n(?P<requests>.*?)^```$", re.MULTILINE | re.DOTALL
)
_PATHS = re.compile(r"(?<=^<!-- paths -->\n)(?:\|.*\n)*", re.MULTILINE)
_DESCRIBE = re.compile(
    r"^```console\n\$ keygraph describe --model (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_TYPE = re.compile(r"^(\w+ \([a-z ]+\)\n)(?:.+\n)?", re.MULTILINE)
"""The line that names a type, and the line below it that describes it."""


async def rewritten(page: str, graph: Graph, store: Store) -> str:
    """The page with what is generated in it, as the graph over a store with its sample has it."""
    parts, end = [], 0
    for found in _QUERY.finditer(page):
        requests = await _requests(found["query"], graph, store)
        parts += [page[end : found.start("requests")], requests]
        end = found.end("requests")
    made = _PATHS.sub(lambda _: _paths(graph), "".join([*parts, page[end:]]))
    return _DESCRIBE.sub(
        lambda found: f"```console\n$ keygraph describe --model {found[1]}\n{described(found[1])}```", made
    )


def described(model: str) -> str:
    """What `keygraph describe` prints of a model, without the descriptions of its types."""
    lines = (line.rstrip() for line in run("describe", "--model", model).stdout.splitlines())
    return _TYPE.sub(r"\1", "\n".join(lines) + "\n")


async def _requests(query: str, graph: Graph, store: Store) -> str:
    """The requests that a query sends, a line each; those of one round trip have its number."""
    trips = RoundTrips(store)
    await Served(graph, trips).ask(query)
    return "".join(
        f"{number}. {line}\n"
        for number, requests in enumerate(trips.rounds, 1)
        for line in _lines(requests, graph)
    )


def _lines(requests: list[Request[object]], graph: Graph) -> list[str]:
    return sorted(written_down(wire) for request in requests for wire in render(request, graph.table))


def _paths(graph: Graph) -> str:
    rows = ["| in GraphQL | becomes |", "| --- | --- |"]
    rows += [f"| `{asked}` | {_cell(request)} |" for asked, request in _described(graph)]
    return "".join(f"{row}\n" for row in rows)


def _described(graph: Graph) -> Iterator[tuple[str, DescribedRequest]]:
    """Everything that can be asked for, with its request: nodes by key, the lists at the root, those of nodes."""
    for node in graph.nodes:
        if not node.is_virtual:
            yield field_name(node), key_request(graph, node)
    for path in graph.paths:
        owner = "" if path.owner is None else f"{path.owner.name}."
        yield f"{owner}{camel(path.name)}", path_request(graph, path)


def _cell(request: DescribedRequest) -> str:
    filter_ = f", of these {request.filter}" if request.filter else ""
    text = f"{request.target}: {request.keys}{filter_}".replace("|", "\\|")
    return f"`{text}`"


async def _write(name: str) -> None:
    graph, page = graph_of(name), DOCS / f"{name}.md"
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(f"sqlite:{folder}/sample.db", graph.table) as store:
            await store.send(CreateTable())
            await store.send(BatchWrite(tuple(sample_of(name))))
            await summarize(graph, store, Path(folder))
            page.write_text(await rewritten(page.read_text("utf-8"), graph, store), "utf-8")


if __name__ == "__main__":
    for each in NAMES:
        asyncio.run(_write(each))
