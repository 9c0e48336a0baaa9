"""The socket that the server listens on, and the hosts that requests to it may name."""

from __future__ import annotations

from contextlib import closing

import pytest

from keygraph_server.errors import SettingsError
from keygraph_server.listening import answered_hosts, listen
from keygraph_server.settings import read_settings

LOCAL = ["localhost", "127.0.0.1", "[::1]"]


@pytest.mark.parametrize(
    ("host", "allowed", "answered"),
    [
        ("127.0.0.1", None, [*LOCAL, "127.0.0.1"]),
        ("127.0.0.2", None, [*LOCAL, "127.0.0.2"]),
        ("localhost", None, [*LOCAL, "localhost"]),
        ("127.0.0.1", "Shop.test, *.apps.test", [*LOCAL, "127.0.0.1", "shop.test", "*.apps.test"]),
        ("127.0.0.1", "*", None),
        ("0.0.0.0", None, None),
        ("0.0.0.0", "shop.test", [*LOCAL, "0.0.0.0", "shop.test"]),
    ],
)
def test_a_loopback_address_answers_its_own_names(
    host: str, allowed: str | None, answered: list[str] | None
) -> None:
    with closing(listen(host, 0)) as listening:
        assert answered_hosts(listening, host, allowed) == answered


@pytest.mark.parametrize("text", ["http://shop.test", "shop.test:8000", "a b/c", "*, shop.test", "*."])
def test_what_is_no_host_is_refused_at_the_start(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYGRAPH_ALLOWED_HOSTS", text)
    with pytest.raises(
        SettingsError, match=r"KEYGRAPH_ALLOWED_HOSTS cannot be used: .* is not a host such as"
    ):
        read_settings()
