"""What keeps the event loop from others: nothing for long, whatever is asked."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from graphql import get_introspection_query

from keygraph import ID, JSON, Format, Graph, Many, Reach, Table, edge, node, reach, record
from keygraph import many as many_below
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import CreateTable
from keygraph.engines.open import open_store
from keygraph.limits import Limits
from keygraph.lists.query import ListForm
from keygraph.tables.bulk import BATCH_ITEMS, write_batches
from keygraph.turns import TURN_SECONDS, WorkBudget
from keygraph_examples.commerce import graph as commerce
from keygraph_resolvers import OperationRequest, Service, build_schema
from keygraph_resolvers.engine import engine
from keygraph_resolvers.engine.engine import rounds
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.plan.bound import Bound
from keygraph_resolvers.plan.documents import Documents
from keygraph_resolvers.service import _written
from keygraph_server.processes.collection import tune_collection
from tests.clocks import slowness
from tests.conftest import MakeStore
from tests.resolvers.test_access_links import graph as club
from tests.resolvers.test_access_links import note
from tests.resolvers.test_hostile_documents import HOSTILE, SECRET, many, of_library, service
from tests.schemas import schema_of

pytestmark = pytest.mark.long

MOST_SECONDS = 0.05
NEW_SECONDS = 0.01
"""For documents that have not come before: they come one after the other, and from several clients."""


@pytest.fixture(autouse=True)
def usual_collection() -> Iterator[None]:
    """What `longest_turn` changes is as before after each test."""
    before, callbacks = gc.get_threshold(), len(gc.callbacks)
    yield
    del gc.callbacks[callbacks:]
    gc.set_threshold(*before)
    gc.unfreeze()


async def longest_turn(
    asked: Service,
    document: str | OperationRequest,
    *,
    most: float = MOST_SECONDS,
    at_once: int = 1,
) -> float:
    """The most processor time between two answers to somebody else, in the best of some runs of so many at once."""
    tune_collection(asked.makes_much)  # as in the server: what the tests have made is not looked through
    best = 1.0
    for number in range(10):
        longest, ended = 0.0, time.thread_time()
        text = document if most == MOST_SECONDS else f"{document}\n#{number}"
        running = asyncio.gather(*(asked.execute(text) for _ in range(at_once)))
        while not running.done():
            assert await asked.execute("{ __typename }") == {"data": {"__typename": "Query"}}
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, ended = max(longest, now - ended), now
        best = min(best, longest / slowness())
        if best < most:
            break
    return best


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_document_keeps_nobody_waiting(name: str) -> None:
    asked = service() if "combinations" not in name and "twice" not in name else of_library()
    assert await longest_turn(asked, HOSTILE[name][0], most=NEW_SECONDS) < NEW_SECONDS


NEW = (
    "{ "
    + " ".join(
        f'''u{number}: user(userId: "{number}") {{ name email orders(first: 3) {{ totalCount pageInfo {{ hasNextPage }}
    nodes {{ orderId total items {{ edges {{ quantity node {{ name price categories {{ nodes {{ name }} }} }} }} }} }} }} }}'''
        for number in range(11)
    )
    + " }"
)
"""A usual document of 2 KB."""


async def test_a_new_document_is_planned_beside_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, done = set[int](), list[str]()
    steps = {"_parsed": Documents, "_compiled": Documents, "_total": Bound}
    for name, owner in steps.items():

        def noted(*arguments: Any, name: str = name, work: Any = getattr(owner, name)) -> Any:  # noqa: B008  # of this step
            threads.add(threading.get_ident())
            done.append(name)
            return work(*arguments)

        monkeypatch.setattr(owner, name, noted)
    async with open_store(f"sqlite:{tmp_path / 'shop.sqlite'}", commerce.table) as store:
        await store.send(CreateTable())
        asked = Service(schema_of(commerce), store, secret=SECRET)
        assert 2_000 < len(NEW) < 2_500
        answers = await asyncio.gather(*(asked.execute(NEW + " " * number) for number in range(3)))
        assert answers == 3 * [{"data": {f"u{number}": None for number in range(11)}}]
        assert done == 3 * [*steps]  # one after another, each in one turn
        first, *others = await asyncio.gather(*(asked.execute("{ a }" + NEW) for _ in range(3)))
        assert others == 2 * [first]
        assert done[9:] == ["_parsed"]
        assert threading.get_ident() not in threads
        assert await longest_turn(asked, NEW, most=NEW_SECONDS) < NEW_SECONDS


async def test_variables_of_many_values_are_read_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def noted(*arguments: Any, work: Any = Documents.values) -> Any:
        threads.append(threading.get_ident())
        return work(*arguments)

    monkeypatch.setattr(Documents, "values", noted)
    asked = service()
    for values in ([{}] * 1_000, [{}]):
        answer = await asked.execute("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", {"ids": values})
        message = "Variable '$ids' has invalid value at [0]: ID cannot represent value: {}"
        assert answer["errors"][0]["message"] == message
    assert threads[0] != threading.get_ident() == threads[1]


async def test_introspection_keeps_nobody_waiting_and_is_kept() -> None:
    asked, document = service(), get_introspection_query(specified_by_url=True)
    # With a variable it is not kept.
    varying = document.replace("Query {", "Query($all: Boolean = true) {", 1).replace(": true)", ": $all)")
    assert await longest_turn(asked, varying) < MOST_SECONDS
    first = await asked.execute(document)
    began = time.process_time()
    assert await asked.execute(document) == first
    assert (time.process_time() - began) / slowness() < MOST_SECONDS
    assert asked.kept_bytes > 300_000


async def test_introspection_with_variables_is_not_mixed_up() -> None:
    asked = service()
    document = "query ($no: Boolean!) { __schema { queryType { name @skip(if: $no) } } user(userId: 1) { __typename } }"
    for no, found in ((True, {}), (False, {"name": "Query"})):
        answer = await asked.execute(document.replace("user(userId: 1) { __typename } ", ""), {"no": no})
        assert answer == {"data": {"__schema": {"queryType": found}}}


# --- With items -----------------------------------------------------------------------------------------


@node("SHOP#{shop_id}")
class Shop:
    shop_id: ID
    visits: Many[Visit]
    sizes: Many[Size]
    boards: Many[Board]


@record("{shop}", "VISIT#{number:06d}")
class Visit:
    shop: Shop
    number: int
    who: str
    at: datetime
    note: str | None


@record("{shop}", "SIZE#{size:hundreds}#{number:06d}")
class Size:
    shop: Shop
    size: int
    number: int


@record("{shop}", "BOARD#{number:06d}")
class Board:
    """Thousands of values in an item of 15 KB."""

    shop: Shop
    number: int
    data: JSON
    words: list[str]


graph = Graph(
    Table("Shops", partition_key="PK", sort_key="SK"),
    Shop,
    Visit,
    Size,
    Board,
    type_attribute="Type",
    formats={"hundreds": Format(lambda size: f"{size // 100:04d}", ordered=True)},
)
ITEMS = 20_000
BOARDS, VALUES = 40, 4_900


def items() -> Iterator[Item]:
    yield {"PK": "SHOP#1", "SK": "SHOP#1", "Type": "Shop", "shop_id": "1"}
    for number in range(ITEMS):
        text = f"{number:06d}"
        at = f"2024-01-01T{number % 24:02d}:00:00Z"
        yield {
            "PK": "SHOP#1",
            "SK": f"VISIT#{text}",
            "Type": "Visit",
            "who": f"who {text}",
            "at": at,
            "note": "n" * 20,
        }
        if number < BOARDS:
            is_json = number % 2 == 0
            yield {
                "PK": "SHOP#1",
                "SK": f"BOARD#{text}",
                "Type": "Board",
                "data": [[] for _ in range(VALUES)] if is_json else Decimal(10**30),
                "words": [] if is_json else [""] * VALUES,
            }
        yield {"PK": "SHOP#1", "SK": f"SIZE#0001#{text}", "Type": "Size", "size": Decimal(100 + number % 90)}  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("busy") / "shops.sqlite"

    async def fill() -> None:
        async with open_store(f"sqlite:{path}", graph.table) as store:
            await store.send(CreateTable())
            made = [*items()]
            batches = ((made[at : at + BATCH_ITEMS], None) for at in range(0, len(made), BATCH_ITEMS))
            await write_batches(store, batches, lambda _: None)

    asyncio.run(fill())
    return path


VISITS = "visits(first: 1000) { edges { cursor node { number who at note } } }"
BUSY = {
    "a page of values of many values": f"{{ shop(shopId: 1) {{ boards(first: {BOARDS}) {{ nodes {{ data }} }} }} }}",
    "many such pages, of which little is wanted": "{ shop(shopId: 1) {"
    + many("a#: boards(first: #, number: { to: 1# }) { nodes { number } }", 15).replace(
        "first: 0", "first: 1"
    )
    + "} }",
    "a page of lists of many texts": f"{{ shop(shopId: 1) {{ boards(first: {BOARDS}) {{ nodes {{ words }} }} }} }}",
    "a large answer": f"{{ {many(f'a#: shop(shopId: 1) {{ {VISITS} }}', 10)} }}",
    "a where of fifty terms that nothing passes": '{ shop(shopId: "1") { visits(first: 10, where: { or: ['
    + many('{ who: { contains: "x#" } }', 25)
    + "] }) { nodes { who } } } }",
    "a range that is checked in Python": '{ shop(shopId: "1") { sizes(first: 10, size: { from: 195, to: 199 }) { nodes { size } } } }',
    "an aggregate of many values": '{ shop(shopId: "1") { visits(first: 1, number: { to: 9000 }) { aggregate { '
    + many("a#: max(field: AT)", 15)
    + " } } } }",
    "a count of what is checked in Python": '{ shop(shopId: "1") { sizes(first: 1, size: { from: 195, to: 199 }) { totalCount } } }',
}


@pytest.mark.parametrize("name", BUSY)
async def test_a_page_keeps_nobody_waiting(file: Path, name: str) -> None:
    async with open_store(f"sqlite:{file}", graph.table) as store:
        asked = Service(
            build_schema(graph),
            store,
            secret=SECRET,
            limits=Limits(max_page_size=1000, operation_timeout=100),
        )
        answer = await asked.execute(BUSY[name])
        assert "errors" not in answer, answer["errors"][:2]
        assert await longest_turn(asked, BUSY[name]) < MOST_SECONDS


async def test_an_answer_of_many_values_is_not_begun_in_the_event_loop(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One value of `JSON` may be made of thousands, before anybody knows how long its text is."""
    threads = list[int]()

    def noted(*arguments: Any) -> dict[str, Any] | None:
        threads.append(threading.get_ident())
        return _written(*arguments)

    monkeypatch.setattr("keygraph_resolvers.service._written", noted)
    async with open_store(f"sqlite:{file}", graph.table) as store:
        asked = Service(build_schema(graph), store, secret=SECRET)
        answer = await asked.execute("{ shop(shopId: 1) { boards(first: 5) { nodes { data } } } }")
    assert len(answer["data"]["shop"]["boards"]["nodes"]) == 5
    assert len(threads) == 1
    assert threading.get_ident() not in threads


