"""`keygraph serve`: checks that the store can serve the model, and serves it."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
import uvicorn

from keygraph import StoreError
from keygraph.dynamo.differences import table_differences
from keygraph.dynamo.table import Table
from keygraph_server import app as application
from keygraph_server.connections.factory import Connections
from keygraph_server.connections.gate import ConnectionGate
from keygraph_server.cursor_secret import with_secret
from keygraph_server.errors import CommandError, expected_message, printable
from keygraph_server.listening import address_of, answered_hosts, listen
from keygraph_server.logs import configure_logging
from keygraph_server.models import Model, configured_model
from keygraph_server.options import ModelOption, StoreOption, WithSettings
from keygraph_server.playground.examples import queries_to_try
from keygraph_server.processes import MOST_WORKERS
from keygraph_server.processes.collection import keeping_all
from keygraph_server.processes.process import allow_open_files, begin_serving, signals_handled, terminals
from keygraph_server.processes.server import Server
from keygraph_server.processes.streams import queue_streams, write_alone
from keygraph_server.processes.workers import Workers
from keygraph_server.settings import PREFIX, Settings, environment_name, read_settings
from keygraph_server.stores import create_command, live_table, look_at_items
from keygraph_server.telemetry import metrics_served
from keygraph_server.uvicorn_internals import ChangeReload

_log = logging.getLogger(__name__)

_FILES_OF_ITS_OWN = 400
"""Open files other than client connections: connections to DynamoDB, of `KEYGRAPH_CONCURRENCY`, and others."""
_HANGUP_IGNORED = "SIGHUP is ignored: only several workers are replaced. Restart the server"

serve_app = typer.Typer(rich_markup_mode=None, add_completion=False)


@serve_app.command(cls=WithSettings)
def serve(
    served: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="The model; the same as --model.", show_default=False),
    ] = None,
    model: ModelOption = None,
    store: StoreOption = None,
    host: Annotated[
        str | None,
        typer.Option(
            help="The address to listen on. Default: KEYGRAPH_HOST, or 127.0.0.1.", show_default=False
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="The port to listen on; 0 picks a free port. Default: KEYGRAPH_PORT, or 8000.",
            show_default=False,
        ),
    ] = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="Restart when a Python file in this folder changes.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_WORKERS,
            help="The number of server processes. Default: KEYGRAPH_WORKERS, or 1.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve a model as GraphQL, with a playground.

    Without --store, the store is a SQLite file under .keygraph. The first start creates the SQLite file and loads the model's
    sample; in production, a file that --store names must already exist.
    """
    queue_streams()
    if served is not None and model is not None:
        raise typer.BadParameter(f"the model is named twice: remove --model {model}, or {served}")
    settings = read_settings(model=served or model, store=store, host=host, port=port, workers=workers)
    if reload and settings.workers > 1:
        given = f"--workers {workers}" if workers is not None else "KEYGRAPH_WORKERS"
        raise typer.BadParameter(f"--reload works with one worker only: remove {given}")
    configure_logging(settings)
    unknown = {name for name in os.environ if name.startswith(PREFIX)} - {
        *map(environment_name, Settings.model_fields)
    }
    if unknown:
        _log.warning("No setting is named %s: see docs/settings.md", " or ".join(sorted(unknown)))
    try:
        _serve(settings, reload=reload)
    except Exception as error:
        # Whoever collects the log as JSON gets this line too.
        if settings.log_format != "json" or (message := expected_message(error)) is None:
            raise
        _log.critical("%s", message)
        raise typer.Exit(1) from None


def _serve(settings: Settings, *, reload: bool) -> None:
    found = configured_model(settings)
    with signals_handled(_signal_handlers()), listen(settings.host, settings.port) as listening:
        # In production, a missing named file is a mistake, such as a volume that is not mounted.
        if settings.store is None or not settings.is_production:
            _make_first_store(found, settings)
        settings = settings.model_copy(update={"store": settings.store_address})
        asyncio.run(_check(settings, found))
        settings = with_secret(settings)
        address = address_of(listening, settings.host)
        with metrics_served(settings) as metrics:
            _run(found, settings, listening, partial(_greet, address, metrics), reload=reload)


async def _check(settings: Settings, model: Model) -> None:
    await check_table(settings, model.graph.table)
    await look_at_items(settings, model.graph)


def _say(settings: Settings, text: str) -> None:
    """Says something at the start: in the log if that is JSON, otherwise on standard output."""
    if settings.log_format == "json":
        _log.info("%s", text)
    else:
        typer.echo(text)


def _make_first_store(model: Model, settings: Settings) -> None:
    file = settings.sqlite_file
    if file is None or file.exists():
        return
    # Imported here, because with progress bars and other imports it takes a tenth of a start that does not need it.
    from keygraph_server.commands.first_start import make_sample_file

    if (count := make_sample_file(model, file)) is not None:
        sample = f"with the sample of {model.module.__name__}: {count:,} items" if count else "without items"
        _say(settings, printable(f"Created {file} {sample}."))


