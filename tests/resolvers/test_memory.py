"""Memory: operations hold a bounded number of bytes together, and one that has ended holds nothing."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from keygraph import ID, Graph, Many, Table, node, record, turns
from keygraph.dynamo.items import Item, nested_values
from keygraph.dynamo.store import Batch, BatchGet, Cost, CreateTable, Page, Query
from keygraph.engines.open import open_store
from keygraph.errors import Throttled
from keygraph_resolvers import OperationRequest, Service, build_schema
from keygraph_resolvers.engine import engine
from keygraph_resolvers.read import run
from keygraph_resolvers.read.meter import _NODE_BYTES, Holding, Memory
from tests.resolvers.walk_worlds import below, topic, walks
from tests.resolvers.worlds import SECRET, world

pytestmark = pytest.mark.long


@node("BOX#{box_id}")
class Box:
    box_id: ID
    things: Many[Thing]


@record("{box}", "THING#{number}")
class Thing:
    box: Box
    number: ID
    text: str


graph = Graph(Table("Boxes", partition_key="PK", sort_key="SK"), Box, Thing)
schema = build_schema(graph)
DOCUMENT = '{ box(boxId: "1") { things(first: COUNT) { nodes { text } } } }'
SIZE = 100_000


class Boxes:
    """A store whose boxes hold things of 100 KB, ten of them on each page."""

    def __init__(self, size: int = SIZE) -> None:
        self.table = graph.table
        self.size = size
        self.pages = 0
        self.fails_at: int | None = None
        self.hangs_at: int | None = None
        self.hung = asyncio.Event()

    async def send(self, request: Any) -> Any:
        if isinstance(request, BatchGet):
            items = [{"PK": str(key[0]), "SK": str(key[1])} for key in request.keys]
            return Batch([*items], Cost(1, 0.5 * len(items)))
        assert isinstance(request, Query)
        self.pages += 1
        await asyncio.sleep(0)
        if self.pages == self.fails_at:
            raise Throttled("throttled")
        if self.pages == self.hangs_at:
            self.hung.set()
            await asyncio.sleep(3600)
        begin = 0 if request.start is None else int(str(request.start[1]).removeprefix("THING#")) + 1
        wanted = min(10, (request.limit or 10))
        items: list[Item] = [
            {"PK": "BOX#1", "SK": f"THING#{number:03}", "text": f"{number:03}" + "x" * self.size}
            for number in range(begin, begin + wanted)
        ]
        last = ("BOX#1", str(items[-1]["SK"]))
        return Page(items, wanted, last, Cost(1, wanted * self.size / 8192))

    async def close(self) -> None:
        pass


def asked(count: int) -> str:
    return DOCUMENT.replace("COUNT", str(count))


def codes(answer: dict[str, Any]) -> list[str]:
    return [error["extensions"]["code"] for error in answer.get("errors", ())]


async def test_operations_are_given_up_where_all_hold_too_much() -> None:
    memory, store = Memory(5_000_000), Boxes()
    service = Service(schema, store, secret=SECRET)
    with memory.holding() as first:
        assert "errors" not in await service.execute(OperationRequest(asked(40), holding=first))
        assert 4_000_000 < memory.held == first.held < 4_100_000
        with memory.holding() as second:
            pages = store.pages
            answer = await service.execute(OperationRequest(asked(40), holding=second))
            assert codes(answer) == ["UNAVAILABLE"]
            assert "data" not in answer
            # Nothing is read after it was given up.
            assert store.pages - pages <= 2
        assert memory.refusals.count == 1
        assert memory.held == first.held
        # The first one's answer is not sent yet, but small ones go on.
        with memory.holding() as third:
            memory.limit, store.size = first.held, 2_500
            assert "errors" not in await service.execute(OperationRequest(asked(40), holding=third))
    assert memory.held == 0


AGAIN = '{ box(boxId: "1") { things(first: 10) { nodes { box { things(first: COUNT) { nodes { number } } } } } } }'


ERRORS = " ".join(f"a{number}: things(first: 1, last: 1) {{ nodes {{ number }} }}" for number in range(15))
FAILING = f'{{ box(boxId: "1") {{ things(first: 10) {{ nodes {{ box {{ {ERRORS} }} }} }} }} }}'


@pytest.mark.parametrize(
    ("document", "found"), [(AGAIN.replace("COUNT", "40"), []), (FAILING, ["BAD_USER_INPUT"] * 150)]
)
async def test_what_is_made_of_one_item_again_and_again_is_held(document: str, found: list[str]) -> None:
    for limit, expected in ((100_000, ["ANSWER_LIMIT"]), (1_000_000, found)):
        memory, service = Memory(limit), Service(schema, Boxes(10), secret=SECRET)
        with memory.holding() as holding:
            answer = await service.execute(OperationRequest(document, holding=holding))
            assert codes(answer) == expected
            assert ("data" in answer) == (limit > 100_000)
            assert holding.held > 100_000
        assert memory.held == 0


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_what_was_made_goes_with_its_operation(
    monkeypatch: pytest.MonkeyPatch, *, is_cancelled: bool
) -> None:
    monkeypatch.setattr(engine, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(run, "_FEW_TURNS", 200)
    memory = Memory(10_000_000 if is_cancelled else 1_000_000)
    service = Service(schema, Boxes(10), secret=SECRET)

    waits, wait = asyncio.Event(), Holding.wait_to_answer

    async def waiting(holding: Holding) -> None:
        waits.set()
        await wait(holding)

    monkeypatch.setattr(Holding, "wait_to_answer", waiting)

    async def ask() -> None:
        with memory.holding() as holding, memory.holding() as other:
            if is_cancelled:
                # It goes on for thirty turns, and waits for the next one.
                await other.wait_to_answer()
                waits.clear()
            document = AGAIN.replace("first: 10", "first: 100").replace("COUNT", "90")
            asking = asyncio.create_task(service.execute(OperationRequest(document, holding=holding)))
            until = asyncio.ensure_future(waits.wait()) if is_cancelled else asking
            assert await asyncio.wait([until], timeout=5) == ({until}, set())
            assert asking.done() != is_cancelled
            asking.cancel()
            await asyncio.wait([asking])

    await ask()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(3):
            await ask()
        await asyncio.sleep(0.01)
        after, peak = tracemalloc.get_traced_memory()
        assert peak - before > 500_000
        assert after - before < 100_000
    finally:
        tracemalloc.stop()
        gc.enable()


async def test_large_operations_read_on_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(run, "_FEW_TURNS", 4)
    memory, store = Memory(1_000_000), Boxes(10)
    service = Service(schema, store, secret=SECRET)
    deeper = AGAIN.replace("COUNT", "11").replace("number", "box { things(first: 21) { nodes { number } } }")
    with memory.holding() as first, memory.holding() as second, memory.holding() as gone:
        await first.wait_to_answer()
        waiting, given_up = (
            asyncio.create_task(service.execute(OperationRequest(deeper, holding=each)))
            for each in (second, gone)
        )
        async with asyncio.timeout(60):
            while store.pages < 6:  # noqa: ASYNC110  # the store has no event for it
                await asyncio.sleep(0.001)
        # A small one is answered meanwhile.
        assert await service.execute("{ __typename }") == {"data": {"__typename": "Query"}}
        await asyncio.sleep(0.05)
        assert not waiting.done()
        assert store.pages == 6
        given_up.cancel()
        await asyncio.wait([given_up])
        assert service.admission.running == 1
        first.answers()
        assert codes(await asyncio.wait_for(waiting, 5)) == []
        assert store.pages == 9


SMALL_VALUES: dict[str, Callable[[], Any]] = {
    "lists": lambda: [[] for _ in range(1_500)],
    "maps": lambda: [{"a": [[]]} for _ in range(500)],
    "a set": lambda: frozenset(f"{number:03}" for number in range(999)),
}


@pytest.mark.parametrize("made", SMALL_VALUES.values(), ids=SMALL_VALUES)
async def test_values_in_items_of_a_few_kb_are_counted(made: Callable[[], Any]) -> None:
    with Memory(1_000_000_000).holding() as holding, measured() as found:
        items: list[Item | None] = [{"PK": "BOX#1", "data": made()} for _ in range(20)]
        held = await holding.take(items, nested_values(items), read_units=10.0, looked_at=20)
        assert found() / 2 < held < 3 * found()


async def test_a_page_of_many_items_is_measured_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until its last item is measured, it counts with what was read."""
    monkeypatch.setattr(turns, "TURN_SECONDS", -1.0)
    items: list[Item | None] = [{"PK": "BOX#1", "data": f"{number:04}"} for number in range(1_000)]
    memory = Memory(1_000_000_000)
    with memory.holding() as holding:
        measuring = asyncio.ensure_future(holding.take(items, 0, read_units=100.0, looked_at=1_000))
        await asyncio.sleep(0)
        assert not measuring.done()
        assert memory.held > 256 * 1024
        assert await measuring == memory.held == 1_000 * len("PKBOX#1data0000")
    assert memory.held == 0


