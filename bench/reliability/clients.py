"""Clients that check their answers: a right answer, an error that says what is wrong, or something else."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from bench.compare.load import http_post

ANSWER_SECONDS = 40.0
TOLD = frozenset({"UNAVAILABLE", "TIMEOUT", "THROTTLED"})
"""The error codes for faults of DynamoDB, or of the server itself when it has too much to do."""


@dataclass(frozen=True)
class Asked:
    """A request, and the body of its right answer."""

    request: bytes
    right: bytes


@dataclass
class Seen:
    """The answers that clients have received."""

    right: int = 0
    told: Counter[str] = field(default_factory=Counter)
    """Errors that say what is wrong, by code."""
    lost: int = 0
    """Requests without an answer: the connection was closed, or nobody listened."""
    wrong: list[str] = field(default_factory=list)
    """Everything else: the beginning of each."""
    seconds: list[float] = field(default_factory=list)
    """The duration of each answer."""
    own_seconds: list[float] = field(default_factory=list)
    """The same, less the time that the server and the client waited for a processor: other programs had them."""

    @property
    def answers(self) -> int:
        return self.right + self.told.total() + len(self.wrong)

    def slowest(self, kind: str = "seconds", share: float = 0.99) -> float:
        """The time within which this share of the answers came; `kind` is an attribute."""
        seconds = sorted(getattr(self, kind))
        return seconds[int(len(seconds) * share) - 1] if seconds else 0.0

    def add(self, other: Seen) -> None:
        """Adds the answers that another client has received."""
        self.right += other.right
        self.told += other.told
        self.lost += other.lost
        self.wrong += other.wrong
        self.seconds += other.seconds
        self.own_seconds += other.own_seconds

    def take(self, asked: Asked, status: int, body: bytes) -> None:
        if status == 200 and body == asked.right:
            self.right += 1
            return
        try:
            answer = orjson.loads(body)
            codes = {error["extensions"]["code"] for error in answer["errors"]}
        except (ValueError, KeyError, TypeError):
            codes = set()
        if codes and codes <= TOLD:
            self.told["+".join(sorted(codes))] += 1
        else:
            self.wrong.append(f"{status} {body[:200].decode(errors='replace')}")


def processor_waits(pid: int | str | None = "self") -> float:
    """Returns how many seconds the main thread of a process, by default this one, could have run and had no processor
    (proc_pid_schedstat); 0 without one, or where the system does not count it."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


class Client:
    """A client that opens a new connection when the old one has been closed."""

    def __init__(self, port: int, address: str = "127.0.0.1", pid: int | None = None) -> None:
        """`address` is the client's own, one of this machine's; `pid` is the server's process, if its waits count."""
        self.port = port
        self.address = address
        self._pid = pid
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, asked: Asked, seen: Seen) -> None:
        """Asks once, and records the answer."""
        waited, began = self._waits(), time.perf_counter()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                status, body = await self.answer(asked.request)
        except (OSError, EOFError, TimeoutError):
            seen.lost += 1
            self.close()
            await asyncio.sleep(0.01)
            return
        seconds = time.perf_counter() - began
        seen.seconds.append(seconds)
        seen.own_seconds.append(seconds - (self._waits() - waited))
        seen.take(asked, status, body)
        if status != 200:
            # Do not ask a server that refuses again at once.
            await asyncio.sleep(0.05)

    def _waits(self) -> float:
        return processor_waits(self._pid) + processor_waits()

    async def answer(self, request: bytes) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                "127.0.0.1", self.port, limit=2**24, local_addr=(self.address, 0)
            )
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head[head.index(b"content-length:") + 15 :].split(b"\r\n", 1)[0])
        body = await reader.readexactly(length)
        if b"connection: close" in head:
            self.close()
        return int(head.split(b" ", 2)[1]), body

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


async def asked_of(port: int, bodies: Sequence[bytes]) -> list[Asked]:
    """Returns the requests with their right answers, which the server gives while nothing is wrong."""
    client, found = Client(port), []
    for body in bodies:
        request = http_post(port, "/graphql", body)
        status, answer = await client.answer(request)
        if status != 200 or b'"errors"' in answer:
            raise ValueError(f"no right answer: {status} {answer[:500]!r}")
        found.append(Asked(request, answer))
    client.close()
    return found


async def many(port: int, asked: Sequence[Asked], clients: int, until: asyncio.Event) -> Seen:
    """Runs this many clients that ask again and again until they are stopped."""
    seen = Seen()

    async def one(number: int) -> None:
        client = Client(port)
        while not until.is_set():
            await client.ask(asked[number % len(asked)], seen)
            number += 1
        client.close()

    await asyncio.gather(*map(one, range(clients)))
    return seen
