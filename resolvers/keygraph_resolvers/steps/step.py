"""A step of a plan: one kind of read, for all the objects that it is started for.

A step is started once for each place in the query where its selection is, with all objects that are known there. `run`
yields what it requests for them, or returns it if it waits for nothing. `worst` yields the most of that for one object,
with the same names of waits: for the bound, for the engine's batches, and for explain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from keygraph_resolvers.engine.requests import Begun, Running
from keygraph_resolvers.engine.worst import Worst
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run


class Step(ABC):
    """A step of a plan, which can be started."""

    suffix = ""
    """What it adds to the place in the query: a field's name, after a dot unless it is a field of the root."""
    breadth = 1
    """How many partitions it reads at once for one object."""

    @abstractmethod
    def run(self, op: Run, objects: Sequence[Object]) -> Running:
        """Reads what the step reads for these objects, and continues with it."""

    @abstractmethod
    def worst(self, run: Run) -> Worst:
        """Yields the most that it requests for one object."""


class ItemStep(Step):
    """Continues from objects in two parts: what their keys determine, and what only their items determine.

    The first part may start while the items are read.
    """

    @abstractmethod
    def run_by_key(self, op: Run, objects: Sequence[Object], unread: Collection[Object] = ()) -> Begun:
        """Reads what the objects' keys determine; `unread` are the nodes whose item may be read with it."""

    @abstractmethod
    def run_by_item(self, op: Run, objects: Sequence[Object]) -> Begun:
        """Reads what the objects' items determine."""

    @abstractmethod
    def worst_by_key(self, run: Run, *, is_wanted: bool) -> Worst:
        """Yields what the keys determine; `is_wanted`: the item may be read with it."""

    @abstractmethod
    def worst_by_item(self, run: Run) -> Worst:
        """Yields what the items determine."""

    def worst(self, run: Run) -> Worst:
        yield from self.worst_by_key(run, is_wanted=False)
        yield from self.worst_by_item(run)
