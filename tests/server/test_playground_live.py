"""Two browsers on the playground show one order. One changes it by a mutation, and then another program does: both see
both."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from keygraph.dynamo.store import BatchGet, BatchWrite
from keygraph.dynamo.streams import EnableStream
from keygraph.engines.open import open_store
from keygraph_examples.commerce import graph
from keygraph_server.app import create_app
from keygraph_server.commands.first_start import make_sample_file
from keygraph_server.models import load_model
from keygraph_server.settings import Settings
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


async def change_status(file: Path, status: str, *, begin: bool = False) -> None:
    """Writes to the table as another program does."""
    async with open_store(f"sqlite:{file}", graph.table) as store:
        if begin:
            await store.send(EnableStream())
            return
        [item] = (await store.send(BatchGet(((ORDER, ORDER),)))).items
        assert item is not None
        await store.send(BatchWrite(puts=({**item, "status": status},)))


def test_two_browsers_see_what_one_and_another_program_change(tmp_path: Path) -> None:
    file = tmp_path / "shop.sqlite"
    make_sample_file(load_model(MODEL), file)
    asyncio.run(change_status(file, "", begin=True))
    settings = Settings(model=MODEL, store=f"sqlite:{file}", secret=SecretStr("x" * 32), live=True)
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
        asyncio.run(change_status(file, "pending"))
        for page in (one, two):
            page.wait_for(f"{ANSWER}.includes('PENDING')")
        # The button that runs a query stops it now.
        one.evaluate(f"{RUN}.click()")
        assert one.complaints == two.complaints == []
