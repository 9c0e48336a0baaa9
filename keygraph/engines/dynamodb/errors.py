"""The meaning of botocore's errors: whether a retry may help, and the message for a user.

The codes: "Error handling with DynamoDB" in the DynamoDB developer guide. The retried codes are those of the standard
mode in "Retry behavior" in the AWS SDKs reference guide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore import exceptions as boto

from keygraph.dynamo.actions import UNFIT_SUM
from keygraph.dynamo.items import Item, answered_items
from keygraph.dynamo.limits import ITEM_BYTES, PARTITION_KEY_BYTES, SORT_KEY_BYTES, TRANSACTION_ACTIONS
from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb.http1 import AnswerTooLarge
from keygraph.engines.dynamodb.requests import STREAM_OPERATIONS
from keygraph.engines.dynamodb.transport import UnreadableAnswer
from keygraph.errors import (
    BadUserInput,
    ConditionFailed,
    ItemTooLarge,
    KeygraphError,
    Reason,
    StreamTrimmed,
    TableMissing,
    Throttled,
    TimedOut,
    TokenReused,
    TransactionCanceled,
    Unavailable,
)

# Codes without the suffix `Exception` that some services add.
_THROTTLING = {
    "BandwidthLimitExceeded",
    "EC2Throttled",
    "LimitExceeded",
    "ProvisionedThroughputExceeded",
    "RequestLimitExceeded",
    "RequestThrottled",
    "SlowDown",
    "Throttled",
    "Throttling",
    "TooManyRequests",
}
_PASSING = {
    "InternalServerError",
    "PriorRequestNotComplete",
    "RequestTimeout",
    "ServiceUnavailable",
    "TransactionInProgress",
}
"""Failures, other than throttling, that a retry may help."""
_OURS = {"Serialization", "Validation"}
"""Refusals of a request that is invalid, which only a fault of Keygraph can have caused."""
_CREDENTIALS = {
    "AccessDenied",
    "ExpiredToken",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidSignature",
    "MissingAuthenticationToken",
    "NotAuthorized",
    "SignatureDoesNotMatch",
    "UnrecognizedClient",
}
_WRITES = {
    "ConditionalCheckFailed",
    "IdempotentParameterMismatch",
    "ItemCollectionSizeLimitExceeded",
    "ReplicatedWriteConflict",
    "TransactionCanceled",
    "TransactionConflict",
}
_MOST_CHARACTERS = 1_000
"""The longest code or message that is read. Those of DynamoDB are shorter, or begin with what matters."""
_NAME = re.compile(r"[A-Za-z0-9]{1,80}")
"""The names of errors that a message may repeat."""
_THROTTLED_REASONS = {"ProvisionedThroughputExceeded", "ThrottlingError"}
_REASONS = _THROTTLED_REASONS | {"ConditionalCheckFailed", "TransactionConflict"}
_FULL = "The partition is full: with a local index, DynamoDB stores at most 10 GB for one partition key."
_SKEWED = {"InvalidSignatureException", "RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed"}
_SKEWED_MESSAGE = re.compile(r"Signature (expired|not yet current)", re.IGNORECASE)
_KEY_SIZE = re.compile(
    r"key attribute cannot contain an empty|exceeded the (maximum )?size limit", re.IGNORECASE
)
_SUM = re.compile(r"38 (significant )?digits|number (over|under)flow", re.IGNORECASE)
_UNFIT = re.compile(
    r"incorrect data type|document path provided in the update expression is invalid", re.IGNORECASE
)


class UnusableCredentials(boto.BotoCoreError):
    """AWS's settings name credentials that cannot be had, or that have expired."""

    fmt = "AWS credentials cannot be used: {problem}"


class IteratorExpired(Unavailable):
    """A position in a shard that is older than 15 minutes."""


class TableInUse(Unavailable):
    """The table is being created, changed or deleted."""


class ClockCorrected(boto.ClientError):
    """AWS refused the time of a request; the next one uses AWS's clock."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The error that botocore's error becomes, and whether sending the request again may help."""

    error: KeygraphError
    is_passing: bool = False


def refusal(operation: str, code: object, message: object, response: Mapping[str, Any]) -> boto.ClientError:
    """Returns the error of a refused call, with short texts and the rest of its response."""
    parsed: Any = {**response, "Error": {"Code": short(code), "Message": short(message)}}
    return boto.ClientError(parsed, operation)


