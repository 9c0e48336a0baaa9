"""docs/access.md: its models are served, and each viewer gets the answer that stands there."""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from keygraph import Graph
from keygraph.tables.interchange import Interchange
from keygraph_resolvers import OperationRequest, Service, build_schema, check
from tests.conftest import MakeStore
from tests.resolvers.worlds import world

PAGE = (Path(__file__).parents[1] / "docs" / "access.md").read_text("utf-8")
CHAPTERS = [chapter for chapter in re.split(r"^## ", PAGE, flags=re.MULTILINE) if "```graphql" in chapter]
BLOCK = re.compile(r"^```(\w+)(?: as ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_there_are_examples() -> None:
    assert len(CHAPTERS) >= 2


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.splitlines()[0])
async def test_each_viewer_gets_this_answer(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch, chapter: str
) -> None:
    blocks = BLOCK.findall(chapter)
    [source], [lines] = (
        [text for kind, _, text in blocks if kind == wanted] for wanted in ("python", "jsonl")
    )
    made = ModuleType("shown")
    monkeypatch.setitem(sys.modules, "shown", made)
    exec(compile(source, "shown.py", "exec"), vars(made))
    graph: Graph = check(made.graph)
    reading = Interchange(graph)
    served = world(graph, await make_store(graph.table, *(reading.read(line) for line in lines.splitlines())))
    service = Service(build_schema(graph), served.tracer, secret=b"the secret of the page on access")
    asked = [
        (document, json.loads(claims), json.loads(answer[2]))
        for (kind, claims, document), answer in itertools.pairwise(blocks)
        if kind == "graphql"
    ]
    assert asked
    for document, claims, wanted in asked:
        answer: dict[str, Any] = await service.execute(OperationRequest(document, viewer=claims))
        codes = [error["extensions"]["code"] for error in answer.get("errors", ())]
        assert ({"codes": codes} if "codes" in wanted else answer) == wanted
