"""Logging: one line a record, as text or JSON, and only what the level asks for."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from keygraph_server.http.request_ids import REQUEST_ID
from keygraph_server.logs import configure_logging, direct_logger
from keygraph_server.settings import LogFormat, LogLevel, Settings, read_settings


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Puts the root logger back, and the id of no request: other tests read them."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    REQUEST_ID.set(None)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("keygraph", "keygraph_resolvers", "keygraph_server", "uvicorn"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_a_record_is_one_line_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """What reads the log line by line would take a traceback for many records."""
    configure_logging(Settings())
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        logging.getLogger("keygraph_server.app").exception("it failed\nhere")
    [line] = capsys.readouterr().err.splitlines()
    assert " ERROR keygraph_server.app: it failed\\nhere\\nTraceback (most recent call last):\\n" in line
    assert line.endswith("ValueError: first\\nsecond")


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (LogLevel.DEBUG, ["own debug", "own info", "own warning", "request", "library warning"]),
        (LogLevel.INFO, ["own info", "own warning", "library warning"]),
        (LogLevel.WARNING, ["own warning", "library warning"]),
        (LogLevel.ERROR, []),
    ],
)
def test_the_level_says_what_is_logged(
    level: LogLevel,
    expected: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KEYGRAPH_LOG_LEVEL would do nothing, or would fill the log with what libraries do."""
    # A server without a log of requests, in this process, has turned it off.
    monkeypatch.setattr(logging.getLogger("uvicorn.access"), "propagate", True)
    monkeypatch.setattr(logging.getLogger("uvicorn.access"), "level", logging.NOTSET)
    configure_logging(Settings(log_level=level))
    logging.getLogger("keygraph_server.app").debug("own debug")
    logging.getLogger("keygraph").info("own info")
    logging.getLogger("keygraph_resolvers.service").warning("own warning")
    logging.getLogger("uvicorn.access").info("request")
    logging.getLogger("botocore").info("library info")
    logging.getLogger("botocore").warning("library warning")
    assert [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()] == expected


def test_as_json_every_line_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    """KEYGRAPH_LOG_FORMAT would do nothing, or what collects logs could not read some of the lines."""
    settings = Settings(log_format="json")
    configure_logging(settings)
    REQUEST_ID.set("r-1")
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        logging.getLogger("keygraph_server.app").exception("it failed\nhere", extra={"tries": 3})
    direct_logger("keygraph_server.operations", settings).info(
        "operation", variables={"n": 10**30, "t": "\ud800"}
    )
    failed, operation = map(json.loads, capsys.readouterr().err.splitlines())
    assert failed.pop("exception").endswith("ValueError: first\nsecond")
    assert failed.pop("timestamp").endswith("Z")
    assert failed == {
        "event": "it failed\nhere",
        "level": "error",
        "logger": "keygraph_server.app",
        "tries": 3,
        "request_id": "r-1",
    }
    assert operation["variables"] == {"n": 10**30, "t": "\ud800"}
    assert (operation["logger"], operation["request_id"]) == ("keygraph_server.operations", "r-1")


def test_as_text_no_value_can_pass_for_another_line_or_field(capsys: pytest.CaptureFixture[str]) -> None:
    """A client could write lines of its own into the log."""
    log = direct_logger("keygraph_server.operations", Settings())
    log.info("operation", name="x\n2026 ERROR y: status=200", codes=[], status=400, type=None)
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith(
        ' INFO keygraph_server.operations: operation name="x\\n2026 ERROR y: status=200" status=400'
    )


def test_the_level_holds_for_operations(capsys: pytest.CaptureFixture[str]) -> None:
    """KEYGRAPH_LOG_LEVEL=warning would still log every operation."""
    log = direct_logger("keygraph_server.operations", Settings(log_level=LogLevel.WARNING))
    log.info("operation", name="Quiet")
    log.warning("operation", name="Loud")
    [line] = capsys.readouterr().err.splitlines()
    assert "Loud" in line


def test_in_production_the_log_is_json() -> None:
    """What collects the logs of a server would get lines for people, unless somebody thinks of a second setting."""
    assert read_settings(env="production").log_format is LogFormat.JSON
    assert read_settings(env="production", log_format="text").log_format is LogFormat.TEXT
