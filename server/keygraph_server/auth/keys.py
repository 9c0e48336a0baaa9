"""The keys that verify tokens: a fixed one, or those that the issuer publishes (JWKS).

A key decides which algorithms it verifies. So no token's header can make a public key a shared secret.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt import PyJWK, PyJWKClient, PyJWTError

_log = logging.getLogger(__name__)

_SHARED = {"HS256": 32, "HS384": 48, "HS512": 64}
"""The least length of a secret, in bytes (RFC 7518, 3.2)."""
SHARED = (*_SHARED,)
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES = {
    "secp256r1": ("ES256",),
    "secp384r1": ("ES384",),
    "secp521r1": ("ES512",),
    "secp256k1": ("ES256K",),
}
_EDWARDS = ("EdDSA",)
PUBLIC = (*_RSA, *(name for names in _CURVES.values() for name in names), *_EDWARDS)

FRESH_SECONDS = 300.0
"""How long published keys are used before they are fetched again."""
UNKNOWN_SECONDS = 60.0
"""How long an unknown key id waits for the next fetch, so that made-up ids cause no load."""
RETRY_SECONDS = 5.0
"""How long after a failed fetch the next one is tried."""
_TIMEOUT_SECONDS = 5.0


class KeyUnknownError(Exception):
    """No key has the id that a token names."""


class KeysUnavailableError(Exception):
    """The keys could not be fetched, and none are known."""


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """A key and the algorithms that it verifies."""

    key: object
    algorithms: Sequence[str]


class Keys(Protocol):
    """Finds the key of a token."""

    async def key(self, key_id: str | None) -> VerifyingKey:
        """The key with an id. Raises KeyUnknownError or KeysUnavailableError."""


class FixedKey:
    """One key for all tokens: a public key in PEM, or a shared secret."""

    def __init__(self, text: str) -> None:
        """Raises ValueError if the text looks like PEM and is no public key."""
        length = len(text.encode())
        self._key = VerifyingKey(text, [name for name, least in _SHARED.items() if length >= least])
        if "-----BEGIN" in text:
            try:
                public = load_pem_public_key(text.encode())
            except (ValueError, UnsupportedAlgorithm):
                raise ValueError("it is not a public key in PEM") from None
            self._key = VerifyingKey(public, _algorithms_of(public))

    async def key(self, key_id: str | None) -> VerifyingKey:
        return self._key


def _algorithms_of(key: object) -> Sequence[str]:
    match key:
        case RSAPublicKey():
            return _RSA
        case EllipticCurvePublicKey(curve=curve):
            return _CURVES.get(curve.name, ())
        case Ed25519PublicKey() | Ed448PublicKey():
            return _EDWARDS
    raise ValueError("tokens are not verified with a key of this kind")


class PublishedKeys:
    """The keys that an issuer publishes. One fetch serves all who wait for it; known keys outlive an outage."""

    def __init__(self, url: str) -> None:
        self._client = PyJWKClient(url, cache_jwk_set=False, timeout=_TIMEOUT_SECONDS)
        self._keys: dict[str | None, VerifyingKey] = {}
        self._fetched = self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._has_failed = False

    async def key(self, key_id: str | None) -> VerifyingKey:
        found = self._keys.get(key_id)
        now = monotonic()
        is_stale = now - self._fetched > FRESH_SECONDS
        wait = RETRY_SECONDS if is_stale or self._has_failed else UNKNOWN_SECONDS
        if self._fetching is not None or ((found is None or is_stale) and now - self._tried > wait):
            if self._fetching is None:
                self._tried = now
                self._fetching = asyncio.create_task(self._fetch())
            # Requests with a known key do not wait; a client that disconnects does not stop the fetch for the others.
            if found is None:
                await asyncio.shield(self._fetching)
                found = self._keys.get(key_id)
        if found is None:
            raise KeyUnknownError if self._keys else KeysUnavailableError
        return found

    async def _fetch(self) -> None:
        try:
            published = await asyncio.to_thread(self._client.get_jwk_set)
        except (PyJWTError, ValueError, OSError) as error:
            if not self._has_failed:
                _log.warning("the keys of the tokens' issuer cannot be fetched: %s", error)
            self._has_failed = True
        else:
            if self._has_failed:
                _log.info("the keys of the tokens' issuer can be fetched again")
            self._has_failed = False
            self._fetched = monotonic()
            self._keys = _verifying(published.keys)
        finally:
            self._fetching = None


def _verifying(published: Sequence[PyJWK]) -> dict[str | None, VerifyingKey]:
    """The public signature keys, by their ids. A single key also serves tokens without a key id."""
    found: dict[str | None, VerifyingKey] = {}
    for each in published:
        if each.public_key_use in ("sig", None) and each.algorithm_name in PUBLIC:
            found[each.key_id] = VerifyingKey(each, (each.algorithm_name,))
    if len(found) == 1:
        found[None] = next(iter(found.values()))
    return found
