"""The e-commerce document: its eight access patterns, its relationships in both directions, its advanced patterns.

Each is one GraphQL query, whose answer has the document's values, and becomes the requests that the document shows.
`ARTICLE` is asked of the document's own items alone; `SHOP` of them among what the document only describes. What is asked
of a node by its key also reads that node (a GetItem): whether it exists is part of the answer.
"""

from __future__ import annotations

from keygraph.tables.repair import Repairs
from tests.conftest import in_one_world
from tests.documents.served import Pattern, Served, patterns
from tests.verified import verified

USER = "GetItem USER#12345 / USER#12345"
PRODUCT = "GetItem PRODUCT#ABC123 / PRODUCT#ABC123"

ARTICLE = """
# Access Patterns and Queries.
1. Get user details
{ user(userId: "12345") { userId name email userType createdAt updatedAt } }
{"user": {"userId": "12345", "name": "John Doe", "email": "john@example.com", "userType": "CUSTOMER",
  "createdAt": "2024-01-15T10:30:00Z", "updatedAt": null}}
GetItem USER#12345 / USER#12345

2. Get user's orders with order details
{ user(userId: "12345") { orders { nodes { orderId total status orderDate } } } }
{"user": {"orders": {"nodes": [{"orderId": "ORD001", "total": "199.99", "status": "SHIPPED",
  "orderDate": "2024-01-20T12:00:00Z"}]}}}
GetItem USER#12345 / USER#12345
Query GSI1: GSI1PK = USER#12345 AND begins_with(GSI1SK, ORDER#)

# The document reads the partition in one query; here each list reads its own part of it, page by page.
3. Get product with reviews
{ product(productId: "ABC123") {
  productId name price description createdAt
  reviews { edges { rating node { reviewId comment } } }
  categories { nodes { categoryId name } }
  tags { nodes { tagName } }
  prices { nodes { timestamp price } } } }
{"product": {"productId": "ABC123", "name": "Wireless Headphones", "price": "199.99",
  "description": "Premium wireless headphones", "createdAt": "2024-01-16T14:20:00Z",
  "reviews": {"edges": [{"rating": 5, "node": {"reviewId": "REV001",
  "comment": "Excellent sound quality!"}}]}, "categories": {"nodes": [
  {"categoryId": "electronics", "name": "Electronics"}]}, "tags": {"nodes": [{"tagName": "wireless"}]},
  "prices": {"nodes": [{"timestamp": "2024-01-20T10:00:00Z", "price": "199.99"}]}}}
BatchGetItem CATEGORY#electronics / CATEGORY#electronics, REVIEW#REV001 / REVIEW#REV001
GetItem PRODUCT#ABC123 / PRODUCT#ABC123
Query: PK = PRODUCT#ABC123 AND begins_with(SK, CATEGORY#)
Query: PK = PRODUCT#ABC123 AND begins_with(SK, PRICE#)
Query: PK = PRODUCT#ABC123 AND begins_with(SK, REVIEW#)
Query: PK = PRODUCT#ABC123 AND begins_with(SK, TAG#)

5. Get products in category
{ category(categoryId: "electronics") {
  name description products { nodes { productId name price description seller { userId name } } } } }
{"category": {"name": "Electronics", "description": "Electronic devices and accessories",
  "products": {"nodes": [{"productId": "ABC123", "name": "Wireless Headphones", "price": "199.99",
  "description": "Premium wireless headphones", "seller": {"userId": "67890", "name": "TechStore Inc"}}]}}}
GetItem CATEGORY#electronics / CATEGORY#electronics
GetItem PRODUCT#ABC123 / PRODUCT#ABC123
GetItem USER#67890 / USER#67890
Query GSI1: GSI1PK = CATEGORY#electronics AND begins_with(GSI1SK, PRODUCT#)

6. Get order with all items
{ order(orderId: "ORD001") {
  orderId total status orderDate customer { userId }
  items { edges { quantity unitPrice totalPrice node { productId } } } } }
{"order": {"orderId": "ORD001", "total": "199.99", "status": "SHIPPED", "orderDate": "2024-01-20T12:00:00Z",
  "customer": {"userId": "12345"}, "items": {"edges": [{"quantity": 1, "unitPrice": "199.99",
  "totalPrice": "199.99", "node": {"productId": "ABC123"}}]}}}
Query: PK = ORDER#ORD001 AND SK BETWEEN ORDER#ORD001 AND PRODUCT#\U0010ffff

7. Get customer's reviews
{ user(userId: "12345") { reviews { edges {
  createdAt node { reviewId rating comment reviewDate createdAt product { productId } } } } } }
{"user": {"reviews": {"edges": [{"createdAt": "2024-01-25T09:30:00Z",
  "node": {"reviewId": "REV001", "rating": 5, "comment": "Excellent sound quality!",
  "reviewDate": "2024-01-25T09:30:00Z", "createdAt": "2024-01-25T09:30:00Z",
  "product": {"productId": "ABC123"}}}]}}}
GetItem REVIEW#REV001 / REVIEW#REV001
GetItem USER#12345 / USER#12345
Query: PK = USER#12345 AND begins_with(SK, REVIEW#)

Time-based queries of users
{ users(createdAt: {from: "2024-01-12T00:00:00Z"}) { nodes { userId createdAt } } }
{"users": {"nodes": [{"userId": "12345", "createdAt": "2024-01-15T10:30:00Z"}]}}

All users in the order of time
{ users { nodes { userId userType name email } } }
{"users": {"nodes": [
  {"userId": "67890", "userType": "SELLER", "name": "TechStore Inc", "email": "contact@techstore.com"},
  {"userId": "12345", "userType": "CUSTOMER", "name": "John Doe", "email": "john@example.com"}]}}
Query GSI1: GSI1PK = USER

# Complete Relationship Structure: "enabling efficient queries in both directions".
Order item links orders to products
{ order(orderId: "ORD001") { items { edges { quantity node { productId name } } } } }
{"order": {"items": {"edges": [{"quantity": 1, "node": {"productId": "ABC123",
  "name": "Wireless Headphones"}}]}}}
GetItem PRODUCT#ABC123 / PRODUCT#ABC123
Query: PK = ORDER#ORD001 AND SK BETWEEN ORDER#ORD001 AND PRODUCT#\U0010ffff

Order item links products to orders
{ product(productId: "ABC123") { orders { edges { quantity unitPrice totalPrice node { orderId } } } } }
{"product": {"orders": {"edges": [{"quantity": 1, "unitPrice": "199.99", "totalPrice": "199.99",
  "node": {"orderId": "ORD001"}}]}}}
GetItem PRODUCT#ABC123 / PRODUCT#ABC123
Query GSI1: GSI1PK = PRODUCT#ABC123 AND begins_with(GSI1SK, ORDER#)

Product category links products to categories
{ product(productId: "ABC123") { categories { nodes { categoryId } } } }
{"product": {"categories": {"nodes": [{"categoryId": "electronics"}]}}}
GetItem PRODUCT#ABC123 / PRODUCT#ABC123
Query: PK = PRODUCT#ABC123 AND begins_with(SK, CATEGORY#)

User review links users to their reviews and back
{ user(userId: "12345") { reviews { nodes { reviewId customer { userId name } } } } }
{"user": {"reviews": {"nodes": [{"reviewId": "REV001", "customer": {"userId": "12345",
  "name": "John Doe"}}]}}}
GetItem REVIEW#REV001 / REVIEW#REV001
GetItem USER#12345 / USER#12345
Query: PK = USER#12345 AND begins_with(SK, REVIEW#)

Product review links products to their reviews and back
{ product(productId: "ABC123") { reviews { edges {
  rating node { product { productId name } customer { name } } } } } }
{"product": {"reviews": {"edges": [{"rating": 5, "node": {"product": {"productId": "ABC123",
  "name": "Wireless Headphones"}, "customer": {"name": "John Doe"}}}]}}}
GetItem PRODUCT#ABC123 / PRODUCT#ABC123
GetItem REVIEW#REV001 / REVIEW#REV001
GetItem USER#12345 / USER#12345
Query: PK = PRODUCT#ABC123 AND begins_with(SK, REVIEW#)

# Many-to-Many Relationships: the junction entity between products and tags.
A product's tags
{ product(productId: "ABC123") { tags { edges { createdAt node { tagName } } } } }
{"product": {"tags": {"edges": [{"createdAt": "2024-01-16T14:20:00Z", "node": {"tagName": "wireless"}}]}}}
GetItem PRODUCT#ABC123 / PRODUCT#ABC123
Query: PK = PRODUCT#ABC123 AND begins_with(SK, TAG#)

A tag's products
{ tag(tagName: "wireless") { tagName products { nodes { productId name } } } }
{"tag": {"tagName": "wireless", "products": {"nodes": [{"productId": "ABC123",
  "name": "Wireless Headphones"}]}}}
GetItem PRODUCT#ABC123 / PRODUCT#ABC123
Query GSI1: GSI1PK = TAG#wireless AND begins_with(GSI1SK, PRODUCT#)

# Hierarchical Categories: parent-child relationships.
Subcategories
{ category(categoryId: "electronics") { children { edges { childName createdAt node { categoryId } } } } }
{"category": {"children": {"edges": [{"childName": "Headphones", "createdAt": "2024-01-01T00:00:00Z",
  "node": {"categoryId": "headphones"}}]}}}
GetItem CATEGORY#electronics / CATEGORY#electronics
Query: PK = CATEGORY#electronics AND begins_with(SK, CHILD#)
"""

