"""Two browsers on the playground show one order. One changes it by a mutation, and then another program does: both see
both."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path

import pytest
from pydantic import SecretStr

from keygraph.dynamo.store import BatchGet, BatchWrite, CreateTable, DeleteTable
from keygraph.dynamo.streams import EnableStream
from keygraph.engines.open import open_store
from keygraph_examples.commerce import graph
from keygraph_server.app import create_app
from keygraph_server.settings import Settings
from tests.conftest import LOCAL
from tests.resolvers.worlds import shop_items
from tests.server.chromium import EDITOR, Page, needs_assets, needs_chromium, open_page
from tests.server.serving import served
from tests.server.test_playground_views import ANSWER, RUN, WRITE

pytestmark = [needs_assets, needs_chromium, pytest.mark.long]

MODEL = "keygraph_examples.commerce:graph"
ORDER = "ORDER#ORD001"


def start(page: Page, document: str) -> None:
    page.wait_for(EDITOR)
    page.wait_for("window.keygraph?.state.schema")
    page.evaluate(WRITE % document)
    time.sleep(0.5)  # GraphiQL reads the operations of a changed text a moment later
    page.evaluate(f"{RUN}.click()")


async def fill(store_address: str) -> None:
    async with open_store(store_address, graph.table) as store:
        await store.send(DeleteTable())
        await store.send(CreateTable())
        await store.send(EnableStream())
        await store.send(BatchWrite(puts=tuple(shop_items())))


async def change_in_file(store_address: str, status: str) -> None:
    """Writes to the table as another program does."""
    async with open_store(store_address, graph.table) as store:
        [item] = (await store.send(BatchGet(((ORDER, ORDER),)))).items
        assert item is not None
        await store.send(BatchWrite(puts=({**item, "status": status},)))


BY_BOTO3 = """
import sys, boto3
keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
boto3.client("dynamodb", endpoint_url=sys.argv[1], region_name="us-east-1", **keys).update_item(
    TableName=sys.argv[2], Key={name: {"S": sys.argv[3]} for name in ("PK", "SK")}, UpdateExpression="SET #status = :status",
    ExpressionAttributeNames={"#status": "status"}, ExpressionAttributeValues={":status": {"S": sys.argv[4]}},
)
"""


@pytest.mark.parametrize("engine", ["sqlite", LOCAL])
def test_two_browsers_see_what_one_and_another_program_change(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    is_file = engine == "sqlite"
    store = f"sqlite:{tmp_path / 'shop.sqlite'}" if is_file else request.getfixturevalue("local_endpoint")
    asyncio.run(fill(store))
    settings = Settings(model=MODEL, store=store, secret=SecretStr("x" * 32), live=True)
    with served(create_app(settings)) as address, open_page(address) as one, open_page(address) as two:
        for page in (one, two):
            start(page, 'subscription { order(orderId: "ORD001") { status } }')
            page.wait_for(f"{ANSWER}.includes('status')")
        written = one.evaluate(
            "fetch('graphql', {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify({"
            "query: 'mutation { updateOrder(input: {orderId: \"ORD001\", status: CANCELLED}) { order { status } } }'})})"
            ".then((answer) => answer.text())"
        )
        assert "errors" not in str(written)
        for page in (one, two):
            page.wait_for(f"{ANSWER}.includes('CANCELLED')")
        if is_file:
            asyncio.run(change_in_file(store, "pending"))
        else:
            arguments = (store, graph.table.name, ORDER, "pending")
            subprocess.run([sys.executable, "-c", BY_BOTO3, *arguments], check=True, timeout=60)
        for page in (one, two):
            page.wait_for(f"{ANSWER}.includes('PENDING')")
        assert one.complaints == two.complaints == []
        # The button that runs a query stops it now.
        for page in (one, two):
            page.evaluate(f"{RUN}.click()")
        if is_file:
            start(two, 'subscription { orderChanged(orderId: "ORD001") { kind new { status } } }')
            statuses = cycle(["shipped", "pending"])
            # What was changed before it listens is not sent.
            while not two.evaluate(f"{ANSWER}.includes('UPDATED')"):
                asyncio.run(change_in_file(store, next(statuses)))
                time.sleep(0.1)
