"""The process that serves: what it runs on, and what it does once when it has started."""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import os
import signal

from uvicorn.protocols.http.auto import AutoHTTPProtocol

_log = logging.getLogger(__name__)

COLLECTED_AFTER = (50_000, 10, 10)
"""The thresholds of garbage collection, measured in `docs/performance.md`, "The server process"."""


def begin_serving() -> None:
    """What a process that serves does once, when it has opened all that it holds while it runs."""
    _end_with_parent()
    tune_collection()
    _log.info("Process %d serves on %s", os.getpid(), " and ".join(runs_on()))


def runs_on() -> tuple[str, str]:
    """The event loop that runs, and what parses HTTP: uvicorn takes uvloop and httptools where they are installed."""
    loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
    parser = "httptools" if AutoHTTPProtocol.__name__ == "HttpToolsProtocol" else "h11"
    return loop, parser


def tune_collection() -> None:
    """Keeps the garbage collector from what stays, which is all that there is now, and lets it run more rarely.

    An operation makes thousands of objects and drops them at its end; Python's own thresholds have the collector look
    through those that are still in use several times an operation, and through the models, the schema and the AWS SDK
    again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)


def _end_with_parent() -> None:
    """Ends a worker whose parent was killed, as if it had been terminated: else it would keep the port."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    loop, sentinel = asyncio.get_running_loop(), parent.sentinel

    def end() -> None:
        loop.remove_reader(sentinel)
        _log.warning("The process that started this one is gone: ending")
        signal.raise_signal(signal.SIGTERM)

    try:
        loop.add_reader(sentinel, end)
    except NotImplementedError:
        # Windows' loop has no readers; there, whoever starts a process ends it.
        return
