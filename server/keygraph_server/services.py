"""The service that answers operations, configured by the settings."""

from __future__ import annotations

from keygraph.dynamo.store import Store
from keygraph_resolvers import GraphSchema, Service
from keygraph_server.settings import Settings


def configured_service(settings: Settings, schema: GraphSchema, store: Store) -> Service:
    """A service for the schema and the store."""
    secret = settings.secret.get_secret_value() if settings.secret else ""
    return Service(
        schema,
        store,
        secret=secret.encode(),
        max_page_size=settings.max_page_size,
        max_ids=settings.max_ids,
        read_budget=settings.read_budget,
        count_pages=settings.count_pages,
        concurrency=settings.concurrency,
        answer_bytes=settings.answer_limit,
        max_running=settings.max_running,
        max_waiting=settings.max_waiting,
        cost_limit=settings.cost_limit or None,
        depth_limit=settings.depth_limit or None,
        introspection=settings.introspection,
    )
