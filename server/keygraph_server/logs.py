"""Logging: to standard error, one line per record, configured only here."""

from __future__ import annotations

import logging
import logging.config

from keygraph_server.settings import LogLevel

_OWN = ("keygraph", "keygraph_resolvers", "keygraph_server")


class OneLine(logging.Formatter):
    """Formats a record and its traceback as one line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).replace("\r", "\\r").replace("\n", "\\n")


def configure_logging(level: LogLevel) -> None:
    """Log the server's records from this level up, warnings of libraries, and with `debug` every request."""
    own = level.value.upper()
    others = "ERROR" if level is LogLevel.ERROR else "WARNING"
    loggers = {name: {"level": own} for name in _OWN}
    # uvicorn warns of errors in requests, and informs about every start and stop.
    loggers["uvicorn"] = {"level": own if level is LogLevel.DEBUG else others}
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"one line": {"()": OneLine}},
            "handlers": {
                "stderr": {
                    "class": "logging.StreamHandler",
                    "formatter": "one line",
                    "stream": "ext://sys.stderr",
                }
            },
            "loggers": loggers,
            "root": {"level": others, "handlers": ["stderr"]},
        }
    )
