"""Fields and ends that share attributes: a write of an attribute by one name is a write of all names stored in it.

Orders and products of one tenant, and tasks that people do: a task names its assignee as a field and as an end.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, copy, counts, edge, node, record, stored, sums
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet
from keygraph.writing.marks import ADDED
from tests.resolvers.worlds import World, filled
from tests.verified import verified

gsi1 = Index("gsi1", "gp", "gs")
gsi2 = Index("gsi2", "hp", "hs")


@node("T#{tenant}#CUSTOMER#{customer_id}", "CUSTOMER")
class Customer:
    tenant: ID
    customer_id: ID
    orders: Many[Order]


@node("T#{tenant}#PRODUCT#{sku}", "PRODUCT")
class Product:
    tenant: ID
    sku: ID
    orders: Many[Order]


@record(
    "{customer}",
    "ORDER#{number:06d}",
    gsi1("T#{product.tenant}#PRODUCT#{product.sku}", "ORDER#{number:06d}"),
)
class Order:
    customer: Customer = stored(tenant="tenant", customer_id="customer")
    number: int
    product: Product | None = stored(tenant="tenant", sku="sku")


@node("PERSON#{person_id}")
class Person:
    person_id: ID
    name: str
    busy: int = counts("tasks")
    hours: int = sums("tasks.hours")
    tasks: Many[Task]


@node(
    "B#{board}",
    "TASK#{task_id}",
    gsi1("{assigned}", "{task_id}"),
    gsi2("B#{parent.board}#{parent.task_id}", "{task_id}"),
)
class Task:
    board: ID
    task_id: ID
    assignee: str | None
    assigned: Person | None = stored("assignee")
    assigned_name: str | None = copy("assigned.name")
    hours: int = 1
    parent: Task | None = stored(board="board", task_id="parent_id")


@edge("{one}", "{other}")
class Link:
    one: Person
    other: Person
    place: str | None
    label: str | None = stored("info", "label")
    first: Spot | None = stored(place="place", number="first")
    second: Spot | None = stored(place="place", number="second")


@node("SPOT#{place}#{number}")
class Spot:
    place: ID
    number: ID


@node("JOB#{job_id}")
class Job:
    job_id: ID
    assignee: str | None
    who: Person = stored("assignee")


graph = Graph(
    Table("Shared", partition_key="PK", sort_key="SK", indexes=[gsi1, gsi2]),
    Customer, Product, Order, Person, Task, Link, Spot, Job,
    separator="#", writes=True,
)  # fmt: skip


def person(name: str, tasks: int, *, added: int = 0) -> Item:
    """`added` says how often mutations have changed the numbers."""
    numbers = {"busy": Decimal(tasks), "hours": Decimal(tasks), **({ADDED: Decimal(added)} if added else {})}
    return {"PK": f"PERSON#{name}", "SK": f"PERSON#{name}", "name": name, **numbers}


def task(name: str, **more: Any) -> Item:
    return {"PK": "B#1", "SK": f"TASK#{name}", "board": "1", **more}


ORDER = {
    "PK": "T#acme#CUSTOMER#7",
    "SK": "ORDER#000001",
    "tenant": "acme",
    "customer": "7",
    "number": Decimal(1),
}
IN_INDEX = {"sku": "bell", "gp": "T#acme#PRODUCT#bell", "gs": "ORDER#000001"}
LINK = {
    "PK": "PERSON#ann",
    "SK": "PERSON#bob",
    "place": "a",
    "first": "1",
    "second": "2",
    "info": {"label": "old"},
}
ITEMS: list[Item] = [
    {"PK": "T#acme#CUSTOMER#7", "SK": "CUSTOMER"},
    {"PK": "T#acme#PRODUCT#bell", "SK": "PRODUCT"},
    {"PK": "T#apex#PRODUCT#bell", "SK": "PRODUCT"},
    {**ORDER, **IN_INDEX},
    person("ann", 1),
    person("bob", 0),
    task("1", assignee="ann", assigned_name="ann", gp="PERSON#ann", gs="1", hours=Decimal(1)),
    task("2", parent_id="1", hours=Decimal(1), hp="B#1#1", hs="2"),
    *({"PK": f"SPOT#{spot}", "SK": f"SPOT#{spot}"} for spot in ("a#1", "a#2", "b#1")),
    LINK,
]
GIVEN = 'customer: {tenant: "acme", customerId: "7"}, number: 1'

tenants = filled(graph, ITEMS)


async def found(world: World, *keys: tuple[str, str]) -> list[Item | None]:
    return [*(await world.tracer.store.send(BatchGet(keys, consistent=True))).items]


async def findings(world: World) -> list[str]:
    """What `keygraph verify` finds wrong."""
    report = await verified(graph, world.tracer.store)
    return [f"{kind.type}: {kind.what}" for kind, _ in report.ordered()]


async def refusals(world: World, document: str) -> list[tuple[str, str, list[Any]]]:
    """The errors of a mutation: their codes, messages and places in the input."""
    answer = await world.service.execute(document, {})
    told = [(error["extensions"], error["message"]) for error in answer.get("errors", [])]
    return [(of["code"], message, of.get("path")) for of, message in told]


@pytest.mark.parametrize(
    "mutation",
    [
        f"updateOrder(input: {{{GIVEN}, product: null}}) {{ order {{ number }} }}",
        'deleteProduct(input: {tenant: "acme", sku: "bell", onEdges: DETACH}) { detached }',
    ],
)
async def test_an_end_loses_only_its_own_attributes(tenants: World, mutation: str) -> None:
    await tenants.ask(f"mutation {{ {mutation} }}")
    assert await found(tenants, ("T#acme#CUSTOMER#7", "ORDER#000001")) == [ORDER]
    assert await findings(tenants) == []


# --- Removing an end ------------------------------------------------------------------------------------


async def test_a_deleted_node_leaves_the_nodes_that_name_it(tenants: World) -> None:
    asked = 'mutation { deleteTask(input: {board: "1", taskId: "1", onEdges: DETACH}) { detached } }'
    assert await tenants.ask(asked) == {"deleteTask": {"detached": 1}}
    assert await found(tenants, ("B#1", "TASK#2")) == [task("2", hours=Decimal(1))]


@pytest.mark.parametrize("name", ["assignee", "assignedId"])
async def test_an_end_is_removed_by_any_of_its_names(tenants: World, name: str) -> None:
    await tenants.ask(UPDATE % f"{name}: null")
    assert await found(tenants, ("B#1", "TASK#1"), ("PERSON#ann", "PERSON#ann")) == [
        task("1", hours=Decimal(1)),
        person("ann", 0, added=1),
    ]


async def test_of_two_ends_with_a_common_attribute_one_is_removed(tenants: World) -> None:
    await tenants.ask(LINK_UPDATE % "first: null")
    rest = {name: value for name, value in LINK.items() if name != "first"}
    assert await found(tenants, ("PERSON#ann", "PERSON#bob")) == [rest]


async def test_a_field_that_a_required_end_needs_is_not_removed(tenants: World) -> None:
    told = "assignee of Job cannot be removed: its attributes also store who."
    await tenants.put({"PK": "JOB#1", "SK": "JOB#1", "assignee": "ann"})
    asked = 'mutation { updateJob(input: {jobId: "1", assignee: null}) { job { jobId } } }'
    assert await refusals(tenants, asked) == [("BAD_USER_INPUT", told, ["input", "assignee"])]


@pytest.mark.parametrize("name", ["assignee", "assignedId"])
async def test_index_keys_counts_and_copies_follow_an_attribute(tenants: World, name: str) -> None:
    asked = UPDATE % f'{name}: "bob"'
    await tenants.ask(asked)
    assert await found(
        tenants, ("B#1", "TASK#1"), ("PERSON#ann", "PERSON#ann"), ("PERSON#bob", "PERSON#bob")
    ) == [
        task("1", hours=Decimal(1), assignee="bob", assigned_name="bob", gp="PERSON#bob", gs="1"),
        person("ann", 0, added=1),
        person("bob", 1, added=1),
    ]
    assert await findings(tenants) == []


# --- Changing an end by another name --------------------------------------------------------------------


async def test_two_names_of_one_attribute_agree(tenants: World) -> None:
    await tenants.ask(UPDATE % 'assignee: "bob", assignedId: "bob"')
    told = "assignedId differs from another value that is stored in the same attribute"
    for values in ('assignee: "bob", assignedId: "ann"', 'assignee: "bob", assignedId: null'):
        assert await refusals(tenants, UPDATE % values) == [("BAD_USER_INPUT", told, ["input", "assignedId"])]


# --- The nodes at ends exist ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mutation", "field"),
    [
        ('createTask(input: {board: "1", taskId: "9", assignee: "eve"}) { task { taskId } }', ["assignee"]),
        ('upsertTask(input: {board: "1", taskId: "9", assignee: "eve"}) { task { taskId } }', ["assignee"]),
        ('upsertTask(input: {board: "1", taskId: "1", assignee: "eve"}) { task { taskId } }', ["assignee"]),
        ('updateTask(input: {board: "1", taskId: "1", assignee: "eve"}) { task { taskId } }', ["assignee"]),
        ('moveTask(input: {board: "1", taskId: "2", to: {board: "2"}}) { task { taskId } }', ["to", "board"]),
    ],
)
async def test_an_end_that_follows_from_a_field_exists(
    tenants: World, mutation: str, field: list[str]
) -> None:
    told = "there is no Task with this key." if "to" in field else "there is no Person with this key."
    assert await refusals(tenants, f"mutation {{ {mutation} }}") == [
        ("NOT_FOUND", f"{field[-1]}: {told}", ["input", *field])
    ]
    assert await findings(tenants) == []


async def test_a_move_beside_the_parent_keeps_it(tenants: World) -> None:
    asked = 'mutation { moveTask(input: {board: "1", taskId: "2", to: {taskId: "3"}}) { task { parent { taskId } } } }'
    assert await tenants.ask(asked) == {"moveTask": {"task": {"parent": {"taskId": "1"}}}}


async def test_an_end_that_shares_a_part_is_another_node_too(tenants: World) -> None:
    told = "first: there is no Spot with this key."
    document = LINK_UPDATE % 'first: {place: "b", number: "1"}'
    assert await refusals(tenants, document) == [("NOT_FOUND", told, ["input", "first"])]
    await tenants.ask(LINK_UPDATE % 'first: {place: "b", number: "1"}, second: {place: "b", number: "1"}')
    assert await findings(tenants) == []


async def test_a_field_in_a_map_changes_beside_an_end(tenants: World) -> None:
    await tenants.ask(LINK_UPDATE % 'label: "new", first: {place: "a", number: "2"}')
    changed = {**LINK, "first": "2", "info": {"label": "new"}}
    assert await found(tenants, ("PERSON#ann", "PERSON#bob")) == [changed]


async def test_an_update_whose_ends_are_all_given_reads_nothing(tenants: World) -> None:
    tenants.forget()
    spots = 'first: {place: "a", number: "2"}, second: {place: "a", number: "1"}'
    given = f'{{oneId: "ann", otherId: "bob", {spots}}}'
    await tenants.ask(f"mutation {{ updateLink(input: {given}) {{ clientMutationId }} }}")
    assert tenants.operations == {"TransactWriteItems": 1}


# --- What the key determines ----------------------------------------------------------------------------


async def test_an_end_cannot_contradict_the_key(tenants: World) -> None:
    told = "product differs from another value that is stored in the same attribute"
    other = 'product: {tenant: "apex", sku: "bell"}'
    asked = f"mutation {{ updateOrder(input: {{{GIVEN}, {other}}}) {{ order {{ number }} }} }}"
    assert await refusals(tenants, asked) == [("BAD_USER_INPUT", told, ["input", "product"])]


UPDATE = 'mutation { updateTask(input: {board: "1", taskId: "1", %s}) { task { taskId } } }'
LINK_UPDATE = 'mutation { updateLink(input: {oneId: "ann", otherId: "bob", %s}) { link { place } } }'
