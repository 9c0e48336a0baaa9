"""Verifies tokens and reads their claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import jwt

from keygraph_server.auth.keys import Keys, KeyUnknownError

Claims: TypeAlias = Mapping[str, Any]

LONGEST = 8_192
"""In characters. A longer token is refused before it is read."""


class InvalidTokenError(Exception):
    """A token that is not valid, with the reason as a client may know it."""


class Tokens:
    """Verifies tokens (JSON Web Tokens, signed)."""

    def __init__(
        self,
        keys: Keys,
        *,
        algorithms: Sequence[str] = (),
        issuer: str | None = None,
        audience: str | None = None,
        leeway: float = 0.0,
        roles: str = "roles",
    ) -> None:
        """`algorithms` limits those that a key verifies; empty allows all of them. `roles` is the claim with the
        viewer's roles; dots lead into objects."""
        self._keys = keys
        self._algorithms = frozenset(algorithms)
        self._issuer = issuer
        self._audience = audience
        self._leeway = leeway
        self._roles = roles

    async def claims(self, token: str) -> Claims:
        """Returns the claims of a token. Raises InvalidTokenError, or KeysUnavailableError."""
        if len(token) > LONGEST:
            raise InvalidTokenError("the token is too long")
        try:
            key = await self._keys.key(_key_id(token))
            algorithms = [name for name in key.algorithms if not self._algorithms or name in self._algorithms]
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,  # type: ignore[arg-type]  # what `keys` makes are keys
                algorithms,
                {"require": ["exp"], "verify_aud": self._audience is not None},
                audience=self._audience,
                issuer=self._issuer,
                leeway=self._leeway,
            )
        except jwt.ExpiredSignatureError:
            raise InvalidTokenError("the token has expired") from None
        except (jwt.PyJWTError, KeyUnknownError, ValueError, RecursionError):
            raise InvalidTokenError("the token is not valid") from None
        if self._roles != "roles":
            claims["roles"] = _inside(claims, self._roles)
        return claims


def _key_id(token: str) -> str | None:
    found = jwt.get_unverified_header(token).get("kid")
    return found if isinstance(found, str) else None


def _inside(claims: Claims, name: str) -> Any:
    """The claim with this name, which may contain dots itself."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found
