"""Which documents are executed."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field


class Accepted(Enum):
    """Which documents the server executes."""

    ANY = "any"
    TRUSTED = "trusted"
    TRUSTED_AND_AUTOMATIC = "trusted-and-automatic"


def _default(given: dict[str, Any]) -> Accepted:
    return Accepted.TRUSTED if given.get("trusted_documents") else Accepted.ANY


class DocumentSettings(BaseModel):
    """Which documents are executed."""

    trusted_documents: Path | None = Field(
        default=None,
        description="The file of trusted documents: from `keygraph trust`, or Apollo's or Relay's persisted documents.",
    )
    documents: Accepted = Field(
        default_factory=_default,
        description="Which documents are executed, one of `any`, `trusted` (only those in `KEYGRAPH_TRUSTED_DOCUMENTS`), or "
        "`trusted-and-automatic` (also automatic persisted queries). If `KEYGRAPH_TRUSTED_DOCUMENTS` is set, the default is `trusted`.",
    )
    persisted_bytes: int = Field(
        default=1_000_000,
        ge=0,
        description="How many bytes of automatic persisted queries each process keeps; 0 turns them off.",
    )
