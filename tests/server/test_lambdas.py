"""The server as a Lambda function, with events as AWS documents them."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keygraph_resolvers import OperationRequest
from keygraph_server.lambdas.handler import Handler
from tests.server.command_line import run

QUERY = '{ team(teamId: "T1") { name } }'
ANSWER = {"data": {"team": {"name": "Rövers"}}}

Ask = Callable[..., dict[str, Any]]


def event(path: str = "/graphql", method: str = "POST", **given: Any) -> dict[str, Any]:
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "accept-encoding": "gzip", "host": "x.on.aws"},
        "requestContext": {
            "domainName": "x.on.aws",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
            "stage": "$default",
        },
        "isBase64Encoded": False,
        **given,
    }


@pytest.fixture
def handler(
    engine: str, folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Handler]:
    store = (
        "sqlite:league.sqlite" if engine == "sqlite" else str(request.getfixturevalue(f"{engine}_endpoint"))
    )
    run("init", "league")
    Path("league.jsonl").write_text('{"PK": "TEAM#T1", "SK": "TEAM#T1", "name": "R\u00f6vers"}\n')
    run("table", "create", "--model", "league", "--store", store)
    assert run("load", "league.jsonl", "--model", "league", "--store", store).exit_code == 0
    monkeypatch.setenv("KEYGRAPH_MODEL", "league")
    monkeypatch.setenv("KEYGRAPH_STORE", store)
    made = Handler()
    yield made
    made.close()


def test_one_event_after_another(handler: Handler) -> None:
    for body in (
        {"body": json.dumps({"query": QUERY})},
        {"body": b64encode(json.dumps({"query": QUERY}).encode()).decode(), "isBase64Encoded": True},
    ):
        result = handler(event(**body))
        assert (result["statusCode"], result["isBase64Encoded"]) == (200, False)
        assert result["headers"]["content-type"].startswith("application/json")
        assert json.loads(result["body"]) == ANSWER
    result = handler(event("/readyz", "GET"))
    assert json.loads(result["body"]) == {"ready": True}


@pytest.mark.parametrize("engine", ["sqlite"])
def test_queries_in_the_address_stages_and_packed_answers(handler: Handler) -> None:
    result = handler(
        event(
            "/dev/graphql",
            "GET",
            rawQueryString="query=%7B%20team(teamId%3A%20%22T1%22)%20%7B%20name%20%7D%20%7D",
            requestContext={"http": {"method": "GET", "sourceIp": "192.0.2.1"}, "stage": "dev"},
        )
    )
    assert json.loads(result["body"]) == ANSWER
    packed = handler(event("/schema.graphql", "GET"))
    assert (packed["headers"]["content-encoding"], packed["isBase64Encoded"]) == ("gzip", True)
    assert b64decode(packed["body"])[:2] == b"\x1f\x8b"
    assert handler(event("/nowhere", "GET"))["statusCode"] == 404


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"headers": {"content-type": "application/json", "x-name": "日本", "x-null": None}}, 200),
        ({"cookies": ["name=日本"]}, 200),
        ({"cookies": None, "rawQueryString": None}, 200),
        ({"headers": None}, 415),
        ({"rawPath": None}, 200),
        ({"headers": {"content-type": "application/json", "x-number": 1, "x-fraction": 0.5}}, 200),
        ({"cookies": [None, "a=b"]}, 200),
        ({"requestContext": None}, 400),
        ({"requestContext": {"http": None}}, 400),
        ({"requestContext": {"http": {"method": None}}}, 400),
        ({"requestContext": "http"}, 400),
        ({"rawPath": 7}, 400),
        ({"headers": {"content-type": "application/json", "x-list": ["a"]}}, 400),
        ({"headers": []}, 400),
        ({"cookies": [7, {}]}, 400),
        ({"cookies": "a=b"}, 400),
        ({"body": {"query": QUERY}}, 400),
        ({"body": "日本", "isBase64Encoded": True}, 400),
        ({"headers": {"content-type": "application/json", "x-name": "\ud800"}}, 400),
        ({"cookies": ["\ud800"]}, 400),
        ({"rawQueryString": "\ud800"}, 400),
        ({"path": "/\ud800"}, 400),
        ({"body": "\ud800"}, 400),
        ({"body": '{"query": "\\ud800"}'}, 400),
        ({"body": "a", "isBase64Encoded": True}, 400),
    ],
)
def test_any_text_of_a_client_is_answered(handler: Handler, given: dict[str, Any], status: int) -> None:
    result = handler(event(**{"body": json.dumps({"query": QUERY}), **given}))
    assert result["statusCode"] == status
    answer = json.loads(result["body"])
    if status == 200:
        assert answer == ANSWER
    else:
        assert [error["extensions"]["code"] for error in answer["errors"]] == ["BAD_USER_INPUT"]


@pytest.mark.parametrize("engine", ["sqlite"])
def test_claims_of_a_gateway_are_any_text(handler: Handler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYGRAPH_AUTH", "header")
    monkeypatch.setenv("KEYGRAPH_AUTH_HEADERS", "X-User: sub")
    known: list[object] = []
    app = handler.start()
    execute = app.state.service.execute

    async def observed(request: OperationRequest) -> Any:
        known.append(request.viewer)
        return await execute(request)

    monkeypatch.setattr(app.state.service, "execute", observed)
    for name in ("日本", "Ã¼", "ü"):
        headers = {"content-type": "application/json", "x-user": name}
        handler(event(body=json.dumps({"query": QUERY}), headers=headers))
    assert known == [{"sub": "日本"}, {"sub": "Ã¼"}, {"sub": "ü"}]


@pytest.mark.parametrize("engine", ["sqlite"])
def test_the_body_says_how_long_it_is(handler: Handler) -> None:
    given = event(body=json.dumps({"query": QUERY + " " * 2_000_000}))
    given["headers"]["content-length"] = "5"
    assert handler(given)["statusCode"] == 413


@pytest.mark.parametrize("engine", ["sqlite"])
def test_another_event_is_told(handler: Handler) -> None:
    with pytest.raises(ValueError, match=r"payload format 2\.0"):
        handler({"httpMethod": "POST", "path": "/graphql"})
