"""The queries of the comparison: one text each for every server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from bench.compare.data import CUSTOMERS, ITEMS, PRODUCTS, ROOT, product_id, user_id
from bench.compare.load import FRESH

_CUSTOMERS = tuple({"user": user_id(number)} for number in range(CUSTOMERS))
_ONCE: tuple[Mapping[str, Any], ...] = ({},)
_OF_KEYGRAPH_AND_FLOOR = frozenset({"keygraph", "floor-plain", "floor-merged"})


@dataclass(frozen=True)
class Query:
    """A query; the sets of `variables` are used in turn."""

    name: str
    about: str
    document: str
    variables: Sequence[Mapping[str, Any]] = field(default=_ONCE)
    servers: frozenset[str] | None = None
    """The names of the servers that answer it; None for all."""

    def is_of(self, server: str) -> bool:
        """Whether the server answers it."""
        return self.servers is None or server in self.servers

    def bodies(self) -> list[bytes]:
        """The bodies of the requests, one for each set of variables."""
        return [
            orjson.dumps({"query": self.document, "operationName": self.name, "variables": each})
            for each in self.variables
        ]


def _order(number: int) -> Mapping[str, Any]:
    """A new order of five products."""
    items = [
        {
            "productId": product_id((number * ITEMS + place) % PRODUCTS),
            "quantity": place + 1,
            "unitPrice": "9.99",
            "totalPrice": f"{(place + 1) * 9.99:.2f}",
        }
        for place in range(ITEMS)
    ]
    return {
        "input": {
            "orderId": FRESH,
            "customerId": user_id(number % CUSTOMERS),
            "total": "149.85",
            "status": "PENDING",
            "orderDate": "2026-02-03T04:05:06Z",
            "items": items,
        }
    }


QUERIES = (
    Query(
        "shallow",
        "a user with ten orders",
        """query shallow($user: ID!) {
  user(userId: $user) { userId name email orders(first: 10) { nodes { orderId orderDate total status } } }
}""",
        _CUSTOMERS,
    ),
    Query(
        "nested",
        "user → 10 orders → 5 items → product → categories",
        """query nested($user: ID!) {
  user(userId: $user) { name orders(first: 10) { nodes { orderId orderDate status items(first: 5) {
    edges { quantity node { productId name price categories(first: 5) { nodes { categoryId name } } } }
  } } } }
}""",
        _CUSTOMERS,
    ),
    Query(
        "wide",
        "20 users × 10 orders × 5 items × product",
        """query wide {
  users(first: 20) { nodes { name orders(first: 10) { nodes { orderDate total items(first: 5) {
    edges { quantity node { name price } }
  } } } } }
}""",
    ),
    Query(
        "list",
        "100 users",
        "query list { users(first: 100) { nodes { userId name email userType createdAt } } }",
    ),
    Query(
        "deep",
        "categories down four levels, three below each",
        f"""query deep {{
  category(categoryId: "{ROOT}") {{ name children(first: 5) {{ nodes {{ name children(first: 5) {{ nodes {{ name
    children(first: 5) {{ nodes {{ name children(first: 5) {{ nodes {{ name }} }} }} }} }} }} }} }} }}
}}""",
    ),
    Query(
        "count",
        "how many users there are, and orders of one",
        """query count($user: ID!) {
  users { totalCount }
  user(userId: $user) { name orders { totalCount } }
}""",
        _CUSTOMERS,
    ),
    Query(
        "filtered",
        "a page of 20 products above a price, of which half are",
        """query filtered {
  products(first: 20, where: { price: { gte: "105" } }) {
    nodes { productId name price } pageInfo { hasNextPage }
  }
}""",
    ),
    Query(
        "order",
        "a new order with five items, in one transaction that checks the customer and the products",
        """mutation order($input: CreateOrderInput!) {
  createOrder(input: $input) { order { total status orderDate } }
}""",
        tuple(map(_order, range(100))),
        _OF_KEYGRAPH_AND_FLOOR,
    ),
)


def queries(names: Sequence[str] | None = None) -> list[Query]:
    """Returns the queries of these names, or all of them. Raises ValueError for an unknown name."""
    known = {query.name: query for query in QUERIES}
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise ValueError(f"there is no query {', '.join(unknown)}: choose from {', '.join(known)}")
    return [known[name] for name in names or known]
