"""Keys that hold the same under other names, and times in keys that are numbers."""

from __future__ import annotations

from datetime import date, datetime

from keygraph import ID, Epoch, Graph, Index, Many, Table, many, node, record
from tests.conftest import MakeStore
from tests.resolvers.worlds import world

by_time = Index("by-time", "TimePK", ("TimeSK", "N"))


@node("LIFT#{number}", "STATIC")
class Lift:
    number: ID
    rides: Many[Ride] = many(index=by_time)


@record("LIFT#{lift_number}", "DATE#{day}")
class LiftDay:
    lift_number: ID
    day: date


@record("{lift}", "RIDE#{ride_id}", by_time("{lift}", "{at:sec}"))
class Ride:
    lift: Lift
    ride_id: ID
    at: datetime


graph = Graph(
    Table("Lifts", partition_key="PK", sort_key="SK", indexes=[by_time]),
    Lift,
    LiftDay,
    Ride,
    lists={"all_of_lift": many(Lift | LiftDay, index=None)},
    formats={"sec": Epoch()},
)


async def test_types_share_a_partition_whatever_they_call_its_fields(make_store: MakeStore) -> None:
    made = world(graph.check(), await make_store(graph.table))
    await made.put(
        {"PK": "LIFT#1", "SK": "STATIC"},
        {"PK": "LIFT#1", "SK": "DATE#2024-01-01"},
        {"PK": "LIFT#2", "SK": "DATE#2024-01-02"},
    )
    document = """{ allOfLift(number: "1") { totalCount nodes { ... on Lift { number } ... on LiftDay { day } } } }"""
    assert (await made.ask(document))["allOfLift"] == {
        "totalCount": 2,
        "nodes": [{"day": "2024-01-01"}, {"number": "1"}],
    }
