"""Whether the order in which a store answers changes what an operation sends: random operations on random tables.

`python -m tests.resolvers.any_order 1000` runs so many of each model's random tables, each with answers in several orders,
and names what does not hold; `--seed` begins with another one, `--model` takes one model alone.

- In any order an operation has the same answer, and takes no more requests and round trips than its bound.
- It sends the same requests, each in the same round trip. An answer that is wanted in several round trips may be known
  when the later one begins, or not; such an operation sends the same keys.
- The keys of a round trip are in as few batches as they can be.
- Some lists cannot be read: then the answer is the same but for nulls, and each of these has an error.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph.dynamo.store import Answer, BatchGet, Count, PassingStore, Query, Request, Store
from keygraph.dynamo.table import Key
from keygraph.errors import StoreError
from keygraph.lists.query import ListQuery
from keygraph.model import expiry
from keygraph_resolvers import NO_LIMITS, OperationRequest, Service
from keygraph_resolvers.engine import engine as engine_module
from keygraph_resolvers.engine.engine import Engine
from keygraph_resolvers.read.loaders import NeighbourLoader
from keygraph_resolvers.read.meter import READ
from keygraph_resolvers.schema.types import GraphSchema
from tests.resolvers.bounds import BOUNDED
from tests.resolvers.differential import Served, errors_of, served
from tests.resolvers.made_operations import Choose, Maker
from tests.resolvers.many_operations import main
from tests.resolvers.worlds import SECRET

FROZEN = SimpleNamespace(time=lambda: 1_700_000_000.0)
"""The clock that says what has expired: requests have its time."""
ORDERS = 2
"""How many random orders there are besides the first come, and the last come, first."""
LEAST = 3
"""An operation of fewer requests has no order to speak of."""


@dataclass(eq=False)
class Unordered(PassingStore):
    """A store that answers the requests under way one at a time, in an order of its own."""

    choose: Choose
    failing: frozenset[Any] = frozenset()
    """The partitions that cannot be queried."""
    sent: Counter[tuple[int, Request[Any]]] = field(default_factory=Counter)
    """The requests, each with its round trip, without batches."""
    batches: dict[int, list[Sequence[Key]]] = field(default_factory=lambda: defaultdict(list))
    """The batches that the engine has sent, by round trip."""
    wanted: dict[Any, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The round trips in which each item and each list is wanted."""
    _under_way: list[asyncio.Future[None]] = field(default_factory=list)

    async def send(self, request: Request[Answer], /) -> Answer:
        read = READ.get()
        if not isinstance(request, BatchGet):
            self.sent[read.round_trip if read else 1, request] += 1
        turn = asyncio.get_running_loop().create_future()
        self._under_way.append(turn)
        await turn
        if isinstance(request, Query | Count) and request.partition in self.failing:
            raise StoreError("this partition cannot be read")
        return await self.store.send(request)

    async def answer(self, operation: asyncio.Future[Any]) -> Any:
        """Answers until the operation has ended, and returns its result."""
        while not operation.done():
            for _ in range(12):
                await asyncio.sleep(0)
            if self._under_way:
                turn = self._under_way.pop(self.choose(len(self._under_way)))
                if not turn.done():
                    turn.set_result(None)
        return operation.result()

    @contextmanager
    def recorded(self) -> Iterator[None]:
        send_batch, look_up, ask, gather = (
            Engine._send_batch,
            Engine.look_up,
            NeighbourLoader.ask,
            engine_module.gather,
        )

        def sends(engine: Engine, keys: Sequence[Key], round_trip: int) -> None:
            self.batches[round_trip].append(keys)
            send_batch(engine, keys, round_trip)

        def looks_up(engine: Engine, wanted: Any, place: str, round_trip: int, *others: Any) -> None:
            wanted = [*wanted]
            for _, key in wanted:
                self.wanted[key].add(round_trip)
            look_up(engine, wanted, place, round_trip, *others)

        def asks(loader: NeighbourLoader, request: Any) -> Any:
            query = request if isinstance(request, ListQuery) else request.query
            read = READ.get()
            self.wanted[_list_of(query)].add(read.round_trip if read else 1)
            return ask(loader, request)

        def gathers(engine: Any, op: Any, request: Any, place: str, round_trip: int) -> None:
            for part, _ in request.parts:
                self.wanted[part.subject if part.query is None else _list_of(part.query)].add(round_trip)
            gather(engine, op, request, place, round_trip)

        with (
            patch.object(Engine, "_send_batch", sends),
            patch.object(Engine, "look_up", looks_up),
            patch.object(NeighbourLoader, "ask", asks),
            patch.object(engine_module, "gather", gathers),
        ):
            yield

    def keys(self) -> set[Key]:
        return {key for batches in self.batches.values() for batch in batches for key in batch}

    @property
    def is_spread(self) -> bool:
        return any(len(round_trips) > 1 for round_trips in self.wanted.values())


def _list_of(query: ListQuery) -> Any:
    return query.path, query.partitions


