"""Readings of devices with times as numbers, and alarms that are in an index while they are on. A usual design for devices."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from keygraph import ID, Graph, Index, Long, Many, Table, node, record, stored

alarms = Index("alarms", "alarmLevel", "at")


@node("site:{site_id}", item=False)
class Site:
    site_id: ID
    devices: Many[Device]


@node("{site}", "device:{device_id}")
class Device:
    site: Site
    device_id: ID
    model: str
    readings: Many[Reading]


@record("reading:{device.site.site_id}:{device.device_id}", "t:{taken}", alarms(lists="alarms_by_level"))
class Reading:
    device: Device = stored(in_key=True)
    taken: Long
    celsius: Decimal
    alarm_level: str | None
    at: datetime | None


graph = Graph(
    Table("Telemetry", partition_key="pk", sort_key="sk", indexes=[alarms]),
    Site,
    Device,
    Reading,
    attribute_case="camel",
)

ITEMS = """
{"pk": "site:bonn", "sk": "device:d1", "model": "T1"}
{"pk": "site:bonn", "sk": "device:d2", "model": "T2"}
{"pk": "site:kiel", "sk": "device:d3", "model": "T1"}
{"pk": "reading:bonn:d1", "sk": "t:1714521600000", "celsius": 21.5}
{"pk": "reading:bonn:d1", "sk": "t:1714521660000", "celsius": 80, "alarmLevel": "high", "at": "2024-05-01T00:01:00Z"}
{"pk": "reading:bonn:d2", "sk": "t:1714521600000", "celsius": 19}
"""

ASKED = """
The devices of a site with their readings
{ site(siteId: "bonn") { devices { nodes { model readings { nodes { celsius } } } } } alarmsByLevel(alarmLevel: "high") { nodes { at } } }
{"site": {"devices": {"nodes": [{"model": "T1", "readings": {"nodes": [{"celsius": "21.5"}, {"celsius": "80"}]}}, {"model": "T2", "readings": {"nodes": [{"celsius": "19"}]}}]}}, "alarmsByLevel": {"nodes": [{"at": "2024-05-01T00:01:00Z"}]}}
"""
