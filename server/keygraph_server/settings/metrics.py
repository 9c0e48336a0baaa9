"""Measurements of the running server."""

from __future__ import annotations

from pydantic import BaseModel, Field


class MetricsSettings(BaseModel):
    """Measurements of the running server."""

    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="The port on which `keygraph serve` serves the metrics of all its processes, and the counts for "
        "`keygraph hot`; 0 picks a free port. If unset, nothing is counted.",
    )
    metrics_host: str = Field(
        default="127.0.0.1",
        description="The address of the metrics port. Anybody who can reach it can read the metrics.",
    )
    metrics_names: int = Field(
        default=100,
        ge=0,
        description="How many operation names the metrics of a process distinguish. Others are counted as `(other)`.",
    )
    hot_keys: bool = Field(
        default=False,
        description="Whether `keygraph hot` shows partition keys. Otherwise it shows hashes of them.",
    )
