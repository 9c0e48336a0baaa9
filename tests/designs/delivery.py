"""Restaurants with menus in sections, orders through their states, couriers with at most one job, and carts that expire.

After published designs of food delivery: the state is in a sparse index's key, and whoever writes it moves the order there.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import Enum

from keygraph import (
    ID,
    JSON,
    ULID,
    Epoch,
    Format,
    Graph,
    Index,
    Many,
    One,
    Table,
    copy,
    counts,
    field,
    many,
    node,
    one,
    record,
    rule,
    stored,
    sums,
    ttl,
    updated,
    version,
)

feed = Index("Feed", "FeedHash", "FeedRange")
by_price = Index("ByPrice", "Hash", ("Price", "N"), local=True)
jobs = Index("Jobs", ("CourierNo", "N"), "Due")
stars = Index("Stars", "Zone", ("StarsSum", "N"), projection=["Title", "Open"])


class State(Enum):
    PLACED = "P"
    COOKING = "C"
    ON_ITS_WAY = "W"
    DELIVERED = "D"


@node("RST::{restaurant_id}", "A", stars(lists="best_in"))
class Restaurant:
    restaurant_id: ID
    title: str
    zone: str
    open: bool = False
    hours: JSON | None
    menu: Many[Dish] = many(index=None)
    by_price: Many[Dish] = many(index=by_price)
    kitchen: Many[Order]
    reviews: Many[Review]
    reviews_count: int = counts("reviews")
    stars_sum: int = sums("reviews.stars")


@node("{restaurant}", "DISH::{section?}::{code}")
class Dish:
    restaurant: Restaurant
    section: str | None
    code: ID
    name: str
    price: Decimal
    stock: int | None


@node("CST::{customer_no}", "A")
class Customer:
    customer_no: int
    name: str
    addresses: Many[Address]
    orders: Many[Order]
    cart: One[Cart] = one()


@record("{customer}", "ADR::{label}")
class Address:
    customer: Customer
    label: str
    street: str = stored("At", "Street")
    floor: int | None = stored("At", "Floor")


@record("{customer}", "CART")
class Cart:
    customer: Customer
    restaurant: Restaurant
    dishes: list[str] = stored(default=[])
    until: datetime = ttl("Gone")


@node("CRR::{courier_no}", "A")
class Courier:
    courier_no: int
    job: One[Order] = one(index=jobs)
    jobs: Many[Order] = many(index=jobs)


@node(
    "{customer}",
    "ORD::{order_id}",
    feed("{restaurant}", "{queue}"),
    check=[
        rule(
            {"or": [{"state": {"ne": State.ON_ITS_WAY}}, {"due": {"exists": True}}]},
            "What is on its way is due.",
        )
    ],
)
class Order:
    customer: Customer
    order_id: ULID
    restaurant: Restaurant
    title: str = copy("restaurant.title")
    state: State = State.PLACED
    courier: Courier | None
    due: datetime | None
    total: Decimal = Decimal(0)
    changed: datetime = updated()
    revision: int = version()
    lines: Many[Line]
    lines_total: Decimal = sums("lines.amount")

    @field(needs=("state", "order_id"))
    def queue(self) -> str | None:
        """Where the kitchen finds it, by state and age."""
        return None if self.state is State.DELIVERED else f"{self.state.value}::{self.order_id}"


@record("LINES::{order.customer.customer_no}::{order.order_id}", "{number:02d}")
class Line:
    order: Order = stored(customer_no="CustomerNo", order_id="OrderId")
    number: int
    dish: str
    amount: Decimal


@record("{restaurant}", "REVIEW::{at:newest}::{customer.customer_no}")
class Review:
    restaurant: Restaurant
    customer: Customer
    at: datetime
    stars: int
    text: str | None


graph = Graph(
    Table("Delivery", partition_key="Hash", sort_key="Range", indexes=[feed, by_price, jobs, stars]),
    Restaurant,
    Dish,
    Customer,
    Address,
    Cart,
    Courier,
    Order,
    Line,
    Review,
    attribute_case="pascal",
    formats={"newest": Format.reversed(9_999_999_999_999, of=Epoch("ms"))},
    writes=True,
)

ITEMS = """
{"Hash": "RST::roma", "Range": "A", "Title": "Roma", "Zone": "north", "Open": true, "Hours": {"mon": [11.5, 22]}, "ReviewsCount": 2, "StarsSum": 9}
{"Hash": "RST::thai", "Range": "A", "Title": "Thai", "Zone": "north", "ReviewsCount": 0, "StarsSum": 0}
{"Hash": "RST::roma", "Range": "DISH::mains::d1", "Name": "Pasta", "Price": 9.5, "Stock": 2}
{"Hash": "RST::roma", "Range": "DISH::mains::d2", "Name": "Pizza", "Price": 12.25}
{"Hash": "RST::roma", "Range": "DISH::::d9", "Name": "Water", "Price": 1}
{"Hash": "CST::7", "Range": "A", "Name": "Ada"}
{"Hash": "CST::70", "Range": "A", "Name": "Ben"}
{"Hash": "CST::7", "Range": "ADR::home", "At": {"Street": "Main 1", "Floor": 2}}
{"Hash": "CST::7", "Range": "ADR::work", "At": {"Street": "Dock 4"}}
{"Hash": "CST::7", "Range": "CART", "RestaurantId": "roma", "Dishes": ["d1"], "Gone": 4102444800}
{"Hash": "CST::70", "Range": "CART", "RestaurantId": "roma", "Dishes": ["d2"], "Gone": 1700000000}
{"Hash": "CRR::1", "Range": "A"}
{"Hash": "CRR::2", "Range": "A"}
{"Hash": "CST::7", "Range": "ORD::01HWRQ6W00J3ZM8QK6Y0W5T2AB", "RestaurantId": "roma", "Title": "Roma", "State": "D", "CourierNo": 1, "Due": "2024-05-01T00:40:00Z", "Total": 9.5, "LinesTotal": 9.5, "Changed": "2024-05-01T00:35:00Z", "Revision": 4}
{"Hash": "CST::7", "Range": "ORD::01HZ8V3K00J3ZM8QK6Y0W5T2AB", "FeedHash": "RST::roma", "FeedRange": "W::01HZ8V3K00J3ZM8QK6Y0W5T2AB", "RestaurantId": "roma", "Title": "Roma", "State": "W", "CourierNo": 1, "Due": "2024-05-20T12:40:00Z", "Total": 21.75, "LinesTotal": 21.75, "Changed": "2024-05-20T12:10:00Z", "Revision": 3}
{"Hash": "CST::70", "Range": "ORD::01HZ8V3KZZJ3ZM8QK6Y0W5T2AB", "FeedHash": "RST::roma", "FeedRange": "P::01HZ8V3KZZJ3ZM8QK6Y0W5T2AB", "RestaurantId": "roma", "Title": "Roma", "State": "P", "Total": 1, "LinesTotal": 1, "Changed": "2024-05-20T12:10:00Z", "Revision": 1}
{"Hash": "LINES::7::01HZ8V3K00J3ZM8QK6Y0W5T2AB", "Range": "01", "Dish": "d1", "Amount": 9.5}
{"Hash": "LINES::7::01HZ8V3K00J3ZM8QK6Y0W5T2AB", "Range": "02", "Dish": "d2", "Amount": 12.25}
{"Hash": "LINES::7::01HWRQ6W00J3ZM8QK6Y0W5T2AB", "Range": "01", "Dish": "d1", "Amount": 9.5}
{"Hash": "LINES::70::01HZ8V3KZZJ3ZM8QK6Y0W5T2AB", "Range": "01", "Dish": "d9", "Amount": 1}
{"Hash": "RST::roma", "Range": "REVIEW::8285478399999::7", "Stars": 4}
{"Hash": "RST::roma", "Range": "REVIEW::8285391999999::7", "Stars": 5, "Text": "again"}
"""

ASKED = """
The menu by sections, what has no section, and the cheapest
{ restaurant(restaurantId: "roma") { title open hours menu(section: {eq: "mains"}) { nodes { name price } } none: menu(section: {eq: null}) { nodes { code } } byPrice(price: {to: "10"}) { nodes { name section } } } }
{"restaurant": {"title": "Roma", "open": true, "hours": {"mon": [11.5, 22]}, "menu": {"nodes": [{"name": "Pasta", "price": "9.5"}, {"name": "Pizza", "price": "12.25"}]}, "none": {"nodes": [{"code": "d9"}]}, "byPrice": {"nodes": [{"name": "Water", "section": null}, {"name": "Pasta", "section": "mains"}]}}}

