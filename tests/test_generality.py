"""Nothing in the packages knows the commerce model: it is one model among others.

The words are taken from the model's own source, so that this file need not follow it. What counts as one of its
words, and where one may stand:

- the name of a class; the name of a field of several words, in every case (`user_id`, `userId`, `UserId`); what
  keys begin with (`ORDER#`); the names of the table, the index and their keys. Single words such as `name` or `total`
  are anybody's, so a class that is one (`Order`) counts as an identifier and as a whole text, not inside a sentence;
- code has none of them, neither as an identifier nor in a text;
- a message or a help text may quote an example whole: a template (`ORDER#{order_id}`), the model that is served when
  none is named (`keygraph_examples.commerce:graph`), the command that loads its sample;
- docstrings and comments in keygraph/, which explain how a model is declared, may use examples; elsewhere they may not.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from keygraph.names import camel, pascal, snake, words

ROOT = Path(__file__).parents[1]
MODEL = ROOT / "examples/keygraph_examples/commerce.py"
PACKAGES = ("keygraph", "resolvers", "server")
OTHERS = {".html", ".js", ".css", ".svg", ".json"}
DEFAULT_MODEL = "keygraph_examples.commerce:graph"

QUOTED = re.compile(rf"[A-Z]+#\{{\w+\}}|{re.escape(DEFAULT_MODEL)}|--sample commerce --users \d+")
"""An example that is quoted whole in a text."""


@dataclass(frozen=True)
class Words:
    """The model's words: those that stand out in any text, and those that are told only where they stand alone."""

    anywhere: frozenset[str]
    alone: frozenset[str]

    def in_text(self, text: str) -> list[str]:
        """Those that a text has."""
        return [word for word in re.findall(r"\w+#?", text) if word in self.anywhere]

    def in_code(self, text: str) -> list[str]:
        """Those that an identifier or a text in code has or is."""
        return [text] if text in self.alone else self.in_text(text)


def docstrings(tree: ast.AST) -> set[int]:
    """The texts that stand alone: under a module, a class, a function, a field, an enum's member."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def texts_of_code(tree: ast.AST) -> Iterator[str]:
    apart = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            yield node.value


def identifiers(source: str) -> Iterator[str]:
    """Every name in the code, and in what an f-string has in its braces."""
    for node in ast.walk(ast.parse(source)):
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield from value.split(".")


def model_words() -> Words:
    tree = ast.parse(MODEL.read_text("utf-8"))
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    fields = {
        statement.target.id
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }
    texts = set(texts_of_code(tree))
    plain = {text for text in texts if text.isidentifier()}
    compound = {name for name in classes | fields | plain if len(words(name)) > 1}
    heads = {head for text in texts for head in re.findall(r"\w+#", text)}
    forms = {form(name) for name in compound for form in (str, snake, camel, pascal)}
    numbered = {text for text in plain if re.search(r"\d", text)}
    return Words(
        anywhere=frozenset(forms | heads | numbered),
        alone=frozenset(classes | {text for text in plain if text.isupper()} | {MODEL.stem}),
    )


WORDS = model_words()


def found_in_python(source: str, *, examples_in_docstrings: bool) -> list[str]:
    """The model's words that a module has where it may have none."""
    tree = ast.parse(source)
    found = [word for name in identifiers(source) for word in WORDS.in_code(name)]
    for text in texts_of_code(tree):
        found += WORDS.in_code(QUOTED.sub("", text) if " " in text else text)
    if examples_in_docstrings:
        return found
    apart = docstrings(tree)
    for node in ast.walk(tree):
        if id(node) in apart and isinstance(node, ast.Constant):
            found += WORDS.in_text(QUOTED.sub("", str(node.value)))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found += WORDS.in_text(token.string)
    return found


def files(package: str) -> list[Path]:
    """The files of a package that are its own: not what is installed into it."""
    found = sorted((ROOT / package).rglob("*"))
    return [
        file
        for file in found
        if (file.suffix == ".py" or file.suffix in OTHERS)
        and not {"assets", "node_modules"} & {*file.relative_to(ROOT).parts}
        and file.name != "package-lock.json"
    ]


def test_the_words_are_the_models() -> None:
    assert WORDS.anywhere >= {
        *("userId", "user_id", "productId", "product_id", "childCategoryId", "created_at", "CreatedAt"),
        *("OrderItem", "orderItem", "ProductCategory", "UserType", "PriceHistory", "EcommerceData"),
        *("USER#", "ORDER#", "PRODUCT#", "CHILD#", "GSI1", "GSI1PK", "GSI1SK"),
    }
    assert WORDS.alone >= {"User", "Order", "Tag", "Price", "PK", "SK", "USER", "commerce"}
    assert not WORDS.anywhere & {"name", "total", "price", "status", "items", "id", "type"}


def test_a_word_in_code_is_found() -> None:
    for line in (
        "key = 'ORDER#' + name",
        "key = f'ORDER#{name}'",
        "item['GSI1PK']",
        "order.product_id",
        "def load(userId): ...",
        "from shop import OrderItem",
        "from keygraph_examples.commerce import graph",
        "if record.name == 'Order': ...",
        "table = 'EcommerceData'",
        "model = 'commerce'",
    ):
        assert found_in_python(line, examples_in_docstrings=True), line
    for line in ("# as in ORDER#1", '"""The userId."""', "raise ValueError('a productId is wanted')"):
        assert found_in_python(line, examples_in_docstrings=False), line
    for line in (
        "order = sorted(items)",
        "raise ValueError('Order them.')",
        "'Write it as \"ORDER#{order_id}\".'",
    ):
        assert not found_in_python(line, examples_in_docstrings=False), line


@pytest.mark.parametrize("package", PACKAGES)
def test_no_package_knows_the_model(package: str) -> None:
    found = {}
    for file in files(package):
        text = file.read_text("utf-8")
        if file.suffix == ".py":
            words_found = found_in_python(text, examples_in_docstrings=package == "keygraph")
        else:
            words_found = WORDS.in_text(text)
        if words_found:
            found[str(file.relative_to(ROOT))] = words_found
    assert found == {}


def test_the_default_model_is_named_once() -> None:
    naming = [
        str(file.relative_to(ROOT))
        for package in PACKAGES
        for file in files(package)
        if file.suffix == ".py" and DEFAULT_MODEL in texts_of_code(ast.parse(file.read_text("utf-8")))
    ]
    assert naming == ["server/keygraph_server/settings.py"]
