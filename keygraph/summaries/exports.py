"""Reads what DynamoDB has exported to S3, from a folder to which it was copied.

A full export has all items of one point in time. Incremental exports that follow it have what has changed since then: the
keys of an item, and what the item is afterwards, unless it was deleted. Both have a manifest that lists their files and
how many items each has.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from keygraph.dynamo.items import Item, untyped_item
from keygraph.summaries.local import Part
from keygraph.summaries.work import GroupRow, Summaries

_SUMMARY, _FILES = "manifest-summary.json", "manifest-files.json"
_BATCH_LINES = 1000
_ROOT = "AWSDynamoDB"
"""The folder that DynamoDB makes in a bucket. Keys of files have it."""


class UnusableExport(ValueError):
    """A folder without an export, or with one that is not complete."""


@dataclass(frozen=True)
class _Export:
    """One export, by its manifest."""

    folder: Path
    is_full: bool
    begin: datetime | None
    """The time from which an incremental export has changes."""
    end: datetime
    """The time of a full export, or to which an incremental one has changes."""

    def listed(self) -> Iterator[tuple[str, int]]:
        """Yields the files in its manifest, by their paths below the folder of all exports, with their numbers of items."""
        for line in (self.folder / _FILES).read_bytes().splitlines():
            file = orjson.loads(line)
            yield str(file["dataFileS3Key"]).rpartition(f"{_ROOT}/")[2], int(file["itemCount"])

    def files(self) -> Iterator[tuple[Path, int]]:
        """Yields the files with their numbers of items. Raises UnusableExport if one is missing."""
        for below, count in self.listed():
            name = Path(below).name
            places = (
                self.folder.parent / below,
                self.folder / "data" / name,
                self.folder.parent / "data" / name,
            )
            found = next((place for place in places if place.is_file()), None)
            if found is None:
                raise UnusableExport(f"{self.folder} lacks the file {name}, which its manifest lists")
            yield found, count


class Exports:
    """The latest full export in a folder, and the incremental ones that follow it."""

    def __init__(self, folder: Path) -> None:
        """Raises UnusableExport."""
        found = [_manifest(path) for path in folder.glob(f"**/{_SUMMARY}")]
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
            self._exports.append(each)
        self.as_of = self._exports[-1].end.replace(microsecond=0)
        """The time at which the table was as they say."""

    def listed(self) -> list[tuple[str, int]]:
        """Returns the files of all of them, by their paths below the folder of all exports, with their numbers of items."""
        return [file for each in self._exports for file in each.listed()]

    @property
    def names(self) -> list[str]:
        return [each.folder.name for each in self._exports]

    def parts(self, work: Summaries, at: Any) -> dict[str, Part]:
        """Returns the files as parts. Raises UnusableExport if one is missing. `at` is the time in seconds since 1970."""
        is_alone = len(self._exports) == 1
        return {
            f"{export.folder.name} {path.name}": _part(work, at, path, count, is_image=not is_alone)
            for export in self._exports
            for path, count in export.files()
        }


def _manifest(path: Path) -> _Export:
    try:
        found = orjson.loads(path.read_bytes())
        format_ = found.get("outputFormat", "DYNAMODB_JSON")
        is_full = found.get("exportType", "FULL_EXPORT") == "FULL_EXPORT"
        begin = None if is_full else datetime.fromisoformat(found["exportFromTime"])
        end = datetime.fromisoformat(found["exportTime" if is_full else "exportToTime"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UnusableExport(f"{path} is no manifest of an export") from None
    if format_ != "DYNAMODB_JSON":
        raise UnusableExport(f"{path.parent} is in the format {format_}; export it as DYNAMODB_JSON")
    return _Export(path.parent, is_full, begin, end)


def _part(work: Summaries, at: Any, path: Path, count: int, *, is_image: bool) -> Part:
    async def read(after: Any) -> AsyncIterator[tuple[Iterable[GroupRow], int, Any]]:
        done = after or 0
        try:
            with gzip.open(path) as lines:
                skipped = islice(lines, done, None)
                while several := [*islice(skipped, _BATCH_LINES)]:
                    done += len(several)
                    yield rows_of(work, at, several, is_image=is_image), len(several), done
        except (OSError, EOFError, zlib.error) as error:
            raise UnusableExport(f"{path} cannot be read: {error}") from None
        if done != count:
            raise UnusableExport(f"{path} has {done:,} items, and its manifest says {count:,}: copy it again")
        yield (), 0, None

    return read


def rows_of(work: Summaries, at: Any, lines: Iterable[bytes], *, is_image: bool) -> Iterator[GroupRow]:
    """Yields the rows of lines of an export. `is_image`: other exports have the same items."""
    for line in lines:
        found = orjson.loads(line)
        if not is_image:
            yield from work.rows(untyped_item(found["Item"]), at)
            continue
        typed, time = found.get("Item"), 0
        if typed is None:
            # A change. Without a new image, the item was deleted.
            typed, written = found.get("NewImage"), found["Metadata"]["WriteTimestampMicros"]
            time = int(written["N"] if isinstance(written, dict) else written)
        key: Item = untyped_item(found.get("Keys") or typed)
        yield work.image(key, time, typed)
