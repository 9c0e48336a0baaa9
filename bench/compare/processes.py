"""Measured processes: how they start and end, and what they cost."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_START_SECONDS = 60.0
_STOP_SECONDS = 15.0


class DidNotStartError(Exception):
    """A process ended, or did not listen in time; the message holds its output."""


def free_port() -> int:
    """Returns a free port, of those that the system does not give to clients, which could take it before a server has it."""
    while True:
        port = random.randrange(10_000, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def started(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, port: int, output: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Returns the process when it listens on the port; it ends with the block. `output` is the file that it writes to."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=log if output is None else output,
            stderr=subprocess.STDOUT,
        )
        try:
            until = time.monotonic() + _START_SECONDS
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    raise DidNotStartError(f"{command[0]}: {log.read().decode(errors='replace')[-2000:]}")
                time.sleep(0.05)
            yield process
        finally:
            if process.poll() is not None:
                log.seek(0)
                print(command[0], "has ended:", log.read().decode(errors="replace")[-2000:], file=sys.stderr)
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def full_pipe() -> Iterator[int]:
    """Yields the end of a pipe that is full and that nobody reads."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4_096)
    os.set_blocking(writing, True)
    try:
        yield writing
    finally:
        os.close(reading)
        os.close(writing)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def processor_seconds(pid: int) -> float:
    """Returns the processor time of the process and its children so far, to the nanosecond (clock_getcpuclockid)."""
    return sum(time.clock_gettime((~each << 3) | 2) for each in _with_children(pid))


def peak_memory_megabytes(pid: int) -> float:
    """Returns the peak memory of the process and its children."""
    kilobytes = 0
    for each in _with_children(pid):
        for line in Path(f"/proc/{each}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                kilobytes += int(line.split()[1])
    return kilobytes / 1024


def forget_peak_memory(pid: int) -> None:
    """Resets the peak memory (proc_pid_clear_refs(5))."""
    for each in _with_children(pid):
        Path(f"/proc/{each}/clear_refs").write_text("5")


def _with_children(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _with_children(int(child))
