"""Venues, events with their seats, holds that expire, and orders: a seat is sold once, because its ticket's key exists once.

After published designs of ticket shops, which hold a seat in an item with a time to live and sell it in one transaction.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum

from keygraph import (
    ID,
    Format,
    Graph,
    Index,
    Many,
    One,
    Table,
    copy,
    counts,
    many,
    node,
    one,
    record,
    rule,
    stored,
    sums,
    ttl,
    updated,
)

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
by_price = Index("ByPrice", "PricePK", ("cents", "N"), projection=["section"])


class State(Enum):
    FREE = "F"
    SOLD = "S"
    KEPT = "K"


@node("VENUE#{venue_id}", gsi1("CITY#{city}", "{name}", lists="venues_in"))
class Venue:
    venue_id: ID
    city: str
    name: str
    events: Many[Event]


@node("EVENT#{event_id}", gsi1("{venue}", "{starts:%Y%m%d%H%M}#{event_id}"))
class Event:
    event_id: ID
    venue: Venue
    starts: datetime
    seats: Many[Seat] = many(index=None)
    by_price: Many[Seat] = many(index=by_price)
    holds: Many[Hold]
    tickets: Many[Ticket] = many(index=None)
    sold: int = counts("tickets")
    takings: int = sums("tickets.cents")


@node(
    "{event}",
    "SEAT#{section}#{row}#{place:03d}",
    by_price("{event}#{state}"),
    check=[rule({"cents": {"gte": 100}}, "A seat costs at least 1.00.")],
)
class Seat:
    event: Event
    section: str
    row: str
    place: int
    state: State = State.FREE
    cents: int
    hold: One[Hold] = one()
    changed: datetime | None = updated()


@record("{event}", "HOLD#{seat.section}#{seat.row}#{seat.place:03d}")
class Hold:
    event: Event = stored("eventId")
    seat: Seat = stored(event_id="eventId", section="section", row="row", place="place")
    session: str
    until: datetime = ttl("expires")


@node("CUSTOMER#{email:lower}")
class Customer:
    email: ID
    orders: Many[Order]


@node("ORDER#{order_id}", gsi1("{customer}", "ORDER#{placed}"))
class Order:
    order_id: ID
    customer: Customer
    placed: datetime
    tickets: Many[Ticket] = many(index=gsi1)


@record(
    "{event}",
    "TICKET#{seat.section}#{seat.row}#{seat.place:03d}",
    gsi1("{order}", "{event}#{seat.section}#{seat.row}#{seat.place:03d}"),
)
class Ticket:
    event: Event = stored("eventId")
    seat: Seat = stored(event_id="eventId", section="section", row="row", place="place")
    order: Order
    cents: int = copy("seat.cents")


graph = Graph(
    Table("Tickets", partition_key="PK", sort_key="SK", indexes=[gsi1, by_price]),
    Venue,
    Event,
    Seat,
    Hold,
    Customer,
    Order,
    Ticket,
    separator="#",
    attribute_case="camel",
    formats={"lower": Format(str.lower)},
    writes=True,
)
ITEMS = """
{"PK": "VENUE#v1", "SK": "VENUE#v1", "GSI1PK": "CITY#Bonn", "GSI1SK": "Opera", "city": "Bonn", "name": "Opera"}
{"PK": "EVENT#e1", "SK": "EVENT#e1", "GSI1PK": "VENUE#v1", "GSI1SK": "202405012000#e1", "venueId": "v1", "starts": "2024-05-01T20:00:00Z", "sold": 1, "takings": 9000}
{"PK": "EVENT#e1", "SK": "SEAT#A#1#001", "PricePK": "EVENT#e1#S", "cents": 9000, "state": "S", "changed": "2024-04-01T10:00:00Z"}
{"PK": "EVENT#e1", "SK": "SEAT#A#1#002", "PricePK": "EVENT#e1#F", "cents": 9000, "state": "F"}
{"PK": "EVENT#e1", "SK": "SEAT#B#1#001", "PricePK": "EVENT#e1#F", "cents": 800, "state": "F"}
{"PK": "EVENT#e1", "SK": "SEAT#B#1#010", "PricePK": "EVENT#e1#F", "cents": 10050}
{"PK": "EVENT#e1", "SK": "HOLD#A#1#002", "session": "old", "expires": 1714500000}
{"PK": "EVENT#e1", "SK": "HOLD#B#1#001", "session": "ada", "expires": 4102444800}
{"PK": "CUSTOMER#ada@x.org", "SK": "CUSTOMER#ada@x.org", "email": "Ada@x.org"}
{"PK": "ORDER#o1", "SK": "ORDER#o1", "GSI1PK": "CUSTOMER#ada@x.org", "GSI1SK": "ORDER#2024-04-01T10:00:00Z", "customerEmail": "ada@X.org", "placed": "2024-04-01T10:00:00Z"}
{"PK": "EVENT#e1", "SK": "TICKET#A#1#001", "GSI1PK": "ORDER#o1", "GSI1SK": "EVENT#e1#A#1#001", "orderId": "o1", "cents": 9000}
"""

ASKED = """
Venues of a city
{ venuesIn(city: "Bonn") { nodes { venueId name } } }
{"venuesIn": {"nodes": [{"venueId": "v1", "name": "Opera"}]}}

