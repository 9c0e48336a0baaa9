"""The table of the comparison: a shop in which every list has a known length.

A hundred users, of whom the first twenty have ten orders each, with five items an order. The items share eight hundred
products, each in one category. Categories go down four levels, three below each. It is the same at every start.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from bench.worlds import category_below, minute, shop_item
from keygraph.dynamo.items import Item

USERS = 100
CUSTOMERS = 20
ORDERS = 10
ITEMS = 5
PRODUCTS = 800
BRANCHES = 3
LEVELS = 4
ROOT = "menu"
STATUSES = ("pending", "processing", "shipped", "delivered")


def user_id(number: int) -> str:
    """Returns ids that ascend with the time at which the user joined."""
    return f"U{number:04d}"


def items() -> Iterator[Item]:
    """Returns all items of the table."""
    yield from _categories(ROOT, LEVELS)
    for number in range(USERS):
        yield _user(number)
    yield from products(0, PRODUCTS)
    for customer in range(CUSTOMERS):
        for number in range(ORDERS):
            yield from _order(customer, number)


def products(start: int, stop: int) -> Iterator[Item]:
    """The products of these numbers, each with its category."""
    for number in range(start, stop):
        yield from _product(number)


def category_of(name: str, size: int) -> Iterator[Item]:
    """Returns a category that has this many products as well."""
    key = f"CATEGORY#{name}"
    yield _category(name)
    for number in range(size):
        product = product_id(number)
        good = f"PRODUCT#{product}"
        yield shop_item("ProductCategory", good, key, (key, good), productId=product, categoryId=name)


def lines(name: str, width: int, levels: int) -> Iterator[Item]:
    """Returns a category with `width` categories below it, each of them the top of a chain, `levels` levels in all."""
    yield _category(name)
    for number in range(width):
        above = name
        for level in range(levels):
            child = f"{name}-{number}-{level}"
            yield category_below(above, child)
            yield _category(child)
            above = child


def _user(number: int) -> Item:
    user = user_id(number)
    return shop_item(
        "User",
        f"USER#{user}",
        index=("USER", minute(number)),
        userId=user,
        name=f"Customer {number}",
        email=f"customer{number}@example.com",
        userType="customer" if number % 7 else "seller",
        UpdatedAt=minute(number + 5000),
    )


def _product(number: int) -> Iterator[Item]:
    product, shelf = product_id(number), _leaves()[number * 7 % BRANCHES**LEVELS]
    key, above = f"PRODUCT#{product}", f"CATEGORY#{shelf}"
    yield shop_item(
        "Product",
        key,
        index=("PRODUCT", minute(number)),
        productId=product,
        name=f"Product {number}",
        price=_price(number),
        description=f"What there is to say about product {number}, which is as long as such texts are. " * 3,
        sellerId=user_id(number * 7 % USERS),
    )
    yield shop_item("ProductCategory", key, above, (above, key), productId=product, categoryId=shelf)


def _order(customer: int, number: int) -> Iterator[Item]:
    serial = customer * ORDERS + number
    order, user, placed = f"O{serial:06d}", user_id(customer), minute(10_000 + serial)
    key, total = f"ORDER#{order}", Decimal(0)
    for place in range(ITEMS):
        bought = (serial * ITEMS + place) % PRODUCTS
        good, quantity = f"PRODUCT#{product_id(bought)}", place % 3 + 1
        cost = _price(bought) * quantity
        total += cost
        yield shop_item(
            "OrderItem",
            key,
            good,
            (good, key),
            orderId=order,
            productId=product_id(bought),
            quantity=Decimal(quantity),
            unitPrice=_price(bought),
            totalPrice=cost,
        )
    yield shop_item(
        "Order",
        key,
        index=(f"USER#{user}", f"ORDER#{placed}"),
        orderId=order,
        customerId=user,
        total=total,
        status=STATUSES[serial % len(STATUSES)],
        orderDate=placed,
        UpdatedAt=minute(20_000 + serial),
    )


def _categories(name: str, levels: int) -> Iterator[Item]:
    yield _category(name)
    for number in range(BRANCHES if levels else 0):
        child = f"{name}-{number}"
        yield category_below(name, child)
        yield from _categories(child, levels - 1)


def _category(name: str) -> Item:
    key = f"CATEGORY#{name}"
    return shop_item("Category", key, categoryId=name, name=name.title(), description=f"All of {name}")


def _leaves() -> list[str]:
    names = [ROOT]
    for _ in range(LEVELS):
        names = [f"{name}-{number}" for name in names for number in range(BRANCHES)]
    return names


def product_id(number: int) -> str:
    """Returns a product's id."""
    return f"P{number:05d}"


def _price(number: int) -> Decimal:
    """Returns a price from 5 to 205, in no order, and never a round number: stores write those in different ways."""
    return Decimal(number * 7919 % 200 + 5) + Decimal("0.99")
