"""The application: its routes, its middleware, and its state."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache, partial
from typing import NoReturn

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from keygraph.kept import kept_bytes
from keygraph_resolvers.read.meter import Memory
from keygraph_server.auth import configured_viewers
from keygraph_server.cursor_secret import with_secret
from keygraph_server.documents.known import KnownDocuments
from keygraph_server.documents.manifest import read_documents
from keygraph_server.errors import CommandError, expected_message
from keygraph_server.http.compression import CompressedFiles
from keygraph_server.http.exposure import Exposure
from keygraph_server.http.graphql_http import ContextOf, EndpointOptions, GraphQLEndpoint, ViewerOf
from keygraph_server.http.middleware import AroundEndpoints
from keygraph_server.http.origins import Origins
from keygraph_server.http.readiness import Readiness
from keygraph_server.logs import configure_logging
from keygraph_server.models import Model, load_model
from keygraph_server.playground import PageSettings, data_routes, playground_routes
from keygraph_server.processes.process import begin_serving
from keygraph_server.queries import examples_of
from keygraph_server.schema_text import printed
from keygraph_server.services import configured_service
from keygraph_server.settings import Auth, Settings, read_settings
from keygraph_server.settings.documents import Accepted
from keygraph_server.stores import open_configured_store
from keygraph_server.telemetry.process import Telemetry
from keygraph_server.uvicorn_internals import STARTUP_FAILURE

_log = logging.getLogger(__name__)


class Application(Starlette):
    """A server as an ASGI application, which another application may mount."""

    @asynccontextmanager
    async def started(self, parent: object = None) -> AsyncIterator[None]:
        """Starts a mounted application, which its host does not start: `FastAPI(lifespan=app.started)`."""
        async with self.router.lifespan_context(self):
            yield


class _NotStarted:
    """The service of an application that was not started."""

    async def execute(self, *_: object, **__: object) -> NoReturn:
        problem = "Keygraph has not been started: give the application that mounts it lifespan=app.started"
        raise RuntimeError(problem)


def create_app(
    settings: Settings,
    when_started: Callable[[], None] | None = None,
    *,
    model: Model | None = None,
    viewer: ViewerOf | None = None,
    context: ContextOf | None = None,
) -> Application:
    """The application that serves the model from the store, both named by the settings.

    While it runs, its `state` has the `store` and the GraphQL `service`. `when_started` is called when they are open.
    `model` is the one that the settings name, if it is loaded already. `viewer` replaces KEYGRAPH_AUTH: it takes the
    request and returns the viewer's claims. `context` takes the request and the claims, and returns the `info.context`
    of your own resolvers. Both may be async. Raises CommandError or ModelError for unusable settings.
    """
    if model is None:
        model = load_model(settings.model, federation=settings.federation)
    if not model.graph.has_access_rules:
        _log.log(
            logging.WARNING if settings.is_production else logging.INFO,
            "The model has no access rules: everybody who reaches the server may read and write everything",
        )
    settings = with_secret(settings)
    telemetry = Telemetry(settings, model.graph.table)
    table = model.graph.table.name
    origins = Origins.of(settings.cors_origins)
    documents = known_documents(settings)
    compressed = [Middleware(CompressedFiles, settings.compress_above)]
    memory = Memory(settings.operation_memory)
    options = EndpointOptions(
        documents,
        viewer or configured_viewers(settings),
        context,
        origins,
        settings.cache_control,
        settings.answer_limit,
        settings.compress_above,
        Exposure(settings.cost_details, settings.endpoint_names),
        memory,
        telemetry.watcher,
        settings.operation_timeout,
    )
    routes: list[BaseRoute] = [
        Route("/graphql", GraphQLEndpoint(options), methods=["GET", "POST"]),
        Route("/healthz", answer_alive),
        Route("/readyz", ready_endpoint(settings)),
    ]
    if settings.schema_file:
        routes.append(Route("/schema.graphql", schema_endpoint(model), middleware=compressed))
    if settings.playground:
        page = PageSettings(
            table,
            model.name,
            partial(examples_of, model),
            asks_for_token=settings.auth is Auth.JWT,
            shows_items=settings.playground_items,
        )
        routes += playground_routes(page, middleware=compressed)
        routes += data_routes(model, shows_items=settings.playground_items)
    app = Application(
        routes=routes,
        middleware=[
            Middleware(AroundEndpoints, origins, settings.max_body_bytes, https_only=settings.is_production)
        ],
        lifespan=lifespan_of(model, settings, documents, memory, telemetry, when_started),
    )
    app.router.redirect_slashes = False
    app.state.service = _NotStarted()
    return app


def known_documents(settings: Settings) -> KnownDocuments:
    """The documents that clients may send or name. Raises CommandError if the manifest cannot be used."""
    file = settings.trusted_documents
    if file is None and settings.documents is not Accepted.ANY:
        problem = f"KEYGRAPH_DOCUMENTS is {settings.documents.value}, but there is no manifest"
        raise CommandError(
            problem, "Make one with `keygraph trust DIR`, and name it in KEYGRAPH_TRUSTED_DOCUMENTS"
        )
    trusted = {} if file is None else read_documents(file)
    return KnownDocuments(trusted, settings.documents, settings.persisted_bytes)


def app_from_environment(model: Model | None = None) -> Application:
    """The application for the settings in the environment. Workers of uvicorn call this factory.

    `model` is the one that the settings name, if it is loaded already.
    """
    try:
        settings = read_settings()
        configure_logging(settings)
        return create_app(settings, begin_serving, model=model)
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
    documents: KnownDocuments,
    memory: Memory,
    telemetry: Telemetry,
    when_started: Callable[[], None] | None,
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    """Opens the store and the service when the process starts, and closes them when it ends."""

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        async with open_configured_store(settings, model.graph.table) as store:
            app.state.store = store
            app.state.readiness = readiness = Readiness(store)
            app.state.service = service = configured_service(settings, model.schema, store)

            def caches() -> Mapping[str, float]:
                sized = {"documents": service.kept_bytes, "persisted": documents.automatic_bytes}
                return sized | kept_bytes()

            async with telemetry.running(service, store, memory, caches):
                if when_started is not None:
                    when_started()
                try:
                    yield
                finally:
                    await readiness.close()

    return running


async def answer_alive(request: Request) -> Response:
    """Answers that the process runs."""
    return PlainTextResponse("ok")


def ready_endpoint(settings: Settings) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that answers whether the store is reachable and has the table; 503 if not."""

    async def answer_ready(request: Request) -> Response:
        reason = await request.app.state.readiness.hindrance()
        if reason is None:
            return JSONResponse({"ready": True})
        shown = {"reason": reason} if settings.endpoint_names else {}
        return JSONResponse({"ready": False, **shown}, 503)

    return answer_ready


def schema_endpoint(model: Model) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that serves the schema as text."""
    # On first request, because it takes as long as building the schema.
    text = cache(lambda: printed(model.schema))

    async def answer_schema(request: Request) -> Response:
        return PlainTextResponse(text())

    return answer_schema