AGAIN = f"""{{ shop(shopId: "1") {{ {"visits(first: 80) { nodes { shop { " * 2} visits(first: 5) {{ nodes {{ who }} }} {"} } }" * 2} }} }}"""


async def test_lists_of_one_node_again_and_again_keep_nobody_waiting(file: Path) -> None:
    async with open_store(f"sqlite:{file}", graph.table) as store:
        asked = Service(build_schema(graph), store, secret=SECRET)
        assert "errors" not in await asked.execute(AGAIN)
        assert await longest_turn(asked, AGAIN) < MOST_SECONDS


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_rules_that_look_up_many_items_keep_nobody_waiting(make_store: MakeStore) -> None:
    """A hundred nodes, for each of which a rule looks up fifty edges, and a list of four thousand with forty each."""
    store = await make_store(club.table)
    notes = [note(f"{number:04d}", f"g{number}") for number in range(4000)]
    batches = ((notes[at : at + BATCH_ITEMS], None) for at in range(0, len(notes), BATCH_ITEMS))
    await write_batches(store, batches, lambda _: None)
    asked = Service(
        schema_of(club), store, secret=SECRET, limits=Limits(cost_limit=10**6, operation_timeout=100)
    )
    ids = [global_id(club.types["Group"], (str(number),)) for number in range(100)]
    document = "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }"
    of_ids = OperationRequest(document, {"ids": ids}, viewer={"sub": [*map(str, range(50))]})
    of_list = OperationRequest("{ notes { nodes { id } } }", viewer={"sub": [*map(str, range(40))]})
    assert await asked.execute(of_ids) == {"data": {"nodes": [None] * 100}}
    answer = await asked.execute(of_list)
    assert answer.get("data") == {"notes": {"nodes": []}}, answer
    for request in (of_ids, of_list):
        assert await longest_turn(asked, request) < MOST_SECONDS


