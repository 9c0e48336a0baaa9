"""`keygraph describe`."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from graphql import is_required_argument

from keygraph.dynamo.table import Index, Table
from keygraph.lists.describe_types import described_access
from keygraph.names import camel
from keygraph_resolvers import build_schema
from keygraph_resolvers.naming.names import LIST_ARGUMENTS
from keygraph_server.models import load_model
from tests.server.command_line import refused, run, shown_lines
from tests.server.tables import drop_table, make_table

pytestmark = pytest.mark.usefixtures("folder")

BY_KIND = Index("by_kind", "kind", "title")
BY_PRICE = Index("by_price", "pk", "price", local=True)


def test_types_without_lists_are_named_with_what_gives_them_one(folder: Path) -> None:
    (folder / "club.py").write_text(
        "from __future__ import annotations\n\n"
        "from keygraph import ID, Graph, Table, edge, node\n\n\n"
        '@node("CLUB#{club_id}")\nclass Club:\n    club_id: ID\n\n\n'
        '@node("PERSON#{person_id}", item=False)\nclass Person:\n    person_id: ID\n\n\n'
        '@edge("{club}", "{person}")\nclass Member:\n    club: Club\n    person: Person\n\n\n'
        'graph = Graph(Table("Clubs", partition_key="PK", sort_key="SK"), Club, Person, Member)\n'
    )
    found = shown_lines(run("describe", "--model", "club").stdout)
    assert found[found.index("Lists that clients may miss") :] == [
        "Lists that clients may miss",
        '  - Club has no list at the root. An index can give it one, with the keys "CLUB" and "{club_id}".',
        "  - Nothing reads Member. Give a node a list of it: members: Many[Member] in Club or Person.",
    ]


def test_an_edge_that_has_two_items_says_so() -> None:
    found = shown_lines(run("describe", "--model", "keygraph_examples.social:graph").stdout)
    assert "Friendship (mirrored edge)" in found
    assert "Like (edge)" in found


def test_walks_and_paths_show_which_lists_they_follow() -> None:
    found = shown_lines(run("describe", "--model", "keygraph_examples.commerce:graph").stdout)
    at = found.index("Product, ranked")
    assert re.split(" {2,}", found[at - 1]) == ["bought_together", "follows Product.orders, then Order.items"]
    at = found.index("Category, reached")
    assert re.split(" {2,}", found[at - 1]) == ["descendants", "follows Category.children, up to 10 levels"]
    found = shown_lines(run("describe", "--model", "keygraph_examples.social:graph").stdout)
    root = found[found.index("At the root") + 2 : found.index("Lists that clients may miss")]
    assert [re.split(" {2,}", line) for line in root] == [
        ["path", "follows any of User.friends, User.likes, User.follows"],
        ["shortest, from node to node", "needs: from, to, via"],
    ]


LIBRARY = """
from __future__ import annotations
from keygraph import ID, Graph, Index, Table, node
by_kind = Index("by_kind", "kind", "title")
by_price = Index("by_price", "pk", "price", local=True)
@node("BOOK#{isbn}")
class Book:
    isbn: ID
    kind: str
    title: str
    price: str
