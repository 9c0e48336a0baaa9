"""Every error code has a page, which says what the code says."""

from __future__ import annotations

import re

from tests.documents.error_pages import PAGES, ROOT, TOLD, contents, page, raised


def test_every_code_has_its_page() -> None:
    """A client would get a code of which nobody says what to do; or read of one that does not exist.

    After a change: `python -m tests.documents.error_pages`.
    """
    codes = raised()
    assert set(codes) == set(TOLD)
    kept = {file.name: file.read_text("utf-8") for file in PAGES.glob("*.md")}
    assert kept == {
        "README.md": contents(),
        **{f"{code}.md": page(code, texts) for code, texts in codes.items()},
    }


def test_the_codes_are_found_in_the_code() -> None:
    """A code that is raised in a way nobody looked for would have no page."""
    found = set()
    for package in ("keygraph", "resolvers", "server"):
        for file in (ROOT / package).rglob("*.py"):
            found |= set(
                re.findall(
                    r'"([A-Z]+_(?:FAILED|FOUND|LIMIT|TRUSTED|LARGE|ITEM|INPUT|EXISTS|SUPPORTED))"',
                    file.read_text("utf-8"),
                )
            )
    assert found - set(raised()) == set()


def test_pages_name_codes_that_there_are() -> None:
    """A page would lead to a code that was renamed."""
    for file in (ROOT / "docs").rglob("*.md"):
        for code in re.findall(r"errors/([A-Z_]+)\.md", file.read_text("utf-8")):
            assert code in {*TOLD, "README"}, file
    assert "errors/README.md" in (ROOT / "docs/clients.md").read_text("utf-8")
