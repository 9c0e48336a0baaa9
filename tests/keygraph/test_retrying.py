"""Deadlines and retries: what takes too long ends then, nothing else does, and retries are those of AWS's SDKs."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from itertools import pairwise
from typing import Any
from weakref import WeakSet

import pytest
from botocore import exceptions as boto
from botocore.retries import standard
from botocore.retries.quota import RetryQuota

from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb import retrying
from keygraph.engines.dynamodb.errors import failure_of
from keygraph.engines.dynamodb.retrying import Attempts, Backoff, Deadline, Quota
from keygraph.errors import (
    ConditionFailed,
    Throttled,
    TimedOut,
    TokenReused,
    TransactionCanceled,
    Unavailable,
)


async def test_each_ends_at_its_own_deadline() -> None:
    loop, deadline, ended = asyncio.get_running_loop(), Deadline(0.1, "too late"), list[int]()

    async def hang(number: int) -> float:
        began = loop.time()
        with pytest.raises(TimedOut, match="too late"), Attempts(deadline, Backoff()):
            await asyncio.sleep(10)
        ended.append(number)
        return loop.time() - began

    running = []
    for number in range(8):
        running.append(asyncio.create_task(hang(number)))
        await asyncio.sleep(0.02)
    assert 0 in ended
    assert all(each > 0.095 for each in await asyncio.gather(*running))
    assert ended == [*range(8)]


async def test_of_many_with_one_deadline_a_few_end_in_a_turn_of_the_loop() -> None:
    """Hundreds of requests wait when a server hangs, and each has an error to answer then."""
    deadline, ended = Deadline(0.0, "too late"), list[int]()

    async def hang() -> None:
        with pytest.raises(TimedOut), Attempts(deadline, Backoff()):
            await asyncio.sleep(10)
        ended.append(0)

    running = [asyncio.create_task(hang()) for _ in range(100)]
    counts = [0]
    for _ in range(1_000):
        await asyncio.sleep(0)
        counts.append(len(ended))
    assert max(after - before for before, after in pairwise(counts)) <= 16
    await asyncio.gather(*running)


async def test_what_is_in_time_is_left_alone() -> None:
    deadline = Deadline(0.05, "too late")

    async def quick() -> str:
        with Attempts(deadline, Backoff()):
            await asyncio.sleep(0)
        await asyncio.sleep(0.6)
        return "whole"

    async def slow() -> None:
        with pytest.raises(TimedOut), Attempts(deadline, Backoff()):
            await asyncio.sleep(10)

    *answers, _ = await asyncio.gather(*(quick() for _ in range(20)), slow())
    assert answers == ["whole"] * 20
    assert not deadline.waits
    assert deadline.timer is None


async def test_somebody_elses_cancellation_is_no_deadline() -> None:
    async def hang(first: float) -> None:
        with Attempts(deadline, Backoff()):
            try:
                await asyncio.sleep(10)
            finally:
                # While it ends, its own deadline passes too.
                await asyncio.sleep(first)

    deadline = Deadline(0.03, "too late")
    for first in (0.0, 0.06):
        task = asyncio.create_task(hang(first))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await hang(0)


async def test_the_timer_keeps_nothing_of_the_task_that_started_it() -> None:
    deadline, kept = Deadline(5.0, "too late"), WeakSet[Deadline]()

    async def quick() -> None:
        kept.add(own := Deadline(1.0, "of the task"))
        ContextVar[Deadline]("own").set(own)
        with Attempts(deadline, Backoff()):
            await asyncio.sleep(0)

    await asyncio.create_task(quick())
    # The event loop itself keeps a task until whoever waits for it has begun to wait for something else.
    await asyncio.sleep(0)
    assert deadline.timer is not None
    assert not kept


async def test_a_deadline_tells_the_last_failure() -> None:
    async def busy(backoff: Backoff, times: int) -> None:
        with Attempts(Deadline(0.02, "too late"), backoff) as attempts:
            for attempt in range(times):
                await attempts.wait(attempt, Throttled("busy"))
            await asyncio.sleep(10)

    with pytest.raises(Throttled):
        await busy(Backoff(0, 0), 1)
    # The pause would end after the deadline, so there is none.
    with pytest.raises(Throttled):
        await busy(Backoff(9, 9), 50)


def test_pauses_have_full_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        bounds.append((low, high))
        return high

    monkeypatch.setattr(retrying.random, "uniform", uniform)
    backoff = Backoff(first=0.05, longest=1.0)
    pauses = [backoff.pause(attempt) for attempt in (0, 1, 2, 4, 5, 2000)]
    assert pauses == [0.05, 0.1, 0.2, 0.8, 1.0, 1.0]
    assert [low for low, _ in bounds] == [0] * 6


def test_the_quota_is_that_of_the_sdks() -> None:
    quota = Quota()
    for _ in range(RetryQuota.INITIAL_CAPACITY // 5):
        assert quota.pay(Unavailable("down")) == standard.RetryQuotaChecker._RETRY_COST
    with pytest.raises(Unavailable):
        quota.pay(Unavailable("down"))
    quota.give_back(10)
    assert quota.pay(TimedOut("late")) == standard.RetryQuotaChecker._TIMEOUT_RETRY_REQUEST
    for _ in range(4):
        quota.give_back(None)
    with pytest.raises(Unavailable):
        quota.pay(Unavailable("down"))
    quota.give_back(None)
    assert quota.pay(Unavailable("down")) == 5


def _refusal(code: str, status: int = 400) -> boto.ClientError:
    parsed: Any = {
        "Error": {"Code": code, "Message": ""},
        "ResponseMetadata": {"HTTPStatusCode": status},
        "CancellationReasons": [{"Code": "ConditionalCheckFailed"}],
    }
    return boto.ClientError(parsed, "Query")


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        *((_refusal(code), True) for code in standard.ThrottledRetryableChecker._THROTTLED_ERROR_CODES),
        *((_refusal(code), True) for code in standard.TransientRetryableChecker._TRANSIENT_ERROR_CODES),
        *((_refusal("", code), True) for code in standard.TransientRetryableChecker._TRANSIENT_STATUS_CODES),
        (boto.ConnectionClosedError(endpoint_url="x"), True),
        (boto.EndpointConnectionError(endpoint_url="x"), True),
        (boto.ConnectTimeoutError(endpoint_url="x"), True),
        (boto.ReadTimeoutError(endpoint_url="x"), True),
        (boto.HTTPClientError(error="x"), True),
        (boto.ChecksumError(checksum_type="crc32", expected_checksum="1", actual_checksum="2"), True),
        (_refusal("ResourceNotFoundException"), False),
        (_refusal("AccessDeniedException"), False),
        (_refusal("ExpiredTokenException"), False),
        (boto.SSLError(endpoint_url="x", error="x"), False),
    ],
)
def test_what_is_tried_again_is_what_the_sdks_try_again(error: Exception, passes: bool) -> None:
    meant = failure_of(error, Table("Shop", partition_key="pk"), "AWS")
    assert meant is not None
    assert meant.is_passing is passes


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ValidationException", None),
        ("ConditionalCheckFailedException", ConditionFailed),
        ("TransactionCanceledException", TransactionCanceled),
        ("IdempotentParameterMismatchException", TokenReused),
    ],
)
def test_what_is_refused_for_good_is_not_tried_again(code: str, expected: type | None) -> None:
    meant = failure_of(_refusal(code), Table("Shop", partition_key="pk"), "AWS")
    told = None if meant is None else (type(meant.error), meant.is_passing)
    assert told == (None if expected is None else (expected, False))
