"""The pictures of the playground in README and docs: `make pictures` takes them of this build."""

from __future__ import annotations

import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.server.chromium import EDITOR, Page, open_page
from tests.server.serving import served_example

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "images"
SIZE = (1400, 900)


def take_pictures(page: Page, folder: Path) -> None:
    """Take the pictures of a playground of the commerce example that is open, and write them."""
    page.resize(*SIZE)
    page.wait_for(EDITOR)
    page.wait_for("window.keygraph?.state.schema")
    [query, *_] = re.findall(
        r"^```graphql\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    page.evaluate(f"{EDITOR}.setValue({query!r})")
    # GraphiQL reads the operations of a changed text a moment later.
    time.sleep(0.5)
    for _ in range(2):  # the first run plans the query
        page.evaluate("document.querySelector('.graphiql-execute-button').click()")
        page.wait_for("document.querySelectorAll('.cost-line').length === 5")
        time.sleep(1)
    page.evaluate("document.querySelectorAll('.cost-line')[1].click()")
    page.wait_for("document.querySelector('.cost-request')")
    _take(page, folder / "playground.png")
    page.click("[role=tab]", "Graph")
    page.click(".all-nodes button", "Order ORD001")
    _take(page, folder / "playground-graph.png")
    page.click("[role=tab]", "Table")
    page.click(".partition button.link", "ORDER#ORD001")
    page.wait_for("document.querySelectorAll('.partition').length === 1")
    page.click(".partition li button", "PRODUCT#ABC123")
    page.wait_for("document.querySelector('.picked pre')")
    _take(page, folder / "playground-table.png")
    page.click("[role=tab]", "Schema")
    for _ in range(2):
        page.click(".canvas-tools [aria-label=Smaller]")
    page.click(".all-nodes button", "Order")
    _take(page, folder / "playground-schema.png")


def _take(page: Page, file: Path) -> None:
    page.evaluate("document.activeElement.blur()")
    # Until what moves has come to rest.
    time.sleep(2)
    file.write_bytes(page.picture())


if __name__ == "__main__":
    with (
        TemporaryDirectory() as made,
        served_example("commerce", Path(made)) as address,
        open_page(address) as opened,
    ):
        take_pictures(opened, PICTURES)
