"""The options of every command, and the settings in its help. For an option that is None, its setting is used."""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

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


class WithSettings(TyperCommand):
    """A command whose help ends with all settings and their defaults."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        # Imported here, because other help does not need them.
        from keygraph_server.settings import Environment, Settings, environment_name

        # A setting with another default in production says so.
        given = {"env": Environment.DEVELOPMENT}
        rows = []
        for name, setting in Settings.model_fields.items():
            default = setting.get_default(call_default_factory=True, validated_data=given)
            rows.append(
                (environment_name(name), f"{_first_sentence(setting.description)} [{_shown(default)}]")
            )
        with formatter.section("Settings (variables of the environment; see docs/settings.md)"):
            formatter.write_dl(rows)


def _first_sentence(text: str | None) -> str:
    return re.split(r"(?<=[a-z\d)`]{2}[.:]) ", text or "")[0].rstrip(".:")


def _shown(default: object) -> str:
    value = default.value if isinstance(default, Enum) else default
    if value in (None, ""):
        return "unset"
    return f"default: {str(value).lower() if isinstance(value, bool) else value}"
