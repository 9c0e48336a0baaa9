"""Bananas on their way overseas: the table of a step-by-step article on relational data in one DynamoDB table.

A container holds pallets, a pallet holds boxes. Every item has `objectId` and `relatedObjectId`: a thing's own item
has its id in both (`CONTAINER_009998`), and what links two things has one id in each of them (`CONTAINER_009998`,
`PALLET_B021002`). The index `reverse-lookup-index` is the table with its two keys swapped. What stands in it follows
from the table's keys, so that no type has to say it, and each link is found from both of its sides. No attribute says
what an item is; its keys do.

Ships and ports are ours: the article says that the containers go overseas, and has no item for it. A `Ship` shows how a
level is added to such a table: a node, an edge, and no index. Where aggregation was needed, the article kept "aggregate
state inside the items themselves": here `keygraph summarize` computes it, such as a port's statistics.

The article's own items are in `cargo.jsonl`, what makes them a sample to look around in is in
`cargo.described.jsonl`.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from keygraph import ID, Graph, Index, Many, One, Reach, Table, counts, edge, fields, node, rank, reach

reverse_lookup_index = Index("reverse-lookup-index", "relatedObjectId", "objectId")


@node("SHIP_{ship_id}")
class Ship:
    """A ship that takes containers overseas."""

    ship_id: ID
    name: str

    containers: Many[ShipContainer]
    """What was loaded onto it, each with when, where and by whom."""
    container_count: int | None = counts("containers", kept="job")
    """How many containers it carries, counted by `keygraph summarize`."""
    pallet_count: int | None = counts("containers.pallets", kept="job")
    """How many pallets are in them."""
    boxes: Reach[Box] = reach("containers", "pallets", "boxes", depth=3)
    """The boxes in its containers."""


@node("PORT_{port_id}")
class Port:
    """A port at which ships are loaded."""

    port_id: ID
    name: str

    ships: Many[PortCall]
    """The ships that called at it."""
    ship_count: int | None = counts("ships", kept="job")
    """How many ships called at it, counted by `keygraph summarize`."""
    container_count: int | None = counts("ships.containers", kept="job")
    """How many containers they carry."""
    place: int | None = rank("container_count")
    """Its place among all ports, the busiest first."""


@node("CONTAINER_{container_id}")
class Container:
    """A shipping container."""

    container_id: ID
    operator: str
    """The company that ships it."""

    pallets: Many[ContainerPallet]
    """What was loaded into it, each with when, where and by whom."""
    box_count: int | None = counts("pallets.boxes", kept="job")
    """How many boxes stand on its pallets, counted by `keygraph summarize`."""
    place: int | None = rank("box_count")
    """Its place among all containers, the fullest first."""
    boxes: Reach[Box] = reach("pallets", "boxes", depth=2)
    """The boxes on its pallets."""
    ship: One[ShipContainer]
    """The ship that it was loaded onto, if it was."""


@node("PALLET_{pallet_id}")
class Pallet:
    """A pallet of boxes."""

    pallet_id: ID
    origin: str
    """The country that it comes from, as two letters of ISO 3166."""
    destination: str
    """The country that it goes to."""

    boxes: Many[PalletBox]
    """What stands on it, each with when, where and by whom it was put there."""
    box_count: int | None = counts("boxes", kept="job")
    """How many boxes stand on it, counted by `keygraph summarize`."""
    container: One[ContainerPallet]
    """The container that it was loaded into, if it was."""


@node("BOX_{box_id}")
class Box:
    """A box of delicious bananas."""

    box_id: ID
    weight_in_kg: Decimal
    is_dangerous: bool
    """Whether the rules for dangerous goods apply to it."""

    pallet: One[PalletBox]
    """The pallet that it stands on, if it was put on one."""


@fields
class Link:
    """What is known of every link between two things."""

    linked_datetime: datetime
    """When the one was put into or onto the other."""
    linked_by: str
    """The company that did it."""
    linked_at_location: str
    """Where it was done."""


@edge("{port}", "{ship}")
class PortCall(Link):
    """A ship called at a port."""

    port: Port
    ship: Ship


@edge("{ship}", "{container}")
class ShipContainer(Link):
    """A container was loaded onto a ship."""

    ship: Ship
    container: Container


@edge("{container}", "{pallet}")
class ContainerPallet(Link):
    """A pallet was loaded into a container."""

    container: Container
    pallet: Pallet


@edge("{pallet}", "{box}")
class PalletBox(Link):
    """A box was put onto a pallet."""

    pallet: Pallet
    box: Box


graph = Graph(
    Table(
        "my-table-name",
        partition_key="objectId",
        sort_key="relatedObjectId",
        indexes=[reverse_lookup_index],
    ),
    Ship,
    Port,
    Container,
    Pallet,
    Box,
    PortCall,
    ShipContainer,
    ContainerPallet,
    PalletBox,
    attribute_case="pascal",
    store_key_fields=False,
)
