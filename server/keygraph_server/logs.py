"""Logging: to standard error, one line per record, as JSON or as text. Configured only here.

All records look alike: those of `logging`, warnings, errors that nobody has caught, and the lines of operations, which
`DirectLogger` writes. They have the id of the request that they belong to. What a client sends can neither end a line,
nor make it long, nor hide a part of it; and what goes wrong a thousand times is a few lines.
"""

from __future__ import annotations

import json
import logging
import logging.config
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Hashable
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, TypeAlias, TypeVar

import orjson

from keygraph.kept import kept
from keygraph_server.errors import printable
from keygraph_server.http.requests import REQUEST_ID
from keygraph_server.settings import LogFormat, Settings

_log = logging.getLogger(__name__)

Line = TypeVar("Line")
Fields: TypeAlias = dict[str, Any]
Render: TypeAlias = Callable[[Fields], str]

_OWN = ("keygraph", "keygraph_resolvers", "keygraph_server")
_PLAIN = re.compile(r"[\w.:;,/+-]+")
_LONGEST_LINE = 16_000
"""In characters. Docker and others cut lines after 16 KB."""
_LONGEST_VALUES = (4_000, 800, 100)
"""The values of a longer line are cut to the first of these lengths that makes it short enough."""
_FIRST = 20
"""How many warnings and errors of one kind are logged at first."""
_NEXT_SECONDS = 30.0
"""How long until one more is logged."""
_COUNTED_SECONDS = 60.0
"""How long lines are counted before the log says how many are left out."""
_MOST_KINDS = 1_000
_LEVELS = {logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}
_PLACED = frozenset({"timestamp", "level", "logger", "event", "request_id", "exception"})
"""The fields that stand at the same place in each line of text."""
_LONGEST_KEPT = 200
"""In characters."""
_OF_WEBSOCKET = '%s - "WebSocket %s"'
"""How uvicorn's line begins that says who has opened a WebSocket."""
_OF_EVERY_RECORD = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "color_message"})
"""The attributes of records that are no fields of a line. uvicorn's `color_message` is its message once more."""


def configure_logging(settings: Settings) -> None:
    """Logs the server's records from the level up, warnings of libraries, and with `debug` every request."""
    level = settings.log_level
    own = level.upper()
    others = "ERROR" if level == "error" else "WARNING"
    loggers: dict[str, dict[str, Any]] = {name: {"level": own} for name in _OWN}
    # uvicorn warns of errors in requests, and informs of starts and stops. A host application may have set its log up.
    loggers["uvicorn"] = {"level": own if level == "debug" else others, "propagate": True}
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"lines": {"()": LineFormatter, "form": settings.log_format}},
            "handlers": {"stderr": {"()": LogHandler, "formatter": "lines"}},
            "loggers": loggers,
            "root": {"level": others, "handlers": ["stderr"]},
        }
    )
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught_error
    # A host of the application may have set its own.
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _log_thread_error
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _log_unraisable_error


def _log_uncaught_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, Exception):
        _log.critical("the process ends because of an unexpected error", exc_info=(kind, error, trace))
    else:
        sys.__excepthook__(kind, error, trace)


def _log_thread_error(thrown: threading.ExceptHookArgs) -> None:
    if thrown.exc_type is not SystemExit:
        _log.error("a thread ends because of an unexpected error", exc_info=thrown.exc_value)


def _log_unraisable_error(thrown: sys.UnraisableHookArgs) -> None:
    _log.error("unexpected error in %r", thrown.object, exc_info=thrown.exc_value)


class Repeats(Generic[Line]):
    """Passes the first lines of each kind, then two a minute, and counts the others."""

    def __init__(self, write: Callable[[Line, int], None]) -> None:
        """`write` gets the last line of a kind that was left out, and how many were left out before it."""
        self._write = write
        self._allowed: dict[Hashable, tuple[float, float]] = {}
        """How many lines of a kind may be logged, and since when."""
        self._left_out: dict[Hashable, tuple[Line, int]] = {}

    def passes(self, kind: Hashable) -> bool:
        """Whether a line of this kind is to be logged now."""
        now = time.monotonic()
        if len(self._allowed) >= _MOST_KINDS:
            self._allowed.clear()
        allowed, since = self._allowed.get(kind, (_FIRST, now))
        allowed = min(_FIRST, allowed + (now - since) / _NEXT_SECONDS)
        passes = allowed >= 1
        self._allowed[kind] = (allowed - passes, now)
        return passes

    def leave_out(self, kind: Hashable, line: Line) -> None:
        """Counts a line that does not pass. In a minute the log says how many there were."""
        if not self._left_out:
            timer = threading.Timer(_COUNTED_SECONDS, self.report)
            timer.daemon = True
            timer.start()
        if len(self._left_out) >= _MOST_KINDS:
            kind = None
        _, before = self._left_out.get(kind, (None, -1))
        self._left_out[kind] = (line, before + 1)

    def report(self) -> None:
        """Writes the last line of each kind that was left out."""
        left_out, self._left_out = self._left_out, {}
        for line, before in left_out.values():
            self._write(line, before)


