"""The service that answers operations, configured by the settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from keygraph.dynamo.store import Store
from keygraph.limits import LiveLimits
from keygraph_resolvers import GraphSchema, Limits, Service
from keygraph_server.settings import Settings

if TYPE_CHECKING:
    from keygraph_resolvers.live import LiveQueries


def configured_service(settings: Settings, schema: GraphSchema, store: Store) -> Service:
    """A service for the schema and the store."""
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


def configured_live_queries(
    settings: Settings, service: Service, written: Callable[[dict[str, Any]], Awaitable[bytes]]
) -> LiveQueries:
    """The live operations of a service. `written` returns an answer in the form that is sent."""
    # Imported here, because few servers have subscriptions.
    from keygraph.changes.stream import StreamReader
    from keygraph_resolvers.live import LiveQueries

    is_file = settings.sqlite_file is not None
    return LiveQueries(
        service,
        StreamReader(service.store),
        written,
        limits=LiveLimits(**{name: getattr(settings, name) for name in LiveLimits.model_fields}),
        leeway=settings.jwt_leeway,
        poll=_POLLED[is_file],
        settle=0.0 if is_file else _SETTLES,
    )
