"""The keys that verify tokens: a fixed one, or those that the issuer publishes (JWKS).

A key decides which algorithms it verifies. So no token's header can make a public key a shared secret.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
from base64 import b64decode
from binascii import unhexlify
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from time import monotonic
from typing import Any, TypeAlias
from urllib.error import HTTPError
from urllib.parse import unquote_to_bytes
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt import PyJWK

from keygraph.daemon_thread import in_daemon_thread

_log = logging.getLogger(__name__)

_SHARED = {"HS256": 32, "HS384": 48, "HS512": 64}
"""The least length of a secret, in bytes (RFC 7518, 3.2)."""
SHARED = (*_SHARED,)
_RSA_BITS = 2_048
"""The least size of an RSA key (RFC 7518, 3.3)."""
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES = {
    "secp256r1": ("ES256",),
    "secp384r1": ("ES384",),
    "secp521r1": ("ES512",),
    "secp256k1": ("ES256K",),
}
_EDWARDS = ("EdDSA",)
_EDWARDS_FIELDS = {
    32: (2**255 - 19, 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7),
    57: (2**448 - 2**224 - 1, 0),
}
"""The prime of Ed25519 and of Ed448, by the bytes of a key, and the y of a point of order 8, if there is one."""
PUBLIC = (*_RSA, *(name for names in _CURVES.values() for name in names), *_EDWARDS)

FRESH_SECONDS = 300.0
"""How long published keys are used before they are fetched again."""
RETRY_SECONDS = 5.0
"""How long after a fetch the next one is tried, if it failed or for an unknown key id. Made-up ids cause little load."""
FETCH_SECONDS = 5.0
"""How long a fetch may take, to the last byte."""
MOST_BYTES = 1_000_000
"""A larger document has not only keys in it."""

_PUBLIC_KEY = re.compile(
    rb"PUBLIC KEY ?-|CERTIFICATE-|\bkty\W{1,9}(RSA|EC|OKP|oct)|ssh-(rsa|dss|ed25519)|ecdsa-sha2-"
    rb"|\x2a\x86\x48\x86\xf7\x0d\x01\x01[\x01\x0a]|\x2a\x86\x48\xce[\x38\x3d]|\x06\x03\x2b\x65[\x6e-\x71]"
    rb"|0[\x81\x82]..?\x02[\x81\x82].*\x02(\x03\x01\x01|\x01[\x03\x11])",
    re.DOTALL,
)
"""What is in public keys: in PEM, as a JWK or of SSH; in DER the identifiers of RSA, DSA, elliptic curves and Edwards
curves, or two numbers, of which one is a usual exponent of RSA (RFC 8017, A.1.1). There are no zero bytes in it."""

_PUBLIC_MEMBERS = ("kty", "kid", "use", "key_ops", "alg", "crv", "n", "e", "x", "y")
"""What is read of a published key: to make the primes of a private one takes minutes."""
_LONGEST_MEMBER = 3_000
"""In characters: 16,384 bits of an RSA key, the most that OpenSSL takes."""


class KeysUnavailableError(Exception):
    """The keys could not be fetched, and no known key has the id that a token names."""


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """A key and the algorithms that it verifies."""

    key: object
    algorithms: Sequence[str]


PublicKeys: TypeAlias = dict[tuple[str | None, str], VerifyingKey]
"""Keys by their ids and algorithms: keys of several kinds may have one id (RFC 7517, 4.5)."""


class FixedKey:
    """One key for all tokens: a public key in PEM, or a shared secret."""

    def __init__(self, text: str) -> None:
        """Raises ValueError if the text looks like PEM and is no public key, or is a public key that is not in PEM."""
        length = len(text.encode())
        self._key = VerifyingKey(text, [name for name, least in _SHARED.items() if length >= least])
        if "-----BEGIN" in text:
            try:
                public = load_pem_public_key(text.encode())
            except (ValueError, UnsupportedAlgorithm):
                raise ValueError("it is not a public key in PEM") from None
            self._key = VerifyingKey(public, _algorithms_of(public))
        elif _is_public_key(text.encode()):
            raise ValueError("it is a public key that is not in PEM")
        self.algorithms = self._key.algorithms

    async def key(self, key_id: str | None, algorithm: str) -> VerifyingKey:
        return self._key


def _is_public_key(text: bytes, decodings: int = 2) -> bool:
    """Whether there is a public key or a certificate in a text, which may be encoded more than once."""
    text = unquote_to_bytes(text).replace(b"\0", b"")  # of UTF-16
    if _PUBLIC_KEY.search(text):
        return True
    standard = re.sub(rb"\\+[rn]", b"", text).translate(bytes.maketrans(b"-_", b"+/"))
    for other, size, decode in (rb"[^A-Za-z0-9+/]", 4, b64decode), (rb"[^0-9A-Fa-f]", 2, unhexlify):
        digits = re.sub(other, b"", standard) + b"A" * size
        # The key begins at one of these places, whatever stands before it.
        for start in range(size if decodings else 0):
            end = len(digits) - (len(digits) - start) % size
            if _is_public_key(decode(digits[start:end]), decodings - 1):
                return True
    return False


def _algorithms_of(key: object) -> Sequence[str]:
    match key:
        case RSAPublicKey():
            if key.key_size < _RSA_BITS:
                raise ValueError(
                    f"an RSA key needs at least {_RSA_BITS:,} bits, and this has {key.key_size:,}"
                )
            return _RSA
        case EllipticCurvePublicKey(curve=curve) if curve.name in _CURVES:
            return _CURVES[curve.name]
        case Ed25519PublicKey() | Ed448PublicKey():
            point = key.public_bytes_raw()
            prime, eighth = _EDWARDS_FIELDS[len(point)]
            y = int.from_bytes(point, "little") % (1 << 8 * len(point) - 1) % prime
            if y in {0, 1, prime - 1, eighth, prime - eighth}:
                raise ValueError("anybody can sign for a key of small order, such as one of zeros")
            return _EDWARDS
    raise ValueError("tokens are not verified with a key of this kind")


class PublishedKeys:
    """The keys that an issuer publishes. One fetch serves all who wait for it; known keys outlive an outage."""

    algorithms = PUBLIC

    def __init__(self, url: str) -> None:
        self._url = url
        self._keys: PublicKeys = {}
        self._fetched = self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._until = 0.0
        """When the fetch must be done, by the loop's time."""
        self._has_failed = False

    async def key(self, key_id: str | None, algorithm: str) -> VerifyingKey:
        """The key with an id for an algorithm. Raises LookupError if there is none, or KeysUnavailableError."""
        name = key_id, algorithm
        found = self._keys.get(name)
        now = monotonic()
        is_stale = now - self._fetched > FRESH_SECONDS
        if self._fetching is None and (found is None or is_stale) and now - self._tried > RETRY_SECONDS:
            self._tried = now
            self._until = asyncio.get_running_loop().time() + FETCH_SECONDS
            self._fetching = asyncio.create_task(self._fetch())
        # Requests with a known key do not wait; a client that disconnects does not stop the fetch for the others.
        if found is None and self._fetching is not None:
            left = self._until - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait({self._fetching}, timeout=max(0.0, left))
            found = self._keys.get(name)
            if found is None and not done:
                raise KeysUnavailableError
        if found is None:
            raise KeysUnavailableError if self._has_failed else LookupError(name)
        return found

    async def _fetch(self) -> None:
        connecting = _Connecting()
        fetching = in_daemon_thread(_published, self._url, connecting)
        try:
            left = FETCH_SECONDS
            while not (await asyncio.wait({fetching}, timeout=left))[0]:
                connecting.cut()
                left = 1.0
            self._keys = fetching.result()
        except Exception as error:  # whatever is wrong with the issuer's answer: the known keys stay in use
            if not self._has_failed:
                reason = str(error) or type(error).__name__
                _log.warning("the keys of the tokens' issuer cannot be fetched: %s", reason)
            self._has_failed = True
        else:
            if self._has_failed:
                _log.info("the keys of the tokens' issuer can be fetched again")
            self._has_failed = False
            self._fetched = monotonic()
        finally:
            connecting.cut()
            self._fetching = None


