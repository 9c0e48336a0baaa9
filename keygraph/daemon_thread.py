"""Calls that wait for others, maybe for minutes, and that nobody can interrupt, such as looking up a name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

from keygraph.errors import without_frames

ResultT = TypeVar("ResultT")


def in_daemon_thread(function: Callable[..., ResultT], /, *arguments: object) -> asyncio.Future[ResultT]:
    """Returns what a function will return, which runs in a thread of its own.

    A process ends without this thread. It would wait for those of `asyncio.to_thread` and `loop.run_in_executor(None)`,
    and so would other calls there, of which there are only a few.
    """
    loop = asyncio.get_running_loop()
    returned: asyncio.Future[ResultT] = loop.create_future()

    def settle(set_: Callable[..., None], value: object) -> None:
        if not returned.done():
            set_(value)

    def run() -> None:
        settled: tuple[Callable[..., None], object]
        try:
            settled = returned.set_result, function(*arguments)
        except Exception as error:
            settled = returned.set_exception, without_frames(error)
        with suppress(RuntimeError):  # the loop may be closed by then
            loop.call_soon_threadsafe(settle, *settled)

    Thread(target=run, name="keygraph-call", daemon=True).start()
    return returned


class DaemonThreads(ThreadPoolExecutor):
    """The threads of an event loop in which libraries look up names: a process ends without them. Has none of its own."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **_: Any) -> Any:
        """Returns a future of asyncio, which the event loop takes too."""
        return in_daemon_thread(function, *arguments)
