"""An ID may be stored as text or as a number: conditions find both, and compare them as one value."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, many, node, read, record, rule, viewer, write
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.worlds import World, filled, world


@node("PERSON#{person_id}", access=[read()])
class Person:
    person_id: ID
    notes: Many[Note]


@record(
    "{author}",
    "NOTE#{number}",
    access=[
        read(where={"hidden_from": {"ne": viewer("sub")}}),
        write(where={"owner_id": viewer("sub")}),
    ],
    check=[
        rule({"or": [{"text": {"ne": "x"}}, {"not": {"tag_ids": {"contains": "7"}}}]}, "Tag 7 has no text x.")
    ],
)
class Note:
    author: Person
    number: int
    owner_id: ID | None
    hidden_from: ID | None
    tag_ids: list[ID] | None
    reader_ids: set[ID] | None
    text: str | None
    editor: Person | None


NOTES = Graph(Table("Notes", partition_key="PK", sort_key="SK"), Person, Note, writes=True).check()
ITEMS: list[dict[str, Any]] = [
    {"owner_id": Decimal(7), "tag_ids": [Decimal(7)], "reader_ids": frozenset({Decimal(7), Decimal(8)})},
    {"owner_id": "7", "tag_ids": ["7"], "reader_ids": frozenset({"7"})},
    {"owner_id": "8", "tag_ids": ["8", Decimal(9)], "reader_ids": frozenset({"8"})},
    {"owner_id": "07", "tag_ids": [], "hidden_from": Decimal(42)},
    {"owner_id": Decimal("7.5"), "hidden_from": "42", "editor_id": Decimal(7)},
    {"editor_id": "7"},
]

OWN = [{"PK": "PERSON#1", "SK": f"NOTE#{n}", "number": Decimal(n), **item} for n, item in enumerate(ITEMS)]
notes = filled(NOTES, [{"PK": "PERSON#1", "SK": "PERSON#1", "person_id": Decimal(1)}, *OWN])

LIST = """query ($where: NoteWhere) { person(personId: "1") { notes(where: $where) { totalCount nodes { number } } } }"""


async def found(notes: World, where: Any, sub: object = "nobody") -> list[int]:
    answer = await notes.service.execute(OperationRequest(LIST, {"where": where}, viewer={"sub": sub}))
    assert "errors" not in answer, answer
    listed = answer["data"]["person"]["notes"]
    assert listed["totalCount"] == len(listed["nodes"])
    return [each["number"] for each in listed["nodes"]]


@in_one_world(
    ("where", "wanted"),
    [
        ({"ownerId": {"eq": "7"}}, [0, 1]),
        ({"ownerId": {"eq": "7.5"}}, [4]),
        ({"ownerId": {"eq": "7.0"}}, []),
        ({"ownerId": {"eq": "07"}}, [3]),
        ({"ownerId": {"ne": "7"}}, [2, 3, 4, 5]),
        ({"ownerId": {"in": ["7", "8"]}}, [0, 1, 2]),
        ({"ownerId": {"in": [str(each) for each in range(100)]}}, [0, 1, 2]),
        ({"not": {"ownerId": {"eq": "7"}}}, [2, 3, 4, 5]),
        ({"not": {"ownerId": {"in": ["7", "07"]}}}, [2, 4, 5]),
        ({"ownerId": {"contains": "7"}}, [0, 1, 3]),
        ({"ownerId": {"beginsWith": "7"}}, [0, 1]),
        ({"ownerId": {"gte": "7"}}, [0, 1, 2, 4]),
        ({"ownerId": {"lt": "7.5"}}, [0, 1, 3]),
        ({"ownerId": {"between": {"from": "7", "to": "7.5"}}}, [0, 1, 4]),
        ({"ownerId": {"between": {"from": "10", "to": "7"}}}, [1]),
        ({"not": {"ownerId": {"contains": "7"}}}, [2, 5]),
        ({"not": {"not": {"ownerId": {"contains": "7"}}}}, [0, 1, 3]),
        ({"not": {"ownerId": {"contains": "a"}}}, [0, 1, 2, 3, 4, 5]),
        ({"not": {"ownerId": {"beginsWith": "7"}}}, [2, 3, 5]),
        ({"ownerId": {"lt": "a"}}, [0, 1, 2, 3, 4]),
        ({"not": {"ownerId": {"lt": "a"}}}, [5]),
        ({"not": {"ownerId": {"gt": "a"}}}, [0, 1, 2, 3, 4, 5]),
        ({"ownerId": {"gte": "#"}}, [0, 1, 2, 3, 4]),
        ({"not": {"ownerId": {"lte": "."}}}, [0, 1, 2, 3, 4, 5]),
        ({"ownerId": {"lt": "7a"}}, [1, 3]),
        ({"not": {"ownerId": {"lt": "7a"}}}, [2, 5]),
        ({"ownerId": {"between": {"from": "5", "to": "a"}}}, [0, 1, 2, 4]),
        ({"not": {"ownerId": {"between": {"from": "7a", "to": "b"}}}}, [1, 3, 5]),
        ({"tagIds": {"contains": "7"}}, [0, 1]),
        ({"tagIds": {"contains": "9"}}, [2]),
        ({"readerIds": {"contains": "8"}}, [0, 2]),
        ({"not": {"readerIds": {"contains": "7"}}}, [2, 3, 4, 5]),
        ({"editorId": {"eq": "7"}}, [4, 5]),
        ({"editorId": {"ne": "7"}}, [0, 1, 2, 3]),
    ],
)  # fmt: skip
async def test_an_id_is_found_in_each_form(notes: World, where: Any, wanted: list[int]) -> None:
    assert await found(notes, where) == wanted


@pytest.mark.parametrize("sub", ["42", 42])
async def test_a_rule_hides_from_an_id_in_each_form(notes: World, sub: object) -> None:
    assert await found(notes, None, sub) == [0, 1, 2, 5]


NOT_SEVENS = {"not": {"owner_id": {"contains": "7"}}}


@pytest.mark.parametrize("where", [NOT_SEVENS, {"not": {"owner_id": {"contains": viewer("sub")}}}])
async def test_a_rule_that_cannot_be_decided_of_a_number_allows_nothing(
    make_store: MakeStore, where: dict[str, Any]
) -> None:
    """The text of 7.5 contains what the rule excludes, and the store compares no texts of numbers."""

    @node("MEMO#{memo_id}", access=[read(where=where)])
    class Memo:
        memo_id: ID
        owner_id: ID | None
        text: str | None

    table = Table("Memos", partition_key="PK")
    made = world(Graph(table, Memo, writes=True).check(), await make_store(table))
    await made.put(*({"PK": f"MEMO#{n}", "memo_id": str(n), **item} for n, item in enumerate(ITEMS)))
    aliases = " ".join(f"m{n}: memo(memoId: {n}) {{ memoId }}" for n in range(len(ITEMS)))
    seen = (await made.service.execute(OperationRequest(f"{{ {aliases} }}", viewer={"sub": "7"})))["data"]
    assert [name for name, memo in seen.items() if memo] == ["m2", "m5"]


UPDATE = 'mutation { updateNote(input: {authorId: "1", number: %s, %s}) { note { number text tagIds } } }'


@pytest.mark.parametrize(
    ("number", "given", "code"),
    [
        (0, 'text: "a"', None),
        (1, 'text: "a"', None),
        (2, 'text: "a"', "FORBIDDEN"),
        (0, 'text: "x"', "CONFLICT"),
        (0, 'text: "x", tagIds: ["8"]', None),
    ],
)
async def test_a_write_compares_ids_in_each_form(
    notes: World, number: int, given: str, code: str | None
) -> None:
    answer = await notes.service.execute(OperationRequest(UPDATE % (number, given), viewer={"sub": "7"}))
    assert [each["extensions"]["code"] for each in answer.get("errors", [])] == ([code] if code else [])


by_level = Index("by-level", "level")
by_boss = Index("by-boss", "boss_no")


@node("W#{worker_no}", by_level(lists="of_level"))
class Worker:
    worker_no: int
    level: int
    hours: int = 0
    boss: Worker | None
    staff: Many[Worker] = many(index=by_boss)


async def test_a_number_whose_attribute_is_a_text_key(make_store: MakeStore) -> None:
    graph = Graph(
        Table("Workers", partition_key="PK", indexes=[by_level, by_boss]), Worker, writes=True
    ).check()
    made = world(graph, await make_store(graph.table))
    made_two = "a: createWorker(input: {workerNo: 1, level: 9}) { clientMutationId } b: createWorker(input: {workerNo: 2, level: 10, bossNo: 1}) { clientMutationId }"
    await made.ask(f"mutation {{ {made_two} }}")
    assert await made.ask(
        """{ ofLevel(level: 10) { nodes { boss { level staff(where: {level: {gt: 9}}) { nodes { workerNo } } } } }
          found: ofLevel(level: 10, where: {bossNo: {in: [1, 2]}}) { totalCount }
          others: ofLevel(level: 10, where: {bossNo: {ne: 1}}) { totalCount } }"""
    ) == {
        "ofLevel": {"nodes": [{"boss": {"level": 9, "staff": {"nodes": [{"workerNo": 2}]}}}]},
        "found": {"totalCount": 1},
        "others": {"totalCount": 0},
    }
    [(_, message)] = await made.errors(
        "mutation { updateWorker(input: {workerNo: 2, add: {level: 1}}) { clientMutationId } }"
    )
    assert message.endswith("not to include unknown field 'level', found: { level: 1 }.")
