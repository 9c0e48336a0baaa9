"""A small DynamoDB that fails in every way in which a real one, or the network before it, can fail."""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from email.utils import formatdate
from typing import Any

import aiohttp
import orjson

from tests.listening import listening

Body = dict[str, Any]

FAULTS = ("throttled", "failed", "unavailable", "cut before", "cut after", "half", "garbled", "slow")
"""What can happen to a request; what happens `before` is not done, what happens `after` is."""


class FaultyDynamoDB:
    """One table in a dict, whose answers are spoilt by chance."""

    def __init__(self, seed: int | str = 0, failing: float = 0.0, faults: tuple[str, ...] = FAULTS) -> None:
        self.random = random.Random(seed)
        self.failing = failing
        self.leaving = 0.1 if failing else 0.0
        """How much of a batch is left undone."""
        self.faults = faults
        self.items: dict[tuple[str, str], Body] = {}
        self.happened: Counter[str] = Counter()
        self.connections = 0
        self._serving: set[asyncio.Task[Any]] = set()
        self._late: set[asyncio.Task[None]] = set()
        self.ahead = 0.0
        """By how many seconds its clock is ahead of ours."""
        self.requests: list[tuple[str, Body]] = []

    # --- What it answers ------------------------------------------------------------------------------

    def answer(self, operation: str, body: Body) -> Body:
        self.requests.append((operation, body))
        return getattr(self, operation)(body)  # type: ignore[no-any-return]  # its methods below

    def Query(self, body: Body) -> Body:  # noqa: N802  # the operation's name
        [partition] = body["ExpressionAttributeValues"].values()
        found = [self.items[key] for key in sorted(self.items) if key[0] == partition["S"]]
        return {"Items": found, "Count": len(found), "ScannedCount": len(found)}

    def GetItem(self, body: Body) -> Body:  # noqa: N802  # the operation's name
        item = self.items.get(_plain(body["Key"]))
        return {} if item is None else {"Item": item}

    def BatchGetItem(self, body: Body) -> Body:  # noqa: N802  # the operation's name
        [(name, asked)] = body["RequestItems"].items()
        done, left = self._split(asked["Keys"])
        found = [self.items[_plain(key)] for key in done if _plain(key) in self.items]
        self.random.shuffle(found)
        consumed = [{"TableName": name, "CapacityUnits": 0.5 * len(done)}]
        unprocessed = {name: {"Keys": left}} if left else {}
        return {"Responses": {name: found}, "UnprocessedKeys": unprocessed, "ConsumedCapacity": consumed}

    def BatchWriteItem(self, body: Body) -> Body:  # noqa: N802  # the operation's name
        [(name, asked)] = body["RequestItems"].items()
        done, left = self._split(asked)
        for action in done:
            if put := action.get("PutRequest"):
                self.items[_plain(put["Item"])] = put["Item"]
            else:
                self.items.pop(_plain(action["DeleteRequest"]["Key"]), None)
        consumed = [{"TableName": name, "CapacityUnits": float(len(done))}]
        return {"UnprocessedItems": {name: left} if left else {}, "ConsumedCapacity": consumed}

    def _split(self, members: list[Body]) -> tuple[list[Body], list[Body]]:
        left = [each for each in members if self.random.random() < self.leaving]
        return [each for each in members if each not in left], left

    # --- How it answers -------------------------------------------------------------------------------

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._serve(reader, writer)
        except asyncio.CancelledError:
            # Streams log what ends otherwise.
            pass
        finally:
            self._serving.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head)}
                body = orjson.loads(await reader.readexactly(int(fields["content-length"])))
                operation = fields["x-amz-target"].rpartition(".")[2]
                fault = self.random.choice(self.faults) if self.random.random() < self.failing else "none"
                now = time.time() + self.ahead
                if abs(_seconds(fields["x-amz-date"]) - now) > 300:
                    fault = "skewed"
                    refusal = _refusal(
                        "InvalidSignatureException", "Signature expired: 1 is now earlier than 2"
                    )
                    self._write(writer, 400, refusal, date=formatdate(now, usegmt=True))
                self.happened[fault] += 1
                if fault == "skewed":
                    continue
                if not await self._reply(writer, fault, operation, body, fields):
                    break

    async def _reply(
        self, writer: asyncio.StreamWriter, fault: str, operation: str, body: Body, fields: dict[str, str]
    ) -> bool:
        match fault:
            case "cut before":
                return False
            case "hung":
                await asyncio.sleep(3600)
            case "late":
                late = asyncio.create_task(self._done_late(operation, body, fields))
                self._late.add(late)
                late.add_done_callback(self._late.discard)
                return False
            case "throttled":
                self._write(writer, 400, _refusal("ProvisionedThroughputExceededException"))
            case "failed":
                self._write(writer, 500, _refusal("InternalServerError"))
            case "unavailable":
                self._write(writer, 503, b"<html>busy</html>", crc=None)
            case "conflict" if operation == "TransactWriteItems":
                reasons = [{"Code": "TransactionConflict"} for _ in body["TransactItems"]]
                self._write(
                    writer, 400, _refusal("TransactionCanceledException", CancellationReasons=reasons)
                )
            case _:
                return await self._write_answer(writer, fault, *await self.done(operation, body, fields))
        return True

    async def _done_late(self, operation: str, body: Body, fields: dict[str, str]) -> None:
        """Carries out a request of which nobody waits for the answer any more."""
        await asyncio.sleep(self.random.uniform(0, 0.05))
        await self.done(operation, body, fields)

    async def done(self, operation: str, body: Body, fields: dict[str, str]) -> tuple[int, bytes]:
        """The status and the answer of a request, with its header's fields, that is carried out."""
        return 200, orjson.dumps(self.answer(operation, body))

    async def _write_answer(
        self, writer: asyncio.StreamWriter, fault: str, status: int, answer: bytes
    ) -> bool:
        match fault:
            case "cut after":
                return False
            case "half":
                self._write(writer, status, answer, sent=self.random.randrange(len(answer)))
                return False
            case "garbled":
                self._write(writer, status, answer, crc=zlib.crc32(answer) ^ 1)
            case "slow":
                await asyncio.sleep(0.2)
                self._write(writer, status, answer)
            case _:
                self._write(writer, status, answer, chunked=self.random.random() < 0.3)
        return True

    def _write(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        body: bytes,
        *,
        crc: int | None = -1,
        sent: int | None = None,
        chunked: bool = False,
        date: str | None = None,
    ) -> None:
        summed = zlib.crc32(body) if crc == -1 else crc
        head = f"HTTP/1.1 {status} It\r\nx-amzn-RequestId: ABC\r\n"
        head += "" if summed is None else f"x-amz-crc32: {summed}\r\n"
        head += "" if date is None else f"Date: {date}\r\n"
        if chunked:
            parts = [body[at : at + 97] for at in range(0, len(body), 97)]
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
            writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + body)
        else:
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:sent])

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
        async with listening(self.serve, tls) as host:
            yield f"http{'s' if tls else ''}://{host}"
            for task in (serving := set(self._serving)):
                task.cancel()
            await asyncio.gather(*serving, *self._late)


