"""What a client may see beside its data."""

from __future__ import annotations

from enum import Enum
from typing import Any

from pydantic import BaseModel, Field


class Environment(Enum):
    """Where the server runs."""

    DEVELOPMENT = "development"
    PRODUCTION = "production"


def in_development(given: dict[str, Any]) -> bool:
    """The default of settings that only developers need. `given` are the settings before this one."""
    return given.get("env") is Environment.DEVELOPMENT


class ExposureSettings(BaseModel):
    """What a client may see beside its data."""

    env: Environment = Field(
        default=Environment.DEVELOPMENT,
        description="`development`, or `production`, which changes the defaults of the settings that say so: a client "
        "then sees its data and nothing else.",
    )
    playground: bool = Field(
        default_factory=in_development,
        description="Whether `/` is the playground. In production: `False`.",
    )
    playground_items: bool = Field(
        default_factory=in_development,
        description="Whether the playground shows raw items of the table, and takes the values of its examples from some of "
        "them. Access rules do not apply to this. In production: `False`.",
    )
    introspection: bool = Field(
        default_factory=in_development,
        description="Whether operations may select `__schema` and `__type`. In production: `False`; if you turn it on there, "
        "each viewer sees only what a rule might allow them.",
    )
    schema_file: bool = Field(
        default_factory=in_development,
        description="Whether `/schema.graphql` serves the schema. In production: `False`.",
    )
    suggestions: bool = Field(
        default_factory=in_development,
        description='Whether errors suggest names of the schema: "Did you mean …?". In production: `False`.',
    )
    cost_details: bool = Field(
        default_factory=in_development,
        description="Whether a client may request `extensions.cost`, and whether `COST_LIMIT` errors say what is expensive. "
        "In production: `False`.",
    )
    endpoint_names: bool = Field(
        default_factory=in_development,
        description="Whether errors and `/readyz` show the store's address and its table. The log always does. "
        "In production: `False`.",
    )

    @property
    def is_production(self) -> bool:
        """Whether the server is open to strangers."""
        return self.env is Environment.PRODUCTION
