"""From declarations to record types, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from keygraph.declare.declaration import (
    DEFAULT_ITEM_BYTES,
    EVERY_WRITE,
    USUAL_WRITES,
    USUAL_WRITES_OF_OTHERS,
    Declaration,
    Notes,
    WriteKind,
    Writes,
    declaration_of,
)
from keygraph.declare.docstrings import docstring
from keygraph.dynamo.table import Table
from keygraph.keys.types import AttributeStyle
from keygraph.model.records import RecordType
from keygraph.resolve.access import resolve_access
from keygraph.resolve.fields import resolve_fields
from keygraph.resolve.keys import resolve_keys
from keygraph.resolve.options import option_mistakes
from keygraph.resolve.resolution import Resolution
from keygraph.resolve.write_rules import resolve_rules


def resolve(
    table: Table,
    types: tuple[Sequence[type], Sequence[object]],
    style: AttributeStyle,
    access: object = (),
    shared: Sequence[object] = (),
    type_attribute: str | None = None,
    writes: Writes = None,
) -> Resolution:
    """Returns the record types of the listed classes and of modules, which are `types`, and their mistakes."""
    resolution, (classes, modules) = Resolution(table, style), types
    for cls in (*classes, *_declared_in(resolution, modules, classes)):
        _add(resolution, cls, writes)
    resolve_fields(resolution)
    resolve_keys(resolution)
    resolve_rules(resolution, type_attribute)
    resolve_access(resolution, access, shared)
    return resolution


def _declared_in(resolution: Resolution, modules: Sequence[object], listed: Sequence[type]) -> list[type]:
    """Returns the record types in the modules, in the order of their declaration, each once.

    A type that a module merely imports may also be listed by itself.
    """
    found: dict[type, None] = {}
    for module in modules:
        if not isinstance(module, ModuleType):
            resolution.add("no-types", repr(module), "it is not a module.", "models=[…] takes modules.")
            continue
        held = [(each, declaration_of(each)) for each in vars(module).values()]
        declared = [each for each, own in held if own is not None and own.kind != "fields"]
        found.update(dict.fromkeys(declared))
        if not declared:
            problem = "this module has no node, edge or record."
            fix = "Declare one there, or leave the module out of models=[…]."
            resolution.add("no-types", module.__name__, problem, fix)
    names = {getattr(module, "__name__", None) for module in modules}
    return [cls for cls in found if cls not in listed or cls.__module__ in names]


def _add(resolution: Resolution, cls: type, writes: Writes) -> None:
    name, declaration = getattr(cls, "__name__", str(cls)), declaration_of(cls)
    if declaration is None or declaration.kind == "fields":
        problem, fix = "it is not a node, an edge or a record.", "Decorate it, or remove it from the graph."
        resolution.add("not-a-type", name, problem, fix)
        return
    if name in resolution.types:
        listed = "it is listed twice.", "List it once."
        named = "two types have this name.", "Rename one of them."
        is_same = resolution.types[name].cls is cls
        resolution.add("duplicate-type", name, *(listed if is_same else named))
        return
    resolution.declarations[name] = declaration
    resolution.types[name] = RecordType(
        name=name,
        cls=cls,
        kind=declaration.kind,
        type_value=declaration.type,
        is_virtual=not declaration.item,
        description=docstring(declaration.docstring),
        notes=Notes(declaration.deprecated, declaration.shareable),
        table=resolution.table,
        is_mirrored=declaration.mirror,
        counterpart=declaration.counterpart,
        gathers=declaration.gather,
        item_bytes=DEFAULT_ITEM_BYTES if declaration.item_bytes is None else declaration.item_bytes,
        declared_writes=_writes(declaration, writes),
    )
    wrong = [*option_mistakes(name, declaration)]
    resolution.mistakes += wrong
    resolution.broken |= {name} if wrong else set()


def _writes(declaration: Declaration, of_graph: Writes) -> tuple[WriteKind, ...]:
    """Returns the mutations of the type: its own, else the graph's, else the usual ones; none if it has no items."""
    is_node = declaration.kind == "node"
    chosen = of_graph if declaration.writes is None else declaration.writes
    if chosen is None:
        chosen = USUAL_WRITES if is_node else USUAL_WRITES_OF_OTHERS
    if not declaration.item or chosen is False:
        return ()
    return tuple(
        kind for kind in EVERY_WRITE if (chosen is True or kind in chosen) and not (is_node and kind == "put")
    )
