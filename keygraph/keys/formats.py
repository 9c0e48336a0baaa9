"""Declared formats: how values are written in keys, and in attributes, otherwise than is usual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Format:
    """A way to write values as texts.

    `render` makes the text, `parse` the value again; without `parse` the text loses something, as lower case does, and
    the field is read from its attribute. `ordered` says that the order of the texts is that of the values: none of two
    values has the later text if it is the smaller one. `pattern` describes the texts, as in `{id:[^#]+}`: by it keys are
    told apart. Without it `parse` is asked, which refuses other texts with an exception.
    """

    render: Callable[[Any], str]
    parse: Callable[[str], Any] | None = None
    ordered: bool = False
    pattern: str | None = None

    def text(self, value: Any) -> str:
        """The text of a value. Raises ValueError where it has none."""
        try:
            text = self.render(value)
        except Exception as error:
            raise ValueError(f"it cannot be written: {error}") from None
        if not isinstance(text, str):
            raise ValueError(f"its format gives a {type(text).__name__}, not a text")
        return text

    def value(self, text: str) -> Any:
        """The value of a text. Raises ValueError where it has none."""
        if self.parse is None:
            raise ValueError("its format cannot be read back")
        try:
            return self.parse(text)
        except Exception as error:
            raise ValueError(f"it cannot be read: {error}") from None
