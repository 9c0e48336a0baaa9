"""Drivers, riders and rides: drivers who are free by geohash, rides by city and status, and what a ride's end costs.

After "Designing the data model for a ride sharing platform with DynamoDB" (Uriel Bitton), with buckets of geohashes added.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import Enum

from keygraph import (
    ID,
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
    node,
    one,
    record,
    rule,
    stored,
    sums,
    ttl,
)

by_place = Index("GSI1", "GSI1PK", "GSI1SK")
by_status = Index("GSI2", "GSI2PK", "GSI2SK")


class Status(Enum):
    REQUESTED = "requested"
    ACTIVE = "active"
    DONE = "done"


@node("USER#{rider_id}", "RIDER")
class Rider:
    rider_id: ID
    name: str
    rides: Many[Ride]


@node("USER#{driver_id}", "DRIVER", by_place("GEO#{cell}", "{place}#{driver_id}", lists="free_drivers"))
class Driver:
    driver_id: ID
    name: str
    free: bool
    place: str = stored("pos", "geohash")
    heading: int | None = stored("pos", "heading")
    drives: Many[Drive]
    ratings: Many[Rating]
    ratings_count: int = counts("ratings")
    stars_sum: int = sums("ratings.stars")
    track: Many[Ping]

    @field(needs=("free", "place"))
    def cell(self) -> str | None:
        """The square in which the driver waits."""
        return self.place[:5] if self.free else None

    @field(needs=("ratings_count", "stars_sum"))
    def average(self) -> float | None:
        return self.stars_sum / self.ratings_count if self.ratings_count else None


@node(
    "RIDE#{ride_id}",
    "RIDE",
    by_place("RIDES#{rider.rider_id}", "{requested:newest}#{ride_id}"),
    by_status("{city}#{status}", "{requested}#{ride_id}", lists="rides_in"),
    check=[
        rule({"or": [{"status": {"eq": Status.REQUESTED}}, {"fare": {"exists": True}}]}, "A ride has a fare.")
    ],
)
class Ride:
    ride_id: ID
    rider: Rider
    rider_name: str = copy("rider.name")
    city: str
    status: Status
    requested: datetime
    fare: Decimal | None
    drive: One[Drive] = one()
    payment: One[Payment] = one()


@record("{driver}", "DRIVE#{started:%Y%m%d%H%M%S}#{ride.ride_id}", by_place("{ride}", "DRIVE", lists=False))
class Drive:
    driver: Driver
    ride: Ride
    started: datetime


@record("{ride}", "PAYMENT")
class Payment:
    ride: Ride
    amount: Decimal
    method: str


@record("{driver}", "RATING#{ride.ride_id}")
class Rating:
    driver: Driver
    ride: Ride
    stars: int


@record("{driver}", "AT#{at:ms}")
class Ping:
    driver: Driver
    at: datetime
    geohash: str
    until: datetime = ttl("exp")


graph = Graph(
    Table("Rides", partition_key="PK", sort_key="SK", indexes=[by_place, by_status]),
    Rider,
    Driver,
    Ride,
    Drive,
    Payment,
    Rating,
    Ping,
    formats={"newest": Format.reversed(9_999_999_999, of=Epoch()), "ms": Epoch("ms", text=True)},
    writes=True,
)

ITEMS = """
{"PK": "USER#1", "SK": "RIDER", "name": "Ada"}
{"PK": "USER#8", "SK": "DRIVER", "GSI1PK": "GEO#u33db", "GSI1SK": "u33dbf2#8", "name": "Ben", "free": true, "pos": {"geohash": "u33dbf2", "heading": 90}, "ratings_count": 1, "stars_sum": 4}
{"PK": "USER#9", "SK": "DRIVER", "GSI1PK": "GEO#u33db", "GSI1SK": "u33dbc7#9", "name": "Cy", "free": true, "pos": {"geohash": "u33dbc7"}, "ratings_count": 0, "stars_sum": 0}
{"PK": "USER#10", "SK": "DRIVER", "name": "Di", "free": false, "pos": {"geohash": "u33dbc8"}, "ratings_count": 0, "stars_sum": 0}
{"PK": "RIDE#a", "SK": "RIDE", "GSI1PK": "RIDES#1", "GSI1SK": "8285478399#a", "GSI2PK": "Berlin#done", "GSI2SK": "2024-05-01T00:00:00Z#a", "rider_id": "1", "rider_name": "Ada", "city": "Berlin", "status": "done", "requested": "2024-05-01T00:00:00Z", "fare": 12.5}
{"PK": "RIDE#a", "SK": "PAYMENT", "amount": 12.5, "method": "card"}
{"PK": "RIDE#b", "SK": "RIDE", "GSI1PK": "RIDES#1", "GSI1SK": "8285391999#b", "GSI2PK": "Berlin#requested", "GSI2SK": "2024-05-02T00:00:00Z#b", "rider_id": "1", "rider_name": "Ada", "city": "Berlin", "status": "requested", "requested": "2024-05-02T00:00:00Z"}
{"PK": "USER#8", "SK": "DRIVE#20240501000300#a", "GSI1PK": "RIDE#a", "GSI1SK": "DRIVE"}
{"PK": "USER#8", "SK": "RATING#a", "stars": 4}
{"PK": "USER#8", "SK": "AT#1714521600500", "geohash": "u33dbf1", "exp": 4102444800}
{"PK": "USER#8", "SK": "AT#1714521500000", "geohash": "u33dbf0", "exp": 1714525100}
"""

ASKED = """
Get a driver or a rider by id
{ driver(driverId: "8") { name free place heading average } rider(riderId: "1") { name } }
{"driver": {"name": "Ben", "free": true, "place": "u33dbf2", "heading": 90, "average": 4.0}, "rider": {"name": "Ada"}}