Events of a venue in a month
{ venue(venueId: "v1") { events(starts: {from: "2024-05-01T00:00:00Z", to: "2024-05-31T23:59:59Z"}) { nodes { eventId starts sold takings } } } }
{"venue": {"events": {"nodes": [{"eventId": "e1", "starts": "2024-05-01T20:00:00Z", "sold": 1, "takings": 9000}]}}}

The seats of a row, and who holds them now
{ event(eventId: "e1") { seats(section: {eq: "A"}, row: {eq: "1"}) { nodes { place state hold { session } } } other: seats(section: {eq: "B"}) { nodes { place state hold { session } } } } }
{"event": {"seats": {"nodes": [{"place": 1, "state": "SOLD", "hold": null}, {"place": 2, "state": "FREE", "hold": null}]}, "other": {"nodes": [{"place": 1, "state": "FREE", "hold": {"session": "ada"}}, {"place": 10, "state": "FREE", "hold": null}]}}}

The free seats up to a price, cheapest first
{ event(eventId: "e1") { byPrice(state: FREE, cents: {to: 9999}) { nodes { section row place cents } } } }
{"event": {"byPrice": {"nodes": [{"section": "B", "row": "1", "place": 1, "cents": 800}, {"section": "A", "row": "1", "place": 2, "cents": 9000}]}}}

What is held, without what has expired
{ event(eventId: "e1") { holds { totalCount nodes { session seat { section place cents } } } } }
{"event": {"holds": {"totalCount": 1, "nodes": [{"session": "ada", "seat": {"section": "B", "place": 1, "cents": 800}}]}}}

The orders of a customer, however the address is written
{ customer(email: "ADA@x.org") { email orders(placed: {from: "2024-01-01T00:00:00Z"}) { nodes { orderId tickets { nodes { cents event { eventId } seat { section row place } } } } } } }
{"customer": {"email": "Ada@x.org", "orders": {"nodes": [{"orderId": "o1", "tickets": {"nodes": [{"cents": 9000, "event": {"eventId": "e1"}, "seat": {"section": "A", "row": "1", "place": 1}}]}}]}}}

Who checks in: a ticket by its seat
{ event(eventId: "e1") { tickets(seatSection: {eq: "A"}, seatRow: {eq: "1"}, seatPlace: {eq: 1}) { nodes { order { customer { email } } } } } }
{"event": {"tickets": {"nodes": [{"order": {"customer": {"email": "Ada@x.org"}}}]}}}

All events of a city in a week
{ eventsIn(city: "Bonn") { nodes { eventId } } }
The index of events is by venue: the client lists the venues of the city, and their events.
"""
WRITES = """
A seat is held, after the hold of somebody else has expired
mutation { createHold(input: {eventId: "e1", seat: {eventId: "e1", section: "A", row: "1", place: 2}, session: "ben", until: "2099-01-01T00:00:00Z"}) { hold { session event { eventId } } } }
{ event(eventId: "e1") { holds { nodes { session } } seats(section: {eq: "A"}) { nodes { place } } } }
{"event": {"holds": {"nodes": [{"session": "ben"}, {"session": "ada"}]}, "seats": {"nodes": [{"place": 1}, {"place": 2}]}}}

A seat that somebody else holds
mutation { createHold(input: {eventId: "e1", seat: {eventId: "e1", section: "B", row: "1", place: 1}, session: "ben", until: "2099-01-01T00:00:00Z"}) { hold { session } } }
There is already a Hold with this key.

A seat that is not there
mutation { createHold(input: {eventId: "e1", seat: {eventId: "e1", section: "C", row: "1", place: 1}, session: "ben", until: "2099-01-01T00:00:00Z"}) { hold { session } } }
seat: there is no Seat with this key.

