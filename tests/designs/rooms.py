"""Rooms of a live game with players and rounds. From dev.to, a single table for a game with rooms, rounds and leaderboards."""

from __future__ import annotations

from keygraph import ID, Graph, Many, Table, edge, node, record


@node("PLAYER#{player_id}", "PROFILE")
class Player:
    player_id: ID
    nick: str
    wins: int


@node("ROOM#{code}", "META")
class Room:
    code: ID
    state: str
    host: Player
    seats: Many[Seat]
    rounds: Many[Round]


@edge("{room}", "{player}")
class Seat:
    room: Room
    player: Player
    score: int


@record("{room}", "ROUND#{number:02d}")
class Round:
    room: Room
    number: int
    object: str
    flies: bool


graph = Graph(
    Table("kauwa-udd", partition_key="PK", sort_key="SK"), Player, Room, Seat, Round, attribute_case="camel"
)

ITEMS = """
{"PK": "PLAYER#p1", "SK": "PROFILE", "nick": "ada", "wins": 2}
{"PK": "PLAYER#p2", "SK": "PROFILE", "nick": "ben", "wins": 0}
{"PK": "ROOM#QX7Z", "SK": "META", "state": "playing", "hostId": "p1"}
{"PK": "ROOM#AB1C", "SK": "META", "state": "open", "hostId": "p2"}
{"PK": "ROOM#QX7Z", "SK": "PLAYER#p1", "score": 3}
{"PK": "ROOM#QX7Z", "SK": "PLAYER#p2", "score": 1}
{"PK": "ROOM#AB1C", "SK": "PLAYER#p2", "score": 0}
{"PK": "ROOM#QX7Z", "SK": "ROUND#01", "object": "crow", "flies": true}
{"PK": "ROOM#QX7Z", "SK": "ROUND#02", "object": "cow", "flies": false}
"""

ASKED = """
A room with all that is in it
{ room(code: "QX7Z") { state host { nick } seats { edges { score node { nick } } } rounds { nodes { object flies } } } }
{"room": {"state": "playing", "host": {"nick": "ada"}, "seats": {"edges": [{"score": 3, "node": {"nick": "ada"}}, {"score": 1, "node": {"nick": "ben"}}]}, "rounds": {"nodes": [{"object": "crow", "flies": true}, {"object": "cow", "flies": false}]}}}
"""
