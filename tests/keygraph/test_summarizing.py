"""The job computes what only it keeps, for a whole table, and never overwrites what is newer."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Reach, Table, counts, edge, node, reach, record, ttl
from keygraph.changes.kept_walks import StreamWalks
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, PassingStore, Query, Scan, Store, Write
from keygraph.summaries.local import WorkFile
from keygraph.summaries.work import Summaries
from keygraph.tables.bulk import WriteRate
from keygraph.tables.findings import FindingKind
from keygraph.tables.repair import ItemChange
from keygraph.walks.walk import Vertex
from keygraph.writing.requests import Change, Create, Delete, Put
from keygraph.writing.sending.writer import write
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.league import graph, member, player, team
from tests.keygraph.summarized import (
    AS_OF,
    AT,
    Stopped,
    before_first,
    change,
    contents,
    killed_after,
    summarize,
)
from tests.keygraph.verified_net import told
from tests.tracing import HeldStore
from tests.verified import verified

on_all_engines = pytest.mark.parametrize("engine", ENGINES)
on_sqlite = pytest.mark.parametrize("engine", ["sqlite"])

ANTS, BEES = ("TEAM#a", "TEAM#a"), ("TEAM#b", "TEAM#b")
_AGES = ("member_count_as_of", "team_count_as_of", "team_name_as_of")


def joins(of: str, who: str, score: str | None = None) -> Put:
    return Put(member, {"team": (of,), "player": (who,), "score": score and Decimal(score)})


@pytest.fixture
async def store(make_store: MakeStore) -> Store:
    store = await make_store(graph.table)
    await write(graph, store, [Create(team, {"team_id": "a", "name": "Ants"})])
    await write(graph, store, [Create(team, {"team_id": "b", "name": "Bees"})])
    await write(graph, store, [Create(player, {"player_id": each}) for each in "123"])
    for each in (joins("a", "1", "2.5"), joins("a", "2", "-0.25"), joins("a", "3"), joins("b", "1", "7")):
        await write(graph, store, [each])
    return store


async def kept(store: Store) -> dict[str, Any]:
    """What the job keeps, by the item's key."""
    found = {}
    for item in await contents(store):
        own = {name: item.get(name) for name in ("member_count", "team_count", "team_name") if name in item}
        stats = item.get("stats")
        own |= {"points": stats.get("points")} if isinstance(stats, dict) else {}
        found[f"{item['pk']} {item['sk']}"] = own
    return found


RIGHT = {
    "PLAYER#1 PLAYER#1": {"team_count": 2},
    "PLAYER#2 PLAYER#2": {"team_count": 1},
    "PLAYER#3 PLAYER#3": {"team_count": 1},
    "TEAM#a MEMBER#1": {"team_name": "Ants"},
    "TEAM#a MEMBER#2": {"team_name": "Ants"},
    "TEAM#a MEMBER#3": {"team_name": "Ants"},
    "TEAM#a TEAM#a": {"member_count": 3, "points": Decimal("2.25")},
    "TEAM#b MEMBER#1": {"team_name": "Bees"},
    "TEAM#b TEAM#b": {"member_count": 1, "points": 7},
}


@on_all_engines
async def test_everything_is_computed_with_its_age(store: Store, tmp_path: Path) -> None:
    assert await summarize(graph, store, tmp_path) == {"written": 9}
    assert await kept(store) == RIGHT
    for item in await contents(store):
        assert {item[name] for name in _AGES if name in item} == {AS_OF}
    [ants] = [item for item in await contents(store) if graph.table.key_of(item) == ANTS]
    assert graph.types["Team"].reader(graph.types["Team"].fields["mean"])(ants) == 1.125
    assert ants["stats"] == {"points": Decimal("2.25"), "points_as_of": AS_OF}
    # The next day nothing has changed but the ages, and the day after a list.
    assert await summarize(graph, store, tmp_path, at=AT + timedelta(days=1)) == {"confirmed": 9}
    await write(graph, store, [Delete(member, ("a", "2"))])
    assert await summarize(graph, store, tmp_path, at=AT + timedelta(days=2)) == {
        "written": 2,
        "confirmed": 6,
    }
    found = await kept(store)
    assert found["TEAM#a TEAM#a"] == {"member_count": 2, "points": Decimal("2.5")}
    assert found["PLAYER#2 PLAYER#2"] == {"team_count": 0}


