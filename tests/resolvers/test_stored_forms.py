"""An ID may be stored as text or as a number: conditions find both, and compare them as one value."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Many, Table, node, read, record, rule, viewer, write
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, world


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


NOTES = Graph(Table("Notes", partition_key="PK", sort_key="SK"), Person, Note).check()
ITEMS: list[dict[str, Any]] = [
    {"owner_id": Decimal(7), "tag_ids": [Decimal(7)], "reader_ids": frozenset({Decimal(7), Decimal(8)})},
    {"owner_id": "7", "tag_ids": ["7"], "reader_ids": frozenset({"7"})},
    {"owner_id": "8", "tag_ids": ["8", Decimal(9)], "reader_ids": frozenset({"8"})},
    {"owner_id": "07", "tag_ids": [], "hidden_from": Decimal(42)},
    {"owner_id": Decimal("7.5"), "hidden_from": "42", "editor_id": Decimal(7)},
    {"editor_id": "7"},
]


@pytest.fixture
async def notes(make_store: MakeStore) -> World:
    """Notes whose IDs are texts and numbers."""
    made = world(NOTES, await make_store(NOTES.table))
    items = [
        {"PK": "PERSON#1", "SK": f"NOTE#{number}", "number": Decimal(number), **item}
        for number, item in enumerate(ITEMS)
    ]
    await made.put({"PK": "PERSON#1", "SK": "PERSON#1", "person_id": Decimal(1)}, *items)
    return made


LIST = """query ($where: NoteWhere) { person(personId: "1") { notes(where: $where) { totalCount nodes { number } } } }"""


async def found(notes: World, where: Any, sub: object = "nobody") -> list[int]:
    answer = await notes.service.execute(LIST, {"where": where}, viewer={"sub": sub})
    assert "errors" not in answer, answer
    listed = answer["data"]["person"]["notes"]
    assert listed["totalCount"] == len(listed["nodes"])
    return [each["number"] for each in listed["nodes"]]


@pytest.mark.parametrize(
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
        ({"tagIds": {"contains": "7"}}, [0, 1]),
        ({"tagIds": {"contains": "9"}}, [2]),
        ({"readerIds": {"contains": "8"}}, [0, 2]),
        ({"not": {"readerIds": {"contains": "7"}}}, [2, 3, 4, 5]),
        ({"editorId": {"eq": "7"}}, [4, 5]),
        ({"editorId": {"ne": "7"}}, [0, 1, 2, 3]),
    ],
)  # fmt: skip
async def test_an_id_is_found_in_each_form(notes: World, where: Any, wanted: list[int]) -> None:
    """A condition would compare with text alone, and `ne` and `not` would then give what they exclude."""
    assert await found(notes, where) == wanted


@pytest.mark.parametrize("sub", ["42", 42])
async def test_a_rule_hides_from_an_id_in_each_form(notes: World, sub: object) -> None:
    """A note that hides from 42 would be shown to viewer 42."""
    assert await found(notes, None, sub) == [0, 1, 2, 5]


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
    """The owner, whose ID is stored as a number, would be refused; the tag 7, which is one, allowed."""
    answer = await notes.service.execute(UPDATE % (number, given), viewer={"sub": "7"})
    assert [each["extensions"]["code"] for each in answer.get("errors", [])] == ([code] if code else [])
