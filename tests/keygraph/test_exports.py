"""The job reads what DynamoDB has exported, full and incremental, as it reads the table."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Store
from keygraph.summaries.exports import Exports, UnusableExport
from keygraph.summaries.spark import exports_at
from keygraph.summaries.work import Summaries
from tests.conftest import MakeStore
from tests.keygraph.exported import full_export, incremental_export
from tests.keygraph.guild import graph
from tests.keygraph.summarized import AT, Stopped, contents, summarize
from tests.keygraph.test_summaries import computed, expected, guild

pytestmark = pytest.mark.parametrize("engine", ["sqlite"])


@pytest.fixture
async def store(make_store: MakeStore) -> Store:
    return await make_store(graph.table)


def key_of(item: Item) -> Item:
    return {"pk": item["pk"], "sk": item["sk"]}


async def test_a_full_export_gives_what_the_table_gives(store: Store, tmp_path: Path) -> None:
    items = guild(1)
    await store.send(BatchWrite(tuple(items)))
    full_export(tmp_path / "bucket", "01", AT, items, files=3)
    await summarize(graph, store, tmp_path, folder_of_exports=tmp_path / "bucket")
    found = await contents(store)
    assert computed(found) == expected(items)
    assert {item["degree_as_of"] for item in found if "degree_as_of" in item} == {"2020-01-02T03:04:05Z"}


async def test_incremental_exports_change_what_the_full_one_has(store: Store, tmp_path: Path) -> None:
    """Items are changed several times, deleted, and made again; the newest state counts, in whatever order lines are."""
    bucket, items = tmp_path / "bucket", guild(2)
    (one, two, three, other), rest = items[:4], items[4:]
    full_export(bucket, "01", AT, [one, two, other, *rest])
    # An export that is older than the full one is not read.
    incremental_export(bucket, "00", AT - timedelta(days=2), AT - timedelta(days=1), [(key_of(one), None, 1)])
    noon, night = AT + timedelta(hours=12), AT + timedelta(days=1)
    town: Item = {**two, "town": "Oslo"}
    incremental_export(
        bucket,
        "02",
        AT,
        noon,
        [
            (key_of(two), town, 20),
            (key_of(two), None, 10),
            (key_of(one), None, 30),
            (key_of(three), three, 9),
        ],
    )
    incremental_export(bucket, "03", noon, night, [(key_of(one), one, 70), (key_of(other), None, 60)])
    now = [one, town, three, *rest]
    await store.send(BatchWrite(tuple(now)))
    exports = Exports(bucket, "Guild")
    assert exports.names == ["01", "02", "03"]
    assert exports.as_of == night
    await summarize(graph, store, tmp_path, folder_of_exports=bucket)
    assert computed(await contents(store)) == expected(now)


async def test_what_was_written_after_the_export_stays(store: Store, tmp_path: Path) -> None:
    items = guild(1)
    full_export(tmp_path / "bucket", "01", AT, items)
    await store.send(BatchWrite(tuple(items)))
    await summarize(graph, store, tmp_path, at=AT + timedelta(days=1))
    before = await contents(store)
    counted = await summarize(graph, store, tmp_path, folder_of_exports=tmp_path / "bucket")
    assert counted == {"newer": len(expected(items))}
    assert await contents(store) == before


async def test_a_job_goes_on_in_the_middle_of_a_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keygraph.summaries.exports._BATCH_LINES", 7)
    items = guild(3)
    await store.send(BatchWrite(tuple(items)))
    full_export(tmp_path / "bucket", "01", AT, items, files=1)
    read: list[int] = []

    def stop(count: int) -> None:
        read.append(count)
        if len(read) in (2, 7, 12):
            raise Stopped

    stops = 0
    while True:
        try:
            folder = tmp_path / "bucket"
            await summarize(graph, store, tmp_path, folder_of_exports=folder, resume=stops > 0, read=stop)
            break
        except Stopped:
            stops += 1
    assert stops == 3
    assert read[-1] == len(items)
    assert computed(await contents(store)) == expected(items)


def test_a_folder_that_cannot_be_used(tmp_path: Path, engine: str) -> None:
    bucket = tmp_path / "bucket"
    with pytest.raises(UnusableExport, match=r"bucket has no export$"):
        Exports(bucket, "Guild")
    later = AT + timedelta(days=1)
    incremental_export(bucket, "02", later, later + timedelta(days=1), [])
    with pytest.raises(UnusableExport, match="only incremental exports, which need the full one before them"):
        Exports(bucket, "Guild")
    full = full_export(bucket, "01", AT, [])
    with pytest.raises(UnusableExport, match="no export has what has changed between 2020-01-02 03:04:05"):
        Exports(bucket, "Guild")
    for text in (
        "{",
        "[]",
        "\0",
        '{"exportTime": 5}',
        '{"exportTime": "2020-01-01T00:00:00", "tableArn": "a"}',
        '{"exportTime": "0001-01-01T00:00:00+14:00", "tableArn": "a"}',
    ):
        (full / "manifest-summary.json").write_text(text)
        with pytest.raises(UnusableExport, match=r"manifest-summary\.json is no manifest of an export"):
            Exports(bucket, "Guild")
    with pytest.raises(UnusableExport, match=r"manifest-summary\.json is no manifest of an export"):
        Exports(bucket, "Guild")
    (full / "manifest-summary.json").write_text(
        '{"exportTime": "2020-01-01T00:00:00Z", "outputFormat": "ION", "tableArn": "arn:x:table/Guild"}'
    )
    with pytest.raises(UnusableExport, match="01 is in the format ION; export it as DYNAMODB_JSON"):
        Exports(bucket, "Guild")


async def test_exports_of_other_tables_in_the_same_folder_are_not_read(store: Store, tmp_path: Path) -> None:
    """Those of a prefix are in one folder, however many tables were exported there."""
    bucket, items = tmp_path / "bucket", guild(1)
    await store.send(BatchWrite(tuple(items)))
    later = AT + timedelta(days=1)
    full_export(bucket, "01", AT, items)
    full_export(bucket, "02", later, [], table="GuildOfTests")
    gone = [(key_of(item), None, 1) for item in items]
    incremental_export(bucket, "03", AT, later, gone, table="GuildOfTests")
    assert Exports(bucket, "Guild").names == ["01"]
    assert Exports(bucket, "GuildOfTests").names == ["02"]
    with pytest.raises(
        UnusableExport, match=r"has no export of the table Another, but of Guild, GuildOfTests$"
    ):
        Exports(bucket, "Another")
    await summarize(graph, store, tmp_path, folder_of_exports=bucket)
    assert computed(await contents(store)) == expected(items)


def test_exports_of_two_tables_with_one_name_are_refused(tmp_path: Path, engine: str) -> None:
    bucket, later = tmp_path / "bucket", AT + timedelta(days=1)
    full_export(bucket, "01", AT, [])
    other = incremental_export(bucket, "02", AT, later, [])
    summary = (other / "manifest-summary.json").read_text()
    (other / "manifest-summary.json").write_text(summary.replace('"tableId": "Guild"', '"tableId": "2"'))
    with pytest.raises(UnusableExport, match=r"^Guild was created again after 01: export it again$"):
        Exports(bucket, "Guild")
    (other / "manifest-summary.json").write_text(summary.replace("123456789012", "210987654321"))
    with pytest.raises(
        UnusableExport, match=r"has exports of several tables: arn:aws:dynamodb:.*12.*, arn:.*21"
    ):
        Exports(bucket, "Guild")


@pytest.mark.parametrize(
    "lines",
    [
        b"{nope\n",
        b"[1]\n",
        b'{"x": 1}\n',
        b'{"Item": [1]}\n',
        b'{"Item": {"pk": "text"}}\n',
        b'{"Item": {"pk": {"Q": "1"}}}\n',
        b'{"Item": {"pk": {"N": "NaN"}}}\n',
        b'{"Item": {"pk": {"N": "1e99999999"}}}\n',
        b'{"Item": {"pk": {"B": "%%%"}}}\n',
        b'{"Item": {"pk": ' + b'{"L": [' * 600 + b"]}" * 600 + b"}}\n",
        b'{"Item": {"pk": ' + b'{"L": [' * 200_000 + b"]}" * 200_000 + b"}}\n",
        b"\xff\n",
    ],
)
@pytest.mark.parametrize("is_alone", [True, False])
async def test_a_line_that_is_no_item_is_named(
    lines: bytes, is_alone: bool, store: Store, tmp_path: Path
) -> None:
    bucket = tmp_path / "bucket"
    full = full_export(bucket, "01", AT, [{"pk": "a", "sk": "a"}], files=1)
    (full / "data" / "010.json.gz").write_bytes(gzip.compress(lines))
    if not is_alone:
        incremental_export(bucket, "02", AT, AT + timedelta(days=1), [])
    with pytest.raises(
        UnusableExport, match=r"010\.json\.gz cannot be read: it has a line that is no item of an export$"
    ):
        await summarize(graph, store, tmp_path, folder_of_exports=bucket)


@pytest.mark.parametrize(
    "change",
    [
        {"Keys": {"pk": {"S": "a"}}},
        {"Keys": [1]},
        {"Metadata": {}},
        {"Metadata": {"WriteTimestampMicros": {"N": "x"}}},
        {"Metadata": {"WriteTimestampMicros": {"N": "-1"}}},
        {"Metadata": {"WriteTimestampMicros": {"N": "1" * 30}}},
        {"NewImage": {"pk": {"Q": "1"}}},
    ],
)
async def test_a_change_that_cannot_be_read_is_named(
    change: dict[str, Any], store: Store, tmp_path: Path
) -> None:
    bucket = tmp_path / "bucket"
    full_export(bucket, "01", AT, [])
    incremental_export(bucket, "02", AT, AT + timedelta(days=1), [({"pk": "a", "sk": "a"}, None, 1)])
    [file] = (bucket / "AWSDynamoDB/data").iterdir()
    line = json.loads(gzip.decompress(file.read_bytes()))
    file.write_bytes(gzip.compress(json.dumps({**line, **change}).encode()))
    with pytest.raises(UnusableExport, match=r"cannot be read: it has a line that is no item of an export$"):
        await summarize(graph, store, tmp_path, folder_of_exports=bucket)


async def test_a_line_without_an_end_is_not_read(store: Store, tmp_path: Path) -> None:
    """A file of 200 KB may have a line of 200 MB."""
    bucket = tmp_path / "bucket"
    full = full_export(bucket, "01", AT, [{"pk": "a", "sk": "a"}], files=1)
    with gzip.open(full / "data" / "010.json.gz", "wb") as file:
        for _ in range(200):
            file.write(b" " * 2**20)
    tracemalloc.start()
    try:
        with pytest.raises(UnusableExport, match=r"cannot be read: a line of more than 8,388,608 bytes$"):
            await summarize(graph, store, tmp_path, folder_of_exports=bucket)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


async def test_more_items_than_the_manifest_says_are_not_read(store: Store, tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    full = full_export(bucket, "01", AT, [{"pk": "a", "sk": "a"}], files=1)
    line = gzip.decompress((full / "data" / "010.json.gz").read_bytes())
    (full / "data" / "010.json.gz").write_bytes(gzip.compress(line * 3))
    with pytest.raises(
        UnusableExport, match=r"has more than 1 items, and its manifest says 1: copy it again$"
    ):
        await summarize(graph, store, tmp_path, folder_of_exports=bucket)


@pytest.mark.parametrize(
    "manifest",
    [
        "nope",
        "[1, 2]",
        '{"itemCount": null, "dataFileS3Key": null}',
        '{"itemCount": 1, "dataFileS3Key": "/etc/passwd"}',
        '{"itemCount": 1, "dataFileS3Key": "a", "md5Checksum": 1}',
        '{"itemCount": 1, "dataFileS3Key": "a", "md5Checksum": "%%%"}',
        '{"itemCount": 1, "dataFileS3Key": "AWSDynamoDB/../../x.gz"}',
        '{"itemCount": 1, "dataFileS3Key": "AWSDynamoDB/01/../../../x.gz"}',
        '{"itemCount": 1, "dataFileS3Key": "a\\u0000b"}',
        '{"itemCount": 1, "dataFileS3Key": "AWSDynamoDB/01,file:/x.gz"}',
        '{"itemCount": 1, "dataFileS3Key": "AWSDynamoDB/01/*"}',
        " " * 70_000,
    ],
)
def test_a_list_of_files_that_cannot_be_used(manifest: str, tmp_path: Path, engine: str) -> None:
    """It leads to no file outside the folder."""
    bucket = tmp_path / "bucket"
    (tmp_path / "x.gz").write_bytes(gzip.compress(b'{"Item": {}}'))
    full = full_export(bucket, "01", AT, [])
    (full / "manifest-files.json").write_text(manifest)
    with pytest.raises(UnusableExport, match=r"manifest-files\.json is no list of the files of an export$"):
        Exports(bucket, "Guild").parts(graph.made(Summaries), 0)
    (full / "manifest-files.json").unlink()
    with pytest.raises(UnusableExport, match=r"manifest-files\.json is no list of the files of an export$"):
        Exports(bucket, "Guild").parts(graph.made(Summaries), 0)
    os.mkfifo(full / "manifest-files.json")
    with pytest.raises(UnusableExport, match=r"manifest-files\.json is no list of the files of an export$"):
        Exports(bucket, "Guild").parts(graph.made(Summaries), 0)


def test_a_link_to_a_file_elsewhere_is_not_read(tmp_path: Path, engine: str) -> None:
    full = full_export(tmp_path / "bucket", "01", AT, [{"pk": "x", "sk": "x"}], files=1)
    [file] = (full / "data").iterdir()
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnusableExport, match="lacks the file"):
        Exports(tmp_path / "bucket", "Guild").parts(graph.made(Summaries), 0)
    with pytest.raises(UnusableExport, match="lacks the file"):
        exports_at(None, str(tmp_path / "bucket"), "Guild")  # on Spark


def test_an_export_of_the_future(tmp_path: Path, engine: str) -> None:
    """Its values would be newer than those of every later job."""
    full_export(tmp_path, "01", datetime(9999, 12, 31, tzinfo=UTC), [])
    with pytest.raises(UnusableExport, match=r"^01 is of a time in the future, 9999-12-31"):
        Exports(tmp_path, "Guild")


async def test_an_export_that_is_not_complete(store: Store, tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    items: list[Item] = [
        {"pk": f"PERSON#{number}", "sk": f"PERSON#{number}", "score": Decimal(number)} for number in range(9)
    ]
    full = full_export(bucket, "01", AT, items, files=1)
    [file] = (full / "data").iterdir()
    whole = file.read_bytes()
    lines = gzip.decompress(whole).splitlines(keepends=True)
    for content, problem in (
        (gzip.compress(b"".join(lines[:-1])), "has 8 items, and its manifest says 9: copy it again"),
        (gzip.compress(b"".join([*lines[:-1], lines[0]])), "has another MD5 than its manifest says"),
        (whole[: len(whole) // 2], "cannot be read"),
    ):
        file.write_bytes(content)
        with pytest.raises(UnusableExport, match=problem):
            await summarize(graph, store, tmp_path, folder_of_exports=bucket)
    file.unlink()
    with pytest.raises(UnusableExport, match=r"lacks the file 010\.json\.gz, which its manifest lists"):
        await summarize(graph, store, tmp_path, folder_of_exports=bucket)
