"""The strings that stand under fields and enum members, read from a class's source."""

from __future__ import annotations

import ast
import inspect
import textwrap


def member_docstrings(cls: type) -> dict[str, str]:
    """The string under each field or enum member of the class itself, by name.

    Empty where the source is not there: descriptions are lost then, and nothing else.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return {}
    [definition, *_] = tree.body
    if not isinstance(definition, ast.ClassDef):
        return {}
    found: dict[str, str] = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                match following:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        found[name] = inspect.cleandoc(text)
    return found


def docstring(text: str | None) -> str | None:
    """A docstring without its indentation; None for none."""
    return inspect.cleandoc(text) if text and text.strip() else None
