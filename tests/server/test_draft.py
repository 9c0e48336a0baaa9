"""`keygraph draft`."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import ListTables
from keygraph.dynamo.table import Index, Table
from keygraph.engines.open import open_store
from tests.server.command_line import refused, run
from tests.server.tables import FILE, make_table

INDEX = Index("by-name", "name", "SK")
TABLE = Table("Library", partition_key="PK", sort_key="SK", indexes=[INDEX])
ITEMS: list[Item] = [{"PK": f"BOOK#{n}", "SK": f"BOOK#{n}", "name": "It"} for n in range(30)]
ITEMS += [{"PK": f"BOOK#{n}", "SK": f"LOAN#2024-01-{n + 1:02d}", "to": "me"} for n in range(30)]


def test_what_is_printed_is_a_model_that_is_served(address: str) -> None:
    make_table(address, ITEMS, TABLE)
    result = run("draft", "Library", "--store", address)
    assert (result.exit_code, result.stderr) == (0, "")
    assert '@record("{book}", "LOAN#{loan_date}")\nclass BookLoan:\n' in result.stdout
    Path("drafted_library.py").write_text(result.stdout, "utf-8")
    words = ("--model", "drafted_library", "--store", address)
    assert f"The table in {address} matches the model." in run("describe", *words).stdout
    assert "loans(" in run("schema", *words).stdout


def test_it_reads_as_many_items_as_is_said(address: str) -> None:
    make_table(address, ITEMS, TABLE)
    result = run("draft", "Library", "--items", "20", "--store", address)
    assert "drafted from 20 items of it" in result.stdout
    doubt = "20 items were too few to know all types of the table. Read more with --items"
    assert result.stderr == f"keygraph: {doubt}.\n"
    assert f"doubt: {doubt}" in " ".join(result.stdout.split())


def test_it_reads_until_no_new_types_come(folder: Path) -> None:
    items: list[Item] = [{"PK": f"AUTHOR#{n}", "SK": f"AUTHOR#{n}", "name": "It"} for n in range(3000)]
    for type_ in ("BOOK", "READER", "SHELF"):
        items += [{"PK": f"{type_}#{n}", "SK": f"{type_}#{n}", "shape": "tall"} for n in range(100)]
    make_table(FILE, items, TABLE)
    result = run("draft", "--store", FILE)
    assert (result.exit_code, result.stderr) == (0, "")
    assert re.findall(r"^class (\w+):$", result.stdout, re.MULTILINE) == ["Author", "Book", "Reader", "Shelf"]


def test_a_missing_table_is_one_line(address: str, engine: str) -> None:
    result = run("draft", "Libary", "--store", address)
    assert (result.exit_code, result.stdout) == (1, "")
    assert (
        result.stderr
        == f"keygraph: there is no table Libary in {address}. Name another table, or another store: --store ADDRESS.\n"
    )
    if engine == "sqlite":
        assert not Path("table.db").exists()


def test_the_only_table_need_not_be_named(engine: str, address: str) -> None:
    if engine != "sqlite":
        # The other tests' tables are there too.
        return
    assert run("draft", "--store", address).stderr == (
        "keygraph: there is no file table.db. Name another store: --store ADDRESS.\n"
    )
    make_table(address, ITEMS, TABLE)
    assert run("draft", "--store", address).stdout == run("draft", "Library", "--store", address).stdout
    make_table(address, table=Table("Other", partition_key="id"))
    assert refused("draft", "--store", address) == (
        f"{address} has several tables: Library, Other. Name one: keygraph draft TABLE.\n"
    )


def test_tables_are_found_wherever_they_are(address: str) -> None:
    make_table(address, table=TABLE)
    make_table(address, table=Table("Other", partition_key="id"))

    async def names() -> tuple[str, ...]:
        async with open_store(address, Table("-", partition_key="-")) as store:
            return await store.send(ListTables())

    assert {"Library", "Other"} <= set(asyncio.run(names()))