A dish by its key, with and without a section
{ dish(restaurantId: "roma", section: "mains", code: "d1") { name } water: dish(restaurantId: "roma", code: "d9") { name } }
{"dish": {"name": "Pasta"}, "water": {"name": "Water"}}

A customer with addresses and what is in the cart
{ customer(customerNo: 7) { name addresses { nodes { label street floor } } cart { dishes restaurant { title } } } ben: customer(customerNo: 70) { cart { dishes } } }
{"customer": {"name": "Ada", "addresses": {"nodes": [{"label": "home", "street": "Main 1", "floor": 2}, {"label": "work", "street": "Dock 4", "floor": null}]}, "cart": {"dishes": ["d1"], "restaurant": {"title": "Roma"}}}, "ben": {"cart": null}}

The orders of a customer since a day, newest first
{ customer(customerNo: 7) { orders(orderId: {fromTime: "2024-05-10T00:00:00Z"}, direction: DESC) { nodes { title state total lines { nodes { number dish amount } } } } } }
{"customer": {"orders": {"nodes": [{"title": "Roma", "state": "ON_ITS_WAY", "total": "21.75", "lines": {"nodes": [{"number": 1, "dish": "d1", "amount": "9.5"}, {"number": 2, "dish": "d2", "amount": "12.25"}]}}]}}}

