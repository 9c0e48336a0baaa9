"""Standard output and standard error of a server process, written in threads.

A pipe that nobody reads, a stopped terminal or a slow disk stops a process that writes to it: the event loop, with every
request and signal. The log, warnings, tracebacks and what a model prints all go through these two streams.
"""

from __future__ import annotations

import atexit
import io
import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_log = logging.getLogger(__name__)

_QUEUED_BYTES = 4_000_000
"""The most that waits to be written: a second of the log at 10,000 operations per second."""
_LINE_BYTES = 100
"""What a line takes in the queue beside its bytes."""
_GATHERED_SECONDS = 0.05
"""How long lines are gathered: a thread that wakes and the event loop wait for each other, several times."""
_WHOLE_BYTES = 4_096
"""So much is written to a pipe as a whole (PIPE_BUF on Linux): lines of processes that share the pipe do not mix. A process
alone writes more at once: at each write, the thread and the event loop wait for each other."""
_ALONE_BYTES = 64 * 1024
_END_SECONDS = 1.0
"""How long a process that ends waits until its output is written."""


class QueuedFile(io.RawIOBase):
    """A file of the system that a thread writes. What does not fit in the queue is dropped and counted."""

    def __init__(self, number: int, most: int = _QUEUED_BYTES) -> None:
        """`number` is the file's descriptor, and `most` how many bytes may wait."""
        self._number = number
        self._most = most
        self.whole = _WHOLE_BYTES
        """How many bytes are written at once."""
        self.dropped = 0
        """The number of dropped lines."""
        self.restart()

    def restart(self) -> None:
        """Begins with an empty queue. A forked process has no threads, and its parent writes what was queued before."""
        self._queue: SimpleQueue[bytes | threading.Event] = SimpleQueue()
        # Signal handlers and finalizers may write in the middle of a write.
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._queued = self._written = 0
        self._is_full = False
        self._reported = self.dropped

    def write(self, data: ReadableBuffer, /) -> int:
        """Queues the bytes, and never waits."""
        lines = bytes(data)
        size = _LINE_BYTES + len(lines)
        with self._lock:
            if self._is_full or self._queued - self._written + size > self._most:
                self._is_full = True
                self._drop(lines)
                return len(lines)
            self._queued += size
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="output", daemon=True)
                self._thread.start()
        self._queue.put(lines)
        return len(lines)

    def end_of_queue(self) -> threading.Event:
        """Returns an event that is set when all that is queued now has been written."""
        event = threading.Event()
        if self._thread is None:
            event.set()
        else:
            self._queue.put(event)
        return event

    def fileno(self) -> int:
        """The file's descriptor."""
        return self._number

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._number)

    def writable(self) -> bool:
        return True

    def _drop(self, lines: bytes) -> None:
        with self._lock:
            self.dropped += lines.count(b"\n")

    def _run(self) -> None:
        queue = self._queue
        while True:
            gathered = [queue.get()]
            time.sleep(_GATHERED_SECONDS)
            while not queue.empty():
                gathered.append(queue.get())
            chunk: list[bytes] = []
            size = 0
            for each in gathered:
                if isinstance(each, threading.Event):
                    self._send(chunk)
                    chunk, size = [], 0
                    each.set()
                    continue
                if size + len(each) > self.whole:
                    self._send(chunk)
                    chunk, size = [], 0
                chunk.append(each)
                size += len(each)
            self._send(chunk)

    def _send(self, chunk: Sequence[bytes]) -> None:
        left = b"".join(chunk)
        while left:
            try:
                left = left[os.write(self._number, left) :]
            except BlockingIOError:
                # Another process that has the file set it to non-blocking.
                time.sleep(_GATHERED_SECONDS)
            except OSError:
                # Nobody has the other end of the pipe, or the disk is full.
                self._drop(left)
                break
        self._written += sum(_LINE_BYTES + len(lines) for lines in chunk)
        if self._is_full and self._queued - self._written <= self._most // 2:
            # From full to half full, so that a slow reader gets few of these lines.
            self._is_full = False
            dropped, self._reported = self.dropped - self._reported, self.dropped
            _log.warning("%d lines of output were dropped, because nobody read them", dropped)


_FILES: list[QueuedFile] = []


def write_alone() -> None:
    """Writes more at once, because no other process writes to the streams."""
    for file in _FILES:
        file.whole = _ALONE_BYTES


def queue_streams() -> None:
    """Lets threads write what goes to `sys.stdout` and `sys.stderr`, unless somebody has replaced these."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # The process was started with a closed file.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115  # for good
        elif stream is getattr(sys, f"__{name}__"):
            file = QueuedFile(stream.fileno())
            _FILES.append(file)
            setattr(sys, name, io.TextIOWrapper(file, stream.encoding, stream.errors, line_buffering=True))


def flush_streams() -> None:
    """Waits until the output is written, but not for long: a process must end even if nobody reads its log."""
    end = time.monotonic() + _END_SECONDS
    for event in [file.end_of_queue() for file in _FILES]:
        event.wait(max(0.0, end - time.monotonic()))


def dropped_lines() -> int:
    """The number of lines of output of this process that were dropped."""
    return sum(file.dropped for file in _FILES)


def _restart_all() -> None:
    for file in _FILES:
        file.restart()


atexit.register(flush_streams)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_all)