Drivers who are free in a cell, and closer
{ freeDrivers(cell: "u33db") { nodes { name } } near: freeDrivers(cell: "u33db", place: {beginsWith: "u33dbc"}) { nodes { name heading } } }
{"freeDrivers": {"nodes": [{"name": "Cy"}, {"name": "Ben"}]}, "near": {"nodes": [{"name": "Cy", "heading": null}]}}

The current ride of a rider, and the history, newest first
{ rider(riderId: "1") { rides(first: 1) { nodes { rideId status } } past: rides(requested: {to: "2024-05-01T12:00:00Z"}) { nodes { rideId fare drive { driver { name } } } } } }
{"rider": {"rides": {"nodes": [{"rideId": "b", "status": "REQUESTED"}]}, "past": {"nodes": [{"rideId": "a", "fare": "12.5", "drive": {"driver": {"name": "Ben"}}}]}}}

The ride history of a driver on a day
{ driver(driverId: "8") { drives(started: {from: "2024-05-01T00:00:00Z", to: "2024-05-01T23:59:59Z"}) { nodes { started ride { rider { name } } } } } }
{"driver": {"drives": {"nodes": [{"started": "2024-05-01T00:03:00Z", "ride": {"rider": {"name": "Ada"}}}]}}}

Rides of a city that wait for a driver
{ ridesIn(city: "Berlin", status: REQUESTED) { nodes { rideId riderName } } }
{"ridesIn": {"nodes": [{"rideId": "b", "riderName": "Ada"}]}}

The payment of a ride
{ ride(rideId: "a") { payment { amount method } } }
{"ride": {"payment": {"amount": "12.5", "method": "card"}}}

All ratings of a driver
{ driver(driverId: "8") { ratings { totalCount nodes { stars ride { requested } } } } }
{"driver": {"ratings": {"totalCount": 1, "nodes": [{"stars": 4, "ride": {"requested": "2024-05-01T00:00:00Z"}}]}}}

Where a driver was, as long as it is kept
{ driver(driverId: "8") { track { nodes { at geohash } } since: track(at: {from: "2024-05-01T00:00:00.4Z"}) { totalCount } } }
{"driver": {"track": {"nodes": [{"at": "2024-05-01T00:00:00.500000Z", "geohash": "u33dbf1"}]}, "since": {"totalCount": 1}}}

Drivers within a radius
{ driversNear(place: "u33dbc7", meters: 500) { nodes { name } } }
A circle is several ranges of geohashes: the client asks for each cell by freeDrivers, and leaves out corners.
"""

WRITES = """
A rider requests a ride: the name is copied
mutation { createRide(input: {rideId: "c", riderId: "1", city: "Berlin", status: REQUESTED, requested: "2024-05-03T00:00:00Z"}) { ride { riderName } } }
{ ridesIn(city: "Berlin", status: REQUESTED) { nodes { rideId riderName } } rider(riderId: "1") { rides(first: 1) { nodes { rideId } } } }
{"ridesIn": {"nodes": [{"rideId": "b", "riderName": "Ada"}, {"rideId": "c", "riderName": "Ada"}]}, "rider": {"rides": {"nodes": [{"rideId": "c"}]}}}

