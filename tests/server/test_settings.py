"""The settings: every one is documented, takes effect by its name, and is refused clearly."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import pytest

from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb.client import ClientTransport
from keygraph.engines.dynamodb.direct import DirectTransport
from keygraph.engines.dynamodb.engine import DynamoDBStore
from keygraph.engines.dynamodb.transport import TransportName
from keygraph_server.errors import SettingsError
from keygraph_server.settings import (
    Auth,
    Environment,
    LogFormat,
    LogLevel,
    Settings,
    environment_name,
    read_settings,
)
from keygraph_server.settings.documents import Accepted
from keygraph_server.stores import open_configured_store

DOCUMENT = Path(__file__).parents[2] / "docs/settings.md"

GIVEN = {
    "model": "shop:graph",
    "federation": True,
    "store": "sqlite:shop.sqlite",
    "env": "production",
    "playground": True,
    "playground_items": True,
    "introspection": True,
    "schema_file": True,
    "suggestions": True,
    "cost_details": True,
    "endpoint_names": True,
    "cors_origins": "https://shop.example.com",
    "cache_control": "public, max-age=60",
    "trusted_documents": Path("trusted.json"),
    "documents": "trusted-and-automatic",
    "persisted_bytes": 5000,
    "host": "0.0.0.0",
    "port": 9000,
    "workers": 3,
    "worker_timeout": 20,
    "stop_timeout": 25,
    "keep_alive": 620,
    "secret": "s3cret" * 6,
    "max_connections": 500,
    "max_connections_by_address": 50,
    "connection_memory": 1_000_000,
    "max_head_bytes": 8_000,
    "max_head_fields": 40,
    "max_pipelined": 4,
    "head_timeout": 5.5,
    "body_timeout": 6.5,
    "write_timeout": 7.5,
    "max_page_size": 50,
    "max_ids": 60,
    "read_budget": 500,
    "count_pages": 5,
    "cost_limit": 2000.0,
    "depth_limit": 20,
    "max_running": 12,
    "operation_memory": 9_000_000,
    "max_waiting": 0,
    "max_document_characters": 200_000,
    "max_tokens": 2000,
    "max_aliases": 30,
    "max_aliases_in_all": 200,
    "max_root_fields": 40,
    "max_fields": 4000,
    "max_variable_values": 10_000,
    "max_where_terms": 20,
    "operation_timeout": 5.0,
    "operation_work": 2.5,
    "document_cache_bytes": 1_000_000,
    "concurrency": 8,
    "deadline": 2.5,
    "transport": "aioboto3",
    "max_body_bytes": 2000,
    "answer_limit": 3000,
    "compress_above": 1000,
    "auth": "header",
    "jwt_jwks_url": "https://issuer.example.com/keys.json",
    "jwt_key": "k" * 32,
    "jwt_algorithms": "RS256, ES256",
    "jwt_issuer": "https://issuer.example.com",
    "jwt_audience": "shop",
    "jwt_leeway": 5.0,
    "jwt_roles": "realm_access.roles",
    "auth_headers": "X-Id: sub",
    "log_level": "warning",
    "log_format": "json",
    "log_operations": False,
    "log_variables": True,
    "metrics_port": 9100,
    "metrics_host": "0.0.0.0",
    "metrics_names": 10,
    "hot_keys": True,
}


def documented_row(name: str) -> str:
    """The row that the document must have for a setting."""
    field = Settings.model_fields[name]
    # What has another default in production says so in its description.
    default = field.get_default(call_default_factory=True, validated_data={"env": Environment.DEVELOPMENT})
    default = default.value if isinstance(default, Enum) else default
    shown = "" if default is None else f"`{default}`"
    return f"| `{environment_name(name)}` | {shown} | {field.description} |"


class TestDocument:
    @pytest.mark.parametrize("name", Settings.model_fields)
    def test_it_has_every_setting_with_its_default(self, name: str) -> None:
        """A setting could not be found by who needs it, or would be described as it once was."""
        assert documented_row(name) in DOCUMENT.read_text("utf-8").splitlines()

    def test_it_has_no_other(self) -> None:
        """Somebody would set what is not there and wonder why nothing happens."""
        rows = [line for line in DOCUMENT.read_text("utf-8").splitlines() if line.startswith("| `KEYGRAPH_")]
        assert len(rows) == len(Settings.model_fields)


@pytest.mark.parametrize(("name", "used"), [("direct", DirectTransport), ("aioboto3", ClientTransport)])
async def test_the_transport_is_the_one_that_is_set(name: str, used: type) -> None:
    """KEYGRAPH_TRANSPORT would do nothing."""
    settings = read_settings(store="http://127.0.0.1:1", transport=name)
    async with open_configured_store(settings, Table("Shop", partition_key="PK")) as store:
        assert isinstance(store, DynamoDBStore)
        assert type(store._transport) is used


class TestReading:
    def test_every_setting_is_read_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A documented variable would do nothing."""
        assert set(GIVEN) == set(Settings.model_fields)
        for name, value in GIVEN.items():
            monkeypatch.setenv(environment_name(name), str(value))
        settings = read_settings()
        assert settings.secret is not None
        assert settings.jwt_key is not None
        assert settings.jwt_key.get_secret_value() == GIVEN["jwt_key"]
        assert settings.secret.get_secret_value() == GIVEN["secret"]
        assert settings.model_dump(exclude={"secret", "jwt_key"}) == {
            **{name: value for name, value in GIVEN.items() if name not in ("secret", "jwt_key")},
            "transport": TransportName.AIOBOTO3,
            "log_level": LogLevel.WARNING,
            "log_format": LogFormat.JSON,
            "env": Environment.PRODUCTION,
            "documents": Accepted.TRUSTED_AND_AUTOMATIC,
            "auth": Auth.HEADER,
        }

    def test_an_option_goes_before_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`--port` would be ignored wherever KEYGRAPH_PORT is set."""
        monkeypatch.setenv("KEYGRAPH_PORT", "9000")
        monkeypatch.setenv("KEYGRAPH_HOST", "0.0.0.0")
        settings = read_settings(port=9001, host=None)
        assert (settings.port, settings.host) == (9001, "0.0.0.0")

    def test_an_empty_variable_is_not_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An empty line of an env file would be a secret without a character."""
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
            ("store", "ftp://x", "'ftp://x' is not a store: use sqlite:PATH, aws, or http://HOST:PORT"),
            ("secret", "x" * 31, "it needs at least 32 characters, and has 31"),
            ("cors_origins", "shop", "'shop' is not an origin such as https://shop.example.com"),
            ("log_level", "loud", "'loud' is not 'debug', 'info', 'warning' or 'error'"),
        ],
    )
    def test_what_cannot_be_used_is_named(
        self, monkeypatch: pytest.MonkeyPatch, name: str, value: str, reason: str
    ) -> None:
        """A server that does not start would not say which variable is wrong."""
        monkeypatch.setenv(environment_name(name), value)
        with pytest.raises(SettingsError) as caught:
            read_settings()
        assert caught.value.problem == f"{environment_name(name)} cannot be used: {reason}"

    def test_a_wrong_option_is_named_as_an_option(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Somebody would look for a mistake in the environment that stands on the command line."""
        monkeypatch.setenv("KEYGRAPH_PORT", "9000")
        with pytest.raises(SettingsError, match=r"^--port cannot be used"):
            read_settings(port=-1)

    def test_a_secret_is_never_shown(self) -> None:
        """A log or a traceback with the settings would give the secret away."""
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
        """KEYGRAPH_ENV=production would leave something open that only developers need."""
        settings = read_settings(env=env)
        assert {getattr(settings, name) for name in self.SWITCHES} == {is_on}
        assert (settings.cors_origins != "none") is is_on

    @pytest.mark.parametrize("name", SWITCHES)
    def test_each_has_a_switch_of_its_own(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        """To have one of them in production, somebody would have to have all."""
        monkeypatch.setenv("KEYGRAPH_ENV", "production")
        monkeypatch.setenv(environment_name(name), "true")
        settings = read_settings()
        assert {each for each in self.SWITCHES if getattr(settings, each)} == {name}


class TestHandingOn:
    def test_another_process_reads_the_same_settings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Workers would serve something else than the command line said."""
        settings = read_settings(**GIVEN)
        for name, value in settings.environment().items():
            monkeypatch.setenv(name, value)
        assert read_settings() == settings

    def test_what_is_not_set_is_not_handed_on(self) -> None:
        """A worker would take the text `None` for a store."""
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
        """Two models would write into one file."""
        settings = read_settings(model=model)
        assert settings.store_address == address
        assert settings.sqlite_file == Path(address.removeprefix("sqlite:"))

    @pytest.mark.parametrize("address", ["aws", "http://127.0.0.1:8001"])
    def test_another_store_has_no_file(self, address: str) -> None:
        """The secret of a server on DynamoDB would be written to a file called `aws`."""
        settings = read_settings(store=address)
        assert settings.store_address == address
        assert settings.sqlite_file is None
