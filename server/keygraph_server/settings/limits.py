"""Limits on the size and cost of an operation."""

from __future__ import annotations

from pydantic import BaseModel, Field


class LimitSettings(BaseModel):
    """Limits on the size and cost of an operation."""

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
        description="How many pages of 1 MB (128 read units each) one `totalCount` may read. Beyond that, it is null, "
        "and `extensions.warnings` of the answer says so. At least one page of each shard is read.",
    )
    cost_limit: float = Field(
        default=60_000.0,
        ge=0,
        description="How many read units one operation may cost, both by its bound and at run time; 0 means no "
        "limit. 60,000 read units are 480 MB of eventually consistent reads.",
    )
    depth_limit: int = Field(
        default=10,
        ge=0,
        description="How many root fields, lists and ends of an operation may be nested; 0 means no limit. The fields of a "
        "list, such as its `edges` and `nodes`, do not count as a level.",
    )
    max_document_characters: int = Field(
        default=100_000,
        ge=1,
        description="How many characters a document may have.",
    )
    max_tokens: int = Field(
        default=1_000,
        ge=1,
        description="How many tokens (names, values and punctuation) a document may have, and also how many comments.",
    )
    max_aliases: int = Field(
        default=15,
        ge=0,
        description="How many aliases one selection of an operation may have, including its fragments.",
    )
    max_aliases_in_all: int = Field(
        default=100,
        ge=0,
        description="How many aliases an operation may have in all, after its fragments are expanded.",
    )
    max_root_fields: int = Field(
        default=20,
        ge=1,
        description="How many root fields an operation may have.",
    )
    max_fields: int = Field(
        default=2_000,
        ge=1,
        description="How many fields the operations of a document may have in all, after their fragments are expanded.",
    )
    max_variable_values: int = Field(
        default=5_000,
        ge=1,
        description="How many values the variables of an operation may have, including all elements and members.",
    )
    max_where_terms: int = Field(
        default=50,
        ge=1,
        description="How many conditions one `where` may have; each element of `and` and `or` counts as one more, and so does each `not`.",
    )
    operation_timeout: float = Field(
        default=15.0,
        gt=0,
        description="How long an operation may take, in seconds, from the first byte of its request. This includes reading and validating "
        "the request, waiting, all requests to DynamoDB, and making the answer. It does not include sending the answer, so a slow phone "
        "still gets its whole answer: `KEYGRAPH_WRITE_TIMEOUT` limits that.",
    )
    operation_work: float = Field(
        default=5.0,
        gt=0,
        description="How much processor time an operation may spend on pages of more than 500 items, in seconds, for counts "
        "by keys, and for ranges and filters that are checked item by item.",
    )
    document_cache_bytes: int = Field(
        default=32_000_000,
        ge=0,
        description="How much memory each process may use to cache parsed documents and their plans, in bytes.",
    )
    max_running: int = Field(
        default=256,
        ge=1,
        description="How many operations run at the same time in each process.",
    )
    max_waiting: int = Field(
        default=1_000,
        ge=0,
        description="How many more operations may wait for their turn. Any further operation is answered at once with 503, the "
        "code `UNAVAILABLE` and `Retry-After`.",
    )
    operation_memory: int = Field(
        default=48_000_000,
        ge=1,
        description="How many bytes of items, and of objects made from them, the operations of a process may hold until their answers are "
        "sent. Above that, an operation that needs more is canceled with 503, the code `UNAVAILABLE` and `Retry-After`.",
    )
    max_body_bytes: int = Field(
        default=1_000_000,
        ge=1,
        description="The largest body of an HTTP request, in bytes.",
    )
