from __future__ import annotations

from keygraph import ID, Graph, Many, Table, edge, node


@node("TEAM#{team_id}")
class Team:
    team_id: ID
    name: str
    members: Many[Membership]


@node("PLAYER#{player_id}")
class Player:
    player_id: ID
    name: str


@edge("{team}", "{player}")
class Membership:
    team: Team
    player: Player
    shirt_number: int


graph = Graph(Table("League", partition_key="PK", sort_key="SK"), Team, Player, Membership)
