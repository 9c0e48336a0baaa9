"""The worlds that the tests of the GraphQL layer share, on each engine."""

from __future__ import annotations

from keygraph_examples.commerce import graph as commerce
from tests.resolvers.worlds import filled, library, shop_items

shop = filled(commerce, shop_items())

empty_shop = filled(commerce)
"""The commerce example without items."""

books = filled(library)
