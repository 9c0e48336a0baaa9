"""The compared servers: how each is started, and why one is left out."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.compare.processes import free_port, started

ROOT = Path(__file__).parents[2]
_APOLLO = Path(__file__).parent / "peers" / "apollo"
AWS = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Credentials for signing requests; DynamoDB Local accepts any."""


@dataclass(frozen=True)
class Server:
    """A program that answers the queries; `{port}` in its command and environment is replaced by its port."""

    name: str
    shown_name: str
    command: Sequence[str]
    path: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path = ROOT
    warm_up: float = 1.0
    """The length of its warm-up, in turns."""


@dataclass(frozen=True)
class Running:
    """A server that is running."""

    server: Server
    port: int
    pid: int


_BIN = Path(sys.executable).parent
KEYGRAPH = Server(
    "keygraph",
    "Keygraph",
    (str(_BIN / "keygraph"), "serve", "--host", "127.0.0.1", "--port", "{port}"),
    "/graphql",
    {
        "KEYGRAPH_MODEL": "keygraph_examples.commerce:graph",
        "KEYGRAPH_SECRET": "the secret of these measurements",
        # A busy DynamoDB Local can delay requests behind thousands of others beyond the default of ten seconds.
        "KEYGRAPH_DEADLINE": "60",
    },
)
STRAWBERRY = Server(
    "strawberry",
    "Strawberry",
    (
        sys.executable,
        "-m",
        "uvicorn",
        "bench.compare.peers.strawberry_by_hand:app",
        "--port",
        "{port}",
        "--log-level",
        "warning",
        "--no-access-log",
    ),
)
APOLLO = Server(
    "apollo",
    "Apollo",
    ("node", "server.mjs"),
    environment={"PORT": "{port}", "NODE_ENV": "production"},
    folder=_APOLLO,
    # V8 compiles code that runs often: after a short warm-up, a turn would measure uncompiled code.
    warm_up=6.0,
)
PLAIN, MERGED = (
    Server(
        f"floor-{order}",
        f"floor, {order}",
        (sys.executable, "-m", "bench.compare.peers.floor", order),
        environment={"PORT": "{port}"},
    )
    for order in ("plain", "merged")
)
SERVERS = (KEYGRAPH, APOLLO, STRAWBERRY, PLAIN, MERGED)


def missing(server: Server) -> str | None:
    """Why a server cannot run here, and how to fix that; None if it can."""
    if server is APOLLO:
        if shutil.which("node") is None:
            return "node was not found: install Node.js 20 or newer"
        if not (_APOLLO / "node_modules").is_dir():
            return f"its packages are not installed: `npm ci` in {_APOLLO.relative_to(ROOT)}, as `make bench` does"
    return None


@contextmanager
def running(servers: Sequence[Server], store_url: str, output: int | None = None) -> Iterator[list[Running]]:
    """Yields the servers when all of them listen. `output` is the file that they write to."""
    with ExitStack() as open_:
        found = []
        for server in servers:
            port = free_port()
            environment = {
                **AWS,
                "BENCH_STORE": store_url,
                "KEYGRAPH_STORE": store_url,
                **{name: value.replace("{port}", str(port)) for name, value in server.environment.items()},
            }
            command = [word.replace("{port}", str(port)) for word in server.command]
            process = open_.enter_context(started(command, environment, server.folder, port, output))
            found.append(Running(server, port, process.pid))
        yield found
