"""Measures how long Keygraph takes to start: the command line, the server, and the Lambda handler.

    python -m bench.starts           prints the lowest of six starts of each, by turns; returns 1 if a goal is missed
    python -m bench.starts --write   into docs/performance.md as well

A start is timed from the start of its process, with compiled files. The server has the commerce model and a SQLite file
with its sample, and has started when it answers. The Lambda handler has the extra `aws`, with credentials and region in
the environment, as Lambda has them, and has started when it has answered its first event.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.compare.servers import AWS, ROOT
from bench.pages import with_part

PAGE = ROOT / "docs" / "performance.md"
_STARTS = 6
_MODEL = "keygraph_examples.commerce:graph"
_KEYGRAPH = str(Path(sys.executable).parent / "keygraph")
_EVENT = """
import json
import os
from keygraph_server.lambdas import graphql
body = json.dumps({"query": "{ __typename }"})
http = {"method": "POST", "path": "/graphql", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "test"}
event = {"version": "2.0", "rawPath": "/graphql", "rawQueryString": "", "headers": {"content-type": "application/json",
         "host": "api.example.com"}, "requestContext": {"http": http}, "body": body, "isBase64Encoded": False}
answer = graphql(event)
assert json.loads(answer["body"]) == {"data": {"__typename": "Query"}}, answer
os._exit(0)  # Lambda does not end a process between events
"""


@dataclass(frozen=True)
class Start:
    """A way to start, with the longest time that is wanted."""

    name: str
    most: float
    seconds: Callable[[], float]
    """The time that one start takes."""

    def line(self, taken: Sequence[float]) -> str:
        """The start as a row of the table of goals."""
        reached = "yes" if min(taken) <= self.most else "**no**"
        return f"| {self.name}: at most {self.most:g} s | {min(taken):.2f} | {reached} |"


def _program_seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(
        command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - began


def _is_up(port: int) -> bool:
    with socket.socket() as client:
        if client.connect_ex(("127.0.0.1", port)) != 0:
            return False
        client.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return client.recv(64).startswith(b"HTTP/1.1 200")


def _server_seconds(environment: dict[str, str]) -> float:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    command = (_KEYGRAPH, "serve", "--host", "127.0.0.1", "--port", str(port))
    began = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        while not _is_up(port):
            if server.poll() is not None:
                raise RuntimeError(f"the server ended with {server.returncode}")
            time.sleep(0.005)
        taken = time.perf_counter() - began
        server.terminate()
    return taken


def starts(folder: Path) -> tuple[Start, ...]:
    """The starts that are measured; the server keeps its table in the folder."""
    # With PYTHONDONTWRITEBYTECODE, each start would compile everything.
    left_out = ("AWS_", "KEYGRAPH_", "PYTHONDONTWRITEBYTECODE")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    served = {**inherited, "KEYGRAPH_MODEL": _MODEL, "KEYGRAPH_STORE": f"sqlite:{folder / 'shop.sqlite'}"}
    on_lambda = {
        **inherited,
        **AWS,
        "KEYGRAPH_MODEL": _MODEL,
        "KEYGRAPH_STORE": "aws",
        "KEYGRAPH_SECRET": "the secret of these measurements",
        "AWS_LAMBDA_RUNTIME_API": "127.0.0.1:1",
    }
    return (
        Start("`keygraph --help`", 0.2, lambda: _program_seconds((_KEYGRAPH, "--help"), inherited)),
        Start("`keygraph serve` is ready", 0.7, lambda: _server_seconds(served)),
        Start(
            "the Lambda handler has answered",
            0.9,
            lambda: _program_seconds((sys.executable, "-c", _EVENT), on_lambda),
        ),
    )


def main() -> int:
    """Prints the table. Returns 1 if a start takes longer than wanted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the table into docs/performance.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = starts(Path(folder))
        for each in measured:
            each.seconds()  # compiles, and makes the file
        taken = [[each.seconds() for each in measured] for _ in range(_STARTS)]
    by_start = [*zip(measured, zip(*taken, strict=True), strict=True)]
    rows = (each.line(times) for each, times in by_start)
    table = "\n".join(("| wanted | found | reached |", "| --- | ---: | --- |", *rows)) + "\n"
    print(table, end="")
    if arguments.write:
        PAGE.write_text(with_part(PAGE.read_text("utf-8"), "starts", table), "utf-8")
    return int(any(min(times) > each.most for each, times in by_start))


if __name__ == "__main__":
    sys.exit(main())
