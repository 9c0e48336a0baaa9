"""The words in which a model says who may see and change what: `read`, `create`, `update`, `delete`, `write`, `viewer`.

They write down what was said and decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Action: TypeAlias = Literal["read", "create", "update", "delete", "move"]
"""What somebody may do with a record, or with a field of one. To move a record is to update what stands in its key."""
WRITES: tuple[Action, ...] = ("create", "update", "delete")


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the viewer, in the place of a value."""

    name: str

    def __repr__(self) -> str:
        return f'viewer("{self.name}")'


@dataclass(frozen=True, slots=True)
class AccessRule:
    """One rule: what it allows, and to whom."""

    actions: tuple[Action, ...]
    role: str | Sequence[str] | None = None
    where: Mapping[str, Any] | None = None
    fields: Sequence[str] | None = None


def viewer(claim: str) -> Claim:
    """What whoever asks claims under this name: `viewer("sub")`, `viewer("tenant")`.

    Without that claim a comparison with it does not hold. A claim that is a list stands for any of its members.
    """
    return Claim(claim)


def read(
    *,
    role: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    fields: Sequence[str] | None = None,
) -> AccessRule:
    """Who may read: `access=[read(where={"customer": viewer("sub")}), read(role="support")]`.

    Of several rules one is enough. `role` is in the claim `roles`, one of several where a list is given; `where` is written
    as the filter of a list, with the names and values of the model, and `{"name": value}` for `eq`; `fields` are those that
    it allows, besides the record's key. What is left out is no condition: `read()` allows everybody everything.
    """
    return AccessRule(("read",), role, where, fields)


def create(
    *,
    role: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    fields: Sequence[str] | None = None,
) -> AccessRule:
    """Who may create: `where` is about the new record, `fields` are those that may be given."""
    return AccessRule(("create",), role, where, fields)


def update(
    *,
    role: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    fields: Sequence[str] | None = None,
) -> AccessRule:
    """Who may update: `where` is about the record before and after it, `fields` are those that may change."""
    return AccessRule(("update",), role, where, fields)


def delete(*, role: str | Sequence[str] | None = None, where: Mapping[str, Any] | None = None) -> AccessRule:
    """Who may delete: `where` is about the record that is there."""
    return AccessRule(("delete",), role, where)


def write(
    *,
    role: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    fields: Sequence[str] | None = None,
) -> AccessRule:
    """Who may create, update and delete. With `fields`, nobody may delete by it."""
    return AccessRule(WRITES if fields is None else ("create", "update"), role, where, fields)
