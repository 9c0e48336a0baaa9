"""What a verification reports of a table."""

from __future__ import annotations

from typing import Any

from keygraph import Graph
from keygraph.dynamo.store import Store
from keygraph.tables.findings import Report
from keygraph.tables.verify import Verification


async def verified(graph: Graph, store: Store, **options: Any) -> Report:
    """Returns what a verification finds in a whole table, or what its repairs leave. Raises StoreError."""
    verification = Verification(graph.check(), store, **options)
    await verification.run(lambda _: None)
    return verification.report
