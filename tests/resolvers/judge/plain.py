"""A model as plain Python: types, the fields that say what an item is, and the keys that are written from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.resolvers.judge.values import PADDED, Form, Kind

Path: TypeAlias = tuple[str, ...]
"""What a placeholder names: a field or a method, or an end and a key field of its node."""
Identity: TypeAlias = tuple[tuple[str, Any], ...]
Values: TypeAlias = Mapping[str, Any]
"""What an item says: a value for each field, the identity of a node for each end, None where it says nothing."""


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@dataclass(frozen=True)
class Field:
    name: str
    kind: Kind
    optional: bool = False
    attribute: str | None = None
    """None where it stands in keys alone; `map.name` where it is in a map."""


@dataclass(frozen=True)
class End:
    name: str
    node: Type
    attributes: Mapping[str, str]
    """For each key field of the node; nothing where it is of several types: then the attribute has the node's key."""
    optional: bool = False
    others: tuple[Type, ...] = ()
    """The further types of which its node may be."""
    is_whole: bool = False
    """Whether its attribute has the node's whole partition key."""

    @property
    def nodes(self) -> tuple[Type, ...]:
        return (self.node, *self.others)

    @property
    def key(self) -> str:
        """The attribute that has the key of its node."""
        return f"{self.name}_key"

    def of(self, identity: Identity) -> Type:
        """The type of the node: each has key fields of its own."""
        names = tuple(name for name, _ in identity)
        return next(node for node in self.nodes if node.identity == names)


@dataclass(frozen=True)
class Method:
    """A text that is computed from one field."""

    name: str
    need: str
    kind: Kind
    body: str
    """What it gives, in Python, of `value`."""

    def __call__(self, values: Values) -> Any:
        value = values[self.need]
        return None if value is None else eval(self.body, {"value": value})


@dataclass(frozen=True)
class Slot:
    """A placeholder."""

    path: Path
    form: Form
    may_be_empty: bool = False

    @property
    def source(self) -> str:
        mark = "?" if self.may_be_empty else ""
        spec = f":{self.form.spec}" if self.form.spec else ""
        return "{" + ".".join(self.path) + mark + spec + "}"


@dataclass(frozen=True)
class Whole:
    """`{end}`: the partition key of the node."""

    end: str

    @property
    def source(self) -> str:
        return "{" + self.end + "}"


SHARD = "shard"
Part: TypeAlias = str | Slot | Whole
Template: TypeAlias = tuple[Part, ...]


def source_of(template: Template) -> str:
    return "".join(part if isinstance(part, str) else part.source for part in template)


@dataclass(frozen=True)
class KeyPair:
    """The templates of a type in the table or in one index."""

    partition: Template
    sort: Template | None
    shards: tuple[str, ...] = ()
    """The partition template begins with text; the shard is written behind it."""


@dataclass(frozen=True)
class Index:
    name: str
    attributes: tuple[str, ...]
    """The second one is missing where it has no sort key."""
    is_plain: bool = False
    """Whether its keys are attributes of fields, so that nobody writes templates for it."""
    projection: str = "ALL"
    is_number: bool = False
    """Whether its sort key is a number."""
    is_local: bool = False
    is_inverted: bool = False
    """Whether its keys are the table's, swapped."""

    @property
    def is_written(self) -> bool:
        return not (self.is_plain or self.is_inverted)


@dataclass(eq=False, repr=False)
class Type:
    name: str
    kind: str
    """node, edge or record."""
    fields: dict[str, Field] = field(default_factory=dict)
    ends: dict[str, End] = field(default_factory=dict)
    methods: dict[str, Method] = field(default_factory=dict)
    keys: dict[str | None, KeyPair] = field(default_factory=dict)
    """By index; None is the table."""
    identity: tuple[str, ...] = ()
    """The key fields of a node."""
    is_virtual: bool = False
    is_gathered: bool = False
    """Whether it is read together with its lists."""
    is_mirrored: bool = False
    """Whether each edge is two items, whose ends are exchanged."""
    lists: list[Listing] = field(default_factory=list)
    shares: Shared | None = None
    """Another type that can have the same keys."""
    taken: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """A key field that cannot be a number of four digits, and some such texts: a key with one is the other type's."""

    def __repr__(self) -> str:
        return self.name

    @property
    def query(self) -> str:
        """The field at the root that gives a node by its key."""
        return self.name[0].lower() + self.name[1:]

    def canonical(self, identity: tuple[tuple[str, Any], ...]) -> tuple[Any, ...]:
        """What is the same for all that name one node: values that render alike are one."""
        forms = {
            slot.path: slot.form
            for slot in self.slots((*self.keys[None].partition, *(self.keys[None].sort or ())))
        }
        return tuple(forms[name,].text(value) if forms[name,].loses else value for name, value in identity)

    @property
    def is_told_by_partition(self) -> bool:
        """Whether its partition key alone tells its only key field."""
        pair = self.keys[None]
        slots = [part for part in pair.partition if isinstance(part, Slot)]
        told = [slot.path[0] for slot in slots if not (slot.form.loses or slot.may_be_empty)]
        return (
            not (self.ends or pair.shards) and tuple(told) == self.identity and len(slots) == len(told) == 1
        )

    @property
    def certain(self) -> set[str]:
        """The key fields that a key tells."""
        pair = self.keys[None]
        return {
            slot.path[0]
            for slot in self.slots((*pair.partition, *(pair.sort or ())))
            if not slot.form.loses and slot.path[0] in self.identity
        }

    def partition_text(self, identity: Identity) -> str | None:
        return self.text(dict(identity), self.keys[None].partition)

    def kind_of(self, path: Path) -> Kind:
        if len(path) == 2:
            return self.ends[path[0]].node.kind_of(path[1:])
        [name] = path
        return self.methods[name].kind if name in self.methods else self.fields[name].kind

    def value(self, values: Values, path: Path) -> Any:
        if len(path) == 2:
            identity = values[path[0]]
            return None if identity is None else dict(identity)[path[1]]
        [name] = path
        return self.methods[name](values) if name in self.methods else values[name]

    @property
    def key_ends(self) -> list[str]:
        return [*self.ends][:2] if self.kind == "edge" else []

    def is_taken(self, values: Values) -> bool:
        """Whether a key that says the values is another type's."""
        return any(across(values[name]) is not None for name in self.taken if values.get(name) is not None)

    def sources(self, pair: KeyPair) -> set[str]:
        """The fields and ends from which keys are written."""
        slots = self.slots((*pair.partition, *(pair.sort or ())))
        names = {slot.path[0] for slot in slots}
        return {self.methods[name].need if name in self.methods else name for name in names}

    def slots(self, template: Template) -> Iterator[Slot]:
        """The placeholders of a template, where whole keys of nodes are written out."""
        for part in template:
            if isinstance(part, Slot):
                yield part
            elif isinstance(part, Whole):
                end, node = self.ends[part.end], self.ends[part.end].node
                if end.others:
                    yield Slot((part.end,), Form("", str))
                    continue
                for slot in node.slots(node.keys[None].partition):
                    yield Slot((part.end, *slot.path), slot.form, slot.may_be_empty)

    def text(self, values: Values, template: Template, shard: str = "") -> str | None:
        """A key of an item; None where it has none."""
        texts = []
        for part in template:
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, Whole):
                identity = values[part.end]
                text = None if identity is None else self.ends[part.end].of(identity).partition_text(identity)
                if text is None:
                    return None
                texts.append(text)
            else:
                value = self.value(values, part.path)
                if value is None and not part.may_be_empty:
                    return None
                texts.append("" if value is None else part.form.text(value))
        return "".join(texts) + shard or None


