"""The viewer of a request: their claims, found as the settings say, or by a user's function."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

from starlette.requests import HTTPConnection

from keygraph.access.claims import Claims
from keygraph_server.errors import SettingsError, UnauthenticatedError
from keygraph_server.http.graphql_http import ViewerOf
from keygraph_server.http.header_values import header_text
from keygraph_server.settings import Auth, Settings

_log = logging.getLogger(__name__)


def configured_viewers(settings: Settings) -> ViewerOf | None:
    """Returns the function that finds the viewer; None if everybody is anonymous. Raises SettingsError."""
    match settings.auth:
        case Auth.JWT:
            # Imported on use: the token libraries take a twentieth of the server's start.
            from keygraph_server.auth.by_token import viewers_by_token

            return viewers_by_token(settings)
        case Auth.HEADER:
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
_CLAIM = re.compile(r"[^\s\"'{}\[\]]+")


def _claims_by_header(text: str) -> dict[str, str]:
    """The claims by header, from `X-User: sub, X-Roles: roles`. Raises SettingsError."""
    found: dict[str, str] = {}
    for part in text.split(","):
        header, _, claim = (each.strip() for each in part.partition(":"))
        if not _HEADER.fullmatch(header) or not _CLAIM.fullmatch(claim) or header.lower() in found:
            raise SettingsError(
                f"KEYGRAPH_AUTH_HEADERS cannot be used: {part.strip() or 'a part is empty'}",
                'Write it as "X-User: sub, X-Roles: roles"',
            )
        found[header.lower()] = claim
    return found
