"""The viewer of a request: their claims, found as the settings say, or by a user's function."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

from starlette.requests import HTTPConnection

from keygraph.access.claims import Claims
from keygraph_server.errors import SettingsError, UnauthenticatedError
from keygraph_server.http.graphql_http import ViewerOf
from keygraph_server.http.requests import header_text
from keygraph_server.settings import Settings, environment_name

_log = logging.getLogger(__name__)


def configured_viewers(settings: Settings) -> ViewerOf | None:
    """Returns the function that finds the viewer; None if everybody is anonymous. Raises SettingsError."""
    for name, field in Settings.model_fields.items():
        needs = "jwt" if name.startswith("jwt_") else "header"
        is_set = name.startswith(("jwt_", "auth_")) and getattr(settings, name) != field.default
        if is_set and settings.auth != needs:
            # Without it, this server would take everybody for anonymous, or believe a header.
            problem = f"{environment_name(name)} is set, but KEYGRAPH_AUTH is {settings.auth}"
            raise SettingsError(problem, f"Set KEYGRAPH_AUTH={needs}, or remove the setting")
    match settings.auth:
        case "jwt":
            # Imported on use: the token libraries take a twentieth of the server's start.
            from keygraph_server.auth.tokens import viewers_by_token

            return viewers_by_token(settings)
        case "header":
            claims = _claims_by_header(settings.auth_headers)
            _log.warning(
                "KEYGRAPH_AUTH=header: these headers are trusted as they come: %s. Only a gateway that sets or removes "
                "them may reach this server.",
                ", ".join(claims),
            )
            return _by_header(claims)
    return None


def _by_header(claims: Mapping[str, str]) -> ViewerOf:
    fields = {header.encode(): claim for header, claim in claims.items()}

    def viewer_of(request: HTTPConnection) -> Claims:
        found: dict[str, object] = {}
        for field, claim in fields.items():
            values = [header_text(value) for name, value in request.headers.raw if name == field]
            if len(values) > 1:
                raise UnauthenticatedError(f"{field.decode()} is given several times")
            if values and values[0]:
                value = values[0]
                found[claim] = [role.strip() for role in value.split(",")] if claim == "roles" else value
        return found

    return viewer_of


_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The characters of a header name (RFC 9110, 5.6.2)."""
_OF_HTTP = re.compile(
    "host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|proxy-.*|content-.*"
)
"""Every request, or its connection, has these for itself: they say nothing of its client."""
_CLAIM = re.compile(r"[^\s\"'{}\[\]]+")


def _claims_by_header(text: str) -> dict[str, str]:
    """The claims by header, from `X-User: sub, X-Roles: roles`. Raises SettingsError."""
    found: dict[str, str] = {}
    for part in text.split(","):
        header, _, claim = (each.strip() for each in part.partition(":"))
        is_repeated = header.lower() in found or claim in found.values()
        if (
            not _HEADER.fullmatch(header)
            or not _CLAIM.fullmatch(claim)
            or is_repeated
            or _OF_HTTP.fullmatch(header.lower())
        ):
            raise SettingsError(
                f"KEYGRAPH_AUTH_HEADERS cannot be used: {part.strip() or 'a part is empty'}",
                'Write it as "X-User: sub, X-Roles: roles"',
            )
        found[header.lower()] = claim
    return found
