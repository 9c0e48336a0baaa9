"""The settings: from `KEYGRAPH_…` variables in the environment and from command options."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from keygraph.engines.dynamodb.transport import TransportName
from keygraph.engines.open import shown_address
from keygraph_server.errors import SettingsError

PREFIX = "KEYGRAPH_"
DATA_FOLDER = ".keygraph"


class LogLevel(Enum):
    """How much is logged. Each level includes those after it."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Settings(BaseSettings):
    """All settings. A command option overrides the environment."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    model: str = Field(
        default="keygraph_examples.commerce:graph",
        description="The model to serve, as an import string: `module:name` of a graph, of a schema from "
        "`build_schema`, or of a function that returns one of them. `module` alone means its `graph`.",
    )
    store: str | None = Field(
        default=None,
        description="The store that has the table: `sqlite:PATH`, `aws`, or `http://HOST:PORT` of a server with "
        f"DynamoDB's API. If unset, a SQLite file named after the model under `{DATA_FOLDER}`.",
    )
    host: str = Field(
        default="127.0.0.1",
        description="The address to listen on.",
    )
    port: int = Field(
        default=8000,
        ge=0,
        le=65535,
        description="The port to listen on; 0 picks a free port.",
    )
    workers: int = Field(
        default=1,
        ge=1,
        description="The number of server processes. Use one for each free core. Each process has its own memory, "
        "connections to DynamoDB and limit of concurrent requests.",
    )
    keep_alive: int = Field(
        default=75,
        ge=1,
        description="How long an idle connection stays open, in seconds. It must be longer than the idle timeout of "
        "a load balancer in front (60 on AWS, 600 on Google Cloud). Otherwise the load balancer sends "
        "requests into closing connections and answers 502.",
    )
    secret: SecretStr | None = Field(
        default=None,
        min_length=1,
        description="The secret that signs cursors. All processes that serve one table need the same one. If unset, "
        "it is created and kept next to the SQLite file; with another store, each start creates a new "
        "one.",
    )
    max_page_size: int = Field(
        default=100,
        ge=1,
        description="The largest value of `first` and `last`.",
    )
    read_budget: int = Field(
        default=10_000,
        ge=1,
        description="How many items one list may look at to fill a page.",
    )
    count_pages: int = Field(
        default=20,
        ge=1,
        description="How many pages of 1 MB (128 read units each) one `totalCount` may read. Beyond that it is null, "
        "and `extensions.warnings` of the answer says so. At least one page of each shard is read.",
    )
    cost_limit: float = Field(
        default=60_000.0,
        ge=0,
        description="How many read units one operation may cost, by its bound and while it runs; 0 means no "
        "limit. 60,000 read units are 480 MB of eventually consistent reads.",
    )
    depth_limit: int = Field(
        default=50,
        ge=0,
        description="How deeply the fields of an operation may be nested; 0 means no limit.",
    )
    concurrency: int = Field(
        default=256,
        ge=1,
        description="How many requests to DynamoDB each process sends at once, and how many lists one operation "
        "reads at once on any store.",
    )
    deadline: float = Field(
        default=10.0,
        gt=0,
        description="The time limit of a request to DynamoDB including its retries, in seconds.",
    )
    transport: TransportName = Field(
        default=TransportName.DIRECT,
        description="The HTTP client for data requests to DynamoDB: `direct` is Keygraph's own client, which uses a "
        "fraction of the processor time; `aioboto3` is the AWS SDK. If the AWS settings need something "
        "that `direct` does not support (a proxy, a FIPS endpoint), Keygraph uses `aioboto3` and logs "
        "it.",
    )
    max_body_bytes: int = Field(
        default=1_000_000,
        ge=1,
        description="The largest body of an HTTP request, in bytes.",
    )
    compress_above: int = Field(
        default=1_400,
        ge=0,
        description="Answers above this size, in bytes, are compressed if the client accepts gzip; 0 turns "
        "compression off. Up to 1,400 bytes, an answer fits into one packet either way.",
    )
    log_level: LogLevel = Field(
        default=LogLevel.INFO,
        description="`debug` (also logs every request), `info`, `warning` or `error`.",
    )

    @property
    def store_address(self) -> str:
        """The address of the store, or the default if none is set."""
        if self.store is not None:
            return self.store
        name = self.model.partition(":")[0].rpartition(".")[2]
        return f"sqlite:{DATA_FOLDER}/{name}.sqlite"

    @property
    def shown_store(self) -> str:
        """The address of the store without its password, to show to people."""
        return shown_address(self.store_address)

    @property
    def sqlite_file(self) -> Path | None:
        """The file of the store; None if it is not a SQLite file."""
        scheme, _, path = self.store_address.partition(":")
        return Path(path) if scheme == "sqlite" and path else None

    def environment(self) -> dict[str, str]:
        """These settings as environment variables, for another process."""
        found: dict[str, str] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            match value:
                case None:
                    continue
                case SecretStr():
                    value = value.get_secret_value()
                case Enum():
                    value = value.value
            found[environment_name(name)] = str(value)
        return found


def environment_name(setting: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + setting.upper()


def read_settings(**given: object) -> Settings:
    """The settings: first the given ones that are not None, then the environment, then the defaults.

    Raises SettingsError, which names the first invalid setting and whether it came from an option or the environment.
    """
    options = {name: value for name, value in given.items() if value is not None}
    try:
        return Settings(**options)  # type: ignore[arg-type]  # pydantic checks the values
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        name = str(first["loc"][0]).lower()
        source = f"--{name.replace('_', '-')}" if name in options else environment_name(name)
        reason = str(first["msg"])
        problem = f"{source} cannot be used: {reason[:1].lower()}{reason[1:]}"
        raise SettingsError(problem, "See docs/settings.md for valid values") from None
