"""The printed plans of operations over four models, as `keygraph explain` shows them: `tests/resolvers/plans/*.txt`.

The operations are those that are measured, and those that each model offers to try. After a change,

    python -m tests.resolvers.plans

writes the files anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from graphql import OperationDefinitionNode, parse, print_ast

from keygraph.dynamo.store import UnreadStore
from keygraph_resolvers import Service, build_schema
from keygraph_resolvers.plan.explained import steps_text
from tests.resolvers.operations import GRAPHS, OPERATIONS

FOLDER = Path(__file__).with_name("plans")
EXAMPLES = Path(__file__).parents[2] / "examples/keygraph_examples"
SECRET = b"nothing is read"


def operations_of(model: str) -> Iterator[tuple[str, str, str | None]]:
    """Each operation: what it is called here, its document, and its name there."""
    for each in OPERATIONS[model]:
        yield each.name, print_ast(parse(each.document)), None
    document = (EXAMPLES / f"{model}.graphql").read_text("utf-8")
    for definition in parse(document).definitions:
        if isinstance(definition, OperationDefinitionNode) and definition.name:
            yield definition.name.value, document, definition.name.value


async def printed(model: str) -> str:
    graph = GRAPHS[model]
    service = Service(build_schema(graph), UnreadStore(graph.table), secret=SECRET)
    parts = []
    for title, document, name in operations_of(model):
        explanation = service.explain(document, None, name)
        total = explanation.bound.total
        shown = "" if name else f"{document}\n\n"
        parts.append(
            f"=== {title}{f', of examples/{model}.graphql' if name else ''}\n\n{shown}{steps_text(explanation.steps)}\n"
            f"at most: requests {total.requests}, round trips {total.round_trips}, "
            f"items {total.items}, read units {total.read_units:g}\n"
        )
    return "\n".join(parts)


def file_of(model: str) -> Path:
    return FOLDER / f"{model}.txt"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for model in GRAPHS:
        file_of(model).write_text(asyncio.run(printed(model)), "utf-8")


if __name__ == "__main__":
    main()
