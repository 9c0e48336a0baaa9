"""`keygraph backfill`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Index, Table
from tests.server.command_line import run
from tests.server.tables import FILE, items_in, make_table

MODEL = """from keygraph import ID, Graph, Index, Table, field, node

by_state = Index("ByState", "sp", "ss")

@node("TASK#{task_id}", by_state("STATE#{state}", "{task_id}", lists="tasks"))
class Task:
    task_id: ID
    title: str
    state: str = "open"
    slug: str | None = None

    @field(needs=("title",))
    def make_slug(self) -> str:
        return self.title.lower()

    @field(needs=("title",))
    async def wait_for_slug(self) -> str:
        return self.title

    @field(needs=("title",))
    def cut(self, length: int) -> str:
        return self.title[:length]

graph = Graph(Table("Tasks", partition_key="PK", sort_key="SK", indexes=[by_state]), Task)
"""
PLAIN = Table("Tasks", partition_key="PK", sort_key="SK")
INDEXED = PLAIN.with_indexes([Index("ByState", "sp", "ss")])
OLD: list[Item] = [
    {"PK": "TASK#1", "SK": "TASK#1", "title": "One"},
    {"PK": "TASK#2", "SK": "TASK#2", "title": "Two", "state": "done"},
]
NEW: list[Item] = [
    {**OLD[0], "state": "open", "sp": "STATE#open", "ss": "1"},
    {**OLD[1], "sp": "STATE#done", "ss": "2"},
]


@pytest.fixture(autouse=True)
def model(folder: Path) -> None:
    (folder / "tasks.py").write_text(MODEL)


def backfill(address: str, *words: str) -> tuple[int, str, str]:
    result = run("backfill", "--model", "tasks:graph", "--store", address, *words)
    return result.exit_code, result.stdout, result.stderr


def test_a_table_gets_an_index_and_its_keys(address: str) -> None:
    """As an owner does it: the index, what it would change, the change, and nothing is left."""
    make_table(address, OLD, PLAIN)
    model = ("--model", "tasks:graph", "--store", address)
    assert run("table", "update", *model).exit_code == 0
    code, stdout, stderr = backfill(address, "--dry-run")
    changes = stdout.partition("Table Tasks")[0].split("~ ")[1:]
    assert (code, sorted(changes)) == (
        3,
        [
            "TASK#1 / TASK#1: Task: state is missing: its default can be written\n"
            '    sp: none → {"S":"STATE#open"}\n    ss: none → {"S":"1"}\n    state: none → {"S":"open"}\n',
            "TASK#2 / TASK#2: Task: ByState: the item is not in the index: it has no sp and no ss\n"
            '    sp: none → {"S":"STATE#done"}\n    ss: none → {"S":"2"}\n',
        ],
    )
    assert stderr.endswith(" of Tasks: 2 can be changed. Nothing was changed.\n")
    assert items_in(address, INDEXED) == OLD
    code, stdout, stderr = backfill(address)
    assert (code, stderr.startswith("Read 2 items in ")) == (0, True)
    assert stderr.endswith(" of Tasks: 2 written.\n")
    assert stdout.startswith("Table Tasks")
    assert items_in(address, INDEXED) == NEW
    assert run("verify", *model).exit_code == 0
    assert backfill(address)[2].endswith(" of Tasks: 0 written.\n")


def test_an_item_that_lacks_several_fields_is_written_once(folder: Path) -> None:
    (folder / "tasks.py").write_text(MODEL.replace("slug: str | None = None", 'slug: str = "none"'))
    make_table(FILE, OLD, INDEXED)
    assert "no item has the field slug" in backfill(FILE, "--dry-run")[1]
    code, stdout, stderr = backfill(FILE)
    assert "no item has the field" not in stdout
    assert (code, [item["slug"] for item in items_in(FILE, INDEXED)]) == (0, ["none", "none"])
    assert stderr.endswith(" of Tasks: 2 written.\n")


def test_what_is_sent_for_one_item_is_explained() -> None:
    make_table(FILE, OLD, INDEXED)
    code, stdout, _ = backfill(FILE, "--explain", "TASK#1 / TASK#1")
    assert (code, items_in(FILE, INDEXED)) == (0, OLD)
    shown = " ".join(stdout.split())
    assert "What is read GetItem: PK = TASK#1 AND SK = TASK#1 What is written UpdateItem:" in shown
    assert "changes: SET sp = STATE#open, ss = 1, state = open condition: attribute_exists(PK) AND " in shown
    assert "else: tried again: another write was faster" in shown
    code, stdout, _ = backfill(FILE, "--explain", "TASK#2 / TASK#2", "--field", "state", "--format", "json")
    assert (code, json.loads(stdout)["writes"]) == (0, [])


def test_one_field_from_a_method(address: str) -> None:
    make_table(address, NEW, INDEXED)
    code, stdout, _ = backfill(address, "--field", "slug", "--from", "make_slug", "--format", "json")
    assert (code, [each["what"] for each in json.loads(stdout)["repaired"]]) == (
        0,
        ["slug is missing: the result of make_slug can be written"],
    )
    assert [item["slug"] for item in items_in(address, INDEXED)] == ["one", "two"]


def test_a_dry_run_is_json_for_a_program() -> None:
    make_table(FILE, OLD, INDEXED)
    code, stdout, _ = backfill(FILE, "--index", "ByState", "--dry-run", "--format", "json")
    found = json.loads(stdout)
    assert (code, [each["key"]["PK"] for each in found["changes"]]) == (3, ["TASK#2"])
    assert found["changes"][0]["after"] == {"sp": {"S": "STATE#done"}, "ss": {"S": "2"}}
    assert (len(found["problems"]), found["repaired"]) == (1, [])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--index", "None"), "the model has no index None. Its indexes: ByState."),
        (("--field", "name"), "no type of the model has a field name. Name a field as the model does."),
        (("--from", "make_slug"), "--from is an option of --field. Name the field to write."),
        (
            ("--field", "slug", "--from", "title"),
            "a type with the field slug has no method title. Decorate it with @field.",
        ),
        (
            ("--field", "slug", "--from", "wait_for_slug"),
            "wait_for_slug is async or takes arguments. Write a method that takes only self.",
        ),
        (
            ("--field", "slug", "--from", "cut"),
            "cut is async or takes arguments. Write a method that takes only self.",
        ),
    ],
)
def test_what_the_model_does_not_have_is_one_line(words: tuple[str, ...], message: str) -> None:
    assert backfill(FILE, *words) == (1, "", f"keygraph: {message}\n")
