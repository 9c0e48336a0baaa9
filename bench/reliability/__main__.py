"""What Keygraph does when things go wrong.

    make reliability                                  everything, into docs/reliability.md; a quarter of an hour
    make reliability ARGS="--share 0.1"               a tenth of the time; writes no page
    make reliability ARGS="--only attacks --share 0.1"

On the embedded engine, and on DynamoDB Local behind something that fails as it is told to. The exit status is 1 where
something does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from bench.compare.data import items
from bench.compare.machine import told
from bench.compare.processes import free_port, full_pipe
from bench.compare.queries import queries
from bench.compare.servers import AWS, KEYGRAPH, ROOT, Running, running
from bench.measuring import filled_store
from bench.pages import with_part
from bench.reliability import attacks, crowd, live, refusals, scenarios
from bench.reliability.clients import asked_of
from bench.reliability.issuer import Issuer, Keys, login
from bench.reliability.scenarios import Outcome
from bench.reliability.upstream import Mode, Upstream
from keygraph import open_store
from keygraph.dynamo.streams import EnableStream
from keygraph_examples.commerce import graph
from keygraph_examples.social import graph as social_graph
from tests import dynamodb_local

PAGE = ROOT / "docs" / "reliability.md"
_NAMES = (
    *(
        "faults",
        "outages",
        "cancellations",
        "kills",
        "attacks",
        "crowds",
        "bodies",
        "large answers",
        "output",
    ),
    *("refusals", "issuer", "floods", "live"),
)
_TWO_WORKERS = {"KEYGRAPH_WORKERS": "2"}
_WITH_FAULTS = ("faults", "outages", "large answers")
"""Those that need a DynamoDB that fails."""
_FAULT_SECONDS, _OUTAGE_SECONDS, _KILL_SECONDS, _ATTACK_SECONDS = 40.0, 12.0, 30.0, 60.0
_CANCELLATIONS, _CROWD_SECONDS = 10_000, 10.0


@asynccontextmanager
async def _served(store_url: str, output: int | None, **settings: str) -> AsyncIterator[Running]:
    # The host that hostile clients name.
    given = {"KEYGRAPH_DEADLINE": "10", "KEYGRAPH_ALLOWED_HOSTS": "x", **settings}
    server = replace(KEYGRAPH, environment={**KEYGRAPH.environment, **given})
    with running([server], store_url, output) as [found]:
        yield found


@asynccontextmanager
async def _crowd(store_url: str) -> AsyncIterator[Running]:
    """Serves a social network, with the settings of production."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:{Path(folder) / 'social.sqlite'}" if store_url.startswith("sqlite:") else store_url
        production = {
            "KEYGRAPH_ENV": "production",
            "KEYGRAPH_SECRET": "the secret of these measurements",
            "KEYGRAPH_AUTH": "none",  # without it, a server on DynamoDB does not start with a model that has no rules
        }
        async with (
            filled_store(url, social_graph, list(crowd.items())),
            _served(url, None, KEYGRAPH_MODEL=crowd.MODEL, **production) as found,
        ):
            yield found


async def _on(
    name: str, store_url: str, upstream: Upstream | None, only: list[str], share: float
) -> list[Outcome]:
    """Runs all scenarios that are possible on a store. One that ends with an error does not hold."""
    outcomes: list[Outcome] = []
    for scenario in [each for each in only if upstream is not None or each not in _WITH_FAULTS]:
        began = time.perf_counter()
        try:
            found = await _outcomes(scenario, store_url, upstream, share)
        except Exception as error:
            traceback.print_exc()
            found = [Outcome(scenario, "runs to its end", type(error).__name__, holds=False)]
        if upstream is not None:
            await upstream.become(Mode.WELL)
        print(f"{name}: {scenario}, {time.perf_counter() - began:.0f} s", file=sys.stderr)
        print(*map(_row, found), sep="\n", file=sys.stderr, flush=True)
        outcomes += found
    return outcomes