@dataclass(frozen=True)
class Shared:
    """What the key of one type says in the words of another, which can have the same key."""

    type: Type
    names: Mapping[str, str]
    """Of its fields and ends by those of the other type."""
    part: str = ""
    """The other type's field that is a number here and a text there."""

    def values(self, values: Mapping[str, Any], of: Type) -> dict[str, Any] | None:
        """What an item of the other type would say that has the key of one that says `values`; None where none can."""
        found: dict[str, Any] = {}
        for name, own in self.names.items():
            value = values[own]
            if name == self.part:
                value = across(value)
                if value is None:
                    return None
            elif name in of.ends and value is not None:
                names = dict(zip(self.type.ends[own].node.identity, of.ends[name].node.identity, strict=True))
                value = tuple((names[key], each) for key, each in value)
            found[name] = value
        return found


def across(value: Any) -> Any:
    if isinstance(value, int):
        return PADDED.text(value)
    return int(value) if value.isdecimal() and PADDED.text(int(value)) == value else None


@dataclass(eq=False, repr=False)
class Listing:
    """A list: which items are in it, and by which keys it is read."""

    name: str
    owner: Type | None
    type: Type
    index: str | None
    end: str | None
    """The end that is its owner."""
    is_one: bool = False

    def __repr__(self) -> str:
        return f"{self.owner}.{self.name}"

    @property
    def far_end(self) -> End | None:
        """Of a list of edges the end at which its nodes are."""
        ends = self.type.key_ends
        if self.end not in ends:
            return None
        return self.type.ends[ends[1] if self.end == ends[0] else ends[0]]

    @property
    def keys(self) -> KeyPair:
        return self.type.keys[self.index]

    def is_known(self, slot: Slot) -> bool:
        if self.end is None:
            return False
        type_, end = self.type, self.type.ends[self.end]
        if slot.path[0] == self.end:
            return True
        return attribute_of(type_, slot.path) in {*end.attributes.values()}

    @property
    def required(self) -> list[Slot]:
        found = {slot.path: slot for slot in self.type.slots(self.keys.partition) if not self.is_known(slot)}
        return [*found.values()]

    @property
    def ranged(self) -> list[Slot]:
        """What may be said of the sort key, from left to right."""
        told = {slot.path for slot in self.required}
        slots = self.type.slots(self.keys.sort or ())
        found = {slot.path: slot for slot in slots if not self.is_known(slot) and slot.path not in told}
        return [*found.values()]


def attribute_of(type_: Type, path: Path) -> str | None:
    """The attribute that holds what a path names."""
    if len(path) == 2:
        return type_.ends[path[0]].attributes[path[1]]
    return type_.fields[path[0]].attribute if path[0] in type_.fields else None


@dataclass(eq=False, repr=False)
class Model:
    name: str
    types: list[Type]
    indexes: dict[str, Index]
    roots: list[Listing]
    type_attribute: str | None
    formats: dict[str, str] = field(default_factory=dict)
    """The formats of the graph, in Python, by their names."""
    separator: str = ""
    """What no text may hold."""
    is_flat: bool = False
    """Whether the table has no sort key."""
    awkward: bool = False
    """Whether values may hold what separates the parts of keys."""
    is_camel: bool = False
    """Whether the names in Python are in camel case."""

    @property
    def nodes(self) -> list[Type]:
        return [type_ for type_ in self.types if type_.kind == "node"]

    def lists_of(self, owner: Type) -> list[Listing]:
        return owner.lists
