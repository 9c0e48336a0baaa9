"""The inputs of lists, `where` and the ranges on a sort key: their types, and the meaning of their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from strawberry.types.field import StrawberryField

from keygraph.dynamo.conditions import And, Condition, Not, Or, conjunction
from keygraph.dynamo.limits import IN_VALUES
from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph.keys.template import Slot
from keygraph.keys.types import FieldType, Moment
from keygraph.keys.union import NodeText
from keygraph.lists.ranges import Narrowing, ValueRange
from keygraph.model.comparisons import EQUALITY, OPERATORS, comparison, with_default
from keygraph.model.paths import AccessPath, Argument
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph_resolvers.naming.descriptions import a, of_type
from keygraph_resolvers.naming.global_ids import (
    as_in_keys,
    is_key,
    may_be_id,
    read_global_id,
    refuse_global_id,
    text_of_client,
)
from keygraph_resolvers.naming.names import (
    Filterable,
    connection_prefix,
    field_name,
    filterable_fields,
    list_in_words,
    shared_name,
    type_name,
)
from keygraph_resolvers.schema.definitions import (
    OutputType,
    SchemaTypes,
    input_field,
    list_of,
    nullable,
)
from keygraph_resolvers.schema.field_kinds import ComparedField

DEFAULT_PAGE_SIZE = 20


class SortDirection(Enum):
    """Whether a list is read from its start or from its end."""

    ASC = "ASC"
    DESC = "DESC"


DIRECTIONS = {"ASC": "From the least to the greatest.", "DESC": "From the greatest to the least."}
_BY_TYPE = "Conditions for each type. Types without conditions are not filtered."
_NODES = (
    "All given conditions must match. A node is given by its `id`, because its key does not show its type."
)
_CONDITIONS = "All given conditions must match."
_RANGE = "One value, or those from one to another."

_JOINS = {
    "and": "All of these conditions. An empty list has no effect.",
    "or": "Any of these conditions. Empty conditions are ignored; an empty list has no effect.",
    "not": "Not this. An empty object is no condition.",
}
_DESCRIPTIONS = {
    "eq": "Equal to this.",
    "ne": "Not equal to this.",
    "in": f"Equal to one of these. At most {IN_VALUES}.",
    "lt": "Less than this.",
    "lte": "Less than this, or equal to it.",
    "gt": "Greater than this.",
    "gte": "Greater than this, or equal to it.",
    "between": "From one value to another, both included.",
    "beginsWith": "Begins with this.",
    "contains": "Contains this part or member.",
    "exists": "Whether there is a value.",
    "from": "From this value on. Inclusive.",
    "to": "Up to this value. Inclusive.",
}

_TIMES = {"fromTime": "Made at this time or later.", "toTime": "Made at this time or before."}


def where_input(types: SchemaTypes, path: AccessPath) -> type:
    """The filter of a list."""
    use = f"the filter of {path.record.name if path.keys.reads_whole_items and not path.members else list_in_words(path)}"

    def of_each() -> Iterator[StrawberryField]:
        for each in path.members:
            described = f"Conditions on {a(each.record.name)}."
            of = nullable(where_input(types, each))
            yield input_field(field_name(each.record), of, described, kind=ComparedField(each.record, ()))

    def of_fields() -> Iterator[StrawberryField]:
        taken = set[str]()
        for compared in filterable_fields(path):
            name, of = camel(compared.name), nullable(_condition_input(types, compared))
            kind = ComparedField(path.record, path.record.names_at(compared.attribute))
            reason = path.record.deprecated(compared.name)
            taken.add(name)
            yield input_field(name, of, f"Conditions on `{name}`.", deprecated=reason, kind=kind)
        own = where_input(types, path)
        several = nullable(list_of(own))
        for word, joined in (("and", several), ("or", several), ("not", nullable(own))):
            if word not in taken:
                yield input_field(word, joined, _JOINS[word])

    if path.members:
        return types.input(shared_name(path, "Where"), use, _BY_TYPE, of_each)
    return types.input(shared_name(path, "Where"), use, _CONDITIONS, of_fields)


def types_enum(types: SchemaTypes, path: AccessPath) -> OutputType:
    """The enum of the types that a list may be filtered by."""
    members = {record.name: of_type(record.name) for record in path.records}
    use = f"the types of {list_in_words(path)}"
    return types.names(f"{connection_prefix(path)}Type", use, "A type in the list.", members)


def _condition_input(types: SchemaTypes, compared: Filterable) -> type:
    type_, element = compared.type, compared.type.of or compared.type
    if compared.node is not None:
        name = "NodeListCondition" if type_.of is not None else "NodeCondition"
    elif type_.of is not None:
        name = f"{type_name(element)}ListCondition"
    else:
        name = "AttributeCondition" if type_.kind in ("object", "json") else f"{type_name(type_)}Condition"

    def fields() -> Iterator[StrawberryField]:
        # A type with members has no scalar to compare with.
        operators = () if element.kind in ("object", "json", "list", "set") else OPERATORS[type_.kind]
        if compared.node is not None and type_.of is None:
            operators = EQUALITY
        scalar = types.scalar(element) if operators else bool
        values: dict[str, OutputType] = {"in": list_of(scalar)}
        if "between" in operators:
            values["between"] = _between_input(types, element, scalar)
        for each in operators:
            yield input_field(each, nullable(values.get(each, scalar)), _DESCRIPTIONS[each])
        yield input_field("exists", nullable(bool), _DESCRIPTIONS["exists"])

    return types.input(name, f"the input {name}", _NODES if compared.node else _CONDITIONS, fields)


def _between_input(types: SchemaTypes, element: FieldType, scalar: OutputType) -> type:
    name, ends = f"{type_name(element)}Between", ("from", "to")
    fields = [input_field(end, scalar, _DESCRIPTIONS[end]) for end in ends]
    return types.input(name, f"the input {name}", _DESCRIPTIONS["between"], lambda: fields)


def range_input(types: SchemaTypes, argument: Argument) -> type:
    """The input of an argument on a sort key."""
    scalar, ending = nullable(types.scalar(argument.type)), "Range"
    if argument.type.is_text and argument.has_range and not argument.is_text:
        ending = "Bounds"
    elif not argument.has_range:
        ending = "Prefix" if argument.is_text else "Equals"
    name = f"{'Timed' * argument.has_time}{type_name(argument.type)}{ending}"

    def fields() -> Iterator[StrawberryField]:
        operators = ["eq"] + ["from", "to"] * argument.has_range + ["beginsWith"] * argument.is_text
        time = nullable(types.scalar(FieldType("datetime")))
        for operator in operators:
            yield input_field(operator, scalar, _DESCRIPTIONS[operator])
        for each, described in _TIMES.items() if argument.has_time else ():
            yield input_field(each, time, described)

    return types.input(name, f"the input {name}", _RANGE, fields)


# --- Values -------------------------------------------------------------------------------------------


def narrowings(graph: Graph, path: AccessPath, given: Mapping[str, Any]) -> dict[str, Narrowing]:
    """Returns the narrowing of the sort key that each argument asks for, by argument name.

    Null for an optional part means that it is absent. Raises BadUserInput if another part must equal null.
    """
    found = {}
    for argument in path.ranged:
        name = camel(argument.name)
        operand = given.get(name)
        if path.is_one and operand is not None:
            # An index lookup takes only values.
            operand = {"eq": operand}
        operators = {operator: value for operator, value in (operand or {}).items() if value is not None}
        if (operand is None and name in given and argument.optional) or (
            operand and operand.get("eq", operand) is None
        ):
            if operators:
                raise BadUserInput(f"{name}: use eq, or from and to, or beginsWith")
            if not argument.optional:
                raise BadUserInput(f"{name}.eq cannot be null")
            found[argument.name] = Narrowing(is_absent=True)
        elif operators:
            found[argument.name] = _narrowing(graph, path, argument.slot, operators)
    return found


def _narrowing(graph: Graph, path: AccessPath, slot: Slot, operators: Mapping[str, Any]) -> Narrowing:
    """The narrowing of a part of the sort key by these values, with their range if that of their texts is not enough."""
    texts = {operator: _key_text(graph, path, slot, value, operator) for operator, value in operators.items()}
    lows = [texts[operator] for operator in ("from", "fromTime") if operator in texts]
    highs = [texts[operator] for operator in ("to", "toTime") if operator in texts]
    if slot.text.is_descending:
        lows, highs = highs, lows
    low, high = operators.get("from"), operators.get("to")
    is_decided = slot.computed or slot.text.type.is_text or slot.text.decides(low, high)
    return Narrowing(
        texts.get("eq"),
        max(lows, default=None),
        min(highs, default=None),
        texts.get("beginsWith"),
        text_of_client(slot, operators.get("eq")),
        None if is_decided or low is high is None else ValueRange(low, high),
    )


def required_texts(graph: Graph, path: AccessPath, given: Mapping[str, Any]) -> dict[str, str | None]:
    """The texts of the partition's arguments, by argument name."""
    texts: dict[str, str | None] = {}
    for argument in path.required:
        name, slot = camel(argument.name), argument.slot
        value = as_in_keys(name, slot, given.get(name))
        texts[argument.name] = None if value is None else _key_text(graph, path, slot, value)
    return texts


