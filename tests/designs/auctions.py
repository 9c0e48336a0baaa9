"""Auctions with bids by amount, those of a seller, and those that end next. A usual design for auctions."""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, Graph, Index, Many, Table, edge, node

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
gsi2 = Index("GSI2", "GSI2PK", "GSI2SK")


@node("USER#{user_id}", "USER")
class User:
    user_id: ID
    name: str
    auctions: Many[Auction]
    bids: Many[Bid]


@node(
    "AUCTION#{auction_id}",
    "AUCTION",
    gsi1("{seller}", "AUCTION#{ends}"),
    gsi2("STATUS#{status}", "{ends}", lists="auctions_by_status"),
)
class Auction:
    auction_id: ID
    seller: User
    title: str
    status: str
    ends: datetime
    bids: Many[Bid]


@edge("{auction}", "BID#{cents:012d}#{bidder.user_id}", gsi1("{bidder}", "BID#{placed}"))
class Bid:
    auction: Auction
    bidder: User
    cents: int
    placed: datetime


graph = Graph(
    Table("Auctions", partition_key="PK", sort_key="SK", indexes=[gsi1, gsi2]),
    User,
    Auction,
    Bid,
    type_attribute="type",
)

ITEMS = """
{"PK": "USER#u1", "SK": "USER", "type": "User", "name": "Ada"}
{"PK": "USER#u2", "SK": "USER", "type": "User", "name": "Ben"}
{"PK": "AUCTION#a1", "SK": "AUCTION", "GSI1PK": "USER#u1", "GSI1SK": "AUCTION#2024-05-01T20:00:00Z", "GSI2PK": "STATUS#open", "GSI2SK": "2024-05-01T20:00:00Z", "type": "Auction", "seller_id": "u1", "title": "Vase", "status": "open", "ends": "2024-05-01T20:00:00Z"}
{"PK": "AUCTION#a2", "SK": "AUCTION", "GSI1PK": "USER#u1", "GSI1SK": "AUCTION#2024-04-01T20:00:00Z", "GSI2PK": "STATUS#sold", "GSI2SK": "2024-04-01T20:00:00Z", "type": "Auction", "seller_id": "u1", "title": "Lamp", "status": "sold", "ends": "2024-04-01T20:00:00Z"}
{"PK": "AUCTION#a1", "SK": "BID#000000001500#u2", "GSI1PK": "USER#u2", "GSI1SK": "BID#2024-04-30T10:00:00Z", "type": "Bid", "cents": 1500, "placed": "2024-04-30T10:00:00Z"}
{"PK": "AUCTION#a2", "SK": "BID#000000000900#u2", "GSI1PK": "USER#u2", "GSI1SK": "BID#2024-03-30T10:00:00Z", "type": "Bid", "cents": 900, "placed": "2024-03-30T10:00:00Z"}
"""

ASKED = """
The highest bid, and what ends next
{ auctionsByStatus(status: "open") { nodes { title seller { name } bids(direction: DESC, first: 1) { edges { cents node { name } } } } } }
{"auctionsByStatus": {"nodes": [{"title": "Vase", "seller": {"name": "Ada"}, "bids": {"edges": [{"cents": 1500, "node": {"name": "Ben"}}]}}]}}
"""
