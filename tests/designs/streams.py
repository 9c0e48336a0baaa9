"""Streams of events, with numbers as sort keys. From angzarr.io, DynamoDB as an event store."""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, Graph, Many, Table, node, record


@node("{domain}#{edition}#{root}", item=False)
class Stream:
    domain: ID
    edition: ID
    root: ID
    events: Many[Event]


@record("{stream}", "{sequence}")
class Event:
    stream: Stream
    sequence: int
    event_type: str
    payload: bytes
    correlation_id: str | None
    created_at: datetime


graph = Graph(Table("angzarr-events", partition_key="pk", sort_key=("sk", "N")), Stream, Event)

ITEMS = """
{"pk": "sales#main#7f3a", "sk": 0, "event_type": "Opened", "payload": "AQI=", "created_at": "2024-05-01T10:00:00Z"}
{"pk": "sales#main#7f3a", "sk": 1, "event_type": "Sold", "payload": "AwQ=", "correlation_id": "x9", "created_at": "2024-05-01T10:01:00Z"}
{"pk": "sales#test#7f3a", "sk": 0, "event_type": "Opened", "payload": "AQI=", "created_at": "2024-05-02T10:00:00Z"}
{"pk": "stock#main#91bc", "sk": 0, "event_type": "Counted", "payload": "BQ==", "created_at": "2024-05-03T10:00:00Z"}
"""

ASKED = """
Events after a number
{ stream(domain: "sales", edition: "main", root: "7f3a") { events(sequence: {from: 1}) { nodes { eventType payload } } } }
{"stream": {"events": {"nodes": [{"eventType": "Sold", "payload": "AwQ="}]}}}
"""
