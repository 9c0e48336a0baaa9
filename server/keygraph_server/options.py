"""The options of every command, and the settings in its help. If an option is not given, it is None, and its setting is used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

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

RateOption = Annotated[
    float | None,
    typer.Option(
        "--rate", min=0.1, help="The most write units per second. Default: no limit.", show_default=False
    ),
]

SegmentsOption = Annotated[
    int, typer.Option("--segments", min=1, max=1000, help="How many parts of the table to read in parallel.")
]

TypesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Only items of this type. Can be given several times. Default: all items.",
        show_default=False,
    ),
]

ExplainOption = Annotated[
    str | None,
    typer.Option(
        "--explain",
        metavar="KEY",
        help="Print what would be sent for this item alone, reads and writes with their conditions. Changes nothing. "
        "KEY is as reports print it: 'TEAM#1 / TEAM#1'.",
        show_default=False,
    ),
]

ResumeOption = Annotated[bool, typer.Option("--resume", help="Resume the same job after an interruption.")]

StateOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The file that stores the progress of an interrupted job. Default: a file under .keygraph.",
        show_default=False,
    ),
]

ReportOption = Annotated[
    Literal["table", "json"],
    typer.Option("--format", help="table: a readable report. json: JSON for programs."),
]


_HELP_ALL = "--help-all"


class WithSettings(TyperCommand):
    """A command whose `--help` ends with the settings that most servers need, and its `--help-all` with all of them."""

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        self.context_settings["help_option_names"] = ["--help", _HELP_ALL]
        self._has_all = _HELP_ALL in args
        return super().make_context(info_name, args, parent, **extra)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        # Imported here, because no other help needs it.
        from keygraph_server.settings import USUAL, Settings, descriptions, environment_name

        # The description says if a setting has another default in production.
        given = {"env": "development"}
        rows, described = [], descriptions()
        for name, setting in Settings.model_fields.items():
            if not self._has_all and name not in USUAL:
                continue
            default = setting.get_default(call_default_factory=True, validated_data=given)
            sentence = re.split(r"(?<=[a-z\d)`]{2}[.:]) ", described.get(name, ""))[0].rstrip(".:")
            rows.append((environment_name(name), f"{sentence} [{_default_text(default)}]"))
        more = (
            "see docs/settings.md" if self._has_all else f"--help-all shows all {len(Settings.model_fields)}"
        )
        with formatter.section(f"Settings (environment variables; {more})"):
            formatter.write_dl(rows)


def _default_text(default: object) -> str:
    if default in (None, ""):
        return "unset"
    return f"default: {str(default).lower() if isinstance(default, bool) else default}"