@on_all_engines
async def test_only_items_with_a_value_that_changes_are_written(store: Store, tmp_path: Path) -> None:
    await summarize(graph, store, tmp_path)
    await write(graph, store, [Change(team, ("a",), {"name": "Antlers"})])
    later = AT + timedelta(days=1)
    assert await summarize(graph, store, tmp_path, at=later, only_changed=True) == {
        "written": 3,
        "confirmed": 6,
    }
    items = await contents(store)
    assert [item["team_name_as_of"] for item in items if item.get("team_name") == "Antlers"] == [
        "2020-01-03T03:04:05Z"
    ] * 3
    assert [item["member_count_as_of"] for item in items if "member_count" in item] == [AS_OF] * 2


@on_sqlite
async def test_a_dry_run_lists_what_would_change(store: Store, tmp_path: Path) -> None:
    listed: list[tuple[FindingKind, list[ItemChange]]] = []
    await change(store, ANTS, size=Decimal(9))
    before = await contents(store)

    def listen(kind: FindingKind, items: list[ItemChange]) -> None:
        listed.append((kind, items))

    counted = await summarize(graph, store, tmp_path, listen=listen, is_dry_run=True)
    assert counted == {"written": 9, "repaired": 1}
    assert await contents(store) == before
    found = {(kind.what, items[0].key): items for kind, items in listed}
    assert found["member_count, mean, points computed", BEES] == [
        ItemChange(
            BEES,
            {},
            {
                "member_count": Decimal(1),
                "mean": {"sum": Decimal(7), "count": Decimal(1)},
                "stats.points": Decimal(7),
            },
        )
    ]
    [repair] = found["size does not match its list", ANTS]
    assert (repair.before or {})["size"] == 9
    assert (repair.after or {})["size"] == 3


@on_all_engines
async def test_what_transactions_keep_is_repaired(store: Store, tmp_path: Path) -> None:
    await change(store, ANTS, size=Decimal(9))
    await summarize(graph, store, tmp_path)
    sizes = [item["size"] for item in await contents(store) if "size" in item]
    assert sizes == [3, 1]


@on_sqlite
async def test_what_transactions_keep_is_not_set_to_what_the_job_has_read(
    store: Store, tmp_path: Path
) -> None:
    """Somebody joins after the team was read: its size is right, and the job knows another one."""

    async def join() -> None:
        await write(graph, store, [joins("b", "3", "1")])

    await summarize(graph, before_first(store, Write, join), tmp_path)
    [bees] = [item for item in await contents(store) if graph.table.key_of(item) == BEES]
    assert (bees["size"], bees["member_count"]) == (2, 1)


@node("PLACE#{place_id}")
class Place:
    place_id: ID
    until: datetime | None = ttl("until")

    near: Many[Near]
    near_count: int | None = counts("near", kept="job")
    near_kept: Reach[Place] = reach("near", depth=1, kept="stream", keep=3)


@edge("{one}", "{other}")
class Near:
    one: Place
    other: Place


places = Graph(Table("Places", partition_key="pk", sort_key="sk"), Place, Near).check()


@on_sqlite
async def test_a_node_that_expires_before_it_is_written_stops_nothing(
    make_store: MakeStore, tmp_path: Path
) -> None:
    store = await make_store(places.table)
    place: Item = {"pk": "PLACE#a", "sk": "PLACE#a", "until": Decimal(int(time.time()))}
    other: Item = {"pk": "OTHER#1", "sk": "OTHER#1", "near_count": Decimal(4)}
    await store.send(BatchWrite((place, other)))
    async with asyncio.timeout(10):
        assert await summarize(places, store, tmp_path, at=AT) == Counter(gone=1)
        walks = StreamWalks(places, store)
        await walks.keep(Vertex(places.types["Place"], ("a",)), is_new=True)
    assert sorted(await contents(store), key=str) == [other, place]


# --- Others write at the same time ------------------------------------------------------------------------


@on_all_engines
async def test_a_newer_value_is_not_overwritten(store: Store, tmp_path: Path) -> None:
    newer = "2021-01-01T00:00:00Z"
    await change(store, ANTS, member_count=Decimal(50), member_count_as_of=newer)

    async def act() -> None:
        await change(store, BEES, member_count=Decimal(60), member_count_as_of=newer)

    await summarize(graph, before_first(store, Write, act), tmp_path)
    found = await kept(store)
    assert found["TEAM#a TEAM#a"] == {"member_count": 50, "points": Decimal("2.25")}
    assert found["TEAM#b TEAM#b"] == {"member_count": 60, "points": 7}


