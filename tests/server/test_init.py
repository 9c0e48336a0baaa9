"""`keygraph init`: a model, data and a query to begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.command_line import refused, run

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("name", ["league", "club"])
def test_what_is_written_can_be_asked(name: str) -> None:
    result = run("init", name)
    assert result.stdout == (
        f"Wrote {name}.py, {name}.jsonl and {name}.graphql. "
        f"Serve the model and its data with `keygraph serve {name}`.\n"
    )
    assert run("load", f"{name}.jsonl", "--model", name).exit_code == 0
    asked = run("explain", f"@{name}.graphql", "--operation", "Team", "--run", "--model", name)
    assert asked.stderr == ""
    assert "actual" in asked.stdout


def test_an_example_can_be_chosen() -> None:
    assert run("init", "skills", "--from", "talent").exit_code == 0
    assert "class Skill" in Path("skills.py").read_text()
    assert not Path("skills.jsonl").exists()
    assert refused("init", "--from", "shop").startswith(
        "there is no example shop. Choose one of billing, cargo, "
    )


@pytest.mark.parametrize(
    ("name", "what"),
    [("json", "a module of Python's standard library"), ("typer", "an installed Python module")],
)
def test_the_name_of_another_module_is_refused(name: str, what: str) -> None:
    result = run("init", name)
    assert (result.exit_code, result.stdout) == (1, "")
    assert (
        result.stderr == f"keygraph: {name} is the name of {what}. Choose another name: keygraph init NAME.\n"
    )
    assert not Path(f"{name}.py").exists()


def test_no_file_is_replaced() -> None:
    Path("league.py").write_text("mine")
    assert refused("init").startswith("league.py already exists. ")
    assert Path("league.py").read_text() == "mine"
    assert not Path("league.jsonl").exists()
    Path("league.jsonl").write_text("mine")
    assert run("init").stderr.startswith("keygraph: league.py and league.jsonl already exist. ")
    Path("club.py").symlink_to("elsewhere.py")
    assert run("init", "club").stderr.startswith("keygraph: club.py already exists. ")
    assert not Path("elsewhere.py").exists()
