"""`keygraph table create`, `keygraph table describe`, `keygraph table diff` and `keygraph table update`."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from keygraph.dynamo.differences import table_differences
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import DescribeTable
from keygraph.dynamo.table import Index, Table
from keygraph.engines.dynamodb.requests import cloudformation
from keygraph.engines.open import open_store
from keygraph_examples.commerce import graph as commerce
from keygraph_examples.commerce import gsi2
from tests.server.command_line import done, refused, run, shown_lines
from tests.server.conftest import forget_models
from tests.server.tables import FILE, drop_table, items_in, make_table

DECLARED = [
    "Table EcommerceData",
    "             partition key   sort key     projects",
    "table        PK (S)          SK (S)",
    "index GSI1   GSI1PK (S)      GSI1SK (S)   ALL",
    "index GSI2   GSI2PK (S)      GSI2SK (S)   ALL",
]

pytestmark = pytest.mark.usefixtures("folder")


def test_create_says_what_it_made_and_can_be_repeated(address: str) -> None:
    drop_table(address)
    assert done("table", "create", "--store", address) == (
        f"Created the table EcommerceData in {address}: key PK, SK; index GSI1 (GSI1PK, GSI1SK); "
        "index GSI2 (GSI2PK, GSI2SK).\n"
    )
    assert done("table", "create", "--store", address) == (
        f"The table EcommerceData in {address} already exists and matches the model. Nothing was changed.\n"
    )


def test_create_does_not_pass_over_another_table() -> None:
    make_table(FILE, table=Table("EcommerceData", partition_key="PK", sort_key="SK"))
    problem = refused("table", "create", "--store", FILE)
    assert "already exists and does not match the model: it lacks the index GSI1; it lacks" in problem
    assert problem.count("\n") == 1


def test_no_name_in_a_table_is_obeyed_by_a_terminal() -> None:
    odd = [Index(name, "x\x1b]0;", "y\u202e") for name in ("GSI1", "Other")]
    make_table(FILE, table=Table("EcommerceData", partition_key="PK", sort_key="SK", indexes=odd))
    for command in ("describe", "table describe", "table update --remove", "table update --remove --yes"):
        result = run(*command.split(), "--store", FILE)
        assert "x\\u001b]0;" in result.stdout
        assert not {"\x1b", "\u202e"} & {*result.output}


def test_describe_shows_the_declared_table(address: str) -> None:
    drop_table(address)
    assert shown_lines(done("table", "describe", "--store", address)) == [
        *DECLARED,
        f"There is no table EcommerceData in {address}. Create it with "
        f"`keygraph table create --store {address}`.",
    ]
    make_table(address)
    there = run("table", "describe", "--store", address)
    assert shown_lines(there.stdout) == [*DECLARED, f"The table in {address} matches the model."]


def test_describe_says_what_differs(address: str) -> None:
    make_table(address, table=Table("EcommerceData", partition_key="pk", sort_key="sk"))
    assert shown_lines(run("table", "describe", "--store", address).stdout)[5:] == [
        f"The table in {address} differs from the model:",
        "  - its keys are pk (S) and sk (S), but the model declares PK (S) and SK (S)",
        "  - it lacks the index GSI1",
        "  - it lacks the index GSI2",
    ]
    index = Index("GSI1", "GSI1PK", "Other", projection="KEYS_ONLY")
    make_table(address, table=Table("EcommerceData", partition_key="PK", sort_key="SK", indexes=[index]))
    found = shown_lines(run("table", "describe", "--store", address).stdout)[5:]
    assert found[0] == f"The table in {address} differs from the model:"
    assert any("GSI1PK (S) and Other (S)" in line for line in found)
    assert "  - its index GSI1 projects keys alone (KEYS_ONLY), declared is ALL" in found


def test_describe_says_which_attributes_an_index_projects(address: str) -> None:
    declared = Index("GSI1", "GSI1PK", "GSI1SK", projection=["name", "price"])
    found = Index("GSI1", "GSI1PK", "GSI1SK", projection=["name"])
    table = Table("EcommerceData", partition_key="PK", sort_key="SK", indexes=[declared])
    other = Table("EcommerceData", partition_key="PK", sort_key="SK", indexes=[found])
    assert table_differences(table, other) == ["its index GSI1 projects name, declared is name, price"]
    make_table(address, table=other)
    assert "  - its index GSI1 projects name, declared is ALL" in shown_lines(
        run("table", "describe", "--store", address).stdout
    )


def test_describe_needs_no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYGRAPH_DEADLINE", "0.2")
    result = run("table", "describe", "--store", "http://127.0.0.1:9")
    assert result.exit_code == 0
    assert shown_lines(result.stdout)[:5] == DECLARED
    assert shown_lines(result.stdout)[5].startswith("http://127.0.0.1:9 does not answer (")


def test_cloudformation_is_json_alone() -> None:
    result = run("table", "describe", "--cloudformation", "--store", "http://127.0.0.1:9")
    assert json.loads(result.stdout) == cloudformation(commerce.table)
    assert result.stderr == ""


def test_cloudformation_has_the_time_to_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "offers.py").write_text(OFFERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "offers", raising=False)
    template = json.loads(run("table", "describe", "--cloudformation", "--model", "offers:graph").stdout)
    properties = template["Resources"]["Table"]["Properties"]
    assert properties["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (
            "GSI9=x-y-z",
            "KEYGRAPH_INDEXES cannot be used: the model has no index GSI9. Its indexes: GSI1 and GSI2.",
        ),
        ("GSI1=GSI2", "KEYGRAPH_INDEXES cannot be used: two indexes would have one name. Give each its own."),
        (
            "GSI1",
            "KEYGRAPH_INDEXES cannot be used: 'GSI1' is not an index and its name, such as ByDate=calls-by-date. "
            "See docs/settings.md for valid values.",
        ),
    ],
)
def test_names_of_indexes_that_the_model_lacks(
    monkeypatch: pytest.MonkeyPatch, names: str, problem: str
) -> None:
    monkeypatch.setenv("KEYGRAPH_INDEXES", names)
    for command in (("table", "describe", "--cloudformation"), ("serve",)):
        result = run(*command)
        assert (result.exit_code, result.stdout, problem in result.stderr) == (1, "", True), result.stderr
        assert result.stderr.count("\n") == 1


# --- The model against the table ----------------------------------------------------------------------

SOCIAL = ("table", "diff", "--model", "keygraph_examples.social:graph")
PEOPLE: list[Item] = [
    {"PK": "USER#Ann", "SK": "PROFILE", "full_name": "Ann"},
    {"PK": "USER#Ben", "SK": "PROFILE", "name": "Ben", "mood": "good"},
    {"PK": "USER#Ann", "SK": "BLOCKS#Ben"},
]


def test_diff_says_what_to_do_about_each_difference(address: str) -> None:
    other = Index("Other", "a", "b")
    make_table(address, PEOPLE, Table("Users", partition_key="PK", sort_key="SK", indexes=[other]))
    result = run(*SOCIAL, "--store", address, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["sample"]) == (0, 3)
    assert result.stderr == "Compared the table and 3 of its items with the model.\n"
    differences = [(each["where"], each["items"], each["what"], each["fix"]) for each in found["differences"]]
    nothing = "nothing if there are none; otherwise correct its keys"
    field = "declare a field for it if clients need it"
    assert differences[:6] == [
        (
            "table",
            0,
            "the model does not declare its index Other",
            "declare it if a list needs it; otherwise keygraph table update --remove",
        ),
        *(
            (name, 0, "no item of the sample has this type", nothing)
            for name in ("Friendship", "Like", "Follow")
        ),
        ("User", 1, "no field is stored in full_name", field),
        ("User", 1, "no field is stored in mood", field),
    ]
    assert [(where, items, fix) for where, items, _, fix in differences[6:]] == [
        (
            "no type",
            1,
            "declare their type, name them in ignore=, or delete them: keygraph verify lists them",
        ),
        (
            "User",
            1,
            "keygraph backfill writes copies, counts and sums; correct other items, or declare the field as they have it",
        ),
    ]
    lines = shown_lines(run(*SOCIAL, "--store", address).stdout)
    assert lines[0] == "Table Users"
    assert len([line for line in lines if line.startswith("User ")]) == 3


RENAMED = """from __future__ import annotations

