"""The e-commerce document: its relationships in both directions, and its advanced patterns.

As in `test_ecommerce`, each is one GraphQL query with the document's values and requests.
"""

from __future__ import annotations

from tests.documents.served import Served

USER = "GetItem USER#12345 / USER#12345"
PRODUCT = "GetItem PRODUCT#ABC123 / PRODUCT#ABC123"


class TestRelationships:
    """Complete Relationship Structure: "enabling efficient queries in both directions"."""

    async def test_order_item_links_orders_to_products(self, article: Served) -> None:
        assert await article.ask("""{ order(orderId: "ORD001") { items { edges {
          quantity node { productId name }
        } } } }""") == {
            "order": {
                "items": {
                    "edges": [{"quantity": 1, "node": {"productId": "ABC123", "name": "Wireless Headphones"}}]
                }
            }
        }
        assert article.sent == [
            PRODUCT,
            "Query: PK = ORDER#ORD001 AND SK BETWEEN ORDER#ORD001 AND PRODUCT#\U0010ffff",
        ]

    async def test_order_item_links_products_to_orders(self, article: Served) -> None:
        assert await article.ask("""{ product(productId: "ABC123") { orders { edges {
          quantity unitPrice totalPrice node { orderId }
        } } } }""") == {
            "product": {
                "orders": {
                    "edges": [
                        {
                            "quantity": 1,
                            "unitPrice": "199.99",
                            "totalPrice": "199.99",
                            "node": {"orderId": "ORD001"},
                        }
                    ]
                }
            }
        }
        assert article.sent == [
            PRODUCT,
            "Query GSI1: GSI1PK = PRODUCT#ABC123 AND begins_with(GSI1SK, ORDER#)",
        ]

    async def test_product_category_links_products_to_categories(self, article: Served) -> None:
        assert await article.ask(
            '{ product(productId: "ABC123") { categories { nodes { categoryId } } } }'
        ) == {"product": {"categories": {"nodes": [{"categoryId": "electronics"}]}}}
        assert article.sent == [PRODUCT, "Query: PK = PRODUCT#ABC123 AND begins_with(SK, CATEGORY#)"]

    async def test_product_category_links_categories_to_products(self, shop: Served) -> None:
        assert await shop.ask(
            '{ category(categoryId: "electronics") { products { totalCount nodes { productId } } } }'
        ) == {
            "category": {
                "products": {
                    "totalCount": 3,
                    "nodes": [{"productId": "ABC123"}, {"productId": "DEF456"}, {"productId": "GHI789"}],
                }
            }
        }

    async def test_user_review_links_users_to_their_reviews_and_back(self, article: Served) -> None:
        assert await article.ask("""{ user(userId: "12345") { reviews { nodes {
          reviewId customer { userId name }
        } } } }""") == {
            "user": {
                "reviews": {
                    "nodes": [{"reviewId": "REV001", "customer": {"userId": "12345", "name": "John Doe"}}]
                }
            }
        }
        assert article.sent == [
            "GetItem REVIEW#REV001 / REVIEW#REV001",
            USER,
            "Query: PK = USER#12345 AND begins_with(SK, REVIEW#)",
        ]

    async def test_product_review_links_products_to_their_reviews_and_back(self, article: Served) -> None:
        assert await article.ask("""{ product(productId: "ABC123") { reviews { edges {
          rating node { product { productId name } customer { name } }
        } } } }""") == {
            "product": {
                "reviews": {
                    "edges": [
                        {
                            "rating": 5,
                            "node": {
                                "product": {"productId": "ABC123", "name": "Wireless Headphones"},
                                "customer": {"name": "John Doe"},
                            },
                        }
                    ]
                }
            }
        }
        assert article.sent == [
            PRODUCT,
            "GetItem REVIEW#REV001 / REVIEW#REV001",
            USER,
            "Query: PK = PRODUCT#ABC123 AND begins_with(SK, REVIEW#)",
        ]

    async def test_customer_order_links_customers_to_their_orders_and_back(self, shop: Served) -> None:
        assert await shop.ask("""{
          user(userId: "24680") { customerOrders { nodes { orderId customer { userId } } } }
        }""") == {
            "user": {
                "customerOrders": {
                    "nodes": [
                        {"orderId": "ORD002", "customer": {"userId": "24680"}},
                        {"orderId": "ORD005", "customer": {"userId": "24680"}},
                    ]
                }
            }
        }
        assert shop.sent == [
            "BatchGetItem ORDER#ORD002 / ORDER#ORD002, ORDER#ORD005 / ORDER#ORD005",
            "GetItem USER#24680 / USER#24680",
            "Query: PK = USER#24680 AND begins_with(SK, ORDER#)",
        ]


