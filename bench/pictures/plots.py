"""Plots of measurements, as SVG. Needs the extra `bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def lines_plot(
    path: Path,
    title: str,
    across: tuple[str, Sequence[float]],
    up: str,
    series: Mapping[str, Sequence[float]],
) -> None:
    """Writes lines over a common axis, both axes logarithmic; `across` is that axis with its values.

    Raises ImportError without matplotlib.
    """
    import matplotlib

    matplotlib.use("svg")
    # Equal figures make equal files: no date, no random ids; text remains text.
    matplotlib.rcParams.update({"svg.hashsalt": title, "svg.fonttype": "none", "font.size": 10})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    name, values = across
    for told, figures in series.items():
        axes.plot(values, figures, marker="o", label=told)
    axes.set(title=title, xlabel=name, ylabel=up, xscale="log", yscale="log")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
