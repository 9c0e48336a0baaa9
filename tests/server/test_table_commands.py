"""`keygraph table create` and `keygraph table describe`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from keygraph.dynamo.differences import table_differences
from keygraph.dynamo.table import Index, Table
from keygraph.engines.dynamodb.requests import cloudformation
from keygraph_examples.commerce import graph as commerce
from tests.server.command_line import run, shown_lines
from tests.server.tables import FILE, drop_table, make_table

DECLARED = [
    "Table EcommerceData",
    "             partition key   sort key     projects",
    "table        PK (S)          SK (S)",
    "index GSI1   GSI1PK (S)      GSI1SK (S)   ALL",
]

pytestmark = pytest.mark.usefixtures("folder")


def test_create_says_what_it_made_and_can_be_repeated(address: str) -> None:
    """A set-up script that runs twice would fail, or nobody would know what was made."""
    drop_table(address)
    first = run("table", "create", "--store", address)
    assert (first.exit_code, first.stdout) == (
        0,
        f"Created the table EcommerceData in {address}: key PK, SK; index GSI1 (GSI1PK, GSI1SK).\n",
    )
    second = run("table", "create", "--store", address)
    assert (second.exit_code, second.stdout) == (
        0,
        f"The table EcommerceData in {address} already exists and matches the model. Nothing was changed.\n",
    )


def test_create_does_not_pass_over_another_table() -> None:
    """A table without the model's index would be taken for the model's."""
    make_table(FILE, table=Table("EcommerceData", partition_key="PK", sort_key="SK"))
    result = run("table", "create", "--store", FILE)
    assert result.exit_code == 1
    assert "already exists and does not match the model: it lacks the index GSI1." in result.stderr
    assert result.stderr.count("\n") == 1


def test_describe_shows_the_declared_table(address: str) -> None:
    """Nobody could see which table the model needs, or whether the one that is there is it."""
    drop_table(address)
    missing = run("table", "describe", "--store", address)
    assert missing.exit_code == 0
    assert shown_lines(missing.stdout) == [
        *DECLARED,
        f"There is no table EcommerceData in {address}. Create it with "
        f"`keygraph table create --store {address}`.",
    ]
    make_table(address)
    there = run("table", "describe", "--store", address)
    assert shown_lines(there.stdout) == [*DECLARED, f"The table in {address} matches the model."]


def test_describe_says_what_differs(address: str) -> None:
    """A wrong key or index would be found out query by query."""
    make_table(address, table=Table("EcommerceData", partition_key="pk", sort_key="sk"))
    assert shown_lines(run("table", "describe", "--store", address).stdout)[4:] == [
        f"The table in {address} differs from the model:",
        "  - its keys are pk (S) and sk (S), but the model declares PK (S) and SK (S)",
        "  - it lacks the index GSI1",
    ]
    index = Index("GSI1", "GSI1PK", "Other", projection="KEYS_ONLY")
    make_table(address, table=Table("EcommerceData", partition_key="PK", sort_key="SK", indexes=[index]))
    found = shown_lines(run("table", "describe", "--store", address).stdout)[4:]
    assert found[0] == f"The table in {address} differs from the model:"
    assert any("GSI1PK (S) and Other (S)" in line for line in found)
    assert "  - its index GSI1 projects keys alone (KEYS_ONLY), declared is ALL" in found


def test_describe_says_which_attributes_an_index_projects(address: str) -> None:
    """Whoever mends an index would have to find out which attribute it lacks; one of its name would be taken for it."""
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
    """Without DynamoDB at hand the declared table could not be shown."""
    monkeypatch.setenv("KEYGRAPH_DEADLINE", "0.2")
    result = run("table", "describe", "--store", "http://127.0.0.1:9")
    assert result.exit_code == 0
    assert shown_lines(result.stdout)[:4] == DECLARED
    assert shown_lines(result.stdout)[4].startswith("http://127.0.0.1:9 does not answer (")


def test_cloudformation_is_json_alone() -> None:
    """The output could not be given to CloudFormation as it is."""
    result = run("table", "describe", "--cloudformation", "--store", "http://127.0.0.1:9")
    assert json.loads(result.stdout) == cloudformation(commerce.table)
    assert result.stderr == ""


def test_cloudformation_has_the_time_to_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamoDB would keep for ever what the model says expires."""
    (tmp_path / "offers.py").write_text(
        """from datetime import datetime
from keygraph import ID, Graph, Table, node, ttl

@node("OFFER#{offer_id}")
class Offer:
    offer_id: ID
    until: datetime | None = ttl("expires")

graph = Graph(Table("Offers", partition_key="PK"), Offer)
"""
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "offers", raising=False)
    template = json.loads(run("table", "describe", "--cloudformation", "--model", "offers:graph").stdout)
    properties = template["Resources"]["Table"]["Properties"]
    assert properties["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
