"""The model file that declares a plain model."""

from __future__ import annotations

import re

from tests.resolvers.judge.plain import Index, KeyPair, Listing, Model, Type, camel, source_of

_HEAD = """from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import Enum

from keygraph import ID, Epoch, Format, Graph, Index, Many, One, Table, edge, field, many, node, one, record, stored


class Colour(Enum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"

"""


def source(model: Model) -> str:
    parts = [_HEAD, *map(_index, model.indexes.values()), ""]
    parts += [_class(model, type_) for type_ in model.types]
    indexes = ", ".join(model.indexes)
    formats = ", ".join(f"{name}: {made}" for name, made in model.formats.items())
    told = f", type_attribute={model.type_attribute!r}" if model.type_attribute else ""
    told += f", separator={model.separator!r}" if model.separator else ""
    sort_key = "" if model.is_flat else ", sort_key='SK'"
    parts.append(
        f"table = Table('Judged', partition_key='PK'{sort_key}, indexes=[{indexes}])\n"
        f"graph = Graph(table, {', '.join(type_.name for type_ in model.types)}{told}, formats={{{formats}}}, writes=True)\n"
    )
    text = "\n".join(parts)
    return _in_camel_case(model, text) if model.is_camel else text


def _in_camel_case(model: Model, text: str) -> str:
    """The same with names in camel case; attributes keep theirs."""
    for type_ in model.types:
        for name in (*type_.fields, *type_.ends, *type_.methods, *(each.name for each in type_.lists)):
            text = re.sub(rf"(?<!')\b{name}\b|(?<=at='){name}\b|(?<=needs=\('){name}\b", camel(name), text)
    return text


def _index(index: Index) -> str:
    partition, *sort = index.attributes
    keys = ", ".join([repr(partition), *(repr((name, "N") if index.is_number else name) for name in sort)])
    projection = "" if index.projection == "ALL" else f", projection={index.projection!r}"
    local = ", local=True" if index.is_local else ""
    return f"{index.name} = Index({index.name!r}, {keys}{projection}{local})"


def _class(model: Model, type_: Type) -> str:
    keys = [] if None not in type_.keys else _templates(type_.keys[None])
    for name, pair in type_.keys.items():
        if name is None or model.indexes[name].is_inverted:
            continue
        index, roots = (
            model.indexes[name],
            [each for each in model.roots if each.type is type_ and each.index == name],
        )
        lists = (
            [f"finds={roots[0].name!r}" if roots[0].is_one else f"lists={roots[0].name!r}"]
            if roots
            else ["lists=False"]
        )
        shards = [f"shards={_shards(pair)}"] if pair.shards else []
        templates = [] if index.is_plain else _templates(pair)[index.is_local :]
        keys.append(f"{name}({', '.join([*templates, *lists, *shards])})")
    if type_.is_gathered:
        keys.append("gather=True")
    if type_.is_mirrored:
        keys.append("mirror=True")
    if type_.is_virtual:
        keys.append("item=False")
    elif model.type_attribute is None:
        keys.append("type=None")
    lines = [f"@{type_.kind}({', '.join(keys)})", f"class {type_.name}:"]
    for end in type_.ends.values():
        stored = ", ".join(f"{key}={name!r}" for key, name in end.attributes.items())
        if len(end.attributes) < 2:
            stored = repr(next(iter(end.attributes.values()), end.key)) + ", whole_key=True" * end.is_whole
        annotation = " | ".join([*map(str, end.nodes), *(["None"] if end.optional else [])])
        lines.append(f"    {end.name}: {annotation} = stored({stored})")
    for field in type_.fields.values():
        annotation = field.kind.annotation + (" | None" if field.optional else "")
        is_told = field.attribute is not None and (model.is_camel or field.attribute != field.name)
        said = [*map(repr, field.attribute.split("."))] if is_told and field.attribute else []
        said += [f"format={field.kind.stored_as}"] if field.kind.stored_as else []
        stored = f" = stored({', '.join(said)})" if said else ""
        lines.append(f"    {field.name}: {annotation}{stored}")
    lines += [f"    {_list(each)}" for each in type_.lists]
    for method in type_.methods.values():
        body = method.body.replace("value", f"self.{method.need}")
        lines += [
            "",
            f"    @field(needs=({method.need!r},))",
            f"    def {method.name}(self) -> str:",
            f"        return {body}",
        ]
    return "\n".join([*lines, "", ""])


def _shards(pair: KeyPair) -> str:
    if not pair.shards[0].isdigit():
        return repr([*pair.shards])
    first = int(pair.shards[0])
    return f"range({first}, {first + len(pair.shards)})" if first else str(len(pair.shards))


def _templates(pair: KeyPair) -> list[str]:
    partition = source_of(pair.partition) + ("{shard}" if pair.shards else "")
    return [repr(partition)] + ([] if pair.sort is None else [repr(source_of(pair.sort))])


def _list(listing: Listing) -> str:
    kind = "One" if listing.is_one else "Many"
    index = listing.index or "None"
    return f"{listing.name}: {kind}[{listing.type.name}] = {kind.lower()}(at={listing.end!r}, index={index})"
