"""No request leaves garbage behind: with Python's collector off, nothing of a refusal, a failure or a cancellation stays.

The collector counts objects, not bytes: garbage that holds a few bodies of 1 MB each may wait for it for a long time.
"""

from __future__ import annotations

import ast
import asyncio
import gc
import json
import logging
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import count
from pathlib import Path
from traceback import format_exception
from types import BuiltinFunctionType, CellType, FunctionType, MethodType
from typing import Any, TypeAlias
from unittest.mock import Mock

import jwt
import pytest
import strawberry
from graphql import GraphQLError, Node, Token, Visitor
from strawberry.extensions import SchemaExtension

from bench.house import exchange
from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Ranked,
    Reach,
    Table,
    edge,
    node,
    ranked,
    reach,
    read,
    stored,
    turns,
    viewer,
    write,
)
from keygraph import field as model_field
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable, Request
from keygraph.errors import Throttled, Unavailable, with_noted_frames
from keygraph.lists import reading
from keygraph_resolvers import OperationRequest, build_schema
from keygraph_resolvers.engine import engine
from keygraph_server.app import create_app
from keygraph_server.connections import BEGAN
from keygraph_server.models import Model
from keygraph_server.settings import read_settings

NEW = count()
ROOT = Path(__file__).parents[2]
LONG = "x" * 50_000
SECRET = "s3cret" * 6
TIMEOUT = 10.0
by_id = Index("by-id", "kind", "person_id")


@node("PERSON#{person_id}", by_id("PERSON", "{person_id}", lists="people"), access=[read(), write()])
class Person:
    person_id: ID
    name: str
    age: int | None
    secret: str | None = stored(access=[read(where={"person_id": viewer("sub")})])

    friends: Many[Friend]
    network: Reach[Person] = reach("friends", depth=3)
    may_know: Ranked[Person] = ranked("friends", "friends")

    @model_field(needs=("name",))
    def broken(self) -> str:
        raise RuntimeError(self.name)

    @model_field(needs=("name",))
    async def late(self) -> str:
        await asyncio.sleep(0)
        raise RuntimeError(self.name)


@edge("{person}", "FRIEND#{friend.person_id}", mirror=True, access=[read(), write()])
class Friend:
    person: Person
    friend: Person


graph = Graph(
    Table("People", partition_key="PK", sort_key="SK", indexes=[by_id]),
    Person,
    Friend,
    type_attribute="type",
    paths=True,
)


@strawberry.type
class OwnQuery:
    @strawberry.field
    def refused(self) -> str | None:
        raise GraphQLError("not today", extensions={"code": "CLOSED"})

    @strawberry.field
    async def failed(self, text: str) -> str | None:
        await asyncio.sleep(0)
        raise RuntimeError(text)

    @strawberry.field
    async def forever(self) -> str:
        await asyncio.sleep(3_600)
        return ""


def items(name: str = "person") -> list[Item]:
    found: list[Item] = []
    for number in range(9):
        key = f"PERSON#{number}"
        person = {
            "person_id": str(number),
            "name": f"{name} {number}",
            "kind": "PERSON",
            "age": "x" if number == 8 else Decimal(number),
        }
        found.append({"PK": key, "SK": key, "type": "Person", **person})
        found += [
            {"PK": key, "SK": f"FRIEND#{other}", "type": "Friend"}
            for other in range(9)
            if abs(other - number) == 1
        ]
    return found


PLACES = (
    "before_operation", "after_operation", "before_parse", "after_parse", "before_validate", "after_validate",
    "before_execute", "after_execute", "resolving", "results",
)  # fmt: skip


class FailingExtension(SchemaExtension):
    """An extension that fails at the place that the document names."""

    def _at(self, place: str) -> None:
        if f" {place} " in (self.execution_context.query or ""):
            raise RuntimeError(place)

    def _around(self, what: str) -> Iterator[None]:
        self._at(f"before_{what}")
        yield
        self._at(f"after_{what}")

    def on_operation(self) -> Iterator[None]:
        yield from self._around("operation")

    def on_parse(self) -> Iterator[None]:
        yield from self._around("parse")

    def on_validate(self) -> Iterator[None]:
        yield from self._around("validate")

    def on_execute(self) -> Iterator[None]:
        yield from self._around("execute")

    def resolve(self, _next: Any, root: Any, info: Any, *args: Any, **kwargs: Any) -> Any:
        self._at("resolving")
        return _next(root, info, *args, **kwargs)

    def get_results(self) -> dict[str, Any]:
        self._at("results")
        return {"place": 1}


