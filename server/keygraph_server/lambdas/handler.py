"""A Lambda handler: an application that is started once, and answers events one after another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keygraph_server.app import Application, create_app
from keygraph_server.lambdas.event_handler import EventHandler
from keygraph_server.lambdas.events import result_of
from keygraph_server.settings import Settings


class Handler(EventHandler[Application]):
    """Answers events with the application that the environment's settings describe."""

    async def _open(self, settings: Settings) -> Application:
        app = create_app(settings)
        await self._opened.enter_async_context(app.started())
        return app

    def __call__(self, event: Mapping[str, Any], context: object = None) -> dict[str, Any]:
        """The result for an event of a function URL or an HTTP API. Raises ValueError for another event."""
        return self._runner.run(result_of(self.start(), event))
