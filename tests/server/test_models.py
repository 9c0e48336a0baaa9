"""Models by their import strings, and what stands beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from keygraph import ModelError
from keygraph_server.errors import ModelNotLoadedError
from keygraph_server.models import load_model
from tests.server.library import MODEL

BOOK = '{"pk": "book_1", "sk": "book_1", "isbn": "1", "title": "Emma", "kind": "BOOK"}\n'

pytestmark = pytest.mark.usefixtures("folder")


def problem(name: str) -> str:
    with pytest.raises(ModelNotLoadedError) as caught:
        load_model(name)
    assert "\n" not in str(caught.value)
    return caught.value.problem


class TestLoading:
    @pytest.mark.parametrize("name", ["library:graph", "library"])
    def test_a_graph_of_the_working_directory(self, folder: Path, name: str) -> None:
        (folder / "library.py").write_text(MODEL)
        model = load_model(name)
        assert model.graph.table.name == "Library"
        assert list(model.graph.types) == ["Book"]
        assert "type Book implements Node {" in model.schema.as_str()

    def test_the_working_directory_goes_before_installed_modules(self, folder: Path) -> None:
        (folder / "antigravity.py").write_text(MODEL)
        assert load_model("antigravity").module.__file__ == str(folder / "antigravity.py")

    def test_a_graph_in_a_package(self, folder: Path) -> None:
        (folder / "shop").mkdir()
        (folder / "shop/library.py").write_text(MODEL)
        assert load_model("shop.library:graph").graph.table.name == "Library"

    def test_a_function_that_returns_a_graph(self, folder: Path) -> None:
        (folder / "library.py").write_text(f"{MODEL}\ndef make():\n    return graph\n")
        assert load_model("library:make").graph.table.name == "Library"

    @pytest.mark.parametrize("attribute", ["schema", "make_schema"])
    def test_a_schema_with_fields_of_its_own(self, folder: Path, attribute: str) -> None:
        (folder / "library.py").write_text(
            f"{MODEL}\n"
            "import strawberry\n"
            "from keygraph_resolvers import build_schema\n\n"
            "@strawberry.type\n"
            "class Query:\n"
            "    @strawberry.field\n"
            "    def motto(self) -> str:\n"
            "        return 'Read!'\n\n"
            "def make_schema():\n"
            "    return build_schema(graph, query=Query)\n\n"
            "schema = make_schema()\n"
        )
        model = load_model(f"library:{attribute}")
        assert model.graph.table.name == "Library"
        assert "  motto: String!" in model.schema.as_str()


class TestMistakes:
    @pytest.mark.parametrize(
        "name", ["", ":graph", "a b", "library:", "library.py", "library:a:b", "../library"]
    )
    def test_what_is_no_import_string(self, folder: Path, name: str) -> None:
        (folder / "library.py").write_text(MODEL)
        if name == "library:":
            assert load_model(name).graph.table.name == "Library"
        elif name == "library.py":
            assert problem(name).startswith("there is no module library.py in ")
        else:
            assert problem(name) == f"{name!r} is not an import string"

    @pytest.mark.parametrize(("name", "missing"), [("nope", "nope"), ("nope.inner:graph", "nope")])
    def test_no_such_module(self, folder: Path, name: str, missing: str) -> None:
        assert problem(name) == f"there is no module {missing} in {folder} or on Python's path"

    @pytest.mark.parametrize("name", ["libary", "library.py", "librarys:graph"])
    def test_the_module_that_was_meant_is_named(self, folder: Path, name: str) -> None:
        (folder / "library.py").write_text(MODEL)
        with pytest.raises(ModelNotLoadedError) as caught:
            load_model(name)
        assert caught.value.fix == "Write --model library"

    def test_no_such_attribute(self, folder: Path) -> None:
        (folder / "library.py").write_text(MODEL)
        with pytest.raises(ModelNotLoadedError) as caught:
            load_model("library:grph")
        assert str(caught.value) == "the module library has no grph. Write --model library:graph."

    @pytest.mark.parametrize(
        ("attribute", "expected"),
        [
            ("Book", "library:Book is the class Book"),
            ("by_kind", "library:by_kind is of type Index"),
            ("nothing", "library:nothing is None"),
            ("make_nothing", "library:make_nothing is None"),
            ("make_with", "the function library:make_with needs arguments"),
        ],
    )
    def test_something_else(self, folder: Path, attribute: str, expected: str) -> None:
        (folder / "library.py").write_text(
            f"{MODEL}\nnothing = None\n\ndef make_nothing():\n    return None\n\ndef make_with(a):\n    return a\n"
        )
        assert problem(f"library:{attribute}") == expected

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("import json\n\nx = 1 / 0\n", "3: ZeroDivisionError: division by zero"),
            ("import json\njson.loads('{')\n", "2: JSONDecodeError: Expecting property name enclosed"),
            ("def f(:\n", "1: SyntaxError: "),
            ("import not_installed\n", "1: ModuleNotFoundError: No module named 'not_installed'"),
            ("raise RuntimeError('two\\nlines')\n", "1: RuntimeError: two lines"),
            ("def graph():\n    raise KeyError('x')\n", "2: KeyError: 'x'"),
        ],
    )
    def test_a_module_that_fails_is_named_with_the_line(self, folder: Path, text: str, expected: str) -> None:
        (folder / "library.py").write_text(text)
        shown = problem("library:graph")
        assert f" cannot be loaded: {folder}/library.py:{expected}" in shown

    def test_a_missing_future_import_is_told(self, folder: Path) -> None:
        text = "class Team:\n    members: list[Player]\n\n\nclass Player:\n    name: str\n"
        (folder / "library.py").write_text(text)
        with pytest.raises(ModelNotLoadedError) as caught:
            load_model("library")
        assert caught.value.problem.endswith("library.py:2: NameError: name 'Player' is not defined")
        assert caught.value.fix.startswith("Begin the file with `from __future__ import annotations`")
        (folder / "library.py").write_text(text.replace("class Player", "class Palyer"))
        with pytest.raises(ModelNotLoadedError, match="Fix that line"):
            load_model("library")

    def test_every_mistake_of_a_graph_is_listed(self, folder: Path) -> None:
        author = '@node("author_{nam}")\nclass Author:\n    name: ID\n\n\n'
        text = MODEL.replace("book_{isbn}", "book_{isbm}").replace("graph = ", author + "graph = ")
        (folder / "library.py").write_text(text.replace("Book)\n", "Book, Author)\n"))
        with pytest.raises(ModelError) as caught:
            load_model("library")
        assert [mistake.where for mistake in caught.value.mistakes] == ["Book", "Author"]
        assert all(str(mistake) in str(caught.value) for mistake in caught.value.mistakes)


class TestBeside:
    def test_the_sample_is_found_in_order(self, folder: Path) -> None:
        for name in (
            "library.jsonl",
            "library.more.jsonl",
            "library.a.jsonl",
            "libraryx.jsonl",
            "other.jsonl",
        ):
            (folder / name).write_text(BOOK)
        (folder / "library.py").write_text(MODEL)
        names = [file.name for file in load_model("library").sample_files]
        assert names == ["library.jsonl", "library.a.jsonl", "library.more.jsonl"]

    def test_the_queries_are_found(self, folder: Path) -> None:
        (folder / "library.py").write_text(MODEL)
        (folder / "library.graphql").write_text("query A { books { totalCount } }\n")
        assert load_model("library").queries == "query A { books { totalCount } }\n"

    def test_there_may_be_nothing(self, folder: Path) -> None:
        (folder / "library.py").write_text(MODEL)
        model = load_model("library")
        assert (model.sample_files, model.queries, model.sample) == ([], None, None)

    def test_the_function_that_makes_a_sample(self, folder: Path) -> None:
        (folder / "library.py").write_text(f"{MODEL}\ndef sample(books=1):\n    return [{{}}] * books\n")
        sample = load_model("library").sample
        assert sample is not None
        assert list(sample(books=2)) == [{}, {}]