async def test_an_operation_that_none_can_serve_is_told_so() -> None:
    memory = Memory(2_000_000)
    with memory.holding() as holding:
        answer = await Service(schema, Boxes(), secret=SECRET).execute(
            OperationRequest(asked(40), holding=holding)
        )
    assert codes(answer) == ["ANSWER_LIMIT"]
    assert "reads more than 2,000,000 bytes" in answer["errors"][0]["message"]
    assert memory.held == 0


@contextmanager
def measured() -> Iterator[Callable[[], int]]:
    """What tells how many bytes were taken at most since the beginning."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        yield lambda: tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@contextmanager
def nothing_is_left() -> Iterator[None]:
    """Whether what is made in here is gone at its end, without the garbage collector."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        yield
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert peak - before > 20 * SIZE
    assert after - before < 5 * SIZE


async def fails(store: Boxes, service: Service) -> None:
    store.fails_at = store.pages + 4
    assert codes(await service.execute(asked(90))) == ["THROTTLED"]


async def is_cancelled(store: Boxes, service: Service) -> None:
    store.hangs_at = store.pages + 4
    store.hung.clear()
    task = asyncio.create_task(service.execute(asked(90)))
    await store.hung.wait()
    task.cancel()
    await asyncio.wait([task])
    del task
    await asyncio.sleep(0.01)


