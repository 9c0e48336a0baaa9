"""The time and memory of repairing a broken table while others write to it: `python -m bench.kept.repairing [ITEMS]`.

One percent of the items of a table of people, friendships, clubs and notes get each kind of damage: an end without its node, a
leftover in a key, a key that is missing, a mirror or a counterpart that is missing or differs, a wrong count, a missing one, a stale
copy, and the mark of an interrupted change of copies. `keygraph
verify --repair --yes` repairs them in a process of its own, while this one creates, renames and deletes notes; then
`keygraph verify` must find nothing, and each note must be as it was written last. The same again with a repair that is killed
after a third of the time, and resumed.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from bench.kept.commands import RunningCommand, run
from keygraph import ID, Graph, Index, Many, Table, copy, counts, edge, node
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import CreateTable, Store
from keygraph.engines.open import open_store
from keygraph.errors import Unavailable
from keygraph.tables.bulk import whole_table, write_batches
from keygraph.writing.marks import COPYING
from keygraph.writing.requests import Change, Create, Delete, WriteRequest
from keygraph.writing.sending.writer import write

MODEL = "bench.kept.repairing:graph"

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")


@node("PERSON#{name}", gsi1("TOWN#{town}", "{name}"))
class Person:
    name: ID
    town: str

    friends: Many[Friend]
    notes: Many[Note]
    clubs: Many[Membership]
    friends_count: int = counts("friends")
    notes_count: int = counts("notes")


@edge("{person}", "FRIEND#{friend.name}", mirror=True)
class Friend:
    person: Person
    friend: Person
    since: int


@node("CLUB#{club_id}")
class Club:
    club_id: ID

    members: Many[Member]


@edge("{person}", "CLUB#{club.club_id}")
class Membership:
    person: Person
    club: Club
    since: int


@edge("{club}", "PERSON#{person.name}", counterpart="Membership")
class Member:
    club: Club
    person: Person
    since: int


@node("NOTE#{note_id}", gsi1("{author}", "NOTE#{title}"))
class Note:
    note_id: ID
    title: str
    author: Person
    town: str | None = copy("author.town", follows=True)


graph = Graph(
    Table("People", partition_key="PK", sort_key="SK", indexes=[gsi1]),
    Person,
    Friend,
    Club,
    Membership,
    Member,
    Note,
    type_attribute="type",
    writes=True,
).check()

FRIENDS, NOTES, CLUBS = 4, 1, 2
"""For each person; a friendship is two items, and a membership too."""
PEOPLE_OF_A_CLUB = 50
MARK: Item = {
    "token": "t#",
    "until": Decimal(1),
    "search": Decimal(0),
    "after": [],
    "repeated": False,
}
"""What a change of copies leaves that was interrupted long ago."""


def _friend(one: int, other: int, since: int = 2020) -> Item:
    key = {"PK": f"PERSON#{one}", "SK": f"FRIEND#{other}"}
    ends = {"person_name": str(one), "friend_name": str(other)}
    return {**key, **ends, "since": Decimal(since), "type": "Friend"}


def _people(size: int) -> int:
    """Returns how many people a table of so many items has."""
    return size // (1 + FRIENDS + NOTES + CLUBS)


def broken_items(size: int) -> Iterator[Item]:
    """Yields so many items; one percent of them, in each way, is wrong."""
    people = _people(size)
    dice = random.Random(1)

    def is_broken() -> bool:
        """Whether an item of which there are as many as people is among those of one kind of damage."""
        return dice.random() < size / people / 100

    for number in range(people):
        key = f"PERSON#{number}"
        person: Item = {
            "PK": key,
            "SK": key,
            "name": str(number),
            "town": f"T{number % 100}",
            "type": "Person",
        }
        person |= {"GSI1PK": f"TOWN#T{number % 100}", "GSI1SK": str(number)}
        person |= {"friends_count": Decimal(FRIENDS), "notes_count": Decimal(99 if is_broken() else NOTES)}
        if is_broken():
            person["GSI1PK"] = "TOWN#undefined"
        elif is_broken():
            del person["GSI1SK"]
        if is_broken():
            del person["friends_count"]
        if is_broken():
            person[COPYING] = MARK
        yield person
        yield from _membership(number, is_missing=is_broken(), differs=is_broken())
        for step in range(1, FRIENDS // 2 + 1):
            other = (number + step) % people
            yield _friend(number, other)
            if step == 1 and is_broken():
                continue  # its mirror is missing
            yield _friend(other, number, 1999 if step == 2 and is_broken() else 2020)
        if is_broken():
            yield _friend(number, people + number)  # there is no such person
        key = f"NOTE#{number}"
        note: Item = {"PK": key, "SK": key, "note_id": str(number), "title": "a", "author_name": str(number)}
        note |= {"GSI1PK": f"PERSON#{number}", "GSI1SK": "NOTE#a", "type": "Note"}
        yield note | {"town": "old" if is_broken() else f"T{number % 100}"}


def _membership(number: int, *, is_missing: bool, differs: bool) -> Iterator[Item]:
    club, name = str(number // PEOPLE_OF_A_CLUB), str(number)
    key = f"CLUB#{club}"
    if not number % PEOPLE_OF_A_CLUB:
        yield {"PK": key, "SK": key, "club_id": club, "type": "Club"}
    ends: Item = {"person_name": name, "club_id": club}
    yield {"PK": f"PERSON#{name}", "SK": key, **ends, "since": Decimal(2020), "type": "Membership"}
    if not is_missing:
        since = Decimal(1999 if differs else 2020)
        yield {"PK": key, "SK": f"PERSON#{name}", **ends, "since": since, "type": "Member"}


async def _fill(url: str, size: int) -> None:
    async with open_store(url, graph.table) as store:
        await store.send(CreateTable())
        # One after the other: the most memory of a process that this one starts is at least what this one has.
        items = broken_items(size)
        batches = ((batch, None) for batch in iter(lambda: [*islice(items, 5_000)], []))
        await write_batches(store, batches, lambda _: None, in_flight=1)


async def _write_until(url: str, people: int, done: asyncio.Event) -> tuple[int, dict[str, str]]:
    """Creates notes of so many people, renames and deletes some of them. Returns the number of writes, and the titles of the
    notes that must be there."""
    count, titles = 0, dict[str, str]()
    dice, record = random.Random(2), graph.types["Note"]
    async with open_store(url, graph.table) as store:
        while not done.is_set():
            name, kind = dice.choice([*titles] or [""]), dice.random()
            if not titles or kind < 0.6:
                name = f"new{count}"
                titles[name] = "b"
                values: dict[str, Any] = {"note_id": name, "title": "b", "author": (str(count % people),)}
                await _written(store, Create(record, values))
            elif kind < 0.9:
                titles[name] = f"c{count}"
                await _written(store, Change(record, (name,), {"title": titles[name]}))
            else:
                del titles[name]
                await _written(store, Delete(record, (name,)))
            count += 1
            await asyncio.sleep(0.05)
    return count, titles


async def _written(store: Store, request: WriteRequest) -> None:
    """Writes until it succeeds: on a busy machine, the other process may have the file for longer than a write waits."""
    while True:
        try:
            await write(graph, store, [request])
        except Unavailable:
            continue
        return


async def _repaired(url: str, people: int, state: Path, kill_after: float | None = None) -> float:
    """Repairs the table while others write to it, and prints what it took, and what is left. Returns the seconds."""
    done = asyncio.Event()
    writing = asyncio.create_task(_write_until(url, people, done))
    words = ["verify", "--store", url, "--repair", "--yes", "--state", str(state)]
    if kill_after is not None:
        await asyncio.to_thread(RunningCommand(MODEL, *words).kill_after, kill_after)
        sys.stdout.write(f"killed after {kill_after:.0f} s, and resumed\n")
        words.append("--resume")
    used = await asyncio.to_thread(run, MODEL, *words)
    done.set()
    count, titles = await writing
    sys.stdout.write(f"verify --repair --yes: {used}. {used.said}\n")
    verified = await asyncio.to_thread(run, MODEL, "verify", "--store", url)
    sys.stdout.write(f"verify: {verified}. {verified.said}\n")
    async with open_store(url, graph.table, deadline=300) as store:
        found = {
            str(item["note_id"]): item["title"]
            async for item in whole_table(store)
            if str(item["SK"]).startswith("NOTE#new")
        }
    assert found == titles, "a write was lost"
    sys.stdout.write(f"{count:,} notes were written meanwhile, and all are as they were written last.\n")
    sys.stdout.flush()
    return used.seconds


async def main(size: int) -> None:
    """Repairs a table of so many items, and prints what it took; then once more, killed in the middle."""
    with tempfile.TemporaryDirectory() as folder:
        file, state, people = Path(folder) / "people.db", Path(folder) / "state", min(1_000, _people(size))
        url, before = f"sqlite:{file}", file.with_suffix(".before")
        await _fill(url, size)
        shutil.copy(file, before)
        used = await asyncio.to_thread(run, MODEL, "verify", "--store", url, "--repair")
        sys.stdout.write(f"verify --repair: {used}. {used.said}\n")
        seconds = await _repaired(url, people, state)
        shutil.move(before, file)
        await _repaired(url, people, state, seconds / 3)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
