"""Who may change what: the rule is in the transaction, and a refused write changes nothing."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Table,
    create,
    delete,
    edge,
    node,
    read,
    record,
    stored,
    update,
    version,
    viewer,
    write,
)
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, Request, Scan, Transaction
from keygraph_resolvers import Service
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, world
from tests.schemas import schema_of
from tests.tracing import TracingStore

by_customer = Index("by-customer", "customerKey", "orderKey")
TABLE = Table("Shop", partition_key="PK", sort_key="SK", indexes=[by_customer])


class Status(Enum):
    PENDING = "pending"
    PAID = "paid"


@node(
    "USER#{user_id}",
    access=[read(where={"hidden": False}), read(role="support"), write(role="support"), delete(role="boss")],
)
class User:
    user_id: ID
    hidden: bool = False

    orders: Many[Order]


@node(
    "ORDER#{order_id}",
    by_customer("{customer}", "{order_id}"),
    access=[
        read(where={"customer": viewer("sub")}),
        read(role=["support", "clerk"]),
        create(where={"customer": viewer("sub"), "status": Status.PENDING}),
        update(role="clerk", where={"status": {"ne": Status.PAID}}),
        update(where={"customer": viewer("sub")}, fields=["note"]),
        write(role=["support", "boss"]),
        delete(where={"customer": viewer("sub"), "status": Status.PENDING}),
    ],
)
class Order:
    order_id: ID
    customer: User
    status: Status
    note: str | None = None
    discount: int = stored(default=0, access=[read(), write(role="support")])
    revision: int = version()

    lines: Many[Line]


@record(
    "{order}",
    "LINE#{number}",
    access=[
        read(),
        create(where={"count": {"lte": 9}}),
        create(role="support"),
        delete(role="support"),
        update(role="support"),
    ],
)
class Line:
    order: Order
    number: int
    count: int


@edge(
    "{one}",
    "LIKES#{other.user_id}",
    access=[read(), write(where={"one": viewer("sub")}), read(role="x")],
)
class Likes:
    one: User
    other: User
    stars: int = 0


@record("{user}", "NOTE#{number}", access=[read(), write()])
class Note:
    user: User
    number: int
    text: str
    grade: int | None = stored(access=[read(), write(role="support")])


@node(
    "PARCEL#{parcel_id}#S{shard}",
    "PARCEL#{parcel_id}",
    shards=3,
    access=[read(where={"owner": viewer("sub")}), write()],
)
class Parcel:
    parcel_id: ID
    owner: str


graph = Graph(
    TABLE, User, Order, Line, Likes, Note, Parcel, attribute_case="camel", type_attribute="type"
).check()
A, B = {"sub": "a"}, {"sub": "b"}
BOSS = {"sub": "boss", "roles": ["boss"]}
"""May write everything, and sees next to nothing of it."""
CLERK, HELP = {"roles": ["clerk"]}, {"roles": ["support"]}


class Shop:
    """A shop with an order of each customer."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def answer(self, document: str, claims: Any = None, **options: Any) -> Any:
        self.world.forget()
        return await self.world.service.execute(f"mutation {{ {document} }}", viewer=claims, **options)

    async def done(self, document: str, claims: Any = None, **options: Any) -> Any:
        found = await self.answer(document, claims, **options)
        assert "errors" not in found, found["errors"]
        return found["data"]

    async def refused(self, document: str, claims: Any = None) -> list[Any]:
        """The codes and messages of a refused write, which has changed nothing."""
        before = await self.items()
        found = await self.answer(document, claims)
        assert await self.items() == before
        return [(error["extensions"]["code"], error["message"]) for error in found["errors"]]

    @property
    def requests(self) -> int:
        return len(self.world.tracer.requests)

    async def items(self) -> list[Item]:
        found = await self.world.tracer.store.send(Scan())
        return sorted(found.items, key=lambda item: (item["PK"], item["SK"]))


