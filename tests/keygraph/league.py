"""A league whose summaries the job computes, for the tests of what the job keeps."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from keygraph import ID, Graph, Index, Many, Table, average, copy, counts, edge, node, sums, version

by_player = Index("by-player", "gp", "gs")


@node("TEAM#{team_id}")
class Team:
    team_id: ID
    name: str

    members: Many[Member]
    size: int = counts("members")
    member_count: int | None = counts("members", kept="job")
    mean: float | None = average("members.score", kept="job")
    points: Decimal | None = sums("members.score", "stats", "points", kept="job")


@node("PLAYER#{player_id}")
class Player:
    player_id: ID
    joined_at: datetime | None = None

    teams: Many[Member]
    team_count: int | None = counts("teams", kept="job")


@edge("{team}", "MEMBER#{player.player_id}", by_player("{player}", "{team}"))
class Member:
    team: Team
    player: Player
    score: Decimal | None = None
    revision: int = version()
    team_name: str | None = copy("team.name", kept="job")


graph = Graph(
    Table("League", partition_key="pk", sort_key="sk", indexes=[by_player]), Team, Player, Member
).check()
team, player, member = graph.types.values()
