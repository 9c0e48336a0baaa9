"""Which attributes a field or an end has alone, which it shares, and which are removed with it."""

from __future__ import annotations

import pytest

from keygraph import ID, Graph, Table, node, record, stored
from keygraph.model.shared_attributes import SharedAttributes


@node("SHOP#{shop_id}")
class Shop:
    shop_id: ID


@node("T#{tenant}#USER#{user_id}", "USER")
class User:
    tenant: ID
    user_id: ID


@node("AREA#{area}#{place}")
class Place:
    area: ID
    place: ID


@record("{owner}", "NOTE#{number}")
class Note:
    owner: User = stored(tenant="tenant", user_id="owner")
    number: int
    reader: User | None = stored(tenant="tenant", user_id="reader")
    reader_id: str | None = stored("reader")
    shop: Shop | None = stored("shop")
    shop_id: str | None = stored("shop")
    sold_by: str | None = stored("seller")
    seller: Shop = stored("seller")
    start: Place | None = stored(area="area", place="start")
    stop: Place | None = stored(area="area", place="stop")
    text: str | None


graph = Graph(Table("Notes", partition_key="PK", sort_key="SK"), Shop, User, Place, Note)


@pytest.fixture(scope="module")
def shared() -> SharedAttributes:
    return SharedAttributes(graph.check().types["Note"])


@pytest.mark.parametrize(
    ("name", "removed"),
    [
        ("text", [("text",)]),
        ("reader", [("reader",)]),
        ("reader_id", [("reader",)]),
        ("shop", [("shop",)]),
        ("shop_id", [("shop",)]),
        ("start", [("start",)]),
        ("sold_by", []),
    ],
)
def test_a_removed_name_takes_what_nothing_else_needs(
    shared: SharedAttributes, name: str, removed: list[tuple[str, ...]]
) -> None:
    assert [*shared.removed_with(name)] == removed


def test_a_change_by_one_name_is_a_change_of_all(shared: SharedAttributes) -> None:
    assert shared.names_at(shared.changed({"reader_id": "1"})) == {"reader", "reader_id"}
    assert shared.names_at(shared.changed({"reader": None})) == {"reader", "reader_id"}
    assert shared.names_at(shared.changed({"start": ("a", "b")})) == {"start", "stop"}
    assert shared.names_at(shared.changed({}, ["text"])) == {"text"}


def test_the_key_determines_what_it_shares(shared: SharedAttributes) -> None:
    assert shared.paths_in_key == {("tenant",)}
    assert [text_of({"tenant": "acme"}) for _, _, text_of in shared.in_key] == ["acme"]
