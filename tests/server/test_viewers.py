"""Who asks, from the header of a request to the rules of the model: over HTTP, and on the command line."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from starlette.requests import HTTPConnection

from keygraph.dynamo.items import Item
from keygraph_server.app import create_app
from keygraph_server.errors import SettingsError, UnauthenticatedError
from keygraph_server.settings import Settings, read_settings
from tests.server.command_line import refused, run
from tests.server.library import make_table, serving

SECRET = "a shared secret that is long enough for it"

MODEL = """
from __future__ import annotations

from keygraph import ID, Graph, Table, node, read, stored, viewer


@node("NOTE#{note_id}", access=[read(where={"owner": viewer("sub")}), read(role="support")])
class Note:
    note_id: ID
    owner: str
    text: str
    price: int | None = stored("price", access=[read(role="support")])


graph = Graph(Table("Notes", partition_key="PK", sort_key="SK"), Note)
"""
QUERY = '{ a: note(noteId: "1") { text } b: note(noteId: "2") { text } }'


def note(number: str, owner: str) -> Item:
    key = f"NOTE#{number}"
    return {
        "PK": key,
        "SK": key,
        "note_id": number,
        "owner": owner,
        "text": f"Note {number}",
        "price": Decimal(5),
    }


def settings_of(folder: Path, **given: Any) -> Settings:
    (folder / "notes.py").write_text(MODEL)
    return read_settings(model="notes", store="sqlite:notes.sqlite", secret="x" * 32, **given)


def bearer(secret: str = SECRET, **claims: Any) -> dict[str, str]:
    token = jwt.encode({"exp": time.time() + 60, **claims}, secret, "HS256")
    return {"Authorization": f"Bearer {token}"}


async def shown(client: httpx.AsyncClient, headers: dict[str, str]) -> list[str]:
    """The notes that somebody sees."""
    response = await client.post("/graphql", json={"query": QUERY}, headers=headers)
    assert response.status_code == 200
    data: dict[str, Any] = response.json()["data"]
    return [name for name, found in data.items() if found]


class TestServer:
    async def test_each_sees_what_is_theirs(self, folder: Path) -> None:
        settings = settings_of(folder, auth="jwt", jwt_key=SECRET)
        async with serving(settings, note("1", "ann"), note("2", "bob")) as client:
            assert await shown(client, bearer(sub="ann")) == ["a"]
            assert await shown(client, bearer(sub="bob")) == ["b"]
            assert await shown(client, bearer(roles=["support"])) == ["a", "b"]
            assert await shown(client, {}) == []
            assert await shown(client, {"X-User": "ann"}) == []
            assert await shown(client, bearer(sub="ann")) == ["a"]

    async def test_a_token_that_is_not_valid(self, folder: Path) -> None:
        settings = settings_of(folder, auth="jwt", jwt_key=SECRET)
        async with serving(settings, note("1", "ann")) as client:
            for headers in (bearer("another secret that is long enough too", sub="ann"), bearer(exp=1)):
                response = await client.post("/graphql", json={"query": QUERY}, headers=headers)
                assert response.status_code == 401
                assert response.headers["www-authenticate"] == 'Bearer error="invalid_token"'
                [error] = response.json()["errors"]
                assert error["extensions"]["code"] == "UNAUTHENTICATED"
                assert "data" not in response.json()

    async def test_no_cache_keeps_what_one_viewer_saw(self, folder: Path) -> None:
        settings = settings_of(folder, auth="jwt", jwt_key=SECRET, cache_control="public, max-age=60")
        headers = {**bearer(sub="ann"), "Apollo-Require-Preflight": "true"}
        async with serving(settings, note("1", "ann")) as client:
            response = await client.get("/graphql", params={"query": QUERY}, headers=headers)
            assert response.json()["data"]["a"] == {"text": "Note 1"}
            assert response.headers["cache-control"] == "no-store"

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_by_a_function_of_ones_own(self, folder: Path, is_async: bool) -> None:
        def viewer_of(request: HTTPConnection) -> dict[str, Any]:
            if "session" not in request.cookies:
                return {}
            if request.cookies["session"] != "s1":
                raise UnauthenticatedError("the session has ended")
            return {"sub": "ann"}

        async def awaited(request: HTTPConnection) -> dict[str, Any]:
            return viewer_of(request)

        settings = settings_of(folder)
        async with serving(settings, note("1", "ann"), viewer=awaited if is_async else viewer_of) as client:
            assert await shown(client, {"Cookie": "session=s1"}) == ["a"]
            assert await shown(client, {}) == []
            response = await client.post("/graphql", json={"query": QUERY}, headers={"Cookie": "session=s2"})
            assert response.status_code == 401
            assert response.json()["errors"][0]["message"] == "the session has ended"

    @pytest.mark.parametrize("hangs", ["viewer", "context"])
    async def test_a_function_that_hangs(self, folder: Path, hangs: str) -> None:
        async def hanging(*_: object) -> dict[str, Any]:
            await asyncio.sleep(60)
            return {}

        settings = settings_of(folder, operation_timeout=0.05)
        functions: dict[str, Any] = {hangs: hanging}
        async with serving(settings, note("1", "ann"), **functions) as client:
            response = await asyncio.wait_for(client.post("/graphql", json={"query": QUERY}), 10)
            assert (response.status_code, response.headers["retry-after"]) == (503, "1")
            assert response.json()["errors"][0]["extensions"]["code"] == "TIMEOUT"


async def _two_notes(settings: Settings) -> None:
    await make_table(settings, note("1", "ann"), note("2", "bob"))


class TestExplain:
    def test_as_somebody(self, folder: Path) -> None:
        asyncio.run(_two_notes(settings_of(folder)))
        options = ["--model", "notes", "--store", "sqlite:notes.sqlite", "--run", "--json"]
        found = json.loads(run("explain", QUERY, "--as", '{"roles": ["support"]}', *options).stdout)
        assert found["actual"]["items"] == 2
        # Ann's own answer would not tell what was read, since that depends on what she may not see.
        found = json.loads(run("explain", QUERY, "--as", '{"sub": "ann"}', *options).stdout)
        assert (found["actual"]["items"], len(found["requests"]), found["errors"]) == (2, 1, [])
        assert refused("explain", QUERY, "--as", "ann", *options).startswith("--as is not JSON")


@pytest.mark.parametrize(("env", "level"), [("production", "WARNING"), ("development", "INFO")])
def test_the_log_says_that_a_model_is_open(
    folder: Path, caplog: pytest.LogCaptureFixture, env: str, level: str
) -> None:
    with caplog.at_level(logging.INFO, "keygraph_server.app"):
        create_app(settings_of(folder))
        assert [each for each in caplog.records if each.name == "keygraph_server.app"] == []
        create_app(read_settings(env=env, model="keygraph_examples.commerce:graph", secret="x" * 32))
    [told] = [each for each in caplog.records if each.name == "keygraph_server.app"]
    assert told.levelname == level
    assert "everybody who reaches the server may read and write everything" in told.getMessage()


@pytest.mark.parametrize("store", ["aws", "http://127.0.0.1:8001"])
def test_in_production_on_dynamodb_an_open_model_has_to_be_meant(folder: Path, store: str) -> None:
    given = {
        "env": "production",
        "model": "keygraph_examples.commerce:graph",
        "secret": "x" * 32,
        "store": store,
    }
    with pytest.raises(SettingsError, match="or say with KEYGRAPH_AUTH=none that this is meant"):
        create_app(read_settings(**given))
    create_app(read_settings(**given, auth="none"))
    create_app(read_settings(**given | {"env": "development"}))
    # One with rules is served to everybody, without authentication too: its rules say what they may.
    create_app(settings_of(folder, env="production").model_copy(update={"store": store}))


async def test_introspection_in_production_is_the_viewers(folder: Path) -> None:
    settings = settings_of(folder, env="production", introspection=True, auth="jwt", jwt_key=SECRET)
    query = {"query": '{ __type(name: "Note") { fields { name } } }'}
    async with serving(settings) as client:
        shown = {
            name: (await client.post("/graphql", json=query, headers=headers)).json()["data"]["__type"]
            for name, headers in {
                "none": {},
                "ann": bearer(sub="ann"),
                "max": bearer(roles=["support"]),
            }.items()
        }
    assert shown["none"] is None
    names = {name: {each["name"] for each in type_["fields"]} for name, type_ in shown.items() if type_}
    assert names["max"] - names["ann"] == {"price"}
