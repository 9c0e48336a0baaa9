"""Tables for the operations of `bench.operations`, with a known fan-out: items of four of the examples, and of a model
of texts that are drafted and published.

No two items of a list have the same sort key, so a page is the same on every engine. Only in Talent's lists of people,
those with the same level of a skill have equal keys. Which of them a page shows makes no difference here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from keygraph import ID, Graph, Index, Many, One, Table, many, node, one, record
from keygraph.dynamo.items import Item
from keygraph_examples import cargo, commerce, social, talent

SHAPES = ((1, 1, 1), (5, 4, 3), (50, 20, 10))
"""Orders of a user, items of each, categories of each product; similarly in the other models."""

CATEGORIES_IN_USE = 150
"""More than fit in one batch."""
LAMPS = 80
"""More products of a tag than the first request of a filtered list reads."""
PRICED = "2024-12-31T00:00:00Z"
"""Every ordered product has had its first price since then."""


@dataclass(frozen=True)
class World:
    """A model with a table of items."""

    name: str
    graph: Graph
    items: tuple[Item, ...]


def shape_name(shape: tuple[int, int, int]) -> str:
    """Returns a shape as it appears in ids and in the table: `5x4x3`."""
    return "x".join(map(str, shape))


def worlds(shapes: Sequence[tuple[int, int, int]] = SHAPES) -> tuple[World, ...]:
    """Returns every world, newly made; `shapes` are those of the shop's customers."""
    return (
        World("commerce", commerce.graph, tuple(_shop(shapes))),
        World("cargo", cargo.graph, tuple(_harbour())),
        World("talent", talent.graph, tuple(_company())),
        World("social", social.graph, tuple(_friends())),
        World("press", press, tuple(_texts())),
    )


# --- Commerce -----------------------------------------------------------------------------------------


def _shop(shapes: Sequence[tuple[int, int, int]]) -> Iterator[Item]:
    yield from _categories()
    yield _user("seller", 0)
    yield from _lamps()
    for number, shape in enumerate(shapes, 1):
        yield from _customer(number, shape)


def minute(number: int) -> str:
    """Returns times that ascend with the number, a minute apart."""
    day, of_day = divmod(number, 1440)
    month, day = divmod(day, 28)
    return f"2025-{month + 1:02d}-{day + 1:02d}T{of_day // 60:02d}:{of_day % 60:02d}:00Z"


def shop_item(
    kind: str, partition: str, sort: str = "", index: tuple[str, str] | None = None, **more: Any
) -> Item:
    """Returns an item of the shop; without a sort key, it has that of a node."""
    item = {"PK": partition, "SK": sort or partition, "Type": kind, **more}
    return item if index is None else {**item, "GSI1PK": index[0], "GSI1SK": index[1]}


def category_below(parent: str, child: str) -> Item:
    """Returns the edge from a category of the shop to one below it."""
    return shop_item(
        "CategoryChild",
        f"CATEGORY#{parent}",
        f"CHILD#{child}",
        (f"CATEGORY#{child}", f"PARENT#{parent}"),
        parentCategoryId=parent,
        childCategoryId=child,
        childName=child.title(),
        CreatedAt=minute(0),
    )


def _edge(kind: str, one: str, other: str, **more: Any) -> Item:
    return shop_item(kind, one, other, (other, one), **more)


def _category(name: str) -> Item:
    return shop_item("Category", f"CATEGORY#{name}", categoryId=name, name=name.title(), description=name)


def _categories() -> Iterator[Item]:
    for number in range(CATEGORIES_IN_USE):
        yield _category(f"shelf{number:03d}")
    level = ["menu"]
    yield _category("menu")
    for _ in range(4):
        below = [(parent, f"{parent}.{number}") for parent in level for number in range(3)]
        for parent, child in below:
            yield _category(child)
            yield category_below(parent, child)
        level = [child for _, child in below]


def _lamps() -> Iterator[Item]:
    """Products of one tag, each tagged at a different time."""
    for number in range(LAMPS):
        product = f"lamp-{number:03d}"
        key = f"PRODUCT#{product}"
        yield shop_item(
            "Product",
            key,
            # Between the products of the customers.
            index=("PRODUCT", minute(5_000 + number)),
            productId=product,
            name=f"Lamp {number}",
            price=Decimal(number),
            description="gives light",
            sellerId="seller",
        )
        yield _edge(
            "ProductTag", key, "TAG#lamp", productId=product, tagName="lamp", CreatedAt=minute(number)
        )


def _user(user: str, number: int) -> Item:
    return shop_item(
        "User",
        f"USER#{user}",
        index=("USER", minute(number)),
        userId=user,
        name=user.title(),
        email=f"{user}@example.com",
        userType="seller" if user == "seller" else "customer",
    )