What the kitchen has to do, the oldest first
{ restaurant(restaurantId: "roma") { kitchen(queue: {beginsWith: "P::"}) { nodes { orderId customer { name } } } on: kitchen { totalCount } } }
{"restaurant": {"kitchen": {"nodes": [{"orderId": "01HZ8V3KZZJ3ZM8QK6Y0W5T2AB", "customer": {"name": "Ben"}}]}, "on": {"totalCount": 2}}}

The orders of a courier that are due in an hour
{ courier(courierNo: 1) { jobs(due: {from: "2024-05-20T12:00:00Z", to: "2024-05-20T13:00:00Z"}) { nodes { due customer { addresses(label: {eq: "home"}) { nodes { street } } } } } } two: courier(courierNo: 2) { job { total } } }
{"courier": {"jobs": {"nodes": [{"due": "2024-05-20T12:40:00Z", "customer": {"addresses": {"nodes": [{"street": "Main 1"}]}}}]}}, "two": {"job": null}}

The restaurants of a zone with most stars, and those that are open
{ bestIn(zone: "north", direction: DESC) { nodes { title starsSum reviewsCount } } bestOpen: bestIn(zone: "north", where: {open: {eq: true}}) { nodes { restaurantId } } }
{"bestIn": {"nodes": [{"title": "Roma", "starsSum": 9, "reviewsCount": 2}, {"title": "Thai", "starsSum": 0, "reviewsCount": 0}]}, "bestOpen": {"nodes": [{"restaurantId": "roma"}]}}

The newest reviews
{ restaurant(restaurantId: "roma") { reviews(first: 1) { totalCount nodes { at stars text } } old: reviews(at: {to: "2024-05-01T12:00:00Z"}) { nodes { stars } } } }
{"restaurant": {"reviews": {"totalCount": 2, "nodes": [{"at": "2024-05-02T00:00:00Z", "stars": 5, "text": "again"}]}, "old": {"nodes": [{"stars": 4}]}}}

All restaurants that have a dish
{ restaurantsWith(dish: "Pasta") { nodes { title } } }
No key has the name of a dish: a search engine that follows the stream finds it.
"""

WRITES = """
An order with its lines, while there is enough
mutation { write(input: {actions: [{createOrder: {customerNo: 7, orderId: "01J00000000000000000000000", restaurantId: "roma", total: "19", lines: [{number: 1, dish: "d1", amount: "9.5"}, {number: 2, dish: "d1", amount: "9.5"}]}}, {updateDish: {restaurantId: "roma", section: "mains", code: "d1", add: {stock: -2}}}, {deleteCart: {customerNo: 7}}]}) { clientMutationId } }
{ order(customerNo: 7, orderId: "01J00000000000000000000000") { title linesTotal revision } restaurant(restaurantId: "roma") { kitchen(queue: {beginsWith: "P::"}) { totalCount } } customer(customerNo: 7) { cart { dishes } } dish(restaurantId: "roma", section: "mains", code: "d1") { stock } }
{"order": {"title": "Roma", "linesTotal": "19", "revision": 1}, "restaurant": {"kitchen": {"totalCount": 2}}, "customer": {"cart": null}, "dish": {"stock": 0}}

A courier takes it without a time
mutation { updateOrder(input: {customerNo: 7, orderId: "01J00000000000000000000000", courierNo: 2, state: ON_ITS_WAY}) { order { state } } }
What is on its way is due.

And with one
mutation { updateOrder(input: {customerNo: 7, orderId: "01J00000000000000000000000", courierNo: 2, state: ON_ITS_WAY, due: "2024-06-01T10:00:00.250Z", expectedVersion: 1}) { order { revision courier { job { orderId } } } } }
{ courier(courierNo: 2) { jobs(due: {from: "2024-06-01T10:00:00Z", to: "2024-06-01T10:00:00.3Z"}) { nodes { due state } } none: jobs(due: {from: "2024-06-01T10:00:00.3Z"}) { totalCount } } restaurant(restaurantId: "roma") { kitchen(queue: {beginsWith: "W::"}) { totalCount } } }
{"courier": {"jobs": {"nodes": [{"due": "2024-06-01T10:00:00.250Z", "state": "ON_ITS_WAY"}]}, "none": {"totalCount": 0}}, "restaurant": {"kitchen": {"totalCount": 2}}}

