"""What only a job computes: degrees, tops, ranks, and counts and sums over two levels, against a plain computation."""

from __future__ import annotations

import random
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Table,
    counts,
    degree,
    edge,
    many,
    node,
    rank,
    read,
    record,
    rule,
    stored,
    sums,
    top,
    viewer,
)
from keygraph.dynamo.items import Item, exact_sum
from keygraph.dynamo.store import BatchWrite, Store
from keygraph.summaries.work import GROUPS, LINKS, RANKS, WRITES, GroupRow, Summaries
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.guild import graph
from tests.keygraph.summarized import Stopped, contents, killed_after, summarize

graph.check()


def guild(seed: int, people: int = 12) -> list[Item]:
    """Random people, some of whom are named but do not exist."""
    chance = random.Random(seed)
    items: list[Item] = []

    def maybe(item: Item, name: str, *values: Any) -> Item:
        value = chance.choice([None, *values])
        return item if value is None else {**item, name: value}

    for number in range(people):
        key = f"PERSON#{number}"
        item: Item = {"pk": key, "sk": key, "person_id": str(number)}
        item = maybe(maybe(item, "town", "Bern", "Rome"), "score", *map(Decimal, (-1, 0, 7, 7, 30)))
        items.append(item)
        for other in chance.sample(range(people + 2), 3):
            items.append(
                {"pk": key, "sk": f"FOLLOWS#{other}", "gp": f"PERSON#{other}", "gs": f"FOLLOWER#{number}"}
            )
        for other in chance.sample(range(5), 2):
            item = {"pk": key, "sk": f"ON#{other}", "gp": f"PROJECT#{other}", "gs": key}
            items.append(maybe(item, "share", *map(Decimal, (1, 5, 5, 50))))
        for name in ("cooking", "sewing"):
            level = Decimal(chance.randint(1, 3))
            items.append({"pk": key, "sk": f"SKILL#{name}", "level": level})
    for number in range(4):
        key = f"PROJECT#{number}"
        items.append({"pk": key, "sk": key, "project_id": str(number)})
        for task in range(chance.randint(0, 3)):
            item = {"pk": key, "sk": f"TASK#{task:04d}"}
            items.append(maybe(item, "hours", Decimal("0.1"), Decimal(3), Decimal("1e-30")))
    chance.shuffle(items)
    return items


def expected(items: list[Item]) -> dict[tuple[Any, Any], dict[str, Any]]:
    """What each item should have, computed by plain loops."""
    by_key = {(item["pk"], item["sk"]): item for item in items}
    tasks = defaultdict[Any, list[Item]](list)
    for item in items:
        if str(item["sk"]).startswith("TASK#"):
            tasks[item["pk"]].append(item)
    found = {}
    for key, item in by_key.items():
        pk, sk = map(str, key)
        if pk == sk and pk.startswith("PERSON#"):
            mine = [task for each in items if each["pk"] == pk for task in tasks[each.get("gp")]]
            hours = [task.get("hours") for task in mine]
            known: list[Any] = [each for each in hours if each is not None]
            average = float(sum(known) / len(known)) if known else None
            found[key] = {
                "degree": sum(
                    (pk == each["pk"]) + (pk == each["gp"])
                    for each in items
                    if str(each["sk"]).startswith("FOLLOWS#")
                ),
                "hours": exact_sum(known),
                "task_count": len(mine),
                "task_average": average,
            }
            peers = [
                each.get("score")
                for each in items
                if each["pk"] == each["sk"] and each.get("town") == item.get("town") is not None
            ]
            found[key]["place"] = None if item.get("town") is None else place(item.get("score"), peers)
        elif pk == sk:
            on = [
                (each["share"], str(each["pk"]).removeprefix("PERSON#"))
                for each in items
                if each.get("gp") == pk and "share" in each
            ]
            best = sorted(on, key=lambda each: (-each[0], each[1]))[:2]  # type: ignore[operator]  # a number
            found[key] = {"best": [who for _, who in best], "shares": [share for share, _ in best]}
            shares: list[Any] = [share for share, _ in on]
            found[key]["most"] = max(shares, default=None)
            found[key]["least"] = min((share for share in shares if share > 1), default=None)
            last = max(tasks[item["pk"]], key=lambda task: str(task["sk"]), default={})
            found[key]["last_hours"] = last.get("hours")
        elif sk.startswith("SKILL#"):
            found[key] = {
                "place": place(item["level"], [each["level"] for each in items if each["sk"] == sk]),
                "place_of_person": place(
                    item["level"], [each["level"] for each in items if each["pk"] == pk and "level" in each]
                ),
            }
    hours = [each["hours"] for each in found.values() if "hours" in each]
    for each in found.values():
        if "hours" in each:
            each["place_by_hours"] = place(each["hours"], hours)
    return found


