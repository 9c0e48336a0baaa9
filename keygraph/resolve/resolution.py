"""What is known while declarations become record types: the types so far, and the mistakes in them.

A mistake is never raised; all of them are collected. A type with a mistake is left out of later steps, so that each
mistake is reported once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from keygraph.declare.declaration import Declaration
from keygraph.dynamo.table import Table
from keygraph.errors import Mistake
from keygraph.keys.template import Template
from keygraph.keys.types import AttributeStyle, FieldType
from keygraph.keys.union import NodeText
from keygraph.model.records import RecordType


class BrokenTemplate(Exception):
    """A template that cannot be made; its mistake has been reported."""


@dataclass
class Resolution:
    """The record types of a graph, resolved step by step."""

    table: Table
    style: AttributeStyle
    types: dict[str, RecordType] = field(default_factory=dict)
    declarations: dict[str, Declaration] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    """The names of types with a mistake, or with an end to such a type."""
    templates: dict[tuple[str, str, FieldType], Template | None] = field(default_factory=dict)
    """The templates made so far, by their types, their sources and the types of `{shard}`; None for a broken one."""
    node_texts: dict[tuple[str, str], NodeText | BrokenTemplate | None] = field(default_factory=dict)
    """The texts of nodes at ends, by the type and the end."""
    in_progress: set[str] = field(default_factory=set)
    """The types whose keys are being written out."""

    def add(self, kind: str, where: str, problem: str, fix: str, *, breaks: RecordType | None = None) -> None:
        """Adds a mistake; `breaks` is the type that cannot be used because of it."""
        self.mistakes.append(Mistake(kind, where, problem, fix))
        if breaks is not None:
            self.broken.add(breaks.name)

    def is_broken(self, record: RecordType) -> bool:
        return record.name in self.broken

    def type_of(self, annotation: object) -> RecordType | None:
        """Returns the listed type of a class."""
        return next((record for record in self.types.values() if record.cls is annotation), None)
