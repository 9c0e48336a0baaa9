"""Errors that whoever runs a command can mend, and the one line that says how.

CommandError            a problem and its mend
├── SettingsError       a setting that cannot be used
└── ModelNotLoadedError      an import string that leads to no model
"""

from __future__ import annotations

from keygraph import KeygraphError, ModelError


class CommandError(Exception):
    """Something that whoever runs the command can mend: the problem and the mend, as one line."""

    def __init__(self, problem: str, mend: str) -> None:
        """`problem` and `mend` are sentences, with or without their full stop."""
        self.problem = problem
        self.mend = mend
        super().__init__(f"{_sentence(problem)} {_sentence(mend)}")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


class SettingsError(CommandError):
    """A setting that cannot be used."""


class ModelNotLoadedError(CommandError):
    """An import string that leads to no model."""


def expected_message(error: Exception) -> str | None:
    """What to tell whoever ran the command; None for an error that nobody expected.

    One line, except that a model with mistakes lists each of them.
    """
    if isinstance(error, CommandError | KeygraphError | ModelError):
        return str(error)
    return None
