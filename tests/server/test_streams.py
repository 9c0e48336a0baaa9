"""Output that is written in a thread: nobody waits for it, and what nobody reads is dropped and counted."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.compare.processes import full_pipe
from keygraph_server.processes.streams import QueuedFile


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


def read_all(number: int, until: bytes) -> bytes:
    found = b""
    while until not in found:
        found += os.read(number, 65_536)
    return found


def test_what_nobody_reads_is_dropped_and_counted(
    pipe: tuple[int, int], caplog: pytest.LogCaptureFixture
) -> None:
    reading, writing = pipe
    file = QueuedFile(writing, most=200_000)
    lines = [b"%06d %s\n" % (number, b"x" * 100) for number in range(5_000)]
    for line in lines:
        assert file.write(line) == len(line)
    assert not file.end_of_queue().wait(0.05)
    assert file.dropped > 2_000
    with caplog.at_level(logging.WARNING, "keygraph_server.processes.streams"):
        accepted = len(lines) - file.dropped
        assert read_all(reading, lines[accepted - 1]) == b"".join(lines[:accepted])
        assert file.end_of_queue().wait(10)
    # There is room again, which the log says once.
    assert [record.getMessage() for record in caplog.records] == [
        f"{file.dropped} lines of output were dropped, because nobody read them"
    ]
    file.write(b"again\n")
    assert read_all(reading, b"again\n") == b"again\n"
    os.close(writing)


def test_lines_of_processes_that_share_a_pipe_do_not_mix(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    files = [QueuedFile(writing) for _ in range(4)]
    lines = [[b"%d %d %s\n" % (n, number, b"x" * (number % 900)) for number in range(500)] for n in range(4)]

    def write(n: int) -> None:
        for line in lines[n]:
            files[n].write(line)
        files[n].end_of_queue().wait(30)

    with ThreadPoolExecutor() as threads:
        for n in range(4):
            threads.submit(write, n)
        found: list[bytes] = []
        left = b""
        while len(found) < 2_000:
            *whole, left = (left + os.read(reading, 65_536)).split(b"\n")
            found += whole
    for n in range(4):
        assert [line + b"\n" for line in found if line.startswith(b"%d " % n)] == lines[n]
    os.close(writing)


def test_without_a_reader_lines_are_dropped(pipe: tuple[int, int]) -> None:
    _, writing = pipe
    unread, gone = os.pipe()
    os.close(unread)
    file = QueuedFile(gone)
    file.write(b"one\ntwo\n")
    assert file.end_of_queue().wait(10)
    assert file.dropped == 2
    os.close(gone)
    os.close(writing)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("raise ValueError", 1),
        ("sys.exit(os.wait()[1]) if os.fork() else print('last')", 0),
    ],
    ids=["ordinary", "exit", "crash", "forked"],
)
def test_a_process_that_ends_has_written_all(end: str, code: int) -> None:
    program = f"""
import os, sys
from keygraph_server.processes.streams import queue_streams
queue_streams()
for number in range(2_000):
    print(number)
print("last", file=sys.stderr)
{end}
"""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == code
    lines = ended.stdout.splitlines()
    assert [line for line in lines if line != "last"] == [str(number) for number in range(2_000)]
    assert lines.count("last") == ("fork" in end)
    assert ended.stderr.startswith("last\n")
    assert ended.stderr.endswith("ValueError\n") == ("ValueError" in end)


@pytest.mark.parametrize("program", ["print('x')", "print('x', file=sys.stderr)", "raise ValueError"])
def test_a_process_ends_though_nobody_reads(program: str) -> None:
    program = f"import sys; from keygraph_server.processes.streams import *; queue_streams(); {program}"
    with full_pipe() as pipe:
        ended = subprocess.Popen([sys.executable, "-c", program], stdout=pipe, stderr=pipe)
        try:
            assert ended.wait(30) == ("ValueError" in program)
        finally:
            ended.kill()


def test_a_process_without_the_files_runs() -> None:
    program = "import sys; from keygraph_server.processes.streams import *; queue_streams(); print(sys.stderr.buffer)"
    ended = subprocess.run(
        [sys.executable, "-c", program], check=False, timeout=60, preexec_fn=lambda: os.closerange(1, 3)
    )
    assert ended.returncode == 0
