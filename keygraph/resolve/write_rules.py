"""Reads the rules of record types: conditions written like filters, with the model's names and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keygraph.declare.declaration import Declaration, Rule
from keygraph.dynamo.conditions import And, Condition, Not, Or
from keygraph.model.comparisons import OPERATORS, WriteRule, declared_comparison, with_default
from keygraph.model.fields import Field
from keygraph.model.mistakes import Mistakes
from keygraph.model.records import RecordType
from keygraph.resolve.type_values import Beginning, condition_on, read_type_values


def resolve_rules(
    types: Mapping[str, RecordType], declarations: Mapping[str, Declaration], mistakes: Mistakes
) -> None:
    """Gives each record type its rules."""
    for record in types.values():
        own = _rules(record, declarations[record.name].rules, mistakes)
        record.rules = (*own, *_rules_of_type_values(record))


def _rules_of_type_values(record: RecordType) -> Iterator[WriteRule]:
    """Yields the rules that fields begin as the type values do: others would make an item of another type."""
    values = read_type_values(record.type_value, None)
    for field in record.fields.values():
        value = values.get(field.attribute[0]) if len(field.attribute) == 1 else None
        if isinstance(value, Beginning) and value.text:
            message = f"The {field.name} of {record.name} begins with {value.text!r}."
            yield WriteRule(condition_on(field.attribute[0], value), (field.name,), message)


def _rules(record: RecordType, rules: object, mistakes: Mistakes) -> Iterator[WriteRule]:
    if not isinstance(rules, list | tuple) or not all(isinstance(each, Rule) for each in rules):
        problem, mend = (
            f"check={rules!r} is not a list of rules.",
            'Use check=[rule({"total": {"gte": 0}}, "…")].',
        )
        mistakes.add("check", record.name, problem, mend)
        return
    for number, each in enumerate(rules, 1):
        names: dict[str, None] = {}
        try:
            condition = _condition(record, each.where, names)
            if not isinstance(each.message, str) or not each.message or not names:
                raise ValueError("it says nothing, or has no message")
        except ValueError as error:
            mend = 'Write it as a filter: rule({"total": {"gte": 0}}, "A total is not negative.").'
            mistakes.add("check", record.name, f"its rule {number} cannot be used: {error}.", mend)
            continue
        yield WriteRule(condition, tuple(names), each.message)


def _condition(record: RecordType, where: object, names: dict[str, None]) -> Condition:
    """Returns the condition of a rule, and adds its fields to `names`. Raises ValueError if there is none."""
    if not isinstance(where, Mapping):
        raise ValueError(f"{where!r} is not a mapping of fields to comparisons")
    parts: list[Condition] = []
    for name, said in where.items():
        if name in record.fields:
            names[name] = None
            parts += _comparisons(record.fields[name], said)
        elif name == "not":
            parts.append(Not(_condition(record, said, names)))
        elif name in ("and", "or"):
            if not isinstance(said, Sequence) or not said:
                raise ValueError(f"{name} is not a list of conditions")
            inner = tuple(_condition(record, each, names) for each in said)
            parts.append(And(inner) if name == "and" else Or(inner))
        else:
            raise ValueError(f"{record.name} has no field {name}")
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _comparisons(field: Field, said: object) -> Iterator[Condition]:
    type_ = field.type
    # Only the store knows whether a set is still there after members are removed.
    offered = (*OPERATORS[type_.kind], *(["exists"] if type_.kind != "set" else []))
    if not isinstance(said, Mapping) or not said:
        raise ValueError(f'{field.name} is not compared: write {{"{field.name}": {{"eq": …}}}}')
    for operator, value in said.items():
        if operator not in offered:
            raise ValueError(f"{field.name} has no {operator}; it has {', '.join(offered)}")
        yield with_default_in_rule(field, _comparison(field, operator, value))


def with_default_in_rule(field: Field, condition: Condition) -> Condition:
    """Returns the condition of a rule with a missing attribute as the field's default. Not for sets, which are missing
    after their last members are removed."""
    if field.type.kind == "set":
        return condition
    return with_default(condition, field.type, field.attribute, field.default)


def _comparison(field: Field, operator: str, value: Any) -> Condition:
    try:
        return declared_comparison(field.type, field.attribute, operator, value)
    except (ValueError, TypeError, AttributeError, LookupError):
        raise ValueError(
            f"{field.name}.{operator}={value!r} is not a value of type {field.type.name}"
        ) from None
