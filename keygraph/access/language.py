"""The words for access rules in a model: `read`, `create`, `update`, `delete`, `write`, `viewer`.

They only record what was declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Action: TypeAlias = Literal["read", "create", "update", "delete", "move"]
"""An action on a record or on one of its fields. To move a record is to update the values in its key."""
WRITES: tuple[Action, ...] = ("create", "update", "delete")


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the viewer, used in place of a value."""

    name: str

    def __repr__(self) -> str:
        return f'viewer("{self.name}")'


def claims_in(condition: object) -> Iterator[str]:
    """Yields the names of the claims in a condition."""
    match condition:
        case Claim(name):
            yield name
        case Mapping():
            yield from claims_in([*condition.values()])
        case list() | tuple():
            for each in condition:
                yield from claims_in(each)


@dataclass(frozen=True, slots=True)
class AccessRule:
    """One rule: what it allows, and to whom."""

    actions: tuple[Action, ...]
    role: str | Sequence[str] | None = None
    where: Mapping[str, Any] | None = None
    fields: Sequence[str] | None = None


def viewer(claim: str) -> Claim:
    """Stands for the viewer's claim of this name: `viewer("sub")`, `viewer("tenant")`.

    A comparison with a missing claim, or an empty text, does not hold. A claim that is a list matches if any of its members does.
    """
    return Claim(claim)


def read(
    *,
    role: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    fields: Sequence[str] | None = None,
) -> AccessRule:
    """Who may read: `access=[read(where={"customer": viewer("sub")}), read(role="support")]`.

    One of several rules is enough, and one of several roles. `role` must be in the claim `roles`. `where` is written
    like the filter of a list, with the model's names and values; `{"name": value}` means `eq`. `fields` are the
    readable fields, in addition to the record's key. `read()` allows everybody everything.
    """
    return AccessRule(("read",), role, where, fields)


def create(
    *,
    role: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    fields: Sequence[str] | None = None,
) -> AccessRule:
    """Who may create: `where` applies to the new record, `fields` are the ones that may be given."""
    return AccessRule(("create",), role, where, fields)


def update(
    *,
    role: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    fields: Sequence[str] | None = None,
) -> AccessRule:
    """Who may update: `where` applies to the record before and after it, `fields` are the ones that may change."""
    return AccessRule(("update",), role, where, fields)


def delete(*, role: str | Sequence[str] | None = None, where: Mapping[str, Any] | None = None) -> AccessRule:
    """Who may delete: `where` applies to the stored record."""
    return AccessRule(("delete",), role, where)


def write(
    *,
    role: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    fields: Sequence[str] | None = None,
) -> AccessRule:
    """Who may create, update and delete. A rule with `fields` does not allow deletion."""
    return AccessRule(WRITES if fields is None else ("create", "update"), role, where, fields)