class FaultyStore:
    """A store whose reads, or writes, fail as it is told."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.table = store.table
        self.fault: Callable[[], Awaitable[None]] | None = None

    async def send(self, request: Request[Any], /) -> Any:
        if self.fault is not None:
            await self.fault()
        return await self._store.send(request)


async def throttled() -> None:
    raise Throttled("the table is throttled")


async def unavailable() -> None:
    await asyncio.sleep(0)
    raise Unavailable("the table is away")


async def bug() -> None:
    raise ZeroDivisionError("a bug")


async def hangs() -> None:
    await asyncio.sleep(3_600)


SCHEMA = build_schema(graph, query=OwnQuery)
Serve: TypeAlias = Callable[..., Awaitable["Served"]]
Fault: TypeAlias = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Asked:
    """A request, and the codes of its errors."""

    body: Callable[[], bytes]
    codes: str | None
    """None if there is no answer."""
    fault: Fault | None = None
    leaves: bool = False
    is_new: bool = False
    """Whether its document is validated each time."""
    is_of_http: bool = False
    is_cut_off: bool = False
    """Whether the client leaves before its body ends."""
    query: str = ""
    """Of the URL; with one, the request is a GET."""
    headers: Sequence[tuple[str, str]] = (("content-type", "application/json"),)


def asks(
    document: str,
    codes: str | None,
    fault: Fault | None = None,
    *,
    leaves: bool = False,
    is_new: bool = False,
    **variables: Any,
) -> Asked:
    """A request. In the document, NEW is a word that was not sent before."""

    def body() -> bytes:
        return json.dumps(
            {"query": document.replace("NEW", f"n{next(NEW)}"), "variables": variables}
        ).encode()

    return Asked(body, codes, fault, leaves, is_new)


def sends(body: bytes, codes: str | None = "BAD_USER_INPUT", **headers: str) -> Asked:
    """A request with these headers. A name's `_` is a `-`."""
    fields = {"content-type": "application/json", **headers}
    found = [(name.replace("_", "-"), value) for name, value in fields.items()]
    return Asked(lambda: body, codes, is_of_http=True, headers=found)


def gets(query: str, **headers: str) -> Asked:
    return replace(sends(b"", content_type="", **headers), query=query)


def bears(codes: str | None, secret: str = SECRET, text: str = "", **claims: Any) -> Asked:
    """A request with a token, or with this text in its place."""
    token = text or jwt.encode({"sub": "1", "exp": 4_000_000_000, **claims}, secret)
    return sends(b'{"query": "{ __typename }"}', codes, authorization=f"Bearer {token}")


PEOPLE = "{ people(first: 3) { nodes { name } } }"
PERSON = '{ person(personId: "1") { age friends { nodes { age } } } }'
FRIENDS = '{ person(personId: "3") { friends(first: 2) { nodes { name friends(first: 2) { nodes { age friends(first: 2) { nodes { name } } } } } } } }'
WALK = '{ person(personId: "1") { network { totalCount nodes { age } } mayKnow { nodes { name } } } }'
CREATE = "mutation ($id: ID!, $name: String!) { createPerson(input: { personId: $id, name: $name }) { person { age } } }"
TWICE = 'mutation { a: updatePerson(input: { personId: "nobody", name: "a" }) { person { name } } b: deletePerson(input: { personId: "" }) { clientMutationId } }'
FRIEND = 'mutation { putFriend(input: { personId: "nobody", friendId: "1" }) { friend { friend { name } } } }'

