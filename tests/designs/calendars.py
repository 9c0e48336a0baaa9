"""Calendars with appointments, and who is invited to them. A usual design for calendars, with slashes."""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, Graph, Index, Many, Table, edge, node

agenda = Index("agenda", "attendee", "starts")


@node("person/{person_id}", "-")
class Person:
    person_id: ID
    email: str
    agenda: Many[Invite]


@node("event/{event_id}", "-")
class Event:
    event_id: ID
    title: str
    ends: datetime
    invites: Many[Invite]


@edge("{event}", "{person}", agenda("{person}"))
class Invite:
    event: Event
    person: Person
    starts: datetime
    answer: str | None


graph = Graph(Table("calendar", partition_key="pk", sort_key="sk", indexes=[agenda]), Person, Event, Invite)

ITEMS = """
{"pk": "person/ada", "sk": "-", "email": "ada@x.org"}
{"pk": "person/ben", "sk": "-", "email": "ben@x.org"}
{"pk": "event/e1", "sk": "-", "title": "Plan", "ends": "2024-05-01T11:00:00Z"}
{"pk": "event/e2", "sk": "-", "title": "Lunch", "ends": "2024-05-01T13:00:00Z"}
{"pk": "event/e1", "sk": "person/ada", "attendee": "person/ada", "starts": "2024-05-01T10:00:00Z", "answer": "yes"}
{"pk": "event/e1", "sk": "person/ben", "attendee": "person/ben", "starts": "2024-05-01T10:00:00Z"}
{"pk": "event/e2", "sk": "person/ada", "attendee": "person/ada", "starts": "2024-05-01T12:00:00Z"}
"""

ASKED = """
A day of a person
{ person(personId: "ada") { agenda(starts: {from: "2024-05-01T11:00:00Z"}) { nodes { title } } } event(eventId: "e1") { invites { edges { answer node { email } } } } }
{"person": {"agenda": {"nodes": [{"title": "Lunch"}]}}, "event": {"invites": {"edges": [{"answer": "yes", "node": {"email": "ada@x.org"}}, {"answer": null, "node": {"email": "ben@x.org"}}]}}}
"""
