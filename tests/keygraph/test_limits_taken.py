"""What is just inside DynamoDB's limits: every engine takes it, and gives it back as it was."""

from __future__ import annotations

from decimal import Decimal

import pytest

from keygraph.dynamo.conditions import And, Condition, Eq, Exists, In, Not, Or
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import (
    BatchGet,
    Count,
    Query,
    Scan,
    Within,
)
from keygraph.errors import BadUserInput
from tests.conftest import MakeStore, on_exact_engines
from tests.keygraph.limits import (
    KB,
    TABLE,
    any_of,
    nested,
    sized,
)

WRITTEN: dict[str, Item] = {
    "a partition key of 2,048 bytes": {"PK": "é" * 1024, "SK": "s"},
    "a sort key of 1,024 bytes": {"PK": "p", "SK": "é" * 512},
    "an index partition key of 2,048 bytes, without its sort key": {"PK": "p", "SK": "s", "kind": "x" * 2048},
    "an index sort key of 1,024 bytes": {"PK": "p", "SK": "s", "place": "x" * 2048, "town": "x" * 1024},
    "38 digits": {"PK": "p", "SK": "s", "a": Decimal("-" + "9" * 38)},
    "the largest number": {"PK": "p", "SK": "s", "a": Decimal("9." + "9" * 37 + "E+125")},
    "the smallest number": {"PK": "p", "SK": "s", "a": Decimal("1E-130")},
    "38 digits of the smallest number": {"PK": "p", "SK": "s", "a": Decimal("-1." + "2" * 37 + "E-130")},
    "numbers as index keys": {"PK": "p", "SK": "s", "kind": "k", "mark": Decimal("-9." + "9" * 37 + "E+125")},
    "31 lists and maps in one another": {"PK": "p", "SK": "s", "a": nested(31)},
    "31 of which the innermost is empty": {"PK": "p", "SK": "s", "a": nested(30, {})},
    "a set in 31 lists and maps": {"PK": "p", "SK": "s", "a": nested(31, frozenset({"x"}))},
    "a name of 65,535 bytes": {"PK": "p", "SK": "s", "x" * 65535: "a"},
    "empty values": {
        "PK": "p",
        "SK": "s",
        "text": "",
        "binary": b"",
        "list": [],
        "map": {},
        "in a set": frozenset({""}),
        "in a list": ["", b"", [], {}],
    },
    "400 KB": sized(400 * KB),
    "400 KB in a global index too": sized(400 * KB, kind="k", mark=Decimal(1)),
    "400 KB with its entry in a local index": sized(400 * KB - (3 + 4 + 5), day="d", name="n"),
}


@on_exact_engines
@pytest.mark.parametrize("item", WRITTEN.values(), ids=WRITTEN)
async def test_the_largest_items_are_written_and_read(make_store: MakeStore, item: Item) -> None:
    store = await make_store(TABLE, item)
    assert (await store.send(BatchGet((TABLE.key_of(item),)))).items == [item]
    assert (await store.send(Scan())).items == [item]


@on_exact_engines
@pytest.mark.parametrize(
    "filter_",
    [
        any_of(150),
        And((Not(Exists(("b",))), any_of(149))),
        In(("a",), tuple(map(Decimal, range(591)))),
        Or((Exists(("a",) * 32), Eq(("a",), Decimal(120)))),
    ],
    ids=["300 operators", "300 operators, some of them NOT", "4,091 bytes", "32 levels"],
)
async def test_the_largest_filters_are_answered(make_store: MakeStore, filter_: Condition) -> None:
    item: Item = {"PK": "p", "SK": "s", "a": Decimal(120)}
    store = await make_store(TABLE, item, {**item, "SK": "t", "a": Decimal(-1)})
    assert (await store.send(Query("p", filter=filter_))).items == [item]
    assert (await store.send(Count("p", filter=filter_))).count == 1


@on_exact_engines
async def test_a_filter_is_measured_behind_the_keys(make_store: MakeStore) -> None:
    store = await make_store(TABLE)
    # 4,094 bytes, and 4,098 where two placeholders of the range come before its own.
    filter_ = In(("a", "b"), tuple(map(Decimal, range(588))))
    assert (await store.send(Query("p", filter=filter_))).items == []
    with pytest.raises(BadUserInput, match="too many conditions or values"):
        await store.send(Query("p", range=Within("a", "b"), filter=filter_))
