"""How the viewer of a request is identified."""

from __future__ import annotations

from enum import Enum

from pydantic import BaseModel, Field, SecretStr


class Auth(Enum):
    """How the viewer is identified."""

    NONE = "none"
    JWT = "jwt"
    HEADER = "header"


class AccessSettings(BaseModel):
    """How the viewer of a request is identified."""

    auth: Auth = Field(
        default=Auth.NONE,
        description="How clients are authenticated, one of `none` (everybody is anonymous), `jwt` (a bearer token in "
        "`Authorization`) or `header` (headers that a gateway sets). Model rules with `viewer(…)` and `role=` use it.",
    )
    jwt_jwks_url: str | None = Field(
        default=None,
        pattern="^https?://",
        description="The URL of the issuer's public keys (JWKS). The server fetches them when they are needed, again "
        "every five minutes, and after an unknown key id, at most once a minute.",
    )
    jwt_key: SecretStr | None = Field(
        default=None,
        min_length=32,
        description="The key that verifies tokens, instead of a JWKS URL: a public key in PEM, or a shared secret of "
        "at least 32 characters.",
    )
    jwt_algorithms: str | None = Field(
        default=None,
        description="The algorithms that tokens may be signed with, separated by commas. If unset, the algorithms that "
        "fit the key. Public keys never verify `HS…` tokens, and `none` is never accepted.",
    )
    jwt_issuer: str | None = Field(
        default=None,
        description="The issuer (`iss`) that tokens must name. If unset, it is not checked.",
    )
    jwt_audience: str | None = Field(
        default=None,
        description="The audience (`aud`) that tokens must name. If unset, it is not checked.",
    )
    jwt_leeway: float = Field(
        default=10.0,
        ge=0,
        le=300,
        description="By how many seconds the issuer's clock may differ from the server's.",
    )
    jwt_roles: str = Field(
        default="roles",
        min_length=1,
        description="The claim that has the viewer's roles; a dot selects a member of an object (`realm_access.roles`).",
    )
    auth_headers: str = Field(
        default="X-User: sub, X-Roles: roles",
        description="With `header`, the headers to trust, each with the claim that it sets. Roles are separated by "
        "commas. The gateway must set or remove each of these headers in every request.",
    )
