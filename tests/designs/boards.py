"""Boards of scores in padded numbers, and the sessions of players. From singletable.dev, gaming leaderboard."""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, Graph, Index, Many, Table, edge, node, record

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")


@node("PLAYER#{player_id}", "PLAYER#{player_id}")
class Player:
    player_id: ID
    handle: str
    scores: Many[Score]
    sessions: Many[Session]


@node("BOARD#{board_id}", "METADATA")
class Board:
    board_id: ID
    title: str
    scores: Many[Score]


@edge("{board}", "SCORE#{points:010d}#{player.player_id}", gsi1("{player}", "SCORE#{board.board_id}"))
class Score:
    board: Board
    player: Player
    points: int


@record("{player}", "SESSION#{started}")
class Session:
    player: Player
    started: datetime
    seconds: int


graph = Graph(
    Table("Games", partition_key="PK", sort_key="SK", indexes=[gsi1]), Player, Board, Score, Session
)

ITEMS = """
{"PK": "PLAYER#p1", "SK": "PLAYER#p1", "handle": "ada"}
{"PK": "PLAYER#p2", "SK": "PLAYER#p2", "handle": "ben"}
{"PK": "BOARD#daily-2024-05-01", "SK": "METADATA", "title": "May 1"}
{"PK": "BOARD#season-3", "SK": "METADATA", "title": "Season 3"}
{"PK": "BOARD#season-3", "SK": "SCORE#0000000095#p1", "GSI1PK": "PLAYER#p1", "GSI1SK": "SCORE#season-3", "points": 95}
{"PK": "BOARD#season-3", "SK": "SCORE#0000001500#p2", "GSI1PK": "PLAYER#p2", "GSI1SK": "SCORE#season-3", "points": 1500}
{"PK": "BOARD#daily-2024-05-01", "SK": "SCORE#0000000040#p1", "GSI1PK": "PLAYER#p1", "GSI1SK": "SCORE#daily-2024-05-01", "points": 40}
{"PK": "PLAYER#p1", "SK": "SESSION#2024-05-01T10:00:00Z", "seconds": 300}
{"PK": "PLAYER#p1", "SK": "SESSION#2024-05-02T10:00:00Z", "seconds": 20}
"""

ASKED = """
The best of a board
{ board(boardId: "season-3") { title scores(direction: DESC, first: 1) { edges { points node { handle } } } } }
{"board": {"title": "Season 3", "scores": {"edges": [{"points": 1500, "node": {"handle": "ben"}}]}}}

All scores and sessions of a player
{ player(playerId: "p1") { scores { nodes { title } } sessions(last: 1) { nodes { seconds } } } }
{"player": {"scores": {"nodes": [{"title": "May 1"}, {"title": "Season 3"}]}, "sessions": {"nodes": [{"seconds": 20}]}}}
"""
