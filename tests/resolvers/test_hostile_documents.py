"""Documents that somebody sends to stop the server: refused at once, by limits, before they are validated or planned."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from graphql import get_introspection_query

from keygraph.dynamo.store import Answer, Request, UnreadStore
from keygraph_examples.commerce import graph
from keygraph_resolvers import NO_LIMITS, Limits, OperationRequest, Service, build_schema
from keygraph_resolvers.plan.plan import Plan
from keygraph_resolvers.schema import mutations as schema_mutations
from keygraph_resolvers.steps import write
from keygraph_server.processes.collection import tune_collection
from tests.clocks import slowness
from tests.resolvers.bombs import bomb, subsets
from tests.resolvers.worlds import library
from tests.schemas import with_all_writes

SECRET = b"the secret of the hostile documents"
SCHEMA = build_schema(graph)
MOST_SECONDS = 0.05
MOST_AGAIN = 0.004
"""For a document that was refused before, with the hash of its text."""
MOST_BYTES = 10_000_000


@pytest.fixture(scope="module", autouse=True)
def collected_as_served() -> Iterator[None]:
    """Garbage is collected as in the server, not among all that other tests have made."""
    before = gc.get_threshold()
    tune_collection(lambda: False)
    yield
    gc.callbacks.pop()
    gc.set_threshold(*before)
    gc.unfreeze()


def service(**limits: int) -> Service:
    """The service of a server that nobody has configured, but for these limits."""
    return Service(SCHEMA, UnreadStore(graph.table), secret=SECRET, limits=Limits(**limits))


def user(selected: str) -> str:
    return f'{{ user(userId: "1") {{ {selected} }} }}'


def many(text: str, count: int) -> str:
    """The text so many times, with its number in the place of `#`."""
    return " ".join(text.replace("#", str(number)) for number in range(count))


def chain(count: int) -> str:
    """Fragments each of which spreads the next one, and at last selects what there is not."""
    links = [f"fragment F{number} on User {{ ...F{number + 1} name }}" for number in range(count)]
    return f"{' '.join(links)} fragment F{count} on User {{ nam }}"


HOSTILE = {
    "fragments in other combinations": (subsets(14), "DOCUMENT_LIMIT"),
    "fragments twice on each level": (bomb(30), "DOCUMENT_LIMIT"),
    "fragments twice on a few levels": (bomb(10), "DOCUMENT_LIMIT"),
    "a fragment in fifteen places": (
        "{ " + many('a#: user(userId: "1") { ...F }', 15) + " } "
        "fragment F on User { " + many("orders { nodes { total } }", 70) + " }",
        "DOCUMENT_LIMIT",
    ),
    "lists in lists": (
        "{ users { nodes { " + "orders { nodes { customer { " * 7 + "name" + " } } }" * 7 + " } } }",
        "DEPTH_LIMIT",
    ),
    "349 KB of aliases": (f"{{ {many('a#: __typename', 20_000)} }}", "DOCUMENT_LIMIT"),
    "35 KB of aliases": (f"{{ {many('a#: __typename', 2_000)} }}", "DOCUMENT_LIMIT"),
    "300 aliases": (f"{{ {many('a#: __typename', 300)} }}", "DOCUMENT_LIMIT"),
    "2,000 conflicting fields": (user(many("x: name x: email", 1_000)), "DOCUMENT_LIMIT"),
    "320 conflicting fields": (user(many("x: name x: email", 160)), "DOCUMENT_LIMIT"),
    "990 equal fields": (user(many("name", 990)), "DOCUMENT_LIMIT"),
    "equal fields in fragments": (
        user(many("...F#", 90)) + many("fragment F# on User { name email }", 90),
        "DOCUMENT_LIMIT",
    ),
    "900 unknown fields": (user(many("nam#", 900)), "GRAPHQL_VALIDATION_FAILED"),
    "unknown types": (many("fragment F# on Produkt# { name }", 140), "GRAPHQL_VALIDATION_FAILED"),
    "unknown arguments": (f"{{ user({many('userI#: 1', 300)}) {{ name }} }}", "GRAPHQL_VALIDATION_FAILED"),
    "unknown variables": (user(many("name @include(if: $v#)", 110)), "GRAPHQL_VALIDATION_FAILED"),
    "a long name": (f"{{ {'a' * 99_000} }}", "GRAPHQL_VALIDATION_FAILED"),
    "a list of wrong values": (
        f"{{ users(first: [{many('1', 900)}]) {{ nodes {{ name }} }} }}",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    "fragments that spread themselves": (
        user("...F0") + many("fragment F# on User { ...F0 ...F# name }", 80),
        "GRAPHQL_VALIDATION_FAILED",
    ),
    "deep selections": ("{ a " * 20_000, "DEPTH_LIMIT"),
    "deep lists": (f"{{ a(b: {'[' * 900}", "DEPTH_LIMIT"),
    "deep fragments": (user("...F0") + chain(95), "DOCUMENT_LIMIT"),
    "a number with many digits": (
        f"{{ users(first: {'9' * 90_000}) {{ nodes {{ name }} }} }}",
        "DOCUMENT_LIMIT",
    ),
    "a number with many digits after its point": (user(f"a(b: 0.{'9' * 90_000}) {{ c }}"), "DOCUMENT_LIMIT"),
    "much white space": (" " * 900_000 + "{ a }", "DOCUMENT_LIMIT"),
    "many comments": ("#\n" * 40_000 + "{ a }", "DOCUMENT_LIMIT"),
    "a long text": (f'{{ a(b: "{"x" * 90_000}") }}', "GRAPHQL_VALIDATION_FAILED"),
    "a text without an end": (f'{{ a(b: "{"x" * 90_000}', "GRAPHQL_PARSE_FAILED"),
    "introspection, several times": (
        f"{{ __schema {{ {many('a#: types { fields { name args { name type { name } } } }', 15)} }} }}",
        "DOCUMENT_LIMIT",
    ),
    "introspection, types of fields of types": (
        "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_it_is_refused_at_once(name: str) -> None:
    document, code = HOSTILE[name]
    asked = service() if "combinations" not in name and "twice" not in name else of_library()
    await asked.execute("{ __typename }")
    gc.collect()
    tracemalloc.start()
    answer = await asked.execute(document)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert {error["extensions"]["code"] for error in answer["errors"]} >= {code}
    assert most < MOST_BYTES
    assert asked.kept_bytes < 100_000
    assert await seconds(asked, document) < MOST_SECONDS
    assert await asked.execute(document) == answer
    assert await seconds(asked, document, most=MOST_AGAIN) < MOST_AGAIN


def of_library(**limits: int) -> Service:
    limited = Limits(**limits)
    return Service(build_schema(library), UnreadStore(library.table), secret=SECRET, limits=limited)


async def seconds(
    asked: Service, document: str, variables: dict[str, Any] | None = None, *, most: float = MOST_SECONDS
) -> float:
    """The processor time that a document takes, by default read anew: the least of some, since others use the machine."""
    least = 1.0
    for number in range(30):
        began = time.process_time()
        text = document if most == MOST_AGAIN else f"{document}\n#{number}"
        await asked.execute(text, variables)
        least = min(least, (time.process_time() - began) / slowness())
        if least < most:
            break
        await asyncio.sleep(0.05)
    return least


async def codes(asked: Service, document: str, **variables: Any) -> list[str]:
    answer = await asked.execute(document, variables)
    return [error["extensions"]["code"] for error in answer.get("errors", ())]


@pytest.mark.parametrize(
    "number", ["9" * 400, f"-{'9' * 399}", f"1e{'9' * 398}", f"1.{'9' * 394}e308", "1e9999999999999999999"]
)
@pytest.mark.parametrize("kind", ["Int", "Decimal"])
async def test_long_numbers_are_refused_in_words_of_this_server(number: str, kind: str) -> None:
    one = f"users(first: {number}) {{ nodes {{ name }} }}"
    if kind == "Decimal":
        one = (
            f'user(userId: "1") {{ orders(where: {{ total: {{ gt: {number} }} }}) {{ nodes {{ total }} }} }}'
        )
    for document, code in (
        (f"{{ {one} }}", "GRAPHQL_VALIDATION_FAILED"),
        (f"{{ {one} }}".replace(number, number + "9" * 400), "DOCUMENT_LIMIT"),
    ):
        [error] = (await service().execute(document))["errors"]
        assert error["extensions"]["code"] == code
        assert "sys." not in error["message"]
        assert len(error["message"]) < 700


@pytest.mark.parametrize(
    ("limit", "most", "within", "beyond", "message"),
    [
        ("max_document_characters", 14, "{ __typename }", "{ __typename  }", "This document has more than 14 characters"),
        ("max_tokens", 5, "{ a: __typename }", "{ a: __typename b: __typename }", "This document has more than 5 tokens"),
        ("max_tokens", 3, "#\n#\n#\n{ __typename }", "#\n#\n#\n#\n{ __typename }", "This document has more than 3 comments"),
        ("max_root_fields", 2, "{ a: __typename ...F } fragment F on Query { b: __typename }",
         "{ a: __typename ...F } fragment F on Query { b: __typename c: __typename }", "This operation has more than 2 root fields"),
        ("max_aliases", 1, "{ a: __typename ... { __schema { b: __typename } } }",
         "{ a: __typename ... { b: __schema { __typename } } }", "This operation has more than 1 aliases in one selection"),
        ("max_aliases_in_all", 2, "{ a: __typename __schema { b: __typename } }",
         "{ a: __schema { ...F } b: __schema { ...F } } fragment F on __Schema { c: __typename }",
         "This operation has more than 2 aliases"),
        ("max_fields", 4, "{ a: __schema { ...F } b: __schema { ...F } } fragment F on __Schema { __typename }",
         "{ a: __schema { ...F } b: __schema { ...F x: __typename } } fragment F on __Schema { __typename }",
         "This operation has more than 4 fields, with its fragments spread"),
    ],
)  # fmt: skip
async def test_a_limit_is_held_at_its_edge(
    limit: str, most: int, within: str, beyond: str, message: str
) -> None:
    asked = service(**{limit: most})
    assert await codes(asked, within) == []
    [error] = (await asked.execute(beyond))["errors"]
    assert error["message"] == f"{message}. Split it into several operations."
    assert (error["extensions"]["code"], error["extensions"]["limit"]) == ("DOCUMENT_LIMIT", most)


async def test_the_limits_without_settings() -> None:
    assert Limits() == Limits(
        max_document_characters=100_000,
        max_tokens=1_000,
        depth_limit=10,
        max_aliases=15,
        max_aliases_in_all=100,
        max_root_fields=20,
        max_fields=2_000,
    )


async def test_what_tools_ask_of_introspection_is_answered() -> None:
    full = get_introspection_query(
        specified_by_url=True,
        directive_is_repeatable=True,
        schema_description=True,
        input_value_deprecation=True,
        one_of=True,
    )
    for name, made in (("commerce", service()), ("library", of_library())):
        answer = await made.execute(full)
        assert "errors" not in answer, name
        assert answer["data"]["__schema"]["queryType"]["name"] == "Query"


async def test_introspection_is_limited_as_anything_else() -> None:
    full = get_introspection_query()
    once = full.replace("__schema {", "a: __schema {")
    body = once[once.index("a: __schema") : once.index("fragment")].rstrip().removesuffix("}").rstrip()
    twice = full.replace("__schema {", f"{body} b: __schema {{", 1)
    assert await codes(service(), once) == []
    assert await codes(service(), twice) == ["DOCUMENT_LIMIT"]
    assert await codes(Service(SCHEMA, UnreadStore(graph.table), secret=SECRET, limits=NO_LIMITS), twice) == [
        "DOCUMENT_LIMIT"
    ]


# --- Variables ----------------------------------------------------------------------------------------------


FILTERED = "query ($where: UserWhere, $ids: [ID!]! = []) { users(where: $where) { nodes { name } } nodes(ids: $ids) { id } }"


@pytest.mark.parametrize(
    "variables",
    [
        {"where": {"or": [{}] * 300_000}},
        {"where": {"or": [{"nam": 1}] * 50_000}},
        {"where": {"name": {"in": [1] * 300_000}}},
        {"ids": [1.5] * 300_000},
        {"nothing": [[]] * 300_000},
    ],
)
async def test_many_values_are_refused_at_once(variables: dict[str, Any]) -> None:
    asked = service()
    assert await codes(asked, FILTERED, **variables) == ["DOCUMENT_LIMIT"]
    assert await seconds(asked, FILTERED, variables) < MOST_SECONDS


@pytest.mark.parametrize(
    "variables",
    [{"ids": [1.5] * 4_900}, {"where": {"or": [1] * 4_900}}, {"where": {"or": [{"nam": 1}] * 2_400}}],
)
async def test_few_errors_of_variables_are_told(variables: dict[str, Any]) -> None:
    asked = service()
    found = await codes(asked, FILTERED, **variables)
    assert set(found) == {"BAD_USER_INPUT"}
    assert len(found) <= 11
    assert await seconds(asked, FILTERED, variables) < MOST_SECONDS


async def test_values_of_variables_are_counted_to_the_edge() -> None:
    document = "query ($where: UserWhere) { users(where: $where) { nodes { name } } }"
    where = {"and": [{"name": {"eq": "a"}}, {"name": {"eq": "a"}}]}  # 1 + 1 + 2 * 3
    assert await codes(service(max_variable_values=7), document, where=where) == ["DOCUMENT_LIMIT"]
    [error] = (await service(max_variable_values=7).execute(document, {"where": where}))["errors"]
    assert error["message"] == "The variables have more values than they may have, and the limit is 7."
    assert await codes(service(max_variable_values=8), document, where=where) == ["INTERNAL"]  # reads


NAMED = '{ name: { eq: "a" } }, '


@pytest.mark.parametrize(
    "where",
    [
        f"{{ or: [{NAMED * 26}] }}",
        f"{{ or: [{NAMED * 25} {{ not: {NAMED} }}] }}",
        f'{{ name: {{ ne: "a" }}, or: [{NAMED * 25}] }}',
        f"{{ and: [{NAMED * 2} {'{}, ' * 47}] }}",
    ],
)
async def test_a_where_has_few_conditions(where: str) -> None:
    document = f"{{ users(where: {where}) {{ nodes {{ name }} }} }}"
    asked = Service(SCHEMA, UnreadStore(graph.table), secret=SECRET, limits=NO_LIMITS)
    [error] = (await asked.execute(document))["errors"]
    assert (error["message"], error["extensions"]["code"]) == (
        "where: at most 50 conditions",
        "BAD_USER_INPUT",
    )
    fewer = document.replace(NAMED, "", 2)
    assert await codes(asked, fewer) == ["INTERNAL"]  # reads


async def test_a_mutation_that_is_refused_again_is_not_prepared_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = build_schema(with_all_writes(graph))
    asked = Service(schema, UnreadStore(graph.table), secret=SECRET, limits=Limits(cost_limit=100))
    prepared: list[int] = []

    def counted(*given: Any) -> Any:
        prepared.append(1)
        return schema_mutations.write_requests(*given)

    monkeypatch.setattr(write, "write_requests", counted)
    document = "mutation ($input: DeleteUsersInput!) { deleteUsers(input: $input) { results { deletedId } } }"

    async def refused(count: int, **more: Any) -> dict[str, Any]:
        prepared.clear()
        inputs = [{"userId": f"u{number}", "onEdges": "DETACH"} for number in range(count)]
        given = OperationRequest(document, {"input": {"atomic": False, "inputs": inputs}}, **more)
        error: dict[str, Any] = (await asked.execute(given))["errors"][0]
        assert error["extensions"]["code"] == "COST_LIMIT"
        return error

    first = await refused(90)
    assert len(prepared) == 90
    assert (await refused(90), len(prepared)) == (first, 0)
    fewer = await refused(80)
    assert len(prepared) == 80
    assert fewer["extensions"]["bound"]["readUnits"] * 9 == first["extensions"]["bound"]["readUnits"] * 8
    assert (await refused(80), len(prepared)) == (fewer, 0)
    # An idempotency key is another item to read, and a viewer has other rules. Costs by place need all writes.
    assert (await refused(80, idempotency_key="k"))["extensions"]["bound"] != fewer["extensions"]["bound"]
    for more in ({"viewer": {"sub": "a"}}, {"with_cost": True}):
        await refused(80, **more)
        assert len(prepared) == 80
    for number in range(20, 40):
        await refused(100 + number)
    [plan] = [each for each in asked._documents.kept.values() if isinstance(each, Plan)]
    assert len(plan.refused) == 16
    await refused(90)
    assert len(prepared) == 90


# --- Time -----------------------------------------------------------------------------------------------------


class Hanging(UnreadStore):
    """A store that never answers."""

    async def send(self, request: Request[Answer], /) -> Answer:
        return await asyncio.Future()


@pytest.mark.parametrize(
    ("document", "written"),
    [
        (user("name orders { nodes { total } }"), ""),
        ("{ users { nodes { orders { totalCount } } } }", ""),
        (
            'mutation { createUser(input: { userId: "u", name: "n", email: "e", userType: CUSTOMER, '
            'createdAt: "2024-01-01T00:00:00Z" }) { user { name } } }',
            " Its writes may have taken effect.",
        ),
    ],
)
async def test_an_operation_has_one_deadline(document: str, written: str) -> None:
    asked = Service(SCHEMA, Hanging(graph.table), secret=SECRET, limits=Limits(operation_timeout=0.1))
    answer = await asked.execute(document)
    assert answer == {
        "data": None,
        "errors": [
            {
                "message": f"The operation took more than 0.1 seconds.{written}",
                "extensions": {"code": "TIMEOUT"},
            }
        ],
    }
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=10)
    assert all(task.done() for task in others)


async def test_a_mutation_that_sent_nothing_has_written_nothing() -> None:
    limits = Limits(operation_timeout=0.1, max_running=1)
    asked = Service(SCHEMA, Hanging(graph.table), secret=SECRET, limits=limits)
    await asked.admission.enter(1)
    answer = await asked.execute('mutation { deleteUser(input: { userId: "u" }) { deletedId } }')
    assert [error["message"] for error in answer["errors"]] == ["The operation took more than 0.1 seconds."]


async def test_waiting_for_a_turn_counts() -> None:
    asked = Service(
        SCHEMA, Hanging(graph.table), secret=SECRET, limits=Limits(operation_timeout=0.1, max_running=1)
    )
    answers = await asyncio.gather(*(asked.execute(user("name")) for _ in range(3)))
    assert [answer["errors"][0]["extensions"]["code"] for answer in answers] == ["TIMEOUT"] * 3