def short(text: object) -> str | None:
    """Returns the beginning of a text; None for anything else."""
    return text[:_MOST_CHARACTERS] if isinstance(text, str) else None


def is_skewed(code: str, message: str) -> bool:
    """Returns whether a refusal says that the request's time is too far from AWS's."""
    return code in _SKEWED and (code != "InvalidSignatureException" or bool(_SKEWED_MESSAGE.search(message)))


def code_of(error: BaseException) -> str | None:
    """Returns DynamoDB's name of the error, such as `ResourceInUseException`; None if it is not DynamoDB's."""
    return error.response.get("Error", {}).get("Code") if isinstance(error, boto.ClientError) else None


def failure_of(error: Exception, table: Table, endpoint: str, actions: int = 0) -> Failure | None:
    """Returns the meaning of an error; None for one that only a fault of ours can have caused.

    `actions` is the number of actions of the transaction that failed. Messages name the table and the endpoint, but no
    key, value, account or secret.
    """
    if isinstance(error, boto.ClientError):
        try:
            return _answered(error, table, endpoint, actions)
        except Exception:
            # Its parts are not of the types that DynamoDB gives them.
            return _not_dynamodb(endpoint)
    match error:
        case boto.ReadTimeoutError() | boto.ConnectTimeoutError():
            return Failure(TimedOut(f"DynamoDB at {endpoint} did not answer in time"), is_passing=True)
        case boto.SSLError():
            return Failure(Unavailable(f"no secure connection to {endpoint}: check its certificate"))
        case boto.ChecksumError() | boto.IncompleteReadError():
            return Failure(
                Unavailable(f"answers from DynamoDB at {endpoint} arrive damaged"), is_passing=True
            )
        case boto.HTTPClientError(kwargs={"error": AnswerTooLarge()}):
            return Failure(Unavailable(f"an answer from {endpoint} is larger than DynamoDB gives"))
        case boto.ConnectionError() | boto.HTTPClientError():
            return Failure(
                Unavailable(f"no connection to DynamoDB at {endpoint}: is it running?"), is_passing=True
            )
        case UnreadableAnswer():
            return _not_dynamodb(endpoint)
        case boto.NoRegionError():
            return Failure(Unavailable("no AWS region is set: set AWS_REGION"))
        case boto.ProfileNotFound():
            told = f"there is no AWS profile {error.kwargs['profile']}: set AWS_PROFILE to one of those in ~/.aws/config"
            return Failure(Unavailable(told))
        case UnusableCredentials():
            return Failure(Unavailable(str(error)))
        case boto.NoCredentialsError():
            return Failure(Unavailable("no AWS credentials: set AWS_PROFILE, or run with a role"))
    return None


def _not_dynamodb(endpoint: str) -> Failure:
    return Failure(Unavailable(f"the server at {endpoint} is not DynamoDB"))


def _answered(error: boto.ClientError, table: Table, endpoint: str, actions: int) -> Failure | None:
    code = code_of(error) or ""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    message = error.response.get("Error", {}).get("Message", "")
    kind = code.removesuffix("Exception")
    if kind in _WRITES:
        return _unwritten(kind, error, table, actions)
    if kind in _THROTTLING:
        return _throttled(table.name)
    # Positions in a stream are what its server has answered before: it is not a fault of ours if it refuses them.
    if kind == "ExpiredIterator" or (error.operation_name == "GetRecords" and kind in _OURS):
        return Failure(IteratorExpired("a position in a stream is older than 15 minutes"))
    is_of_stream = error.operation_name in STREAM_OPERATIONS
    is_refused = error.operation_name == "GetShardIterator" and kind in _OURS
    if kind == "TrimmedDataAccess" or is_refused or (is_of_stream and code == "ResourceNotFoundException"):
        return Failure(StreamTrimmed(f"changes were deleted from the stream of the table {table.name}"))
    if code == "ResourceNotFoundException":
        return Failure(
            TableMissing(f"there is no table {table.name}: create it with `keygraph table create`")
        )
    if code == "ResourceInUseException":
        return Failure(TableInUse(f"the table {table.name} is being created, changed or deleted"))
    if kind in _CREDENTIALS or isinstance(error, ClockCorrected):
        problem = f"AWS refuses these credentials for the table {table.name} ({code}): check AWS_PROFILE or the role"
        return Failure(Unavailable(problem), is_passing=isinstance(error, ClockCorrected))
    if code == "ValidationException" and "specified index" in message:
        problem = f"the table {table.name} lacks an index of the model: compare `keygraph table describe` with the model"
        return Failure(TableMissing(problem))
    if code == "ValidationException" and (unfit := _unfit(message)):
        return Failure(unfit)
    if code == "ValidationException" and _KEY_SIZE.search(message):
        problem = (
            "a key is empty, or larger than DynamoDB allows "
            f"({PARTITION_KEY_BYTES:,} bytes for a partition key, {SORT_KEY_BYTES:,} for a sort key)"
        )
        return Failure(BadUserInput(problem))
    if code == "ValidationException" and "starting key" in message:
        return Failure(BadUserInput("the start is outside the range that is read"))
    if status >= 500 or kind in _PASSING:
        return Failure(Unavailable(f"DynamoDB at {endpoint} failed with status {status}"), is_passing=True)
    if kind in _OURS:
        return None
    return _not_dynamodb(endpoint) if not code or code.isdigit() else _refused(code, table.name)


