"""Conditional writes and transactions: the embedded engine and DynamoDB do the same.

Difference of moto                                  DynamoDB's rule
--------------------------------------------------- -----------------------------------------------------------
Knows no tokens.                                    A token is known for ten minutes.
Fails at an update without changes.                 It makes the item, if there is none.
Charges nothing for transactions.                   Twice the units of the writes.

Difference of DynamoDB Local
--------------------------------------------------- -----------------------------------------------------------
Charges four times the units, and nothing for a     Twice ("Capacity management for transactions" in the guide), a
check.                                              check like a write of its item.
"""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import pytest
from botocore import exceptions as boto
from botocore.exceptions import ClientError

from keygraph.dynamo.actions import (
    Action,
    AddMembers,
    AddNumber,
    Append,
    AttributeChange,
    CheckItem,
    DeleteItem,
    PutItem,
    Remove,
    RemoveMembers,
    SetTo,
    UpdateItem,
    fingerprint,
)
from keygraph.dynamo.conditions import And, Condition, Eq, Exists, Ge, Not, Or
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Query, Store, Transaction, Write
from keygraph.dynamo.table import Index, Table
from keygraph.engines.dynamodb.engine import DynamoDBStore
from keygraph.engines.dynamodb.requests import Wire
from keygraph.engines.dynamodb.retrying import Backoff
from keygraph.engines.dynamodb.transport import Received
from keygraph.errors import (
    BadUserInput,
    ConditionFailed,
    ItemTooLarge,
    TimedOut,
    TokenReused,
    TransactionCanceled,
    TransactionTooLarge,
)
from tests.conftest import ENGINES, MakeStore, in_one_world, on_exact_engines

by_owner = Index("by-owner", "owner", "at")
table = Table("Things", partition_key="PK", sort_key="SK", indexes=[by_owner])
there = Exists(("PK",))
KEY = ("A", "1")

on_engines = pytest.mark.parametrize("engine", ENGINES)


def thing(**attributes: Any) -> Item:
    return {"PK": "A", "SK": "1", **attributes}


@pytest.fixture
async def store(make_store: MakeStore) -> Store:
    return await make_store(table)


async def only(store: Store, key: tuple[str, str] = KEY) -> Item | None:
    [item] = (await store.send(BatchGet((key,), consistent=True))).items
    return item


async def transact(store: Store, *actions: Action, token: str | None = None) -> Any:
    return await store.send(Transaction(actions, token or uuid.uuid4().hex))


@on_engines
async def test_a_put_whose_condition_fails_writes_nothing_and_says_what_is_there(
    store: Store,
) -> None:
    create = Not(there)
    assert (await store.send(Write(PutItem(thing(n=Decimal(1)), create)))).item is None
    with pytest.raises(ConditionFailed) as refused:
        await store.send(Write(PutItem(thing(n=Decimal(2)), create)))
    assert refused.value.item == thing(n=Decimal(1))
    assert await only(store) == thing(n=Decimal(1))
    assert (await store.send(Write(PutItem(thing(n=Decimal(3)))))).item == thing(n=Decimal(1))


# --- One item -------------------------------------------------------------------------------------------


@on_engines
@in_one_world(
    ("changes", "expected"),
    [
        ([SetTo(("a",), "x")], {"a": "x"}),
        (
            [SetTo(("map", "in"), Decimal(2)), SetTo(("map", "new"), True)],
            {"map": {"in": Decimal(2), "new": True}},
        ),
        ([Remove(("text",))], {"text": ...}),
        ([Remove(("map", "in"))], {"map": {}}),
        ([Remove(("missing",))], {}),
        ([AddNumber(("n",), Decimal("1.5"))], {"n": Decimal("11.5")}),
        ([AddNumber(("none",), Decimal(-2))], {"none": Decimal(-2)}),
        ([AddNumber(("map", "in"), Decimal(1))], {"map": {"in": Decimal(2)}}),
        ([AddMembers(("set",), frozenset({"c", "a"}))], {"set": frozenset("abc")}),
        ([AddMembers(("none",), frozenset({"c"}))], {"none": frozenset("c")}),
        ([RemoveMembers(("set",), frozenset({"a", "z"}))], {"set": frozenset("b")}),
        ([RemoveMembers(("set",), frozenset({"a", "b"}))], {"set": ...}),
        ([RemoveMembers(("none",), frozenset({"a"}))], {}),
        ([Append(("list",), ("y", Decimal(3)))], {"list": ["x", "y", Decimal(3)]}),
        ([Append(("none",), ("y",))], {"none": ["y"]}),
        ([SetTo(("text",), None), AddNumber(("n",), Decimal(1))], {"text": None, "n": Decimal(11)}),
    ],
)
async def test_changes(store: Store, changes: list[AttributeChange], expected: dict[str, Any]) -> None:
    before = thing(text="t", n=Decimal(10), map={"in": Decimal(1)}, set=frozenset("ab"), list=["x"])
    await store.send(Write(PutItem(before)))
    answer = await store.send(Write(UpdateItem(KEY, tuple(changes), there)))
    after = {name: value for name, value in {**before, **expected}.items() if value is not ...}
    assert answer.item == after
    assert await only(store) == after


