"""The service that answers operations, configured by the settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from keygraph.dynamo.store import Store
from keygraph.limits import LiveLimits
from keygraph_resolvers import GraphSchema, Limits, Service
from keygraph_server.settings import Settings
from keygraph_server.stores import configured_fan_out

if TYPE_CHECKING:
    from keygraph_resolvers.live import ChangeSource, LiveQueries


def configured_service(settings: Settings, schema: GraphSchema, store: Store) -> Service:
    secret = settings.secret.get_secret_value() if settings.secret else ""
    return Service(
        schema,
        store,
        secret=secret.encode(),
        limits=Limits(**{name: getattr(settings, name) for name in Limits.model_fields}),
        introspection=settings.introspection,
        shows_all=not settings.is_production,
        suggestions=settings.suggestions,
    )


_POLLED = {True: 0.05, False: 0.25}
"""How often the changes are read, in seconds: of the SQLite file, and of DynamoDB, which allows five reads a second."""
_SETTLES = 1.0
"""When a global index of DynamoDB has what the table has, in seconds. It is usually there within milliseconds."""


@asynccontextmanager
async def open_live_queries(
    settings: Settings, service: Service, written: Callable[[dict[str, Any]], Awaitable[bytes]]
) -> AsyncIterator[LiveQueries | None]:
    """The live operations of a service; None if they are off. `written` returns an answer in the form that is sent.

    Raises CommandError if the fan-out cannot be used as it is set.
    """
    if not settings.live:
        yield None
        return
    # Imported here, because few servers have subscriptions.
    from keygraph.changes.fan_out import PublishedChanges
    from keygraph.changes.stream import StreamReader
    from keygraph_resolvers.live import LiveQueries

    is_file = settings.sqlite_file is not None
    poll = _POLLED[is_file]
    async with AsyncExitStack() as opened:
        changes: ChangeSource = StreamReader(service.store)
        if settings.fan_out is not None:
            client = await opened.enter_async_context(configured_fan_out(settings.fan_out))
            # A read waits for changes itself.
            changes, poll = PublishedChanges(client, service.store.table), 0.0
        live = LiveQueries(
            service,
            changes,
            written,
            limits=LiveLimits(**{name: getattr(settings, name) for name in LiveLimits.model_fields}),
            leeway=settings.jwt_leeway,
            poll=poll,
            settle=0.0 if is_file else _SETTLES,
        )
        try:
            yield live
        finally:
            live.close()
