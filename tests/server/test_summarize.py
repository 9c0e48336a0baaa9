"""`keygraph summarize`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import keygraph_examples.talent as talent_file
from keygraph.dynamo.items import Item
from keygraph.summaries.local import LocalJob, UnusableWorkFile, WorkFile
from keygraph_examples.talent import graph as talent
from tests.keygraph.exported import full_export
from tests.keygraph.league import graph
from tests.keygraph.summarized import AT
from tests.server.command_line import done, refused, run
from tests.server.tables import FILE, items_in, make_table

MODEL = ("--model", "tests.keygraph.league:graph")
ITEMS: list[Item] = [
    {"pk": "TEAM#a", "sk": "TEAM#a", "team_id": "a", "name": "Ants", "size": Decimal(9)},
    {"pk": "TEAM#a", "sk": "MEMBER#1", "gp": "PLAYER#1", "gs": "TEAM#a", "revision": Decimal(1)},
    {"pk": "PLAYER#1", "sk": "PLAYER#1", "player_id": "1"},
]

pytestmark = pytest.mark.usefixtures("folder")


def fill(address: str) -> None:
    make_table(address, ITEMS, graph.table)


def values(address: str) -> list[dict[str, Any]]:
    names = ("size", "member_count", "team_count", "team_name")
    items = items_in(address, graph.table)
    return [{name: item[name] for name in names if name in item} for item in items]


RIGHT = [{"team_count": 1}, {"team_name": "Ants"}, {"size": 1, "member_count": 1}]


def test_it_computes_a_table(address: str) -> None:
    fill(address)
    result = run("summarize", *MODEL, "--store", address)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("Summarized 3 items in ")
    assert result.stderr.endswith("Z: 3 items with new values, 1 item with repaired counts or sums.\n")
    assert values(address) == RIGHT
    assert not [*Path(".keygraph/summaries").glob("*")]


def test_a_diff_of_the_model_names_it_for_values_that_were_never_computed() -> None:
    """Their ages go with them, and are not named."""
    fill(FILE)
    found = json.loads(run("table", "diff", *MODEL, "--store", FILE, "--json").stdout)["differences"]
    fixes = {each["what"]: each["fix"] for each in found if each["what"].startswith("no item has the field")}
    assert fixes["no item has the field member_count"] == "keygraph summarize computes it"
    assert not [what for what in fixes if "as_of" in what]


def test_a_dry_run_prints_a_diff_and_changes_nothing() -> None:
    fill(FILE)
    result = run("summarize", *MODEL, "--store", FILE, "--dry-run")
    assert result.exit_code == 0
    assert sorted(result.stdout.splitlines()) == [
        '    mean: none → {"M":{"sum":{"N":"0"},"count":{"N":"0"}}}',
        '    member_count: none → {"N":"1"}',
        '    size: {"N":"9"} → {"N":"1"}',
        '    stats.points: none → {"N":"0"}',
        '    team_count: none → {"N":"1"}',
        '    team_name: none → {"S":"Ants"}',
        "~ PLAYER#1 / PLAYER#1: Player: team_count computed",
        "~ TEAM#a / MEMBER#1: Member: team_name computed",
        "~ TEAM#a / TEAM#a: Team: member_count, mean, points computed",
        "~ TEAM#a / TEAM#a: Team: size does not match its list",
    ]
    assert result.stderr.endswith("Nothing was changed. To write the values, leave out --dry-run.\n")
    assert values(FILE) == [{}, {}, {"size": 9}]


def test_json_for_a_program() -> None:
    fill(FILE)
    listed = run("summarize", *MODEL, "--store", FILE, "--dry-run", "--format", "json")
    found = json.loads(listed.stdout)
    assert len(found["changes"]) == 4
    assert {
        "problem": "outdated",
        "type": "Player",
        "what": "team_count computed",
        "key": {"pk": "PLAYER#1", "sk": "PLAYER#1"},
        "before": {},
        "after": {"team_count": {"N": "1"}},
    } in found["changes"]
    done = json.loads(run("summarize", *MODEL, "--store", FILE, "--format", "json").stdout)
    assert done.pop("as_of").endswith("Z")
    assert done == {
        "table": "League",
        "items": 3,
        "written": 3,
        "confirmed": 0,
        "repaired": 1,
        "newer": 0,
        "gone": 0,
        "refused": 0,
    }


@pytest.mark.parametrize("method", ["read", "combine", "write"])
def test_it_is_interrupted_and_resumed(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(FILE)
    original = getattr(LocalJob, method)

    async def interrupted(job: LocalJob, *args: Any) -> Any:
        if method == "write":
            os.kill(os.getpid(), signal.SIGINT)
        result = await original(job, *args)
        os.kill(os.getpid(), signal.SIGINT)
        return result

    monkeypatch.setattr(LocalJob, method, interrupted)
    stopped = run("summarize", *MODEL, "--store", FILE)
    assert stopped.exit_code == 130
    assert stopped.stderr.endswith("keygraph: interrupted. Run it again with --resume to continue.\n")
    [work] = Path(".keygraph/summaries").glob("*.db")
    assert work.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(LocalJob, method, original)
    assert run("summarize", *MODEL, "--store", FILE, "--resume").exit_code == 0
    assert values(FILE) == RIGHT
    assert not work.exists()


def test_what_cannot_be_resumed(tmp_path: Path) -> None:
    fill(FILE)
    result = run("summarize", *MODEL, "--store", FILE, "--resume")
    assert result.stderr.startswith("Found no interrupted job to resume. Starting from the beginning.\n")
    work = tmp_path / "work" / "file.db"
    WorkFile(work, ["another"], resume=False).close()
    assert refused("summarize", *MODEL, "--store", FILE, "--resume", "--work", work) == (
        f"{work} does not belong to a job of this table with this model and these options. "
        "Run it without --resume.\n"
    )


def test_two_jobs_at_once_do_not_share_a_file() -> None:
    """The second one is refused, and changes nothing, whether it resumes or not."""
    fill(FILE)
    work = WorkFile(Path("work.db"), ["the first one"], resume=False)
    with work.transaction():
        work.put("reached", 7)
    for options in ((), ("--resume",)):
        assert refused("summarize", *MODEL, "--store", FILE, "--work", "work.db", *options) == (
            "work.db is used by a job that is running. Wait until it ends, or name another file.\n"
        )
    assert (work.get("what"), work.get("reached")) == (["the first one"], 7)
    work.delete()
    assert not [*Path.cwd().glob("work.db*")]
    assert run("summarize", *MODEL, "--store", FILE, "--work", "work.db", "--resume").exit_code == 0
    assert values(FILE) == RIGHT


def test_a_job_that_has_ended_meanwhile_leaves_no_file_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path("work.db")
    first = WorkFile(path, [], resume=False)
    connect = sqlite3.connect

    def late(*words: Any, **options: Any) -> Any:
        found = connect(*words, **options)
        if "uri" not in options:
            found.execute("SELECT count(*) FROM sqlite_schema")
            path.unlink()
        return found

    first.close()
    monkeypatch.setattr("keygraph.summaries.local.sqlite3.connect", late)
    with pytest.raises(UnusableWorkFile, match="is used by a job that is running"):
        WorkFile(path, [], resume=True)


@pytest.mark.parametrize("options", [("--dry-run",), ("--only-changed",)])
def test_a_job_is_not_resumed_as_another_one(
    options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run that was interrupted while it printed has written nothing."""
    fill(FILE)
    original = LocalJob.write

    async def interrupted(job: LocalJob, *args: Any) -> None:
        await original(job, *args)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(1)

    with monkeypatch.context() as patched:
        patched.setattr(LocalJob, "write", interrupted)
        assert run("summarize", *MODEL, "--store", FILE, "--work", "work.db", *options).exit_code == 130
    assert refused("summarize", *MODEL, "--store", FILE, "--work", "work.db", "--resume") == (
        "work.db does not belong to a job of this table with this model and these options. "
        "Run it without --resume.\n"
    )
    assert run("summarize", *MODEL, "--store", FILE, "--resume").exit_code == 0
    assert values(FILE) == RIGHT


