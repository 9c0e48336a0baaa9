"""The settings: what a process is told by `KEYGRAPH_…` in its environment, and by options of a command."""

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
    """How much is logged; each level includes those after it."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Settings(BaseSettings):
    """Everything that can be set. A command's option goes before the environment."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    model: str = Field(
        default="keygraph_examples.commerce:graph",
        description="What is served, as an import string: `module:name` of a graph, of a schema made by "
        "`build_schema`, or of a function that returns either; `module` alone means its `graph`.",
    )
    store: str | None = Field(
        default=None,
        description="Where the table is: `sqlite:PATH`, `aws`, or `http://HOST:PORT` of what speaks DynamoDB's "
        f"API. Unset: a SQLite file of the model's own under `{DATA_FOLDER}`.",
    )
    host: str = Field(default="127.0.0.1", description="The address that the server listens on.")
    port: int = Field(
        default=8000, ge=0, le=65535, description="The port that the server listens on; 0 is any free one."
    )
    workers: int = Field(
        default=1,
        ge=1,
        description="How many processes serve: as many as there are cores that nothing else needs. Each has a memory, "
        "connections to DynamoDB and a limit of requests under way of its own.",
    )
    keep_alive: int = Field(
        default=75,
        ge=1,
        description="The seconds after which a connection without a request is closed. It has to be more than what a load "
        "balancer in front says (60 on AWS, 600 on Google Cloud), which else sends requests into connections that are "
        "being closed, and answers 502.",
    )
    secret: SecretStr | None = Field(
        default=None,
        min_length=1,
        description="What cursors are signed with; the same for all processes that serve one table. Unset: made "
        "and kept beside the SQLite file; with another store made anew at every start.",
    )
    max_page_size: int = Field(default=100, ge=1, description="The most that `first` and `last` may ask for.")
    read_budget: int = Field(
        default=10_000, ge=1, description="How many items one list may look at to fill a page."
    )
    count_pages: int = Field(
        default=20,
        ge=1,
        description="How many pages of 1 MB (128 read units each) one `totalCount` may read; beyond them it is null "
        "and the answer's `extensions.warnings` says so. One page of each shard is always read.",
    )
    cost_limit: float = Field(
        default=10_000.0,
        ge=0,
        description="How many read units one operation may cost, by its estimate and while it runs; 0 is any number. "
        "10,000 are 80 MB of eventually consistent reads.",
    )
    depth_limit: int = Field(
        default=50,
        ge=0,
        description="How many fields of one operation may stand one inside the other; 0 is any number.",
    )
    concurrency: int = Field(
        default=256,
        ge=1,
        description="How many requests to DynamoDB each process has under way at once; and how many lists one operation reads at once, on any store.",
    )
    deadline: float = Field(
        default=10.0, gt=0, description="The seconds that one request to DynamoDB may take with its retries."
    )
    transport: TransportName = Field(
        default=TransportName.DIRECT,
        description="What carries requests for data to DynamoDB: `direct`, a client of Keygraph's own that takes a "
        "fraction of the processor time, or `aioboto3`, which is also what is used, and said in the log, where AWS's "
        "settings ask for what `direct` does not know (a proxy, a FIPS endpoint).",
    )
    max_body_bytes: int = Field(
        default=1_000_000, ge=1, description="The largest body of an HTTP request, in bytes."
    )
    compress_above: int = Field(
        default=1_400,
        ge=0,
        description="Answers of more bytes are compressed with gzip where the client takes that; 0 compresses none. Up to "
        "1,400 bytes an answer is one packet either way.",
    )
    log_level: LogLevel = Field(
        default=LogLevel.INFO, description="`debug` (every request too), `info`, `warning` or `error`."
    )

    @property
    def store_address(self) -> str:
        """The address of the store, also where none is set."""
        if self.store is not None:
            return self.store
        name = self.model.partition(":")[0].rpartition(".")[2]
        return f"sqlite:{DATA_FOLDER}/{name}.sqlite"

    @property
    def shown_store(self) -> str:
        """The address of the store as people may see it."""
        return shown_address(self.store_address)

    @property
    def sqlite_file(self) -> Path | None:
        """The file of the store; None where it is no SQLite file."""
        scheme, _, path = self.store_address.partition(":")
        return Path(path) if scheme == "sqlite" and path else None

    def environment(self) -> dict[str, str]:
        """The environment variables from which another process reads these settings."""
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
    """The settings: those given that are not None, then the environment's, then the defaults.

    Raises SettingsError, which names the first that cannot be used and says whether an option or the environment
    gave it.
    """
    options = {name: value for name, value in given.items() if value is not None}
    try:
        return Settings(**options)  # type: ignore[arg-type]  # pydantic itself says what cannot be used
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        name = str(first["loc"][0]).lower()
        source = f"--{name.replace('_', '-')}" if name in options else environment_name(name)
        reason = str(first["msg"])
        problem = f"{source} cannot be used: {reason[:1].lower()}{reason[1:]}"
        raise SettingsError(problem, "docs/settings.md says what each setting takes") from None
