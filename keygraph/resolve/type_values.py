"""Determines the possible types of an item from the values of its type attributes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TypeAlias, cast

from keygraph.declare.declaration import TypeValue as DeclaredValue
from keygraph.dynamo.conditions import And, BeginsWith, Condition, Eq, Exists, Ne, Not, Or, conjunction
from keygraph.dynamo.items import Value
from keygraph.dynamo.table import Table
from keygraph.keys.ambiguity import never_meet
from keygraph.keys.shapes import Shape, are_disjoint, goes_before, is_special_case, shape
from keygraph.keys.template import Template
from keygraph.model.records import RecordType


@dataclass(frozen=True, slots=True)
class Beginning:
    """Every text with this beginning; if it is empty, every value."""

    text: str


TypeValue: TypeAlias = "str | Beginning | None"
"""The value of a type attribute in an item, or its beginning; None if it is missing or null."""

PRESENT = Beginning("")
_HIDDEN = "\0hidden"
"""Stands for a value that an index does not project."""


class TypeValues:
    """The type values of each type's items, and what follows from them.

    If an item fits two types, the special case comes first: the type that names more values with an equally special
    key, or that has the more special key with the same number of values.
    """

    def __init__(self, table: Table, types: Mapping[str, RecordType], type_attribute: str | None) -> None:
        self._types = [record for record in types.values() if not record.is_virtual]
        self._values = {
            record.name: read_type_values(record.type_value, type_attribute) for record in types.values()
        }
        self.hidden: Callable[[str | None], frozenset[str]] = cache(
            lambda index: frozenset(name for name in self.attributes if not table.has(index, name))
        )
        """Returns the type attributes that an index does not project."""
        self._candidates = cache(self._find_candidates)

    def of(self, record: RecordType) -> Mapping[str, TypeValue]:
        """Returns the type values of a type's items, by attribute."""
        return self._values[record.name]

    def written(self, record: RecordType) -> dict[str, Value]:
        """Returns the type attributes that a write gives an item; its fields and keys make the others."""
        return {name: value for name, value in self.of(record).items() if isinstance(value, str)}

    @cached_property
    def _known(self) -> dict[str, frozenset[TypeValue]]:
        names = dict.fromkeys(name for record in self._types for name in self.of(record))
        return {name: frozenset(self.of(each).get(name) for each in self._types) for name in names}

    @cached_property
    def _beginnings(self) -> dict[str, list[Beginning]]:
        """The beginnings of each attribute's values, the longest first."""
        found = {
            name: [each for each in known if isinstance(each, Beginning)]
            for name, known in self._known.items()
        }
        return {name: sorted(each, key=lambda one: -len(one.text)) for name, each in found.items()}

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        return tuple(self._known)

    # --- Two types ------------------------------------------------------------------------------------

    def exclude(self, one: RecordType, other: RecordType) -> bool:
        """Returns whether no item can have the type values of both types."""
        return _exclude(self.of(one), self.of(other))

    def condition_excludes(self, record: RecordType, other: RecordType) -> bool:
        """Returns whether the filter for the type's items leaves out the other's: their type values differ, or an item
        with both types' values and the other's key is of this type."""
        mine, theirs = self.of(record), self.of(other)
        is_special = (
            mine != theirs and _has_all(mine, theirs) and is_special_case(_shape(other), _shape(record))
        )
        return is_special or _exclude(mine, theirs)

    def are_distinguishable(
        self, one: RecordType, other: RecordType, hidden: frozenset[str] = frozenset()
    ) -> bool:
        """Returns whether every item is known not to be of one of the types, without the hidden attributes."""
        return (
            _exclude(self._visible(one, hidden), self._visible(other, hidden))
            or self._goes_before(one, other, hidden)
            or self._goes_before(other, one, hidden)
            or never_meet(one.table_keys.templates, other.table_keys.templates)
        )

    def _visible(self, record: RecordType, hidden: frozenset[str]) -> Mapping[str, TypeValue]:
        return {name: value for name, value in self.of(record).items() if name not in hidden}

    def _goes_before(self, one: RecordType, other: RecordType, hidden: frozenset[str]) -> bool:
        mine, theirs = self._visible(one, hidden), self._visible(other, hidden)
        if not _has_all(mine, theirs):
            return False
        return goes_before(_shape(one), _shape(other)) or (mine != theirs and _have_same_keys(one, other))

    # --- Items ----------------------------------------------------------------------------------------

    def candidates(self, item: Mapping[str, Value], index: str | None) -> list[RecordType]:
        """Returns the types that fit an item's type values, read from this index; special ones first."""
        hidden = self.hidden(index)
        item_values: list[TypeValue] = []
        for name, known in self._known.items():
            value = item.get(name)
            if name in hidden:
                item_values.append(_HIDDEN)
            elif value is None or (type(value) is str and value in known):
                item_values.append(cast(TypeValue, value))
            else:
                # What types can have in common with a value that none names.
                text = value if isinstance(value, str) else ""
                fitting = (each for each in self._beginnings[name] if text.startswith(each.text))
                item_values.append(next(fitting, PRESENT))
        return self._candidates(tuple(item_values))

    def _find_candidates(self, item_values: tuple[TypeValue, ...]) -> list[RecordType]:
        values = dict(zip(self.attributes, item_values, strict=True))
        hidden = frozenset(name for name, value in values.items() if value == _HIDDEN)
        found = [record for record in self._types if _has_all(values, self._visible(record, hidden))]
        special = {one.name: sum(self._goes_before(one, other, hidden) for other in found) for one in found}
        return sorted(found, key=lambda record: -special[record.name])

    def is_alone(self, record: RecordType) -> bool:
        """Returns whether no other type's items can have its type values."""
        return all(other is record or self.exclude(record, other) for other in self._types)

    def condition(self, record: RecordType, besides: Container[str] = ()) -> Condition | None:
        """Returns the filter for items with the type's values, besides those of some attributes; None if none are left."""
        values = self.of(record).items()
        return conjunction(*(condition_on(name, value) for name, value in values if name not in besides))

    def condition_under_own_key(self, record: RecordType) -> Condition | None:
        """Returns the condition that an item whose key can be the type's is of it; None if every such item is."""
        special = [
            Not(condition)
            for other, _ in special_types(record, {each: self.of(each) for each in self._types})
            if (condition := self.condition(other)) is not None
        ]
        return conjunction(self.condition(record), *special)

    def share_keys(self, record: RecordType) -> bool:
        """Returns whether items of other types, told apart by their type values, can have the type's keys."""
        own = self.of(record)
        return any(
            self.of(other) != own and not are_disjoint(_shape(record), _shape(other)) for other in self._types
        )

    def why_refused(self, item: Mapping[str, Value]) -> str:
        """Returns why an item's values fit no type, in one line without the values."""
        names = " and ".join(self.attributes)
        problem = "no declared type has its"
        if all(item.get(name) is None for name in self.attributes):
            problem = "it has no"
        declared = {
            " and ".join(
                described(name, value) for name, value in self.of(record).items() if value is not None
            )
            for record in self._types
        }
        return f"{problem} {names} (the declared ones: {', '.join(sorted(declared - {''}))})"


