"""Live operations: subscriptions whose answer is sent again whenever it has become another."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import orjson
import pytest

from keygraph import ID, Graph, Long, Table, node, read, viewer
from keygraph.changes.stream import StreamReader
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, BatchGet, BatchWrite, PassingStore, Query, Request, Store
from keygraph.dynamo.streams import EnableStream
from keygraph.errors import StoreError, Throttled
from keygraph.limits import LiveLimits
from keygraph_examples.commerce import graph as commerce
from keygraph_resolvers import Limits, OperationRequest, Service, build_schema
from keygraph_resolvers.live import Listener, LiveLimitReached, LiveQueries
from tests.clocks import MovedClock, until
from tests.conftest import MakeStore, on_exact_engines
from tests.resolvers.worlds import SECRET, shop_items
from tests.tracing import TracingStore

pytestmark = pytest.mark.timeout(60)

SECONDS = 20.0
"""How long something may take that has to come."""
NAME = 'subscription { user(userId: "12345") { name } }'
ORDERS = 'subscription { user(userId: "12345") { orders(first: 2) { nodes { orderId status } } } }'


async def as_json(response: dict[str, Any]) -> bytes:
    return orjson.dumps(response)


@dataclass
class Live:
    """A service with live operations over a table with a stream."""

    service: Service
    queries: LiveQueries

    async def listen(self, document: str, **given: Any) -> Listener:
        return await self.queries.listen(OperationRequest(document, **given))

    async def ask(self, document: str) -> Any:
        answer = await self.service.execute(document)
        assert "errors" not in answer, answer
        return answer["data"]

    async def rename(self, name: str) -> None:
        await self.ask(
            f'mutation {{ updateUser(input: {{userId: "12345", name: "{name}"}}) {{ user {{ name }} }} }}'
        )


async def answer_of(listener: Listener) -> Any:
    async with asyncio.timeout(SECONDS):
        answer = await listener.next()
    return None if answer is None else orjson.loads(answer.text)


async def data_of(listener: Listener) -> Any:
    answer = await answer_of(listener)
    assert "errors" not in answer, answer
    return answer["data"]


@asynccontextmanager
async def live_over(
    graph: Graph,
    store: Store,
    items: list[Item],
    *,
    limits: Limits | None = None,
    settle: float = 0.0,
    **live_limits: Any,
) -> AsyncIterator[Live]:
    await store.send(BatchWrite(puts=tuple(items)))
    await store.send(EnableStream())
    service = Service(build_schema(graph, live=True), store, secret=SECRET, limits=limits)
    queries = LiveQueries(
        service, StreamReader(store), as_json, limits=LiveLimits(**live_limits), poll=0.02, settle=settle
    )
    yield Live(service, queries)
    queries.close()


@pytest.fixture(params=["sqlite"])
def engine(request: pytest.FixtureRequest) -> str:
    return request.param  # type: ignore[no-any-return]  # pytest knows no types of parameters


@pytest.fixture
async def shop(make_store: MakeStore) -> AsyncIterator[Live]:
    async with live_over(commerce, await make_store(commerce.table), shop_items()) as live:
        yield live


# --- What is sent -------------------------------------------------------------------------------------


@on_exact_engines
class TestWhatIsSent:
    async def test_an_answer_comes_at_once_and_again_when_it_has_become_another(self, shop: Live) -> None:
        listener = await shop.listen(NAME)
        assert await data_of(listener) == {"user": {"name": "John Doe"}}
        await shop.rename("Jane")
        assert await data_of(listener) == {"user": {"name": "Jane"}}

    async def test_a_list_changes_with_its_members(self, shop: Live) -> None:
        listener = await shop.listen(ORDERS)
        [first, second] = (await data_of(listener))["user"]["orders"]["nodes"]
        order = f'orderId: "{first["orderId"]}"'
        await shop.ask(
            f"mutation {{ updateOrder(input: {{{order}, status: CANCELLED}}) {{ order {{ orderId }} }} }}"
        )
        nodes = (await data_of(listener))["user"]["orders"]["nodes"]
        assert nodes == [{**first, "status": "CANCELLED"}, second]

    async def test_what_was_not_there_comes(self, shop: Live) -> None:
        listener = await shop.listen('subscription { user(userId: "new") { name } }')
        assert await data_of(listener) == {"user": None}
        created = 'userId: "new", name: "New", email: "n@example.com", userType: CUSTOMER, createdAt: "2026-01-01T00:00:00Z"'
        await shop.ask(f"mutation {{ createUser(input: {{{created}}}) {{ user {{ name }} }} }}")
        assert await data_of(listener) == {"user": {"name": "New"}}


async def test_nothing_is_sent_where_the_answer_is_the_same(shop: Live) -> None:
    name, orders = await shop.listen(NAME), await shop.listen(ORDERS)
    await data_of(name)
    before = await data_of(orders)
    runs = shop.queries.counts.runs
    # Both have read the user's item; the orders show nothing of it.
    await shop.rename("Jane")
    await data_of(name)
    await shop.rename("Janet")
    await data_of(name)
    waiting = asyncio.create_task(orders.next())
    await asyncio.sleep(0.2)
    assert not waiting.done(), before
    waiting.cancel()
    assert shop.queries.counts.runs - runs >= 2


async def test_a_change_of_something_else_runs_nothing(shop: Live) -> None:
    listener = await shop.listen('subscription { user(userId: "12345") { email } }')
    await data_of(listener)
    counts, runs = shop.queries.counts, shop.queries.counts.runs
    await shop.rename("Jane")
    await until(lambda: counts.changes > 0)
    assert (counts.touched, counts.runs) == (0, runs)


async def test_one_document_is_run_once_for_all_who_listen(shop: Live) -> None:
    listeners = [await shop.listen(NAME, viewer={"sub": "a", "exp": 4_000_000_000}) for _ in range(5)]
    other = await shop.listen(NAME, viewer={"sub": "b"})
    assert (shop.queries.operations, shop.queries.listeners) == (2, 6)
    await asyncio.gather(*map(data_of, (*listeners, other)))
    waiting = [asyncio.create_task(data_of(each)) for each in (*listeners, other)]
    await until(
        lambda: all(not each.is_due and each.task is None for each in shop.queries._operations.values())
    )
    runs = shop.queries.counts.runs
    await shop.rename("Jane")
    assert await asyncio.gather(*waiting) == [{"user": {"name": "Jane"}}] * 6
    assert shop.queries.counts.runs - runs == 2


async def test_a_slow_listener_gets_the_newest_answer_and_none_in_between(shop: Live) -> None:
    slow, quick = await shop.listen(NAME), await shop.listen(NAME)
    await data_of(slow)
    await data_of(quick)
    for number in range(5):
        await shop.rename(f"Jane {number}")
        assert await data_of(quick) == {"user": {"name": f"Jane {number}"}}
    assert await data_of(slow) == {"user": {"name": "Jane 4"}}


# --- Nothing is missed --------------------------------------------------------------------------------


@dataclass
class Gate(PassingStore):
    """Keeps the answers to reads until it is opened."""

    is_open: asyncio.Event = field(default_factory=asyncio.Event)
    waits: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, request: Request[Answer], /) -> Answer:
        answer = await self.store.send(request)
        if isinstance(request, BatchGet | Query) and not self.is_open.is_set():
            self.waits.set()
            await self.is_open.wait()
        return answer


async def test_a_change_that_comes_while_an_operation_runs_is_not_missed(make_store: MakeStore) -> None:
    store = await make_store(commerce.table)
    gate = Gate(store)
    async with live_over(commerce, gate, shop_items()) as live:
        listener = await live.listen(NAME)
        await gate.waits.wait()
        # It has read the old name.
        service = Service(build_schema(commerce), store, secret=SECRET)
        await Live(service, live.queries).rename("Jane")
        await until(lambda: live.queries.counts.touched > 0)
        gate.is_open.set()
        names = [await data_of(listener)]
        if names == [{"user": {"name": "John Doe"}}]:
            names.append(await data_of(listener))
        assert names[-1] == {"user": {"name": "Jane"}}


async def test_what_has_read_a_global_index_runs_once_more_a_while_later(make_store: MakeStore) -> None:
    store = await make_store(commerce.table)
    async with live_over(commerce, store, shop_items(), settle=0.05) as live:
        orders, name = await live.listen(ORDERS), await live.listen(NAME)
        await data_of(orders)
        await data_of(name)
        assert live.queries.counts.runs == 2
        await until(lambda: live.queries.counts.runs >= 3)


async def test_reads_are_consistent_where_they_can_be(make_store: MakeStore) -> None:
    tracer = TracingStore(await make_store(commerce.table))
    async with live_over(commerce, tracer, shop_items()) as live:
        listener = await live.listen(ORDERS)
        await data_of(listener)
        sent = [each for each in tracer.requests if isinstance(each, BatchGet | Query)]
        assert {(getattr(each, "index", None) is None, each.consistent) for each in sent} <= {
            (True, True),
            (False, False),
        }
        # The same requests as those of the query.
        tracer.requests.clear()
        await live.service.execute(ORDERS.removeprefix("subscription"))
        assert [replace(each, consistent=False) for each in sent] == [
            each for each in tracer.requests if isinstance(each, BatchGet | Query)
        ]


async def test_an_operation_that_could_not_be_answered_is_run_again(make_store: MakeStore) -> None:
    @dataclass
    class Throttling(PassingStore):
        is_throttled: bool = False

        async def send(self, request: Request[Answer], /) -> Answer:
            if self.is_throttled and isinstance(request, BatchGet):
                raise Throttled("too many")
            return await self.store.send(request)

    store = Throttling(await make_store(commerce.table))
    async with live_over(commerce, store, shop_items()) as live:
        listener = await live.listen(NAME)
        await data_of(listener)
        runs = live.queries.counts.runs
        store.is_throttled = True
        await store.store.send(BatchWrite(puts=tuple(_renamed(each) for each in shop_items())))
        await until(lambda: live.queries.counts.runs > runs)
        store.is_throttled = False
        assert await data_of(listener) == {"user": {"name": "Jane"}}


def _renamed(item: Item) -> Item:
    return {**item, "name": "Jane"} if item.get("PK") == item.get("SK") == "USER#12345" else item


# --- Who may see it -----------------------------------------------------------------------------------


@node("NOTE#{note_id}", access=[read(where={"owner": viewer("sub")})])
class Note:
    note_id: ID
    owner: str
    text: str


notes = Graph(Table("Notes", partition_key="PK", sort_key="SK"), Note)


async def test_what_becomes_hidden_is_taken_away(make_store: MakeStore) -> None:
    def item(owner: str) -> Item:
        return {"PK": "NOTE#1", "SK": "NOTE#1", "note_id": "1", "owner": owner, "text": "hello"}

    store = await make_store(notes.table)
    async with live_over(notes, store, [item("ann")]) as live:
        document = 'subscription { note(noteId: "1") { text } }'
        ann = await live.listen(document, viewer={"sub": "ann"})
        bob = await live.listen(document, viewer={"sub": "bob"})
        assert await data_of(ann) == {"note": {"text": "hello"}}
        assert await data_of(bob) == {"note": None}
        await store.send(BatchWrite(puts=(item("bob"),)))
        assert await data_of(ann) == {"note": None}
        assert await data_of(bob) == {"note": {"text": "hello"}}


@node(
    "DEED#{deed_id}",
    access=[read(where={"signed_in": viewer("auth_time")}), read(where={"session_ends": viewer("exp")})],
)
class Deed:
    deed_id: ID
    signed_in: int
    session_ends: Long


deeds = Graph(Table("Deeds", partition_key="PK", sort_key="SK"), Deed)


@pytest.mark.parametrize(("claim", "value"), [("auth_time", 7), ("exp", 4_000_000_000)])
async def test_two_tokens_of_a_viewer_share_no_answer_unless_their_claims_are_the_same(
    make_store: MakeStore, claim: str, value: int
) -> None:
    values: Item = {"deed_id": "1", "signed_in": Decimal(7), "session_ends": Decimal(4_000_000_000)}
    item = {"PK": "DEED#1", "SK": "DEED#1", **values}
    async with live_over(deeds, await make_store(deeds.table), [item]) as live:
        document = 'subscription { deed(deedId: "1") { deedId } }'
        viewers = [{"sub": "ann", claim: each} for each in (value, value + 1)]
        fresh, stale = [await live.listen(document, viewer=each) for each in viewers]
        assert await data_of(fresh) == {"deed": {"deedId": "1"}}
        assert await data_of(stale) == {"deed": None}


async def test_a_token_that_expires_ends_the_operation(shop: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = MovedClock(monkeypatch)
    listener = await shop.listen(NAME, viewer={"sub": "a", "exp": time.time() + 100})
    await data_of(listener)
    await clock.move(101)
    [error] = (await answer_of(listener))["errors"]
    assert error["extensions"] == {"code": "UNAUTHENTICATED"}
    assert await listener.next() is None
    assert (shop.queries.operations, shop.queries.listeners) == (0, 0)


async def test_a_token_that_has_expired_by_a_new_time_of_day_gets_no_answer(
    shop: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that was suspended: its timers have not moved on."""
    listener = await shop.listen(NAME, viewer={"sub": "a", "exp": time.time() + 100})
    await data_of(listener)
    later = time.time() + 101
    monkeypatch.setattr("keygraph_resolvers.live.queries.time.time", lambda: later)
    await shop.rename("Jane")
    [error] = (await answer_of(listener))["errors"]
    assert error["extensions"] == {"code": "UNAUTHENTICATED"}
    assert await listener.next() is None


