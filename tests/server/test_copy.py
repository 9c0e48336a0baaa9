"""`keygraph copy`."""

from __future__ import annotations

import signal
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Table
from keygraph.tables.copying import TableCopy
from keygraph_examples.social import graph as social
from tests.server.command_line import done, refused, run
from tests.server.tables import FILE, items_in, make_table

MODEL = ("--model", "keygraph_examples.social:graph")
OTHER = "sqlite:other.db"
ITEMS: list[Item] = [
    {"PK": "USER#Ann", "SK": "PROFILE", "name": "Ann"},
    {"PK": "USER#Ben", "SK": "PROFILE", "name": "Ben"},
    {"PK": "no type", "SK": "-", "blob": b"\x00"},
]

pytestmark = pytest.mark.usefixtures("folder")


def test_a_table_is_copied_into_a_new_file(address: str) -> None:
    make_table(address, ITEMS, social.table)
    result = run("copy", *MODEL, "--store", address, "--to", OTHER)
    assert (result.exit_code, result.stdout.startswith("Copied 3 items in ")) == (0, True)
    assert result.stdout.endswith(f" of Users into Users in {OTHER}.\n")
    assert items_in(OTHER, social.table) == sorted(ITEMS, key=lambda item: str(item["PK"]))


def test_a_table_of_another_name_gets_the_indexes_of_the_model(address: str) -> None:
    make_table(FILE, ITEMS, social.table)
    other = Table("Old", partition_key="PK", sort_key="SK")
    old: Item = {"PK": "USER#Ann", "SK": "PROFILE", "name": "Anna", "age": Decimal(3)}
    make_table(address, [old, {"PK": "stays", "SK": "-"}], other)
    result = run("copy", *MODEL, "--store", FILE, "--to", address, "--to-table", "Old")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [item["PK"] for item in items_in(address, other)] == ["USER#Ann", "USER#Ben", "no type", "stays"]
    assert items_in(address, other)[0] == ITEMS[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--to", FILE),
            "a table cannot be copied into itself. Name another store, or another table.",
        ),
        (
            ("--to", OTHER),
            "the table Users there has the keys PK (S), this one PK (S) and SK (S). Copy into a table with the same keys.",
        ),
        (("--to", "nowhere"), "'nowhere' is not a store"),
        (("--to", "sqlite:./table.db"), "a table cannot be copied into itself."),
        (("--to", "sqlite:link.db"), "a table cannot be copied into itself."),
        (("--to", "sqlite:none/../table.db"), "a table cannot be copied into itself."),
    ],
)
def test_where_it_cannot_be_copied(words: tuple[str, ...], message: str) -> None:
    make_table(FILE, ITEMS, social.table)
    make_table(OTHER, (), Table("Users", partition_key="PK"))
    Path("link.db").symlink_to("table.db")
    Path("none").mkdir()
    assert message in refused("copy", *MODEL, "--store", FILE, *words)


def test_a_table_of_a_server_is_not_copied_into_itself(
    moto_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its address is: AWS has several for each region."""
    for name in ("AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "eu-central-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    make_table(moto_endpoint, ITEMS, social.table)
    for other in ("aws", f"{moto_endpoint}/", moto_endpoint.replace("127.0.0.1", "localhost")):
        assert refused("copy", *MODEL, "--store", moto_endpoint, "--to", other).startswith(
            "a table cannot be copied into itself."
        )


def test_an_interrupted_copy_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_table(
        FILE, [{"PK": f"USER#{n}", "SK": "PROFILE", "name": "x" * 300_000} for n in range(9)], social.table
    )
    run_whole = TableCopy.run

    async def run_part(self: TableCopy, advance: Callable[[int], None]) -> None:
        def advanced(items: int) -> None:
            advance(items)
            signal.raise_signal(signal.SIGINT)

        await run_whole(self, advanced)

    words = ("copy", *MODEL, "--store", FILE, "--to", OTHER, "--segments", "1")
    with monkeypatch.context() as patch:
        patch.setattr(TableCopy, "run", run_part)
        result = run(*words)
    assert result.exit_code == 130
    assert (
        result.stderr
        == "keygraph: interrupted. 4 items are copied. Run it again with --resume to continue.\n"
    )
    kept = Path("other.db").read_bytes()
    make_table(OTHER, [], social.table)
    assert refused(*words, "--resume") == (
        "the copy cannot be resumed: the other table does not have the last item that was copied. "
        "Run it without --resume.\n"
    )
    Path("other.db").write_bytes(kept)
    assert ", 4 copied earlier.\n" in done(*words, "--resume")
    assert len(items_in(OTHER, social.table)) == 9
    assert "Found no interrupted copy to resume." in run(*words, "--resume").stderr
