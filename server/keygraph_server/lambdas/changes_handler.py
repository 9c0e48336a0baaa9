"""A Lambda handler for the stream of the table: what `keygraph follow` does, for one batch of records after another.

Lambda reads the shards, and calls it with the records of one. Which shard that is, an event says only if the event source
mapping has a tumbling window; its state is not used. A batch that fails is reported as failing from its first record, so that
Lambda sends it again, and every record is applied once all the same (`keygraph.changes.ledger`).

https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-windows.html
https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from keygraph.changes.following import Handle
from keygraph.dynamo.streams import StreamRecord
from keygraph.errors import StoreError, StreamTrimmed
from keygraph.graph import Graph
from keygraph_server.jobs.effects import open_change_effects, refuse_without_effect
from keygraph_server.lambdas.event_handler import EventHandler
from keygraph_server.models import configured_model
from keygraph_server.settings import Settings
from keygraph_server.stores import open_configured_store

_log = logging.getLogger(__name__)


class ChangesHandler(EventHandler[tuple[Graph, Handle]]):
    """Handles the records of events."""

    async def _open(self, settings: Settings) -> tuple[Graph, Handle]:
        graph = configured_model(settings).graph
        refuse_without_effect(settings, graph)
        store = await self._opened.enter_async_context(open_configured_store(settings, graph.table))
        return graph, await self._opened.enter_async_context(open_change_effects(settings, graph, store))

    def __call__(self, event: Mapping[str, Any], context: object = None) -> dict[str, Any]:
        """The result for an event of a DynamoDB stream: the first record of a batch that failed. Raises ValueError for
        another event, and for one without its shard."""
        graph, handle = self.start()
        records = event.get("Records")
        if not isinstance(records, list):
            raise ValueError("this is no event of a DynamoDB stream")
        failures: list[dict[str, str]] = []
        if records:
            shard = event.get("shardId")
            if not isinstance(shard, str):
                raise ValueError(
                    "the event does not say its shard: set TumblingWindowInSeconds on the event source mapping"
                )
            try:
                self._runner.run(handle(shard, [_record(each, graph) for each in records]))
            except StreamTrimmed as error:
                _log.error("Changes are lost: run `keygraph summarize` (%s)", error)
            except StoreError as error:
                _log.warning("A batch of changes is to be sent again: %s", error)
                failures.append({"itemIdentifier": records[0]["dynamodb"]["SequenceNumber"]})
        return {"state": {}, "batchItemFailures": failures}


def _record(record: Mapping[str, Any], graph: Graph) -> StreamRecord:
    # Imported here: with SQLite, no library of AWS is needed.
    from keygraph.engines.dynamodb.answers import stream_record

    try:
        return stream_record(record["dynamodb"], graph.table)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"this is no record of the stream of the table {graph.table.name}") from error
