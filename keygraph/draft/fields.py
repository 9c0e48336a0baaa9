"""The attributes of a drafted type: which repeat part of a key, which are ends or fields, and their types."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date
from decimal import Decimal

from keygraph.draft.keys import SLASHED_DATE
from keygraph.draft.kinds import Column, Part, Texts, columns_of, rows_of
from keygraph.draft.names import field_name, is_id, type_name, without_id
from keygraph.draft.parts import DraftEnd, DraftField, DraftType
from keygraph.dynamo.items import Item, Value, number_text
from keygraph.dynamo.table import KeyAttribute
from keygraph.keys.template import Reference
from keygraph.keys.types import INT_MAX, INT_MIN, ISO_DATE, Moment
from keygraph.names import plural, singular, snake

_FLOAT_DIGITS = 13
"""A number with this many decimals is not an amount of money: somebody stored a binary fraction."""
_ENUM_VALUES = 6
_ENUM_ITEMS = 5
_KEY_ANNOTATIONS = ("str", "int", "Long", "date", "datetime")
_DIGITS = 4
"""Equal numbers with fewer digits may be a coincidence."""
_EXACT_DIGITS = 18


# --- Types of attributes ------------------------------------------------------------------------------


def guess(attribute: str, items: Sequence[Item]) -> DraftField:
    """Returns the field for an attribute, guessed from its values in the items."""
    values = [item.get(attribute) for item in items]
    given = [value for value in values if value is not None]
    annotation, doubts = _annotation(given)
    return DraftField(annotation, len(given) < len(items), doubts, attribute)


def text_annotation(texts: Collection[str]) -> str:
    """Returns the type of texts: date or datetime if all of them are, else str."""
    for form in (ISO_DATE, SLASHED_DATE):
        if all(
            re.fullmatch(form, text, re.ASCII) and _is(date.fromisoformat, text.replace("/", "-"))
            for text in texts
        ):
            return "date"
    return "datetime" if all("T" in text and _is(Moment.of_text, text) for text in texts) else "str"


def number_annotation(numbers: Sequence[Decimal]) -> str:
    """The type of exact numbers."""
    if any(number != number.to_integral_value() for number in numbers):
        return "Decimal"
    return "int" if all(INT_MIN <= number <= INT_MAX for number in numbers) else "Long"


_KINDS: dict[type, str] = {
    str: "text",
    Decimal: "number",
    bool: "bool",
    bytes: "bytes",
    list: "list",
    frozenset: "set",
    dict: "map",
}


def _annotation(values: Sequence[Value]) -> tuple[str, list[str]]:
    kinds = Counter(_KINDS[type(value)] for value in values)
    if not kinds:
        return "JSON", ["it is always null"]
    if len(kinds) > 1:
        counts = ", ".join(f"{kind} in {count}" for kind, count in kinds.most_common())
        return "JSON", [f"its values have several types ({counts})"]
    match next(iter(kinds)):
        case "text":
            texts = [str(value) for value in values]
            annotation = text_annotation(texts)
            return annotation, enum_doubts(texts) if annotation == "str" else []
        case "number":
            return _number([value for value in values if isinstance(value, Decimal)])
        case "list" | "set" as kind:
            return _members(kind, values)
        case "map":
            return "JSON", []
        case other:
            return other, []


def is_slashed(texts: Iterable[str | None]) -> bool:
    """Returns whether any of these dates is written with slashes."""
    return any("/" in text for text in texts if text is not None)


def _is(read: Callable[[str], object], text: str) -> bool:
    try:
        return read(text) is not None
    except ValueError:
        return False


def _number(numbers: Sequence[Decimal]) -> tuple[str, list[str]]:
    annotation = number_annotation(numbers)
    is_binary = any(int(number.as_tuple().exponent) <= -_FLOAT_DIGITS for number in numbers)
    if annotation == "Decimal" and is_binary:
        return "float", ["Decimal, if all digits matter?"]
    return annotation, []


def _members(kind: str, values: Sequence[Value]) -> tuple[str, list[str]]:
    members = [member for value in values if isinstance(value, list | frozenset) for member in value]
    if not members:
        return "JSON", ["the list is always empty"]
    annotation, _ = _annotation([member for member in members if member is not None])
    if annotation == "date" and is_slashed(str(member) for member in members if member is not None):
        annotation = "str"
    if annotation == "JSON" or (kind == "set" and annotation == "bool"):
        return "JSON", []
    return f"{kind}[{annotation}{' | None' if None in members else ''}]", []


def enum_doubts(values: Sequence[str]) -> list[str]:
    """Returns a doubt about whether texts are the values of an enum, if there are few different ones."""
    found = Counter(values)
    is_short = all(re.fullmatch(r"[A-Za-z][\w -]{0,30}", value) for value in found)
    is_few = 1 < len(found) <= _ENUM_VALUES and len(found) * 2 <= len(values)
    if len(values) < _ENUM_ITEMS or not is_few or not is_short:
        return []
    return [f"an enum? Its values are {', '.join(sorted(found))}"]


# --- Parts of keys ------------------------------------------------------------------------------------


def same_attribute(type_: DraftType, texts: Texts) -> tuple[str | None, str]:
    """Returns the attribute whose value is this part of a key in every item, and its format there."""
    rows = [(item, text) for item, text in zip(type_.items, texts, strict=False) if text is not None]
    if not rows:
        return None, ""
    found: list[tuple[bool, int, str, str]] = []
    for place, (name, value) in enumerate(rows[0][0].items()):
        if name in type_.used or not isinstance(value, str | Decimal):
            continue
        format_ = _common_format([(item.get(name), text) for item, text in rows])
        if format_ is not None:
            found.append((not is_id(name), place, name, format_))
    return (min(found)[2], min(found)[3]) if found else (None, "")


def _common_format(rows: Sequence[tuple[Value, str]]) -> str | None:
    """Returns the format in which a key holds all the values; None if it holds other values."""
    if all(value == text for value, text in rows):
        return ""
    integers = [
        (int(value), text) for value, text in rows if isinstance(value, Decimal) and _is_integer(value)
    ]
    if len(integers) < len(rows):
        return None
    if all(str(value) == text for value, text in integers):
        return ""
    widths = {len(text) for _, text in integers}
    width = min(widths)
    padded = all(value >= 0 and f"{value:0{width}d}" == text for value, text in integers)
    return f"0{width}d" if padded and width < 40 else None


def _is_integer(value: Value) -> bool:
    return (
        isinstance(value, Decimal) and value == value.to_integral_value() and abs(value) < 10**_EXACT_DIGITS
    )


def field_for(
    type_: DraftType, column: Column, name: str, key: KeyAttribute, *, identifies: bool = False
) -> Reference:
    """Adds a field for part of a key, or for the attribute with the same value. Returns its placeholder."""
    attribute, format_ = same_attribute(type_, column.texts)
    made: DraftField | None = None
    if attribute is not None:
        guessed = guess(attribute, type_.items)
        if guessed.annotation in _KEY_ANNOTATIONS:
            is_text = guessed.annotation == "str" and key.type == "S"
            annotation = "ID" if is_text and (identifies or is_id(attribute)) else guessed.annotation
            made = DraftField(annotation, guessed.optional, attribute=attribute)
            type_.used.add(attribute)
    if made is None:
        annotation = _key_annotation(column.given, key, name)
        doubts = enum_doubts(column.given) if annotation == "str" else []
        made = DraftField(annotation, None in column.texts, doubts)
    own = type_.name or "item"
    wanted = field_name(made.attribute or name, own)
    attributes = {snake(each) for each in _attributes(type_) if each not in type_.used}
    if made.attribute is None and wanted in attributes:
        # An attribute of that name has another value.
        wanted = f"key_{wanted}"
    taken = type_.names.take(wanted)
    type_.fields[taken] = made
    type_.texts[taken,] = column.texts
    if format_ and made.attribute is not None:
        type_.formats[taken,] = format_
    return type_.placeholder((taken,))


def _key_annotation(texts: Sequence[str], key: KeyAttribute, name: str) -> str:
    """Returns the type of a field that only a key holds."""
    if key.type == "B":
        return "bytes"
    if key.type == "N":
        return number_annotation([Decimal(text) for text in texts])
    found = text_annotation(texts)
    return "ID" if found == "str" and is_id(name) else found


def add_end(
    type_: DraftType, node: DraftType, columns: Sequence[Column], *words: str, ids_only: bool = False
) -> str:
    """Adds an end to the type and returns its name: from its attribute, else one of the words, else the node's.

    With `ids_only`, only attributes named as ids, or as the node or its key, are considered to hold it.
    """
    attributes = _end_attributes(type_, node, columns)
    if ids_only and not all(_names_node(attribute, node) for attribute in attributes.values()):
        attributes = {}
    attribute = next(iter(attributes.values())) if len(attributes) == 1 else ""
    wanted = [without_id(attribute) if is_id(attribute) else "", *words]
    own = field_name(snake(node.name), node.name)
    named = [field_name(word, node.name) for word in wanted if word]
    name = type_.names.take(*named, own, f"to_{own.rstrip('_')}", beside=node.names_at)
    type_.ends[name] = DraftEnd(node, attributes, optional=None in columns[0].texts)
    type_.used.update(attributes.values())
    for path, column in zip(node.key_paths, columns, strict=True):
        type_.texts[name, path] = column.texts
    return name


def _names_node(attribute: str, node: DraftType) -> bool:
    """Returns whether the name of an attribute says that it holds an id, or this node."""
    return (
        is_id(attribute) or type_name(attribute).startswith(node.name) or snake(attribute) in node.key_paths
    )


def _end_attributes(type_: DraftType, node: DraftType, columns: Sequence[Column]) -> dict[str, str]:
    """Returns the attributes that also hold an end in a key, by the node's key fields; empty unless each has one. Fields
    may be stored in some of them too, such as a tenant's."""
    found: dict[str, str] = {}
    for path, column in zip(node.key_paths, columns, strict=True):
        attribute, format_ = same_attribute(type_, column.texts)
        if attribute is None:
            same = (
                field for name, field in type_.fields.items() if column.equals(type_.texts.get((name,), ()))
            )
            attribute = next((field.attribute for field in same), None)
        if attribute is None or format_ or attribute in found.values():
            return {}
        given = [value for item in type_.items if (value := item.get(attribute)) is not None]
        if not _can_hold(node, path, given):
            return {}
        found[path] = attribute
    return {} if type_.used.issuperset(found.values()) else found


