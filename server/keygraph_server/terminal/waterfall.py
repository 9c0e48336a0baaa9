"""The cost of an operation for a terminal: a table by place in the query, and the requests on a time axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from keygraph_server.terminal.output import titled

_BAR = 40
"""The width of the time axis, in characters."""
_NARROWEST = 12
_PLACE = 24
"""The minimum width of the column of places, in characters."""

_COLUMNS = (
    ("requests", "requests"),
    ("round trips", "roundTrips"),
    ("items", "items"),
    ("read units", "readUnits"),
)
"""Titles, with the names of the figures."""


def cost_table(cost: Mapping[str, Any], *, has_run: bool) -> Table:
    """A table of the most that each place of a query costs, and the total; after a run, also the actual costs."""
    drawn = titled("What it costs" if has_run else "What it costs at most")
    drawn.padding, drawn.collapse_padding = 0, True
    drawn.add_column("\nplace in the query", overflow="fold", min_width=_PLACE)
    for name, _ in _COLUMNS:
        drawn.add_column(f"{name}\nat most" if has_run else f"\n{name}", justify="right")
        if has_run:
            drawn.add_column("\nactual", justify="right")
    for place, figures in cost["byPath"].items():
        drawn.add_row(Text(place), *_cells(figures, has_run=has_run))
    drawn.add_section()
    drawn.add_row(Text("in all", style="bold"), *_cells(cost, has_run=has_run))
    return drawn


def _cells(figures: Mapping[str, Any], *, has_run: bool) -> Iterator[str]:
    bound, actual = figures.get("bound"), figures.get("actual")
    for _, name in _COLUMNS:
        yield "-" if bound is None else _number(bound[name])
        if has_run:
            yield "-" if actual is None else _number(actual[name])


def _number(value: float) -> str:
    return f"{value:,g}" if abs(value) < 1e6 else f"{value:,.0f}"


def waterfall(requests: Sequence[Mapping[str, Any]], width: int) -> Iterator[Text]:
    """Every request as a bar on a time axis, grouped by round trip, in lines of at most this width."""
    if not requests:
        yield Text("No request was sent.")
        return
    end = max(each["endedMs"] for each in requests) or 1.0
    yield Text(f"When each request ran ({_milliseconds(end)} in all)", style="bold")
    names = [_name(each) for each in requests]
    name_width = max(map(len, names))
    bar = max(_NARROWEST, min(_BAR, width - name_width - 40))
    rest = width - bar - name_width - 17
    for round_trip in sorted({each["roundTrip"] for each in requests}):
        yield Text(f"round trip {round_trip}", style="dim")
        for name, each in zip(names, requests, strict=True):
            if each["roundTrip"] != round_trip:
                continue
            first = min(bar - 1, int(each["beganMs"] / end * bar))
            last = max(first + 1, round(each["endedMs"] / end * bar))
            drawn = f"{' ' * first}{'█' * (last - first)}".ljust(bar)
            took = _milliseconds(each["endedMs"] - each["beganMs"])
            place = ", ".join(each["paths"])
            place = place if len(place) <= rest else f"…{place[-max(rest - 1, 1) :]}"
            yield Text(f"  {drawn} {took:>9}  {name:{name_width}}  {place}".rstrip())


def _name(request: Mapping[str, Any]) -> str:
    """DynamoDB's name of the request, the index, and the number of items that it read."""
    where = f" {request['index']}" if request["index"] else ""
    counts = " COUNT" if request["counts"] else ""
    items = request["items"]
    return f"{request['operation']}{where}{counts} ({items} item{'' if items == 1 else 's'})"


def _milliseconds(value: float) -> str:
    return f"{value:.1f} ms"
