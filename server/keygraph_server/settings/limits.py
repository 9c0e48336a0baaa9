"""What an operation may ask for and cost."""

from __future__ import annotations

from pydantic import BaseModel, Field


class LimitSettings(BaseModel):
    """What an operation may ask for and cost."""

    max_page_size: int = Field(
        default=100,
        ge=1,
        description="The largest value of `first` and `last`.",
    )
    max_ids: int = Field(
        default=100,
        ge=1,
        description="How many ids `nodes(ids:)` and `to` may list.",
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
    max_running: int = Field(
        default=256,
        ge=1,
        description="How many operations run at the same time in each process.",
    )
    max_waiting: int = Field(
        default=1_000,
        ge=0,
        description="How many more operations wait for their turn. One more is answered at once with 503, the code "
        "`UNAVAILABLE` and `Retry-After`.",
    )
    max_body_bytes: int = Field(
        default=1_000_000,
        ge=1,
        description="The largest body of an HTTP request, in bytes.",
    )
