"""The job reads what DynamoDB has exported, full and incremental, as it reads the table."""

from __future__ import annotations

import gzip
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Store
from keygraph.summaries.exports import Exports, UnusableExport
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
    assert {item["degree_as_of"] for item in found if "degree_as_of" in item} == {"2030-01-02T03:04:05Z"}


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
    exports = Exports(bucket)
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
        Exports(bucket)
    later = AT + timedelta(days=1)
    incremental_export(bucket, "02", later, later + timedelta(days=1), [])
    with pytest.raises(UnusableExport, match="only incremental exports, which need the full one before them"):
        Exports(bucket)
    full = full_export(bucket, "01", AT, [])
    with pytest.raises(UnusableExport, match="no export has what has changed between 2030-01-02 03:04:05"):
        Exports(bucket)
    (full / "manifest-summary.json").write_text("{")
    with pytest.raises(UnusableExport, match=r"manifest-summary\.json is no manifest of an export"):
        Exports(bucket)
    (full / "manifest-summary.json").write_text(
        '{"exportTime": "2030-01-01T00:00:00Z", "outputFormat": "ION"}'
    )
    with pytest.raises(UnusableExport, match="01 is in the format ION; export it as DYNAMODB_JSON"):
        Exports(bucket)


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
        (whole[: len(whole) // 2], "cannot be read"),
    ):
        file.write_bytes(content)
        with pytest.raises(UnusableExport, match=problem):
            await summarize(graph, store, tmp_path, folder_of_exports=bucket)
    file.unlink()
    with pytest.raises(UnusableExport, match=r"lacks the file 010\.json\.gz, which its manifest lists"):
        await summarize(graph, store, tmp_path, folder_of_exports=bucket)
