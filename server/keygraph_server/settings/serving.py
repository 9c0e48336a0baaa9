"""The model, its store, the address to listen on, and the processes."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field, SecretStr, field_validator

from keygraph.engines.open import check_address, shown_address

DATA_FOLDER = ".keygraph"
SECRET_CHARACTERS = 32
"""The least length of a secret: shorter ones could be guessed."""


class ServingSettings(BaseModel):
    """The model, its store, the address to listen on, and the processes."""

    model: str = Field(
        default="keygraph_examples.commerce:graph",
        description="The model to serve, as an import string: `module:name` of a graph, of a schema from "
        "`build_schema`, or of a function that returns one of them. `module` alone means its `graph`.",
    )
    federation: bool = Field(
        default=False,
        description="Whether the schema is a subgraph of Apollo Federation 2, with every node as an entity, by its key fields "
        "and by its `id`.",
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
    worker_timeout: int = Field(
        default=15,
        ge=1,
        description="How long a worker may hang before it is replaced, in seconds.",
    )
    stop_timeout: int = Field(
        default=8,
        ge=1,
        description="How long running requests may continue after the server is told to stop, in seconds. After that, "
        "the remaining requests are answered with 503 and the code `UNAVAILABLE`. It must be shorter than the time that "
        "Docker (10 seconds) or Kubernetes (30) waits before it kills the process.",
    )
    keep_alive: int = Field(
        default=75,
        ge=1,
        description="How long an idle connection stays open, in seconds. It must be longer than the idle timeout of "
        "a load balancer in front (60 on AWS, 600 on Google Cloud). Otherwise the load balancer sends "
        "requests over closing connections and answers 502.",
    )
    secret: SecretStr | None = Field(
        default=None,
        min_length=SECRET_CHARACTERS,
        description="The secret that encrypts cursors, at least 32 characters long. All processes that serve one table need the same secret. "
        "If unset, it is created and stored next to the SQLite file; with another store, each start creates a new "
        "secret.",
    )

    @field_validator("store")
    @classmethod
    def _check_store(cls, value: str | None) -> str | None:
        if value is not None:
            check_address(value)
        return value

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