class LineFormatter(logging.Formatter):
    """Makes a line of a record, with what its `extra` gave."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._render = _json if form == "json" else _as_text

    def format(self, record: logging.LogRecord) -> str:
        fields: Fields = {
            "event": record.getMessage(),
            "logger": record.name,
            **{name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD},
            "level": record.levelname.lower(),
            "timestamp": _timestamp(record.created),
        }
        if record.name == "uvicorn.access" and record.args:
            # A proxy may pass on any text as the client.
            client, method, target, version, fields["status"] = record.args
            # The query string of a GET has the document and its variables.
            path = str(target).partition("?")[0]
            fields |= {"event": f"{method} {path} HTTP/{version}", "client": client}
        elif str(record.msg).startswith(_OF_WEBSOCKET) and isinstance(record.args, tuple):
            client, target, *rest = record.args
            fields["event"] = record.msg % (client, str(target).partition("?")[0], *rest)
        _add_request_id(fields)
        if record.exc_info and record.exc_info[0]:
            fields["exception"] = self.formatException(record.exc_info)
        return _line(self._render, fields)


class LogHandler(logging.Handler):
    """Writes records to standard error, and of many alike only a few."""

    def __init__(self) -> None:
        super().__init__()
        self.repeats = Repeats[logging.LogRecord](self._write_last)

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the record, or counts it."""
        try:
            kind = _kind_of(record)
            if record.levelno < logging.WARNING or self.repeats.passes(kind):
                sys.stderr.write(f"{self.format(record)}\n")
            else:
                # The error is not kept: it holds everything that there was when it was raised.
                record.msg, record.args, record.exc_info = record.getMessage(), None, None
                self.repeats.leave_out(kind, record)
        except Exception:
            self.handleError(record)

    def _write_last(self, record: logging.LogRecord, before: int) -> None:
        record.left_out = before
        sys.stderr.write(f"{self.format(record)}\n")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # the name that logging calls
        """Writes why the record cannot be written. `logging` itself prints many lines."""
        with suppress(Exception):
            broken = "a record of %s:%d cannot be logged"
            record.msg, record.args = broken, (record.pathname, record.lineno)
            record.exc_info = sys.exc_info()
            sys.stderr.write(f"{self.format(record)}\n")


def _kind_of(record: logging.LogRecord) -> Hashable:
    """Where a record is logged, and where its error was raised."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return record.name, record.pathname, record.lineno
    lines = [line for _, line in traceback.walk_tb(error.__traceback__)]
    return record.name, record.pathname, record.lineno, type(error), *lines[-1:]


class DirectLogger:
    """Writes fields as a line, as records are written, in a third of the time that `logging` takes (timeit): each
    operation is logged."""

    def __init__(self, name: str, settings: Settings) -> None:
        self._name = name
        self._level: int = getattr(logging, settings.log_level.upper())
        self._render = _json if settings.log_format == "json" else _as_text
        self.repeats = Repeats[Fields](self._write_last)

    def log(self, level: int, event: str, kind: Hashable = None, **fields: Any) -> None:
        """Logs fields with a level of `logging`. Of many lines of one kind only some are logged, unless that is None."""
        if level < self._level:
            return
        fields["logger"] = self._name
        fields["event"] = event
        fields["level"] = _LEVELS[level]
        fields["timestamp"] = _timestamp(time.time())
        _add_request_id(fields)
        if kind is None or self.repeats.passes(kind):
            self._write(fields)
        else:
            self.repeats.leave_out(kind, fields)

    def _write(self, fields: Fields) -> None:
        sys.stderr.write(f"{_line(self._render, fields)}\n")

    def _write_last(self, fields: Fields, before: int) -> None:
        self._write({**fields, "left_out": before})


def _add_request_id(fields: Fields) -> None:
    request_id = REQUEST_ID.get()
    if request_id is not None:
        fields["request_id"] = request_id


# --- The text of a line ------------------------------------------------------------------------------


def _line(render: Render, fields: Fields) -> str:
    """The fields as one line, without characters that end it or change how it is displayed, and not too long."""
    line = render(fields)
    if len(line) <= _LONGEST_LINE and line.isascii() and "\x7f" not in line:
        # Most lines. Both renderers escape all other control characters.
        return line
    for size in _LONGEST_VALUES:
        if len(line) <= _LONGEST_LINE and len(line := printable(line)) <= _LONGEST_LINE:
            return line
        line = render({name: _cut(value, size) for name, value in fields.items()})
    return printable(line)


def _cut(value: Any, size: int) -> Any:
    """The value, or the beginning and the end of its text."""
    text = value if isinstance(value, str) else _json(value)
    if len(text) <= size:
        return value
    return f"{text[: size // 2]} … {len(text) - size:,} characters … {text[-size // 2 :]}"


def _as_text(fields: Fields) -> str:
    parts = [
        printable(f"{fields['timestamp']} {fields['level'].upper()} {fields['logger']}: {fields['event']}")
    ]
    for key, value in fields.items():
        if key in _PLACED:
            continue
        if isinstance(value, str):
            parts.append(f" {key}={_quoted(value) if len(value) <= _LONGEST_KEPT else _json(value)}")
        elif isinstance(value, int | float):
            parts.append(f" {key}={value}")
        elif value is not None and value != []:
            parts.append(f" {key}={_json(value)}")
    if "request_id" in fields:
        parts.append(f" request_id={fields['request_id']}")
    if "exception" in fields:
        parts.append(printable(f"\n{fields['exception']}"))
    return "".join(parts)


@kept("log-values", 256, 3 * _LONGEST_KEPT)
def _quoted(value: str) -> str:
    """A short value in a line of text: quoted if it could be misread."""
    return value if _PLAIN.fullmatch(value) else _json(value)


def _timestamp(seconds: float) -> str:
    whole = int(seconds)
    return f"{_second(whole)}.{int((seconds - whole) * 1e6):06}Z"


@kept("log-seconds", 2, 100)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:
        # orjson refuses integers of more than 64 bits, and texts that are not valid Unicode.
        return json.dumps(value, default=str)
