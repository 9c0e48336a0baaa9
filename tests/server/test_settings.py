"""The settings: every one is documented, takes effect by its name, and is refused clearly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb.client import ClientTransport
from keygraph.engines.dynamodb.direct import DirectTransport
from keygraph.engines.dynamodb.engine import DynamoDBStore
from keygraph_server.errors import SettingsError
from keygraph_server.settings import (
    Settings,
    descriptions,
    environment_name,
    read_settings,
)
from keygraph_server.stores import open_configured_store

DOCUMENT = Path(__file__).parents[2] / "docs/settings.md"

LONG = "a" * 64
"""Longer than a part of a host's name can be."""
TEXTS = {
    "model": "shop:graph",
    "store": "sqlite:shop.sqlite",
    "fan_out": "valkeys://:s3cret@valkey.example.com:6379",
    "table": "shop-production",
    "env": "production",
    "cors_origins": "https://shop.example.com",
    "allowed_hosts": "shop.example.com",
    "cache_control": "public, max-age=60",
    "trusted_documents": Path("trusted.json"),
    "documents": "trusted-and-automatic",
    "host": "0.0.0.0",
    "secret": "s3cret" * 6,
    "transport": "aioboto3",
    "auth": "header",
    "jwt_jwks_url": "https://issuer.example.com/keys.json",
    "jwt_key": "k" * 32,
    "jwt_algorithms": "RS256, ES256",
    "jwt_issuer": "https://issuer.example.com",
    "indexes": "GSI1=by-customer",
    "jwt_audience": "shop",
    "jwt_roles": "realm_access.roles",
    "auth_headers": "X-Id: sub",
    "prices": "eu-west-1",
    "log_level": "warning",
    "log_format": "json",
    "metrics_port": 9100,
    "metrics_host": "0.0.0.0",
}
"""Another value than the default of each setting that is neither a number nor a switch."""


def another(name: str) -> object:
    """A value that a setting accepts and is not its default."""
    default = Settings.model_fields[name].get_default(
        call_default_factory=True, validated_data={"env": "production"}
    )
    return not default if isinstance(default, bool) else TEXTS.get(name) or default + 1


GIVEN: dict[str, Any] = {name: another(name) for name in Settings.model_fields}


def documented_row(name: str) -> str:
    """The row that the document must have for a setting."""
    # What has another default in production says so in its description.
    given = {"env": "development"}
    default = Settings.model_fields[name].get_default(call_default_factory=True, validated_data=given)
    shown = "" if default is None else f"`{default}`"
    return f"| `{environment_name(name)}` | {shown} | {descriptions()[name]} |"


class TestDocument:
    @pytest.mark.parametrize("name", Settings.model_fields)
    def test_it_has_every_setting_with_its_default(self, name: str) -> None:
        assert documented_row(name) in DOCUMENT.read_text("utf-8").splitlines()

    def test_it_has_no_other(self) -> None:
        rows = [line for line in DOCUMENT.read_text("utf-8").splitlines() if line.startswith("| `KEYGRAPH_")]
        assert len(rows) == len(Settings.model_fields)


@pytest.mark.parametrize(("name", "used"), [("direct", DirectTransport), ("aioboto3", ClientTransport)])
async def test_the_transport_is_the_one_that_is_set(name: str, used: type) -> None:
    settings = read_settings(store="http://127.0.0.1:1", transport=name)
    async with open_configured_store(settings, Table("Shop", partition_key="PK")) as store:
        assert isinstance(store, DynamoDBStore)
        assert type(store._transport) is used


