"""Reads the fields of record types: their annotations and their specifiers."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from types import SimpleNamespace
from typing import Annotated, Any

from keygraph.access.claims import Viewer
from keygraph.declare import declaration
from keygraph.declare.decorators import REFERENCE, Context, Many, One, Ranked, Reach
from keygraph.declare.docstrings import docstring, member_docstrings
from keygraph.dynamo.conditions import Path
from keygraph.keys import types
from keygraph.keys.formats import Format
from keygraph.keys.template import SHARD
from keygraph.keys.text import UnusableFormat, refuse_kind
from keygraph.model.fields import Field
from keygraph.model.records import DeclaredList, DeclaredWalk, End, Method, RecordType
from keygraph.names import cased
from keygraph.resolve.resolution import Resolution

_KEPT: Mapping[declaration.Kept, tuple[str, tuple[types.Kind, ...]]] = {
    "created": ("a datetime", ("datetime",)),
    "updated": ("a datetime", ("datetime",)),
    "version": ("an int or a Long", ("int", "long")),
    "id": ("an ID or a str", ("id", "string")),
    "count": ("an int or a Long", ("int", "long")),
    "sum": ("a number", ("int", "long", "float", "decimal")),
    "average": ("a float", ("average",)),
    "degree": ("an int or a Long", ("int", "long")),
    "rank": ("an int or a Long", ("int", "long")),
    "top": ("a list", ("list",)),
}
"""What a field must be for the server to keep that in it: in words, and the kinds of its type."""


VALUE = "value"
"""The name of the value in the map that holds what is known of the first or last item of a list."""


def kept_name(kept: declaration.Kept) -> str:
    """Returns the specifier of a field that the server keeps, as it is written."""
    return {"id": "new_id()", "count": "counts()", "sum": "sums()"}.get(kept, f"{kept}()")


@dataclass(frozen=True)
class _DeclaredMember:
    """A field or a method of a record type, while it is read."""

    resolution: Resolution
    record: RecordType
    name: str
    annotation: Any = None
    own: declaration.StoredAs | declaration.ListOptions | declaration.WalkOptions | None = None
    """The specifier that is assigned to it."""
    description: str | None = None

    def report(self, kind: str, problem: str, fix: str, *, is_breaking: bool = False) -> None:
        """Adds a mistake; a breaking one makes the type unusable."""
        where, breaks = f"{self.record.name}.{self.name}", self.record if is_breaking else None
        self.resolution.add(kind, where, problem, fix, breaks=breaks)

    def hints(
        self, annotated: Any, scope: dict[str, Any] | None, namespace: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Returns the annotations of a field's holder or a method, resolved; None if a name is unknown."""
        listed = {type_.name: type_.cls for type_ in self.resolution.types.values()}
        try:
            return typing.get_type_hints(annotated, scope, {**namespace, **listed}, include_extras=True)
        except (NameError, TypeError, SyntaxError, AttributeError) as error:
            known = {each for each, value in (scope or {}).items() if isinstance(value, type)}
            meant = get_close_matches(getattr(error, "name", None) or "", sorted(known | listed.keys()), 1)
            fix = f"Did you mean {meant[0]}?" if meant else "Import the name, or list the type in the graph."
            self.report("unknown-name", f"its annotation cannot be read: {error}.", fix)
            return None


def resolve_fields(resolution: Resolution) -> None:
    """Gives each record type its fields, ends, lists and methods."""
    for record in resolution.types.values():
        for member in _declared_members(resolution, record):
            _read_field(member)
        _read_methods(resolution, record)
        record.order.extend(name for name in record.methods if name not in record.order)
        _refuse_equal_attributes(resolution, record)