async def is_given_up(store: Boxes, service: Service) -> None:
    with Memory(3_000_000).holding() as holding:
        assert codes(await service.execute(OperationRequest(asked(90), holding=holding))) == ["ANSWER_LIMIT"]


async def is_too_large(store: Boxes, service: Service) -> None:
    assert codes(await service.execute(asked(90))) == ["ANSWER_LIMIT"]
    await service._thread.run(int)  # the thread that has written the answer lets go of it


async def is_answered(store: Boxes, service: Service) -> None:
    assert codes(await service.execute(asked(60))) == []
    await service._thread.run(int)


@pytest.mark.parametrize("ends", [is_answered, fails, is_cancelled, is_given_up, is_too_large])
async def test_an_operation_leaves_nothing_behind(ends: Callable[[Boxes, Service], Awaitable[None]]) -> None:
    store = Boxes()
    service = Service(schema, store, secret=SECRET)
    await ends(store, service)
    with nothing_is_left():
        for _ in range(5):
            await ends(store, service)


async def test_large_answers_take_turns_until_they_are_sent() -> None:
    memory = Memory(1_000_000)
    with memory.holding() as first, memory.holding() as second:
        await first.wait_to_answer()
        await first.wait_to_answer()
        waiting = asyncio.create_task(second.wait_to_answer())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        first.answers()
        await asyncio.wait_for(waiting, 5)
    with memory.holding() as third:
        await asyncio.wait_for(third.wait_to_answer(), 5)


async def test_the_turns_of_large_answers_go_from_client_to_client() -> None:
    memory, order = Memory(1_000_000), list[str]()

    async def answer(address: str) -> None:
        with memory.holding(address) as holding:
            await holding.wait_to_answer()
            order.append(address)
            holding.answers()
            await asyncio.sleep(0)

    many = [asyncio.create_task(answer("192.0.2.1")) for _ in range(100)]
    await asyncio.sleep(0)
    await asyncio.gather(answer("192.0.2.2"), answer("192.0.2.2"), answer("192.0.2.3"), *many)
    assert sorted(order[:7].count(f"192.0.2.{client}") for client in (1, 2, 3)) == [1, 2, 4]
    assert len(order) == 103


