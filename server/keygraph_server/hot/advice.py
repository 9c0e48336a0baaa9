"""Suggests changes of the model that reduce the largest costs: shards, copies of fields, stored counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from keygraph import Graph, Index
from keygraph.model.paths import AccessPath
from keygraph.model.record_keys import Keys
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph.resolve.derived import why_not_counted

READS_PER_PARTITION, WRITES_PER_PARTITION = 3_000.0, 1_000.0
"""The capacity of one partition in units per second ("Burst and adaptive capacity", DynamoDB developer guide)."""
_BUSY = 0.3
"""The share from which a partition is called busy, and below which its shards should stay."""
_MUCH = 0.05
"""The share of all units from which a field is worth a change."""
_COPIED = 4
"""A copy of more attributes than this is a second item."""


@dataclass
class Totals:
    """The counts of all servers, in units and requests per second."""

    seconds: float = 0.0
    workers: int = 0
    fields: dict[tuple[str, str], FieldCost] = field(default_factory=dict)
    partitions: dict[tuple[str | None, str], PartitionCost] = field(default_factory=dict)

    def add(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Adds the reports of server processes."""
        for each in reports:
            self.workers += 1
            self.seconds = max(self.seconds, each["seconds"])
            for spent in each["fields"]:
                cost = self.fields.setdefault((spent["field"], spent["kind"]), FieldCost())
                cost.units += spent["units"]
                cost.requests += spent["requests"]
                cost.attributes |= set(spent["attributes"])
            for spent in each["partitions"]:
                partition = self.partitions.setdefault((spent["index"], spent["key"]), PartitionCost())
                partition.add(spent["field"], spent["units"], is_write=spent["writes"])

    @property
    def units(self) -> float:
        return sum(each.units for each in self.fields.values())


@dataclass
class FieldCost:
    """The cost of a field by one kind of request."""

    units: float = 0.0
    requests: float = 0.0
    attributes: set[str] = field(default_factory=set)


@dataclass
class PartitionCost:
    """The cost of a partition, in all and by field."""

    reads: float = 0.0
    writes: float = 0.0
    by_field: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, units: float, *, is_write: bool) -> None:
        if is_write:
            self.writes += units
        else:
            self.reads += units
        self.by_field[name] = self.by_field.get(name, 0.0) + units

    @property
    def units(self) -> float:
        return self.reads + self.writes

    @property
    def field(self) -> str:
        """The field that accounts for most of it."""
        return max(self.by_field, key=lambda each: self.by_field[each])


@dataclass(frozen=True)
class Advice:
    """One change of the model: the reason, the saving, and the lines to write."""

    units: float
    """The units per second that it concerns."""
    text: str
    lines: tuple[str, ...]


