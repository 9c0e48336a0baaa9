"""The files of a store on disk, and whether they are still those that SQLite has open."""

from __future__ import annotations

import os
import struct
import sys
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path
from threading import Lock

from keygraph.errors import Unavailable

_LOG = "-wal"
_LOG_HEADER_BYTES = 32
_LOG_MAGIC = b"\x37\x7f\x06"
"""The first bytes of a log, unless it is empty (https://www.sqlite.org/fileformat2.html#the_write_ahead_log)."""
_FRAME_HEADER_BYTES = 24
_STATE_BYTES, _INDEX_BYTES = 48, 132
"""The first bytes of a log's index (https://www.sqlite.org/walformat.html, 2.1)."""

_SALTS = slice(32, 40)
"""The part of it that SQLite changes when it begins the log again."""
_COPIED, _COPYING = slice(96, 100), slice(128, 132)
"""How many frames of the log SQLite has copied into the database, and how many it has begun to copy."""

_LOCKED_BYTES = 510, 0x40000002
"""How many bytes of a database every connection locks, and from where (https://www.sqlite.org/lockingv3.html, 3.0)."""
_APPEARS_SECONDS = 1.0
"""How soon a log is there after its database was locked."""

_indexes: dict[tuple[int, int], tuple[FileIO, int]] = {}
"""The indexes that stores of this process have open, by the inodes of their databases, and how many stores. One
descriptor for all: who closes any descriptor of a file loses the locks that SQLite has on it
(https://www.sqlite.org/howtocorrupt.html, 2.2)."""
_changing_indexes = Lock()


def check_files(path: Path) -> None:
    """Raises Unavailable if one of them would be made beside others that were moved away, which may be in use: a new file
    beside its log, or a new log beside a file that another process uses with its own."""
    beside = path.resolve()
    logs = [beside.with_name(beside.name + ending) for ending in (_LOG, "-shm")]
    if not path.exists() or not path.stat().st_size:
        left = next((each for each in logs if each.exists()), None)
        if left is not None:
            raise Unavailable(
                f"{path} is missing or empty, but {left} is there: put the file back, or delete what is left of it "
                "if no server uses it"
            )
        return
    until = time.monotonic() + _APPEARS_SECONDS
    while (gone := next((each for each in logs if not each.exists()), None)) and _is_used(beside):
        if time.monotonic() > until:
            raise Unavailable(f"another process uses it, but {gone} is missing: put that back")
        time.sleep(0.01)


def _is_used(path: Path) -> bool:
    """Returns whether another process has a database open."""
    try:
        import fcntl
    except ImportError:  # Windows deletes and moves no file that is open
        return False
    with _changing_indexes:
        found = path.stat()
        if (found.st_dev, found.st_ino) in _indexes:
            return False
        try:
            with path.open("r+b") as file:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, *_LOCKED_BYTES)
        except BlockingIOError:
            return True
        except OSError:  # SQLite says what is wrong with it
            return False
    return False


