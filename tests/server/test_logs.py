"""Logging: one line a record, as text or JSON, and only what the level asks for."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from keygraph_server.commands.serve import _hang_up
from keygraph_server.http.requests import REQUEST_ID
from keygraph_server.logs import DirectLogger, LogHandler, configure_logging
from keygraph_server.settings import LogFormat, LogLevel, Settings, read_settings


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Puts the root logger back, and the id of no request: other tests read them."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    logging.captureWarnings(capture=False)
    REQUEST_ID.set(None)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("keygraph", "keygraph_resolvers", "keygraph_server", "uvicorn"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_a_record_is_one_line_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
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
        ("debug", ["own debug", "own info", "own warning", "request", "library warning"]),
        ("info", ["own info", "own warning", "library warning"]),
        ("warning", ["own warning", "library warning"]),
        ("error", []),
    ],
)
def test_the_level_says_what_is_logged(
    level: LogLevel,
    expected: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


def test_a_hangup_that_interrupts_a_request_does_not_log_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(Settings())
    REQUEST_ID.set("r-1")
    _hang_up([], 1, None)
    assert capsys.readouterr().err.endswith("only several workers are replaced. Restart the server\n")


def test_as_json_every_line_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(log_format="json")
    configure_logging(settings)
    REQUEST_ID.set("r-1")
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        logging.getLogger("keygraph_server.app").exception("it failed\nhere", extra={"tries": 3})
    DirectLogger("keygraph_server.operations", settings).log(
        logging.INFO, "operation", variables={"n": 10**30, "t": "\ud800"}
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
    log = DirectLogger("keygraph_server.operations", Settings())
    log.log(logging.INFO, "operation", name="x\n2026 ERROR y: status=200", codes=[], status=400, type=None)
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith(
        ' INFO keygraph_server.operations: operation name="x\\n2026 ERROR y: status=200" status=400'
    )


def test_a_client_that_a_proxy_names_cannot_pass_for_a_request(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(Settings(log_level="debug", log_format="text"))
    access = (
        '%s - "%s %s HTTP/%s" %d',
        '10.0.0.1:0 - "GET /admin HTTP/1.1" 200',
        "GET",
        "/?variables=secret",
        "1.1",
        404,
    )
    logging.getLogger("uvicorn.access").info(*access)
    line = capsys.readouterr().err
    assert line.endswith(
        'uvicorn.access: GET / HTTP/1.1 status=404 client="10.0.0.1:0 - \\"GET /admin HTTP/1.1\\" 200"\n'
    )


def test_no_line_has_the_query_string_of_a_websocket(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(Settings(log_level="debug", log_format="text"))
    opened = ('%s - "WebSocket %s" [accepted]', "10.0.0.1:0", "/graphql?token=secret")
    logging.getLogger("uvicorn.error").info(*opened)
    assert capsys.readouterr().err.endswith('uvicorn.error: 10.0.0.1:0 - "WebSocket /graphql" [accepted]\n')


def test_the_level_holds_for_operations(capsys: pytest.CaptureFixture[str]) -> None:
    log = DirectLogger("keygraph_server.operations", Settings(log_level="warning"))
    log.log(logging.INFO, "operation", name="Quiet")
    log.log(logging.WARNING, "operation", name="Loud")
    [line] = capsys.readouterr().err.splitlines()
    assert "Loud" in line


UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u2800\u3164\ufe00\ufe0f\uffa0\U000e0020\U000e0100\U000e01ef"
"""Characters that are not displayed, most of which Python calls printable."""
LONG = st.builds(
    lambda text, times: text * times, st.text(st.characters(), max_size=5), st.sampled_from([1, 180_000])
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@example("\x85\u2028\u202e\x9b31m\x7f\x1b[2J\r\n", "")
@example(UNSEEN, "")
@given(LONG, LONG)
@pytest.mark.parametrize("form", ["json", pytest.param("text", marks=pytest.mark.long)])
def test_no_text_ends_a_line_or_makes_it_long(
    form: LogFormat, capsys: pytest.CaptureFixture[str], text: str, other: str
) -> None:
    configure_logging(Settings(log_format=form))
    logging.getLogger("keygraph").error(
        "failed: %s", text, extra={"of": [other]}, exc_info=ValueError(text, other)
    )
    DirectLogger("keygraph", Settings(log_format=form)).log(
        logging.ERROR, "operation", name=text, variables={other: text}
    )
    written = capsys.readouterr().err
    lines = written.split("\n")
    assert len(lines) == 3
    assert not lines.pop()
    assert all(line.isprintable() and len(line) <= 16_000 for line in lines)
    assert not {*UNSEEN}.intersection(*lines)
    if form == "json":
        failed, operation = map(json.loads, lines)
        assert failed["event"].startswith(f"failed: {text[:40]}")
        if len(text + other) < 1_000:
            assert (operation["name"], operation["variables"]) == (text, {other: text})


def test_of_many_lines_alike_some_are_logged_and_all_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(log_format="json")
    configure_logging(settings)
    [handler] = [each for each in logging.getLogger().handlers if isinstance(each, LogHandler)]
    operations = DirectLogger("operations", settings)
    log = logging.getLogger("keygraph")
    for number in range(1_000):
        operations.log(logging.WARNING, "operation", "UNAVAILABLE", number=number)
        try:
            raise [ValueError, KeyError][number % 2](number)
        except (ValueError, KeyError):
            log.exception("unexpected error %d", number)
    operations.log(logging.ERROR, "operation", "INTERNAL")
    log.warning("something else")
    operations.log(logging.INFO, "operation")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["level"] for line in lines[-3:]] == ["error", "warning", "info"]
    assert len(lines) == 3 * 20 + 3
    handler.repeats.report()
    operations.repeats.report()
    last = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["left_out"]) for line in last] == [
        ("unexpected error 998", 479),
        ("unexpected error 999", 479),
        ("operation", 979),
    ]
    assert last[2]["number"] == 999


def test_all_that_is_written_has_one_form() -> None:
    program = """
import asyncio, logging, threading, warnings
from keygraph_server.logs import configure_logging
from keygraph_server.settings import Settings

class Unraisable:
    def __del__(self):
        raise ValueError("unraisable")

async def fail():
    raise ValueError("task")

async def forget():
    asyncio.create_task(fail())
    await asyncio.sleep(0)

configure_logging(Settings(log_format="json"))
warnings.warn("warning")
thread = threading.Thread(target=[].pop, args=("thread",))
thread.start()
thread.join()
del thread
Unraisable()
asyncio.run(forget())
logging.getLogger("keygraph").error("%d", "not a number")
raise ValueError("uncaught")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 1
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [
        (line["logger"], line["level"], line.get("exception", "").rpartition("\n")[2]) for line in lines
    ] == [
        ("py.warnings", "warning", ""),
        ("keygraph_server.logs", "error", "TypeError: 'str' object cannot be interpreted as an integer"),
        ("keygraph_server.logs", "error", "ValueError: unraisable"),
        ("asyncio", "error", "ValueError: task"),
        ("keygraph", "error", "TypeError: %d format: a real number is required, not str"),
        ("keygraph_server.logs", "critical", "ValueError: uncaught"),
    ]


def test_in_production_the_log_is_json() -> None:
    assert read_settings(env="production").log_format == "json"
    assert read_settings(env="production", log_format="text").log_format == "text"
