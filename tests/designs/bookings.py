"""Guests, the rooms of hotels, and a night for each room and date. After the bookings of a customer in a blog on single tables."""

from __future__ import annotations

from datetime import date

from keygraph import ID, Graph, Index, Many, Table, node, record

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")


@node("GUEST#{guest_id}", "GUEST")
class Guest:
    guest_id: ID
    name: str
    bookings: Many[Booking]


@node("HOTEL#{hotel_id}", "HOTEL", gsi1("CITY#{city}", "HOTEL#{hotel_id}", lists="hotels_in"))
class Hotel:
    hotel_id: ID
    city: str
    rooms: Many[Room]
    nights: Many[Night]


@record("{hotel}", "ROOM#{number:03d}")
class Room:
    hotel: Hotel
    number: int
    beds: int


@node("BOOKING#{booking_id}", "BOOKING", gsi1("{guest}", "BOOKING#{arrives}"))
class Booking:
    booking_id: ID
    guest: Guest
    arrives: date
    leaves: date
    nights: Many[Night]


@record("{hotel}", "NIGHT#{day}#{number:03d}", gsi1("{booking}", "NIGHT#{day}"))
class Night:
    hotel: Hotel
    day: date
    number: int
    booking: Booking


graph = Graph(
    Table("Bookings", partition_key="PK", sort_key="SK", indexes=[gsi1]),
    Guest,
    Hotel,
    Room,
    Booking,
    Night,
    attribute_case="camel",
)

ITEMS = """
{"PK": "GUEST#g1", "SK": "GUEST", "name": "Ada"}
{"PK": "GUEST#g2", "SK": "GUEST", "name": "Ben"}
{"PK": "HOTEL#sun", "SK": "HOTEL", "GSI1PK": "CITY#Bonn", "GSI1SK": "HOTEL#sun", "city": "Bonn"}
{"PK": "HOTEL#sea", "SK": "HOTEL", "GSI1PK": "CITY#Kiel", "GSI1SK": "HOTEL#sea", "city": "Kiel"}
{"PK": "HOTEL#sun", "SK": "ROOM#001", "beds": 2}
{"PK": "HOTEL#sun", "SK": "ROOM#002", "beds": 1}
{"PK": "HOTEL#sea", "SK": "ROOM#001", "beds": 3}
{"PK": "BOOKING#b1", "SK": "BOOKING", "GSI1PK": "GUEST#g1", "GSI1SK": "BOOKING#2024-05-01", "guestId": "g1", "arrives": "2024-05-01", "leaves": "2024-05-03"}
{"PK": "HOTEL#sun", "SK": "NIGHT#2024-05-01#001", "GSI1PK": "BOOKING#b1", "GSI1SK": "NIGHT#2024-05-01", "bookingId": "b1"}
{"PK": "HOTEL#sun", "SK": "NIGHT#2024-05-02#001", "GSI1PK": "BOOKING#b1", "GSI1SK": "NIGHT#2024-05-02", "bookingId": "b1"}
"""

ASKED = """
A guest's bookings
{ guest(guestId: "g1") { bookings { nodes { leaves nights { nodes { day hotel { city } } } } } } }
{"guest": {"bookings": {"nodes": [{"leaves": "2024-05-03", "nights": {"nodes": [{"day": "2024-05-01", "hotel": {"city": "Bonn"}}, {"day": "2024-05-02", "hotel": {"city": "Bonn"}}]}}]}}}

Which rooms are taken on a day
{ hotel(hotelId: "sun") { nights(day: {eq: "2024-05-02"}) { nodes { number } } rooms { totalCount } } }
{"hotel": {"nights": {"nodes": [{"number": 1}]}, "rooms": {"totalCount": 2}}}
"""
