"""Deadlines and retries: what takes too long ends then, nothing else does, and retries are those of AWS's SDKs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from botocore import exceptions as boto
from botocore.retries import standard
from botocore.retries.quota import RetryQuota

from keygraph.engines.dynamodb import retrying
from keygraph.engines.dynamodb.errors import failure_of
from keygraph.engines.dynamodb.retrying import Attempts, Backoff, Quota
from keygraph.errors import (
    ConditionFailed,
    Throttled,
    TimedOut,
    TokenReused,
    TransactionCanceled,
    Unavailable,
)


def _within(seconds: float) -> Attempts:
    return Attempts(seconds, Backoff(), "too late")


async def test_each_ends_at_its_own_deadline() -> None:
    """Of requests that begin one after the other some would be ended too early, or hang."""
    loop = asyncio.get_running_loop()

    async def hang() -> float:
        began = loop.time()
        with pytest.raises(TimedOut, match="too late"):
            async with _within(0.1):
                await asyncio.sleep(10)
        return loop.time() - began

    running = []
    for _ in range(8):
        running.append(asyncio.create_task(hang()))
        await asyncio.sleep(0.02)
    taken = await asyncio.gather(*running)
    assert all(0.095 < each < 0.3 for each in taken)


async def test_what_is_in_time_is_left_alone() -> None:
    """A request that has ended would take what its client does next with it."""

    async def quick() -> str:
        async with _within(0.5):
            await asyncio.sleep(0)
        await asyncio.sleep(0.6)
        return "whole"

    async def slow() -> None:
        with pytest.raises(TimedOut):
            async with _within(0.05):
                await asyncio.sleep(10)

    *answers, _ = await asyncio.gather(*(quick() for _ in range(20)), slow())
    assert answers == ["whole"] * 20


async def test_somebody_elses_cancellation_is_no_deadline() -> None:
    """A client that goes away would look like a DynamoDB that does not answer, and its task go on."""

    async def hang(first: float) -> None:
        async with _within(0.03):
            try:
                await asyncio.sleep(10)
            finally:
                # While it ends, its own deadline passes too.
                await asyncio.sleep(first)

    for first in (0.0, 0.06):
        task = asyncio.create_task(hang(first))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await hang(0)


async def test_a_deadline_tells_the_last_failure() -> None:
    """Whoever reads the error would look for a broken network instead of the table's capacity."""

    async def busy(backoff: Backoff, times: int) -> None:
        async with Attempts(0.02, backoff, "too late") as attempts:
            for attempt in range(times):
                await attempts.wait(attempt, Throttled("busy"))
            await asyncio.sleep(10)

    with pytest.raises(Throttled):
        await busy(Backoff(0, 0), 1)
    # The pause would end after the deadline, so there is none.
    with pytest.raises(Throttled):
        await busy(Backoff(9, 9), 50)


def test_pauses_have_full_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that failed together would come back together, again and again."""
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
    """A DynamoDB that is down would be asked many times by everybody."""
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
    parsed: Any = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
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
    """A query would fail where AWS's own clients succeed."""
    meant = failure_of(error, "Shop", "AWS")
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
    """A write that must not be would be asked for until the deadline, or be told as a fault of Keygraph's."""
    meant = failure_of(_refusal(code), "Shop", "AWS")
    told = None if meant is None else (type(meant.error), meant.is_passing)
    assert told == (None if expected is None else (expected, False))