By somebody who is a driver, and no rider
mutation { createRide(input: {rideId: "d", riderId: "9", city: "Berlin", status: REQUESTED, requested: "2024-05-03T00:00:00Z"}) { ride { rideId } } }
riderId: there is no Rider with this key.

A ride starts without a fare
mutation { updateRide(input: {rideId: "b", status: ACTIVE}) { ride { rideId } } }
A ride has a fare.

A driver accepts: status, place in the queue and the drive, at once
mutation { write(input: {actions: [{updateRide: {rideId: "b", status: ACTIVE, fare: "9"}}, {putDrive: {driverId: "9", rideId: "b", started: "2024-05-02T00:05:00Z"}}, {updateDriver: {driverId: "9", free: false}}]}) { clientMutationId } }
{ ridesIn(city: "Berlin", status: ACTIVE) { nodes { rideId fare drive { driver { name cell } } } } freeDrivers(cell: "u33db") { nodes { name } } }
{"ridesIn": {"nodes": [{"rideId": "b", "fare": "9", "drive": {"driver": {"name": "Cy", "cell": null}}}]}, "freeDrivers": {"nodes": [{"name": "Ben"}]}}

A free driver moves to another cell
mutation { updateDriver(input: {driverId: "8", place: "u33dc00", heading: null}) { driver { cell } } }
{ freeDrivers(cell: "u33db") { totalCount } there: freeDrivers(cell: "u33dc") { nodes { name place heading } } }
{"freeDrivers": {"totalCount": 0}, "there": {"nodes": [{"name": "Ben", "place": "u33dc00", "heading": null}]}}

A driver who is not free moves, and is free there
mutation { one: updateDriver(input: {driverId: "10", place: "u33dd11"}) { driver { cell } } two: updateDriver(input: {driverId: "10", free: true}) { driver { cell } } }
{ freeDrivers(cell: "u33dd") { nodes { name } } }
{"freeDrivers": {"nodes": [{"name": "Di"}]}}

The rider rates the driver, and again
mutation { one: putRating(input: {driverId: "9", rideId: "b", stars: 5}) { clientMutationId } two: putRating(input: {driverId: "9", rideId: "b", stars: 2}) { rating { driver { average } } } three: putRating(input: {driverId: "9", rideId: "a", stars: 5}) { clientMutationId } }
{ driver(driverId: "9") { ratingsCount starsSum average } }
{"driver": {"ratingsCount": 2, "starsSum": 7, "average": 3.5}}

A rating for a ride that is not there
mutation { putRating(input: {driverId: "9", rideId: "zz", stars: 5}) { clientMutationId } }
rideId: there is no Ride with this key.

A ride ends with its payment
mutation { write(input: {actions: [{updateRide: {rideId: "b", status: DONE, fare: "9.75"}}, {createPayment: {rideId: "b", amount: "9.75", method: "cash"}}]}) { results { updateRide { ride { payment { amount } } } } } }
{ ridesIn(city: "Berlin", status: DONE, requested: {from: "2024-05-02T00:00:00Z"}) { nodes { rideId payment { amount method } } } }
{"ridesIn": {"nodes": [{"rideId": "b", "payment": {"amount": "9.75", "method": "cash"}}]}}

Where a driver is, kept for an hour
mutation { putPing(input: {driverId: "8", at: "2024-05-01T00:00:01.25Z", geohash: "u33dbf3", until: "2099-01-01T00:00:00Z"}) { ping { at } } }
{ driver(driverId: "8") { track { nodes { at } } } }
{"driver": {"track": {"nodes": [{"at": "2024-05-01T00:00:00.500000Z"}, {"at": "2024-05-01T00:00:01.250000Z"}]}}}

A rider with rides is deleted, and loses no ride
mutation { deleteRider(input: {riderId: "1"}) { clientMutationId } }
This Rider cannot be deleted. It is named by 3 Rides (rider).

A ride is deleted with what belongs to it
mutation { deleteRating(input: {driverId: "9", rideId: "b"}) { clientMutationId } deleteRide(input: {rideId: "b", onEdges: DETACH}) { detached } }
{ driver(driverId: "9") { drives { totalCount } ratingsCount starsSum } ridesIn(city: "Berlin", status: DONE) { nodes { rideId } } }
{"driver": {"drives": {"totalCount": 0}, "ratingsCount": 1, "starsSum": 5}, "ridesIn": {"nodes": [{"rideId": "a"}]}}
"""