@pytest.mark.parametrize("name", ["model.py", "other.db"])
def test_a_file_that_is_no_work_file_is_neither_replaced_nor_deleted(name: str) -> None:
    fill(FILE)
    Path("model.py").write_text("# something else\n" * 100, "utf-8")
    with closing(sqlite3.connect("other.db")) as database:
        database.execute("CREATE TABLE mine (text)")
    before = Path(name).read_bytes()
    for options in ((), ("--resume",)):
        assert refused("summarize", *MODEL, "--store", FILE, "--work", name, *options) == (
            f"{name} is there, and is not the work file of a job. Name another file.\n"
        )
    Path("folder").mkdir()
    Path("link").symlink_to("empty")
    Path("empty").touch()
    for other in ("folder", "link"):
        assert refused("summarize", *MODEL, "--store", FILE, "--work", other) == (
            f"{other} is not a file. Name another file.\n"
        )
    assert Path("link").is_symlink()
    run("summarize", *MODEL, "--store", FILE, "--dry-run", "--work", f"file:{name}?a=URI")
    assert Path(name).read_bytes() == before
    assert len(items_in(FILE, graph.table)) == 3
    log = Path("moved.db-wal")
    log.write_text("the last writes to another file", "utf-8")
    assert "moved.db-wal is there" in refused("summarize", *MODEL, "--store", FILE, "--work", "moved.db")
    assert [*Path().glob("moved.db*")] == [log]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("file/x/work.db", "Not a directory"),
        ("file/work.db", "File exists"),
    ],
)
def test_a_work_file_that_cannot_be_made_is_one_line(name: str, reason: str) -> None:
    fill(FILE)
    Path("file").touch()
    assert refused("summarize", *MODEL, "--store", FILE, "--work", name) == (
        f"the work file {name} cannot be used ({reason}). Nothing was done. --work names another file.\n"
    )


