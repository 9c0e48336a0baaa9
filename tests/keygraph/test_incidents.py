"""Incidents: each is told when it begins, and then once in a while with its count."""

from __future__ import annotations

import logging

import pytest

from keygraph.incidents import Incident

_log = logging.getLogger("keygraph.test")


async def test_a_line_when_it_begins_and_one_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    incident = Incident(_log)
    for _ in range(500):
        incident.happened("It fails")
    incident._report()
    incident.happened("It fails again")
    incident._report()
    incident._report()  # nothing has happened since
    incident.happened("It fails anew")
    assert [record.getMessage() for record in caplog.records] == [
        "It fails",
        "It fails (499 more times within a minute)",
        "It fails again (1 more times within a minute)",
        "It fails anew",
    ]
    assert incident.count == 502
