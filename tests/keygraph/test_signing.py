"""Signatures: those of botocore, to the letter."""

from __future__ import annotations

from datetime import UTC, datetime
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from keygraph.engines.dynamodb.signing import Signer, host_of

LONG_LIVED = ReadOnlyCredentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None)
TEMPORARY = ReadOnlyCredentials("ASIAEXAMPLE", "secret", "IQoJb3JpZ2luX2VjE==/+ a  b")
EMPTY_TOKEN = ReadOnlyCredentials("AKIDEXAMPLE", "", "")
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


def botocores(
    endpoint: str, region: str, credentials: ReadOnlyCredentials, target: str, body: bytes, at: float
) -> str:
    """The Authorization header that botocore would send."""
    request = AWSRequest(
        method="POST",
        url=endpoint if urlsplit(endpoint).path else f"{endpoint}/",
        data=body,
        headers={"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": target},
    )
    moment = datetime.fromtimestamp(int(at), UTC).replace(tzinfo=None)
    with patch.object(auth, "get_current_datetime", lambda: moment):
        auth.SigV4Auth(credentials, "dynamodb", region).add_auth(request)
    return str(request.headers["Authorization"])


def headers(
    signer: Signer, credentials: ReadOnlyCredentials, target: str, body: bytes, at: float
) -> dict[str, str]:
    *lines, end = signer.lines(credentials, target, body, at).split("\r\n")
    assert end == ""
    found = dict(line.split(": ", 1) for line in lines)
    assert len(found) == len(lines)
    return found


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://dynamodb.eu-central-1.amazonaws.com",
        "https://dynamodb.eu-central-1.amazonaws.com/",
        "https://dynamodb.eu-central-1.amazonaws.com:443",
        "https://dynamodb.eu-central-1.amazonaws.com:8443",
        "http://localhost:8000",
        "http://localhost:80",
        "http://localhost:443",
        "HTTP://LocalHost:8000",
        "http://user:secret@localhost:8000",
        "http://[::1]:8000",
        "http://[2001:DB8::1]",
        "http://10.0.0.1:8000/alternator",
        "http://10.0.0.1:8000/alternator/",
        "http://10.0.0.1:8000//a/./b/../c d/ü~%20*",
    ],
)
@pytest.mark.parametrize("credentials", [LONG_LIVED, TEMPORARY, EMPTY_TOKEN])
def test_an_endpoint_of_any_form(endpoint: str, credentials: ReadOnlyCredentials) -> None:
    body = b'{"TableName":"Shop"}'
    signer = Signer(endpoint, "eu-central-1")
    sent = headers(signer, credentials, "DynamoDB_20120810.Query", body, NOON)
    assert sent["Authorization"] == botocores(
        endpoint, "eu-central-1", credentials, "DynamoDB_20120810.Query", body, NOON
    )
    assert sent.get("X-Amz-Security-Token") == (credentials.token or None)
    assert sent["Host"] == host_of(urlsplit(endpoint))


@pytest.mark.parametrize(
    "body", [b"", b"{}", '{"Key":{"PK":{"S":"Zoë 🦊 \u2028"}}}'.encode(), b"\x00\xff" * 100_000]
)
@pytest.mark.parametrize("target", ["DynamoDB_20120810.Query", "DynamoDB_20120810.TransactWriteItems"])
def test_a_body_of_any_form(body: bytes, target: str) -> None:
    signer = Signer("https://dynamodb.us-east-1.amazonaws.com", "us-east-1")
    assert headers(signer, TEMPORARY, target, body, NOON)["Authorization"] == botocores(
        "https://dynamodb.us-east-1.amazonaws.com", "us-east-1", TEMPORARY, target, body, NOON
    )


def test_the_key_follows_the_day_and_the_credentials() -> None:
    endpoint = "https://dynamodb.us-east-1.amazonaws.com"
    signer = Signer(endpoint, "us-east-1")
    for credentials, at in (
        (LONG_LIVED, NOON),
        (LONG_LIVED, NOON + 0.7),
        (LONG_LIVED, NOON + 1),
        (LONG_LIVED, NOON + 86_400),
        (TEMPORARY, NOON + 86_400),
        (LONG_LIVED, NOON),
    ):
        sent = headers(signer, credentials, "DynamoDB_20120810.Query", b"{}", at)
        assert sent["Authorization"] == botocores(
            endpoint, "us-east-1", credentials, "DynamoDB_20120810.Query", b"{}", at
        )


@pytest.mark.parametrize(
    "credentials",
    [
        ReadOnlyCredentials("AKIDEXAMPLE", "secret", "a\r\nX-Other: b"),
        ReadOnlyCredentials("AKID\nEXAMPLE", "secret", None),
    ],
)
def test_credentials_of_several_lines_are_refused(credentials: ReadOnlyCredentials) -> None:
    signer = Signer("https://dynamodb.us-east-1.amazonaws.com", "us-east-1")
    for _ in range(2):
        with pytest.raises(ValueError, match="line break"):
            signer.lines(credentials, "DynamoDB_20120810.Query", b"{}", NOON)
