"""The fields that the server keeps are in no input of a mutation."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from graphql import GraphQLInputObjectType, build_schema, get_named_type

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Table,
    copy,
    counts,
    created,
    edge,
    node,
    record,
    sums,
    updated,
    version,
)
from tests.schemas import schema_of

by_customer = Index("by-customer", "gp", "gs")


@node("CUSTOMER#{customer_id}")
class Customer:
    customer_id: ID
    level: int
    orders_count: int = counts("orders")
    turnover: Decimal = sums("orders.total")
    revision: int = version()
    made_at: datetime = created()
    changed_at: datetime = updated()

    orders: Many[Order]
    events: Many[Event]


@node("ORDER#{order_id}", by_customer("{customer}", "ORDER#{order_id}"))
class Order:
    order_id: ID
    customer: Customer
    total: Decimal
    level: int = copy("customer.level")


@edge("{customer}", "LIKES#{order}")
class Like:
    customer: Customer
    order: Order
    level: int = copy("customer.level")
    revision: int = version()


@record("{customer}", "EVENT#{number}")
class Event:
    customer: Customer
    number: int
    level: int = copy("customer.level")
    note: str


graph = Graph(
    Table("Shop", partition_key="pk", sort_key="sk", indexes=[by_customer]),
    Customer,
    Order,
    Like,
    Event,
    type_attribute="type",
    writes=True,
).check()
_KEPT = {"ordersCount", "turnover", "revision", "madeAt", "changedAt"}


def test_no_input_writes_what_the_server_keeps() -> None:
    mutations = build_schema(schema_of(graph).as_str()).mutation_type
    assert mutations is not None
    found: dict[str, set[str]] = {}

    def collect(type_: Any) -> None:
        of = get_named_type(type_)
        if isinstance(of, GraphQLInputObjectType) and of.name not in found:
            found[of.name] = {*of.fields}
            for field in of.fields.values():
                collect(field.type)

    for mutation in mutations.fields.values():
        for argument in mutation.args.values():
            collect(argument.type)
    assert not any(_KEPT & fields for fields in found.values())
    assert {name for name, fields in found.items() if "level" in fields} == {
        "CreateCustomerInput",
        "UpdateCustomerInput",
        "UpsertCustomerInput",
        "CustomerAddInput",
    }
    assert found["OrderAddInput"] == {"total"}
