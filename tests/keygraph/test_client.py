"""The private name of aiobotocore that the client transport overrides."""

from __future__ import annotations

from aiobotocore.httpsession import AIOHTTPSession

from keygraph.engines.dynamodb.client import VerifyingSession


def test_a_host_is_checked_only_by_ours() -> None:
    """Where the first line fails, aiobotocore checks hosts by itself, and `VerifyingSession` can go."""
    assert not AIOHTTPSession()._get_ssl_context().check_hostname  # type: ignore[attr-defined]  # not in its stubs
    assert VerifyingSession()._get_ssl_context().check_hostname