def _declared_members(resolution: Resolution, record: RecordType) -> Iterator[_DeclaredMember]:
    """Yields the fields of a type and its base classes whose annotations can be read, and takes over their order."""
    own: dict[str, declaration.StoredAs | declaration.ListOptions | declaration.WalkOptions] = {}
    descriptions: dict[str, str] = {}
    annotations: dict[str, tuple[Any, Any, Mapping[str, Any]]] = {}
    for cls in reversed(record.cls.__mro__):
        declared = declaration.declaration_of(cls)
        record.own_notes |= declaration.own_notes_of(cls)
        if declared is not None:
            own.update(declared.own)
            descriptions.update(member_docstrings(cls))
            for name, annotation in inspect.get_annotations(cls).items():
                annotations[name] = annotation, sys.modules[cls.__module__], declared.namespace
        elif inspect.get_annotations(cls):
            # The fields of this base class would be lost without a message.
            problem = f"the fields of its base class {cls.__name__} are not read."
            resolution.add("undecorated-base", record.name, problem, f"Decorate {cls.__name__} with @fields.")
    record.order.extend(annotations)
    for name, (annotation, module, namespace) in annotations.items():
        member = _DeclaredMember(resolution, record, name, None, own.get(name), descriptions.get(name))
        holder = SimpleNamespace(__annotations__={name: annotation})
        hints = member.hints(holder, dict(vars(module)), namespace)
        if hints is None:
            resolution.broken.add(record.name)
        else:
            yield replace(member, annotation=hints[name])


def _refuse_equal_attributes(resolution: Resolution, record: RecordType) -> None:
    holders: dict[Path, str] = {}
    # The key of the nodes of a list names its attribute.
    for field in (each for name, each in record.fields.items() if name not in record.list_ends):
        other = holders.setdefault(field.attribute, field.name)
        if other != field.name:
            problem = f"the attribute {'.'.join(field.attribute)} is stored by {other} already."
            fix = 'Give one of them another: stored("name").'
            _DeclaredMember(resolution, record, field.name).report("attribute-twice", problem, fix)


def _refuse_taken_name(member: _DeclaredMember) -> None:
    if member.name == SHARD[0]:
        member.report("field-called-shard", "`shard` is the placeholder of a shard.", "Rename the field.")


# --- Fields and ends ------------------------------------------------------------------------------


def _read_field(member: _DeclaredMember) -> None:
    """Reads a field by its annotation: it is a list, a walk, an end, a list of ends, or a value."""
    annotation, optional = types.is_optional(member.annotation)
    origin: Any = typing.get_origin(annotation)
    _refuse_taken_name(member)
    if annotation in (Many, One, Reach, Ranked):
        word = _name_of(annotation)
        others = [each for each in member.resolution.types if each != member.record.name]
        problem = f"{word} needs a type: {word}[{next(iter(others), member.record.name)}]."
        member.report("list-of-nothing", problem, "", is_breaking=True)
    elif origin in (Many, One):
        _read_list(member, annotation)
    elif origin in (Reach, Ranked):
        _read_walk(member, annotation)
    elif isinstance(member.own, declaration.ListOptions | declaration.WalkOptions):
        words = ("reach", "ranked") if isinstance(member.own, declaration.WalkOptions) else ("many", "one")
        annotations = " and ".join(f"{word.title()}[…]" for word in words)
        problem = f"{words[0]}() and {words[1]}() are for fields annotated {annotations}."
        member.report("not-a-list", problem, "Annotate the field that way.")
    elif any(map(declaration.declaration_of, parts := types.union_parts(annotation))):
        end = _end(member, parts, optional=optional)
        member.record.ends |= {member.name: end} if end is not None else {}
    elif nodes := _references(annotation):
        end = _end(member, nodes, optional=False)
        if end is not None:
            # Their ids have the type of a list until the key of the node is known.
            _read_value(member, origin[types.ID], replace(end, is_list=True), optional=optional)
    else:
        _read_value(member, annotation, None, optional=optional)