SHOP = """
# Access Patterns and Queries.
8. Get customer's orders (alternative pattern)
{ user(userId: "12345") { customerOrders { edges { total node { orderId } } } } }
{"user": {"customerOrders": {"edges": [{"total": "199.99", "node": {"orderId": "ORD001"}},
  {"total": "204.97", "node": {"orderId": "ORD003"}}, {"total": "149.94", "node": {"orderId": "ORD006"}}]}}}
GetItem USER#12345 / USER#12345
Query: PK = USER#12345 AND begins_with(SK, ORDER#)

Time-based queries of products
{ products(
  direction: DESC, createdAt: {from: "2024-01-16T00:00:00Z", to: "2024-01-18T23:59:59Z"}
  ) { nodes { productId createdAt } } }
{"products": {"nodes": [{"productId": "DEF456", "createdAt": "2024-01-18T09:00:00Z"},
  {"productId": "ABC123", "createdAt": "2024-01-16T14:20:00Z"}]}}
Query GSI1: GSI1PK = PRODUCT AND GSI1SK BETWEEN 2024-01-16 AND 2024-01-18T23:59:59Z, backward

# Complete Relationship Structure.
Product category links categories to products
{ category(categoryId: "electronics") { products { totalCount nodes { productId } } } }
{"category": {"products": {"totalCount": 3, "nodes": [{"productId": "ABC123"}, {"productId": "DEF456"},
  {"productId": "GHI789"}]}}}

Customer order links customers to their orders and back
{ user(userId: "24680") { customerOrders { nodes { orderId customer { userId } } } } }
{"user": {"customerOrders": {"nodes": [{"orderId": "ORD002", "customer": {"userId": "24680"}},
  {"orderId": "ORD005", "customer": {"userId": "24680"}}]}}}
BatchGetItem ORDER#ORD002 / ORDER#ORD002, ORDER#ORD005 / ORDER#ORD005
GetItem USER#24680 / USER#24680
Query: PK = USER#24680 AND begins_with(SK, ORDER#)

# Hierarchical Categories.
Parent categories
{ category(categoryId: "headphones") { name parents { nodes { categoryId name } } } }
{"category": {"name": "Headphones", "parents": {"nodes": [{"categoryId": "electronics",
  "name": "Electronics"}]}}}
GetItem CATEGORY#electronics / CATEGORY#electronics
GetItem CATEGORY#headphones / CATEGORY#headphones
Query GSI1: GSI1PK = CATEGORY#headphones AND begins_with(GSI1SK, PARENT#)

Nested categories
{ category(categoryId: "electronics") { children { edges { childName node {
  children { edges { childName node { parents { nodes { categoryId } } } } } } } } } }
{"category": {"children": {"edges": [{"childName": "Accessories",
  "node": {"children": {"edges": [{"childName": "Cables", "node": {"parents": {"nodes": [
  {"categoryId": "accessories"}]}}}]}}}, {"childName": "Headphones",
  "node": {"children": {"edges": [{"childName": "Studio headphones",
  "node": {"parents": {"nodes": [{"categoryId": "headphones"}]}}},
  {"childName": "Wireless headphones", "node": {"parents": {"nodes": [{"categoryId": "headphones"}]}}}]}}},
  {"childName": "Speakers", "node": {"children": {"edges": []}}}]}}}
GetItem CATEGORY#electronics / CATEGORY#electronics
Query GSI1: GSI1PK = CATEGORY#cables AND begins_with(GSI1SK, PARENT#)
Query GSI1: GSI1PK = CATEGORY#studio-headphones AND begins_with(GSI1SK, PARENT#)
Query GSI1: GSI1PK = CATEGORY#wireless-headphones AND begins_with(GSI1SK, PARENT#)
Query: PK = CATEGORY#accessories AND begins_with(SK, CHILD#)
Query: PK = CATEGORY#electronics AND begins_with(SK, CHILD#)
Query: PK = CATEGORY#headphones AND begins_with(SK, CHILD#)
Query: PK = CATEGORY#speakers AND begins_with(SK, CHILD#)

# Time-Series Data: "use the sort key to store time-based data".
A product's prices in a range of time
{ product(productId: "ABC123") { prices(
  timestamp: {from: "2024-01-20T10:00:00Z", to: "2024-02-10T00:00:00Z"}
  ) { nodes { timestamp price product { productId } } } } }
{"product": {"prices": {"nodes": [{"timestamp": "2024-01-20T10:00:00Z", "price": "199.99",
  "product": {"productId": "ABC123"}}, {"timestamp": "2024-02-10T00:00:00Z", "price": "179.99",
  "product": {"productId": "ABC123"}}]}}}
GetItem PRODUCT#ABC123 / PRODUCT#ABC123
Query: PK = PRODUCT#ABC123 AND SK BETWEEN PRICE#2024-01-20T10:00 AND PRICE#2024-02-10T00:00:00Z

# Implement write sharding for high-traffic entities: "when reading, you aggregate data from all shards".
A user's activities over five shards, newest first
{ user(userId: "12345") { activities(first: 6, direction: DESC) {
  totalCount nodes { timestamp action createdAt product { productId } } } } }
{"user": {"activities": {"totalCount": 13, "nodes": [{"timestamp": 1711657800000, "action": "review",
  "createdAt": "2024-03-28T20:30:00.000Z", "product": {"productId": "DEF456"}},
  {"timestamp": 1710922500001, "action": "purchase", "createdAt": "2024-03-20T08:15:00.001Z",
  "product": {"productId": "GHI789"}}, {"timestamp": 1710922500000, "action": "purchase",
  "createdAt": "2024-03-20T08:15:00.000Z", "product": {"productId": "DEF456"}},
  {"timestamp": 1708848600000, "action": "review", "createdAt": "2024-02-25T08:10:00.000Z",
  "product": {"productId": "JKL012"}}, {"timestamp": 1707936300001, "action": "purchase",
  "createdAt": "2024-02-14T18:45:00.001Z", "product": {"productId": "JKL012"}},
  {"timestamp": 1707936300000, "action": "purchase", "createdAt": "2024-02-14T18:45:00.000Z",
  "product": {"productId": "ABC123"}}]}}}
Count: PK = USER#12345#SHARD0 AND begins_with(SK, ACTIVITY#), of these Type = UserActivity
Count: PK = USER#12345#SHARD1 AND begins_with(SK, ACTIVITY#), of these Type = UserActivity
Count: PK = USER#12345#SHARD2 AND begins_with(SK, ACTIVITY#), of these Type = UserActivity
Count: PK = USER#12345#SHARD3 AND begins_with(SK, ACTIVITY#), of these Type = UserActivity
Count: PK = USER#12345#SHARD4 AND begins_with(SK, ACTIVITY#), of these Type = UserActivity
GetItem USER#12345 / USER#12345
Query: PK = USER#12345#SHARD0 AND begins_with(SK, ACTIVITY#), backward
Query: PK = USER#12345#SHARD1 AND begins_with(SK, ACTIVITY#), backward
Query: PK = USER#12345#SHARD2 AND begins_with(SK, ACTIVITY#), backward
Query: PK = USER#12345#SHARD3 AND begins_with(SK, ACTIVITY#), backward
Query: PK = USER#12345#SHARD4 AND begins_with(SK, ACTIVITY#), backward

What is bought together
{ product(productId: "ABC123") { boughtTogether { edges { score paths node { productId } } } } }
{"product": {"boughtTogether": {"edges": [{"score": 3.0, "paths": 2, "node": {"productId": "JKL012"}}]}}}

All categories below one
{ category(categoryId: "electronics") { descendants { edges { distance node { categoryId } } } } }
{"category": {"descendants": {"edges": [{"distance": 1, "node": {"categoryId": "accessories"}},
  {"distance": 1, "node": {"categoryId": "headphones"}}, {"distance": 1, "node": {"categoryId": "speakers"}},
  {"distance": 2, "node": {"categoryId": "cables"}}, {"distance": 2,
  "node": {"categoryId": "studio-headphones"}}, {"distance": 2,
  "node": {"categoryId": "wireless-headphones"}}]}}}
"""


