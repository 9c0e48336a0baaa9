"""What stands beside each document's model: its schema, its queries to try, its page."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest
from graphql import OperationDefinitionNode, parse

from keygraph.names import camel
from keygraph_resolvers import build_schema
from keygraph_server.models import difference
from tests.conftest import MakeStore
from tests.documents.pages import DOCS, described, rewritten
from tests.documents.samples import NAMES, files_of, graph_of, serve
from tests.documents.served import EXAMPLES
from tests.keygraph.summarized import summarize

SNAPSHOTS = Path(__file__).parent / "snapshots"
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_is_the_one_that_is_kept(name: str) -> None:
    """If the change is meant: `keygraph schema --model keygraph_examples.<name>:graph > tests/documents/snapshots/<name>.graphql`."""
    kept = ROOT / "schema.graphql" if name == "commerce" else SNAPSHOTS / f"{name}.graphql"
    assert difference(build_schema(graph_of(name)), kept) == ""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.long
async def test_names_of_python_may_be_in_camel_case(
    name: str, make_store: MakeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (EXAMPLES / f"{name}.py").read_text("utf-8")
    classes = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.ClassDef)]
    fields = [
        each.target for of_class in classes for each in of_class.body if isinstance(each, ast.AnnAssign)
    ]
    written = sorted(each.id for each in fields if isinstance(each, ast.Name) and "_" in each.id)
    for field in written:
        source = re.sub(rf"\b{field}\b", camel(field), source)
    (tmp_path / f"{name}_in_camel_case.py").write_text(source, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    graph = import_module(f"{name}_in_camel_case").graph
    assert written
    assert build_schema(graph).as_str() == build_schema(graph_of(name)).as_str()
    if name == "commerce":
        served = await serve(graph, make_store, *files_of(name))
        data = await served.ask(
            """query All { user(userId: "12345") { orders {
          aggregate { max(field: ORDER_DATE) groupBy(field: ORDER_DATE, first: 1) { key count } }
        } } }""",
            "All",
        )
        assert data["user"]["orders"]["aggregate"] == {
            "max": "2024-03-20T08:15:00Z",
            "groupBy": [{"key": "2024-01-20T12:00:00Z", "count": 1}],
        }


@pytest.mark.parametrize("name", NAMES)
async def test_the_queries_to_try_answer(name: str, make_store: MakeStore) -> None:
    served = await serve(graph_of(name), make_store, *files_of(name))
    document = (EXAMPLES / f"{name}.graphql").read_text("utf-8")
    operations = [
        definition.name.value
        for definition in parse(document).definitions
        if isinstance(definition, OperationDefinitionNode) and definition.name is not None
    ]
    assert len(operations) >= 3
    assert re.findall(r"^# .+\n(?:query|mutation) (\w+) ", document, re.MULTILINE) == operations, (
        "each is explained by a comment"
    )
    for operation in operations:
        data = await served.ask(document, operation)
        assert all(data.values()), operation


@pytest.mark.parametrize("name", NAMES)
async def test_the_page_says_what_is_sent(name: str, make_store: MakeStore, tmp_path: Path) -> None:
    """If the change is meant: `python -m tests.documents.pages`."""
    graph = graph_of(name)
    served = await serve(graph, make_store, *files_of(name))
    await summarize(graph, served.store, tmp_path)
    page = (DOCS / f"{name}.md").read_text("utf-8")
    assert page.count("```graphql\n") == page.count("```text\n") > 2
    assert await rewritten(page, graph, served.store) == page


def test_the_showcases_keys_and_requests_are_shown() -> None:
    page = (DOCS / "commerce.md").read_text("utf-8")
    shown = described("keygraph_examples.commerce:graph")
    assert f"$ keygraph describe --model keygraph_examples.commerce:graph\n{shown}```\n" in page
    assert "Tag (virtual node)\n\nKeys\n" in shown
