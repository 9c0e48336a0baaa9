"""The results of a run as text: the tables of `docs/performance.md`, and those for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.compare.figures import Figures, Found

KEYGRAPH, APOLLO, FLOOR = "keygraph", "apollo", "floor-plain"


@dataclass(frozen=True)
class Goal:
    """A target for a run."""

    wanted: str
    limit: float
    of: Callable[[Found], float | None]
    """None if the run has not measured it."""
    is_strict: bool = False

    def line(self, found: Found) -> str:
        """The goal as a row of a table."""
        value = self.of(found)
        if value is None:
            return f"| {self.wanted} | – | not measured |"
        reached = value < self.limit if self.is_strict else value <= self.limit
        return f"| {self.wanted} | {value:.2f} | {'yes' if reached else '**no**'} |"


def _processor(other: str, query: str) -> Callable[[Found], float | None]:
    return lambda found: found.ratio(KEYGRAPH, other, query, max(found.clients))


def _nested_p50(found: Found) -> float | None:
    one, other = (found.get(name, "nested", min(found.clients)) for name in (KEYGRAPH, APOLLO))
    return None if one is None or other is None else one.p50_ms / other.p50_ms


def _nested_trips(found: Found) -> float | None:
    one = found.get(KEYGRAPH, "nested", min(found.clients))
    return None if one is None else float(one.round_trips)


def _order_requests(found: Found) -> float | None:
    one = found.get(KEYGRAPH, "order", min(found.clients))
    return None if one is None else float(one.requests)


GOALS = (
    *(
        Goal(f"{query}: at most {limit:g} of the floor's processor time", limit, _processor(FLOOR, query))
        for query, limit in (
            ("nested", 0.6),
            ("wide", 0.7),
            ("deep", 0.6),
            ("shallow", 1.0),
            ("list", 1.0),
            ("count", 1.0),
            ("filtered", 1.0),
            ("order", 1.3),
        )
    ),
    *(
        Goal(f"{query}: at most 0.4 of Apollo's processor time", 0.4, _processor(APOLLO, query))
        for query in ("nested", "wide")
    ),
    *(
        Goal(f"{query}: less than Apollo's processor time", 1.0, _processor(APOLLO, query), is_strict=True)
        for query in ("shallow", "list", "deep", "count", "filtered")
    ),
    Goal("nested: 4 round trips", 4.0, _nested_trips),
    Goal("order: 1 request", 1.0, _order_requests),
    Goal("nested: at most 0.6 of Apollo's p50, one client", 0.6, _nested_p50),
)


def goals_table(found: Found) -> str:
    """Returns a table of Keygraph's goals, and whether this run reached them."""
    return _lines(
        "| wanted | found | reached |", "| --- | ---: | --- |", *(goal.line(found) for goal in GOALS)
    )


def processor_table(found: Found, names: Mapping[str, str]) -> str:
    """The processor time of each server by query, with the most clients; then Keygraph's share of the others'."""
    clients = max(found.clients)
    others = [name for name in (APOLLO, FLOOR) if name in found.servers and KEYGRAPH in found.servers]
    heads = [names[server] for server in found.servers]
    heads += [f"Keygraph / {names[name]}" for name in others]
    lines = [f"| query | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
    for query in found.queries:
        cells = []
        for server in found.servers:
            each = found.get(server, query, clients)
            cells.append("–" if each is None else f"{each.processor_ms:.2f}")
        for name in others:
            ratio = found.ratio(KEYGRAPH, name, query, clients)
            cells.append("–" if ratio is None else f"{ratio:.2f}")
        lines.append(f"| {query} | {' | '.join(cells)} |")
    return _lines(*lines)


def whole_table(found: Found, names: Mapping[str, str]) -> str:
    """Returns a table of every figure."""
    heads = ("p50 ms", "p95 ms", "ops/s", "processor ms", "requests", "round trips")
    return _lines(
        f"| query | clients | server | {' | '.join(heads)} |",
        f"| --- | ---: | --- |{' ---: |' * len(heads)}",
        *(
            f"| {each.query} | {each.clients} | {names[each.server]} | {' | '.join(_cells(each))} |"
            for each in found.rows()
        ),
    )


def _cells(each: Figures) -> tuple[str, ...]:
    times = (f"{value:,.1f}" for value in (each.p50_ms, each.p95_ms, each.per_second))
    return (*times, f"{each.processor_ms:.2f}", str(each.requests), str(each.round_trips))


def memory_line(found: Found, names: Mapping[str, str]) -> str:
    """Returns the memory peaks as a sentence."""
    peaks = (f"{names[server]} {megabytes:.0f}" for server, megabytes in found.memory_mb.items())
    return f"Peak memory in MB, all queries together: {', '.join(peaks)}.\n"


def terminal_table(found: Found) -> str:
    """Returns a table of every figure, for a terminal."""
    lines = [
        f"{'query':9} {'clients':>7} {'server':13} {'p50 ms':>8} {'p95 ms':>8} {'ops/s':>8} {'cpu ms':>8} "
        f"{'requests':>8} {'trips':>5}"
    ]
    for each in found.rows():
        p50, p95, rate, processor, requests, trips = _cells(each)
        lines.append(
            f"{each.query:9} {each.clients:7} {each.server:13} {p50:>8} {p95:>8} {rate:>8} {processor:>8} "
            f"{requests:>8} {trips:>5}"
        )
    lines += [f"peak memory of {name}: {megabytes:.0f} MB" for name, megabytes in found.memory_mb.items()]
    return _lines(*lines)


def quick_table(found: Found, last: Mapping[str, float]) -> str:
    """Returns Keygraph's share of the floor's processor time, and its change since the last ratios.

    Ratios, because the machine may have become faster or slower between two runs.
    """
    clients = max(found.clients)
    lines = [f"{'query':9} {'keygraph':>9} {'floor':>8} {'ratio':>7} {'last':>7} {'change':>8}"]
    for query, ratio in quick_ratios(found).items():
        mine, floor = (found.get(name, query, clients) for name in (KEYGRAPH, FLOOR))
        assert mine is not None
        assert floor is not None
        before = last.get(query)
        changed = f"{'–':>7} {'–':>8}" if before is None else f"{before:7.2f} {ratio / before - 1:+8.0%}"
        lines.append(f"{query:9} {mine.processor_ms:9.2f} {floor.processor_ms:8.2f} {ratio:7.2f} {changed}")
    return _lines(*lines)


def quick_ratios(found: Found) -> dict[str, float]:
    """Keygraph's share of the floor's processor time, by query."""
    ratios = {query: found.ratio(KEYGRAPH, FLOOR, query, max(found.clients)) for query in found.queries}
    return {query: ratio for query, ratio in ratios.items() if ratio is not None}


def page_part(
    found: Found, names: Mapping[str, str], about: Sequence[tuple[str, str]], told: str, plot: str
) -> str:
    """Returns the text between the markers. `about` are the queries, `told` is the machine, `plot` a file's name."""
    clients = max(found.clients)
    return "\n".join(
        [
            _lines(*(f"- *{query}*: {text}" for query, text in about)),
            f"Processor milliseconds of the server for one operation, {clients} clients:\n",
            processor_table(found, names),
            f"![Processor time by query and server]({plot})\n",
            goals_table(found),
            memory_line(found, names),
            f"<details><summary>Every figure</summary>\n\n{whole_table(found, names)}\n</details>\n",
            f"{told}\n",
        ]
    )


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)
