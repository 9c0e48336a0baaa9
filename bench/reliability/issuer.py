"""An issuer of tokens whose keys (JWKS) are odd, trickle, never end, or are elsewhere."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from jwt.algorithms import RSAAlgorithm

from bench.compare.load import http_post
from bench.reliability.clients import Asked, Client, Seen
from bench.reliability.scenarios import MOST_MEGABYTES, TYPENAME, Outcome, megabytes

ANSWERS_SECONDS = 6.0
"""A fetch of keys may take five."""
_ODD: tuple[object, ...] = (
    {"kty": "oct", "alg": "none", "k": "", "kid": "none"},
    {"kty": "RSA", "kid": ["a", "list"]},
    {"kty": "RSA", "kid": "good", "n": 5, "e": {}},
    {"kty": "EC", "crv": [], "x": None},
    {},
    [],
    5,
    None,
)
_MEGABYTE = b" " * 1_000_000


class Keys(Enum):
    """How the issuer answers who asks for its keys."""

    ODD = "odd ones among them"
    TRICKLING = "one byte in a tenth of a second"
    LARGE = "400 MB"
    ELSEWHERE = "redirected"


class Issuer:
    """The issuer. `token` is a valid one of it."""

    def __init__(self, keys: Keys) -> None:
        key: RSAPrivateKey = generate_private_key(public_exponent=65537, key_size=2048)
        good = {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "good"}
        self._keys = keys
        self._document = json.dumps({"keys": [*_ODD, good, *_ODD]}).encode()
        self.token = jwt.encode({"sub": "1", "exp": time.time() + 3600}, key, "RS256", {"kid": "good"})
        self.url = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listens at `url` in the block."""
        server = await asyncio.start_server(self._answer, "127.0.0.1")
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"
        try:
            yield
        finally:
            server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1]
            if self._keys is Keys.ELSEWHERE and path == b"/keys":
                writer.write(b"HTTP/1.1 302 Found\r\nLocation: /others\r\nContent-Length: 0\r\n\r\n")
                return
            length = 400 * len(_MEGABYTE) if self._keys is Keys.LARGE else len(self._document)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            writer.write(head.encode())
            match self._keys:
                case Keys.LARGE:
                    parts, pause = [_MEGABYTE] * 400, 0.0
                case Keys.TRICKLING:
                    parts, pause = [bytes([each]) for each in self._document], 0.1
                case _:
                    parts, pause = [self._document], 0.0
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause)
        except (OSError, EOFError):
            return
        finally:
            writer.close()


async def login(port: int, pid: int, issuer: Issuer, keys: Keys) -> Outcome:
    """The first request with a token of the issuer."""
    client, seen = Client(port, pid=pid), Seen()
    post = http_post(port, "/graphql", TYPENAME)
    with_token = post.replace(b"\r\n", f"\r\nAuthorization: Bearer {issuer.token}\r\n".encode(), 1)
    await client.ask(Asked(with_token, b'{"data":{"__typename":"Query"}}'), seen)
    client.close()
    seconds, memory = seen.slowest("own_seconds", 1.0), megabytes(pid)
    holds = seen.right == 1 if keys is Keys.ODD else seen.told["UNAVAILABLE"] == 1
    return Outcome(
        f"a token whose issuer's keys are {keys.value}",
        f"{'right' if keys is Keys.ODD else 'UNAVAILABLE'} within {ANSWERS_SECONDS:.0f} s, under {MOST_MEGABYTES:.0f} MB",
        f"{', '.join(seen.told) or f'{seen.right} right'} after {seconds:.1f} s, {memory:.0f} MB",
        holds and seconds <= ANSWERS_SECONDS and memory < MOST_MEGABYTES,
    )
