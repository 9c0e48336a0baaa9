"""`keygraph hot`: shows which partitions and fields cost most, and how to reduce the cost."""

from __future__ import annotations

import urllib.request
from dataclasses import asdict
from http.client import HTTPException
from typing import Annotated, Any

import orjson
import typer

from keygraph_server.errors import CommandError, printable
from keygraph_server.hot.advice import Adviser, Totals
from keygraph_server.listening import url_of
from keygraph_server.models import configured_model
from keygraph_server.options import ModelOption
from keygraph_server.settings import Settings, read_settings
from keygraph_server.terminal.output import grid, json_text, out

_SECONDS = 10.0
_ROWS = 10
_REPORT_BYTES = 2**26
"""More than the reports of any number of workers."""


def hot(
    model: ModelOption = None,
    url: Annotated[
        list[str] | None,
        typer.Option(
            help="The address of a server's metrics port; repeat it for several servers. "
            "Default: KEYGRAPH_METRICS_HOST and KEYGRAPH_METRICS_PORT.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show which partitions and fields cost a running server most, and how to reduce the cost.

    Partition keys are shown as hashes, unless the server runs with KEYGRAPH_HOT_KEYS=true.
    """
    settings = read_settings(model=model)
    found = configured_model(settings)
    totals = Totals()
    for each in url or [_address(settings)]:
        _add_reports(totals, each.rstrip("/"))
    advice = Adviser(found.graph, found.module).advice(totals)
    if as_json:
        typer.echo(
            json_text(
                {
                    "seconds": totals.seconds,
                    "workers": totals.workers,
                    "fields": [
                        {"field": name, "kind": kind, "units": cost.units, "requests": cost.requests}
                        for (name, kind), cost in _sorted(totals.fields)
                    ],
                    "partitions": [
                        {
                            "key": key,
                            "index": index,
                            "reads": cost.reads,
                            "writes": cost.writes,
                            "field": cost.field,
                        }
                        for (index, key), cost in _sorted(totals.partitions)
                    ],
                    "advice": [asdict(each) for each in advice],
                },
                is_indented=True,
            )
        )
        return
    _draw(totals)
    for number, one in enumerate(advice, 1):
        typer.echo(f"{number}. {printable(one.text)}")
        for line in one.lines:
            typer.echo(f"       {line}")
    if not advice:
        typer.echo("There is nothing that a change of the model would improve.")


def _address(settings: Settings) -> str:
    if not settings.metrics_port:
        problem = "no server is given"
        raise CommandError(
            problem, "Name its metrics port: --url http://127.0.0.1:9464, or set KEYGRAPH_METRICS_PORT"
        )
    return url_of(settings.metrics_host, settings.metrics_port)


def _add_reports(totals: Totals, address: str) -> None:
    """Adds the reports of one server's workers."""
    if "@" in address:
        raise CommandError(
            "an address with a user name or a password cannot be used",
            "Leave them out: --url http://HOST:PORT",
        )
    try:
        with urllib.request.urlopen(f"{address}/hot", timeout=_SECONDS) as answer:
            totals.add(orjson.loads(answer.read(_REPORT_BYTES)))
    except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError) as error:
        problem = f"{address} does not report costs: {getattr(error, 'reason', error)}"
        raise CommandError(
            problem, "Start the server with KEYGRAPH_METRICS_PORT, and name that port"
        ) from None


def _sorted(costs: Any) -> list[Any]:
    return sorted(costs.items(), key=lambda each: -each[1].units)


def _draw(totals: Totals) -> None:
    minutes = min(totals.seconds, 600) / 60
    workers = "1 worker" if totals.workers == 1 else f"{totals.workers} workers"
    total = totals.units or 1.0
    fields = [
        (name, kind, f"{cost.units:,.1f}", f"{cost.units / total:.0%}", f"{cost.requests:,.1f}")
        for (name, kind), cost in _sorted(totals.fields)[:_ROWS]
    ]
    partitions = [
        (key, index or "table", f"{cost.reads:,.1f}", f"{cost.writes:,.1f}", cost.field)
        for (index, key), cost in _sorted(totals.partitions)[:_ROWS]
    ]
    console = out()
    console.print(f"{totals.units:,.1f} units per second in the last {minutes:.0f} minutes, by {workers}.")
    console.print(grid("Fields", ("field", "request", "units/s", "share", "requests/s"), fields))
    console.print(grid("Partitions", ("partition", "index", "reads/s", "writes/s", "mostly for"), partitions))
