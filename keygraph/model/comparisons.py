"""Comparisons of a field with a value, for filters and rules: the operators of each kind of field, and its default."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass
from typing import Any

from keygraph.dynamo.conditions import (
    And,
    BeginsWith,
    Between,
    Condition,
    Contains,
    Eq,
    Exists,
    Ge,
    Gt,
    In,
    Le,
    Lt,
    Ne,
    Not,
    Or,
    Path,
    holds,
    put_at_path,
)
from keygraph.dynamo.foreseen import ALWAYS, NEVER
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.limits import IN_VALUES
from keygraph.keys.types import FieldType, decode, encode, first_text, in_utc, stored_forms
from keygraph.keys.union import WholeKey

EQUALITY = ("eq", "ne", "in")
_ORDER = (*EQUALITY, "lt", "lte", "gt", "gte", "between")
OPERATORS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("id", "string"), (*_ORDER, "beginsWith", "contains")),
    **dict.fromkeys(("int", "long", "float", "decimal", "datetime", "date"), _ORDER),
    "boolean": ("eq", "ne"),
    "enum": EQUALITY,
    "bytes": (*EQUALITY, "beginsWith", "contains"),
    **dict.fromkeys(("list", "set"), ("contains",)),
    **dict.fromkeys(("object", "json"), ()),
}
"""The comparisons that an attribute of each kind offers, in addition to `exists`."""
_OPPOSITE = {"lt": "gt", "lte": "gte", "gt": "lt", "gte": "lte"}
_SIMPLE: dict[str, Callable[[Path, Any], Condition]] = {
    "lt": Lt,
    "lte": Le,
    "gt": Gt,
    "gte": Ge,
    "beginsWith": BeginsWith,
    "contains": Contains,
}


def declared_comparison(type_: FieldType, path: Path, operator: str, value: Any) -> Condition:
    """Returns the comparison with a value from the model. Raises ValueError, TypeError, AttributeError or LookupError
    if it has no meaning, or if the value would be stored as another one."""
    match operator:
        case "in":
            values = list(value)
        case "between":
            values = [value["from"], value["to"]]
        case "exists":
            values = []
        case _:
            values = [value]
    element = type_.of or type_
    if any(each is not None and decode(element, encode(element, each)) != each for each in values):
        raise ValueError("it would be stored as another value")
    return comparison(type_, path, operator, value)


def comparison(type_: FieldType, path: Path, operator: str, value: Any) -> Condition:
    """Returns the comparison of a field's attribute. Raises ValueError if it has no meaning."""
    if operator == "exists" and value is not None:
        present = And(_present(path))
        return present if value else Not(present)
    if value is None:
        return _null_comparison(path, operator)
    element = type_.of or type_
    if element.kind == "datetime" and element.written is None and operator in ("between", *_OPPOSITE):
        return _of_moments(path, operator, value)

    def attribute(given: Any) -> Any:
        try:
            if isinstance(given, str):
                given.encode()  # half of a surrogate pair is not text
            return encode(element, given)
        except (ValueError, TypeError):
            raise ValueError("a value that cannot be stored") from None

    written = element.written
    if written is not None and operator in ("between", *_OPPOSITE):
        if not written.ordered:
            raise ValueError("its values are written so that they have no order; use eq, ne or in")
        if written.is_descending:
            operator = _OPPOSITE.get(operator, operator)
            value = {"from": value["to"], "to": value["from"]} if operator == "between" else value
    if isinstance(written, WholeKey):
        is_known = operator != "contains" and (operator != "beginsWith" or written.prefixes)
        if not is_known:
            raise ValueError("its values are whole keys; use eq, ne or in")
    match operator:
        case "eq" | "ne":
            equal = equal_to_any(type_, path, [attribute(value)])
            return equal if operator == "eq" else _unequal(equal)
        case "in":
            if len(value) > IN_VALUES:
                raise ValueError(f"at most {IN_VALUES} values")
            return equal_to_any(type_, path, [attribute(each) for each in value])
        case "between":
            low, high = attribute(value["from"]), attribute(value["to"])
            # DynamoDB refuses crossed bounds; a condition that is decided here would find nothing instead.
            if low > high:
                raise ValueError("from is above to")
            bounds = zip(stored_forms(element, low), stored_forms(element, high), strict=False)
            return _any(Between(path, *each) for each in bounds if each[0] <= each[1])
    text, *others = stored_forms(element, attribute(value))
    # A number is compared as a whole with the part of a text.
    of_number = Eq if operator == "beginsWith" or (operator == "contains" and type_ is element) else None
    compare = _SIMPLE[operator]
    return _any((compare(path, text), *((of_number or compare)(path, each) for each in others)))