def _shape(record: RecordType) -> Shape:
    return shape(*record.table_keys.templates)


def _have_same_keys(one: RecordType, other: RecordType) -> bool:
    shapes = _shape(one), _shape(other)
    return is_special_case(*shapes) and is_special_case(*shapes[::-1])


def special_types(
    record: RecordType, values: Mapping[RecordType, Mapping[str, TypeValue]]
) -> Iterator[tuple[RecordType, dict[str, TypeValue]]]:
    """Yields the types with the same keys to which an item of the type belongs if it has further type values, and these."""
    own = values[record]
    for other, theirs in values.items():
        further = {name: value for name, value in theirs.items() if (name, value) not in own.items()}
        if further and not other.is_virtual and _has_all(theirs, own) and _have_same_keys(record, other):
            yield other, further


def read_type_values(declared: DeclaredValue, type_attribute: str | None) -> dict[str, TypeValue]:
    """Returns the type values that `type=` declares."""
    if not isinstance(declared, Mapping):
        return {} if type_attribute is None else {type_attribute: declared}
    return {
        name: _read_comparison(value) if isinstance(value, Mapping) else value
        for name, value in declared.items()
    }


def _read_comparison(declared: Mapping[str, str | bool]) -> TypeValue:
    beginning = declared.get("beginsWith")
    if isinstance(beginning, str):
        return Beginning(beginning)
    return PRESENT if declared.get("exists") else None


def condition_on(name: str, value: TypeValue) -> Condition:
    """Returns the condition that an attribute has a type value."""
    if isinstance(value, Beginning) and value.text:
        return BeginsWith((name,), value.text)
    if isinstance(value, str):
        return Eq((name,), value)
    if value is None:
        return Or((Not(Exists((name,))), Eq((name,), None)))
    return And((Exists((name,)), Ne((name,), None)))


def has_value(template: Template, value: str | Beginning) -> bool:
    """Returns whether all keys of a template have a type value."""
    if isinstance(value, str):
        return template.tokens == (value,)
    head = template.tokens[0]
    return not value.text or (isinstance(head, str) and head.startswith(value.text))


def described(name: str, value: str | Beginning) -> str:
    """Returns the value of a type attribute in words."""
    if isinstance(value, str):
        return value
    return f"{value.text}…" if value.text else f"any {name}"


def _is_within(narrow: TypeValue, wide: TypeValue) -> bool:
    """Returns whether what has the first value has the second one too."""
    if not isinstance(wide, Beginning):
        return narrow == wide
    text = narrow.text if isinstance(narrow, Beginning) else narrow
    return text is not None and text.startswith(wide.text)


def _has_all(mine: Mapping[str, TypeValue], theirs: Mapping[str, TypeValue]) -> bool:
    return all(name in mine and _is_within(mine[name], value) for name, value in theirs.items())


def _exclude(mine: Mapping[str, TypeValue], theirs: Mapping[str, TypeValue]) -> bool:
    pairs = ((value, theirs[name]) for name, value in mine.items() if name in theirs)
    return any(not _is_within(one, other) and not _is_within(other, one) for one, other in pairs)