@dataclass(frozen=True)
class Asked:
    """An operation on a table."""

    schema: GraphSchema
    store: Store
    document: str
    variables: Mapping[str, Any]

    async def run(
        self, choose: Choose, failing: frozenset[Any] = frozenset()
    ) -> tuple[dict[str, Any], Unordered]:
        """Runs it with answers in that order. Returns its answer, and what was sent."""
        store = Unordered(self.store, choose, failing)
        service = Service(self.schema, store, secret=SECRET, limits=NO_LIMITS)
        request = OperationRequest(self.document, self.variables, with_cost=True)
        with store.recorded():
            return await store.answer(asyncio.ensure_future(service.execute(request))), store

    async def broken(self) -> tuple[list[str], Counter[str]]:
        """The laws that it breaks, and how many runs there were of each kind."""
        answer, first = await self.run(lambda _: 0)
        found, kinds, random = _of_one_order(answer, first), Counter[str](), Random(self.document)
        if first.sent.total() + sum(map(len, first.batches.values())) < LEAST:
            return found, kinds
        for order in _orders(random):
            other, store = await self.run(order)
            found += _of_one_order(other, store)
            if (other.get("data"), errors_of(other)) != (answer.get("data"), errors_of(answer)):
                found.append("another answer")
            if store.keys() != first.keys():
                found.append("other keys")
            kinds["spread" if store.is_spread else "exact"] += 1
            if not store.is_spread:
                found += _differences(first, store)
        queried = (request for _, request in first.sent if isinstance(request, Query))
        partitions = sorted({str(request.partition) for request in queried})
        failing = frozenset(random.sample(partitions, -(-len(partitions) // 3)))
        for order in _orders(random):
            other, store = await self.run(order, failing)
            found += _of_one_order(other, store)
            paths = [tuple(error["path"]) for error in other.get("errors", ())]
            found += _more_than_nulls(answer.get("data"), other.get("data"), (), paths)
            kinds["failing"] += 1
        return [f"{each}\n{self.document}\nvariables {self.variables}" for each in found], kinds


def _orders(random: Random) -> list[Choose]:
    return [lambda count: count - 1, *[lambda count: random.randrange(count)] * ORDERS]


async def broken(world: Served, choose: Choose) -> tuple[list[str], Counter[str]]:
    """The laws that a random operation breaks, and how many runs there were of each kind."""
    made = Maker(world.schema, world.words, choose).operation()
    return await Asked(world.schema, world.planned.store, made.document, made.variables).broken()


def _of_one_order(answer: Mapping[str, Any], store: Unordered) -> list[str]:
    cost = answer.get("extensions", {}).get("cost")
    found = [
        f"{cost['actual'][name]} {name}, at most {cost['bound'][name]}"
        for name in ("requests", "roundTrips")
        if cost and cost["actual"][name] > cost["bound"][name]
    ]
    for round_trip, batches in store.batches.items():
        keys = [key for batch in batches for key in batch]
        if len(batches) != -(-len(keys) // BATCH_GET_KEYS):
            found.append(f"round trip {round_trip} has batches of {[*map(len, batches)]} keys")
    keys = [key for batches in store.batches.values() for batch in batches for key in batch]
    return found + [f"{key} was read twice" for key, count in Counter(keys).items() if count > 1]


def _differences(first: Unordered, store: Unordered) -> list[str]:
    requests = (first.sent - store.sent) + (store.sent - first.sent)
    found = [f"round trip {round_trip}: {request} is sent in one order" for round_trip, request in requests]
    for round_trip in first.batches.keys() | store.batches.keys():
        one, other = ({key for batch in each.batches[round_trip] for key in batch} for each in (first, store))
        if one != other:
            found.append(f"round trip {round_trip}: these keys are read in one order: {one ^ other}")
    return found


def _more_than_nulls(
    whole: Any, found: Any, path: tuple[Any, ...], errors: Sequence[tuple[Any, ...]]
) -> list[str]:
    """In what an answer differs from the whole one, but for nulls with errors."""
    if found is None and whole is not None:
        return (
            [] if any(each[: len(path)] == path for each in errors) else [f"{path} is null without an error"]
        )
    if isinstance(whole, dict) and isinstance(found, dict):
        return [
            each for key in whole for each in _more_than_nulls(whole[key], found[key], (*path, key), errors)
        ]
    if isinstance(whole, list) and isinstance(found, list) and len(whole) == len(found):
        return [
            each
            for number, pair in enumerate(zip(whole, found, strict=True))
            for each in _more_than_nulls(*pair, (*path, number), errors)
        ]
    return [] if whole == found else [f"{path} is {found!r}, and {whole!r} where all lists are read"]


async def run(wanted: int, seed: int, names: Sequence[str], tell: Callable[[str], None]) -> list[str]:
    """Runs that many operations in all, and returns what does not hold."""
    found, kinds, asked = list[str](), Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder, patch.object(expiry, "time", FROZEN):
        while asked < wanted:
            # Every third table is one in order.
            name, turn = names[seed % len(names)], 3 * seed
            async with served(name, turn, Path(folder)) as world:
                for number in range(20):
                    problems, counted = await broken(world, Random(f"{turn}/{number}").randrange)
                    kinds += counted
                    found += [f"[{turn}/{number}] {each}" for each in problems]
                    for each in problems:
                        tell(each)
                    asked += 1
            seed += 1
    tell(f"{asked} operations, {dict(kinds)}, {len(found)} broken")
    return found


if __name__ == "__main__":
    main(__doc__, BOUNDED, run)
