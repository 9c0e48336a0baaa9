"""A headless Chromium that a test opens a page in, spoken to over its debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from keygraph_server.playground.page import LIBRARIES

EXECUTABLE = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

needs_chromium = pytest.mark.skipif(EXECUTABLE is None, reason="Chromium is not installed")
needs_assets = pytest.mark.skipif(
    not (LIBRARIES / "libraries.js").is_file(), reason="the playground's libraries are not installed"
)

_EDITOR = "window.__MONACO?.editor.getEditors().find((each) => each.getContainerDomNode().closest('%s'))"
EDITOR = _EDITOR % ".graphiql-query-editor"
"""GraphiQL's editor, on the playground's page."""
VARIABLES = _EDITOR % ".graphiql-editor-tool"
"""The editor of variables."""
RESPONSE = _EDITOR % ".result-window"
"""Where the answer stands."""

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,900",
    # The network is cut: no name resolves but this machine's own address.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)


class Page:
    """One page: what it is told, and what it complained of."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._unread = b""
        self._last_id = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol and return its result."""
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read_message()
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self._note_complaint(answer.get("method", ""), answer.get("params", {}))

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression on the page."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 40) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({condition})"):
            if time.monotonic() > end:
                text = self.evaluate("document.body.innerText")
                raise TimeoutError(f"never true: {condition}\n{self.complaints}\n{text}")
            time.sleep(0.1)

    def click(self, selector: str, text: str = "") -> None:
        """Click the first element that a selector finds and whose text begins so, when it is there."""
        found = f"[...document.querySelectorAll({selector!r})].find((each) => each.innerText.trim().startsWith({text!r}))"
        self.wait_for(found)
        self.evaluate(f"{found}.click()")

    def fill(self, field: str, value: str) -> None:
        """Write into the field of a JavaScript expression, or choose an option of it, as React hears it."""
        self.wait_for(field)
        self.evaluate(
            f"(() => {{ const field = {field}; const setter = Object.getOwnPropertyDescriptor(field.constructor.prototype, 'value').set;"
            f" setter.call(field, {value!r}); field.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"
        )

    def resize(self, width: int, height: int) -> None:
        """Give the window a size, in pixels."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        """Say that the user prefers `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def picture(self) -> bytes:
        """What is seen, as a PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])

    def press(self, key: str) -> None:
        """Press a key, such as `ArrowRight`."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def _read_message(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            received = os.read(self._answers, 1 << 16)
            if not received:
                raise ConnectionError("Chromium ended")
            self._unread += received
        message, self._unread = self._unread.split(b"\0", 1)
        return dict(json.loads(message))

    def _note_complaint(self, event: str, params: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and params["type"] in {"error", "assert", "warning"}:
            self.complaints.append(str(params["args"]))
        elif event == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif event == "Network.loadingFailed":
            self.complaints.append(f"not loaded: {params['errorText']} {params.get('blockedReason', '')}")


@contextmanager
def open_page(address: str, first_script: str = "") -> Iterator[Page]:
    """Open an address in a browser of its own, after `first_script` has run on the page."""
    if EXECUTABLE is None:
        raise FileNotFoundError("Chromium")
    commands_in, commands = os.pipe()
    answers, answers_out = os.pipe()
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        # Chromium reads its commands from descriptor 3 and answers on 4. High numbers first, since a pipe may
        # itself have been given 3 or 4.
        shell = f'exec 13<&{commands_in} 14>&{answers_out} && exec 3<&13 4>&14 && exec "$0" "$@"'
        process = subprocess.Popen(
            ["bash", "-c", shell, EXECUTABLE, *_FLAGS, f"--user-data-dir={Path(profile)}", "about:blank"],
            pass_fds=(commands_in, answers_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands_in)
        os.close(answers_out)
        try:
            page = Page(commands, answers)
            if first_script:
                page.send("Page.addScriptToEvaluateOnNewDocument", source=first_script)
            page.send("Page.navigate", url=address)
            yield page
        finally:
            process.kill()
            process.wait()
            os.close(commands)
            os.close(answers)
