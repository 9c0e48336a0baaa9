"""What the tests of mistakes share: a table, and all that `check` says of types in it."""

from __future__ import annotations

from keygraph import Graph, Index, ModelError, Table

by_date = Index("ByDate", "DatePK", "DateSK")
by_state = Index("ByState", "State", "PK")
inverted = Index("Inverted", "SK", "PK")

TABLE = Table("Things", partition_key="PK", sort_key="SK", indexes=[by_date])


def mistakes(
    *types: type, table: Table = TABLE, attribute_case: str = "snake", type_attribute: str | None = "Type"
) -> list[str]:
    """Every mistake of a graph of those types, in words; none where it is right."""
    graph = Graph(table, *types, attribute_case=attribute_case, type_attribute=type_attribute)
    try:
        graph.check()
    except ModelError as error:
        return [str(mistake) for mistake in error.mistakes]
    return []
