"""What the tests of verifying share: a net of people, tags and rooms, its items, and what a report tells."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any

from keygraph import ID, Graph, Index, Table, edge, field, node, record
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Batch, BatchGet, Cost, Page
from keygraph.errors import Unavailable
from keygraph.tables.findings import Report

by_name = Index("ByName", "NamePK", "NameSK")


@node("USER#{user_id}", by_name("NAME#{initial}", "{name}", lists=False))
class User:
    user_id: ID
    name: str

    @field(needs=("name",))
    def initial(self) -> str:
        return self.name[0]


@node("TAG#{tag}", item=False)
class Tag:
    tag: ID


@node("ROOM#{room_id}#{shard}", "ROOM", shards=3)
class Room:
    room_id: ID


@edge("{user}", "FRIEND#{friend.user_id}", mirror=True)
class Friend:
    user: User
    friend: User
    since: date


@edge("{user}", "TAGGED#{tag}")
class Tagged:
    user: User
    tag: Tag


@edge("{user}", "IN#{room.room_id}", counterpart="Guest")
class Stay:
    user: User
    room: Room
    since: date


@edge("ROOM#{room.room_id}", "GUEST#{user.user_id}")
class Guest:
    user: User
    room: Room
    since: date


@record("{user}", "NOTE#{written}")
class Note:
    user: User
    written: date
    about: User | None
    stars: int


graph = Graph(
    Table("Net", partition_key="PK", sort_key="SK", indexes=[by_name]),
    User,
    Tag,
    Room,
    Friend,
    Tagged,
    Stay,
    Guest,
    Note,
    type_attribute="type",
)


def user(name: str) -> Item:
    """A user with the keys that the name makes."""
    key = f"USER#{name}"
    return {"PK": key, "SK": key, "type": "User", "name": name, "NamePK": f"NAME#{name[0]}", "NameSK": name}


def friend(one: str, other: str, since: str = "2024-02-03", **more: Any) -> Item:
    return {"PK": f"USER#{one}", "SK": f"FRIEND#{other}", "type": "Friend", "since": since, **more}


def stay(name: str, room: str, since: str = "2024-02-03") -> list[Item]:
    return [
        {"PK": f"USER#{name}", "SK": f"IN#{room}", "type": "Stay", "since": since},
        {"PK": f"ROOM#{room}", "SK": f"GUEST#{name}", "type": "Guest", "since": since},
    ]


def note(name: str, day: str, **more: Any) -> Item:
    return {"PK": f"USER#{name}", "SK": f"NOTE#{day}", "type": "Note", "stars": 3, **more}


def told(report: Report) -> list[str]:
    """The findings in lines: problem, type, what, and each example with the other key."""
    lines = []
    for kind, found in report.ordered():
        shown = [
            "/".join(map(str, key)) + (f" -> {'/'.join(map(str, other))}" if other else "")
            for key, other in found.examples
        ]
        lines.append(f"{kind.problem} {kind.type}: {kind.what} ({found.count}): {', '.join(shown)}")
    return lines


class Pages:
    """A table of so many pages, made as they are asked for; what is looked for is there."""

    def __init__(self, table: Table, pages: int, size: int) -> None:
        self.table, self.pages, self.size = table, pages, size
        self.under_way = self.most_under_way = 0
        self.fails_after: int | None = None

    def item(self, number: int) -> Item:
        return friend(f"a{number:06}", "bob")

    async def send(self, request: Any, /) -> Any:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(0)
            return self.answer(request)
        finally:
            self.under_way -= 1

    def answer(self, request: Any) -> Any:
        if isinstance(request, BatchGet):
            return Batch([self.found(key) for key in request.keys], Cost())
        assert request.limit is not None
        if self.fails_after is not None:
            if not self.fails_after:
                raise Unavailable("no more")
            self.fails_after -= 1
        page = 0 if request.start is None else int(str(request.start[1]))
        first = (request.segment * self.pages + page) * self.size
        items = [self.item(first + n) for n in range(self.size)]
        page += 1
        return Page(items, len(items), None if page == self.pages else ("at", str(page)), Cost())

    def found(self, key: Any) -> Item | None:
        if key[1].startswith("FRIEND#a"):
            return friend("bob", key[1].removeprefix("FRIEND#"))
        return user(key[0].removeprefix("USER#")) if key[1].startswith("USER#") else None

    async def close(self) -> None:
        pass
