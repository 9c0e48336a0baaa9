"""Picks of a season's games, week by week. After samhogy.co.uk, a single table for the Pick'Em app."""

from __future__ import annotations

from keygraph import ID, Graph, Index, Many, Table, edge, node

inverted = Index("inverted", "sk", "pk")


@node("PLAYER#{player_id}", "PLAYER#{player_id}")
class Player:
    player_id: ID
    name: str
    picks: Many[Pick]


@node("GAME#{season:04d}#{week:02d}#{game_id}", "GAME#{season:04d}#{week:02d}#{game_id}")
class Game:
    season: int
    week: int
    game_id: ID
    home: str
    away: str
    picks: Many[Pick]


@edge("{player}", "GAME#{game.season:04d}#{game.week:02d}#{game.game_id}")
class Pick:
    player: Player
    game: Game
    winner: str


graph = Graph(Table("pickem", partition_key="pk", sort_key="sk", indexes=[inverted]), Player, Game, Pick)

ITEMS = """
{"pk": "PLAYER#sam", "sk": "PLAYER#sam", "name": "Sam"}
{"pk": "PLAYER#kim", "sk": "PLAYER#kim", "name": "Kim"}
{"pk": "GAME#2023#01#g1", "sk": "GAME#2023#01#g1", "home": "Bears", "away": "Lions"}
{"pk": "GAME#2023#02#g2", "sk": "GAME#2023#02#g2", "home": "Jets", "away": "Bills"}
{"pk": "PLAYER#sam", "sk": "GAME#2023#01#g1", "winner": "Lions"}
{"pk": "PLAYER#sam", "sk": "GAME#2023#02#g2", "winner": "Jets"}
{"pk": "PLAYER#kim", "sk": "GAME#2023#01#g1", "winner": "Bears"}
"""

ASKED = """
A player's picks of a week, and all picks of a game
{ player(playerId: "sam") { picks(gameSeason: {eq: 2023}, gameWeek: {eq: 2}) { edges { winner node { home } } } } game(season: 2023, week: 1, gameId: "g1") { picks { nodes { name } } } }
{"player": {"picks": {"edges": [{"winner": "Jets", "node": {"home": "Jets"}}]}}, "game": {"picks": {"nodes": [{"name": "Kim"}, {"name": "Sam"}]}}}
"""
