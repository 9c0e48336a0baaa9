"""A model whose lists are of several types, in the table and in indexes of every kind, with siblings between them."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from keygraph import ID, Graph, Index, Many, Table, edge, many, node, record, ttl
from keygraph.dynamo.items import Item

by_owner = Index("ByOwner", "OwnerPK", "OwnerSK")
by_time = Index("ByTime", "TimePK", "TimeSK")
slim = Index("Slim", "SlimPK", "SlimSK", projection=["Type", "word"])
by_number = Index("ByNumber", "NumberPK", ("NumberSK", "N"))


@node("USER#{user_id}", gather=True)
class User:
    user_id: ID
    name: str

    activity: Many[Order | Review] = many()
    """What they have bought and said."""
    orders: Many[Order] = many()
    posted: Many[Post | Photo] = many()
    things: Many[Follow | Message | Draft] = many(at="user")
    follows: Many[Follow] = many(at="user")
    numbered: Many[Score | Step] = many(index=by_number)


@node(
    "ORDER#{order_id}",
    by_owner("{customer}", "ORDER#{ordered:%Y-%m-%d}"),
    slim("LATEST", "{order_id}", lists=False),
)
class Order:
    order_id: ID
    customer: User
    ordered: date
    total: int | None
    word: str | None

    contents: Many[OrderItem | Parcel] = many()


@node(
    "REVIEW#{review_id}", by_owner("{author}", "REVIEW#{stars}"), slim("LATEST", "{review_id}", lists=False)
)
class Review:
    review_id: ID
    author: User
    stars: int
    word: str | None
    text: str


@node("LIKE#{like_id}", by_owner("{user}", "ORDERLY#{like_id}"))
class Like:
    """Stands between orders and reviews."""

    like_id: ID
    user: User


@edge("{order}", "ITEM#{product.product_id}")
class OrderItem:
    order: Order
    product: Product
    quantity: int


@node("PRODUCT#{product_id}")
class Product:
    product_id: ID
    title: str


@record("{order}", "PARCEL#{number:02d}")
class Parcel:
    order: Order
    number: int
    sent: date | None


@edge("{user}", "FOLLOW#{followed}")
class Follow:
    user: User
    followed: User
    since: date


@record("{user}", "MESSAGE#{at}")
class Message:
    user: User
    at: datetime
    text: str
    until: datetime | None = ttl("expires")


@record("{user}", "DRAFT#{at}")
class Draft:
    user: User
    at: datetime
    text: str


@record("{user}", "NOTE#{at}")
class Note:
    """Stands among them too."""

    user: User
    at: datetime


@record(
    "POST#{post_id}",
    "POST",
    by_time("{user}", "{at}#POST#{post_id}"),
    by_owner("FEED#{day}#{shard}", "{at}", shards=3, lists=False),
)
class Post:
    post_id: ID
    user: User
    at: datetime
    day: date
    text: str


@record(
    "PHOTO#{photo_id}",
    "PHOTO",
    by_time("{user}", "{at}#PHOTO#{photo_id}"),
    by_owner("FEED#{day}#{shard}", "{at}", shards=3, lists=False),
)
class Photo:
    photo_id: ID
    user: User
    at: datetime
    day: date
    url: str


@record("SCORE#{score_id}", "SCORE", by_number("{user}", "{points}"))
class Score:
    score_id: ID
    user: User
    points: int


@record("STEP#{step_id}", "STEP", by_number("{user}", "{steps}"))
class Step:
    step_id: ID
    user: User
    steps: int


TYPES = (
    User,
    Order,
    Review,
    Like,
    OrderItem,
    Product,
    Parcel,
    Follow,
    Message,
    Draft,
    Note,
    Post,
    Photo,
    Score,
    Step,
)


def graph(type_attribute: str | None) -> Graph:
    return Graph(
        Table("Several", partition_key="PK", sort_key="SK", indexes=[by_owner, by_time, slim, by_number]),
        *TYPES,
        attribute_case="camel",
        writes=True,
        type_attribute=type_attribute,
        lists={
            "feed": many(Post | Photo, index=by_owner),
            "latest": many(Order | Review, index=slim),
            "orders_by_id": many(Order, index=slim),
        },
        explore=True,
    )


several = graph("Type")
told_by_keys_alone = graph(None)
"""Whose items say no type: what the store cannot filter by type is decided when it has come."""


def _item(type_: str, pk: str, sk: str = "", **fields: object) -> Item:
    return {"PK": pk, "SK": sk or pk, "Type": type_, **fields}  # type: ignore[dict-item]  # values of items


def user_item(user: str) -> Item:
    return _item("User", f"USER#{user}", userId=user, name=f"Name of {user}")


def order_item(order: str, user: str, day: str, **fields: object) -> Item:
    keys = {"OwnerPK": f"USER#{user}", "OwnerSK": f"ORDER#{day}", "SlimPK": "LATEST", "SlimSK": order}
    return _item(
        "Order",
        f"ORDER#{order}",
        orderId=order,
        customer=user,
        customerId=user,
        ordered=day,
        **keys,
        **fields,
    )


def review_item(review: str, user: str, stars: int, **fields: object) -> Item:
    keys = {"OwnerPK": f"USER#{user}", "OwnerSK": f"REVIEW#{stars}", "SlimPK": "LATEST", "SlimSK": review}
    told = {"reviewId": review, "authorId": user, "stars": Decimal(stars), "text": f"Text of {review}"}
    return _item("Review", f"REVIEW#{review}", **told, **keys, **fields)


def like_item(like: str, user: str) -> Item:
    keys = {"OwnerPK": f"USER#{user}", "OwnerSK": f"ORDERLY#{like}"}
    return _item("Like", f"LIKE#{like}", likeId=like, userId=user, **keys)


def order_line(order: str, product: str, quantity: int) -> Item:
    told = {"orderId": order, "productId": product, "quantity": Decimal(quantity)}
    return _item("OrderItem", f"ORDER#{order}", f"ITEM#{product}", **told)


def parcel_item(order: str, number: int) -> Item:
    return _item("Parcel", f"ORDER#{order}", f"PARCEL#{number:02d}", orderId=order, number=Decimal(number))


def product_item(product: str) -> Item:
    return _item("Product", f"PRODUCT#{product}", productId=product, title=f"Title of {product}")


def follow_item(user: str, followed: str) -> Item:
    told = {"userId": user, "followedId": followed, "since": "2024-01-01"}
    return _item("Follow", f"USER#{user}", f"FOLLOW#USER#{followed}", **told)


def record_item(type_: str, user: str, at: str, **fields: object) -> Item:
    """A message, a draft or a note."""
    return _item(
        type_, f"USER#{user}", f"{type_.upper()}#{at}", userId=user, at=at, text=f"At {at}", **fields
    )


def fed_item(type_: str, key: str, user: str, at: str, shard: int) -> Item:
    """A post or a photo."""
    name, day = type_.lower(), at[:10]
    keys = {
        "TimePK": f"USER#{user}",
        "TimeSK": f"{at}#{name.upper()}#{key}",
        "OwnerPK": f"FEED#{day}#{shard}",
        "OwnerSK": at,
    }
    told = {
        f"{name}Id": key,
        "userId": user,
        "at": at,
        "day": day,
        "text" if type_ == "Post" else "url": f"Of {key}",
    }
    return _item(type_, f"{name.upper()}#{key}", name.upper(), **told, **keys)


def numbered_item(type_: str, key: str, user: str, number: int) -> Item:
    """A score or steps."""
    name, field = type_.lower(), "points" if type_ == "Score" else "steps"
    keys = {"NumberPK": f"USER#{user}", "NumberSK": Decimal(number)}
    told = {f"{name}Id": key, "userId": user, field: Decimal(number)}
    return _item(type_, f"{name.upper()}#{key}", name.upper(), **told, **keys)


def several_items() -> list[Item]:
    """Two users with everything, and one with nothing."""
    items = [*map(user_item, ["ann", "bob", "cid"]), *map(product_item, "pqr")]
    items += [follow_item(*pair) for pair in (("ann", "bob"), ("ann", "gone"), ("bob", "ann"))]
    for user, other in (("ann", 0), ("bob", 50)):
        for n in range(4):
            at = f"2024-01-0{n + 1}T10:00:00Z"
            words = {"word": "ab"[n % 2]}
            items.append(order_item(f"o{n + other}", user, at[:10], total=Decimal(n), **words))
            items.append(review_item(f"r{n + other}", user, n % 3, **words))
            items.append(like_item(f"l{n + other}", user))
            items += [order_line(f"o{n + other}", product, n) for product in "pqr"[:n]]
            items += [parcel_item(f"o{n + other}", number) for number in range(n)]
            items += [record_item(type_, user, at) for type_ in ("Message", "Draft", "Note")]
            items += [fed_item(type_, f"{n + other}", user, at, n % 3) for type_ in ("Post", "Photo")]
            items += [
                numbered_item(type_, f"{n + other}", user, n % 3 + other) for type_ in ("Score", "Step")
            ]
    return items
