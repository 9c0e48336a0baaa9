"""What a server must refuse: requests of foreign pages, odd heads, raw items, writes into a file that is not there, and
text that breaks the log."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from asyncio.subprocess import PIPE
from pathlib import Path

import orjson

from bench.compare.load import http_post
from bench.compare.servers import KEYGRAPH
from bench.reliability.clients import Client
from bench.reliability.scenarios import Outcome, Outcomes, within

NOTICED_SECONDS = 1.0
_PATHS = (
    "/",
    "/graphql",
    "/schema.graphql",
    "/healthz",
    "/readyz",
    "/playground/items",
    "/playground/examples",
)
_POST = "POST /graphql HTTP/1.1\r\nHost: localhost\r\n"
_ODD_HEADS = {
    **{f"GET /healthz HTTP/1.1\r\nHost: {host}": 400 for host in ("", "a b", "a/b", "a@b", "a:b", "a, b")},
    f"{_POST}Transfer-Encoding: gzip, chunked": 501,
    f"{_POST}Transfer-Encoding: chunked\r\nContent-Length: 5": 400,
    f"{_POST}Expect: x\r\nContent-Length: 0": 417,
    "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost": 400,
}
_BROKEN = re.compile("(?m)^(?!20|  |Keygraph|Try|$)|Traceback|[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]|.{16001}")
"""A line of the log that is none, is displayed as another one, or is too long."""
_UNUSABLE = (
    {"KEYGRAPH_AUTH": "jwt"},
    {"KEYGRAPH_AUTH": "jwt", "KEYGRAPH_JWT_KEY": "k" * 32, "KEYGRAPH_JWT_ALGORITHMS": "none"},
    {"KEYGRAPH_AUTH": "header", "KEYGRAPH_AUTH_HEADERS": "X-User"},
    {"KEYGRAPH_TRUSTED_DOCUMENTS": "/none"},
    {"KEYGRAPH_WORKERS": "100000"},
    {"KEYGRAPH_STORE": f"sqlite:{'x' * 5_000}"},
)
"""Settings that no server can use."""
_CREATE = (
    'mutation ($id: ID!) { createUser(input: { userId: $id, name: "n", email: "e", userType: CUSTOMER, '
    'createdAt: "2024-01-01T00:00:00Z" }) { user { userId } } }'
)


async def requests(port: int) -> Outcomes:
    """Requests that a foreign page makes a browser send (DNS rebinding), and those that proxies read differently."""
    foreign = [
        await _status(port, f"GET {path} HTTP/1.1\r\nHost: evil.example:{port}") == 421 for path in _PATHS
    ]
    odd = [await _status(port, head) == status for head, status in _ODD_HEADS.items()]
    return [_all_of("requests to the host of a foreign page", foreign), _all_of("odd heads", odd)]


async def playground(port: int) -> Outcomes:
    """The playground of a server that authenticates its clients."""
    client = Client(port)
    items, _ = await client.answer(http_post(port, "/playground/items", b'{"id": "x"}'))
    _, body = await client.answer(http_post(port, "/playground/examples", b"{}"))
    client.close()
    [user] = [each["document"] for each in orjson.loads(body) if each["name"] == "User"]
    has_no_values = user.startswith("query User($userId: ID!)")
    return [
        _all_of("raw items and values of the playground under `KEYGRAPH_AUTH`", [items == 404, has_no_values])
    ]


async def log(port: int, metrics_port: int, pid: int) -> Outcomes:
    """A server whose clients send text that breaks a log, and whose terminal hangs up."""
    os.kill(pid, signal.SIGHUP)
    head = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: ;,=;q=\xff, %b\r\n\r\n" % (b"x/y;," * 2_000)
    for _ in range(20):
        _, writer = await asyncio.open_connection("127.0.0.1", metrics_port)
        writer.write(head)
        await asyncio.sleep(0.01)
        writer.transport.abort()
    scraper = Client(metrics_port)
    status, _ = await scraper.answer(head)
    scraper.close()
    client = Client(port)
    for name in ("a\nb", "a\u202eb\x9b", "x" * 900_000):
        body = orjson.dumps({"query": f"{{ __typename {name} }}", "operationName": name})
        await client.answer(http_post(port, "/graphql", body))
    client.close()
    await asyncio.sleep(1)  # it is written in a thread
    broken = _BROKEN.findall(Path(f"/proc/{pid}/fd/2").read_text(errors="replace"))  # noqa: ASYNC240
    return [
        Outcome("the metrics for an odd `Accept`", "200", f"{status}", status == 200),
        Outcome("lines of the log that clients break", "none", f"{len(broken)}", not broken),
    ]


async def settings(store_url: str) -> Outcomes:
    """Servers whose settings cannot be used: they end with one line, before they say that they serve."""
    refused = []
    for unusable in _UNUSABLE:
        environment = {**os.environ, **KEYGRAPH.environment, "KEYGRAPH_STORE": store_url, **unusable}
        process = await asyncio.create_subprocess_exec(
            *(KEYGRAPH.command[0], "serve", "--port", "0"), env=environment, stdout=PIPE, stderr=PIPE
        )
        try:
            async with asyncio.timeout(60):
                output, errors = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        refused.append(
            process.returncode == 1 and not output and errors.splitlines()[-1][:10] == b"keygraph: "
        )
    return [_all_of("settings that no server can use", refused)]


async def moved_file(port: int, file: Path) -> Outcomes:
    """The SQLite file is moved while eight clients write, and comes back."""
    away = file.with_name("away.sqlite")
    acknowledged: set[str] = set()
    until = asyncio.Event()

    async def write(number: int) -> None:
        client, count = Client(port), 0
        while not until.is_set():
            id_ = f"{number}-{count}"
            if b'"user":{' in await _answer(client, _CREATE, id_):
                acknowledged.add(id_)
            count += 1  # it may have been written without an acknowledgment, and would be a conflict
        client.close()

    async def until_acknowledged(count: int) -> None:
        async with asyncio.timeout(60):
            while len(acknowledged) < count:  # noqa: ASYNC110  # each write counts
                await asyncio.sleep(0.01)

    writers = [asyncio.create_task(write(number)) for number in range(8)]
    await until_acknowledged(100)
    file.rename(away)  # noqa: ASYNC240  # at once
    began = time.perf_counter()
    async with asyncio.timeout(60):
        while await _status(port, "GET /readyz HTTP/1.1\r\nHost: localhost") != 503:  # noqa: ASYNC110  # asked anew
            await asyncio.sleep(0.01)
    noticed, before = time.perf_counter() - began, len(acknowledged)
    await asyncio.sleep(1)
    meanwhile = len(acknowledged) - before
    away.rename(file)
    await until_acknowledged(before + 100)
    until.set()
    await asyncio.gather(*writers)
    client = Client(port)
    read = "query ($id: ID!) { user(userId: $id) { userId } }"
    lost = [each for each in acknowledged if b'"user":{' not in await _answer(client, read, each)]
    client.close()
    return [
        within("the SQLite file is moved while 8 clients write: `/readyz` is 503", noticed, NOTICED_SECONDS),
        Outcome(
            "writes that are acknowledged while it is away, and acknowledged writes that are lost",
            "none",
            f"{meanwhile}, and {len(lost)} of {len(acknowledged)}",
            meanwhile == 0 and not lost,
        ),
    ]


async def _status(port: int, head: str) -> int:
    client = Client(port)
    status, _ = await client.answer(f"{head}\r\n\r\n".encode())
    client.close()
    return status


async def _answer(client: Client, query: str, id_: str) -> bytes:
    body = orjson.dumps({"query": query, "variables": {"id": id_}})
    return (await client.answer(http_post(client.port, "/graphql", body)))[1]


def _all_of(what: str, refused: list[bool]) -> Outcome:
    return Outcome(what, "refused", f"{sum(refused)} of {len(refused)}", all(refused))
