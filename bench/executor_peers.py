"""The peers of `bench.executor`: graphql-core's own execution, of the same document over the same items.

Their schema is written in Strawberry, with objects that are made of the items when they are read. Each node has a
resolver; which are sync, or async with a dataloader, is the only difference. Each is there a second time without
Strawberry's part: the same schema with graphql-core's resolvers that are one plain function each.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from operator import attrgetter
from typing import Any, Protocol, cast

import strawberry
from aiodataloader import DataLoader
from graphql import GraphQLObjectType, GraphQLSchema, execute, is_object_type, parse
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.field import StrawberryField

from keygraph.dynamo.items import Item


class Items(Protocol):
    """What the resolvers read of."""

    by_key: dict[Any, Item]
    lists: dict[tuple[str | None, Any], list[Item]]


@dataclass
class Context:
    """What the resolvers of one operation have."""

    items: Items
    nodes: DataLoader[Any, Any]


Info = strawberry.Info[Context, None]


@strawberry.enum
class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@strawberry.type
class Thing:
    code: strawberry.ID
    title: str
    size: int
    weight: Decimal
    is_new: bool
    colour: Colour


def to_thing(item: Item) -> Thing:
    told: Any = item
    return Thing(
        code=told["code"],
        title=told["title"],
        size=int(told["size"]),
        weight=told["weight"],
        is_new=told["isNew"],
        colour=Colour(told["colour"]),
    )


def _page(info: Info, index: str | None, key: tuple[str, str], first: int) -> list[Item]:
    return info.context.items.lists[index, key][:first]


# --- Sync ---------------------------------------------------------------------------------------------


@strawberry.type
class Edge:
    key: strawberry.Private[Any]

    @strawberry.field
    def node(self, info: Info) -> Thing:
        return to_thing(info.context.items.by_key[self.key])


@strawberry.type
class Connection:
    edges: list[Edge]


@strawberry.type
class Shelf:
    key: strawberry.Private[str]

    @strawberry.field
    def things(self, info: Info, first: int) -> Connection:
        page: list[Any] = _page(info, None, (self.key, "THING"), first)
        return Connection(edges=[Edge(key=(item["PK"], item["SK"])) for item in page])

    @strawberry.field
    def parts(self, info: Info, first: int) -> Connection:
        page: list[Any] = _page(info, None, (self.key, "PART"), first)
        return Connection(edges=[Edge(key=(item["SK"], item["SK"])) for item in page])


@strawberry.type
class Shelves:
    nodes: list[Shelf]


@strawberry.type
class Query:
    @strawberry.field
    def shelf(self, shelf_id: strawberry.ID) -> Shelf:
        return Shelf(key=f"SHELF#{shelf_id}")

    @strawberry.field
    def shelves(self, info: Info, first: int) -> Shelves:
        page: list[Any] = _page(info, "GSI1", ("SHELVES", ""), first)
        return Shelves(nodes=[Shelf(key=item["PK"]) for item in page])


# --- Async --------------------------------------------------------------------------------------------


@strawberry.type
class LoadedEdge:
    key: strawberry.Private[Any]

    @strawberry.field
    async def node(self, info: Info) -> Thing:
        return cast(Thing, await info.context.nodes.load(self.key))


@strawberry.type
class LoadedConnection:
    edges: list[LoadedEdge]


@strawberry.type
class LoadedShelf:
    key: strawberry.Private[str]

    @strawberry.field
    async def things(self, info: Info, first: int) -> LoadedConnection:
        page: list[Any] = _page(info, None, (self.key, "THING"), first)
        return LoadedConnection(edges=[LoadedEdge(key=(item["PK"], item["SK"])) for item in page])

    @strawberry.field
    async def parts(self, info: Info, first: int) -> LoadedConnection:
        page: list[Any] = _page(info, None, (self.key, "PART"), first)
        return LoadedConnection(edges=[LoadedEdge(key=(item["SK"], item["SK"])) for item in page])


@strawberry.type
class LoadedShelves:
    nodes: list[LoadedShelf]


@strawberry.type
class LoadedQuery:
    @strawberry.field
    async def shelf(self, shelf_id: strawberry.ID) -> LoadedShelf:
        return LoadedShelf(key=f"SHELF#{shelf_id}")

    @strawberry.field
    async def shelves(self, info: Info, first: int) -> LoadedShelves:
        page: list[Any] = _page(info, "GSI1", ("SHELVES", ""), first)
        return LoadedShelves(nodes=[LoadedShelf(key=item["PK"]) for item in page])


# --- Executing ----------------------------------------------------------------------------------------


def schema_of(query: type, *, is_bare: bool) -> GraphQLSchema:
    """The schema, with Strawberry's resolvers or with plain ones."""
    core: GraphQLSchema = cast(Any, strawberry.Schema(query))._schema
    for type_ in core.type_map.values() if is_bare else ():
        if is_object_type(type_) and not type_.name.startswith("__"):
            _make_bare(type_)
    return core


def _make_bare(type_: GraphQLObjectType) -> None:
    for field in type_.fields.values():
        served: StrawberryField = field.extensions[GraphQLCoreConverter.DEFINITION_BACKREF]
        field.resolve = _bare(served)
        for argument in served.arguments:
            name = argument.graphql_name or argument.python_name
            field.args.get(name, next(iter(field.args.values()))).out_name = argument.python_name


def _bare(served: StrawberryField) -> Callable[..., Any]:
    if served.base_resolver is None:
        attribute = attrgetter(served.python_name)
        return lambda source, info: attribute(source)
    resolve: Any = served.base_resolver.wrapped_func
    if any(parameter.name == "info" for parameter in served.base_resolver.signature.parameters.values()):
        return cast(Callable[..., Any], resolve)
    return lambda source, info, **given: resolve(source, **given)


def asked_of(
    items: Items, query: type, documents: Iterable[str], *, is_bare: bool
) -> Callable[[str], Awaitable[Any]]:
    """What executes one of these documents, parsed beforehand."""
    schema = schema_of(query, is_bare=is_bare)
    parsed = {text: parse(text) for text in documents}

    async def batch(keys: list[Any]) -> list[Thing]:
        return [to_thing(items.by_key[key]) for key in keys]

    async def ask(document: str) -> Any:
        result: Any = execute(schema, parsed[document], context_value=Context(items, DataLoader(batch)))
        if inspect.isawaitable(result):
            result = await result
        return {"data": result.data, **({"errors": result.errors} if result.errors else {})}

    return ask
