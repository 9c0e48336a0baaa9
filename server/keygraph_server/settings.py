"""The settings: from `KEYGRAPH_…` variables in the environment and from command options.

The limits of operations are those of `keygraph.limits`, the limits of connections those of `connections/settings.py`.
The string under a setting is its description, in `keygraph serve --help-all` and in `docs/settings.md`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, Field, SecretStr, ValidationError, field_validator

from keygraph.declare.docstrings import member_docstrings
from keygraph.engines.dynamodb.transport import TransportName
from keygraph.engines.open import check_address, is_endpoint, shown_address
from keygraph.limits import Count, CountOrZero, Limits, LiveLimits, Seconds, WholeSeconds
from keygraph_server.connections.settings import ConnectionSettings
from keygraph_server.documents.known import Accepted
from keygraph_server.errors import SettingsError, value_problem
from keygraph_server.http.origins import Origins
from keygraph_server.listening import listed_hosts
from keygraph_server.prices import prices_in_use
from keygraph_server.processes import MOST_WORKERS

DATA_FOLDER = ".keygraph"
PREFIX = "KEYGRAPH_"
SECRET_CHARACTERS = 32
"""The least length of a secret: shorter ones could be guessed."""
USUAL = frozenset(
    [
        "env",
        "secret",
        "playground",
        "introspection",
        "cors_origins",
        "allowed_hosts",
        "trusted_documents",
        "cost_limit",
        "log_level",
        "log_format",
        "metrics_port",
        "auth",
        "jwt_jwks_url",
    ]
)
"""What most servers set, beside what is an option of `keygraph serve`. Its help shows these first."""
_LOCAL = "http://localhost:*, http://127.0.0.1:*"
_PATIENT_SECONDS = 60.0


Environment: TypeAlias = Literal["development", "production"]
Auth: TypeAlias = Literal["none", "jwt", "header"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
"""Each includes those after it."""
LogFormat: TypeAlias = Literal["json", "text"]


def in_development(given: dict[str, Any]) -> bool:
    """The default of settings that only developers need. `given` are the settings before this one."""
    return given.get("env") == "development"


def _checked_by(check: Callable[[str], object]) -> AfterValidator:
    """Refuses a text for which a function raises ValueError."""

    def checked(text: str) -> str:
        check(text)
        return text

    return AfterValidator(checked)


def _checked_fan_out(address: SecretStr) -> SecretStr:
    from keygraph.changes.fan_out import check_fan_out  # only who hands changes on needs it

    check_fan_out(address.get_secret_value())
    return address


def _check_store(address: str) -> None:
    check_address(address)
    file = _sqlite_file(address)
    if file is not None:
        check_file(file)
        if file.name.endswith(("-wal", "-shm")):
            raise ValueError(f"{file} is the log of a SQLite file, or its index")


def check_file(file: Path) -> Path:
    """Returns the path of a file, or of none. Raises ValueError for a folder, and for a pipe or a device, which may have
    no end."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise ValueError(f"{file} is a folder" if file.is_dir() else f"{file} is a pipe or a device")
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        # No file can have the path, or this process may not look at it.
        raise ValueError(f"the file: {(error.strerror or str(error)).lower()}") from None
    return file


def _index_names(text: str) -> dict[str, str]:
    """Returns the names of indexes by those in the model. Raises ValueError for another text."""
    pairs = [pair.strip() for pair in text.split(",") if pair.strip()]
    wrong = [pair for pair in pairs if not re.fullmatch(r"[^=]+=[a-zA-Z0-9_.-]{3,255}", pair)]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is not an index and its name, such as ByDate=calls-by-date")
    return dict(pair.split("=") for pair in pairs)


def _check_url(url: str) -> None:
    # It may have a password in it, which no error may show, and which a fetch would not use.
    is_url = is_endpoint(url) and re.fullmatch(r"[\x21-\x7e]+", url)
    if not is_url or "@" in urlsplit(url).netloc:
        raise ValueError("it is not a URL such as https://issuer.example.com/keys.json, without a user name")


