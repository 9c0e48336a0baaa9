"""The job on Spark, in local mode, writes what the local engine writes, item by item. Skipped without PySpark."""

from __future__ import annotations

import ast
import asyncio
import gzip
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable
from keygraph.engines.open import open_store
from keygraph.summaries.exports import UnusableExport
from keygraph.summaries.spark import SparkJob, begun, exports_at, main, summarize
from keygraph.summaries.writing import WriteOptions
from tests.keygraph.exported import full_export, incremental_export
from tests.keygraph.guild import graph
from tests.keygraph.summarized import AT, contents
from tests.keygraph.summarized import summarize as summarize_here
from tests.keygraph.test_summaries import computed, expected, guild
from tests.server.command_line import run as command

pyspark: Any = pytest.importorskip(
    "pyspark", reason="PySpark is not installed: pip install 'keygraph[spark]'"
)
pytestmark = pytest.mark.long
MODEL = "tests.keygraph.guild:graph"


@pytest.fixture(scope="module")
def context() -> Iterator[Any]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = pyspark.SparkConf().setMaster("local[2]").set("spark.ui.enabled", "false")
    context = pyspark.SparkContext(conf=settings.set("spark.python.worker.memory", "64m"))
    context.setLogLevel("ERROR")
    yield context
    context.stop()


async def filled(address: str, items: list[Item]) -> None:
    async with open_store(address, graph.table) as store:
        await store.send(CreateTable())
        await store.send(BatchWrite(tuple(items)))


async def items_in(address: str) -> list[Item]:
    async with open_store(address, graph.table) as store:
        return await contents(store)


def run(context: Any, address: str, bucket: Path | None, **options: Any) -> list[Any]:
    """Runs the job with the exports in a bucket, or with the table in five segments."""
    job = SparkJob(MODEL, address, AT, WriteOptions(**options))
    job, rows, _ = begun(context, job, None if bucket is None else str(bucket), 5)
    return [*summarize(context, job, rows, 3)]


@pytest.mark.parametrize("is_exported", [True, False], ids=["export", "table in segments"])
async def test_it_writes_what_the_local_engine_writes(
    context: Any, tmp_path: Path, is_exported: bool
) -> None:
    items = guild(1 if is_exported else 6, people=60)
    one, other = (f"sqlite:{tmp_path / name}.db" for name in ("one", "other"))
    bucket = tmp_path / "bucket" if is_exported else None
    if bucket is not None:
        full_export(bucket, "01", AT, items, files=3)
    for address in (one, other):
        await filled(address, items)
    counted = sum(run(context, one, bucket), Counter())
    async with open_store(other, graph.table) as store:
        here = await summarize_here(graph, store, tmp_path, folder_of_exports=bucket)
    assert counted == here
    assert await items_in(one) == await items_in(other)
    assert computed(await items_in(one)) == expected(items)


async def test_a_line_that_is_too_long_is_not_read(context: Any, tmp_path: Path) -> None:
    """A damaged file of 20 KB may have a line of 20 MB."""
    address, bucket, items = f"sqlite:{tmp_path / 'one'}.db", tmp_path / "bucket", guild(1)
    full = full_export(bucket, "01", AT, items, files=1)
    await filled(address, items)
    [file] = (full / "data").iterdir()
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join([b" " * 20_000_000 + lines[0], *lines[1:]])))
    with pytest.raises(UnusableExport, match=r"or has a line of more than 8,388,608 bytes$"):
        run(context, address, bucket)


async def test_it_reads_incremental_exports_and_keeps_newer_values(context: Any, tmp_path: Path) -> None:
    address, bucket, items = f"sqlite:{tmp_path / 'one'}.db", tmp_path / "bucket", guild(2)
    full_export(bucket, "01", AT, items)
    gone, *left = items
    key: Item = {"pk": gone["pk"], "sk": gone["sk"]}
    incremental_export(bucket, "02", AT, AT + timedelta(days=1), [(key, gone, 1), (key, None, 2)])
    await filled(address, left)
    run(context, address, bucket, rate=1000)
    assert computed(await items_in(address)) == expected(left)
    before = await items_in(address)
    assert sum(run(context, address, bucket), Counter()) == {"confirmed": len(expected(left))}
    assert await items_in(address) == before


