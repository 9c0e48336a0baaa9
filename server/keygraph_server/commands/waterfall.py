"""What an operation costs, drawn for a terminal: a table of its places, and its requests on a time axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

_BAR = 40
"""How many characters the time axis has."""
_NARROWEST = 12
_PLACE = 24
"""How many characters of a place in the query are on one line at least."""

_COLUMNS = (
    ("requests", "requests", "likelyRequests"),
    ("round trips", "roundTrips", "likelyRoundTrips"),
    ("items", None, "items"),
    ("read units", None, "readUnits"),
)
"""Titles, with what there can be at most and what is likely."""


def cost_table(cost: Mapping[str, Any], *, has_run: bool) -> Table:
    """What each place of a query costs, and all of them: estimated, and, where it has run, what it was.

    Of requests and round trips the estimate says how many are likely and how many there can be: `4 ≤ 23`.
    """
    title = "What it costs" if has_run else "What it will cost"
    drawn = Table(
        title=Text(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        caption=Text(
            "“2 ≤ 5” is likely 2, and at most 5. Items and read units are what is likely.", style="dim"
        ),
        caption_justify="left",
        padding=0,
        collapse_padding=True,
    )
    drawn.add_column("\nplace in the query", overflow="fold", min_width=_PLACE)
    for name, _, _ in _COLUMNS:
        drawn.add_column(f"{name}\nestimate" if has_run else f"\n{name}", justify="right")
        if has_run:
            drawn.add_column("\nactual", justify="right")
    for place, told in cost["byPath"].items():
        drawn.add_row(Text(place), *_cells(told, has_run=has_run))
    drawn.add_section()
    drawn.add_row(Text("in all", style="bold"), *_cells(cost, has_run=has_run))
    return drawn


def _cells(told: Mapping[str, Any], *, has_run: bool) -> Iterator[str]:
    estimate, actual = told.get("estimate"), told.get("actual")
    for _, most, likely in _COLUMNS:
        if estimate is None:
            yield "-"
        elif most:
            yield f"{_number(estimate[likely])} ≤ {_number(estimate[most])}"
        else:
            yield _number(estimate[likely])
        if has_run:
            yield "-" if actual is None else _number(actual[most or likely])


def _number(value: float) -> str:
    return f"{value:,g}" if abs(value) < 1e6 else f"{value:,.0f}"


def waterfall(requests: Sequence[Mapping[str, Any]], width: int) -> Iterator[Text]:
    """Every request as a bar on a time axis, under the round trip that it is part of; lines of at most that width."""
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
    """What DynamoDB calls the request, where, and how many items it looked at."""
    where = f" {request['index']}" if request["index"] else ""
    counts = " COUNT" if request["counts"] else ""
    items = request["items"]
    return f"{request['operation']}{where}{counts} ({items} item{'' if items == 1 else 's'})"


def _milliseconds(value: float) -> str:
    return f"{value:.1f} ms"
