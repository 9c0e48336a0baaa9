"""Each document's table as if nobody knew it: a model is drafted from the store alone, and serves the sample."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from keygraph import Graph
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import DescribeTable
from keygraph.keys.types import plain
from keygraph.model.paths import AccessPath
from keygraph.tables.sample import sample
from keygraph_examples.commerce import graph as commerce
from keygraph_examples.commerce_sample import sample as shop_of_any_size
from keygraph_resolvers import build_schema
from tests.conftest import MakeStore
from tests.documents import more_published_designs, published_designs
from tests.documents.design_items import items_of
from tests.documents.pages import graph_of
from tests.documents.samples import files_of, serve
from tests.documents.served import Served
from tests.keygraph.drafts import drafted, ruff

NAMES = ("billing", "cargo", "commerce", "education", "social", "talent")


@dataclass(frozen=True)
class Asked:
    """What a draft must say, and a query with its answer."""

    declares: tuple[str, ...]
    query: str
    answer: Any


ASKED = {
    "billing": Asked(
        (
            'by_sort_key = Index("by-sort-key", "SK", "PK", projection=["Amount"])',
            '@edge("{invoice}", "{bill}")\nclass InvoiceBill:',
            "note: str | None",
        ),
        """{
          invoice(invoiceId: "92551") { customer dueOn bills { edges { amount note node { service } } } }
          bill(billId: "4224687") { invoices { edges { note node { invoiceId } } } }
        }""",
        {
            "invoice": {
                "customer": "Northwind Traders",
                "dueOn": "2024-03-02",
                "bills": {
                    "edges": [
                        {"amount": "120", "note": None, "node": {"service": "Line rental"}},
                        {"amount": "450", "note": "First half", "node": {"service": "Installation"}},
                    ]
                },
            },
            "bill": {
                "invoices": {
                    "edges": [
                        {"note": "First half", "node": {"invoiceId": "92551"}},
                        {
                            "note": "Second half, less what Fabrikam pays",
                            "node": {"invoiceId": "92552"},
                        },
                        {"note": None, "node": {"invoiceId": "92553"}},
                    ]
                }
            },
        },
    ),
    "cargo": Asked(
        (
            '@node("CONTAINER_{container_id}")\nclass Container:',
            "    pallets: Many[ContainerPallet]\n",
            "    linked_datetime: datetime\n",
            "    weight_in_kg: Decimal\n    is_dangerous: bool\n",
            'attribute_case="pascal"',
        ),
        """{ container(containerId: "009998") { operator pallets { edges {
          linkedBy node { palletId origin boxes { totalCount } }
        } } } box(boxId: "A03831") { pallets { nodes { palletId } } } }""",
        {
            "container": {
                "operator": "TheBoatingCompany",
                "pallets": {
                    "edges": [
                        {
                            "linkedBy": "MyLoadingCompany",
                            "node": {"palletId": "B021002", "origin": "BR", "boxes": {"totalCount": 2}},
                        },
                        {
                            "linkedBy": "MyLoadingCompany",
                            "node": {"palletId": "B021003", "origin": "BR", "boxes": {"totalCount": 1}},
                        },
                    ]
                },
            },
            "box": {"pallets": {"nodes": [{"palletId": "B021004"}]}},
        },
    ),
    "commerce": Asked(
        (
            '@node("ORDER#{order_id}", gsi1("{customer}", "ORDER#{order_date}"))\nclass Order:',
            '@record("{user}#SHARD{shard}", "ACTIVITY#{timestamp}", shards=5)\nclass UserActivity:',
            '"CHILD#{child_category.category_id}"',
            '@node("TAG#{tag_id}", item=False)\nclass Tag:',
            '    tag: Tag = stored("tagName")\n',
            "    seller: User\n",
            "    # doubt: an enum? Its values are customer, seller\n    user_type: str\n",
            'type_attribute="Type"',
        ),
        """{ user(userId: "12345") { name orders(first: 1) { nodes { orderId total products { edges {
          quantity node { name seller { name } }
        } } } } activities { totalCount } }
          users { nodes { userId } } tag(tagId: "bluetooth") { products { nodes { productId } } } }""",
        {
            "user": {
                "name": "John Doe",
                "orders": {
                    "nodes": [
                        {
                            "orderId": "ORD001",
                            "total": "199.99",
                            "products": {
                                "edges": [
                                    {
                                        "quantity": 1,
                                        "node": {
                                            "name": "Wireless Headphones",
                                            "seller": {"name": "TechStore Inc"},
                                        },
                                    }
                                ]
                            },
                        }
                    ]
                },
                "activities": {"totalCount": 13},
            },
            "users": {"nodes": [{"userId": n} for n in ("98765", "67890", "24680", "12345", "13579")]},
            "tag": {"products": {"nodes": [{"productId": "ABC123"}, {"productId": "GHI789"}]}},
        },
    ),
    "education": Asked(
        (
            '@node("STUDENT#{student_id}", "METADATA", type="STUDENT")\nclass Student:',
            'gsi1 = Index("GSI1", "GSI1-PK", "GSI1-SK")',
            "    grade: str | None\n",
        ),
        """{ student(studentId: "S1") { name yearLevel courses { edges { grade node { name } } } }
             course(courseId: "C1") { students { nodes { name } } } }""",
        {
            "student": {
                "name": "John Doe",
                "yearLevel": 3,
                "courses": {
                    "edges": [
                        {"grade": "A", "node": {"name": "Advanced Mathematics"}},
                        {"grade": "B+", "node": {"name": "Physics 101"}},
                    ]
                },
            },
            "course": {
                "students": {"nodes": [{"name": n} for n in ("John Doe", "Jane Smith", "Amina Hassan")]}
            },
        },
    ),
    "social": Asked(
        (
            '@node("USER#{user_id}", "PROFILE")\nclass User:',
            '@edge("{user}", "FRIEND#{friend.user_id}")\nclass UserFriend:',
            '@edge("{user}", "LIKES#{post}")\nclass UserLikesPost:',
            '@edge("{user}", "FOLLOWS#{to_user}")\nclass UserFollowsUser:',
            '@node("POST#{post_id}", item=False)\nclass Post:',
            "    friendship_since: date\n",
        ),
        """{ user(userId: "Alice") { name friends { edges { friendshipSince node { name } } }
          posts { nodes { postId } } } bob: user(userId: "Bob") { followsUsers { nodes { userId } } } }""",
        {
            "user": {
                "name": "Alice Wonderland",
                "friends": {
                    "edges": [
                        {"friendshipSince": "2023-01-15", "node": {"name": "Bob The Builder"}},
                        {"friendshipSince": "2023-02-20", "node": {"name": "Charlie Chaplin"}},
                        {"friendshipSince": "2023-05-06", "node": {"name": "Eve Adams"}},
                    ]
                },
                "posts": {"nodes": [{"postId": "12345"}, {"postId": "67890"}]},
            },
            "bob": {"followsUsers": {"nodes": [{"userId": "Charlie"}]}},
        },
    ),
    "talent": Asked(
        (
            '    "NAME|{node_id}|PERSON",\n    by_data("NAME|{shard}", shards=2),\n    type=None,\n',
            '    "PLACE|{place.node_id}|{label}",\n    by_data("PLACE|{shard}", shards=2),\n',
            '    by_data("DATE|{label}|{shard}", shards=3),\n',
        ),
        """{ person(nodeId: "1") { data places { edges { label node { nodeId data } } } skills { nodes { data } } }
             place(nodeId: "3") { people { totalCount } }
             people(data: { beginsWith: "J" }) { nodes { nodeId data } } }""",
        {
            "person": {
                "data": "Jorge Souza",
                "places": {
                    "edges": [
                        {"label": "HOME", "node": {"nodeId": "3", "data": "USA|WA|Seattle"}},
                        {"label": "BIRTH", "node": {"nodeId": "7", "data": "BRA|SP|São Paulo"}},
                    ]
                },
                "skills": {"nodes": [{"data": "Java"}]},
            },
            "place": {"people": {"totalCount": 3}},
            "people": {
                "nodes": [
                    {"nodeId": "9", "data": "Jonas Berg"},
                    {"nodeId": "1", "data": "Jorge Souza"},
                    {"nodeId": "5", "data": "Julia Novak"},
                ]
            },
        },
    ),
}


async def drafted_from(served: Served, folder: Path) -> Any:
    """The draft of what is in the store, of which nothing is known but that it is there."""
    table = await served.store.send(DescribeTable())
    assert table is not None
    return drafted(table, await sample(served.store, 1000), folder)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.long
async def test_a_draft_serves_the_sample(name: str, make_store: MakeStore, tmp_path: Path) -> None:
    known = await serve(graph_of(name), make_store, *files_of(name))
    asked = ASKED[name]
    with await drafted_from(known, tmp_path) as (text, graph):
        # The order of an item's attributes, and so of the fields, is the store's.
        for line in "\n".join(asked.declares).splitlines():
            assert line in text, text
        assert "cannot be read" not in text
        assert "left out" not in text
        assert await Served(graph, known.store).ask(asked.query) == asked.answer


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("engine", ["sqlite"])
async def test_a_draft_is_formatted(name: str, make_store: MakeStore, tmp_path: Path) -> None:
    known = await serve(graph_of(name), make_store, *files_of(name))
    with await drafted_from(known, tmp_path) as (text, _):
        for length in (88, 110, 120):
            assert ruff("format", f"--line-length={length}", text=text) == text
        assert ruff("check", "--select=I,F,E4,E7,E9,N,UP", text=text).strip() in ("", "All checks passed!")


@pytest.mark.long
def test_a_shop_of_any_size_is_drafted(tmp_path: Path) -> None:
    items = [{name: plain(value) for name, value in item.items()} for item in shop_of_any_size(150)]
    with drafted(commerce.table, items, tmp_path) as (text, graph):
        build_schema(graph)
        assert "cannot be read" not in text
        # The article says "PriceHistory" in every price; the model calls them otherwise.
        declared = {record.type_value for record in commerce.types.values()}
        assert {record.type_value for record in graph.types.values()} == declared
        lists, wanted = (
            {(owner, path.record.type_value, str(path.keys)) for (owner, _), path in each.node_lists.items()}
            for each in (graph, commerce)
        )
        assert {(owner, value) for owner, value, _ in wanted} <= {(owner, value) for owner, value, _ in lists}


DESIGNS = {
    name: graph
    for module in (published_designs, more_published_designs)
    for name, graph in vars(module).items()
    if isinstance(graph, Graph)
}
NOT_FOUND = {("fleet", "Org.in_region")}
"""Lists that a draft leaves out: they need an argument, and another of the same type needs none."""


def shape_of(path: AccessPath) -> tuple[str | None, str]:
    """What a list reads, whatever its placeholders are called."""
    return path.keys.index_name, re.sub(r"\{[^{}]*\}", "{}", str(path.keys))


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.long
def test_a_published_design_is_drafted(name: str, tmp_path: Path) -> None:
    design = DESIGNS[name].check()
    items = items_of(design)
    with drafted(design.table, items, tmp_path) as (text, graph):
        assert "cannot be read" not in text
        assert "left out" not in text
        pairs = {(declared(design, item), declared(graph, item)) for item in items}
        assert len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})
        offered = {shape_of(path) for path in graph.node_lists.values()}
        missing = {
            f"{owner}.{list_}"
            for (owner, list_), path in design.node_lists.items()
            if shape_of(path) not in offered
        }
        assert missing == {list_ for of, list_ in NOT_FOUND if of == name}


def declared(graph: Graph, item: Item) -> str:
    """The name of an item's type."""
    record = graph.recognise(item)
    assert record is not None
    return record.name