def can_be_end(type_: DraftType, node: DraftType, parts: Sequence[Part]) -> bool:
    """Returns whether a key with these parts can be the node's: one that the sample has, or a similar one."""
    rows, columns = rows_of(parts), columns_of(parts)
    if len(rows & node.ids) * 2 > len(rows):
        return True
    first = columns[0].given
    if {re.split(r"\W", text)[0] for text in first} <= node.single_ids:
        return False  # they begin with the node's ids, and say more
    if text_annotation(first) != text_annotation([id_[0] for id_ in node.ids]):
        return False
    prefix = _common_word([id_[0] for id_ in node.ids])
    if not all(text.startswith(prefix) for text in first):
        return False
    attribute = same_attribute(type_, columns[0].texts)[0]
    return attribute is None or _names_node(attribute, node)


def _common_word(texts: Sequence[str]) -> str:
    """Returns the common beginning of several ids, up to a separator: `cus_` for `cus_17` and `cus_18`."""
    found = re.match("[A-Za-z]+[_-]", texts[0]) if len(texts) > 1 else None
    return found[0] if found and all(text.startswith(found[0]) for text in texts) else ""


# --- Ends and fields outside the table's key ----------------------------------------------------------


def add_end_attributes(type_: DraftType, nodes: Sequence[DraftType]) -> None:
    """Makes an end of each attribute whose values are keys or ids of a node, or that is named after a node."""
    items = type_.items
    for name in _attributes(type_):
        given = [value for item in items if (value := item.get(name)) is not None]
        if name not in type_.used and all(isinstance(value, list | frozenset) for value in given):
            _add_list_of_ids(
                type_, name, [value for value in given if isinstance(value, list | frozenset)], nodes
            )
        if name in type_.used or not given or not all(isinstance(value, str | Decimal) for value in given):
            continue
        texts, doubt = _texts(name, items), list[str]()
        whole = _whole_keys(texts, nodes)
        if whole is not None:
            target, texts = whole
        elif is_id(name) and without_id(name):
            found, doubt = _target(name, {text for text in texts if text is not None}, nodes)
            if found is None or not _can_hold(found, found.key_paths[0], given) or (found is type_ and doubt):
                continue
            target = found
        else:
            continue
        wanted = field_name(without_id(name), type_.name)
        end = type_.names.take(wanted, f"{wanted.rstrip('_')}_{snake(target.name)}", beside=target.names_at)
        place = {target.key_paths[0]: name}
        type_.ends[end] = DraftEnd(target, place, len(given) < len(items), doubt, whole is not None)
        type_.used.add(name)
        type_.texts[end, target.key_paths[0]] = texts