graph = Graph(Table("Library", partition_key="pk", sort_key="sk", indexes=[by_kind, by_price]), Book)
"""


@pytest.mark.parametrize(
    ("keys", "indexes", "expected"),
    [
        (("pk", "sk"), [BY_KIND, BY_PRICE], ["The table in {} matches the model."]),
        (
            ("pk", ("sk", "N")),
            [BY_PRICE],
            [
                "The table in {} differs from the model:",
                "  - its keys are pk (S) and sk (N), but the model declares pk (S) and sk (S)",
                "  - it lacks the index by_kind",
            ],
        ),
        (
            ("pk", "sk"),
            [Index("by_kind", "kind", "price", projection=["title"]), Index("by_price", "pk", "price")],
            [
                "The table in {} differs from the model:",
                "  - the keys of its index by_kind are kind (S) and price (S), but the model declares kind (S) and title (S)",
                "  - its index by_kind projects title, declared is ALL",
                "  - its index by_price is global, but the model declares a local one",
            ],
        ),
    ],
)
def test_the_table_of_a_store_is_compared(
    address: str, keys: Any, indexes: list[Index], expected: list[str]
) -> None:
    live = Table("Library", partition_key=keys[0], sort_key=keys[1], indexes=indexes)
    make_table(address, table=live)
    Path("compared_library.py").write_text(LIBRARY, "utf-8")
    result = run("describe", "--model", "compared_library", "--store", address)
    found = shown_lines(result.stdout)
    assert found[-len(expected) :] == [line.format(address) for line in expected]
    assert result.exit_code == 0
    drop_table(address, live)


def test_a_store_without_the_table_is_not_made() -> None:
    words = ("--model", "keygraph_examples.social", "--store", "sqlite:none.db")
    assert shown_lines(run("describe", *words).stdout)[-1] == (
        f"There is no table Users in sqlite:none.db. Create it with `keygraph table create {' '.join(words)}`."
    )
    assert not Path("none.db").exists()
    told = shown_lines(run("describe", "--store", "http://127.0.0.1:9").stdout)[-1]
    assert told.startswith("http://127.0.0.1:9 does not answer (")


def test_it_reads_well_in_a_pipe() -> None:
    result = run("describe")
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert "\x1b" not in result.stdout
    assert "…" not in result.stdout


def test_long_names_and_brackets_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("described_model.py").write_text(
        "from __future__ import annotations\n"
        "from keygraph import ID, Graph, Index, Many, Table, many, node, record\n"
        "gsi = Index('An-index-with-a-very-long-name-for-one-table', 'ThePartitionKeyOfTheIndex', 'TheSortKey')\n"
        "@node('[bold]THING#{thing_id}')\n"
        "class Thing:\n"
        "    thing_id: ID\n"
        "    parts: Many[PartOfAThingWithALongName] = many(index=gsi)\n"
        "@record('PART#{part_id}', 'PART', gsi('[bold]THING#{thing.thing_id}', 'A#:smile:#{part_id}', lists='parts'))\n"
        "class PartOfAThingWithALongName:\n"
        "    part_id: ID\n"
        "    thing: Thing\n"
        "graph = Graph(Table('Tests', partition_key='PK', sort_key='SK', indexes=[gsi]),"
        " Thing, PartOfAThingWithALongName)\n",
        "utf-8",
    )
    result = run("describe", "--model", "described_model")
    assert max(map(len, result.stdout.splitlines())) <= 100
    squeezed = "".join(result.stdout.split())
    assert "[bold]THING#{thing_id}" in squeezed
    assert "needs:thing_id" in squeezed
    assert "QueryAn-index-with-a-very-long-name-for-one-table" in squeezed
    assert "A#:smile:#" in squeezed


def test_a_missing_model_is_one_line() -> None:
    assert refused("describe", "--model", "none:graph").count("\n") == 1


def _described_arguments(model: str, request: str = "Query") -> dict[str, list[str]]:
    """What `describe` says that each list takes besides a page, by `Type.list`, in the schema's names.

    `request` is the first word of the lists' requests.
    """
    found: dict[str, list[str]] = {}
    owner = list_ = ""
    for line in run("describe", "--model", model).stdout.splitlines():
        if heading := re.fullmatch(r"(\w+) \([a-z ,A-Z]+\)|(At the root)", line):
            owner = heading[1] or "Query"
        if entry := re.match(r"(\w+) +(Query|follows)", line):
            list_ = f"{owner}.{camel(entry[1])}" if entry[2] == request else ""
            found[list_] = []
        if said := re.search(r"(?:needs|narrowed by): (.+)", line):
            found[list_] += map(camel, said[1].strip().split(", "))
    found.pop("", None)
    return found


@pytest.mark.parametrize("name", ["commerce", "cargo", "billing", "social", "talent"])
def test_the_arguments_are_those_of_the_schema(name: str) -> None:
    model = f"keygraph_examples.{name}"
    schema = build_schema(importlib.import_module(model).graph)._schema
    described = _described_arguments(f"{model}:graph")
    assert described
    for place, names in described.items():
        owner, _, list_ = place.partition(".")
        offered = schema.type_map[owner].fields[list_].args
        assert [each for each in offered if each not in (*LIST_ARGUMENTS, "types")] == names


def test_walks_and_paths_need_what_the_schema_requires() -> None:
    schema = build_schema(importlib.import_module("keygraph_examples.social").graph)._schema
    described = _described_arguments("keygraph_examples.social:graph", "follows")
    assert described == {
        place: [name for name, each in fields[field].args.items() if is_required_argument(each)]
        for owner, field in (("User", "network"), ("User", "peopleYouMayKnow"), ("Query", "path"))
        for place, fields in [(f"{owner}.{field}", schema.type_map[owner].fields)]
    }


def test_a_finder_takes_no_more_than_the_schema_says() -> None:
    Path("found_model.py").write_text(
        "from __future__ import annotations\n"
        "from keygraph import ID, Graph, Index, Table, node\n"
        "gsi = Index('GSI1', 'GSI1PK', 'GSI1SK')\n"
        "@node('USER#{user_id}', gsi('EMAIL#{email}', '{user_id}', finds='user_by_email'))\n"
        "class User:\n"
        "    user_id: ID\n"
        "    email: str\n"
        "graph = Graph(Table('Tests', partition_key='PK', sort_key='SK', indexes=[gsi]), User)\n",
        "utf-8",
    )
    schema = build_schema(load_model("found_model:graph").graph)._schema
    offered = list(schema.type_map["Query"].fields["userByEmail"].args)
    assert _described_arguments("found_model:graph") == {"Query.userByEmail": offered}


def test_who_may_do_what_and_what_that_costs() -> None:
    Path("guarded_model.py").write_text(
        "from __future__ import annotations\n"
        "from keygraph import ID, Graph, Index, Many, Table, many, node, read, stored, viewer, write\n"
        "gsi = Index('GSI1', 'GSI1PK', 'GSI1SK')\n"
        "@node('USER#{user_id}', access=[read()], writes=False)\n"
        "class User:\n"
        "    user_id: ID\n"
        "    orders: Many[Order] = many(access=[read(where={'user_id': viewer('sub')})])\n"
        "@node('ORDER#{order_id}', gsi('{customer}', '{order_id}'), writes=['update'], access=[\n"
        "    read(where={'customer': viewer('sub')}), read(role='support', fields=['paid']), read(role='boss'),\n"
        "    write(role=['support', 'boss'], where={'or': [{'paid': False}, {'order_id': {'in': ['1', '2']}}]})])\n"
        "class Order:\n"
        "    order_id: ID\n"
        "    customer: User\n"
        "    paid: bool\n"
        "    note: str | None = stored(access=[write(role='boss')])\n"
        "graph = Graph(Table('Tests', partition_key='PK', sort_key='SK', indexes=[gsi]), User, Order)\n",
        "utf-8",
    )
    columns, rows = described_access(load_model("guarded_model:graph").graph)
    unpaid = "(paid = False) or (order_id in [1, 2]) (an attribute)"
    assert columns == ("what", "may", "anybody", "boss", "support")
    assert rows == [
        ("User", "read", "all (nothing)", "as anybody", "as anybody"),
        ("User.orders", "read", "user_id = viewer sub (a key)", "as anybody", "as anybody"),
        (
            "Order",
            "read",
            "customer = viewer sub (an attribute)",
            "all (nothing)",
            "fields: paid (nothing)\nor as anybody",
        ),
        *(("Order", action, "nobody", unpaid, unpaid) for action in ("create", "update", "delete")),
        (
            "  in User.orders",
            "read",
            "customer = viewer sub (a key)",
            "all (nothing)",
            "fields: paid (nothing)\nor as anybody",
        ),
        # Nobody deletes a field.
        *(("Order.note", action, "nobody", "all (nothing)", "nobody") for action in ("create", "update")),
    ]
    shown = shown_lines(run("describe", "--access", "--model", "guarded_model:graph").stdout)
    assert shown[1].split() == [*columns]
    assert re.split(r" {2,}", shown[2].strip()) == [*rows[0]]


def test_a_rule_that_asks_for_another_item_costs_a_read() -> None:
    Path("grouped_model.py").write_text(
        "from __future__ import annotations\n"
        "from keygraph import ID, Graph, Many, Table, edge, node, read, viewer\n"
        "@node('USER#{user_id}', access=[read()], writes=False)\n"
        "class User:\n"
        "    user_id: ID\n"
        "@node('GROUP#{group_id}', writes=False, access=[read(where={'members': {'user': viewer('sub')}})])\n"
        "class Group:\n"
        "    group_id: ID\n"
        "    members: Many[Member]\n"
        "@edge('{group}', '{user}', access=[read(where={'group': {'members': {'user': viewer('sub')}}})], writes=False)\n"
        "class Member:\n"
        "    group: Group\n"
        "    user: User\n"
        "graph = Graph(Table('Tests', partition_key='PK', sort_key='SK'), User, Group, Member)\n",
        "utf-8",
    )
    shown = shown_lines(run("describe", "--access", "--model", "grouped_model:graph").stdout)
    rows = [tuple(re.split(r" {2,}", line.strip())) for line in shown[2:]]
    assert rows[1:3] == [
        ("Group", "read", "members.user = viewer sub (a read)"),
        ("Member", "read", "group.members.user = viewer sub (a read)"),
    ]


def test_a_model_without_rules_is_said_to_be_open() -> None:
    told = run("describe", "--access", "--model", "keygraph_examples.commerce:graph").stdout
    assert told == "The model has no access rules: everybody may read and write everything.\n"
