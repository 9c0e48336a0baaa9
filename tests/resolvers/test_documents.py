"""Documents: read once, kept within bounds."""

from __future__ import annotations

import asyncio
import gc
import logging
import tracemalloc
from hashlib import sha256

import pytest
from graphql import DocumentNode, GraphQLError, get_introspection_query

from keygraph.dynamo.store import UnreadStore
from keygraph_examples.commerce import graph
from keygraph_resolvers import Limits, Service, build_schema
from keygraph_resolvers.plan.documents import Document, Documents, Refused
from tests.resolvers.operations import GRAPHS, OPERATIONS

SCHEMA = build_schema(graph)._schema


def made(kept_bytes: int) -> Documents:
    return Documents(SCHEMA, graph, Limits(document_cache_bytes=kept_bytes))


def size_of(text: str) -> int:
    read = made(10_000_000)
    read.read(text)
    return read.kept_bytes


def test_a_text_is_read_once() -> None:
    read = made(1_000_000)
    assert read.read("{ __typename }") is read.read("{ __typename }".replace("x", "y"))


def test_what_was_asked_last_is_kept() -> None:
    read = made(5 * size_of("{ often: __typename }"))
    often, *others = [
        read.read(f"{{ {name}: __typename }}") for name in ("often", "other", "third", "fourth")
    ]
    assert read.read("{ often: __typename }") is often
    for name in ("fifth", "sixth"):
        read.read(f"{{ {name}: __typename }}")
        assert read.read("{ often: __typename }") is often
    assert read.read("{ other: __typename }") is not others[0]


def test_plans_count() -> None:
    read = made(200_000)
    names = [f"v{number}" for number in range(5)]
    text = f"query ({', '.join(f'${name}: Boolean!' for name in names)}) {{ %s }}"
    fields = " ".join(f"{name}: user(userId: 1) @include(if: ${name}) {{ name email }}" for name in names)
    document = read.read(text % fields)
    assert not document.errors
    for number in range(32):
        variables = {name: bool(number >> place & 1) for place, name in enumerate(names)}
        read.plan(document, read.operation(document, None), variables)
        assert read.kept_bytes <= 200_000


def test_of_what_is_refused_little_is_kept() -> None:
    read = made(10_000_000)
    valid = read.read("{ __typename }")
    kept, texts = read.kept_bytes, ["{", "{ nothing }", "{ a }" * 1000, f'{{ users(first: "{"x" * 9000}") }}']
    for text in texts:
        assert read.executable(text) is None
        errors = read.read(text).public_errors
        with pytest.raises(Refused) as refused:
            read.executable(text)
        assert errors == refused.value.errors != []
    assert 0 < read.kept_bytes - kept < 6_000
    for number in range(3_000):
        read.keep(Document(DocumentNode(), [GraphQLError("x" * 300)], b"%d" % number))
    assert 500_000 < read.kept_bytes - kept <= 1_000_000
    assert read.executable(texts[0]) is None
    assert read.read("{ __typename }") is valid


def test_what_is_kept_has_no_text_for_a_key() -> None:
    read = made(1_000_000)
    read.read("{ __typename }")
    assert [*read.kept] == [sha256(b"{ __typename }").digest()]


def each(text: str, count: int) -> str:
    """The text so many times, with its number in the place of `#`."""
    return " ".join(text.replace("#", str(number)) for number in range(count))


NAMES = " ".join(f'"a name {number}"' for number in range(100))
KINDS = {
    "many variables": (
        f"query ({each('$v#: ProductWhere', 15)}) {{ {each('p#: products(first: 1, where: $v#) { nodes { name } }', 15)} }}"
    ),
    "many aliases": f"{{ {each('u#: user(userId: #) { name reviews(first: 2) { nodes { id } } }', 30)} }}",
    "deep": (
        "{ user(userId: 1) { orders(first: 1) { nodes { customer { orders(first: 1) { nodes { total } } } } } } }"
    ),
    "wide": f"{{ user(userId: 1) {{ {each('n#: name', 60)} }} }}",
    "a large default": (
        f"query ($w: ProductWhere = {{ name: {{ in: [{NAMES}] }} }}) {{ products(where: $w, first: 1) {{ nodes {{ id }} }} }}"
    ),
    "many operations": each("query O# { __typename }", 40),
    "a long comment": f"#{'x' * 80_000}\n{{ user(userId: 1) {{ name }} }}",
    "a mutation": 'mutation { deleteUser(input: { userId: "1" }) { deletedId } }',
    "introspection": get_introspection_query(),
    "many page sizes": f"query ($f: Int) {{ {each('u#: users(first: $f) { nodes { orders(first: $f) { nodes { id } } } }', 10)} }}",
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.long if kind in ("introspection", "many page sizes") else ())
        for kind in KINDS
    ],
)
@pytest.mark.long
async def test_what_is_kept_has_the_size_that_is_counted(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("keygraph"), "disabled", True)  # pytest keeps what is logged
    limits = Limits(max_aliases=100, max_root_fields=100)
    service = Service(build_schema(graph), UnreadStore(graph.table), secret=b"s" * 32, limits=limits)

    async def execute(number: int) -> None:
        for first in range(16 if kind == "many page sizes" else 1):
            await service.execute(f"{KINDS[kind]} #{number}", {"f": first})

    await execute(0)
    await asyncio.sleep(0)
    gc.collect()
    before, count = service.kept_bytes, 3
    tracemalloc.start()
    for number in range(count):
        await execute(1 + number)
    await asyncio.sleep(0)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    counted = service.kept_bytes - before
    assert counted > 40_000 * count
    assert 0.8 * taken < counted


@pytest.mark.parametrize("model", OPERATIONS)
@pytest.mark.long
async def test_what_makes_room_is_free_without_a_collection(model: str) -> None:
    """Collections of all garbage are rare: plans that waited for one took several times what they may."""
    service = Service(build_schema(GRAPHS[model]), UnreadStore(GRAPHS[model].table), secret=b"s" * 32)
    for operation in OPERATIONS[model]:
        service.explain(operation.document, operation.variables[0])
    kept = service._documents.kept
    assert len(kept) > 2 * len(OPERATIONS[model]) - 5
    gc.collect()
    gc.disable()
    try:
        kept.clear()
        assert gc.collect() < 20
    finally:
        gc.enable()