@pytest.fixture
async def shop(make_store: MakeStore) -> Shop:
    made = Shop(world(graph, await make_store(graph.table)))
    for name in "abh":
        await made.done(
            f'createUser(input: {{userId: "{name}", hidden: {str(name == "h").lower()}}}) {{ user {{ userId }} }}',
            HELP,
        )
    for name, customer, status in (
        ("a1", "a", "PENDING"),
        ("a2", "a", "PAID"),
        ("b1", "b", "PENDING"),
        ("h1", "h", "PENDING"),
    ):
        given = f'orderId: "{name}", customerId: "{customer}", status: {status}'
        await made.done(f"createOrder(input: {{{given}}}) {{ order {{ orderId }} }}", HELP)
    return made


FORBIDDEN = "FORBIDDEN"
NO_ORDER = ("NOT_FOUND", "There is no Order with this key.")


async def test_creating(shop: Shop) -> None:
    """Somebody would order in another's name, or an order that is paid already."""
    new = 'createOrder(input: {orderId: "%s", customerId: "%s", status: %s%s}) { order { orderId note } }'
    assert (await shop.done(new % ("n1", "a", "PENDING", ', note: "x"'), A))["createOrder"]["order"][
        "note"
    ] == "x"
    told = (FORBIDDEN, "You may not create this Order.")
    assert await shop.refused(new % ("n2", "b", "PENDING", ""), A) == [told]
    assert await shop.refused(new % ("n2", "a", "PAID", ""), A) == [told]
    assert await shop.refused(new % ("n2", "a", "PENDING", "")) == [told]
    assert shop.requests == 0
    field = (FORBIDDEN, "discount of Order: you may not write this field.")
    assert await shop.refused(new % ("n2", "a", "PENDING", ", discount: 5"), A) == [field]
    assert await shop.done(new % ("n2", "a", "PENDING", ", discount: 5"), HELP)


async def test_updating(shop: Shop) -> None:
    """Somebody would change what is another's, or a field that is not theirs, or give an order away."""
    change = 'updateOrder(input: {orderId: "%s", %s}) { order { status note } }'
    assert (await shop.done(change % ("a1", 'note: "x"'), A))["updateOrder"]["order"]["note"] == "x"
    assert shop.requests == 2
    assert await shop.refused(change % ("b1", 'note: "x"'), A) == [NO_ORDER]
    assert await shop.refused(change % ("none", 'note: "x"'), A) == [NO_ORDER]
    status = (FORBIDDEN, "status of Order: you may not write this field.")
    assert await shop.refused(change % ("a1", "status: PAID"), A) == [status]
    assert (await shop.done(change % ("a1", "status: PAID"), HELP))["updateOrder"]["order"][
        "status"
    ] == "PAID"
    told = (FORBIDDEN, "You may not update this Order.")
    # A clerk may not touch what is paid, and may not mark as paid.
    assert await shop.refused(change % ("a2", 'note: "x"'), CLERK) == [told]
    assert await shop.refused(change % ("b1", "status: PAID"), CLERK) == [told]
    assert await shop.done(change % ("b1", 'note: "x"'), CLERK)
    assert await shop.refused(change % ("b1", 'note: "y"')) == [NO_ORDER]
    discount = (FORBIDDEN, "discount of Order: you may not write this field.")
    assert await shop.refused(change % ("b1", "add: {discount: 1}"), CLERK) == [discount]


async def test_who_may_change_a_field_may_not_move_the_record(shop: Shop) -> None:
    """Whoever may write a note on an order would give it the place of another one."""
    move = 'moveOrder(input: {orderId: "a1", to: {orderId: "new"}}) { order { orderId } }'
    assert await shop.refused(move, A) == [(FORBIDDEN, "orderId of Order: you may not write this field.")]
    assert await shop.done(move, CLERK) == {"moveOrder": {"order": {"orderId": "new"}}}


