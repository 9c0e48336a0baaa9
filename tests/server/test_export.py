"""`keygraph export`."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import pytest

from keygraph.dynamo.items import Item
from keygraph.engines.open import open_store
from keygraph.model.node_shards import is_shard
from keygraph.writing.requests import Create
from keygraph.writing.sending.writer import write
from keygraph_server.commands import export
from tests.keygraph import test_popular_nodes as popular
from tests.server.command_line import refused, run
from tests.server.tables import FILE, items_in, make_table

ITEMS: list[Item] = [
    {"PK": f"USER#{n}", "SK": f"USER#{n}", "Type": "User", "balance": Decimal(n) / 100} for n in range(300)
]

USER: Item = {
    "name": "Ann",
    "email": "ann@example.com",
    "userType": "customer",
    "GSI1PK": "USER",
    "GSI1SK": "2024-01-15T10:30:00Z",
}
"""What a load asks of every user."""

pytestmark = pytest.mark.usefixtures("folder")


def test_a_terminal_obeys_no_text_of_an_export(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The escapes are those of JSON: what is copied from the terminal can be loaded."""

    class Terminal(BytesIO):
        def isatty(self) -> bool:
            return True

    terminal, name = Terminal(), "\x1b[2J\x9b2J\u202enna\u200b \N{GRINNING FACE} \U000e0100"
    make_table(address, [{**ITEMS[0], **USER, "userId": "0", "name": name}])
    monkeypatch.setattr(export, "output_file", lambda file, **_: nullcontext(terminal))
    assert run("export", "-", "--store", address).exit_code == 0
    [line] = terminal.getvalue().decode().split("\n")[:-1]
    assert line.isprintable()
    assert "\U000e0100" not in line
    assert json.loads(line)["name"] == name


def test_an_export_is_the_table_and_loads_into_another(address: str) -> None:
    items = [{**item, **USER, "userId": str(item["PK"]).removeprefix("USER#")} for item in ITEMS]
    make_table(address, items)
    result = run("export", "shop.jsonl", "--store", address)
    assert result.exit_code == 0
    assert result.stdout.startswith("Exported 300 items in ")
    assert result.stdout.endswith(" of EcommerceData.\n")
    lines = Path("shop.jsonl").read_text("utf-8").splitlines()
    found = [json.loads(line, parse_float=Decimal, parse_int=Decimal) for line in lines]
    assert sorted(found, key=str) == sorted(items, key=str)

    for name, options in (("typed.json.gz", ["--format", "typed"]), ("again.jsonl", [])):
        assert run("export", name, "--store", address, *options).exit_code == 0
        make_table("sqlite:copy.db")
        assert run("load", name, "--store", "sqlite:copy.db").exit_code == 0
        copied = run("export", "-", "--store", "sqlite:copy.db")
        assert sorted(copied.stdout.splitlines()) == sorted(lines)
    typed = gzip.decompress(Path("typed.json.gz").read_bytes()).decode().splitlines()
    assert {
        "Item": {key: {"S": "USER#7"} for key in ("PK", "SK")}
        | {"Type": {"S": "User"}, "userId": {"S": "7"}, "balance": {"N": "0.07"}}
        | {name: {"S": value} for name, value in USER.items()}
    } in [json.loads(line) for line in typed]


@pytest.mark.long
def test_numbers_in_shards_go_into_another_table_with_their_node() -> None:
    async def fill() -> None:
        async with open_store(FILE, popular.table) as store:
            await write(popular.graph, store, [Create(popular.star, {"name": "Ann"})])
            for number in range(20):
                await write(popular.graph, store, [popular.new_review(str(number), number)])

    model = ("--model", "tests.keygraph.test_popular_nodes:graph")
    make_table(FILE, (), popular.table)
    asyncio.run(fill())
    items = items_in(FILE, popular.table)
    assert sum(map(is_shard, items)) == 3
    for place, words in (
        ("plain", ("load", "plain.jsonl")),
        ("typed", ("load", "typed.jsonl")),
        ("copied", ("copy", "--to", "sqlite:copied.db")),
    ):
        if words[0] == "load":
            make_table(f"sqlite:{place}.db", (), popular.table)
            assert run("export", *model, words[1], "--store", FILE, "--format", place).exit_code == 0
        store = FILE if words[0] == "copy" else f"sqlite:{place}.db"
        result = run(*words, *model, "--store", store)
        assert (result.exit_code, items_in(f"sqlite:{place}.db", popular.table)) == (0, items)
        assert run("verify", *model, "--store", f"sqlite:{place}.db").exit_code == 0
    # With `--type`, they are exported with their node too.
    options = ("--store", FILE, "--type", "Star", "--segments", "3")
    assert len(run("export", *model, "-", *options).stdout.splitlines()) == 1 + 3 < len(items)
    Path("bad.jsonl").write_text('{"pk": "", "sk": "S", "_keygraph": {"shard of": "Star"}}\n')
    assert refused("load", "bad.jsonl", *model, "--store", FILE).startswith(
        "bad.jsonl:1: The key pk is empty."
    )


