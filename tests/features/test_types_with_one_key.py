"""Types whose items can have the same keys and are told apart by their attributes: a write of one leaves the others."""

from __future__ import annotations

from decimal import Decimal

import pytest

from keygraph import ID, Graph, Many, Table, counts, edge, node, read, record, viewer, write
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet
from keygraph_resolvers import OperationRequest
from tests.conftest import in_one_world
from tests.resolvers.worlds import World, filled, world


@node("{account_id}", "{account_id}", type=None)
class Account:
    account_id: ID
    credit_count: int | None = counts("credits")
    invoices: Many[Invoice]
    credits: Many[Credit]


@record("{account}", "{number:06d}", type="INV")
class Invoice:
    account: Account
    number: int
    text: str | None


@record("{account}", "{number:06d}", type="CR")
class Credit:
    account: Account
    number: int
    text: str | None


@node("SLIP#{number}", type={"Kind": "SLIP"})
class Slip:
    number: int
    text: str | None


@node("SLIP#{number}", type={"Kind": "SLIP", "wrap": "gift"})
class GiftSlip:
    number: int
    text: str | None


@edge("{one}", "FRIEND#{other}", type="FRIEND", mirror=True)
class Friend:
    one: Account
    other: Account
    text: str | None


@record("{account}", "FRIEND#{about}", type="NOTE")
class Note:
    account: Account
    about: Account
    text: str | None


graph = Graph(
    Table("Accounts", partition_key="PK", sort_key="SK"),
    Account, Invoice, Credit, Slip, GiftSlip, Friend, Note,
    type_attribute="Kind", writes=True,
).check()  # fmt: skip

ACCOUNT: Item = {"PK": "7", "SK": "7"}
STORED: list[Item] = [
    {"PK": "7", "SK": "000001", "Kind": "CR", "text": "credit"},
    {"PK": "7", "SK": "000002", "Kind": "INV", "text": "invoice"},
    {"PK": "SLIP#1", "SK": "SLIP#1", "Kind": "SLIP", "wrap": "gift", "text": "gift"},
    {"PK": "SLIP#2", "SK": "SLIP#2", "Kind": "SLIP", "text": "slip"},
    {"PK": "SLIP#3", "SK": "SLIP#3", "Kind": "PAGE", "text": "of no type"},
    {"PK": "7", "SK": "FRIEND#8", "Kind": "NOTE", "text": "note"},
    {"PK": "8", "SK": "FRIEND#7", "Kind": "FRIEND", "text": "half"},
]

accounts = filled(graph, [{**ACCOUNT, "credit_count": Decimal(1)}, {"PK": "8", "SK": "8"}, *STORED])


async def unchanged(world: World) -> bool:
    keys = tuple((str(each["PK"]), str(each["SK"])) for each in STORED)
    found = [*(await world.tracer.store.send(BatchGet(keys, consistent=True))).items]
    return found == STORED


def key(name: str, number: int) -> tuple[str, str]:
    account = "" if "Slip" in name else 'accountId: "7", '
    return name, f"{account}number: {number}"


CREATES = [
    'create{0}(input: {{{1}, text: "new"}})',
    'upsert{0}(input: {{{1}, text: "new"}})',
    'create{0}s(input: {{inputs: [{{{1}, text: "new"}}]}})',
]

PUTS = [
    'put{0}(input: {{{1}, text: "new"}})',
    'put{0}s(input: {{inputs: [{{{1}, text: "new"}}]}})',
    'write(input: {{actions: [{{put{0}: {{{1}, text: "new"}}}}]}})',
]


@in_one_world(
    ("mutation", "of", "there"),
    [
        (mutation, key(*of), there)
        for mutations, *of, there in [
            (PUTS, "Invoice", 1, "a Credit"),
            (PUTS, "Credit", 2, "an Invoice"),
            (CREATES, "Slip", 1, "a GiftSlip"),
            (CREATES, "GiftSlip", 2, "a Slip"),
            (CREATES, "Slip", 3, "another item"),
        ]
        for mutation in mutations
    ],
)
async def test_a_new_record_takes_no_key_of_another_type(
    accounts: World, mutation: str, of: tuple[str, str], there: str
) -> None:
    told = ("ALREADY_EXISTS", f"There is already {there} with this key.")
    assert await accounts.errors(f"mutation {{ {mutation.format(*of)} {{ __typename }} }}") == [told]
    assert await unchanged(accounts)


