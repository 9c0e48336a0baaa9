"""The service that answers operations, configured by the settings."""

from __future__ import annotations

import sys

from keygraph.dynamo.store import Store
from keygraph_resolvers import DocumentLimits, GraphSchema, Service
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
        document_limits=document_limits(settings),
        kept_bytes=settings.document_cache_bytes,
        where_terms=settings.max_where_terms,
        work_seconds=settings.operation_work,
        timeout=settings.operation_timeout,
        introspection=settings.introspection,
        shows_all=not settings.is_production,
        suggestions=settings.suggestions,
    )


def document_limits(settings: Settings) -> DocumentLimits:
    """How large a document may be."""
    return DocumentLimits(
        characters=settings.max_document_characters,
        tokens=settings.max_tokens,
        depth=settings.depth_limit or sys.maxsize,
        aliases=settings.max_aliases,
        aliases_in_all=settings.max_aliases_in_all,
        root_fields=settings.max_root_fields,
        fields=settings.max_fields,
        variable_values=settings.max_variable_values,
    )
