"""A shop of any size, as the items of its table: `sample(users=1000)`.

The shop opens on the first day of 2024 and is looked at after two years. A twenty-fifth of its users sell, the
others buy; there is a product for every three users and there are four orders for every customer. As in most
shops, few products have most orders and few customers place many. Prices move and orders keep the price of
their day; whoever reviews a product has had it delivered.

Equal arguments give equal items in equal order, on any version of Python: of its random generator only
`random()` is used, which alone is promised to stay the same, and no function whose last digit a platform may
round in its own way. Ids never meet those of `commerce.jsonl` and `commerce.described.jsonl`, except for the
categories, which are the same items here.
"""

from __future__ import annotations

import heapq
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import accumulate
from math import isqrt
from typing import TypeAlias, TypeVar

from keygraph_examples.commerce_catalogue import (
    BRANDS,
    CATEGORIES,
    COMMENTS,
    COMPANIES,
    EDITIONS,
    FIRST_NAMES,
    LAST_NAMES,
    RATINGS,
    SHELVES,
    Category,
)

Item: TypeAlias = dict[str, str | Decimal]
"""An item by its attributes; every number is a Decimal, as DynamoDB gives it."""

T = TypeVar("T")

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def _seconds(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp())


FOUNDED = _seconds(2023, 10, 1)
"""From here on sellers sign up."""
LISTED = _seconds(2023, 12, 1)
"""From here on customers sign up and products are listed."""
OPENED = _seconds(2024, 1, 1)
"""From here on there are orders."""
SETTLED = _seconds(2025, 12, 30)
"""From here on nobody and nothing new comes."""
END = _seconds(2026, 1, 1)
"""Everything is earlier than this."""

SHARDS = 5
ORDERS_PER_CUSTOMER = 4


@dataclass(frozen=True, slots=True)
class _Product:
    id: str
    prices: tuple[tuple[int, int], ...]
    """Since when (in seconds) it cost how many cents, by time."""

    def cents_at(self, seconds: int) -> int:
        return next(cents for since, cents in reversed(self.prices) if since <= seconds)