KINDS = {
    # What is no request
    "a batch": sends(b'[{"query":"' + LONG.encode() + b'"}]'),
    "no JSON": sends(b'{"query":"' + LONG.encode()),
    "no UTF-8": sends(b'{"query":"\xff' + LONG.encode() + b'"}'),
    "nested JSON": sends(b"[" * 9_000),
    "a long number": sends(b'{"query": 1' + b"1" * 5_000 + b"}"),
    "many small values": Asked(
        lambda: b'{"query": "{ a }", "variables": {"n": [' + b"[]," * 20_000 + b"0]}}",
        "DOCUMENT_LIMIT",
        is_of_http=True,
    ),
    "no query": sends(b'{"a":"' + LONG.encode() + b'"}'),
    "an emoji in a key": sends(json.dumps({"\N{GRINNING FACE}" + LONG: 1}, ensure_ascii=False).encode()),
    "a short hash": sends(
        b'{"query": "{ __typename }", "extensions": {"persistedQuery": {"version": 1, "sha256Hash": "a"}}}'
    ),
    "a body that is too large": sends(b" " * 1_000_001),
    "a body that says that it is too large": sends(b"{", content_length="1000001"),
    "another type": sends(b'{"query":"' + LONG.encode() + b'"}', content_type="text/plain"),
    "an answer of another type": sends(b'{"query":"' + LONG.encode() + b'"}', accept="text/html"),
    "a client that leaves in its body": replace(sends(b'{"query":"' + LONG.encode(), None), is_cut_off=True),
    # By GET
    "a GET of a foreign page": gets("query={a}", sec_fetch_site="cross-site"),
    "a mutation by GET": gets("query=mutation{deletePerson(input:{}){clientMutationId}}"),
    "a GET without a document": gets("variables={}"),
    "a GET with bad JSON": gets("query={a}&variables=" + "[" * 9_000),
    "a GET with two documents": gets("query={a}&query=" + LONG[:9_000]),
    # Who asks
    "a token": bears(""),
    "a token that has expired": bears("UNAUTHENTICATED", exp=1),
    "a token with an odd claim": bears("UNAUTHENTICATED", exp="1e999"),
    "a forged token": bears("UNAUTHENTICATED", "x" * 40),
    "no token": bears("UNAUTHENTICATED", text=LONG[:5_000]),
    "another scheme": sends(b"", "UNAUTHENTICATED", authorization="Basic " + LONG[:5_000]),
    # Documents
    "too many characters": asks("{ NEW " + "x" * 100_000 + " }", "DOCUMENT_LIMIT"),
    "a syntax error": asks("{ NEW ", "GRAPHQL_PARSE_FAILED"),
    "a syntax error far away": asks("{ NEW " + LONG, "GRAPHQL_PARSE_FAILED"),
    "too many tokens": asks("{" + " NEW" * 1_001 + " }", "DOCUMENT_LIMIT"),
    "too many aliases": asks(
        "{" + " ".join(f"NEW{each}: __typename" for each in range(20)) + "}", "DOCUMENT_LIMIT"
    ),
    "nested too deeply": asks("{ NEW" + "{ a " * 400, "DEPTH_LIMIT"),
    "an unknown field": asks("{ NEW }", "GRAPHQL_VALIDATION_FAILED", is_new=True),
    "an unknown field far away": asks("{ NEW }" + " " * 5_000, "GRAPHQL_VALIDATION_FAILED", is_new=True),
    "a text for an Int": asks(
        '{ people(first: "NEW") { nodes { name } } }', "GRAPHQL_VALIDATION_FAILED", is_new=True
    ),
    "a subscription": asks("subscription NEW { a }", "GRAPHQL_VALIDATION_FAILED", is_new=True),
    "a new document": asks("query NEW ($a: Boolean = true) { __typename @include(if: $a) }", "", is_new=True),
    # Variables
    "a text for a variable of Int": asks(
        "query ($n: Int) { people(first: $n) { nodes { name } } }", "BAD_USER_INPUT", n=LONG
    ),
    "a missing variable": asks("query ($n: Int!) { people(first: $n) { nodes { name } } }", "BAD_USER_INPUT"),
    "too many values": asks(
        "query ($n: [ID!]!) { nodes(ids: $n) { id } }", "DOCUMENT_LIMIT", n=["x"] * 6_000
    ),
    "a page too large": asks(
        "query ($n: Int) { people(first: $n) { nodes { name } } }", "BAD_USER_INPUT", n=10_000
    ),
    "a bad cursor": asks(
        "query ($n: String) { people(after: $n) { nodes { name } } }", "BAD_USER_INPUT", n=LONG
    ),
    "many bad ids": asks("query ($n: [ID!]!) { nodes(ids: $n) { id } }", "BAD_USER_INPUT", n=[{}] * 400),
    "a bad id": asks("query ($n: ID!) { node(id: $n) { id } }", "BAD_USER_INPUT", n=LONG),
    "bad ids": asks("query ($n: [ID!]!) { nodes(ids: $n) { id } }", "BAD_USER_INPUT", n=[LONG] * 3),
    "a long key": asks("query ($n: ID!) { person(personId: $n) { name } }", "BAD_USER_INPUT", n=LONG),
    "a bad range": asks(
        "query ($n: ID) { people(personId: { eq: $n, from: $n }) { nodes { name } } }",
        "BAD_USER_INPUT",
        n="x",
    ),
    "a bad key of a walk": asks(
        "query ($n: ID!) { path(from: $n, to: $n, via: [PERSON_FRIENDS]) { length } }",
        "BAD_USER_INPUT",
        n=LONG,
    ),
    "a bad cursor of a walk": asks(
        'query ($n: String) { person(personId: "1") { network(after: $n) { nodes { name } } } }',
        "BAD_USER_INPUT",
        n=LONG,
    ),
    # Limits
    "what costs too much": asks(
        "{ people(first: 100) { nodes { friends(first: 100) { nodes { friends(first: 100) { nodes { name } } } } } } }",
        "COST_LIMIT",
    ),
    "an answer too large": asks(
        "{ " + " ".join(f"a{each}: people {{ nodes {{ name id }} }}" for each in range(15)) + " }",
        "ANSWER_LIMIT",
    ),
    # Errors of positions
    "a value that does not fit": asks(
        '{ person(personId: "8") { age } people { nodes { age } } }', "CORRUPT_ITEM"
    ),
    "a hidden field": asks("{ people { nodes { secret } } }", "FORBIDDEN"),
    "resolvers that fail": asks("{ people { nodes { broken late } } }", "INTERNAL"),
    "other fields of the root": asks(
        "query ($n: String!) { refused failed(text: $n) }", "CLOSED INTERNAL", n=LONG
    ),
    # Writes
    "a key that is taken": asks(CREATE, "ALREADY_EXISTS", id="1", name=LONG),
    "an item too large": asks(CREATE, "ITEM_TOO_LARGE", id="too large", name="x" * 500_000),
    "an empty key": asks(CREATE, "BAD_USER_INPUT", id="", name=LONG),
    "several writes": asks(TWICE, "NOT_FOUND BAD_USER_INPUT"),
    "an end that does not exist": asks(FRIEND, "NOT_FOUND"),
    # A store that fails
    **{
        f"{name} that is {fault.__name__}": asks(document, codes, fault)
        for name, document in {"a list": PEOPLE, "a node": PERSON, "a tree": FRIENDS, "a walk": WALK}.items()
        for fault, codes in ((throttled, "THROTTLED"), (unavailable, "UNAVAILABLE"), (bug, "INTERNAL"))
    },
    "a write that is throttled": asks(CREATE, "THROTTLED", throttled, id="new", name=LONG),
    "a write that is bug": asks(CREATE, "INTERNAL", bug, id="new", name=LONG),
    # What is given up
    **{
        f"{name} that takes too long": asks(document, "TIMEOUT", hangs)
        for name, document in {"a list": PEOPLE, "a node": PERSON, "a walk": WALK, "a write": TWICE}.items()
    },
    "another field that takes too long": asks("{ forever }", "TIMEOUT"),
    **{
        f"{name} whose client leaves": asks(document, None, hangs, leaves=True)
        for name, document in {"a list": PEOPLE, "a node": PERSON, "a walk": WALK, "a write": TWICE}.items()
    },
    "another field whose client leaves": asks("{ forever }", None, leaves=True),
    # What is right
    "a list": asks(PEOPLE, ""),
    "a tree": asks(FRIENDS, ""),
    "a walk": asks(WALK, ""),
    "introspection": asks('{ __type(name: "Person") { name } }', ""),
}


