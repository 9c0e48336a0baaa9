"""Every error code has a page, which says what the code says."""

from __future__ import annotations

import ast
import re

import pytest

from tests.documents.error_pages import KINDS, PAGES, ROOT, pages, sources, told


@pytest.mark.long
def test_every_code_has_its_page() -> None:
    """After a change: `python -m tests.documents.error_pages`."""
    assert set(told()) == {member.name for kind in KINDS for member in kind}
    assert [code for code, parts in told().items() if len(parts) != 3] == []
    assert {file.name: file.read_text("utf-8") for file in PAGES.glob("*.md")} == pages()


@pytest.mark.long
def test_every_code_is_used_and_no_other() -> None:
    used, written, codes = set(), [], set(told())
    for file, module in sources():
        nodes = [*ast.walk(module)]
        members = {node.value for node in nodes if isinstance(node, ast.Assign) and _is_member(node)}
        for node in nodes:
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=code) if name in {k.__name__ for k in KINDS}:
                    used.add(code)
                case ast.Constant(value=str(text)) if text in codes and node not in members:
                    written.append((file.name, text))
                case (
                    ast.keyword(arg="code", value=ast.Constant(value=str(text)))
                    | ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(text)))
                    | ast.Dict(
                        keys=[ast.Constant(value="code"), *_], values=[ast.Constant(value=str(text)), *_]
                    )
                ):
                    written.append((file.name, text))
    assert used == codes
    assert written == []
    assert all(member.value == member.name for kind in KINDS for member in kind)


def _is_member(node: ast.Assign) -> bool:
    """Whether this is a member of an enum whose name is its value."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
            return name == value
    return False


def test_pages_name_codes_that_there_are() -> None:
    for file in (ROOT / "docs").rglob("*.md"):
        for code in re.findall(r"errors/([A-Z_]+)\.md", file.read_text("utf-8")):
            assert code in {*told(), "README"}, file
    assert "errors/README.md" in (ROOT / "docs/clients.md").read_text("utf-8")