def _read_value(member: _DeclaredMember, annotation: Any, end: End | None, *, optional: bool) -> None:
    """Reads a field that an attribute holds. `end`: the nodes whose ids it is a list of."""
    record, name = member.record, member.name
    stored = member.own if isinstance(member.own, declaration.StoredAs) else declaration.StoredAs((), {})
    type_ = _value_type(member, annotation)
    if type_ is None:
        return
    if end is None:
        _refuse_attributes_of_ends(member, stored)
    if stored.is_expiry and not _can_expire(member, type_):
        return
    if stored.format is not None and end is None:
        type_ = _written_as(member, type_, stored.format)
    kept = stored.kept
    _check_keeper(member, stored, optional=optional)
    if kept == "average" and type_ == types.FieldType("float"):
        type_ = types.FieldType("average")
    if kept is not None and kept in _KEPT and type_.kind not in _KEPT[kept][1]:
        problem = f"{kept_name(kept)} keeps {_KEPT[kept][0]}, and it is of type {type_.name}."
        member.report("kept", problem, "Change its annotation.")
    if kept is not None and end is not None:
        member.report("kept", "nodes are not copied.", "Annotate it as a list of ids: list[ID].")
    default = MISSING if kept else _default(member)
    if end is not None and default is not MISSING and default:
        member.report("default", "a new record names no nodes by default.", "Write stored(default=[]).")
    if not _is_default(type_, optional, default):
        problem = f"its default, {default!r}, is not of type {type_.name}."
        member.report("default", problem, "Change the default or the annotation.")
    is_external = record.own_notes.get(name, declaration.NO_NOTES).external
    record.fields[name] = Field(
        name,
        type_,
        optional or is_external,
        (
            *(stored.path or (cased(name, member.resolution.style.case),)),
            *([VALUE] if kept in declaration.OF_ENDS else []),
        ),
        default,
        member.description,
        kept,
        stored.in_key,
        stored.is_expiry,
        is_external,
        optional,
        stored.kept_of,
        stored.kept_where,
        keeper=stored.keeper,
        kept_size=stored.size,
        kept_within=stored.within,
        follows=stored.follows,
        shards=stored.shards,
        former=_former(member, stored, end),
    )
    record.list_ends |= {name: end} if end is not None else {}
    if stored.keeper != "transaction":
        _add_age(member, record.fields[name])


def _former(member: _DeclaredMember, stored: declaration.StoredAs, end: End | None) -> Path | None:
    """Returns the former attribute of a field, and refuses it where an attribute is more than a field's value."""
    if not stored.was:
        return None
    if stored.kept is not None or stored.is_expiry or stored.in_key or end is not None:
        problem = "was= is for a field that clients write, and that no node's id is in."
        member.report("was", problem, "Remove was=, or copy the attribute in all items first.")
        return None
    return (stored.was,)


def _check_keeper(member: _DeclaredMember, stored: declaration.StoredAs, *, optional: bool) -> None:
    """Refuses another word for who keeps a field, what the stream cannot keep, and what cannot be null before it is
    computed."""
    keeper: object = stored.keeper
    if keeper not in ("transaction", "job", "stream"):
        problem = f"kept={keeper!r} is unknown."
        member.report("kept", problem, 'Write kept="transaction", kept="job" or kept="stream".')
    elif keeper == "stream" and stored.kept not in declaration.OF_STREAM:
        problem = "the stream keeps counts, sums and averages."
        member.report("kept", problem, 'Write kept="transaction" or kept="job".')
    elif keeper != "transaction" and not optional:
        computed = "the job has run" if keeper == "job" else "keygraph follow has computed it"
        member.report("kept", f"it is null until {computed}.", "Annotate it with | None.")


def _add_age(member: _DeclaredMember, field: Field) -> None:
    """Adds the field with the time for which another one was computed."""
    record, style, name = member.record, member.resolution.style, f"{field.name}_as_of"
    if name in record.order:
        problem = f"the time of {field.name} is stored in it."
        replace(member, name=name).report("kept", problem, "Rename one of them.")
        return
    *outer, last = field.kept_attribute
    attribute = (*outer, f"{last}_as_of" if style.case == "snake" else f"{last}AsOf")
    time = types.field_type(datetime, style)
    record.fields[name] = Field(
        name, time, True, attribute, MISSING, None, "as_of", kept_of=field.name, keeper=field.keeper
    )
    record.order.insert(record.order.index(field.name) + 1, name)