@on_engines
async def test_an_update_makes_an_item_and_a_delete_says_what_was_there(store: Store) -> None:
    assert (await store.send(Write(UpdateItem(KEY, (SetTo(("a",), "x"),))))).item == thing(a="x")
    assert (await store.send(Write(DeleteItem(KEY, Eq(("a",), "x"))))).item == thing(a="x")
    assert (await store.send(Write(DeleteItem(KEY)))).item is None
    with pytest.raises(ConditionFailed) as refused:
        await store.send(Write(DeleteItem(KEY, there)))
    assert refused.value.item is None


@pytest.mark.parametrize("engine", ENGINES[::2])
@in_one_world(
    "change",
    [
        AddNumber(("text",), Decimal(1)),
        AddNumber(("nothing",), Decimal(1)),
        AddMembers(("text",), frozenset({"a"})),
        AddMembers(("set",), frozenset({Decimal(1)})),
        RemoveMembers(("list",), frozenset({"a"})),
        Append(("text",), ("a",)),
        SetTo(("text", "in"), "a"),
        SetTo(("missing", "in"), "a"),
        Remove(("missing", "in")),
    ],
)
async def test_changes_that_do_not_fit_what_is_there(store: Store, change: AttributeChange) -> None:
    before = thing(text="t", nothing=None, set=frozenset("ab"), list=["x"])
    await store.send(Write(PutItem(before)))
    with pytest.raises(BadUserInput):
        await store.send(Write(UpdateItem(KEY, (change,))))
    with pytest.raises(BadUserInput):
        await transact(store, UpdateItem(KEY, (change,)), PutItem(thing() | {"SK": "2"}))
    assert await only(store) == before
    assert await only(store, ("A", "2")) is None


@on_engines
@in_one_world(
    "changes",
    [
        [SetTo(("PK",), "B")],
        [Remove(("SK",))],
        [SetTo(("a",), "x"), Remove(("a",))],
        [SetTo(("a",), "x"), SetTo(("a", "b"), "x")],
        [AddMembers(("a", "b"), frozenset("x"))],
        [SetTo(("a",), "x" * 400 * 1024)],
    ],
)
async def test_updates_that_are_refused(store: Store, changes: list[AttributeChange]) -> None:
    with pytest.raises(BadUserInput):
        await store.send(Write(UpdateItem(KEY, tuple(changes))))


@on_exact_engines
async def test_an_item_that_grows_too_large(store: Store) -> None:
    await store.send(Write(PutItem(thing(a="x" * 300 * 1024))))
    grown = UpdateItem(KEY, (SetTo(("b",), "x" * 150 * 1024),))
    with pytest.raises(ItemTooLarge):
        await store.send(Write(grown))
    with pytest.raises(ItemTooLarge):
        await transact(store, grown)
    with pytest.raises(ItemTooLarge):
        await store.send(Write(PutItem(thing(a="x" * 450 * 1024))))


