"""Errors that the user of a command can fix, and the one line that says how.

CommandError                a problem and its fix
├── SettingsError           a setting that cannot be used
└── ModelNotLoadedError     an import string that does not lead to a model
"""

from __future__ import annotations

from keygraph import KeygraphError, ModelError


class CommandError(Exception):
    """Something that the user can fix: one line with the problem and the fix."""

    def __init__(self, problem: str, fix: str) -> None:
        """`problem` and `fix` are sentences, with or without their period."""
        self.problem = problem
        self.fix = fix
        super().__init__(f"{_sentence(problem)} {_sentence(fix)}")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


class SettingsError(CommandError):
    """A setting that cannot be used."""


class ModelNotLoadedError(CommandError):
    """An import string that does not lead to a model."""


def expected_message(error: Exception) -> str | None:
    """The message for the user; None for an unexpected error.

    It is one line, except that the mistakes of a model are listed one per line.
    """
    if isinstance(error, CommandError | KeygraphError | ModelError):
        return str(error)
    return None