async def test_a_create_does_not_tell_what_is_hidden(shop: Shop) -> None:
    """Whoever tries keys would learn which orders there are."""
    create = 'createOrder(input: {orderId: "%s", customerId: "a", status: PENDING}) { order { orderId } }'
    assert (await shop.refused(create % "a1", A))[0][0] == "ALREADY_EXISTS"
    refused = [(FORBIDDEN, "You may not create this Order.")]
    assert await shop.refused(create % "b1", A) == refused
    assert await shop.refused((create % "new").replace("PENDING", "PAID"), A) == refused
    assert (await shop.refused((create % "b1").replace('"a"', '"b"'), HELP))[0][0] == "ALREADY_EXISTS"


async def test_what_is_hidden_is_told_only_where_nothing_else_is_wrong(shop: Shop) -> None:
    """Whoever sends what fails anyway would learn, by one error more, which orders there are."""
    for name in ("create", "upsert"):
        new = f'{name}Order(input: {{orderId: "%s", customerId: "h", status: PENDING}}) {{ order {{ orderId }} }}'
        found = [await shop.refused((new % each).replace('"h"', '"none"'), BOSS) for each in ("b1", "free")]
        assert found[0] == found[1] == [("NOT_FOUND", "customerId: there is no User with this key.")]
    move = 'moveOrder(input: {orderId: "%s", to: {orderId: "%s"}}) { order { orderId } }'
    assert await shop.refused(move % ("b1", "b1"), A) == await shop.refused(move % ("none", "none"), A)


async def test_what_names_a_node_and_is_hidden(shop: Shop) -> None:
    """A delete that fails would tell how many hidden records name the node, or that some do beside those that are seen."""
    gone = 'deleteUser(input: {userId: "b"}) { deletedId }'
    some = "This User cannot be deleted: something names it."
    assert await shop.refused(gone, BOSS) == [("CONFLICT", some)]
    await shop.done('putLikes(input: {oneId: "b", otherId: "a"}) { likes { stars } }', B)
    seen = "This User cannot be deleted. It is named by 1 Likes (one)."
    assert await shop.refused(gone, BOSS) == [("CONFLICT", seen)]


async def test_a_put_takes_no_field_away_that_is_not_ones_own(shop: Shop) -> None:
    """Whoever may not write a field would empty it by a put that leaves it out."""
    put = 'putNote(input: {userId: "a", number: 1, text: "%s"%s}) { note { text grade } }'
    await shop.done(put % ("x", ", grade: 5"), HELP)
    refused = [(FORBIDDEN, "grade of Note: you may not write this field.")]
    assert await shop.refused(put % ("y", ""), A) == refused
    assert await shop.done(put.replace("number: 1", "number: 2") % ("y", ""), A)
    change = 'updateNote(input: {userId: "a", number: 1, text: "y"}) { note { text grade } }'
    assert (await shop.done(change, A))["updateNote"]["note"] == {"text": "y", "grade": 5}
    assert (await shop.done(put % ("z", ""), HELP))["putNote"]["note"] == {"text": "z", "grade": None}


async def test_no_second_item_of_a_hidden_record(shop: Shop) -> None:
    """Whoever does not see a record, which somebody has put into a shard at random, would create it a second time."""
    for name in ("create", "upsert"):
        for shard in range(3):
            key = f"PARCEL#{name}{shard}"
            hidden = {"PK": f"{key}#S{shard}", "SK": key, "type": "Parcel", "parcelId": f"{name}{shard}"}
            await shop.world.put({**hidden, "owner": "b"})
            new = f'{name}Parcel(input: {{parcelId: "{name}{shard}", owner: "a"}}) {{ parcel {{ owner }} }}'
            assert await shop.refused(new, A) == [(FORBIDDEN, "You may not create this Parcel.")]


