"""What answers events in one process, one after another."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from typing import Generic, Self, TypeVar

from keygraph_server.logs import configure_logging
from keygraph_server.settings import Settings, read_settings

StartedT = TypeVar("StartedT")

_IN_LAMBDA = "AWS_LAMBDA_RUNTIME_API"


class EventHandler(ABC, Generic[StartedT]):
    """Starts once what answers all events.

    The event loop runs only while there is an event. In between, Lambda may freeze the process; connections to DynamoDB
    that have been idle for long are not used again.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._opened = AsyncExitStack()
        self._started: StartedT | None = None

    @classmethod
    def of_environment(cls) -> Self:
        """The handler; in Lambda it is already started, because imports run with more processor time."""
        made = cls()
        if _IN_LAMBDA in os.environ:
            made.start()
        return made

    def start(self) -> StartedT:
        """Returns what answers events, started by the first call and never stopped. Raises CommandError or ModelError."""
        if self._started is None:
            settings = read_settings()
            configure_logging(settings)
            self._started = self._runner.run(self._open(settings))
        return self._started

    @abstractmethod
    async def _open(self, settings: Settings) -> StartedT: ...

    def close(self) -> None:
        """Stops it. Lambda itself ends a process without calling this."""
        self._runner.run(self._opened.aclose())
        self._runner.close()