class _Dice:
    """Whole numbers and choices that are the same on every Python for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, limit: int) -> int:
        """From 0 to `limit` - 1, all alike."""
        return int(self._random() * limit)

    def between(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def skewed(self, limit: int) -> int:
        """From 0 to `limit` - 1, the lower the likelier: of a hundred, the first ten come up a third of the time."""
        return int(self._random() * self._random() * limit)

    def one_in(self, number: int) -> bool:
        return self.below(number) == 0

    def choice(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]


def sample(users: int = 1000, seed: int = 1) -> Iterator[Item]:
    """The items of a shop with so many users, one by one; what an edge joins may come after it.

    Memory holds each product's prices and a number for each review, nothing else that grows. Raises
    ValueError for fewer than two users, since a shop has somebody who sells and somebody who buys.
    """
    if users < 2:
        raise ValueError(f"a shop has two users at least, one who sells and one who buys, not {users}")
    dice = _Dice(seed)
    sellers = -(-users // 25)
    yield from _categories()
    yield from _users(dice, users, sellers)
    products: list[_Product] = []
    count = max(10, users // 3)
    for number in range(count):
        product, items = _product(dice, number, count, sellers)
        products.append(product)
        yield from items
    yield from _orders(dice, products, users, sellers)


def _categories() -> Iterator[Item]:
    for category in CATEGORIES.values():
        yield _item(
            "Category",
            f"CATEGORY#{category.id}",
            categoryId=category.id,
            name=category.name,
            description=category.description,
        )
        for parent in category.parents:
            yield _item(
                "CategoryChild",
                f"CATEGORY#{parent}",
                f"CHILD#{category.id}",
                (f"CATEGORY#{category.id}", f"PARENT#{parent}"),
                parentCategoryId=parent,
                childCategoryId=category.id,
                childName=category.name,
                CreatedAt=_text(OPENED),
            )


def _users(dice: _Dice, users: int, sellers: int) -> Iterator[Item]:
    for number in range(sellers):
        word, company = dice.choice(BRANDS), dice.choice(COMPANIES)
        joined = dice.between(FOUNDED, LISTED - 1)
        yield _user(_user_id(number), f"{word} {company}", f"{word}{number}".lower(), "seller", joined)
    for number in range(users - sellers):
        first, last = dice.choice(FIRST_NAMES), dice.choice(LAST_NAMES)
        mailbox = f"{first}.{last}{number}".lower().replace("'", "")
        joined = _arrival(number, users - sellers) + dice.below(DAY)
        yield _user(_user_id(sellers + number), f"{first} {last}", mailbox, "customer", joined)


def _user(user: str, name: str, mailbox: str, user_type: str, joined: int) -> Item:
    return _item(
        "User",
        f"USER#{user}",
        index=("USER", _text(joined)),
        userId=user,
        name=name,
        email=f"{mailbox}@example.com",
        userType=user_type,
    )


def _product(dice: _Dice, number: int, products: int, sellers: int) -> tuple[_Product, list[Item]]:
    """The product with its prices, and its items: itself, its categories, tags and prices."""
    shelf = dice.choice(SHELVES)
    product = f"{shelf.id[:3].upper()}{number + 1:06d}"
    key = f"PRODUCT#{product}"
    goods, edition, brand = dice.choice(shelf.goods), dice.choice(EDITIONS), dice.choice(BRANDS)
    listed = _arrival(number, products) + dice.below(DAY)
    prices = _prices(dice, shelf, listed)
    since, cents = prices[-1]
    items = [
        _item(
            "Product",
            key,
            index=("PRODUCT", _text(listed)),
            productId=product,
            name=f"{brand} {goods} {edition}",
            price=_money(cents),
            description=f"{goods} by {brand}, {edition.lower()} edition. {shelf.description}.",
            sellerId=_user_id(dice.below(sellers)),
            UpdatedAt=_text(since) if len(prices) > 1 else None,
        )
    ]
    category: str | None = shelf.id
    while category is not None:
        above = f"CATEGORY#{category}"
        items.append(
            _item("ProductCategory", key, above, (above, key), productId=product, categoryId=category)
        )
        category = next(iter(CATEGORIES[category].parents), None)
    for tag in shelf.tags:
        if not dice.one_in(3):
            label = f"TAG#{tag}"
            items.append(
                _item(
                    "ProductTag",
                    key,
                    label,
                    (label, key),
                    productId=product,
                    tagName=tag,
                    CreatedAt=_text(listed),
                )
            )
    for since, cents in prices:
        time = _text(since)
        items.append(
            _item(
                "PriceHistory",
                key,
                f"PRICE#{time}",
                productId=product,
                price=_money(cents),
                timestamp=time,
            )
        )
    return _Product(product, prices), items


def _prices(dice: _Dice, shelf: Category, listed: int) -> tuple[tuple[int, int], ...]:
    """What a product costs from when it is listed, and what after each of up to six changes."""
    usual = dice.between(*shelf.cents)
    days = {dice.between(listed // DAY + 1, END // DAY - 1) for _ in range(dice.skewed(7))}
    changes = ((day * DAY, usual * dice.between(70, 105) // 100) for day in sorted(days))
    return tuple((since, cents // 50 * 50 + 49) for since, cents in ((listed, usual), *changes))


def _orders(dice: _Dice, products: list[_Product], users: int, sellers: int) -> Iterator[Item]:
    """Orders with what belongs to them, by time; reviews are written in between, so that their ids ascend too."""
    customers = users - sellers
    count, span = customers * ORDERS_PER_CUSTOMER, END - OPENED - 1
    popularity = list(accumulate(10**9 // rank for rank in range(1, len(products) + 1)))
    reviewed: set[int] = set()
    due: list[tuple[int, int, int]] = []
    reviews = 0
    for number in range(count):
        # Orders grow with the shop: in a half of the time there is a quarter of them.
        earliest, latest = (isqrt(part * span * span // count) for part in (number, number + 1))
        placed = OPENED + dice.between(earliest, latest)
        while due and due[0][0] <= placed:
            reviews += 1
            yield from _review(dice, reviews, products, *heapq.heappop(due))
        customer = sellers + dice.skewed(_arrived(customers, placed))
        on_sale = popularity[_arrived(len(products), placed) - 1]
        picks = {bisect_right(popularity, dice.below(on_sale)): None for _ in range(1 + dice.skewed(5))}
        chosen = [products[index] for index in picks]
        status, changed = _status(dice, placed)
        yield from _order(dice, number, customer, chosen, placed, status, changed)
        yield from _activities(dice, customer, chosen, placed)
        for index in picks:
            written = changed + dice.between(2 * DAY, 40 * DAY)
            pair = customer * len(products) + index
            if status == "delivered" and written < END and pair not in reviewed and dice.one_in(3):
                reviewed.add(pair)
                heapq.heappush(due, (written, customer, index))
    while due:
        reviews += 1
        yield from _review(dice, reviews, products, *heapq.heappop(due))


def _status(dice: _Dice, placed: int) -> tuple[str, int]:
    """How far an order has come at the end, and since when."""
    age = END - placed
    if age < DAY:
        return "pending", placed
    if dice.one_in(25):
        return "cancelled", placed + dice.between(HOUR, DAY)
    if age < 3 * DAY:
        return "processing", placed + dice.between(HOUR, DAY)
    if age < 8 * DAY:
        return "shipped", placed + dice.between(DAY, 3 * DAY)
    return "delivered", placed + dice.between(3 * DAY, 8 * DAY)


def _order(
    dice: _Dice, number: int, customer: int, chosen: list[_Product], placed: int, status: str, changed: int
) -> Iterator[Item]:
    order, user, time = f"ORD{number + 1:07d}", _user_id(customer), _text(placed)
    key, owner = f"ORDER#{order}", f"USER#{user}"
    total = 0
    for product in chosen:
        quantity, cents = 1 + dice.skewed(4), product.cents_at(placed)
        total += quantity * cents
        good = f"PRODUCT#{product.id}"
        yield _item(
            "OrderItem",
            key,
            good,
            (good, key),
            orderId=order,
            productId=product.id,
            quantity=Decimal(quantity),
            unitPrice=_money(cents),
            totalPrice=_money(quantity * cents),
        )
    yield _item(
        "Order",
        key,
        index=(owner, f"ORDER#{time}"),
        orderId=order,
        customerId=user,
        total=_money(total),
        status=status,
        orderDate=time,
        UpdatedAt=_text(changed) if changed > placed else None,
    )
    yield _item(
        "CustomerOrder",
        owner,
        key,
        (key, owner),
        customerId=user,
        orderId=order,
        orderDate=time,
        total=_money(total),
        CreatedAt=time,
    )


def _activities(dice: _Dice, customer: int, chosen: list[_Product], placed: int) -> Iterator[Item]:
    """What led to an order: a login, a look at each product, each put into the cart and bought."""
    at = placed * 1000
    for product in chosen:
        yield _activity(dice, customer, at, "purchase", product)
        at += 1
    at = placed * 1000
    for product in reversed(chosen):
        at -= dice.between(5_000, MINUTE * 1000)
        yield _activity(dice, customer, at, "add_to_cart", product)
        at -= dice.between(5_000, 10 * MINUTE * 1000)
        yield _activity(dice, customer, at, "view", product)
    yield _activity(dice, customer, at - dice.between(1_000, MINUTE * 1000), "login")


def _activity(
    dice: _Dice, customer: int, milliseconds: int, action: str, product: _Product | None = None
) -> Item:
    seconds, rest = divmod(milliseconds, 1000)
    user = _user_id(customer)
    return _item(
        "UserActivity",
        f"USER#{user}#SHARD{dice.below(SHARDS)}",
        f"ACTIVITY#{milliseconds:013d}",
        userId=user,
        action=action,
        productId=product.id if product else None,
        timestamp=Decimal(milliseconds),
        CreatedAt=f"{_text(seconds)[:-1]}.{rest:03d}Z",
    )


def _review(
    dice: _Dice, number: int, products: list[_Product], written: int, customer: int, index: int
) -> Iterator[Item]:
    review, user, product, time = f"REV{number:07d}", _user_id(customer), products[index], _text(written)
    key, author, good = f"REVIEW#{review}", f"USER#{user}", f"PRODUCT#{product.id}"
    rating = dice.choice(RATINGS)
    yield _item(
        "Review",
        key,
        reviewId=review,
        customerId=user,
        productId=product.id,
        rating=Decimal(rating),
        comment=dice.choice(COMMENTS[rating]),
        reviewDate=time,
        CreatedAt=time,
    )
    yield _item("UserReview", author, key, (key, author), customerId=user, reviewId=review, CreatedAt=time)
    yield _item(
        "ProductReview",
        good,
        key,
        (key, good),
        productId=product.id,
        reviewId=review,
        rating=Decimal(rating),
        CreatedAt=time,
    )
    yield _activity(dice, customer, written * 1000, "review", product)


def _arrival(number: int, count: int) -> int:
    """The day on which the `number`th of so many customers or products comes: many early on, later fewer."""
    return LISTED + (SETTLED - LISTED) * number * number // (count * count)


def _arrived(count: int, seconds: int) -> int:
    """How many of so many have been there for a day; at least one, from the shop's opening on."""
    return min(count, 1 + isqrt((seconds - 2 * DAY - LISTED) * count * count // (SETTLED - LISTED)))


def _user_id(number: int) -> str:
    return str(1_000_001 + number)


def _money(cents: int) -> Decimal:
    return Decimal(cents) / 100


def _text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _item(
    record_type: str,
    partition: str,
    sort: str | None = None,
    index: tuple[str, str] | None = None,
    **attributes: str | Decimal | None,
) -> Item:
    """The item with its keys and those attributes that are not None; a node has one key twice."""
    item: Item = {"PK": partition, "SK": sort or partition, "Type": record_type}
    item.update((name, value) for name, value in attributes.items() if value is not None)
    if index is not None:
        item["GSI1PK"], item["GSI1SK"] = index
    return item
