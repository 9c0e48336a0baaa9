"""Who asks: tokens that are valid, those that are not, the keys that verify them, and headers of a gateway."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from starlette.requests import HTTPConnection

from keygraph_server.auth import configured_viewers
from keygraph_server.auth import keys as keys_module
from keygraph_server.auth.keys import FixedKey, KeysUnavailableError, PublishedKeys
from keygraph_server.auth.tokens import LONGEST, Claims, InvalidTokenError, Tokens
from keygraph_server.errors import SettingsError, UnauthenticatedError
from keygraph_server.http.graphql_http import ViewerOf
from keygraph_server.settings import read_settings

SECRET = "a shared secret that is long enough for it"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def pem(key: Any) -> str:
    text: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return text.decode()


def token(
    key: Any = SECRET, algorithm: str = "HS256", headers: dict[str, Any] | None = None, **claims: Any
) -> str:
    whole = {"sub": "12345", "exp": time.time() + 3600, **claims}
    return jwt.encode(
        {name: value for name, value in whole.items() if value is not None}, key, algorithm, headers
    )


class TestTokens:
    @pytest.mark.parametrize(
        ("text", "key", "algorithm"),
        [
            (SECRET, SECRET, "HS256"),
            (SECRET * 2, SECRET * 2, "HS512"),
            (pem(RSA_KEY), RSA_KEY, "RS256"),
            (pem(RSA_KEY), RSA_KEY, "PS384"),
            (pem(EC_KEY), EC_KEY, "ES256"),
            (pem(ED_KEY), ED_KEY, "EdDSA"),
        ],
    )
    async def test_a_valid_token_tells_who_asks(self, text: str, key: Any, algorithm: str) -> None:
        """Nobody could sign in with a key of that kind."""
        claims = await Tokens(FixedKey(text)).claims(token(key, algorithm, roles=["support"]))
        assert (claims["sub"], claims["roles"]) == ("12345", ["support"])

    @pytest.mark.parametrize(
        "given",
        [
            token("another secret that is also long enough"),
            token(exp=None),
            token(nbf=time.time() + 3600),
            token()[:-4] + "AAAA",
            token().rpartition(".")[0] + ".",
            jwt.encode({"sub": "12345", "exp": time.time() + 3600}, None, "none"),
            "",
            ".",
            "a.b.c",
            "é" * 20,
            "[" * 2000,
            base64.urlsafe_b64encode(b"[" * 3000).decode() + ".e30.AAAA",
            "A" * (LONGEST + 1),
        ],
        # The tokens have the time in them, and names of tests must not.
        ids=range(13),
    )
    async def test_a_token_that_is_not_valid_is_nobody(self, given: str) -> None:
        """Whoever wants could be anybody."""
        with pytest.raises(InvalidTokenError):
            await Tokens(FixedKey(SECRET)).claims(given)

    async def test_an_expired_token_is_told_from_others(self) -> None:
        """A client would not know that it should get a new one."""
        tokens = Tokens(FixedKey(SECRET), leeway=5)
        await tokens.claims(token(exp=time.time() - 3))
        with pytest.raises(InvalidTokenError, match="the token has expired"):
            await tokens.claims(token(exp=time.time() - 60))

    async def test_a_public_key_is_no_shared_secret(self) -> None:
        """The key that everybody may know would sign tokens (key confusion)."""
        for key in (RSA_KEY, EC_KEY, ED_KEY):
            text = pem(key)
            header = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=")
            body = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + 60}).encode()).rstrip(b"=")
            signature = hmac.digest(text.encode(), header + b"." + body, hashlib.sha256)
            forged = b".".join([header, body, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()
            with pytest.raises(InvalidTokenError):
                await Tokens(FixedKey(text)).claims(forged)

    async def test_algorithms_that_are_not_allowed(self) -> None:
        """A setting would do nothing."""
        tokens = Tokens(FixedKey(pem(RSA_KEY)), algorithms=["PS256"])
        await tokens.claims(token(RSA_KEY, "PS256"))
        with pytest.raises(InvalidTokenError):
            await tokens.claims(token(RSA_KEY, "RS256"))

    async def test_issuer_and_audience(self) -> None:
        """A token for another service, or of another issuer with the same key, would be accepted."""
        tokens = Tokens(FixedKey(SECRET), issuer="https://one", audience="shop")
        await tokens.claims(token(iss="https://one", aud=["shop", "other"]))
        for claims in (
            {"iss": "https://two", "aud": "shop"},
            {"iss": "https://one", "aud": "x"},
            {"aud": "shop"},
            {},
        ):
            with pytest.raises(InvalidTokenError):
                await tokens.claims(token(**claims))
        await Tokens(FixedKey(SECRET)).claims(token(aud="anything"))

    async def test_roles_may_stand_elsewhere(self) -> None:
        """Roles of Keycloak and Cognito would be nobody's."""
        nested = token(realm_access={"roles": ["support"]})
        assert (await Tokens(FixedKey(SECRET), roles="realm_access.roles").claims(nested))["roles"] == [
            "support"
        ]
        named = token(**{"https://shop.test/roles": ["seller"]})
        assert (await Tokens(FixedKey(SECRET), roles="https://shop.test/roles").claims(named))["roles"] == [
            "seller"
        ]
        assert (await Tokens(FixedKey(SECRET), roles="a.b").claims(token(a="b")))["roles"] is None


