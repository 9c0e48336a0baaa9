"""What botocore's errors mean: which pass when the request is sent again, and what a user is told.

The codes: "Error handling with DynamoDB" in the DynamoDB developer guide; those that pass are those that the standard
mode of "Retry behavior" in the AWS SDKs reference guide tries again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from keygraph.errors import BadUserInput, KeygraphError, TableMissing, Throttled, TimedOut, Unavailable

_THROTTLING = {
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
}
_PASSING = {
    "InternalServerError",
    "PriorRequestNotComplete",
    "RequestTimeout",
    "RequestTimeoutException",
    "ServiceUnavailable",
    "TransactionInProgressException",
}
"""What passes, but is not for load."""
_CREDENTIALS = {
    "AccessDenied",
    "AccessDeniedException",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "NotAuthorizedException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_SKEWED = {"InvalidSignatureException", "RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed"}
_SKEWED_MESSAGE = re.compile(r"Signature (expired|not yet current)", re.IGNORECASE)
_NO_CREDENTIALS = (
    boto.NoCredentialsError,
    boto.PartialCredentialsError,
    boto.CredentialRetrievalError,
    boto.TokenRetrievalError,
    boto.SSOError,
    boto.UnauthorizedSSOTokenError,
    boto.ProfileNotFound,
)
_KEY_OR_ITEM_SIZE = re.compile(
    r"key attribute cannot contain an empty|exceeded the (maximum )?size limit|Item size .*exceeded",
    re.IGNORECASE,
)


class ClockCorrected(boto.ClientError):
    """AWS refused the time of a request; the next one goes by AWS's clock."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an error of botocore means to whoever asked, and whether it may pass."""

    error: KeygraphError
    passes: bool


def is_skewed(code: str, message: str) -> bool:
    """Whether a refusal says that the request's time is too far from AWS's."""
    return code in _SKEWED and (code != "InvalidSignatureException" or bool(_SKEWED_MESSAGE.search(message)))


def code_of(error: BaseException) -> str | None:
    """DynamoDB's name of the error, for example `ResourceInUseException`; None where it is not DynamoDB's."""
    return error.response.get("Error", {}).get("Code") if isinstance(error, boto.ClientError) else None


def meaning(error: Exception, table: str, endpoint: str) -> Meaning | None:
    """The meaning, or None for what nobody but us can have caused.

    Messages name the table and the endpoint, never a key, a value, an account or a secret.
    """
    if isinstance(error, boto.ClientError):
        return _answered(error, table, endpoint)
    match error:
        case boto.ReadTimeoutError() | boto.ConnectTimeoutError():
            return Meaning(TimedOut(f"DynamoDB at {endpoint} did not answer in time"), passes=True)
        case boto.SSLError():
            return Meaning(
                Unavailable(f"no secure connection to {endpoint}: check its certificate"), passes=False
            )
        case boto.ChecksumError() | boto.IncompleteReadError():
            return Meaning(Unavailable(f"answers of DynamoDB at {endpoint} arrive damaged"), passes=True)
        case boto.ConnectionError() | boto.HTTPClientError():
            return Meaning(
                Unavailable(f"no connection to DynamoDB at {endpoint}: is it running?"), passes=True
            )
        case ResponseParserError():
            return Meaning(Unavailable(f"what answers at {endpoint} is not DynamoDB"), passes=False)
        case boto.NoRegionError():
            return Meaning(Unavailable("no AWS region is set: set AWS_REGION"), passes=False)
        case _ if isinstance(error, _NO_CREDENTIALS):
            return Meaning(
                Unavailable("no AWS credentials: set AWS_PROFILE, or run where a role gives them"), False
            )
    return None


def _answered(error: boto.ClientError, table: str, endpoint: str) -> Meaning | None:
    code = code_of(error) or ""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    message = error.response.get("Error", {}).get("Message", "")
    if code in _THROTTLING:
        return Meaning(Throttled(f"DynamoDB refuses more requests to the table {table} for now"), passes=True)
    if code == "ResourceNotFoundException":
        return Meaning(
            TableMissing(f"there is no table {table}: create it with `keygraph table create`"), False
        )
    if code in _CREDENTIALS or isinstance(error, ClockCorrected):
        problem = (
            f"AWS refuses these credentials for the table {table} ({code}): check AWS_PROFILE or the role"
        )
        return Meaning(Unavailable(problem), passes=isinstance(error, ClockCorrected))
    if code == "ValidationException" and "specified index" in message:
        problem = f"the table {table} lacks an index of the model: compare `keygraph table describe` with it"
        return Meaning(TableMissing(problem), passes=False)
    if code == "ValidationException" and _KEY_OR_ITEM_SIZE.search(message):
        problem = (
            "a key is empty, or a key or an item is larger than DynamoDB allows (2,048 bytes for a partition"
        )
        return Meaning(
            BadUserInput(f"{problem} key, 1,024 for a sort key, 400 KB for an item)"), passes=False
        )
    if code == "ValidationException" and "starting key" in message:
        return Meaning(
            BadUserInput("the position to go on from is not in the range that is read"), passes=False
        )
    if status >= 500 or code in _PASSING:
        return Meaning(Unavailable(f"DynamoDB at {endpoint} failed with status {status}"), passes=True)
    if not code or code.isdigit():
        return Meaning(Unavailable(f"what answers at {endpoint} is not DynamoDB"), passes=False)
    return None