async def test_the_cost_of_a_write_does_not_tell_what_is_hidden(shop: Shop) -> None:
    """The figures of a write that failed would tell that there is something."""
    move = 'moveOrder(input: {orderId: "%s", to: {orderId: "new"}}) { order { orderId } }'
    found = [await shop.answer(move % name, A, with_cost=True) for name in ("b1", "none")]
    assert found[0] == found[1]
    assert found[0]["extensions"]["cost"]["actual"] is None
    done = await shop.answer(move % "b1", BOSS | HELP, with_cost=True)
    assert done["extensions"]["cost"]["actual"] is None


async def test_the_version_of_a_hidden_record_is_not_told(shop: Shop) -> None:
    """A wrong version would tell the right one, and that the record exists."""
    change = 'updateOrder(input: {orderId: "b1", note: "x", expectedRevision: 9}) { order { note } }'
    [[code, told]] = await shop.refused(change.replace("expectedRevision", "expectedVersion"), A)
    assert (code, told) == NO_ORDER
    [[code, told]] = await shop.refused(change.replace("expectedRevision", "expectedVersion"), B)
    assert (code, "its version is 1" in told) == ("CONFLICT", True)


async def test_deleting(shop: Shop) -> None:
    """Somebody would delete another's order, or one that is paid."""
    gone = 'deleteOrder(input: {orderId: "%s"}) { deletedId }'
    assert await shop.refused(gone % "b1", A) == [NO_ORDER]
    assert await shop.refused(gone % "a2", A) == [(FORBIDDEN, "You may not delete this Order.")]
    assert await shop.refused(gone % "a1") == [NO_ORDER]
    assert await shop.done(gone % "a1", A)


async def test_upserts_and_puts(shop: Shop) -> None:
    """A write that replaces would be a way around the rules of updates."""
    upsert = (
        'upsertOrder(input: {orderId: "%s", customerId: "a", status: PENDING, note: "x"}) { order { note } }'
    )
    assert await shop.refused(upsert % "b1", A) == [(FORBIDDEN, "You may not create this Order.")]
    assert await shop.done(upsert % "u1", A)
    assert await shop.refused(upsert % "a1", A) != []
    put = 'putLikes(input: {oneId: "%s", otherId: "%s", stars: %s}) { likes { stars } }'
    assert await shop.done(put % ("a", "b", 1), A)
    assert (await shop.done(put % ("a", "b", 2), A))["putLikes"]["likes"]["stars"] == 2
    assert await shop.refused(put % ("b", "a", 1), A) == [(FORBIDDEN, "You may not create this Likes.")]
    line = 'putLine(input: {orderId: "a1", number: 1, count: %s}) { line { count } }'
    assert await shop.done(line % 3, A)
    assert await shop.refused(line % 4, A) == [(FORBIDDEN, "You may not update this Line.")]
    assert await shop.done(line % 20, HELP)


async def test_what_is_named_is_seen(shop: Shop) -> None:
    """An edge to a hidden user would tell that they exist; an item would be put into somebody else's order."""
    put = 'putLikes(input: {oneId: "a", otherId: "%s"}) { likes { stars } }'
    told = ("NOT_FOUND", "otherId: there is no User with this key.")
    assert await shop.refused(put % "h", A) == [told]
    assert await shop.refused(put % "x", A) == [told]
    line = 'putLine(input: {orderId: "%s", number: 1, count: 1}) { line { count } }'
    told = ("NOT_FOUND", "orderId: there is no Order with this key.")
    assert await shop.refused(line % "b1", A) == [told]
    assert await shop.refused(line % "none", A) == [told]
    assert await shop.done(line % "b1", B)


async def test_nested_and_several_writes(shop: Shop) -> None:
    """One allowed part of a mutation would take a forbidden one along."""
    new = """createOrder(input: {orderId: "%s", customerId: "a", status: PENDING, lines: [{number: 1, count: 1}, {number: 2,
      count: %s}]}) { order { lines { totalCount } } }"""
    assert await shop.refused(new % ("n1", 10), A) == [(FORBIDDEN, "You may not create this Line.")]
    assert (await shop.done(new % ("n1", 9), A))["createOrder"]["order"]["lines"]["totalCount"] == 2
    several = """deleteOrders(input: {inputs: [{orderId: "a1"}, {orderId: "b1"}], atomic: %s}) { results { deletedId } }"""
    assert await shop.refused(several % "true", A) == [NO_ORDER]
    found = await shop.answer(several % "false", A)
    assert [each and each["deletedId"] is not None for each in found["data"]["deleteOrders"]["results"]] == [
        True,
        None,
    ]


