"""Decides which objects of an answer the viewer may see. Hidden ones are treated as nonexistent."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from keygraph.dynamo.conditions import paths_of
from keygraph.dynamo.table import Key
from keygraph.errors import FieldName, Forbidden
from keygraph.model.links import Link, LinkName
from keygraph.model.permissions import Permissions
from keygraph.model.records import RecordType
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run


def seen_by_key(
    access: Permissions, record: RecordType, objects: Sequence[Object]
) -> tuple[Sequence[Object], Sequence[Object]]:
    """Returns the objects of a type that the viewer sees, and those for which only an unread item decides."""
    rule = access.rule(record)
    if rule is True:
        return objects, ()
    seen: list[Object] = []
    untold: list[Object] = []
    for each in objects:
        # For most objects the key alone decides.
        decision = rule and rule.of_key(each.identity)
        if not isinstance(decision, bool):
            if each.item is not None:
                decision = access.of_item(record, each.identity, each.item)
            else:
                decision = access.of_key(record, each.identity)
        if decision is True:
            seen.append(each)
        elif decision is False:
            each.is_missing = True
        else:
            untold.append(each)
    return seen, untold


def seen_by_item(access: Permissions, objects: Iterable[Object]) -> list[Object]:
    """Returns the objects that the viewer sees; their items are there if they have any."""
    found = []
    for each in objects:
        if access.of_item(each.record, each.identity, each.item or {}):
            found.append(each)
        else:
            each.is_missing = True
    return found


def is_readable(access: Permissions, each: Object, name: str) -> bool:
    """Returns whether the viewer may read a field of an object that they see."""
    if each.item is None:
        return access.of_key(each.record, each.identity, "read", name) is True
    return access.of_item(each.record, each.identity, each.item, "read", name)


def forbidden(record: RecordType, name: str) -> Forbidden:
    """Returns the error of a field that the viewer may not read."""
    return Forbidden(f"{record.name}.", FieldName(name), ": you may not read this field")


def without_refused(
    access: Permissions | None, objects: Sequence[Object], field: Hashable, name: str
) -> Sequence[Object]:
    """Returns the objects whose field the viewer may read; for the others its error is kept under `field`.

    `name` is the field's name in the model.
    """
    if access is None:
        return objects
    found = []
    for each in objects:
        if is_readable(access, each, name):
            found.append(each)
        else:
            each.found[field] = forbidden(each.record, name)
    return found


def links_of(run: Run, record: RecordType) -> list[Link]:
    """Returns the links to other items that decide whether the viewer sees records of a type."""
    access = run.access
    return [] if access is None else [name.link for name in access.links(record, access.decision(record))]


def learned(run: Run, came: Iterable[tuple[Key, Any]]) -> Exception | None:
    """Records other items that were looked up, by their keys; returns the error of the first that could not be read."""
    for key, answer in came:
        if isinstance(answer, Exception):
            return answer
        if run.access is not None:
            run.access.learn(key, answer)
    return None


def access_key(access: Permissions, records: Iterable[RecordType]) -> Hashable:
    """Returns the viewer's permissions that decide the cost of an operation on these types."""
    found: list[Hashable] = []
    for record in records:
        names = (
            [None] if record.access is None else [None, *filter(record.access.is_restricted, record.order)]
        )
        for name in names:
            decision = access.decision(record, "read", name)
            if isinstance(decision, bool):
                found.append(decision)
            else:
                # The name of a link is different for each viewer.
                heads = [(path[0], path) for path in paths_of(decision)]
                found.append(
                    frozenset(head.link if isinstance(head, LinkName) else path for head, path in heads)
                )
    return tuple(found)
