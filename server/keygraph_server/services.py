"""The service that answers operations, configured by the settings."""

from __future__ import annotations

from keygraph.dynamo.store import Store
from keygraph_resolvers import GraphSchema, Limits, Service
from keygraph_server.settings import Settings


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
