"""What the tests of mistakes share: a table, nodes without a mistake, and all that `check` says of types in the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keygraph import ID, Graph, Index, ModelError, Table, node

by_date = Index("ByDate", "DatePK", "DateSK")
by_state = Index("ByState", "State", "PK")
inverted = Index("Inverted", "SK", "PK")

TABLE = Table("Things", partition_key="PK", sort_key="SK", indexes=[by_date])


@node("USER#{user_id}")
class User:
    user_id: ID
    name: str


@node("REPO#{owner}", "NAME#{name}")
class Repository:
    owner: str
    name: str


def mistakes(
    *types: type, table: Table = TABLE, check: Callable[[Graph], object] = Graph.check, **options: Any
) -> list[str]:
    """Every mistake of a graph of those types, in words; none where it is right."""
    try:
        check(Graph(table, *types, **{"type_attribute": "Type", **options}))
    except ModelError as error:
        return [str(mistake) for mistake in error.mistakes]
    return []
