"""Who asks: tokens that are valid, those that are not, the keys that verify them, and headers of a gateway."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt import PyJWK
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from starlette.requests import HTTPConnection

from keygraph.access.claims import Viewer, attribute_of_claim
from keygraph.keys.types import FieldType
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
SMALL_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=1024)
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


def raw_token(claims: str, header: str = '{"alg": "HS256", "typ": "JWT"}') -> str:
    parts = [base64.urlsafe_b64encode(part.encode()).rstrip(b"=") for part in (header, claims)]
    signature = hmac.digest(SECRET.encode(), b".".join(parts), hashlib.sha256)
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


async def refused(tokens: Tokens, given: str, error: type[Exception] = InvalidTokenError) -> None:
    """Holds that a token is refused."""
    with pytest.raises(error):
        await tokens.claims(given)


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
        claims = await Tokens(FixedKey(text)).claims(token(key, algorithm, roles=["support"]))
        assert (claims["sub"], claims["roles"]) == ("12345", ["support"])

    async def test_a_claim_has_all_its_digits(self) -> None:
        texts = ("0.10000000000000000000000000000000000001", "0.10000000000000000000000000000000000002")
        payload = f'{{"exp": {time.time() + 3600}, "share": %s}}'
        found = [await Tokens(FixedKey(SECRET)).claims(raw_token(payload % text)) for text in texts]
        stored = [attribute_of_claim(FieldType("decimal"), claims["share"]) for claims in found]
        assert stored == [Decimal(text) for text in texts]
        assert (
            Viewer(found[0] | {"sub": None}).identity
            != Viewer(found[1] | {"sub": None}).identity
            == Viewer(found[1] | {"sub": None, "exp": 1}).identity
        )
        one, other = (Viewer(claims | {"sub": "12345"}) for claims in found)
        assert one.identity == other.identity
        assert one.identity != Viewer(found[0] | {"sub": "12345", "iss": "another"}).identity

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
        await refused(Tokens(FixedKey(SECRET)), given)

    @pytest.mark.parametrize(
        "claims",
        [
            '"exp": 1e999', '"exp": -1e999', '"exp": NaN', '"exp": []', '"exp": {}', '"exp": null', '"exp": "1e999"', '"exp": "9000000000"',
            '"exp": 9e9, "nbf": 1e999', '"exp": 9e9, "nbf": [1]', '"exp": 9e9, "iat": Infinity', '"exp": 9e9, "iat": {}',
            '"exp": 9e9, "age": 1e999', '"exp": 9e9, "age": [{"a": NaN}]', f'"exp": {"9" * 5000}',
            '"exp": 9e9, "sub": 5', '"exp": 9e9, "sub": "\\ud800"', '"exp": 9e9, "a": ' + "[" * 2500 + "]" * 2500,
            '"exp": 9e9, "a": ' + '{"a": ' * 255 + "1" + "}" * 255,
        ],
    )  # fmt: skip
    async def test_odd_claims_are_nobodys(self, claims: str) -> None:
        await refused(Tokens(FixedKey(SECRET)), raw_token("{" + claims + "}"))

    @pytest.mark.parametrize(
        "header",
        [
            '"alg": []',
            '"alg": 5',
            '"alg": null',
            '"alg": "HS256", "kid": ["one"]',
            '"alg": "HS256", "crit": 5',
        ],
    )
    async def test_odd_headers_are_nobodys(self, header: str) -> None:
        await refused(Tokens(FixedKey(SECRET)), raw_token('{"exp": 9e9}', "{" + header + "}"))

    async def test_an_expired_token_is_told_from_others(self) -> None:
        tokens = Tokens(FixedKey(SECRET), leeway=5)
        await tokens.claims(token(exp=time.time() - 3))
        with pytest.raises(InvalidTokenError, match="the token has expired"):
            await tokens.claims(token(exp=time.time() - 60))

    async def test_a_public_key_is_no_shared_secret(self) -> None:
        for key in (RSA_KEY, EC_KEY, ED_KEY):
            text = pem(key)
            header = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=")
            body = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + 60}).encode()).rstrip(b"=")
            signature = hmac.digest(text.encode(), header + b"." + body, hashlib.sha256)
            forged = b".".join([header, body, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()
            await refused(Tokens(FixedKey(text)), forged)

    def test_a_public_key_in_another_form_is_no_shared_secret(self) -> None:
        for key in (RSA_KEY, EC_KEY, ED_KEY):
            public = key.public_key()
            ssh = public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
            der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            lines = "\n".join(pem(key).splitlines()[1:-1])
            jwk = b'{"crv": "P-256", "kty": "EC"}'
            for text in (
                base64.urlsafe_b64encode(der).decode().rstrip("="),
                f"key={lines}",
                quote(lines),
                lines.replace("\n", "\\r\\n"),
                ssh.split()[1],
                f'from="10.0.0.1" {ssh} somebody@host\n',
                f" {jwk.decode()} ",
                *(each.hex(":") for each in (der, jwk)),
                *(
                    base64.b64encode(each).decode()
                    for each in (jwk, lines.encode(), pem(key).encode("utf-16"))
                ),
            ):
                with pytest.raises(ValueError, match="a public key that is not in PEM"):
                    FixedKey(text)
        for secret in (base64.b64encode(SECRET.encode()).decode(), f"[{SECRET}", f"{{{SECRET}"):
            assert FixedKey(secret).algorithms[0] == "HS256"

    def test_a_small_rsa_key_verifies_nothing(self) -> None:
        with pytest.raises(ValueError, match="needs at least 2,048 bits, and this has 1,024"):
            FixedKey(pem(SMALL_RSA_KEY))

    async def test_algorithms_that_are_not_allowed(self) -> None:
        tokens = Tokens(FixedKey(pem(RSA_KEY)), algorithms=["PS256"])
        await tokens.claims(token(RSA_KEY, "PS256"))
        await refused(tokens, token(RSA_KEY, "RS256"))

    async def test_issuer_and_audience(self) -> None:
        tokens = Tokens(FixedKey(SECRET), issuer="https://one", audience="shop")
        await tokens.claims(token(iss="https://one", aud=["shop", "other"]))
        for claims in (
            {"iss": "https://two", "aud": "shop"},
            {"iss": "https://one", "aud": "x"},
            {"aud": "shop"},
            {},
        ):
            await refused(tokens, token(**claims))
        await Tokens(FixedKey(SECRET)).claims(token(aud="anything"))

    async def test_roles_may_stand_elsewhere(self) -> None:
        nested = token(realm_access={"roles": ["support"]})
        assert (await Tokens(FixedKey(SECRET), roles="realm_access.roles").claims(nested))["roles"] == [
            "support"
        ]
        named = token(**{"https://shop.test/roles": ["seller"]})
        assert (await Tokens(FixedKey(SECRET), roles="https://shop.test/roles").claims(named))["roles"] == [
            "seller"
        ]
        assert (await Tokens(FixedKey(SECRET), roles="a.b").claims(token(a="b")))["roles"] is None


ODD_KEYS: list[Any] = [
    {"kty": "RSA", "kid": "odd", "alg": "none", "n": "AQAB", "e": "AQAB"},
    {"kty": "RSA", "kid": ["one"], "alg": "RS256", "n": "AQAB", "e": "AQAB"},
    {"kty": "RSA", "kid": {"a": 1}, "alg": ["RS256"], "n": 5, "e": None},
    {"kty": "RSA", "kid": "odd", "n": "A", "e": "A"},
    {"kty": "RSA", "kid": "odd", "n": "é" * 5000, "e": []},
    {"kty": "EC", "kid": "odd", "crv": "P-256", "x": "AA", "y": "AA"},
    {"kty": "EC", "kid": "odd", "crv": ["P-256"], "x": [], "y": {}},
    {"kty": "OKP", "kid": "odd", "crv": "Ed25519", "x": "AA"},
    *({"kty": "OKP", "kid": "odd", "crv": "Ed25519", "x": x.ljust(43, "A")} for x in ("", "AQ", "xxdqcD1N2E-6PAt2DRBnDyogU_osOczGTsf9d5KsA3o")),
    {"kty": "OKP", "kid": "odd", "crv": "Ed448", "x": "A" * 76},
    {"kty": "oct", "kid": "odd", "alg": "HS256", "k": "c2VjcmV0"},
    {"kty": "quantum", "kid": "odd"},
    {**RSAAlgorithm.to_jwk(SMALL_RSA_KEY.public_key(), as_dict=True), "kid": "odd", "alg": "RS256"},
    {"kty": ["RSA"], "kid": "odd", "alg": {"a": []}},
    {"kid": "odd"},
    {}, [], None, 5, "key", [[]], True, float("nan"), 10**400, "\ud800", {"kid": "\ud800"}, {"kid": float("inf")},
]  # fmt: skip
GOOD = json.dumps(
    {"keys": [{**RSAAlgorithm.to_jwk(RSA_KEY.public_key(), as_dict=True), "kid": "one"}]}
).encode()
NO_KEYS: list[tuple[int, bytes]] = [
    *((200, body) for body in (b"", b"{", b"[]", b"null", b"{}", b'{"keys": 5}', b'{"keys": []}', b'{"keys": {"a": 1}}', b"\xff")),
    (200, b"[" * 100_000), (200, b'{"keys": [NaN]}'), (200, b" " * 1_000_000 + GOOD), (200, gzip.compress(GOOD)),
    (302, GOOD), (307, GOOD), (204, b""), (404, GOOD), (500, GOOD),
]  # fmt: skip
"""What an issuer answers that has no keys in it that are to be used: status and body."""


def send(status: int, body: bytes, handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(status)
    handler.send_header("Location", "/keys.json?again")
    handler.end_headers()
    handler.wfile.write(body)


def trickle(head: bytes, handler: BaseHTTPRequestHandler) -> None:
    """Answers byte by byte, without an end."""
    handler.wfile.write(head)
    while True:
        handler.wfile.write(b" ")
        time.sleep(0.02)


class Issuer:
    """Publishes keys on this machine, and counts how often they are fetched."""

    def __init__(self) -> None:
        self.fetched = 0
        self.is_down = False
        self.keys: dict[str, Any] = {}
        self.answer: Callable[[BaseHTTPRequestHandler], None] = self.answer_keys
        self.cut = threading.Event()
        """Set when a client has gone before the answer was whole."""
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.fetched += 1
                try:
                    issuer.answer(self)
                except ConnectionError:
                    issuer.cut.set()

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys.json"

    def answer_keys(self, handler: BaseHTTPRequestHandler) -> None:
        send(500 if self.is_down else 200, json.dumps({"keys": list(self.keys.values())}).encode(), handler)

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
        tokens = Tokens(PublishedKeys(issuer.url))
        many = [tokens.claims(signed()) for _ in range(20)]
        many += [tokens.claims(signed(EC_KEY, "curve", "ES256")) for _ in range(20)]
        assert {claims["sub"] for claims in await asyncio.gather(*many)} == {"12345"}
        assert issuer.fetched == 1

    async def test_a_new_key_is_fetched_and_invented_ids_are_not(
        self, issuer: Issuer, clock: list[float]
    ) -> None:
        tokens = Tokens(PublishedKeys(issuer.url))
        await tokens.claims(signed())
        issuer.publish("two", OTHER_RSA_KEY)
        for _ in range(10):
            await refused(tokens, signed(OTHER_RSA_KEY, "two"))
        assert issuer.fetched == 1
        clock[0] += keys_module.RETRY_SECONDS + 1
        await tokens.claims(signed(OTHER_RSA_KEY, "two"))
        for number in range(10):
            await refused(tokens, signed(key_id=f"invented {number}"))
        assert issuer.fetched == 2

    async def test_a_key_that_was_withdrawn_verifies_nothing(
        self, issuer: Issuer, clock: list[float]
    ) -> None:
        tokens = Tokens(PublishedKeys(issuer.url))
        await tokens.claims(signed())
        issuer.publish("two", OTHER_RSA_KEY)
        del issuer.keys["one"]
        clock[0] += keys_module.FRESH_SECONDS + 1
        await tokens.claims(signed(OTHER_RSA_KEY, "two"))
        await refused(tokens, signed())

    async def test_known_keys_outlive_an_outage(
        self, issuer: Issuer, clock: list[float], caplog: pytest.LogCaptureFixture
    ) -> None:
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
        issuer.is_down = True
        tokens = Tokens(PublishedKeys(issuer.url))
        for _ in range(5):
            await refused(tokens, signed(), KeysUnavailableError)
        assert issuer.fetched == 1
        issuer.is_down = False
        clock[0] += keys_module.RETRY_SECONDS + 1
        await tokens.claims(signed())

    async def test_a_client_that_leaves_stops_no_fetch(self, issuer: Issuer) -> None:
        tokens = Tokens(PublishedKeys(issuer.url))
        first = asyncio.create_task(tokens.claims(signed()))
        second = asyncio.create_task(tokens.claims(signed()))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second)["sub"] == "12345"

    async def test_keys_that_are_for_something_else(self, issuer: Issuer) -> None:
        issuer.keys["shared"] = {
            "kty": "oct", "kid": "shared", "alg": "HS256",
            "k": base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
        }  # fmt: skip
        for other in ({"use": "enc"}, {"use": "sig", "key_ops": ["encrypt"]}, {"key_ops": "no verify"}):
            issuer.publish("one", RSA_KEY, **other)
            tokens = Tokens(PublishedKeys(issuer.url))
            for given in (signed(), token(SECRET, "HS256", {"kid": "shared"})):
                await refused(tokens, given)

    async def test_an_only_key_needs_no_id(self, issuer: Issuer) -> None:
        """Small issuers leave it out."""
        del issuer.keys["curve"]
        assert (await Tokens(PublishedKeys(issuer.url)).claims(signed(key_id=None)))["sub"] == "12345"

    async def test_an_odd_key_hides_no_other(self, issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
        good = issuer.keys
        for odd in ODD_KEYS:
            issuer.keys = {"odd": odd, **good, "odd too": odd}
            tokens = Tokens(PublishedKeys(issuer.url))
            assert (await tokens.claims(signed()))["sub"] == "12345", odd
            assert (await tokens.claims(signed(EC_KEY, "curve", "ES256")))["sub"] == "12345", odd
            assert caplog.messages.count(caplog.messages[-1]) == 1
            assert caplog.messages[-1].startswith("2 keys of the tokens' issuer are left out")
            caplog.clear()
            for key_id in ("odd", "None", "['one']"):
                await refused(tokens, signed(key_id=key_id))

    async def test_keys_of_two_kinds_may_have_one_id(self, issuer: Issuer) -> None:
        issuer.publish("the same", EC_KEY, kid="one")
        tokens = Tokens(PublishedKeys(issuer.url))
        for given in (signed(), signed(EC_KEY, "one", "ES256")):
            assert (await tokens.claims(given))["sub"] == "12345"

    async def test_only_a_short_public_key_is_read(
        self, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without its primes, the private part of a key of 60,000 bits would take minutes."""
        read, from_dict = list[dict[str, Any]](), PyJWK.from_dict
        monkeypatch.setattr(PyJWK, "from_dict", lambda each: read.append(each) or from_dict(each))
        issuer.publish("private", OTHER_RSA_KEY, d="AQAB")
        issuer.publish("long", OTHER_RSA_KEY, n="AQAB" * 1_000)
        tokens = Tokens(PublishedKeys(issuer.url))
        assert (await tokens.claims(signed(OTHER_RSA_KEY, "private")))["sub"] == "12345"
        assert [each["kid"] for each in read] == ["one", "curve", "private"]
        assert not any("d" in each for each in read)

    async def test_what_is_no_set_of_keys_is_an_outage(self, issuer: Issuer, clock: list[float]) -> None:
        for status, body in NO_KEYS:
            issuer.answer, issuer.fetched = issuer.answer_keys, 0
            known, unknown = Tokens(PublishedKeys(issuer.url)), Tokens(PublishedKeys(issuer.url))
            await known.claims(signed())
            issuer.answer = partial(send, status, body)
            clock[0] += keys_module.FRESH_SECONDS + 1
            for _ in range(3):
                assert (await known.claims(signed()))["sub"] == "12345"
                await refused(unknown, signed(), KeysUnavailableError)
                # A new key may be among those that cannot be fetched.
                await refused(known, signed(key_id="new"), KeysUnavailableError)
            assert issuer.fetched == 3, body

    @pytest.mark.parametrize(
        "head",
        [
            b"HTTP/1.1 200 OK\r\nX-Slow: ",
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Slow: ",
        ],
    )
    async def test_an_answer_that_trickles_has_one_deadline(
        self, issuer: Issuer, clock: list[float], monkeypatch: pytest.MonkeyPatch, head: bytes
    ) -> None:
        known, unknown = Tokens(PublishedKeys(issuer.url)), Tokens(PublishedKeys(issuer.url))
        await known.claims(signed())
        monkeypatch.setattr(keys_module, "FETCH_SECONDS", 0.2)
        issuer.answer = partial(trickle, head)
        clock[0] += keys_module.FRESH_SECONDS + 1
        waiting = [asyncio.create_task(unknown.claims(signed())) for _ in range(5)]
        await asyncio.sleep(0)
        # Those who have a known key wait for nothing.
        for _ in range(5):
            with pytest.raises(StopIteration) as ended:
                known.claims(signed()).send(None)
            assert ended.value.value["sub"] == "12345"
        assert not any(each.done() for each in waiting)
        for each in waiting:
            with pytest.raises(KeysUnavailableError):
                await each
        assert await asyncio.to_thread(issuer.cut.wait, 10)


