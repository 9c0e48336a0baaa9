"""Measures the cost of access rules: a nested query with a tenant wall and an owner rule, and the same without rules.

    python -m bench.access

Both models have one table, with the tenant in every key, and one query: a user, ten orders, their five items each, the
products and their categories. The embedded engine's answers are kept, so the processor time covers only planning,
reading and writing out. Turns of the two models alternate in pairs; the figure is the median of the pairs' ratios.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from keygraph import ID, Graph, Index, Many, Table, edge, node, read, stored, viewer
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, CreateTable, Request, Store
from keygraph.engines.open import open_store
from keygraph.limits import NO_LIMITS
from keygraph.tables.bulk import write_batches
from keygraph_resolvers import OperationRequest, Service, build_schema

MOST = 1.1
"""The largest allowed ratio of processor time, with rules to without."""
QUERY = """query nested($user: ID!) { user(tenantId: "acme", userId: $user) { name orders(first: 10) { nodes {
  orderId orderDate status items(first: 5) { edges { quantity node { productId name price
  categories(first: 5) { nodes { categoryId name } } } } } } } } }"""
VIEWER = {"sub": "u1", "tenant": "acme", "roles": ["customer"]}
_TURNS, _OPERATIONS = 40, 12

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
WALL = [read(where={"tenant_id": viewer("tenant")})]


def made_graph(*, has_rules: bool) -> Graph:
    """Returns the graph of a shop with tenants."""
    owner = [read(where={"customer": {"user_id": viewer("sub")}}), read(role="support")] if has_rules else []

    @node("T#{tenant_id}#USER#{user_id}")
    class User:
        tenant_id: ID
        user_id: ID
        name: str
        orders: Many[Order]

    @node("T#{tenant_id}#ORDER#{order_id}", gsi1("{customer}", "ORDER#{order_date}"), access=owner)
    class Order:
        tenant_id: ID
        order_id: ID
        customer: User = stored(tenant_id="tenant_id", user_id="customer_id")
        order_date: str
        status: str
        items: Many[OrderItem]

    @edge("{order}", "{product}")
    class OrderItem:
        order: Order
        product: Product
        quantity: int

    @node("T#{tenant_id}#PRODUCT#{product_id}")
    class Product:
        tenant_id: ID
        product_id: ID
        name: str
        price: Decimal
        categories: Many[ProductCategory]

    @edge("{product}", "{category}")
    class ProductCategory:
        product: Product
        category: Category

    @node("T#{tenant_id}#CATEGORY#{category_id}")
    class Category:
        tenant_id: ID
        category_id: ID
        name: str

    table = Table("Measured", partition_key="PK", sort_key="SK", indexes=[gsi1])
    types = (User, Order, OrderItem, Product, ProductCategory, Category)
    return Graph(table, *types, type_attribute="type", access=WALL if has_rules else []).check()


def items() -> list[Item]:
    """Returns one customer's orders."""

    def own(kind: str, own_id: str, **values: Any) -> Item:
        key = f"T#acme#{kind.upper()}#{own_id}"
        return {
            "PK": key,
            "SK": key,
            "type": kind,
            "tenant_id": "acme",
            f"{kind.lower()}_id": own_id,
            **values,
        }

    found = [own("User", "u1", name="Ann")]
    found += [own("Category", f"c{n}", name=f"Category {n}") for n in range(4)]
    for number in range(10):
        day = f"2026-01-{number + 1:02d}"
        keys = {"GSI1PK": "T#acme#USER#u1", "GSI1SK": f"ORDER#{day}"}
        order = own("Order", f"o{number}", customer_id="u1", order_date=day, status="paid", **keys)
        found.append(order)
        for place in range(5):
            product = own("Product", f"p{number}{place}", name="Bell", price=Decimal(9))
            found.append(product)
            ends = {"order_tenant_id": "acme", "order_id": f"o{number}", "product_tenant_id": "acme"}
            edge_item = {"PK": order["PK"], "SK": product["PK"], "type": "OrderItem", "quantity": Decimal(2)}
            found.append({**edge_item, **ends, "product_id": product["product_id"]})
            for category in (place % 4, (place + 1) % 4):
                key = {"PK": product["PK"], "SK": f"T#acme#CATEGORY#c{category}", "type": "ProductCategory"}
                found.append(key | {"product_id": product["product_id"], "category_id": f"c{category}"})
    return found


@dataclass
class Kept:
    """A store that repeats its first answer to each request."""

    store: Store
    answers: dict[Any, Any] = field(default_factory=dict)
    sent: int = 0

    @property
    def table(self) -> Table:
        return self.store.table

    async def send(self, request: Request[Answer], /) -> Answer:
        self.sent += 1
        if request not in self.answers:
            self.answers[request] = await self.store.send(request)
        found: Answer = self.answers[request]
        return found

    async def close(self) -> None:
        await self.store.close()


@dataclass
class Side:
    """One of the two models."""

    service: Service
    store: Kept
    claims: Any

    async def seconds(self) -> float:
        """Returns the processor time of one turn."""
        began = time.process_time()
        for _ in range(_OPERATIONS):
            await self.service.execute(OperationRequest(QUERY, {"user": "u1"}, viewer=self.claims))
        return time.process_time() - began

    async def requests(self) -> int:
        """Returns the number of requests that the query takes. Raises ValueError if its answer is incomplete."""
        before = self.store.sent
        answer = await self.service.execute(OperationRequest(QUERY, {"user": "u1"}, viewer=self.claims))
        orders = (answer["data"]["user"] or {}).get("orders", {}).get("nodes", [])
        shown = [len(each["items"]["edges"]) for each in orders]
        if "errors" in answer or shown != [5] * 10:
            raise ValueError(f"the answer is not whole: {answer}")
        return self.store.sent - before


async def ratios(sides: Sequence[Side]) -> list[float]:
    """Returns the second model's processor time divided by the first's, for each pair of turns."""
    plain, guarded = sides
    found = []
    for number in range(_TURNS):
        if number % 2:
            other, own = await guarded.seconds(), await plain.seconds()
        else:
            own, other = await plain.seconds(), await guarded.seconds()
        found.append(other / own)
    return found


async def measured() -> tuple[float, int, int]:
    """Returns the median ratio, and the number of requests that the query takes without rules and with them."""
    sides = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for has_rules in (False, True):
            graph = made_graph(has_rules=has_rules)
            address = f"sqlite:{folder / f'{has_rules}.sqlite'}"
            store = await stack.enter_async_context(open_store(address, graph.table))
            await store.send(CreateTable())
            await write_batches(store, [(items(), None)], lambda _: None)
            kept = Kept(store)
            service = Service(build_schema(graph), kept, secret=b"of a measurement", limits=NO_LIMITS)
            sides.append(Side(service, kept, VIEWER if has_rules else None))
        plain, guarded = [await side.requests() for side in sides]
        for side in sides:
            await side.seconds()  # warm
        found = await ratios(sides)
    return statistics.median(found), plain, guarded


def main() -> int:
    """Prints the figures. Returns 1 if the rules cost more than `MOST` allows."""
    ratio, plain, guarded = asyncio.run(measured())
    print(
        f"nested, with a tenant wall and an owner rule: {ratio:.3f} of the processor time without rules (at most {MOST})"
    )
    print(f"requests: {plain} without rules, {guarded} with them")
    return int(ratio > MOST or guarded > plain)


if __name__ == "__main__":
    sys.exit(main())
