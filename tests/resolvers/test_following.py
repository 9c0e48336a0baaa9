"""Copies that follow answer for the nodes that they are copied from: no node is read for what an edge has."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Table,
    copy,
    edge,
    field,
    many,
    node,
    read,
    record,
    stored,
    viewer,
    write,
)
from keygraph.access.claims import Viewer
from keygraph.dynamo.actions import DeleteItem, Remove, UpdateItem
from keygraph.dynamo.store import BatchGet, Write
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, within_bound, world

gsi = Index("gsi", "gp", "gs")
by_child = Index("by-child", "cp", "cs", projection="KEYS_ONLY")


@node("CATEGORY#{category_id}")
class Category:
    category_id: ID
    name: str
    note: str | None = None
    size: int = 0

    children: Many[Child] = many(at="parent")
    parents: Many[Child] = many(at="child")
    orders: Many[Order]

    @field(needs=("category_id", "name"))
    def title(self) -> str:
        return f"{self.name} ({self.category_id})"


@edge("{parent}", "CHILD#{child.category_id}", by_child("{child}", "PARENT#{parent.category_id}"))
class Child:
    parent: Category
    child: Category
    child_name: str = copy("child.name", follows=True)
    child_note: str | None = copy("child.note", follows=True)
    parent_name: str = copy("parent.name", follows=True)
    first_name: str = copy("child.name")


@node("ORDER#{order_id}", gsi("{category}", "ORDER#{order_id}"))
class Order:
    order_id: ID
    category: Category
    category_name: str = copy("category.name", follows=True)
    total: int = 0


graph = Graph(
    Table("Shop", partition_key="pk", sort_key="sk", indexes=[gsi, by_child]),
    Category,
    Child,
    Order,
    type_attribute="kind",
    writes=True,
).check()


async def shop(make_store: MakeStore, of: Graph = graph, **options: Any) -> World:
    made = world(of, await make_store(of.table), **options)
    for name in "abc":
        await made.ask(
            f'mutation {{ createCategory(input: {{categoryId: "{name}", name: "{name.upper()}"}}) {{ clientMutationId }} }}'
        )
    for child in "bc":
        await made.ask(
            f'mutation {{ putChild(input: {{parentId: "a", childId: "{child}"}}) {{ clientMutationId }} }}'
        )
    for number in range(3):
        await made.ask(
            f'mutation {{ createOrder(input: {{orderId: "{number}", categoryId: "b", total: 3}}) {{ clientMutationId }} }}'
        )
    made.forget()
    return made


async def requests(made: World, document: str, **options: Any) -> tuple[Any, list[str]]:
    """What a document answers, and the requests for it."""
    answer = await made.service.execute(OperationRequest(document, with_cost=True, **options))
    within_bound(answer)
    cost = answer["extensions"]["cost"]
    sent = [f"{each['operation']} {', '.join(each['paths'])}" for each in cost["requests"]]
    assert cost["bound"]["roundTrips"] >= cost["actual"]["roundTrips"]
    return answer["data"], sent


def children(selected: str) -> str:
    return f'{{ category(categoryId: "a") {{ children {{ {selected} }} }} }}'


NODES = "BatchGetItem category.children"


@pytest.mark.parametrize(
    ("selected", "are_read"),
    [
        ("nodes { name }", False),
        ("nodes { categoryId id __typename note title }", False),
        ("edges { childName node { name } }", False),
        ("edges { node { title } } nodes { note }", False),
        ("nodes { other: name children { nodes { name } } }", False),
        ("nodes { name size }", True),
        ("edges { node { size } }", True),
    ],
)
async def test_what_an_edge_has_is_not_read(make_store: MakeStore, selected: str, are_read: bool) -> None:
    """Unless the query is consistent; the answer is the same."""
    made = await shop(make_store)
    data, sent = await requests(made, children(selected))
    assert {each for each in sent if "Query" not in each} == {"GetItem category"} | (
        {NODES} if are_read else set()
    )
    consistent, sent = await requests(made, f"query @consistent {children(selected)}")
    assert consistent == data
    assert NODES in sent


async def test_an_end_of_a_record_or_a_node(make_store: MakeStore) -> None:
    made = await shop(make_store)
    data, sent = await requests(made, "{ order(orderId: 1) { total category { name title } } }")
    assert data == {"order": {"total": 3, "category": {"name": "B", "title": "B (b)"}}}
    assert sent == ["GetItem order"]
    data, sent = await requests(
        made, '{ category(categoryId: "b") { orders { nodes { orderId category { name } } } } }'
    )
    assert data["category"]["orders"]["nodes"][2] == {"orderId": "2", "category": {"name": "B"}}
    assert sorted(sent) == ["GetItem category", "Query category.orders"]


async def test_an_index_that_lacks_the_copy(make_store: MakeStore) -> None:
    made = await shop(make_store)
    query = '{ category(categoryId: "b") { parents { nodes { name } } } }'
    data, sent = await requests(made, query)
    assert data == {"category": {"parents": {"nodes": [{"name": "A"}]}}}
    assert sent[-1] == "GetItem category.parents"


async def test_a_mutation_reads_what_it_has_written(make_store: MakeStore) -> None:
    """And the next query finds the new value."""
    made = await shop(make_store)
    rename = """mutation { updateCategory(input: {categoryId: "b", name: "Bee"}) {
        category { name parents { edges { childName } nodes { name children { nodes { name } } } } } } }"""
    answer = await made.service.execute(OperationRequest(rename, with_cost=True))
    within_bound(answer)
    assert answer["data"]["updateCategory"]["category"] == {
        "name": "Bee",
        "parents": {
            "edges": [{"childName": "Bee"}],
            "nodes": [{"name": "A", "children": {"nodes": [{"name": "Bee"}, {"name": "C"}]}}],
        },
    }
    data, sent = await requests(made, children("edges { childName firstName node { name } }"))
    assert data["category"]["children"]["edges"][0] == {
        "childName": "Bee",
        "firstName": "B",
        "node": {"name": "Bee"},
    }
    assert NODES not in sent
    data, _ = await requests(made, "{ order(orderId: 1) { categoryName category { name } } }")
    assert data == {"order": {"categoryName": "Bee", "category": {"name": "Bee"}}}


async def test_a_move_is_within_its_bound(make_store: MakeStore) -> None:
    made = await shop(make_store)
    move = """mutation { moveChild(input: {parentId: "a", childId: "b", to: {parentId: "c"}}) {
        child { parentName childName } } }"""
    answer = await made.service.execute(OperationRequest(move, with_cost=True))
    assert answer["data"] == {"moveChild": {"child": {"parentName": "C", "childName": "B"}}}
    within_bound(answer)


async def test_explain_names_the_search_for_copies(make_store: MakeStore) -> None:
    made = await shop(make_store)
    explained = made.service.explain(
        'mutation { updateCategory(input: {categoryId: "b", name: "Bee"}) { clientMutationId } }'
    )
    text = str(explained)
    assert "the copies in what is found change too" in text
    assert [each.kind for each in explained.steps] == ["read first", "mark", "find what names", "write"]
    unchanged = made.service.explain(
        'mutation { updateCategory(input: {categoryId: "b", note: null}) { clientMutationId } }'
    )
    assert [each.kind for each in unchanged.steps] == ["read first", "mark", "find what names", "write"]


async def test_a_node_that_is_gone(make_store: MakeStore) -> None:
    """What the edge has says nothing of whether its node still exists."""
    made = await shop(make_store)
    await made.tracer.send(Write(DeleteItem(("CATEGORY#b", "CATEGORY#b"))))
    data, _ = await requests(made, children("nodes { name }"))
    assert data["category"]["children"]["nodes"] == [{"name": "B"}, {"name": "C"}]
    data, _ = await requests(made, children("nodes { name size }"))
    assert [each["name"] for each in data["category"]["children"]["nodes"]] == ["C"]


async def test_an_item_that_lacks_its_copy(make_store: MakeStore) -> None:
    made = await shop(make_store)
    key = ("CATEGORY#a", "CHILD#b")
    await made.tracer.send(Write(UpdateItem(key, (Remove(("child_name",)),))))
    assert await made.errors(children("nodes { note name }")) == [
        ("CORRUPT_ITEM", "Child.child_name is missing in an item")
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.long
async def test_copies_and_nodes_give_one_answer(make_store: MakeStore, seed: int) -> None:
    """Whatever mutations do: a query that is answered by copies, and the same one that reads the nodes."""
    made, dice = await shop(make_store), Random(seed)
    selected = [
        "name",
        "note",
        "title",
        "categoryId",
        "children { nodes { name } }",
        "children { edges { node { title } } }",
    ]
    for number in range(12):
        one, other, name = dice.choice("abc"), dice.choice("abc"), f"{dice.choice('XYZ')} {number}"
        mutation = dice.choice(
            [
                f'updateCategory(input: {{categoryId: "{one}", name: "{name}", note: {dice.choice(["null", chr(34) + name + chr(34)])}}})',
                f'upsertCategory(input: {{categoryId: "{one}", name: "{name}"}})',
                f'putChild(input: {{parentId: "{one}", childId: "{other}"}})',
                f'moveChild(input: {{parentId: "a", childId: "b", to: {{parentId: "{one}", childId: "{other}"}}}})',
                f'updateOrder(input: {{orderId: "1", categoryId: "{one}"}})',
            ]
        )
        await made.service.execute(f"mutation {{ {mutation} {{ clientMutationId }} }}")
        fields = " ".join(dice.sample(selected, 2))
        lists = " ".join(
            f'{each}: category(categoryId: "{each}") {{ children {{ nodes {{ {fields} }} edges {{ node {{ name }} }} }} }}'
            for each in "abc"
        )
        query = f"{{ {lists} order(orderId: 1) {{ category {{ {fields} }} }} }}"
        assert await made.ask(query) == await made.ask(f"query @consistent {query}"), mutation


# --- Access ---------------------------------------------------------------------------------------------


def guarded(of_node: Any = (), of_name: Any = ()) -> Graph:
    """A graph with rules for a node and its name; everybody may read the copy."""
    everything = [read(), write()]

    @node("TOPIC#{topic_id}", access=of_node or everything)
    class Topic:
        topic_id: ID
        name: str = stored(access=of_name)
        owner: str = ""

        links: Many[Link] = many(at="one")

    @edge("{one}", "LINK#{other.topic_id}", by_child("{other}", "{one}"), access=everything)
    class Link:
        one: Topic
        other: Topic
        other_name: str = copy("other.name", follows=True, access=[read()])

    return Graph(Table("Topics", partition_key="pk", sort_key="sk", indexes=[by_child]), Topic, Link).check()


STAFF, OWN_KEY, OWN = (
    read(role="staff"),
    read(where={"topic_id": viewer("sub")}),
    read(where={"owner": viewer("sub")}),
)


@pytest.mark.parametrize(
    ("rules", "are_read"),
    [
        (((), [STAFF]), False),
        (((), [OWN_KEY]), False),
        (((), [OWN]), True),
        (([OWN_KEY, STAFF, write()], ()), False),
        (([OWN, STAFF, write()], ()), True),
    ],
)
async def test_the_rules_of_the_node_apply(make_store: MakeStore, rules: Any, are_read: bool) -> None:
    """As if the node was read: with the same query, the copy and the node give one answer."""
    topics = [
        {"pk": f"TOPIC#{name}", "sk": f"TOPIC#{name}", "topic_id": name, "name": name.upper(), "owner": name}
        for name in "abc"
    ]
    links = [
        {
            "pk": "TOPIC#a",
            "sk": f"LINK#{name}",
            "cp": f"TOPIC#{name}",
            "cs": "TOPIC#a",
            "other_name": name.upper(),
        }
        for name in "bc"
    ]
    made = world(guarded(*rules), await make_store(graph.table, *topics, *links))
    query = '{ links: topic(topicId: "a") { links { nodes { topicId name } edges { otherName node { name } } } } }'
    for claims in ({}, {"sub": "b"}, {"sub": "a"}, {"roles": ["staff"]}):
        seen = Viewer(claims)
        answers, made.tracer.requests[:] = [], []
        for document in (query, f"query @consistent {query}"):
            answer = await made.service.execute(OperationRequest(document, viewer=seen))
            answers.append(
                (answer["data"], [each["extensions"]["code"] for each in answer.get("errors", [])])
            )
            if not answers[1:] and claims == {"sub": "a"}:
                keys = [
                    key for each in made.tracer.requests if isinstance(each, BatchGet) for key in each.keys
                ]
                assert bool({("TOPIC#b", "TOPIC#b"), ("TOPIC#c", "TOPIC#c")} & {*keys}) == are_read
        assert answers[0] == answers[1]


@pytest.mark.parametrize("role", ["staff", None])
async def test_what_a_hidden_record_cannot_have_is_refused_without_its_name(
    make_store: MakeStore, role: str | None
) -> None:
    @node("TOPIC#{topic_id}", access=[read(), write()])
    class Topic:
        topic_id: ID
        name: str

    @record(
        "{topic}", "SECRET#{number}", gsi("SECRETS", "{topic_name}#{number}"), access=[read(role="staff")]
    )
    class Secret:
        topic: Topic
        number: ID
        topic_name: str = copy("topic.name", follows=True)

    of = Graph(Table("Topics", partition_key="pk", sort_key="sk", indexes=[gsi]), Topic, Secret).check()
    made = world(of, await make_store(of.table))
    await made.put(
        {"pk": "TOPIC#a", "sk": "TOPIC#a", "topic_id": "a", "name": "A"},
        {"pk": "TOPIC#a", "sk": "SECRET#1", "topic_name": "A", "gp": "SECRETS", "gs": "A#1"},
    )
    rename = 'mutation { updateTopic(input: {topicId: "a", name: ""}) { clientMutationId } }'
    answer = await made.service.execute(
        OperationRequest(rename, viewer=Viewer({} if role is None else {"roles": [role]}))
    )
    [error] = answer["errors"]
    assert error["extensions"]["code"] == "BAD_USER_INPUT"
    hidden = "Something that copies this cannot have the new value."
    assert (error["message"] == hidden) == (role is None)
    assert ("topicName" in error["message"]) == (role == "staff")