def connection(*headers: tuple[str, str]) -> HTTPConnection:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    return HTTPConnection({"type": "http", "headers": raw})


async def viewer(viewer_of: ViewerOf | None, *headers: tuple[str, str]) -> Claims:
    assert viewer_of is not None
    found = viewer_of(connection(*headers))
    return found if isinstance(found, dict) else await found  # type: ignore[misc,return-value]


class TestViewers:
    def test_without_a_setting_everybody_is_anonymous(self) -> None:
        assert configured_viewers(read_settings()) is None

    async def test_by_token(self) -> None:
        viewer_of = configured_viewers(read_settings(auth="jwt", jwt_key=SECRET))
        assert await viewer(viewer_of) == {}
        assert (await viewer(viewer_of, ("Authorization", f"bearer  {token()}")))["sub"] == "12345"
        assert await viewer(viewer_of, ("Authorization", "")) == {}
        for given in ("Basic YTpi", "Bearer", f"Token {token()}", f"Bearer {token()}x"):
            with pytest.raises(UnauthenticatedError):
                await viewer(viewer_of, ("Authorization", given))
        with pytest.raises(UnauthenticatedError):
            await viewer(viewer_of, *[("Authorization", f"Bearer {token()}")] * 2)

    async def test_by_header(self, caplog: pytest.LogCaptureFixture) -> None:
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
            (
                {"jwt_key": SECRET, "jwt_algorithms": "RS256, ES256"},
                "allows RS256, ES256, which the keys do not",
            ),
            ({"jwt_jwks_url": "https://issuer.test/keys", "jwt_algorithms": "HS256"}, "allows HS256, which"),
            ({"jwt_key": "short"}, "jwt-key"),
            ({"jwt_jwks_url": "https://"}, "jwt-jwks-url"),
            ({"jwt_jwks_url": "file:///etc/passwd"}, "jwt-jwks-url"),
            ({"auth": "header", "auth_headers": "X-User"}, "KEYGRAPH_AUTH_HEADERS"),
            ({"auth": "header", "auth_headers": "X-User: sub, x-user: tenant"}, "KEYGRAPH_AUTH_HEADERS"),
            ({"auth": "header", "auth_headers": '{"sub": "X-User"}'}, "KEYGRAPH_AUTH_HEADERS"),
        ],
    )
    def test_settings_that_cannot_be_used(self, given: dict[str, str], named: str) -> None:
        with pytest.raises(SettingsError, match=named):
            configured_viewers(read_settings(**{"auth": "jwt", **given}))
