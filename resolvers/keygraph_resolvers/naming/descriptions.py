"""Generated descriptions for types, fields, arguments and values that the model does not describe.

Every function returns one or more sentences for a client who knows nothing about the store.
"""

from __future__ import annotations

from keygraph.declare.declaration import OF_ENDS
from keygraph.keys.types import FieldType
from keygraph.model.fields import Field
from keygraph.model.paths import SORT_KEY, AccessPath, Argument
from keygraph.model.records import End, Method, RecordType
from keygraph.names import camel, plural, snake, with_article, words

_AUXILIARIES = ("is", "has", "was", "can", "may", "must", "does", "did", "will", "should", "allows", "needs")
OF_SEVERAL = "One of several types."
"""A union. It names no member, because introspection may hide some of them."""
WITHOUT_PART = "If omitted or null, the key without this part."
"""What the absence of an optional part of a key means."""


def in_words(name: str) -> str:
    """`BigThing` and `big_thing` as `big thing`."""
    return " ".join(words(name))


def a(name: str) -> str:
    """A type's name in words, after its article: `a big thing`."""
    return f"{with_article(name).partition(' ')[0]} {in_words(name)}"


def sentences(*parts: str | None) -> str | None:
    """Joins the parts that are not None; None if all are."""
    return " ".join(part for part in parts if part) or None


def of_type(name: str) -> str:
    """A type, or a nested object."""
    return f"{a(name).capitalize()}."


def of_field(owner: str, name: str, type_: FieldType | None = None) -> str:
    """A value of an object of the type `owner`."""
    parts, whose = words(name), in_words(owner)
    kind = "" if type_ is None else type_.kind
    if kind == "boolean":
        if parts[0] in _AUXILIARIES:
            return f"Whether the {whose} {' '.join(parts)}."
        return f"{in_words(name).capitalize()}: true or false."
    if kind in ("datetime", "date"):
        before, last = " ".join(parts[:-1]), parts[-1]
        if last in ("at", "on") and before.endswith("ed"):
            return f"When the {whose} was {before}."
        if last in ("at", "on") and before.endswith("s"):
            return f"When the {whose} {before}."
        if last.endswith("ed"):
            return f"When the {whose} was {' '.join(parts)}."
    owners = words(owner)
    if parts[: len(owners)] == owners and len(parts) > len(owners):
        parts = parts[len(owners) :]
    what = " ".join(parts)
    return f"The {what}." if parts == owners else f"The {what} of the {whose}."


def of_stored(record: RecordType, field: Field) -> str:
    if field.description:
        return field.description
    if record.is_node and (field.name,) in {slot.path for slot in record.identity}:
        whole = "the key" if len(record.identity) == 1 else "a part of the key"
        return f"The {in_words(field.name)}: {whole} of the {in_words(record.name)}."
    return _of_kept(record, field) or of_field(record.name, field.name, field.type)


def _of_kept(record: RecordType, field: Field) -> str | None:
    """Describes a value that the server, a job or the stream keeps; None for what clients give."""
    name, _, of = field.kept_of.partition(".")
    those = "all" if field.kept_where is None else "some"
    lists = [f"`{camel(each)}`" for each in field.lists]
    keeper = f"as it was at `{camel(field.name)}AsOf`" if field.is_kept_later else "which the server keeps"
    if field.is_kept_by_stream:
        keeper = "which follows changes some seconds later"
    if field.kept == "degree":
        return f"The number of edges in {' and '.join(lists)}, {keeper}."
    if field.kept == "rank":
        among = f" among those with the same `{camel(field.kept_within)}`" if field.kept_within else ""
        return f"The rank by `{camel(field.kept_of)}`{among}, 1 for the highest, {keeper}."
    if field.kept in OF_ENDS:
        which = "last" if field.kept == "latest" else field.kept
        return f"The {which} `{camel(of)}` of `{camel(name)}`, {keeper}."
    if lists:
        value, counted = f"`{camel(field.kept_of.rpartition('.')[2])}`", " of all ".join(reversed(lists))
        if field.kept == "top":
            return f"The {field.kept_size} {counted} with the highest {value}, {keeper}."
        if field.kept == "count":
            return f"The number of {'some ' if field.kept_where else ''}{counted}, {keeper}."
        return f"The {field.kept} of {value} over {those} {counted}, {keeper}."
    if field.kept == "copy":
        snapshot = "kept here, and changed with it" if field.follows else "as it was when this was written"
        return f"The `{camel(of)}` of the `{camel(name)}`, {keeper if field.is_kept_later else snapshot}."
    if field.kept == "as_of":
        if field.is_kept_by_stream and name not in record.walks:
            return f"When the last change was made that is in `{camel(name)}`; null if it was never computed."
        return f"When `{camel(name)}` was right; null if it was never computed."
    return None


def of_end(record: RecordType, end: End) -> str:
    return end.description or of_field(record.name, end.name)


def of_given_end(record: RecordType, end: End) -> str:
    """An end of a record type in an input, which takes its key."""
    if end.text is not None:
        by = "`id`"
    elif len(end.identity) == 1:
        by = f"`{camel(end.members[0].leaf_name(end.identity[0].path))}`"
    else:
        by = "key"
    return f"{of_end(record, end)} Given by {'their' if end.is_list else 'its'} {by}."


def of_method(record: RecordType, method: Method) -> str:
    [type_] = method.types[:1] if not method.nodes else (None,)
    return method.description or of_field(record.name, method.name, type_)


def of_record(record: RecordType) -> str:
    return record.description or of_type(record.name)


# --- Lists ------------------------------------------------------------------------------------------------


def of_list(path: AccessPath) -> str:
    """A list, or what an index finds."""
    if path.description:
        return path.description
    if path.owner is None and path.is_one:
        by = " and ".join(camel(argument.name) for argument in path.required)
        return f"The first {path.record.name} with this {by}."
    if path.is_one and path.owner is not None:
        return of_field(path.owner.name, path.name)
    order = ", then ".join(camel(argument.name) for argument in path.ranged if argument.name != SORT_KEY)
    content = listed(path).capitalize()
    return f"{content}, sorted by {order}." if order else f"{content}."


def listed(path: AccessPath) -> str:
    """The content of a list in words: `the orders of a user`; `users` at the root."""
    if path.owner is None:
        return in_words(path.name if path.members else plural(snake(path.record.name)))
    return f"the {in_words(path.name)} of {a(path.owner.name)}"


def of_changes(record: RecordType) -> str:
    return f"A change of {a(record.name)}."


def of_edge(path: AccessPath) -> str:
    if path.far_end:
        return of_record(path.record)
    what = "An element" if path.members else a(path.record.name).capitalize()
    return f"{what} in a list, with its cursor."


def of_far_node(path: AccessPath) -> str:
    if path.far_end:
        return of_end(path.record, path.record.ends[path.far_end])
    return f"The {'element' if path.members else in_words(path.record.name)}."


def of_required(argument: Argument) -> str:
    """A required argument of a list, or one without which only a part of it is read."""
    absent = "If omitted or null, those that have none." if argument.optional else None
    return sentences(f"Only those with this `{camel(argument.name)}`.", absent) or ""


def of_key_part(name: str, *, optional: bool) -> str:
    """A key field as an argument, or in an input."""
    return sentences(f"The {in_words(name)}.", WITHOUT_PART if optional else None) or ""
