"""The measured operations, each with the world of `bench.worlds` that it runs on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.worlds import PRICED, SHAPES, minute, shape_name
from keygraph.graph import Graph
from keygraph_examples import cargo, commerce, social, talent
from keygraph_resolvers.naming.global_ids import global_id


@dataclass(frozen=True)
class Operation:
    """A query, and the world that it runs on."""

    name: str
    world: str
    document: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    """Why its cost differs from the bound, for the page; empty if it does not."""


def _id(graph: Graph, name: str, *identity: str) -> str:
    return global_id(graph.types[name], identity)


_ORDERS = """query ($user: ID!) { user(userId: $user) { name orders(first: 50) { nodes { orderDate
  items(first: 20) { nodes { name categories(first: 10) { nodes { name } } } } } } } }"""

_NODES = [
    *(_id(commerce.graph, "Product", f"50x20x10-{number:05d}") for number in range(120)),
    *(_id(commerce.graph, "Order", f"50x20x10-{number:03d}") for number in range(20)),
    *(_id(commerce.graph, "User", shape_name(shape)) for shape in SHAPES),
]
_BOXES = " ".join(f'b{number}: box(boxId: "L000{number:02d}000") {{ ...ways }}' for number in range(12))
_MANY = [_id(social.graph, "User", f"p{number:03d}") for number in range(101, 161)]
_SKILLS = [_id(talent.graph, "Skill", str(1_000 + number)) for number in range(7, 12)]
_FRIENDS = [_id(social.graph, "User", f"p{number:03d}") for number in range(5, 45)]

OPERATIONS = (
    *(
        Operation(
            f"user, orders, items, products, categories {shape_name(shape).replace('x', '×')}",
            "commerce",
            _ORDERS,
            {"user": shape_name(shape)},
        )
        for shape in SHAPES
    ),
    Operation(
        "an order with its customer and all its items",
        "commerce",
        """{ order(orderId: "50x20x10-007") { total status customer { name }
          items { edges { quantity unitPrice node { name price } } } } }""",
    ),
    Operation(
        "a user's orders, by what keys and the index's items tell",
        "commerce",
        """{ user(userId: "50x20x10") { orders(first: 30) { nodes { total status customer { userId }
          items { nodes { id productId } } } } } }""",
    ),
    Operation(
        "a page of products with their sellers, tags and categories",
        "commerce",
        """{ products(first: 50, direction: DESC) { nodes { name price seller { name }
          tags { nodes { tagName } } categories { nodes { name } } } pageInfo { hasNextPage endCursor } } }""",
    ),
    Operation(
        "categories down four levels",
        "commerce",
        """{ category(categoryId: "menu") { name children { nodes { name children { nodes { name
          children { nodes { name children { nodes { name } } } } } } } } } }""",
    ),
    Operation(
        "a menu of four levels, by what the edges tell",
        "commerce",
        """{ category(categoryId: "menu") { name children { edges { childName node { children {
          edges { childName node { children { edges { childName node { children { edges { childName
          } } } } } } } } } } } } }""",
    ),
    Operation(
        "a user's activities over five shards, with the products",
        "commerce",
        """{ user(userId: "50x20x10") { activities(first: 40, direction: DESC) { nodes { action timestamp
          product { name seller { name } } } } } }""",
    ),
    Operation(
        "143 nodes of three types by their ids",
        "commerce",
        """query ($some: [ID!]!, $others: [ID!]!) { some: nodes(ids: $some) { ...node }
          others: nodes(ids: $others) { ...node } }
          fragment node on Node { id ... on Product { name } ... on User { name }
          ... on Order { total customer { name } } }""",
        {"some": _NODES[:100], "others": _NODES[100:]},
    ),
    Operation(
        "counts of a page of products",
        "commerce",
        """{ products(first: 25) { nodes { productId orders { totalCount } reviews { totalCount }
          categories { totalCount } } } }""",
    ),
    Operation(
        "one list under four aliases",
        "commerce",
        """{ user(userId: "50x20x10") { a: orders(first: 10) { nodes { total } }
          b: orders(first: 10) { nodes { status items(first: 3) { nodes { name } } } }
          c: orders(first: 10) { edges { cursor node { orderId } } }
          d: orders(first: 10, direction: DESC) { nodes { orderDate } } } }""",
    ),
    Operation(
        "one list under two aliases, of pages of two sizes",
        "commerce",
        """{ user(userId: "50x20x10") { short: orders(first: 3) { nodes { total } }
          long: orders(first: 30) { nodes { total } } } }""",
    ),
    Operation(
        "a tag's products with the reviews and who wrote them",
        "commerce",
        """{ tag(tagName: "blue-50x20x10") { products(first: 60) { nodes { name reviews { nodes { comment
          customer { name } } } tags { nodes { tagName } } } } } }""",
    ),
    Operation(
        "a container, its pallets and their boxes 1×1×1",
        "cargo",
        """{ container(containerId: "S00") { operator pallets { edges { linkedBy node { origin
          boxes { edges { linkedBy node { weightInKg } } } } } } } }""",
    ),
    Operation(
        "three containers, their pallets and their boxes 3×20×10",
        "cargo",
        """query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Container { operator pallets { edges { linkedBy
          node { origin boxes { edges { linkedBy node { weightInKg } } } } } } } } }""",
        {"ids": [_id(cargo.graph, "Container", f"L{number:02d}") for number in range(3)]},
    ),
    Operation(
        "twelve boxes, the pallets that they stand on, and the container",
        "cargo",
        f"""{{ {_BOXES} }} fragment ways on Box {{ weightInKg pallet {{ linkedBy node {{ origin
          container {{ linkedBy node {{ operator }} }} }} }} }}""",
    ),
    Operation(
        "a box, its pallet, all boxes of this, and their pallet again",
        "cargo",
        """{ box(boxId: "L00003004") { pallet { node { boxes { nodes { weightInKg pallet { node { origin
          } } } } } } } }""",
    ),
    Operation(
        "people by a skill, their skills, and who else has these",
        "talent",
        """{ peopleBySkill(first: 8, skillName: {eq: "Skill 03"}) { nodes { level person { name
          skills { nodes { skillName people(first: 10) { nodes { name } } } } } } } }""",
    ),
    Operation(
        "everything that is known of a person",
        "talent",
        """{ person(nodeId: 7) { name dates { edges { occasion when node { day } } }
          places { edges { bond node { location } } } skills { edges { level node { skillName } } } } }""",
    ),
    Operation(
        "friends of friends of friends 20×20×20",
        "social",
        """{ user(userId: "p100") { name friends { nodes { name friends { nodes { name
          friends { nodes { userId name } } } } } } } }""",
    ),
    Operation(
        "the friends of two people, to see whom they share",
        "social",
        """{ a: user(userId: "p100") { friends { nodes { userId name } } }
          b: user(userId: "p104") { friends { nodes { userId name } } } }""",
    ),
    Operation(
        "what a user's friends like and whom they follow",
        "social",
        """{ user(userId: "p100") { friends { nodes { name likes { nodes { postId } }
          follows { edges { timestamp node { name } } } } } } }""",
    ),
    Operation(
        "which of forty people a user is friends with",
        "social",
        """query ($ids: [ID!]!) { user(userId: "p024") { name friends(to: $ids) { totalCount
          edges { friendshipSince node { name } } } } }""",
        {"ids": _FRIENDS},
    ),
    Operation(
        "which of forty people each friend is friends with",
        "social",
        """query ($ids: [ID!]!) { user(userId: "p024") { friends { nodes { userId friends(to: $ids) {
          nodes { userId } } } } } }""",
        {"ids": _FRIENDS},
    ),
    Operation(
        "a section's texts, with what is published of each",
        "press",
        '{ section(sectionId: "s1") { name texts { nodes { title published { version } } } } }',
    ),
    Operation(
        "five texts of a section, and from what is published of them back to it",
        "press",
        """{ section(sectionId: "s1") { texts(first: 5) { nodes { title published { version text { title section {
          name } } } } } } }""",
    ),
    Operation(
        "an order's products, with what each cost on a day",
        "commerce",
        f"""{{ order(orderId: "5x4x3-000") {{ items {{ nodes {{ name
          prices(timestamp: {{eq: "{PRICED}"}}) {{ totalCount nodes {{ price }} }} }} }} }} }}""",
    ),
    Operation(
        "an order with its last items",
        "commerce",
        '{ order(orderId: "5x4x3-000") { total status items(last: 20) { nodes { name } } } }',
    ),
    Operation(
        "a user's orders, and the first of them again from each",
        "commerce",
        """{ user(userId: "5x4x3") { orders(first: 4) { nodes { total customer { name orders(first: 2) { nodes {
          status } } } } } } }""",
    ),
    Operation(
        "a rare product of a tag, and the first of another with their sellers",
        "commerce",
        f"""{{ a: tag(tagName: "lamp") {{ products(first: 1, where: {{createdAt: {{eq: "{minute(60)}"}}}}) {{
          nodes {{ name }} }} }} b: tag(tagName: "round-5x4x3") {{ products(first: 3) {{ nodes {{
          name seller {{ name }} }} }} }} }}""",
    ),
    Operation(
        "a user's friends, whose edges back to the user lead to edges that are there",
        "social",
        """query ($me: [ID!]!, $two: [ID!]!) { user(userId: "p100") { friends { nodes { userId friends(to: $me) {
          nodes { userId friends(to: $two) { edges { friendshipSince } } } } } } } }""",
        {"me": [_id(social.graph, "User", "p100")], "two": _MANY[:2]},
    ),
    Operation(
        "the edges to sixty people under two aliases",
        "social",
        """query ($ids: [ID!]!) { user(userId: "p100") { a: friends(to: $ids) { edges { friendshipSince } }
          b: friends(to: $ids) { totalCount nodes { name } } } }""",
        {"ids": _MANY},
    ),
    Operation(
        "what ties a person to some skills, under two aliases",
        "talent",
        """query ($some: [ID!]!, $others: [ID!]!) { person(nodeId: 7) { a: skills(to: $some) { edges { level } }
          b: skills(to: $others) { totalCount nodes { skillName } } } }""",
        {"some": _SKILLS[:3], "others": _SKILLS[1:]},
    ),
)
