"""The viewer of a request: the claims of whoever asks, found as the settings say, or by a function of one's own."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from starlette.requests import HTTPConnection

from keygraph_server.auth.keys import PUBLIC, SHARED, FixedKey, Keys, KeysUnavailableError, PublishedKeys
from keygraph_server.auth.tokens import Claims, InvalidTokenError, Tokens
from keygraph_server.errors import RequestRefusedError, SettingsError, UnauthenticatedError
from keygraph_server.http.graphql_http import ViewerOf
from keygraph_server.settings import Auth, Settings

_log = logging.getLogger(__name__)

_BEARER = "bearer"


def configured_viewers(settings: Settings) -> ViewerOf | None:
    """What finds the viewer by the settings; None where everybody is anonymous. Raises SettingsError."""
    match settings.auth:
        case Auth.JWT:
            return _by_token(_tokens(settings))
        case Auth.HEADER:
            claims = _claims_by_header(settings.auth_headers)
            _log.warning(
                "KEYGRAPH_AUTH=header: these headers are trusted as they come: %s. Only a gateway that sets or removes "
                "them may reach this server.",
                ", ".join(claims),
            )
            return _by_header(claims)
    return None


def _by_token(tokens: Tokens) -> ViewerOf:
    async def viewer_of(request: HTTPConnection) -> Claims:
        given = request.headers.getlist("authorization")
        if not given:
            return {}
        scheme, _, token = given[0].partition(" ")
        if len(given) > 1 or scheme.lower() != _BEARER:
            raise UnauthenticatedError("Authorization must be Bearer with one token")
        try:
            return await tokens.claims(token.strip())
        except InvalidTokenError as error:
            raise UnauthenticatedError(str(error)) from None
        except KeysUnavailableError:
            raise RequestRefusedError(
                "the keys that verify tokens cannot be fetched", 503, "UNAVAILABLE"
            ) from None

    return viewer_of


def _by_header(claims: Mapping[str, str]) -> ViewerOf:
    def viewer_of(request: HTTPConnection) -> Claims:
        found: dict[str, object] = {}
        for header, claim in claims.items():
            values = request.headers.getlist(header)
            if len(values) > 1:
                raise UnauthenticatedError(f"{header} is given several times")
            if values and values[0].strip():
                value = values[0].strip()
                found[claim] = [role.strip() for role in value.split(",")] if claim == "roles" else value
        return found

    return viewer_of


def _tokens(settings: Settings) -> Tokens:
    """What verifies tokens. Raises SettingsError."""
    algorithms = [name.strip() for name in (settings.jwt_algorithms or "").split(",") if name.strip()]
    unknown = [name for name in algorithms if name not in (*SHARED, *PUBLIC)]
    if unknown:
        raise SettingsError(
            f"KEYGRAPH_JWT_ALGORITHMS names {unknown[0]}, which is not accepted",
            f"Choose among {', '.join((*SHARED, *PUBLIC))}",
        )
    return Tokens(
        _keys(settings),
        algorithms=algorithms,
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
        leeway=settings.jwt_leeway,
        roles=settings.jwt_roles,
    )


def _keys(settings: Settings) -> Keys:
    url, key = settings.jwt_jwks_url, settings.jwt_key
    if (url is None) == (key is None):
        raise SettingsError(
            "KEYGRAPH_AUTH=jwt needs one source of keys",
            "Set either KEYGRAPH_JWT_JWKS_URL or KEYGRAPH_JWT_KEY",
        )
    if url is not None:
        return PublishedKeys(url)
    try:
        return FixedKey("" if key is None else key.get_secret_value())
    except ValueError as error:
        raise SettingsError(
            f"KEYGRAPH_JWT_KEY cannot be used: {error}", "Give a public key in PEM, or a shared secret"
        ) from None


def _claims_by_header(text: str) -> dict[str, str]:
    """The claims by the headers that give them, of `X-User: sub, X-Roles: roles`. Raises SettingsError."""
    found: dict[str, str] = {}
    for part in text.split(","):
        header, _, claim = (each.strip() for each in part.partition(":"))
        if not header or not claim or header.lower() in found:
            raise SettingsError(
                f"KEYGRAPH_AUTH_HEADERS cannot be used: {part.strip() or 'a part is empty'}",
                'Write it as "X-User: sub, X-Roles: roles"',
            )
        found[header.lower()] = claim
    return found