# --- What an issuer publishes -------------------------------------------------------------------------


class _Connecting(HTTPHandler, HTTPSHandler):
    """Opens a connection that another thread can cut."""

    _socket: socket.socket | None = None
    is_cut = False

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(self._made(HTTPConnection), req)

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(self._made(HTTPSConnection), req)

    def _made(self, kind: Any) -> Any:
        connecting = self

        class CuttableConnection(kind):  # type: ignore[misc]  # one of two
            def __setattr__(self, name: str, value: Any) -> None:
                super().__setattr__(name, value)
                # urllib takes it away from the connection before it reads the body.
                if name == "sock" and value is not None:
                    connecting._socket = value

        return CuttableConnection

    def cut(self) -> None:
        """Ends whatever is read from the connection. Before it is made, and while TLS begins, timeouts hold."""
        self.is_cut = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


class _NoRedirects(HTTPRedirectHandler):
    """Makes a redirect an error: it could lead into the server's own network."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _published(url: str, connecting: _Connecting) -> PublicKeys:
    """Returns the keys at the URL. Raises ValueError, or any error of the connection."""
    document = bytearray()
    try:
        with build_opener(connecting, _NoRedirects).open(url, timeout=FETCH_SECONDS) as response:
            while part := response.read1(65_536):
                document += part
                if len(document) > MOST_BYTES:
                    raise ValueError(f"the answer is larger than {MOST_BYTES:,} bytes")
                if connecting.is_cut:
                    raise ValueError(f"the answer takes longer than {FETCH_SECONDS:g} seconds")
    except HTTPError as error:
        with error:
            raise ValueError(f"the answer has the status {error.code}") from None
    # No key needs a number, and an odd one, or an odd text, would hide all keys.
    text = document.decode("utf-8-sig", "replace")
    found = _verifying(json.loads(text, parse_int=str, parse_float=str, parse_constant=str))
    if not found:
        raise ValueError("the answer has no key that verifies tokens")
    return found


def _verifying(published: Any) -> PublicKeys:
    """The public signature keys. A single key also serves tokens without a key id."""
    found: PublicKeys = {}
    odd: list[str] = []
    for each in published["keys"]:
        try:
            public = {name: each[name] for name in _PUBLIC_MEMBERS if name in each}
            if any(len(str(value)) > _LONGEST_MEMBER for value in public.values()):
                raise ValueError("a part of it is too long")
            key = PyJWK.from_dict(public)
            algorithms = _algorithms_of(key.key) if "verify" in [*each.get("key_ops", ["verify"])] else ()
        except Exception as error:  # one odd key must not hide the others, and PyJWT checks little of it
            odd.append(str(error) or type(error).__name__)
            continue
        is_for_tokens = key.public_key_use in ("sig", None) and key.algorithm_name in algorithms
        if is_for_tokens and isinstance(key.key_id, str | None):
            found[key.key_id, key.algorithm_name] = VerifyingKey(key, (key.algorithm_name,))
    if odd:
        _log.warning("%d keys of the tokens' issuer are left out, one of them because: %s", len(odd), odd[0])
    if len(found) == 1:
        [((_, algorithm), only)] = found.items()
        found[None, algorithm] = only
    return found
