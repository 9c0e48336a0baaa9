"""The playground, checked by axe-core: no view has a violation, in light and dark, wide and narrow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.chromium import EDITOR, Page, needs_assets, needs_chromium, open_page
from tests.server.serving import served_example

pytestmark = [needs_assets, needs_chromium]

VIOLATIONS = """axe.run(%s, { resultTypes: ['violations'] }).then((found) => found.violations.map(
  (each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(' | ')}`))"""
EDIT = "[...document.querySelectorAll('.picked button')].find((each) => each.innerText === 'Edit')"
RUN = "document.querySelector('.graphiql-execute-button')"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_example("commerce", tmp_path_factory.mktemp("shop")) as address:
        yield address


def violations(page: Page, part: str = "document") -> list[str]:
    """What axe finds on a page, or in a part of it, when what was clicked is drawn."""
    time.sleep(0.5)
    found: list[str] = page.evaluate(VIOLATIONS % part)
    return found


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 390)])
def test_no_view_has_a_violation(packages: Path, shop: str, scheme: str, width: int) -> None:
    with open_page(shop) as page:
        page.resize(width, 900)
        page.prefer(scheme)
        page.wait_for(EDITOR)
        page.wait_for("window.keygraph?.state.schema")
        page.evaluate((packages / "axe-core/axe.min.js").read_text("utf-8") + "; 1")
        time.sleep(0.5)
        page.evaluate(f"{RUN}.click()")
        page.click(".cost-line")
        # GraphiQL shows its bar of tabs from the second one on.
        page.click(".graphiql-tab-add")
        page.wait_for("document.querySelectorAll('.graphiql-tab').length === 2")
        current = "[...document.querySelectorAll('.graphiql-tab-button')].map((each) => each.ariaCurrent)"
        assert page.evaluate(current) == [None, "true"]
        for plugin in ("GraphiQL Explorer", "Documentation Explorer", "Examples"):
            page.evaluate(f"document.querySelector('[aria-label=\"Show {plugin}\"]')?.click()")
            assert violations(page) == [], plugin
        page.click("[aria-label='Open settings dialog']")
        page.wait_for("document.querySelector('.graphiql-dialog')")
        assert violations(page, "'.graphiql-dialog'") == [], "settings"
        page.press("Escape")
        page.wait_for("!document.querySelector('.graphiql-dialog')")
        for view in ("graph", "schema"):
            page.click(f"#tab-{view}")
            assert violations(page) == [], f"{view}, nothing picked"
            page.click(f"#view-{view} .all-nodes button")
            assert violations(page) == [], view
        page.click("#tab-graph")
        page.click(".picked > button.plain:not(.hide)")
        page.wait_for("document.querySelector('.partition')")
        assert violations(page) == [], "table"
        for place in range(page.evaluate("document.querySelectorAll('.partition li button').length")):
            page.evaluate(f"document.querySelectorAll('.partition li button')[{place}].click()")
            page.wait_for("document.querySelector('.picked pre')")
            time.sleep(0.5)
            # Types without an update have no such button.
            if page.evaluate(f"!!{EDIT}"):
                break
        page.evaluate(f"{EDIT}.click()")
        assert violations(page) == [], "an item"
        page.click("#tab-access")
        assert violations(page) == [], "access paths"
        assert page.complaints == []
