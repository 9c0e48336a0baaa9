"""Fifteen tables that were designed elsewhere: each list is one Query of the keys that the design has for it."""

from __future__ import annotations

import pytest

from keygraph import Graph
from keygraph.lists.describe import path_request
from keygraph_resolvers import build_schema
from tests.documents import more_published_designs, published_designs

DESIGNS = {**vars(published_designs), **vars(more_published_designs)}
GRAPHS = {name: value for name, value in DESIGNS.items() if isinstance(value, Graph)}

REQUESTS = [
    ("repos", "User.repositories", "GSI1: GSI1PK = ACCOUNT#{login} AND begins_with(GSI1SK, #REPO#)"),
    ("repos", "Organization.repositories", "GSI1: GSI1PK = ACCOUNT#{login} AND begins_with(GSI1SK, #REPO#)"),
    ("repos", "Repository.issues", "PK = REPO#{owner_login}#{name} AND begins_with(SK, ISSUE#)"),
    (
        "repos",
        "Repository.by_state",
        "GSI1: GSI1PK = REPO#{owner_login}#{name} AND begins_with(GSI1SK, ISSUE#)",
    ),
    (
        "repos",
        "Issue.reactions",
        "PK = ISSUE#{repository_owner_login}#{repository_name}#{number} AND begins_with(SK, REACTION#)",
    ),
    ("games", "Player.games", "GSI1: GSI1PK = PLAYER#{player_id} AND begins_with(GSI1SK, PLAYED#)"),
    ("games", "Game.players", "PK = GAME#{game_id} AND begins_with(SK, PLAYER#)"),
    ("games", "open_games", "GSI1: GSI1PK = OPEN#{map}"),
    ("games", "scores", "Leaderboard: LB = SCORES"),
    ("chat", "Room.messages", "PK = ROOM#{room_id} AND begins_with(SK, MSG#)"),
    ("chat", "Room.members", "PK = ROOM#{room_id} AND begins_with(SK, MEMBER#)"),
    ("chat", "Person.rooms", "GSI1: GSI1PK = PERSON#{handle} AND begins_with(GSI1SK, ROOM#)"),
    ("iot", "Device.readings", "pk = DEVICE#{device_id}#{day} AND sk < DEVICE"),
    ("iot", "devices_of", "GSI1: GSI1PK = SITE#{site}"),
    ("desk", "Ticket.comments", "PK = TICKET#{ticket_id} AND begins_with(SK, COMMENT#)"),
    ("desk", "tickets", "GSI1: GSI1PK = STATUS#{status}"),
    ("tenants", "Hotel.bookings", "PK = TENANT#{tenant}#HOTEL#{hotel_id} AND begins_with(SK, BOOKING#)"),
    ("tenants", "hotels", "GSI1: GSI1PK = TENANT#{tenant} AND begins_with(GSI1SK, HOTEL#)"),
    ("tenants", "bookings_of", "GSI1: GSI1PK = TENANT#{hotel_tenant}#GUEST#{guest} AND GSI1SK < HOTEL#"),
    ("films", "Film.cast", "PK = FILM#{film_id} AND begins_with(SK, ACTOR#)"),
    ("films", "Actor.roles", "inverted: SK = ACTOR#{actor_id} AND begins_with(PK, FILM#)"),
    ("bm", "Reader.bookmarks", "PK = USER#{user_id} AND begins_with(SK, BOOKMARK#)"),
    ("bm", "Reader.latest", "ByDate: PK = USER#{user_id}"),
    ("social", "Handle.timeline", "PK = T#{handle}"),
    ("social", "Handle.followers", "PK = U#{handle} AND begins_with(SK, F#)"),
    ("social", "Handle.following", "inverted: SK = F#{handle} AND begins_with(PK, U#)"),
    ("social", "handles", "inverted: SK = U AND begins_with(PK, U#)"),
    ("content", "Doc.versions", "PK = DOC#{doc_id} AND begins_with(SK, v)"),
    ("carts", "Customer.cart", "PK = c#{customer_id} AND begins_with(SK, cart#)"),
    ("carts", "Customer.orders", "GSI1: GSI1PK = c#{customer_id} AND begins_with(GSI1SK, o#)"),
    ("carts", "Product.stock", "PK = p#{product_id} AND begins_with(SK, w#)"),
    ("carts", "Warehouse.stock", "GSI1: GSI1PK = w#{warehouse_id} AND begins_with(GSI1SK, p#)"),
    ("carts", "Order.shipments", "PK = o#{order_id} AND begins_with(SK, sh#)"),
    ("carts", "Order.invoice", "PK = o#{order_id} AND begins_with(SK, i#)"),
    ("carts", "Shipment.items", "PK = sh#{order_id}#{shipment_id} AND begins_with(SK, p#)"),
    ("carts", "products_in", "GSI1: GSI1PK = CATEGORY#{category}"),
    ("sessions", "sessions_of", "UserIndex: Username = {username}"),
    ("wiki", "Page.revisions", "PK = PAGE#{title} AND begins_with(SK, REV#)"),
    ("wiki", "Page.links", "PK = PAGE#{title} AND begins_with(SK, LINK#)"),
    ("wiki", "Page.backlinks", "Backlinks: LinkTo = PAGE#{title} AND begins_with(PK, PAGE#)"),
    ("audit", "Tenant.entries", "PK = AUDIT#{tenant_id}#{day}#{shard}"),
    ("audit", "Tenant.of_actor", "GSI1: GSI1PK = TENANT#{tenant_id}#ACTOR#{actor}"),
    ("fleet", "Org.devices", "GSI1: GSI1PK = ORG#{org_id}"),
    ("fleet", "Org.in_region", "PK = ORG#{org_id}#{region} AND begins_with(SK, DEV#)"),
]


@pytest.mark.parametrize(("design", "path", "request_"), REQUESTS)
def test_each_list_is_the_designs_own_query(design: str, path: str, request_: str) -> None:
    graph = GRAPHS[design].check()
    found = {
        f"{each.owner.name}.{each.name}" if each.owner else each.name: path_request(graph, each)
        for each in graph.paths
    }
    described = found[path]
    assert (f"{described.index}: " if described.index else "") + described.keys == request_


@pytest.mark.parametrize("design", sorted(GRAPHS))
def test_nothing_else_is_offered(design: str) -> None:
    graph = GRAPHS[design].check()
    offered = {f"{path.owner.name}.{path.name}" if path.owner else path.name for path in graph.paths}
    assert offered == {path for name, path, _ in REQUESTS if name == design}
    assert "type Query {" in build_schema(graph).as_str()
