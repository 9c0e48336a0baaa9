"""Take the picture of the playground for the README: its nested query, the answer and the cost panel.

    python -m bench.playground_picture

Serves the sample shop from a temporary folder, opens the playground in Chromium, and writes
`docs/images/playground.png`. Needs Chromium, and npm at `make install`.
"""

from __future__ import annotations

import base64
import json
import re
import tempfile
import time
from pathlib import Path

from tests.end_to_end.processes import Process
from tests.server.chromium import Page, open_page

_ROOT = Path(__file__).parents[1]
_PICTURE = _ROOT / "docs/images/playground.png"
_WIDTH, _HEIGHT = 1400, 900
_EDITOR = "document.querySelector('.graphiql-query-editor .CodeMirror')"
_IDLE = "document.querySelector('.graphiql-execute-button[aria-label^=Execute]')"
"""The button while no query runs."""


def main() -> None:
    """Write the picture."""
    found = re.search(
        r"^```graphql\n(.*?)^```$", (_ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    if found is None:
        raise SystemExit("The README has no query.")
    with tempfile.TemporaryDirectory() as folder:
        process = Process(Path(folder), "serve", "--port", "0")
        try:
            with open_page(process.address()) as page:
                _PICTURE.write_bytes(_taken(page, found[1]))
        finally:
            process.process.terminate()
            process.process.wait()


def _taken(page: Page, query: str) -> bytes:
    page.send(
        "Emulation.setDeviceMetricsOverride",
        width=_WIDTH,
        height=_HEIGHT,
        deviceScaleFactor=1,
        mobile=False,
    )
    page.wait_for(_EDITOR)
    page.evaluate(f"{_EDITOR}.CodeMirror.setValue({json.dumps(query)})")
    # GraphiQL reads the operations of a changed text a moment later.
    time.sleep(1)
    # The first runs warm the server up; the picture shows the last.
    for _ in range(10):
        page.evaluate("document.querySelector('.graphiql-execute-button').click()")
        time.sleep(0.2)
        page.wait_for(f"{_IDLE} && document.querySelector('.cost-table')")
    picture = page.send("Page.captureScreenshot", format="png")
    return base64.b64decode(picture["data"])


if __name__ == "__main__":
    main()