def _value_type(member: _DeclaredMember, annotation: Any) -> types.FieldType | None:
    """Returns the type of a field's values; None if they can have none, which is reported."""
    inside = _record_type_in(annotation)
    if inside is None:
        try:
            return types.field_type(annotation, member.resolution.style)
        except types.UnknownType as error:
            member.report("unknown-type", f"{error}.", error.fix, is_breaking=True)
            return None
    kind, example, node = inside
    problem = f"a list of {kind}s is written {example}."
    fix = f"If the item stores their ids, write list[Ref[{node}]]." if kind == "node" else ""
    if _has_reference(annotation):
        problem = "Ref stands for a member of a list or a set that is not None."
        fix = f"Write list[Ref[{node}]], or for an end {node}."
    member.report("list-of-records", problem, fix, is_breaking=True)
    return None


def _refuse_attributes_of_ends(member: _DeclaredMember, stored: declaration.StoredAs) -> None:
    if stored.attributes:
        problem = "stored() names one attribute for each key field, but this field is not an end."
        member.report("attributes-of-no-end", problem, 'Write stored("name").')
    if stored.whole_key:
        problem = "whole_key=True is for ends, whose attribute holds the key of a node."
        member.report("attributes-of-no-end", problem, "Annotate it as the node, or remove whole_key=True.")


def _can_expire(member: _DeclaredMember, type_: types.FieldType) -> bool:
    other = next((each for each in member.record.fields.values() if each.is_expiry), None)
    if other is not None:
        problem = f"{other.name} says already when the record expires."
        fix = 'Keep one of them, and declare the other as stored(format=Epoch("s")).'
    elif type_.kind != "datetime":
        problem = f"ttl() is for a datetime, and it is of type {type_.name}."
        fix = "Annotate it as a datetime."
    else:
        return True
    member.report("ttl", problem, fix, is_breaking=True)
    return False


def _written_as(member: _DeclaredMember, type_: types.FieldType, format_: object) -> types.FieldType:
    problem = f"format={format_!r} is not a Format."
    if isinstance(format_, Format):
        try:
            refuse_kind(format_, type_.of or type_)
            return types.written_as(type_, format_)
        except UnusableFormat as error:
            problem = f"{error}."
    member.report("format", problem, "Use a format for such fields, or remove format=.")
    return type_


def _end(member: _DeclaredMember, parts: tuple[Any, ...], *, optional: bool) -> End | None:
    """Returns the end of a field that is a node, or one of several types of nodes; None if they are none."""
    nodes = []
    for part in parts:
        target = member.resolution.type_of(part)
        if target is not None and target.is_node:
            nodes.append(target)
            continue
        is_missing = declaration.declaration_of(part) and target is None
        problem = f"{_name_of(part)} {'is not listed in the graph' if is_missing else 'is not a node'}."
        each = "An end" if len(parts) == 1 else "Each member of a union"
        member.report("unknown-end", problem, f"{each} is a node that the graph lists.", is_breaking=True)
    if len(nodes) < len(parts):
        return None
    own = member.own if isinstance(member.own, declaration.StoredAs) else None
    if own is not None and own.format is not None:
        problem = "format= is for fields; the key of a node is written as the node has it."
        member.report("format", problem, "Give it to the key field of the node.")
    return End(member.name, tuple(nodes), optional, {}, member.description, stored=own)


def _default(member: _DeclaredMember) -> Any:
    declared = {each.name: each for each in dataclasses.fields(member.record.cls)}.get(member.name)
    if declared is None or declared.default_factory is MISSING:
        return MISSING if declared is None else declared.default
    factory = declared.default_factory
    if isinstance(factory, declaration.SharedDefault):
        problem = f"its default, {factory.value!r}, would be one object of all records."
        member.report("default", problem, f"Write stored(default={factory.value!r}).")
    return factory()


