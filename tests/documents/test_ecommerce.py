"""The e-commerce document: its eight access patterns, its relationships in both directions, its advanced patterns.

Each is one GraphQL query, whose answer has the document's values, and becomes the requests that the document shows.
`article` has the document's own items alone; `shop` has them among what the document only describes. What is asked
of a node by its key also reads that node (a GetItem): whether it exists is part of the answer.
"""

from __future__ import annotations

from keygraph.tables.repair import Repairs
from keygraph.tables.verify import Verification
from tests.documents.served import Served

USER = "GetItem USER#12345 / USER#12345"
PRODUCT = "GetItem PRODUCT#ABC123 / PRODUCT#ABC123"
WHOLE_ORDER = "Query: PK = ORDER#ORD001 AND SK BETWEEN ORDER#ORD001 AND PRODUCT#\U0010ffff"


class TestAccessPatterns:
    """Access Patterns and Queries."""

    async def test_1_get_user_details(self, article: Served) -> None:
        assert await article.ask(
            '{ user(userId: "12345") { userId name email userType createdAt updatedAt } }'
        ) == {
            "user": {
                "userId": "12345",
                "name": "John Doe",
                "email": "john@example.com",
                "userType": "CUSTOMER",
                "createdAt": "2024-01-15T10:30:00Z",
                "updatedAt": None,
            }
        }
        assert article.sent == [USER]

    async def test_2_get_users_orders_with_order_details(self, article: Served) -> None:
        assert await article.ask(
            '{ user(userId: "12345") { orders { nodes { orderId total status orderDate } } } }'
        ) == {
            "user": {
                "orders": {
                    "nodes": [
                        {
                            "orderId": "ORD001",
                            "total": "199.99",
                            "status": "SHIPPED",
                            "orderDate": "2024-01-20T12:00:00Z",
                        }
                    ]
                }
            }
        }
        assert article.sent == [USER, "Query GSI1: GSI1PK = USER#12345 AND begins_with(GSI1SK, ORDER#)"]

    async def test_3_get_product_with_reviews(self, article: Served) -> None:
        """The document reads the partition in one query; here each list reads its own part of it, page by page."""
        assert await article.ask("""{ product(productId: "ABC123") {
          productId name price description createdAt
          reviews { edges { rating node { reviewId comment } } }
          categories { nodes { categoryId name } }
          tags { nodes { tagName } }
          prices { nodes { timestamp price } }
        } }""") == {
            "product": {
                "productId": "ABC123",
                "name": "Wireless Headphones",
                "price": "199.99",
                "description": "Premium wireless headphones",
                "createdAt": "2024-01-16T14:20:00Z",
                "reviews": {
                    "edges": [
                        {
                            "rating": 5,
                            "node": {"reviewId": "REV001", "comment": "Excellent sound quality!"},
                        }
                    ]
                },
                "categories": {"nodes": [{"categoryId": "electronics", "name": "Electronics"}]},
                "tags": {"nodes": [{"tagName": "wireless"}]},
                "prices": {"nodes": [{"timestamp": "2024-01-20T10:00:00Z", "price": "199.99"}]},
            }
        }
        assert article.sent == [
            "BatchGetItem CATEGORY#electronics / CATEGORY#electronics, REVIEW#REV001 / REVIEW#REV001",
            PRODUCT,
            "Query: PK = PRODUCT#ABC123 AND begins_with(SK, CATEGORY#)",
            "Query: PK = PRODUCT#ABC123 AND begins_with(SK, PRICE#)",
            "Query: PK = PRODUCT#ABC123 AND begins_with(SK, REVIEW#)",
            "Query: PK = PRODUCT#ABC123 AND begins_with(SK, TAG#)",
        ]

    async def test_4_get_recent_reviews_for_a_product(self, shop: Served) -> None:
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

    async def test_5_get_products_in_category(self, article: Served) -> None:
        assert await article.ask("""{ category(categoryId: "electronics") {
          name description products { nodes { productId name price description seller { userId name } } }
        } }""") == {
            "category": {
                "name": "Electronics",
                "description": "Electronic devices and accessories",
                "products": {
                    "nodes": [
                        {
                            "productId": "ABC123",
                            "name": "Wireless Headphones",
                            "price": "199.99",
                            "description": "Premium wireless headphones",
                            "seller": {"userId": "67890", "name": "TechStore Inc"},
                        }
                    ]
                },
            }
        }
        assert article.sent == [
            "GetItem CATEGORY#electronics / CATEGORY#electronics",
            PRODUCT,
            "GetItem USER#67890 / USER#67890",
            "Query GSI1: GSI1PK = CATEGORY#electronics AND begins_with(GSI1SK, PRODUCT#)",
        ]

    async def test_6_get_order_with_all_items(self, article: Served) -> None:
        assert await article.ask("""{ order(orderId: "ORD001") {
          orderId total status orderDate customer { userId }
          items { edges { quantity unitPrice totalPrice node { productId } } }
        } }""") == {
            "order": {
                "orderId": "ORD001",
                "total": "199.99",
                "status": "SHIPPED",
                "orderDate": "2024-01-20T12:00:00Z",
                "customer": {"userId": "12345"},
                "items": {
                    "edges": [
                        {
                            "quantity": 1,
                            "unitPrice": "199.99",
                            "totalPrice": "199.99",
                            "node": {"productId": "ABC123"},
                        }
                    ]
                },
            }
        }
        assert article.sent == [WHOLE_ORDER]

    async def test_7_get_customers_reviews(self, article: Served) -> None:
        assert await article.ask("""{ user(userId: "12345") { reviews { edges {
          createdAt node { reviewId rating comment reviewDate createdAt product { productId } }
        } } } }""") == {
            "user": {
                "reviews": {
                    "edges": [
                        {
                            "createdAt": "2024-01-25T09:30:00Z",
                            "node": {
                                "reviewId": "REV001",
                                "rating": 5,
                                "comment": "Excellent sound quality!",
                                "reviewDate": "2024-01-25T09:30:00Z",
                                "createdAt": "2024-01-25T09:30:00Z",
                                "product": {"productId": "ABC123"},
                            },
                        }
                    ]
                }
            }
        }
        assert article.sent == [
            "GetItem REVIEW#REV001 / REVIEW#REV001",
            USER,
            "Query: PK = USER#12345 AND begins_with(SK, REVIEW#)",
        ]

    async def test_8_get_customers_orders_alternative_pattern(self, shop: Served) -> None:
        assert await shop.ask(
            '{ user(userId: "12345") { customerOrders { edges { total node { orderId } } } } }'
        ) == {
            "user": {
                "customerOrders": {
                    "edges": [
                        {"total": "199.99", "node": {"orderId": "ORD001"}},
                        {"total": "204.97", "node": {"orderId": "ORD003"}},
                        {"total": "149.94", "node": {"orderId": "ORD006"}},
                    ]
                }
            }
        }
        assert shop.sent == [USER, "Query: PK = USER#12345 AND begins_with(SK, ORDER#)"]

    async def test_time_based_queries_of_users(self, article: Served) -> None:
        assert await article.ask("""{ users(createdAt: {from: "2024-01-12T00:00:00Z"}) {
          nodes { userId createdAt }
        } }""") == {"users": {"nodes": [{"userId": "12345", "createdAt": "2024-01-15T10:30:00Z"}]}}
        assert await article.ask("{ users { nodes { userId userType name email } } }") == {
            "users": {
                "nodes": [
                    {
                        "userId": "67890",
                        "userType": "SELLER",
                        "name": "TechStore Inc",
                        "email": "contact@techstore.com",
                    },
                    {
                        "userId": "12345",
                        "userType": "CUSTOMER",
                        "name": "John Doe",
                        "email": "john@example.com",
                    },
                ]
            }
        }
        assert article.sent == ["Query GSI1: GSI1PK = USER"]

    async def test_time_based_queries_of_products(self, shop: Served) -> None:
        assert await shop.ask("""{ products(
          direction: DESC, createdAt: {from: "2024-01-16T00:00:00Z", to: "2024-01-18T23:59:59Z"}
        ) { nodes { productId createdAt } } }""") == {
            "products": {
                "nodes": [
                    {"productId": "DEF456", "createdAt": "2024-01-18T09:00:00Z"},
                    {"productId": "ABC123", "createdAt": "2024-01-16T14:20:00Z"},
                ]
            }
        }
        assert shop.sent == [
            "Query GSI1: GSI1PK = PRODUCT AND GSI1SK BETWEEN 2024-01-16 AND 2024-01-18T23:59:59Z, backward"
        ]

    async def test_the_most_reviewed_products(self, shop: Served) -> None:
        """What the documents' items lack, a repair counts; from then on, mutations of reviews keep it."""
        query = "{ mostReviewedProducts(first: 2, direction: DESC) { nodes { productId reviewCount averageRating } } }"
        assert await shop.ask(query) == {"mostReviewedProducts": {"nodes": []}}
        repairs = Repairs(shop.graph, shop.store, ["counts"], lambda kind, changes: None)
        await Verification(shop.graph, shop.store, repairs=repairs).run(lambda count: None)
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