async def test_a_turn_for_which_nobody_waits_any_longer_is_given_up() -> None:
    memory = Memory(1_000_000)
    with (
        memory.holding("192.0.2.1") as first,
        memory.holding("192.0.2.1") as second,
        memory.holding() as third,
    ):
        await first.wait_to_answer()
        waiting = [asyncio.create_task(each.wait_to_answer()) for each in (second, third)]
        await asyncio.sleep(0)
        first.answers()
        waiting[0].cancel()
        await asyncio.wait_for(waiting[1], 5)
        assert (second.turn, third.turn is None) == (None, False)
    assert memory.large_answers.running == memory.large_answers.waiting == 0


def chains(root: str, levels: int) -> list[Item]:
    """As many levels of 30 topics below one, each with one below it; an edge has 2 KB."""
    edges = [(root, f"{root}0-{chain}") for chain in range(30)]
    for level in range(levels - 1):
        edges += [(f"{root}{level}-{chain}", f"{root}{level + 1}-{chain}") for chain in range(30)]
    return [topic(root), *(below(*each) | {"note": "n" * 2_000} for each in edges)]


async def test_the_memory_of_a_walk_grows_with_its_frontier(tmp_path: Path) -> None:
    document = '{ topic(topicId: "ROOT") { descendants(first: 20) { totalCount edges { via { note } } } } }'
    peaks, held = dict[int, int](), dict[int, int]()
    async with open_store(f"sqlite:{tmp_path}/walks.db", walks.table) as store:
        await store.send(CreateTable())
        topics = world(walks, store)
        for root, levels in (("a", 2), ("a", 2), ("b", 6)):
            await topics.put(*chains(root, levels))
            memory = Memory(50_000_000)
            with memory.holding() as holding, measured() as found:
                answer = await topics.service.execute(
                    OperationRequest(document.replace("ROOT", root), holding=holding)
                )
                peaks[levels], held[levels] = found(), memory.held
            assert memory.held == 0
            assert answer["data"]["topic"]["descendants"]["totalCount"] == 30 * levels
            assert all(
                len(each["via"]["note"]) == 2_000 for each in answer["data"]["topic"]["descendants"]["edges"]
            )
    # Of a list that was read, its request stays.
    assert peaks[6] - peaks[2] < 120 * 3_000
    assert held[6] - held[2] == 120 * _NODE_BYTES
    assert 20 * 2_000 < held[2] < 25 * 2_500


async def test_what_walks_share_is_read_once(tmp_path: Path) -> None:
    walk = "descendants(first: 100) { totalCount }"
    documents = (
        f'{{ topic(topicId: "c") {{ {walk} }} }}',
        f'{{ one: topic(topicId: "c0-1") {{ {walk} }} topic(topicId: "c") {{ {walk} }} }}',
        f'{{ nodes(ids: ["ID1", "IDC"]) {{ ... on Topic {{ {walk} }} }} }}',
        f'{{ one: topic(topicId: "c0-1") {{ {walk} }} topic(topicId: "c") {{ children {{ nodes {{ children {{ nodes {{ name }} }} }} }} }} }}',
    )
    async with open_store(f"sqlite:{tmp_path}/walks.db", walks.table) as store:
        await store.send(CreateTable())
        topics = world(walks, store)
        await topics.put(*chains("c", 1)[:10], topic("c0-1"))
        sent = []
        found = await topics.ask('{ one: topic(topicId: "c0-1") { id } topic(topicId: "c") { id } }')
        for document in documents:
            topics.forget()
            ids = {"ID1": found["one"]["id"], "IDC": found["topic"]["id"]}
            await topics.ask(document.replace("ID1", ids["ID1"]).replace("IDC", ids["IDC"]))
            sent.append(topics.operations["Query"])
        assert sent == [10] * 4