@on_engines
async def test_a_transaction_is_all_or_nothing_with_its_reasons_in_order(store: Store) -> None:
    await transact(store, PutItem(thing(n=Decimal(1), owner="me", at="1")))
    actions = (
        PutItem({"PK": "B", "SK": "1", "owner": "me", "at": "2"}, Not(there)),
        UpdateItem(KEY, (AddNumber(("n",), Decimal(1)),), Ge(("n",), Decimal(5))),
        CheckItem(("C", "1"), there),
        DeleteItem(("D", "1")),
    )
    with pytest.raises(TransactionCanceled) as refused:
        await transact(store, *actions)
    failed = [reason and (reason.code, reason.item) for reason in refused.value.reasons]
    assert failed == [
        None,
        ("ConditionalCheckFailed", thing(n=Decimal(1), owner="me", at="1")),
        ("ConditionalCheckFailed", None),
        None,
    ]
    assert await only(store, ("B", "1")) is None
    first, second, _, last = actions
    await transact(
        store, first, UpdateItem(KEY, second.changes, there), CheckItem(("C", "1"), Not(there)), last
    )
    assert await only(store) == thing(n=Decimal(2), owner="me", at="1")
    found = (await store.send(Query("me", index="by-owner"))).items
    assert [(item["PK"], item.get("n")) for item in found] == [("A", Decimal(2)), ("B", None)]


# --- Transactions ---------------------------------------------------------------------------------------


@on_engines
@pytest.mark.parametrize("condition", [And(()), Or(()), Not(And(()))])
async def test_conditions_that_are_always_the_same(store: Store, condition: Condition) -> None:
    """DynamoDB has no constants."""
    checked = transact(store, CheckItem(KEY, condition), PutItem({"PK": "B", "SK": "1"}, condition))
    if condition == And(()):
        await checked
        assert await only(store, ("B", "1"))
    else:
        with pytest.raises(TransactionCanceled) as refused:
            await checked
        assert all(reason and reason.code == "ConditionalCheckFailed" for reason in refused.value.reasons)


@on_engines
async def test_transactions_that_are_refused(store: Store) -> None:
    puts = [PutItem({"PK": "A", "SK": str(number)}) for number in range(101)]
    with pytest.raises(
        TransactionTooLarge, match="is of 101 items, with those that it only checks; DynamoDB allows 100"
    ):
        await transact(store, *puts)
    await transact(store, *puts[:100])
    with pytest.raises(TransactionTooLarge, match="4 MB"):
        await transact(store, *[PutItem({**put.item, "a": "x" * 390_000}) for put in puts[:11]])
    with pytest.raises(BadUserInput, match="same item"):
        await transact(store, PutItem(thing()), CheckItem(KEY, there))
    with pytest.raises(BadUserInput, match="at least one"):
        await transact(store)
    with pytest.raises(BadUserInput, match="token"):
        await transact(store, puts[0], token="x" * 37)


@on_exact_engines
async def test_the_same_token_writes_once(store: Store) -> None:
    add = UpdateItem(KEY, (AddNumber(("n",), Decimal(1)),))
    one = uuid.uuid4().hex
    for _ in range(2):
        await transact(store, add, token=one)
    with pytest.raises(TokenReused):
        await transact(store, UpdateItem(KEY, (AddNumber(("n",), Decimal(2)),)), token=one)
    assert await only(store) == thing(n=Decimal(1))
    await transact(store, add)
    assert await only(store) == thing(n=Decimal(2))


@on_exact_engines
async def test_a_canceled_transaction_may_use_its_token_again(store: Store) -> None:
    check, token = CheckItem(("B", "1"), there), uuid.uuid4().hex
    with pytest.raises(TransactionCanceled):
        await transact(store, PutItem(thing()), check, token=token)
    await transact(store, PutItem({"PK": "B", "SK": "1"}))
    await transact(store, PutItem(thing()), check, token=token)
    assert await only(store) == thing()


@on_exact_engines
@pytest.mark.parametrize(
    ("actions", "units", "checked"),
    [
        ((PutItem(thing(a="x" * 1500)),), 2, 0),
        ((PutItem(thing(a="x" * 1500, owner="me", at="1")), PutItem({"PK": "B", "SK": "1"})), 5, 0),
        ((PutItem(thing(a="x" * 10)), CheckItem(("old", "1"), there)), 1, 3),
        ((UpdateItem(("old", "1"), (SetTo(("owner",), "you"),)),), 9, 0),
        ((UpdateItem(("old", "1"), (SetTo(("other",), "y"),)),), 6, 0),
        ((DeleteItem(("old", "1")),), 6, 0),
    ],
)
async def test_what_transactions_cost(
    store: Store, engine: str, actions: tuple[Action, ...], units: int, checked: int
) -> None:
    await store.send(Write(PutItem({"PK": "old", "SK": "1", "a": "x" * 2500, "owner": "me", "at": "1"})))
    cost = (await transact(store, *actions)).cost
    assert cost.requests == 1
    assert cost.write_units == (4 * units if engine == "local" else 2 * (units + checked))