def _key_text(graph: Graph, path: AccessPath, slot: Slot, value: Any, operator: str = "eq") -> str:
    """The key text of a client's value for a slot. Raises BadUserInput if it has none."""
    if operator == "beginsWith":
        return slot.text.prefix(value)
    if operator in _TIMES and slot.text.time_bound is not None:
        return slot.text.time_bound(value, operator == "fromTime")
    meant = key_value(graph, path.record, slot, value)
    if operator in ("from", "to"):
        return graph.bound_of(path.record, slot, meant, is_low=operator == "from")
    return graph.text_of(path.record, slot, meant)


def key_value(graph: Graph, record: RecordType, slot: Slot, value: Any) -> Any:
    """Returns the meaning of a client's value for a slot. For a node of one of several types, it is the global id.

    Raises BadUserInput for a key in the place of an id, and for an id in the place of a key.
    """
    if isinstance(slot.text, NodeText) and value is not None:
        return _node_text(graph, slot.text, camel(record.leaf_name(slot.path)), value)
    if isinstance(value, str) and may_be_id(value) and is_key(record, slot.path):
        refuse_global_id(graph, camel(record.leaf_name(slot.path)), value)
    return value


def _node_text(graph: Graph, text: NodeText, name: str, value: str) -> str:
    """The key of the node with that global id, which includes its type."""
    wanted = [member for variant in text.variants for member in variant.members]
    record, identity = read_global_id(graph, value, name)
    if record.name not in wanted:
        raise BadUserInput(f"{name}: expected an id of {' or '.join(sorted(wanted))}")
    return record.partition_text(identity)