async def test_taking_along_what_names_a_node(shop: Shop) -> None:
    """A delete would take edges along that its viewer may not delete, or count those that they do not see."""
    gone = 'deleteUser(input: {userId: "b"%s}) { deletedId }'
    assert await shop.refused(gone % "", A) == [(FORBIDDEN, "You may not delete this User.")]
    assert await shop.done('putLikes(input: {oneId: "b", otherId: "a"}) { likes { stars } }', B)
    told = "This User cannot be deleted. It is named by 1 Order (customer), 1 Likes (one)."
    [[code, said]] = await shop.refused(gone % "", HELP)
    assert (code, said.startswith("This User cannot be deleted. It is named by")) == ("CONFLICT", True), told
    [[code, said]] = await shop.refused(
        'deleteUser(input: {userId: "a", onEdges: DETACH}) { deletedId }', HELP
    )
    assert code in ("CONFLICT", FORBIDDEN)


async def test_no_race_gets_past_a_rule(shop: Shop) -> None:
    """An order would be changed that was paid between the look and the write."""
    rival = Service(schema_of(graph), shop.world.tracer.store, secret=b"secret")

    class Late(TracingStore):
        async def send(self, request: Request[Answer], /) -> Answer:
            if isinstance(request, Transaction):
                paid = 'mutation { updateOrder(input: {orderId: "b1", status: PAID}) { order { note } } }'
                assert "errors" not in await rival.execute(paid, viewer=HELP)
            return await super().send(request)

    shop = Shop(world(graph, Late(shop.world.tracer.store)))
    change = 'updateOrder(input: {orderId: "b1", note: "late"}) { order { note } }'
    found = await shop.answer(change, CLERK)
    assert [error["extensions"]["code"] for error in found["errors"]] == [FORBIDDEN]
    [order] = [item for item in await shop.items() if item["PK"] == "ORDER#b1"]
    assert (order["status"], order.get("note")) == ("paid", None)


async def test_an_idempotency_key_is_its_viewers(shop: Shop) -> None:
    """Somebody who guesses a key would be told of, and as if they had done, what another has written."""
    new = 'createOrder(input: {orderId: "i1", customerId: "a", status: PENDING}) { order { orderId } }'
    assert await shop.done(new, A | {"exp": 1}, idempotency_key="k")
    assert await shop.done(new, A | {"exp": 2}, idempotency_key="k")
    found = await shop.answer(new, B, idempotency_key="k")
    assert [error["extensions"]["code"] for error in found["errors"]] == [FORBIDDEN]
    found = await shop.answer(new, HELP, idempotency_key="k")
    assert [error["extensions"]["code"] for error in found["errors"]] == ["ALREADY_EXISTS"]


async def test_what_a_key_of_an_index_alone_says(shop: Shop) -> None:
    """A rule would not be met by an item that somebody else has stored without the attribute."""
    [item] = [each for each in await shop.items() if each["PK"] == "ORDER#a1"]
    await shop.world.put({name: value for name, value in item.items() if name != "customerId"})
    assert await shop.done('updateOrder(input: {orderId: "a1", note: "x"}) { order { note } }', A)
    assert await shop.refused('updateOrder(input: {orderId: "a1", note: "y"}) { order { note } }', B) == [
        NO_ORDER
    ]
    assert await shop.done('deleteOrder(input: {orderId: "a1"}) { deletedId }', A)