def test_a_full_disk_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(FILE)

    def full(file: WorkFile, rows: Any) -> None:
        file._database.execute("PRAGMA max_page_count = 1")
        file._database.executemany(
            "INSERT INTO rows VALUES (1, 1, '', '', ?)", ((b"x" * 100_000,) for _ in range(99))
        )

    with monkeypatch.context() as patched:
        patched.setattr(WorkFile, "add", full)
        assert refused("summarize", *MODEL, "--store", FILE, "--work", "work.db") == (
            "the work file work.db cannot be used (database or disk is full). Nothing was done. "
            "--work names another file.\n"
        )
    assert run("summarize", *MODEL, "--store", FILE, "--work", "work.db", "--resume").exit_code == 0
    assert values(FILE) == RIGHT


def test_a_model_without_summaries() -> None:
    result = run("summarize", "--model", "keygraph_examples.social:graph", "--store", FILE)
    assert (result.exit_code, result.stderr) == (
        1,
        "keygraph: the model declares nothing that this command computes. "
        'Declare a count, a sum or a copy: counts("orders", kept="job").\n',
    )


def test_it_reads_an_export(tmp_path: Path) -> None:
    fill(FILE)
    bucket = tmp_path / "bucket"
    full_export(bucket, "01", AT, ITEMS, table="League")
    result = run("summarize", *MODEL, "--store", FILE, "--input", bucket)
    assert result.exit_code == 0
    assert "of League as of 2020-01-02T03:04:05Z: 3 items with new values" in result.stderr
    assert values(FILE) == RIGHT


def test_a_folder_without_an_export(tmp_path: Path) -> None:
    assert refused("summarize", *MODEL, "--store", FILE, "--input", tmp_path) == (
        f"{tmp_path} has no export. Name the folder to which the bucket's AWSDynamoDB was copied.\n"
    )


def test_an_export_that_lacks_a_file(tmp_path: Path) -> None:
    fill(FILE)
    folder = full_export(tmp_path / "bucket", "01", AT, ITEMS, table="League")
    (folder / "data" / "010.json.gz").unlink()
    assert refused("summarize", *MODEL, "--store", FILE, "--input", tmp_path) == (
        f"{folder} lacks the file 010.json.gz, which its manifest lists. Nothing was done.\n"
    )