def _of_moments(path: Path, operator: str, value: Any) -> Condition:
    """Returns the comparison of a time that is written in UTC, by instants."""
    if operator == "between":
        low, high = value["from"], value["to"]
        if in_utc(low) > in_utc(high):
            raise ValueError("from is above to")
        return And((_of_moments(path, "gte", low), _of_moments(path, "lte", high)))
    try:
        first, earlier = first_text(value, is_after=operator in ("lte", "gt"))
    except OverflowError:
        raise ValueError("a value that cannot be stored") from None
    if operator in ("lt", "lte"):
        return Or((Lt(path, first), In(path, earlier))) if earlier else Lt(path, first)
    return And((Ge(path, first), Not(In(path, earlier)))) if earlier else Ge(path, first)


def equal_to_any(type_: FieldType, path: Path, values: Iterable[Value]) -> Condition:
    """Returns the condition that an attribute has one of these values, in any form in which it may be stored."""
    forms = [form for value in values for form in stored_forms(type_, value)]
    return Eq(path, forms[0]) if len(forms) == 1 else In(path, tuple(forms))


def _unequal(equal: Condition) -> Condition:
    return Ne(equal.path, equal.value) if isinstance(equal, Eq) else Not(equal)


def _any(conditions: Iterable[Condition]) -> Condition:
    first, *others = conditions
    return Or((first, *others)) if others else first


def _null_comparison(path: Path, operator: str) -> Condition:
    """Returns a comparison with null, which is a missing attribute as well as a stored null."""
    missing = Or(_missing(path))
    if operator == "eq":
        return missing
    if operator == "ne":
        return Not(missing)
    raise ValueError("null cannot be compared this way")


def _present(path: Path) -> tuple[Condition, ...]:
    """Returns the conditions that all hold if there is a value: a stored null is none."""
    return Exists(path), Ne(path, None)


def _missing(path: Path) -> tuple[Condition, ...]:
    """Returns the conditions of which one holds if there is no value."""
    return Not(Exists(path)), Eq(path, None)


def with_default(condition: Condition, type_: FieldType, path: Path, default: object) -> Condition:
    """Returns the condition on one attribute with a missing value as the field's default, as it is read.

    `default` is None or dataclasses.MISSING if the field has none.
    """
    if default is None or default is MISSING:
        return condition
    item: Item = {}
    put_at_path(item, path, encode(type_, default))
    is_met = holds(condition, item)
    if _is_of_presence(condition):
        return ALWAYS if is_met else NEVER
    if holds(condition, {}) == is_met:
        return condition
    return Or((*_missing(path), condition)) if is_met else And((*_present(path), condition))


def _is_of_presence(condition: Condition) -> bool:
    """Returns whether the condition depends only on whether there is a value."""
    match condition:
        case And(conditions) | Or(conditions):
            return all(map(_is_of_presence, conditions))
        case Not(inner):
            return _is_of_presence(inner)
        case Eq(_, value) | Ne(_, value):
            return value is None
    return isinstance(condition, Exists)


@dataclass(frozen=True, slots=True)
class WriteRule:
    """A rule of one record type."""

    condition: Condition
    names: tuple[str, ...]
    """The fields that it uses."""
    message: str
    """The message for a client."""