from keygraph import ID, Graph, Table, node, stored


@node("USER#{user_id}")
class User:
    user_id: ID
    full_name: str = stored("fullName", was="name")


graph = Graph(Table("Users", partition_key="PK", sort_key="SK"), User)
"""


def test_diff_names_the_items_with_a_former_attribute(folder: Path) -> None:
    (folder / "renamed.py").write_text(RENAMED)
    users: list[Item] = [{"PK": f"USER#{name}", "SK": f"USER#{name}", "name": name} for name in "abc"]
    make_table(
        FILE,
        [*users, {"PK": "USER#d", "SK": "USER#d", "fullName": "d"}],
        Table("Users", partition_key="PK", sort_key="SK"),
    )
    result = run("table", "diff", "--model", "renamed", "--store", FILE, "--json")
    [difference] = json.loads(result.stdout)["differences"]
    assert difference == {
        "where": "User",
        "items": 3,
        "what": "the field full_name is stored in its former attribute name",
        "fix": "keygraph backfill --field full_name moves it",
    }


def test_diff_names_what_keeps_the_table_from_being_served() -> None:
    order: Item = {"PK": "ORDER#1", "SK": "ORDER#1", "Type": "Order"}
    make_table(FILE, [order], Table("EcommerceData", partition_key="PK", sort_key="SK"))
    result = run("table", "diff", "--store", FILE, "--json")
    assert (result.exit_code, json.loads(result.stdout)["differences"][0]) == (
        3,
        {
            "where": "table",
            "items": 0,
            "what": "it lacks the index GSI1",
            "fix": "keygraph table update creates it; then keygraph backfill --index GSI1",
        },
    )
    make_table(FILE, table=Table("EcommerceData", partition_key="pk", sort_key="sk"))
    result = run("table", "diff", "--store", FILE)
    assert result.exit_code == 3
    assert "change the model, or make another" in result.stdout


def test_diff_of_an_empty_table_that_matches_is_empty(address: str) -> None:
    make_table(address)
    result = run("table", "diff", "--store", address)
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "",
        "Compared the table and 0 of its items with the model.\n",
    )


def test_diff_names_items_that_lack_keys_of_an_index(address: str) -> None:
    make_table(
        address, [{"PK": "USER#1", "SK": "USER#1", "Type": "User", "CreatedAt": "2024-05-01T00:00:00Z"}]
    )
    found = json.loads(run("table", "diff", "--store", address, "--json").stdout)["differences"]
    [missing] = [each for each in found if "not in the index" in each["what"]]
    assert missing["what"] == "GSI1: the item is not in the index: it has no GSI1PK and no GSI1SK"
    assert missing["fix"] == "keygraph verify --repair --only keys lists what to write"


# --- The table becomes what the model says ------------------------------------------------------------

ORDER: Item = {"PK": "ORDER#1", "SK": "ORDER#1", "Type": "Order", "GSI1PK": "USER#1", "GSI1SK": "ORDER#2024"}
PLAIN = Table("EcommerceData", partition_key="PK", sort_key="SK")
OTHER = Index("Other", "PK", "state")
OFFERS = """from datetime import datetime
from keygraph import ID, Graph, Table, node, ttl

