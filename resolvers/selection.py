"""What a client selected below a field, before the field is resolved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    SelectionSetNode,
)
from strawberry.types.info import Info


def selected_paths(info: Info, *path: str) -> frozenset[str]:
    """The names of the fields selected under the field being resolved, at that path of names below it.

    `selected_paths(info, "edges", "node")` has the fields that are selected of the nodes. Fragments are followed
    whatever their type; what `@skip` and `@include` leave out is not there.
    """
    raw: Any = info._raw_info
    nodes: Sequence[FieldNode] = raw.field_nodes
    for name in path:
        nodes = [field for field in _fields(nodes, raw) if field.name.value == name]
    return frozenset(field.name.value for field in _fields(nodes, raw))


def _fields(nodes: Sequence[FieldNode], raw: Any) -> Iterator[FieldNode]:
    seen: set[str] = set()
    waiting: list[SelectionSetNode] = [node.selection_set for node in nodes if node.selection_set]
    while waiting:
        for selection in waiting.pop().selections:
            if not _is_included(selection, raw.variable_values):
                continue
            match selection:
                case FieldNode():
                    yield selection
                case InlineFragmentNode():
                    waiting.append(selection.selection_set)
                case FragmentSpreadNode():
                    name = selection.name.value
                    fragment = raw.fragments.get(name)
                    if name not in seen and fragment is not None:
                        seen.add(name)
                        waiting.append(_selections_of(fragment))


def _selections_of(fragment: Any) -> SelectionSetNode:
    """graphql-core hands out fragments with or without details around their definition."""
    definition: FragmentDefinitionNode = getattr(fragment, "definition", fragment)
    return definition.selection_set


def _is_included(selection: Any, variables: dict[str, Any]) -> bool:
    for directive in selection.directives or ():
        if directive.name.value not in ("skip", "include"):
            continue
        value = directive.arguments[0].value
        says = variables.get(value.name.value) if hasattr(value, "name") else value.value
        if bool(says) == (directive.name.value == "skip"):
            return False
    return True
