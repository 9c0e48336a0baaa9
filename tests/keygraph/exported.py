"""Writes exports as DynamoDB writes them to S3."""

from __future__ import annotations

import gzip
import hashlib
import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from keygraph.dynamo.items import Item, base64_text, typed_item

TABLE = "arn:aws:dynamodb:eu-central-1:123456789012:table/"
Change = tuple[Item, Item | None, int]
"""A key, the item after a change or None if it was deleted, and when in microseconds."""


def full_export(
    bucket: Path, name: str, at: datetime, items: Sequence[Item], files: int = 2, table: str = "Guild"
) -> Path:
    """Writes a full export, whose files are in its own folder."""
    lines = [[{"Item": typed_item(item)} for item in items[number::files]] for number in range(files)]
    summary = {"version": "2020-06-30", "exportTime": _text(at), **_of(table)}
    return _write(bucket, name, f"AWSDynamoDB/{name}/data", summary, lines)


def incremental_export(
    bucket: Path, name: str, begin: datetime, end: datetime, changes: Iterable[Change], table: str = "Guild"
) -> Path:
    """Writes an incremental export, whose files are in a folder that all share."""
    lines = []
    for key, item, time in changes:
        line: dict[str, Any] = {
            "Metadata": {"WriteTimestampMicros": {"N": str(time)}},
            "Keys": typed_item(key),
        }
        lines.append(line if item is None else {**line, "NewImage": typed_item(item)})
    summary = {
        "version": "2023-08-01",
        "exportFromTime": _text(begin),
        "exportToTime": _text(end),
        "exportType": "INCREMENTAL_EXPORT",
        "outputView": "NEW_IMAGE",
        **_of(table),
    }
    return _write(bucket, name, "AWSDynamoDB/data", summary, [lines])


def _write(
    bucket: Path, name: str, data: str, summary: dict[str, Any], files: list[list[dict[str, Any]]]
) -> Path:
    folder = bucket / "AWSDynamoDB" / name
    folder.mkdir(parents=True)
    (bucket / data).mkdir(parents=True, exist_ok=True)
    listed = []
    for number, lines in enumerate(files):
        key = f"{data}/{name}{number}.json.gz"
        text = "".join(json.dumps(line, default=base64_text) + "\n" for line in lines)
        packed = gzip.compress(text.encode())
        (bucket / key).write_bytes(packed)
        md5 = b64encode(hashlib.md5(packed).digest()).decode()
        place = f"some/prefix/{key}"
        listed.append({"itemCount": len(lines), "md5Checksum": md5, "dataFileS3Key": place})
    (folder / "manifest-files.json").write_text("".join(json.dumps(each) + "\n" for each in listed))
    (folder / "manifest-summary.json").write_text(json.dumps(summary))
    return folder


def _of(table: str) -> dict[str, str]:
    return {
        "outputFormat": "DYNAMODB_JSON",
        "tableArn": f"{TABLE}{table}",
        "tableId": table,
    }


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