@in_one_world("pattern", patterns(ARTICLE))
async def test_each_pattern_is_answered_from_the_article(article: Served, pattern: Pattern) -> None:
    await article.answers(pattern)


@in_one_world("pattern", patterns(SHOP))
async def test_each_pattern_is_answered_from_the_shop(shop: Served, pattern: Pattern) -> None:
    await shop.answers(pattern)


async def test_4_get_recent_reviews_for_a_product(shop: Served) -> None:
    assert await shop.ask("""{ product(productId: "ABC123") { reviews(first: 10, direction: DESC) {
      edges { rating createdAt node { reviewId } }
    } } }""") == {
        "product": {
            "reviews": {
                "edges": [
                    {"rating": 3, "createdAt": "2024-03-12T19:45:00Z", "node": {"reviewId": "REV004"}},
                    {"rating": 4, "createdAt": "2024-02-20T17:00:00Z", "node": {"reviewId": "REV002"}},
                    {"rating": 5, "createdAt": "2024-01-25T09:30:00Z", "node": {"reviewId": "REV001"}},
                ]
            }
        }
    }
    query = "Query: PK = PRODUCT#ABC123 AND begins_with(SK, REVIEW#), backward"
    assert shop.sent == [PRODUCT, query]
    assert [wire.body["Limit"] for wire in shop.wires if wire.operation == "Query"] == [10]


