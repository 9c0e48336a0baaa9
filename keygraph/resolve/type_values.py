"""Which types an item can be of by what it says: the values of its type attributes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import TypeAlias

from keygraph.dynamo.conditions import Condition, Eq, Exists, Not, Or, conjunction
from keygraph.dynamo.items import Value
from keygraph.dynamo.table import Table
from keygraph.keys.ambiguity import never_meet
from keygraph.keys.shapes import Shape, goes_before, is_special_case, shape
from keygraph.model.records import RecordType

TypeValue: TypeAlias = "str | None"
"""What an item says in a type attribute; None where it has none, or null."""

_OTHER = "\0other"
"""Stands for every value that no type has."""
_HIDDEN = "\0hidden"
"""Stands for a value that an index does not project."""


class TypeValues:
    """What the items of each type say of their type, and what follows from that.

    Of two types that one item could say, the one that is a special case comes first: it names more values, and its key
    is as special, or its key is a special case and it names as many.
    """

    def __init__(self, table: Table, types: Mapping[str, RecordType], type_attribute: str | None) -> None:
        self._table = table
        self._type_attribute = type_attribute
        self._types = [record for record in types.values() if not record.is_virtual]
        self._candidates = cache(self._find_candidates)

    def of(self, record: RecordType) -> Mapping[str, TypeValue]:
        """What the items of a type say, by attribute."""
        declared = record.type_value
        if isinstance(declared, Mapping):
            return declared
        return {} if self._type_attribute is None else {self._type_attribute: declared}

    @cached_property
    def _known(self) -> dict[str, frozenset[TypeValue]]:
        names = dict.fromkeys(name for record in self._types for name in self.of(record))
        return {name: frozenset(self.of(each).get(name) for each in self._types) for name in names}

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The type attributes."""
        return tuple(self._known)

    @cached_property
    def _hidden(self) -> dict[str | None, frozenset[str]]:
        return {
            index.name: frozenset(name for name in self.attributes if not self._table.has(index.name, name))
            for index in self._table.indexes
        }

    def hidden(self, index: str | None) -> frozenset[str]:
        """The type attributes that an index does not project."""
        return self._hidden.get(index, frozenset())

    # --- Two types ------------------------------------------------------------------------------------

    def exclude(self, one: RecordType, other: RecordType) -> bool:
        """Whether no item can say both types."""
        return _exclude(self.of(one), self.of(other))

    def condition_excludes(self, record: RecordType, other: RecordType) -> bool:
        """Whether the filter for items that say the type leaves out those of the other: they say another one, or what
        says both and has the other's key is of this type."""
        mine, theirs = self.of(record), self.of(other)
        is_special = theirs.items() < mine.items() and is_special_case(_shape(other), _shape(record))
        return is_special or _exclude(mine, theirs)

    def are_told_apart(
        self, one: RecordType, other: RecordType, hidden: frozenset[str] = frozenset()
    ) -> bool:
        """Whether it is told of every item which of the two types it is not, without the hidden attributes."""
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
        if not theirs.items() <= mine.items():
            return False
        shapes = _shape(one), _shape(other)
        if goes_before(*shapes):
            return True
        return mine != theirs and is_special_case(*shapes) and is_special_case(*shapes[::-1])

    # --- Items ----------------------------------------------------------------------------------------

    def candidates(self, item: Mapping[str, Value], index: str | None) -> list[RecordType]:
        """The types that an item says, which was read from there; special ones first."""
        hidden = self.hidden(index)
        said: list[TypeValue] = []
        for name, known in self._known.items():
            value = item.get(name)
            if name in hidden:
                said.append(_HIDDEN)
            else:
                said.append(value if (value is None or type(value) is str) and value in known else _OTHER)
        return self._candidates(tuple(said))

    def _find_candidates(self, said: tuple[TypeValue, ...]) -> list[RecordType]:
        values = dict(zip(self.attributes, said, strict=True))
        hidden = frozenset(name for name, value in values.items() if value == _HIDDEN)
        found = [record for record in self._types if self._visible(record, hidden).items() <= values.items()]
        special = {one.name: sum(self._goes_before(one, other, hidden) for other in found) for one in found}
        return sorted(found, key=lambda record: -special[record.name])

    def is_alone(self, record: RecordType) -> bool:
        """Whether its items say what no other type's can."""
        return all(other is record or self.exclude(record, other) for other in self._types)

    def condition(self, record: RecordType) -> Condition | None:
        """The filter for items that say the type; None where they say nothing."""
        parts: list[Condition] = [
            Or((Not(Exists((name,))), Eq((name,), None))) if value is None else Eq((name,), value)
            for name, value in self.of(record).items()
        ]
        return conjunction(*parts)

    def why_refused(self, item: Mapping[str, Value]) -> str:
        """Why an item says no type, in one line without its values."""
        names = " and ".join(self.attributes)
        said = "no declared type has its"
        if all(item.get(name) is None for name in self.attributes):
            said = "it has no"
        declared = {" and ".join(filter(None, self.of(record).values())) for record in self._types}
        return f"{said} {names} (the declared ones: {', '.join(sorted(declared - {''}))})"


def _shape(record: RecordType) -> Shape:
    return shape(*record.table_keys.templates)


def _exclude(mine: Mapping[str, TypeValue], theirs: Mapping[str, TypeValue]) -> bool:
    return any(name in theirs and theirs[name] != value for name, value in mine.items())
