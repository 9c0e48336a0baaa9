"""The pages of the error codes in `docs/errors/`: which codes there are, and what raises them, is read from the code.

`python -m tests.documents.error_pages` writes the pages again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "errors"
PACKAGES = ("keygraph", "resolvers/keygraph_resolvers", "server/keygraph_server")
_CODE = re.compile(r"[A-Z]+(_[A-Z]+)*")

AGAIN = "Send the same again after a short time, and wait longer each time."
NEVER = "The same again gives the same error."
TOLD: dict[str, tuple[str, str, str]] = {
    "ALREADY_EXISTS": (
        "A create, or a move, found a record with the key that it was to give.",
        "Choose another key, or use `upsert…` or `update…` if the record may be there.",
        NEVER,
    ),
    "ANSWER_LIMIT": (
        "The answer, or what is read for it, is larger than the server allows.",
        "Ask for smaller pages (`first`), for fewer fields, or in several operations.",
        NEVER,
    ),
    "BAD_USER_INPUT": (
        "An argument or a variable cannot be used. The message says which, and why.",
        "Correct the value. For writes, `extensions.path` is its place in the input.",
        NEVER,
    ),
    "CONFLICT": (
        "Somebody else has changed what a write was about, or a record is still named by others.",
        "Read the record again, and decide anew. With `expectedVersion`, take the version that is there now.",
        "The same again may succeed if nothing was expected of the record.",
    ),
    "CORRUPT_ITEM": (
        "What is stored does not fit the model: the message names the type and the field.",
        "Tell whoever runs the server: `keygraph verify` lists such data.",
        NEVER,
    ),
    "COST_LIMIT": (
        "The operation could cost more than the server allows, or has cost that much. In the first case nothing was read.",
        "Ask for smaller pages or fewer levels. `extensions` has the cost, the limit and the most expensive place, where the server tells them.",
        NEVER,
    ),
    "COUNT_LIMIT": (
        "A warning in `extensions.warnings`: `totalCount` is null because counting would read too much.",
        "Do without the count, or narrow the list.",
        NEVER,
    ),
    "DEPTH_LIMIT": (
        "The document is nested too deeply.",
        "Ask in several operations.",
        NEVER,
    ),
    "DOCUMENT_LIMIT": (
        "The document has more tokens, aliases, fields or values than the server allows.",
        "Ask in several operations, and give long values as variables.",
        NEVER,
    ),
    "DOCUMENT_NOT_TRUSTED": (
        "The server executes only the documents of its manifest, and this is none of them.",
        "Add the document to the manifest with `keygraph trust`, and start the server with it.",
        NEVER,
    ),
    "FORBIDDEN": (
        "A rule of the model does not let the viewer read this field, or do this.",
        "Ask as somebody who may, or do without. The field is null, and everything beside it is answered.",
        NEVER,
    ),
    "GRAPHQL_PARSE_FAILED": (
        "The document is not GraphQL: `locations` says where it stops being so.",
        "Correct the document.",
        NEVER,
    ),
    "GRAPHQL_VALIDATION_FAILED": (
        "The document does not fit the schema: a field, an argument or a type is not there, or is used wrongly.",
        "Correct the document, or make the client's types again if the schema has changed.",
        NEVER,
    ),
    "INTERNAL": (
        "Something went wrong on the server, and it is not the client's fault.",
        "Tell whoever runs the server the `id` in `extensions`: its log has the details under it.",
        "The same again may succeed.",
    ),
    "ITEM_TOO_LARGE": (
        "A record would be larger than one may be.",
        "Store less in it, or spread it over several records.",
        NEVER,
    ),
    "NOT_FOUND": (
        "What a write is about, or names, does not exist, or the viewer may not see it.",
        "Create it first, or in the same mutation. `extensions.path` is its place in the input.",
        NEVER,
    ),
    "PERSISTED_QUERY_NOT_FOUND": (
        "The server does not know a document with this hash.",
        "Send the hash with the text once. The clients' libraries do that by themselves.",
        NEVER,
    ),
    "PERSISTED_QUERY_NOT_SUPPORTED": (
        "The server takes no automatic persisted queries.",
        "Send the text, or the id of a trusted document.",
        NEVER,
    ),
    "THROTTLED": (
        "The store refuses requests because there are too many, after all retries.",
        "Send less at the same time.",
        AGAIN,
    ),
    "TIMEOUT": (
        "The operation, or a request to the store, took too long. What a mutation writes may have been written.",
        "Ask for less. Send a mutation again with the same `idempotencyKey`.",
        AGAIN,
    ),
    "TRANSACTION_TOO_LARGE": (
        "A mutation writes more than one transaction can hold.",
        "Write in several mutations, or with `atomic: false`.",
        NEVER,
    ),
    "UNAUTHENTICATED": (
        "The request says who asks, and that cannot be believed, or it does not say it where it must.",
        "Get a new token, and send it in the `Authorization` header.",
        NEVER,
    ),
    "UNAVAILABLE": (
        "The store cannot be reached, or the server has too much to do.",
        "Wait as long as `Retry-After` says, if the answer has it.",
        AGAIN,
    ),
}
"""Of each code what it means, what to do, and whether to try again."""


def raised() -> dict[str, list[str]]:
    """The codes in the code, each with what its exceptions are, as their docstrings say."""
    nodes = [*_nodes()]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    codes: dict[str, str] = {}
    for node in classes * 3:  # bases may come later
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in codes:
                codes.setdefault(node.name, codes[base.id])
        for each in node.body:
            match each:
                case ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(code))):
                    codes[node.name] = code
    found: dict[str, dict[str, None]] = {code: {} for code in {*codes.values(), *map(_code, nodes)} if code}
    for node in classes:
        if node.name in codes and (told := ast.get_docstring(node)):
            found[codes[node.name]][told.split("\n\n")[0].replace("\n", " ")] = None
    return {code: sorted(texts) for code, texts in sorted(found.items())}


def _nodes() -> Iterator[ast.AST]:
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            yield from ast.walk(ast.parse(file.read_text("utf-8")))


def _code(node: ast.AST) -> str | None:
    """The code that a part of the code gives to an error; None for all others."""
    match node:
        case ast.keyword(arg="code", value=ast.Constant(value=str(code))):
            return code
        case ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(code))):
            return code
        case ast.Call(func=ast.Name(id="Refusal"), args=[ast.Constant(value=str(code)), *_]):
            return code
        case ast.Call(func=ast.Name(id="Refusal"), args=[_, ast.Constant(value=str(code)), *_]):
            return code
        case ast.Call(func=ast.Attribute(attr="__init__"), args=[_, _, ast.Constant(value=str(code))]):
            return code if _CODE.fullmatch(code) else None
        case ast.Dict(keys=keys, values=values):
            said = {ast.dump(key): value for key, value in zip(keys, values, strict=True) if key}
            match said.get(ast.dump(ast.Constant("code"))):
                case ast.Constant(value=str(code)) if _CODE.fullmatch(code):
                    return code
    return None


def page(code: str, causes: list[str]) -> str:
    """The text of the page of a code."""
    meaning, mend, again = TOLD[code]
    listed = "".join(f"- {cause}\n" for cause in causes)
    told = f"\n## When\n\n{listed}" if causes else ""
    return f"# {code}\n\n{meaning}\n\n## What to do\n\n{mend}\n\n{again}\n{told}\n[All codes](README.md)\n"


def contents() -> str:
    """The text of the page that lists the codes."""
    rows = "".join(f"| [`{code}`]({code}.md) | {TOLD[code][0]} |\n" for code in raised())
    head = "Every error that a client can cause, or must act on, has one of these codes in `extensions.code`."
    return f"# Error codes\n\n{head}\n\n| code | meaning |\n| --- | --- |\n{rows}"


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for name, texts in raised().items():
        (PAGES / f"{name}.md").write_text(page(name, texts), "utf-8")
    (PAGES / "README.md").write_text(contents(), "utf-8")