LARGE = "x" * 100_000
PAGE = "{ people { nodes { name } } }"
PAGES = """{ a: person(personId: "3") { friends { nodes { name } } } b: person(personId: "5") { friends { nodes { name } } } }"""
LIMITED: dict[str, tuple[dict[str, Any], Asked]] = {
    "an operation that costs more than its bound": ({"cost_limit": 20.0}, asks(PAGE, "COST_LIMIT")),
    "an answer too large, written in a thread": ({"answer_limit": 700_000}, asks(PAGE, "ANSWER_LIMIT")),
    "an answer written in a thread": ({}, asks(PAGE, "")),
    "an operation that holds too much": ({"operation_memory": 300_000}, asks(PAGE, "ANSWER_LIMIT")),
    "a count that reads too much": ({"count_pages": 1}, asks("{ people { totalCount } }", "")),
    "a walk that reads too much": ({"read_budget": 1}, asks(WALK, "")),
    "an operation that works for too long": ({"operation_work": 1e-9}, asks(PAGES, "COST_LIMIT")),
}
"""Each with settings, for items of 100,000 bytes."""
WAITING: dict[str, tuple[int, Asked]] = {
    "one whose client leaves": (9, asks(PEOPLE, None, leaves=True)),
    "a write whose client leaves": (9, asks(TWICE, None, leaves=True)),
    "one that waits for too long": (9, asks(FRIENDS, "TIMEOUT")),
    "one that may not wait": (0, asks(WALK, "UNAVAILABLE")),
}
"""What finds no place, each with how many may wait."""


