"""Events of aggregates in order, with a snapshot and the current number. From singletable.dev, event sourcing."""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, JSON, Graph, Index, Many, One, Table, node, one, record

by_type = Index("GSI1", "GSI1PK", "GSI1SK")


@node("AGGREGATE#{kind}#{aggregate_id}", "META")
class Aggregate:
    kind: ID
    aggregate_id: ID
    version: int
    events: Many[Event]
    snapshot: One[Snapshot] = one()


@record(
    "{aggregate}",
    "EVENT#{number:010d}",
    by_type("EVENTTYPE#{event_type}", "{occurred_at}", lists="events_of_type"),
)
class Event:
    aggregate: Aggregate
    number: int
    event_type: str
    occurred_at: datetime
    payload: JSON


@record("{aggregate}", "SNAPSHOT")
class Snapshot:
    aggregate: Aggregate
    at_version: int
    state: JSON


graph = Graph(
    Table("EventStore", partition_key="PK", sort_key="SK", indexes=[by_type]),
    Aggregate,
    Event,
    Snapshot,
    attribute_case="camel",
)

ITEMS = """
{"PK": "AGGREGATE#order#17", "SK": "META", "version": 2}
{"PK": "AGGREGATE#order#17", "SK": "SNAPSHOT", "atVersion": 1, "state": {"lines": 1}}
{"PK": "AGGREGATE#order#17", "SK": "EVENT#0000000001", "GSI1PK": "EVENTTYPE#OrderPlaced", "GSI1SK": "2024-05-01T10:00:00Z", "eventType": "OrderPlaced", "occurredAt": "2024-05-01T10:00:00Z", "payload": {"total": 5}}
{"PK": "AGGREGATE#order#17", "SK": "EVENT#0000000002", "GSI1PK": "EVENTTYPE#OrderPaid", "GSI1SK": "2024-05-01T10:05:00Z", "eventType": "OrderPaid", "occurredAt": "2024-05-01T10:05:00Z", "payload": {}}
{"PK": "AGGREGATE#cart#c1", "SK": "META", "version": 1}
{"PK": "AGGREGATE#cart#c1", "SK": "EVENT#0000000001", "GSI1PK": "EVENTTYPE#CartOpened", "GSI1SK": "2024-05-01T09:00:00Z", "eventType": "CartOpened", "occurredAt": "2024-05-01T09:00:00Z", "payload": {}}
"""

ASKED = """
Replay from a number
{ aggregate(kind: "order", aggregateId: "17") { version events(number: {from: 2}) { nodes { eventType } } } }
{"aggregate": {"version": 2, "events": {"nodes": [{"eventType": "OrderPaid"}]}}}

Events of a type
{ eventsOfType(eventType: "OrderPlaced") { nodes { aggregate { kind aggregateId } } } }
{"eventsOfType": {"nodes": [{"aggregate": {"kind": "order", "aggregateId": "17"}}]}}
"""
