"""Logging: to standard error, one line per record, as JSON or as text. Configured only here.

Records of the standard library's `logging` and those of operations look alike. Both have the id of the request that
they belong to.
"""

from __future__ import annotations

import json
import logging
import logging.config
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Lock
from typing import Any, BinaryIO, TypeAlias

import orjson

from keygraph_server.http.request_ids import REQUEST_ID
from keygraph_server.settings import LogFormat, LoggingSettings, LogLevel

Render: TypeAlias = Callable[[dict[str, Any]], bytes]
"""A line from its fields, without its end."""

_OWN = ("keygraph", "keygraph_resolvers", "keygraph_server")
_PLAIN = re.compile(r"[\w.:;,/+-]+")
_OF_EVERY_RECORD = logging.makeLogRecord({}).__dict__.keys() | {"message", "asctime", "taskName"}
"""What is no field that somebody has given with `extra`."""


def configure_logging(settings: LoggingSettings) -> None:
    """Log the server's records from the level up, warnings of libraries, and with `debug` every request."""
    level = settings.log_level
    own = level.value.upper()
    others = "ERROR" if level is LogLevel.ERROR else "WARNING"
    loggers = {name: {"level": own} for name in _OWN}
    # uvicorn warns of errors in requests, and informs about every start and stop.
    loggers["uvicorn"] = {"level": own if level is LogLevel.DEBUG else others}
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"lines": {"()": lambda: _Lines(_render_of(settings))}},
            "handlers": {
                "stderr": {
                    "class": "logging.StreamHandler",
                    "formatter": "lines",
                    "stream": "ext://sys.stderr",
                }
            },
            "loggers": loggers,
            "root": {"level": others, "handlers": ["stderr"]},
        }
    )


class _Lines(logging.Formatter):
    """Writes a record of the standard library's `logging` as the lines of operations are written."""

    def __init__(self, render: Render) -> None:
        super().__init__()
        self._render = render

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record, with the fields that were given as `extra`."""
        given = {name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD}
        fields = {
            "event": record.getMessage(),
            "logger": record.name,
            **given,
            "level": record.levelname.lower(),
            "timestamp": datetime.now(UTC),
        }
        if (request_id := REQUEST_ID.get()) is not None:
            fields["request_id"] = request_id
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return self._render(fields).decode()


class DirectLogger:
    """Writes lines of fields at once: `logging` takes three times as long (timeit of `log_lines`)."""

    def __init__(self, name: str, level: int, render: Render, stream: BinaryIO) -> None:
        """Lines below the level are not written."""
        self._name = name
        self._level = level
        self._render = render
        self._stream = stream
        self._writing = Lock()

    def info(self, event: str, **fields: Any) -> None:
        """Something that happens all the time."""
        if self._level <= logging.INFO:
            self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Something that somebody should look at."""
        if self._level <= logging.WARNING:
            self._write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """Something that is wrong."""
        self._write("error", event, fields)

    def _write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        fields["logger"] = self._name
        fields["event"] = event
        fields["level"] = level
        fields["timestamp"] = datetime.now(UTC)
        request_id = REQUEST_ID.get()
        if request_id is not None:
            fields["request_id"] = request_id
        line = self._render(fields) + b"\n"
        with self._writing:
            self._stream.write(line)
            self._stream.flush()


def direct_logger(name: str, settings: LoggingSettings) -> DirectLogger:
    """A logger that takes fields."""
    level = getattr(logging, settings.log_level.name)
    return DirectLogger(name, level, _render_of(settings), sys.stderr.buffer)


def _render_of(settings: LoggingSettings) -> Render:
    return _as_json if settings.log_format is LogFormat.JSON else _as_text


def _as_json(fields: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(fields, default=str, option=orjson.OPT_UTC_Z)
    except TypeError:
        fields["timestamp"] = _moment(fields["timestamp"])
        return _json(fields).encode("utf-8", "replace")


def _moment(when: datetime) -> str:
    return when.isoformat().replace("+00:00", "Z")


def _as_text(fields: dict[str, Any]) -> bytes:
    head = f"{_moment(fields.pop('timestamp'))} {fields.pop('level').upper()} {fields.pop('logger')}: {fields.pop('event')}"
    trace = fields.pop("exception", None)
    told = [f" {key}={_shown(value)}" for key, value in fields.items() if value is not None and value != []]
    if trace is not None:
        told.append(f"\n{trace}")
    line = "".join([head, *told]).replace("\r", "\\r").replace("\n", "\\n")
    return line.encode("utf-8", "replace")


def _shown(value: Any) -> str:
    """A value in a line of text: quoted if it could be misread."""
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return str(value) if isinstance(value, int | float) else _json(value)


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:
        # orjson refuses integers of more than 64 bits, and texts that are not valid Unicode.
        return json.dumps(value, default=str)
