"""How answers are sent."""

from __future__ import annotations

from pydantic import BaseModel, Field


class AnswerSettings(BaseModel):
    """How answers are sent."""

    compress_above: int = Field(
        default=1_400,
        ge=0,
        description="Answers above this size, in bytes, are compressed if the client accepts gzip; 0 turns "
        "compression off. Up to 1,400 bytes, an answer fits into one packet either way.",
    )