def _add_list_of_ids(
    type_: DraftType, name: str, values: Sequence[list[Value] | frozenset[Value]], nodes: Sequence[DraftType]
) -> None:
    """Makes a list of nodes of an attribute whose members are all keys or ids of a node in the sample."""
    members = [{name: member} for value in values for member in value]
    kinds, texts, one = {type(value) for value in values}, _texts(name, members), singular(name)
    if not members or len(kinds) > 1 or not all(isinstance(each[name], str | Decimal) for each in members):
        return
    whole = _whole_keys(texts, nodes)
    found, doubts = (None, list[str]()) if whole is None else (whole[0], [])
    if is_id(one) and without_id(one) and found is None:
        found, doubts = _target(one, {text for text in texts if text is not None}, nodes)
    if found is None or doubts:
        return
    if whole is None and not _can_hold(found, found.key_paths[0], [each[name] for each in members]):
        return
    wanted = field_name(plural(without_id(one)) if is_id(one) else name, type_.name)
    made = type_.names.take(wanted, f"{wanted.rstrip('_')}_{plural(snake(found.name))}")
    annotation = f"{'set' if kinds == {frozenset} else 'list'}[Ref[{found.name}]]"
    end = DraftEnd(found, whole_key=whole is not None)
    type_.fields[made] = DraftField(annotation, len(values) < len(type_.items), [], name, end)
    type_.used.add(name)


