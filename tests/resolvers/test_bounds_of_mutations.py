"""What mutations cost is no more than their bound, whatever has to be read before they are written."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, edge, node, read, record, viewer, write
from keygraph.dynamo.actions import key_of
from keygraph.dynamo.store import Transaction
from keygraph.model.node_shards import new_shard, shard_keys
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore
from tests.keygraph.histories.declared import graph
from tests.resolvers.worlds import World, within_bound, world

ENDS = 'personName: "Ann", clubId: "c1"'
SEAT = "{ seat { row } }"
MANY = ", ".join(f"{{{ENDS.replace('c1', f'c{number}')}, row: {number}}}" for number in range(1, 9))


@pytest.fixture
async def club(make_store: MakeStore) -> World:
    made = world(graph, await make_store(graph.table))
    people = " ".join(
        f'{name}: createPerson(input: {{name: "{name}"}}) {{ person {{ name }} }}'
        for name in ("Ann", "Bob", "Cy")
    )
    clubs = " ".join(
        f'c{n}: createClub(input: {{clubId: "c{n}"}}) {{ club {{ clubId }} }}' for n in range(1, 9)
    )
    await made.ask(f"mutation {{ {people} {clubs} }}")
    person = graph.types["Person"]
    keys = [graph.table_keys(person, (name,))[0] for name in ("Ann", "Bob", "Cy")]
    await made.put(
        *(new_shard(graph.table, person, each) for key in keys for each in shard_keys(person, key))
    )
    await made.ask(f"mutation {{ putSeat(input: {{{ENDS}, row: 1}}) {SEAT} }}")
    await made.ask(f"mutation {{ putMember(input: {{{ENDS}, since: 1}}) {{ member {{ since }} }} }}")
    await made.ask(
        'mutation { putFriend(input: {oneName: "Ann", otherName: "Bob", since: 1}) { friend { since } } }'
    )
    return made


DOCUMENTS = [
    f"putSeat(input: {{{ENDS}, row: 2}}) {SEAT}",
    f"updateSeat(input: {{{ENDS}, row: 2}}) {SEAT}",
    f"deleteSeat(input: {{{ENDS}}}) {{ clientMutationId }}",
    f'moveSeat(input: {{{ENDS}, to: {{personName: "Bob"}}}}) {SEAT}',
    f'moveStay(input: {{{ENDS}, to: {{personName: "Bob"}}}}) {{ stay {{ since }} }}',
    f"updateStay(input: {{{ENDS}, since: 2}}) {{ stay {{ since person {{ name }} }} }}",
    'putDeed(input: {personName: "Ann", at: 1}) { deed { at } }',
    'moveFriend(input: {oneName: "Ann", otherName: "Bob", to: {oneName: "Cy"}}) { friend { since } }',
    'updateFriend(input: {oneName: "Ann", otherName: "Bob", add: {rounds: 1}}) { friend { since } }',
    'upsertNote(input: {noteId: "n", title: "t", authorName: "Ann"}) { note { title author { name } } }',
    'deletePerson(input: {name: "Bob", onEdges: DETACH}) { deletedId detached }',
    'movePerson(input: {name: "Bob", to: {name: "Ben"}}) { person { name } }',
    f"putSeats(input: {{inputs: [{MANY}]}}) {{ results {{ seat {{ row }} }} }}",
    f"putSeats(input: {{inputs: [{MANY}], atomic: false}}) {{ results {{ seat {{ row }} }} }}",
    f"updateSeats(input: {{inputs: [{{{ENDS}, row: 3}}], atomic: false}}) {{ results {{ seat {{ row }} }} }}",
    f"write(input: {{actions: [{{updateSeat: {{{ENDS}, row: 3}}}}, {{deleteStay: {{{ENDS}}}}}]}}) {{ results {{ updateSeat {SEAT} }} }}",
]


@pytest.mark.parametrize("document", DOCUMENTS)
async def test_the_bound_is_one(club: World, document: str) -> None:
    answer: Any = await club.service.execute(OperationRequest(f"mutation {{ {document} }}", with_cost=True))
    within_bound(answer)


# --- Deletes of nodes -----------------------------------------------------------------------------------

gsi1 = Index("gsi1", "gp", "gs")


@node("SHELF#{shelf_id}")
class Shelf:
    shelf_id: ID


@node("CASE#{case_id}", gsi1("{shelf}", "CASE#{case_id}"))
class Case:
    case_id: ID
    shelf: Shelf
    maker: Maker | None


@record("LABEL#{label_id}", "LABEL", gsi1("{shelf}", "LABEL#{label_id}"))
class Label:
    label_id: ID
    shelf: Shelf


@node("MAKER#{maker_id}")
class Maker:
    maker_id: ID


SHELVES = Graph(
    Table("Shelves", partition_key="pk", sort_key="sk", indexes=[gsi1]),
    Shelf,
    Case,
    Label,
    Maker,
    writes=True,
).check()
FIGURES = ("requests", "roundTrips")


@pytest.fixture
async def shelves(make_store: MakeStore) -> World:
    """Two shelves with a label each, and a maker of a case."""
    made = world(SHELVES, await make_store(SHELVES.table))
    created = " ".join(
        f"""s{n}: createShelf(input: {{shelfId: "{n}"}}) {{ shelf {{ shelfId }} }}
            l{n}: putLabel(input: {{labelId: "{n}", shelfId: "{n}"}}) {{ label {{ labelId }} }}"""
        for n in (1, 2, 3)
    )
    maker = 'createMaker(input: {makerId: "m"}) { maker { makerId } }'
    case = 'createCase(input: {caseId: "c", shelfId: "3", makerId: "m"}) { case { caseId } }'
    await made.ask(f"mutation {{ {maker} {created} {case} }}")
    return made


async def cost_of(shelves: World, document: str) -> Any:
    """The cost of a mutation, with the number of requests to the store."""
    shelves.forget()
    answer: Any = await shelves.service.execute(
        OperationRequest(f"mutation {{ {document} }}", with_cost=True)
    )
    cost = answer["extensions"]["cost"]
    assert cost["actual"]["requests"] == len(shelves.tracer.requests)
    for name in FIGURES:
        assert cost["actual"][name] <= cost["bound"][name], (name, cost["requests"])
    return cost


async def test_a_delete_for_which_nothing_can_be_searched_is_one_request(shelves: World) -> None:
    [write] = shelves.service.explain('mutation { deleteMaker(input: {makerId: "m"}) { deletedId } }').steps
    assert write.kind == "write"
    cost = await cost_of(
        shelves, 'deleteMaker(input: {makerId: "m", onEdges: DETACH}) { deletedId detached }'
    )
    assert [cost[each][name] for each in ("bound", "actual") for name in FIGURES] == [1, 1, 1, 1]


@pytest.mark.parametrize("document", DOCUMENTS[2:5] + DOCUMENTS[7:8])
async def test_what_is_explained_of_two_items_is_sent(club: World, document: str) -> None:
    *_, write = club.service.explain(f"mutation {{ {document} }}").steps
    [transaction] = write.transactions
    shown = [(action.operation, action.keys.replace("{row}", "01")) for action in transaction.actions]
    club.forget()
    await club.ask(f"mutation {{ {document} }}")
    [sent] = [each for each in club.tracer.requests if isinstance(each, Transaction)]
    found = [(type(action).__name__, key_of(action, graph.table)) for action in sent.actions]
    names = {"CheckItem": "ConditionCheck"}
    assert shown == [
        (names.get(name, name.removesuffix("Item")), f"pk = {pk} AND sk = {sk}") for name, (pk, sk) in found
    ]


async def test_a_delete_looks_once_for_what_names_a_node(shelves: World) -> None:
    cost = await cost_of(shelves, 'deleteShelf(input: {shelfId: "1", onEdges: DETACH}) { detached }')
    assert (cost["actual"]["roundTrips"], cost["bound"]["roundTrips"]) == (4, 4)
    trips = [(each["roundTrip"], each["operation"]) for each in cost["requests"]]
    assert trips == [
        (1, "UpdateItem"),
        (2, "Query"),
        (2, "Query"),
        (3, "GetItem"),
        (4, "TransactWriteItems"),
    ]


@pytest.mark.parametrize("number", [2, 3])
async def test_the_bound_of_several_deletes(shelves: World, number: int) -> None:
    inputs = f'[{{shelfId: "1", onEdges: DETACH}}, {{shelfId: "{number}", onEdges: DETACH}}]'
    cost = await cost_of(shelves, f"deleteShelfs(input: {{inputs: {inputs}}}) {{ results {{ detached }} }}")
    assert cost["actual"]["roundTrips"] == 5


async def test_a_refused_write_was_a_request(shelves: World) -> None:
    cost = await cost_of(shelves, 'createShelf(input: {shelfId: "1"}) { shelf { shelfId } }')
    assert [cost["actual"][name] for name in FIGURES] == [1, 1]
    assert [each["operation"] for each in cost["requests"]] == ["TransactWriteItems"]
    missing = await cost_of(shelves, 'deleteShelf(input: {shelfId: "none"}) { deletedId }')
    assert [each["operation"] for each in missing["requests"]] == ["UpdateItem"]


# --- Rules about other items -----------------------------------------------------------------------------

MEMBER = {"team": {"members": {"team": viewer("team")}}}


@node("TEAM#{team_id}", access=[read(), write()])
class Team:
    team_id: ID

    members: Many[Ally]


@edge("{of}", "ALLY#{team.team_id}", access=[read(), write()])
class Ally:
    of: Team
    team: Team


@node("TASK#{task_id}", access=[read(where=MEMBER), write(where=MEMBER)])
class Task:
    task_id: ID
    team: Team


@edge("{task}", "{team}", counterpart="Duty", access=[read(), write()])
class Job:
    task: Task
    team: Team
    hours: int


@edge("{team}", "JOB#{task.task_id}", access=[read(where=MEMBER), write(where=MEMBER)])
class Duty:
    team: Team
    task: Task
    hours: int
    note: str | None


TASKS = Graph(
    Table("Tasks", partition_key="pk", sort_key="sk"), Team, Ally, Task, Job, Duty, writes=True
).check()


@pytest.mark.parametrize(
    "document",
    [
        'deleteTask(input: {taskId: "1"}) { deletedId }',
        'moveTask(input: {taskId: "1", to: {taskId: "2"}}) { previousId }',
        'createJob(input: {taskId: "1", teamId: "b", hours: 1}) { clientMutationId }',
        'updateJob(input: {taskId: "1", teamId: "a", hours: 1}) { clientMutationId }',
        'moveJob(input: {taskId: "1", teamId: "a", to: {teamId: "b"}}) { clientMutationId }',
        'moveDuty(input: {taskId: "1", teamId: "a", to: {teamId: "b"}}) { clientMutationId }',
    ],
)
async def test_other_items_that_decide_are_in_the_bound(make_store: MakeStore, document: str) -> None:
    made = world(TASKS, await make_store(TASKS.table))
    for team in "ab":
        keys = ({"pk": f"TEAM#{team}", "sk": sort} for sort in (f"TEAM#{team}", "ALLY#x"))
        await made.put(*keys)
    task = [{"pk": "TASK#1", "sk": "TASK#1", "team_id": "a"}]
    hours = {"hours": Decimal(2)}
    pair = [{"pk": "TASK#1", "sk": "TEAM#a", **hours}, {"pk": "TEAM#a", "sk": "JOB#1", **hours}]
    await made.put(*(task if "Task(" in document else [*task, *pair]))
    viewer_, text = {"team": "x"}, f"mutation {{ {document} }}"
    bound = made.service.explain(text, viewer=viewer_).bound.total.requests
    made.forget()
    answer = await made.service.execute(OperationRequest(text, viewer=viewer_))
    assert "errors" not in answer, answer["errors"]
    assert len(made.tracer.requests) <= bound
