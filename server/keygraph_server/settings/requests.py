"""How requests are sent to DynamoDB."""

from __future__ import annotations

from pydantic import BaseModel, Field

from keygraph.engines.dynamodb.transport import TransportName


class RequestSettings(BaseModel):
    """How requests are sent to DynamoDB."""

    concurrency: int = Field(
        default=256,
        ge=1,
        description="How many requests to DynamoDB each process sends at once, and how many lists one operation "
        "reads at once on any store.",
    )
    deadline: float = Field(
        default=10.0,
        gt=0,
        description="The time limit of a request to DynamoDB including its retries, in seconds.",
    )
    transport: TransportName = Field(
        default=TransportName.DIRECT,
        description="The HTTP client for data requests to DynamoDB: `direct` is Keygraph's own client, which uses a "
        "fraction of the processor time; `aioboto3` is the AWS SDK. If the AWS settings need something "
        "that `direct` does not support (a proxy, a FIPS endpoint), Keygraph uses `aioboto3` and logs "
        "it.",
    )