def conditions(
    graph: Graph, path: AccessPath, given: Mapping[str, Any], most_terms: int
) -> dict[AccessPath, Condition | None]:
    """Returns the conditions of a list's `where` for each requested type, by the path to it; None for a type without
    conditions. Raises BadUserInput."""
    filters = given.get("where") or {}
    wheres = {each: filters.get(field_name(each.record)) or {} for each in path.members} or {path: filters}
    if sum(map(_terms, wheres.values())) > most_terms:
        raise BadUserInput(f"where: at most {most_terms} conditions")
    types = given.get("types")
    if types is not None and not types:
        raise BadUserInput("types: name one at least")
    names = None if types is None else {each.value for each in types}
    return {
        each: _condition(graph, each, where)
        for each, where in wheres.items()
        if names is None or each.record.name in names
    }


def _terms(where: Mapping[str, Any]) -> int:
    """The number of conditions in a `where`; each one that combines others counts as well."""
    count = 0
    for name, operand in where.items():
        if isinstance(operand, list):
            count += sum(1 + _terms(each) for each in operand)
        elif operand is not None:
            count += 1 + _terms(operand) if name == "not" else len(operand)
    return count


def _condition(
    graph: Graph, path: AccessPath, where: Mapping[str, Any], *, is_positive: bool = True
) -> Condition | None:
    """The condition of a part of a `where`. `is_positive`: it is not under a `not`, or under two."""
    fields = {camel(compared.name): compared for compared in filterable_fields(path)}
    parts: list[Condition] = []
    for name, operand in where.items():
        if operand is None:
            continue
        if name in fields:
            parts += _field_conditions(graph, path, fields[name], name, operand, is_positive=is_positive)
        elif name == "not":
            inner = _condition(graph, path, operand, is_positive=not is_positive)
            parts += [] if inner is None else [Not(inner)]
        else:
            made = (_condition(graph, path, each, is_positive=is_positive) for each in operand if each)
            inners = [inner for inner in made if inner is not None]
            if name == "and":
                parts += inners
            elif inners:
                parts.append(Or(tuple(inners)))
    return conjunction(*parts)


def _field_conditions(
    graph: Graph,
    path: AccessPath,
    compared: Filterable,
    name: str,
    operators: Mapping[str, Any],
    *,
    is_positive: bool,
) -> Iterator[Condition]:
    """Yields the condition on a field, if it is compared with anything."""
    type_, place = compared.type, compared.attribute
    found = list[Condition]()
    for operator, value in operators.items():
        where = f"where.{name}.{operator}"
        meant = _compared_value(graph, compared, where, value)
        stored = _as_stored(type_.of or type_, operator, meant)
        try:
            both = tuple(comparison(type_, place, operator, each, is_positive=is_positive) for each in stored)
        except ValueError as error:
            raise BadUserInput(f"{where}: {error}") from None
        found.append(both[0] if len(both) == 1 else And(both) if operator == "ne" else Or(both))
    joined = conjunction(*found)
    if joined is not None:
        yield path.record.as_read(with_default(joined, type_, place, compared.default), place)


def _compared_value(graph: Graph, compared: Filterable, where: str, value: Any) -> Any:
    if compared.node is None or value is None or isinstance(value, bool):
        for each in (value if isinstance(value, list) else [value]) if compared.is_key else ():
            refuse_global_id(graph, where, each)
        return value
    if isinstance(value, list):
        return [_node_text(graph, compared.node, where, each) for each in value]
    return _node_text(graph, compared.node, where, value)


def _as_stored(type_: FieldType, operator: str, value: Any) -> list[Any]:
    """The values to compare with. A time with an offset may be stored in UTC or as the client wrote it, so tests for
    equality include both. Order is that of UTC."""
    is_equality = operator in ("eq", "ne", "in", "contains")
    if type_.kind != "datetime" or type_.written is not None or not is_equality:
        return [value]
    values = value if isinstance(value, list) else [value]
    originals = [
        Moment.of_text(each.original) for each in values if each is not None and each.original is not None
    ]
    if isinstance(value, list):
        return [value, originals] if originals else [value]
    return [value, *originals]
