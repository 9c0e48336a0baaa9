"""The plots of `docs/performance.md`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from bench.compare.figures import Found, Point

COLOURS = {
    "keygraph": "#c2185b",
    "apollo": "#3f51b5",
    "strawberry": "#ef6c00",
    "floor-plain": "#455a64",
    "floor-merged": "#90a4ae",
}


def write_plot(found: Found, names: Mapping[str, str], file: Path) -> None:
    """Draws a row for each query, a dot for each server; the axis is logarithmic: equal distances are equal ratios."""
    clients = max(found.clients)
    queries = found.queries[::-1]
    figure = Figure(figsize=(8, 0.5 * len(queries) + 1.4), layout="constrained")
    axes = figure.subplots()
    for server in found.servers:
        points = [(found.get(server, query, clients), at) for at, query in enumerate(queries)]
        shown = [(each.processor_ms, at) for each, at in points if each is not None]
        axes.scatter(
            [value for value, _ in shown],
            [at for _, at in shown],
            s=60,
            color=COLOURS.get(server, "black"),
            label=names[server],
            marker="D" if server == "keygraph" else "o",
            zorder=3,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(range(len(queries)), queries)
    axes.set_xlabel(f"processor ms an operation, {clients} clients (logarithmic)")
    axes.grid(axis="both", color="#e0e0e0", zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(names), frameon=False, fontsize="small")
    _save(figure, file)


def write_growth(
    points: Sequence[Point], series: Mapping[str, str], names: Mapping[str, str], file: Path
) -> None:
    """Draws a column for each varied quantity, a row for each measured one, and a line for each server."""
    rows: dict[str, Callable[[Point], float]] = {
        "p50 ms": lambda point: point.p50_ms,
        "processor ms": lambda point: point.processor_ms,
        "peak MB": lambda point: point.memory_mb,
        "requests": lambda point: point.requests,
    }
    figure = Figure(figsize=(9, 9), layout="constrained")
    grid = figure.subplots(len(rows), len(series), squeeze=False)
    for column, (name, about) in enumerate(series.items()):
        for row, (label, value) in enumerate(rows.items()):
            axes = grid[row][column]
            if name == "clients" and label == "requests":
                label, value = "operations a second", lambda point: point.per_second
            for server in dict.fromkeys(point.server for point in points):
                shown = [point for point in points if (point.series, point.server) == (name, server)]
                axes.plot(
                    [point.at for point in shown],
                    [value(point) for point in shown],
                    color=COLOURS.get(server, "black"),
                    label=names[server] if not row and not column else None,
                    marker="D" if server == "keygraph" else "o",
                    markersize=4,
                )
            if name != "levels":
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter("{x:g}")
                if label not in ("operations a second", "peak MB"):
                    axes.set_yscale("log")
                    axes.yaxis.set_major_formatter("{x:g}")
            if axes.get_yscale() == "linear":
                axes.set_ylim(bottom=0)
            axes.set_ylabel(label, fontsize="small")
            axes.grid(color="#e0e0e0")
            axes.spines[["top", "right"]].set_visible(False)
            if row == len(rows) - 1:
                axes.set_xlabel(about)
    figure.legend(loc="outside upper center", ncols=len(names), frameon=False, fontsize="small")
    _save(figure, file)


def _save(figure: Figure, file: Path) -> None:
    # No random ids and no date, so that the file changes only with the figures.
    with mpl.rc_context({"svg.hashsalt": "keygraph", "svg.fonttype": "none"}):
        figure.savefig(file, metadata={"Date": None, "Creator": None})