@node("OFFER#{offer_id}")
class Offer:
    offer_id: ID
    until: datetime | None = ttl("expires")

graph = Graph(Table("Offers", partition_key="PK"), Offer)
"""


def live(address: str, table: Table = commerce.table) -> Table:
    async def found() -> Table | None:
        async with open_store(address, table) as store:
            return await store.send(DescribeTable())

    described = asyncio.run(found())
    assert described is not None
    return described


def in_order(table: Table) -> Table:
    """The table with its indexes by name: stores list them in different orders."""
    return table.with_indexes(sorted(table.indexes, key=lambda index: index.name))


def test_update_creates_what_the_table_lacks(address: str) -> None:
    make_table(address, [ORDER], PLAIN.with_indexes([gsi2, OTHER]))
    result = run("table", "update", "--store", address)
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "Created the index GSI1 (GSI1PK, GSI1SK). `keygraph backfill --index GSI1` writes its keys into items that lack "
        "them.\n",
        "The table has other indexes than the model: Other. --remove removes them.\n",
    )
    assert {index.name for index in live(address).indexes} == {"GSI1", "GSI2", "Other"}
    assert run("table", "diff", "--store", address, "--items", "0").exit_code == 0
    assert done("table", "update", "--store", address) == (
        f"The table EcommerceData in {address}: nothing was changed.\n"
    )


def test_update_removes_indexes_only_if_told_twice(address: str) -> None:
    differing = Index("GSI1", "GSI1PK", "GSI1SK", projection="KEYS_ONLY")
    made = PLAIN.with_indexes([differing, gsi2, OTHER])
    make_table(address, [ORDER], made)
    kept = run("table", "update", "--store", address)
    assert (kept.exit_code, kept.stderr) == (
        3,
        "The table has other indexes than the model: Other, GSI1. --remove removes them.\n",
    )
    preview = run("table", "update", "--store", address, "--remove")
    assert (preview.exit_code, preview.stdout.splitlines()) == (
        3,
        [
            "- index Other (PK, state)",
            "- index GSI1 (GSI1PK, GSI1SK)",
            "+ index GSI1 (GSI1PK, GSI1SK)",
            "Nothing was changed. To make the changes, add --yes.",
        ],
    )
    assert in_order(live(address)) == in_order(made)
    assert done("table", "update", "--store", address, "--remove", "--yes").splitlines()[:2] == [
        "Removed the index Other (PK, state).",
        "Removed the index GSI1 (GSI1PK, GSI1SK).",
    ]
    assert in_order(live(address)) == in_order(commerce.table)
    assert items_in(address) == [ORDER]
    nothing = run("table", "update", "--store", address, "--remove")
    assert nothing.stdout == f"The table EcommerceData in {address}: nothing was changed.\n"


def test_update_says_what_it_cannot_change(address: str) -> None:
    make_table(address, table=Table("EcommerceData", partition_key="pk", sort_key="sk"))
    assert "the keys of a table cannot be changed. Nothing was changed. Export its items" in refused(
        "table", "update", "--store", address, "--remove", "--yes"
    )
    assert run("table", "update", "--yes", "--store", address).exit_code == 1
    assert live(address).indexes == ()


def test_update_enables_the_time_to_live(address: str, folder: Path) -> None:
    (folder / "offers.py").write_text(OFFERS)
    table = Table("Offers", partition_key="PK")
    make_table(address, table=table)
    words = ("table", "update", "--model", "offers:graph", "--store", address)
    result = run(*words)
    enabled = "Enabled TTL: DynamoDB deletes items by expires.\n"
    unchanged = f"The table Offers in {address}: nothing was changed.\n"
    assert (result.exit_code, result.stdout) == (0, unchanged if address == FILE else enabled)
    assert run(*words).stdout == unchanged
    (folder / "offers.py").write_text(OFFERS.replace("expires", "other"))
    forget_models(folder)
    other = run(*words)
    assert other.stdout == unchanged
    is_named = other.stderr.startswith(
        "The table's TTL is by expires, the model's by other. Disable it first"
    )
    assert is_named is (address != FILE)


def test_an_interrupted_update_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[Item] = [{**ORDER, "PK": f"ORDER#{number}", "SK": f"ORDER#{number}"} for number in range(9)]
    make_table(FILE, orders, PLAIN.with_indexes([gsi2]))
    monkeypatch.setattr("keygraph.engines.sqlite.catalogue._STEP_ITEMS", 2)
    pause = asyncio.sleep

    async def interrupted(seconds: float) -> None:
        if seconds == 0.05:
            signal.raise_signal(signal.SIGINT)
        await pause(0)

    monkeypatch.setattr(asyncio, "sleep", interrupted)
    for _ in range(4):
        result = run("table", "update", "--store", FILE)
        assert (result.exit_code, result.stderr) == (
            130,
            "keygraph: interrupted. Run it again to continue.\n",
        )
        assert live(FILE, PLAIN).indexes == (gsi2,)
    assert run("table", "update", "--store", FILE).exit_code == 0
    assert in_order(live(FILE)) == in_order(commerce.table)


def test_update_turns_the_stream_on(address: str) -> None:
    make_table(address)
    words = ("table", "update", "--store", address)
    unchanged = f"The table EcommerceData in {address}: nothing was changed.\n"
    assert run(*words).stdout == unchanged
    preview = run(*words, "--stream", "--remove")
    assert preview.stdout == "+ a stream\nNothing was changed. To make the changes, add --yes.\n"
    assert done(*words, "--stream") == ("Turned on the stream: changes are kept for 24 hours.\n")
    assert run(*words, "--stream").stdout == unchanged