class FaultyProxy(FaultyDynamoDB):
    """Stands before a real one, and spoils what goes through."""

    def __init__(
        self,
        upstream: str,
        seed: int | str,
        failing: float,
        faults: tuple[str, ...],
        *,
        one_by_one: bool = False,
    ) -> None:
        """`one_by_one` is for a server that answers one request at a time alone."""
        super().__init__(seed, failing, faults)
        self._upstream = upstream
        self._free = asyncio.Semaphore(1 if one_by_one else 1000)
        self._client: aiohttp.ClientSession | None = None

    async def done(self, operation: str, body: Body, fields: dict[str, str]) -> tuple[int, bytes]:
        assert self._client is not None
        headers = {
            name: value
            for name, value in fields.items()
            if name.startswith(("x-amz", "auth", "content-type"))
        }
        async with (
            self._free,
            self._client.post(self._upstream, data=orjson.dumps(body), headers=headers) as answer,
        ):
            return answer.status, await answer.read()

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
        async with aiohttp.ClientSession() as self._client, super().running(tls) as url:
            yield url


def _refusal(code: str, message: str = "no", **more: Any) -> bytes:
    return orjson.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message, **more})


def _seconds(stamp: str) -> float:
    return datetime.strptime(stamp, "%Y%m%dT%H%M%S%z").timestamp()


def _plain(typed: Body) -> tuple[str, str]:
    return typed["PK"]["S"], typed["SK"]["S"]
