"""What the schema says of itself: every part has a description, the model's own where it has one, and none tells of the store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
)

from keygraph import Graph
from keygraph.names import words
from keygraph_resolvers import build_schema
from keygraph_resolvers.schema.strawberry_internals import core_schema
from tests.designs.test_designs import NAMES as DESIGNS
from tests.documents.samples import NAMES as DOCUMENTS
from tests.documents.samples import graph_of
from tests.resolvers.everything import everything
from tests.resolvers.union_worlds import told_by_keys

GRAPHS = {
    **{name: graph_of(name) for name in DOCUMENTS},
    **{name: import_module(f"tests.designs.{name}").graph for name in DESIGNS},
    "everything": everything,
    "unions": told_by_keys,
}
STORAGE = re.compile(
    r"\b(DynamoDB|dynamo|SQLite|tables?|items?|index(es)?|GSI\d*|LSI\d*|partitions?|sort keys?|shards?|attributes?|PK|SK|BatchGet\w*|Query|Scan|projected)\b",
    re.IGNORECASE,
)


def described(schema: GraphQLSchema) -> Iterator[tuple[str, str | None]]:
    for name, type_ in schema.type_map.items():
        if name.startswith("__"):
            continue
        yield name, type_.description
        match type_:
            case GraphQLObjectType() | GraphQLInterfaceType():
                for field, each in type_.fields.items():
                    yield f"{name}.{field}", each.description
                    for argument, given in each.args.items():
                        yield f"{name}.{field}({argument}:)", given.description
            case GraphQLInputObjectType():
                for field, member in type_.fields.items():
                    yield f"{name}.{field}", member.description
            case GraphQLEnumType():
                for value, meant in type_.values.items():
                    yield f"{name}.{value}", meant.description
    for directive in schema.directives:
        if directive.name == "consistent":
            yield "@consistent", directive.description


def descriptions_of(graph: Graph) -> dict[str, str | None]:
    return dict(described(core_schema(build_schema(graph))))


@pytest.mark.parametrize("name", GRAPHS)
def test_every_part_has_a_description(name: str) -> None:
    found = descriptions_of(GRAPHS[name])
    assert len(found) > 100
    assert [place for place, text in found.items() if not (text or "").strip()] == []
    assert [text for text in found.values() if text and not text.rstrip().endswith((".", "`"))] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_none_tells_of_the_store(name: str) -> None:
    graph = GRAPHS[name]
    names = " ".join(
        f"{record.name} {' '.join((*record.order, *record.lists))}" for record in graph.types.values()
    )
    spoken = words(names)
    found = [
        (place, each[0])
        for place, text in descriptions_of(graph).items()
        for each in STORAGE.finditer(text or "")
        # An order has items: the model's own word.
        if each[0].lower() not in spoken
    ]
    assert found == []


def test_what_the_model_says_comes_first() -> None:
    found = descriptions_of(everything)
    told = {
        "Book": "A printed book.\n\nIts ISBN is its name.",
        "Book.editor": "Who saw to it.",
        "Book.loudTitle": "The title, shouted.",
        "AuthorBooksEdge": "An author has written a book.",
        "Size": "In millimetres.",
        "Size.depth": "How thick it is.",
        "Genre": "What a book is about.",
        "Genre.NOVEL": "Made up.",
    }
    assert {place: found[place] for place in told} == told


def test_what_the_rules_say() -> None:
    """Of what no example has: their snapshots hold the rest."""
    told = {
        "Book.published": "When the book was published.",
        "Book.isLent": "Whether the book is lent.",
        "Cover.gloss": "Gloss: true or false.",
        "Query.bookByCode": "The first Book with this code.",
    }
    found = descriptions_of(everything)
    assert {place: found[place] for place in told} == told


def test_scalars_name_their_specifications() -> None:
    types = core_schema(build_schema(everything)).type_map
    scalars = ("Long", "Decimal", "DateTime", "Date", "Base64", "JSON")
    urls = [type_.specified_by_url for name in scalars if isinstance(type_ := types[name], GraphQLScalarType)]
    assert len(urls) == len(scalars)
    assert all(url and url.startswith("https://") for url in urls)
    assert '@specifiedBy(url: "' in build_schema(everything).as_str()