def test_spark_is_not_resumed() -> None:
    fill(FILE)
    assert refused("summarize", *MODEL, "--store", FILE, "--engine", "spark", "--resume") == (
        "Spark runs failed tasks again by itself. Leave --resume out.\n"
    )


@pytest.mark.parametrize("words", [(), ("--engine", "spark")])
def test_a_table_that_is_not_there(words: tuple[str, ...]) -> None:
    result = run("summarize", *MODEL, "--store", FILE, *words)
    assert (result.exit_code, result.stderr.startswith("keygraph: there is no table League.")) == (1, True)


def test_what_is_sent_for_one_item_is_explained(address: str) -> None:
    fill(address)
    words = ("summarize", *MODEL, "--store", address, "--explain", "TEAM#a / TEAM#a")
    result = run(*words)
    assert (result.exit_code, values(address)) == (0, [{}, {}, {"size": 9}])
    shown = " ".join(result.stdout.split())
    assert " UpdateItem: pk = TEAM#a AND sk = TEAM#a changes: SET size = 1 condition: " in shown
    assert "changes: SET member_count = {member_count}, member_count_as_of = 2" in shown
    assert "attribute_exists(pk) AND (NOT attribute_exists(member_count_as_of))" in shown
    assert "The job reads the whole table once by a Scan" in shown
    found = json.loads(run(*words, "--format", "json").stdout)
    assert [each["operation"] for each in found["reads"]] == ["GetItem", "Query"]
    [counted, summarized] = found["writes"]
    assert counted["actions"][0]["changes"] == "SET size = 1"
    assert "mean = {mean}" in summarized["actions"][0]["changes"]


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("TEAM#a", "TEAM#a is no key of League. Write it as `pk / sk`."),
        ("TEAM#z / TEAM#z", "League has no item TEAM#z / TEAM#z. Name the key of an item."),
    ],
)
def test_an_item_that_cannot_be_explained(key: str, problem: str) -> None:
    fill(FILE)
    assert refused("summarize", *MODEL, "--store", FILE, "--explain", key) == (f"{problem}\n")


def test_spark_needs_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(FILE)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert refused("summarize", *MODEL, "--store", FILE, "--engine", "spark", "--input", tmp_path) == (
        "PySpark is not installed. Install it with `pip install 'keygraph[spark]'`.\n"
    )


@pytest.mark.long
def test_what_nodes_keep_of_walks_is_an_attribute_to_every_command(tmp_path: Path) -> None:
    """The copy of an exported and loaded table is verified, repaired and filled, and nothing of a walk changes."""
    model, other = ("--model", "keygraph_examples.talent:graph"), "sqlite:other.db"
    make_table(FILE, table=talent.table)
    sample = Path(talent_file.__file__).parent / "talent.described.jsonl"
    for words in (
        ("load", str(sample), *model, "--store", FILE),
        ("summarize", *model, "--store", FILE, "--explain", "1 / NAME|1|PERSON"),
        ("summarize", *model, "--store", FILE),
        ("export", "talent.jsonl", *model, "--store", FILE),
        ("table", "create", *model, "--store", other),
        ("load", "talent.jsonl", *model, "--store", other),
        ("verify", *model, "--store", other, "--repair", "--only", "counts"),
        ("backfill", *model, "--store", other),
        ("verify", *model, "--store", other),
        ("copy", *model, "--store", other, "--to", "sqlite:copied.db"),
    ):
        assert ("SamePlaces = {same_places}" in " ".join(done(*words).split())) == ("--explain" in words)
    items = items_in(FILE, talent.table)
    assert items == items_in(other, talent.table) == items_in("sqlite:copied.db", talent.table)
    kept = [item["SamePlaces"] for item in items if "SamePlaces" in item]
    assert {"total": 2, "nodes": [["Person", [each], 1, 1] for each in "59"]} in kept
    result = run("summarize", *model, "--store", FILE, "--engine", "spark")
    assert result.stderr == (
        "keygraph: walks are computed on one machine, and the model keeps Person.same_places. Leave --engine spark out.\n"
    )
