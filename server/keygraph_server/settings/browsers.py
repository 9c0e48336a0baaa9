"""What pages in browsers may do, and what caches may store."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, field_validator

from keygraph_server.http.origins import Origins
from keygraph_server.settings.exposure import in_development

_LOCAL = "http://localhost:*, http://127.0.0.1:*"


def _default_origins(given: dict[str, Any]) -> str:
    return _LOCAL if in_development(given) else "none"


class BrowserSettings(BaseModel):
    """What pages in browsers may do, and what caches may store."""

    cors_origins: str = Field(
        default_factory=_default_origins,
        description="The origins whose pages may use this server, separated by commas: `https://shop.example.com`, "
        "`https://*.example.com`, `http://localhost:*` for every port, `*` for all, or `none`. Pages from "
        "this server's own address need no entry. In production: `none`.",
    )
    cache_control: str = Field(
        default="no-store",
        pattern=r"^[\x21-\x7e]+([ ]+[\x21-\x7e]+)*$",
        description="The `Cache-Control` of answers to GET that have no errors, such as `public, max-age=60`. All "
        "other answers are `no-store`, and so is every answer if the server authenticates its clients.",
    )

    @field_validator("cors_origins")
    @classmethod
    def _check_origins(cls, value: str) -> str:
        Origins.of(value)
        return value
