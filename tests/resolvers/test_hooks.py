"""Strawberry's extensions of a schema, and a context of somebody's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import strawberry
from graphql import FieldNode, GraphQLError, ValidationRule
from strawberry.extensions import AddValidationRules, MaskErrors, SchemaExtension
from strawberry.types import ExecutionResult

from keygraph import ID, Graph, Table, node, ref
from keygraph_resolvers import OperationRequest, Service, build_schema
from keygraph_resolvers.errors import NotAQuery
from tests.conftest import MakeStore
from tests.tracing import TracingStore


@node("USER#{user_id}")
class User:
    user_id: ID
    name: str


graph = Graph(Table("People", partition_key="PK", sort_key="SK"), User)


@strawberry.type
class Query:
    @strawberry.field
    def motto(self, info: strawberry.Info[Any, None], loud: bool = False) -> str:
        return f"{info.context['host']}{'!' if loud else ''}"

    @strawberry.field
    def me(self, info: strawberry.Info[Any, None], name: str = "ada") -> User:
        return ref(User, user_id=name)

    @strawberry.field
    def broken(self) -> str:
        raise GraphQLError("not today", extensions={"code": "CLOSED"})


Ask = Callable[..., Any]


@pytest.fixture
async def store(make_store: MakeStore) -> TracingStore:
    made = await make_store(
        graph.table, {"PK": "USER#ada", "SK": "USER#ada", "user_id": "ada", "name": "Ada"}
    )
    return TracingStore(made)


def service(store: TracingStore, *extensions: Any) -> Service:
    return Service(build_schema(graph, query=Query, extensions=extensions), store, secret=b"x" * 32)


async def test_hooks_run_around_each_step(store: TracingStore) -> None:
    seen: list[str] = []

    class Steps(SchemaExtension):
        def on_operation(self) -> Iterator[None]:
            seen.append(f"operation {self.execution_context.context}")
            yield
            result = self.execution_context.result
            assert isinstance(result, ExecutionResult)
            seen.append(f"{self.execution_context.operation_name}: {result.data}")

        async def on_parse(self) -> AsyncIterator[None]:
            assert self.execution_context.graphql_document is None
            yield
            if (document := self.execution_context.graphql_document) and document.definitions:
                seen.append(f"parsed {self.execution_context.operation_type.value}")

        def on_validate(self) -> None:
            seen.append("validate")

        async def on_execute(self) -> AsyncIterator[None]:
            seen.append(f"execute after {len(store.requests)} requests, {self.execution_context.variables}")
            yield
            seen.append(f"executed after {len(store.requests)}")

        def get_results(self) -> dict[str, Any]:
            return {"steps": len(seen)}

    asked = service(store, Steps)
    document = "query Q($id: ID!) { user(userId: $id) { name } }"
    for _ in range(2):
        seen.clear()
        store.requests.clear()
        answer = await asked.execute(
            OperationRequest(document, {"id": "ada"}, context={"host": "h"}, with_cost=True)
        )
        assert answer["data"] == {"user": {"name": "Ada"}}
        assert answer["extensions"]["steps"] == len(seen)
        assert answer["extensions"]["cost"]["actual"]["requests"] == 1
        assert seen == [
            "operation {'host': 'h'}",
            "parsed query",
            "validate",
            "execute after 0 requests, {'id': 'ada'}",
            "executed after 1",
            "Q: {'user': {'name': 'Ada'}}",
        ]
    answer = await asked.execute("{ nope }")
    assert [each["extensions"]["code"] for each in answer["errors"]] == ["GRAPHQL_VALIDATION_FAILED"]
    assert "data" not in answer
    seen.clear()
    answer = await asked.execute("{")
    assert [each["extensions"]["code"] for each in answer["errors"]] == ["GRAPHQL_PARSE_FAILED"]
    assert seen == ["operation None", "None: None"]
    with pytest.raises(NotAQuery):
        await asked.execute(
            OperationRequest(
                'mutation { deleteUser(input: { userId: "1" }) { deletedId } }', only_queries=True
            )
        )


async def test_each_operation_has_extensions_of_its_own(store: TracingStore) -> None:
    made: list[SchemaExtension] = []

    class Named(SchemaExtension):
        def __init__(self, name: str) -> None:
            made.append(self)
            self.name = name

        def get_results(self) -> dict[str, Any]:
            return {"by": self.name}

    asked = service(store, lambda: Named("Ada"))
    answers = [await asked.execute('{ user(userId: "ada") { name } }') for _ in range(2)]
    assert [each["extensions"] for each in answers] == [{"by": "Ada"}] * 2
    assert len(set(made)) == 2


async def test_a_subgraph_and_an_extension_that_is_made_already(store: TracingStore) -> None:
    class Named(SchemaExtension):
        def get_results(self) -> dict[str, Any]:
            return {"by": "Ada"}

    subgraph = build_schema(graph, extensions=[Named], federation=True)
    answer = await Service(subgraph, store, secret=b"x" * 32).execute("{ _service { sdl } }")
    assert (answer["extensions"], "errors" in answer) == ({"by": "Ada"}, False)
    with pytest.warns(DeprecationWarning, match="extension instance"):
        asked = service(store, Named())
    answer = await asked.execute('{ user(userId: "ada") { name } }')
    assert answer == {"data": {"user": {"name": "Ada"}}, "extensions": {"by": "Ada"}}


async def test_resolve_runs_around_fields_of_ones_own(store: TracingStore) -> None:
    seen: list[tuple[str, dict[str, Any]]] = []

    class Around(SchemaExtension):
        def resolve(self, _next: Any, root: Any, info: Any, *args: Any, **given: Any) -> Any:
            seen.append((info.field_name, given))
            found = _next(root, info, *args, **given)
            return found.upper() if isinstance(found, str) else found

    document = '{ motto(loud: true) me(name: "ada") { name } user(userId: "ada") { name } __typename }'
    answer = await service(store, Around).execute(OperationRequest(document, context={"host": "rovers"}))
    assert answer["data"] == {
        "motto": "ROVERS!",
        "me": {"name": "Ada"},
        "user": {"name": "Ada"},
        "__typename": "Query",
    }
    assert sorted(seen, key=str) == [("me", {"name": "ada"}), ("motto", {"loud": True})]


async def test_extensions_refuse_and_answer(store: TracingStore) -> None:
    class NoNames(ValidationRule):
        def enter_field(self, node: FieldNode, *_: object) -> None:
            if node.name.value == "name":
                self.report_error(GraphQLError("no names", node))

    class Closed(SchemaExtension):
        def on_operation(self) -> Iterator[None]:
            raise GraphQLError("closed on Sundays", extensions={"code": "CLOSED"})
            yield

    class Kept(SchemaExtension):
        def on_execute(self) -> Iterator[None]:
            self.execution_context.result = ExecutionResult({"user": {"name": "Kept"}}, None)
            yield

    class Faulty(SchemaExtension):
        async def on_execute(self) -> AsyncIterator[None]:
            yield
            raise RuntimeError("the password is hunter2")

    document = '{ user(userId: "ada") { name } }'
    answer = await service(store, lambda: AddValidationRules([NoNames])).execute(document)
    assert [(each["message"], each["extensions"]["code"]) for each in answer["errors"]] == [
        ("no names", "GRAPHQL_VALIDATION_FAILED")
    ]
    answer = await service(store, Closed).execute(document)
    assert answer == {
        "data": None,
        "errors": [{"message": "closed on Sundays", "extensions": {"code": "CLOSED"}}],
    }
    assert (await service(store, Kept).execute(document))["data"] == {"user": {"name": "Kept"}}
    assert store.requests == []
    [error] = (await service(store, Faulty).execute(document))["errors"]
    assert (error["extensions"]["code"], "hunter2" in error["message"]) == ("INTERNAL", False)


async def test_extensions_change_errors(store: TracingStore) -> None:
    class Nothing(SchemaExtension):
        def on_execute(self) -> Iterator[None]:
            yield

    document = '{ user(userId: "ada") { name } broken }'
    plain = await service(store).execute(document)
    assert plain["errors"][0]["path"] == ["broken"]
    assert await service(store, Nothing).execute(document) == plain
    masked = await service(store, MaskErrors).execute(document)
    assert masked["data"] == plain["data"]
    [error] = masked["errors"]
    assert (error["message"], error["path"]) == ("Unexpected error.", ["broken"])
    assert error["extensions"]["code"] == "INTERNAL"
