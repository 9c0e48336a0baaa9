"""Shards that begin at 1, or have names: everything that numbered ones from 0 can do.

A table of sensors: their own items over three numbered shards, their readings over named regions in the table and over
padded numbers in an index, and the alarms between two sensors.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from keygraph import ID, Graph, Index, Many, Table, edge, many, node, record
from keygraph.dynamo.items import Item
from tests.conftest import in_one_world
from tests.resolvers.worlds import World, filled
from tests.server.command_line import run
from tests.verified import verified

by_day = Index("by-day", "DayPK", "DaySK")
by_value = Index("by-value", ("Bucket", "N"), ("rank", "N"))

REGIONS = ["eu-west", "eu", "us"]


@node("SENSOR#{shard}", "SENSOR#{sensor_id}", shards=range(1, 4), lists="sensors")
class Sensor:
    sensor_id: ID
    place: str | None
    readings: Many[Reading] = many(index=None)
    alarms: Many[Alarm] = many(at="cause")


@record(
    "READINGS#{sensor.sensor_id}#{shard}",
    "{day}",
    by_day("DAY#{shard:02d}", "{day}", shards=range(9, 12), lists="days"),
    by_value("{shard}", "{rank}", shards=range(1, 3), lists="values"),
    shards=REGIONS,
)
class Reading:
    sensor: Sensor
    day: date
    value: int
    rank: int


@edge("ALARM#{cause.sensor_id}@{shard}", "{heard.sensor_id}", shards=("a", "b"))
class Alarm:
    cause: Sensor
    heard: Sensor
    level: int


TABLE = Table("Sensors", partition_key="PK", sort_key="SK", indexes=[by_day, by_value])
graph = Graph(TABLE, Sensor, Reading, Alarm)


def reading(sensor: str, shard: str, day: int, number: str) -> Item:
    at = f"2024-01-{day:02d}"
    return {
        "PK": f"READINGS#{sensor}#{shard}",
        "SK": at,
        "value": Decimal(1),
        "DayPK": f"DAY#{number}",
        "DaySK": at,
        "Bucket": Decimal(1 + day % 2),
        "rank": Decimal(10 - day),
    }


ITEMS: list[Item] = [
    {"PK": "SENSOR#1", "SK": "SENSOR#x"},
    {"PK": "SENSOR#3", "SK": "SENSOR#y", "place": "roof"},
    reading("x", "eu-west", 1, "09"),
    reading("x", "us", 2, "10"),
    reading("x", "eu", 3, "11"),
    reading("x", "us", 4, "10"),
    reading("y", "us", 5, "09"),
    {"PK": "ALARM#x@b", "SK": "y", "level": Decimal(7)},
]

sensors = filled(graph, ITEMS)


@in_one_world(
    ("query", "wanted"),
    [
        # A node is looked for in shards 1 to 3.
        ('{ sensor(sensorId: "y") { place } }', {"sensor": {"place": "roof"}}),
        ("{ sensors { totalCount nodes { sensorId } } }", {"sensors": {"totalCount": 2, "nodes": [{"sensorId": "x"}, {"sensorId": "y"}]}}),
        # The number of a shard is the whole key.
        ("{ values(rank: {to: 8}) { totalCount nodes { rank } } }",
            {"values": {"totalCount": 4, "nodes": [{"rank": rank} for rank in (5, 6, 7, 8)]}}),
        # Named ones are merged by day, in both directions, with a range, a filter and a count.
        (
            '{ sensor(sensorId: "x") { readings(day: {from: "2024-01-02"}, direction: DESC, where: {value: {eq: 1}}) '
            "{ totalCount nodes { day } } } }",
            {"sensor": {"readings": {"totalCount": 3, "nodes": [{"day": f"2024-01-0{day}"} for day in (4, 3, 2)]}}},
        ),
        ("{ days { nodes { day sensor { sensorId } } } }",
            {"days": {"nodes": [{"day": f"2024-01-0{day}", "sensor": {"sensorId": "y" if day == 5 else "x"}} for day in range(1, 6)]}},
        ),
        ('{ sensor(sensorId: "x") { alarms { edges { level node { place } } } } }',
            {"sensor": {"alarms": {"edges": [{"level": 7, "node": {"place": "roof"}}]}}},
        ),
    ],
)  # fmt: skip
async def test_what_is_read(sensors: World, query: str, wanted: dict[str, Any]) -> None:
    assert await sensors.ask(query) == wanted


async def test_to(sensors: World) -> None:
    found = await sensors.ask("{ sensors { nodes { sensorId id } } }")
    ids = {each["sensorId"]: each["id"] for each in found["sensors"]["nodes"]}
    query = 'query($to: [ID!]) { sensor(sensorId: "x") { alarms(to: $to) { edges { level } } } }'
    assert await sensors.ask(query, to=[ids["y"]]) == {"sensor": {"alarms": {"edges": [{"level": 7}]}}}
    assert await sensors.ask(query, to=[ids["x"]]) == {"sensor": {"alarms": {"edges": []}}}


async def test_writes(sensors: World) -> None:
    days = [f"2024-02-{day:02d}" for day in range(1, 10)]
    for day in days:
        given = f'sensorId: "y", day: "{day}", value: 1, rank: 1'
        await sensors.ask(f"mutation {{ putReading(input: {{{given}}}) {{ reading {{ day }} }} }}")
    await sensors.ask(
        'mutation { updateSensor(input: {sensorId: "y", place: "attic"}) { sensor { place } } }'
    )
    query = '{ sensor(sensorId: "y") { place readings(day: {from: "2024-02-01"}) { nodes { day } } } }'
    nodes = [{"day": day} for day in days]
    assert await sensors.ask(query) == {"sensor": {"place": "attic", "readings": {"nodes": nodes}}}
    query = '{ days(day: {from: "2024-02-01"}) { nodes { day } } values(rank: {to: 1}) { totalCount } }'
    assert await sensors.ask(query) == {"days": {"nodes": nodes}, "values": {"totalCount": 9}}


async def test_verify(sensors: World) -> None:
    await sensors.put(
        {"PK": "SENSOR#0", "SK": "SENSOR#lost"},
        reading("x", "mars", 6, "09"),
        reading("y", "eu", 7, "12"),
    )
    report = await verified(graph, sensors.tracer.store)
    found = {(kind.problem, kind.type, kind.what) for kind, _ in report.ordered()}
    assert found == {
        ("key", "Sensor", "PK has a shard outside 1 to 3"),
        ("key", "Reading", "by-day: DayPK has a shard outside 9 to 11"),
        (
            "unknown",
            None,
            "its key fits none of the templates: PK does not fit READINGS#{sensor.sensor_id}#{shard} of Reading "
            "(no shard stands for {shard})",
        ),
    }


def test_describe() -> None:
    shown = run("describe", "--model", "tests.features.test_shards:graph").stdout
    assert "SK = SENSOR#{sensor_id}, shard 1 to 3" in shown
    assert "Query × 3 shards: PK = READINGS#{sensor_id}#{shard}" in shown
