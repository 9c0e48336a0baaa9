"""Mistakes of what decorators, fields and graphs are told: values that mean nothing, and that no editor looked over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from keygraph import ID, JSON, Format, Index, Many, many, node, stored
from tests.keygraph.checked import by_date, mistakes

anything: Any = by_date
"""The index, of which an editor does not know how it is called."""


def thing(*keys: Any, **options: Any) -> type:
    """A node that is declared so."""

    class Thing:
        thing_id: ID
        number: int

    made: type = node(*keys, **options)(Thing)
    return made


NO_TYPE = (
    "is not a value for a type attribute, or a mapping of attributes to values. "
    'Use type="Order", type={"kind": "order", "part": "header"}, type={"ByDatePK": {"beginsWith": "DATE#"}}, '
    'type={"closedAt": {"exists": True}}, or type=None where its items have none.'
)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: thing("T#{thing_id}", by_date),
            "Thing: ByDate is listed among its keys but not called. "
            'Call it with its templates: bydate("…", "…").',
        ),
        (
            lambda: thing("T#{thing_id}", 5),
            'Thing: 5 is not a key template. A template is a string such as "ORDER#{order_id}".',
        ),
        (
            lambda: thing("T#{thing_id}", anything("A", None)),
            'Thing: None is not a key template. A template is a string such as "ORDER#{order_id}".',
        ),
        (
            lambda: thing("T#{thing_id}#{shard}", shards="3"),
            "Thing: shards='3' is not a number of shards, a range or a list of names. "
            'Use shards=5, shards=range(1, 6) or shards=["north", "south"].',
        ),
        *(
            (
                lambda shards=shards: thing("T#{thing_id}#{shard}", shards=shards),
                f"Thing: shards={shards!r} is not a number of shards, a range or a list of names. "
                'Use shards=5, shards=range(1, 6) or shards=["north", "south"].',
            )
            for shards in (range(0), range(-1, 3), [], ["north", "north"], ["north", ""], [1, 2])
        ),
        (
            lambda: thing("T#{thing_id}", anything("D#{shard}", "{number}", shards=1001)),
            "Thing in ByDate: it has 1,001 shards; a list queries all of them at once. Use 1,000 or fewer.",
        ),
        (
            lambda: thing("T#{thing_id}", item_bytes=0),
            "Thing: item_bytes=0 is not a positive number of bytes. Use item_bytes=2048.",
        ),
        (
            lambda: thing("T#{thing_id}", item_bytes=True),
            "Thing: item_bytes=True is not a positive number of bytes. Use item_bytes=2048.",
        ),
        (
            lambda: thing("T#{thing_id}", item_bytes="2 KB"),
            "Thing: item_bytes='2 KB' is not a positive number of bytes. Use item_bytes=2048.",
        ),
        (
            lambda: thing("T#{thing_id}", type=7),
            f"Thing: type=7 {NO_TYPE}",
        ),
        (lambda: thing("T#{thing_id}", type={}), f"Thing: type={{}} {NO_TYPE}"),
        *(
            (
                lambda value=value: thing("T#{thing_id}", type={"kind": value}),
                f"Thing: type={{'kind': {value}}} {NO_TYPE}",
            )
            for value in ({}, {"beginsWith": ""}, {"exists": 1}, {"eq": "a"})
        ),
        (lambda: thing("T#{thing_id}", type={"kind": 1}), f"Thing: type={{'kind': 1}} {NO_TYPE}"),
        (
            lambda: thing("T#{thing_id}", lists=True),
            'Thing: lists=True is not a field name. Use lists="users", or lists=False.',
        ),
        (
            lambda: thing("T#{thing_id}", anything("D", "{number}", lists="")),
            "Thing in ByDate: lists='' is not a field name. Use lists=\"users\", or lists=False.",
        ),
        (
            lambda: thing("T#{thing_id}", anything("D", "{number}", finds=5)),
            'Thing in ByDate: finds=5 is not a field name. Use finds="user_by_email".',
        ),
        (
            lambda: thing("T\ud800#{thing_id}"),
            'Thing: the template "T\\ud800#{thing_id}": it has a half of a surrogate pair, which no text can hold. '
            'Write it as "ORDER#{order_id}".',
        ),
        (
            lambda: thing("{thing_id}", "T" * 1500),
            "Thing: its template for SK has 1,500 bytes of literal text, and a sort key 1,024 in all. "
            "Shorten the text.",
        ),
        (
            lambda: thing("T#{thing_id:lower}"),
            'Thing: the template "T#{thing_id:lower}": {thing_id:lower}: '
            "a format cannot be used with a field of type id. "
            'Use another field or format, or declare it on the graph: formats={"lower": Format(…)}.',
        ),
    ],
)
def test_what_a_decorator_is_told(make: Callable[[], type], said: str) -> None:
    assert mistakes(make()) == [said]


def test_a_decorator_without_parentheses() -> None:
    bare: Any = node

    @bare
    class Thing:
        thing_id: ID

    assert mistakes(Thing) == [
        "Thing: it has no template for the table's key. Give one for each of PK and SK."
    ]


def test_what_a_field_is_told() -> None:
    @node("T#{thing_id}")
    class Thing:
        thing_id: ID
        name: str = stored("")
        first: str = stored("data", "")

    @node("H#{holder_id}")
    class Holder:
        holder_id: ID
        things: Many[Thing] = many(index="ByDate")  # type: ignore[arg-type]  # the mistake

    assert mistakes(Thing, Holder) == [
        "Thing.name: '' is not an attribute name. Write stored(\"name\").",
        "Thing.first: '' is not an attribute name. Write stored(\"name\").",
        "Holder.things: index='ByDate' is not an index. Pass the Index object, or None for the table.",
    ]


def test_fields_of_other_servers() -> None:
    @node("T#{thing_id}", by_date("{number}", "{thing_id}"))
    class Thing:
        thing_id: ID
        number: int = stored(external=True)
        points: int = stored(external=True)

    assert mistakes(Thing) == [
        "Thing.number: external=True says that another server has it, and it stands in a key. Remove external=True."
    ]


def test_defaults() -> None:
    class Colour(Enum):
        RED = "red"

    @node("T#{thing_id}")
    class Thing:
        thing_id: ID
        number: int = stored(default="x")
        count: int = stored(default=None)
        extra: JSON = stored(default=None)
        colour: Colour = "red"  # type: ignore[assignment]  # the mistake
        name: str = 5  # type: ignore[assignment]  # the mistake
        at: datetime = date(2024, 1, 1)  # type: ignore[assignment]  # the mistake
        right: Colour = Colour.RED
        none: int | None = None
        words: list[str] = stored(default=["a"])
        price: Decimal = Decimal("1.50")
        since: datetime = datetime(2024, 1, 1, tzinfo=UTC)
        tags: list[str] = []  # noqa: RUF012  (the mistake)

    fix = "Change the default or the annotation."
    assert mistakes(Thing) == [
        f"Thing.number: its default, 'x', is not of type int. {fix}",
        f"Thing.count: its default, None, is not of type int. {fix}",
        f"Thing.extra: its default, None, is not of type json. {fix}",
        f"Thing.colour: its default, 'red', is not of type Colour. {fix}",
        f"Thing.name: its default, 5, is not of type string. {fix}",
        f"Thing.at: its default, datetime.date(2024, 1, 1), is not of type datetime. {fix}",
        "Thing.tags: its default, [], would be one object of all records. Write stored(default=[]).",
    ]


def test_what_a_graph_is_told() -> None:
    type_attribute: Any = 5
    formats: Any = {
        "lower": str.lower,
        datetime: Format(str),
        5: Format(str),
        Index: Format(str),
        "": Format(str),
    }
    fix = "Give it a name, or a type such as datetime, date or Decimal."
    assert mistakes(thing("T#{thing_id}"), type_attribute=type_attribute, formats=formats) == [
        "the graph: type_attribute=5 is not an attribute name. "
        'Use type_attribute="Type", or leave it out where items do not say their type.',
        "the graph: formats['lower'] is not a Format. "
        "Write Format(render), or Format(render, parse) if it can be read back.",
        f"the graph: formats has 5, which is neither a format name nor a type with a format. {fix}",
        f"the graph: formats has Index, which is neither a format name nor a type with a format. {fix}",
        f"the graph: formats has '', which is neither a format name nor a type with a format. {fix}",
    ]
