"""Opens the store that the settings name, and compares its table, and a sample of its items, with the model."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import SecretStr

from keygraph import Graph, StoreError, open_store
from keygraph.daemon_thread import in_daemon_thread
from keygraph.dynamo.differences import table_differences
from keygraph.dynamo.store import CreateTable, DescribeTable, Store
from keygraph.dynamo.table import Table
from keygraph.engines.open import is_endpoint
from keygraph.errors import TableMissing, Unavailable
from keygraph.tables.attributes import AttributeCounter, unmatched
from keygraph.tables.item_keys import ItemKeys
from keygraph.tables.sample import sample
from keygraph_server.errors import CommandError, printable
from keygraph_server.settings import Settings

if TYPE_CHECKING:
    from redis.asyncio import Redis

_log = logging.getLogger(__name__)
_SAMPLE_ITEMS = 200
_CONNECT_SECONDS = 1.0
_AWS = "https://dynamodb.amazonaws.com"
"""In place of the endpoint of a region, of which AWS's settings decide."""
_CERTAIN = 20
"""A field that is absent from fewer items of a type may be absent by chance, unless another attribute has its name."""


def open_configured_store(settings: Settings, table: Table) -> AbstractAsyncContextManager[Store]:
    """The store that the settings name, as an async context manager.

    Raises CommandError without the libraries that it needs.
    """
    try:
        return open_store(
            settings.store_address,
            table,
            concurrency=settings.concurrency,
            deadline=settings.deadline,
            transport=settings.transport,
        )
    except ModuleNotFoundError:
        problem = f"the store {settings.displayed_store} needs AWS's libraries, which are not installed"
        raise CommandError(problem, "Install them with `pip install 'keygraph[aws]'`") from None


def configured_fan_out(address: SecretStr) -> Redis:
    """The client of the fan-out, for use with `async with`. Raises CommandError without its library, or for an option
    that it does not know."""
    from keygraph.changes.fan_out import fan_out_client  # only who hands changes on needs it

    try:
        return fan_out_client(address.get_secret_value())
    except ModuleNotFoundError:
        problem = "KEYGRAPH_FAN_OUT needs the client of Valkey and Redis, which is not installed"
        raise CommandError(problem, "Install it with `pip install 'keygraph[valkey]'`") from None
    except ValueError as error:
        raise CommandError(f"KEYGRAPH_FAN_OUT cannot be used: {error}", "See docs/live.md") from None


@asynccontextmanager
async def open_answering_store(settings: Settings, table: Table) -> AsyncIterator[Store]:
    """The store that the settings name, for a command.

    Raises Unavailable if nothing listens at its address, or at that of its proxy: the store itself would retry until its
    deadline.
    """
    proxy = _proxy_of(settings.store_address)
    parts = urlsplit(proxy or settings.store_address)
    if parts.scheme in {"http", "https"}:
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                connecting = in_daemon_thread(socket.create_connection, (host, port), _CONNECT_SECONDS)
                (await connecting).close()
        except OSError:
            what = "the proxy of DynamoDB" if proxy else "DynamoDB"
            raise Unavailable(f"no connection to {what} at {host}:{port}: is it running?") from None
    async with open_configured_store(settings, table) as store:
        yield store


def _proxy_of(address: str) -> str | None:
    """The proxy that AWS's library uses for a store, by the environment. Raises Unavailable if it is no address."""
    parts = urlsplit(_AWS if address == "aws" else address)
    if parts.scheme not in {"http", "https"}:
        return None
    # Imported here, because it loads half of Python's network libraries.
    from urllib.request import getproxies, proxy_bypass

    proxy = getproxies().get(parts.scheme)
    if proxy is None or proxy_bypass(parts.netloc):
        return None
    proxy = proxy if "//" in proxy else f"http://{proxy}"
    if not is_endpoint(proxy):
        raise Unavailable(
            f"{parts.scheme.upper()}_PROXY is not the address of a proxy: set it to http://HOST:PORT"
        )
    return proxy


async def live_table(settings: Settings, table: Table) -> Table | None:
    """The table of this name as it is in the store; None if there is none. Does not create a SQLite file.

    Raises StoreError if the store does not answer.
    """
    file = settings.sqlite_file
    if file is not None and not file.exists():
        return None
    async with open_answering_store(settings, table) as store:
        return await store.send(DescribeTable())