class Adviser:
    """Suggests changes of one model."""

    def __init__(self, graph: Graph, module: ModuleType) -> None:
        """`module` is where the model is declared: the lines use its names for indexes."""
        self._graph = graph
        self._paths = {
            f"{path.owner.name if path.owner else 'Query'}.{camel(path.name)}": path for path in graph.paths
        }
        self._names = {each: name for name, each in vars(module).items() if isinstance(each, Index)}

    def advice(self, totals: Totals) -> list[Advice]:
        """Returns suggestions, for the most expensive parts first."""
        found = [*self._shards(totals), *self._of_fields(totals)]
        return sorted(found, key=lambda each: -each.units)

    def _shards(self, totals: Totals) -> Iterator[Advice]:
        busy: dict[AccessPath, tuple[float, str, PartitionCost]] = {}
        for (_, key), cost in totals.partitions.items():
            load = max(cost.reads / READS_PER_PARTITION, cost.writes / WRITES_PER_PARTITION)
            path = self._paths.get(cost.field)
            # Of several partitions of one path, the busiest decides the number of shards.
            if load >= _BUSY and path is not None and (path not in busy or busy[path][0] < load):
                busy[path] = load, key, cost
        for path, (load, key, cost) in busy.items():
            before = max(1, len(path.keys.shards))
            count = max(2, math.ceil(load / _BUSY)) * before
            added = "#{shard}" if before == 1 else ""
            yield Advice(
                cost.units,
                f"The partition {key} of {cost.field} takes {cost.reads:,.0f} read and {cost.writes:,.0f} write units per "
                f"second, and DynamoDB gives one partition {READS_PER_PARTITION:,.0f} and {WRITES_PER_PARTITION:,.0f}. "
                f"{count} shards take about {cost.units * before / count:,.0f} units each. A page of the list then takes {count} "
                "requests, sent at the same time. Items that are there have to be written again.",
                tuple(
                    self._declared(each.record, each.keys, f"{each.keys.partition}{added}", count)
                    for each in path.each
                ),
            )

    def _declared(self, record: RecordType, keys: Keys, partition: str, shards: int) -> str:
        templates = [f'"{partition}"', *([f'"{keys.sort}"'] if keys.sort is not None else [])]
        call = ", ".join([*templates, f"shards={shards}"])
        if keys.index is None:
            return f"@{record.kind}({call})  # {record.name}"
        declared = keys.index.declared or keys.index
        return f"{self._names.get(declared, declared.name)}({call})  # on {record.name}"

    def _of_fields(self, totals: Totals) -> Iterator[Advice]:
        least = totals.units * _MUCH
        for (name, kind), cost in totals.fields.items():
            path = self._paths.get(name)
            if path is None or cost.units < max(least, 1e-9):
                continue
            share = f"{cost.units:,.1f} units per second ({cost.units / totals.units:.0%} of all)"
            if kind == "Count" and path.owner is not None:
                if why_not_counted(path.owner, path) is None:
                    yield Advice(
                        cost.units,
                        f"{share} are spent on counting {name}. A count on {path.owner.name}, kept with each mutation of a "
                        f"{' or '.join(record.name for record in path.records)}, answers totalCount without arguments and saves "
                        f"them, and {cost.requests:,.1f} requests per second. `keygraph verify --repair --only counts --yes` counts what is there.",
                        (f'{path.name}_count: int = counts("{path.name}")  # in {path.owner.name}',),
                    )
            elif kind in ("GetItem", "BatchGetItem"):
                yield from self._copy(path, name, cost, share)

    def _copy(self, path: AccessPath, name: str, cost: FieldCost, share: str) -> Iterator[Advice]:
        """Suggestions that make it unnecessary to read nodes, or whole items, after a list."""
        saved = f"saves them, {cost.requests:,.1f} requests per second and a round trip"
        if path.far_end is None:
            if not path.keys.reads_whole_items:
                yield Advice(
                    cost.units,
                    f"{share} are spent on reading whole items after {name}, because the index {path.keys.index_name} does "
                    f"not have all that is asked for. An index that projects it {saved}; it costs more to write.",
                    (f'projection="ALL"  # of {path.keys.index_name}',),
                )
            return
        node = path.nodes[0]
        copied = [
            each
            for each in node.fields.values()
            if each.attribute[0] in cost.attributes and each.name not in node.key_fields
        ]
        is_paired = path.record.name in self._graph.correspondences
        if not copied or len(copied) > _COPIED or len(path.nodes) > 1 or is_paired:
            return
        names, record = ", ".join(each.name for each in copied), path.record
        named = [each for each in self._graph.references[node.name] if each.record is record]
        follows = (
            node.expiry is None
            and all(each.is_found for each in named if each.end.name == path.far_end)
            and all(each.kept in (None, "created", "id") for each in copied)
        )
        text = f"if clients select the copy. It is the value at the time when the {record.name} is written."
        if follows:
            text = f"and changes with the {node.name}. `keygraph verify --repair` copies what is there."
        option = ", follows=True" if follows else ""
        yield Advice(
            cost.units,
            f"{share} are spent on reading each {node.name} of {name} for its {names}. A copy on {record.name} {saved}, {text}",
            tuple(
                f'{path.far_end}_{each.name}: {_annotation(node.cls, each.name)} = copy("{path.far_end}.{each.name}"{option})  '
                f"# in {record.name}"
                for each in copied
            ),
        )


def _annotation(cls: type, name: str) -> str:
    for each in cls.__mro__:
        found = vars(each).get("__annotations__", {}).get(name)
        if found is not None:
            return found if isinstance(found, str) else str(getattr(found, "__name__", found))
    raise LookupError(f"{cls.__name__} has no field {name}")
