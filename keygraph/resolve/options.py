"""Checks the arguments of decorators, fields and the graph, before anything is made from them.

An editor finds most of these mistakes; without one, they would cause a failure somewhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from keygraph.declare.declaration import (
    EVERY_WRITE,
    Declaration,
    ListOptions,
    WalkOptions,
)
from keygraph.dynamo.table import Index, IndexKey, Shards
from keygraph.errors import Mistake
from keygraph.keys.formats import Format
from keygraph.keys.pattern import read_pattern
from keygraph.keys.shards import are_shards, shards_of
from keygraph.keys.types import PLAIN
from keygraph.names import CASES

_MOST_SHARDS = 1000
SHARDS = 'Use shards=5, shards=range(1, 6) or shards=["north", "south"].'


class _Option(NamedTuple):
    """The valid values of an option."""

    kind: str
    """The kind of mistake for other values."""
    takes: Callable[[Any], bool]
    what: str
    """The valid values, in words."""
    fix: str


def is_name(given: object) -> bool:
    """Returns whether it is a text that is not empty."""
    return isinstance(given, str) and bool(given)


def is_separator(given: object) -> bool:
    """Returns whether it can separate the parts of a key: one character; or None for no separator."""
    return given is None or (isinstance(given, str) and len(given) == 1)


def are_writes(given: object) -> bool:
    """Returns whether it says which mutations a type has."""
    if isinstance(given, list | tuple):
        return all(each in EVERY_WRITE for each in given) and {*given} != {"bulk"}
    return isinstance(given, bool | None)


def _are_type_values(given: object) -> bool:
    return (
        isinstance(given, Mapping)
        and bool(given)
        and all(is_name(name) and _is_type_value(value) for name, value in given.items())
    )


def _is_type_value(given: object) -> bool:
    if not isinstance(given, Mapping):
        return given is None or is_name(given)
    return (
        isinstance(given.get("exists"), bool)
        if {*given} == {"exists"}
        else ({*given} == {"beginsWith"} and is_name(given["beginsWith"]))
    )


_OPTIONS = {
    "shards": _Option(
        "shards",
        lambda given: given is None or are_shards(given),
        "a number of shards, a range or a list of names",
        SHARDS,
    ),
    "item_bytes": _Option(
        "item-bytes",
        lambda given: given is None or (type(given) is int and given > 0),
        "a positive number of bytes",
        "Use item_bytes=2048.",
    ),
    "writes": _Option(
        "writes",
        are_writes,
        "a list of mutations",
        'Use writes=True for all, writes=False for none, or writes=["create", "update", "delete"]; there are '
        "create, update, upsert, move and delete, put for what is no node, and bulk for their plurals.",
    ),
    "type": _Option(
        "type-value",
        lambda given: isinstance(given, str | None) or _are_type_values(given),
        "a value for a type attribute, or a mapping of attributes to values",
        'Use type="Order", type={"kind": "order", "part": "header"}, type={"ByDatePK": {"beginsWith": "DATE#"}}, '
        'type={"closedAt": {"exists": True}}, or type=None where its items have none.',
    ),
    "lists": _Option(
        "list-name",
        lambda given: given is None or given is False or is_name(given),
        "a field name",
        'Use lists="users", or lists=False.',
    ),
    "finds": _Option(
        "list-name",
        lambda given: given is None or is_name(given),
        "a field name",
        'Use finds="user_by_email".',
    ),
    "index": _Option(
        "list-index",
        lambda given: isinstance(given, Index | None),
        "an index",
        "Pass the Index object, or None for the table.",
    ),
    "attribute_case": _Option(
        "attribute-case",
        lambda given: given in CASES,
        "an attribute case",
        f"Use one of {', '.join(CASES)}.",
    ),
    "type_attribute": _Option(
        "type-attribute",
        lambda given: given is None or is_name(given),
        "an attribute name",
        'Use type_attribute="Type", or leave it out where items do not say their type.',
    ),
    "ignore": _Option(
        "ignore",
        lambda given: isinstance(given, list | tuple) and all(map(is_name, given)),
        "a list of keys with wildcards",
        'Use ignore=["SESSION#*"], or ignore=["JOB#* / LOG#*"] for a partition key and a sort key.',
    ),
    "separator": _Option(
        "separator",
        is_separator,
        "one character",
        'Use separator="#", or leave it out where texts in keys may hold it.',
    ),
}


def _wrong(where: str, **options: object) -> Iterator[Mistake]:
    """Yields the invalid values among these options."""
    for name, given in options.items():
        option = _OPTIONS[name]
        if not option.takes(given):
            yield Mistake(option.kind, where, f"{name}={given!r} is not {option.what}.", option.fix)
        elif name == "shards" and (number := len(shards_of(cast("Shards | None", given)))) > _MOST_SHARDS:
            problem = f"it has {number:,} shards; a list queries all of them at once."
            yield Mistake("shards", where, problem, f"Use {_MOST_SHARDS:,} or fewer.")


def option_mistakes(name: str, declaration: Declaration) -> Iterator[Mistake]:
    """Yields the invalid arguments of a type's declaration."""
    for key in cast("tuple[object, ...]", declaration.keys):
        templates: tuple[object, ...] = (key,)
        if isinstance(key, Index):
            called = ", ".join('"…"' for _ in key.keys)
            problem = f"{key.name} is listed among its keys but not called."
            fix = f"Call it with its templates: {key.name.lower()}({called})."
            yield Mistake("key-templates", name, problem, fix)
            continue
        if isinstance(key, IndexKey):
            templates = key.templates
            where = f"{name} in {key.index.name}"
            yield from _wrong(where, shards=key.shards, lists=key.lists, finds=key.finds)
        for template in templates:
            if not isinstance(template, str):
                fix = 'A template is a string such as "ORDER#{order_id}".'
                yield Mistake("template", name, f"{template!r} is not a key template.", fix)
    yield from _wrong(
        name,
        shards=declaration.shards,
        type=declaration.type,
        lists=declaration.lists,
        item_bytes=declaration.item_bytes,
        writes=declaration.writes,
    )
    for field, meaning in declaration.own.items():
        where = f"{name}.{field}"
        if isinstance(meaning, ListOptions):
            yield from _wrong(where, index=meaning.index)
            continue
        if isinstance(meaning, WalkOptions):
            continue
        was = [meaning.was] if meaning.was else []
        for part in (*meaning.path, *meaning.attributes.values(), *was):
            if not is_name(part):
                problem = f"{part!r} is not an attribute name."
                yield Mistake("attribute-name", where, problem, 'Write stored("name").')


