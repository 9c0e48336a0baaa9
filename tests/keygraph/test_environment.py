"""AWS's settings where the environment has all of them: aioboto3 is opened for requests about tables alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from keygraph.dynamo.store import DescribeTable, ListTables, Query
from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb.direct import DirectTransport
from keygraph.engines.dynamodb.engine import open_dynamodb
from keygraph.engines.dynamodb.environment import settings
from tests.keygraph.faulty import FaultyDynamoDB

ENDPOINT = "https://dynamodb.eu-central-1.amazonaws.com"


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment with all settings, and what a Lambda function has besides."""
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "shop")
    monkeypatch.setenv("AWS_XRAY_CONTEXT_MISSING", "LOG_ERROR")
    return monkeypatch


def test_all_is_in_the_environment(aws: pytest.MonkeyPatch) -> None:
    assert settings(None, None) == (ENDPOINT, "eu-central-1", ("AKIDEXAMPLE", "secret", None))
    aws.setenv("AWS_SESSION_TOKEN", "token")
    aws.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert settings(None, None) == (ENDPOINT, "eu-central-1", ("AKIDEXAMPLE", "secret", "token"))
    aws.delenv("AWS_REGION")
    local = "http://127.0.0.1:8000"
    assert settings(local, None) == (local, "us-east-1", ("AKIDEXAMPLE", "secret", "token"))
    assert settings(local, "eu-north-1") == (local, "eu-north-1", ("AKIDEXAMPLE", "secret", "token"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_ACCESS_KEY_ID", ""),
        ("AWS_SECRET_ACCESS_KEY", "sécret"),
        ("AWS_SESSION_TOKEN", "two\nlines"),
        ("AWS_REGION", "cn-north-1"),
        ("AWS_REGION", "us-gov-west-1"),
        ("AWS_REGION", "local"),
        ("AWS_PROFILE", "shop"),
        ("AWS_MAX_ATTEMPTS", "3"),
        ("AWS_ENDPOINT_URL", "https://gate.example"),
        ("AWS_USE_FIPS_ENDPOINT", "true"),
        ("AWS_CONFIG_FILE", __file__),
        ("AWS_SHARED_CREDENTIALS_FILE", __file__),
        ("https_proxy", "http://proxy:3128"),
    ],
)
def test_anything_else_is_left_to_the_library(aws: pytest.MonkeyPatch, name: str, value: str) -> None:
    aws.setenv(name, value)
    assert settings(None, None) is None


@pytest.mark.parametrize(
    "url", ["https://gate.example/?key=1", "https://gäte.example", "ftp://gate.example", "https://a@b"]
)
def test_an_endpoint_that_needs_the_library(url: str) -> None:
    assert settings(url, None) is None


class OfOneTable(FaultyDynamoDB):
    def DescribeTable(self, _: Any) -> Any:  # noqa: N802  # an operation of DynamoDB
        return {"Table": {"TableName": "Shop", "TableStatus": "DELETING"}}

    def ListTables(self, _: Any) -> Any:  # noqa: N802  # an operation of DynamoDB
        return {"TableNames": ["Shop"]}


async def test_requests_about_other_tables_open_the_client() -> None:
    table = Table("Shop", partition_key="PK", sort_key="SK")
    async with OfOneTable().running() as url, open_dynamodb(table, url) as store:
        assert type(store._transport) is DirectTransport
        others = store._transport._others
        assert (await store.send(Query("A"))).items == []
        assert vars(others)["_opened"] is None
        await store.send(DescribeTable())
        assert vars(others)["_opened"] is None
        await store.send(ListTables())
        opened = vars(others)["_opened"]
        await store.send(ListTables())
        assert vars(others)["_opened"] is opened is not None


def test_a_store_is_opened_without_the_library() -> None:
    script = """
import asyncio, sys
from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb.engine import open_dynamodb

async def main():
    async with open_dynamodb(Table("Shop", partition_key="PK")):
        print(sorted({"aioboto3", "aiobotocore", "aiohttp", "boto3", "botocore.session"} & sys.modules.keys()))

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout == "[]\n"
