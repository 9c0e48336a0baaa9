"""`keygraph load`."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Table
from keygraph.keys.types import plain
from keygraph_examples import social
from keygraph_examples.commerce import sample
from keygraph_server.commands.load import Batches
from keygraph_server.terminal.output import progress
from tests.conftest import LOCAL
from tests.server.command_line import refused, run
from tests.server.loading import user, without_times, write_lines
from tests.server.tables import FILE, drop_table, items_in, make_table

EXAMPLES = Path(__file__).parents[2] / "examples/keygraph_examples"

MODEL = """
from __future__ import annotations
from keygraph import ID, Graph, Table, node

@node("DOC#{doc_id}")
class Document:
    doc_id: ID
    tags: set[str] | None

graph = Graph(Table("Documents", partition_key="PK", sort_key="SK"), Document)

def sample(documents: int, start: int = 1, title: str = "x"):
    for number in range(start, start + documents):
        yield {"PK": f"DOC#{number}", "SK": f"DOC#{number}", "number": number}
"""

pytestmark = pytest.mark.usefixtures("folder")


def test_the_articles_items(address: str) -> None:
    make_table(address)
    result = run(
        "load", EXAMPLES / "commerce.jsonl", EXAMPLES / "commerce.described.jsonl", "--store", address
    )
    lines = [
        line
        for name in ("commerce.jsonl", "commerce.described.jsonl")
        for line in (EXAMPLES / name).read_text("utf-8").splitlines()
    ]
    assert result.exit_code == 0
    assert result.stderr == ""
    assert without_times(result.stdout) == f"Loaded {len(lines)} items in N s into EcommerceData.\n"
    wanted = {
        (item["PK"], item["SK"]): item for item in (json.loads(line, parse_float=Decimal) for line in lines)
    }
    found = {(item["PK"], item["SK"]): item for item in items_in(address)}
    assert found == wanted
    assert found["PRODUCT#ABC123", "PRODUCT#ABC123"]["price"] == Decimal("199.99")


# --- What is loaded -----------------------------------------------------------------------------------


def test_packed_files_standard_input_and_typed_lines() -> None:
    make_table(FILE)
    typed = json.dumps({"Item": {name: {"S": value} for name, value in user(1).items()}})
    Path("export.json.gz").write_bytes(gzip.compress(typed.encode()))
    result = run(
        "load", "export.json.gz", "-", "--store", FILE, given="\ufeff" + json.dumps(user(2)) + "\r\n\n"
    )
    assert without_times(result.stdout) == "Loaded 2 items in N s into EcommerceData.\n"
    assert items_in(FILE) == [user(1), user(2)]


def test_loading_again_changes_nothing_and_the_last_of_equal_keys_stays() -> None:
    make_table(FILE)
    lines = write_lines("users.jsonl", [user(number % 300, name=str(number)) for number in range(700)])
    for _ in range(2):
        assert run("load", lines, "--store", FILE).exit_code == 0
        assert [item["name"] for item in items_in(FILE)] == [
            str(number + (600 if number < 100 else 300)) for number in range(300)
        ]


def test_the_format_can_be_insisted_on() -> None:
    make_table(FILE)
    lines = write_lines("users.jsonl", [user(1)])
    assert "users.jsonl:1: it is not an item in DynamoDB's typed form." in refused(
        "load", lines, "--store", FILE, "--format", "typed"
    )
    assert run("load", lines, "--store", FILE, "--format", "plain").exit_code == 0


def test_the_first_load_without_a_store_creates_the_table() -> None:
    Path("docs.py").write_text(MODEL, "utf-8")
    Path("items.jsonl").write_text('{"PK": "DOC#1", "SK": "DOC#1"}\n')
    result = run("load", "items.jsonl", "--model", "docs")
    assert without_times(result.stdout) == (
        "Created the table Documents in sqlite:.keygraph/docs.sqlite.\nLoaded 1 item in N s into Documents.\n"
    )
    assert run("export", "-", "--model", "docs").stdout == '{"PK": "DOC#1", "SK": "DOC#1"}\n'


def test_an_attribute_without_a_name_is_one_line() -> None:
    make_table(FILE)
    lines = write_lines("users.jsonl", [{**user(1), "": "x"}])
    assert "SK does not fit USER#{user_id} of User (it cannot be read back)" in refused(
        "load", lines, "--store", FILE
    )


def test_a_line_without_an_end_is_not_read() -> None:
    """A file of 100 KB may have a line of 100 MB."""
    make_table(FILE)
    with gzip.open("long.jsonl.gz", "wb") as file:
        file.write(b'{"PK": "')
        for _ in range(100):
            file.write(b"x" * 2**20)
    tracemalloc.start()
    try:
        result = run("load", "long.jsonl.gz", "--store", FILE)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
    assert (result.exit_code, result.stderr) == (
        1,
        "keygraph: long.jsonl.gz cannot be read after line 0 (a line of more than 8,388,608 bytes). Fix the file. "
        "Nothing was loaded.\n",
    )


# --- Samples ------------------------------------------------------------------------------------------


def test_a_sample_with_its_options() -> None:
    make_table(FILE)
    result = run("load", "--sample", "commerce", "--users", "5", "--seed=3", "--store", FILE)
    wanted = list(sample(users=5, seed=3))
    assert without_times(result.stdout) == f"Loaded {len(wanted)} items in N s into EcommerceData.\n"
    assert items_in(FILE) == sorted(wanted, key=lambda item: (item["PK"], item["SK"]))


def test_the_sample_of_ones_own_model(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("documents_for_load.py").write_text(MODEL, "utf-8")
    monkeypatch.setenv("KEYGRAPH_MODEL", "documents_for_load:graph")
    table = Table("Documents", partition_key="PK", sort_key="SK")
    make_table("sqlite:documents.db", table=table)
    given = ("--store", "sqlite:documents.db", "--sample", "documents_for_load")
    result = run("load", *given, "--documents", "2", "--start", "8")
    assert without_times(result.stdout) == "Loaded 2 items in N s into Documents.\n"
    assert items_in("sqlite:documents.db", table) == [
        {"PK": f"DOC#{n}", "SK": f"DOC#{n}", "number": Decimal(n)} for n in (8, 9)
    ]
    needed = run("load", *given)
    assert needed.stderr == (
        "keygraph: sample documents_for_load needs --documents. It takes --documents, --start.\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["commerce", "--size", "3"], "sample commerce does not take --size. It takes --users, --seed."),
        (["commerce", "more.jsonl"], "sample commerce does not take more.jsonl. It takes --users, --seed."),
        (["commerce", "--users", "many"], "--users many is not a number. Write --users 1000."),
        (["commerce", "--users"], "--users is not a number. Write --users 1000."),
        (
            ["commerce", "--users", "1"],
            "sample commerce: a shop has two users at least, one who sells and one who buys, not 1. "
            "Use other numbers. Nothing was loaded.",
        ),
        (["nope"], "there is no example nope. Choose commerce, or name a module: --sample module.name."),
        (["json.decoder"], "the module json.decoder has no graph. Add one: graph = Graph(Table(…), …)."),
    ],
)
def test_a_wrong_sample_is_one_line(words: list[str], message: str) -> None:
    make_table(FILE)
    assert refused("load", "--store", FILE, "--sample", *words) == (f"{message}\n")
    assert items_in(FILE) == []


# --- What is in the table already ---------------------------------------------------------------------


def test_items_in_the_table_stay_or_are_changed(address: str) -> None:
    make_table(address, [user(1, name="Old", bio="Kept")])
    lines = write_lines("users.jsonl", [user(1, name="New"), user(2), user(2, name="Again")])
    result = run("load", lines, "--store", address, "--if-absent")
    assert without_times(result.stdout) == "Loaded 1 item in N s into EcommerceData, 2 already there.\n"
    assert items_in(address) == [user(1, name="Old", bio="Kept"), user(2)]
    result = run("load", lines, "--store", address, "--upsert")
    assert without_times(result.stdout) == "Loaded 3 items in N s into EcommerceData.\n"
    assert items_in(address) == [user(1, name="New", bio="Kept"), user(2, name="Again")]
    both = run("load", lines, "--store", address, "--upsert", "--if-absent")
    assert both.stderr == "keygraph: --if-absent and --upsert cannot be used together. Choose one.\n"


def test_items_of_all_batches_that_are_already_there_are_counted(address: str) -> None:
    there = [user(number) for number in range(1, 601)]
    make_table(address, there)
    result = run("load", write_lines("users.jsonl", there), "--store", address, "--if-absent")
    assert without_times(result.stdout) == "Loaded 0 items in N s into EcommerceData, 600 already there.\n"


SHARED = """
from keygraph import ID, Graph, Table, node