class _ServingSettings(BaseModel):
    """What is served, where and to whom."""

    model: str = "keygraph_examples.commerce:graph"
    """The model to serve, as an import string: `module:name` of a graph, of a schema from `build_schema`, or of a
    function that returns one of them. `module` alone means its `graph`."""
    federation: bool = False
    """Whether the schema is a subgraph of Apollo Federation 2, with every node as an entity, by its key fields and by
    its `id`."""
    live: bool = False
    """Whether clients may subscribe: the schema has `Subscription`, over WebSockets and as server-sent events. The table
    needs its stream: `keygraph table update --stream`."""
    fan_out: Annotated[SecretStr, AfterValidator(_checked_fan_out)] | None = None
    """The address of a Valkey or Redis server, `valkeys://USER:PASSWORD@HOST:PORT` (without TLS `valkey://`): `keygraph
    follow` hands on the changes of the table there, and servers with `KEYGRAPH_LIVE` take them from there instead of the
    table's stream. It needs the extra `valkey`."""
    store: Annotated[str, _checked_by(_check_store)] | None = None
    """The store that has the table: `sqlite:PATH`, `aws` (in the region of `AWS_REGION` or of the AWS profile), or
    `http://HOST:PORT` of a server with DynamoDB's API. If unset, a SQLite file named after the model under `.keygraph`."""
    table: str | None = Field(default=None, pattern=r"^[a-zA-Z0-9_.-]{3,255}$")
    """The name of the table, if it is another than the model's: each environment has its own."""
    indexes: Annotated[str, _checked_by(_index_names)] | None = None
    """The names of indexes that are other than the model's, separated by commas: `ByDate=calls-by-date,ByName=calls-by-name`."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = Field(default=8000, ge=0, le=65535)
    """The port to listen on; 0 picks a free port."""
    workers: int = Field(default=1, ge=1, le=MOST_WORKERS)
    """The number of server processes, at most 256. Use one for each free core. Each process has its own memory,
    connections to DynamoDB and limit of concurrent requests."""
    worker_timeout: WholeSeconds = 15
    """How long a worker may hang before it is replaced, in seconds."""
    stop_timeout: WholeSeconds = 8
    """How long running requests may continue after the server is told to stop, in seconds. After that, the remaining
    requests are answered with 503 and the code `UNAVAILABLE`. It must be shorter than the time that Docker (10
    seconds) or Kubernetes (30) waits before it kills the process."""
    keep_alive: WholeSeconds = 75
    """How long an idle connection stays open, in seconds. It must be longer than the idle timeout of a load balancer in
    front (60 on AWS, 600 on Google Cloud). Otherwise the load balancer sends requests over closing connections and
    answers 502."""
    secret: SecretStr | None = Field(default=None, min_length=SECRET_CHARACTERS)
    """The secret that encrypts cursors, at least 32 characters long. All processes that serve one table need the same
    secret. If unset, it is created and stored next to the SQLite file; with another store, each start creates a new
    secret, and in production the server does not start."""

    # --- What a client may see beside its data

    env: Environment = "development"
    """`development`, or `production`, which changes the defaults of the settings that say so: a client then sees its
    data and nothing else."""
    playground: bool = Field(default_factory=in_development)
    """Whether `/` is the playground. In production: `False`."""
    playground_items: bool = Field(default_factory=in_development)
    """Whether the playground shows raw items of the table, and takes the values of its examples from some of them.
    Access rules do not apply to this, so it is off wherever clients are authenticated. In production: `False`."""
    introspection: bool = Field(default_factory=in_development)
    """Whether operations may select `__schema` and `__type`. In production: `False`; if you turn it on there, each
    viewer sees only what a rule might allow them."""
    schema_file: bool = Field(default_factory=in_development)
    """Whether `/schema.graphql` serves the schema. In production: `False`."""
    suggestions: bool = Field(default_factory=in_development)
    """Whether errors suggest names of the schema ("Did you mean …?"), and name what was not sent. In production: `False`."""
    cost_details: bool = Field(default_factory=in_development)
    """Whether a client may request `extensions.cost`, and whether `COST_LIMIT` errors say what is expensive. In
    production: `False`."""
    prices: Annotated[str, _checked_by(prices_in_use)] | None = None
    """The prices with which the playground turns read and write units into money: `eu-west-1`, one of the regions whose
    on-demand price it knows, or your own, in USD per million read and write units: `0.1415/0.705`. If unset, those of
    the region in `AWS_REGION` or `AWS_DEFAULT_REGION`, otherwise those of us-east-1."""
    endpoint_names: bool = Field(default_factory=in_development)
    """Whether errors and `/readyz` show the store's address and its table. The log always does. In production: `False`."""

    # --- Pages in browsers

    cors_origins: Annotated[str, _checked_by(Origins.of)] = Field(
        default_factory=lambda given: _LOCAL if in_development(given) else "none"
    )
    """The origins whose pages may use this server, separated by commas: `https://shop.example.com`,
    `https://*.example.com`, `http://localhost:*` for every port, `*` for all, or `none`. Pages from this server's own
    address need no entry, unless a proxy replaces their `Host`. In production: `none`."""
    allowed_hosts: Annotated[str, _checked_by(listed_hosts)] | None = None
    """The hosts that requests may name besides `localhost`, `127.0.0.1`, `[::1]` and `KEYGRAPH_HOST`, separated by
    commas: `api.example.com`, `*.example.com`, or `*` for all. Any other gets 421. If unset: none if `KEYGRAPH_HOST`
    is a loopback address, otherwise all."""
    cache_control: str = Field(default="no-store", pattern=r"^[\x21-\x7e]+([ ]+[\x21-\x7e]+)*$")
    """The `Cache-Control` of answers to GET that have no errors, such as `public, max-age=60`. All other answers are
    `no-store`, and so is every answer if the server authenticates its clients."""

    # --- Documents

    trusted_documents: Annotated[Path, AfterValidator(check_file)] | None = None
    """The file of trusted documents: from `keygraph trust`, or Apollo's or Relay's persisted documents."""
    documents: Accepted = Field(
        default_factory=lambda given: "trusted" if given.get("trusted_documents") else "any"
    )
    """Which documents are executed, one of `any`, `trusted` (only those in `KEYGRAPH_TRUSTED_DOCUMENTS`), or
    `trusted-and-automatic` (also automatic persisted queries). If `KEYGRAPH_TRUSTED_DOCUMENTS` is set, the default is
    `trusted`."""
    persisted_bytes: CountOrZero = 1_000_000
    """How many bytes of automatic persisted queries each process keeps; 0 turns them off."""


