"""What can be wrong with what decorators, fields and the graph were told, before anything is made of it.

An editor finds most of these; a model that is not looked over by one would fail in the middle of something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from keygraph.dynamo.table import Index, IndexKey
from keygraph.errors import Mistake
from keygraph.keys.formats import Format
from keygraph.keys.types import PLAIN
from keygraph.model.declaration import Declaration, ListOptions, StoredAs
from keygraph.model.mistakes import Mistakes
from keygraph.names import CASES

_MOST_SHARDS = 1000


def refuse_wrong_options(name: str, declaration: Declaration, mistakes: Mistakes) -> None:
    """Tells what a type was declared with that means nothing; the type is broken by it."""
    for kind, where, problem, mend in (
        *_wrong_keys(name, declaration),
        *_wrong_names(name, declaration),
        *_wrong_fields(name, declaration),
        *_wrong_item_bytes(name, declaration.item_bytes),
    ):
        mistakes.add(kind, where, problem, mend, breaks=name)


_Wrong = tuple[str, str, str, str]


def _wrong_keys(name: str, declaration: Declaration) -> Iterator[_Wrong]:
    for key in cast("tuple[object, ...]", declaration.keys):
        templates: tuple[object, ...] = (key,)
        if isinstance(key, Index):
            yield (
                "key-templates",
                name,
                f"{key.name} is listed among its keys but not called.",
                f"Call it with its templates: {_called(key)}.",
            )
            continue
        if isinstance(key, IndexKey):
            templates = key.templates
            yield from _wrong_shards(f"{name} in {key.index.name}", key.shards)
        for template in templates:
            if not isinstance(template, str):
                yield (
                    "template",
                    name,
                    f"{template!r} is not a key template.",
                    'A template is a string such as "ORDER#{order_id}".',
                )
    yield from _wrong_shards(name, declaration.shards)


def _called(index: Index) -> str:
    templates = ", ".join('"…"' for _ in index.keys)
    return f"{index.name.lower()}({templates})"


def _wrong_shards(where: str, given: object) -> Iterator[_Wrong]:
    if given is None:
        return
    if type(given) is not int:
        yield "shards", where, f"shards={given!r} is not a number of shards.", "Add shards=5, for example."
    elif given > _MOST_SHARDS:
        yield (
            "shards",
            where,
            f"shards={given}; a list queries all of them at once.",
            f"Use {_MOST_SHARDS:,} or fewer.",
        )


def _wrong_item_bytes(name: str, given: object) -> Iterator[_Wrong]:
    if given is None or (type(given) is int and given > 0):
        return
    yield (
        "item-bytes",
        name,
        f"item_bytes={given!r} is not a positive number of bytes.",
        "Use item_bytes=2048.",
    )


def _wrong_names(name: str, declaration: Declaration) -> Iterator[_Wrong]:
    value: object = declaration.type_value
    if not isinstance(value, str | None):
        yield (
            "type-value",
            name,
            f"type={value!r} is not a value for a type attribute.",
            'Use type="Order", or type=None where its items have none.',
        )
    offered: list[tuple[str, str, object]] = [(name, "lists", declaration.lists)]
    for key in declaration.keys:
        if isinstance(key, IndexKey):
            offered += [(f"{name} in {key.index.name}", "lists", key.lists)]
            offered += [(f"{name} in {key.index.name}", "finds", key.finds)]
    for where, option, given in offered:
        if given is None or (given is False and option == "lists") or (isinstance(given, str) and given):
            continue
        mend = 'Use lists="users", or lists=False.' if option == "lists" else 'Use finds="user_by_email".'
        yield "list-name", where, f"{option}={given!r} is not a field name.", mend


def _wrong_fields(name: str, declaration: Declaration) -> Iterator[_Wrong]:
    for field, meaning in cast("Mapping[str, object]", declaration.own).items():
        where = f"{name}.{field}"
        match meaning:
            case StoredAs(path, attributes):
                names = cast("tuple[object, ...]", (*path, *attributes.values()))
                wrong = [part for part in names if not isinstance(part, str) or not part]
                for part in wrong:
                    yield (
                        "attribute-name",
                        where,
                        f"{part!r} is not an attribute name.",
                        'Write stored("name").',
                    )
            case ListOptions():
                index: object = meaning.index
                if not isinstance(index, Index | None):
                    problem = f"index={index!r} is not an index."
                    yield "list-index", where, problem, "Pass the Index object, or None for the table."


def graph_option_mistakes(
    attribute_case: object, type_attribute: object, formats: Mapping[object, object]
) -> Iterator[Mistake]:
    """What a graph was told that means nothing."""
    where = "the graph"
    if attribute_case not in CASES:
        yield Mistake(
            "attribute-case",
            where,
            f"attribute_case={attribute_case!r} is not an attribute case.",
            f"Use one of {', '.join(CASES)}.",
        )
    if type_attribute is not None and not (isinstance(type_attribute, str) and type_attribute):
        yield Mistake(
            "type-attribute",
            where,
            f"type_attribute={type_attribute!r} is not an attribute name.",
            'Use type_attribute="Type", or leave it out where items do not say their type.',
        )
    for name, format_ in formats.items():
        if not isinstance(format_, Format):
            yield Mistake(
                "format",
                where,
                f"formats[{_shown(name)}] is not a Format.",
                "Write Format(render), or Format(render, parse) if it can be read back.",
            )
        if not (isinstance(name, str) and name) and name not in PLAIN:
            yield Mistake(
                "format",
                where,
                f"formats has {_shown(name)}, which is neither a format name nor a type with a format.",
                "Give it a name, or a type such as datetime, date or Decimal.",
            )


def _shown(name: object) -> str:
    return name.__name__ if isinstance(name, type) else getattr(name, "__name__", None) or repr(name)