class TestManyToManyRelationships:
    """Many-to-Many Relationships: the junction entity between products and tags."""

    async def test_a_products_tags(self, article: Served) -> None:
        assert await article.ask(
            '{ product(productId: "ABC123") { tags { edges { createdAt node { tagName } } } } }'
        ) == {
            "product": {
                "tags": {"edges": [{"createdAt": "2024-01-16T14:20:00Z", "node": {"tagName": "wireless"}}]}
            }
        }
        assert article.sent == [PRODUCT, "Query: PK = PRODUCT#ABC123 AND begins_with(SK, TAG#)"]

    async def test_a_tags_products(self, article: Served) -> None:
        assert await article.ask(
            '{ tag(tagName: "wireless") { tagName products { nodes { productId name } } } }'
        ) == {
            "tag": {
                "tagName": "wireless",
                "products": {"nodes": [{"productId": "ABC123", "name": "Wireless Headphones"}]},
            }
        }
        assert article.sent == [
            PRODUCT,
            "Query GSI1: GSI1PK = TAG#wireless AND begins_with(GSI1SK, PRODUCT#)",
        ]


class TestHierarchicalCategories:
    """Hierarchical Categories: parent-child relationships."""

    async def test_subcategories(self, article: Served) -> None:
        assert await article.ask("""{ category(categoryId: "electronics") { children { edges {
          childName createdAt node { categoryId }
        } } } }""") == {
            "category": {
                "children": {
                    "edges": [
                        {
                            "childName": "Headphones",
                            "createdAt": "2024-01-01T00:00:00Z",
                            "node": {"categoryId": "headphones"},
                        }
                    ]
                }
            }
        }
        assert article.sent == [
            "GetItem CATEGORY#electronics / CATEGORY#electronics",
            "Query: PK = CATEGORY#electronics AND begins_with(SK, CHILD#)",
        ]

    async def test_parent_categories(self, shop: Served) -> None:
        assert await shop.ask(
            '{ category(categoryId: "headphones") { name parents { nodes { categoryId name } } } }'
        ) == {
            "category": {
                "name": "Headphones",
                "parents": {"nodes": [{"categoryId": "electronics", "name": "Electronics"}]},
            }
        }
        assert shop.sent == [
            "GetItem CATEGORY#electronics / CATEGORY#electronics",
            "GetItem CATEGORY#headphones / CATEGORY#headphones",
            "Query GSI1: GSI1PK = CATEGORY#headphones AND begins_with(GSI1SK, PARENT#)",
        ]

    async def test_nested_categories(self, shop: Served) -> None:
        assert await shop.ask("""{ category(categoryId: "electronics") { children { edges { childName node {
          children { edges { childName node { parents { nodes { categoryId } } } } }
        } } } } }""") == {
            "category": {
                "children": {
                    "edges": [
                        {
                            "childName": "Accessories",
                            "node": {
                                "children": {
                                    "edges": [
                                        {
                                            "childName": "Cables",
                                            "node": {"parents": {"nodes": [{"categoryId": "accessories"}]}},
                                        }
                                    ]
                                }
                            },
                        },
                        {
                            "childName": "Headphones",
                            "node": {
                                "children": {
                                    "edges": [
                                        {
                                            "childName": "Studio headphones",
                                            "node": {"parents": {"nodes": [{"categoryId": "headphones"}]}},
                                        },
                                        {
                                            "childName": "Wireless headphones",
                                            "node": {"parents": {"nodes": [{"categoryId": "headphones"}]}},
                                        },
                                    ]
                                }
                            },
                        },
                        {"childName": "Speakers", "node": {"children": {"edges": []}}},
                    ]
                }
            }
        }
        assert shop.sent == [
            "GetItem CATEGORY#electronics / CATEGORY#electronics",
            "Query GSI1: GSI1PK = CATEGORY#cables AND begins_with(GSI1SK, PARENT#)",
            "Query GSI1: GSI1PK = CATEGORY#studio-headphones AND begins_with(GSI1SK, PARENT#)",
            "Query GSI1: GSI1PK = CATEGORY#wireless-headphones AND begins_with(GSI1SK, PARENT#)",
            "Query: PK = CATEGORY#accessories AND begins_with(SK, CHILD#)",
            "Query: PK = CATEGORY#electronics AND begins_with(SK, CHILD#)",
            "Query: PK = CATEGORY#headphones AND begins_with(SK, CHILD#)",
            "Query: PK = CATEGORY#speakers AND begins_with(SK, CHILD#)",
        ]


