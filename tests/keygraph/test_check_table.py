"""Mistakes of the table itself, which DynamoDB would refuse to make."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph import Graph, Index, Table
from keygraph.check.table import ttl_mistakes
from tests.keygraph.checked import TABLE, User, mistakes


@pytest.mark.parametrize(
    ("indexes", "said"),
    [
        (
            [Index("Any", "A", "B"), Index("Any", "A", "B")],
            "Tests: two of its indexes are called Any. Rename one.",
        ),
        (
            [Index("Any", "A", "A")],
            "Any: A is both its partition key and its sort key. Use another attribute for one of them.",
        ),
        (
            [Index("Any", "A", "B", local=True)],
            "Any: a local index has the table's partition key, PK. Use that one, or remove local=True.",
        ),
        (
            [Index("Any", "A", "B", projection="KEY_ONLY")],  # type: ignore[arg-type]  # the mistake
            "Any: projection='KEY_ONLY' is none. "
            'Use "ALL", "KEYS_ONLY", or a list of the attributes besides the keys.',
        ),
        (
            [Index("a b", "A")],
            "a b: 'a b' is not a name for an index. Use 3 to 255 of the characters a-z, A-Z, 0-9, _, . and -.",
        ),
        ([Index("Any", "")], "Any: '' is not a key attribute's name. It has 1 to 255 bytes."),
        (
            [Index("Any", ("A", "X"))],  # type: ignore[arg-type]  # the mistake
            'Any: \'X\' is not a key type (A). Use "S" for text, "N" for a number or "B" for bytes.',
        ),
        (
            [Index("Any", "A", ("SK", "N"))],
            "Any: the attribute SK is of type N here and of type S in Tests. "
            "Give it one type: an attribute has the same type in all keys.",
        ),
        (
            [Index("Any", "PK", local=True)],
            "Any: a local index has a sort key. Name one, or remove local=True.",
        ),
        (
            [Index(f"local-{number}", "PK", f"A{number}", local=True) for number in range(6)],
            "Tests: it has 6 local indexes, but DynamoDB allows 5. Make some of them global: remove local=True.",
        ),
        (
            [Index("Any", "A", projection=[])],
            'Any: its projection names no attribute. Use projection="KEYS_ONLY".',
        ),
        (
            [Index("Any", "A", projection=["name", "name"])],
            "Any: its projection names name twice. Name each attribute once.",
        ),
        (
            [Index("Any", "A", projection=[f"a{number}" for number in range(101)])],
            "Tests: its indexes name 101 attributes to project, but DynamoDB allows 100. "
            'Project "ALL" in some of them.',
        ),
    ],
)
def test_indexes_that_no_table_has(indexes: list[Index], said: str) -> None:
    table = Table("Tests", partition_key="PK", sort_key="SK", indexes=indexes)
    assert mistakes(User, table=table) == [said]


@pytest.mark.parametrize("name", ["", "ab", "a" * 256, "my table", "Größe", "a/b", "abc\n"])
def test_names_that_dynamodb_refuses(name: str) -> None:
    assert mistakes(User, table=Table(name, partition_key="PK")) == [
        f"{name or 'a table'}: {name!r} is not a name for a table. "
        "Use 3 to 255 of the characters a-z, A-Z, 0-9, _, . and -."
    ]


@pytest.mark.parametrize("name", ["PK", "GSI1PK", ""])
def test_an_attribute_that_holds_no_time(name: str) -> None:
    table = Table("Shop", partition_key="PK", indexes=[Index("GSI1", "GSI1PK")])
    told = f"the graph: ttl_attribute={name!r} is not the name of an attribute that can hold a number. "
    assert [str(each) for each in ttl_mistakes(table, name)] == [
        told + 'Name another one: ttl_attribute="expiresAt".'
    ]
    assert [*ttl_mistakes(table, "ttl")] == []


def test_a_local_index_of_a_table_without_a_sort_key() -> None:
    table = Table("Tests", partition_key="PK", indexes=[Index("Any", "PK", "A", local=True)])
    assert mistakes(User, table=table) == [
        "Tests: a table with a local index has a sort key. Name one, or remove local=True."
    ]


def test_a_graph_that_is_called_wrongly() -> None:
    call = "Write Graph(Table(…), User, …): the table first, then the types."
    make: Any = Graph
    for given, options, said in (
        ([User], {"table": Table("Tests", partition_key="PK")}, "multiple values for argument 'table'"),
        ([], {}, "missing a required argument: 'table'"),
        ([User], {}, "User is not a Table"),
        ([TABLE], {"case": "camel"}, "got an unexpected keyword argument 'case'"),
    ):
        with pytest.raises(TypeError) as error:
            make(*given, **options)
        assert str(error.value) == f"Graph(): {said}. {call}"


def test_a_graph_without_types() -> None:
    assert mistakes() == [
        "the graph: it lists no types. Write Graph(table, User, …) or Graph(table, models=[module])."
    ]