class Served:
    """The application, whose requests are counted by their garbage."""

    def __init__(self, app: Any, store: FaultyStore) -> None:
        self.app = app
        self.store = store
        self.rounds = 20
        """The rounds of the event loop after which a client leaves."""

    async def post(self, asked: Asked) -> dict[str, Any] | None:
        """Returns the answer to a request; None if there is none."""
        sent = await exchange(
            self.app,
            [{"type": "http.request", "body": asked.body(), "more_body": asked.is_cut_off}],
            leaves=asked.leaves or asked.is_cut_off,
            method="GET" if asked.query else "POST",
            query_string=asked.query.encode(),
            headers=[(name.encode(), value.encode()) for name, value in asked.headers],
            state={BEGAN: self.began(asked)},
        )
        return json.loads(sent[1]["body"]) if sent else None

    def began(self, asked: Asked) -> float:
        now = asyncio.get_running_loop().time()
        return now - TIMEOUT + 0.1 if asked.codes == "TIMEOUT" else now

    async def execute(self, asked: Asked) -> dict[str, Any] | None:
        """Returns the answer of the service alone; None if the operation was canceled."""
        given = json.loads(asked.body())
        task = asyncio.create_task(
            self.app.state.service.execute(
                OperationRequest(given["query"], given["variables"], began=self.began(asked))
            )
        )
        if asked.leaves:
            for _ in range(self.rounds):
                await asyncio.sleep(0)
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            return None
        finally:
            del task

    async def garbage(
        self, ask: Callable[[Asked], Awaitable[dict[str, Any] | None]], asked: Asked
    ) -> Counter[str]:
        self.store.fault = asked.fault
        for _ in range(2):  # the first fills caches
            assert codes_of(await ask(asked)) == asked.codes
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                await ask(asked)
            for _ in range(5):
                await asyncio.sleep(0)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            found = [each for each in gc.garbage if not (asked.is_new and is_of_library(each))]
            return Counter(type(each).__name__ for each in found)
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()


def is_of_library(found: object) -> bool:
    """Returns whether graphql-core's validation leaves such objects behind: visitors that reference themselves."""
    if isinstance(found, Node | Token | GraphQLError):
        return False
    return type(found).__module__.startswith("graphql.") or isinstance(
        found,
        Visitor | tuple | list | dict | set | CellType | FunctionType | MethodType | BuiltinFunctionType,
    )


def codes_of(answer: dict[str, Any] | None) -> str | None:
    return (
        None
        if answer is None
        else " ".join(dict.fromkeys(each["extensions"]["code"] for each in answer.get("errors", ())))
    )


