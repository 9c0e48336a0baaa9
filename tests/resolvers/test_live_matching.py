"""Which operations a change touches, by the keys and ranges that they have read."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from keygraph import Index, Table
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable, Prefix, Query
from keygraph.engines.open import open_store
from keygraph_resolvers.live.matching import ReadIndex
from keygraph_resolvers.read.recording import KeyRange, RecordingStore
from tests.resolvers.live_laws import run

TABLE = Table(
    "T",
    partition_key="PK",
    sort_key="SK",
    indexes=[Index("by_state", "state", "at"), Index("by_owner", "owner")],
)


def item(sort: str = "b", **values: Any) -> Item:
    return {"PK": "P", "SK": sort, **values}


def touched(
    *ranges: tuple[str | None, str, str | None, str | None], old: Item | None, new: Item | None
) -> set[int]:
    index: ReadIndex[int] = ReadIndex(TABLE)
    for number, each in enumerate(ranges):
        index.add_range(KeyRange(*each), number, None)
    return index.touched(old, new)


class TestRanges:
    def test_a_position_in_the_table(self) -> None:
        ranges = [
            (None, "P", "a", "c"),
            (None, "P", "b", "b"),
            (None, "P", "c", None),
            (None, "Q", None, None),
        ]
        for old, new in ((None, item()), (item(), None), (item(x=1), item(x=2))):
            assert touched(*ranges, old=old, new=new) == {0, 1}

    def test_a_position_in_an_index_before_and_after(self) -> None:
        ranges = [
            ("by_state", "open", None, "m"),
            ("by_state", "open", "m", None),
            ("by_state", "done", None, None),
        ]
        assert touched(*ranges, old=None, new=item(state="open", at="a")) == {0}
        assert touched(*ranges, old=item(state="open", at="a"), new=item(state="open", at="z")) == {0, 1}
        assert touched(*ranges, old=item(state="open", at="a"), new=item(state="done", at="a")) == {0, 2}
        # Without the sort key, or with one of another type, an item is not in the index.
        assert touched(*ranges, old=item(state="open"), new=item(state="open", at=b"a")) == set()

    def test_an_index_without_a_sort_key(self) -> None:
        ranges = [("by_owner", "ann", None, None), ("by_owner", "bob", None, None)]
        assert touched(*ranges, old=item(owner="ann"), new=item()) == {0}

    def test_many_ranges_of_a_partition_are_found_as_if_each_was_compared(self) -> None:
        random = Random(3)
        for _ in range(30):
            index: ReadIndex[int] = ReadIndex(TABLE)
            own = {}
            for number in range(random.randrange(1, 60)):
                low, high = sorted(random.choices("abcdefghijklmnopqrstuvwxyz", k=2))
                own[number] = index.of(number)
                read = KeyRange(None, "P", random.choice([low, None]), random.choice([high, None]))
                own[number].begin(read, None)
                own[number].end(read, read, None)
            left = dict(own)
            for number in random.sample([*own], len(own) // 2):
                left.pop(number).forget()
            for sort in "abmyz":
                expected = {
                    number
                    for number, each in left.items()
                    for read in each._ranges
                    if (read.low or "") <= sort and (read.high is None or sort <= read.high)
                }
                assert index.touched(None, item(sort)) == expected
            for each in left.values():
                each.forget()
            assert (index.size, index._by_partition) == (0, {})


def test_where_an_item_stays_only_changed_attributes_count() -> None:
    index: ReadIndex[str] = ReadIndex(TABLE)
    index.add_key(("P", "b"), "name", frozenset({"name"}))
    index.add_key(("P", "b"), "all", None)
    index.add_range(KeyRange(None, "P", None, None), "count", frozenset())
    assert index.touched(item(name="a"), item(name="b")) == {"name", "all"}
    assert index.touched(item(name="a"), item(name="a", other=1)) == {"all"}
    assert index.touched(item(name="a"), None) == {"name", "all", "count"}


async def test_what_a_page_did_not_reach_is_not_read(tmp_path: Path) -> None:
    async with open_store(f"sqlite:{tmp_path / 'table.sqlite'}", TABLE) as store:
        await store.send(CreateTable())
        await store.send(BatchWrite(puts=tuple(item(f"X{number}") for number in range(6))))
        index: ReadIndex[str] = ReadIndex(TABLE)
        query = Query("P", range=Prefix("X"), limit=2)
        for name, of in (("first", query), ("last", Query("P", range=Prefix("X"), limit=2, forward=False))):
            await RecordingStore(store, index.of(name)).send(of)
        page = await store.send(query)
        await RecordingStore(store, index.of("next")).send(
            Query("P", range=Prefix("X"), limit=2, start=page.last)
        )
        found = {
            sort: index.touched(None, item(sort)) for sort in ("W", "X0", "X11", "X2", "X35", "X45", "Y")
        }
        assert found == {
            "W": set(),
            "X0": {"first"},
            "X11": {"next"},
            "X2": {"next"},
            "X35": set(),
            "X45": {"last"},
            "Y": set(),
        }


@pytest.mark.parametrize("tables", [3, pytest.param(8, marks=[pytest.mark.long, pytest.mark.timeout(600)])])
@pytest.mark.long
async def test_whatever_changes_an_answer_touches_the_operation(tables: int) -> None:
    counts = await run(tables, seed=1_000)
    assert counts.missed == []
    assert counts.changed > 0