def test_an_unchanged_table_gives_the_same_bytes() -> None:
    make_table(FILE, ITEMS)
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        run("export", name, "--store", FILE)
    assert Path("a.jsonl.gz").read_bytes() == Path("b.jsonl.gz").read_bytes()
    assert gzip.decompress(Path("a.jsonl.gz").read_bytes()).count(b"\n") == 300


def test_standard_output_holds_lines_alone() -> None:
    make_table(FILE, ITEMS[:1])
    result = run("export", "--store", FILE)
    assert result.stdout == '{"PK": "USER#0", "SK": "USER#0", "Type": "User", "balance": 0}\n'
    assert result.stderr.startswith("Exported 1 item in ")


def test_a_failed_export_leaves_the_old_file() -> None:
    make_table(FILE, [{"PK": "USER#1", "SK": "USER#1", "Type": "User", "roles": frozenset({"a"})}])
    Path("shop.jsonl").write_text("the old one", "utf-8")
    assert refused("export", "shop.jsonl", "--store", FILE) == (
        "the item with PK USER#1, SK USER#1 cannot be written as plain JSON: roles is a set, which the model does not "
        "declare: a plain line would read it back as a list. Use --format typed.\n"
    )
    assert Path("shop.jsonl").read_text("utf-8") == "the old one"
    assert sorted(path.name for path in Path().iterdir() if "jsonl" in path.name) == ["shop.jsonl"]
    assert run("export", "shop.jsonl", "--store", FILE, "--format", "typed").exit_code == 0
    assert json.loads(Path("shop.jsonl").read_text("utf-8"))["Item"]["roles"] == {"SS": ["a"]}


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("none/shop.jsonl", "none/shop.jsonl cannot be written: there is no folder none. Name another file."),
        (".", ". cannot be written: it is a folder. Name another file."),
    ],
)
def test_what_cannot_be_written_is_one_line(file: str, message: str) -> None:
    assert refused("export", file, "--store", FILE) == (f"{message}\n")


@pytest.mark.parametrize(
    "words",
    [
        ("export",),
        ("trust", ".", "--output"),
        ("summarize", "--work"),
        ("verify", "--state"),
        ("backfill", "--state"),
    ],
)
def test_no_output_takes_the_place_of_a_file_of_the_table(words: tuple[str, ...]) -> None:
    make_table(FILE, ITEMS[:2])
    Path("query.graphql").write_text("query Q { __typename }")
    Path("other.db").symlink_to("table.db")
    before = Path("table.db").read_bytes()
    for name in ("table.db", "other.db", "table.db-wal", "table.db-shm"):
        message = f"{name} is a file of the table. Name another file.\n"
        assert refused(*words, name, "--store", "sqlite:other.db") == message
    assert run("load", "-", "--store", "sqlite:table.db-wal").exit_code == 1
    assert Path("table.db").read_bytes() == before
    assert not Path("table.db-wal").exists()


def test_a_missing_table_is_one_line() -> None:
    words = ("--model", "keygraph_examples.commerce", "--store", "sqlite:my shop.db")
    assert refused("export", "shop.jsonl", *words) == (
        "there is no table EcommerceData. Create it with "
        "`keygraph table create --model keygraph_examples.commerce --store 'sqlite:my shop.db'`\n"
    )
    assert not Path("shop.jsonl").exists()
    assert not Path("my shop.db").exists()


def test_what_is_no_plain_file_is_never_replaced() -> None:
    make_table(FILE, ITEMS[:2])
    os.mkfifo("pipe")
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(Path("pipe").read_text, "utf-8")
        assert run("export", "pipe", "--store", FILE).exit_code == 0
    assert len(reading.result().splitlines()) == 2
    assert Path("pipe").is_fifo()

    Path("backups").mkdir()
    Path("latest.jsonl").symlink_to("backups/monday.jsonl")
    assert run("export", "latest.jsonl", "--store", FILE).exit_code == 0
    assert Path("latest.jsonl").is_symlink()
    assert len(Path("backups/monday.jsonl").read_text("utf-8").splitlines()) == 2