@pytest.fixture
async def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Serve]:
    """Serves a schema with the people, and settings of its own."""
    # What pytest keeps of the log holds frames.
    monkeypatch.setattr(logging.getLogger("keygraph"), "propagate", False)
    async with AsyncExitStack() as stack:

        async def serve(schema: Any, name: str = "person", **limits: Any) -> Served:
            values = {
                "store": f"sqlite:{tmp_path / 'people.sqlite'}",
                "secret": SECRET,
                "auth": "jwt",
                "jwt_key": SECRET,
                "env": "production",
                "introspection": True,
                "cost_limit": 50_000.0,
                "answer_limit": 6_000,
                "log_operations": False,
                "operation_timeout": TIMEOUT,
            }
            app = create_app(
                read_settings(**(values | limits)),
                model=Model(__name__, sys.modules[__name__], graph, lambda: schema),
            )
            await stack.enter_async_context(app.router.lifespan_context(app))
            service = app.state.service
            await service.store.send(CreateTable())
            await service.store.send(BatchWrite(puts=items(name)))
            service.store = service._shared.store = FaultyStore(service.store)
            served = Served(app, service.store)
            await served.post(KINDS["a list"])
            gc.collect()
            gc.freeze()  # what is there already need not be searched each time
            stack.callback(gc.unfreeze)
            return served

        yield serve


@pytest.mark.long
@pytest.mark.parametrize("way", ["post", pytest.param("execute", marks=pytest.mark.long)])
async def test_no_request_leaves_garbage(serve: Serve, way: str) -> None:
    served = await serve(SCHEMA)
    found = {
        name: await served.garbage(getattr(served, way), asked)
        for name, asked in KINDS.items()
        if way == "post" or not asked.is_of_http
    }
    assert len(found) > 50
    assert {name: garbage for name, garbage in found.items() if garbage} == {}