@node("SLIP#{slip_id}", type="SLIP")
class Slip:
    slip_id: ID
    text: str

@node("SLIP#{slip_id}", type="GIFT")
class Gift:
    slip_id: ID

graph = Graph(Table("Slips", partition_key="PK", sort_key="SK"), Slip, Gift, type_attribute="Kind", store_key_fields=False)
"""


@pytest.mark.parametrize("options", [(), ("--no-rules",)])
def test_an_item_of_another_type_is_not_changed(
    address: str, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    Path("shared.py").write_text(SHARED, "utf-8")
    monkeypatch.setenv("KEYGRAPH_MODEL", "shared:graph")
    table, keys = Table("Slips", partition_key="PK", sort_key="SK"), ("SLIP#1", "SLIP#2", "SLIP#3")
    new = [{"PK": key, "SK": key, "Kind": "SLIP", "text": "new"} for key in keys]
    gift = {"PK": "SLIP#1", "SK": "SLIP#1", "Kind": "GIFT"}
    make_table(address, [gift, new[1] | {"text": "old"}], table)
    lines = write_lines("slips.jsonl", new)
    result = run("load", lines, "--store", address, "--upsert", "--skip-refused", *options)
    assert result.stderr == "the item SLIP#1 / SLIP#1: the table has an item of another type with this key.\n"
    assert items_in(address, table) == [gift, *new[1:]]


RULED = """
from keygraph import ID, Graph, Table, node, rule

