"""What a client selected below a field, before the field is resolved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    SelectionSetNode,
    is_abstract_type,
)
from strawberry.types.info import Info


def selected_paths(info: Info, *path: str, of: str | None = None) -> frozenset[str]:
    """The names of the fields selected under the field being resolved, at that path of names below it.

    `selected_paths(info, "edges", "node")` has the fields that are selected of the nodes. `of` names the object's type:
    fragments on others are passed over; without it all are followed. What `@skip` and `@include` leave out is not
    there.
    """
    raw: Any = info._raw_info
    nodes: Sequence[FieldNode] = raw.field_nodes
    for name in path:
        nodes = [field for field in _fields(nodes, raw, None) if field.name.value == name]
    return frozenset(field.name.value for field in _fields(nodes, raw, of))


def _fields(nodes: Sequence[FieldNode], raw: Any, of: str | None) -> Iterator[FieldNode]:
    seen: set[str] = set()
    waiting: list[SelectionSetNode] = [node.selection_set for node in nodes if node.selection_set]
    while waiting:
        for selection in waiting.pop().selections:
            if not _is_included(selection, raw.variable_values):
                continue
            match selection:
                case FieldNode():
                    yield selection
                case InlineFragmentNode() if _applies(selection, raw, of):
                    waiting.append(selection.selection_set)
                case FragmentSpreadNode():
                    name = selection.name.value
                    fragment = raw.fragments.get(name)
                    if name not in seen and fragment is not None:
                        seen.add(name)
                        definition = _definition_of(fragment)
                        if _applies(definition, raw, of):
                            waiting.append(definition.selection_set)


def _definition_of(fragment: Any) -> FragmentDefinitionNode:
    """graphql-core hands out fragments with or without details around their definition."""
    return cast(FragmentDefinitionNode, getattr(fragment, "definition", fragment))


def _applies(fragment: InlineFragmentNode | FragmentDefinitionNode, raw: Any, of: str | None) -> bool:
    """Whether the fragment is on the type of that name, or on one that it is of."""
    if of is None or fragment.type_condition is None:
        return True
    name = fragment.type_condition.name.value
    on = raw.schema.get_type(name)
    return name == of or (is_abstract_type(on) and raw.schema.is_sub_type(on, raw.schema.get_type(of)))


def _is_included(selection: Any, variables: dict[str, Any]) -> bool:
    for directive in selection.directives or ():
        if directive.name.value not in ("skip", "include"):
            continue
        value = directive.arguments[0].value
        says = variables.get(value.name.value) if hasattr(value, "name") else value.value
        if bool(says) == (directive.name.value == "skip"):
            return False
    return True
