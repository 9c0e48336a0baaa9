"""The plot of a run: processor time of an operation, by query and server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from bench.compare.figures import Found

COLOURS = {
    "keygraph": "#c2185b",
    "apollo": "#3f51b5",
    "strawberry": "#ef6c00",
    "floor-plain": "#455a64",
    "floor-merged": "#90a4ae",
}


def write_plot(found: Found, names: Mapping[str, str], file: Path) -> None:
    """A row for each query, a dot for each server; the axis is logarithmic, so that equal ways are equal ratios."""
    clients = max(found.clients)
    mpl.rcParams["svg.hashsalt"] = "keygraph"
    mpl.rcParams["svg.fonttype"] = "none"
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
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize="small")
    figure.savefig(file, metadata={"Date": None, "Creator": None})