async def test_a_dry_run_lists_what_would_change(context: Any, tmp_path: Path) -> None:
    address, bucket, items = f"sqlite:{tmp_path / 'one'}.db", tmp_path / "bucket", guild(3)
    full_export(bucket, "01", AT, items)
    await filled(address, items)
    before = await items_in(address)
    changes = [each for each in run(context, address, bucket, is_dry_run=True) if isinstance(each, tuple)]
    assert len(changes) == len(expected(items))
    assert await items_in(address) == before


async def test_one_node_with_half_of_all_edges(context: Any, tmp_path: Path) -> None:
    """Its contributions are combined before they are sent, and its workers have 64 MB each."""
    address, bucket = f"sqlite:{tmp_path / 'one'}.db", tmp_path / "bucket"
    project: Item = {"pk": "PROJECT#0", "sk": "PROJECT#0", "project_id": "0"}
    edges: list[Item] = [
        {
            "pk": f"PERSON#{number}",
            "sk": f"ON#{0 if number % 2 else number}",
            "gp": f"PROJECT#{0 if number % 2 else number}",
            "gs": f"PERSON#{number}",
            "share": Decimal(number),
        }
        for number in range(20_000)
    ]
    full_export(bucket, "01", AT, [project, *edges])
    await filled(address, [project])
    run(context, address, bucket)
    [found] = await items_in(address)
    assert (found["best"], found["shares"]) == (["19999", "19997"], [19999, 19997])


async def test_an_export_that_is_not_complete(context: Any, tmp_path: Path) -> None:
    address, bucket = f"sqlite:{tmp_path / 'one'}.db", tmp_path / "bucket"
    full = full_export(bucket, "01", AT, guild(1), files=1)
    [file] = (full / "data").iterdir()
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join(lines[:-1])))
    problem = f"the files have {len(lines) - 1} items, and their manifests say {len(lines)}"
    with pytest.raises(UnusableExport, match=problem):
        run(context, address, bucket)
    file.write_bytes(gzip.compress(b'{"Item": 5}\n'))
    with pytest.raises(UnusableExport, match=r"^a file cannot be read: .*no item of an export$"):
        run(context, address, bucket)
    with pytest.raises(UnusableExport, match="cannot be read"):
        exports_at(context, f"file://{tmp_path}/nothing", "Guild")


@pytest.mark.timeout(600)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="The executor's process is found in /proc")
async def test_an_executor_is_killed_in_the_middle_of_writing(tmp_path: Path) -> None:
    """On a cluster of two executors, each a process. What the killed one has written stays; its tasks are run again."""
    address, killed, items = f"sqlite:{tmp_path / 'one'}.db", tmp_path / "killed", guild(7, people=60)
    await filled(address, items)
    words = ("-m", "tests.keygraph.killed_executor", MODEL, address, str(killed))
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, killed.exists()) == (0, True), done.stderr
    assert "Command exited with code 137" in done.stderr
    counted = ast.literal_eval(done.stdout)
    assert counted["confirmed"] > 0
    assert counted["written"] + counted["confirmed"] == len(expected(items))
    assert computed(await items_in(address)) == expected(items)


async def test_as_a_program(context: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address, bucket, items = f"sqlite:{tmp_path / 'one'}.db", tmp_path / "bucket", guild(4)
    full_export(bucket, "01", AT, items)
    await filled(address, items)
    assert main(["--model", MODEL, "--store", address, "--input", str(bucket)]) == 0
    assert capsys.readouterr().out.startswith("As of 2020-01-02T03:04:05+00:00: {'written': ")
    assert computed(await items_in(address)) == expected(items)


async def test_as_a_command(context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address, bucket, items = f"sqlite:{tmp_path / 'one'}.db", tmp_path / "bucket", guild(5)
    full_export(bucket, "01", AT, items)
    await filled(address, items)
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    words = ("summarize", "--model", MODEL, "--store", address, "--engine", "spark", "--input", bucket)
    result = await asyncio.to_thread(command, *words)
    assert result.exit_code == 0
    assert f" {len(items)} items in " in result.stderr
    assert f"as of 2020-01-02T03:04:05Z: {len(expected(items))} items with new values" in result.stderr
    assert computed(await items_in(address)) == expected(items)
