"""Take the pictures of the playground for the README and docs/playground.md.

    python -m bench.pictures.playground

Serves the sample shop from a temporary folder, opens the playground in Chromium, asks the README's query, and writes
`docs/images/playground.png`, `playground-graph.png` and `playground-schema.png`. Prints how long the page took until it was ready. Needs
Chromium, and npm at `make install`.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from pathlib import Path

from tests.end_to_end.processes import Process
from tests.server.chromium import EDITOR, Page, open_page

_ROOT = Path(__file__).parents[2]
_PICTURES = _ROOT / "docs/images"
_SIZE = 1400, 900
_BUTTON = "document.querySelector('.graphiql-execute-button')"
_IDLE = "document.querySelector('.graphiql-execute-button[aria-label^=Execute]')"
"""The button while no query runs."""
_OPENINGS = 5


def main() -> None:
    """Write the pictures."""
    found = re.search(
        r"^```graphql\n(.*?)^```$", (_ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    if found is None:
        raise SystemExit("The README has no query.")
    with tempfile.TemporaryDirectory() as folder:
        process = Process(Path(folder), "serve", "--port", "0")
        try:
            times = [_ready_after(process.address()) for _ in range(_OPENINGS)]
            print(f"ready after {min(times):.0f} to {max(times):.0f} ms")
            with open_page(process.address()) as page:
                page.resize(*_SIZE)
                _ask(page, found[1])
                _write(page, "playground")
                _click(page, "#tab-graph")
                _click(page, ".all-nodes button:nth-of-type(1)")
                page.evaluate(
                    "[...document.querySelectorAll('.all-nodes button')]"
                    ".find((each) => each.innerText.includes('Order')).click()"
                )
                _write(page, "playground-graph")
                _click(page, "#tab-schema")
                _write(page, "playground-schema")
        finally:
            process.process.terminate()
            process.process.wait()


def _ready_after(address: str) -> float:
    """Returns the milliseconds from the start of loading until one can type and run, in a browser without a cache."""
    watch = (
        "window.readyAt = 0; new MutationObserver(() => {"
        f" if (!window.readyAt && {EDITOR} && {_BUTTON}) window.readyAt = performance.now(); }})"
        ".observe(document, { childList: true, subtree: true });"
    )
    with open_page(address, first_script=watch) as page:
        page.wait_for("window.readyAt")
        return float(page.evaluate("window.readyAt"))


def _ask(page: Page, query: str) -> None:
    page.wait_for(EDITOR)
    page.wait_for("window.keygraph?.state.schema")
    page.evaluate(f"{EDITOR}.CodeMirror.setValue({json.dumps(query)})")
    # GraphiQL parses the operations of a changed text a moment later.
    time.sleep(1)
    # The first runs warm the server up; the picture shows the last.
    for _ in range(10):
        page.evaluate(f"{_BUTTON}.click()")
        time.sleep(0.2)
        page.wait_for(f"{_IDLE} && document.querySelector('.cost-table')")
    page.evaluate("document.querySelectorAll('.cost-line')[1].click()")


def _click(page: Page, selector: str) -> None:
    page.wait_for(f"document.querySelector({selector!r})")
    page.evaluate(f"document.querySelector({selector!r}).click()")


def _write(page: Page, name: str) -> None:
    # Wait until animations have finished.
    time.sleep(2)
    page.evaluate("document.activeElement.blur()")
    (_PICTURES / f"{name}.png").write_bytes(page.picture())


if __name__ == "__main__":
    main()
