"""A server process: its event loop, and its setup at the start."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from keygraph_resolvers import Service
from keygraph_server.processes.collection import tune_collection
from keygraph_server.processes.parent import when_parent_ends
from keygraph_server.uvicorn_internals import AutoHTTPProtocol

_log = logging.getLogger(__name__)

_FILES_ON_WINDOWS = 8_192
_MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD of glibc's malloc.h. Other C libraries have no `mallopt`, or ignore it."""
_THREADS_SECONDS = 0.0005
"""How long a thread runs while the event loop waits: several times per request. Python's default is 5 ms."""


def begin_serving(service: Service) -> None:
    """Sets up a server process after it has opened everything that it keeps while it runs."""
    _end_with_parent()
    tune_collection(service.makes_much)
    return_large_blocks()
    sys.setswitchinterval(_THREADS_SECONDS)
    _log.info("Process %d serves on %s", os.getpid(), " and ".join(runs_on()))


@contextmanager
def signals_handled(handlers: Mapping[signal.Signals, Any]) -> Iterator[None]:
    """Sets handlers of signals, and at the end those that were set before."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def terminals() -> list[int]:
    """The standard streams that are terminals. A terminal that has hung up is none."""
    return [number for number in range(3) if os.isatty(number)]


def runs_on() -> tuple[str, str]:
    """The names of the event loop and the HTTP parser. uvicorn uses uvloop and httptools if they are installed."""
    loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
    parser = "httptools" if AutoHTTPProtocol.__name__ == "HttpToolsProtocol" else "h11"
    return loop, parser


def allow_open_files(wanted: int) -> int:
    """Asks the system for this many open files and connections. Returns how many it allows: fewer, or even more."""
    if sys.platform == "win32":
        return _FILES_ON_WINDOWS
    import resource

    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY or allowed >= wanted:
        return wanted
    if most == resource.RLIM_INFINITY or most > wanted:
        most = wanted
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def return_large_blocks() -> None:
    """Makes glibc return blocks above 256 KB to the system as soon as they are free.

    By default it raises this limit to 32 MB as such blocks come and go, and gaps between the remaining blocks stay with
    the process: 230 MB after 64 large answers that were not read.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 256 * 1024)


def _end_with_parent() -> None:
    """Ends a worker with its parent. Otherwise it would keep the port."""
    if multiprocessing.parent_process() is not None and sys.platform != "win32":
        # The parent decides what a SIGHUP to all of them means.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def end() -> None:
        _log.warning("The parent process is gone: stopping")
        os.kill(os.getpid(), signal.SIGTERM)

    when_parent_ends(end)
