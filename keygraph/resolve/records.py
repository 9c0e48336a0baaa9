"""From declarations to record types.

`Resolution` never raises for a mistake in the declarations; it collects them all. A type with a mistake is left out of
later steps, so each mistake is reported once. The fields are read in `keygraph.resolve.fields`, the keys in
`keygraph.resolve.keys`.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from keygraph.declare.declaration import (
    DEFAULT_ITEM_BYTES,
    WRITES_OF_NODES,
    WRITES_OF_OTHERS,
    Declaration,
    WriteName,
    declaration_of,
)
from keygraph.declare.docstrings import docstring
from keygraph.dynamo.table import Table
from keygraph.keys.types import AttributeStyle
from keygraph.model.mistakes import Mistakes
from keygraph.model.records import RecordType
from keygraph.resolve.access import resolve_access
from keygraph.resolve.fields import resolve_fields
from keygraph.resolve.keys import resolve_keys
from keygraph.resolve.options import option_mistakes
from keygraph.resolve.write_rules import resolve_rules


class Resolution:
    """The record types of the listed classes and of modules, and their mistakes."""

    def __init__(
        self,
        table: Table,
        classes: Sequence[type],
        modules: Sequence[object],
        style: AttributeStyle,
        access: object = (),
        shared: Sequence[object] = (),
    ) -> None:
        self.mistakes = Mistakes()
        self.types: dict[str, RecordType] = {}
        self._declarations: dict[str, Declaration] = {}
        for cls in classes:
            self._add(cls, table)
        for cls in self._declared_in(modules, classes):
            self._add(cls, table)
        resolve_fields(self.types, self._declarations, style, self.mistakes)
        resolve_keys(table, self.types, self._declarations, style, self.mistakes)
        resolve_rules(self.types, self._declarations, self.mistakes)
        resolve_access(self.types, access, shared, self.mistakes)

    def _declared_in(self, modules: Sequence[object], listed: Sequence[type]) -> list[type]:
        """Returns the record types in the modules, in the order of their declaration, each once.

        A type that a module merely imports may also be listed by itself.
        """
        found: dict[type, None] = {}
        for module in modules:
            if not isinstance(module, ModuleType):
                self.mistakes.add(
                    "no-types", repr(module), "it is not a module.", "models=[…] takes modules."
                )
                continue
            held = [(each, declaration_of(each)) for each in vars(module).values()]
            declared = [each for each, told in held if told is not None and told.kind != "fields"]
            found.update(dict.fromkeys(declared))
            if not declared:
                self.mistakes.add(
                    "no-types",
                    module.__name__,
                    "this module has no node, edge or record.",
                    "Declare one there, or leave the module out of models=[…].",
                )
        names = {getattr(module, "__name__", None) for module in modules}
        return [cls for cls in found if cls not in listed or cls.__module__ in names]

    def _add(self, cls: type, table: Table) -> None:
        name = getattr(cls, "__name__", str(cls))
        declaration = declaration_of(cls)
        if declaration is None or declaration.kind == "fields":
            self.mistakes.add(
                "not-a-type",
                name,
                "it is not a node, an edge or a record.",
                "Decorate it, or remove it from the graph.",
            )
            return
        if name in self.types:
            listed = "it is listed twice.", "List it once."
            named = "two types have this name.", "Rename one of them."
            self.mistakes.add("duplicate-type", name, *(listed if self.types[name].cls is cls else named))
            return
        self._declarations[name] = declaration
        self.types[name] = RecordType(
            name=name,
            cls=cls,
            kind=declaration.kind,
            type_value=declaration.type_value,
            is_virtual=declaration.is_virtual,
            description=docstring(declaration.docstring),
            notes=declaration.notes,
            table=table,
            is_mirrored=declaration.mirror,
            counterpart=declaration.counterpart,
            gathers=declaration.gather,
            item_bytes=DEFAULT_ITEM_BYTES if declaration.item_bytes is None else declaration.item_bytes,
            declared_writes=_writes(declaration),
        )
        for mistake in option_mistakes(name, declaration):
            self.mistakes.found.append(mistake)
            self.mistakes.break_silently(self.types[name])


def _writes(declaration: Declaration) -> tuple[WriteName, ...]:
    """Returns the mutations of the type: none if it has no items."""
    own: tuple[WriteName, ...] = WRITES_OF_NODES if declaration.kind == "node" else WRITES_OF_OTHERS
    if declaration.is_virtual or declaration.writes is False:
        return ()
    chosen = own if declaration.writes is True else declaration.writes
    return tuple(name for name in own if name in chosen)
