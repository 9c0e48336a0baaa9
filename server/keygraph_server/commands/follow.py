"""`keygraph follow`: a worker that reads the stream of the table, and keeps what the model declares with `kept="stream"`."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer

from keygraph.changes.following import FollowOptions, Progress, StreamWorker
from keygraph.graph import Graph
from keygraph_server.jobs.effects import open_change_effects, refuse_without_effect
from keygraph_server.logs import configure_logging
from keygraph_server.models import configured_model
from keygraph_server.options import ModelOption, StoreOption
from keygraph_server.processes.process import signals_handled
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import open_table
from keygraph_server.telemetry import metrics_served

_log = logging.getLogger(__name__)
_REPORTED_SECONDS = 60.0
"""How often the log says how far it is."""


def follow(
    lease: Annotated[
        float,
        typer.Option(
            min=1,
            max=3600,
            help="After how many seconds without a sign of life another worker takes over what this one reads.",
        ),
    ] = 20.0,
    poll: Annotated[
        float,
        typer.Option(min=0.01, max=60, help="How many seconds it waits when there were no changes."),
    ] = 0.25,
    fan_out: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The Valkey or Redis server through which servers with live queries get the changes. Set "
            "KEYGRAPH_FAN_OUT instead if it has a password.",
        ),
    ] = None,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Read the stream of the table: keep the values that the model declares with kept="stream", and hand the changes on.

    Runs until it is stopped. Any number of workers share the stream; one that dies is replaced by the others.
    keygraph table update --stream turns the stream on. For nodes that were there before, run keygraph summarize
    once while this runs.
    """
    settings = read_settings(model=model, store=store, fan_out=fan_out)
    configure_logging(settings)
    graph = configured_model(settings).graph
    refuse_without_effect(settings, graph)
    with metrics_served(settings) as metrics:
        if metrics is not None:
            _log.info("Metrics are served at %s/metrics", metrics)
        asyncio.run(_follow(settings, graph, FollowOptions(lease, poll)))


async def _follow(settings: Settings, graph: Graph, options: FollowOptions) -> None:
    async with (
        open_table(settings.patient, graph.table) as (store, _, _),
        open_change_effects(settings, graph, store) as handle,
    ):
        owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        worker = StreamWorker(graph, store, handle, owner, options)
        loop = asyncio.get_running_loop()
        stops = dict.fromkeys(
            (signal.SIGTERM, signal.SIGINT), lambda *_: loop.call_soon_threadsafe(worker.stop)
        )
        async with _reported(worker), _measured(settings, graph, worker.progress):
            # It ends when it has handled what it has read.
            with signals_handled(stops):
                _log.info("Following the table %s in %s", graph.table.name, settings.displayed_store)
                await worker.run()
    _log.info("Stopped: every change that was read is handled")


@asynccontextmanager
async def _reported(worker: StreamWorker) -> AsyncIterator[None]:
    """Logs every minute how far a worker is."""

    async def report() -> None:
        before = 0
        while True:
            await asyncio.sleep(_REPORTED_SECONDS)
            progress = worker.progress
            text = "Followed %d changes of %d shards in a minute, %.1f seconds behind"
            _log.info(text, progress.changes - before, worker.held, progress.lag)
            before = progress.changes

    reporting = asyncio.create_task(report())
    try:
        yield
    finally:
        reporting.cancel()


@asynccontextmanager
async def _measured(settings: Settings, graph: Graph, progress: Progress) -> AsyncIterator[None]:
    """Writes how far a worker is into the metrics, if they are served."""
    if settings.metrics_port is None:
        yield
        return
    from keygraph_server.telemetry.hot_spots import HotSpots
    from keygraph_server.telemetry.metrics import Metrics
    from keygraph_server.telemetry.process import watch_following
    from keygraph_server.telemetry.snapshots import FOLDER_VARIABLE, Snapshots

    metrics = Metrics(settings.metrics_names)
    watch_following(metrics, progress)
    async with Snapshots(
        Path(os.environ[FOLDER_VARIABLE]), metrics, HotSpots(graph.table, b"", shows_keys=False).as_json
    ):
        yield
