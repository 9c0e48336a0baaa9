"""Who may change what: the rule is in the transaction, and a refused write changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
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
    many,
    node,
    read,
    record,
    stored,
    sums,
    update,
    version,
    viewer,
    write,
)
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Scan, Transaction
from keygraph_resolvers import OperationRequest, Service
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, filled, world
from tests.schemas import schema_of
from tests.tracing import HeldStore

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
    TABLE,
    User,
    Order,
    Line,
    Likes,
    Note,
    Parcel,
    attribute_case="camel",
    type_attribute="type",
    writes=True,
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
        return await self.world.service.execute(
            OperationRequest(f"mutation {{ {document} }}", viewer=claims, **options)
        )

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


async def shop_of(
    make_store: MakeStore, *types: type, items: Iterable[Item] = (), index: Index = by_customer
) -> Shop:
    """A shop of these types, whose table has these items."""
    table = Table("Shop", partition_key="PK", sort_key="SK", indexes=[index])
    made = Graph(table, *types, writes=True).check()
    return Shop(world(made, await make_store(table, *items)))


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


async def test_who_may_change_a_field_may_not_move_the_record(shop: Shop) -> None:
    move = 'moveOrder(input: {orderId: "a1", to: {orderId: "new"}}) { order { orderId } }'
    assert await shop.refused(move, A) == [(FORBIDDEN, "orderId of Order: you may not write this field.")]
    assert await shop.done(move, CLERK) == {"moveOrder": {"order": {"orderId": "new"}}}


async def test_a_create_does_not_tell_what_is_hidden(shop: Shop) -> None:
    create = 'createOrder(input: {orderId: "%s", customerId: "a", status: PENDING}) { order { orderId } }'
    assert (await shop.refused(create % "a1", A))[0][0] == "ALREADY_EXISTS"
    refused = [(FORBIDDEN, "You may not create this Order.")]
    assert await shop.refused(create % "b1", A) == refused
    assert await shop.refused((create % "new").replace("PENDING", "PAID"), A) == refused
    assert (await shop.refused((create % "b1").replace('"a"', '"b"'), HELP))[0][0] == "ALREADY_EXISTS"


async def test_what_is_hidden_is_told_only_where_nothing_else_is_wrong(shop: Shop) -> None:
    for name in ("create", "upsert"):
        new = f'{name}Order(input: {{orderId: "%s", customerId: "h", status: PENDING}}) {{ order {{ orderId }} }}'
        found = [await shop.refused((new % each).replace('"h"', '"none"'), BOSS) for each in ("b1", "free")]
        assert found[0] == found[1] == [("NOT_FOUND", "customerId: there is no User with this key.")]
    move = 'moveOrder(input: {orderId: "%s", to: {orderId: "%s"}}) { order { orderId } }'
    assert await shop.refused(move % ("b1", "b1"), A) == await shop.refused(move % ("none", "none"), A)


async def test_what_names_a_node_and_is_hidden(shop: Shop) -> None:
    gone = 'deleteUser(input: {userId: "b"}) { deletedId }'
    some = "This User cannot be deleted: something names it."
    assert await shop.refused(gone, BOSS) == [("CONFLICT", some)]
    await shop.done('putLikes(input: {oneId: "b", otherId: "a"}) { likes { stars } }', B)
    seen = "This User cannot be deleted. It is named by 1 Likes (one)."
    assert await shop.refused(gone, BOSS) == [("CONFLICT", seen)]


async def test_what_names_a_node_in_an_index_with_a_hidden_field(make_store: MakeStore) -> None:
    @node("FIRM#{firm_id}", access=[read(), write()])
    class Firm:
        firm_id: ID

    @node("PERSON#{person_id}", by_customer("{firm}", "{wage:06d}"), access=[read(), write()])
    class Person:
        person_id: ID
        firm: Firm | None
        wage: int | None = stored(access=[read(role="staff"), write()])

    made = await shop_of(make_store, Firm, Person)
    staff = {"roles": ["staff"]}
    await made.done('createFirm(input: {firmId: "1"}) { firm { firmId } }', A)
    await made.done(
        'createPerson(input: {personId: "1", firmId: "1", wage: 7}) { person { personId } }', staff
    )
    for what, gone in (
        ("deleted", 'deleteFirm(input: {firmId: "1"}) { deletedId }'),
        ("moved", 'moveFirm(input: {firmId: "1", to: {firmId: "2"}}) { previousId }'),
    ):
        some = f"This Firm cannot be {what}: something names it."
        assert await made.refused(gone, A) == [("CONFLICT", some)]
        seen = f"This Firm cannot be {what}. It is named by 1 Person (firm)."
        assert await made.refused(gone, staff) == [("CONFLICT", seen)]
    detach = 'deleteFirm(input: {firmId: "1", onEdges: DETACH}) { detached }'
    assert await made.refused(detach, A) == [(FORBIDDEN, "You may not delete everything that names this.")]
    assert (await made.done(detach, staff))["deleteFirm"] == {"detached": 1}


async def test_how_many_name_a_node_is_counted_where_none_can_be_hidden(make_store: MakeStore) -> None:
    """Of a page of a hundred records, hidden ones left fewer that are visible, and more to read; also of another type."""

    @node("FIRM#{firm_id}", access=[read(), write()])
    class Firm:
        firm_id: ID

    @record("{firm}", "BILL#{number:03d}", access=[read(where={"is_open": True}), read(role="staff")])
    class Bill:
        firm: Firm
        number: int
        is_open: bool

    @record("{firm}", "MEMO#{number:03d}", access=[read(where={"is_open": True}), read(role="staff")])
    class Memo(Bill):
        pass

    @record("{firm}", "BILL#{number:03d}#NOTE", access=[read()])
    class Note:
        firm: Firm
        number: int

    gone = 'deleteFirm(input: {firmId: "1"}) { deletedId }'
    seen = "This Firm cannot be deleted. It is named by at least 1 Bill (firm), at least 1 Memo (firm), at least 1 Note (firm)."
    firm: list[Item] = [{"PK": "FIRM#1", "SK": "FIRM#1"}]
    for form in ("BILL#{:03d}", "MEMO#{:03d}", "BILL#{:03d}#NOTE"):
        firm += [{"PK": "FIRM#1", "SK": form.format(number), "is_open": True} for number in (1, 2, 999)]
    made = await shop_of(make_store, Firm, Bill, Memo, Note, items=firm)
    assert await made.refused(gone, A) == [("CONFLICT", seen)]
    assert (
        "named by 3 Bills (firm), 3 Memos (firm), 3 Notes (firm)"
        in (await made.refused(gone, {"roles": ["staff"]}))[0][1]
    )
    hidden = [{"PK": "FIRM#1", "SK": f"BILL#{number:03d}", "is_open": False} for number in range(150)]
    await made.world.put(*hidden)
    assert await made.refused(gone, A) == [("CONFLICT", seen)]


async def test_what_names_a_node_in_hidden_lists(make_store: MakeStore) -> None:
    @node("CLIENT#{client_id}", access=[read(), write()])
    class Client:
        client_id: ID
        jobs: Many[Job]
        audited: Many[Job] = many(access=[read(role="staff")])
        own: Many[Job] = many(access=[read(where={"client_id": viewer("sub")})])

    @node("JOB#{job_id}", by_customer("{client}", "{job_id}"), access=[read(), write()])
    class Job:
        job_id: ID
        client: Client

    made = await shop_of(make_store, Client, Job)
    await made.done('createClient(input: {clientId: "1"}) { client { clientId } }', A)
    await made.done('createJob(input: {jobId: "1", clientId: "1"}) { job { jobId } }', A)
    for claims, lists in (
        (A, ["jobs"]),
        ({"sub": "1"}, ["jobs", "own"]),
        ({"roles": ["staff"]}, ["jobs", "audited"]),
    ):
        answer = await made.answer('deleteClient(input: {clientId: "1"}) { deletedId }', claims)
        [named] = answer["errors"][0]["extensions"]["namedBy"]
        assert named == {"type": "Job", "field": "client", "atLeast": 1, "lists": lists}


async def test_what_names_a_node_by_a_hidden_end(make_store: MakeStore) -> None:
    @node("CLIENT#{client_id}", access=[read(), write()])
    class Client:
        client_id: ID

    @node("JOB#{job_id}", by_customer("{client}", "{job_id}"), access=[read(), write()])
    class Job:
        job_id: ID
        client: Client | None = stored(access=[read(role="staff"), write()])

    made = await shop_of(make_store, Client, Job)
    await made.done('createClient(input: {clientId: "1"}) { client { clientId } }', A)
    await made.done('createJob(input: {jobId: "1", clientId: "1"}) { job { jobId } }', A)
    gone = 'deleteClient(input: {clientId: "1"}) { deletedId }'
    assert await made.refused(gone, A) == [("CONFLICT", "This Client cannot be deleted: something names it.")]
    seen = "This Client cannot be deleted. It is named by 1 Job (client)."
    assert await made.refused(gone, {"roles": ["staff"]}) == [("CONFLICT", seen)]
    detach = 'deleteClient(input: {clientId: "1", onEdges: DETACH}) { detached }'
    hidden = "You may not delete everything that names this."
    assert await made.refused(detach, A) == [(FORBIDDEN, hidden)]
    assert await made.done(detach, {"roles": ["staff"]}) == {"deleteClient": {"detached": 1}}


async def test_a_put_takes_no_field_away_that_is_not_ones_own(shop: Shop) -> None:
    put = 'putNote(input: {userId: "a", number: 1, text: "%s"%s}) { note { text grade } }'
    await shop.done(put % ("x", ", grade: 5"), HELP)
    refused = [(FORBIDDEN, "grade of Note: you may not write this field.")]
    assert await shop.refused(put % ("y", ""), A) == refused
    assert await shop.done(put.replace("number: 1", "number: 2") % ("y", ""), A)
    change = 'updateNote(input: {userId: "a", number: 1, text: "y"}) { note { text grade } }'
    assert (await shop.done(change, A))["updateNote"]["note"] == {"text": "y", "grade": 5}
    assert (await shop.done(put % ("z", ""), HELP))["putNote"]["note"] == {"text": "z", "grade": None}


async def test_no_second_item_of_a_hidden_record(shop: Shop) -> None:
    for name in ("create", "upsert"):
        for shard in range(3):
            key = f"PARCEL#{name}{shard}"
            hidden = {"PK": f"{key}#S{shard}", "SK": key, "type": "Parcel", "parcelId": f"{name}{shard}"}
            await shop.world.put({**hidden, "owner": "b"})
            new = f'{name}Parcel(input: {{parcelId: "{name}{shard}", owner: "a"}}) {{ parcel {{ owner }} }}'
            assert await shop.refused(new, A) == [(FORBIDDEN, "You may not create this Parcel.")]


async def test_the_cost_of_a_write_does_not_tell_what_is_hidden(shop: Shop) -> None:
    move = 'moveOrder(input: {orderId: "%s", to: {orderId: "new"}}) { order { orderId } }'
    found = [await shop.answer(move % name, A, with_cost=True) for name in ("b1", "none")]
    assert found[0] == found[1]
    assert found[0]["extensions"]["cost"]["actual"] is None
    done = await shop.answer(move % "b1", BOSS | HELP, with_cost=True)
    assert done["extensions"]["cost"]["actual"] is None


async def test_the_version_of_a_hidden_record_is_not_told(shop: Shop) -> None:
    change = 'updateOrder(input: {orderId: "b1", note: "x", expectedRevision: 9}) { order { note } }'
    [[code, told]] = await shop.refused(change.replace("expectedRevision", "expectedVersion"), A)
    assert (code, told) == NO_ORDER
    [[code, told]] = await shop.refused(change.replace("expectedRevision", "expectedVersion"), B)
    assert (code, "its version is 1" in told) == ("CONFLICT", True)


async def test_upserts_and_puts(shop: Shop) -> None:
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


async def test_no_race_gets_past_a_rule(shop: Shop) -> None:
    rival = Service(schema_of(graph), shop.world.tracer.store, secret=b"secret")

    async def before(request: object) -> None:
        if isinstance(request, Transaction):
            paid = 'mutation { updateOrder(input: {orderId: "b1", status: PAID}) { order { note } } }'
            assert "errors" not in await rival.execute(OperationRequest(paid, viewer=HELP))

    shop = Shop(world(graph, HeldStore(shop.world.tracer.store, before)))
    change = 'updateOrder(input: {orderId: "b1", note: "late"}) { order { note } }'
    found = await shop.answer(change, CLERK)
    assert [error["extensions"]["code"] for error in found["errors"]] == [FORBIDDEN]
    [order] = [item for item in await shop.items() if item["PK"] == "ORDER#b1"]
    assert (order["status"], order.get("note")) == ("paid", None)


async def test_an_idempotency_key_is_its_viewers(shop: Shop) -> None:
    new = 'createOrder(input: {orderId: "i1", customerId: "a", status: PENDING}) { order { orderId } }'
    assert await shop.done(new, A | {"exp": 1}, idempotency_key="k")
    assert await shop.done(new, A | {"exp": 2, "nonce": "n", "roles": ["new"]}, idempotency_key="k")
    found = await shop.answer(new, B, idempotency_key="k")
    assert [error["extensions"]["code"] for error in found["errors"]] == [FORBIDDEN]
    found = await shop.answer(new, HELP, idempotency_key="k")
    assert [error["extensions"]["code"] for error in found["errors"]] == ["ALREADY_EXISTS"]


async def test_what_a_key_of_an_index_alone_says(shop: Shop) -> None:
    [item] = [each for each in await shop.items() if each["PK"] == "ORDER#a1"]
    await shop.world.put({name: value for name, value in item.items() if name != "customerId"})
    assert await shop.done('updateOrder(input: {orderId: "a1", note: "x"}) { order { note } }', A)
    assert await shop.refused('updateOrder(input: {orderId: "a1", note: "y"}) { order { note } }', B) == [
        NO_ORDER
    ]
    assert await shop.done('deleteOrder(input: {orderId: "a1"}) { deletedId }', A)


async def test_a_plan_shows_the_rule(shop: Shop) -> None:
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
    made = await shop_of(make_store, Firm, Bill, FirmBill, BillFirm)
    await made.world.put(*({"PK": key, "SK": key} for key in ("FIRM#f", "BILL#b", "BILL#c")))
    firm, both = {"roles": ["firm"]}, {"roles": ["both"]}
    put = 'putFirmBill(input: {firmId: "f", billId: "%s", amount: %d}) { firmBill { amount } }'
    assert await made.refused(put % ("b", 11), firm) == [(FORBIDDEN, "You may not create this FirmBill.")]
    await made.done(put % ("b", 10), firm)
    assert await made.refused(put % ("b", 5), firm) == [(FORBIDDEN, "You may not update this FirmBill.")]
    change = 'updateFirmBill(input: {firmId: "f", billId: "b", amount: 5}) { firmBill { amount } }'
    assert await made.refused(change, firm) == [(FORBIDDEN, "You may not update this FirmBill.")]
    gone = 'deleteFirmBill(input: {firmId: "f", billId: "b"}) { firm { firmId } }'
    assert await made.refused(gone, firm) == [(FORBIDDEN, "You may not delete this FirmBill.")]
    await made.done(change, both)
    await made.done(gone, both)
    assert len(await made.items()) == 3


async def test_nothing_is_computed_from_a_counterpart_that_may_not_be_changed(make_store: MakeStore) -> None:
    """A key that would be too long told how long its other part is."""
    by_note = Index("by-note", "NotePK", "NoteSK")

    @edge("{firm}", "{bill}", counterpart="Share", access=[read(), write()])
    class Part:
        firm: Firm
        bill: Bill
        note: str

    @edge("{bill}", "{firm}", by_note("NOTES", "{note}#{secret}", lists="notes"), access=[write(role="hr")])
    class Share:
        bill: Bill
        firm: Firm
        note: str
        secret: str | None = stored(default=None)

    made = await shop_of(make_store, Firm, Bill, Part, Share, index=by_note)
    asked = f'updatePart(input: {{firmId: "f", billId: "b", note: "{"n" * 1000}"}}) {{ clientMutationId }}'
    for secret in ("s", "s" * 90):
        share: Item = {"PK": "BILL#b", "SK": "FIRM#f", "note": "n", "secret": secret}
        share |= {"NotePK": "NOTES", "NoteSK": f"n#{secret}"}
        await made.world.put({"PK": "FIRM#f", "SK": "BILL#b", "note": "n"}, share)
        assert await made.refused(asked, A) == [(FORBIDDEN, "You may not update this Part.")]


async def test_the_own_fields_of_a_counterpart_are_held_too(make_store: MakeStore) -> None:
    """A write of one edge changes the shared fields of the other, and a put replaces all of them."""
    hr = [read(), write(role="hr")]
    for access, own, of_shared, left in (
        ([read(), write()], hr, [], {"update", "upsert", "add"}),
        ([read(), write()], [], hr, set()),
        ([read(), write(where={"rest": {"lt": 5}})], [], [], set()),
        ([read(where={"rest": {"lt": 5}}), write()], [], [], set()),
        ([read(), write(where={"rest": {"lt": 9}})], [], [], {"update", "upsert", "add", "put"}),
    ):

        @edge("{firm}", "{bill}", counterpart="Share", access=[read(), write()])
        class Part:
            firm: Firm
            bill: Bill
            amount: int

        @edge("{bill}", "{firm}", counterpart="Part", access=access)
        class Share:
            bill: Bill
            firm: Firm
            amount: int = stored(access=of_shared)
            rest: int = stored(default=0, access=own)

        made = await shop_of(make_store, Firm, Bill, Part, Share)
        await made.world.put(*({"PK": key, "SK": key} for key in ("FIRM#f", "BILL#b")))
        pair: list[Item] = [
            {"PK": "FIRM#f", "SK": "BILL#b", "amount": Decimal(1)},
            {"PK": "BILL#b", "SK": "FIRM#f", "amount": Decimal(1), "rest": Decimal(7)},
        ]
        for name in ("update", "upsert", "put", "add"):
            await made.world.put(*pair)
            given = "add: {amount: 1}" if name == "add" else "amount: 2"
            verb = "update" if name == "add" else name
            asked = f'{verb}Part(input: {{firmId: "f", billId: "b", {given}}}) {{ part {{ amount }} }}'
            if name in left:
                await made.done(asked, A)
            else:
                assert await made.refused(asked, A) == [(FORBIDDEN, "You may not update this Part.")]
                assert [each for each in await made.items() if "amount" in each] == pair[::-1]


async def test_an_end_is_changed_by_another_name_by_who_may_read_and_write_it(make_store: MakeStore) -> None:
    """Whether the new node exists would tell the part of a hidden end that stays; and a move is a write of its ends."""
    boss = [read(role="boss"), write(role="boss")]

    @node("PERSON#{org}", "{name}", access=[read()])
    class Person:
        org: ID
        name: ID

    @node("TASK#{org}", "{name}", access=[read(), write()])
    class Task:
        org: ID
        name: ID
        mine: Person | None = stored(org="of", name="mineName")
        secret: Person | None = stored(org="of", name="secretName", access=[read(role="boss")])
        read_only: Person | None = stored(org="org", name="readName", access=[read(), write(role="boss")])
        hidden: Person | None = stored(org="org", name="hiddenName", access=boss)

    made = await shop_of(make_store, Person, Task)
    await made.world.put(*({"PK": f"PERSON#{org}", "SK": "ann"} for org in "ab"))
    task = {"PK": "TASK#a", "SK": "t", "of": "a", "mineName": "ann"}
    update = (
        'updateTask(input: {org: "a", name: "t", mine: {org: "b", name: "ann"}}) { task { mine { org } } }'
    )
    move = 'moveTask(input: {org: "a", name: "t", to: {org: "b"}}) { task { org } }'
    rename = 'moveTask(input: {org: "a", name: "t", to: {org: "a", name: "%s"}}) { task { name } }'
    problem = "of Task: you may not read and write everything that is stored in its attribute."
    boss_claims = {"sub": "a", "roles": ["boss"]}
    for name in ("", "ann", "bob"):
        hidden = {"secretName": name, "hiddenName": name} if name else {}
        await made.world.put({**task, **hidden})
        assert await made.refused(update, A) == [(FORBIDDEN, f"mine {problem}")]
        assert await made.refused(move, A) == [(FORBIDDEN, f"org {problem}")]
        if name == "bob":
            assert await made.refused(move, boss_claims) == [
                ("NOT_FOUND", "org: there is no Person with this key.")
            ]
        await made.done(rename % f"new {name}", A)
    await made.world.put({**task, "readName": "ann"})
    await made.done(update, boss_claims)
    await made.done(move, boss_claims)


async def test_nothing_is_computed_from_a_record_that_may_not_be_changed(make_store: MakeStore) -> None:
    """What cannot be computed refused the write too, and so told the values."""
    mine = {"owner": viewer("sub")}
    hidden = [read(where=mine), write()]
    by_rank = Index("by-rank", "RankPK", "RankSK")

    @node("TEAM#{team_id}", access=[read(), write()])
    class Team:
        team_id: ID
        jobs: Many[Job]
        paid: Decimal | None = sums("jobs.pay", access=[read(role="boss")])

    @node("PERSON#{name}", by_rank("RANKS", "{rank:05d}"), access=[read(), create(), update()])
    class Person:
        name: ID
        owner: str | None
        rank: int | None = stored(access=hidden)
        amount: Decimal | None = stored(access=hidden)

    @node("PACK#{name}", access=[read(), update()])
    class Pack:
        name: ID
        owner: str
        marks: frozenset[str] = stored(access=hidden)

    @record("{team}", "JOB#{number}", access=[read(), create(), update(where=mine)])
    class Job:
        team: Team
        number: int
        owner: str
        pay: Decimal = stored(access=hidden)
        note: str | None

    made = await shop_of(make_store, Team, Person, Pack, Job, index=by_rank)
    team: Item = {"PK": "TEAM#t", "SK": "TEAM#t", "paid": Decimal(3)}
    add = "you may not read this field, so not add to it or remove from it."
    of_person = {
        "rank: 2147483640": f"rank of Person: {add}",
        'amount: "0.0000000000000000000000000000000001"': f"amount of Person: {add}",
    }
    for rank, amount, marks in ((1, 1, "ab"), (9_000, 12_345, "ac"), (None, None, "ac")):
        person: Item = {"PK": "PERSON#p", "SK": "PERSON#p", "owner": "b"}
        pack: Item = {"PK": "PACK#p", "SK": "PACK#p", "owner": "b", "marks": frozenset(marks)}
        job: Item = {"PK": "TEAM#t", "SK": "JOB#1", "owner": "b", "pay": "?"}
        if rank is not None:
            index: Item = {"RankPK": "RANKS", "RankSK": f"{rank:05d}"}
            person |= {"rank": Decimal(rank), "amount": Decimal(amount), **index}
            job["pay"] = Decimal(amount)
        else:
            person |= {"rank": "?", "amount": "?"}
        await made.world.put(team, person, pack, job)
        for given, problem in of_person.items():
            for verb in ("update", "upsert"):
                asked = f'{verb}Person(input: {{name: "p", add: {{ {given} }}}}) {{ clientMutationId }}'
                assert await made.refused(asked, A) == [(FORBIDDEN, problem)]
        asked = 'updatePack(input: {name: "p", remove: {marks: ["a", "c"]}}) { clientMutationId }'
        assert await made.refused(asked, A) == [(FORBIDDEN, f"marks of Pack: {add}")]
        for given in ('add: {pay: "1e-34"}', 'pay: "1e-34"', 'note: "n"'):
            asked = f'updateJob(input: {{teamId: "t", number: 1, {given}}}) {{ clientMutationId }}'
            assert await made.refused(asked, A) == [(FORBIDDEN, "You may not update this Job.")]


async def test_a_virtual_node_that_is_hidden_is_not_named(make_store: MakeStore) -> None:
    """It has no item for which the transaction could look: its key, or another item, decides."""
    member = {"members": {"person": viewer("sub")}}

    @node("TAG#{name}", item=False, access=[read(where={"name": viewer("sub")}), read(where=member)])
    class Tag:
        name: ID
        members: Many[Membership]

    @node("PERSON#{name}", access=[read(), write()])
    class Person:
        name: ID
        notes: Many[Note]
        favorite: Tag | None

    @edge("{tag}", "{person}", access=[read()])
    class Membership:
        tag: Tag
        person: Person

    @edge("{person}", "{tag}", access=[read(), write()])
    class Note:
        person: Person
        tag: Tag

    made = await shop_of(make_store, Tag, Person, Membership, Note)
    await made.world.put({"PK": "PERSON#a", "SK": "PERSON#a"}, {"PK": "TAG#joined", "SK": "PERSON#a"})
    for name in ("a", "joined", "other"):
        for asked, where in (
            (f'createNote(input: {{personName: "a", tagName: "{name}"}})', "tagName"),
            (f'updatePerson(input: {{name: "a", favoriteName: "{name}"}})', "favoriteName"),
            (f'createPerson(input: {{name: "new {name}", notes: [{{tagName: "{name}"}}]}})', "tagName"),
        ):
            if name == "other":
                problem = f"{where}: there is no Tag with this key."
                assert await made.refused(f"{asked} {{ clientMutationId }}", A) == [("NOT_FOUND", problem)]
            else:
                await made.done(f"{asked} {{ clientMutationId }}", A)


async def test_a_hidden_counterpart_is_found_only_where_nothing_else_is_wrong(make_store: MakeStore) -> None:
    """It was refused before the nodes at the ends were looked for, and in other words."""
    seen = [read(where={"shown": True}), write()]

    @node("FIRM#{firm_id}", access=seen)
    class Firm:
        firm_id: ID
        shown: bool = True

    @edge("{firm}", "{bill}", counterpart="Share", access=seen)
    class Part:
        firm: Firm
        bill: Bill
        amount: int = 1
        shown: bool = True

    @edge("{bill}", "{firm}", counterpart="Part", access=[read(where={"rest": {"lt": 5}}), write()])
    class Share:
        bill: Bill
        firm: Firm
        amount: int = 1
        shown: bool = True
        rest: int = stored(default=0)

    nodes: list[Item] = [{"PK": "FIRM#f", "SK": "FIRM#f"}, {"PK": "BILL#b", "SK": "BILL#b"}]
    hidden: Item = {"PK": "FIRM#h", "SK": "FIRM#h", "shown": False}
    made = await shop_of(make_store, Firm, Bill, Part, Share, items=[*nodes, hidden])
    no_firm = [("NOT_FOUND", "firmId: there is no Firm with this key.")]
    for name in ("Part", "Share"):
        for verb in ("create", "put", "upsert"):
            for firm in ("f", "h", "none"):
                edges: list[Item] = [
                    {"PK": f"FIRM#{firm}", "SK": "BILL#b", "amount": Decimal(1), "shown": False},
                    {"PK": "BILL#b", "SK": f"FIRM#{firm}", "amount": Decimal(1), "rest": Decimal(7)},
                ]
                asked = f'{verb}{name}(input: {{firmId: "{firm}", billId: "b", amount: 2}}) {{ clientMutationId }}'
                theirs = edges[1]
                for there in (edges, [theirs]) if name == "Part" else (edges,):
                    await made.world.put(*there)
                    forbidden = [(FORBIDDEN, f"You may not create this {name}.")]
                    assert await made.refused(asked, A) == (forbidden if firm == "f" else no_firm)
                    await made.world.tracer.store.send(
                        BatchWrite(deletes=tuple((each["PK"], each["SK"]) for each in there))
                    )
                if firm != "f":
                    assert await made.refused(asked, A) == no_firm
    assert await made.items() == sorted((*nodes, hidden), key=lambda item: item["PK"])
    # For a hidden edge nothing more is read than for none.
    await made.world.put({"PK": "BILL#b", "SK": "FIRM#f", "rest": Decimal(7)})
    for bill in ("b", "none"):
        made.world.forget()
        moved = (
            f'moveShare(input: {{firmId: "f", billId: "{bill}", to: {{firmId: "h"}}}}) {{ clientMutationId }}'
        )
        assert await made.refused(moved, A) == [("NOT_FOUND", "There is no Share with this key.")]
        assert made.world.operations == {"GetItem": 1}


async def test_a_counterpart_is_moved_by_who_may_move_it(make_store: MakeStore) -> None:
    """A field of an edge may be in the key of its counterpart alone, and a rule may be about another item."""
    member = {"bill": {"readers": {"firm": viewer("sub")}}}

    @node("BILL#{bill_id}", access=[read()])
    class Bill:
        bill_id: ID
        readers: Many[Reader]

    @edge("{bill}", "READER#{firm.firm_id}", access=[read()])
    class Reader:
        bill: Bill
        firm: Firm

    @edge("{firm}", "{bill}", counterpart="Share", access=[read(), write()])
    class Part:
        firm: Firm
        bill: Bill
        amount: int
        rank: int

    @edge(
        "{bill}",
        "SHARE#{rank}#{firm.firm_id}",
        counterpart="Part",
        access=[
            read(where=member),
            create(),
            delete(),
            update(fields=["amount"]),
            update(where=member, role="clerk"),
        ],
    )
    class Share:
        bill: Bill
        firm: Firm
        amount: int
        rank: int

    made = await shop_of(make_store, Firm, Bill, Reader, Part, Share)
    bills = ("BILL#b", "BILL#c", "BILL#d")
    await made.world.put(*({"PK": key, "SK": key} for key in ("FIRM#f", *bills)))
    await made.world.put(*({"PK": key, "SK": "READER#f"} for key in bills[:2]))
    reader, clerk = {"sub": "f"}, {"sub": "f", "roles": ["clerk"]}
    await made.done('createPart(input: {firmId: "f", billId: "b", amount: 1, rank: 1}) { part { rank } }', A)
    change = 'updatePart(input: {firmId: "f", billId: "b", %s}) { part { amount rank } }'
    move = 'movePart(input: {firmId: "f", billId: "%s", to: {billId: "%s"}}) { part { amount } }'
    refused = [(FORBIDDEN, "You may not move this Part.")]
    assert await made.refused(change % "amount: 2", A) == [(FORBIDDEN, "You may not update this Part.")]
    assert await made.refused(change % "rank: 2", reader) == refused
    assert await made.refused(move % ("b", "c"), reader) == refused
    assert await made.refused(move % ("b", "d"), clerk) == refused
    await made.done(change % "amount: 2", reader)
    await made.done(change % "rank: 2", clerk)
    await made.done(move % ("b", "c"), clerk)
    [share] = [item["SK"] for item in await made.items() if item["PK"] == "BILL#c" and "amount" in item]
    assert share == "SHARE#2#f"
    gone = 'deletePart(input: {firmId: "f", billId: "c"}) { firm { firmId } }'
    assert await made.refused(gone, A) == [(FORBIDDEN, "You may not delete this Part.")]
    await made.done(gone, reader)


async def test_several_nodes_that_are_not_there(make_store: MakeStore) -> None:
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

    made = await shop_of(make_store, Case, Pair)
    for kind in ("open", "secret"):
        index = {"customerKey": f"KIND#{kind}", "orderKey": f"CASE#{kind}"}
        await made.world.put({"PK": f"CASE#{kind}", "SK": f"CASE#{kind}", **index, "case_id": kind})
    new = 'createPair(input: {pairId: "%s", caseId: "%s", otherId: "%s"}) { pair { pairId } }'
    both = [("NOT_FOUND", f"{name}: there is no Case with this key.") for name in ("caseId", "otherId")]
    assert await made.refused(new % ("1", "none", "gone"), A) == both
    assert await made.refused(new % ("1", "secret", "gone"), A) == both
    assert await made.refused(new % ("1", "open", "secret"), A) == both[1:]
    assert await made.done(new % ("1", "open", "open"), A)


async def test_updating(shop: Shop) -> None:
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


@node(
    "LETTER#{letter_id}",
    access=[
        read(fields=["text", "visits"]),
        update(fields=["text", "weight", "tags", "visits"]),
        write(role="hr"),
        read(role="hr"),
    ],
)
class Letter:
    letter_id: ID
    text: str
    weight: int = stored(default=5, access=[read(role="hr"), write()])
    tags: set[str] | None = stored(access=[read(role="hr"), write()])
    visits: int = stored(default=0, access=[read(where={"text": "old"}), write()])
    revision: int = version()


letters = filled(
    Graph(Table("Letters", partition_key="PK"), Letter, writes=True),
    [{"PK": "LETTER#1", "letter_id": "1", "text": "old", "revision": Decimal(7)}],
)


@pytest.mark.parametrize(
    ("viewer_", "message", "details"),
    [
        (CLERK, "This Letter has changed.", {}),
        ({"roles": ["hr"]}, "This Letter has changed: its version is 7.", {"currentVersion": 7}),
    ],
)
async def test_a_conflict_names_the_version_to_who_may_read_it(
    letters: World, viewer_: Any, message: str, details: dict[str, int]
) -> None:
    change = 'mutation { updateLetter(input: {letterId: "1", text: "new", expectedVersion: 3}) { letter { text } } }'
    [error] = (await letters.service.execute(OperationRequest(change, viewer=viewer_)))["errors"]
    assert error["message"] == message
    assert {
        name: value for name, value in error["extensions"].items() if name not in ("requestId", "path")
    } == {
        "code": "CONFLICT",
        **details,
    }


@pytest.mark.parametrize("change", ["add: {weight: 1}", 'remove: {tags: ["a"]}', 'add: {tags: ["a"]}'])
async def test_only_who_may_read_a_field_may_add_to_it(letters: World, change: str) -> None:
    """Where the sum or the rest is refused, the value could be found out."""
    document = f'mutation {{ updateLetter(input: {{letterId: "1", {change}}}) {{ letter {{ text }} }} }}'
    found = await letters.service.execute(OperationRequest(document, viewer=CLERK))
    [error] = found["errors"]
    assert error["extensions"]["code"] == FORBIDDEN
    assert error["message"].endswith(
        " of Letter: you may not read this field, so not add to it or remove from it."
    )
    assert "errors" not in await letters.service.execute(OperationRequest(document, viewer={"roles": ["hr"]}))
    given = document.replace(change, "weight: 9")
    assert "errors" not in await letters.service.execute(OperationRequest(given, viewer=CLERK))


async def test_who_adds_reads_the_field_before_the_write(letters: World) -> None:
    document = (
        'mutation { updateLetter(input: {letterId: "1", text: "new", add: {visits: 1}}) { letter { text } } }'
    )
    assert "errors" not in await letters.service.execute(OperationRequest(document, viewer=CLERK))
    [error] = (await letters.service.execute(OperationRequest(document, viewer=CLERK)))["errors"]
    assert error["extensions"] | {"requestId": ""} == {
        "code": FORBIDDEN,
        "path": ["input", "add", "visits"],
        "requestId": "",
    }


@node("CLUB#{club_id}", access=[read(), write()])
class Club:
    club_id: ID

    visits: Many[Visit]


@record("{club}", "VISIT#{number}", access=[read(), delete(where={"locked": False})])
class Visit:
    club: Club
    number: int
    locked: bool = False


@pytest.fixture
async def clubs(make_store: MakeStore) -> Shop:
    made = await shop_of(make_store, Club, Visit)
    await made.world.put({"PK": "CLUB#1", "SK": "CLUB#1", "club_id": "1"})
    return made


@pytest.mark.parametrize("locked", [0, 99])
async def test_a_deletion_that_is_refused_has_deleted_nothing(clubs: Shop, locked: int) -> None:
    """The visit with number 99 is the last one of the partition, on the second page."""
    keys = [{"PK": "CLUB#1", "SK": f"VISIT#{number}", "number": Decimal(number)} for number in range(130)]
    await clubs.world.put(*(each | {"locked": each["number"] == locked} for each in keys))
    gone = 'deleteClub(input: {clubId: "1", onEdges: DETACH}) { detached }'
    hidden = (FORBIDDEN, "You may not delete everything that names this.")
    assert await clubs.refused(gone, A) == [hidden]
    await clubs.world.put(keys[locked])
    assert await clubs.done(gone, A) == {"deleteClub": {"detached": 130}}
    assert await clubs.items() == []
