"""Reads what DynamoDB has exported to S3, from a folder to which it was copied.

A full export has all items of one point in time. Incremental exports that follow it have what has changed since then: the
keys of an item, and what the item is afterwards, unless it was deleted. Both have a manifest that lists their files and
how many items each has.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import zlib
from base64 import b64decode
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

import orjson

from keygraph.dynamo.items import Item, untyped_item
from keygraph.summaries.local import Part
from keygraph.summaries.work import CLOCKS_DIFFER, GroupRow, Summaries
from keygraph.tables.interchange import lines_of

_SUMMARY, _FILES = "manifest-summary.json", "manifest-files.json"
_BATCH_LINES, _BATCH_BYTES = 1000, 2**24
_ROOT = "AWSDynamoDB"
"""The folder that DynamoDB makes in a bucket. Keys of files have it."""
_NAME = re.compile(r"[A-Za-z0-9._/-]+")
"""A file of an export. Spark would take other characters for a pattern, or for several files."""
_MANIFEST_BYTES = 2**16
"""More than a summary, or a line of a list of files, can have."""


class UnusableExport(ValueError):
    """A folder without an export, or with one that is not complete, or damaged."""


class ExportFile(NamedTuple):
    """A file of an export, by its manifest."""

    below: str
    """Its path below the folder of all exports."""
    items: int
    md5: bytes | None
    """The MD5 of the file as it was written; None if the manifest has none."""


@dataclass(frozen=True)
class _Export:
    """One export, by its manifest."""

    folder: Path
    is_full: bool
    begin: datetime | None
    """The time from which an incremental export has changes."""
    end: datetime
    """The time of a full export, or to which an incremental one has changes."""
    address: str
    """The table's address (ARN)."""
    table_id: str | None
    """Another one if the table was deleted and created again."""

    @property
    def table(self) -> str:
        """The table's name."""
        return self.address.rpartition(":table/")[2]

    def listed(self) -> Iterator[ExportFile]:
        """Yields the files in its manifest. Raises UnusableExport."""
        path = self.folder / _FILES
        try:
            with _opened(path) as lines:
                for line in lines_of(lines, _MANIFEST_BYTES):
                    if line.strip():
                        yield _listed(orjson.loads(line))
        except (OSError, ValueError, KeyError, TypeError):
            raise UnusableExport(f"{path} is no list of the files of an export") from None

    def files(self) -> Iterator[tuple[Path, ExportFile]]:
        """Yields the files. Raises UnusableExport if one is missing."""
        for file in self.listed():
            name = Path(file.below).name
            places = (
                self.folder.parent / file.below,
                self.folder / "data" / name,
                self.folder.parent / "data" / name,
            )
            try:
                found = next((place for place in places if self._has(place)), None)
            except OSError:
                found = None
            if found is None:
                raise UnusableExport(f"{self.folder} lacks the file {name[:200]}, which its manifest lists")
            yield found, file

    def _has(self, place: Path) -> bool:
        """Whether it is a file of the export, and no link to one elsewhere."""
        folders = self.folder.resolve(), self.folder.parent.resolve()
        return place.is_file() and any(place.resolve().is_relative_to(folder) for folder in folders)


class Exports:
    """The latest full export of a table in a folder, and the incremental ones that follow it."""

    def __init__(self, folder: Path, table: str) -> None:
        """`table` is the table's name: the folder may have exports of others. Raises UnusableExport."""
        every = [_manifest(path) for path in folder.glob(f"**/{_SUMMARY}")]
        found = [each for each in every if each.table == table]
        if every and not found:
            others = ", ".join(sorted({each.table for each in every}))
            raise UnusableExport(f"{folder} has no export of the table {table}, but of {others}")
        addresses = sorted({each.address for each in found})
        if len(addresses) > 1:
            raise UnusableExport(f"{folder} has exports of several tables: {', '.join(addresses)}")
        full = max((each for each in found if each.is_full), key=lambda each: each.end, default=None)
        if full is None:
            what = "only incremental exports, which need the full one before them" if found else "no export"
            raise UnusableExport(f"{folder} has {what}")
        later = [each for each in found if not each.is_full and each.end > full.end]
        self._exports = [full]
        for each in sorted(later, key=lambda each: each.end):
            before = self._exports[-1].end
            if each.begin is None or each.begin > before:
                raise UnusableExport(f"no export has what has changed between {before} and {each.begin}")
            if each.table_id != full.table_id:
                raise UnusableExport(f"{table} was created again after {full.folder.name}: export it again")
            self._exports.append(each)
        self.as_of = self._exports[-1].end.replace(microsecond=0)
        """The time at which the table was as they say."""
        if self.as_of > datetime.now(UTC) + CLOCKS_DIFFER:
            raise UnusableExport(f"{self.names[-1]} is of a time in the future, {self.as_of}")

    def listed(self) -> list[ExportFile]:
        """Returns the files of all of them. Raises UnusableExport."""
        return [file for each in self._exports for file in each.listed()]

    def files(self) -> Iterator[tuple[Path, ExportFile]]:
        """Yields the files of all of them where they are. Raises UnusableExport if one is missing."""
        return (found for each in self._exports for found in each.files())

    @property
    def names(self) -> list[str]:
        return [each.folder.name for each in self._exports]

    def parts(self, work: Summaries, at: Any) -> dict[str, Part]:
        """Returns the files as parts. Raises UnusableExport if one is missing. `at` is the time in seconds since 1970."""
        is_alone = len(self._exports) == 1
        return {
            f"{export.folder.name} {path.name}": _part(work, at, path, file, is_image=not is_alone)
            for export in self._exports
            for path, file in export.files()
        }


