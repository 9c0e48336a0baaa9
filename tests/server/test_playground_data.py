"""What the playground's page asks for: examples, what the model is in the table, and raw items."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from keygraph.errors import Unavailable
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.schema.strawberry_internals import core_schema
from keygraph_server.app import create_app
from keygraph_server.commands.first_start import make_sample_file
from keygraph_server.models import Model, load_model
from keygraph_server.playground.data import closed_mutations
from keygraph_server.settings import Settings
from tests import asgi
from tests.server.library import WRITES

EXAMPLES = ["billing", "cargo", "commerce", "education", "social", "talent"]

CLOSED = """
from __future__ import annotations
from keygraph import ID, Graph, Many, Table, edge, node
@node("A#{a_id}", writes=False)
class A:
    a_id: ID
    links: Many[Link]
@node("B#{b_id}", writes=False)
class B:
    b_id: ID
@edge("{a}", "{b}", writes=False)
class Link:
    a: A
    b: B
graph = Graph(Table("Closed", partition_key="PK", sort_key="SK"), A, B, Link)
"""


@asynccontextmanager
async def running(name: str, folder: Path, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    options = {"model": f"keygraph_examples.{name}:graph", **options}
    viewer = options.pop("viewer", None)
    settings = Settings(store=f"sqlite:{folder / f'{name}.sqlite'}", secret=SecretStr("x" * 32), **options)
    app = create_app(settings, viewer=viewer)
    async with asgi.running(app, "playground") as client:
        yield client


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    for name in EXAMPLES:
        make_sample_file(load_model(f"keygraph_examples.{name}:graph"), folder / f"{name}.sqlite")
    return folder


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """A model whose edges are nowhere an object of the schema, with a SQLite file of its sample."""
    (tmp_path / "closed.py").write_text(CLOSED, "utf-8")
    lines = '{"PK": "A#1", "SK": "A#1"}\n{"PK": "B#2", "SK": "B#2"}\n{"PK": "A#1", "SK": "B#2"}\n'
    (tmp_path / "closed.jsonl").write_text(lines, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    model = load_model("closed:graph")
    make_sample_file(model, tmp_path / "closed.sqlite")
    return model


class TestExamples:
    @pytest.mark.parametrize("name", EXAMPLES)
    async def test_the_first_run_of_each_works(self, name: str, samples: Path) -> None:
        async with running(name, samples) as client:
            examples = (await client.post("/playground/examples", json={})).json()
            queries = [each for each in examples if each["kind"] == "query"]
            roots = core_schema(load_model(f"keygraph_examples.{name}:graph").schema).query_type
            assert roots is not None
            fields = {field[0].upper() + field[1:] for field in roots.fields} - {"Node", "Nodes"}
            assert fields <= {each["name"] for each in queries}
            for each in queries:
                assert each["variables"] == ""
                answer = (await client.post("/graphql", json={"query": each["document"]})).json()
                assert "errors" not in answer, (each["name"], answer)
                assert all(value is not None for value in answer["data"].values()), each["name"]

    async def test_an_example_has_what_is_referred_to_most(self, samples: Path) -> None:
        async with running("commerce", samples) as client:
            examples = {
                each["name"]: each for each in (await client.post("/playground/examples", json={})).json()
            }
            order = examples["Order"]
            answer = (await client.post("/graphql", json={"query": order["document"]})).json()
        assert order["description"] == "What a customer bought at one time."
        assert len(answer["data"]["order"]["items"]["edges"]) == 2
        assert "unitPrice" in answer["data"]["order"]["items"]["edges"][0]

    @pytest.mark.parametrize(
        "options",
        [
            {"playground_items": False},
            {"auth": "jwt", "jwt_key": "x" * 32},
            {"auth": "header", "playground_items": True},
            {"viewer": lambda request: {"sub": "1"}},
        ],
        ids=["set so", "tokens", "headers", "a function"],
    )
    async def test_without_items_the_values_are_variables(
        self, samples: Path, options: dict[str, Any]
    ) -> None:
        async with running("social", samples, **options) as client:
            examples = (await client.post("/playground/examples", json={})).json()
            items = await client.post("/playground/items", json={"id": "x"})
            page = (await client.get("/")).text
        assert '"showsItems": false' in page
        [user] = [each for each in examples if each["name"] == "User"]
        assert user["document"].startswith("query User($userId: ID!) {\n  user(userId: $userId) {")
        assert items.status_code == 404

    async def test_pages_of_others_get_none(self, samples: Path) -> None:
        async with running("social", samples) as client:
            for name in ("examples", "description", "items"):
                for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
                    answer = await client.post(f"/playground/{name}", json={}, headers=headers)
                    assert answer.status_code == 403

    async def test_a_table_that_does_not_answer_gives_examples_without_values(
        self, samples: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def fail(*_: object) -> None:
            raise Unavailable("it is away")

        monkeypatch.setattr("keygraph_server.playground.data.sample", fail)
        async with running("social", samples) as client:
            answer = await client.post("/playground/examples", json={})
        assert answer.status_code == 200
        assert "User" in [each["name"] for each in answer.json()]


class TestDescription:
    async def test_it_says_what_describe_prints(self, samples: Path) -> None:
        async with running("commerce", samples) as client:
            described = (await client.post("/playground/description", json={})).json()
        [order] = [each for each in described["types"] if each["name"] == "Order"]
        assert order["kind"] == "node"
        assert order["byKey"] == "GetItem: PK = ORDER#{order_id} AND SK = ORDER#{order_id}"
        assert order["keys"][0] == {
            "index": None,
            "partition": "PK = ORDER#{order_id}",
            "sort": "SK = ORDER#{order_id}",
            "shards": 0,
        }
        assert order["lists"] == [
            {
                "name": "items",
                "found": "OrderItem to Product",
                "nodes": ["Product"],
                "isOne": False,
                "request": "Query: PK = ORDER#{order_id} AND begins_with(SK, PRODUCT#)",
                "filter": None,
                "needs": [],
                "narrowedBy": ["productId"],
                "edge": "OrderItem",
            }
        ]
        assert order["fields"][2:4] == [
            {"name": "orderId", "type": "id", "isOptional": False, "isKey": True},
            {"name": "customer", "type": "User", "isOptional": False, "isKey": False},
        ]
        assert [each["name"] for each in described["root"]] == ["users", "products", "mostReviewedProducts"]

    def test_mutations_that_no_rule_allows_are_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "rules.py").write_text(WRITES, "utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        closed = closed_mutations(load_model("rules:graph"))
        assert {"createA", "updateA", "deleteA"} <= set(closed)
        assert [name for name in closed if "B" in name] == []

    async def test_walks_and_paths_are_there_too(self, samples: Path) -> None:
        async with running("social", samples) as client:
            described = (await client.post("/playground/description", json={})).json()
        [user] = [each for each in described["types"] if each["name"] == "User"]
        told = [(each["name"], each["nodes"], each["request"]) for each in user["lists"][-2:]]
        assert told == [
            ("network", ["User"], "follows User.friends, up to 3 levels"),
            ("peopleYouMayKnow", ["User"], "follows User.friends, then User.friends"),
        ]
        [path] = described["root"]
        assert (path["name"], path["nodes"]) == ("path", ["User", "Post"])
        assert path["needs"] == ["from", "to", "via"]


class TestItems:
    async def test_those_in_the_partition_of_a_node(self, samples: Path) -> None:
        graph = load_model("keygraph_examples.commerce:graph").graph
        order = global_id(graph.types["Order"], ("ORD003",))
        async with running("commerce", samples) as client:
            found = (await client.post("/playground/items", json={"id": order})).json()
        assert {each["partition"] for each in found["items"]} == {"ORDER#ORD003"}
        assert (found["hasMore"], found["next"]) == (False, None)
        assert found["request"] == "Query: PK = ORDER#ORD003, limit 50"
        assert found["cost"] == {"requests": 1, "readUnits": 0.5}
        assert [each["type"] for each in found["items"]] == ["Order", "OrderItem", "OrderItem"]
        [own, item, _] = found["items"]
        of_item = global_id(graph.types["OrderItem"], ("ORD003", "ABC123"))
        assert (own["id"], item["id"]) == (order, of_item)
        assert own["item"]["total"] == {"N": "204.97"}
        assert item["item"]["SK"] == {"S": "PRODUCT#ABC123"}

    async def test_an_item_without_an_id_in_the_schema_has_none_here(
        self, closed: Model, tmp_path: Path
    ) -> None:
        async with running("closed", tmp_path, model="closed:graph") as client:
            asked = {"id": global_id(closed.graph.types["A"], ("1",))}
            found = (await client.post("/playground/items", json=asked)).json()
        assert [(each["type"], each["id"]) for each in found["items"]] == [("A", asked["id"]), ("Link", None)]

    @pytest.mark.parametrize(
        ("sort", "keys"),
        [
            ({"is": "equal", "value": "PRODUCT#ABC123"}, ["PRODUCT#ABC123"]),
            ({"is": "begins", "value": "PRODUCT#"}, ["PRODUCT#ABC123", "PRODUCT#JKL012"]),
            ({"is": "to", "value": "ORDER#ORD003"}, ["ORDER#ORD003"]),
            ({"is": "from", "value": "PRODUCT#B"}, ["PRODUCT#JKL012"]),
            ({"is": "between", "value": "ORDER#", "to": "PRODUCT#B"}, ["ORDER#ORD003", "PRODUCT#ABC123"]),
        ],
        ids=lambda value: value["is"] if isinstance(value, dict) else "",
    )
    async def test_a_partition_by_a_condition_on_its_sort_key(
        self, samples: Path, sort: dict[str, str], keys: list[str]
    ) -> None:
        async with running("commerce", samples) as client:
            asked = {"partition": "ORDER#ORD003", "sort": sort}
            forward = (await client.post("/playground/items", json=asked)).json()
            backward = (await client.post("/playground/items", json={**asked, "descending": True})).json()
        assert [each["item"]["SK"]["S"] for each in forward["items"]] == keys
        assert [each["item"]["SK"]["S"] for each in backward["items"]] == keys[::-1]
        assert forward["cost"]["requests"] == 1

    async def test_pages_of_an_index_are_all_of_its_partition(
        self, samples: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("keygraph_server.playground.items.PAGE", 2)
        found, start, pages = [], None, 0
        async with running("commerce", samples) as client:
            while pages == 0 or start:
                asked = {"index": "GSI1", "partition": "USER", "start": start}
                page = (await client.post("/playground/items", json=asked)).json()
                assert page["keys"] == ["GSI1PK", "GSI1SK"]
                assert len(page["items"]) <= 2
                found += [each["item"]["GSI1SK"]["S"] for each in page["items"]]
                start, pages = page["next"], pages + 1
        assert len(found) > 2
        assert found == sorted(found)
        assert pages == len(found) // 2 + 1

    @pytest.mark.parametrize("index", [None, "GSI1"])
    async def test_without_a_partition_one_page_is_scanned(self, samples: Path, index: str | None) -> None:
        async with running("commerce", samples) as client:
            page = (await client.post("/playground/items", json={"index": index})).json()
            after = await client.post("/playground/items", json={"index": index, "start": page["next"]})
        assert (page["request"], page["read"], page["cost"]["requests"]) == ("Scan, limit 50", 50, 1)
        sort = page["keys"][1]
        partitions = [each["partition"] for each in page["items"]]
        # Each partition stands in one place, in the order of its sort key.
        assert len([name for name, _ in groupby(partitions)]) == len(set(partitions))
        for name in set(partitions):
            keys = [each["item"][sort]["S"] for each in page["items"] if each["partition"] == name]
            assert keys == sorted(keys)
        assert after.status_code == 200

    @pytest.mark.parametrize(
        ("asked", "message"),
        [
            ({"index": "GSI9"}, "index: the table has no index 'GSI9'."),
            ({"partition": 3}, "partition: it is a text."),
            ({"start": "x"}, "start: it is the `next` of another page."),
            (
                {"partition": "A", "sort": {"is": "odd", "value": "x"}},
                "sort: a key of type S has no condition 'odd'.",
            ),
        ],
    )
    async def test_what_cannot_be_read_is_refused(
        self, samples: Path, asked: dict[str, Any], message: str
    ) -> None:
        async with running("commerce", samples) as client:
            answer = await client.post("/playground/items", json=asked)
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["message"] == message

    async def test_an_id_of_another_schema_is_refused(self, samples: Path) -> None:
        async with running("social", samples) as client:
            answer = await client.post("/playground/items", json={"id": "nothing"})
        assert answer.status_code == 400
        [error] = answer.json()["errors"]
        assert error["message"].startswith("id: 'nothing' is not a global id")


class TestWhoMayAsk:
    async def test_in_production_there_is_nothing_of_it(self, samples: Path) -> None:
        async with running("social", samples, env="production") as client:
            for path in ("examples", "description", "items"):
                assert (await client.post(f"/playground/{path}", json={})).status_code == 404
            assert (await client.get("/")).status_code == 404
            assert (await client.get("/playground/page/playground.js")).status_code == 404

    async def test_no_page_of_another_site_can_ask(self, samples: Path) -> None:
        async with running("social", samples) as client:
            form = {"content-type": "text/plain"}
            for path in ("examples", "description", "items"):
                assert (await client.get(f"/playground/{path}")).status_code == 405
                answer = await client.post(f"/playground/{path}", content=json.dumps({}), headers=form)
                assert answer.status_code == 415

    async def test_what_is_no_request_is_refused(self, samples: Path) -> None:
        async with running("social", samples) as client:
            headers = {"content-type": "application/json"}
            broken = await client.post("/playground/items", content="{", headers=headers)
            large = await client.post("/playground/items", content=" " * 2_000_000, headers=headers)
        assert (broken.status_code, large.status_code) == (400, 413)
