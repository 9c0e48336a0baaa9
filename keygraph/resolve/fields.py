"""Reads the fields of record types: their annotations and their specifiers."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from difflib import get_close_matches
from types import SimpleNamespace
from typing import Any

from keygraph.access.claims import Viewer
from keygraph.declare.declaration import (
    NO_NOTES,
    Declaration,
    Kept,
    ListOptions,
    SharedDefault,
    StoredAs,
    WalkOptions,
    declaration_of,
    needs_of,
    own_notes_of,
)
from keygraph.declare.docstrings import docstring, member_docstrings
from keygraph.declare.specifiers import Context, Many, One, Ranked, Reach
from keygraph.dynamo.conditions import Path
from keygraph.keys.formats import Format
from keygraph.keys.template import SHARD
from keygraph.keys.text import UnusableFormat, refuse_kind
from keygraph.keys.types import (
    AttributeStyle,
    FieldType,
    Kind,
    UnknownType,
    decode,
    encode,
    field_type,
    is_list,
    is_optional,
    union_parts,
    written_as,
)
from keygraph.model.fields import Field
from keygraph.model.mistakes import Mistakes
from keygraph.model.records import DeclaredList, DeclaredWalk, End, Method, RecordType
from keygraph.names import cased

_KEPT_KINDS: Mapping[Kept, tuple[Kind, ...]] = {
    "created": ("datetime",),
    "updated": ("datetime",),
    "version": ("int", "long"),
    "id": ("id", "string"),
    "count": ("int", "long"),
    "sum": ("int", "long", "float", "decimal"),
}
_KEPT_SHOWN: Mapping[Kept, str] = {
    "created": "a datetime",
    "updated": "a datetime",
    "version": "an int or a Long",
    "id": "an ID or a str",
    "count": "an int or a Long",
    "sum": "a number",
}


def kept_name(kept: Kept) -> str:
    """Returns the specifier of a field that the server keeps, as it is written."""
    return {"id": "new_id()", "count": "counts()", "sum": "sums()"}.get(kept, f"{kept}()")


def resolve_fields(
    types: Mapping[str, RecordType],
    declarations: Mapping[str, Declaration],
    style: AttributeStyle,
    mistakes: Mistakes,
) -> None:
    """Gives each record type its fields, ends, lists and methods."""
    for record in types.values():
        _FieldsOf(record, types, declarations[record.name], style, mistakes).read()


@dataclass(frozen=True)
class _Declared:
    """A field as it is declared."""

    name: str
    annotation: Any
    own: StoredAs | ListOptions | WalkOptions | None
    """The specifier that is assigned to it."""
    description: str | None


@dataclass(frozen=True)
class _FieldsOf:
    """The fields of one record type."""

    record: RecordType
    types: Mapping[str, RecordType]
    declaration: Declaration
    style: AttributeStyle
    mistakes: Mistakes

    def read(self) -> None:
        """Gives the type what it declares, and reports mistakes."""
        own: dict[str, StoredAs | ListOptions | WalkOptions] = {}
        descriptions: dict[str, str] = {}
        annotations: dict[str, tuple[Any, Any, Mapping[str, Any]]] = {}
        for cls in reversed(self.record.cls.__mro__):
            declaration = declaration_of(cls)
            self.record.own_notes |= own_notes_of(cls)
            if declaration is None:
                # The fields of this base class would be lost without a message.
                if inspect.get_annotations(cls):
                    self.mistakes.add(
                        "undecorated-base",
                        self.record.name,
                        f"the fields of its base class {cls.__name__} are not read.",
                        f"Decorate {cls.__name__} with @fields.",
                    )
                continue
            own.update(declaration.own)
            descriptions.update(member_docstrings(cls))
            for name, annotation in inspect.get_annotations(cls).items():
                annotations[name] = annotation, sys.modules[cls.__module__], declaration.namespace
        for name, (annotation, module, namespace) in annotations.items():
            holder = SimpleNamespace(__annotations__={name: annotation})
            hints = self._hints(name, holder, dict(vars(module)), namespace)
            if hints is None:
                self.mistakes.break_silently(self.record)
            else:
                self._read_field(_Declared(name, hints[name], own.get(name), descriptions.get(name)))
        order = self.record.order
        order.extend(annotations)
        self._read_methods()
        order.extend(name for name in self.record.methods if name not in order)
        self._look_for_shared_attributes()

    def _tell(self, kind: str, name: str, problem: str, mend: str, *, is_breaking: bool = False) -> None:
        breaks = self.record.name if is_breaking else None
        self.mistakes.add(kind, f"{self.record.name}.{name}", problem, mend, breaks=breaks)

    def _refuse_taken_name(self, name: str) -> None:
        """Refuses the name of a shard's placeholder."""
        if name == SHARD[0]:
            self._tell(
                "field-called-shard", name, "`shard` is the placeholder of a shard.", "Rename the field."
            )

    def _hints(
        self, name: str, annotated: Any, seen: dict[str, Any] | None, namespace: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Returns the annotations of a field's holder or a method, resolved; None if a name is unknown."""
        listed = {type_.name: type_.cls for type_ in self.types.values()}
        try:
            return typing.get_type_hints(annotated, seen, {**namespace, **listed}, include_extras=True)
        except (NameError, TypeError, SyntaxError, AttributeError) as error:
            problem, mend = (
                f"its annotation cannot be read: {error}.",
                "Import the name, or list the type in the graph.",
            )
            known = {each for each, value in (seen or {}).items() if isinstance(value, type)}
            meant = get_close_matches(getattr(error, "name", None) or "", sorted(known | listed.keys()), 1)
            self._tell("unknown-name", name, problem, f"Did you mean {meant[0]}?" if meant else mend)
            return None

    def _listed(self, annotation: Any) -> RecordType | None:
        return next((record for record in self.types.values() if record.cls is annotation), None)

    # --- Fields and ends ------------------------------------------------------------------------------

    def _read_field(self, declared: _Declared) -> None:
        name, own = declared.name, declared.own
        annotation, optional = is_optional(declared.annotation)
        self._refuse_taken_name(name)
        if annotation in (Many, One, Reach, Ranked):
            word, others = _shown(annotation), [each for each in self.types if each != self.record.name]
            example = f"{word}[{next(iter(others), self.record.name)}]"
            self._tell("list-of-nothing", name, f"{word} needs a type: {example}.", "", is_breaking=True)
            return
        if typing.get_origin(annotation) in (Many, One):
            self._read_list(declared, annotation)
            return
        if typing.get_origin(annotation) in (Reach, Ranked):
            self._read_walk(declared, annotation)
            return
        if isinstance(own, ListOptions | WalkOptions):
            problem = "many() and one() are for fields annotated Many[…] and One[…]."
            if isinstance(own, WalkOptions):
                problem = "reach() and ranked() are for fields annotated Reach[…] and Ranked[…]."
            self._tell("not-a-list", name, problem, "Annotate the field that way.")
            return
        parts = union_parts(annotation)
        if any(map(declaration_of, parts)):
            self._read_end(declared, parts, optional)
            return
        inside = _record_type_in(annotation)
        if inside is not None:
            kind, example = inside
            problem, mend = f"a list of {kind}s is written {example}.", ""
            if kind == "node":
                mend = "For ids that the item stores, declare list[ID], and a method that returns the nodes."
            self._tell("list-of-records", name, problem, mend, is_breaking=True)
            return
        try:
            type_ = field_type(annotation, self.style)
        except UnknownType as error:
            self._tell("unknown-type", name, f"{error}.", error.mend, is_breaking=True)
            return
        if own is not None and own.attributes:
            self._tell(
                "attributes-of-no-end",
                name,
                "stored() names one attribute for each key field, but this field is not an end.",
                'Write stored("name").',
            )
        if own is not None and own.whole_key:
            problem = "whole_key=True is for ends, whose attribute holds the key of a node."
            self._tell(
                "attributes-of-no-end", name, problem, "Annotate it as the node, or remove whole_key=True."
            )
        is_expiry = own is not None and own.is_expiry
        if is_expiry and not self._can_expire(name, type_):
            return
        if own is not None and own.format is not None:
            type_ = self._written_as(name, type_, own.format)
        kept = None if own is None else own.kept
        if kept is not None and kept != "copy" and type_.kind not in _KEPT_KINDS[kept]:
            problem = f"{kept_name(kept)} keeps {_KEPT_SHOWN[kept]}, and it is of type {type_.name}."
            self._tell("kept", name, problem, "Change its annotation.")
        default = MISSING if kept else self._default(name)
        if not _is_default(type_, optional, default):
            problem = f"its default, {default!r}, is not of type {type_.name}."
            self._tell("default", name, problem, "Change the default or the annotation.")
        attribute = own.path if own is not None and own.path else (cased(name, self.style.case),)
        is_external = self.record.own_notes.get(name, NO_NOTES).external
        self.record.fields[name] = Field(
            name,
            type_,
            optional or is_external,
            attribute,
            default,
            declared.description,
            kept,
            own is not None and own.in_key,
            is_expiry,
            is_external,
            optional,
            "" if own is None else own.kept_of,
        )

    def _can_expire(self, name: str, type_: FieldType) -> bool:
        other = next((each for each in self.record.fields.values() if each.is_expiry), None)
        if other is not None:
            mend = 'Keep one of them, and declare the other as stored(format=Epoch("s")).'
            problem = f"{other.name} says already when the record expires."
            self._tell("ttl", name, problem, mend, is_breaking=True)
        elif type_.kind != "datetime":
            problem = f"ttl() is for a datetime, and it is of type {type_.name}."
            self._tell("ttl", name, problem, "Annotate it as a datetime.", is_breaking=True)
        else:
            return True
        return False

    def _written_as(self, name: str, type_: FieldType, format_: object) -> FieldType:
        problem = f"format={format_!r} is not a Format."
        if isinstance(format_, Format):
            try:
                refuse_kind(format_, type_.of or type_)
                return written_as(type_, format_)
            except UnusableFormat as error:
                problem = f"{error}."
        self._tell("format", name, problem, "Use a format for such fields, or remove format=.")
        return type_

    def _read_end(self, declared: _Declared, parts: tuple[Any, ...], optional: bool) -> None:
        """Reads a field that is a node, or one of several types of nodes."""
        members = []
        for part in parts:
            target = self._listed(part)
            if target is not None and target.is_node:
                members.append(target)
                continue
            is_missing = declaration_of(part) and target is None
            problem = "is not listed in the graph" if is_missing else "is not a node"
            self._tell(
                "unknown-end",
                declared.name,
                f"{_shown(part)} {problem}.",
                f"{'An end' if len(parts) == 1 else 'Each member of a union'} is a node that the graph lists.",
                is_breaking=True,
            )
        if len(members) == len(parts):
            own = declared.own if isinstance(declared.own, StoredAs) else None
            if own is not None and own.format is not None:
                problem = "format= is for fields; the key of a node is written as the node has it."
                self._tell("format", declared.name, problem, "Give it to the key field of the node.")
            end = End(declared.name, tuple(members), optional, {}, declared.description, stored=own)
            self.record.ends[end.name] = end

    def _default(self, name: str) -> Any:
        for declared in dataclasses.fields(self.record.cls):
            if declared.name == name:
                factory = declared.default_factory
                if isinstance(factory, SharedDefault):
                    problem = f"its default, {factory.value!r}, would be one object of all records."
                    self._tell("default", name, problem, f"Write stored(default={factory.value!r}).")
                return declared.default if factory is MISSING else factory()
        return MISSING

    def _look_for_shared_attributes(self) -> None:
        holders: dict[Path, str] = {}
        for field in self.record.fields.values():
            other = holders.setdefault(field.attribute, field.name)
            if other != field.name:
                self._tell(
                    "attribute-twice",
                    field.name,
                    f"the attribute {'.'.join(field.attribute)} is stored by {other} already.",
                    'Give one of them another: stored("name").',
                )

    # --- Lists ----------------------------------------------------------------------------------------

    def _read_list(self, declared: _Declared, annotation: Any) -> None:
        name = declared.name
        is_one = typing.get_origin(annotation) is One
        [of] = typing.get_args(annotation)
        parts = union_parts(of)
        targets = [self._listed(part) for part in parts]
        others = [_shown(part) for part in parts if declaration_of(part) is None]
        unlisted = [_shown(part) for part, target in zip(parts, targets, strict=True) if target is None]
        if not self.record.is_node:
            mend = "Move it to the node at one of the ends."
            self._tell("list-on-no-node", name, "only a node has lists.", mend)
        elif len(parts) > 1 and is_one:
            problem = f"an only neighbor is of one record type, not of {' or '.join(map(_shown, parts))}."
            self._tell("one-of-several", name, problem, "Declare a list, Many[…], or One[…] of each type.")
        elif others:
            problem = f"{_shown(typing.get_origin(annotation))} takes nodes, edges and records, and {others[0]} is none of them."
            mend = (
                f"Annotate the field as {others[0]}."
                if is_one
                else f"A list of {others[0]} is list[{others[0]}]."
            )
            self._tell("unknown-neighbour", name, problem, mend, is_breaking=True)
        elif unlisted:
            problem = (
                f"{' and '.join(unlisted)} {'is' if len(unlisted) == 1 else 'are'} not listed in the graph."
            )
            self._tell("unknown-neighbour", name, problem, "List it in the graph.")
        else:
            own = declared.own
            options = own if isinstance(own, ListOptions) else ListOptions(None, None, any_index=True)
            of_types = tuple(target for target in targets if target is not None)
            self.record.lists[name] = DeclaredList(name, of_types, is_one, options, declared.description)

    def _read_walk(self, declared: _Declared, annotation: Any) -> None:
        """Reads a walk over lists; mistakes in the lists are reported when they are resolved."""
        name, own, [of] = declared.name, declared.own, typing.get_args(annotation)
        targets = [self._listed(part) for part in union_parts(of)]
        nodes = tuple(target for target in targets if target is not None and target.is_node)
        is_reach = typing.get_origin(annotation) is Reach
        word = "reach" if is_reach else "ranked"
        if not self.record.is_node:
            self._tell("walk", name, "only a node has walks.", "Move it to a node.")
        elif len(nodes) < len(targets):
            self._tell("walk", name, f"{_shown(of)} is not a node that the graph lists.", "Name nodes.")
        elif not isinstance(own, WalkOptions) or (own.depth is not None) != is_reach:
            mend = f'Write {name}: … = {word}("a_list"{", depth=3" if is_reach else ""}).'
            self._tell("walk", name, f"it does not say {word}(…).", mend)
        else:
            self.record.walks[name] = DeclaredWalk(name, nodes, own, declared.description)

    # --- Methods --------------------------------------------------------------------------------------

    def _read_methods(self) -> None:
        record = self.record
        for cls in reversed(record.cls.__mro__):
            for name, function in vars(cls).items():
                needs = needs_of(function)
                if needs is False:
                    continue
                self._refuse_taken_name(name)
                known = record.fields.keys() | record.ends.keys()
                if self.mistakes.is_broken(record):
                    known |= set(record.order)  # mistakes of these have been reported
                unknown = [need for need in needs or () if need not in known]
                if unknown:
                    problem = f"it needs {', '.join(unknown)}, which {record.name} does not have."
                    self._tell("unknown-need", name, problem, "Name stored fields of the type.")
                    continue
                made = self._method(name, function, needs)
                if made is not None:
                    record.methods[name] = made

    def _method(self, name: str, function: Any, needs: tuple[str, ...] | None) -> Method | None:
        """Returns the method; None if its result or one of its arguments cannot be in a schema."""
        hints = self._hints(name, function, None, self.declaration.namespace)
        if hints is None:
            return None
        if "return" not in hints:
            self._tell("unknown-type", name, "its return type is missing.", "Annotate it.")
            return None
        signature = inspect.signature(function)
        _, *parameters = signature.parameters.values()
        problem = None
        if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
            problem = "it takes any number of arguments."
        elif any(each.name not in hints for each in parameters):
            problem = "not all of its arguments are annotated."
        types: list[FieldType] = []
        returned: tuple[RecordType, ...] = ()
        element, has_elements = is_list(hints["return"])
        try:
            given = [
                each.name for each in parameters if hints.get(each.name, Viewer) not in (Viewer, Context)
            ]
            for part in ["return", *given]:
                annotation, _ = is_optional(hints[part])
                possible = element if part == "return" else annotation
                targets = [self._listed(each) for each in union_parts(possible)]
                nodes = [target for target in targets if target is not None and target.is_node]
                if len(nodes) < len(targets) or part != "return":
                    types.append(field_type(annotation, self.style))
                else:
                    returned = tuple(nodes)
        except UnknownType as error:
            problem = f"{error}."
        if problem is not None:
            self._tell("method", name, problem, "Its signature is a field of the schema: change it.")
            return None
        description = docstring(function.__doc__)
        are_nodes = has_elements and bool(returned)
        return Method(name, function, needs, signature, hints, tuple(types), returned, are_nodes, description)


def _shown(annotation: Any) -> str:
    return (
        str(annotation) if typing.get_args(annotation) else getattr(annotation, "__name__", str(annotation))
    )


def _record_type_in(annotation: Any) -> tuple[str, str] | None:
    """Returns the kind of the record types that a list or the like is of, and how a list of them is written; None if it
    is of something else."""
    for part in typing.get_args(annotation):
        told = [(each, declaration_of(each)) for each in union_parts(part)]
        kinds = {each: declared.kind for each, declared in told if declared and declared.kind != "fields"}
        if kinds:
            return next(iter(kinds.values())), f"Many[{' | '.join(map(_shown, kinds))}]"
        inside = _record_type_in(part)
        if inside is not None:
            return inside
    return None


def _is_default(type_: FieldType, optional: bool, default: Any) -> bool:
    """Returns whether the default is a value of the type, which is read back as it was written."""
    if default is MISSING or default is None:
        return default is MISSING or optional
    try:
        read = decode(type_, encode(type_, default))
    except (ValueError, TypeError, AttributeError):
        return False
    # Values inside these may come back as equal values of another type.
    return type_.kind in ("json", "object", "list", "set") or bool(read == default)
