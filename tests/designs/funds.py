"""Documents of investment funds, and what they say of positions: bare ids, one sort key with LATEST or a date.

From "DynamoDB Single Table Design: Strategic Key Design and GSI Optimization" (pravin.dev).
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from keygraph import ID, Graph, Index, Many, One, Table, node, one, record

by_kind = Index("GSI_Entity_Document", "GSI_PK", "GSI_SK")
by_position = Index("GSI_Position_Document", "GSI2_PK", "GSI2_SK")


@node(
    "{document_id}",
    "DOCUMENT#LATEST",
    by_kind("DOCUMENT#LATEST#{document_id}", "METADATA", finds="latest_document"),
    gather=True,
)
class Document:
    document_id: ID
    status: str
    versions: Many[Version]
    activity: One[Activity] = one()
    past_activities: Many[PastActivity]
    calls: Many[Call]
    distributions: Many[Distribution]
    commitments: Many[Commitment]


@record("{document}", "DOCUMENT#{day}", type="Document")
class Version:
    document: Document
    day: date
    status: str


@record("{document}", "CAPITAL_ACTIVITY#LATEST", type="CapitalActivity")
class Activity:
    document: Document
    amount: Decimal
    status: str


@record("{document}", "CAPITAL_ACTIVITY#{day}", type="CapitalActivity")
class PastActivity:
    document: Document
    day: date
    amount: Decimal
    status: str


@node("{position_id}", item=False)
class Position:
    position_id: ID
    calls: Many[Call]
    distributions: Many[Distribution]
    commitments: Many[Commitment]


@record(
    "{document}",
    "CAPITAL_CALL#{position}",
    by_kind("CAPITAL_CALL#{position}#{document}", "LATEST", lists="calls_in"),
    by_position("{position}", "CAPITAL_CALL#{document}"),
    type="CapitalCall",
)
class Call:
    document: Document
    position: Position
    amount: Decimal
    status: str


@record(
    "{document}",
    "DISTRIBUTION#{position}",
    by_kind("DISTRIBUTION#{position}#{document}", "LATEST", lists="distributions_in"),
    by_position("{position}", "DISTRIBUTION#{document}"),
)
class Distribution:
    document: Document
    position: Position
    amount: Decimal
    status: str


@record(
    "{document}",
    "UNFUNDED_COMMITMENT#{position}",
    by_position("{position}", "UNFUNDED_COMMITMENT#{document}"),
    type="UnfundedCommitment",
)
class Commitment:
    document: Document
    position: Position
    amount: Decimal


graph = Graph(
    Table("investment_fund", partition_key="PK", sort_key="SK", indexes=[by_kind, by_position]),
    Document,
    Version,
    Activity,
    PastActivity,
    Position,
    Call,
    Distribution,
    Commitment,
    type_attribute="EntityType",
    attribute_case="pascal",
)

ITEMS = """
{"PK": "DOC001", "SK": "DOCUMENT#LATEST", "GSI_PK": "DOCUMENT#LATEST#DOC001", "GSI_SK": "METADATA", "EntityType": "Document", "Status": "Active"}
{"PK": "DOC001", "SK": "DOCUMENT#2025-03-01", "EntityType": "Document", "Status": "Historical"}
{"PK": "DOC001", "SK": "DOCUMENT#2025-09-01", "EntityType": "Document", "Status": "Historical"}
{"PK": "DOC001", "SK": "CAPITAL_ACTIVITY#LATEST", "EntityType": "CapitalActivity", "Amount": 500000, "Status": "Pending"}
{"PK": "DOC001", "SK": "CAPITAL_ACTIVITY#2025-08-15", "EntityType": "CapitalActivity", "Amount": 450000, "Status": "Completed"}
{"PK": "DOC001", "SK": "CAPITAL_CALL#POSITION_1", "GSI_PK": "CAPITAL_CALL#POSITION_1#DOC001", "GSI_SK": "LATEST", "GSI2_PK": "POSITION_1", "GSI2_SK": "CAPITAL_CALL#DOC001", "EntityType": "CapitalCall", "Amount": 500000, "Status": "Pending", "PositionId": "POSITION_1"}
{"PK": "DOC001", "SK": "CAPITAL_CALL#POSITION_2", "GSI_PK": "CAPITAL_CALL#POSITION_2#DOC001", "GSI_SK": "LATEST", "GSI2_PK": "POSITION_2", "GSI2_SK": "CAPITAL_CALL#DOC001", "EntityType": "CapitalCall", "Amount": 300000, "Status": "Pending", "PositionId": "POSITION_2"}
{"PK": "DOC001", "SK": "DISTRIBUTION#POSITION_1", "GSI_PK": "DISTRIBUTION#POSITION_1#DOC001", "GSI_SK": "LATEST", "GSI2_PK": "POSITION_1", "GSI2_SK": "DISTRIBUTION#DOC001", "EntityType": "Distribution", "Amount": 75000, "Status": "Completed", "PositionId": "POSITION_1"}
{"PK": "DOC001", "SK": "UNFUNDED_COMMITMENT#POSITION_1", "GSI2_PK": "POSITION_1", "GSI2_SK": "UNFUNDED_COMMITMENT#DOC001", "EntityType": "UnfundedCommitment", "Amount": 1500000, "PositionId": "POSITION_1"}
{"PK": "DOC002", "SK": "DOCUMENT#LATEST", "GSI_PK": "DOCUMENT#LATEST#DOC002", "GSI_SK": "METADATA", "EntityType": "Document", "Status": "Active"}
{"PK": "DOC002", "SK": "CAPITAL_CALL#POSITION_1", "GSI_PK": "CAPITAL_CALL#POSITION_1#DOC002", "GSI_SK": "LATEST", "GSI2_PK": "POSITION_1", "GSI2_SK": "CAPITAL_CALL#DOC002", "EntityType": "CapitalCall", "Amount": 750000, "Status": "Completed", "PositionId": "POSITION_1"}
"""

ASKED = """
Complete document overview
{ document(documentId: "DOC001") { status versions { nodes { day } } activity { amount } pastActivities { nodes { day amount } } calls { nodes { position { positionId } amount } } distributions { nodes { amount } } commitments { nodes { amount } } } }
{"document": {"status": "Active", "versions": {"nodes": [{"day": "2025-03-01"}, {"day": "2025-09-01"}]}, "activity": {"amount": "500000"}, "pastActivities": {"nodes": [{"day": "2025-08-15", "amount": "450000"}]}, "calls": {"nodes": [{"position": {"positionId": "POSITION_1"}, "amount": "500000"}, {"position": {"positionId": "POSITION_2"}, "amount": "300000"}]}, "distributions": {"nodes": [{"amount": "75000"}]}, "commitments": {"nodes": [{"amount": "1500000"}]}}}

