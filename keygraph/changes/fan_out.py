"""Hands the changes of a table to any number of servers, through a stream of a Valkey or Redis server.

DynamoDB asks for no more than two readers of a shard. A worker that follows the table (`keygraph.changes.following`) writes
what it reads with a `ChangePublisher`, and each server reads that with `PublishedChanges` as it would read the table's
stream with a `StreamReader`: position first, then whatever depends on it.

Nothing is missed without being noticed. After a lost connection (a failover loses what was not replicated), and when its
last entry is no longer in the stream, a reader raises StreamTrimmed: whoever depends on the table reads it again. What two
workers have published while a shard passed from one to the other is read once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

import orjson

from keygraph.daemon_thread import DaemonThreads, in_daemon_thread
from keygraph.dynamo.items import Item, base64_text, typed_item, untyped_item
from keygraph.dynamo.streams import StreamRecord
from keygraph.dynamo.table import Table
from keygraph.errors import StreamTrimmed, Unavailable
from keygraph.incidents import Incident

if TYPE_CHECKING:
    from redis.asyncio import Redis

_log = logging.getLogger(__name__)
_SCHEMES = {"valkey": "redis", "valkeys": "rediss", "redis": "redis", "rediss": "rediss"}
"""Of an address, and the client's own for it. Those with a second `s` use TLS."""
_KEPT_ENTRIES = 4_000
"""About so many entries are kept: readers need them for seconds."""
_ENTRY_BYTES = 64 * 1024
"""An entry has no more, unless a single change has."""
_READ_ENTRIES = 16
_SHORT_BYTES = 8 * 1024
"""An entry with more may have thousands of values, which take milliseconds to read: that is done in a thread."""
_AT_ONCE_BYTES = 1024 * 1024
"""A reader returns the changes of about so many bytes, which take 30 times as much memory when they were read."""
_LONGEST_BYTES = 16 * 1024 * 1024
"""No change has more: two items of 400 KB take six times as much as text, or twelve if they are numbers of one digit."""
_ANSWER_BYTES = _READ_ENTRIES * 10 * 1024 * 1024
"""No answer of the server has more: so much in each entry."""
_WAITED_SECONDS = 2.0
"""How long a read waits for the next change."""
_TIMEOUT_SECONDS = 5.0
"""After how long without an answer the connection is lost."""
_SHARDS = 4_096
"""Of so many shards, a reader knows how far it has read them."""
_LATEST = 253_402_300_799
"""The last second that has a date of four digits."""
_START = b"0-0"
"""The position before all entries."""


