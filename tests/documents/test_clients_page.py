"""docs/clients.md: what it asks of the social example is answered."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import MakeStore
from tests.documents.samples import files_of, graph_of, serve

PAGE = (Path(__file__).parents[2] / "docs/clients.md").read_text("utf-8")


async def test_its_queries_are_answered(make_store: MakeStore) -> None:
    served = await serve(graph_of("social"), make_store, *files_of("social"))
    relationships, common, sums, path = [
        await served.ask(document)
        for document in re.findall(r"^```graphql\n(\{.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    ]
    assert {each["__typename"] for each in relationships["user"]["relationships"]["nodes"]} == {
        "Friendship",
        "Like",
    }
    assert common["user"]["friends"]["totalCount"] == len(common["user"]["friends"]["nodes"]) > 0
    assert sums["user"]["friends"]["aggregate"]["count"] > 1
    assert path["path"]["length"] == len(path["path"]["edges"]) == len(path["path"]["nodes"]) - 1
