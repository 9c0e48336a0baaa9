"""A DynamoDB that answers anything: whatever comes back, no client gets INTERNAL, and no traceback is logged.

FUZZ_EXAMPLES is how many operations each model is asked; the default is for every run of the tests.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
from graphql import OperationDefinitionNode, parse

import keygraph_examples
from keygraph.dynamo.store import BatchWrite, CreateTable, DeleteTable
from keygraph.engines.dynamodb import gate
from keygraph.engines.dynamodb.engine import open_dynamodb
from keygraph.engines.dynamodb.retrying import Backoff
from keygraph.engines.dynamodb.transport import TransportName
from keygraph_server.app import create_app
from keygraph_server.settings import read_settings
from tests.asgi import running
from tests.documents.samples import graph_of, sample_of
from tests.keygraph.faulty import Body, FaultyProxy
from tests.server.command_line import run

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "30"))
FOLDER = Path(keygraph_examples.__file__).parent
MODELS = sorted(file.stem for file in FOLDER.glob("*.graphql"))


def _nested(levels: int) -> Any:
    made: Any = {"S": "x"}
    for level in range(levels):
        made = {"L": [made]} if level % 2 else {"M": {"a": made}}
    return made


JUNK: list[Any] = [
    None, True, False, 0, 1, -1, 7.5, 2**31, 2**63, 1e308, "", "x", "USER", "1e999", "NaN", "é" * 2000, [], {}, [[]], [None],
    {"S": 5}, {"S": None}, {"N": "1e999"}, {"N": 5}, {"N": "0" * 5000}, {"N": "7"}, {"B": 10**15}, {"B": "?"}, {"B": "AA=="},
    {"SS": "abc"}, {"SS": [1]}, {"NS": ["x"]}, {"BOOL": "no"}, {"BOOL": True}, {"M": []}, {"L": {}}, {"X": 1}, {"NULL": True},
    {"S": "a", "N": "1"}, _nested(40), _nested(100), _nested(450),
]  # fmt: skip
REFUSALS = [
    "ItemCollectionSizeLimitExceededException", "ReplicatedWriteConflictException", "ResourceInUseException",
    "KMSAccessDeniedException", "KMSInvalidStateException", "LimitExceededException", "NobodyKnowsThis", "<script>", "",
    "TransactionCanceledException", "TransactionConflictException", "ConditionalCheckFailedException",
    "IdempotentParameterMismatchException", "DuplicateItemException", "InternalServerError", "ResourceNotFoundException",
]  # fmt: skip
REASONS = [
    "None",
    "ConditionalCheckFailed",
    "ItemCollectionSizeLimitExceeded",
    "TransactionConflict",
    "ValidationError",
    "?",
]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every member of the JSON, with what it is a member of."""
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, member in members:
        yield value, key
        yield from places(member)


class MalformedDynamoDB(FaultyProxy):
    """Stands before a real one: first it answers as that does, then what it has heard, with something else in it."""

    def __init__(self, upstream: str, seed: int) -> None:
        super().__init__(upstream, seed, 0.0, ())
        self.heard: defaultdict[str, list[bytes]] = defaultdict(list)
        self.is_honest = True

    async def done(self, operation: str, body: Body, fields: dict[str, str]) -> tuple[int, bytes]:
        if self.is_honest:
            status, answer = await super().done(operation, body, fields)
            if status == 200:
                self.heard[operation].append(answer)
            return status, answer
        chance = self.random.random()
        if chance < 0.3 and operation in self.heard:
            return 200, self.random.choice(self.heard[operation])
        if chance < 0.45:
            return self._refusal(body)
        if chance < 0.5:
            return 200, self.random.choice(
                [b"", b"{", b"[]", b"5", b"null", b'{"Count": NaN}', b"[" * 5000, b'{"a":"\\ud800"}']
            )
        answer = orjson.loads(self.random.choice(self.heard[operation] or [b"{}"]))
        self._spoil(answer, self.random.choice([1, 1, 1, 2, 5]))
        return 200, json.dumps(answer).encode()

    def _spoil(self, answer: Body, times: int) -> None:
        members = [*places(answer), (answer, self.random.choice(["Item", "Attributes", "LastEvaluatedKey"]))]
        for holder, key in self.random.choices(members, k=times):
            if self.random.random() < 0.2:
                if isinstance(holder, dict):
                    holder.pop(key, None)
                else:
                    del holder[key:]
            elif isinstance(holder, dict) or key < len(holder):
                holder[key] = self.random.choice(JUNK)

    def _refusal(self, body: Body) -> tuple[int, bytes]:
        choose = self.random.choice
        count = choose([0, 1, len(body.get("TransactItems", ()))])
        reasons = [
            {"Code": choose(REASONS), "Message": "no", **choose([{}, {"Item": {"PK": {"S": "x"}}}])}
            for _ in range(count)
        ]
        told = {"__type": f"a#{choose(REFUSALS)}", "message": "no", "CancellationReasons": reasons}
        if self.random.random() < 0.5:
            self._spoil(told, 1)
        return choose([400, 400, 400, 403, 404, 413, 301, 500]), json.dumps(told).encode()