Two couriers take it at once: the second is late
mutation { updateOrder(input: {customerNo: 7, orderId: "01J00000000000000000000000", courierNo: 1, expectedVersion: 1}) { order { revision } } }
This Order has changed: its version is 2.

It is delivered: neither the kitchen nor the courier has it
mutation { updateOrder(input: {customerNo: 7, orderId: "01J00000000000000000000000", state: DELIVERED, due: null}) { order { queue due } } }
{ courier(courierNo: 2) { jobs { totalCount } } restaurant(restaurantId: "roma") { kitchen { totalCount } } customer(customerNo: 7) { orders(last: 1) { nodes { state courier { courierNo } } } } }
{"courier": {"jobs": {"totalCount": 0}}, "restaurant": {"kitchen": {"totalCount": 2}}, "customer": {"orders": {"nodes": [{"state": "DELIVERED", "courier": {"courierNo": 2}}]}}}

A line is corrected, and one is added
mutation { one: updateLine(input: {order: {customerNo: 7, orderId: "01J00000000000000000000000"}, number: 2, amount: "8.05"}) { line { amount } } two: putLine(input: {order: {customerNo: 7, orderId: "01J00000000000000000000000"}, number: 3, dish: "d9", amount: "1"}) { created } }
{ order(customerNo: 7, orderId: "01J00000000000000000000000") { linesTotal lines { aggregate { sum(field: AMOUNT) } } } }
{"order": {"linesTotal": "18.55", "lines": {"aggregate": {"sum": "18.55"}}}}

A dish goes to another section, and one loses it
mutation { one: moveDish(input: {restaurantId: "roma", code: "d9", to: {section: "drinks"}}) { dish { section price } } two: moveDish(input: {restaurantId: "roma", section: "mains", code: "d2", to: {section: null}}) { dish { section } } }
{ restaurant(restaurantId: "roma") { menu { nodes { section code } } byPrice(direction: DESC, first: 1) { nodes { code section } } } }
{"restaurant": {"menu": {"nodes": [{"section": null, "code": "d2"}, {"section": "drinks", "code": "d9"}, {"section": "mains", "code": "d1"}]}, "byPrice": {"nodes": [{"code": "d2", "section": null}]}}}

An address without a map gets a floor, and one loses it
mutation { one: putAddress(input: {customerNo: 70, label: "home", street: "Hill 3", floor: 1}) { created } two: updateAddress(input: {customerNo: 7, label: "home", floor: null, street: "Main 2"}) { address { street floor } } }
{ customer(customerNo: 70) { addresses { nodes { street floor } } } ada: customer(customerNo: 7) { addresses(first: 1) { nodes { street floor } } } }
{"customer": {"addresses": {"nodes": [{"street": "Hill 3", "floor": 1}]}}, "ada": {"addresses": {"nodes": [{"street": "Main 2", "floor": null}]}}}

A cart is filled, and what has expired is not there
mutation { one: upsertCart(input: {customerNo: 70, restaurantId: "thai", until: "2100-01-01T00:00:00Z", add: {dishes: ["t1", "t1"]}}) { created cart { dishes } } two: updateCart(input: {customerNo: 70, add: {dishes: ["t2"]}}) { cart { dishes } } }
{ customer(customerNo: 70) { cart { dishes until restaurant { title } } } }
{"customer": {"cart": {"dishes": ["t1", "t1", "t2"], "until": "2100-01-01T00:00:00Z", "restaurant": {"title": "Thai"}}}}

A review: the stars move the restaurant in its zone
mutation { one: createReview(input: {restaurantId: "thai", customerNo: 7, at: "2024-05-03T00:00:00.5Z", stars: 5}) { review { id } } two: createReview(input: {restaurantId: "thai", customerNo: 70, at: "2024-05-03T00:00:00.5Z", stars: 5}) { review { at } } }
{ bestIn(zone: "north", direction: DESC) { nodes { restaurantId starsSum } } restaurant(restaurantId: "thai") { reviews(at: {from: "2024-05-03T00:00:00Z"}) { nodes { customer { name } at } } } }
{"bestIn": {"nodes": [{"restaurantId": "thai", "starsSum": 10}, {"restaurantId": "roma", "starsSum": 9}]}, "restaurant": {"reviews": {"nodes": [{"customer": {"name": "Ada"}, "at": "2024-05-03T00:00:00.500000Z"}, {"customer": {"name": "Ben"}, "at": "2024-05-03T00:00:00.500000Z"}]}}}

A restaurant with orders closes for good
mutation { deleteRestaurant(input: {restaurantId: "roma"}) { clientMutationId } }
This Restaurant cannot be deleted. It is named by 3 Dishes (restaurant), 2 Orders (restaurant), 2 Reviews (restaurant).
"""
