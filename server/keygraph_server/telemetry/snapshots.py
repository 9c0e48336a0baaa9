"""The counts of each server process, as a file that it writes every second into a shared folder.

The process of `keygraph serve` reads the files and serves them (`exposition`): one port has the counts of all workers,
even while one of them is busy. A worker that ends deletes its file.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from keygraph_server.telemetry.metrics import Metrics

_log = logging.getLogger(__name__)

FOLDER_VARIABLE = "KEYGRAPH_SNAPSHOT_FOLDER"
"""Passes the folder to workers. It is not a setting: `keygraph serve` makes a folder for itself."""
_SECONDS = 1.0
_LAG_SECONDS = 0.1
"""How often the lag of the event loop is measured."""
_LOST_SECONDS = 60.0
"""A process that has not written for this long is gone: one that hangs is replaced earlier."""


class Snapshots:
    """Writes the snapshots of this process while it is entered, and measures the lag of its event loop."""

    def __init__(self, folder: Path, metrics: Metrics, hot: Callable[[], Any]) -> None:
        """`hot` returns the data for `keygraph hot`."""
        self._file = folder / f"{os.getpid()}.json"
        self._metrics = metrics
        self._hot = hot

    async def __aenter__(self) -> None:
        with suppress(OSError):  # a full disk
            self._write()
        self._running = asyncio.create_task(self._run())

    async def __aexit__(self, *_: object) -> None:
        self._running.cancel()
        self._file.unlink(missing_ok=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        written = loop.time()
        while True:
            planned = loop.time() + _LAG_SECONDS
            await asyncio.sleep(_LAG_SECONDS)
            self._metrics.lag.observe(max(0.0, loop.time() - planned))
            if loop.time() - written >= _SECONDS:
                written = loop.time()
                try:
                    with suppress(OSError):  # the next second may bring it back
                        self._write()
                except Exception:
                    _log.exception("The counts of this process cannot be reported")
                    return

    def _write(self) -> None:
        snapshot = {
            "worker": str(os.getpid()),
            "time": time.time(),
            "families": self._metrics.families(),
            "hot": self._hot(),
        }
        written = self._file.with_suffix(".new")
        written.write_bytes(orjson.dumps(snapshot))
        written.replace(self._file)


def read_snapshots(folder: Path) -> Iterator[dict[str, Any]]:
    """The latest snapshot of each running process."""
    for file in sorted(folder.glob("*.json")):
        try:
            snapshot: dict[str, Any] = orjson.loads(file.read_bytes())
        except (FileNotFoundError, orjson.JSONDecodeError):
            continue
        if time.time() - snapshot["time"] > _LOST_SECONDS:
            file.unlink(missing_ok=True)
        else:
            yield snapshot
