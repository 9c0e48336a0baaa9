"""A Valkey or Redis server of a test's own: Debian's `valkey-server`, or its `redis-server`."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_PROGRAM = shutil.which("valkey-server") or shutil.which("redis-server")

needs_valkey = pytest.mark.skipif(
    _PROGRAM is None, reason="neither valkey-server nor redis-server is installed"
)


@dataclass
class ValkeyServer:
    """A server that keeps nothing on disk."""

    folder: Path
    port: int
    options: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"valkey://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when it takes connections."""
        assert _PROGRAM is not None
        listening = () if "--tls-port" in self.options else ("--port", str(self.port))
        self.process = subprocess.Popen(
            [_PROGRAM, "--bind", "127.0.0.1", "--save", "", *listening, *self.options],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
        )
        ends = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                assert time.monotonic() < ends
                time.sleep(0.01)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextmanager
def valkey_server(folder: Path, *options: str) -> Iterator[ValkeyServer]:
    """A server that runs; `PORT` in its options is its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = ValkeyServer(folder, port, [each.replace("PORT", str(port)) for each in options])
    server.start()
    try:
        yield server
    finally:
        server.kill()