def _throttled(table: str) -> Failure:
    return Failure(Throttled(f"DynamoDB throttles requests to the table {table}"), is_passing=True)


def _refused(code: str, table: str) -> Failure:
    """Returns the meaning of a refusal that Keygraph knows nothing about, such as those of AWS KMS."""
    name = f": {code}" if _NAME.fullmatch(code) else ""
    return Failure(Unavailable(f"DynamoDB refuses requests to the table {table}{name}"))


def _unwritten(kind: str, error: boto.ClientError, table: Table, actions: int) -> Failure:
    """Returns why DynamoDB did not write."""
    told: dict[str, Any] = dict(error.response)
    match kind:
        case "ConditionalCheckFailed":
            return Failure(ConditionFailed(_item(told, table)))
        case "IdempotentParameterMismatch":
            return Failure(TokenReused("the token of a transaction was used for another one"))
        case "ItemCollectionSizeLimitExceeded":
            return Failure(ItemTooLarge(_FULL))
        case "TransactionConflict" | "ReplicatedWriteConflict":
            # The latter: another region writes the same item.
            return _conflict(actions)
    given = told.get("CancellationReasons") or ()
    if len(given) > TRANSACTION_ACTIONS:
        raise ValueError("more reasons than a transaction has actions")
    reasons = [
        None if each.get("Code") in {None, "None"} else Reason(each["Code"], _item(each, table))
        for each in given
    ]
    for unfit in filter(None, [_unfit(each.get("Message") or "") for each in given]):
        return Failure(unfit)
    codes = {reason.code for reason in reasons if reason}
    if "ItemCollectionSizeLimitExceeded" in codes:
        return Failure(ItemTooLarge(_FULL))
    if codes and codes <= _THROTTLED_REASONS:
        return _throttled(table.name)
    unknown = codes - _REASONS
    if unknown or not codes:
        return _refused(min(unknown, default=kind), table.name)
    if len(reasons) == max(1, actions):
        return Failure(TransactionCanceled(reasons), is_passing="ConditionalCheckFailed" not in codes)
    # Which action each reason is for is unknown.
    return _refused(kind, table.name) if "ConditionalCheckFailed" in codes else _conflict(actions)


def _conflict(actions: int) -> Failure:
    return Failure(TransactionCanceled([Reason("TransactionConflict")] * max(1, actions)), is_passing=True)


def _unfit(message: str) -> BadUserInput | None:
    """Returns the error of a write that does not fit the stored item; None for another refusal."""
    message = message[:_MOST_CHARACTERS]
    if "item size " in message.lower() and "exceeded" in message.lower():
        return ItemTooLarge(f"The item is larger than {ITEM_BYTES // 1024} KB.")
    if _SUM.search(message):
        return BadUserInput(UNFIT_SUM)
    if _UNFIT.search(message):
        return BadUserInput("An update cannot change an attribute: the existing value has another type.")
    return None


def _item(told: Mapping[str, Any], table: Table) -> Item | None:
    typed = told.get("Item")
    return answered_items([dict(typed)], table.key_names)[0] if typed else None