@pytest.mark.long
@pytest.mark.parametrize("name", LIMITED)
async def test_no_limit_leaves_garbage(serve: Serve, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    limits, asked = LIMITED[name]
    for module in (turns, reading):  # small pages are worked on as large ones are
        monkeypatch.setattr(module, "AT_ONCE", 1)
    served = await serve(SCHEMA, LARGE, **{"answer_limit": 8_000_000, **limits})
    assert await served.garbage(served.post, asked) == {}


@pytest.mark.long
@pytest.mark.parametrize("way", ["post", "execute"])
@pytest.mark.parametrize("name", WAITING)
async def test_no_wait_for_a_place_leaves_garbage(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    most_waiting, asked = WAITING[name]
    served = await serve(SCHEMA, max_running=1, max_waiting=most_waiting)
    await served.execute(asks(FRIENDS, None))  # fills caches: one has 20 ms until it must wait for a place
    running = asyncio.create_task(served.execute(asks("{ forever }", None)))
    admission = served.app.state.service.admission
    for _ in range(20):
        await asyncio.sleep(0)
    assert admission.running == 1
    waits = Mock(wraps=admission._refuse_many)
    monkeypatch.setattr(admission, "_refuse_many", waits)
    assert await served.garbage(getattr(served, way), asked) == {}
    assert waits.call_count == 5
    assert (admission.running, admission.waiting) == (1, 0)
    running.cancel()


@pytest.mark.long
@pytest.mark.parametrize("document", [FRIENDS, WALK], ids=["a tree", "a walk"])
async def test_no_client_that_leaves_in_some_round_leaves_garbage(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, document: str
) -> None:
    """The answers of reads that were given up may come while the operation waits for its turn."""
    for module in (turns, reading):
        monkeypatch.setattr(module, "AT_ONCE", 1)
    monkeypatch.setattr(engine, "TURN_SECONDS", 1e-9)  # each answer takes a turn
    engine.ROUNDS.clear()
    served, found = await serve(SCHEMA), {}
    for served.rounds in range(1, 40):
        leaves = asks(document, None, partial(asyncio.sleep, 0), leaves=True)
        found[served.rounds] = await served.garbage(served.execute, leaves)
    assert {rounds: garbage for rounds, garbage in found.items() if garbage} == {}


@pytest.mark.long
async def test_no_hook_of_an_extension_leaves_garbage(serve: Serve) -> None:
    served = await serve(build_schema(graph, query=OwnQuery, extensions=[FailingExtension]))
    kinds = {place: asks(f"query {place} {{ refused {PEOPLE[1:]}", "INTERNAL") for place in PLACES}
    usual = ("a list", "a tree", "other fields of the root", "a syntax error", "an unknown field", "a batch")
    kinds |= {name: KINDS[name] for name in usual}
    kinds |= {name: asked for name, asked in KINDS.items() if asked.fault is not None}
    found = {name: await served.garbage(served.post, asked) for name, asked in kinds.items()}
    assert {name: garbage for name, garbage in found.items() if garbage} == {}


# --- Code ---------------------------------------------------------------------------------------------

KEEPERS = {
    "append",
    "appendleft",
    "add",
    "insert",
    "extend",
    "put",
    "put_nowait",
    "setdefault",
    "set_exception",
}
ERRORS = {"Exception", "BaseException", "GraphQLError", "KeygraphError", "StoreError"}


def holds(value: ast.expr | None, name: str) -> bool:
    """Returns whether a value is an error with this name, or a container or a record that has it."""
    match value:
        case ast.Name():
            return value.id == name
        case ast.Call(func=ast.Name(id=made)) if made[0].isupper():
            return any(holds(each, name) for each in [*value.args, *(each.value for each in value.keywords)])
        case (
            ast.Tuple() | ast.List() | ast.Set() | ast.Dict() | ast.BoolOp() | ast.Starred() | ast.NamedExpr()
        ):
            return any(
                holds(each, name) for each in ast.iter_child_nodes(value) if isinstance(each, ast.expr)
            )
        case ast.IfExp():
            return holds(value.body, name) or holds(value.orelse, name)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return holds(value.elt, name)
    return False


def keeps(body: Iterable[ast.AST], name: str, *, is_caught: bool) -> Iterator[int]:
    """Yields the lines that keep an error with its frames. A variable of the frame that caught it is one of them."""
    for each in (inner for statement in body for inner in ast.walk(statement)):
        match each:
            case ast.Assign(targets=targets, value=value):
                is_kept = is_caught or any(not isinstance(target, ast.Name | ast.Tuple) for target in targets)
            case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                is_kept = is_caught or not isinstance(target, ast.Name)
            case ast.AugAssign(value=value):
                is_kept = True
            case ast.Return(value=value) | ast.Yield(value=value):
                is_kept = is_caught
            case ast.Call(func=ast.Attribute(attr=called)) if called in KEEPERS:
                value, is_kept = ast.Tuple(each.args), True
            case _:
                continue
        if is_kept and holds(value, name):
            yield each.lineno


def kept_errors(tree: ast.AST) -> Iterator[int]:
    """Yields the lines of a module that keep an error that was caught, or that a caller gives."""
    for each in ast.walk(tree):
        if isinstance(each, ast.ExceptHandler) and each.name is not None:
            yield from keeps(each.body, each.name, is_caught=True)
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            for given in (*each.args.args, *each.args.kwonlyargs):
                names = {
                    part.strip() for part in ast.unparse(given.annotation or ast.Constant(None)).split("|")
                }
                if names & ERRORS and names <= ERRORS | {"None"}:
                    yield from keeps(each.body, given.arg, is_caught=False)


@pytest.mark.parametrize(
    "code",
    [
        "try: f()\nexcept E as error: refused = error",
        "try: f()\nexcept E as error: self.refused[0] = error if a else None",
        "try: f()\nexcept E as error: found.append((1, error))",
        "try: f()\nexcept E as error: return [error for each in keys]",
        "try: f()\nexcept E as error: found |= {key: error}",
        "try: f()\nexcept E as error: found.append(Refused(why=error))",
        "def fail(self, error: Exception | None): self.error = error",
        "def fail(self, error: KeygraphError): self.done.set_exception(error)",
    ],
)
def test_code_that_keeps_an_error_is_found(code: str) -> None:
    assert len([*kept_errors(ast.parse(code))]) == 1


def test_no_code_keeps_an_error_with_its_frames() -> None:
    """They hold the request, what was read for it, and, through a variable or a container, the error itself."""
    found = {
        f"{file.relative_to(ROOT)}:{line}"
        for folder in ("keygraph", "resolvers", "server")
        for file in (ROOT / folder).rglob("*.py")
        for line in kept_errors(ast.parse(file.read_text("utf-8")))
    }
    assert found == set()


def test_the_log_has_the_frames_of_a_fault_as_text() -> None:
    try:
        raise ZeroDivisionError("a bug")
    except ZeroDivisionError as error:
        fault = with_noted_frames(error)
    assert fault.__traceback__ is None
    assert Path(__file__).name in "".join(format_exception(fault))
