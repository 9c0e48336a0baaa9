"""Lists of owners that are not known yet: with the placeholders of the templates where their keys will be.

What such a list reads is what any owner's does, so that its requests can be shown, and counted, before anything is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from keygraph.dynamo.conditions import Condition
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph.keys.template import Slot, Template
from keygraph.lists.listing import ListShape, NeighbourList, split_condition
from keygraph.lists.ranges import Narrowing, Span, beginning_with, said, sort_span, undecided
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType


def placeholder(name: str) -> str:
    """What stands in a key for a value that is not known."""
    return "{" + name + "}"


def shown_key(record: RecordType, identity: tuple[str, ...] | None = None) -> Key:
    """The table key of a node or an item, with placeholders where its identity is not known."""
    texts = {slot.name: placeholder(record.leaf_name(slot.path)) for slot in record.table_keys.slots}
    if identity is not None:
        texts |= zip((slot.name for slot in record.identity), identity, strict=True)
    return tuple(_text(template, texts) for template in record.table_keys.templates)


def shown_list(
    graph: Graph,
    path: AccessPath,
    identity: tuple[str, ...] | None = None,
    required: Mapping[str, str | None] | None = None,
    ranged: Mapping[str, Narrowing] | None = None,
    where: Condition | None = None,
) -> NeighbourList:
    """A path's list, of which what is not given is shown by its placeholder: the owner's identity, its arguments.

    Raises BadUserInput where the sort key's arguments leave a gap.
    """
    if identity is None and not required and not ranged and where is None:
        return _unnarrowed(graph, path)
    return _shown(graph, path, identity, required, ranged, where)


@lru_cache(maxsize=1024)
def _unnarrowed(graph: Graph, path: AccessPath) -> NeighbourList:
    """A path's list without arguments, which most are, kept with what it reads."""
    return _shown(graph, path, None, None, None, None)


def _shown(
    graph: Graph,
    path: AccessPath,
    identity: tuple[str, ...] | None,
    required: Mapping[str, str | None] | None,
    ranged: Mapping[str, Narrowing] | None,
    where: Condition | None,
) -> NeighbourList:
    texts: dict[str, str | None] = {slot.name: _label(path, slot) for slot in path.keys.slots}
    if identity is not None:
        texts |= path.texts_of_owner(identity)
    if required is not None:
        texts |= {argument.slot.name: required.get(argument.name) for argument in path.required}
    known = {slot.name for slot in (*path.keys.partition.slots, *path.prefix.slots)}
    fixed = {name: text for name, text in texts.items() if name in known}
    prefix = _text(path.prefix, texts)
    filter_, condition = split_condition(where, path, graph)
    shape = ListShape(
        graph,
        path,
        filter_,
        undecided(path, ranged or {}),
        said(path, ranged or {}),
        condition,
        is_shown=True,
    )
    return NeighbourList(
        shape,
        (_text(path.keys.partition, texts),),
        prefix,
        _span(path, prefix, fixed, ranged or {}),
        tuple(sorted(fixed.items())),
    )


def _span(
    path: AccessPath, prefix: str, texts: Mapping[str, str | None], ranged: Mapping[str, Narrowing]
) -> Span:
    if len(path.keys.attributes) == 2 and path.keys.attributes[1].type != "S":
        try:
            return sort_span(path, prefix, texts, ranged)
        except BadUserInput:
            raise
        except (ValueError, ArithmeticError):
            return beginning_with(prefix)  # a placeholder is no number
    return sort_span(path, prefix, texts, ranged)


def _label(path: AccessPath, slot: Slot) -> str:
    """What a slot is called in a path: the owner's own key field, else the argument."""
    source = path.known.get(slot.name)
    owner = path.owner
    if source is not None and owner is not None:
        if not source.path:  # the whole key of the owner, which is one of several types
            return str(shown_key(owner)[0])
        return placeholder(owner.leaf_name(source.path))
    return placeholder(path.record.leaf_name(slot.path))


def _text(template: Template, texts: Mapping[str, str | None]) -> str:
    return template.render(texts) or ""
