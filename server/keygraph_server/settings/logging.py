"""What is logged."""

from __future__ import annotations

from enum import Enum

from pydantic import BaseModel, Field


class LogLevel(Enum):
    """How much is logged. Each level includes those after it."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LoggingSettings(BaseModel):
    """What is logged."""

    log_level: LogLevel = Field(
        default=LogLevel.INFO,
        description="`debug` (also logs every request), `info`, `warning` or `error`.",
    )
