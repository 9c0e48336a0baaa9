"""A Lambda handler: an application that is started once, and answers events one after another."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from keygraph_server.app import Application, create_app
from keygraph_server.lambdas.events import result_of
from keygraph_server.logs import configure_logging
from keygraph_server.settings import read_settings

IN_LAMBDA = "AWS_LAMBDA_RUNTIME_API"


class Handler:
    """Answers events with the application that the environment's settings describe.

    The event loop runs only while there is an event. In between, Lambda may freeze the process; connections to DynamoDB
    that have been idle for long are not used again.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._app: Application | None = None

    @classmethod
    def of_environment(cls) -> Handler:
        """The handler; in Lambda it is already started, because imports run with more processor time."""
        made = cls()
        if IN_LAMBDA in os.environ:
            made.start()
        return made

    def start(self) -> Application:
        """Returns the application, started by the first call and never stopped. Raises CommandError or ModelError."""
        if self._app is None:
            settings = read_settings()
            configure_logging(settings)
            self._app = create_app(settings)
            self._lifespan = self._app.started()
            self._runner.run(self._lifespan.__aenter__())
        return self._app

    def __call__(self, event: Mapping[str, Any], context: object = None) -> dict[str, Any]:
        """The result for an event of a function URL or an HTTP API. Raises ValueError for another event."""
        return self._runner.run(result_of(self.start(), event))

    def close(self) -> None:
        """Stops the application. Lambda itself ends a process without calling this."""
        if self._app is not None:
            self._runner.run(self._lifespan.__aexit__(None, None, None))
        self._runner.close()