def _opened(path: Path) -> IO[bytes]:
    """Opens a file. Raises OSError for a pipe too, to which nobody may write."""
    if not path.is_file():
        raise FileNotFoundError(path)
    return path.open("rb")


def _manifest(path: Path) -> _Export:
    try:
        with _opened(path) as file:
            found = orjson.loads(file.read(_MANIFEST_BYTES))
        format_ = str(found.get("outputFormat", "DYNAMODB_JSON"))[:100]
        is_full = found.get("exportType", "FULL_EXPORT") == "FULL_EXPORT"
        begin = None if is_full else _time(found["exportFromTime"])
        end = _time(found["exportTime" if is_full else "exportToTime"])
        address, table_id = found["tableArn"], found.get("tableId")
        if not isinstance(address, str):
            raise TypeError("no address of a table")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise UnusableExport(f"{path} is no manifest of an export") from None
    if format_ != "DYNAMODB_JSON":
        raise UnusableExport(f"{path.parent} is in the format {format_}; export it as DYNAMODB_JSON")
    return _Export(path.parent, is_full, begin, end, address, table_id)


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("a time without a time zone")
    return found.astimezone(UTC)


def _listed(file: Any) -> ExportFile:
    """Returns a file in a manifest. Raises ValueError, KeyError or TypeError."""
    key, count = file["dataFileS3Key"], file["itemCount"]
    if not (isinstance(key, str) and isinstance(count, int)):
        raise TypeError("no file of an export")
    below = PurePosixPath(key.rpartition(f"{_ROOT}/")[2])
    if below.is_absolute() or ".." in below.parts or not _NAME.fullmatch(str(below)):
        raise ValueError("a file outside the folder of all exports")
    md5 = file.get("md5Checksum")
    return ExportFile(str(below), count, None if md5 is None else b64decode(md5, validate=True))


class _HashedFile(io.BufferedReader):
    """A file of which the MD5 is known once it was read."""

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path))
        self.md5 = hashlib.md5(usedforsecurity=False)

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self.md5.update(found)
        return found


def _batches(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yields several lines at a time, in bounded memory."""
    several, size = list[bytes](), 0
    for line in lines:
        several.append(line)
        size += len(line)
        if len(several) == _BATCH_LINES or size >= _BATCH_BYTES:
            yield several
            several, size = [], 0
    if several:
        yield several


def _part(work: Summaries, at: Any, path: Path, file: ExportFile, *, is_image: bool) -> Part:
    async def read(after: Any) -> AsyncIterator[tuple[Iterable[GroupRow], int, Any]]:
        done = after or 0
        try:
            with _HashedFile(path) as packed, gzip.open(packed) as unpacked:
                lines = lines_of(unpacked)
                for _ in zip(range(done), lines, strict=False):
                    pass
                for several in _batches(lines):
                    done += len(several)
                    if done > file.items:
                        break
                    yield [*rows_of(work, at, several, is_image=is_image)], len(several), done
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise UnusableExport(f"{path} cannot be read: {error}") from None
        if done != file.items:
            more = "more than " if done > file.items else ""
            raise UnusableExport(
                f"{path} has {more}{min(done, file.items):,} items, and its manifest says {file.items:,}: copy it again"
            )
        if file.md5 not in (None, packed.md5.digest()):
            raise UnusableExport(f"{path} has another MD5 than its manifest says: copy it again")
        yield (), 0, None

    return read


def rows_of(work: Summaries, at: Any, lines: Iterable[bytes], *, is_image: bool) -> Iterator[GroupRow]:
    """Yields the rows of lines of an export. `is_image`: other exports have the same items. Raises ValueError for a line
    that has no item."""
    for line in lines:
        try:
            found = orjson.loads(line)
            read: Item | GroupRow = _image(work, found) if is_image else untyped_item(found["Item"])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            raise ValueError("it has a line that is no item of an export") from None
        yield from (read,) if isinstance(read, GroupRow) else work.rows(read, at)


def _image(work: Summaries, line: Any) -> GroupRow:
    typed, time = line.get("Item"), 0
    if typed is None:
        # A change. Without a new image, the item was deleted.
        typed, written = line.get("NewImage"), line["Metadata"]["WriteTimestampMicros"]
        time = int(written["N"] if isinstance(written, dict) else written)
    item: Item = {} if typed is None else untyped_item(typed)
    return work.image(untyped_item(line["Keys"]) if "Keys" in line else item, time, typed)
