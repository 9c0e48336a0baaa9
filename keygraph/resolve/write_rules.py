"""Reads the rules of record types: conditions written like filters, with the model's names and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from keygraph.declare.declaration import CheckRule
from keygraph.dynamo.conditions import And, Condition, Not, Or
from keygraph.model.comparisons import OPERATORS, WriteRule, declared_comparison, with_default
from keygraph.model.fields import Field
from keygraph.model.records import RecordType
from keygraph.resolve.resolution import Resolution
from keygraph.resolve.type_values import (
    Beginning,
    TypeValue,
    condition_on,
    read_type_values,
    special_types,
)


def resolve_rules(resolution: Resolution, type_attribute: str | None) -> None:
    """Gives each record type its rules."""
    types = resolution.types.values()
    values = {record: read_type_values(record.type_value, type_attribute) for record in types}
    for record in types:
        record.rules = (*_rules(resolution, record), *_rules_of_type_values(record, values))


def _rules_of_type_values(
    record: RecordType, values: Mapping[RecordType, Mapping[str, TypeValue]]
) -> Iterator[WriteRule]:
    """Yields the rules that fields and ends are or begin as the type values: others would make an item of another type."""
    held = {name: [field.attribute] for name, field in record.fields.items()}
    held |= {name: [*end.attributes.values()] for name, end in record.ends.items()}
    for _, further in special_types(record, values):
        names = [name for name, paths in held.items() if any((each,) in paths for each in further)]
        condition = Not(And(tuple(condition_on(attribute, value) for attribute, value in further.items())))
        yield from [WriteRule(condition, tuple(names), f"That would be no {record.name}.")] if names else ()
    for attribute, value in values[record].items():
        text = value.text if isinstance(value, Beginning) else value
        verb = "begins with" if isinstance(value, Beginning) else "is"
        for name in [name for name, paths in held.items() if (attribute,) in paths] if text else ():
            message = f"The {name} of {record.name} {verb} {text!r}."
            yield WriteRule(condition_on(attribute, value), (name,), message)


def _rules(resolution: Resolution, record: RecordType) -> Iterator[WriteRule]:
    rules: object = resolution.declarations[record.name].check
    if not isinstance(rules, list | tuple) or not all(isinstance(each, CheckRule) for each in rules):
        fix = 'Use check=[rule({"total": {"gte": 0}}, "…")].'
        resolution.add("check", record.name, f"check={rules!r} is not a list of rules.", fix)
        return
    for number, each in enumerate(rules, 1):
        names: dict[str, None] = {}
        try:
            condition = _condition(record, each.where, names)
            if not isinstance(each.message, str) or not each.message or not names:
                raise ValueError("it says nothing, or has no message")
        except ValueError as error:
            fix = 'Write it as a filter: rule({"total": {"gte": 0}}, "A total is not negative.").'
            resolution.add("check", record.name, f"its rule {number} cannot be used: {error}.", fix)
            continue
        yield WriteRule(condition, tuple(names), each.message)


def _condition(
    record: RecordType, where: object, names: dict[str, None], *, is_positive: bool = True
) -> Condition:
    """Returns the condition of a rule, and adds its fields to `names`. Raises ValueError if there is none.

    `is_positive`: it is not under a `not`, or under two.
    """
    if not isinstance(where, Mapping):
        raise ValueError(f"{where!r} is not a mapping of fields to comparisons")
    parts: list[Condition] = []
    for name, operand in where.items():
        if name in record.fields:
            names[name] = None
            parts += _comparisons(record, record.fields[name], operand, is_positive=is_positive)
        elif name == "not":
            parts.append(Not(_condition(record, operand, names, is_positive=not is_positive)))
        elif name in ("and", "or"):
            if not isinstance(operand, Sequence) or not operand:
                raise ValueError(f"{name} is not a list of conditions")
            inner = tuple(_condition(record, each, names, is_positive=is_positive) for each in operand)
            parts.append(And(inner) if name == "and" else Or(inner))
        else:
            raise ValueError(f"{record.name} has no field {name}")
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _comparisons(
    record: RecordType, field: Field, operand: object, *, is_positive: bool
) -> Iterator[Condition]:
    type_ = field.type
    # Only the store knows whether a set is still there after members are removed.
    offered = (*OPERATORS[type_.kind], *(["exists"] if type_.kind != "set" else []))
    if not isinstance(operand, Mapping) or not operand:
        raise ValueError(f'{field.name} is not compared: write {{"{field.name}": {{"eq": …}}}}')
    for operator, value in operand.items():
        if operator not in offered:
            raise ValueError(f"{field.name} has no {operator}; it has {', '.join(offered)}")
        try:
            made = declared_comparison(type_, field.attribute, operator, value, is_positive=is_positive)
        except (ValueError, TypeError, AttributeError, LookupError):
            problem = f"{field.name}.{operator}={value!r} is not a value of type {type_.name}"
            raise ValueError(problem) from None
        yield as_read_in_rule(record, field, made)


def as_read_in_rule(record: RecordType, field: Field, condition: Condition) -> Condition:
    """Returns the condition of a rule with a missing attribute as the field's default. Not for sets, which are missing
    after their last members are removed."""
    if field.type.kind != "set":
        condition = with_default(condition, field.type, field.attribute, field.default)
    return record.as_read(condition, field.attribute)
