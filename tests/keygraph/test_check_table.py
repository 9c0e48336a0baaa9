"""Mistakes of the table itself, which DynamoDB would refuse to make."""

from __future__ import annotations

import pytest

from keygraph import ID, Graph, Index, ModelError, Table, node


@node("USER#{user_id}")
class User:
    user_id: ID


def told(table: Table, *types: type) -> list[str]:
    with pytest.raises(ModelError) as refused:
        Graph(table, *types).check()
    return [str(mistake) for mistake in refused.value.mistakes]


@pytest.mark.parametrize(
    ("indexes", "said"),
    [
        (
            [Index("Any", "A", "B"), Index("Any", "A", "B")],
            "Tests: two of its indexes are called Any. Rename one.",
        ),
        (
            [Index("Any", "A", "A")],
            "Any: A is its partition key and its sort key. Name another attribute for one of them.",
        ),
        (
            [Index("Any", "A", "B", local=True)],
            "Any: a local index has the table's partition key, PK. Name that one, or leave local=True out.",
        ),
        (
            [Index("Any", "A", "B", projection="KEY_ONLY")],  # type: ignore[arg-type]  # the mistake
            "Any: projection='KEY_ONLY' is none. "
            'It is "ALL", "KEYS_ONLY", or a list of the attributes that are there besides keys.',
        ),
    ],
)
def test_indexes_that_no_table_has(indexes: list[Index], said: str) -> None:
    """The table could not be created, with DynamoDB's words for it, after the model was said to be right."""
    assert told(Table("Tests", partition_key="PK", sort_key="SK", indexes=indexes), User) == [said]


def test_a_graph_without_types() -> None:
    """Everything in the table would be passed over."""
    assert told(Table("Tests", partition_key="PK")) == ["the graph: it lists no types. Graph(table, User, …)"]
