"""What `keygraph follow`, or a Lambda function, does with the changes of the table."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from keygraph.changes.counting import StreamCounter
from keygraph.changes.fan_out import ChangePublisher
from keygraph.changes.following import Handle
from keygraph.changes.kept_walks import StreamWalks, stream_walks
from keygraph.dynamo.store import Store
from keygraph.dynamo.streams import StreamRecord
from keygraph.graph import Graph
from keygraph_server.errors import CommandError
from keygraph_server.settings import Settings
from keygraph_server.stores import configured_fan_out


def refuse_without_effect(settings: Settings, graph: Graph) -> None:
    """Raises CommandError if there is nothing to do with changes."""
    of_lists = (each.field for several in graph.every_tally.values() for each in several)
    is_kept = any(each.is_kept_by_stream for each in of_lists) or bool(stream_walks(graph))
    if settings.fan_out is None and not is_kept:
        raise CommandError(
            "the model declares nothing that the stream keeps",
            'Declare a count, a sum or an average: counts("orders", kept="stream"), or set KEYGRAPH_FAN_OUT',
        )


@asynccontextmanager
async def open_change_effects(settings: Settings, graph: Graph, store: Store) -> AsyncIterator[Handle]:
    """What is to be called with the next changes of each shard. Raises CommandError, and Unavailable."""
    counter, walks, publisher = StreamCounter(graph, store), StreamWalks(graph, store), None
    async with AsyncExitStack() as opened:
        if settings.fan_out is not None:
            client = await opened.enter_async_context(configured_fan_out(settings.fan_out))
            publisher = ChangePublisher(client, store.table)
            await publisher.begin()

        async def handle(shard: str, records: Sequence[StreamRecord]) -> None:
            if publisher is not None:
                await publisher.publish(shard, records)
            await counter.apply(shard, records)
            await walks.apply(records)

        yield handle
