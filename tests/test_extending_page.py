"""docs/extending.md: its program runs, and does what the page says."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from keygraph_resolvers import OperationRequest
from keygraph_server.app import create_app
from keygraph_server.settings import read_settings
from tests.asgi import running
from tests.server.command_line import run

PAGE = (Path(__file__).parents[1] / "docs/extending.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def league(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files of `keygraph init league` and the program, and its table as the page makes it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in ("league", "club"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    run("init", "league")
    Path("club.py").write_text(blocks("python")[0], "utf-8")
    (load,) = [line for line in blocks("sh")[0].splitlines() if line.startswith("keygraph ")]
    assert run(*load.split()[1:]).exit_code == 0


@pytest.fixture
def club(league: None) -> Iterator[ModuleType]:
    import club  # type: ignore[import-not-found]  # the file that has just been written

    yield club
    del sys.modules["club"], sys.modules["league"]


async def test_the_program_does_what_is_said(club: ModuleType) -> None:
    cheer, home = blocks("graphql")
    async with running(club.app) as client:
        assert (await client.get("/about")).json() == {"name": "The club"}
        answer = (await client.post("/graph/graphql", json={"query": cheer})).json()
        assert answer["data"] == {"cheer": "Hurrah! Hurrah! "}
        assert 0 < answer["extensions"]["seconds"] < 10
        answer = (await client.post("/graph/graphql", json={"query": home})).json()
        team = {"name": "Rovers", "members": {"nodes": [{"name": "Ada"}]}}
        assert answer["data"] == {"home": team, "motto": "PLAY FAIR, ADA!"}
        answer = (
            await client.post("/graph/graphql", json={"query": home}, headers={"host": "united.example.com"})
        ).json()
        assert answer["data"]["home"] is None
        assert (await client.get("/graph/readyz")).json() == {"ready": True}
        assert (await client.get("/graph/schema.graphql")).status_code == 200
        # The page and everything that it loads are under the prefix.
        page = (await client.get("/graph/")).text
        assert 'href="/' not in page
        assert 'src="/' not in page
        [call] = re.findall(
            r"state\.service\.execute\(OperationRequest\(\"(.*?)\", context=({.*?})\)\)", PAGE
        )
        answer = await club.keygraph.state.service.execute(
            OperationRequest(call[0], context=ast.literal_eval(call[1]))
        )
        assert answer["data"] == {"home": {"name": "Rovers"}}


async def test_starlette_mounts_it_too(league: None, caplog: pytest.LogCaptureFixture) -> None:
    keygraph = create_app(read_settings(model="league", store="sqlite:.keygraph/club.sqlite"))
    query = {"query": '{ team(teamId: "T1") { name } }'}
    forgotten = Starlette(routes=[Mount("/api", app=keygraph)])
    async with running(forgotten) as client:
        assert (await client.post("/api/graphql", json=query)).status_code == 500
        assert "lifespan=app.started" in caplog.text
    for _ in range(2):
        mounting = Starlette(routes=[Mount("/api", app=keygraph)], lifespan=keygraph.started)
        async with running(mounting) as client:
            answer = (await client.post("/api/graphql", json=query)).json()
            assert answer == {"data": {"team": {"name": "Rovers"}}}
