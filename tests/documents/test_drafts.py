"""Each document's table as if nobody knew it: a model is drafted from the store alone, and serves the sample."""

from __future__ import annotations

import json
import re
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
from tests.documents.samples import NAMES, files_of, graph_of, serve
from tests.documents.served import Served, blocks
from tests.keygraph.drafts import drafted, ruff

DRAFTED = """
billing
{ invoice(invoiceId: "92551") { customer dueOn bills { edges { amount note node { service } } } }
  bill(billId: "4224687") { invoices { edges { note node { invoiceId } } } } }
{"invoice": {"customer": "Northwind Traders", "dueOn": "2024-03-02",
  "bills": {"edges": [{"amount": "120", "note": null, "node": {"service": "Line rental"}},
  {"amount": "450", "note": "First half", "node": {"service": "Installation"}}]}},
  "bill": {"invoices": {"edges": [{"note": "First half", "node": {"invoiceId": "92551"}},
  {"note": "Second half, less what Fabrikam pays", "node": {"invoiceId": "92552"}},
  {"note": null, "node": {"invoiceId": "92553"}}]}}}
by_sort_key = Index("by-sort-key", "SK", "PK", projection=["Amount"])
@edge("{invoice}", "{bill}")
class InvoiceBill:
note: str | None

cargo
{ container(containerId: "009998") { operator pallets { edges {
  linkedBy node { palletId origin boxes { totalCount } } } } } box(boxId: "A03831") { pallets { nodes { palletId } } } }
{"container": {"operator": "TheBoatingCompany", "pallets": {"edges": [
  {"linkedBy": "MyLoadingCompany", "node": {"palletId": "B021002", "origin": "BR",
  "boxes": {"totalCount": 2}}}, {"linkedBy": "MyLoadingCompany",
  "node": {"palletId": "B021003", "origin": "BR", "boxes": {"totalCount": 1}}}]}},
  "box": {"pallets": {"nodes": [{"palletId": "B021004"}]}}}
@node("CONTAINER_{container_id}")
class Container:
pallets: Many[ContainerPallet]
linked_datetime: datetime
weight_in_kg: Decimal
is_dangerous: bool
attribute_case="pascal",

commerce
{ user(userId: "12345") { name orders(first: 1) { nodes { orderId total products { edges {
  quantity node { name seller { name } } } } } } activities { totalCount } }
  users { nodes { userId } } tag(tagId: "bluetooth") { products { nodes { productId } } } }
{"user": {"name": "John Doe", "orders": {"nodes": [{"orderId": "ORD001", "total": "199.99",
  "products": {"edges": [{"quantity": 1, "node": {"name": "Wireless Headphones",
  "seller": {"name": "TechStore Inc"}}}]}}]}, "activities": {"totalCount": 13}},
  "users": {"nodes": [{"userId": "98765"}, {"userId": "67890"}, {"userId": "24680"}, {"userId": "12345"},
  {"userId": "13579"}]}, "tag": {"products": {"nodes": [{"productId": "ABC123"}, {"productId": "GHI789"}]}}}
@node("ORDER#{order_id}", gsi1("{customer}", "ORDER#{order_date}"))
class Order:
@record("{user}#SHARD{shard}", "ACTIVITY#{timestamp}", shards=5)
class UserActivity:
"CHILD#{child_category.category_id}",
@node("TAG#{tag_id}", item=False)
class Tag:
tag: Tag = stored("tagName")
seller: User
# doubt: an enum? Its values are customer, seller
user_type: str
type_attribute="Type",

education
{ student(studentId: "S1") { name yearLevel courses { edges { grade node { name } } } }
  course(courseId: "C1") { students { nodes { name } } } }
{"student": {"name": "John Doe", "yearLevel": 3, "courses": {"edges": [
  {"grade": "A", "node": {"name": "Advanced Mathematics"}}, {"grade": "B+",
  "node": {"name": "Physics 101"}}]}}, "course": {"students": {"nodes": [{"name": "John Doe"},
  {"name": "Jane Smith"}, {"name": "Amina Hassan"}]}}}
@node("STUDENT#{student_id}", "METADATA", type="STUDENT")
class Student:
gsi1 = Index("GSI1", "GSI1-PK", "GSI1-SK")
grade: str | None

social
{ user(userId: "Alice") { name friends { edges { friendshipSince node { name } } }
  posts { nodes { postId } } } bob: user(userId: "Bob") { followsUsers { nodes { userId } } } }
{"user": {"name": "Alice Wonderland", "friends": {"edges": [
  {"friendshipSince": "2023-01-15", "node": {"name": "Bob The Builder"}},
  {"friendshipSince": "2023-02-20", "node": {"name": "Charlie Chaplin"}},
  {"friendshipSince": "2023-05-06", "node": {"name": "Eve Adams"}}]},
  "posts": {"nodes": [{"postId": "12345"}, {"postId": "67890"}]}},
  "bob": {"followsUsers": {"nodes": [{"userId": "Charlie"}]}}}
@node("USER#{user_id}", "PROFILE")
class User:
@edge("{user}", "FRIEND#{friend.user_id}")
class UserFriend:
@edge("{user}", "LIKES#{post}")
class UserLikesPost:
@edge("{user}", "FOLLOWS#{to_user}")
class UserFollowsUser:
@node("POST#{post_id}", item=False)
class Post:
friendship_since: date

talent
{ person(nodeId: "1") { data places { edges { label node { nodeId data } } } skills { nodes { data } } }
  place(nodeId: "3") { people { totalCount } }
  people(data: { beginsWith: "J" }) { nodes { nodeId data } } }
{"person": {"data": "Jorge Souza", "places": {"edges": [{"label": "HOME",
  "node": {"nodeId": "3", "data": "USA|WA|Seattle"}}, {"label": "BIRTH",
  "node": {"nodeId": "7", "data": "BRA|SP|São Paulo"}}]}, "skills": {"nodes": [{"data": "Java"}]}},
  "place": {"people": {"totalCount": 3}}, "people": {"nodes": [{"nodeId": "9", "data": "Jonas Berg"},
  {"nodeId": "1", "data": "Jorge Souza"}, {"nodeId": "5", "data": "Julia Novak"}]}}
"NAME|{node_id}|PERSON",
by_data("NAME|{shard}", shards=2),
type=None,
"PLACE|{place.node_id}|{label}",
by_data("PLACE|{shard}", shards=2),
by_data("DATE|{label}|{shard}", shards=3),
"""
"""Blocks of a model's name, a query, its answer in JSON, and lines that the draft must have."""


async def drafted_from(served: Served, folder: Path) -> Any:
    """The draft of what is in the store, of which nothing is known but that it is there."""
    table = await served.store.send(DescribeTable())
    assert table is not None
    return drafted(table, await sample(served.store, 1000), folder)


@pytest.mark.parametrize("block", blocks(DRAFTED), ids=NAMES)
@pytest.mark.long
async def test_a_draft_serves_the_sample(block: list[str], make_store: MakeStore, tmp_path: Path) -> None:
    name, query, answer, *lines = block
    known = await serve(graph_of(name), make_store, *files_of(name))
    with await drafted_from(known, tmp_path) as (text, graph):
        # The order of an item's attributes, and so of the fields, is the store's.
        assert {*lines} <= {line.strip() for line in text.splitlines()}, text
        assert "cannot be read" not in text
        assert "left out" not in text
        assert await Served(graph, known.store).ask(query) == json.loads(answer)


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