def _customer(number: int, shape: tuple[int, int, int]) -> Iterator[Item]:
    """A user with orders, items and categories of this shape, and everything else that a user has."""
    orders, lines, categories = shape
    user = shape_name(shape)
    yield _user(user, number)
    for line in range(orders * lines):
        product = f"{user}-{line:05d}"
        key = f"PRODUCT#{product}"
        yield shop_item(
            "Product",
            key,
            # The shapes' products do not overlap in the list of all.
            index=("PRODUCT", minute(number * 2_000 + line)),
            productId=product,
            name=f"Product {line}",
            price=Decimal(line) / 4,
            description="for sale",
            sellerId="seller",
        )
        for at in range(categories):
            shelf = f"shelf{(line * 7 + at) % CATEGORIES_IN_USE:03d}"
            yield _edge("ProductCategory", key, f"CATEGORY#{shelf}", productId=product, categoryId=shelf)
        yield shop_item(
            "PriceHistory",
            key,
            f"PRICE#{PRICED}",
            productId=product,
            timestamp=PRICED,
            price=Decimal(line) / 8,
        )
        for word in ("new", "round", "blue")[: 1 + line % 3]:
            yield _edge(
                "ProductTag",
                key,
                f"TAG#{word}-{user}",
                productId=product,
                tagName=f"{word}-{user}",
                CreatedAt=minute(line),
            )
    for order in range(orders):
        name, placed = f"{user}-{order:03d}", minute(order)
        yield shop_item(
            "Order",
            f"ORDER#{name}",
            index=(f"USER#{user}", f"ORDER#{placed}"),
            orderId=name,
            customerId=user,
            total=Decimal(lines),
            status="delivered",
            orderDate=placed,
        )
        for line in range(order * lines, (order + 1) * lines):
            product = f"{user}-{line:05d}"
            yield _edge(
                "OrderItem",
                f"ORDER#{name}",
                f"PRODUCT#{product}",
                orderId=name,
                productId=product,
                quantity=Decimal(1),
                unitPrice=Decimal(1),
                totalPrice=Decimal(1),
            )
        yield shop_item(
            "UserActivity",
            f"USER#{user}#SHARD{order % 5}",
            f"ACTIVITY#{1_735_700_000_000 + order:013d}",
            userId=user,
            timestamp=Decimal(1_735_700_000_000 + order),
            action="purchase",
            productId=f"{user}-{order * lines:05d}",
            CreatedAt=placed,
        )
        yield from _review(user, f"{user}-{order:03d}", f"{user}-{order * lines:05d}", placed)


def _review(user: str, review: str, product: str, time: str) -> Iterator[Item]:
    key = f"REVIEW#{review}"
    yield shop_item(
        "Review",
        key,
        reviewId=review,
        customerId=user,
        productId=product,
        rating=Decimal(5),
        comment="as it should be",
        reviewDate=time,
        CreatedAt=time,
    )
    yield _edge("UserReview", f"USER#{user}", key, customerId=user, reviewId=review, CreatedAt=time)
    yield _edge(
        "ProductReview",
        f"PRODUCT#{product}",
        key,
        productId=product,
        reviewId=review,
        rating=Decimal(5),
        CreatedAt=time,
    )


# --- Cargo --------------------------------------------------------------------------------------------


def _harbour() -> Iterator[Item]:
    """Containers with pallets with boxes: one of each, and a fleet."""
    for fleet, (containers, pallets, boxes) in (("S", (1, 1, 1)), ("L", (3, 20, 10))):
        for container in range(containers):
            ship = f"CONTAINER_{fleet}{container:02d}"
            yield _cargo(ship, Operator="TheBoatingCompany")
            for pallet in range(pallets):
                wood = f"PALLET_{fleet}{container:02d}{pallet:03d}"
                yield _cargo(wood, Origin="BR", Destination="DE")
                yield _link(ship, wood)
                for box in range(boxes):
                    card = f"BOX_{fleet}{container:02d}{pallet:03d}{box:03d}"
                    yield _cargo(card, WeightInKg=Decimal(18), IsDangerous=False)
                    yield _link(wood, card)


def _cargo(key: str, **more: Any) -> Item:
    return {"objectId": key, "relatedObjectId": key, **more}


def _link(outer: str, inner: str) -> Item:
    return {
        "objectId": outer,
        "relatedObjectId": inner,
        "LinkedDatetime": "2022-07-19T10:13:12Z",
        "LinkedBy": "MyLoadingCompany",
        "LinkedAtLocation": "JPA.Docks",
    }