@pytest.mark.parametrize(
    "mutation",
    [
        'update{0}(input: {{{1}, text: "new"}})',
        "delete{0}(input: {{{1}}})",
        "move{0}(input: {{{1}, to: {{number: 9}}}})",
        'update{0}s(input: {{inputs: [{{{1}, text: "new"}}]}})',
        "write(input: {{actions: [{{delete{0}: {{{1}}}}}]}})",
    ],
)
@in_one_world("of", [key("Invoice", 1), key("Credit", 2), key("Slip", 1), key("GiftSlip", 2), key("Slip", 3)])
async def test_a_change_does_not_touch_another_type(
    accounts: World, mutation: str, of: tuple[str, str]
) -> None:
    told = ("NOT_FOUND", f"There is no {of[0]} with this key.")
    assert await accounts.errors(f"mutation {{ {mutation.format(*of)} {{ __typename }} }}") == [told]
    assert await unchanged(accounts)


async def test_a_record_is_not_moved_to_a_key_of_another_type(accounts: World) -> None:
    asked = 'moveInvoice(input: {accountId: "7", number: 2, to: {number: 1}}) { __typename }'
    told = ("ALREADY_EXISTS", "There is already a Credit with this key.")
    assert await accounts.errors(f"mutation {{ {asked} }}") == [told]
    assert await unchanged(accounts)


@pytest.mark.parametrize(
    "mutation",
    [
        'putFriend(input: {oneId: "8", otherId: "7", text: "new"})',
        'updateFriend(input: {oneId: "8", otherId: "7", text: "new"})',
        'deleteFriend(input: {oneId: "8", otherId: "7"})',
    ],
)
async def test_the_other_item_of_an_edge_takes_no_key_of_another_type(accounts: World, mutation: str) -> None:
    told = ("CONFLICT", "The other item of this Friend would take the place of another one.")
    assert await accounts.errors(f"mutation {{ {mutation} {{ __typename }} }}") == [told]
    assert await unchanged(accounts)


async def test_records_of_the_type_itself_are_replaced(accounts: World) -> None:
    accounts.forget()
    for name, number in (("putInvoice", 2), ("putInvoice", 3), ("updateSlip", 2), ("updateGiftSlip", 1)):
        given = key(name, number)[1]
        await accounts.ask(f'mutation {{ {name}(input: {{{given}, text: "new"}}) {{ clientMutationId }} }}')
    assert accounts.operations == {"TransactWriteItems": 4}


@node("SLIP#{number}", type="OPEN", access=[read(), write()])
class OpenSlip:
    number: int


@node("SLIP#{number}", type="SLIP", access=[read(where={"text": viewer("sub")})])
class OwnSlip:
    number: int
    text: str | None


guarded = Graph(graph.table, OpenSlip, OwnSlip, type_attribute="Kind", writes=True).check()


@pytest.mark.parametrize("action", ["create", "upsert"])
@pytest.mark.parametrize(
    ("viewer", "told"),
    [
        ("slip", ("ALREADY_EXISTS", "There is already an OwnSlip with this key.")),
        ("other", ("FORBIDDEN", "You may not create this OpenSlip.")),
    ],
)
async def test_a_viewer_is_not_told_of_an_item_that_they_do_not_see(
    accounts: World, action: str, viewer: str, told: tuple[str, str]
) -> None:
    made = world(guarded, accounts.tracer)
    asked = f"mutation {{ {action}OpenSlip(input: {{number: 2}}) {{ __typename }} }}"
    [error] = (await made.service.execute(OperationRequest(asked, {}, viewer={"sub": viewer})))["errors"]
    assert (error["extensions"]["code"], error["message"]) == told
    assert await unchanged(accounts)


@node("PARTY#{number}", type="PERSON")
class Person:
    number: int


@node("PARTY#{number}", type="FIRM")
class Firm:
    number: int


@node("JOB#{job_id}", type="JOB")
class Job:
    job_id: ID
    about: Person | Firm
    owner: Person


parties = filled(
    Graph(graph.table, Person, Firm, Job, type_attribute="Kind", writes=True).check(),
    [
        {"PK": "PARTY#1", "SK": "PARTY#1", "Kind": "PERSON"},
        {"PK": "PARTY#2", "SK": "PARTY#2", "Kind": "FIRM"},
    ],
)


@pytest.mark.parametrize(
    ("number", "problems"),
    [
        (1, []),
        (2, [("NOT_FOUND", "ownerNumber: there is no Person with this key.")]),
    ],
)
async def test_ends_with_one_key_are_nodes_of_their_own_types(
    parties: World, number: int, problems: list[tuple[str, str]]
) -> None:
    asked = f'createJob(input: {{jobId: "1", aboutNumber: {number}, ownerNumber: {number}}}) {{ __typename }}'
    if problems:
        assert await parties.errors(f"mutation {{ {asked} }}") == problems
    else:
        assert await parties.ask(f"mutation {{ {asked} }}") == {
            "createJob": {"__typename": "CreateJobPayload"}
        }
