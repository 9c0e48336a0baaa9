"""Reading the fields of record types: what each annotation means, and what stands on its right."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from collections.abc import Mapping
from dataclasses import MISSING
from types import SimpleNamespace
from typing import Any

from keygraph.dynamo.conditions import Path
from keygraph.keys.template import SHARD
from keygraph.keys.types import (
    AttributeStyle,
    FieldType,
    UnknownType,
    decode,
    encode,
    field_type,
    is_optional,
    union_parts,
)
from keygraph.model.declaration import (
    Declaration,
    ListOptions,
    Many,
    One,
    StoredAs,
    declaration_of,
    method_options,
)
from keygraph.model.docstrings import docstring, member_docstrings
from keygraph.model.fields import Field
from keygraph.model.mistakes import Mistakes
from keygraph.model.records import DeclaredList, End, Method, RecordType
from keygraph.names import cased


class FieldResolution:
    """Gives each record type its fields, ends, lists and methods."""

    def __init__(
        self,
        types: Mapping[str, RecordType],
        declarations: Mapping[str, Declaration],
        style: AttributeStyle,
        mistakes: Mistakes,
    ) -> None:
        self._types = types
        self._declarations = declarations
        self._style = style
        self._mistakes = mistakes

    def resolve(self) -> None:
        for record in self._types.values():
            self._read_fields(record)

    def _read_fields(self, record: RecordType) -> None:
        own: dict[str, StoredAs | ListOptions] = {}
        descriptions: dict[str, str] = {}
        annotations: dict[str, tuple[Any, Mapping[str, Any], Mapping[str, Any]]] = {}
        for cls in reversed(record.cls.__mro__):
            declaration = declaration_of(cls)
            if declaration is None:
                self._refuse_undecorated(record, cls)
                continue
            own.update(declaration.own)
            descriptions.update(member_docstrings(cls))
            seen: Mapping[str, Any] = vars(sys.modules[cls.__module__])
            listed = {name: type_.cls for name, type_ in self._types.items()}
            for name, annotation in inspect.get_annotations(cls).items():
                annotations[name] = (annotation, seen, {**declaration.namespace, **listed})
        for name, (annotation, seen, names) in annotations.items():
            found = self._evaluate(record, name, annotation, seen, names)
            if found is not None:
                self._read_field(record, name, found, own.get(name), descriptions.get(name))
        self._read_methods(record)
        record.order.extend(name for name in (*annotations, *record.methods) if name not in record.order)
        self._look_for_shared_attributes(record)

    def _refuse_undecorated(self, record: RecordType, cls: type) -> None:
        """A base class whose fields would be lost without a word."""
        if inspect.get_annotations(cls):
            self._mistakes.add(
                "undecorated-base",
                record.name,
                f"the fields of its base class {cls.__name__} are not read.",
                f"Decorate {cls.__name__} with @fields.",
            )

    def _evaluate(
        self,
        record: RecordType,
        name: str,
        annotation: Any,
        seen: Mapping[str, Any],
        names: Mapping[str, Any],
    ) -> Any:
        holder: Any = SimpleNamespace(__annotations__={name: annotation})
        try:
            return typing.get_type_hints(holder, dict(seen), dict(names), include_extras=True)[name]
        except (NameError, TypeError, SyntaxError, AttributeError) as error:
            self._mistakes.add(
                "unknown-name",
                f"{record.name}.{name}",
                f"its annotation cannot be read: {error}.",
                "Import the name, or list the type in the graph.",
                breaks=record.name,
            )
            return None

    def _read_field(
        self,
        record: RecordType,
        name: str,
        annotation: Any,
        own: StoredAs | ListOptions | None,
        description: str | None,
    ) -> None:
        where = f"{record.name}.{name}"
        annotation, optional = is_optional(annotation)
        self._refuse_taken_name(record, name)
        if typing.get_origin(annotation) in (Many, One):
            self._read_list(record, name, annotation, own, description)
            return
        if isinstance(own, ListOptions):
            self._mistakes.add(
                "not-a-list",
                where,
                "many() and one() are for fields annotated Many[…] and One[…].",
                "Annotate the field that way.",
            )
            return
        parts = union_parts(annotation)
        if any(isinstance(part, type) and declaration_of(part) is not None for part in parts):
            self._read_end(record, name, parts, optional, description)
            return
        try:
            type_ = field_type(annotation, self._style)
        except UnknownType as error:
            self._mistakes.add(
                "unknown-type",
                where,
                f"{error}.",
                "Use str, int, Long, float, bool, Decimal, datetime, date, bytes, an enum, a list, a set, a dataclass "
                "or JSON, or list the type in the graph.",
                breaks=record.name,
            )
            return
        attribute = own.path if own is not None and own.path else (cased(name, self._style.case),)
        if own is not None and own.attributes:
            self._mistakes.add(
                "attributes-of-no-end",
                where,
                "stored() names one attribute for each key field, but this field is not an end.",
                'Write stored("name").',
            )
        default = self._default(record.cls, name)
        if not _is_default(type_, optional, default):
            self._mistakes.add(
                "default",
                where,
                f"its default, {default!r}, is not of type {type_.name}.",
                "Change the default or the annotation.",
            )
        record.fields[name] = Field(name, type_, optional, attribute, default, description)

    def _read_end(
        self,
        record: RecordType,
        name: str,
        parts: tuple[Any, ...],
        optional: bool,
        description: str | None,
    ) -> None:
        """A field that is a node, or one of several types of nodes."""
        members = []
        for part in parts:
            target = self._listed(part)
            if target is not None and target.is_node:
                members.append(target)
                continue
            is_declared = isinstance(part, type) and declaration_of(part) is not None
            problem = "is not listed in the graph" if is_declared and target is None else "is not a node"
            self._mistakes.add(
                "unknown-end",
                f"{record.name}.{name}",
                f"{getattr(part, '__name__', part)} {problem}.",
                f"{'An end' if len(parts) == 1 else 'Each member of a union'} is a node that the graph lists.",
                breaks=record.name,
            )
        if len(members) == len(parts):
            record.ends[name] = End(name, tuple(members), optional, {}, description)

    def _refuse_taken_name(self, record: RecordType, name: str) -> None:
        """The shard of a key is called so already."""
        if name == SHARD[0]:
            self._mistakes.add(
                "field-called-shard",
                f"{record.name}.{name}",
                "`shard` is the placeholder of a shard.",
                "Rename the field.",
            )

    def _default(self, cls: type, name: str) -> Any:
        for declared in dataclasses.fields(cls):
            if declared.name == name:
                if declared.default_factory is not MISSING:
                    return declared.default_factory()
                return declared.default
        return MISSING

    def _listed(self, annotation: Any) -> RecordType | None:
        for record in self._types.values():
            if record.cls is annotation:
                return record
        return None

    def _read_list(
        self,
        record: RecordType,
        name: str,
        annotation: Any,
        own: StoredAs | ListOptions | None,
        description: str | None,
    ) -> None:
        where = f"{record.name}.{name}"
        [of] = typing.get_args(annotation)
        target = self._listed(of)
        several = [getattr(part, "__name__", str(part)) for part in union_parts(of)]
        if not record.is_node:
            self._mistakes.add(
                "list-on-no-node", where, "only a node has lists.", "Move it to the node at one of the ends."
            )
        elif len(several) > 1:
            self._mistakes.add(
                "list-of-several",
                where,
                f"a list is of one record type, not of {' or '.join(several)}.",
                "Declare a list of each, or the edge that joins this node to them: its end may be the union.",
            )
        elif target is None:
            self._mistakes.add(
                "unknown-neighbour",
                where,
                f"{getattr(of, '__name__', of)} is not listed in the graph.",
                "List it in the graph.",
            )
        else:
            options = own if isinstance(own, ListOptions) else ListOptions(None, None, any_index=True)
            is_one = typing.get_origin(annotation) is One
            record.lists[name] = DeclaredList(name, target, is_one, options, description)

    def _read_methods(self, record: RecordType) -> None:
        for cls in reversed(record.cls.__mro__):
            for name, function in vars(cls).items():
                options = method_options(function)
                if options is None:
                    continue
                self._refuse_taken_name(record, name)
                unknown = [
                    need
                    for need in options.needs or ()
                    if need not in record.fields and need not in record.ends
                ]
                if unknown:
                    self._mistakes.add(
                        "unknown-need",
                        f"{record.name}.{name}",
                        f"it needs {', '.join(unknown)}, which {record.name} does not have.",
                        "Name stored fields of the type.",
                    )
                    continue
                hints = self._method_hints(record, name, function)
                if hints is not None:
                    signature = inspect.signature(function)
                    types = self._method_types(record, name, signature, hints)
                    if types is not None:
                        record.methods[name] = Method(
                            name,
                            function,
                            options.needs,
                            signature,
                            hints,
                            *types,
                            docstring(function.__doc__),
                        )

    def _method_types(
        self, record: RecordType, name: str, signature: inspect.Signature, hints: Mapping[str, Any]
    ) -> tuple[tuple[FieldType, ...], tuple[RecordType, ...]] | None:
        """The types of a method's answer and arguments, and of which nodes its answer is; None where one cannot be in
        a schema."""
        _, *parameters = signature.parameters.values()
        problem = None
        if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
            problem = "it takes any number of arguments."
        elif any(each.name not in hints for each in parameters):
            problem = "not all of its arguments are annotated."
        types: list[FieldType] = []
        returned: tuple[RecordType, ...] = ()
        try:
            for part in ["return", *(each.name for each in parameters if each.name in hints)]:
                annotation, _ = is_optional(hints[part])
                targets = [self._listed(each) for each in union_parts(annotation)]
                nodes = [target for target in targets if target is not None and target.is_node]
                if len(nodes) < len(targets) or part != "return":
                    types.append(field_type(annotation, self._style))
                else:
                    returned = tuple(nodes)
        except UnknownType as error:
            problem = f"{error}."
        if problem is not None:
            self._mistakes.add(
                "method",
                f"{record.name}.{name}",
                problem,
                "Its signature is a field of the schema: change it.",
            )
            return None
        return tuple(types), returned

    def _method_hints(self, record: RecordType, name: str, function: Any) -> dict[str, Any] | None:
        listed = {type_.name: type_.cls for type_ in self._types.values()}
        names: dict[str, Any] = {**self._declarations[record.name].namespace, **listed}
        try:
            hints = typing.get_type_hints(function, localns=names, include_extras=True)
        except (NameError, TypeError) as error:
            self._mistakes.add(
                "unknown-name",
                f"{record.name}.{name}",
                f"its annotations cannot be read: {error}.",
                "Import the name.",
            )
            return None
        if "return" not in hints:
            self._mistakes.add(
                "unknown-type", f"{record.name}.{name}", "its return type is missing.", "Annotate it."
            )
            return None
        return hints

    def _look_for_shared_attributes(self, record: RecordType) -> None:
        holders: dict[Path, str] = {}
        for field in record.fields.values():
            other = holders.setdefault(field.attribute, field.name)
            if other != field.name:
                self._mistakes.add(
                    "attribute-twice",
                    f"{record.name}.{field.name}",
                    f"the attribute {'.'.join(field.attribute)} is stored by {other} already.",
                    'Give one of them another: stored("name").',
                )


def _is_default(type_: FieldType, optional: bool, default: Any) -> bool:
    """Whether the default is a value of the type: it is written and read back as it was."""
    if default is MISSING or (default is None and optional):
        return True
    try:
        read = decode(type_, encode(type_, default))
    except (ValueError, TypeError, AttributeError):
        return False
    # What is inside of these may come back as an equal of another type.
    return type_.kind in ("json", "object", "list", "set") or bool(read == default)