def place(value: Any, peers: list[Any]) -> int | None:
    return None if value is None else 1 + sum(1 for each in peers if each is not None and each > value)


def computed(items: list[Item]) -> dict[tuple[Any, Any], dict[str, Any]]:
    """What each item has."""
    found: dict[tuple[Any, Any], dict[str, Any]] = {}
    for item in items:
        type_ = graph.recognise(item)
        fields = [] if type_ is None else [each for each in type_.fields.values() if each.is_kept_later]
        for field in fields if type_ is not None else ():
            if field.kept == "as_of":
                assert type_.reader(field)(item) is not None  # type: ignore[union-attr]  # it has fields
            else:
                found.setdefault((item["pk"], item["sk"]), {})[field.name] = type_.reader(field)(item)  # type: ignore[union-attr]
    return found


@pytest.fixture
async def store(make_store: MakeStore) -> Store:
    return await make_store(graph.table)


@pytest.mark.parametrize("engine", ENGINES)
async def test_they_are_what_a_plain_computation_finds(store: Store, tmp_path: Path) -> None:
    for seed in range(3):
        items = guild(seed)
        await store.send(BatchWrite(tuple(items)))
        await summarize(graph, store, tmp_path)
        assert computed(await contents(store)) == expected(items)
        await store.send(BatchWrite((), tuple(store.table.key_of(item) for item in items)))


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize("seed", range(4))
async def test_they_are_the_same_wherever_the_job_was_stopped(
    store: Store, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keygraph.summaries.local._PAGE_ITEMS", 7)
    monkeypatch.setattr("keygraph.summaries.local._BATCH_WRITES", 5)
    items, chance, stops = guild(seed), random.Random(seed), 0
    await store.send(BatchWrite(tuple(items)))
    while True:
        try:
            held = killed_after(store, chance.randint(3, 25))
            await summarize(graph, held, tmp_path, resume=stops > 0)
            break
        except Stopped:
            stops += 1
    assert stops >= 3
    assert computed(await contents(store)) == expected(items)


@pytest.mark.parametrize("parts", [1, 2, 9])
def test_the_parts_in_which_items_are_combined_do_not_matter(parts: int) -> None:
    work, items = graph.made(Summaries), guild(9, people=30)
    whole = results(work, [items])
    assert results(work, [items[part::parts] for part in range(parts)]) == whole
    assert len(whole) > 100


def results(work: Summaries, parts: list[list[Item]]) -> list[GroupRow]:
    rows = [
        row
        for items in parts
        for row in work.combined(row for item in items for row in work.rows(item, Decimal(0)))
    ]
    for stage in (LINKS, GROUPS, RANKS):
        rows += work.reduced(sorted(row for row in rows if row.stage == stage))
    return sorted(row for row in rows if row.stage == WRITES)


# --- Mistakes ---------------------------------------------------------------------------------------------


def mistakes(
    number: Any, annotation: str = "int | None", *, of_edge: Any = None, **options: Any
) -> list[str]:
    index = Index("by-thing", "gp", "gs")

    @node("BOX#{box_id}", check=options.pop("rules", ()))
    class Box:
        box_id: ID
        weight: int = 1
        things: Many[Held]
        notes: Many[Note]
        kept: int | None = number

    @node("THING#{thing_id}")
    class Thing:
        thing_id: ID
        name: str = ""
        parts: Many[Part]

    @edge("{box}", "HOLDS#{thing.thing_id}", index("{thing}", "{box}"))
    class Held:
        box: Box
        thing: Thing
        weight: int = 1
        place: int | None = of_edge

    @record("{box}", "NOTE#{number}")
    class Note:
        box: Box
        number: int

    @record("{thing}", "PART#{number}")
    class Part:
        thing: Thing
        number: int
        weight: int = 1
        name: str = ""

    Box.__annotations__["kept"] = annotation
    table = Table("Boxes", partition_key="PK", sort_key="SK", indexes=[index])
    graph = Graph(table, Box, Thing, Held, Note, Part, **options)
    return [f"{each.where}: {each.problem} {each.fix}" for each in graph.mistakes]


def test_what_can_be_computed() -> None:
    for right, annotation in (
        (degree("things"), "int | None"),
        (top("things.weight", 3), "list[ID] | None"),
        (top("things.weight", 3), "list[int] | None"),
        (top("notes.number", 100), "list[int] | None"),
        (rank("weight"), "int | None"),
        (rank("weight", within="box_id"), "int | None"),
        (sums("things.parts.weight", kept="job"), "int | None"),
        (counts("things.parts", kept="job"), "int | None"),
    ):
        assert mistakes(right, annotation) == []
    assert mistakes(None, of_edge=rank("weight", within="thing")) == []


@pytest.mark.parametrize(
    ("number", "annotation", "problem"),
    [
        (degree("thing"), "int | None", "'thing' is no list of Box; its lists: things, notes. Name one of them."),
        (degree("notes"), "int | None", 'notes is no list of edges. Write counts("notes", kept="job").'),
        (degree("things"), "int", "it is null until the job has run. Annotate it with | None."),
        (degree("things"), "str | None", "degree() keeps an int or a Long, and it is of type string. Change its annotation."),
        (top("things.weight", 0), "list[int] | None", '0 is no number from 1 to 100. Write top("a_list.a_field", 10).'),
        (top("things.weight", 101), "list[int] | None", '101 is no number from 1 to 100. Write top("a_list.a_field", 10).'),
        (top("things.weight", 3), "list[bool] | None", "it holds numbers or keys of nodes, and it is of type list of boolean. Annotate it as list[ID], or as a list of numbers."),
        (top("things.weight", 3), "list[Decimal] | None", "Held.weight is of type int, and this of type list of decimal. Annotate it as a list of them, or as list[ID] for the keys of the nodes."),
        (top("notes.number", 3), "list[ID] | None", "it holds keys, and these are of nodes with one key field. Annotate it as a list of numbers."),
        (top("things.color", 3), "list[int] | None", "Held has no field color that is stored as a number. Name a field of the items of things."),
        (rank("kept"), "int | None", "kept is a rank itself. Rank by what it ranks by."),
        (rank("color"), "int | None", "Box has no field color that is stored as a number. Name another field."),
        (rank("weight", within="color"), "int | None", "Box has no field or end color; it has box_id, weight, kept, kept_as_of. Name one of them."),
        (sums("things.parts.weight"), "int | None", 'only the job computes something over two levels of lists. Write kept="job".'),
        (sums("things.bolts.weight", kept="job"), "int | None", "'bolts' is no list of Thing; its lists: parts. Name one of them."),
        (sums("things.parts.name", kept="job"), "int | None", "Part has no field name that is stored as a number. Name a field of the items of parts."),
        (counts("notes.parts", kept="job"), "int | None", "the items of notes are no nodes, and have no lists. Name a list of nodes or edges."),
        (counts("things.parts", kept="job", where={"weight": 1}), "int | None", "where= is for a count or sum over one list. Leave it out."),
    ],
)  # fmt: skip
def test_mistakes(number: Any, annotation: str, problem: str) -> None:
    assert mistakes(number, annotation) == [f"Box.kept: {problem}"]


def test_a_rule_about_it() -> None:
    assert mistakes(rank("weight"), rules=[rule({"kept": {"lte": 3}}, "No.")]) == [
        "Box.kept: a rule in check= is about it, and the job changes it. Remove the rule."
    ]


# --- Access -----------------------------------------------------------------------------------------------

_STAFF = [read(role="staff")]
_OWN = [read(where={"owner": viewer("sub")})]


def refused(number: Any, annotation: str, **rules: Any) -> list[str]:
    """The mistakes of a box with a summary, some of whose world is hidden."""
    index = Index("by-thing", "gp", "gs")

    @node("BOX#{box_id}", access=rules.get("box", [read()]))
    class Box:
        box_id: ID
        owner: str = ""
        weight: int = rules.get("weight", 1)
        things: Many[Held] = rules.get("things", many())
        kept: int | None = number

    @node("THING#{thing_id}", access=rules.get("thing", [read()]))
    class Thing:
        thing_id: ID
        parts: Many[Part] = rules.get("parts", many())

    @edge("{box}", "HOLDS#{thing.thing_id}", index("{thing}", "{box}"), access=rules.get("held", [read()]))
    class Held:
        box: Box
        thing: Thing
        weight: int = rules.get("held_weight", 1)

    @record("{thing}", "PART#{number}", access=rules.get("part", [read()]))
    class Part:
        thing: Thing
        number: int
        weight: int = rules.get("part_weight", 1)

    Box.__annotations__["kept"] = annotation
    graph = Graph(Table("Boxes", partition_key="PK", sort_key="SK", indexes=[index]), Box, Thing, Held, Part)
    return [each.problem for each in graph.mistakes if each.where == "Box.kept"]


KINDS: list[tuple[Any, str]] = [
    (lambda: degree("things"), "int | None"),
    (lambda: top("things.weight", 3), "list[ID] | None"),
    (lambda: top("things.weight", 3), "list[int] | None"),
    (lambda: rank("weight"), "int | None"),
    (lambda: rank("weight", within="owner"), "int | None"),
    (lambda: sums("things.parts.weight", kept="job"), "int | None"),
    (lambda: counts("things.parts", kept="job"), "int | None"),
]
DEGREE, NODES, VALUES, RANK, WITHIN, SUM, COUNT = range(len(KINDS))
_HIDDEN: list[tuple[dict[str, Any], set[int]]] = [
    ({}, set()),
    ({"held": _STAFF}, {DEGREE, NODES, VALUES, SUM, COUNT}),
    ({"held_weight": stored(default=1, access=_STAFF)}, {NODES, VALUES}),
    ({"thing": _STAFF}, {NODES, VALUES, SUM, COUNT}),
    ({"part": _STAFF}, {SUM, COUNT}),
    ({"part_weight": stored(default=1, access=_STAFF)}, {SUM}),
    ({"things": many(access=_STAFF)}, {DEGREE, NODES, VALUES, SUM, COUNT}),
    ({"parts": many(access=_STAFF)}, {SUM, COUNT}),
    ({"box": _OWN}, {RANK, WITHIN}),
    ({"weight": stored(default=1, access=_STAFF)}, {RANK, WITHIN}),
]


@pytest.mark.parametrize(("rules", "kinds"), _HIDDEN)
def test_what_would_tell_of_hidden_items_is_refused(rules: dict[str, Any], kinds: set[int]) -> None:
    for kind, (make, annotation) in enumerate(KINDS):
        found = refused(make(), annotation, **rules)
        assert bool(found) == (kind in kinds), (kind, found)
        assert all(each.startswith("it is computed from all of ") for each in found)
