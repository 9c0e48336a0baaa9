"""The options of every command. An option that is not given is None, and its setting is used."""

from __future__ import annotations

from typing import Annotated

import typer

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODULE:NAME",
        help="The model: the import string of a graph, a schema, or a function that returns one. "
        "Default: KEYGRAPH_MODEL, or keygraph_examples.commerce:graph.",
        show_default=False,
    ),
]

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        help="The store that has the table: sqlite:PATH, aws, or http://HOST:PORT. "
        "Default: KEYGRAPH_STORE, or a SQLite file under .keygraph.",
        show_default=False,
    ),
]
