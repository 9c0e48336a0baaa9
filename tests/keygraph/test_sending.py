"""A DynamoDB that throttles, fails, hangs and leaves work undone: nothing is dropped, and no deadline missed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from botocore import exceptions as boto

from keygraph.dynamo.actions import PutItem
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import (
    BatchGet,
    Cost,
    CreateTable,
    DeleteTable,
    Query,
    Request,
    Scan,
    Transaction,
    Write,
    pages,
)
from keygraph.dynamo.table import Key, Table
from keygraph.engines.dynamodb.answers import decoded
from keygraph.engines.dynamodb.client import ClientTransport
from keygraph.engines.dynamodb.engine import DynamoDBStore
from keygraph.engines.dynamodb.requests import Wire
from keygraph.engines.dynamodb.retrying import Backoff
from keygraph.errors import (
    BadUserInput,
    ItemTooLarge,
    KeygraphError,
    TableMissing,
    Throttled,
    TimedOut,
    TransactionCanceled,
    Unavailable,
)

table = Table("Shop", partition_key="PK", sort_key="SK")
QUICK = Backoff(first=0.0001, longest=0.0005)

Body = dict[str, Any]


def refusal(code: Any, status: Any = 400, message: Any = "no", **more: Any) -> boto.ClientError:
    error = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status},
        **more,
    }
    return boto.ClientError(error, "BatchGetItem")  # type: ignore[arg-type]  # the fields that matter here


def canceled(*reasons: Any) -> boto.ClientError:
    return refusal("TransactionCanceledException", CancellationReasons=list(reasons))


def _item(number: int) -> Item:
    return {"PK": f"USER#{number}", "SK": "A", "n": Decimal(number)}


def _key(number: int) -> Key:
    return (f"USER#{number}", "A")


class ScriptedClient:
    """Answers every call by what the test says: an answer to give, an error to raise, seconds to hang."""

    def __init__(self, *script: Body | Exception | float) -> None:
        self.script = list(script)
        self.calls: list[str] = []
        self.cancelled = 0

    def __getattr__(self, method: str) -> Callable[..., Any]:
        async def call(**body: Any) -> Body:
            self.calls.append(method)
            step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
            if isinstance(step, Exception):
                raise step
            if isinstance(step, dict):
                return step
            try:
                await asyncio.sleep(step)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            raise AssertionError("slept to the end")

        return call


async def _failure(client: Any, request: Request[Any], deadline: float = 0.1) -> KeygraphError:
    store = DynamoDBStore(
        ClientTransport(client), table, deadline=deadline, backoff=QUICK, endpoint="db:8000"
    )
    with pytest.raises(KeygraphError) as raised:
        await store.send(request)
    return raised.value


_LEFT = {"Responses": {}, "UnprocessedKeys": {"Shop": {"Keys": [{"PK": {"S": "USER#1"}, "SK": {"S": "A"}}]}}}


@pytest.mark.parametrize(
    ("step", "expected", "message"),
    [
        (refusal("ThrottlingException"), Throttled, "DynamoDB throttles requests to the table Shop"),
        (_LEFT, Throttled, "DynamoDB throttles batches for the table Shop"),
        (60.0, TimedOut, "DynamoDB at db:8000 did not answer within 0.1 seconds"),
        (boto.ReadTimeoutError(endpoint_url="x"), TimedOut, "DynamoDB at db:8000 did not answer in time"),
        (boto.EndpointConnectionError(endpoint_url="x"), Unavailable, "no connection to DynamoDB at db:8000: is it running?"),
        (refusal("InternalServerError", 500), Unavailable, "DynamoDB at db:8000 failed with status 500"),
    ],
)  # fmt: skip
async def test_the_deadline_holds(step: Any, expected: type[Exception], message: str) -> None:
    failure = await _failure(ScriptedClient(step), BatchGet((_key(1), _key(2))))
    assert (type(failure), str(failure)) == (expected, message)


async def test_an_answer_of_something_else_acknowledges_no_write() -> None:
    for request in (Write(PutItem(_item(1))), Transaction((PutItem(_item(1)),), "one")):
        failure = await _failure(ScriptedClient({"Items": [], "Count": 0}), request)
        assert type(failure) is Unavailable


async def test_a_hang_after_throttling_is_throttling() -> None:
    failure = await _failure(ScriptedClient(refusal("ThrottlingException"), 60.0), Query("USER#1"))
    assert type(failure) is Throttled


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (
            refusal("ResourceNotFoundException"),
            TableMissing,
            "there is no table Shop: create it with `keygraph table create`",
        ),
        (
            refusal("ValidationException", message="The table does not have the specified index: GSI1"),
            TableMissing,
            "the table Shop lacks an index of the model: compare `keygraph table describe` with the model",
        ),
        (
            refusal("AccessDeniedException", message="User: arn:aws:iam::123456789012:user/eve may not"),
            Unavailable,
            "AWS refuses these credentials for the table Shop (AccessDeniedException): check AWS_PROFILE or the role",
        ),
        (
            boto.ProfileNotFound(profile="eve"),
            Unavailable,
            "there is no AWS profile eve: set AWS_PROFILE to one of those in ~/.aws/config",
        ),
        (
            boto.NoCredentialsError(),
            Unavailable,
            "no AWS credentials: set AWS_PROFILE, or run with a role",
        ),
        (
            refusal("ValidationException", message="Item size has exceeded the maximum allowed size"),
            ItemTooLarge,
            "The item is larger than 400 KB.",
        ),
        (
            refusal("ValidationException", message="The key size has exceeded the size limit of 2048 bytes"),
            BadUserInput,
            "a key is empty, or larger than DynamoDB allows (2,048 bytes for a partition key, 1,024 for a sort key)",
        ),
        (
            refusal("ValidationException", message="The provided starting key is outside query boundaries"),
            BadUserInput,
            "the start is outside the range that is read",
        ),
        (refusal("404", 404), Unavailable, "the server at db:8000 is not DynamoDB"),
        (
            refusal("ItemCollectionSizeLimitExceededException"),
            ItemTooLarge,
            "The partition is full: with a local index, DynamoDB stores at most 10 GB for one partition key.",
        ),
        (
            refusal("ResourceInUseException"),
            Unavailable,
            "the table Shop is being created, changed or deleted",
        ),
        (
            refusal("KMSAccessDeniedException", message="arn:aws:kms:eu-west-1:123456789012:key/1"),
            Unavailable,
            "DynamoDB refuses requests to the table Shop: KMSAccessDeniedException",
        ),
        (
            refusal("Nobody knows this\n", message="{}"),
            Unavailable,
            "DynamoDB refuses requests to the table Shop",
        ),
        *(
            (odd, Unavailable, "the server at db:8000 is not DynamoDB")
            for odd in (
                refusal(["ValidationException"]),
                refusal("ValidationException", message=5),
                refusal("X", status="400"),
                canceled({"Code": "ConditionalCheckFailed", "Item": {"PK": {"B": 10**12}}}),
                canceled("ConditionalCheckFailed"),
                canceled({"Code": ["None"]}),
            )
        ),
        *(
            (unknown, Unavailable, f"DynamoDB refuses requests to the table Shop: {name}")
            for unknown, name in (
                (canceled(), "TransactionCanceled"),
                (canceled({"Code": "None"}), "TransactionCanceled"),
                (canceled({"Code": "Weather"}), "Weather"),
                (canceled(*[{"Code": "ConditionalCheckFailed"}] * 2), "TransactionCanceled"),
            )
        ),
        (
            canceled({"Code": "ItemCollectionSizeLimitExceeded"}),
            ItemTooLarge,
            "The partition is full: with a local index, DynamoDB stores at most 10 GB for one partition key.",
        ),
    ],
)
async def test_what_does_not_pass_is_told_at_once(
    error: Exception, expected: type[KeygraphError], message: str
) -> None:
    client = ScriptedClient(error)
    failure = await _failure(client, Query("USER#1"), deadline=30)
    assert (failure.code, str(failure)) == (expected.code, message)
    assert isinstance(failure, expected)
    assert client.calls == ["query"]


async def test_a_conflict_of_two_regions_passes() -> None:
    conflict = refusal("ReplicatedWriteConflictException")
    client = ScriptedClient(conflict, conflict, {})
    store = DynamoDBStore(ClientTransport(client), table, backoff=QUICK)
    await store.send(Transaction((PutItem(_item(1)), PutItem(_item(2))), "one"))
    assert client.calls == ["transact_write_items"] * 3
    store = DynamoDBStore(ClientTransport(ScriptedClient(conflict)), table, backoff=QUICK, tries=2)
    with pytest.raises(TransactionCanceled) as canceled_:
        await store.send(Transaction((PutItem(_item(1)), PutItem(_item(2))), "one"))
    assert [reason and reason.code for reason in canceled_.value.reasons] == ["TransactionConflict"] * 2


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (BatchGet((_key(1),)), {"message": "all is well"}),
        (BatchGet((_key(1),)), {"Item": None}),
        (BatchGet((_key(1),)), {"Item": []}),
        (BatchGet((_key(1),)), {"Item": {"PK": {"S": "USER#2"}, "SK": {"S": "A"}}}),
        (
            BatchGet((_key(1),), (("n",),)),
            {"Item": {"PK": {"S": "USER#1"}, "SK": {"S": "B"}, "n": {"N": "1"}}},
        ),
        (BatchGet((_key(1), _key(2))), {"Responses": {"Shop": [{"PK": {"S": "USER#3"}, "SK": {"S": "A"}}]}}),
        (BatchGet((_key(1), _key(2))), {}),
        (BatchGet((_key(1), _key(2))), {"Responses": {"Shop": [{"PK": {"L": []}, "SK": {"S": "A"}}]}}),
        (Query("USER#1"), {}),
        (Query("USER#1"), {"Items": []}),
    ],
)
async def test_an_odd_answer_is_no_answer(request_: Request[Any], answer: Body) -> None:
    failure = await _failure(ScriptedClient(answer), request_)
    assert (type(failure), str(failure)) == (Unavailable, "the server at db:8000 is not DynamoDB")


@pytest.mark.parametrize(
    "request_", [Query("USER#1", limit=2), Query("USER#2", limit=2), BatchGet((_key(1), _key(2)))]
)
async def test_more_items_than_were_requested_are_not_decoded(
    request_: Request[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded_ = list[int]()

    def decode(items: list[Any], _: object) -> Any:
        decoded_.append(len(items))
        raise ValueError

    monkeypatch.setattr("keygraph.engines.dynamodb.answers.answered_items", decode)
    item = {"PK": {"S": "USER#1"}, "SK": {"S": "A"}}
    for count in (2, 3):
        page = {"Items": [item] * count, "Count": 2, "ScannedCount": 2, "Responses": {"Shop": [item] * count}}
        await _failure(ScriptedClient(page), request_)
    assert decoded_ == [2]


@pytest.mark.parametrize("request_", [Scan(), Query("x")])
async def test_a_page_that_comes_again_and_again_is_an_outage(request_: Query | Scan) -> None:
    scripted = [
        {
            "Items": [],
            "Count": 0,
            "ScannedCount": 0,
            "LastEvaluatedKey": {"PK": {"S": "x"}, "SK": {"S": "A"}},
        }
        for _ in range(2)
    ]
    answers = pages(DynamoDBStore(ClientTransport(ScriptedClient(*scripted)), table), request_)
    await anext(answers)
    with pytest.raises(Unavailable, match="is not DynamoDB"):
        await anext(answers)


async def test_an_item_that_an_answer_has_twice_is_an_outage() -> None:
    """The other one would be missing, and what names it would be repaired."""
    answer = {"Responses": {"Shop": [{"PK": {"S": "USER#1"}, "SK": {"S": "A"}} for _ in range(2)]}}
    assert isinstance(await _failure(ScriptedClient(answer), BatchGet((_key(1), _key(2)))), Unavailable)


@pytest.mark.parametrize("answer", [{}, {"ConsumedCapacity": {"CapacityUnits": 0.5}, "ResponseMetadata": {}}])
async def test_an_item_that_is_missing(answer: Body) -> None:
    store = DynamoDBStore(ClientTransport(ScriptedClient(answer)), table)
    assert (await store.send(BatchGet((_key(1),)))).items == [None]


@pytest.mark.parametrize("code", ["ValidationException", "SerializationException"])
async def test_our_own_mistakes_surface(code: str) -> None:
    client = ScriptedClient(refusal(code, message="Syntax error; token: ("))
    with pytest.raises(boto.ClientError):
        await DynamoDBStore(ClientTransport(client), table).send(Query("USER#1"))
    assert client.calls == ["query"]


async def test_retries_are_counted() -> None:
    answer: Body = {
        "Items": [{"PK": {"S": "a"}, "SK": {"S": "b"}}],
        "Count": 1,
        "ScannedCount": 2,
        "ConsumedCapacity": {"CapacityUnits": 1.5},
    }
    client = ScriptedClient(
        refusal("ThrottlingException"), boto.ConnectionClosedError(endpoint_url="x"), answer
    )
    page = await DynamoDBStore(ClientTransport(client), table, backoff=QUICK).send(Query("a"))
    assert (page.items, page.scanned, page.cost) == (
        [{"PK": "a", "SK": "b"}],
        2,
        Cost(requests=3, read_units=1.5),
    )


async def test_cancellation_ends_what_is_on_the_wire() -> None:
    client = ScriptedClient(60.0)
    request = BatchGet(tuple(map(_key, range(250))))
    sending = asyncio.create_task(DynamoDBStore(ClientTransport(client), table).send(request))
    await asyncio.sleep(0.01)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert (client.calls, client.cancelled) == (["batch_get_item"] * 3, 3)


async def test_one_failing_chunk_ends_the_others() -> None:
    client = ScriptedClient(60.0, 60.0, refusal("ResourceNotFoundException"))
    failure = await _failure(client, BatchGet(tuple(map(_key, range(250)))), deadline=30)
    assert type(failure) is TableMissing
    assert client.cancelled == 2


def test_the_rest_keeps_what_was_asked() -> None:
    options = {
        "ProjectionExpression": "#n0",
        "ExpressionAttributeNames": {"#n0": "a"},
        "ConsistentRead": True,
    }
    keys = [{"PK": {"S": name}, "SK": {"S": "A"}} for name in "ab"]
    wire = Wire(
        "BatchGetItem",
        {"RequestItems": {"Shop": {"Keys": keys, **options}}, "ReturnConsumedCapacity": "TOTAL"},
    )
    answer: Body = {"Responses": {}, "UnprocessedKeys": {"Shop": {"Keys": keys[1:]}}}
    assert decoded(wire, answer, table).rest == Wire(
        "BatchGetItem",
        {"RequestItems": {"Shop": {"Keys": keys[1:], **options}}, "ReturnConsumedCapacity": "TOTAL"},
    )
    assert decoded(wire, {**answer, "UnprocessedKeys": {}}, table).rest is None


def _described(status: str) -> Body:
    return {"Table": {"TableStatus": status}}


MISSING, IN_USE = refusal("ResourceNotFoundException"), refusal("ResourceInUseException")
CREATING, DELETING = ({"TableDescription": {"TableStatus": each}} for each in ("CREATING", "DELETING"))
ACTIVE = _described("ACTIVE")


@pytest.mark.parametrize(
    ("request_", "script", "calls"),
    [
        (CreateTable(), [MISSING, CREATING, _described("CREATING"), ACTIVE], "describe create describe describe"),
        (CreateTable(), [_described("DELETING"), MISSING, IN_USE, ACTIVE], "describe describe create describe"),
        (
            DeleteTable(),
            [_described("CREATING"), IN_USE, ACTIVE, DELETING, _described("DELETING"), MISSING],
            "describe delete describe delete describe describe",
        ),
    ],
    ids=["until it is active", "while it is deleted or created elsewhere", "until it is gone"],
)  # fmt: skip
async def test_creating_and_deleting_wait(
    request_: CreateTable | DeleteTable, script: list[Any], calls: str
) -> None:
    client = ScriptedClient(*script)
    await DynamoDBStore(ClientTransport(client), table, backoff=QUICK).send(request_)
    assert client.calls == [f"{call}_table" for call in calls.split()]
