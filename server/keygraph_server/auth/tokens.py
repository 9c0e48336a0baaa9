"""Identifies the viewer of a request by its token: verifies it, and reads its claims."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeAlias

import jwt
import orjson
from starlette.requests import HTTPConnection

from keygraph.codes import Code
from keygraph.dynamo.items import ExactFloat
from keygraph_server.auth.keys import PUBLIC, SHARED, FixedKey, KeysUnavailableError, PublishedKeys
from keygraph_server.errors import RequestRefusedError, SettingsError, UnauthenticatedError
from keygraph_server.http.graphql_http import ViewerOf
from keygraph_server.settings import Settings

Claims: TypeAlias = Mapping[str, Any]

LONGEST = 8_192
"""In characters. A longer token is refused before it is read."""
_BEARER = "bearer"
_CHOOSE = f"Choose among {', '.join((*SHARED, *PUBLIC))}"


class InvalidTokenError(Exception):
    """A token that is not valid, with the reason as a client may know it."""


class _ExactTokens(jwt.PyJWT):
    """Reads claims with all digits of their numbers."""

    def _decode_payload(self, decoded: dict[str, Any]) -> dict[str, Any]:
        super()._decode_payload(decoded)  # refuses what is no object
        payload: bytes = decoded["payload"]
        # orjson reads neither numbers without an end nor half of a surrogate pair, and writes nothing nested deeper than
        # 254 levels: what hashes claims calls itself at each.
        orjson.dumps(orjson.loads(payload))
        claims: dict[str, Any] = json.loads(payload, parse_float=ExactFloat)
        return claims


_TOKENS = _ExactTokens()


@dataclass(frozen=True)
class Tokens:
    """Verifies tokens (JSON Web Tokens, signed)."""

    keys: FixedKey | PublishedKeys
    _: KW_ONLY
    algorithms: Collection[str] = ()
    """Limits those that a key verifies; empty allows all of them."""
    issuer: str | None = None
    audience: str | None = None
    leeway: float = 0.0
    roles: str = "roles"
    """The claim with the viewer's roles; dots lead into objects."""

    async def claims(self, token: str) -> Claims:
        """Returns the claims of a token. Raises InvalidTokenError, or KeysUnavailableError."""
        if len(token) > LONGEST:
            raise InvalidTokenError("the token is too long")
        try:
            header = jwt.get_unverified_header(token)
            key_id = header.get("kid")
            key = await self.keys.key(key_id if isinstance(key_id, str) else None, header["alg"])
            algorithms = [name for name in key.algorithms if not self.algorithms or name in self.algorithms]
            claims: dict[str, Any] = _TOKENS.decode(
                token,
                key.key,  # type: ignore[arg-type]  # what `keys` makes are keys
                algorithms,
                {"require": ["exp"], "verify_aud": self.audience is not None},
                audience=self.audience,
                issuer=self.issuer,
                leeway=self.leeway,
            )
            if not isinstance(claims["exp"], int | float):
                raise ValueError("PyJWT takes texts, too")
        except jwt.ExpiredSignatureError:
            raise InvalidTokenError("the token has expired") from None
        except KeysUnavailableError:
            raise
        except Exception:  # PyJWT raises others than its own for claims and headers of odd types
            raise InvalidTokenError("the token is not valid") from None
        if self.roles != "roles":
            claims["roles"] = _inside(claims, self.roles)
        return claims


def _inside(claims: Claims, name: str) -> Any:
    """The claim with this name, which may contain dots itself."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


# --- Of a request -------------------------------------------------------------------------------------


def viewers_by_token(settings: Settings) -> ViewerOf:
    """Returns a function that finds the viewer in the token of a request. Raises SettingsError."""
    tokens = _tokens(settings)

    async def viewer_of(request: HTTPConnection) -> Claims:
        given = request.headers.getlist("authorization")
        if not any(given):  # many clients without a token send an empty text
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
    if settings.jwt_algorithms is not None and not algorithms:
        raise SettingsError("KEYGRAPH_JWT_ALGORITHMS names no algorithm", _CHOOSE)
    unknown = [name for name in algorithms if name not in (*SHARED, *PUBLIC)]
    if unknown:
        raise SettingsError(
            f"KEYGRAPH_JWT_ALGORITHMS names {unknown[0]}, which is not accepted",
            _CHOOSE,
        )
    keys = _keys(settings)
    if algorithms and not set(algorithms) & set(keys.algorithms):
        raise SettingsError(
            f"KEYGRAPH_JWT_ALGORITHMS allows {', '.join(algorithms)}, which the keys do not verify",
            f"Choose among {', '.join(keys.algorithms)}",
        )
    return Tokens(
        keys,
        algorithms=algorithms,
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
        leeway=settings.jwt_leeway,
        roles=settings.jwt_roles,
    )


def _keys(settings: Settings) -> FixedKey | PublishedKeys:
    url, key = settings.jwt_jwks_url, settings.jwt_key
    if (url is None) == (key is None):
        fix = "Set either KEYGRAPH_JWT_JWKS_URL or KEYGRAPH_JWT_KEY"
        raise SettingsError("KEYGRAPH_AUTH=jwt needs one source of keys", fix)
    if url is not None:
        return PublishedKeys(url)
    try:
        return FixedKey("" if key is None else key.get_secret_value())
    except ValueError as error:
        raise SettingsError(
            f"KEYGRAPH_JWT_KEY cannot be used: {error}", "Give a public key in PEM, or a shared secret"
        ) from None
