"""Each command and option that README and the docs name exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keygraph_server.cli import _COMMANDS, _imported

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_CALL = re.compile(r"(?<!from )(?<!import )\bkeygraph +(?!import\b)([a-z]+)\b([^`\n|#;]*(?:\\\n[^`\n|#;]*)*)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_GLOBAL = {"--help", "--version"}


def calls(text: str) -> Iterator[tuple[str, str]]:
    """Yields each call of `keygraph` in code: its command, and the rest of it."""
    for code in _CODE.findall(text):
        yield from _CALL.findall(code)


def options_of(name: str, rest: str) -> tuple[str, set[str]]:
    """Returns the name of a command, with that of its subcommand, and its options."""
    command: Any = _imported(name)
    word = rest.split()[:1]
    inner = getattr(command, "commands", {})
    params = list(command.params)
    if inner and word and word[0] in inner:
        name, params = f"{name} {word[0]}", [*params, *inner[word[0]].params]
    return name, {option for each in params for option in (*each.opts, *each.secondary_opts)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_calls_exists(page: Path) -> None:
    unknown = []
    for name, rest in calls(page.read_text("utf-8")):
        if name not in _COMMANDS:
            unknown.append(f"keygraph {name}")
            continue
        command, known = options_of(name, rest)
        if command == "load" and "--sample" in rest:
            known |= {"--users"}  # of the sample's own function
        own = {*_OPTION.findall(re.sub(r'"[^"]*"|\'[^\']*\'', "", rest))}
        unknown += [f"keygraph {command} {each}" for each in sorted(own - known - _GLOBAL)]
    assert unknown == []


def test_calls_are_found() -> None:
    found = list(
        calls("Run `keygraph verify --repair --yes`.\n```sh\nkeygraph table create --store aws\n```\n")
    )
    assert [name for name, _ in found] == ["verify", "table"]
