"""The pages on models: their Python is a model, and what they say of it is so."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import keygraph
from keygraph import Format, Graph, Index, ModelError, Table, edge, many, node, record, stored
from keygraph.tables.interchange import Interchange
from keygraph_resolvers import GraphSchema, Service, build_schema, check
from tests.conftest import MakeStore
from tests.resolvers.worlds import world
from tests.server.command_line import run
from tests.verified import verified

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {
    name: (DOCS / f"{name}.md").read_text("utf-8") for name in ("models", "language", "lists", "recipes")
}
GUIDE = PAGES["models"]
NOT_IN_MODELS = {"BadUserInput", "CorruptItem", "KeygraphError", "ModelError", "StoreError", "open_store"}
"""The public names that are for programs that use a graph."""


def blocks(fence: str, text: str = GUIDE) -> list[str]:
    """The fenced blocks of a text that begin so, in order."""
    return re.findall(rf"^```{fence}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


MODEL = "\n\n".join(blocks("python"))
WRONG = re.findall(r"^```python wrong\n(.*?)^```\n\n```text\n(.*?)\n```$", GUIDE, re.MULTILINE | re.DOTALL)


def module_of(source: str, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module with that text, as if somebody had saved it."""
    made = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(source, f"{name}.py", "exec"), vars(made))
    return made


def chapters() -> Iterator[tuple[str, list[str]]]:
    """The chapters that have an example: their titles; model, items, query and answer."""
    for page, text in PAGES.items():
        for chapter in re.split(r"^###? ", text, flags=re.MULTILINE)[1:]:
            if "```python example\n" in chapter:
                fences = ("python example", "jsonl", "graphql example", "json")
                found = [block for fence in fences for block in blocks(fence, chapter)]
                yield f"{page}: {chapter.splitlines()[0]}", found


EXAMPLES = dict(chapters())


async def answered(
    graph: Graph, schema: GraphSchema, make_store: MakeStore, lines: str, query: str, answer: str
) -> None:
    """Asserts that those items match the model, and that the query is answered so."""
    reading = Interchange(graph)
    made = world(graph, await make_store(graph.table, *(reading.read(line) for line in lines.splitlines())))
    assert (await verified(graph, made.tracer.store)).ordered() == []
    service = Service(schema, made.tracer, secret=b"the secret of the pages")
    assert await service.execute(query) == {"data": json.loads(answer)}


async def test_the_model_is_served(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    graph: Graph = check(module_of(MODEL, "bikes", monkeypatch).graph)
    [lines], [query], [answer] = blocks("jsonl"), blocks("graphql"), blocks("json")
    await answered(graph, build_schema(graph), make_store, lines, query, answer)


def test_describe_shows_what_the_guide_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bikes.py").write_text(MODEL, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "bikes", raising=False)
    shown = "\n".join(line.rstrip() for line in run("describe", "--model", "bikes:graph").stdout.splitlines())
    [excerpt] = [text for text in blocks("text") if "Query" in text]
    assert excerpt in shown


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
async def test_an_example_answers(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch, example: list[str]
) -> None:
    source, lines, query, answer = example
    made = module_of(source, "example", monkeypatch)
    graph: Graph = check(made.graph)
    schema = vars(made).get("schema") or build_schema(graph)
    await answered(graph, schema, make_store, lines, query, answer)


def test_every_block_belongs_to_an_example() -> None:
    fences = ("python example", "graphql example")
    assert len(EXAMPLES) > 40
    assert all(sum(len(blocks(fence, text)) for text in PAGES.values()) == len(EXAMPLES) for fence in fences)


def anchors(text: str) -> list[str]:
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("page", [*PAGES, "../README", "../CONTRIBUTING", "index", "faq", "commands"])
def test_links_lead_somewhere(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text("utf-8")
    for file, anchor in re.findall(r"\]\(([\w./-]*\.md)?(?:#([\w-]+))?\)", text):
        target = DOCS.joinpath(page).parent / file if file else DOCS / f"{page}.md"
        assert target.is_file(), file
        assert not anchor or anchor in anchors(target.read_text("utf-8")), f"{file}#{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_the_contents_are_complete(page: str) -> None:
    text = PAGES[page]
    level = "## " if page == "models" else "### "
    titles = anchors("\n".join(line for line in text.splitlines() if line.startswith(level)))
    assert [title for title in titles if f"](#{title})" not in text] == []


def options(function: Any) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    return {
        each.name
        for each in parameters
        if each.default is not each.empty and each.kind is not each.POSITIONAL_ONLY
    }


def test_everything_that_can_be_said_is_explained() -> None:
    text = "".join(PAGES.values())
    declared = (node, edge, record, stored, many, Graph, Index, Index.__call__, Table)
    said = set().union(*map(options, declared), options(Format.base), options(Format.reversed))
    # `init` is for type checkers, `origin` for engines that describe a table; a Format's other fields are for those that make it.
    said |= {"parse", "ordered", "pattern", "number"}
    assert {
        name for name in said - {"init", "origin"} if f"{name}=" not in text and f"`{name}`" not in text
    } == set()
    assert {name for name in set(keygraph.__all__) - NOT_IN_MODELS if name not in text} == set()


def test_there_are_mistakes() -> None:
    assert len(WRONG) == 4


@pytest.mark.parametrize(("source", "said"), WRONG)
def test_a_mistake_is_told_in_these_words(source: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = vars(module_of(f"{MODEL}\n\n{source}", "wrong", monkeypatch))
    types: list[Any] = [
        made[name] for name in re.findall(r"^class (\w+)", f"{MODEL}\n{source}", re.MULTILINE)
    ]
    table: Table = made["graph"].table
    with pytest.raises(ModelError) as refused:
        Graph(table, *types, attribute_case="camel").check()
    assert [str(mistake) for mistake in refused.value.mistakes] == [said]
