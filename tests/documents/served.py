"""What the tests of the documents ask: a graph served from a store, and the requests that an answer took."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from keygraph import Graph
from keygraph.dynamo.store import BatchWrite, Store
from keygraph.engines.dynamodb.requests import Wire, render
from keygraph.tables.interchange import Interchange
from keygraph_resolvers import OperationRequest, Service
from tests.schemas import schema_of
from tests.tracing import TracingStore

EXAMPLES = Path(__file__).parents[2] / "examples/keygraph_examples"

Pattern: TypeAlias = tuple[str, str, Any, list[str]]
"""A name, a query, its answer, and the requests that it takes; none where the test does not say them."""


def blocks(text: str) -> list[list[str]]:
    """The lines of each block of a text. An indented line continues the one before; a block may begin with a comment."""
    lines = text.strip().replace("\n  ", " ")
    return [re.sub("^# .*\n", "", block).split("\n") for block in lines.split("\n\n")]


def patterns(text: str) -> list[Pattern]:
    """Of blocks of a name, a query, its answer in JSON, and the requests, in any order."""
    return [(name, query, json.loads(answer), sorted(sent)) for name, query, answer, *sent in blocks(text)]


@dataclass
class Served:
    """A graph that is served from a store, which remembers what was asked of it."""

    graph: Graph
    store: Store
    tracer: TracingStore = field(init=False)
    service: Service = field(init=False)

    def __post_init__(self) -> None:
        self.tracer = TracingStore(self.store)
        self.service = Service(schema_of(self.graph), self.tracer, secret=b"of the documents' tests")

    async def load(self, *lines: str) -> None:
        """Writes items that are given as lines of JSON."""
        interchange = Interchange(self.graph)
        await self.store.send(BatchWrite(tuple(interchange.read(line) for line in lines)))

    async def ask(self, document: str, operation: str | None = None) -> Any:
        """The data of an answer without errors; the requests are those of this answer alone."""
        self.tracer.requests.clear()
        answer = await self.service.execute(OperationRequest(document, operation_name=operation))
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    async def answers(self, pattern: Pattern) -> None:
        """Holds an answer, and its requests, against what a pattern says."""
        _, query, answer, sent = pattern
        assert await self.ask(query) == answer
        assert not sent or self.sent == sent

    @property
    def wires(self) -> list[Wire]:
        """DynamoDB's own requests of the last answer."""
        table = self.graph.table
        return [wire for request in self.tracer.requests for wire in render(request, table)]

    @property
    def sent(self) -> list[str]:
        """The requests of the last answer as a person writes them down, in an order that says nothing."""
        return sorted(map(written_down, self.wires))


def lines_of(*names: str) -> list[str]:
    """The lines of files of the examples."""
    return [line for name in names for line in (EXAMPLES / name).read_text("utf-8").splitlines()]


def written_down(wire: Wire) -> str:
    """A read in one line, its names and values in their places.

    `Query GSI1: GSI1PK = USER#12345 AND begins_with(GSI1SK, ORDER#)`, `GetItem USER#12345 / USER#12345`;
    a query that reads against the sort key ends in `, backward`, one that filters says its filter, and one that only
    counts is a `Count`.
    """
    body = wire.body
    if wire.operation == "GetItem":
        return f"GetItem {_key(body['Key'])}"
    if wire.operation == "BatchGetItem":
        [asked] = body["RequestItems"].values()
        return f"BatchGetItem {', '.join(sorted(_key(key) for key in asked['Keys']))}"
    what = "Count" if body.get("Select") == "COUNT" else "Query"
    where = f"{what} {body['IndexName']}" if "IndexName" in body else what
    line = f"{where}: {_spelt_out(body['KeyConditionExpression'], body)}"
    if "FilterExpression" in body:
        line += f", of these {_spelt_out(body['FilterExpression'], body)}"
    return line if body.get("ScanIndexForward", True) else f"{line}, backward"


def _key(key: Mapping[str, Any]) -> str:
    return " / ".join(str(value) for typed in key.values() for value in typed.values())


def _spelt_out(expression: str, body: Mapping[str, Any]) -> str:
    texts = dict(body["ExpressionAttributeNames"])
    for placeholder, typed in body["ExpressionAttributeValues"].items():
        [texts[placeholder]] = map(str, typed.values())
    return re.sub(r"[#:]\w+", lambda found: texts[found[0]], expression)
