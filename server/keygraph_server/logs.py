"""Logging: to standard error, one line per record, as JSON or as text. Configured only here.

Records of the standard library's `logging` and of structlog look alike. Both have the id of the request that they
belong to.
"""

from __future__ import annotations

import json
import logging
import logging.config
import re
import sys
from datetime import UTC, datetime
from typing import Any

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from keygraph_server.http.request_ids import REQUEST_ID
from keygraph_server.settings import LogFormat, LoggingSettings, LogLevel

_OWN = ("keygraph", "keygraph_resolvers", "keygraph_server")
_PLAIN = re.compile(r"[\w.:;,/+-]+")


def configure_logging(settings: LoggingSettings) -> None:
    """Logs the server's records from the level up, warnings of libraries, and with `debug` every request."""
    level = settings.log_level
    own = level.value.upper()
    others = "ERROR" if level is LogLevel.ERROR else "WARNING"
    loggers: dict[str, dict[str, Any]] = {name: {"level": own} for name in _OWN}
    # uvicorn warns of errors in requests, and informs of starts and stops. A host application may have set its log up.
    loggers["uvicorn"] = {"level": own if level is LogLevel.DEBUG else others, "propagate": True}
    shown = structlog.stdlib.ProcessorFormatter
    lines = {
        "()": shown,
        "foreign_pre_chain": [structlog.stdlib.add_logger_name, structlog.stdlib.ExtraAdder()],
        "processors": [shown.remove_processors_meta, *_processors(settings.log_format)],
    }
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"lines": lines},
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


def _as_json_bytes(fields: EventDict) -> bytes:
    try:
        return orjson.dumps(fields, default=str, option=orjson.OPT_UTC_Z)
    except TypeError:
        fields["timestamp"] = fields["timestamp"].isoformat().replace("+00:00", "Z")
        return _json(fields).encode("utf-8", "replace")


class DirectLogger(structlog.BoundLoggerBase):
    """A structlog logger whose methods write their line at once, without a chain of processors: each operation is
    logged, and a chain takes three times as long (timeit of `log_lines`)."""

    level = logging.INFO
    """Lines below it are not written."""
    render = staticmethod(_as_json_bytes)

    def info(self, event: str, **fields: Any) -> None:
        """Logs something that happens all the time."""
        if self.level <= logging.INFO:
            self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Logs something that needs attention."""
        if self.level <= logging.WARNING:
            self._write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """Logs something that is wrong."""
        self._write("error", event, fields)

    def _write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        fields |= self._context
        fields["event"] = event
        fields["level"] = level
        fields["timestamp"] = datetime.now(UTC)
        request_id = REQUEST_ID.get()
        if request_id is not None:
            fields["request_id"] = request_id
        self._logger.msg(self.render(fields))


class _DirectTextLogger(DirectLogger):
    @staticmethod
    def render(fields: EventDict) -> bytes:
        fields["timestamp"] = fields["timestamp"].isoformat().replace("+00:00", "Z")
        return _as_text(None, "", fields).encode("utf-8", "replace")


def direct_logger(name: str, settings: LoggingSettings) -> DirectLogger:
    """Returns a logger that takes fields and writes its line itself: `logging` takes three times as long (timeit)."""
    kind = DirectLogger if settings.log_format is LogFormat.JSON else _DirectTextLogger
    made: DirectLogger = structlog.wrap_logger(
        structlog.BytesLogger(sys.stderr.buffer), processors=[], wrapper_class=kind
    ).bind(logger=name)
    made.level = getattr(logging, settings.log_level.name)
    return made


def _processors(form: LogFormat) -> list[Processor]:
    return [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_request_id,
        structlog.processors.format_exc_info,
        _as_json if form is LogFormat.JSON else _as_text,
    ]


def _add_request_id(logger: WrappedLogger, method: str, fields: EventDict) -> EventDict:
    request_id = REQUEST_ID.get()
    if request_id is not None:
        fields["request_id"] = request_id
    return fields


def _as_json(logger: WrappedLogger, method: str, fields: EventDict) -> str:
    return _json(fields)


def _as_text(logger: WrappedLogger, method: str, fields: EventDict) -> str:
    head = f"{fields.pop('timestamp')} {fields.pop('level').upper()} {fields.pop('logger')}: {fields.pop('event')}"
    trace = fields.pop("exception", None)
    told = [f" {key}={_shown(value)}" for key, value in fields.items() if value is not None and value != []]
    if trace is not None:
        told.append(f"\n{trace}")
    return "".join([head, *told]).replace("\r", "\\r").replace("\n", "\\n")


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
