"""Index keys that a write cannot make from attributes: what they hold is read from them, and not lost.

A mail has its kind and month in an index's partition key alone; a task has a state in keys that another program wrote.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, copy, node, record, stored, sums
from keygraph.dynamo.actions import SetTo, UpdateItem
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, BatchWrite, Write
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.races import Interrupted, Raced
from tests.resolvers.worlds import World, filled, world
from tests.verified import verified

by_month = Index("by-month", "KindMonth", "Day")
by_state = Index("by-state", "StatePK", "StateSK")
by_room = Index("by-room", "RoomPK", "RoomSK")
by_size = Index("by-size", "SizePK", "SizeSK")


@node("{mail_id}", by_month("{kind}#{month}", "{day}", lists="mails"))
class Mail:
    mail_id: ID = stored("id")
    kind: str | None = stored(in_key=True)
    month: str | None = stored(in_key=True)
    day: str | None
    text: str | None


@node(
    "TASK#{task_id}",
    by_state("STATE#{state}", "{due}#{rank}", lists="tasks"),
    by_room("ROOM#{room}", "{due}", lists="in_room"),
)
class Task:
    task_id: ID = stored("id")
    state: str | None
    due: str | None
    rank: str | None
    room: str | None


@node("DESK#{number:03d}", by_size("SIZE#{number}", "{width}", lists="desks_of_size"))
class Desk:
    number: int = stored(in_key=True)
    width: str | None


graph = Graph(
    Table("Office", partition_key="id", indexes=[by_month, by_state, by_room, by_size]),
    Mail,
    Task,
    Desk,
    separator="#",
    writes=True,
).check()

office = filled(graph)


async def item_of(office: World, key: str) -> Item | None:
    [item] = (await office.tracer.store.send(BatchGet(((key,),), consistent=True))).items
    return item


async def findings(office: World) -> list[str]:
    """What `keygraph verify` finds wrong."""
    return [kind.what for kind, _ in (await verified(graph, office.tracer.store)).ordered()]


THREAD: Item = {"KindMonth": "thread#2024-05"}
STATE: Item = {"StatePK": "STATE#open", "StateSK": "01#high"}

UPDATES = [
    'updateMail(input: {mailId: "b", %s})',
    'upsertMail(input: {mailId: "b", %s})',
    'updateMails(input: {inputs: [{mailId: "b", %s}]})',
    'write(input: {actions: [{updateMail: {mailId: "b", %s}}]})',
]


@pytest.mark.parametrize("mutation", UPDATES)
@in_one_world(
    ("before", "given", "after"),
    [
        (THREAD, 'day: "07"', {**THREAD, "Day": "07", "day": "07"}),
        (THREAD, 'kind: "news"', {"KindMonth": "news#2024-05"}),
        ({**THREAD, "Day": "07", "day": "07"}, "day: null", THREAD),
        ({**THREAD, "Day": "07", "day": "07"}, 'month: "2024-06"', {"KindMonth": "thread#2024-06", "Day": "07", "day": "07"}),
        ({"KindMonth": "old form", "text": "a"}, 'day: "07"', {"KindMonth": "old form", "text": "a", "Day": "07", "day": "07"}),
        (THREAD, "kind: null", {"month": "2024-05"}),
        ({}, 'kind: "news"', {"kind": "news"}),
        ({"kind": "news"}, 'month: "2024-06"', {"KindMonth": "news#2024-06"}),
    ],
)  # fmt: skip
async def test_what_a_half_holds_stays(
    office: World, mutation: str, before: Item, given: str, after: Item
) -> None:
    await office.put({"id": "b", **before})
    await office.ask(f"mutation {{ {mutation % given} {{ __typename }} }}")
    assert await item_of(office, "b") == {"id": "b", **after}


async def test_no_half_of_a_key_stays_alone(office: World) -> None:
    await office.put({"id": "DESK#007", "SizePK": "SIZE#7", "SizeSK": "9", "width": "9"})
    await office.ask("mutation { updateDesk(input: {number: 7, width: null}) { clientMutationId } }")
    assert await item_of(office, "DESK#007") == {"id": "DESK#007"}
    assert await findings(office) == []


@in_one_world(
    ("before", "given", "after"),
    [
        ({**STATE, "due": "01"}, 'due: "02"', {**STATE, "due": "02", "StateSK": "02#high"}),
        ({**STATE, "due": "01"}, 'rank: "low"', {**STATE, "due": "01", "rank": "low", "StateSK": "01#low"}),
        ({**STATE, "due": "01"}, 'room: "a"', {**STATE, "due": "01", "room": "a", "RoomPK": "ROOM#a", "RoomSK": "01"}),
        ({**STATE, "due": "01"}, "due: null", {"StatePK": "STATE#open"}),
        ({**STATE, "due": "01"}, "state: null", {"due": "01", "StateSK": "01#high"}),
        ({**STATE, "due": "01", "rank": "high"}, "state: null", {"due": "01", "rank": "high"}),
        ({"StatePK": "STATE#a", "RoomPK": "ROOM#b", "room": "b"}, 'state: "c"', {"state": "c", "RoomPK": "ROOM#b", "room": "b"}),
        ({"SizePK": "L", "SizeSK": "1", "due": "01"}, 'due: "02"', {"SizePK": "L", "SizeSK": "1", "due": "02"}),
    ],
)  # fmt: skip
async def test_a_key_keeps_what_no_attribute_holds(
    office: World, before: Item, given: str, after: Item
) -> None:
    await office.put({"id": "TASK#1", **before})
    await office.ask(f'mutation {{ updateTask(input: {{taskId: "1", {given}}}) {{ __typename }} }}')
    assert await item_of(office, "TASK#1") == {"id": "TASK#1", **after}


async def test_a_key_that_cannot_be_rebuilt_is_refused(office: World) -> None:
    await office.put({"id": "b", "KindMonth": "old form"})
    told = "kind of Mail cannot be changed: KindMonth of the item does not match {kind}#{month}, and month is unknown."
    asked = 'mutation { updateMail(input: {mailId: "b", kind: "news"}) { __typename } }'
    answer = await office.service.execute(asked, {})
    [error] = answer["errors"]
    assert (error["message"], error["extensions"]["code"]) == (told, "BAD_USER_INPUT")
    assert error["extensions"]["path"] == ["input", "kind"]
    both = 'mutation { updateMail(input: {mailId: "b", kind: "news", month: "2024-05"}) { __typename } }'
    await office.ask(both)
    assert await item_of(office, "b") == {"id": "b", "KindMonth": "news#2024-05"}


@pytest.mark.parametrize(
    "mutation",
    ["createMail(input: %s)", "upsertMail(input: %s)", "createMails(input: {inputs: [%s]})"],
)
async def test_a_new_record_has_the_half_that_its_values_make(office: World, mutation: str) -> None:
    given = '{mailId: "b", kind: "thread", month: "2024-05"}'
    await office.ask(f"mutation {{ {mutation % given} {{ __typename }} }}")
    assert await item_of(office, "b") == {"id": "b", **THREAD}
    assert await findings(office) == []


async def test_a_move_keeps_keys_that_it_cannot_make(office: World) -> None:
    await office.put({"id": "TASK#1", **STATE, "due": "01", "SizePK": "L"})
    await office.ask('mutation { moveTask(input: {taskId: "1", to: {taskId: "2"}}) { __typename } }')
    assert await item_of(office, "TASK#2") == {"id": "TASK#2", **STATE, "due": "01", "SizePK": "L"}


async def test_what_keys_alone_hold_is_reported(office: World) -> None:
    await office.put(
        {"id": "TASK#1", **STATE, "due": "01", "rank": "high"},
        {"id": "TASK#2", "RoomPK": "ROOM#a", "room": "a"},
        {"id": "c", "KindMonth": "old form"},
        {"id": "d", **THREAD},
    )
    assert sorted(await findings(office)) == [
        "by-month: KindMonth does not match {kind}#{month}",
        "by-room: the item is not in the index: it has RoomPK, but no RoomSK",
        "by-state: StatePK has a value for state, which the item lacks: declare it with stored(in_key=True) if only the key has it",
    ]


async def test_a_change_of_one_key_loses_no_other_change_of_it(make_store: MakeStore) -> None:
    other = Write(UpdateItem(("b",), (SetTo(("KindMonth",), "thread#2024-06"),)))
    office = world(graph, Raced(await make_store(graph.table, {"id": "b", **THREAD}), happens=other))
    await office.ask('mutation { updateMail(input: {mailId: "b", kind: "news"}) { __typename } }')
    assert await item_of(office, "b") == {"id": "b", "KindMonth": "news#2024-06"}


# --- Others write what only an index key holds --------------------------------------------------------

by_level = Index("by-level", "LevelPK", "LevelSK")
by_judge = Index("by-judge", "JudgePK", "JudgeSK")


@node("JUDGE#{judge_id}")
class Judge:
    judge_id: ID
    marks: Many[Mark]


@node("COURSE#{course_id}", by_level("COURSES", "{level}"))
class Course:
    course_id: ID
    level: str | None = stored(in_key=True)
    marks: Many[Mark]
    total: int = sums("marks.points")


@record("{course}", "MARK#{number}", by_level("MARKS", "{points:03d}"), by_judge("{judge}", "MARK"))
class Mark:
    course: Course
    number: int
    points: int | None = stored(in_key=True)
    level: str | None = copy("course.level")
    judge: Judge | None = stored(in_key=True)


MARKS = Graph(
    Table("Marks", partition_key="PK", sort_key="SK", indexes=[by_level, by_judge]),
    Judge,
    Course,
    Mark,
    writes=True,
).check()
COURSE: Item = {"PK": "COURSE#a", "SK": "COURSE#a", "total": Decimal(0)}
MARK: Item = {"PK": "COURSE#a", "SK": "MARK#1"}
FIRST: Item = {"JudgePK": "JUDGE#1", "JudgeSK": "MARK"}
LEVEL: Item = {**COURSE, "LevelPK": "COURSES", "LevelSK": "B"}
POINTS: Item = {**MARK, "LevelPK": "MARKS", "LevelSK": "007"}


@pytest.mark.parametrize(
    ("before", "mutation", "late", "after"),
    [
        ({}, 'moveMark(input: {courseId: "a", number: 1, to: {number: 2}})', POINTS, [2, 7, None, None]),
        (FIRST, 'moveMark(input: {courseId: "a", number: 1, to: {number: 2}})', MARK, [2, None, None, None]),
        ({}, 'updateMark(input: {courseId: "a", number: 1, judgeId: "2"})', POINTS, [1, 7, None, "2"]),
        ({}, 'putMark(input: {courseId: "a", number: 1})', LEVEL, [1, None, "B", None]),
        (FIRST, 'deleteJudge(input: {judgeId: "1", onEdges: DETACH})', {**MARK, **FIRST, "JudgePK": "JUDGE#2"}, [1, None, None, "2"]),
    ],
)  # fmt: skip
async def test_what_another_writes_into_a_key_is_not_lost(
    make_store: MakeStore, before: Item, mutation: str, late: Item, after: list[Any]
) -> None:
    judges: list[Item] = [{"PK": f"JUDGE#{each}", "SK": f"JUDGE#{each}"} for each in (1, 2)]
    store = await make_store(MARKS.table, COURSE, {**MARK, **before}, *judges)
    interrupted = Interrupted(store, BatchWrite((late,)))
    await world(MARKS, interrupted).ask(f"mutation {{ {mutation} {{ __typename }} }}")
    assert interrupted.happens is None
    query = '{ course(courseId: "a") { marks { nodes { number points level judge { judgeId } } } } }'
    [mark] = (await world(MARKS, store).ask(query))["course"]["marks"]["nodes"]
    judge = mark["judge"] and mark["judge"]["judgeId"]
    assert [mark["number"], mark["points"], mark["level"], judge] == after
