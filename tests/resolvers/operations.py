"""Operations over four models with more items than their samples have. `served` makes a service over the items."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keygraph import Graph
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Store
from keygraph.tables.interchange import Interchange
from keygraph_examples import cargo, commerce, social, talent
from keygraph_examples.commerce_sample import sample
from keygraph_resolvers import Service, build_schema
from tests.resolvers.worlds import SECRET, limits_of

GRAPHS: Mapping[str, Graph] = {
    "commerce": commerce.graph,
    "cargo": cargo.graph,
    "talent": talent.graph,
    "social": social.graph,
}


# --- The items ----------------------------------------------------------------------------------------


def cargo_lines(containers: int = 4, pallets: int = 20, boxes: int = 12) -> Iterator[dict[str, Any]]:
    """Full containers; what links two things says at length where it was done."""
    where = {"LinkedDatetime": "2022-07-19T17:59:58Z", "LinkedBy": "MyLoadingCompany"}
    for c in range(containers):
        container = f"CONTAINER_{c:06d}"
        yield {"objectId": container, "relatedObjectId": container, "Operator": "TheBoatingCompany"}
        for p in range(pallets + c):
            pallet = f"PALLET_B{c:02d}{p:04d}"
            yield {"objectId": pallet, "relatedObjectId": pallet, "Origin": "EC", "Destination": "NL"}
            dock = {"LinkedAtLocation": "JPA.Docks " + "quay " * (p % 7)}
            yield {"objectId": container, "relatedObjectId": pallet, **where, **dock}
            for b in range(boxes + p % 3):
                box = f"BOX_{c:02d}{p:04d}{b:04d}"
                weight = {"WeightInKg": 18 + b % 4, "IsDangerous": False}
                yield {"objectId": box, "relatedObjectId": box, **weight}
                yield {"objectId": pallet, "relatedObjectId": box, **where, **dock}


def talent_lines(people: int = 120, places: int = 12, skills: int = 30) -> Iterator[dict[str, Any]]:
    """A company whose people live in few places and can do several things."""
    for place in range(places):
        number = str(1000 + place)
        yield {"NodeId": number, "TypeTarget": f"NAME|{number}|PLACE", "Data": f"USA|WA|City {place}"}
    for skill in range(skills):
        number = str(2000 + skill)
        yield {"NodeId": number, "TypeTarget": f"NAME|{number}|SKILL", "Data": f"Skill {skill}"}
    for person in range(1, people + 1):
        own = {"NodeId": str(person)}
        name = f"Person {person:03d}"
        yield {**own, "TypeTarget": f"NAME|{person}|PERSON", "Data": name, "DataSet": f"NAME|{person % 2}"}
        for bond, place in (("HOME", person % places), ("WORK", person % 3)):
            yield {
                **own,
                "TypeTarget": f"PLACE|{1000 + place}|{bond}",
                "Type": "PLACE",
                "Data": f"USA|WA|City {place}",
                "Target": str(1000 + place),
                "DataSet": f"PLACE|{person % 2}",
                "TargetSet": str(person % 4),
            }
        for skill in {(person * step) % skills for step in range(2, 5 + person % 3)}:
            yield {
                **own,
                "TypeTarget": f"SKILL|{2000 + skill}|SKILLED",
                "Type": "SKILL",
                "Data": f"Skill {skill}",
                "Target": str(2000 + skill),
                "DataSet": f"SKILL|{person % 4}",
                "TargetSet": str(person % 4),
            }


def social_lines(users: int = 150) -> Iterator[dict[str, Any]]:
    for user in range(users):
        own = {"PK": f"USER#u{user:03d}"}
        yield {**own, "SK": "PROFILE", "name": f"User {user}"}
        for step in range(1, 3 + user % 17):
            friend = (user + step) % users
            yield {**own, "SK": f"FRIEND#u{friend:03d}", "friendship_since": "2023-01-15"}
        for step in range(user % 9):
            liked, followed = (user * step) % 400, (user + 7 * step + 1) % users
            yield {**own, "SK": f"LIKES#POST#{liked:05d}", "timestamp": "2023-03-01T10:00:00Z"}
            yield {**own, "SK": f"FOLLOWS#USER#u{followed:03d}", "timestamp": "2023-04-05T12:00:00Z"}


def items_of(model: str) -> Iterator[Item]:
    if model == "commerce":
        yield from sample(60)
        return
    lines = {"cargo": cargo_lines, "talent": talent_lines, "social": social_lines}[model]()
    interchange = Interchange(GRAPHS[model])
    for line in lines:
        yield interchange.read(json.dumps(line))


async def served(model: str, store: Store, **limits: Any) -> Service:
    await store.send(BatchWrite(puts=tuple(items_of(model))))
    return Service(build_schema(GRAPHS[model]), store, secret=SECRET, limits=limits_of(**limits))


# --- The operations -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operation:
    """A document with variables."""

    name: str
    document: str
    variables: Sequence[Mapping[str, Any]] = ({}, {})


def _each(name: str, *values: Any) -> list[dict[str, Any]]:
    return [{name: value} for value in values]


USERS = _each("user", *(f"10000{number:02d}" for number in range(4, 30, 3)))
ORDERS = _each("order", *(f"ORD00000{number:02d}" for number in range(1, 30, 4)))
PRODUCTS = _each("product", "SPE000001", "WIR000003", "STU000002")
CONTAINERS = _each("container", "000000", "000001", "000002", "000003")
PEOPLE = _each("person", *range(3, 40, 5))
FRIENDS = _each("user", *(f"u{number:03d}" for number in range(5, 80, 6)))

OPERATIONS: Mapping[str, Sequence[Operation]] = {
    "commerce": [
        Operation("a user", "query ($user: ID!) { user(userId: $user) { name email } }", USERS),
        Operation(
            "a user's orders, their items and products",
            """query ($user: ID!) { user(userId: $user) { name orders { nodes { total items { edges { quantity
            node { name categories { nodes { name } } } } } } } } }""",
            USERS,
        ),
        Operation(
            "an order with its items",
            "query ($order: ID!) { order(orderId: $order) { total items { edges { quantity node { productId } } } } }",
            ORDERS,
        ),
        Operation(
            "counts of a user's orders and reviews",
            """query ($user: ID!) { user(userId: $user) { orders(first: 0) { totalCount }
            reviews(first: 2) { totalCount nodes { rating } } } }""",
            USERS,
        ),
        Operation(
            "users with orders",
            "{ users(first: 30) { pageInfo { hasNextPage } nodes { name orders(first: 3) { nodes { status } } } } }",
        ),
        Operation(
            "products of a price",
            '{ products(first: 5, where: {price: {gt: "100"}}) { nodes { name seller { name } } } }',
        ),
        Operation(
            "products, sellers and reviewers",
            "{ products(first: 10) { nodes { name seller { name } reviews(first: 5) { nodes { comment customer { name } } } } } }",
        ),
        Operation(
            "what a user did",
            "query ($user: ID!) { user(userId: $user) { activities(first: 10) { nodes { action product { name } } } } }",
            USERS,
        ),
    ],
    "cargo": [
        Operation(
            "a container, to its boxes",
            """query ($container: ID!) { container(containerId: $container) { operator pallets(first: 50) { edges {
            linkedBy node { destination boxes(first: 20) { nodes { weightInKg } } } } } } }""",
            CONTAINERS,
        ),
        Operation(
            "pallets and boxes by key alone",
            """query ($container: ID!) { container(containerId: $container) { pallets(first: 10) { nodes { palletId
            boxes(first: 5) { nodes { boxId } } } } } }""",
            CONTAINERS,
        ),
        Operation(
            "where boxes are",
            """query ($a: ID!, $b: ID!) { a: box(boxId: $a) { pallet { node { container { node { operator } } } } }
            b: box(boxId: $b) { weightInKg pallet { linkedBy node { origin } } } }""",
            [{"a": "0000010001", "b": "0000020002"}, {"a": "0100010001", "b": "0100020002"}],
        ),
        Operation(
            "how many pallets",
            "query ($container: ID!) { container(containerId: $container) { pallets(first: 0) { totalCount } } }",
            CONTAINERS,
        ),
    ],
    "talent": [
        Operation(
            "a person's skills and who shares them",
            """query ($person: Int!) { person(nodeId: $person) { name skills { edges { level node { skillName
            people(first: 10) { nodes { name } } } } } } }""",
            PEOPLE,
        ),
        Operation(
            "everybody, and where",
            "{ people(first: 40) { nodes { name places { edges { bond location } } } } }",
        ),
        Operation(
            "who lives in a place",
            "query ($place: Int!) { place(nodeId: $place) { location people(first: 20) { edges { bond node { name } } } } }",
            _each("place", *range(1003, 1011)),
        ),
        Operation(
            "people of a place by condition",
            """query ($place: Int!) { place(nodeId: $place) { people(where: {bond: {eq: HOME}}) {
            nodes { name skills(first: 3) { nodes { skillName } } } } } }""",
            _each("place", *range(1003, 1011)),
        ),
    ],
    "social": [
        Operation(
            "friends of friends",
            """query ($user: ID!) { user(userId: $user) { name friends(first: 50) { edges { friendshipSince node { name
            friends(first: 10) { nodes { name } } } } } } }""",
            FRIENDS,
        ),
        Operation(
            "likes, by key alone",
            "query ($user: ID!) { user(userId: $user) { likes { nodes { postId } } } }",
            FRIENDS,
        ),
        Operation(
            "a wall",
            """query ($user: ID!) { user(userId: $user) { name follows(first: 30) { totalCount nodes { name
            likes(first: 5) { edges { timestamp node { postId } } } follows(first: 5) { nodes { name } } } } } }""",
            FRIENDS,
        ),
        Operation(
            "several users at once",
            """query ($a: ID!, $b: ID!) { a: user(userId: $a) { name friends(first: 5) { nodes { name } } }
            b: user(userId: $b) { name friends(first: 5) { nodes { name } } } }""",
            [{"a": "u003", "b": "u004"}, {"a": "u033", "b": "u050"}],
        ),
    ],
}
