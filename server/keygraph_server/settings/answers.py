"""How answers are sent."""

from __future__ import annotations

from pydantic import BaseModel, Field


class AnswerSettings(BaseModel):
    """How answers are sent."""

    answer_limit: int = Field(
        default=8_000_000,
        ge=1_000,
        description="The largest answer to an operation, in bytes before compression. A larger one fails with "
        "`ANSWER_LIMIT`.",
    )
    compress_above: int = Field(
        default=1_400,
        ge=0,
        description="Answers above this size, in bytes, are compressed if the client accepts gzip; 0 turns "
        "compression off. Up to 1,400 bytes, an answer fits into one packet either way.",
    )
