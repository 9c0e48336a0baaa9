"""Comparisons of a field with a value, for filters and rules: the operators of each kind of field, and its default."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, replace
from decimal import Decimal
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
    conjunction,
    holds,
    item_with,
    with_comparisons,
)
from keygraph.dynamo.foreseen import ALWAYS, NEVER
from keygraph.dynamo.items import Value
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
    **dict.fromkeys(("object", "json", "average"), ()),
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


def declared_comparison(
    type_: FieldType, path: Path, operator: str, value: Any, *, is_positive: bool = True
) -> Condition:
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
    return comparison(type_, path, operator, value, is_positive=is_positive)


def comparison(
    type_: FieldType, path: Path, operator: str, value: Any, *, is_positive: bool = True
) -> Condition:
    """Returns the comparison of a field's attribute. Raises ValueError if it has no meaning.

    `is_positive`: it is not under a `not`, or under two. A stored number of an ID whose comparison with a text cannot be
    decided meets neither the comparison nor its opposite.
    """
    if operator == "exists" and value is not None:
        present = And(_present(path))
        return present if value else Not(present)
    if value is None:
        return _null_comparison(path, operator)
    element = type_.of or type_
    if operator in ("between", *_OPPOSITE):
        if element.kind == "datetime" and element.written is None:
            return _of_moments(path, operator, value)
        operator, value = _in_order_of_texts(element, operator, value)
    if isinstance(element.written, WholeKey) and type_ is element:
        is_known = operator != "contains" and (operator != "beginsWith" or element.written.prefixes)
        if not is_known:
            raise ValueError("its values are whole keys; use eq, ne or in")
    match operator:
        case "eq" | "ne":
            equal = equal_to_any(type_, path, [_stored(element, value)])
            if operator == "eq":
                return equal
            return Ne(equal.path, equal.value) if isinstance(equal, Eq) else Not(equal)
        case "in":
            if len(value) > IN_VALUES:
                raise ValueError(f"at most {IN_VALUES} values")
            return equal_to_any(type_, path, [_stored(element, each) for each in value])
        case "between":
            bounds = _stored(element, value["from"]), _stored(element, value["to"])
            return _between(element, path, *bounds, is_positive=is_positive)
    text, *others = stored_forms(element, _stored(element, value))
    compare = _SIMPLE[operator]
    if type_ is element and _may_be_number(element):
        return _any((compare(path, text), *_of_numbers(path, [(operator, text)], is_positive=is_positive)))
    return _any(compare(path, each) for each in (text, *others))


def _between(type_: FieldType, path: Path, low: Any, high: Any, *, is_positive: bool) -> Condition:
    # DynamoDB refuses crossed bounds; a condition that is decided here would find nothing instead.
    if low > high:
        raise ValueError("from is above to")
    bounds = [*zip(stored_forms(type_, low), stored_forms(type_, high), strict=False)]
    of_texts = [Between(path, *each) for each in bounds if each[0] <= each[1]]
    if len(bounds) > 1 or not _may_be_number(type_):
        return _any(of_texts)
    ends = (("gte", low), ("lte", high))
    return _any((*of_texts, *_of_numbers(path, ends, is_positive=is_positive)))


def _stored(type_: FieldType, value: Any) -> Any:
    """Returns a value as an attribute has it. Raises ValueError if none can."""
    try:
        if isinstance(value, str):
            value.encode()  # half of a surrogate pair is not text
        return encode(type_, value)
    except (ValueError, TypeError):
        raise ValueError("a value that cannot be stored") from None


def _in_order_of_texts(type_: FieldType, operator: str, value: Any) -> tuple[str, Any]:
    """Returns a comparison of order as one of the texts that a format writes. Raises ValueError if they have no order."""
    if type_.written is None:
        return operator, value
    if not type_.written.ordered:
        raise ValueError("its values are written so that they have no order; use eq, ne or in")
    if not type_.written.is_descending:
        return operator, value
    if operator == "between":
        return operator, {"from": value["to"], "to": value["from"]}
    return _OPPOSITE[operator], value


# --- Numbers that are IDs -------------------------------------------------------------------------------

_LOWEST = Decimal("-9.9999999999999999999999999999999999999E+125")
"""No number that DynamoDB holds is smaller."""
_IN_NUMBERS = frozenset("-.0123456789E+")
"""The characters in the texts of numbers."""


def _may_be_number(type_: FieldType) -> bool:
    return type_.kind == "id" and type_.written is None


def _of_numbers(
    path: Path, comparisons: Iterable[tuple[str, str]], *, is_positive: bool
) -> tuple[Condition, ...]:
    """Returns the condition that a number meets all of these comparisons with texts; none if no number does."""
    parts = [_of_number(path, operator, text, is_positive=is_positive) for operator, text in comparisons]
    if any(part is False for part in parts):
        return ()
    conditions = [part for part in parts if not isinstance(part, bool)]
    return (conjunction(*conditions) or Ge(path, _LOWEST),)


def _of_number(path: Path, operator: str, text: str, *, is_positive: bool) -> Condition | bool:
    """Returns which stored numbers meet a comparison with a text: all, none, or those that meet a condition.

    Numbers are compared by their size, and as a whole with the part of a text; a text that is no number comes before
    or after all of them, or all with one sign. What cannot be decided is false, and under a `not` true.
    """
    _, *numbers = stored_forms(FieldType("id"), text)
    if operator in ("contains", "beginsWith"):
        is_beginning = operator == "contains" or text[:1] in "-0123456789"
        if not is_beginning or not _IN_NUMBERS.issuperset(text):
            return False
        return Eq(path, numbers[0]) if numbers and is_positive else not is_positive
    if numbers:
        return _SIMPLE[operator](path, numbers[0])
    is_low = operator in ("lt", "lte")
    if text[:1] and text[0] in "./":
        return (Lt if is_low else Ge)(path, Decimal(0))
    if text[:1] and text[0] in "-0123456789":
        return not is_positive
    return is_low == (text > "9")


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
    is_met = holds(condition, item_with(path, encode(type_, default)))
    if _is_of_presence(condition):
        return ALWAYS if is_met else NEVER
    if holds(condition, {}) == is_met:
        return condition
    return Or((*_missing(path), condition)) if is_met else And((*_present(path), condition))


def with_empty_text(condition: Condition, path: Path) -> Condition:
    """Returns the condition on one attribute with an empty text as a missing value."""
    is_met = holds(condition, {})
    if holds(condition, item_with(path, "")) == is_met:
        return condition
    return Or((Eq(path, ""), condition)) if is_met else And((Ne(path, ""), condition))


def of_either(condition: Condition, attribute: Path, former: Path) -> Condition:
    """Returns the condition on one attribute for items that hold its value there, or else in the former one."""
    present = And(_present(attribute))
    of_former = with_comparisons(condition, lambda each: replace(each, path=former))
    return Or((And((present, condition)), And((Not(present), of_former))))


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
