"""Logging: one line a record, and only what the level asks for."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from keygraph_server.logs import configure_logging
from keygraph_server.settings import LogLevel


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Puts the root logger back: other tests read it."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("keygraph", "keygraph_resolvers", "keygraph_server", "uvicorn"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_a_record_is_one_line_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """What reads the log line by line would take a traceback for many records."""
    configure_logging(LogLevel.INFO)
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
    level: LogLevel, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """KEYGRAPH_LOG_LEVEL would do nothing, or would fill the log with what libraries do."""
    configure_logging(level)
    logging.getLogger("keygraph_server.app").debug("own debug")
    logging.getLogger("keygraph").info("own info")
    logging.getLogger("keygraph_resolvers.service").warning("own warning")
    logging.getLogger("uvicorn.access").info("request")
    logging.getLogger("botocore").info("library info")
    logging.getLogger("botocore").warning("library warning")
    assert [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()] == expected
