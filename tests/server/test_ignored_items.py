"""Items that are not the graph's: what each command, and a list, makes of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Table
from keygraph.engines.open import open_store
from keygraph_server.models import load_model
from tests.documents.served import Served
from tests.server.command_line import done, run
from tests.server.loading import write_lines
from tests.server.tables import FILE, items_in, make_table

TABLE = Table("Team", partition_key="PK", sort_key="SK")
MODEL = """
from __future__ import annotations

from keygraph import ID, Graph, Many, Table, edge, node, record


@node("USER#{user_id}")
class User:
    user_id: ID
    notes: Many[Note]


@record("{user}", "NOTE#{number}")
class Note:
    user: User
    number: int


graph = Graph(
    Table("Team", partition_key="PK", sort_key="SK"), User, Note, ignore=["lock/*", "USER#* / LOGIN#*", "S*#*"]
)
"""
OURS: list[Item] = [{"PK": "USER#1", "SK": "USER#1"}, {"PK": "USER#1", "SK": "NOTE#7"}]
OTHERS: list[Item] = [
    {"PK": "USER#1", "SK": "LOGIN#2024", "from": "here"},
    {"PK": "SESSION#9", "SK": "SESSION#9"},
    {"PK": "lock/a", "SK": "-"},
]
STRANGE: Item = {"PK": "USER#1", "SK": "LOG"}


@pytest.fixture(autouse=True)
def team(folder: Path) -> Path:
    (folder / "team.py").write_text(MODEL)
    return folder


def by_key(items: list[Item]) -> list[Item]:
    return sorted(items, key=lambda item: [str(item["PK"]), str(item["SK"])])


def test_they_are_no_problem_and_others_are() -> None:
    make_table(FILE, [*OURS, *OTHERS], TABLE)
    assert "ignored items   3" in done("verify", "--model", "team", "--store", FILE)
    make_table(FILE, [*OURS, *OTHERS, STRANGE], TABLE)
    result = run("verify", "--model", "team", "--store", FILE)
    assert result.exit_code == 3
    assert "USER#1 / LOG " in result.stdout


def test_no_list_has_them() -> None:
    make_table(FILE, [*OURS, *OTHERS], TABLE)
    query = '{ user(userId: "1") { notes { totalCount nodes { number } } } }'

    async def answer() -> dict[str, Any]:
        async with open_store(FILE, TABLE) as store:
            return await Served(load_model("team").graph, store).ask(query)

    assert asyncio.run(answer()) == {"user": {"notes": {"totalCount": 1, "nodes": [{"number": 7}]}}}


def test_commands_keep_them() -> None:
    write_lines("items.jsonl", [*OURS, *OTHERS])
    assert run("load", "items.jsonl", "--model", "team", "--store", FILE).exit_code == 0
    assert items_in(FILE, TABLE) == by_key([*OURS, *OTHERS])
    assert run("export", "exported.jsonl", "--model", "team", "--store", FILE).exit_code == 0
    again, copied = "sqlite:again.db", "sqlite:copied.db"
    assert run("load", "exported.jsonl", "--model", "team", "--store", again).exit_code == 0
    assert run("copy", "--model", "team", "--store", FILE, "--to", copied).exit_code == 0
    assert items_in(again, TABLE) == items_in(copied, TABLE) == by_key([*OURS, *OTHERS])
    write_lines("items.jsonl", [STRANGE])
    result = run("load", "items.jsonl", "--model", "team", "--store", FILE)
    assert (result.exit_code, "(USER#1 / LOG) matches no declared type" in result.stderr) == (1, True)
