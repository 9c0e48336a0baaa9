"""The schema that a graph gives, by rule: types, lists, edges, the root, inputs, descriptions, names."""

from __future__ import annotations

import re
from enum import Enum

import pytest
import strawberry

from keygraph.dynamo.table import Table
from keygraph.errors import ModelError
from keygraph.graph import Graph
from keygraph_resolvers import build_schema
from tests.resolvers.everything import Genre, Grade, everything
from tests.resolvers.schema_text import SDL, fields, part, shows
from tests.resolvers.worlds import library


def test_a_node() -> None:
    shows("""type Book implements Node {
  id: ID!
  isbn: ID!
  code: String!
  title: String!
  genre: Genre!
  grade: Grade
  published: DateTime!
  bought: Date!
  price: Decimal!
  copies: Int!
  readTimes: Long!
  weight: Float!
  isLent: Boolean!
  cover: Base64!
  words: [String!]!
  gaps: [Int]!
  colours: [String!]!
  format: Format!
  formats: [Format!]
  extra: JSON!
  editor: Author
  loudTitle: String!
  excerpt(length: Int!, start: Int! = 0, end: String): String
  reader: Author
  authors(PAGING, authorId: IDRange, where: WroteWhere, TO): BookAuthorsConnection
  coverStory: BookCoverStoryEdge
  current: Price
  prices(PAGING, since: DateTimeRange, where: PriceWhere): BookPricesConnection
  readings(room: String!, PAGING, day: DateRange, grade: GradeEquals, where: ReadingWhere): BookReadingsConnection
}""")


def test_one_neighbour() -> None:
    assert fields("Author") == [
        "id: ID!",
        "authorId: ID!",
        "name: String!",
        "books(PAGING, bookIsbn: IDRange, where: WroteWhere, TO): AuthorBooksConnection",
        "debut: AuthorDebutEdge",
        "notes(PAGING, day: DateRange, number: IntRange, where: NoteWhere): AuthorNotesConnection",
        "home: Home",
    ]
    shows("""type AuthorDebutEdge {
  node: Book
  since: Date!
  share: Decimal
  translator: Author
  percent: String!
}""")


def test_the_root() -> None:
    shows("""type Query {
  node(id: ID!): Node
  nodes(ids: [ID!]!): [Node]!
  author(authorId: ID!): Author
  book(isbn: ID!): Book
  note(authorId: ID!, day: Date!, number: Int!): Note
  home(authorId: ID!): Home
  shade(name: ID!): Shade
  booksByGenre(genre: Genre!, PAGING, published: DateTimeRange, title: StringRange, where: BookWhere): BookConnection
  books(PAGING, published: DateTimeRange, where: BookWhere): BookConnection
  diary(PAGING, day: DateRange, where: NoteWhere): NoteConnection
  covers(PAGING, shadeName: IDRange, where: CoverWhere): CoverConnection
  bookByCode(code: String!, isbn: ID): Book
}""")


def test_nested_objects_and_enums() -> None:
    shows("""type Size {
  width: Float!
  height: Float!
  depth: Float
}""")
    assert part("Format") == "type Format {\n  size: Size!\n  pages: Int!\n  marks: [Genre!]!\n}"
    shows("""enum Genre {
  NOVEL
  HISTORY
}""")
    assert part("Grade") == "enum Grade {\n  LOW\n  HIGH\n}"


def test_nothing_else_is_in_the_schema() -> None:
    names = re.findall(r"^(?:type|input|enum|interface|scalar) (\w+)", SDL, re.MULTILINE)
    assert len(names) == len(set(names))
    assert not [name for name in names if "_" in name or "Strawberry" in name or "Keygraph" in name]


def test_the_models_enums_stay_as_they_are() -> None:
    for enum in (Genre, Grade):
        assert isinstance(enum, type)
        assert issubclass(enum, Enum)
        assert not [name for name in vars(enum) if "strawberry" in name.lower() or name == "_enum_definition"]
    assert not [name for name in vars(everything.types["Book"].cls) if "strawberry" in name.lower()]


def test_a_graph_gives_the_same_schema_again() -> None:
    assert build_schema(everything).as_str() == SDL
    assert build_schema(library).as_str() == build_schema(library).as_str()


@strawberry.type
class Extra:
    @strawberry.field(description="What time it is.")
    def now(self, zone: str = "UTC") -> str:
        return f"now in {zone}"

    @strawberry.field
    async def answer(self) -> int:
        return 42


@strawberry.type
class Changes:
    @strawberry.mutation
    def touch(self) -> bool:
        return True


async def test_further_fields_of_the_root() -> None:
    schema = build_schema(everything, query=Extra, mutation=Changes)
    assert part("Query", schema.as_str()).endswith(
        '  bookByCode(code: String!, isbn: ID): Book\n  now(zone: String! = "UTC"): String!\n  answer: Int!\n}'
    )
    assert part("Mutation", schema.as_str()).endswith("\n  touch: Boolean!\n}")
    result = await schema.execute('{ now(zone: "CET") answer }')
    assert (result.data, result.errors) == ({"now": "now in CET", "answer": 42}, None)


def test_a_graph_with_mistakes_gives_no_schema() -> None:
    broken = Graph(Table("Tests", partition_key="PK"), *[record.cls for record in everything.types.values()])
    with pytest.raises(ModelError):
        build_schema(broken)