async def check_table(settings: Settings, table: Table) -> None:
    """Raises CommandError unless the store answers and its table has the declared keys and indexes."""
    address = settings.displayed_store
    try:
        live = await live_table(settings, table)
    except StoreError as error:
        problem = f"the store {address} does not answer: {error}"
        raise CommandError(problem, "Fix that, or name another store: --store ADDRESS") from None
    if live is None:
        raise CommandError(
            f"there is no table {table.name} in {address}",
            f"Create it with `{create_command(settings)}`",
        )
    differing = table_differences(table, live)
    if differing:
        raise CommandError(
            f"the table {table.name} in {address} does not match the model: {'; '.join(differing)}",
            "Change the model or the table; `keygraph table describe` shows both",
        )


def _greet(address: str, metrics: str | None, model: Model, settings: Settings) -> None:
    """Says what is served and where: in the log if it is JSON, otherwise on standard output, with queries to try."""
    first = printable(
        f"Keygraph serves {model.graph.table.name} ({model.name}) from {settings.displayed_store}"
    )
    if settings.log_format == "json":
        _log.info("%s", first, extra={"graphql": f"{address}/graphql"})
        return
    lines = [
        first,
        "",
        *([f"  playground  {address}/"] if settings.playground else ()),
        f"  GraphQL     {address}/graphql",
    ]
    if metrics is not None:
        lines.append(f"  metrics     {metrics}/metrics")
    if not model.graph.has_access_rules:
        lines.append(
            "  access      open: the model has no access rules, so everybody may read and write everything"
        )
    if (activation := _activation()) is not None:
        lines.append(f"  keygraph    {activation} makes the command `keygraph` available in another terminal")
    queries = queries_to_try(model) if settings.playground else []
    if queries:
        lines += ["", "Try these queries in the playground:", ""]
        width = max(len(query.name) for query in queries)
        for query in queries:
            lines.append(f"  {query.name:{width}}  {query.first_field}")
            if query.description:
                lines.append(f"  {'':{width}}  {query.description}")
    typer.echo("\n".join([*map(printable, lines), ""]))


def _activation() -> str | None:
    """What a shell in this folder runs to find `keygraph`; None if it finds it, or if there is no such thing."""
    script = Path(sys.prefix, "bin", "activate")
    if shutil.which("keygraph") or not script.is_file():
        return None
    here = Path.cwd()
    return f". {shlex.quote(str(script.relative_to(here) if script.is_relative_to(here) else script))}"


def _run(
    model: Model,
    settings: Settings,
    listening: socket.socket,
    greet: Callable[[Model, Settings], None],
    *,
    reload: bool,
) -> None:
    """Serves on the socket until the process is told to stop. Raises CommandError before it prints the greeting."""
    files = allow_open_files(settings.max_connections + _FILES_OF_ITS_OWN)
    if files < settings.max_connections + _FILES_OF_ITS_OWN:
        connections = max(files // 2, files - _FILES_OF_ITS_OWN)
        _log.warning(
            "The system allows so few open files that each process keeps %d connections", connections
        )
        settings = settings.model_copy(update={"max_connections": connections})
    # Processes that uvicorn starts make the application again, from the settings in the environment.
    has_processes = reload or settings.workers > 1
    os.environ.update(settings.environment())
    if settings.sqlite_file is not None:
        os.environ[application.SERVED_FILE] = application.identity(settings.sqlite_file)
    with keeping_all():
        app = application.create_app(settings, begin_serving, model=model)
        greet(model, settings)
    config = uvicorn.Config(
        "keygraph_server.app:app_from_environment" if has_processes else app,
        factory=has_processes,
        http=Connections(  # type: ignore[arg-type]  # uvicorn calls it, as it calls a class
            partial(
                ConnectionGate,
                settings,
                https_only=settings.is_production,
                hosts=answered_hosts(listening, settings.host, settings.allowed_hosts),
                has_websockets=settings.live,
            )
        ),
        ws="none",
        ws_max_size=settings.max_body_bytes,
        ws_per_message_deflate=False,
        reload=reload,
        workers=settings.workers,
        timeout_keep_alive=settings.keep_alive,
        log_config=None,
        access_log=settings.log_level == "debug",
        server_header=False,
        timeout_graceful_shutdown=settings.stop_timeout,
        timeout_worker_healthcheck=settings.worker_timeout,
    )
    if reload:
        ChangeReload(config, target=Server(config).run, sockets=[listening]).run()
    elif settings.workers > 1:
        supervisor = Workers(config, sockets=[listening])
        supervisor.run()
        if supervisor.cannot_start:
            # The worker has logged the reason.
            raise typer.Exit(1)
    else:
        write_alone()
        with suppress(KeyboardInterrupt):
            Server(config).run(sockets=[listening])


def _signal_handlers() -> dict[signal.Signals, Any]:
    """Handlers that exit with 0 on SIGTERM, which uvicorn raises again after it has shut down, and do not end on SIGHUP."""
    handlers: dict[signal.Signals, Any] = {signal.SIGTERM: lambda *_: sys.exit(0)}
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handlers[signal.SIGHUP] = partial(_hang_up, terminals())
    return handlers


def _hang_up(terminals_before: list[int], number: int, frame: FrameType | None) -> None:
    if terminals_before and not terminals():
        # Its window was closed, and nobody could stop it there.
        signal.raise_signal(signal.SIGTERM)
    else:
        # Not in the context of the code that was interrupted, maybe a request's.
        Context().run(_log.warning, _HANGUP_IGNORED)