class OpenFiles:
    """The database file, its write-ahead log and the index of that log.

    SQLite writes on into files that were moved, deleted or replaced, and nobody finds what it writes there.
    """

    def __init__(self, path: Path) -> None:
        """`path` is that of the database, which SQLite has open. Raises OSError if a file is missing."""
        # SQLite keeps the other two beside the file that a link leads to.
        beside = path.resolve()
        paths = (path.absolute(), *(beside.with_name(beside.name + ending) for ending in (_LOG, "-shm")))
        self._opened = {each: each.stat() for each in paths}
        self._database, self._log, index = paths
        self.log_file = FileIO(self._log, "r+")
        database = self._opened[self._database]
        self._id = database.st_dev, database.st_ino
        with _changing_indexes:
            self._index, users = _indexes.get(self._id) or (FileIO(index), 0)
            _indexes[self._id] = self._index, users + 1
        self._looking = Lock()
        """The writer's thread and the event loop look at the log."""
        self._last_frame = b"", 0, b""
        """The salts of the log when it was last looked at, its end, and its last frame, which SQLite does not change."""
        self._whole_end: int | None = None
        """Where a log that was cut ends."""
        self._last_change = b"", 0
        """How far the log was copied into the database, and when the database was changed, when that was last looked at."""
        self.lost: Path | None = None
        """A file that was cut or overwritten, or in whose place another one was: what SQLite writes into it later need not be
        in the database, even if it comes back."""
        self.was_replaced = False
        """Whether another file was seen in the place of one: who used that may have written into the log."""

    def close(self) -> None:
        """Call it after the last connection is closed."""
        self.log_file.close()
        with _changing_indexes:
            index, users = _indexes.pop(self._id)
            if users > 1:
                _indexes[self._id] = index, users - 1
            else:
                index.close()

    @property
    def log_state(self) -> bytes:
        """What the index says of the log, which every write changes."""
        return os.pread(self._index.fileno(), _STATE_BYTES, 0)

    @property
    def is_log_whole(self) -> bool:
        return self._whole_end is None

    @property
    def is_another_there(self) -> bool:
        """Whether another database is in the place of this one. Nobody uses an empty file: SQLite takes no log for it, and
        Keygraph refuses it."""
        try:
            found = self._database.stat()
        except OSError:
            return False
        return found.st_size > 0 and not os.path.samestat(found, self._opened[self._database])

    def unlink_log(self) -> None:
        """Takes the log and its index away from another database, which would be read and written by them, and from the
        processes that use this one and have not noticed what this one has: they miss the log."""
        for path in list(self._opened)[1:]:
            with suppress(OSError):
                if os.path.samestat(path.stat(), self._opened[path]):
                    path.unlink()

    @property
    def _copied(self) -> bytes:
        state = os.pread(self._index.fileno(), _INDEX_BYTES, 0)
        return state[_SALTS] + state[_COPIED] + state[_COPYING]

    def _is_changed(self, path: Path, found: os.stat_result, copied: bytes) -> bool:
        """Returns whether somebody else has emptied a file or written into the database, of which `copied` was read before.

        SQLite empties the log alone, and writes into the database only to copy frames of the log, as it notes in the index
        before and after.
        """
        if path is not self._database or copied != self._copied:
            return path is not self._log and found.st_size == 0
        before, self._last_change = self._last_change, (copied, found.st_mtime_ns)
        is_copied = copied[8:12] == copied[12:]
        return found.st_size == 0 or (is_copied and copied == before[0] and found.st_mtime_ns != before[1])

    def problem(self) -> str | None:
        """What has happened to a file; None if all are in their places."""
        copied, lost = self._copied, self.lost
        for path, opened in self._opened.items():
            try:
                found = path.stat()
            except OSError:
                if lost is None:
                    return f"{path} was moved or deleted while it was in use: put it back, or restart"
                break
            # No other file gets the inode of one that is open.
            is_same = os.path.samestat(found, opened)
            # Nobody uses an empty database that is in the place of this one.
            is_used = path is not self._database or found.st_size > 0
            if path is self._log and self._is_cut():
                self.lost = path
                # SQLite would copy a hole into the database, over what is there. A write may be ending meanwhile.
                if self._whole_end is None:
                    self._whole_end = self._whole_bytes()
                os.ftruncate(self.log_file.fileno(), self._whole_end)
            elif self._is_changed(path, found, copied) if is_same else is_used:
                self.lost, self.was_replaced = path, self.was_replaced or not is_same
            if path is self.lost or not is_same:
                lost = path
                break
        if lost is None:
            return None
        return f"{lost} was replaced or overwritten while it was in use: restart with the right file there"

    def _is_cut(self) -> bool:
        """Returns whether somebody else has shortened the log, so that nobody would read what is written behind the end."""
        with self._looking:
            state = self.log_state
            # Another process may begin the log again meanwhile.
            return self._has_gap(state) and state[_SALTS] == self.log_state[_SALTS]

    def _has_gap(self, state: bytes) -> bool:
        """Returns whether the log is shorter than its index says, or was when SQLite wrote on."""
        log = self.log_file.fileno()
        if not _LOG_MAGIC.startswith(os.pread(log, len(_LOG_MAGIC), 0)):
            return True
        salts, end, frame = self._last_frame
        if salts == state[_SALTS] and os.pread(log, len(frame), end - len(frame)) != frame:
            return True
        length, frames = _frames(state)
        end = _LOG_HEADER_BYTES + frames * length
        self._last_frame = state[_SALTS], end, os.pread(log, length, end - length) if frames else b""
        return frames > 0 and os.fstat(log).st_size < end

    def _whole_bytes(self) -> int:
        """Returns how much of a log that was cut is whole."""
        log, (length, frames) = self.log_file.fileno(), _frames(self.log_state)
        header, end = os.pread(log, _LOG_HEADER_BYTES, 0), _LOG_HEADER_BYTES
        if not header.startswith(_LOG_MAGIC):
            return 0
        salts, sums = header[16:24], [header[24:]]
        for _ in range(frames):
            frame = os.pread(log, _FRAME_HEADER_BYTES, end)
            if frame[8:16] != salts:
                break
            sums.append(frame[16:])
            end += length
        # Of the last one, the rest may be missing.
        last = os.pread(log, length, end - length) if len(sums) > 1 else b""
        if last and (len(last) < length or _checksum(header, sums[-2], last) != sums[-1]):
            end -= length
        return end

    def void_log(self) -> None:
        """Empties the log that SQLite has open, wherever that is now, so that nothing of it is read or copied."""
        os.ftruncate(self.log_file.fileno(), 0)

    def check(self) -> None:
        """Raises Unavailable if a file is not in its place."""
        if problem := self.problem():
            raise Unavailable(problem)


def _frames(state: bytes) -> tuple[int, int]:
    """Returns the length of a frame of the log, and the number of frames."""
    # In the machine's byte order. A page of 65,536 bytes is written as 1.
    page, frames = (int.from_bytes(state[part], sys.byteorder) for part in (slice(14, 16), slice(16, 20)))
    return _FRAME_HEADER_BYTES + (65_536 if page == 1 else page), frames


def _checksum(header: bytes, before: bytes, frame: bytes) -> bytes:
    """Returns the checksum of a frame after the one before (https://www.sqlite.org/fileformat2.html#checksum_algorithm)."""
    content = frame[:8] + frame[_FRAME_HEADER_BYTES:]
    one, two = struct.unpack(">2I", before)
    for first, second in struct.iter_unpack(">2I" if header[3] & 1 else "<2I", content):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return struct.pack(">2I", one, two)
