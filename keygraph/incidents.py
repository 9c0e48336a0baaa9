"""Incidents: events that may come thousands of times a minute are logged at first, then once a minute with a count."""

from __future__ import annotations

import asyncio
import logging

_REPORTED_SECONDS = 60.0


class Incident:
    """One kind of trouble. `count` is how often it has happened since the process started."""

    def __init__(self, log: logging.Logger) -> None:
        self.count = 0
        self._log = log
        self._message = ""
        self._told = 0
        """How many of them the log has reported."""
        self._reporting: asyncio.TimerHandle | None = None

    def happened(self, message: str) -> None:
        """Counts it, and logs the message, a sentence without its period, if the incident is new."""
        self.count += 1
        self._message = message
        if self._reporting is None:
            self._log.warning("%s", message)
            self._told = self.count
            self._report_later()

    def _report_later(self) -> None:
        self._reporting = asyncio.get_running_loop().call_later(_REPORTED_SECONDS, self._report)

    def _report(self) -> None:
        since, self._told = self.count - self._told, self.count
        self._reporting = None
        if since:
            self._log.warning("%s (%d more times within a minute)", self._message, since)
            self._report_later()
