"""The aggregates of a list that a client requests, and their values for its items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from keygraph.errors import BadUserInput
from keygraph.lists.aggregating import OF_FIELD, Aggregated, AggregateField, plain
from keygraph.lists.extent import Located
from keygraph.model.permissions import restricted_name
from keygraph.model.records import RecordType
from keygraph.turns import TooMuchWork, step_by_step
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.read.access import forbidden
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run


@dataclass(frozen=True, eq=False)
class RequestedValue:
    """One field of an aggregate."""

    selected: Any
    """The field of the answer."""
    function: str
    arguments: Callable[[Run], tuple[AggregateField | None, int | None]]
    """Returns the aggregated field of the items, and how many groups are shown."""
    below: Sequence[RequestedValue] = ()
    """The values requested for each group."""


@dataclass(frozen=True, eq=False)
class RequestedAggregate:
    """An aggregate of a list."""

    selected: Any
    record: RecordType
    values: Sequence[RequestedValue]
    needed: frozenset[str]
    """The fields and ends that it may use."""
    of_types: Sequence[RequestedAggregate] = ()
    """If the list has several types: the aggregate of each."""

    @property
    def counts_only(self) -> bool:
        """Whether only the number of items is requested."""
        return not self.of_types and all(each.function == "count" for each in self.values)

    def needed_of(self, record: RecordType) -> frozenset[str]:
        """Returns the fields and ends of a type that it may use."""
        found = self.needed if record is self.record else frozenset[str]()
        return found.union(*(each.needed_of(record) for each in self.of_types))

    async def add_to(
        self, found: dict[Any, Any], run: Run, objects: Sequence[Object], count: int | None = None
    ) -> None:
        """Adds the aggregate of these objects, whose items are there, to `found`, in turns with other work; `count` if
        others are counted with them."""
        made = found[self.selected] = Object(self.record, ())
        try:
            await step_by_step(self.filling(made, run, objects, count))
        except TooMuchWork as error:
            found[self.selected] = as_value(error)

    def filling(
        self, made: Object, run: Run, objects: Sequence[Object], count: int | None = None
    ) -> Iterator[None]:
        """Fills the aggregate of these objects, value by value: for thousands of items, each takes milliseconds."""
        items = [Located(each.item, each.identity, self.record) for each in objects if each.item is not None]
        yield
        yield from self._filling(made, run, self.values, Aggregated(self.record, items, count), objects)
        for each in self.of_types:
            of_type = [one for one in objects if one.record is each.record]
            below = made.found[each.selected] = Object(each.record, ())
            yield from each.filling(below, run, of_type)

    def of_count(self, count: int) -> Object:
        """Returns an aggregate for which only the count is requested."""
        made = Object(self.record, ())
        made.found = dict.fromkeys((each.selected for each in self.values), count)
        return made

    def _filling(
        self,
        made: Object,
        run: Run,
        values: Iterable[RequestedValue],
        aggregated: Aggregated,
        objects: Sequence[Object],
    ) -> Iterator[None]:
        for each in values:
            try:
                value = self._value(run, each, aggregated, objects)
            except Exception as error:
                value = as_value(error)
            made.found[each.selected] = value
            yield
            if each.function == "groupBy" and not isinstance(value, Exception):
                groups = made.found[each.selected] = []
                requested = [below for below in each.below if below.function != "key"]
                for key, group in value:
                    one = Object(self.record, ())
                    yield from self._filling(one, run, requested, group, objects)
                    one.found |= {
                        below.selected: plain(key) for below in each.below if below.function == "key"
                    }
                    groups.append(one)

    def _value(
        self, run: Run, requested: RequestedValue, aggregated: Aggregated, objects: Sequence[Object]
    ) -> Any:
        """Returns a value, or the groups. Raises CorruptItem, BadUserInput, or Forbidden for an unreadable field."""
        if requested.function == "count":
            return aggregated.count
        field, first = requested.arguments(run)
        field = cast(AggregateField, field)
        access = run.access
        name = None if access is None else restricted_name(self.record, field.source)
        if access is not None and name and not all(access.allows(each, "read", name) for each in objects):
            raise forbidden(self.record, name)
        if requested.function != "groupBy":
            return OF_FIELD[requested.function](aggregated, field)
        most = run.limits.max_page_size
        if first is not None and not 0 <= first <= most:
            raise BadUserInput(f"first must be between 0 and {most:,}")
        return aggregated.groups(field)[: most if first is None else first]
