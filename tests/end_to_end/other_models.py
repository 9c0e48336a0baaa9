"""Two models that nothing in Keygraph has seen, as a user writes them into a folder: a file each, with items."""

from __future__ import annotations

CARGO = '''
"""Bananas overseas: containers of pallets of boxes. No item says its type, and the index has the table's keys swapped."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from keygraph import ID, Graph, Index, Many, One, Table, edge, many, node, one

reverse = Index("reverse-lookup-index", "relatedObjectId", "objectId")


@node("CONTAINER_{container_id}")
class Container:
    """What a ship carries."""

    container_id: ID
    operator: str
    """Who ships it."""

    pallets: Many[ContainerPallet] = many()


@node("PALLET_{pallet_id}")
class Pallet:
    pallet_id: ID
    origin: str
    destination: str

    container: One[ContainerPallet] = one()
    boxes: Many[PalletBox] = many()


@node("BOX_{box_id}")
class Box:
    box_id: ID
    weight_in_kg: Decimal
    is_dangerous: bool

    pallet: One[PalletBox] = one()


@edge("{container}", "{pallet}")
class ContainerPallet:
    container: Container
    pallet: Pallet
    linked_datetime: datetime
    linked_by: str
    linked_at_location: str


@edge("{pallet}", "{box}")
class PalletBox:
    pallet: Pallet
    box: Box
    linked_datetime: datetime
    linked_by: str
    linked_at_location: str


graph = Graph(
    Table("my-table-name", partition_key="objectId", sort_key="relatedObjectId", indexes=[reverse]),
    Container,
    Pallet,
    Box,
    ContainerPallet,
    PalletBox,
    attribute_case="pascal",
)
'''

CARGO_ITEMS = """\
{"objectId": "CONTAINER_009998", "relatedObjectId": "CONTAINER_009998", "Operator": "TheBoatingCompany"}
{"objectId": "CONTAINER_009998", "relatedObjectId": "PALLET_B021002", "LinkedDatetime": "2022-07-19T17:59:58Z", "LinkedBy": "MyLoadingCompany", "LinkedAtLocation": "JPA.Docks"}
{"objectId": "CONTAINER_009998", "relatedObjectId": "PALLET_B021003", "LinkedDatetime": "2022-07-19T18:01:58Z", "LinkedBy": "MyLoadingCompany", "LinkedAtLocation": "JPA.Docks"}
{"objectId": "PALLET_B021002", "relatedObjectId": "PALLET_B021002", "Origin": "BR", "Destination": "DE"}
{"objectId": "PALLET_B021002", "relatedObjectId": "BOX_A03828", "LinkedDatetime": "2022-07-19T10:13:12Z", "LinkedBy": "MyWarehouseCompany", "LinkedAtLocation": "TheWarehouseBuilding"}
{"objectId": "PALLET_B021002", "relatedObjectId": "BOX_A03829", "LinkedDatetime": "2022-07-19T10:13:34Z", "LinkedBy": "MyWarehouseCompany", "LinkedAtLocation": "TheWarehouseBuilding"}
{"objectId": "BOX_A03828", "relatedObjectId": "BOX_A03828", "WeightInKg": 20.56, "IsDangerous": false}
{"objectId": "BOX_A03829", "relatedObjectId": "BOX_A03829", "WeightInKg": 21.20, "IsDangerous": false}
"""

HELPDESK = '''
"""A helpdesk: who works on which ticket. Nodes are told by the sort key METADATA, types are written in capitals."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

from keygraph import ID, Graph, Index, Many, Table, edge, many, node, record

lookup = Index("GSI1", "GSI1-PK", "GSI1-SK")


class Urgency(Enum):
    CAN_WAIT = "can-wait"
    NOW = "now"


@node("AGENT#{agent_id}", "METADATA", type="AGENT")
class Agent:
    agent_id: ID
    name: str

    tickets: Many[Assignment] = many()


@node("TICKET#{ticket_id}", "METADATA", lookup("QUEUE#{queue}", "{opened}"), type="TICKET")
class Ticket:
    ticket_id: ID
    subject: str
    queue: str
    opened: datetime
    urgency: Urgency

    agents: Many[Assignment] = many()
    notes: Many[Note] = many()


@edge("{agent}", "{ticket}", lookup("{ticket}", "{agent}"), type="ASSIGNMENT")
class Assignment:
    agent: Agent
    ticket: Ticket
    hours: int


@record("{ticket}", "NOTE#{written}", type="NOTE")
class Note:
    ticket: Ticket
    written: datetime
    text: str
    author: Agent


graph = Graph(
    Table("Helpdesk", partition_key="PK", sort_key="SK", indexes=[lookup]),
    Agent,
    Ticket,
    Assignment,
    Note,
    attribute_case="pascal",
    type_attribute="EntityType",
)
'''

HELPDESK_ITEMS = """\
{"PK": "AGENT#ada", "SK": "METADATA", "EntityType": "AGENT", "Name": "Ada"}
{"PK": "AGENT#bo", "SK": "METADATA", "EntityType": "AGENT", "Name": "Bo"}
{"PK": "TICKET#7", "SK": "METADATA", "EntityType": "TICKET", "Subject": "The printer sings", "Urgency": "can-wait", "GSI1-PK": "QUEUE#office", "GSI1-SK": "2024-03-31T10:00:00Z"}
{"PK": "TICKET#8", "SK": "METADATA", "EntityType": "TICKET", "Subject": "No light", "Urgency": "now", "GSI1-PK": "QUEUE#office", "GSI1-SK": "2024-04-01T07:30:00Z"}
{"PK": "TICKET#9", "SK": "METADATA", "EntityType": "TICKET", "Subject": "A cold desk", "Urgency": "now", "GSI1-PK": "QUEUE#home", "GSI1-SK": "2024-04-02T09:00:00Z"}
{"PK": "TICKET#10", "SK": "METADATA", "EntityType": "TICKET", "Subject": "A warm chair", "Urgency": "can-wait", "GSI1-PK": "QUEUE#home", "GSI1-SK": "2024-03-30T09:00:00Z"}
{"PK": "AGENT#ada", "SK": "TICKET#7", "EntityType": "ASSIGNMENT", "Hours": 2, "GSI1-PK": "TICKET#7", "GSI1-SK": "AGENT#ada"}
{"PK": "AGENT#bo", "SK": "TICKET#7", "EntityType": "ASSIGNMENT", "Hours": 1, "GSI1-PK": "TICKET#7", "GSI1-SK": "AGENT#bo"}
{"PK": "AGENT#ada", "SK": "TICKET#8", "EntityType": "ASSIGNMENT", "Hours": 5, "GSI1-PK": "TICKET#8", "GSI1-SK": "AGENT#ada"}
{"PK": "TICKET#7", "SK": "NOTE#2024-03-31T11:00:00Z", "EntityType": "NOTE", "Text": "It hums now.", "AuthorId": "bo"}
"""