def check_fan_out(address: str) -> str:
    """Returns an address. Raises ValueError, without its password, if it is none of a Valkey or Redis server."""
    try:
        parts = urlsplit(address)
        is_address = (
            parts.scheme in _SCHEMES and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        is_address = False
    if not is_address:
        raise ValueError(
            "it is no address such as valkey://HOST:6379, or valkeys://USER:PASSWORD@HOST:6379 with TLS"
        )
    return address


def fan_out_client(address: str) -> Redis:
    """Returns a client of a Valkey or Redis server, for use with `async with`. It connects when it is used.

    Raises ModuleNotFoundError without its library, ValueError for an address that it cannot use.
    """
    # Imported here, because only those who use it have it installed.
    from redis._parsers import _AsyncRESP2Parser
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import RedisError

    class LimitedParser(_AsyncRESP2Parser):
        """Reads no answer without an end: no public setting limits them."""

        async def _readline(self) -> bytes:
            # What was read is kept for another attempt at the same answer, which there is none of.
            self._chunks.clear()
            if self._pos > _ANSWER_BYTES:
                raise ValueError("an answer that is too long")
            return await super()._readline()

        async def _read(self, length: int) -> bytes:
            if length > _LONGEST_BYTES:
                raise ValueError("a text that is too long")
            return await super()._read(length)

    # The client looks up names in the threads of the event loop.
    asyncio.get_running_loop().set_default_executor(DaemonThreads())
    scheme, _, rest = address.partition("://")
    # A lost connection is to be noticed, so that the client does not try again by itself.
    client = Redis.from_url(
        f"{_SCHEMES[scheme]}://{rest}",
        protocol=2,
        parser_class=LimitedParser,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=_TIMEOUT_SECONDS,
        socket_connect_timeout=_TIMEOUT_SECONDS,
        socket_keepalive=True,
    )
    try:
        cast(Any, client.connection_pool).make_connection()
    except (TypeError, RedisError) as error:
        raise ValueError(f"an option of the address: {error}") from None
    return client


@contextmanager
def _as_unavailable() -> Iterator[None]:
    """Raises Unavailable for any error: the client checks no answer that it reads, and something else may answer. The text
    of an error may hold the request, so only its kind is named."""
    try:
        yield
    except Exception as error:
        raise Unavailable(f"the Valkey or Redis server of the fan-out: {type(error).__name__}") from None


def _stream_key(table: Table) -> str:
    return f"keygraph:changes:{table.name}"


class ChangePublisher:
    """Writes the changes of a table to the stream."""

    def __init__(self, client: Redis, table: Table) -> None:
        self._client = client
        self._key = _stream_key(table)

    async def begin(self) -> None:
        """Writes an entry without changes to an empty stream: a reader that has begun at an entry knows what follows it.
        Raises Unavailable."""
        with _as_unavailable():
            if not await self._client.exists(self._key):
                await self._client.xadd(self._key, _entry("", b"[]"))

    async def publish(self, shard: str, records: Sequence[StreamRecord]) -> None:
        """Writes the next changes of a shard. Raises Unavailable: then some may be written, and all are to be again."""
        with _as_unavailable():
            async with self._client.pipeline(transaction=False) as pipeline:
                for text in _entries(records):
                    pipeline.xadd(self._key, _entry(shard, text), maxlen=_KEPT_ENTRIES, approximate=True)
                if not all(isinstance(name, bytes) for name in await pipeline.execute()):
                    raise TypeError("not written")


def _entry(shard: str, changes: bytes) -> Any:
    """Returns an entry with a name of its own: its id is its time, which an entry of a stream that begins anew may have too."""
    return {"shard": shard, "changes": changes, "name": uuid4().hex}


def _entries(records: Iterable[StreamRecord]) -> Iterator[bytes]:
    """Yields the texts of entries with these changes."""
    texts, size = list[bytes](), 0
    for each in records:
        images = (None if item is None else typed_item(item) for item in (each.old, each.new))
        text = orjson.dumps([each.position, each.at, *images], default=base64_text)
        if texts and size + len(text) > _ENTRY_BYTES:
            yield b"[%b]" % b",".join(texts)
            texts, size = [], 0
        texts.append(text)
        size += len(text)
    if texts:
        yield b"[%b]" % b",".join(texts)


def _checked(entries: Any) -> Any:
    """Returns entries as the server gives them. Raises an error for anything else."""
    if not all(isinstance(each, bytes) for name, fields in entries for each in (name, *fields.values())):
        raise TypeError("no entries")
    return entries


class PublishedChanges:
    """Reads the changes that publishers have written."""

    def __init__(self, client: Redis, table: Table) -> None:
        self._client: Any = client
        self._table = table
        self._key = _stream_key(table)
        self._last: tuple[bytes, Any] = _START, {}
        """The last entry that was read, or skipped."""
        self._is_doubtful = False
        """Whether something may be missing after the position: the connection was lost."""
        self._read: dict[str, tuple[str, float]] = {}
        """The position and time of the last change that was read of each shard, those of the last shards last."""
        self._entries = deque[tuple[bytes, Any]]()
        """Those that have come, but were not read."""
        self._skipped = Incident(_log)

    async def start_at_latest(self) -> None:
        """Skips everything that was published so far. Raises Unavailable."""
        with _as_unavailable():
            entries = _checked(await self._client.xrevrange(self._key, count=1))
        self._last = entries[0] if entries else (_START, {})
        self._is_doubtful = False
        self._entries.clear()

    async def read(self) -> list[tuple[str, StreamRecord]]:
        """Waits some seconds for the next changes, and returns some of them with their shards.

        Raises Unavailable, and StreamTrimmed if some may be missing: it is to start at the latest again.
        """
        if not self._entries:
            await self._receive()
        found, size = list[tuple[str, StreamRecord]](), 0
        while self._entries and size < _AT_ONCE_BYTES:
            name, fields = self._entries.popleft()
            length = len(fields.get(b"changes", b""))
            size += length
            try:
                shard = fields[b"shard"].decode()
                if length > _SHORT_BYTES:
                    records = await in_daemon_thread(self._records, fields)
                else:
                    records = self._records(fields)
            except Exception as error:
                entry = f"{name.decode(errors='replace')} of {self._key}"
                self._skipped.happened(f"The entry {entry} is skipped: {type(error).__name__}")
            else:
                found += self._unread(shard, records)
        return found

    async def _receive(self) -> None:
        """Waits some seconds for the next entries. Raises as `read` does."""
        if self._is_doubtful:
            raise StreamTrimmed("changes of the fan-out may have been lost with the connection")
        (position, last), self._is_doubtful = self._last, True
        with _as_unavailable():
            streams = await self._client.xread(
                {self._key: position}, count=_READ_ENTRIES, block=int(_WAITED_SECONDS * 1000)
            )
            entries = _checked(streams[0][1]) if streams else []
            # The oldest are deleted first: where this one is still there, so is what followed it.
            there = await self._client.xrange(self._key, position, position)
            is_there = any(fields.get(b"name") == last.get(b"name") for _, fields in there)
        if not is_there and (entries or position != _START):
            raise StreamTrimmed("changes of the fan-out were deleted before they were read")
        self._is_doubtful = False
        if entries:
            self._last = entries[-1]
            self._entries += entries

    def _records(self, fields: Any) -> list[StreamRecord]:
        """Returns the changes of an entry. Raises an error for one that has no changes in it."""
        if len(fields[b"changes"]) > _LONGEST_BYTES:
            raise ValueError("too long")
        return [self._record(*each) for each in orjson.loads(fields[b"changes"])]

    def _unread(self, shard: str, records: Iterable[StreamRecord]) -> list[tuple[str, StreamRecord]]:
        """Returns those of some changes that were not read yet."""
        found = list[tuple[str, StreamRecord]]()
        for record in records:
            position, at = self._read.pop(shard, ("", 0.0))
            if record.position > position or record.at > at:
                position, at = record.position, record.at
                found.append((shard, record))
            self._read[shard] = position, at
        while len(self._read) > _SHARDS:
            del self._read[next(iter(self._read))]
        return found

    def _record(self, position: str, at: float, *images: Any) -> StreamRecord:
        """Returns a change. Raises an error for anything else."""
        old, new = (None if image is None else untyped_item(image) for image in images)
        item: Item = (old if new is None else new) or {}
        if not all(each.holds(item[each.name]) for each in self._table.keys):
            raise ValueError("an item without its key")
        if not 0 <= at <= _LATEST:
            raise ValueError("no time")
        return StreamRecord(self._table.key_of(item), old, new, str(position), float(at))
