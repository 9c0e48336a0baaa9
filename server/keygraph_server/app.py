"""The application: its routes, its middleware, and its state."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from keygraph.admission import Admission
from keygraph.kept import kept_bytes
from keygraph_resolvers import Service
from keygraph_resolvers.read.meter import Memory
from keygraph_server.auth import configured_viewers
from keygraph_server.connections import STOPS
from keygraph_server.cursor_secret import with_secret
from keygraph_server.documents.known import KnownDocuments
from keygraph_server.documents.manifest import read_documents
from keygraph_server.errors import CommandError, SettingsError, expected_message
from keygraph_server.http.compression import CompressedFiles
from keygraph_server.http.graphql_http import ContextOf, EndpointOptions, GraphQLEndpoint, ViewerOf
from keygraph_server.http.middleware import GRAPHQL_METHODS, GRAPHQL_PATH, AroundEndpoints
from keygraph_server.http.origins import Origins
from keygraph_server.http.readiness import Readiness
from keygraph_server.logs import configure_logging
from keygraph_server.models import Model, configured_model, printed
from keygraph_server.playground import PageSettings, data_routes, playground_routes
from keygraph_server.playground.examples import examples_of
from keygraph_server.prices import prices_in_use
from keygraph_server.processes.streams import queue_streams
from keygraph_server.services import configured_service, open_live_queries
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import open_configured_store
from keygraph_server.telemetry.process import Telemetry

_log = logging.getLogger(__name__)


SERVED_FILE = "_KEYGRAPH_SERVED_FILE"
"""The variable with the identity of the SQLite file, for workers: each must open the same."""


class Application(Starlette):
    """A server as an ASGI application, which another application may mount."""

    def build_middleware_stack(self) -> ASGIApp:
        """Returns the layers without the first: AroundEndpoints answers all errors."""
        first = super().build_middleware_stack()
        return first.app if isinstance(first, ServerErrorMiddleware) else first

    @asynccontextmanager
    async def started(self, parent: object = None) -> AsyncIterator[None]:
        """Starts a mounted application, which its host does not start: `FastAPI(lifespan=app.started)`."""
        async with self.router.lifespan_context(self):
            yield


class _NotStarted:
    """The service of an application that was not started."""

    memory = Memory(1)

    async def execute(self, *_: object, **__: object) -> NoReturn:
        problem = "Keygraph has not been started: give the application that mounts it lifespan=app.started"
        raise RuntimeError(problem)


def create_app(
    settings: Settings,
    when_started: Callable[[Service], None] | None = None,
    *,
    model: Model | None = None,
    viewer: ViewerOf | None = None,
    context: ContextOf | None = None,
) -> Application:
    """The application that serves the model from the store, both named by the settings.

    While it runs, its `state` has the `store` and the GraphQL `service`. `when_started` is called with
    the service when they are open. `model` is the one that the settings name, if it is loaded already. `viewer` replaces
    KEYGRAPH_AUTH: it takes the request and returns the viewer's claims. `context` takes the request and the claims, and
    returns the `info.context` of your own resolvers. Both may be async. Raises CommandError or ModelError for unusable
    settings.
    """
    if model is None:
        model = configured_model(settings)
    if not model.graph.has_access_rules:
        problem = (
            "The model has no access rules: everybody who reaches the server may read and write everything"
        )
        if (
            settings.is_production
            and settings.sqlite_file is None
            and "auth" not in settings.model_fields_set
        ):
            fix = "Declare some (docs/access.md), or say with KEYGRAPH_AUTH=none that this is meant"
            raise SettingsError(problem, fix)
        _log.log(logging.WARNING if settings.is_production else logging.INFO, problem)
    settings = with_secret(settings)
    telemetry = Telemetry(settings, model.graph.table)
    table = model.graph.table.name
    origins = Origins.of(settings.cors_origins)
    documents = known_documents(settings)
    compressed = [Middleware(CompressedFiles, settings.compress_above)]
    viewer = viewer or configured_viewers(settings)
    options = EndpointOptions(
        documents=documents,
        viewer_of=viewer,
        context_of=context,
        origins=origins,
        cache_control=settings.cache_control,
        limits=settings,
        compress_above=settings.compress_above,
        cost_details=settings.cost_details,
        endpoint_names=settings.endpoint_names,
        outage_ok=settings.outage_ok,
        observer=telemetry if telemetry.is_needed else None,
        tokens_in_messages=viewer is not None and settings.auth != "header",
        streams=Admission(max(1, settings.max_connections // 2), 0),
    )
    endpoint = GraphQLEndpoint(options)
    routes: list[BaseRoute] = [
        Route(GRAPHQL_PATH, endpoint, methods=GRAPHQL_METHODS),
        Route("/healthz", answer_alive),
        Route("/readyz", ready_endpoint(settings)),
    ]
    if settings.schema_file:
        routes.append(Route("/schema.graphql", schema_endpoint(model), middleware=compressed))
    if settings.playground:
        # The rules do not apply to raw items, so they are not for clients that the rules tell apart.
        shows_items = settings.playground_items and viewer is None
        page = PageSettings(
            table,
            model.name,
            partial(examples_of, model),
            asks_for_token=settings.auth == "jwt",
            shows_items=shows_items,
            is_live=settings.live,
            prices=prices_in_use(settings.prices),
        )
        routes += playground_routes(page, middleware=compressed)
        routes += data_routes(model, shows_items=shows_items)
    app = Application(
        routes=routes,
        middleware=[
            Middleware(
                AroundEndpoints,
                origins,
                settings.max_body_bytes,
                https_only=settings.is_production,
                graphql=endpoint,
                sockets=options,
            )
        ],
        lifespan=lifespan_of(model, settings, options, telemetry, when_started),
    )
    app.router.redirect_slashes = False
    app.state.service, app.state.live = _NotStarted(), None
    return app


def known_documents(settings: Settings) -> KnownDocuments:
    """The documents that clients may send or name. Raises CommandError if the manifest cannot be used."""
    file = settings.trusted_documents
    if file is None and settings.documents != "any":
        problem = f"KEYGRAPH_DOCUMENTS is {settings.documents}, but there is no manifest"
        fix = "Make one with `keygraph trust DIR`, and name it in KEYGRAPH_TRUSTED_DOCUMENTS"
        raise CommandError(problem, fix)
    trusted = {} if file is None else read_documents(file)
    return KnownDocuments(trusted, settings.documents, settings.persisted_bytes)


def identity(file: Path) -> str:
    """What a file keeps when it is moved, and another in its place has not; empty if there is no file."""
    try:
        found = file.stat()
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}"


def app_from_environment() -> Application:
    """The application for the settings in the environment. Workers of uvicorn call this factory."""
    # Imported here, because a Lambda handler needs no uvicorn.
    from keygraph_server.processes.collection import keeping_all
    from keygraph_server.processes.process import begin_serving
    from keygraph_server.uvicorn_internals import STARTUP_FAILURE

    queue_streams()
    try:
        settings = read_settings()
        configure_logging(settings)
        with keeping_all():
            app = create_app(settings, begin_serving)
        file = settings.sqlite_file
        if file is not None and identity(file) != os.environ.get(SERVED_FILE, identity(file)):
            problem = f"{file} is not the file that the server was started with"
            raise CommandError(problem, "Put the old file back, or restart the server")
        return app
    except Exception as error:
        message = expected_message(error)
        if message is None:
            raise
        _log.error("%s", message)
        # This code tells uvicorn that a restart of the worker would fail in the same way.
        sys.exit(STARTUP_FAILURE)


def lifespan_of(
    model: Model,
    settings: Settings,
    options: EndpointOptions,
    telemetry: Telemetry,
    when_started: Callable[[Service], None] | None,
) -> Callable[[Starlette], AbstractAsyncContextManager[dict[str, Any]]]:
    """Opens the store and the service when the process starts, and closes them when it ends."""

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        async with open_configured_store(settings, model.graph.table) as store:
            app.state.store = store
            app.state.readiness = readiness = Readiness(store)
            app.state.service = service = configured_service(settings, model.schema, store)

            def caches() -> Mapping[str, float]:
                sized = {"documents": service.kept_bytes, "persisted": options.documents.automatic_bytes}
                return sized | kept_bytes()

            async with (
                open_live_queries(settings, service, options.live_text) as live,
                telemetry.running(service, store, caches, live),
            ):
                app.state.live = live
                if when_started is not None:
                    when_started(service)
                try:
                    yield {} if live is None else {STOPS: live.close}
                finally:
                    await readiness.close()

    return running


async def answer_alive(request: Request) -> Response:
    """Answers that the process runs."""
    return PlainTextResponse("ok")


def ready_endpoint(settings: Settings) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that answers whether the store is reachable and has the table; 503 if not."""

    async def answer_ready(request: Request) -> Response:
        reason = await request.app.state.readiness.problem()
        if reason is None:
            return JSONResponse({"ready": True})
        details = {"reason": reason} if settings.endpoint_names else {}
        return JSONResponse({"ready": False, **details}, 503)

    return answer_ready


def schema_endpoint(model: Model) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that serves the schema as text."""
    # On first request, because it takes as long as building the schema.
    text = cache(lambda: printed(model.schema))

    async def answer_schema(request: Request) -> Response:
        return PlainTextResponse(text())

    return answer_schema
