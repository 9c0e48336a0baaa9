"""`keygraph explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keygraph_examples.commerce import graph as commerce
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_server.commands.first_start import make_sample_file
from keygraph_server.errors import printable
from keygraph_server.models import load_model
from tests.server.command_line import refused, run

ORDERS = "query Orders($user: ID!) { user(userId: $user) { name orders(first: 2) { nodes { total } } } }"

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def store(tmp_path: Path) -> str:
    make_sample_file(load_model("keygraph_examples.commerce:graph"), tmp_path / "shop.sqlite")
    return "sqlite:shop.sqlite"


@pytest.mark.parametrize("options", [(), ("--json",), ("--run",)])
def test_no_text_of_an_operation_is_obeyed_by_a_terminal(store: str, options: tuple[str, ...]) -> None:
    """An operator explains what a client has sent."""
    odd = json.dumps("\x1b]0;title\x07 \x9b31m \u202e \u2028")
    result = run("explain", f"{{ user(userId: {odd}) {{ name }} }}", "--store", store, *options)
    assert result.exit_code == 0
    printed = result.output.replace("\n", "")
    assert printable(printed) == printed


def test_the_plan_of_an_operation() -> None:
    result = run("explain", ORDERS)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[:11] == [
        "What is read",
        "",
        "user: get node User by the argument userId [round trip 1]",
        "│    GetItem: PK = USER#$user AND SK = USER#$user",
        "│      attributes: PK, SK, Type, name, total",
        "└─ user.orders: read list Order by the key of User – first 2 [round trip 1]",
        "        Query GSI1: GSI1PK = USER#$user AND begins_with(GSI1SK, ORDER#)",
        "          attributes: GSI1SK, PK, SK, Type, total",
        "          page: at most 2 items",
        "",
        "No value was given for $user. Pass it with --variables.",
    ]
    at = lines.index("When it is sent")
    assert lines[at + 2 : at + 5] == [
        "round trip 1: Query GSI1 for user.orders",
        "              GetItem for user",
        "",
    ]
    rows = [line.split() for line in lines]
    assert ["user.orders", "1", "1", "2", "0.5"] in rows
    assert ["in", "all", "2", "1", "3", "1"] in rows
    assert max(map(len, lines)) <= 100
    assert not list(Path().iterdir())  # nothing was read, and nothing made


NESTED = """{
  order(orderId: "ORD001") { total items { nodes { name seller { name } } totalCount } }
  a: user(userId: "1") { name } b: user(userId: "1") { email } c: user(userId: "2") { name }
}"""


def test_requests_by_round_trip() -> None:
    lines = [line.rstrip() for line in run("explain", NESTED).stdout.splitlines()]
    at = lines.index("When it is sent")
    assert lines[at + 2 : at + 8] == [
        "round trip 1: Query for order and order.items",
        "              Query COUNT for order.items",
        "              BatchGetItem for a, b and c",
        "round trip 2: BatchGetItem for order.items",
        "round trip 3: BatchGetItem for order.items.seller",
        "",
    ]
    query, *_, last = json.loads(run("explain", NESTED, "--json").stdout)["sent"]
    assert query == {
        "roundTrip": 1,
        "request": "Query",
        "paths": ["order", "order.items"],
        "onePerParent": False,
    }
    assert last["paths"] == ["order.items.seller"]
    friends = (
        '{ user(userId: "Bob") { friends(first: 2) { nodes { friends(first: 2) { nodes { name } } } } } }'
    )
    shown = run("explain", friends, "--model", "keygraph_examples.social:graph").stdout
    assert "round trip 2: Query for user.friends.friends, one per parent\n" in shown


def test_aggregates_and_empty_pages() -> None:
    query = """{ user(userId: "1") {
      a: orders { aggregate { count } }
      b: orders(first: 1) { nodes { total } aggregate { sum(field: TOTAL) } }
      c: orders(first: 0) { nodes { total } }
    } }"""
    lines = [line.strip(" │└├─") for line in run("explain", query).stdout.splitlines()]
    assert "user.a: count Order by the key of User [round trip 1]" in lines
    assert "user.c: read list Order by the key of User – first 0 [not read: no items are asked for]" in lines
    whole = lines.index(
        "user.b: read list Order by the key of User – all, at most 10,000 items [round trip 1]"
    )
    assert lines[whole + 1] == "Query GSI1: GSI1PK = USER#1 AND begins_with(GSI1SK, ORDER#)"
    assert lines[whole + 3] == "page: at most 10000 items"
    # All of the list and its page are one Query.
    assert "round trip 1: Query GSI1 COUNT for user.a" in lines
    assert "Query GSI1 for user.b" in lines


def test_nodes_by_ids() -> None:
    ids = [global_id(commerce.types["User"], (f"{number}",)) for number in range(3)]
    query = f"{{ nodes(ids: {json.dumps(ids)}) {{ ... on User {{ name orders {{ totalCount }} }} }} }}"
    lines = [line.strip(" │└├─") for line in run("explain", query).stdout.splitlines()]
    assert lines[2:4] == [
        "nodes: get node User by 3 global ids [round trip 1]",
        "BatchGetItem: PK = USER#{user_id} AND SK = USER#{user_id}",
    ]
    assert "nodes.orders: count Order by the key of each User [round trip 1]" in lines


def test_aliases_of_one_list_are_one_request() -> None:
    query = """{ order(orderId: "1") { items(productId: {eq: "7"}) { nodes { name } } }
      user(userId: "1") { a: orders(first: 3) { nodes { total } } b: orders(first: 5) { nodes { total } } }
      wrong: node(id: "x") { id } }"""
    lines = [line.strip() for line in run("explain", query).stdout.splitlines()]
    assert "Query GSI1 for user.a and user.b" in [line.removeprefix("round trip 1: ") for line in lines]
    assert not [line for line in lines if " for " in line and "wrong" in line]


def test_places_without_a_page_size_are_named(store: str) -> None:
    query = (
        '{ users(first: 5) { totalCount } products(first: 5, where: {price: {gt: "1"}}) { nodes { name } } }'
    )
    said = "Limited by the server, not by a page size: users, products"
    assert said in run("explain", query).stdout.splitlines()
    assert said in run("explain", query, "--run", "--store", store).stdout.splitlines()
    assert "Limited by the server" not in run("explain", ORDERS).stdout


def test_what_the_server_would_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "This operation may cost 1 read units, and the limit is 0.5."
    monkeypatch.setenv("KEYGRAPH_COST_LIMIT", "0.5")
    told = " ".join(run("explain", ORDERS).stdout.split())
    assert f"The server refuses it. {said}" in told
    assert json.loads(run("explain", ORDERS, "--json").stdout)["refused"].startswith(said)
    monkeypatch.delenv("KEYGRAPH_COST_LIMIT")
    assert "refuses" not in run("explain", ORDERS).stdout
    assert json.loads(run("explain", ORDERS, "--json").stdout)["refused"] is None


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "KEYGRAPH_DEPTH_LIMIT",
            "nests more than 1 root fields, lists and ends. Split it",
        ),
        ("KEYGRAPH_MAX_TOKENS", "has more than 1 tokens. Split it into several operations."),
    ],
)
def test_a_document_that_the_server_refuses_has_no_plan(
    monkeypatch: pytest.MonkeyPatch, setting: str, said: str
) -> None:
    monkeypatch.setenv(setting, "1")
    assert said in " ".join(refused("explain", ORDERS).split())


def test_what_it_did_cost_stands_beside(store: str) -> None:
    words = ("explain", ORDERS, "--variables", '{"user": "12345"}', "--run", "--store", store)
    result = run(*words)
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["in", "all", "2", "2", "1", "1", "3", "3", "1", "1"] in rows
    drawn = result.stdout[result.stdout.index("When each request ran") :].splitlines()
    assert drawn[1] == "round trip 1"
    assert [line.split()[-1] for line in drawn[2:]] == ["user", "user.orders"]
    assert "█" in drawn[2]


def test_as_json(store: str) -> None:
    words = ("explain", ORDERS, "--variables", '{"user": "12345"}', "--json", "--store", store)
    planned = json.loads(run(*words).stdout)
    assert [step["place"] for step in planned["plan"]] == ["user"]
    assert planned["plan"][0]["steps"][0]["requests"][0]["keys"] == (
        "GSI1PK = USER#12345 AND begins_with(GSI1SK, ORDER#)"
    )
    assert (planned["bound"]["requests"], planned["actual"], planned["standIns"]) == (2, None, {})
    ran = json.loads(run(*words, "--run").stdout)
    assert ran["plan"] == planned["plan"]
    assert (ran["actual"]["requests"], len(ran["requests"]), ran["errors"]) == (2, 2, [])


def test_the_query_from_elsewhere() -> None:
    Path("orders.graphql").write_text(ORDERS + " query Other { __typename }", "utf-8")
    Path("variables.json").write_text('{"user": "7"}', "utf-8")
    words = ("--operation", "Orders", "--variables", "@variables.json")
    from_file = run("explain", "@orders.graphql", *words)
    assert "PK = USER#7 AND SK = USER#7" in from_file.stdout
    given = Path("orders.graphql").read_text("utf-8")
    assert run("explain", "-", *words, given=given).stdout == from_file.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["{ nonsense }"], "line 1, column 3: Cannot query field 'nonsense' on type 'Query'."),
        (["{"], "line 1, column 2: Syntax Error: Expected Name, found <EOF>."),
        (
            ["query A { a: __typename } query B { __typename }"],
            "the document has several operations: give the name of one",
        ),
        (
            ['{ users { nodes { orders(orderDate: {from: "May"}) { nodes { total } } } } }'],
            'line 1, column 44: DateTime: expected an ISO 8601 date and time, such as "2024-01-20T12:00:00Z"',
        ),
        ([ORDERS, "--operation", "None"], "the document has no operation called 'None'"),
        ([ORDERS, "--variables", "{"], "--variables is not JSON: "),
        ([ORDERS, "--variables", "[]"], "--variables is not a JSON object. "),
        ([ORDERS, "--variables", '{"user": {}}'], "line 1, column 14: Variable '$user' has invalid value: "),
        (
            ["library.graphql"],
            "library.graphql is a file, and not a GraphQL document. "
            "Write @library.graphql to read the document from it.",
        ),
        (["{ __typename }", "--store", "ftp://x"], "--store cannot be used: 'ftp://x' is not a store: "),
        (["@none.graphql"], "none.graphql cannot be read: No such file or directory. "),
        ([ORDERS, "--run"], "the operation needs a value for $user. Pass it with --variables."),
        (["{ users { nodes { name } } }", "--run"], "there is no table EcommerceData in sqlite:"),
    ],
)
def test_what_cannot_be_explained_is_one_line(words: list[str], told: str) -> None:
    Path("library.graphql").write_text(ORDERS, "utf-8")
    problem = refused("explain", *words)
    assert problem.startswith(told)
    assert problem.count("\n") == 1


MODEL = """
import strawberry
from keygraph_examples.commerce import graph