# --- Limits -------------------------------------------------------------------------------------------


class TestLimits:
    async def test_the_next_one_is_refused_and_queries_go_on(self, make_store: MakeStore) -> None:
        store = await make_store(commerce.table)
        async with live_over(commerce, store, shop_items(), live_operations=1) as live:
            listener = await live.listen(NAME)
            with pytest.raises(LiveLimitReached, match="as many subscriptions as there may be: 1") as refused:
                await live.listen(ORDERS)
            assert refused.value.code == "LIVE_LIMIT"
            assert await live.ask('{ user(userId: "12345") { name } }') == {"user": {"name": "John Doe"}}
            listener.end()
            await data_of(await live.listen(ORDERS))

    async def test_one_client_has_half_of_them(self, make_store: MakeStore) -> None:
        store = await make_store(commerce.table)
        async with live_over(commerce, store, shop_items(), live_operations=4) as live:
            for _ in range(2):
                await live.listen(NAME, viewer={"sub": "a"})
            with pytest.raises(LiveLimitReached):
                await live.listen(NAME, viewer={"sub": "a"})
            await live.listen(NAME, viewer={"sub": "b"})

    @pytest.mark.parametrize("document", [NAME, NAME + "#" * 20_000])
    async def test_what_they_keep_is_limited(self, make_store: MakeStore, document: str) -> None:
        store = await make_store(commerce.table)
        most = 300 if document == NAME else 30_000
        async with live_over(commerce, store, shop_items(), live_memory=most) as live:
            try:
                answer = await answer_of(await live.listen(document))
            except LiveLimitReached as refused:
                answer = refused.response
            assert [error["extensions"]["code"] for error in answer["errors"]] == ["LIVE_LIMIT"]
            assert live.queries.held == 0

    async def test_one_client_has_half_of_the_memory(self, make_store: MakeStore) -> None:
        store, large = await make_store(commerce.table), NAME + "#" * 20_000
        async with live_over(commerce, store, shop_items(), live_memory=100_000) as live:
            other = await live.listen(NAME, viewer={"sub": "b"})
            await data_of(other)
            await live.listen(large, viewer={"sub": "a"})
            with pytest.raises(LiveLimitReached):
                await live.listen(large + "#", viewer={"sub": "a"})
            # Those of others go on.
            await live.rename("Jane")
            assert await data_of(other) == {"user": {"name": "Jane"}}

    async def test_small_values_in_variables_are_counted(self, shop: Live) -> None:
        await shop.listen(NAME, variables={"x": [[]] * 1_000})
        assert shop.queries.held > 100_000

    async def test_a_run_that_reads_too_much_is_ended_while_it_reads(self, make_store: MakeStore) -> None:
        tracer = TracingStore(await make_store(commerce.table))
        async with live_over(commerce, tracer, shop_items(), live_memory=16 * 400) as live:
            aliases = "".join(
                f" a{number}: orders(first: {number + 1}) {{ totalCount }}" for number in range(9)
            )
            listener = await live.listen(f'subscription {{ user(userId: "12345") {{ name {aliases} }} }}')
            [error] = (await answer_of(listener))["errors"]
            assert error["extensions"] == {"code": "LIVE_LIMIT"}
            assert (live.queries.held, live.queries.listeners) == (0, 0)

    async def test_one_client_does_not_keep_others_from_running(self, make_store: MakeStore) -> None:
        gate = Gate(await make_store(commerce.table))
        async with live_over(commerce, gate, shop_items(), live_running=2) as live:
            for number in range(20):
                await live.listen(f"{NAME} # {number}", viewer={"sub": "a"})
            other = await live.listen(NAME, viewer={"sub": "b"})
            await until(lambda: live.queries.counts.runs == 2)
            running = {each.payer for each in live.queries._operations.values() if each.task is not None}
            assert running == {"viewer a", "viewer b"}
            gate.is_open.set()
            await data_of(other)

    async def test_many_listeners_get_an_answer_in_turns(
        self, shop: Live, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rounds, taken = 0, Counter[int]()
        take = Listener.take

        def taking(listener: Listener, *answer: Any) -> None:
            taken[rounds] += 1
            take(listener, *answer)

        monkeypatch.setattr(Listener, "take", taking)
        listeners = [await shop.listen(NAME) for _ in range(200)]
        while not all(each.sent for each in listeners):
            rounds += 1
            await asyncio.sleep(0)
        assert max(taken.values()) <= 32

    async def test_a_run_that_is_canceled_before_it_begins_gives_its_place_back(self, shop: Live) -> None:
        for _ in range(3):
            (await shop.listen(NAME)).end()
        await until(lambda: not shop.queries._running)

    async def test_what_is_read_for_somebody_who_has_left_is_not_kept(self, make_store: MakeStore) -> None:
        """They leave when a page has come, before the run learns of either."""

        @dataclass
        class Leaving(PassingStore):
            leave: Callable[[], None] = field(default=lambda: None, kw_only=True)

            async def send(self, request: Request[Answer], /) -> Answer:
                answer = await self.store.send(request)
                if isinstance(request, Query):
                    self.leave()
                return answer

        store = Leaving(await make_store(commerce.table))
        async with live_over(commerce, store, shop_items()) as live:
            store.leave = (await live.listen(ORDERS)).end
            await until(lambda: not live.queries.listeners and not live.queries._running)
            assert (live.queries.held, live.queries.index.size) == (0, 0)

    async def test_a_change_that_cannot_be_matched_runs_all(
        self, shop: Live, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        listener = await shop.listen(NAME)
        await data_of(listener)
        monkeypatch.setattr(shop.queries.index, "touched", dict.__getitem__)  # fails
        await shop.rename("Jane")
        assert await data_of(listener) == {"user": {"name": "Jane"}}

    async def test_the_changes_are_followed_on_for_a_while(self, shop: Live) -> None:
        listener = await shop.listen(NAME)
        following = shop.queries._following
        listener.end()
        await shop.listen(ORDERS)
        assert shop.queries._following is following

    async def test_changes_that_cannot_be_followed_are_requested_once_a_second(
        self, make_store: MakeStore
    ) -> None:
        tracer = TracingStore(await make_store(commerce.table))
        service = Service(build_schema(commerce, live=True), tracer, secret=SECRET)
        queries = LiveQueries(service, StreamReader(tracer), as_json)
        for _ in range(5):
            with pytest.raises(StoreError, match="keygraph table update --stream"):
                await queries.listen(OperationRequest(NAME))
        assert len(tracer.requests) == 1
        queries.close()

    @pytest.mark.parametrize("expires", [10**400, 1e300, 2e9])
    async def test_a_token_may_expire_after_years(self, shop: Live, expires: float) -> None:
        listener = await shop.listen(NAME, viewer={"sub": "a", "exp": expires})
        await data_of(listener)
        assert listener._expires is not None

    async def test_they_pass_the_limits_of_queries(self, make_store: MakeStore) -> None:
        store = await make_store(commerce.table)
        async with live_over(commerce, store, shop_items(), limits=Limits(cost_limit=1)) as live:
            listener = await live.listen(ORDERS)
            answer = await listener.next()
            assert answer is not None
            assert answer.is_refusal
            assert orjson.loads(answer.text)["errors"][0]["extensions"]["code"] == "COST_LIMIT"
            assert await listener.next() is None
            assert live.queries.listeners == 0

    async def test_nothing_is_left_of_those_who_have_gone(self, shop: Live) -> None:
        queries = shop.queries
        for _ in range(3):
            listener = await shop.listen(ORDERS)
            await data_of(listener)
            assert queries.held > 0
            listener.end()
            assert (queries.held, queries.listeners, queries.operations) == (0, 0, 0)


async def test_a_stop_ends_all(shop: Live) -> None:
    listener = await shop.listen(NAME)
    await data_of(listener)
    waiting = asyncio.create_task(listener.next())
    await asyncio.sleep(0)
    shop.queries.close()
    assert await waiting is None
    with pytest.raises(LiveLimitReached):
        await shop.listen(NAME)


async def test_without_a_stream_nobody_can_listen(make_store: MakeStore) -> None:
    store = await make_store(commerce.table)
    service = Service(build_schema(commerce, live=True), store, secret=SECRET)
    queries = LiveQueries(service, StreamReader(store), as_json)
    with pytest.raises(StoreError, match="keygraph table update --stream"):
        await queries.listen(OperationRequest(NAME))
    assert queries.listeners == 0


# --- The schema ---------------------------------------------------------------------------------------


def test_subscription_has_the_graphs_fields_of_query() -> None:
    schema = build_schema(commerce, live=True)._schema
    assert schema.subscription_type is not None
    assert schema.query_type is not None
    queries, live = schema.query_type.fields, schema.subscription_type.fields
    changes = {name for name, each in live.items() if str(each.type).endswith("ChangedPayload")}
    assert live.keys() - changes == queries.keys()
    for name, each in ((name, each) for name, each in live.items() if name not in changes):
        assert str(each.type) == str(queries[name].type)
        assert {key: str(of.type) for key, of in each.args.items()} == {
            key: str(of.type) for key, of in queries[name].args.items()
        }


def test_without_live_the_schema_has_no_subscriptions() -> None:
    assert build_schema(commerce)._schema.subscription_type is None


@pytest.mark.parametrize(
    ("document", "code", "words"),
    [
        (NAME, "BAD_USER_INPUT", "A subscription has many answers"),
        (
            'subscription { user(userId: "1") { name } users { nodes { name } } }',
            "GRAPHQL_VALIDATION_FAILED",
            "only one",
        ),
        ("subscription { __typename }", "GRAPHQL_VALIDATION_FAILED", "introspection"),
    ],
)
async def test_what_is_refused(shop: Live, document: str, code: str, words: str) -> None:
    [error] = (await shop.service.execute(document))["errors"]
    assert error["extensions"]["code"] == code
    assert words in error["message"]