@node("ITEM#{item_id}", check=[
    rule({"stock": {"gte": 0}}, "There is not enough in stock."),
    rule({"or": [{"on_sale": {"eq": False}}, {"price": {"gt": 0}}]}, "What is on sale has a price."),
])
class Item:
    item_id: ID
    stock: int
    price: int | None = None
    on_sale: bool = False

graph = Graph(Table("Items", partition_key="PK", sort_key="SK"), Item, attribute_case="camel")
"""


def test_items_that_break_a_rule_are_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("ruled.py").write_text(RULED, "utf-8")
    monkeypatch.setenv("KEYGRAPH_MODEL", "ruled:graph")
    table = Table("Items", partition_key="PK", sort_key="SK")

    def ruled(number: int, **attributes: Any) -> Item:
        return {"PK": f"ITEM#{number}", "SK": f"ITEM#{number}", "stock": 1, **attributes}

    priced, sold_out = ruled(2, price=3), ruled(4)
    stored = [{name: plain(value) for name, value in item.items()} for item in (priced, sold_out)]
    make_table(address, stored, table)
    on_sale = [
        ruled(1, stock=-1),
        ruled(2, onSale=True),
        ruled(3, onSale=True),
        ruled(4, onSale=True),
        ruled(5),
    ]
    lines = write_lines("items.jsonl", on_sale)
    no_price = "it breaks a rule of Item: What is on sale has a price."
    result = run("load", lines, "--store", address)
    assert (result.exit_code, items_in(address, table)) == (1, [priced, sold_out])
    assert result.stderr == (
        "keygraph: items.jsonl:1: it breaks a rule of Item: There is not enough in stock. "
        "Fix it, or skip such items with --skip-refused. Nothing was loaded.\n"
    )
    result = run("load", lines, "--store", address, "--upsert", "--skip-refused")
    assert without_times(result.stdout) == "Loaded 2 items in N s into Items, 3 refused.\n"
    assert result.stderr.splitlines() == [
        "items.jsonl:1: it breaks a rule of Item: There is not enough in stock.",
        f"the item ITEM#3 / ITEM#3: {no_price}",
        f"the item ITEM#4 / ITEM#4: {no_price}",
    ]
    assert items_in(address, table) == [priced | {"onSale": True}, sold_out, ruled(5)]
    result = run("load", lines, "--store", address, "--skip-refused")
    assert without_times(result.stdout) == "Loaded 1 item in N s into Items, 4 refused.\n"
    assert result.stderr.splitlines()[1] == f"items.jsonl:2: {no_price}"
    result = run("load", lines, "--store", address, "--no-rules")
    assert without_times(result.stdout) == "Loaded 5 items in N s into Items.\n"
    assert items_in(address, table) == on_sale


def test_the_other_item_of_an_edge_is_made(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYGRAPH_MODEL", "keygraph_examples.social:graph")
    table = social.graph.table
    stale = {"PK": "USER#Cleo", "SK": "FRIEND#Ann", "friendship_since": "1999-01-01"}
    make_table(address, [stale], table)
    names = ("Ann", "Bob", "Cleo")
    people = [{"PK": f"USER#{name}", "SK": "PROFILE", "name": name} for name in names]

    def friend(one: str, other: str) -> Item:
        return {"PK": f"USER#{one}", "SK": f"FRIEND#{other}", "friendship_since": "2024-01-01"}

    whole = [friend("Bob", "Cleo"), friend("Cleo", "Bob")]
    lines = write_lines("users.jsonl", [*people, friend("Ann", "Bob"), *whole, friend("Ann", "Cleo")])
    result = run("load", lines, "--store", address)
    assert without_times(result.stdout) == (
        "Loaded 7 items in N s into Users, 2 other items of edges made.\n"
    )
    pairs = [
        ("Ann", "Bob"),
        ("Ann", "Cleo"),
        ("Bob", "Ann"),
        ("Bob", "Cleo"),
        ("Cleo", "Ann"),
        ("Cleo", "Bob"),
    ]
    edges = [item for item in items_in(address, table) if item["SK"] != "PROFILE"]
    assert edges == [friend(*pair) for pair in pairs]
    assert run("verify", "--store", address).exit_code == 0


# --- What is refused ----------------------------------------------------------------------------------


def test_a_refused_item_stops_the_load_with_nothing_lost() -> None:
    make_table(FILE)
    lines = write_lines("users.jsonl", [user(1), user(2), {"PK": "X", "SK": "Y", "Type": "Userr"}, user(4)])
    problem = refused("load", lines, "--store", FILE)
    assert problem.startswith(
        "users.jsonl:3: this item (X / Y) matches no declared type: no declared type has its Type (the declared"
    )
    assert problem.endswith(
        "Fix it, or skip such items with --skip-refused. "
        "2 items are loaded. Run the load again with --resume to continue after them.\n"
    )
    assert problem.count("\n") == 1
    assert items_in(FILE) == [user(1), user(2)]

    write_lines("users.jsonl", [user(1), user(2), user(3), user(4)])
    resumed = run("load", lines, "--store", FILE, "--resume")
    assert without_times(resumed.stdout) == "Loaded 2 items in N s into EcommerceData, 2 loaded earlier.\n"
    assert items_in(FILE) == [user(number) for number in (1, 2, 3, 4)]


def test_a_value_that_no_key_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("shops_for_load.py").write_text(
        """