@strawberry.type
class Query:
    @strawberry.field
    def now(self) -> str:
        return "noon"

def schema():
    from keygraph_resolvers import build_schema
    return build_schema(graph, query=Query)
"""


def test_what_graphql_core_answers_is_said(store: str) -> None:
    Path("shop_with_time.py").write_text(MODEL, "utf-8")
    query = '{ t: now __schema { queryType { name } } user(userId: "12345") { name } __typename }'
    words = ("explain", query, "--model", "shop_with_time:schema", "--store", store)
    lines = [line.rstrip() for line in run(*words).stdout.splitlines()]
    assert lines[2].startswith("user: get node User")
    assert lines[5:7] == [
        "t: answered by graphql-core's own execution [no bound]",
        "__schema: answered by graphql-core's own execution [no bound]",
    ]
    assert not any(line.startswith("__typename") for line in lines)
    planned = json.loads(run(*words, "--json").stdout)
    assert (planned["elsewhere"], [step["place"] for step in planned["plan"]]) == (
        ["t", "__schema"],
        ["user"],
    )
    ran = json.loads(run(*words, "--json", "--run").stdout)
    assert (ran["elsewhere"], ran["errors"]) == (["t", "__schema"], [])
    alone = run("explain", "{ now }", "--model", "shop_with_time:schema").stdout
    assert "now: answered by graphql-core's own execution [no bound]" in alone
    assert "Nothing from the table." not in alone
    assert "Nothing from the table." in run("explain", "{ __typename }").stdout


STATUS = """mutation Status($order: ID!) {
  updateOrder(input: {orderId: $order, status: SHIPPED}) { order { status customer { name } } }
}"""


def test_the_transaction_of_a_mutation(store: str) -> None:
    result = run("explain", STATUS)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[:9] == [
        "What is read and written",
        "",
        "updateOrder: write Order [round trip 1]",
        "│    TransactWriteItems: 1 action",
        "│      Update: PK = ORDER#$order AND SK = ORDER#$order",
        "│        for: input",
        "│        changes: SET status = shipped",
        "│        condition: attribute_exists(PK) AND Type = Order",
        "│        else: NOT_FOUND: There is no Order with this key.",
    ]
    assert lines[9].startswith("└─ updateOrder.order: get node Order by the key of what was written")
    words = ("explain", STATUS, "--variables", '{"order": "ORD001"}', "--json", "--store", store)
    [step] = json.loads(run(*words).stdout)["plan"]
    assert (step["kind"], step["roundTrip"], step["requests"]) == ("write", 1, [])
    assert step["transactions"] == [
        {
            "case": None,
            "actions": [
                {
                    "operation": "Update",
                    "keys": "PK = ORDER#ORD001 AND SK = ORDER#ORD001",
                    "path": ["input"],
                    "attributes": None,
                    "changes": "SET status = shipped",
                    "condition": "attribute_exists(PK) AND Type = Order",
                    "failures": [
                        {
                            "code": "NOT_FOUND",
                            "message": "There is no Order with this key.",
                            "path": ["input"],
                        }
                    ],
                }
            ],
            "notes": [],
        }
    ]
    status = '{ order(orderId: "ORD001") { status } }'
    before = json.loads(run("explain", status, "--json", "--run", "--store", store).stdout)
    assert before["errors"] == []