It is bought: order, ticket at the price of the seat, state and hold, at once
mutation { write(input: {actions: [{createOrder: {orderId: "o2", customerEmail: "ada@x.ORG", placed: "2024-04-02T10:00:00Z"}}, {createTicket: {eventId: "e1", seat: {eventId: "e1", section: "A", row: "1", place: 2}, orderId: "o2"}}, {updateSeat: {eventId: "e1", section: "A", row: "1", place: 2, state: SOLD}}, {deleteHold: {eventId: "e1", seat: {eventId: "e1", section: "A", row: "1", place: 2}}}]}) { clientMutationId } }
{ event(eventId: "e1") { sold takings holds { nodes { session } } byPrice(state: SOLD) { totalCount } } customer(email: "ada@x.org") { orders(last: 1) { nodes { orderId tickets { nodes { cents seat { place state } } } } } } }
{"event": {"sold": 2, "takings": 18000, "holds": {"nodes": [{"session": "ada"}]}, "byPrice": {"totalCount": 2}}, "customer": {"orders": {"nodes": [{"orderId": "o2", "tickets": {"nodes": [{"cents": 9000, "seat": {"place": 2, "state": "SOLD"}}]}}]}}}

And sold a second time
mutation { createTicket(input: {eventId: "e1", seat: {eventId: "e1", section: "A", row: "1", place: 2}, orderId: "o1"}) { ticket { cents } } }
There is already a Ticket with this key.

An order with its tickets in one input
mutation { createOrder(input: {orderId: "o3", customerEmail: "Ada@x.org", placed: "2024-04-03T10:00:00Z", tickets: [{eventId: "e1", seat: {eventId: "e1", section: "B", row: "1", place: 1}}, {eventId: "e1", seat: {eventId: "e1", section: "B", row: "1", place: 10}}]}) { order { tickets { nodes { cents } } } } }
{ event(eventId: "e1") { sold takings tickets(seatSection: {eq: "B"}) { nodes { order { orderId } seat { place } } } } }
{"event": {"sold": 4, "takings": 28850, "tickets": {"nodes": [{"order": {"orderId": "o3"}, "seat": {"place": 1}}, {"order": {"orderId": "o3"}, "seat": {"place": 10}}]}}}

A ticket is given back
mutation { write(input: {actions: [{deleteTicket: {eventId: "e1", seat: {eventId: "e1", section: "A", row: "1", place: 2}}}, {updateSeat: {eventId: "e1", section: "A", row: "1", place: 2, state: FREE}}]}) { clientMutationId } }
{ event(eventId: "e1") { sold takings byPrice(state: FREE, cents: {from: 9000}, direction: DESC) { nodes { section place cents } } } }
{"event": {"sold": 3, "takings": 19850, "byPrice": {"nodes": [{"section": "B", "place": 10, "cents": 10050}, {"section": "A", "place": 2, "cents": 9000}]}}}

Prices of seats without a state of their own are changed
mutation { updateSeats(input: {inputs: [{eventId: "e1", section: "B", row: "1", place: 10, add: {cents: -50}}, {eventId: "e1", section: "A", row: "1", place: 2, state: KEPT}]}) { results { seat { cents state } } } }
{ event(eventId: "e1") { byPrice(state: FREE) { nodes { section place cents state } } kept: byPrice(state: KEPT) { totalCount } takings } }
{"event": {"byPrice": {"nodes": [{"section": "B", "place": 1, "cents": 800, "state": "FREE"}, {"section": "B", "place": 10, "cents": 10000, "state": "FREE"}]}, "kept": {"totalCount": 1}, "takings": 19850}}

A seat for less than it may cost
mutation { updateSeat(input: {eventId: "e1", section: "B", row: "1", place: 10, add: {cents: -9950}}) { seat { cents } } }
A seat costs at least 1.00.

A ticket moves to a seat of another row
mutation { write(input: {actions: [{createSeat: {eventId: "e1", section: "C", row: "9", place: 7, cents: 500}}]}) { clientMutationId } moveTicket(input: {eventId: "e1", seat: {eventId: "e1", section: "B", row: "1", place: 1}, to: {seat: {eventId: "e1", section: "C", row: "9", place: 7}}}) { ticket { cents order { orderId } } } }
{ event(eventId: "e1") { sold takings tickets(seatSection: {eq: "C"}) { nodes { cents seat { row } } } } order(orderId: "o3") { tickets { nodes { seat { section place } } } } }
{"event": {"sold": 3, "takings": 19550, "tickets": {"nodes": [{"cents": 500, "seat": {"row": "9"}}]}}, "order": {"tickets": {"nodes": [{"seat": {"section": "B", "place": 10}}, {"seat": {"section": "C", "place": 7}}]}}}

A seat with a ticket is not deleted
mutation { deleteSeat(input: {eventId: "e1", section: "C", row: "9", place: 7}) { clientMutationId } }
This Seat cannot be deleted. It is named by 1 Ticket (seat).

A customer of another writing is the same one
mutation { createCustomer(input: {email: "ADA@X.ORG"}) { customer { email } } }
There is already a Customer with this key.
"""