class TestTimeSeriesData:
    """Time-Series Data: "use the sort key to store time-based data"."""

    async def test_a_products_prices_in_a_range_of_time(self, shop: Served) -> None:
        assert await shop.ask("""{ product(productId: "ABC123") { prices(
          timestamp: {from: "2024-01-20T10:00:00Z", to: "2024-02-10T00:00:00Z"}
        ) { nodes { timestamp price product { productId } } } } }""") == {
            "product": {
                "prices": {
                    "nodes": [
                        {
                            "timestamp": "2024-01-20T10:00:00Z",
                            "price": "199.99",
                            "product": {"productId": "ABC123"},
                        },
                        {
                            "timestamp": "2024-02-10T00:00:00Z",
                            "price": "179.99",
                            "product": {"productId": "ABC123"},
                        },
                    ]
                }
            }
        }
        assert shop.sent == [
            PRODUCT,
            "Query: PK = PRODUCT#ABC123 AND SK BETWEEN PRICE#2024-01-20T10:00 AND PRICE#2024-02-10T00:00:00Z",
        ]


class TestWriteSharding:
    """Implement write sharding for high-traffic entities: "when reading, you aggregate data from all shards"."""

    async def test_a_users_activities_over_five_shards_newest_first(self, shop: Served) -> None:
        answer = await shop.ask("""{ user(userId: "12345") { activities(first: 6, direction: DESC) {
          totalCount nodes { timestamp action createdAt product { productId } }
        } } }""")
        did = [
            (1711657800000, "review", "DEF456", "2024-03-28T20:30:00.000Z"),
            (1710922500001, "purchase", "GHI789", "2024-03-20T08:15:00.001Z"),
            (1710922500000, "purchase", "DEF456", "2024-03-20T08:15:00.000Z"),
            (1708848600000, "review", "JKL012", "2024-02-25T08:10:00.000Z"),
            (1707936300001, "purchase", "JKL012", "2024-02-14T18:45:00.001Z"),
            (1707936300000, "purchase", "ABC123", "2024-02-14T18:45:00.000Z"),
        ]
        assert answer["user"]["activities"] == {
            "totalCount": 13,
            "nodes": [
                {"timestamp": timestamp, "action": action, "createdAt": at, "product": {"productId": product}}
                for timestamp, action, product, at in did
            ],
        }
        shards = [f"PK = USER#12345#SHARD{shard} AND begins_with(SK, ACTIVITY#)" for shard in range(5)]
        counts = [f"Count: {shard}, of these Type = UserActivity" for shard in shards]
        assert shop.sent == sorted([USER, *counts, *(f"Query: {shard}, backward" for shard in shards)])

    async def test_an_activity_as_the_document_writes_it(self, article: Served) -> None:
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
        queries = [
            f"Query: PK = USER#12345#SHARD{shard} AND begins_with(SK, ACTIVITY#)" for shard in range(5)
        ]
        assert article.sent == sorted([PRODUCT, USER, *queries])