# --- Talent -------------------------------------------------------------------------------------------

PEOPLE = 60
SKILLS = 12


def _company() -> Iterator[Item]:
    """People with five skills, two dates and two places each."""
    skills = {number: 1_000 + number for number in range(SKILLS)}
    places = {number: 2_000 + number for number in range(8)}
    days = {number: 3_000 + number for number in range(2 * PEOPLE)}
    for number, skill in skills.items():
        yield _thing(skill, "SKILL", f"Skill {number:02d}")
    for number, place in places.items():
        yield _thing(place, "PLACE", f"USA|WA|City {number}")
    for number, day in days.items():
        yield _thing(day, "DATE", _date(number))
    for person in range(1, PEOPLE + 1):
        yield {**_thing(person, "PERSON", f"Person {person:03d}"), "DataSet": f"NAME|{person % 2}"}
        for at in range(5):
            number = (person + at * 2) % SKILLS
            yield _tie(person, "SKILL", skills[number], "EXPERT", f"Skill {number:02d}", "SKILL", 4)
        for at, occasion in enumerate(("BIRTH", "HIRED")):
            number = 2 * (person - 1) + at
            yield _tie(person, "DATE", days[number], occasion, _date(number), f"DATE|{occasion}", 3)
        for at, bond in enumerate(("BIRTH", "HOME")):
            number = (person + at) % 8
            yield _tie(person, "PLACE", places[number], bond, f"USA|WA|City {number}", "PLACE", 2)


def _date(number: int) -> str:
    return f"19{50 + number % 50}-{1 + number % 12:02d}-{1 + number % 28:02d}"


def _thing(number: int, kind: str, data: str) -> Item:
    return {"NodeId": str(number), "TypeTarget": f"NAME|{number}|{kind}", "Data": data}


def _tie(person: int, kind: str, target: int, way: str, data: str, shelf: str, shards: int) -> Item:
    return {
        "NodeId": str(person),
        "TypeTarget": f"{kind}|{target}|{way}",
        "Type": kind,
        "Target": str(target),
        "Data": data,
        "DataSet": f"{shelf}|{person % shards}",
        "TargetSet": str(person % 4),
    }


# --- Social -------------------------------------------------------------------------------------------

PERSONS = 240
NEAR = 10
"""Everybody is friends with this many people to each side, in a ring."""


def _friends() -> Iterator[Item]:
    for number in range(PERSONS):
        user = f"USER#p{number:03d}"
        yield {"PK": user, "SK": "PROFILE", "name": f"Person {number}"}
        for step in range(1, NEAR + 1):
            for friend in ((number + step) % PERSONS, (number - step) % PERSONS):
                yield {"PK": user, "SK": f"FRIEND#p{friend:03d}", "friendship_since": "2023-01-15"}
        for post in range(5):
            liked = f"LIKES#POST#{(number * 3 + post) % 500:05d}"
            yield {"PK": user, "SK": liked, "timestamp": "2023-01-15T10:00:00Z"}
        followed = f"FOLLOWS#USER#p{(number * 7 + 1) % PERSONS:03d}"
        yield {"PK": user, "SK": followed, "timestamp": "2023-01-15T10:00:00Z"}


# --- Press --------------------------------------------------------------------------------------------

by_section = Index("by_section", "section", "title")


@node("SECTION#{section_id}")
class Section:
    section_id: ID
    name: str

    texts: Many[Text] = many()


@node("TEXT#{text_id}", "DRAFT", by_section("{section}", "{title}"))
class Text:
    """A text in writing, in the same partition as its published version."""

    text_id: ID
    section: Section
    title: str

    published: One[Published] = one()


@record("{text}", "PUBLISHED")
class Published:
    """The published version of a text."""

    text: Text
    version: int


press = Graph(
    Table("Press", partition_key="PK", sort_key="SK", indexes=[by_section]),
    Section,
    Text,
    Published,
    type_attribute="kind",
    writes=True,
)

TEXTS = 20


def _texts() -> Iterator[Item]:
    """A section with texts, every second one of which is published."""
    section = "SECTION#s1"
    yield {"PK": section, "SK": section, "kind": "Section", "section_id": "s1", "name": "News"}
    for number in range(TEXTS):
        text, title = f"TEXT#t{number:02d}", f"Title {number:02d}"
        own = {"text_id": f"t{number:02d}", "section_id": "s1", "title": title, "section": section}
        yield {"PK": text, "SK": "DRAFT", "kind": "Text", **own}
        if number % 2:
            yield {"PK": text, "SK": "PUBLISHED", "kind": "Published", "version": Decimal(number)}
