"""The strings that stand under fields and enum members, read from a class's source."""

from __future__ import annotations

import ast
import inspect


def member_docstrings(cls: type) -> dict[str, str]:
    """The string under each field or enum member of the class itself, by name.

    Empty where the source is not there: descriptions are lost then, and nothing else.
    """
    try:
        source = inspect.getsource(cls)
        # A class in a function is indented; a block around it allows that, whatever its strings hold.
        tree = ast.parse("if True:\n" + source if source[:1].isspace() else source)
    except (OSError, TypeError, SyntaxError):
        return {}
    definition = next((inner for inner in ast.walk(tree) if isinstance(inner, ast.ClassDef)), None)
    if definition is None:
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


def class_docstring(cls: type) -> str | None:
    """A class's docstring, where a person wrote it: dataclasses and enums have made-up ones."""
    text = cls.__dict__.get("__doc__")
    return None if text is None or text.startswith(f"{cls.__name__}(") else docstring(text)
