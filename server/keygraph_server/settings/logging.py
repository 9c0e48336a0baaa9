"""How the server logs."""

from __future__ import annotations

from enum import Enum

from pydantic import BaseModel, Field

from keygraph_server.settings.exposure import in_development


class LogLevel(Enum):
    """How much is logged. Each level includes those after it."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(Enum):
    """How the log is written."""

    JSON = "json"
    TEXT = "text"


class LoggingSettings(BaseModel):
    """How the server logs."""

    log_level: LogLevel = Field(
        default=LogLevel.INFO,
        description="`debug` (also logs every request), `info`, `warning` or `error`.",
    )
    log_format: LogFormat = Field(
        default_factory=lambda given: LogFormat.TEXT if in_development(given) else LogFormat.JSON,
        description="`json`, one JSON object per line, or `text`, readable lines. In production: `json`.",
    )
    log_operations: bool = Field(
        default=True,
        description="Whether each operation is logged in one line: its name, hash, cost, duration and error codes.",
    )
    log_variables: bool = Field(
        default=False,
        description="Whether the log line of an operation includes its variables. They can hold personal data.",
    )
