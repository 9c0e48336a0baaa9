"""The limits of operations. The settings of the server have them too: `max_ids` is `KEYGRAPH_MAX_IDS`.

It is not imported with `keygraph`: only a service has limits, and a model needs no pydantic.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

MOST = 1_000_000_000_000
"""No setting needs a larger number, and what is computed with a much larger one fails while the server runs."""
Count: TypeAlias = Annotated[int, Field(ge=1, le=MOST)]
CountOrZero: TypeAlias = Annotated[int, Field(ge=0, le=MOST)]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=1_000_000)]
"""Timers of the system refuse a time that is much longer."""
WholeSeconds: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]


class Limits(BaseModel):
    """The limits on the size and cost of an operation, and on those that run at the same time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_page_size: Count = 100
    """The largest value of `first` and `last`."""
    max_ids: Count = 100
    """How many ids `nodes(ids:)` and `to` may list."""
    read_budget: int = Field(default=10_000, ge=1, le=10_000_000)
    """How many items one list may look at to fill a page, at most 10,000,000."""
    count_pages: Count = 20
    """How many pages of 1 MB (128 read units each) one `totalCount` may read. Beyond that, it is null, and
    `extensions.warnings` of the answer says so. At least one page of each shard is read."""
    cost_limit: float = Field(default=60_000.0, ge=0, le=MOST)
    """How many read units one operation may cost, both by its bound and at run time; 0 means no limit. 60,000 read units
    are 480 MB of eventually consistent reads."""
    depth_limit: CountOrZero = 10
    """How many root fields, lists and ends of an operation may be nested; 0 means no limit. The fields of a list, such
    as its `edges` and `nodes`, do not count as a level."""
    max_document_characters: Count = 100_000
    """How many characters a document may have."""
    max_tokens: Count = 1_000
    """How many tokens (names, values and punctuation) a document may have, and also how many comments."""
    max_aliases: CountOrZero = 15
    """How many aliases one selection of an operation may have, including its fragments."""
    max_aliases_in_all: CountOrZero = 100
    """How many aliases an operation may have in all, after its fragments are expanded."""
    max_root_fields: Count = 20
    """How many root fields an operation may have."""
    max_fields: Count = 2_000
    """How many fields the operations of a document may have in all, after their fragments are expanded."""
    max_variable_values: Count = 5_000
    """How many values the variables of an operation may have, including all elements and members."""
    max_where_terms: Count = 50
    """How many conditions one `where` may have; each element of `and` and `or` counts as one more, and so does each
    `not`."""
    operation_timeout: Seconds = 15.0
    """How long an operation may take, in seconds, from the first byte of its request. This includes reading and
    validating the request, waiting, all requests to DynamoDB, and making the answer. It does not include sending the
    answer, so a slow phone still gets its whole answer: `KEYGRAPH_WRITE_TIMEOUT` limits that."""
    operation_work: Seconds = 5.0
    """How much processor time an operation may spend on pages of more than 500 items, in seconds, for counts by keys,
    and for ranges and filters that are checked item by item."""
    document_cache_bytes: CountOrZero = 32_000_000
    """How much memory each process may use to cache parsed documents and their plans, in bytes."""
    max_running: Count = 256
    """How many operations run at the same time in each process. An operation counts once for each 1,000 items or
    requests of its bound, without items that DynamoDB only counts, up to a quarter of this number. A small one that
    waits for a thread that reads a SQLite file or a large answer, or of which 16 requests have waited, no longer
    counts; so many more run without counting. The operations of one client (its address, for IPv6 its /64 network, and
    the `sub` of its token) together count up to half of this number, and so do all that count more than once."""
    max_waiting: CountOrZero = 1_000
    """How many more operations may wait for their turn, up to half of them of one client. Any further operation is
    answered at once with 503, the code `UNAVAILABLE` and `Retry-After`."""
    operation_memory: Count = 48_000_000
    """How many bytes of items, and of objects made from them, the operations of a process may hold until their answers
    are sent. Above that, an operation that needs more is canceled with 503, the code `UNAVAILABLE` and `Retry-After`."""
    answer_limit: int = Field(default=8_000_000, ge=1_000, le=MOST)
    """The largest answer to an operation, in bytes before compression. A larger one fails with `ANSWER_LIMIT`."""
    concurrency: Count = 256
    """How many requests to DynamoDB each process sends at once, and how many lists, and shards of lists, one operation
    reads at once on any store."""


class LiveLimits(BaseModel):
    """The limits of the subscriptions of a process."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    live_operations: Count = 10_000
    """How many subscriptions each process serves at the same time, up to half of them of one client (its address, and
    the `sub` of its token). The next one is refused with the code `LIVE_LIMIT`; queries go on."""
    live_operations_by_connection: Count = 100
    """How many of them one WebSocket may have."""
    live_memory: Count = 64_000_000
    """How many bytes a process keeps for them, up to half of them for one client: their documents, variables and claims,
    changes that wait to be sent, and 400 for each key and key range that they have read, up to a sixteenth for one
    subscription. One that needs more is
    refused, or ended, with the code `LIVE_LIMIT`."""
    live_events: Count = 1_000
    """How many changes may wait for a client that subscribes to changes and reads slowly. With one more, its subscription
    ends with the code `EVENTS_LOST`."""
    live_running: Count = 32
    """How many of them a process runs at the same time, up to half of them of one client. They also count as running
    operations."""
    live_idle: Seconds = 60.0
    """How long a WebSocket may stay open without a subscription, in seconds."""


NO_LIMITS = Limits(
    operation_timeout=600.0,  # on a busy machine, a law is not about time
    cost_limit=0,
    depth_limit=0,
    **dict.fromkeys(
        (
            "max_document_characters",
            "max_tokens",
            "max_aliases",
            "max_aliases_in_all",
            "max_root_fields",
            "max_fields",
            "max_variable_values",
        ),
        MOST,
    ),
)
