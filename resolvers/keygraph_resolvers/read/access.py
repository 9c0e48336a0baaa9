"""What the viewer may see: of lists, and of the fields of objects. `keygraph_resolvers.steps.get` decides on objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from keygraph.dynamo.conditions import paths_of
from keygraph.errors import FieldName, Forbidden
from keygraph.lists.query import ListQuery
from keygraph.model.links import Link, LinkName
from keygraph.model.permissions import ListConditions, ListOwner, Permissions, Rule
from keygraph.model.records import RecordType
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run


def forbidden(record: RecordType, name: str) -> Forbidden:
    """Returns the error of a field that the viewer may not read."""
    return Forbidden(f"{record.name}.", FieldName(name), ": you may not read this field")


def without_refused(op: Run, objects: Sequence[Object], field: Hashable, name: str) -> Sequence[Object]:
    """Returns the objects whose field the viewer may read; for the others its error is kept under `field`.

    `name` is the field's name in the model.
    """
    access = op.access
    if access is None:
        return objects
    found = []
    for each in objects:
        if access.allows(each, "read", name):
            found.append(each)
        else:
            op.fail(each.found, field, forbidden(each.record, name))
    return found


def links_of(run: Run, record: RecordType) -> list[Link]:
    """Returns the links to other items that decide whether the viewer sees records of a type."""
    access = run.access
    return [] if access is None else [name.link for name in access.links(record, access.decision(record))]


class VisibleItems(NamedTuple):
    """What the viewer sees of a list."""

    conditions: ListConditions
    is_closed: bool
    """Whether it is nothing."""
    is_whole: bool
    """Whether it is everything."""


class VisibleLists:
    """What the viewer sees of lists with the same arguments, and what is left to decide for one, by what it fixes."""

    def __init__(self, access: Permissions, conditions: ListConditions) -> None:
        """`conditions` are those on the items of all these lists."""
        self.conditions = conditions
        self._access = access
        self._is_linked = any(access.links(path.record, each) for path, each in conditions.items())
        self._rules = {
            path: Rule(path, each) for path, each in conditions.items() if not isinstance(each, bool)
        }
        self._names = [(path, name) for path, rule in self._rules.items() for name in rule.names]
        self._found: dict[tuple[str | None, ...], VisibleItems] = {}
        """For most lists of an operation the same is left."""

    def of(self, query: ListQuery, owner: tuple[str, ...] | None) -> VisibleItems:
        """Returns what the viewer sees of an owner's list."""
        if query.parts:
            several = {each: dict(part.values) for each, part in query.parts.items()}
            texts = [several[path.record].get(name) for path, name in self._names]
        else:
            values = dict(query.values)
            texts = [values.get(name) for _, name in self._names]
        found = self._found.get(tuple(texts))
        if found is None:
            each = iter(texts)
            left = {
                path: rule.left(tuple(islice(each, len(rule.names)))) for path, rule in self._rules.items()
            }
            if self._is_linked:
                # More is known about other items with each read.
                left = {
                    path: self._access.with_links(ListOwner(path, owner), each) for path, each in left.items()
                }
            found = _visible_items({**self.conditions, **left})
            if not self._is_linked:
                self._found[tuple(texts)] = found
        return found

    def of_anyone(self) -> VisibleItems:
        """Returns what the viewer may see of any owner's list."""
        fixed = {path: True for path, rule in self._rules.items() if rule.is_fixed}
        return _visible_items({**self.conditions, **fixed})


def _visible_items(conditions: ListConditions) -> VisibleItems:
    decisions = conditions.values()
    is_closed, is_whole = (all(each is wanted for each in decisions) for wanted in (False, True))
    return VisibleItems(conditions, is_closed, is_whole)


def access_key(access: Permissions, records: Iterable[RecordType]) -> Hashable:
    """Returns the viewer's permissions that decide the cost of an operation on these types."""
    found: list[Hashable] = []
    for record in records:
        restricted = () if record.access is None else filter(record.access.is_restricted, record.order)
        for decision in [access.decision(record, "read", name) for name in (None, *restricted)]:
            # The names of a link are different for each viewer; how many they are is how much is looked up.
            paths = [] if isinstance(decision, bool) else dict.fromkeys(paths_of(decision))
            used = Counter(path[0].link if isinstance(path[0], LinkName) else path for path in paths)
            found.append(decision if isinstance(decision, bool) else frozenset(used.items()))
    return tuple(found)
