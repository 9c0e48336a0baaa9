"""Leads of tenants, found by owner. From aidonow.com, a check of single tables against reality."""

from __future__ import annotations

from datetime import date

from keygraph import ID, Graph, Index, Many, Table, node, record

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")


@node("TENANT#{tenant_id}", "TENANT")
class Tenant:
    tenant_id: ID
    name: str
    leads: Many[Lead]
    accounts: Many[Account]


@node("OWNER#{owner_id}", item=False)
class Owner:
    owner_id: ID
    leads: Many[Lead]


@record("{tenant}", "LEAD#{lead_id}", gsi1("{owner}", "CREATED#{created}"))
class Lead:
    tenant: Tenant
    lead_id: ID
    owner: Owner
    created: date
    stage: str


@record("{tenant}", "ACCOUNT#{account_id}")
class Account:
    tenant: Tenant
    account_id: ID
    title: str


graph = Graph(
    Table("CRM", partition_key="PK", sort_key="SK", indexes=[gsi1]),
    Tenant,
    Owner,
    Lead,
    Account,
    attribute_case="camel",
)

ITEMS = """
{"PK": "TENANT#abc123", "SK": "TENANT", "name": "Anvils"}
{"PK": "TENANT#xyz789", "SK": "TENANT", "name": "Bolts"}
{"PK": "TENANT#abc123", "SK": "LEAD#1231", "GSI1PK": "OWNER#user456", "GSI1SK": "CREATED#2025-01-15", "ownerId": "user456", "created": "2025-01-15", "stage": "new"}
{"PK": "TENANT#abc123", "SK": "LEAD#1232", "GSI1PK": "OWNER#user789", "GSI1SK": "CREATED#2025-01-16", "ownerId": "user789", "created": "2025-01-16", "stage": "won"}
{"PK": "TENANT#xyz789", "SK": "LEAD#1233", "GSI1PK": "OWNER#user456", "GSI1SK": "CREATED#2025-02-01", "ownerId": "user456", "created": "2025-02-01", "stage": "new"}
{"PK": "TENANT#abc123", "SK": "ACCOUNT#a77", "title": "Rocket works"}
"""

ASKED = """
What an owner has created
{ owner(ownerId: "user456") { leads(created: {from: "2025-01-20"}) { nodes { leadId tenant { name } } } } }
{"owner": {"leads": {"nodes": [{"leadId": "1233", "tenant": {"name": "Bolts"}}]}}}
"""