async def test_the_most_reviewed_products(shop: Served) -> None:
    """What the documents' items lack, a repair counts; from then on, mutations of reviews keep it."""
    query = "{ mostReviewedProducts(first: 2, direction: DESC) { nodes { productId reviewCount averageRating } } }"
    assert await shop.ask(query) == {"mostReviewedProducts": {"nodes": []}}
    repairs = Repairs(shop.graph, shop.store, ["counts"], lambda kind, changes: None)
    await verified(shop.graph, shop.store, repairs=repairs)
    assert await shop.ask("""mutation {
      createReview(input: {
        reviewId: "REV900", customerId: "12345", productId: "ABC123", rating: 1, comment: "Broke.",
        reviewDate: "2024-05-01T00:00:00Z", createdAt: "2024-05-01T00:00:00Z"
      }) { review { reviewId } }
      putProductReview(input: {
        productId: "ABC123", reviewId: "REV900", createdAt: "2024-05-01T00:00:00Z"
      }) { productReview { product { reviewCount averageRating } } }
    }""") == {
        "createReview": {"review": {"reviewId": "REV900"}},
        "putProductReview": {"productReview": {"product": {"reviewCount": 4, "averageRating": 3.25}}},
    }
    shop.wires.clear()
    assert await shop.ask(query) == {
        "mostReviewedProducts": {
            "nodes": [
                {"productId": "ABC123", "reviewCount": 4, "averageRating": 3.25},
                {"productId": "JKL012", "reviewCount": 1, "averageRating": 5.0},
            ]
        }
    }
    assert shop.sent == ["Query GSI2: GSI2PK = PRODUCT, backward"]
    # The rating on the edge follows the review's, and the average the edge's.
    await shop.ask(
        """mutation { updateReview(input: { reviewId: "REV900", rating: 5 }) { clientMutationId } }"""
    )
    assert await shop.ask("""{ product(productId: "ABC123") { averageRating
      reviews(last: 1) { edges { rating node { rating } } } } }""") == {
        "product": {
            "averageRating": 4.25,
            "reviews": {"edges": [{"rating": 5, "node": {"rating": 5}}]},
        }
    }


async def test_an_activity_as_the_document_writes_it(article: Served) -> None:
    for shard, milliseconds in ((4, 1705752000000), (0, 1705752000001)):
        await article.load(
            f'{{"PK": "USER#12345#SHARD{shard}", "SK": "ACTIVITY#{milliseconds}", "Type": "UserActivity",'
            f' "userId": "12345", "action": "purchase", "productId": "ABC123", "timestamp": {milliseconds},'
            ' "CreatedAt": "2024-01-20T12:00:00.000Z"}'
        )
    answer = await article.ask("""{ user(userId: "12345") { activities { nodes {
      timestamp action user { userId } product { name }
    } } } }""")
    purchase = {
        "action": "purchase",
        "user": {"userId": "12345"},
        "product": {"name": "Wireless Headphones"},
    }
    assert answer["user"]["activities"]["nodes"] == [
        {"timestamp": 1705752000000, **purchase},
        {"timestamp": 1705752000001, **purchase},
    ]
    queries = [f"Query: PK = USER#12345#SHARD{shard} AND begins_with(SK, ACTIVITY#)" for shard in range(5)]
    assert article.sent == sorted([PRODUCT, USER, *queries])