def operations_of(model: str) -> tuple[str, list[str]]:
    documents = (FOLDER / f"{model}.graphql").read_text("utf-8")
    definitions = parse(documents).definitions
    return documents, [
        each.name.value for each in definitions if isinstance(each, OperationDefinitionNode) and each.name
    ]


@pytest.fixture
def no_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is sent, although nothing is answered well, and without pauses."""
    monkeypatch.setattr(gate, "_OUTAGE_FAILURES", 10**9)
    monkeypatch.setattr("keygraph.engines.dynamodb.engine.Backoff", lambda: Backoff(0.0001, 0.0005))


@asynccontextmanager
async def malformed(model: str, moto_endpoint: str) -> AsyncIterator[tuple[MalformedDynamoDB, str]]:
    """What stands before the example's table with its sample, and its URL."""
    table = graph_of(model).table
    items = {table.key_of(item): item for item in sample_of(model)}
    async with open_dynamodb(table, moto_endpoint) as store:
        await store.send(DeleteTable())
        await store.send(CreateTable())
        await store.send(BatchWrite(puts=tuple(items.values())))
    server = MalformedDynamoDB(moto_endpoint, 1)
    async with server.running() as url:
        yield server, url


@pytest.mark.usefixtures("no_outage")
@pytest.mark.parametrize(
    ("model", "transport"),
    [
        pytest.param(model, name, marks=[] if model == "commerce" and name == "direct" else pytest.mark.long)
        for model in MODELS for name in get_args(TransportName)
    ],
)  # fmt: skip
async def test_no_answer_is_a_fault_of_the_server(
    model: str, transport: TransportName, moto_endpoint: str, caplog: pytest.LogCaptureFixture
) -> None:
    documents, names = operations_of(model)
    codes: Counter[str] = Counter()
    async with malformed(model, moto_endpoint) as (server, url):
        app = create_app(
            read_settings(
                model=f"keygraph_examples.{model}:graph",
                store=url,
                secret="s3cret" * 6,
                transport=transport,
                log_operations=False,
            )
        )
        async with running(app) as client:
            for number in range(len(names) + EXAMPLES):
                server.is_honest = number < len(names)
                body = {"query": documents, "operationName": names[number % len(names)]}
                answer = (await client.post("/graphql", json=body)).json()
                codes.update(error["extensions"]["code"] for error in answer.get("errors", ()))
                assert not [record for record in caplog.records if record.exc_info], answer
    assert codes["INTERNAL"] == 0
    # Neither is everything refused, nor is anything that has changed taken for what it was.
    assert codes["UNAVAILABLE"] > EXAMPLES / 5


COMMANDS = (
    ("table", "create"),
    ("table", "describe"),
    ("verify",),
    ("export", "items.jsonl"),
    ("load", "items.jsonl"),
    ("draft", "EcommerceData"),
)


@pytest.mark.long
@pytest.mark.usefixtures("no_outage", "folder")
@pytest.mark.parametrize("transport", get_args(TransportName))
async def test_no_command_ends_in_a_traceback(
    transport: TransportName, moto_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYGRAPH_TRANSPORT", transport)
    codes: Counter[int] = Counter()
    async with malformed("commerce", moto_endpoint) as (server, url):
        for number in range(len(COMMANDS) + EXAMPLES):
            server.is_honest = number < len(COMMANDS)
            words = COMMANDS[number % len(COMMANDS)]
            result = await asyncio.to_thread(run, *words, "--store", url)
            codes[result.exit_code] += 1
            assert "Traceback" not in result.output
            assert server.is_honest <= (result.exit_code == 0), result.output
    assert codes.keys() <= {0, 1}
    assert codes[1] > EXAMPLES / 5