@on_all_engines
async def test_an_older_value_that_another_job_wrote_meanwhile_is_overwritten(
    store: Store, tmp_path: Path
) -> None:
    async def act() -> None:
        await change(store, BEES, member_count=Decimal(60), member_count_as_of="2019-01-01T00:00:00Z")

    await summarize(graph, before_first(store, Write, act), tmp_path)
    assert (await kept(store))["TEAM#b TEAM#b"] == {"member_count": 1, "points": 7}


@on_all_engines
async def test_a_deleted_item_stays_deleted(store: Store, tmp_path: Path) -> None:
    async def act() -> None:
        await write(graph, store, [Delete(member, ("b", "1"))])
        await write(graph, store, [Delete(team, ("b",))])

    counted = await summarize(graph, before_first(store, Write, act), tmp_path)
    assert counted["gone"] == 2
    assert {"TEAM#b TEAM#b", "TEAM#b MEMBER#1"}.isdisjoint(await kept(store))


@on_sqlite
async def test_values_that_do_not_fit_are_left(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keygraph.resolve.derived._LARGEST_INT", 2)
    assert (await summarize(graph, store, tmp_path))["refused"] == 1
    found = await kept(store)
    assert found["TEAM#a TEAM#a"] == {"points": Decimal("2.25")}
    assert found["TEAM#b TEAM#b"] == {"member_count": 1, "points": 7}


@on_sqlite
@pytest.mark.parametrize(
    ("scores", "points"),
    [
        (["9.9E125", "9.9E125"], None),
        (["-9.9E125", "-9.9E125"], None),
        (["1E125", "1E-130"], None),
        (["9.9E125", "9.9E125", "-9.9E125"], Decimal("9.9E125")),
    ],
)
async def test_a_sum_that_no_number_holds_is_left_and_stops_nothing_else(
    scores: list[str], points: Decimal | None, store: Store, tmp_path: Path
) -> None:
    """A client may write such values; only the sum of all decides."""
    await write(graph, store, [Create(team, {"team_id": "c", "name": "Cats"})])
    keys = [
        {"pk": "TEAM#c", "sk": f"MEMBER#{number}", "gp": f"PLAYER#{number}", "gs": "TEAM#c"}
        for number in range(4, 4 + len(scores))
    ]
    members: list[Item] = [
        {**each, "score": Decimal(score)} for each, score in zip(keys, scores, strict=True)
    ]
    await store.send(BatchWrite(tuple(members)))
    counted = await summarize(graph, store, tmp_path)
    assert counted["refused"] == (points is None)
    found = await kept(store)
    own = {} if points is None else {"points": points}
    assert found.pop("TEAM#c TEAM#c") == {"member_count": len(scores), **own}
    assert found == {
        **RIGHT,
        **{f"TEAM#c MEMBER#{number + 4}": {"team_name": "Cats"} for number in range(len(scores))},
    }


@on_all_engines
@pytest.mark.parametrize(
    "odd", [{}, {"a": Decimal(1)}, [], [[]], frozenset({"a"}), True, "soon", "2999-01-01T00:00:00Z"]
)
async def test_an_age_that_cannot_be_read_is_overwritten(odd: Any, store: Store, tmp_path: Path) -> None:
    await change(store, BEES, member_count=Decimal(60), member_count_as_of=odd)
    await change(store, ("TEAM#b", "MEMBER#1"), team_name_as_of=odd)
    assert await summarize(graph, store, tmp_path) == {"written": 9}
    assert await kept(store) == RIGHT


@on_sqlite
@pytest.mark.parametrize("odd", [{}, [], True])
async def test_an_end_that_cannot_be_read_has_no_copy(odd: Any, store: Store, tmp_path: Path) -> None:
    await change(store, ("TEAM#b", "MEMBER#1"), team_id=odd)
    await summarize(graph, store, tmp_path)
    assert (await kept(store))["TEAM#a MEMBER#1"] == {"team_name": "Ants"}


# --- Interruptions ----------------------------------------------------------------------------------------


@on_all_engines
async def test_it_goes_on_wherever_it_was_stopped(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at a random request, as often as it takes, it writes what it would have written at once."""
    monkeypatch.setattr("keygraph.summaries.local._PAGE_ITEMS", 2)
    monkeypatch.setattr("keygraph.summaries.local._BATCH_WRITES", 2)
    chance, stops, resume = random.Random(5), 0, False
    while True:
        try:
            await summarize(graph, killed_after(store, chance.randint(1, 4)), tmp_path, resume=resume)
            break
        except Stopped:
            stops, resume = stops + 1, True
    assert stops >= 3
    assert await kept(store) == RIGHT
    ages = {item[name] for item in await contents(store) for name in _AGES if name in item}
    assert ages == {AS_OF}


@on_sqlite
async def test_what_it_has_written_itself_is_not_newer(store: Store, tmp_path: Path) -> None:
    """Killed when it has written two items, and not yet noted that."""
    written, two_are_done = list[object](), asyncio.Event()

    class Killed(PassingStore):
        async def send(self, request: Any, /) -> Any:
            if not isinstance(request, Write):
                return await store.send(request)
            written.append(request)
            if len(written) > 2:
                await two_are_done.wait()
                raise Stopped
            answer = await store.send(request)
            done.append(request)
            if len(done) == 2:
                two_are_done.set()
            return answer

    done = list[object]()
    with pytest.raises(Stopped):
        await summarize(graph, Killed(store), tmp_path)
    counted = await summarize(graph, store, tmp_path, resume=True)
    assert counted == {"confirmed": 2, "written": 7}
    assert await summarize(graph, store, tmp_path) == {"confirmed": 9}
    assert await kept(store) == RIGHT


def test_a_work_file_whose_log_is_copied_only_in_part_is_resumed(tmp_path: Path) -> None:
    """Killed, or with a full disk, after the first page."""
    file = WorkFile(tmp_path / "a" / "work.db", [], resume=False)
    left = shutil.copytree(tmp_path / "a", tmp_path / "b") / "work.db"
    file._database.execute("PRAGMA wal_checkpoint")
    left.write_bytes((tmp_path / "a" / "work.db").read_bytes()[:4096])
    file.close()
    file = WorkFile(left, [], resume=True)
    assert file.is_resumed
    file.close()


@on_sqlite
async def test_pages_that_were_read_are_not_read_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keygraph.summaries.local._PAGE_ITEMS", 1)
    read: list[object] = []

    async def before(request: Any) -> None:
        if isinstance(request, Scan):
            read.append((request.segment, request.start))
            if len(read) == 6:
                raise Stopped

    held = HeldStore(store, before)
    with pytest.raises(Stopped):
        await summarize(graph, held, tmp_path)
    first = len(read)
    await summarize(graph, held, tmp_path, resume=True)
    done = read[: first - 1]
    assert len(done) == len({*done})
    # Only what was under way is requested again.
    assert len({*read[first:]} & {*done}) <= 3
    assert await kept(store) == RIGHT


@on_sqlite
async def test_a_job_that_stops_while_it_combines_does_that_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, calls = WorkFile.keep_results, []

    def fails(file: WorkFile) -> None:
        calls.append(True)
        add(file)
        if len(calls) == 1:
            raise Stopped

    monkeypatch.setattr(WorkFile, "keep_results", fails)
    with pytest.raises(Stopped):
        await summarize(graph, store, tmp_path)
    assert (await kept(store))["TEAM#a TEAM#a"] == {}
    await summarize(graph, store, tmp_path, resume=True)
    assert await kept(store) == RIGHT


def test_the_work_file_of_another_job_is_refused(tmp_path: Path) -> None:
    WorkFile(tmp_path / "work.db", ["one"], resume=False).close()
    assert (tmp_path / "work.db").stat().st_mode & 0o777 == 0o600
    with pytest.raises(ValueError, match="does not belong to a job"):
        WorkFile(tmp_path / "work.db", ["two"], resume=True)
    file = WorkFile(tmp_path / "work.db", ["two"], resume=False)
    assert not file.is_resumed
    file.close()


# --- Bounded ----------------------------------------------------------------------------------------------


def test_all_contributions_of_a_page_to_one_node_are_one_row() -> None:
    work = graph.made(Summaries)
    items: list[Item] = [
        {
            "pk": "TEAM#a",
            "sk": f"MEMBER#{number}",
            "gp": f"PLAYER#{number}",
            "gs": "TEAM#a",
            "score": Decimal(1),
        }
        for number in range(500)
    ]
    rows = [row for item in items for row in work.rows(item, Decimal(0))]
    combined = [row for row in work.combined(rows) if row.key == '["a"]']
    assert {work.summaries[row.summary].field.name: row.content for row in combined} == {
        "size": b'{"N":"500"}',
        "member_count": b'{"N":"500"}',
        "mean": b'{"M":{"sum":{"N":"500"},"count":{"N":"500"}}}',
        "points": b'{"N":"500"}',
    }


def test_the_order_and_the_way_in_which_rows_are_combined_do_not_matter() -> None:
    work, chance = graph.made(Summaries), random.Random(7)
    items: list[Item] = [{"pk": f"TEAM#{each}", "sk": f"TEAM#{each}", "name": each} for each in "abc"]
    items += [
        {
            "pk": f"TEAM#{of}",
            "sk": f"MEMBER#{who}",
            "gp": f"PLAYER#{who}",
            "gs": f"TEAM#{of}",
            "score": Decimal(chance.randint(-99, 99)).scaleb(-chance.randint(0, 30)),
        }
        for of in "abcd"
        for who in range(30)
    ]
    found = []
    for parts in (1, 2, 7):
        chance.shuffle(items)
        rows = [
            row
            for part in range(parts)
            for row in work.combined(
                row for item in items[part::parts] for row in work.rows(item, Decimal(0))
            )
        ]
        found.append(sorted(work.reduced(sorted(rows))))
    assert found[0] == found[1] == found[2]
    points = [work.result(row) for row in found[0] if work.summaries[row.summary].field.name == "points"]
    assert len(points) == 3


@on_sqlite
async def test_writes_keep_to_the_rate(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    send = WriteRate.send

    async def counted(rate: WriteRate, store: Store, request: Any) -> Any:
        sent.append(request)
        return await send(rate, store, request)

    monkeypatch.setattr(WriteRate, "send", counted)
    await summarize(graph, store, tmp_path, rate=1000)
    assert len(sent) == 9


# --- Many writers -----------------------------------------------------------------------------------------


@on_all_engines
async def test_writers_and_jobs_at_the_same_time(store: Store, tmp_path: Path) -> None:
    """Members join and leave while two jobs run: no write is lost, and a last job finds every value."""
    chance, done = random.Random(3), asyncio.Event()
    there = {("a", "1"), ("a", "2"), ("a", "3"), ("b", "1")}

    async def writer(who: str) -> None:
        for _ in range(6):
            of = chance.choice("ab")
            if (of, who) in there:
                await write(graph, store, [Delete(member, (of, who))])
                there.discard((of, who))
            else:
                await write(graph, store, [joins(of, who, "1")])
                there.add((of, who))

    async def job(number: int) -> None:
        folder = tmp_path / str(number)
        for turn in range(50):
            await summarize(graph, store, folder, at=AT + timedelta(seconds=2 * turn + number))
            if done.is_set():
                return

    async def writers() -> None:
        await asyncio.gather(*(writer(who) for who in "123"))
        done.set()

    await asyncio.gather(writers(), job(0), job(1))
    await summarize(graph, store, tmp_path, at=AT + timedelta(days=1))
    items = await contents(store)
    assert {(str(item["pk"])[5:], str(item["sk"])[7:]) for item in items if "revision" in item} == there
    for item in items:
        if item["pk"] in ("TEAM#a", "TEAM#b") and item["pk"] == item["sk"]:
            size = sum(of == str(item["pk"])[5:] for of, _ in there)
            assert (item["size"], item["member_count"]) == (size, size)
        elif item["pk"] == item["sk"]:
            assert item["team_count"] == sum(who == str(item["pk"])[7:] for _, who in there)
    assert told(await verified(graph, store, segments=1)) == []


@on_all_engines
async def test_a_number_key_of_an_index_follows_what_the_job_computes(
    make_store: MakeStore, tmp_path: Path
) -> None:
    by_size = Index("by-size", "kind", ("parts", "N"))

    @node("BOX#{box_id}", by_size(lists="boxes"))
    class Box:
        box_id: ID
        kind: str = "box"
        things: Many[Thing]
        parts: int | None = counts("things", kept="job")

    @record("{box}", "THING#{number}")
    class Thing:
        box: Box
        number: int

    table = Table("Boxes", partition_key="pk", sort_key="sk", indexes=[by_size])
    boxes = Graph(table, Box, Thing).check()
    store = await make_store(table)
    box, thing = boxes.types.values()
    for name, number in (("few", 1), ("none", 0), ("many", 3)):
        await write(boxes, store, [Create(box, {"box_id": name, "kind": "box"})])
        for each in range(number):
            await write(boxes, store, [Put(thing, {"box": (name,), "number": each})])
    await summarize(boxes, store, tmp_path)
    page = await store.send(Query("box", "by-size", forward=False))
    assert [item["box_id"] for item in page.items] == ["many", "few", "none"]
