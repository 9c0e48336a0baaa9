"""Complaints, their communications and the agents they are escalated to: ids without prefixes, indexes on attributes.

From the schema examples of AWS (aws-dynamodb-examples, complaint management).
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum

from keygraph import ID, Format, Graph, Index, Many, Table, node, record, stored

customers = Index("Customer_Complaint_GSI", "customer_id", "complaint_id")
escalations = Index("Escalations_GSI", "escalated_to", "escalation_time")
comments = Index("Agents_Comments_GSI", "agentID", "comm_date")


class State(Enum):
    WAITING = "waiting"
    ASSIGNED = "assigned"
    INVESTIGATING = "investigating"
    RESOLVED = "resolved"


@node("{customer_id}", item=False)
class Customer:
    customer_id: ID
    complaints: Many[Complaint]


@node("{agent_id}", item=False)
class Agent:
    agent_id: ID
    escalated: Many[Complaint]
    communications: Many[Communication]


@node("{complaint_id}", "metadata")
class Complaint:
    complaint_id: ID
    customer: Customer
    severity: str
    current_state: State
    creation_time: datetime
    escalated_to: Agent | None = stored("escalated_to")
    escalation_time: datetime | None
    communications: Many[Communication]


@record("{complaint}", "comm#{comm_date}#{comm_id}")
class Communication:
    complaint: Complaint
    comm_id: ID
    comm_date: datetime
    complaint_state: State
    comm_text: str
    agent: Agent | None = stored("agentID")


graph = Graph(
    Table(
        "Complaint_management_system",
        partition_key="PK",
        sort_key="SK",
        indexes=[customers, escalations, comments],
    ),
    Customer,
    Agent,
    Complaint,
    Communication,
    formats={
        datetime: Format(
            lambda at: at.strftime("%Y-%m-%dT%H:%M:%S"),
            lambda text: datetime.strptime(text + "Z", "%Y-%m-%dT%H:%M:%S%z"),
            ordered=True,
            pattern=r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d",
        )
    },
)

ITEMS = """
{"PK": "Complaint123", "SK": "metadata", "customer_id": "custABC", "complaint_id": "Complaint123", "current_state": "resolved", "creation_time": "2023-04-30T12:00:00", "severity": "P2"}
{"PK": "Complaint1444", "SK": "metadata", "customer_id": "custXYZ", "complaint_id": "Complaint1444", "current_state": "assigned", "creation_time": "2022-12-31T19:39:57", "severity": "P1", "escalated_to": "AgentB", "escalation_time": "2023-01-03T04:00:07"}
{"PK": "Complaint1321", "SK": "metadata", "customer_id": "custXYZ", "complaint_id": "Complaint1321", "current_state": "investigating", "creation_time": "2023-05-10T15:58:00", "severity": "P2", "escalated_to": "AgentB", "escalation_time": "2023-05-15T14:00:00"}
{"PK": "Complaint123", "SK": "comm#2023-04-30T12:00:24#comm1", "comm_id": "comm1", "comm_date": "2023-04-30T12:00:24", "complaint_state": "investigating", "comm_text": "We look into it.", "agentID": "AgentA"}
{"PK": "Complaint123", "SK": "comm#2023-04-30T12:35:54#comm2", "comm_id": "comm2", "comm_date": "2023-04-30T12:35:54", "complaint_state": "resolved", "comm_text": "Repaired.", "agentID": "AgentA"}
{"PK": "Complaint1444", "SK": "comm#2022-12-31T19:32:00#comm4", "comm_id": "comm4", "comm_date": "2022-12-31T19:32:00", "complaint_state": "waiting", "comm_text": "It broke."}
"""

ASKED = """
Get complaint metadata
{ complaint(complaintId: "Complaint1444") { severity currentState creationTime customer { customerId } } }
{"complaint": {"severity": "P1", "currentState": "ASSIGNED", "creationTime": "2022-12-31T19:39:57Z", "customer": {"customerId": "custXYZ"}}}

Get all communications for a complaint
{ complaint(complaintId: "Complaint123") { communications { nodes { commId agent { agentId } } } } }
{"complaint": {"communications": {"nodes": [{"commId": "comm1", "agent": {"agentId": "AgentA"}}, {"commId": "comm2", "agent": {"agentId": "AgentA"}}]}}}

Get all complaints for a customer
{ customer(customerId: "custXYZ") { complaints { nodes { complaintId severity } } } }
{"customer": {"complaints": {"nodes": [{"complaintId": "Complaint1321", "severity": "P2"}, {"complaintId": "Complaint1444", "severity": "P1"}]}}}

Find complaints escalated to an agent
{ agent(agentId: "AgentB") { escalated(escalationTime: {from: "2023-02-01T00:00:00Z"}) { nodes { complaintId escalationTime } } } }
{"agent": {"escalated": {"nodes": [{"complaintId": "Complaint1321", "escalationTime": "2023-05-15T14:00:00Z"}]}}}

View agent's communication history
{ agent(agentId: "AgentA") { communications(direction: DESC, commDate: {to: "2023-04-30T12:35:54Z"}) { nodes { commText complaint { complaintId } } } } }
{"agent": {"communications": {"nodes": [{"commText": "Repaired.", "complaint": {"complaintId": "Complaint123"}}, {"commText": "We look into it.", "complaint": {"complaintId": "Complaint123"}}]}}}

Track complaint state changes
{ complaint(complaintId: "Complaint123") { communications(where: {complaintState: {eq: RESOLVED}}) { nodes { commDate } } } }
{"complaint": {"communications": {"nodes": [{"commDate": "2023-04-30T12:35:54Z"}]}}}

Find complaints by severity and state
{ complaints(where: {severity: {eq: "P1"}}) { nodes { complaintId } } }
No key holds the severity or the state, and the design itself scans the table.
"""
