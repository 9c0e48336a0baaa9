"""The items of the shop: the article's, those beside them, and the generated ones."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import keygraph_examples
from keygraph_examples.commerce_sample import sample

Item = dict[str, Any]

FOLDER = Path(keygraph_examples.__file__).parent


def items_of(file: str) -> list[Item]:
    with (FOLDER / file).open(encoding="utf-8") as lines:
        return [json.loads(line, parse_int=Decimal, parse_float=Decimal) for line in lines]


def digest(items: Iterable[Item]) -> str:
    """A hash of the items with their order, their attributes' order and their numbers' digits."""
    lines = (json.dumps(item, default=str) for item in items)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


SHOPS = {
    "article": [*items_of("commerce.jsonl"), *items_of("commerce.described.jsonl")],
    "two users": list(sample(users=2)),
    "sample": list(sample(users=300)),
    "other seed": list(sample(users=60, seed=7)),
}


@pytest.fixture(params=SHOPS)
def shop(request: pytest.FixtureRequest) -> list[Item]:
    return SHOPS[request.param]


def of(items: Iterable[Item], record_type: str) -> Iterator[Item]:
    return (item for item in items if item["Type"] == record_type)


def test_the_document_is_loaded_word_for_word() -> None:
    words = "8e965a46200626315712f5a0e8adb860eae64ffecb69270323f1d4604108ffd8"
    assert digest(items_of("commerce.jsonl")) == words


def test_no_two_items_have_one_key(shop: list[Item]) -> None:
    keys = Counter((item["PK"], item["SK"]) for item in shop)
    assert {key for key, times in keys.items() if times > 1} == set()


def test_every_end_exists(shop: list[Item]) -> None:
    nodes = {item["PK"] for item in shop if item["PK"] == item["SK"]}
    ends = {
        "userId": "USER",
        "customerId": "USER",
        "sellerId": "USER",
        "productId": "PRODUCT",
        "categoryId": "CATEGORY",
        "parentCategoryId": "CATEGORY",
        "childCategoryId": "CATEGORY",
        "orderId": "ORDER",
        "reviewId": "REVIEW",
    }
    named = {f"{ends[name]}#{value}" for item in shop for name, value in item.items() if name in ends}
    assert named - nodes == set()


EDGES = {
    "ProductCategory": ("PRODUCT#{productId}", "CATEGORY#{categoryId}"),
    "OrderItem": ("ORDER#{orderId}", "PRODUCT#{productId}"),
    "CustomerOrder": ("USER#{customerId}", "ORDER#{orderId}"),
    "UserReview": ("USER#{customerId}", "REVIEW#{reviewId}"),
    "ProductReview": ("PRODUCT#{productId}", "REVIEW#{reviewId}"),
    "ProductTag": ("PRODUCT#{productId}", "TAG#{tagName}"),
}
KEYS = {
    "User": ("USER#{userId}", "USER#{userId}"),
    "Product": ("PRODUCT#{productId}", "PRODUCT#{productId}"),
    "Category": ("CATEGORY#{categoryId}", "CATEGORY#{categoryId}"),
    "Order": ("ORDER#{orderId}", "ORDER#{orderId}", "USER#{customerId}", "ORDER#{orderDate}"),
    "Review": ("REVIEW#{reviewId}", "REVIEW#{reviewId}"),
    "PriceHistory": ("PRODUCT#{productId}", "PRICE#{timestamp}"),
    "CategoryChild": (
        "CATEGORY#{parentCategoryId}",
        "CHILD#{childCategoryId}",
        "CATEGORY#{childCategoryId}",
        "PARENT#{parentCategoryId}",
    ),
    **{name: (near, far, far, near) for name, (near, far) in EDGES.items()},
}


def test_keys_agree_with_attributes(shop: list[Item]) -> None:
    for item in shop:
        if item["Type"] in KEYS:
            rendered = [template.format_map(item) for template in KEYS[item["Type"]]]
            assert [item[name] for name in ("PK", "SK", "GSI1PK", "GSI1SK")[: len(rendered)]] == rendered
    assert {item["GSI1PK"] for item in of(shop, "User")} == {"USER"}
    assert {item["GSI1PK"] for item in of(shop, "Product")} == {"PRODUCT"}
    assert {item["Type"] for item in shop} == {*KEYS, "UserActivity"}


def test_activities_are_spread_over_five_shards(shop: list[Item]) -> None:
    shards = {f"SHARD{shard}" for shard in range(5)}
    for item in of(shop, "UserActivity"):
        user, shard = item["PK"].removeprefix("USER#").split("#")
        assert user == item["userId"]
        assert shard in shards
        assert item["SK"] == f"ACTIVITY#{item['timestamp']}"
        assert len(str(item["timestamp"])) == 13
    assert {item["PK"].rpartition("#")[2] for item in of(shop, "UserActivity")} == shards


def test_totals_add_up(shop: list[Item]) -> None:
    sums: Counter[str] = Counter()
    for item in of(shop, "OrderItem"):
        assert item["totalPrice"] == item["quantity"] * item["unitPrice"]
        sums[item["orderId"]] += item["totalPrice"]
    assert sums == {item["orderId"]: item["total"] for item in of(shop, "Order")}
    assert sums == {item["orderId"]: item["total"] for item in of(shop, "CustomerOrder")}


def test_prices_are_those_of_the_day(shop: list[Item]) -> None:
    history: dict[str, dict[str, Decimal]] = {}
    for item in of(shop, "PriceHistory"):
        history.setdefault(item["productId"], {})[item["timestamp"]] = item["price"]
    for item in of(shop, "Product"):
        assert history[item["productId"]][max(history[item["productId"]])] == item["price"]
    placed = {item["orderId"]: item["orderDate"] for item in of(shop, "Order")}
    for item in of(shop, "OrderItem"):
        prices = history[item["productId"]]
        assert prices[max(since for since in prices if since <= placed[item["orderId"]])] == item["unitPrice"]


def test_reviews_are_by_those_who_bought(shop: list[Item]) -> None:
    orders = {item["orderId"]: item for item in of(shop, "Order")}
    bought: dict[tuple[str, str], str] = {}
    for item in of(shop, "OrderItem"):
        order = orders[item["orderId"]]
        if order["status"] != "cancelled":
            pair = order["customerId"], item["productId"]
            bought[pair] = min(order["orderDate"], bought.get(pair, order["orderDate"]))
    reviews = list(of(shop, "Review"))
    assert all(bought[item["customerId"], item["productId"]] < item["reviewDate"] for item in reviews)
    assert len({(item["customerId"], item["productId"]) for item in reviews}) == len(reviews)


def test_review_ids_ascend_with_time(shop: list[Item]) -> None:
    dates = [item["reviewDate"] for item in sorted(of(shop, "Review"), key=lambda item: item["reviewId"])]
    assert dates == sorted(dates)


def test_nobody_buys_before_signing_up() -> None:
    items = SHOPS["sample"]
    there = {item["PK"]: item["GSI1SK"] for item in (*of(items, "User"), *of(items, "Product"))}
    orders = {item["orderId"]: item for item in of(items, "Order")}
    for item in of(items, "OrderItem"):
        order = orders[item["orderId"]]
        assert there[f"USER#{order['customerId']}"] < order["orderDate"]
        assert there[f"PRODUCT#{item['productId']}"] < order["orderDate"]
    for item in of(items, "Product"):
        assert there[f"USER#{item['sellerId']}"] < item["GSI1SK"]


def test_a_sample_is_the_same_everywhere() -> None:
    assert digest(sample(users=20)) == "7704019c5a6bec9cb8b4b86026b24df4faa6f090885bfae5733f3b84a8ddfb69"
    assert digest(sample(users=20, seed=1)) == digest(sample(users=20))
    assert digest(sample(users=20, seed=2)) != digest(sample(users=20))


def test_few_products_and_customers_have_most_orders() -> None:
    items = SHOPS["sample"]
    products = Counter(item["productId"] for item in of(items, "OrderItem"))
    tenth = sum(1 for _ in of(items, "Product")) // 10
    assert sum(times for _, times in products.most_common(tenth)) > products.total() / 2
    customers = Counter(item["customerId"] for item in of(items, "Order"))
    fifth = sum(item["userType"] == "customer" for item in of(items, "User")) // 5
    assert sum(times for _, times in customers.most_common(fifth)) > customers.total() / 2


@pytest.mark.parametrize("users", [2, 20, 250])
def test_a_sample_has_as_many_users_as_asked_for(users: int) -> None:
    assert sum(1 for _ in of(sample(users=users), "User")) == users


def test_a_sample_grows_with_its_users() -> None:
    small, large = (Counter(item["Type"] for item in sample(users=users)) for users in (60, 600))
    for record_type in ("Product", "Order", "OrderItem", "Review", "UserActivity", "ProductCategory"):
        assert 5 * small[record_type] < large[record_type] < 20 * small[record_type]


def test_a_sample_begins_at_once() -> None:
    assert [item["PK"] for item in islice(sample(users=10**7), 2)] == [
        "CATEGORY#electronics",
        "CATEGORY#headphones",
    ]


def test_a_sample_needs_a_seller_and_a_customer() -> None:
    with pytest.raises(ValueError, match="two users at least"):
        next(sample(users=1))


def test_the_article_and_a_sample_fit_into_one_table() -> None:
    article = {(item["PK"], item["SK"]): item for item in SHOPS["article"]}
    shared = [item for item in SHOPS["sample"] if (item["PK"], item["SK"]) in article]
    assert [item for item in shared if article[item["PK"], item["SK"]] != item] == []
    assert {item["Type"] for item in shared} == {"Category", "CategoryChild"}
