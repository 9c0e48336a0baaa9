"""The worlds that the tests of the GraphQL layer share, on each engine."""

from __future__ import annotations

import pytest

from keygraph_examples.commerce import graph as commerce
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, library, shop_items, world


@pytest.fixture
async def shop(make_store: MakeStore) -> World:
    """The commerce example with its items."""
    made = world(commerce, await make_store(commerce.table))
    await made.put(*shop_items())
    return made


@pytest.fixture
async def empty_shop(make_store: MakeStore) -> World:
    """The commerce example without items."""
    return world(commerce, await make_store(commerce.table))


@pytest.fixture
async def books(make_store: MakeStore) -> World:
    """The library, empty."""
    return world(library, await make_store(library.table))