@asynccontextmanager
async def open_table(
    settings: Settings, table: Table, *, creates: bool = False
) -> AsyncIterator[tuple[Store, Table, bool]]:
    """The store that the settings name, the table as it is there, and whether it is new.

    With `creates`, a table that a SQLite file lacks is created, with the file. Otherwise no file is created.
    Raises TableMissing if there is no table.
    """
    file = settings.sqlite_file
    if file is None or file.exists() or creates:
        async with open_answering_store(settings, table) as store:
            found = await store.send(DescribeTable())
            is_new = found is None and creates and file is not None
            if is_new:
                await store.send(CreateTable())
                found = table
            if found is not None:
                yield store, found, is_new
                return
    raise TableMissing(f"there is no table {table.name}. Create it with `{create_command(settings)}`")


def create_command(settings: Settings) -> str:
    """The command that creates the table, with the given model and store."""
    given = {"model": settings.model, "store": settings.displayed_store}
    words = [
        f" --{name} {shlex.quote(value)}"
        for name, value in given.items()
        if name in settings.model_fields_set
    ]
    return f"keygraph table create{''.join(words)}"


async def comparison(settings: Settings, declared: Table) -> str:
    """The differences between the table in the store and the declared one, as text for people."""
    address = settings.displayed_store
    try:
        live = await live_table(settings, declared)
    except StoreError as error:
        return f"{address} does not answer ({error}), so the tables were not compared."
    if live is None:
        return f"There is no table {declared.name} in {address}. Create it with `{create_command(settings)}`."
    differing = table_differences(declared, live)
    if not differing:
        return f"The table in {address} matches the model."
    return "\n".join(
        (f"The table in {address} differs from the model:", *(f"  - {printable(each)}" for each in differing))
    )


async def look_at_items(settings: Settings, graph: Graph) -> None:
    """Logs fields that no item of a sample has, and keys that do not match the attributes, once for each type. Never
    raises StoreError: a sample is optional."""
    try:
        async with open_configured_store(settings, graph.table) as store:
            items = await sample(store, _SAMPLE_ITEMS)
    except StoreError as error:
        _log.info("No sample of the items could be read: %s", error)
        return
    counter = AttributeCounter(graph)
    keys = {name: ItemKeys(record) for name, record in graph.types.items()}
    found: Counter[str] = Counter()
    wrong: dict[str, Counter[str]] = {name: Counter() for name in graph.types}
    for item in items:
        record = graph.recognise(item)
        if record is not None:
            counter.add(record, item)
            found[record.name] += 1
            # Methods and formats are the model's own code: `keygraph verify` reports their errors.
            with suppress(Exception):
                wrong[record.name].update(keys[record.name].problems(item))
    every = list(unmatched(graph, counter.counts))
    for name, count in found.items():
        fields = [each for each in every if each.type == name and each.field is not None]
        worth_saying = [each for each in fields if each.meant is not None or count >= _CERTAIN]
        if worth_saying:
            # An optional field may be absent everywhere. If another attribute looks like it, that is hardly intended.
            level = logging.WARNING if any(each.meant is not None for each in worth_saying) else logging.INFO
            _log.log(level, "%s, in a sample of %d: %s.", name, count, ". ".join(map(str, worth_saying)))
            continue
        for problem, times in wrong[name].most_common(1):
            what = (
                "%s, in a sample of %d: the keys of %d do not match the attributes (%s). `keygraph verify` finds all such "
                "items, and `keygraph verify --repair` lists how to fix them."
            )
            _log.warning(what, name, count, times, problem)


def is_same_file(one: Path | None, other: Path | None) -> bool:
    """Whether two SQLite files are one, also by a link or another spelling."""
    if one is None or other is None:
        return False
    try:
        return one.samefile(other)
    except OSError:  # one is missing, or a link that leads to itself
        return os.path.realpath(one) == os.path.realpath(other)


def refuse_table_file(path: Path | None, settings: Settings) -> None:
    """Raises CommandError for an output that is the table's SQLite file, its log or the index of that."""
    file = settings.sqlite_file
    if path is None or file is None:
        return
    beside = Path(os.path.realpath(file))  # SQLite keeps the others beside the file that a link leads to
    if any(is_same_file(path, beside.with_name(beside.name + each)) for each in ("", "-wal", "-shm")):
        raise CommandError(f"{path} is a file of the table", "Name another file")