Position-specific items within a document
{ document(documentId: "DOC001") { calls(positionId: {eq: "POSITION_1"}) { nodes { amount } } distributions(positionId: {eq: "POSITION_1"}) { nodes { amount } } commitments(positionId: {eq: "POSITION_1"}) { nodes { amount } } } }
{"document": {"calls": {"nodes": [{"amount": "500000"}]}, "distributions": {"nodes": [{"amount": "75000"}]}, "commitments": {"nodes": [{"amount": "1500000"}]}}}

All capital entities of a document
{ document(documentId: "DOC001") { activity { amount } pastActivities { nodes { amount } } calls { nodes { amount } } } }
{"document": {"activity": {"amount": "500000"}, "pastActivities": {"nodes": [{"amount": "450000"}]}, "calls": {"nodes": [{"amount": "500000"}, {"amount": "300000"}]}}}

The latest document
{ document(documentId: "DOC002") { status } }
{"document": {"status": "Active"}}

The latest version of a document, in the index
{ latestDocument(documentId: "DOC002") { status } }
{"latestDocument": {"status": "Active"}}

A position's capital calls in a document
{ callsIn(positionId: "POSITION_2", documentId: "DOC001") { nodes { amount document { status } } } }
{"callsIn": {"nodes": [{"amount": "300000", "document": {"status": "Active"}}]}}

All data of a position across documents
{ position(positionId: "POSITION_1") { calls { nodes { amount document { documentId } } } distributions { nodes { amount } } commitments { nodes { amount } } } }
{"position": {"calls": {"nodes": [{"amount": "500000", "document": {"documentId": "DOC001"}}, {"amount": "750000", "document": {"documentId": "DOC002"}}]}, "distributions": {"nodes": [{"amount": "75000"}]}, "commitments": {"nodes": [{"amount": "1500000"}]}}}

Historical documents between two dates
{ document(documentId: "DOC001") { versions(day: {from: "2025-01-01", to: "2025-06-30"}) { nodes { day status } } } }
{"document": {"versions": {"nodes": [{"day": "2025-03-01", "status": "Historical"}]}}}

Compare document versions
{ document(documentId: "DOC001") { status versions { nodes { status } } } }
{"document": {"status": "Active", "versions": {"nodes": [{"status": "Historical"}, {"status": "Historical"}]}}}

Find a specific entity type across documents
{ capitalCalls { nodes { amount } } }
No key holds a type alone: each key of an index also has a position or a document, to keep partitions small.
"""
