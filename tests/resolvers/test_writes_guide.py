"""docs/writes.md: what it shows is what the sample shop does."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import on_exact_engines
from tests.resolvers.worlds import World

GUIDE = (Path(__file__).parents[2] / "docs/writes.md").read_text("utf-8")


@on_exact_engines
async def test_every_operation_of_the_page(shop: World) -> None:
    found: list[str] = re.findall(r"^```graphql\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    assert len(found) >= 5
    answers = [(document, await shop.errors(document)) for document in found]
    assert [(document, errors) for document, errors in answers if errors] == []