# --- What is sent again ---------------------------------------------------------------------------------


class Refusing:
    """A transport that fails with these errors one after the other, and then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.sent: list[Wire] = []

    async def call(self, wire: Wire) -> Received:
        self.sent.append(wire)
        if self.errors:
            raise self.errors.pop(0)
        return Received(dict)

    async def close(self) -> None:
        """Nothing is open."""

    def store(self, tries: int | None = None) -> DynamoDBStore:
        return DynamoDBStore(self, table, backoff=Backoff(0, 0), tries=tries)


def refusal(code: str, *reasons: str) -> ClientError:
    told: Any = {
        "Error": {"Code": code, "Message": code},
        "CancellationReasons": [{"Code": reason} for reason in reasons],
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    return ClientError(told, "TransactWriteItems")


LOST = boto.ReadTimeoutError(endpoint_url="http://localhost")


@pytest.mark.parametrize(
    "passing",
    [
        LOST,
        refusal("TransactionInProgressException"),
        refusal("TransactionCanceledException", "None", "TransactionConflict"),
        refusal("TransactionCanceledException", "ThrottlingError", "TransactionConflict"),
    ],
)
async def test_a_transaction_is_sent_again_under_its_token(passing: Exception) -> None:
    refusing = Refusing(passing, passing)
    await refusing.store().send(Transaction((PutItem(thing()),), "one"))
    assert [wire.body["ClientRequestToken"] for wire in refusing.sent] == ["one"] * 3


async def test_a_conflict_with_a_transaction_whose_answer_was_lost_is_no_refusal() -> None:
    conflict = refusal("TransactionCanceledException", "TransactionConflict")
    with pytest.raises(TimedOut):
        await Refusing(LOST, conflict).store(tries=2).send(Transaction((PutItem(thing()),), "one"))
    with pytest.raises(TransactionCanceled):
        await Refusing(conflict, conflict).store(tries=2).send(Transaction((PutItem(thing()),), "one"))


async def test_a_failed_condition_is_final() -> None:
    refusing = Refusing(
        refusal("TransactionCanceledException", "TransactionConflict", "ConditionalCheckFailed")
    )
    with pytest.raises(TransactionCanceled) as refused:
        await refusing.store().send(Transaction((PutItem(thing()), CheckItem(("B", "1"), there)), "one"))
    assert [reason and reason.code for reason in refused.value.reasons] == [
        "TransactionConflict",
        "ConditionalCheckFailed",
    ]
    assert len(refusing.sent) == 1


async def test_a_single_write_is_not_sent_again_where_it_may_have_been_done() -> None:
    lost = Refusing(LOST)
    with pytest.raises(TimedOut):
        await lost.store().send(Write(PutItem(thing(), Not(there))))
    assert len(lost.sent) == 1
    refused = Refusing(refusal("ThrottlingException"), refusal("TransactionConflictException"))
    await refused.store().send(Write(PutItem(thing(), Not(there))))
    assert len(refused.sent) == 3


def test_equal_actions_have_one_fingerprint() -> None:
    def made(value: object, condition: type[Exists] | type[Eq] = Exists) -> bytes:
        at = Exists(("a",)) if condition is Exists else Eq(("a",), None)
        return fingerprint([PutItem({"b": frozenset("abc"), "a": value}, Not(at))])  # type: ignore[dict-item]

    assert made(Decimal("1.0")) == made(Decimal(1))
    values = [Decimal(1), "1", b"1", True, None, {"N": "1"}, [Decimal(1)], {"a": Decimal(1)}]
    prints = {made(value) for value in values} | {made(Decimal(1), Eq), fingerprint([DeleteItem(KEY)])}
    assert len(prints) == len(values) + 2
