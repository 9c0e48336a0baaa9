"""The wheel in somebody's own project, whose folders are called `server`, `resolvers`, `examples` and `tests` too."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.end_to_end.processes import Process, ask, started_processes
from tests.packaging.conftest import ROOT, run

MODEL = """
from __future__ import annotations

from keygraph import ID, Graph, Table, node
from server.names import TABLE


@node("TEAM#{team_id}")
class Team:
    team_id: ID
    name: str


graph = Graph(Table(TABLE, partition_key="PK"), Team)
"""
TEAM = '{ team(teamId: "T1") { name } }'

Serve = Callable[..., Process]

pytestmark = pytest.mark.timeout(400)  # The first of them waits for the package index.


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that has packages of the names of this one's folders."""
    for name in ("server", "resolvers", "examples", "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "server/names.py").write_text('TABLE = "League"\n')
    (tmp_path / "examples/league.py").write_text(MODEL)
    (tmp_path / "examples/league.jsonl").write_text('{"PK": "TEAM#T1", "name": "Rovers"}\n')
    return tmp_path


@pytest.fixture
def serve(installed: Path, project: Path) -> Iterator[Serve]:
    """Starts the installed `keygraph serve` in the project."""
    with started_processes() as started:

        def start(*words: str) -> Process:
            settings = {"PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": ""}
            words = ("serve", "--model", "examples.league", "--port", "0", *words)
            started.append(Process(project, *words, command=[installed / "keygraph"], **settings))
            return started[-1]

        yield start


def test_two_workers_serve_a_model_of_the_project(serve: Serve) -> None:
    server = serve("--workers", "2")
    address = server.address()
    assert ask(address, TEAM) == {"data": {"team": {"name": "Rovers"}}}
    assert httpx.get(f"{address}/").status_code == 200
    assert server.stop() == 0
    assert server.warnings() == []


def test_a_change_of_the_model_is_served(serve: Serve, project: Path) -> None:
    server = serve("--reload")
    address = server.address()
    assert "errors" in ask_until(address, '{ team(teamId: "T1") { town } }', lambda answer: True)
    (project / "examples/league.py").write_text(
        MODEL.replace("name: str\n", "name: str\n    town: str | None\n")
    )
    answer = ask_until(address, '{ team(teamId: "T1") { name town } }', lambda answer: "data" in answer)
    assert answer["data"] == {"team": {"name": "Rovers", "town": None}}
    server.stop()


def ask_until(address: str, query: str, is_wanted: Callable[[Any], bool]) -> Any:
    """The first answer that is wanted; while a process is replaced, there may be none."""
    ended = time.monotonic() + 30
    while True:
        try:
            answer = httpx.post(f"{address}/graphql", json={"query": query}, timeout=30).json()
            if is_wanted(answer):
                return answer
        except httpx.TransportError:
            answer = None
        assert time.monotonic() < ended, answer
        time.sleep(0.1)


def test_a_newcomer_gets_a_server_and_nothing_of_aws(installed: Path, tmp_path: Path) -> None:
    listed = json.loads(run(installed / "python", "-m", "pip", "list", "--format=json").stdout)
    names = {each["name"].lower() for each in listed}
    assert names & {"aioboto3", "boto3", "moto", "pytest", "fastapi", "opentelemetry-sdk"} == set()
    done = run(installed / "keygraph", "table", "create", "--store", "aws", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "keygraph: the store aws needs AWS's libraries, which are not installed. "
        "Install them with `pip install 'keygraph[aws]'`.\n"
    )


def test_its_version(installed: Path) -> None:
    for words in (["keygraph"], ["python", "-m", "keygraph"]):
        assert run(installed / words[0], *words[1:], "--version").stdout == "keygraph 0.1.0\n"
    assert (ROOT / "pyproject.toml").read_text().count('version = "0.1.0"') == 1
