"""Access paths: how a node reaches many items, found by unification."""

from __future__ import annotations

from datetime import date
from types import ModuleType

import pytest

from keygraph import ID, Many, edge, many, node, record
from keygraph.dynamo.items import Item
from keygraph.lists.query import ListForm
from keygraph.lists.ranges import beginning_with
from keygraph_examples import billing, cargo, commerce, education, social, talent
from tests.keygraph.shown_paths import graph, gsi1, shown, shown_list

# --- Which path ---------------------------------------------------------------------------------------


def test_an_edge_is_found_from_both_ends() -> None:
    @node("ORDER#{order_id}")
    class Order:
        order_id: ID
        items: Many[Line] = many()

    @node("PRODUCT#{product_id}")
    class Product:
        product_id: ID
        orders: Many[Line] = many()

    @edge("{order}", "{product}", gsi1("{product}", "{order}"))
    class Line:
        order: Order
        product: Product

    made = graph(Order, Product, Line)
    assert (
        shown_list(made, "Order", "items")
        == "None order: ORDER#{order.order_id} / PRODUCT# + {product.product_id}"
    )
    assert shown_list(made, "Product", "orders") == (
        "GSI1 product: PRODUCT#{product.product_id} / ORDER# + {order.order_id}"
    )
    items = made.node_lists["Order", "items"]
    assert (items.far_end, items.nodes) == ("product", (made.types["Product"],))
    assert ListForm(made, items).of(("1",)).partitions == ("ORDER#1",)
    assert ListForm(made, items).of(("1",)).reading.span == beginning_with("PRODUCT#")


@pytest.mark.parametrize("listed_first", ["index", "table"])
def test_the_table_comes_before_its_indexes(listed_first: str) -> None:
    @node("USER#{user_id}")
    class User:
        user_id: ID
        notes: Many[Note] = many()
        by_index: Many[Note] = many(index=gsi1)

    @record("{user}", "NOTE#{note_id}", gsi1("{user}", "{note_id}"))
    class Note:
        user: User
        note_id: ID

    made = graph(*((User, Note) if listed_first == "table" else (Note, User)))
    assert shown_list(made, "User", "notes") == "None user: USER#{user.user_id} / NOTE# + {note_id}"
    assert shown_list(made, "User", "by_index") == "GSI1 user: USER#{user.user_id} /  + {note_id}"


def test_the_table_may_be_chosen() -> None:
    @node("FLEET#{fleet_id}")
    class Fleet:
        fleet_id: ID
        devices: Many[Device] = many()
        in_region: Many[Device] = many(index=None)

    @record("{fleet}#{region}", "DEVICE#{serial}", gsi1("{fleet}", "{serial}"))
    class Device:
        fleet: Fleet
        region: str
        serial: ID

    made = graph(Fleet, Device)
    assert shown_list(made, "Fleet", "devices") == "GSI1 fleet: FLEET#{fleet.fleet_id} /  + {serial}"
    assert (
        shown_list(made, "Fleet", "in_region")
        == "None fleet: FLEET#{fleet.fleet_id}#{region} / DEVICE# + {serial}"
    )
    assert [argument.name for argument in made.node_lists["Fleet", "in_region"].required] == ["region"]


def test_at_chooses_the_end() -> None:
    @node("CATEGORY#{category_id}")
    class Category:
        category_id: ID
        children: Many[Below] = many(at="parent")
        parents: Many[Below] = many(at="child")

    @edge("{parent}", "CHILD#{child.category_id}", gsi1("{child}", "PARENT#{parent.category_id}"))
    class Below:
        parent: Category
        child: Category

    made = graph(Category, Below)
    assert shown_list(made, "Category", "children") == (
        "None parent: CATEGORY#{parent.category_id} / CHILD# + {child.category_id}"
    )
    assert shown_list(made, "Category", "parents") == (
        "GSI1 child: CATEGORY#{child.category_id} / PARENT# + {parent.category_id}"
    )
    assert made.node_lists["Category", "parents"].far_end == "parent"


def test_the_node_may_stand_in_the_sort_key() -> None:
    @node("PLACE#{place_id}")
    class Place:
        place_id: ID
        residents: Many[Person] = many()

    @node("PERSON#{person_id}", gsi1("{shard}", "PLACE|{place.place_id}|{name}", shards=3))
    class Person:
        person_id: ID
        place: Place
        name: str

    made = graph(Place, Person)
    path = made.node_lists["Place", "residents"]
    assert shown(path) == "GSI1 place: {shard} / PLACE|{place.place_id}| + {name}"
    assert path.required == ()
    found = ListForm(made, path).of(("3",))
    assert found.partitions == ("0", "1", "2")
    assert found.reading.span == beginning_with("PLACE|3|")
    assert not found.reading.span.contains("PLACE|30|Ann")


def test_an_optional_part_after_the_value() -> None:
    @node("PLACE#{place_id}")
    class Place:
        place_id: ID
        things: Many[Thing] = many()

    @node("|ROOM#{room_id}")
    class Room:
        room_id: ID

    @node("THING#{thing_id}", gsi1("THINGS", "{place}{room?}"))
    class Thing:
        thing_id: ID
        place: Place
        room: Room | None

    made = graph(Place, Room, Thing)
    things = ListForm(made, made.node_lists["Place", "things"]).of(("3",))

    def item(sort_key: str) -> Item:
        return {"PK": "THING#1", "SK": "THING#1", "Type": "Thing", "GSI1PK": "THINGS", "GSI1SK": sort_key}

    assert things.covers(item("PLACE#3"))
    assert things.covers(item("PLACE#3|ROOM#1"))
    assert not things.covers(item("PLACE#30"))
    assert not things.included([item("PLACE#30")])


def test_a_key_field_in_two_formats_is_one_field() -> None:
    @node("MONTH#{day:%Y-%m}", "DAY#{day}")
    class Day:
        day: date
        events: Many[Event] = many()

    @record("EVENTS#{day.day}", "{event_id}")
    class Event:
        day: Day
        event_id: ID

    made = graph(Day, Event)
    path = made.node_lists["Day", "events"]
    assert ListForm(made, path).of(("2024-02", "2024-02-29")).partitions == ("EVENTS#2024-02-29",)
    assert made.types["Event"].leaf_name(("day", "day")) == "day"


# --- Ends -----------------------------------------------------------------------------------------------


def test_key_fields_of_an_end_have_names_of_their_own() -> None:
    @node("{name}", "TAG#{tag_name}")
    class Tag:
        name: str
        tag_name: str

    @record("{tag.name}", "USE#{tag.tag_name}")
    class Use:
        tag: Tag

    use = graph(Tag, Use).types["Use"]
    assert [use.leaf_name(slot.path) for slot in use.identity] == ["tag_name", "tag_tag_name"]
    assert {*use.ends["tag"].attributes.values()} == {("tag_name",), ("tag_tag_name",)}


@pytest.mark.parametrize("model", [billing, cargo, commerce, education, social, talent])
def test_the_partition_of_an_owner_is_written_as_it_is_rendered(model: ModuleType) -> None:
    written = 0
    for path in model.graph.node_lists.values():
        identity = tuple(slot.text.shortest[0] for slot in path.owner.identity)
        write = path.partition_writer({})
        if write is not None:
            texts = path.texts_of_owner(identity)
            assert write(identity) == model.graph.render(path.record, path.keys, 0, texts), path
            written += 1
    assert written
