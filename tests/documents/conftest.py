"""The shop of the e-commerce document, on each engine."""

from __future__ import annotations

import pytest

from keygraph_examples.commerce import graph as commerce
from tests.conftest import MakeStore
from tests.documents.served import Served, lines_of
from tests.schemas import with_all_writes

SHOP = with_all_writes(commerce)


@pytest.fixture
async def article(make_store: MakeStore) -> Served:
    """The items that the document shows, and no others."""
    served = Served(SHOP, await make_store(commerce.table))
    await served.load(*lines_of("commerce.jsonl"))
    return served


@pytest.fixture
async def shop(article: Served) -> Served:
    """The document's items among those that it only describes."""
    await article.load(*lines_of("commerce.described.jsonl"))
    return article