def _whole_keys(texts: Texts, nodes: Sequence[DraftType]) -> tuple[DraftType, Texts] | None:
    """Returns the node whose whole partition keys these are, and the ids in them; None if they are others."""
    for node in nodes:
        if (
            len(node.key_paths) != 1
            or not node.is_known_by_partition
            or not isinstance(node.partition[0], str)
        ):
            continue
        form = "".join(re.escape(part) if isinstance(part, str) else "(.+)" for part in node.partition)
        matches = [None if text is None else re.fullmatch(form, text, re.DOTALL) for text in texts]
        ids = tuple(match and match[1] for match in matches)
        is_whole = all((text is None) == (id_ is None) for text, id_ in zip(texts, ids, strict=True))
        if is_whole and len({*ids} & node.single_ids) * 2 > len({*ids} - {None}):
            return node, ids
    return None


def _target(name: str, texts: set[str], nodes: Sequence[DraftType]) -> tuple[DraftType | None, list[str]]:
    """Returns the node whose ids an attribute holds, and the doubts about that."""
    usable = [node for node in nodes if len(node.key_paths) == 1 and node.is_known_by_partition]
    named = [node for node in usable if node.name == type_name(without_id(name))][:1]
    holders = [node for node in usable if len(texts & node.single_ids) * 2 > len(texts)]
    found = named or ([] if may_coincide(texts) or are_emails(texts) else holders)
    if len(found) != 1:
        return None, []
    [node] = found
    known = texts & node.single_ids
    missing = "these ids" if named else "some of these ids"
    return node, [] if known == texts or (named and known) else [
        f"the sample has no {node.name} with {missing}"
    ]


def may_coincide(texts: Iterable[str]) -> bool:
    """Returns whether equal texts elsewhere may be a coincidence: all of them are small numbers."""
    return all(text.isdigit() and len(text) < _DIGITS for text in texts)


def are_emails(texts: Iterable[str]) -> bool:
    """Returns whether texts are email addresses, by which an index finds a node; they are not the node's id."""
    return all(re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", text) for text in texts)


def _can_hold(target: DraftType, path: str, values: Sequence[Value]) -> bool:
    """Returns whether the values can be those of the node's key field."""
    annotation = target.fields[path].annotation
    if annotation in ("int", "Long"):
        return all(_is_integer(value) for value in values)
    return all(isinstance(value, str) for value in values)


def _texts(name: str, items: Iterable[Item]) -> Texts:
    """Returns the values of an attribute as texts."""
    values = [item.get(name) for item in items]
    return tuple(number_text(v) if isinstance(v, Decimal) else None if v is None else str(v) for v in values)


def add_fields(type_: DraftType) -> None:
    """Makes a field of each unused attribute."""
    for name in _attributes(type_):
        if name and name not in type_.used:
            add_field(type_, name)


def add_field(type_: DraftType, name: str) -> str:
    """Makes a field of the attribute and returns its name."""
    made = type_.names.take(field_name(name, type_.name))
    type_.fields[made] = guess(name, type_.items)
    type_.used.add(name)
    if type_.fields[made].annotation in _KEY_ANNOTATIONS:
        type_.texts[made,] = _texts(name, type_.items)
    return made


def _attributes(type_: DraftType) -> list[str]:
    """Returns the names of the attributes of a type's items, in the order of their first appearance."""
    return list(dict.fromkeys(name for item in type_.items for name in item))


def settle_dates(types: Iterable[DraftType]) -> bool:
    """Returns whether dates are written with slashes. If only some are, those become texts."""
    dates = [
        (field, is_slashed(type_.texts.get((name,), ())))
        for type_ in types
        for name, field in type_.fields.items()
        if field.annotation == "date"
    ]
    if all(slashed for _, slashed in dates):
        return bool(dates)
    for field, slashed in dates:
        if slashed:
            field.annotation = "str"
            field.doubts.append("a date? Others are written with dashes")
    return False