async def _outcomes(scenario: str, store_url: str, upstream: Upstream | None, share: float) -> list[Outcome]:
    bodies = [body for query in queries(["shallow", "nested", "list"]) for body in query.bodies()[:4]]
    async with _served(store_url, None, **(_TWO_WORKERS if scenario == "kills" else {})) as server:
        port, pid = server.port, server.pid
        asked = await asked_of(port, bodies)
        match scenario:
            case "faults" if upstream is not None:
                return await scenarios.faults(port, pid, asked, upstream, _FAULT_SECONDS * share)
            case "outages" if upstream is not None:
                return await scenarios.outages(port, pid, asked, upstream, _OUTAGE_SECONDS * share)
            case "cancellations":
                return await scenarios.cancellations(port, pid, asked, int(_CANCELLATIONS * share))
            case "kills":
                return await scenarios.kills(port, pid, asked, max(10.0, _KILL_SECONDS * share))
            case "attacks":
                return await attacks.attacks(port, pid, _ATTACK_SECONDS * share)
            case "crowds":
                async with _crowd(store_url) as social:
                    seconds = max(5.0, _CROWD_SECONDS * share)
                    return await attacks.crowds(social.port, social.pid, seconds, store_url)
            case "floods":
                return await attacks.floods(port, pid, max(5.0, _CROWD_SECONDS * share))
            case "live":
                async with open_store(store_url, graph.table) as store:
                    await store.send(EnableStream())
                async with _served(store_url, None, KEYGRAPH_LIVE="true") as served:
                    return await live.live(served.port, served.pid, max(5.0, _CROWD_SECONDS * share))
            case "bodies":
                return await attacks.bodies(port, pid, share)
            case "large answers" if upstream is not None:
                return await attacks.large_answers(port, pid, upstream, share)
            case "output":
                metrics = free_port()
                with full_pipe() as pipe:
                    settings = {**_TWO_WORKERS, "KEYGRAPH_METRICS_PORT": str(metrics)}
                    async with _served(store_url, pipe, **settings) as unread:
                        return await scenarios.output(unread.port, metrics, unread.pid, asked)
            case "issuer":
                return [await _login(store_url, keys) for keys in Keys]
            case "refusals":
                return [*await refusals.requests(port), *await _refusals(store_url)]
    raise ValueError(f"{scenario} is not possible on {store_url}")


async def _login(store_url: str, keys: Keys) -> Outcome:
    issuer = Issuer(keys)
    async with issuer.running():
        settings = {"KEYGRAPH_AUTH": "jwt", "KEYGRAPH_JWT_JWKS_URL": issuer.url}
        async with _served(store_url, None, **settings) as server:
            return await login(server.port, server.pid, issuer, keys)


async def _refusals(store_url: str) -> list[Outcome]:
    """What servers with other settings refuse."""
    metrics = free_port()
    async with _served(
        store_url, None, KEYGRAPH_AUTH="header", KEYGRAPH_METRICS_PORT=f"{metrics}"
    ) as guarded:
        found = await refusals.playground(guarded.port)
        found += await refusals.log(guarded.port, metrics, guarded.pid)
    if store_url.startswith("sqlite:"):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "shop.sqlite"
            async with _served(f"sqlite:{file}", None) as moved:
                found += await refusals.moved_file(moved.port, file)
    return found + await refusals.settings(store_url)


async def _all(only: list[str], share: float) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    data = list(items())
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:{Path(folder) / 'shop.sqlite'}"
        async with filled_store(url, graph, data):
            found["the embedded engine"] = await _on("the embedded engine", url, None, only, share)
    reason = dynamodb_local.missing()
    if reason:
        print(f"without DynamoDB Local: {reason}", file=sys.stderr)
        return found
    with dynamodb_local.running() as store_url:
        async with filled_store(store_url, graph, data), Upstream(store_url) as upstream:
            found["DynamoDB Local"] = await _on("DynamoDB Local", upstream.url, upstream, only, share)
    return found


def _table(found: dict[str, list[Outcome]]) -> str:
    lines = []
    for store, outcomes in found.items():
        lines += [
            f"### On {store}",
            "",
            "| what happens | wanted | found | holds |",
            "| --- | --- | --- | --- |",
        ]
        lines += map(_row, outcomes)
        lines.append("")
    return "\n".join(lines)


def _row(outcome: Outcome) -> str:
    holds = "yes" if outcome.holds else "**no**"
    return f"| {outcome.what} | {outcome.wanted} | {outcome.found} | {holds} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        "make reliability", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=_NAMES, action="append", help="some of them")
    parser.add_argument("--share", type=float, default=1.0, help="how much of the time (1.0)")
    parser.add_argument("--write", action="store_true", help="write the page, whatever is chosen")
    chosen = parser.parse_args()
    os.environ.update(AWS)
    found = asyncio.run(_all(list(chosen.only or _NAMES), chosen.share))
    text = _table(found)
    print(text)
    if chosen.write or (chosen.only is None and chosen.share == 1.0):
        part = f"{told(['keygraph'])}\n\n{text}"
        PAGE.write_text(with_part(PAGE.read_text("utf-8"), "reliability", part), "utf-8")
        print(f"written: {PAGE.relative_to(ROOT)}", file=sys.stderr)
    return 0 if all(each.holds for outcomes in found.values() for each in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