# --- Lists ----------------------------------------------------------------------------------------


def _read_list(member: _DeclaredMember, annotation: Any) -> None:
    is_one = typing.get_origin(annotation) is One
    parts = types.union_parts(*typing.get_args(annotation))
    targets = [member.resolution.type_of(part) for part in parts]
    others = [_name_of(part) for part in parts if declaration.declaration_of(part) is None]
    unlisted = [_name_of(part) for part, target in zip(parts, targets, strict=True) if target is None]
    if not member.record.is_node:
        member.report("list-on-no-node", "only a node has lists.", "Move it to the node at one of the ends.")
    elif len(parts) > 1 and is_one:
        problem = f"an only neighbor is of one record type, not of {' or '.join(map(_name_of, parts))}."
        member.report("one-of-several", problem, "Declare a list, Many[…], or One[…] of each type.")
    elif others:
        problem = f"{_name_of(typing.get_origin(annotation))} takes nodes, edges and records, and {others[0]} is none of them."
        fix = (
            f"Annotate the field as {others[0]}."
            if is_one
            else f"A list of {others[0]} is list[{others[0]}]."
        )
        member.report("unknown-neighbour", problem, fix, is_breaking=True)
    elif unlisted:
        are = "is" if len(unlisted) == 1 else "are"
        problem = f"{' and '.join(unlisted)} {are} not listed in the graph."
        member.report("unknown-neighbour", problem, "List it in the graph.")
    else:
        own, name = member.own, member.name
        options = (
            own
            if isinstance(own, declaration.ListOptions)
            else declaration.ListOptions(None, None, any_index=True)
        )
        if options.index is not None:
            options = replace(options, index=member.resolution.table.own(options.index))
        of_types = tuple(target for target in targets if target is not None)
        member.record.lists[name] = DeclaredList(name, of_types, is_one, options, member.description)


def _read_walk(member: _DeclaredMember, annotation: Any) -> None:
    """Reads a walk over lists; mistakes in the lists are reported when they are resolved."""
    own, name, [of] = member.own, member.name, typing.get_args(annotation)
    targets = [member.resolution.type_of(part) for part in types.union_parts(of)]
    nodes = tuple(target for target in targets if target is not None and target.is_node)
    is_reach = typing.get_origin(annotation) is Reach
    if not member.record.is_node:
        member.report("walk", "only a node has walks.", "Move it to a node.")
    elif len(nodes) < len(targets):
        member.report("walk", f"{_name_of(of)} is not a node that the graph lists.", "Name nodes.")
    elif not isinstance(own, declaration.WalkOptions) or (own.depth is not None) != is_reach:
        call = 'reach("a_list", depth=3)' if is_reach else 'ranked("a_list")'
        problem = f"it does not say {'reach' if is_reach else 'ranked'}(…)."
        member.report("walk", problem, f"Write {name}: … = {call}.")
    else:
        member.record.walks[name] = DeclaredWalk(name, nodes, own, member.description)
        if own.is_kept:
            _check_keeper(member, declaration.StoredAs((), {}, kept="walk", keeper=own.keeper), optional=True)
            attribute, json = (cased(name, member.resolution.style.case),), types.FieldType("json")
            member.record.fields[name] = field = Field(
                name, json, True, attribute, MISSING, None, "walk", keeper=own.keeper, kept_size=own.keep
            )
            _add_age(member, field)


# --- Methods --------------------------------------------------------------------------------------


def _read_methods(resolution: Resolution, record: RecordType) -> None:
    functions = [each for cls in reversed(record.cls.__mro__) for each in vars(cls).items()]
    for name, function in functions:
        declared, member = declaration.method_of(function), _DeclaredMember(resolution, record, name)
        if declared is None:
            continue
        _refuse_taken_name(member)
        known = record.fields.keys() | record.ends.keys()
        if resolution.is_broken(record):
            known |= set(record.order)  # mistakes of these have been reported
        unknown = [need for need in declared.needs or () if need not in known]
        if unknown:
            problem = f"it needs {', '.join(unknown)}, which {record.name} does not have."
            member.report("unknown-need", problem, "Name stored fields of the type.")
        elif (made := _method(member, function, declared.needs)) is not None:
            record.methods[name] = made