async def test_a_plan_shows_the_rule(shop: Shop) -> None:
    """Whoever looks at a plan would not see what a write is held to."""
    document = 'mutation { updateOrder(input: {orderId: "a1", note: "x"}) { order { note } } }'
    [shown] = shop.world.service.explain(document, viewer=A).steps
    [transaction] = shown.transactions
    assert "customerId = a" in str(transaction.actions[0].condition)


@node("FIRM#{firm_id}", access=[read()])
class Firm:
    firm_id: ID


@node("BILL#{bill_id}", access=[read()])
class Bill:
    bill_id: ID


@edge("{firm}", "{bill}", counterpart="BillFirm", access=[read(), write(role="firm"), write(role="both")])
class FirmBill:
    firm: Firm
    bill: Bill
    amount: int


@edge(
    "{bill}",
    "{firm}",
    counterpart="FirmBill",
    access=[read(), create(where={"amount": {"lte": 10}}), update(role="both"), delete(role="both")],
)
class BillFirm:
    bill: Bill
    firm: Firm
    amount: int


async def test_the_counterpart_of_an_edge_is_held_too(make_store: MakeStore) -> None:
    """Whoever may write one of two edges would write the other one, whatever its rules say."""
    bills = Graph(Table("Bills", partition_key="PK", sort_key="SK"), Firm, Bill, FirmBill, BillFirm).check()
    made = Shop(world(bills, await make_store(bills.table)))
    await made.world.put(*({"PK": key, "SK": key} for key in ("FIRM#f", "BILL#b", "BILL#c")))
    firm, both = {"roles": ["firm"]}, {"roles": ["both"]}
    put = 'putFirmBill(input: {firmId: "f", billId: "%s", amount: %d}) { firmBill { amount } }'
    assert await made.refused(put % ("b", 11), firm) == [(FORBIDDEN, "You may not create this BillFirm.")]
    await made.done(put % ("b", 10), firm)
    assert await made.refused(put % ("b", 5), firm) == [(FORBIDDEN, "You may not update this BillFirm.")]
    change = 'updateFirmBill(input: {firmId: "f", billId: "b", amount: 5}) { firmBill { amount } }'
    assert await made.refused(change, firm) == [(FORBIDDEN, "You may not update this BillFirm.")]
    gone = 'deleteFirmBill(input: {firmId: "f", billId: "b"}) { firm { firmId } }'
    assert await made.refused(gone, firm) == [(FORBIDDEN, "You may not delete this BillFirm.")]
    await made.done(change, both)
    await made.done(gone, both)
    assert len(await made.items()) == 3


async def test_several_nodes_that_are_not_there(make_store: MakeStore) -> None:
    """A hidden node would be told from none: beside it nothing else would be said to be missing."""

    @node(
        "CASE#{case_id}",
        by_customer("KIND#{kind}", "CASE#{case_id}"),
        access=[read(where={"kind": {"ne": "secret"}}), create()],
    )
    class Case:
        case_id: ID
        kind: str

    @node("PAIR#{pair_id}", access=[read(), create()])
    class Pair:
        pair_id: ID
        case: Case
        other: Case | None

    made = Shop(world(Graph(TABLE, Case, Pair).check(), await make_store(TABLE)))
    for kind in ("open", "secret"):
        index = {"customerKey": f"KIND#{kind}", "orderKey": f"CASE#{kind}"}
        await made.world.put({"PK": f"CASE#{kind}", "SK": f"CASE#{kind}", **index, "case_id": kind})
    new = 'createPair(input: {pairId: "%s", caseId: "%s", otherId: "%s"}) { pair { pairId } }'
    both = [("NOT_FOUND", f"{name}: there is no Case with this key.") for name in ("caseId", "otherId")]
    assert await made.refused(new % ("1", "none", "gone"), A) == both
    assert await made.refused(new % ("1", "secret", "gone"), A) == both
    assert await made.refused(new % ("1", "open", "secret"), A) == both[1:]
    assert await made.done(new % ("1", "open", "open"), A)
