"""Converts a viewer's claims, which come from JSON, to values of a field's type."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias

from keygraph.dynamo.items import Value, number, stable_text
from keygraph.keys.types import FieldType, Moment, decode, encode

Claims: TypeAlias = Mapping[str, Any]
"""The claims of the viewer; empty for the anonymous viewer."""
ROLES = "roles"
"""The claim that holds the viewer's roles: a list or a single role."""
_OF_A_TOKEN = frozenset({"exp", "iat", "nbf", "jti", "auth_time"})
"""Claims that differ between two tokens of the same viewer. Issuers have further ones."""


class Viewer(Mapping[str, Any]):
    """The viewer's claims, read-only; empty for the anonymous viewer.

    A model method with an argument of this type receives it (`def mine(self, viewer: Viewer)`).
    """

    __slots__ = ("_claims",)

    def __init__(self, claims: Claims | None = None) -> None:
        self._claims = dict(claims or {})

    def __getitem__(self, name: str) -> Any:
        return self._claims[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._claims)

    def __len__(self) -> int:
        return len(self._claims)

    def __repr__(self) -> str:
        return f"Viewer({self._claims!r})"

    @property
    def identity(self) -> str:
        """A hash of the subject and its issuer; without a subject, of the claims that do not differ between tokens."""
        claims = self._claims
        if claims.get("sub") not in (None, ""):
            claims = {name: claims.get(name) for name in ("iss", "sub")}
        return _hash(claims)

    def rights(self, ruling: Collection[str]) -> str:
        """A hash of the claims that rules compare (`ruling`), and of all that do not differ between tokens: whoever has
        the same sees the same."""
        return _hash(self._claims, ruling)

    @property
    def roles(self) -> frozenset[str]:
        """The viewer's roles, as access rules see them."""
        return roles_of(self._claims)


ANONYMOUS = Viewer()
"""The viewer of a request without a token."""


def _hash(claims: Claims, ruling: Collection[str] = ()) -> str:
    lasting = {name: each for name, each in claims.items() if name not in _OF_A_TOKEN or name in ruling}
    return hashlib.sha256(stable_text(lasting).encode()).hexdigest()


def roles_of(claims: Claims) -> frozenset[str]:
    """Returns the viewer's roles."""
    return frozenset(each for each in members(claims.get(ROLES)) if isinstance(each, str))


def members(claim: object) -> tuple[object, ...]:
    """Returns the values of a claim: the members of a list, else the claim itself; without nulls and empty texts."""
    values = claim if isinstance(claim, list | tuple | set | frozenset) else (claim,)
    return tuple(each for each in values if each not in (None, ""))


def attribute_of_claim(type_: FieldType, claim: object) -> Value:
    """Returns a claim as the attribute of a field of this type. Raises ValueError if it is not a value of the type."""
    return encode(type_, _value(type_, claim))


def _value(type_: FieldType, claim: object) -> Any:
    is_number = isinstance(claim, int | float | Decimal) and not isinstance(claim, bool)
    match type_.kind:
        case "id" | "string" if isinstance(claim, str):
            return claim
        case "id" if isinstance(claim, int) and is_number:
            return str(claim)
        case "int" | "long" | "float" | "decimal" if is_number or isinstance(claim, str):
            exact = number(str(claim))
            return decode(FieldType(type_.kind), exact)
        case "boolean" if isinstance(claim, bool):
            return claim
        case "datetime" if isinstance(claim, str):
            return Moment.of_text(claim)
        case "date" if isinstance(claim, str):
            return date.fromisoformat(claim)
        case "enum" if isinstance(claim, str | int):
            return decode(FieldType("enum", type_.python), number(claim) if is_number else str(claim))
    raise ValueError(f"a claim that is no value of type {type_.name}")