def _method(member: _DeclaredMember, function: Any, needs: tuple[str, ...] | None) -> Method | None:
    """Returns the method; None if its result or one of its arguments cannot be in a schema."""
    resolution, name = member.resolution, member.name
    hints = member.hints(function, None, resolution.declarations[member.record.name].namespace)
    if hints is None:
        return None
    if "return" not in hints:
        member.report("unknown-type", "its return type is missing.", "Annotate it.")
        return None
    signature = inspect.signature(function)
    _, *parameters = signature.parameters.values()
    problem = None
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
        problem = "it takes any number of arguments."
    elif any(each.name not in hints for each in parameters):
        problem = "not all of its arguments are annotated."
    found: list[types.FieldType] = []
    returned: tuple[RecordType, ...] = ()
    element, has_elements = types.is_list(hints["return"])
    try:
        given = [each.name for each in parameters if hints.get(each.name, Viewer) not in (Viewer, Context)]
        for part in ["return", *given]:
            annotation, _ = types.is_optional(hints[part])
            possible = element if part == "return" else annotation
            targets = [resolution.type_of(each) for each in types.union_parts(possible)]
            nodes = [target for target in targets if target is not None and target.is_node]
            if len(nodes) < len(targets) or part != "return":
                found.append(types.field_type(annotation, resolution.style))
            else:
                returned = tuple(nodes)
    except types.UnknownType as error:
        problem = f"{error}."
    if problem is not None:
        member.report("method", problem, "Its signature is a field of the schema: change it.")
        return None
    description, are_nodes = docstring(function.__doc__), has_elements and bool(returned)
    return Method(name, function, needs, signature, hints, tuple(found), returned, are_nodes, description)


def _name_of(annotation: Any) -> str:
    return (
        str(annotation) if typing.get_args(annotation) else getattr(annotation, "__name__", str(annotation))
    )


def _references(annotation: Any) -> tuple[Any, ...]:
    """Returns the types of the nodes that a list or a set names, `list[Ref[Thread]]`; none of anything else."""
    if typing.get_origin(annotation) not in (list, set):
        return ()
    [part] = typing.get_args(annotation)
    *inner, last = typing.get_args(part) or (None,)
    return (
        types.union_parts(inner[0])
        if inner and typing.get_origin(part) is Annotated and last == REFERENCE
        else ()
    )


def _has_reference(annotation: Any) -> bool:
    args = typing.get_args(annotation)
    return (typing.get_origin(annotation) is Annotated and REFERENCE in args) or any(
        map(_has_reference, args)
    )


def _record_type_in(annotation: Any) -> tuple[str, str, str] | None:
    """Returns the kind of the record types that a list or the like is of, how a list of them is written, and how they
    are; None if it is of something else."""
    for part in typing.get_args(annotation):
        declared_parts = [(each, declaration.declaration_of(each)) for each in types.union_parts(part)]
        kinds = {
            each: declared.kind for each, declared in declared_parts if declared and declared.kind != "fields"
        }
        if kinds:
            names = " | ".join(map(_name_of, kinds))
            return next(iter(kinds.values())), f"Many[{names}]", names
        inside = _record_type_in(part)
        if inside is not None:
            return inside
    return None


def _is_default(type_: types.FieldType, optional: bool, default: Any) -> bool:
    """Returns whether the default is a value of the type, which is read back as it was written."""
    if default is MISSING or default is None:
        return default is MISSING or optional
    try:
        read = types.decode(type_, types.encode(type_, default))
    except (ValueError, TypeError, AttributeError):
        return False
    # Values inside these may come back as equal values of another type.
    return type_.kind in ("json", "object", "list", "set") or bool(read == default)