class TestReading:
    def test_every_setting_is_read_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in GIVEN.items():
            monkeypatch.setenv(environment_name(name), str(value))
        settings = read_settings()
        secrets = {
            name: getattr(settings, name).get_secret_value() for name in ("secret", "jwt_key", "fan_out")
        }
        assert settings.model_dump() | secrets == GIVEN

    def test_an_option_goes_before_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KEYGRAPH_PORT", "9000")
        monkeypatch.setenv("KEYGRAPH_HOST", "0.0.0.0")
        settings = read_settings(port=9001, host=None)
        assert (settings.port, settings.host) == (9001, "0.0.0.0")

    def test_an_empty_variable_is_not_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KEYGRAPH_SECRET", "")
        monkeypatch.setenv("KEYGRAPH_PORT", "")
        assert read_settings().secret is None
        assert read_settings().port == 8000

    @pytest.mark.parametrize(
        ("name", "value", "reason"),
        [
            ("port", "http", "'http' is not a whole number"),
            ("port", "65536", "65536 is more than 65535"),
            ("max_page_size", "0", "0 is less than 1"),
            ("deadline", "0", "0 is not more than 0"),
            ("deadline", "soon", "'soon' is not a number"),
            ("federation", "maybe", "'maybe' is neither true nor false"),
            ("store", f"sqlite:{'a' * 5000}", "the file: file name too long"),
            ("store", f"sqlite:{'a/' * 2500}b", "the file: file name too long"),
            (
                "store",
                f"http://{LONG}",
                f"'http://{LONG}' is not a store: use sqlite:PATH, aws, or http://HOST:PORT",
            ),
            ("secret", "\udcff" * 32, "it is not text in UTF-8"),
            ("jwt_key", " \t" * 20, "it is blank"),
            ("store", "sqlite:\udcff", "it is not text in UTF-8"),
            ("deadline", "inf", "inf is more than 1000000"),
            ("cost_limit", "inf", "inf is more than 1000000000000"),
            ("max_running", "9" * 15, "999999999999999 is more than 1000000000000"),
            ("keep_alive", "1000001", "1000001 is more than 1000000"),
            (
                "jwt_jwks_url",
                "http://a:b/c",
                "it is not a URL such as https://issuer.example.com/keys.json, without a user name",
            ),
            ("prices", "0.125/-1", "'0.125/-1' has a price that is no amount of money"),
            ("prices", "1/2/3", "'1/2/3' is not two prices, such as 0.125/0.625"),
            ("workers", "257", "257 is more than 256"),
            ("store", "ftp://x", "'ftp://x' is not a store: use sqlite:PATH, aws, or http://HOST:PORT"),
            ("secret", "x" * 31, "it needs at least 32 characters, and has 31"),
            ("cors_origins", "shop", "'shop' is not an origin such as https://shop.example.com"),
            ("log_level", "loud", "'loud' is not 'debug', 'info', 'warning' or 'error'"),
        ],
    )
    def test_what_cannot_be_used_is_named(
        self, monkeypatch: pytest.MonkeyPatch, name: str, value: str, reason: str
    ) -> None:
        monkeypatch.setenv(environment_name(name), value)
        with pytest.raises(SettingsError) as caught:
            read_settings()
        assert caught.value.problem == f"{environment_name(name)} cannot be used: {reason}"

    def test_a_wrong_option_is_named_as_an_option(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KEYGRAPH_PORT", "9000")
        with pytest.raises(SettingsError, match=r"^--port cannot be used"):
            read_settings(port=-1)

    def test_a_secret_is_never_shown(self) -> None:
        assert "s3cret" not in repr(read_settings(secret="s3cret" * 6))


class TestEnvironment:
    SWITCHES = (
        "playground",
        "playground_items",
        "introspection",
        "schema_file",
        "suggestions",
        "cost_details",
        "endpoint_names",
    )

    @pytest.mark.parametrize(("env", "is_on"), [("development", True), ("production", False)])
    def test_it_decides_what_is_not_set(self, env: str, is_on: bool) -> None:
        settings = read_settings(env=env)
        assert {getattr(settings, name) for name in self.SWITCHES} == {is_on}
        assert (settings.cors_origins != "none") is is_on

    @pytest.mark.parametrize("name", SWITCHES)
    def test_each_has_a_switch_of_its_own(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        monkeypatch.setenv("KEYGRAPH_ENV", "production")
        monkeypatch.setenv(environment_name(name), "true")
        settings = read_settings()
        assert {each for each in self.SWITCHES if getattr(settings, each)} == {name}


class TestHandingOn:
    def test_another_process_reads_the_same_settings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        settings = read_settings(**GIVEN)
        for name, value in settings.environment().items():
            monkeypatch.setenv(name, value)
        assert read_settings() == settings

    def test_what_is_not_set_is_not_handed_on(self) -> None:
        assert not {"KEYGRAPH_STORE", "KEYGRAPH_SECRET"} & read_settings().environment().keys()


class TestStore:
    @pytest.mark.parametrize(
        ("model", "address"),
        [
            ("keygraph_examples.commerce:graph", "sqlite:.keygraph/commerce.sqlite"),
            ("shop", "sqlite:.keygraph/shop.sqlite"),
        ],
    )
    def test_without_one_every_model_has_a_file_of_its_own(self, model: str, address: str) -> None:
        settings = read_settings(model=model)
        assert settings.store_address == address
        assert settings.sqlite_file == Path(address.removeprefix("sqlite:"))

    @pytest.mark.parametrize("address", ["aws", "http://127.0.0.1:8001"])
    def test_another_store_has_no_file(self, address: str) -> None:
        settings = read_settings(store=address)
        assert settings.store_address == address
        assert settings.sqlite_file is None