from __future__ import annotations
from keygraph import ID, Graph, Table, record

@record("{state}#{city}", "SHOP#{shop_id}")
class Shop:
    shop_id: ID
    state: str
    city: str

graph = Graph(Table("Shops", partition_key="PK", sort_key="SK"), Shop)
"""
    )
    monkeypatch.setenv("KEYGRAPH_MODEL", "shops_for_load:graph")
    make_table(FILE, table=Table("Shops", partition_key="PK", sort_key="SK"))
    good = {"PK": "DU#Dubai", "SK": "SHOP#1", "state": "DU", "city": "Dubai"}
    bad = {"PK": "DU#1#Dubai", "SK": "SHOP#1", "state": "DU#1", "city": "Dubai"}
    assert refused("load", write_lines("shops.jsonl", [good, bad]), "--store", FILE).startswith(
        "shops.jsonl:2: PK is read back with another state and city: a value contains the text between them"
    )


def test_an_item_whose_key_contradicts_its_attributes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYGRAPH_MODEL", "keygraph_examples.league")
    good = {"PK": "TEAM#T1", "SK": "PLAYER#P98", "team_id": "T1", "player_id": "P98", "shirt_number": 9}
    lines = write_lines("members.jsonl", [good | {"player_id": "P97"}, good])
    result = run("load", lines, "--store", FILE, "--skip-refused")
    assert (result.exit_code, result.stderr) == (
        0,
        "members.jsonl:1: SK does not match player_id.\n",
    )
    assert "Loaded 1 item " in result.stdout


def test_an_item_without_a_field_that_it_needs_is_refused() -> None:
    make_table(FILE)
    misspelt = {name: value for name, value in user(1).items() if name != "userType"} | {
        "user_type": "seller"
    }
    unread = user(2, userType="nobody")
    order = {"PK": "ORDER#1", "SK": "PRODUCT#2", "Type": "OrderItem", "quantity": 1, "unitPrice": 1}
    lines = write_lines("items.jsonl", [misspelt, unread, order, user(3)])
    result = run("load", lines, "--store", FILE, "--skip-refused")
    assert without_times(result.stdout) == "Loaded 1 item in N s into EcommerceData, 3 refused.\n"
    assert result.stderr.splitlines() == [
        "items.jsonl:1: User.user_type is missing in an item (attribute userType): it has user_type, and userType was probably meant.",
        "items.jsonl:2: User.user_type of an item is not of type UserType: it is none of the enum's values.",
        "items.jsonl:3: OrderItem.total_price is missing in an item (attribute totalPrice).",
    ]
    assert items_in(FILE) == [user(3)]


def test_refused_items_can_be_passed_over() -> None:
    make_table(FILE)
    bad: list[Item | str] = [
        '{"PK": ',
        {"PK": "USER#1", "SK": "ORDER#1", "Type": "User"},
        {"SK": "A"},
        user(9, bio="x" * 410_000),
        user(9, GSI1PK=5, GSI1SK="5"),
        '{"\\u001b\\u202e": 1, "\\u001b\\u202e": 2}',
    ]
    lines = write_lines("users.jsonl", [user(1), *bad, user(2)])
    result = run("load", lines, "--store", FILE, "--skip-refused")
    assert result.exit_code == 0
    assert without_times(result.stdout) == "Loaded 2 items in N s into EcommerceData, 6 refused.\n"
    refused = result.stderr.splitlines()
    assert [line.partition(" ")[0] for line in refused] == [f"users.jsonl:{n}:" for n in (2, 3, 4, 5, 6, 7)]
    assert refused[5] == r"users.jsonl:7: it has \u001b\u202e twice."  # what a terminal does not obey
    assert refused[0] == "users.jsonl:2: it is not JSON: Expecting value at column 8."
    assert (
        "this item (USER#1 / ORDER#1) matches no declared type: its key fits none of the templates: "
        'SK does not fit USER#{user_id} of User (it does not begin with "USER#")'
    ) in refused[1]
    assert "its key attribute PK is missing or not of type S" in refused[2]
    assert "The item is larger than 400 KB" in refused[3]
    assert "The key GSI1PK is of type S" in refused[4]
    assert items_in(FILE) == [user(1), user(2)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["none.jsonl"],
            "there is no file none.jsonl. Name files of JSON lines, .jsonl or .jsonl.gz, or - for standard input.",
        ),
        (["."], ". is a folder. Name files of JSON lines, .jsonl or .jsonl.gz, or - for standard input."),
        (
            [],
            "there is nothing to load. Name files of JSON lines, - for standard input, or --sample with the "
            "name of a model.",
        ),
    ],
)
def test_what_is_no_file_is_one_line(words: list[str], message: str) -> None:
    assert refused("load", *words, "--store", FILE) == (f"{message}\n")


def test_an_unknown_option_is_no_file() -> None:
    result = run("load", "--skip-refuse", "--store", FILE)
    assert result.exit_code == 2
    assert "No such option: --skip-refuse" in result.stderr


def test_a_file_that_is_cut_off() -> None:
    make_table(FILE)
    whole = gzip.compress(
        b"".join(json.dumps(user(n, note=os.urandom(20).hex())).encode() + b"\n" for n in range(900))
    )
    Path("users.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    result = run("load", "users.jsonl.gz", "--store", FILE)
    assert result.exit_code == 1
    count = len(items_in(FILE))
    assert 0 < count < 900
    assert result.stderr.startswith(f"keygraph: users.jsonl.gz cannot be read after line {count} (")
    assert f"{count} items are loaded" in result.stderr


@pytest.mark.parametrize("engine", ["moto", LOCAL])
def test_a_missing_table_is_one_line(address: str) -> None:
    drop_table(address)
    assert refused("load", "--sample", "commerce", "--store", address) == (
        "there is no table EcommerceData. "
        f"Create it with `keygraph table create --store {address}`. Nothing was loaded.\n"
    )


def test_a_refused_load_leaves_what_others_have_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it, there was no file."""
    lines, refuse = write_lines("users.jsonl", [{"PK": "X", "SK": "Y", "Type": "Userr"}]), Batches.refuse

    def refuse_late(batches: Batches, problem: str) -> None:
        with ThreadPoolExecutor() as other:
            other.submit(make_table, FILE, [user(1)]).result()
        refuse(batches, problem)

    monkeypatch.setattr(Batches, "refuse", refuse_late)
    assert run("load", lines, "--store", FILE).exit_code == 1
    assert items_in(FILE) == [user(1)]


def test_a_new_file_gets_a_table_and_a_failed_load_leaves_none() -> None:
    lines = write_lines("users.jsonl", [{"PK": "X", "SK": "Y", "Type": "Userr"}])
    assert refused("load", lines, "--store", FILE).endswith("Nothing was loaded.\n")
    assert not Path("table.db").exists()

    lines = write_lines("users.jsonl", [user(1)])
    result = run("load", lines, "--store", FILE)
    assert without_times(result.stdout) == (
        "Created the table EcommerceData in sqlite:table.db.\nLoaded 1 item in N s into EcommerceData.\n"
    )
    assert items_in(FILE) == [user(1)]


# --- Progress -----------------------------------------------------------------------------------------


def test_a_bar_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with progress("Loading", 100, lambda: 50) as advance:
        advance(50)
    assert written.getvalue() == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress("Loading", 100, lambda: 50) as advance:
        advance(1234)
    assert "Loading" in written.getvalue()
    assert "1,234 items" in written.getvalue()