def graph_option_mistakes(options: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yields the invalid arguments of a graph."""
    where, formats = "the graph", options.get("formats") or {}
    checked = [
        name
        for name in ("attribute_case", "type_attribute", "separator", "ignore", "writes")
        if name in options
    ]
    yield from _wrong(where, **{name: options[name] for name in checked})
    for name, format_ in formats.items():
        if not isinstance(format_, Format):
            problem = f"formats[{_name_of(name)}] is not a Format."
            fix = "Write Format(render), or Format(render, parse) if it can be read back."
            yield Mistake("format", where, problem, fix)
        elif format_.pattern is not None:
            try:
                read_pattern(format_.pattern)
            except (ValueError, TypeError) as error:
                problem = f"formats[{_name_of(name)}] has a pattern that cannot be used: {error}."
                yield Mistake("format", where, problem, 'Write it as pattern="[0-9]{4}", for example.')
        if not (isinstance(name, str) and name) and name not in PLAIN:
            problem = (
                f"formats has {_name_of(name)}, which is neither a format name nor a type with a format."
            )
            fix = "Give it a name, or a type such as datetime, date or Decimal."
            yield Mistake("format", where, problem, fix)


def _name_of(name: object) -> str:
    return name.__name__ if isinstance(name, type) else getattr(name, "__name__", None) or repr(name)
