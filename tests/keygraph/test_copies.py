"""Copies of a node's fields: what an item has of the node at its end, as that was when the item was written."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, copy, edge, node, record
from keygraph.dynamo.store import BatchGet, Query
from keygraph.errors import WriteRefused
from keygraph.writing.requests import (
    Change,
    Create,
    Delete,
    Move,
    OnEdges,
    Put,
    Upsert,
    WriteRequest,
)
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.written import Written

on_engines = pytest.mark.parametrize("engine", ENGINES)
by_rating = Index("by-rating", "gp", "gs")
by_review = Index("by-review", "rp", "rs")


@node("REVIEW#{review_id}")
class Review:
    review_id: ID
    rating: int
    text: str | None = None


@node("PRODUCT#{sku}", "PRODUCT")
class Product:
    sku: ID
    price: int

    shown: Many[Shown]


@record(
    "{product.sku}",
    "SHOWN#{number}",
    by_rating("{product.sku}", "RATING#{rating}#{number}"),
    by_review("{review}", "{number}"),
)
class Shown:
    product: Product
    number: ID
    review: Review | None = None
    rating: int | None = copy("review.rating")
    said: str | None = copy("review.text", "reviewText")


@edge("{review}", "OF#{product.sku}", by_rating("OF#{product.sku}", "{review}"))
class Reviewed:
    review: Review
    product: Product
    price_then: int = copy("product.price")


graph = Graph(
    Table("Shop", partition_key="pk", sort_key="sk", indexes=[by_rating, by_review]),
    Review,
    Product,
    Shown,
    Reviewed,
    type_attribute="kind",
).check()
review, product, shown, reviewed = graph.types.values()


class Shop(Written):
    """A store with a writer, and what is in it."""

    async def shown(self, number: str) -> list[Any]:
        item = await self.item("bell", f"SHOWN#{number}") or {}
        return [item.get(name) for name in ("rating", "reviewText", "gs")]


@pytest.fixture
async def shop(make_store: MakeStore) -> Shop:
    shop = Shop(graph, await make_store(graph.table))
    await shop.write(
        Create(product, {"sku": "bell", "price": 10}),
        Create(review, {"review_id": "a", "rating": 4, "text": "Good."}),
        Create(review, {"review_id": "b", "rating": 2}),
    )
    return shop


def put(number: str, of: str | None) -> Put:
    values = {"product": ("bell",), "number": number, **({"review": (of,)} if of else {})}
    return Put(shown, values)


@on_engines
async def test_a_missing_node_is_one_refusal(shop: Shop) -> None:
    for request in (put("9", "nobody"), Change(shown, ("bell", "1"), {"review": ("nobody",)})):
        await shop.write(put("1", "a"))
        with pytest.raises(WriteRefused) as refused:
            await shop.write(request)
        assert [(each.code, each.path) for each in refused.value.refusals] == [("NOT_FOUND", ("review_id",))]


@on_engines
async def test_a_new_item_has_what_its_node_has(shop: Shop) -> None:
    await shop.write(put("1", "a"), put("2", "b"), put("3", None))
    assert await shop.shown("1") == [4, "Good.", "RATING#4#1"]
    assert await shop.shown("2") == [2, None, "RATING#2#2"]
    assert await shop.shown("3") == [None, None, None]
    page = await shop.store.send(Query("bell", index="by-rating"))
    assert [item["gs"] for item in page.items] == ["RATING#2#2", "RATING#4#1"]


@on_engines
async def test_it_is_as_the_item_was_written_until_its_end_is_given_again(shop: Shop) -> None:
    await shop.write(put("1", "a"))
    await shop.write(Change(review, ("a",), {"rating": 5, "text": None}))
    assert await shop.shown("1") == [4, "Good.", "RATING#4#1"]
    await shop.write(Change(shown, ("bell", "1"), {"review": ("a",)}))
    assert await shop.shown("1") == [5, None, "RATING#5#1"]
    await shop.write(Change(shown, ("bell", "1"), {"review": ("b",)}))
    assert await shop.shown("1") == [2, None, "RATING#2#1"]
    await shop.write(Change(shown, ("bell", "1"), {"review": None}))
    assert await shop.shown("1") == [None, None, None]
    await shop.write(Upsert(shown, {"product": ("bell",), "number": "1", "review": ("a",)}))
    await shop.write(Upsert(shown, {"product": ("bell",), "number": "9", "review": ("a",)}))
    assert await shop.shown("1") == [5, None, "RATING#5#1"]
    assert await shop.shown("9") == [5, None, "RATING#5#9"]


@on_engines
async def test_a_node_of_the_same_transaction_is_copied_as_it_makes_it(shop: Shop) -> None:
    new = Create(review, {"review_id": "c", "rating": 1})
    await shop.write(put("1", "c"), new, put("2", "a"), Change(review, ("a",), {"rating": 3}))
    assert await shop.shown("1") == [1, None, "RATING#1#1"]
    assert await shop.shown("2") == [3, "Good.", "RATING#3#2"]


@on_engines
async def test_an_edge_that_moves_copies_from_its_new_node(shop: Shop) -> None:
    await shop.write(Put(reviewed, {"review": ("a",), "product": ("bell",)}))
    await shop.write(Create(product, {"sku": "lock", "price": 7}))
    await shop.write(Move(reviewed, ("a", "bell"), {"product": ("lock",)}))
    assert (await shop.item("REVIEW#a", "OF#lock") or {})["price_then"] == 7


@on_engines
async def test_what_is_detached_keeps_no_copy(shop: Shop) -> None:
    await shop.write(put("1", "a"))
    [done] = await shop.write(Delete(review, ("a",), on_edges=OnEdges.DETACH))
    assert done.detached == 1
    assert await shop.shown("1") == [None, None, None]


@on_engines
async def test_a_missing_node_is_told_as_one(shop: Shop) -> None:
    with pytest.raises(WriteRefused) as refused:
        await shop.write(Put(reviewed, {"review": ("a",), "product": ("none",)}, ("input",)))
    assert [(each.code, each.message) for each in refused.value.refusals] == [
        ("NOT_FOUND", "product_sku: there is no Product with this key.")
    ]


@on_engines
async def test_a_node_that_changes_meanwhile_is_read_again(make_store: MakeStore) -> None:
    shop = Shop(graph, await make_store(graph.table))
    await shop.write(
        Create(product, {"sku": "bell", "price": 10}), Create(review, {"review_id": "a", "rating": 4})
    )
    send, is_first = shop.store.send, [True]

    async def changing(request: Any) -> Any:
        answer = await send(request)
        if isinstance(request, BatchGet) and is_first.pop() if is_first else False:
            await Shop(graph, shop.store).write(Change(review, ("a",), {"rating": 1}))
        return answer

    class Changing:
        send = staticmethod(changing)

    changing_store: Any = Changing()
    await Shop(graph, changing_store).write(put("1", "a"))
    assert await shop.shown("1") == [1, None, "RATING#1#1"]


def mistakes(value: Any, annotation: str = "int", **options: Any) -> list[str]:
    @node("BOX#{box_id}")
    class Box:
        box_id: ID
        weight: int
        color: str | None = None

    @node("TAG#{tag}", item=False)
    class Tag:
        tag: ID

    @edge(options.get("key", "{box}"), "THING#{other.box_id}", mirror=options.get("mirror", False))
    class Thing:
        box: Box
        other: Box
        tag: Tag | None = None
        copied: ... = value

    Thing.__annotations__["copied"] = annotation
    graph = Graph(Table("Boxes", partition_key="PK", sort_key="SK"), Box, Tag, Thing)
    return [f"{each.problem} {each.fix}" for each in graph.mistakes]


def test_mistakes() -> None:
    assert mistakes(copy("crate.weight")) == [
        "'crate.weight' is no field of the node at an end; its ends: box, other, tag. Write copy(\"an_end.a_field\")."
    ]
    assert mistakes(copy("box.size")) == [
        "Box has no field size. Name a field that is stored in items of Box."
    ]
    assert mistakes(copy("tag.tag"), "str | None") == [
        "Tag has no item. Name a field that is stored in items of Tag."
    ]
    assert mistakes(copy("box.weight"), "str") == [
        "Box.weight is of type int, and this of type string. Give both one type."
    ]
    assert mistakes(copy("box.color"), "str") == [
        "Box.color or box may be absent, and this may not. Annotate it with | None."
    ]
    assert mistakes(copy("box.weight"), mirror=True) == [
        "the other item of a Thing is written with it, and is named by its own ends. Read box.weight instead."
    ]
    assert (
        "it is a part of the key of Thing. Write {box.weight} in the template, or take it out."
        in mistakes(copy("box.weight"), key="{box}#{copied}")
    )


@on_engines
async def test_random_writes_do_what_they_do_to_a_dict(shop: Shop) -> None:
    random, ratings = Random(7), {"a": 4, "b": 2}
    copies: dict[str, int | None] = {}
    for _ in range(80):
        number, of, rating = random.choice("123"), random.choice(["a", "b", None]), random.randrange(1, 6)
        changed = random.choice("ab")
        identity = ("bell", number)
        asked: list[WriteRequest] = [Change(review, (changed,), {"rating": rating})]
        match random.choice(["rate", "put", "both", "change", "upsert", "delete"]):
            case "put":
                asked = [put(number, of)]
            case "both":
                asked.append(put(number, of))
            case "change" if number in copies:
                asked = [Change(shown, identity, {"review": of and (of,)})]
            case "upsert":
                asked = [Upsert(shown, {"product": ("bell",), "number": number, "review": of and (of,)})]
            case "delete" if number in copies:
                asked = [Delete(shown, identity)]
        await shop.write(*asked)
        for each in asked:
            if each.record is review:
                ratings[changed] = rating
        for each in asked:
            if isinstance(each, Delete):
                del copies[number]
            elif each.record is shown:
                copies[number] = ratings[of] if of else None
        there = {each: (await shop.shown(each))[0] for each in "123"}
        assert there == {each: copies.get(each) for each in "123"}
