"""Users whose points another server has."""

from __future__ import annotations

from keygraph import ID, Graph, Table, field, node, stored


@node("USER#{user_id}")
class User:
    user_id: ID
    name: str = stored(shareable=True)
    points: int = stored(external=True)

    @field(needs=("name", "points"))
    def greeting(self) -> str:
        return f"{self.name} has {self.points} points"


graph = Graph(Table("Members", partition_key="PK"), User)
