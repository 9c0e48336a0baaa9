"""Where the processor time of an operation goes: `python -m bench.profile [QUERY]`, a query of the comparison (nested).

The service runs in this process, 16 operations at once, on DynamoDB Local by the direct transport; HTTP towards clients is
not in it. What C functions take counts for the module that calls them. A profiler makes calls dearer than what C does, so
that the shares say where to look, and the totals nothing.
"""

from __future__ import annotations

import asyncio
import cProfile
import gc
import os
import pstats
import sys
from collections import Counter
from pathlib import Path

import orjson

from bench.compare.data import items
from bench.compare.queries import Query, queries
from bench.compare.servers import AWS
from bench.measuring import filled_store
from keygraph.dynamo.store import Store
from keygraph_examples import commerce
from keygraph_resolvers.schema.types import build_schema
from keygraph_resolvers.service import Service
from tests import dynamodb_local

OPERATIONS, AT_ONCE = 160, 16

PARTS = {
    "connections: HTTP, sockets, the event loop": "http1 http1_answers base_events selector_events selectors events tasks _weakrefset",
    "requests: text, signature, deadline, turns": "request_texts signing direct credentials retrying sending turns rendering",
    "answers: JSON, values, pages": "dynamodb items store",
    "keys and lists: what is read, and which item is what": "listing reading paths ranges templates graph model records "
    "item_readers projecting siblings table key_text types together named_edges _record_keys",
    "execution: what goes on when something has come": "execution list_reads connections items_by_key gathering loaders "
    "work visits sources roots plan field_plans whole_lists __init__",
    "the answer: values, objects, lists": "completion columns global_ids scalars",
    "metering, statistics, limits": "metering statistics late_estimates cost list_costs charges context",
    "document, plan, variables, arguments": "documents arguments service values convert schema_converter inputs",
}


async def profiled(store: Store, query: Query) -> pstats.Stats:
    """The profile of many operations."""
    service = Service(
        build_schema(commerce.graph), store, secret=b"of a measurement", cost_limit=1e9, depth_limit=50
    )
    bodies = [orjson.loads(body) for body in query.bodies()]

    async def client(first: int, count: int) -> None:
        for number in range(count):
            asked = bodies[(first + number) % len(bodies)]
            answer = await service.execute(asked["query"], asked["variables"], asked["operationName"])
            if "errors" in answer:
                raise ValueError(f"the answer has errors: {answer['errors'][:3]}")
            orjson.dumps(answer)

    async def all_clients(operations: int) -> None:
        await asyncio.gather(*(client(7 * k, operations // AT_ONCE) for k in range(AT_ONCE)))

    await all_clients(2 * AT_ONCE)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    profile = cProfile.Profile()
    profile.enable()
    await all_clients(OPERATIONS)
    profile.disable()
    return pstats.Stats(profile)


def by_module(stats: pstats.Stats) -> Counter[str]:
    """The seconds that each module took itself, with the C functions that it called."""
    found: Counter[str] = Counter()
    for (file, _, _), (_, _, own, _, callers) in stats.stats.items():  # type: ignore[attr-defined]  # not in its stubs
        if file != "~":
            found[Path(file).stem] += own
            continue
        for (caller, _, _), (_, _, taken, _) in callers.items():
            found["" if caller == "~" else Path(caller).stem] += taken
    return found


def table(query: Query, stats: pstats.Stats) -> str:
    """The shares of the parts, as Markdown."""
    modules = by_module(stats)
    whole = sum(modules.values())
    part_of = {name: part for part, names in PARTS.items() for name in names.split()}
    parts: Counter[str] = Counter()
    for module, seconds in modules.items():
        parts[part_of.get(module, "the rest")] += seconds
    calls = stats.total_calls / OPERATIONS  # type: ignore[attr-defined]  # not in its stubs
    rows = [f"| {part} | {seconds / whole:.0%} |" for part, seconds in parts.most_common()]
    lines = [f"| {query.name}: {calls:,.0f} calls an operation | share |", "| --- | ---: |", *rows]
    return "\n".join(lines)


async def main(query: Query, url: str) -> None:
    async with filled_store(url, commerce.graph, list(items())) as store:
        stats = await profiled(store, query)
    print(table(query, stats))
    stats.sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    os.environ.update(AWS)
    [asked] = queries(sys.argv[1:] or ["nested"])
    with dynamodb_local.running() as url:
        asyncio.run(main(asked, url))
