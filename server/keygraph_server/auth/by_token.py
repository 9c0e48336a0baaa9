"""Identifies the viewer of a request by its token, with the settings for tokens and their keys."""

from __future__ import annotations

from starlette.requests import HTTPConnection

from keygraph.codes import Code
from keygraph_server.auth.keys import PUBLIC, SHARED, FixedKey, Keys, KeysUnavailableError, PublishedKeys
from keygraph_server.auth.tokens import Claims, InvalidTokenError, Tokens
from keygraph_server.errors import RequestRefusedError, SettingsError, UnauthenticatedError
from keygraph_server.http.graphql_http import ViewerOf
from keygraph_server.settings import Settings

_BEARER = "bearer"


def viewers_by_token(settings: Settings) -> ViewerOf:
    """Returns a function that finds the viewer in the token of a request. Raises SettingsError."""
    tokens = _tokens(settings)

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
                "the keys that verify tokens cannot be fetched", 503, Code.UNAVAILABLE
            ) from None

    return viewer_of


def _tokens(settings: Settings) -> Tokens:
    """Returns the verifier of tokens. Raises SettingsError."""
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