class Issuer:
    """Publishes keys on this machine, and counts how often they are fetched."""

    def __init__(self) -> None:
        self.fetched = 0
        self.is_down = False
        self.keys: dict[str, Any] = {}
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.fetched += 1
                self.send_response(500 if issuer.is_down else 200)
                self.end_headers()
                self.wfile.write(json.dumps({"keys": list(issuer.keys.values())}).encode())

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys.json"

    def publish(self, key_id: str, key: Any, **more: Any) -> None:
        algorithm: Any = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
        self.keys[key_id] = {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": key_id, **more}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    made.publish("one", RSA_KEY, alg="RS256")
    made.publish("curve", EC_KEY)
    yield made
    made.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the keys go by, in its only element."""
    now = [1000.0]
    monkeypatch.setattr(keys_module, "monotonic", lambda: now[0])
    return now


def signed(key: Any = RSA_KEY, key_id: str | None = "one", algorithm: str = "RS256") -> str:
    return token(key, algorithm, None if key_id is None else {"kid": key_id})


class TestPublishedKeys:
    async def test_they_are_fetched_once(self, issuer: Issuer) -> None:
        """Each request would ask the issuer, or all of the first second would."""
        tokens = Tokens(PublishedKeys(issuer.url))
        many = [tokens.claims(signed()) for _ in range(20)]
        many += [tokens.claims(signed(EC_KEY, "curve", "ES256")) for _ in range(20)]
        assert {claims["sub"] for claims in await asyncio.gather(*many)} == {"12345"}
        assert issuer.fetched == 1

    async def test_a_new_key_is_fetched_and_invented_ids_are_not(
        self, issuer: Issuer, clock: list[float]
    ) -> None:
        """Tokens would not be valid after keys were changed; or invented ids would make the server ask without end."""
        tokens = Tokens(PublishedKeys(issuer.url))
        await tokens.claims(signed())
        issuer.publish("two", OTHER_RSA_KEY)
        for _ in range(10):
            with pytest.raises(InvalidTokenError):
                await tokens.claims(signed(OTHER_RSA_KEY, "two"))
        assert issuer.fetched == 1
        clock[0] += keys_module.UNKNOWN_SECONDS + 1
        await tokens.claims(signed(OTHER_RSA_KEY, "two"))
        for number in range(10):
            with pytest.raises(InvalidTokenError):
                await tokens.claims(signed(key_id=f"invented {number}"))
        assert issuer.fetched == 2

    async def test_a_key_that_was_withdrawn_verifies_nothing(
        self, issuer: Issuer, clock: list[float]
    ) -> None:
        """A stolen key would be valid for ever."""
        tokens = Tokens(PublishedKeys(issuer.url))
        await tokens.claims(signed())
        issuer.publish("two", OTHER_RSA_KEY)
        del issuer.keys["one"]
        clock[0] += keys_module.FRESH_SECONDS + 1
        await tokens.claims(signed(OTHER_RSA_KEY, "two"))
        with pytest.raises(InvalidTokenError):
            await tokens.claims(signed())

    async def test_known_keys_outlive_an_outage(
        self, issuer: Issuer, clock: list[float], caplog: pytest.LogCaptureFixture
    ) -> None:
        """Nobody could sign in while the issuer restarts."""
        tokens = Tokens(PublishedKeys(issuer.url))
        await tokens.claims(signed())
        issuer.is_down = True
        clock[0] += keys_module.FRESH_SECONDS + 1
        for _ in range(20):
            await tokens.claims(signed())
            clock[0] += 1
            await asyncio.sleep(0.02)
        assert 3 <= issuer.fetched <= 6
        assert len(caplog.messages) == 1

    async def test_an_issuer_that_never_answered(self, issuer: Issuer, clock: list[float]) -> None:
        """A valid token would be called invalid, and a client would throw it away."""
        issuer.is_down = True
        tokens = Tokens(PublishedKeys(issuer.url))
        for _ in range(5):
            with pytest.raises(KeysUnavailableError):
                await tokens.claims(signed())
        assert issuer.fetched == 1
        issuer.is_down = False
        clock[0] += keys_module.RETRY_SECONDS + 1
        await tokens.claims(signed())

    async def test_a_client_that_leaves_stops_no_fetch(self, issuer: Issuer) -> None:
        """All others would fail with it."""
        tokens = Tokens(PublishedKeys(issuer.url))
        first = asyncio.create_task(tokens.claims(signed()))
        second = asyncio.create_task(tokens.claims(signed()))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second)["sub"] == "12345"

    async def test_keys_that_are_for_something_else(self, issuer: Issuer) -> None:
        """A key for encryption, or a secret that was published, would verify tokens."""
        issuer.publish("one", RSA_KEY, use="enc")
        issuer.keys["shared"] = {
            "kty": "oct", "kid": "shared", "alg": "HS256",
            "k": base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
        }  # fmt: skip
        tokens = Tokens(PublishedKeys(issuer.url))
        for given in (signed(), token(SECRET, "HS256", {"kid": "shared"})):
            with pytest.raises(InvalidTokenError):
                await tokens.claims(given)

    async def test_an_only_key_needs_no_id(self, issuer: Issuer) -> None:
        """Small issuers leave it out."""
        del issuer.keys["curve"]
        assert (await Tokens(PublishedKeys(issuer.url)).claims(signed(key_id=None)))["sub"] == "12345"


def connection(*headers: tuple[str, str]) -> HTTPConnection:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    return HTTPConnection({"type": "http", "headers": raw})


async def viewer(viewer_of: ViewerOf | None, *headers: tuple[str, str]) -> Claims:
    assert viewer_of is not None
    found = viewer_of(connection(*headers))
    return found if isinstance(found, dict) else await found  # type: ignore[misc,return-value]


class TestViewers:
    def test_without_a_setting_everybody_is_anonymous(self) -> None:
        """A table that needs no rules would need a token."""
        assert configured_viewers(read_settings()) is None

    async def test_by_token(self) -> None:
        """A token would not be found where clients send it."""
        viewer_of = configured_viewers(read_settings(auth="jwt", jwt_key=SECRET))
        assert await viewer(viewer_of) == {}
        assert (await viewer(viewer_of, ("Authorization", f"bearer  {token()}")))["sub"] == "12345"
        for given in ("Basic YTpi", "Bearer", f"Token {token()}", f"Bearer {token()}x"):
            with pytest.raises(UnauthenticatedError):
                await viewer(viewer_of, ("Authorization", given))
        with pytest.raises(UnauthenticatedError):
            await viewer(viewer_of, *[("Authorization", f"Bearer {token()}")] * 2)

    async def test_by_header(self, caplog: pytest.LogCaptureFixture) -> None:
        """What a gateway has found out would be lost; or nobody would be told that headers are trusted."""
        viewer_of = configured_viewers(
            read_settings(auth="header", auth_headers="X-Id: sub, X-Groups: roles, X-T: tenant")
        )
        assert "x-id, x-groups, x-t" in caplog.text
        found = await viewer(viewer_of, ("X-Id", "7"), ("X-Groups", "support, seller"), ("X-T", " "))
        assert found == {"sub": "7", "roles": ["support", "seller"]}
        # The bytes of "à" in UTF-8 end with what is a space in Latin-1, and those of "é" in Latin-1 are not UTF-8.
        assert await viewer(viewer_of, ("X-Id", " Zoë à "), ("X-Groups", "é,日本")) == {
            "sub": "Zoë à",
            "roles": ["é", "日本"],
        }
        latin = HTTPConnection({"type": "http", "headers": [(b"x-id", "Zoé".encode("latin-1"))]})
        assert viewer_of is not None
        assert viewer_of(latin) == {"sub": "Zoé"}
        with pytest.raises(UnauthenticatedError):
            await viewer(viewer_of, ("X-Id", "7"), ("X-Id", "8"))
        # A header of another name is not the gateway's, however a proxy may write it.
        assert await viewer(viewer_of, ("X_Id", "7")) == {}

    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ({}, "KEYGRAPH_JWT_JWKS_URL"),
            ({"jwt_key": SECRET, "jwt_jwks_url": "https://issuer.test/keys"}, "KEYGRAPH_JWT_KEY"),
            ({"jwt_key": "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----"}, "KEYGRAPH_JWT_KEY"),
            ({"jwt_key": SECRET, "jwt_algorithms": "HS256, none"}, "none"),
            ({"jwt_key": "short"}, "jwt-key"),
            ({"jwt_jwks_url": "file:///etc/passwd"}, "jwt-jwks-url"),
            ({"auth": "header", "auth_headers": "X-User"}, "KEYGRAPH_AUTH_HEADERS"),
            ({"auth": "header", "auth_headers": "X-User: sub, x-user: tenant"}, "KEYGRAPH_AUTH_HEADERS"),
            ({"auth": "header", "auth_headers": '{"sub": "X-User"}'}, "KEYGRAPH_AUTH_HEADERS"),
        ],
    )
    def test_settings_that_cannot_be_used(self, given: dict[str, str], named: str) -> None:
        """The server would start, and be open or closed to everybody."""
        with pytest.raises(SettingsError, match=named):
            configured_viewers(read_settings(**{"auth": "jwt", **given}))
