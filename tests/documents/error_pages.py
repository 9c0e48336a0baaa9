"""The pages of the error codes in `docs/errors/`: what the codes mean, and what raises them, is read from the code.

`python -m tests.documents.error_pages` writes the pages again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from keygraph.codes import Code
from keygraph.declare.docstrings import member_docstrings
from keygraph_resolvers.codes import OperationCode
from keygraph_server.errors import RequestCode

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "errors"
PACKAGES = ("keygraph", "resolvers/keygraph_resolvers", "server/keygraph_server")
KINDS: tuple[type[StrEnum], ...] = (Code, OperationCode, RequestCode)


def told() -> dict[str, list[str]]:
    """The codes, each with what is said of it: what it means, what to do, whether to try again."""
    found = {name: text for kind in KINDS for name, text in member_docstrings(kind).items()}
    return {
        code: [part.replace("\n", " ") for part in text.split("\n\n")] for code, text in sorted(found.items())
    }


def sources() -> Iterator[tuple[Path, ast.Module]]:
    """All modules of the packages, parsed."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            yield file, ast.parse(file.read_text("utf-8"))


def causes() -> dict[str, list[str]]:
    """Of each code what its exceptions are, as their docstrings say."""
    classes = [node for _, module in sources() for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    codes: dict[str, str] = {}
    for node in classes * 3:  # bases may come later
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in codes:
                codes.setdefault(node.name, codes[base.id])
        for each in node.body:
            match each:
                case ast.Assign(targets=[ast.Name(id="code")], value=ast.Attribute(attr=code)):
                    codes[node.name] = code
                case ast.AnnAssign(target=ast.Name(id="code"), value=ast.Attribute(attr=code)):
                    codes[node.name] = code
    found: dict[str, dict[str, None]] = {code: {} for code in told()}
    for node in classes:
        # The base class of all these exceptions is a cause of none.
        if node.name in codes and node.name != "KeygraphError" and (said := ast.get_docstring(node)):
            found[codes[node.name]][said.split("\n\n")[0].replace("\n", " ")] = None
    return {code: sorted(texts) for code, texts in found.items()}


def pages() -> dict[str, str]:
    """The texts of the pages, by the names of their files."""
    raised, found, rows = causes(), {}, ""
    for code, (meaning, fix, again) in told().items():
        listed = "".join(f"- {cause}\n" for cause in raised[code])
        when = f"\n## When\n\n{listed}" if listed else ""
        found[f"{code}.md"] = (
            f"# {code}\n\n{meaning}\n\n## What to do\n\n{fix}\n\n{again}\n{when}\n[All codes](README.md)\n"
        )
        rows += f"| [`{code}`]({code}.md) | {meaning} |\n"
    head = "Every error that a client can cause or has to handle has one of these codes in `extensions.code`."
    found["README.md"] = f"# Error codes\n\n{head}\n\n| code | meaning |\n| --- | --- |\n{rows}"
    return found


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text, "utf-8")
