"""The direct transport: signs, sends and reads requests for data, without the layers of AWS's library.

Credentials, region and endpoint come from aioboto3's session, which refreshes them. Requests that change or list tables
go through its client. Failures are botocore's own exceptions, so `keygraph.engines.dynamodb.errors` handles both
transports.
"""

from __future__ import annotations

import json
import re
import ssl
import time
import zlib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from email.utils import parsedate_to_datetime
from functools import partial

import orjson
from botocore import exceptions as boto

from keygraph.dynamo.items import base64_text, is_large, separators
from keygraph.dynamo.limits import ITEM_BYTES, PAGE_BYTES
from keygraph.engines.dynamodb import transport
from keygraph.engines.dynamodb.errors import ClockCorrected, is_skewed, refusal, short
from keygraph.engines.dynamodb.http1 import ANSWER_BYTES, CONNECT_SHARE, READ_SHARE, Pool, Reply
from keygraph.engines.dynamodb.requests import STREAM_OPERATIONS, Wire
from keygraph.engines.dynamodb.signing import Credentials, Signer

_MANAGED = {
    *("CreateTable", "DeleteTable", "ListTables", "UpdateTable"),
    *("DescribeTimeToLive", "UpdateTimeToLive"),
}
"""The operations that the client sends. A server that runs only describes its table: the client would read interim
answers and chunks without an end."""
_ANSWER_BYTES = {
    **dict.fromkeys(("DescribeTable", "DescribeStream", "GetShardIterator"), PAGE_BYTES),
    **dict.fromkeys(("Query", "Scan"), 8 * PAGE_BYTES),
    "GetItem": 8 * ITEM_BYTES,
}
"""The largest answers with one item or one page, or without items. What DynamoDB counts as one byte takes eight at most in JSON, but for
rarities: a list of booleans."""
_REFUSAL_SEPARATORS = 200_000
"""The most commas, lists and maps in a refusal, which may contain the items of a transaction. More take long to read."""
_API, _STREAMS_API = "DynamoDB_20120810", "DynamoDBStreams_20120810"
_OF_AWS = re.compile(r"https://dynamodb\.([a-z0-9-]+\.amazonaws\.com(?:\.cn)?)/?")
"""AWS's endpoints, beside which stand those of DynamoDB Streams. Other servers have both APIs at one."""
_SKEW_SECONDS = 240.0
"""How far a clock may be off before it is corrected; AWS refuses a signature that is 5 minutes off."""


class DirectTransport:
    """Sends calls through Keygraph's own HTTP client."""

    def __init__(
        self,
        http: Pool,
        signer: Signer,
        credentials: Callable[[], Awaitable[Credentials]],
        others: transport.Transport,
        clock: Callable[[], float] = time.time,
        streams: tuple[Pool, Signer] | None = None,
    ) -> None:
        """`credentials` returns the current ones, and is called once a second; `others` sends all other calls. `streams`
        are for the calls of DynamoDB Streams, if it has an endpoint of its own."""
        self._http = http
        self._signer = signer
        self._streams = streams or (http, signer)
        self._credentials = credentials
        self._others = others
        self._clock = clock
        self._offset = 0.0
        self._second = -1
        self._given: Credentials | None = None

    async def call(self, wire: Wire) -> transport.Received:
        """Sends one call and returns its answer."""
        operation = wire.operation
        if operation in _MANAGED:
            return await self._others.call(wire)
        body = encoded(wire.body)
        now = self._clock() + self._offset
        given = self._given
        if given is None or int(now) != self._second:
            given = await self._credentials()
            self._second, self._given = int(now), given
        http, signer, api = self._http, self._signer, _API
        if operation in STREAM_OPERATIONS:
            (http, signer), api = self._streams, _STREAMS_API
        lines = signer.lines(given, f"{api}.{operation}", body, now)
        reply = await http.post(lines, body, _ANSWER_BYTES.get(operation, ANSWER_BYTES))
        expected = reply.checksum
        if expected is not None and expected != (actual := b"%d" % zlib.crc32(reply.body)):
            raise boto.ChecksumError(
                checksum_type="crc32", expected_checksum=repr(expected), actual_checksum=repr(actual)
            )
        size = len(reply.body) if is_large(reply.body) else 0
        if reply.status == 200:
            return transport.Received(partial(_answer, reply), size)
        refused = partial(self._refusal, operation, reply, now)
        raise await transport.in_thread(refused, size) if size else refused()

    async def close(self) -> None:
        """Closes the connections, including the client's, also if it is canceled meanwhile."""
        async with AsyncExitStack() as closing:
            for each in (self._others, self._streams[0], self._http):
                closing.push_async_callback(each.close)

    def _refusal(self, operation: str, reply: Reply, now: float) -> boto.ClientError:
        code, message, details = _told(reply)
        answered = {"HTTPStatusCode": reply.status, "HTTPHeaders": reply.headers}
        error = refusal(operation, code, message, {**details, "ResponseMetadata": answered})
        if is_skewed(code, message):
            with suppress(KeyError, ValueError):  # its answer may have no date
                theirs = parsedate_to_datetime(reply.headers["date"]).timestamp()
                if abs(theirs - now) >= _SKEW_SECONDS:
                    # Not added up: other requests signed with the same wrong clock are refused too.
                    self._offset = theirs - self._clock()
                    return ClockCorrected(error.response, operation)
        return error


def direct_transport(
    url: str,
    region: str,
    tls: ssl.SSLContext | None,
    credentials: Callable[[], Awaitable[Credentials]],
    others: transport.Transport,
    deadline: float,
) -> DirectTransport:
    """Returns the transport to an endpoint. `tls` verifies its certificate, `deadline` is how many seconds an answer may
    take with its retries; for the rest see `DirectTransport`."""

    def connected(url: str) -> tuple[Pool, Signer]:
        signer = Signer(url, region)
        seconds = {"connect_seconds": deadline / CONNECT_SHARE, "read_seconds": deadline / READ_SHARE}
        return Pool(url, signer.host, tls, **seconds), signer

    of_aws = _OF_AWS.fullmatch(url)
    streams = None if of_aws is None else connected(f"https://streams.dynamodb.{of_aws[1]}")
    return DirectTransport(*connected(url), credentials, others, streams=streams)


def encoded(body: object) -> bytes:
    """Returns the JSON of parameters; binary values are base64."""
    try:
        return orjson.dumps(body, default=base64_text)
    except TypeError:
        # Invalid Unicode is escaped, as aioboto3 sends it, so that DynamoDB refuses it with its own message.
        return json.dumps(body, default=base64_text).encode()


def _answer(reply: Reply) -> transport.Body:
    try:
        return transport.answer_of(reply.body)
    except transport.UnreadableAnswer as error:
        if isinstance(error.__cause__, json.JSONDecodeError) and "x-amzn-requestid" in reply.headers:
            # DynamoDB's, but cut off, and without a length: at least one more byte was expected.
            have = len(reply.body)
            raise boto.IncompleteReadError(actual_bytes=have, expected_bytes=have + 1) from error
        raise


def _told(reply: Reply) -> tuple[str, str, transport.Body]:
    """Returns the code, message and details of a refusal; the status as code if the answer is not DynamoDB's."""
    if separators(reply.body) > _REFUSAL_SEPARATORS:
        return str(reply.status), "", {}
    try:
        told = _answer(reply)
    except (transport.UnreadableAnswer, boto.IncompleteReadError):
        return str(reply.status), "", {}
    code = (short(told.get("__type")) or "").rpartition("#")[2].partition(":")[0]
    return code, short(told.get("message") or told.get("Message")) or "", told
