"""The design's own model: it is declared without a mistake, and is served."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from keygraph_resolvers import build_schema
from tests.conftest import MakeStore, in_one_world
from tests.documents.design_model import Order, OrderStatus, User, UserType, graph
from tests.documents.served import Pattern, Served, lines_of, patterns

JOINED = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)

ANSWERED = """
The paths that the design explains
{ user(userId: "12345") { addressLine userType orders(first: 1) { nodes {
  orderId status total customer { userId }
  items { edges { quantity unitPrice node { productId } } }
  } } }
  product(productId: "ABC123") { orders(first: 2) { nodes { orderId } } } }
{"user": {"addressLine": "John Doe <john@example.com>", "userType": "CUSTOMER",
  "orders": {"nodes": [{"orderId": "ORD001", "status": "SHIPPED", "total": "199.99",
  "customer": {"userId": "12345"}, "items": {"edges": [{"quantity": 1, "unitPrice": "199.99",
  "node": {"productId": "ABC123"}}]}}]}}, "product": {"orders": {"nodes": [{"orderId": "ORD001"},
  {"orderId": "ORD002"}]}}}
BatchGetItem PRODUCT#ABC123 / PRODUCT#ABC123, USER#12345 / USER#12345
Query GSI1: GSI1PK = PRODUCT#ABC123 AND begins_with(GSI1SK, ORDER#)
Query GSI1: GSI1PK = USER#12345 AND begins_with(GSI1SK, ORDER#)
Query: PK = ORDER#ORD001 AND begins_with(SK, PRODUCT#)

The edges and records of the design
{ category(categoryId: "headphones") {
  children { edges { childName node { categoryId } } }
  parents { nodes { categoryId } }
  }
  tag(tagName: "wireless") { products { nodes { productId } } }
  product(productId: "ABC123") { prices(first: 1, direction: DESC) { nodes { __typename timestamp price } } }
  user(userId: "12345") { reviews(first: 1) { nodes { reviewId comment } } }
  users(first: 1) { nodes { userId createdAt } } }
{"category": {"children": {"edges": [{"childName": "Studio headphones",
  "node": {"categoryId": "studio-headphones"}}, {"childName": "Wireless headphones",
  "node": {"categoryId": "wireless-headphones"}}]}, "parents": {"nodes": [{"categoryId": "electronics"}]}},
  "tag": {"products": {"nodes": [{"productId": "ABC123"}, {"productId": "GHI789"}]}},
  "product": {"prices": {"nodes": [{"__typename": "Price", "timestamp": "2024-03-01T00:00:00Z",
  "price": "199.99"}]}}, "user": {"reviews": {"nodes": [{"reviewId": "REV001",
  "comment": "Excellent sound quality!"}]}}, "users": {"nodes": [
  {"userId": "98765", "createdAt": "2024-01-05T09:00:00Z"}]}}
"""


@pytest.fixture
async def design(make_store: MakeStore) -> Served:
    """The design's model over the items of the e-commerce document, which it describes in part."""
    served = Served(graph, await make_store(graph.table))
    await served.load(*lines_of("commerce.jsonl", "commerce.described.jsonl"))
    return served


def test_it_has_no_mistakes() -> None:
    assert graph.check() is graph
    assert list(graph.types) == [
        "User",
        "Order",
        "OrderItem",
        "Product",
        "Category",
        "CategoryChild",
        "Tag",
        "ProductTag",
        "Price",
        "Review",
        "UserReview",
    ]


def test_its_classes_are_keyword_only_dataclasses() -> None:
    def user(name: str) -> User:
        return User(
            user_id="12345",
            name=name,
            email="john@example.com",
            user_type=UserType.CUSTOMER,
            created_at=JOINED,
        )

    assert user("John Doe") == user("John Doe")
    assert user("John Doe") != user("Jane Doe")
    assert user("John Doe").address_line() == "John Doe <john@example.com>"
    with pytest.raises(TypeError):
        Order("ORD001", user("John Doe"), 1, OrderStatus.SHIPPED, JOINED)  # type: ignore[misc,call-arg,arg-type]
    with pytest.raises(TypeError):
        Order(order_id="ORD001")  # type: ignore[call-arg]


def test_its_descriptions_are_the_schemas() -> None:
    sdl = build_schema(graph).as_str()
    assert '"""Somebody who buys or sells."""\ntype User implements Node {' in sdl
    assert '  """Who placed it."""\n  customer: User\n' in sdl
    assert '"""The table holds no item for a tag, only its edges."""\ntype Tag implements Node {' in sdl


@in_one_world("pattern", patterns(ANSWERED))
async def test_the_examples_of_the_design_are_answered(design: Served, pattern: Pattern) -> None:
    await design.answers(pattern)
