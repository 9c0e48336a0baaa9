"""Subscriptions and their renewals, whose sort keys begin with a separator. From Jesusdavidv87/fuse-lite on GitHub."""

from __future__ import annotations

from keygraph import ID, Graph, Many, Table, node, record


@node("CUST#{customer_id}", "PROFILE#{customer_id}")
class Customer:
    customer_id: ID
    email: str


@node("SUB#{subscription_id}", "#{subscription_id}")
class Contract:
    subscription_id: ID
    customer: Customer
    plan: str
    renewals: Many[Renewal]


@record("RENEW#{contract.subscription_id}", "#{contract.subscription_id}#{month}")
class Renewal:
    contract: Contract
    month: str
    cents: int


graph = Graph(Table("fuse-lite", partition_key="PK", sort_key="SK"), Customer, Contract, Renewal)

ITEMS = """
{"PK": "CUST#1001", "SK": "PROFILE#1001", "email": "ada@x.org"}
{"PK": "CUST#1002", "SK": "PROFILE#1002", "email": "ben@x.org"}
{"PK": "SUB#s9001", "SK": "#s9001", "customer_id": "1001", "plan": "pro"}
{"PK": "SUB#s9002", "SK": "#s9002", "customer_id": "1002", "plan": "free"}
{"PK": "RENEW#s9001", "SK": "#s9001#2024-05", "cents": 900}
{"PK": "RENEW#s9001", "SK": "#s9001#2024-06", "cents": 900}
{"PK": "RENEW#s9002", "SK": "#s9002#2024-05", "cents": 0}
"""

ASKED = """
A subscription
{ contract(subscriptionId: "s9001") { plan customer { email } renewals(month: {from: "2024-06"}) { nodes { cents } } } }
{"contract": {"plan": "pro", "customer": {"email": "ada@x.org"}, "renewals": {"nodes": [{"cents": 900}]}}}
"""