async def test_work_on_many_items_has_a_budget(file: Path) -> None:
    document = BUSY["a count of what is checked in Python"]
    async with open_store(f"sqlite:{file}", graph.table) as store:
        asked = Service(build_schema(graph), store, secret=SECRET, limits=Limits(operation_work=0.001))
        answer = await asked.execute(document)
    [error] = answer["errors"]
    assert error["extensions"]["code"] == "COST_LIMIT"
    assert error["message"].startswith("More than 0.001 seconds of work")
    assert answer["data"] == {"shop": {"sizes": {"totalCount": None}}}


async def test_the_preparation_of_writes_has_a_budget(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_store(f"sqlite:{file}", graph.table) as store:
        asked = Service(build_schema(graph), store, secret=SECRET)
        monkeypatch.setattr(WorkBudget, "spent", 1e9)
        answer = await asked.execute('mutation { deleteShop(input: {shopId: "1"}) { deletedId } }')
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["COST_LIMIT"]


# --- Walks ----------------------------------------------------------------------------------------------


@node("FOLDER#{number}")
class Folder:
    number: ID
    children: Many[Below] = many_below(at="parent")
    descendants: Reach[Folder] = reach("children", depth=3)


@edge("{parent}", "CHILD#{child.number}", item_bytes=128)
class Below:
    parent: Folder
    child: Folder


folders = Graph(Table("Folders", partition_key="PK", sort_key="SK"), Folder, Below, store_key_fields=False)


async def longest_turn_of_walks(folder: Path, keys: Sequence[tuple[int, int]], at_once: int) -> float:
    """The longest turn of walks over folders, each the child of another, so many at once: all have a place."""
    async with open_store(f"sqlite:{folder / 'folders.sqlite'}", folders.table) as store:
        await store.send(CreateTable())
        made: list[Item] = [{"PK": "FOLDER#0", "SK": "FOLDER#0"}]
        made += [{"PK": f"FOLDER#{parent}", "SK": f"CHILD#{child}"} for parent, child in keys]
        batches = ((made[at : at + BATCH_ITEMS], None) for at in range(0, len(made), BATCH_ITEMS))
        await write_batches(store, batches, lambda _: None)
        asked = Service(build_schema(folders), store, secret=SECRET, limits=Limits(max_running=100_000))
        document = '{ folder(number: "0") { descendants(first: 1, maxDistance: 2) { totalCount } } }'
        descendants = (await asked.execute(document))["data"]["folder"]["descendants"]
        assert descendants == {"totalCount": len(keys)}
        gc.disable()  # a collection takes as long again, and comes once in many turns
        try:
            return await longest_turn(asked, document, at_once=at_once)
        finally:
            gc.enable()


async def test_a_walk_over_many_lists_keeps_nobody_waiting(tmp_path: Path) -> None:
    keys = [(0, number) for number in range(1, 4_000)]
    assert await longest_turn_of_walks(tmp_path, keys, 1) < MOST_SECONDS / 3


@node("SENSOR#{number}")
class Sensor:
    number: ID
    readings: Many[Reading]


@record("READINGS#{sensor}#{shard}", "{day}", shards=50)
class Reading:
    sensor: Sensor
    day: ID


@node("PROBE#{number}#{shard}", "PROBE", shards=50)
class Probe:
    number: ID
    text: str


READINGS = "readings(first: 1) { nodes { day } }"


@pytest.mark.parametrize(
    "selected", [f"Sensor {{ {READINGS} }}", f"Sensor {{ a: {READINGS} b: {READINGS} }}", "Probe { text }"]
)
async def test_what_has_many_shards_is_begun_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, selected: str
) -> None:
    sensors = Graph(Table("Sensors", partition_key="PK", sort_key="SK"), Sensor, Reading, Probe)
    clock, begun = count(0, TURN_SECONDS / 16), Counter[int]()
    for each in ("thread_time", "perf_counter"):
        monkeypatch.setattr(engine, each, lambda: next(clock))
    record = sensors.types[selected.split()[0]]
    async with open_store(f"sqlite:{tmp_path / 'sensors.sqlite'}", sensors.table) as store:
        await store.send(CreateTable())
        served = Service(build_schema(sensors), store, secret=SECRET)
        ids = [global_id(record, (str(number),)) for number in range(100)]
        for made in ((ListForm, "of"), (Graph, "table_keys")):
            monkeypatch.setattr(*made, _counted(getattr(*made), begun))
        await served.execute(
            f"query ($ids: [ID!]!) {{ nodes(ids: $ids) {{ ... on {selected} }} }}", {"ids": ids}
        )
    assert begun.total() >= 100
    assert max(begun.values()) <= 64


def _counted(make: Callable[..., Any], begun: Counter[int]) -> Callable[..., Any]:
    def counted(*given: Any) -> Any:
        begun[rounds().number] += 1
        return make(*given)

    return counted


async def test_many_walks_at_once_keep_nobody_waiting(tmp_path: Path) -> None:
    keys = [(0, child) for child in range(1, 31)]
    keys += [(parent, 100 * parent + child) for _, parent in keys for child in range(30)]
    assert await longest_turn_of_walks(tmp_path, keys, 60) < MOST_SECONDS
