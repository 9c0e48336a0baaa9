"""Random valid operations over any derived schema, as texts with their variables.

What is chosen is asked of a `Choose`, so that hypothesis can shrink an operation and a long run can make thousands
by number alone. Nothing here knows a model: values come from the items, and what a field means from the schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from graphql import (
    GraphQLInputObjectType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    get_named_type,
    get_nullable_type,
    is_composite_type,
    is_enum_type,
    is_input_object_type,
    is_list_type,
    is_non_null_type,
    is_required_argument,
    is_union_type,
)
from strawberry.schema.schema_converter import GraphQLCoreConverter

from keygraph.dynamo.items import Item
from keygraph.errors import KeygraphError
from keygraph.graph import Graph
from keygraph.model.records import RecordType
from keygraph.names import camel, snake
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.schema import field_kinds
from keygraph_resolvers.schema.definitions import ServedField
from keygraph_resolvers.schema.types import GraphSchema

Choose = Callable[[int], int]
"""A number from 0 to one below what is given."""
T = TypeVar("T")

DEEPEST = 10


@dataclass(eq=False)
class Words:
    """What can be said of the items of a table: values by the names of fields, and ids."""

    values: dict[str, list[Any]] = field(default_factory=dict)
    """Values as they stand in JSON, by GraphQL names."""
    ids: list[str] = field(default_factory=list)
    ids_of: dict[str, list[str]] = field(default_factory=dict)
    """By the names of their types."""
    identities: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """For each node type the arguments that name its nodes."""

    def add_id(self, record: RecordType, identity: tuple[str, ...]) -> None:
        self.ids.append(global_id(record, identity))
        self.ids_of.setdefault(record.name, []).append(self.ids[-1])


def words_of(schema: GraphSchema, items: Sequence[Item]) -> Words:
    """What the items can be asked by; what cannot be read of them says nothing."""
    graph: Graph = schema.graph
    words = Words()
    core = schema._schema
    for item in items:
        record = graph.recognise(item)
        if record is None:
            continue
        for name, value in item.items():
            if isinstance(value, str):
                words.values.setdefault("", []).append(value)
                words.values.setdefault(name, []).append(value)
        type_ = core.get_type(record.name)
        for each in record.fields.values():
            try:
                value = record.reader(each)(item)
                shown = get_nullable_type(type_.fields[camel(each.name)].type).serialize(value)
            except Exception:
                continue
            words.values.setdefault(camel(each.name), []).append(shown)
        texts: dict[str, str] = {}
        for keys in record.keys.values():
            for slot in keys.slots:
                text = (keys.parse(item) or {}).get(slot.name)
                if text is not None and not slot.is_shard:
                    texts[camel(record.leaf_name(slot.path))] = text
        for name, text in texts.items():
            words.values.setdefault(name, []).append(text)
        for end in record.ends.values():
            try:
                identity = record.end_identity(item, end)
                if identity is not None:
                    (node, *_), own = end.nodes(identity)
                    words.add_id(node, own)
            except (KeygraphError, ValueError):
                continue
        identity = record.read_identity(item) or ()
        words.add_id(record, identity)
        if record.is_node:
            names = [camel(record.leaf_name(slot.path)) for slot in record.identity]
            words.identities.setdefault(record.name, []).append(dict(zip(names, identity, strict=True)))
    return words


@dataclass(eq=False)
class Operation:
    """An operation, and where its lists take cursors from."""

    document: str
    variables: dict[str, Any]
    cursors: dict[str, tuple[str, ...]]
    """For each variable that is a cursor the path, of names alone, of the list that takes it."""

    def changed(self, answer: dict[str, Any], choose: Choose) -> dict[str, Any] | None:
        """Other variables: cursors that an answer gave, other decisions and sizes. None where there are none."""
        variables = dict(self.variables)
        for name, value in variables.items():
            if isinstance(value, bool):
                variables[name] = value == bool(choose(4))
            elif isinstance(value, int):
                variables[name] = choose(5)
        for name, path in self.cursors.items():
            known = cursors_at(answer.get("data"), path)
            if known and choose(8):
                variables[name] = known[choose(len(known))]
            elif not choose(8):
                variables[name] = "nonsense"
        return None if variables == self.variables else variables


def questions(schema: GraphSchema, words: Words, choose: Choose) -> Iterator[str]:
    """Operations that request every aggregate of every list of some nodes, and all shortest paths between some."""
    types = schema._schema.type_map
    for name in ("Query", *words.ids_of):
        lists = {
            each: f"{each} {{ aggregate {_whole_aggregate(aggregate.type)} }}"
            for each, definition in getattr(types[name], "fields", {}).items()
            if (aggregate := getattr(get_named_type(definition.type), "fields", {}).get("aggregate"))
            and not any(map(is_required_argument, definition.args.values()))
            and not _is_left_out(definition)
        }
        known, body = words.ids_of.get(name, ()), " ".join(lists.values())
        for _ in range(2) if known and lists else ():
            yield f"{{ node(id: {json.dumps(known[choose(len(known))])}) {{ ... on {name} {{ {body} }} }} }}"
        if lists and name == "Query":
            yield f"{{ {body} }}"
    if via := cast(Any, types.get("ListName")):
        for _ in range(12):
            ends = [json.dumps(words.ids[choose(len(words.ids))]) for _ in range(2)]
            several = f"from: {ends[0]}, to: {ends[1]}, via: [{', '.join(via.values)}]"
            yield f"{{ paths({several}, maxLength: 4, first: 3) {{ length nodes {{ id }} }} }}"


def _whole_aggregate(type_: Any) -> str:
    """Everything that an aggregate has: each function of each field, and the same of each type."""
    found = []
    for name, each in get_named_type(type_).fields.items():
        below = f" {_whole_aggregate(each.type)}" if is_composite_type(get_named_type(each.type)) else ""
        if "field" in each.args:
            below = " { key count }" if below else ""
            fields = get_named_type(each.args["field"].type).values
            found += [f"{name}_{value}: {name}(field: {value}){below}" for value in fields]
        else:
            found.append(f"{name}{below}")
    return f"{{ {' '.join(found)} }}"


class Maker:
    """Makes one operation."""

    def __init__(self, schema: GraphSchema, words: Words, choose: Choose) -> None:
        self.schema: GraphQLSchema = schema._schema
        self.words = words
        self.choose = choose
        self.variables: dict[str, tuple[str, Any]] = {}
        self.cursors: dict[str, tuple[str, ...]] = {}
        self.fragments: list[tuple[str, str, str]] = []
        self.count = 0
        self.in_unions = {
            member.name
            for type_ in self.schema.type_map.values()
            if is_union_type(type_)
            for member in cast(GraphQLUnionType, type_).types
        }
        self.left = 44
        """How many more fields there may be."""

    def operation(self) -> Operation:
        """An operation that is valid, but for what its values may be."""
        body = self.selections(self.schema.query_type, (), 0, least=1, most=3)
        declared = ", ".join(f"${name}: {type_}" for name, (type_, _) in self.variables.items())
        head = f"query Made({declared}) " if declared else ""
        fragments = "\n".join(f"fragment {name} on {on} {body}" for name, on, body in self.fragments)
        values = {name: value for name, (_, value) in self.variables.items()}
        return Operation(f"{head}{body}\n{fragments}", values, self.cursors)

    # --- Choices --------------------------------------------------------------------------------------

    def chance(self, out_of: int) -> bool:
        return self.choose(out_of) == out_of - 1

    def pick(self, among: Sequence[T]) -> T:
        return among[self.choose(len(among))]

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def variable(self, prefix: str, type_: str, value: Any) -> str:
        name = self.name(prefix)
        self.variables[name] = (type_, value)
        return f"${name}"

    # --- Selections -----------------------------------------------------------------------------------

    def selections(
        self, type_: Any, path: tuple[str, ...], depth: int, *, least: int = 1, most: int = 5
    ) -> str:
        chosen = [self.selection(type_, path, depth) for _ in range(least + self.choose(most))]
        return "{ " + " ".join(chosen) + " }"

    def selection(self, type_: Any, path: tuple[str, ...], depth: int) -> str:
        kind = self.choose(24)
        known = [name for name, on, _ in self.fragments if on == type_.name]
        if kind == 23 and known:
            return f"...{self.pick(known)}{self.condition()}"
        if kind >= 21:
            # Paths of lists inside go on as they are: a fragment adds no name.
            name = self.name("F")
            self.fragments.append((name, type_.name, self.selections(type_, path, depth, most=3)))
            return f"...{name}{self.condition()}"
        if kind >= 19:
            on = self.pick(["", f" on {type_.name}", *self.interfaces(type_)])
            inner = self.schema.get_type(on.removeprefix(" on ")) if on else type_
            return f"...{on}{self.condition()} {self.selections(inner, path, depth, most=3)}"
        if not isinstance(type_, GraphQLObjectType):
            possible = self.schema.get_possible_types(type_)
            if self.choose(4) or is_union_type(type_):
                inner = self.pick(possible)
                return f"... on {inner.name}{self.condition()} {self.selections(inner, path, depth)}"
        return self.field(type_, path, depth)

    def interfaces(self, type_: Any) -> list[str]:
        return [f" on {each.name}" for each in getattr(type_, "interfaces", ())]

    def condition(self) -> str:
        if self.choose(5):
            return ""
        word = self.pick(["skip", "include"])
        known = [name for name, (type_, _) in self.variables.items() if type_ == "Boolean!"]
        if known and self.choose(2):
            return f" @{word}(if: ${self.pick(known)})"
        value = bool(self.choose(2))
        if self.choose(3):
            return f" @{word}(if: {self.variable('b', 'Boolean!', value)})"
        return f" @{word}(if: {json.dumps(value)})"

    def field(self, type_: Any, path: tuple[str, ...], depth: int) -> str:
        self.left -= 1
        if not depth and self.chance(15):
            return f"{self.name('look')}: {self.pick(_LOOKS) % self.condition()}"
        fields = {
            name: each
            for name, each in type_.fields.items()
            if (depth < DEEPEST and self.left > 0) or not is_composite_type(get_named_type(each.type))
        }
        fields = {name: each for name, each in fields.items() if not _is_left_out(each)}
        if not fields or self.chance(12):
            return "__typename" if depth or self.chance(2) else "kind: __typename"
        lists = [name for name, each in fields.items() if is_composite_type(get_named_type(each.type))]
        inward = [each for each in lists if each in ("edges", "nodes", "node")]
        if inward and self.choose(2):
            lists = inward
        name = self.pick(lists if lists and self.choose(3) else list(fields))
        definition = fields[name]
        named = get_named_type(definition.type)
        # Under one parent a plain name is one field wherever it stands; other types have other names.
        key = name if not definition.args and self.choose(3) else self.name(f"{name}_")
        if key == name and (getattr(type_, "interfaces", ()) or type_.name in self.in_unions):
            key = f"{name}_{type_.name}"
        if key == name and definition.args:
            key = self.name(f"{name}_")
        here = (*path, key)
        head = f"{key}: {name}" if key != name else name
        head += self.arguments(type_, name, definition, here)
        if not is_composite_type(named):
            return f"{head}{self.condition()}"
        once = f"{head}{self.condition()} {self.selections(named, here, depth + 1)}"
        if self.choose(8):
            return once
        # The same field once more, to be merged.
        again = f"{head}{self.condition()} {self.selections(named, here, depth + 1, most=2)}"
        return f"{once} {again}" if self.choose(2) else f"{once} ... {{ {again} }}"

    # --- Arguments ------------------------------------------------------------------------------------

    def arguments(self, type_: Any, name: str, definition: Any, here: tuple[str, ...]) -> str:
        served = definition.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
        kind = served.kind if isinstance(served, ServedField) else None
        given: dict[str, str] = {}
        if isinstance(kind, field_kinds.NodeByKey) and self.choose(10):
            known = self.words.identities.get(kind.record.name)
            if known:
                for key, text in self.pick(known).items():
                    given[key] = self.literal(text, definition.args[key].type)
        if isinstance(kind, field_kinds.PathsBetween):
            given |= self.ends(list(get_named_type(definition.args["via"].type).values))
        for argument, each in definition.args.items():
            if argument in given:
                continue
            if not is_non_null_type(each.type) and self.choose(7 if argument in _RARE else 4):
                continue
            value = (
                self.others(type_.name) if argument == "alsoOf" else self.argument(argument, each.type, here)
            )
            if value is not None:
                given[argument] = value
        if "first" in definition.args and "first" not in given and "last" not in given and self.choose(8):
            size = self.pick([0, 1, 2, 2, 3, 4, 5, 20])
            given[self.pick(["first", "first", "last"] if "last" in definition.args else ["first"])] = (
                str(size) if self.choose(3) else self.variable("n", "Int", size)
            )
        if "first" in given and "last" in given and self.choose(20):
            del given["last"]
        if not given:
            return ""
        return "(" + ", ".join(f"{key}: {value}" for key, value in given.items()) + ")"

    def argument(self, name: str, type_: Any, here: tuple[str, ...]) -> str | None:
        match name:
            case "first" | "last":
                return str(self.pick([0, 1, 2, 3, 4, 101, -1]) if self.chance(10) else self.choose(6))
            case "after" | "before":
                text = self.variable("c", "String", None)
                self.cursors[text[1:]] = here
                return text
            case "maxLength":
                return str(self.pick([0, 1, 2, 3, 4, 6, 6, 21]))
            case "ids" | "to":
                ids = [self.id_() for _ in range(self.choose(5))]
                if self.choose(3):
                    return json.dumps(ids)
                return self.variable("i", "[ID!]!" if name == "ids" else "[ID!]", ids)
            case "id":
                return json.dumps(self.id_()) if self.choose(2) else self.variable("i", "ID!", self.id_())
            case "where":
                return self.where(get_named_type(type_), 0)
        return self.value(name, type_)

    def ends(self, names: Sequence[str]) -> dict[str, str]:
        """Some lists, and nodes at the ends of a way along them, mostly of a type that has one of these lists."""
        via = [self.pick(names) for _ in range(1 + self.choose(4))]
        owner = next((each for each in self.words.ids_of if via[0].startswith(f"{snake(each)}_".upper())), "")
        known = self.words.ids_of.get(owner, self.words.ids)
        ends = [self.pick(known) if known and self.choose(8) else self.id_() for _ in range(2)]
        start, end = (
            json.dumps(each) if self.choose(3) else self.variable("i", "ID!", each) for each in ends
        )
        return {"from": start, "to": end, "via": f"[{', '.join(via)}]"}

    def others(self, type_name: str) -> str:
        known = self.words.ids_of.get(type_name)
        several = [
            self.pick(known) if known and not self.chance(15) else self.id_()
            for _ in range(11 if self.chance(40) else self.choose(4))
        ]
        return self.variable("i", "[ID!]", several) if self.chance(3) else json.dumps(several)

    def id_(self) -> str:
        if self.words.ids and self.choose(20):
            return self.pick(self.words.ids)
        return self.pick(["", "nothing", "WyJVc2VyIiwieCJd"])

    def where(self, type_: GraphQLInputObjectType, depth: int) -> str:
        parts = {}
        for _ in range(1 + self.choose(2)):
            name = self.pick(list(type_.fields))
            inner = type_.fields[name].type
            if get_named_type(inner) is type_:
                if depth < 2:
                    several = [self.where(type_, depth + 1) for _ in range(1 + self.choose(2))]
                    parts[name] = several[0] if name == "not" else f"[{', '.join(several)}]"
                continue
            condition = get_named_type(inner)
            if condition.name.endswith("Where"):
                parts[name] = self.where(condition, depth)
                continue
            operator = self.pick(list(condition.fields))
            wanted = condition.fields[operator].type
            if operator == "between":
                low, high = (self.value(name, wanted.fields["from"].type) for _ in range(2))
                value = f"{{ from: {low}, to: {high} }}"
            elif operator == "in":
                texts = [self.value(name, wanted.of_type) for _ in range(1 + self.choose(3))]
                value = f"[{', '.join(texts)}]"
            elif operator == "exists":
                value = self.pick(["true", "false"])
            else:
                value = "null" if self.chance(15) else self.value(name, wanted)
            parts[name] = f"{{ {operator}: {value} }}"
        return "{ " + ", ".join(f"{name}: {value}" for name, value in parts.items()) + " }"

    def value(self, name: str, type_: Any) -> str:
        type_ = get_nullable_type(type_)
        if is_list_type(type_):
            return "[" + ", ".join(self.value(name, type_.of_type) for _ in range(self.choose(3))) + "]"
        if is_input_object_type(type_):
            if "eq" in type_.fields:
                return self.range(name, type_)
            given = {
                key: self.value(key, each.type)
                for key, each in type_.fields.items()
                if is_non_null_type(each.type) or not self.choose(2)
            }
            return "{ " + ", ".join(f"{key}: {value}" for key, value in given.items()) + " }"
        if is_enum_type(type_):
            return self.pick(list(type_.values))
        known = self.words.values.get(name)
        if not known or self.chance(12):
            known = self.words.values.get("", ["x"])
        value = self.pick(known)
        if isinstance(value, str) and self.chance(6):
            value = value[: 1 + self.choose(max(1, len(value)))]
        return self.literal(value, type_)

    def range(self, name: str, type_: GraphQLInputObjectType) -> str:
        """What may be said of an argument of a sort key; now and then more than may."""
        wanted = self.pick([("eq",), ("from",), ("to",), ("from", "to"), ("beginsWith",)])
        if self.chance(15):
            wanted = tuple(key for key in type_.fields if self.choose(2))
        said = {key: self.value(name, type_.fields[key].type) for key in wanted if key in type_.fields}
        return "{ " + ", ".join(f"{key}: {value}" for key, value in said.items()) + " }"

    def literal(self, value: Any, type_: Any) -> str:
        type_ = get_nullable_type(type_)
        match type_.name:
            case "Int" | "Long" | "Float":
                try:
                    number = float(value) if type_.name == "Float" else int(value)
                    return str(number + self.choose(3) - 1 if self.chance(4) else number)
                except (ValueError, TypeError):
                    return str(self.choose(10))
            case "Boolean":
                return self.pick(["true", "false"])
        if is_enum_type(type_):
            return value if value in type_.values else self.pick(list(type_.values))
        if type_.name == "Date" and isinstance(value, str):
            value = value[:10] if value[:4].isdigit() else "2024-01-15"
        if type_.name == "DateTime" and (
            not isinstance(value, str) or not value[:4].isdigit() or len(value) < 19
        ):
            value = "2024-01-15T10:00:00Z"
        if type_.name == "Decimal":
            try:
                value = str(int(float(value)))
            except (ValueError, TypeError):
                value = str(self.choose(100))
        return json.dumps(value if isinstance(value, str) else str(value), ensure_ascii=False)


_LOOKS = (
    "__typename%s",
    '__type(name: "Query")%s { name kind fields { name } }',
    '__type(name: "None")%s { name }',
    "__schema%s { queryType { name } }",
)


def _is_left_out(definition: Any) -> bool:
    """Whether it is a walk that depends on how it walks, since it has a budget of its own, or on the time."""
    kind = _kind(definition)
    options = kind.walk.options if isinstance(kind, field_kinds.WalkOf) else None
    return options is not None and (options.budget is not None or options.decay is not None)


def _kind(definition: Any) -> Any:
    served = definition.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
    return served.kind if isinstance(served, ServedField) else None


_RARE = ("after", "before", "where", "to", "last", "direction", "alsoOf")


def cursors_at(answer: Any, path: tuple[str, ...]) -> list[str]:
    found: list[str] = []

    def look(value: Any, left: tuple[str, ...]) -> None:
        if isinstance(value, list):
            for each in value:
                look(each, left)
        elif isinstance(value, dict):
            if left:
                look(value.get(left[0]), left[1:])
                return
            for key, each in value.items():
                if isinstance(each, str) and "ursor" in key:
                    found.append(each)
                elif isinstance(each, list | dict) and key.split("_")[0] in ("edges", "pageInfo"):
                    look(each, ())

    look(answer, path)
    return found