class Settings(Limits, LiveLimits, ConnectionSettings, _ServingSettings):
    """All settings, those of the last base first."""

    max_body_bytes: Count = 1_000_000
    """The largest body of an HTTP request, in bytes. Bodies above 4 KB are read when there is memory for what they hold:
    4 MB of them at the same time, up to half of one address; 32 MB wait, up to half of one address. Any further
    request is answered at once with 503, the code `UNAVAILABLE` and `Retry-After`."""

    # --- Requests to DynamoDB

    deadline: Seconds = 10.0
    """The time limit of a request to DynamoDB including its retries, and of a read of a SQLite file, in seconds."""
    transport: TransportName = "direct"
    """The HTTP client for data requests to DynamoDB: `direct` is Keygraph's own client, which uses a fraction of the
    processor time; `aioboto3` is the AWS SDK. If the AWS settings need something that `direct` does not support (a
    proxy, a FIPS endpoint), Keygraph uses `aioboto3` and logs it."""

    # --- Answers

    compress_above: CountOrZero = 1_400
    """Answers above this size, in bytes, are compressed if the client accepts gzip; 0 turns compression off. Up to 1,400
    bytes, an answer fits into one packet either way."""

    outage_ok: bool = False
    """Whether the status of an answer is 200 even if all its fields failed because the store cannot be reached. Otherwise
    it is 503, if the answer is `application/json`."""

    # --- Logging

    log_level: LogLevel = "info"
    """`debug` (also logs every request), `info`, `warning` or `error`."""
    log_format: LogFormat = Field(default_factory=lambda given: "text" if in_development(given) else "json")
    """`json`, one JSON object per line, or `text`, readable lines. In production: `json`."""
    log_operations: bool = True
    """Whether each operation is logged in one line: its name, hash, cost, duration and error codes."""
    log_variables: bool = False
    """Whether the log line of an operation includes its variables. They can hold personal data."""

    # --- Metrics

    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    """The port on which `keygraph serve` serves the metrics of all its processes, and the counts for `keygraph hot`; 0
    picks a free port. If unset, nothing is counted."""
    metrics_host: str = "127.0.0.1"
    """The address of the metrics port. Anybody who can reach it can read the metrics."""
    metrics_names: CountOrZero = 100
    """How many operation names the metrics of a process distinguish. Others are counted as `(other)`."""
    hot_keys: bool = False
    """Whether `keygraph hot` shows partition keys. Otherwise it shows hashes of them."""

    # --- Authentication

    auth: Auth = "none"
    """How clients are authenticated, one of `none` (everybody is anonymous), `jwt` (a bearer token in `Authorization`)
    or `header` (headers that a gateway sets). Model rules with `viewer(…)` and `role=` use it. In production on
    DynamoDB, a model without rules is served only if this is set: `none` says that everybody may read and write."""
    jwt_jwks_url: Annotated[str, _checked_by(_check_url)] | None = None
    """The URL of the issuer's public keys (JWKS). The server fetches them when they are needed, again every five
    minutes, and after an unknown key id, at most every five seconds."""
    jwt_key: SecretStr | None = Field(default=None, min_length=32)
    """The key that verifies tokens, instead of a JWKS URL: a public key in PEM, or a shared secret of at least 32
    characters."""
    jwt_algorithms: str | None = None
    """The algorithms that tokens may be signed with, separated by commas. If unset, the algorithms that fit the key.
    Public keys never verify `HS…` tokens, and `none` is never accepted."""
    jwt_issuer: str | None = None
    """The issuer (`iss`) that tokens must name. If unset, it is not checked."""
    jwt_audience: str | None = None
    """The audience (`aud`) that tokens must name. If unset, it is not checked."""
    jwt_leeway: float = Field(default=10.0, ge=0, le=300)
    """By how many seconds the issuer's clock may differ from the server's."""
    jwt_roles: str = Field(default="roles", min_length=1)
    """The claim that has the viewer's roles; a dot selects a member of an object (`realm_access.roles`)."""
    auth_headers: str = "X-User: sub, X-Roles: roles"
    """With `header`, the headers to trust, each with the claim that it sets. Roles are separated by commas. The gateway
    must set or remove each of these headers in every request."""

    @field_validator("*", mode="before")
    @classmethod
    def _check_text(cls, value: object) -> object:
        if isinstance(value, str) and re.search("[\ud800-\udfff]", value):
            raise ValueError("it is not text in UTF-8")
        if isinstance(value, str) and value and not value.strip():
            raise ValueError("it is blank")
        return value

    @property
    def index_names(self) -> dict[str, str]:
        """The names of indexes by those in the model, where they differ."""
        return _index_names(self.indexes or "")

    @property
    def is_production(self) -> bool:
        """Whether the server is open to strangers."""
        return self.env == "production"

    @property
    def store_address(self) -> str:
        """The address of the store, or the default if none is set."""
        if self.store is not None:
            return self.store
        name = self.model.partition(":")[0].rpartition(".")[2]
        return f"sqlite:{DATA_FOLDER}/{name}.sqlite"

    @property
    def displayed_store(self) -> str:
        """The address of the store without its password, to show to people."""
        return shown_address(self.store_address)

    @property
    def sqlite_file(self) -> Path | None:
        """The file of the store; None if it is not a SQLite file."""
        return _sqlite_file(self.store_address)

    @property
    def patient(self) -> Settings:
        """The settings of a command that sends many requests, and waits while DynamoDB throttles."""
        return self.model_copy(update={"deadline": max(self.deadline, _PATIENT_SECONDS)})

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
            found[environment_name(name)] = str(value)
        return found


def descriptions() -> dict[str, str]:
    """The description of each setting, on one line: the string under it."""
    found = {name: text for cls in Settings.__mro__[:-2] for name, text in member_docstrings(cls).items()}
    return {name: " ".join(text.split()) for name, text in found.items()}


def environment_name(setting: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + setting.upper()


def read_settings(**given: object) -> Settings:
    """Reads the settings: first the given ones that are not None, then the environment, then the defaults.

    An empty variable counts as unset. Raises SettingsError, which names the first invalid setting and its source.
    """
    options = {name: value for name, value in given.items() if value is not None}
    variables = {name: os.environ.get(environment_name(name), "") for name in Settings.model_fields}
    found: dict[str, Any] = {name: text for name, text in variables.items() if text} | options
    try:
        return Settings(**found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]).lower()
        source = f"--{name.replace('_', '-')}" if name in options else environment_name(name)
        problem = f"{source} cannot be used: {value_problem(first)}"
        raise SettingsError(problem, "See docs/settings.md for valid values") from None


def _sqlite_file(address: str) -> Path | None:
    scheme, _, path = address.partition(":")
    return Path(path) if scheme == "sqlite" and path else None
