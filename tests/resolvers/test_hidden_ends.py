"""A node that the viewer may not see is as good as absent for each write that names it, also where it is refused anyway."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import (
    ID,
    Graph,
    Many,
    Table,
    copy,
    counts,
    create,
    edge,
    node,
    read,
    record,
    rule,
    sums,
    viewer,
    write,
)
from keygraph.dynamo.items import Item
from keygraph.writing.marks import MARK, new_token, set_mark
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.worlds import World, world

OWN = {"owner": viewer("sub")}


@node(
    "DOC#{doc_id}",
    access=[read(where={"public": True}), read(where=OWN), create(where=OWN), write(where=OWN)],
)
class Doc:
    doc_id: ID
    owner: str
    rank: int = 0
    public: bool = False
    lines: Many[Line]
    links: Many[Link]
    lines_count: int = counts("lines", access=[read()])
    quantity: int = sums("lines.quantity", access=[read()])


@record("{doc}", "LINE#{number}", access=[read(), write()])
class Line:
    doc: Doc
    number: int
    quantity: int


@node("BOX#{box_id}#{shard}", "BOX", shards=2, access=[read(where=OWN), create()])
class Box:
    box_id: ID
    owner: str


@record("{doc}", "PUT#{box.box_id}", access=[read(), create()])
class Content:
    doc: Doc
    box: Box


@edge(
    "{source}",
    "LINK#{target.doc_id}",
    check=[rule({"rank": {"lt": 50}}, "rank must be under 50")],
    access=[read(fields=["weight"]), read(role="hr"), write(fields=["weight", "target", "source"]), create()],
)
class Link:
    source: Doc
    target: Doc
    weight: int = 1
    rank: int = copy("target.rank", access=[read(role="hr")])


graph = Graph(
    Table("Hidden", partition_key="PK", sort_key="SK"),
    Doc,
    Line,
    Link,
    Box,
    Content,
    type_attribute="Type",
    writes=True,
).check()

DOCS = {
    "low": (10, False),
    "high": (77, False),
    "full": (10, False),
    "marked": (10, False),
    "open": (10, True),
}
LINE = "createLine(input: {docId: %s, number: 9, quantity: 2147483647}) { clientMutationId }"
TARGETS = {
    "create": 'createLink(input: {sourceId: "open", targetId: %s}) { clientMutationId }',
    "put": 'putLink(input: {sourceId: "open", targetId: %s}) { clientMutationId }',
    "upsert": 'upsertLink(input: {sourceId: "open", targetId: %s}) { created }',
    "move": 'moveLink(input: {sourceId: "open", targetId: "open", to: {targetId: %s}}) { clientMutationId }',
    "nested": 'createDoc(input: {docId: "new", owner: "eve", links: [{targetId: %s}]}) { clientMutationId }',
    "a line": LINE,
    "several": 'write(input: {actions: [{createDoc: {docId: "new", owner: "eve"}}, {createLine: {docId: %s, number: 1, quantity: 1}}]}) { clientMutationId }',
    "changed too": 'write(input: {actions: [{updateDoc: {docId: %s, rank: 1}}, {createLink: {sourceId: "open", targetId: %s}}]}) { clientMutationId }',
    "forbidden": 'createDoc(input: {docId: "new", owner: "ann", links: [{targetId: %s}]}) { clientMutationId }',
    "taken": 'createDoc(input: {docId: "open", owner: "eve", links: [{targetId: %s}]}) { clientMutationId }',
    "no link": 'moveLink(input: {sourceId: "open", targetId: "none", to: {targetId: %s}}) { clientMutationId }',
    "no source": 'createLink(input: {sourceId: "none", targetId: %s}) { clientMutationId }',
    "both ends": "createLink(input: {sourceId: %s, targetId: %s}) { clientMutationId }",
    "a version": 'write(input: {actions: [{updateDoc: {docId: "none", rank: 1}}, {createLine: {docId: %s, number: 1, quantity: 1}}]}) { clientMutationId }',
}


@pytest.fixture
async def docs(make_store: MakeStore) -> World:
    made = world(graph, await make_store(graph.table))
    items: list[Item] = []
    for name, (rank, public) in DOCS.items():
        item: Item = {"PK": f"DOC#{name}", "SK": f"DOC#{name}", "Type": "Doc", "doc_id": name, "owner": "ann"}
        items.append(
            {
                **item,
                "rank": Decimal(rank),
                "public": public,
                "lines_count": Decimal(0),
                "quantity": Decimal(5),
            }
        )
        if name == "marked":
            mark: Any = set_mark(new_token())
            items[-1][MARK] = mark.value
    link: Item = {
        "PK": "DOC#open",
        "SK": "LINK#open",
        "Type": "Link",
        "source_id": "open",
        "target_id": "open",
    }
    box: Item = {"PK": "BOX#b#0", "SK": "BOX", "Type": "Box", "box_id": "b", "owner": "ann"}
    await made.put(*items, {**link, "weight": Decimal(1), "rank": Decimal(10)}, box)
    return made


async def refused(made: World, document: str, name: str) -> Any:
    """The errors of a write that names a node, and how many requests it took."""
    made.forget()
    given = document.replace("%s", f'"{name}"')
    answer = await made.service.execute(OperationRequest(f"mutation {{ {given} }}", viewer={"sub": "eve"}))
    found = [
        (error["extensions"]["code"], error["message"], tuple(error["extensions"].get("path", ())))
        for error in answer["errors"]
    ]
    return found, made.operations


@in_one_world("document", TARGETS.values())
async def test_a_hidden_end_is_as_good_as_absent(docs: World, document: str) -> None:
    absent = await refused(docs, document, "absent")
    for name, (_, is_public) in DOCS.items():
        if not is_public:
            assert await refused(docs, document, name) == absent, name


@pytest.mark.parametrize("box", ["b", "absent"])
async def test_a_hidden_end_in_one_of_several_places(docs: World, box: str) -> None:
    found, _ = await refused(
        docs, 'createContent(input: {docId: "none", boxId: %s}) { clientMutationId }', box
    )
    assert [message for _, message, _ in found] == ["boxId: there is no Box with this key."]


async def test_an_end_that_is_visible_is_copied_from(docs: World) -> None:
    document = f"mutation {{ {TARGETS['put'].replace('%s', chr(34) + 'low' + chr(34))} }}"
    answer = await docs.service.execute(OperationRequest(document, viewer={"sub": "ann"}))
    assert answer == {"data": {"putLink": {"clientMutationId": None}}}
