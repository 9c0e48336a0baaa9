"""Ends whose attribute holds the node's whole partition key: one key field, a number, several fields, one of two types.

A table of an office that registers powers of attorney: reminders, notes and files name what they are about by its key.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, many, node, read, record, stored, viewer
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Scan
from keygraph_resolvers import OperationRequest, check
from tests.conftest import MakeStore, in_one_world
from tests.keygraph.checked import mistakes
from tests.resolvers.worlds import World, filled, world
from tests.verified import verified

by_deed = Index("by-deed", "deed", "day", projection=["sender"])
by_file = Index("by-file", "FilePK", "FileSK")


@node("DEED#{uid}", "DEED")
class Deed:
    uid: ID
    donor: str
    reminders: Many[Reminder]
    files: Many[File] = many(needs=("box_id",))


@node("CLERK#{number:04d}#", "CLERK")
class Clerk:
    number: int
    name: str


@node("BOX#{room}#{shelf}", "BOX")
class Box:
    room: str
    shelf: str
    files: Many[File]


@node("REMINDER#{reminder_id}")
class Reminder:
    reminder_id: ID
    deed: Deed = stored("deed", whole_key=True)
    day: str
    sender: Clerk | None = stored("sender", whole_key=True)


@record(
    "FILE#{file_id}",
    "FILE",
    by_file("{box}", "{deed}#{file_id}"),
    type={"about": {"beginsWith": "DEED#"}},
)
class File:
    file_id: ID
    box: Box | None = stored("box", whole_key=True)
    deed: Deed = stored("about", whole_key=True)


TABLE = Table("Office", partition_key="PK", sort_key="SK", indexes=[by_deed, by_file])
graph = Graph(TABLE, Deed, Clerk, Box, Reminder, File, writes=True)

ITEMS: list[Item] = [
    {"PK": "DEED#1", "SK": "DEED", "uid": "1", "donor": "Ada"},
    {"PK": "DEED#2", "SK": "DEED", "uid": "2", "donor": "Ben"},
    {"PK": "CLERK#0007#", "SK": "CLERK", "number": Decimal(7), "name": "Cy"},
    {"PK": "BOX#A#3", "SK": "BOX", "room": "A", "shelf": "3"},
    {"PK": "REMINDER#a", "SK": "REMINDER#a", "deed": "DEED#1", "day": "2024-05-01", "sender": "CLERK#0007#"},
    {"PK": "REMINDER#b", "SK": "REMINDER#b", "deed": "DEED#1", "day": "2024-05-02"},
    {"PK": "FILE#x", "SK": "FILE", "box": "BOX#A#3", "about": "DEED#1", "FilePK": "BOX#A#3", "FileSK": "DEED#1#x"},
]  # fmt: skip

office = filled(graph, ITEMS)


@in_one_world(
    ("asked", "wanted"),
    [
        ('reminder(reminderId: "a") { deed { donor } sender { name } }', {"reminder": {"deed": {"donor": "Ada"}, "sender": {"name": "Cy"}}}),
        ('deed(uid: "1") { reminders(day: {from: "2024-05-02"}) { totalCount nodes { reminderId deed { uid } sender { number } } } }',
            {"deed": {"reminders": {"totalCount": 1, "nodes": [{"reminderId": "b", "deed": {"uid": "1"}, "sender": None}]}}}),
        ('deed(uid: "1") { reminders(where: {senderNumber: {eq: 7}}) { nodes { reminderId } } }', {"deed": {"reminders": {"nodes": [{"reminderId": "a"}]}}}),
        ('box(room: "A", shelf: "3") { files(deedUid: {eq: "1"}, where: {deedUid: {in: ["1", "2"]}}) { nodes { fileId deed { donor } box { shelf } } } }',
            {"box": {"files": {"nodes": [{"fileId": "x", "deed": {"donor": "Ada"}, "box": {"shelf": "3"}}]}}}),
        ('box(room: "A", shelf: "3") { files(where: {deedUid: {beginsWith: "1"}}) { totalCount } }', {"box": {"files": {"totalCount": 1}}}),
        ('box(room: "A", shelf: "3") { files(where: {deedUid: {beginsWith: "2"}}) { totalCount } }', {"box": {"files": {"totalCount": 0}}}),
    ],
)  # fmt: skip
async def test_reads(office: World, asked: str, wanted: dict[str, Any]) -> None:
    assert await office.ask(f"{{ {asked} }}") == wanted


async def test_a_key_field_from_the_attribute_costs_no_read(office: World) -> None:
    await office.ask('{ deed(uid: "1") { reminders { nodes { deed { uid } sender { number } } } } }')
    [deed] = [request for request in office.tracer.requests if isinstance(request, BatchGet)]
    assert deed.keys == (("DEED#1", "DEED"),)


async def problems(office: World) -> list[str]:
    return [kind.what for kind, _ in (await verified(graph, office.tracer.store)).ordered()]


BOX = "WyJCb3giLCJBIiwiMyJd"


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ('createReminder(input: {reminderId: "c", deedUid: "2", day: "d", senderNumber: 7}) { reminder { deed { donor } sender { name } } }',
            {"PK": "REMINDER#c", "deed": "DEED#2", "day": "d", "sender": "CLERK#0007#"}),
        ('createReminder(input: {reminderId: "c", deedUid: "9", day: "d"}) { clientMutationId }', "NOT_FOUND"),
        ('updateReminder(input: {reminderId: "a", deedUid: "2", senderNumber: null}) { reminder { deed { donor } } }',
            {"PK": "REMINDER#a", "deed": "DEED#2", "day": "2024-05-01"}),
        ('updateReminder(input: {reminderId: "a", deedUid: "9"}) { clientMutationId }', "NOT_FOUND"),
        ('updateReminder(input: {reminderId: "a", senderNumber: 8}) { clientMutationId }', "NOT_FOUND"),
        ('putFile(input: {fileId: "y", boxId: $box, deedUid: "2"}) { file { box { shelf } } }',
            {"PK": "FILE#y", "box": "BOX#A#3", "about": "DEED#2", "FilePK": "BOX#A#3", "FileSK": "DEED#2#y", "file_id": "y"}),
        ('updateFile(input: {fileId: "x", deedUid: "2"}) { file { deed { donor } } }',
            {"PK": "FILE#x", "box": "BOX#A#3", "about": "DEED#2", "FilePK": "BOX#A#3", "FileSK": "DEED#2#x"}),
        ('updateFile(input: {fileId: "x", boxId: null}) { file { deed { donor } } }', {"PK": "FILE#x", "about": "DEED#1"}),
        ('deleteDeed(input: {uid: "1"}) { clientMutationId }', "CONFLICT"),
    ],
)  # fmt: skip
async def test_writes(office: World, asked: str, wanted: Any) -> None:
    document = f"mutation {{ {asked.replace('$box', repr(BOX)).replace(chr(39), chr(34))} }}"
    if isinstance(wanted, str):
        assert await office.codes(document) == [wanted]
        return
    await office.ask(document)
    items = (await office.tracer.store.send(Scan(consistent=True))).items
    [item] = [each for each in items if each["PK"] == wanted["PK"]]
    ignored = {"SK", "Type", "reminder_id", "file_id"} - wanted.keys()
    assert {name: value for name, value in item.items() if name not in ignored} == wanted
    assert await problems(office) == []


async def test_verify(office: World) -> None:
    """A raw key field, a key of another type and a node that is missing are named."""
    await office.put(
        {"PK": "REMINDER#c", "SK": "REMINDER#c", "deed": "1", "day": "d"},
        {"PK": "REMINDER#d", "SK": "REMINDER#d", "deed": "DEED#9", "day": "d"},
        {"PK": "FILE#y", "SK": "FILE", "box": "BOX#A", "about": "DEED#1"},
        {"PK": "FILE#z", "SK": "FILE", "box": "BOX#A#3", "about": "DEED#1", "FilePK": "BOX#A#3", "FileSK": "DEED#2#z"},
    )  # fmt: skip
    assert {*await problems(office)} == {
        "Reminder.deed of an item is not a key of Deed",
        "by-deed: deed does not match DEED#{deed.uid}",
        "deed points to a missing Deed",
        "File.box of an item is not a key of Box",
        "box_id cannot be written in a key",
        "by-file: FileSK does not match deed_uid",
    }


async def test_a_key_of_another_type_is_an_error_of_its_end(office: World) -> None:
    await office.put({"PK": "REMINDER#c", "SK": "REMINDER#c", "deed": "BOX#A#3", "day": "d"})
    told = "Reminder.deed of an item is not a key of Deed"
    assert await office.errors('{ reminder(reminderId: "c") { deed { uid } } }') == [("CORRUPT_ITEM", told)]


async def test_deletes_find_what_names_the_node(office: World) -> None:
    mutation = 'mutation { deleteDeed(input: {uid: "1", onEdges: DETACH}) { clientMutationId } }'
    await office.put({"PK": "DEED#1", "SK": "DEED", "uid": "1", "donor": "Ada"})
    assert await office.codes(mutation) == ["CONFLICT"]


@node("PERSON#{key}#", access=[read()])
class Person:
    key: ID


@node("FIRM#{key}#", access=[read()])
class Firm:
    key: ID


@node("DESK#{number}", "DESK", access=[read(where={"owner": viewer("sub")})])
class Desk:
    number: int
    owner: Person = stored("owner", whole_key=True)
    owner_key: str = stored("owner")
    other: Person | Firm | None = stored("other", whole_key=True)


DESKS = Table("Desks", partition_key="PK", sort_key="SK")


async def test_rules_compare_the_key_field(make_store: MakeStore) -> None:
    made = world(check(Graph(DESKS, Person, Firm, Desk)), await make_store(DESKS))
    await made.put({"PK": "DESK#1", "SK": "DESK", "owner": "PERSON#7#", "other": "FIRM#2#"})
    query = "{ desk(number: 1) { owner { key } ownerKey other { __typename ... on Firm { key } } } }"
    seen = {"owner": {"key": "7"}, "ownerKey": "PERSON#7#", "other": {"__typename": "Firm", "key": "2"}}
    for viewer_id, wanted in (("7", seen), ("PERSON#7#", None), ("2", None)):
        answer = await made.service.execute(OperationRequest(query, viewer={"sub": viewer_id}))
        assert answer["data"] == {"desk": wanted}


def test_mistakes() -> None:
    @node("A#{a}", "{b}")
    class Half:
        a: ID
        b: ID

    @node("T#{day:%Y-%m}", "T")
    class Month:
        day: date

    @record("R#{key}", "R")
    class Record:
        key: ID = stored("key", whole_key=True)
        half: Half = stored("half", whole_key=True)
        month: Month = stored("month", whole_key=True)

    @record("S#{key}", "S")
    class Several:
        key: ID
        month: Month = stored("month", whole_key=True)

    assert mistakes(Half, Month, Record, Several) == [
        "Record.key: whole_key=True is for ends, whose attribute holds the key of a node. "
        "Annotate it as the node, or remove whole_key=True.",
        "Record.half: the partition key of Half does not identify it, so it does not show which node it is. "
        "Put all its key fields into its partition template, or remove whole_key=True.",
        "Several.month: its partition key, T#{day:%Y-%m}, is no text with its key field in it. "
        "Store the key fields, without whole_key=True.",
    ]
