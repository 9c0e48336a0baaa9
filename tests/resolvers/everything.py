"""A model with every kind of field, for the tests of what the schema makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum

from keygraph import (
    ID,
    JSON,
    Graph,
    Index,
    Long,
    Many,
    One,
    Table,
    edge,
    field,
    many,
    node,
    one,
    record,
    stored,
)

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
gsi2 = Index("GSI2", "GSI2PK", "GSI2SK")
by_isbn = Index("by-isbn", "Isbn", "PK")


class Genre(Enum):
    """What a book is about."""

    NOVEL = "novel"
    """Made up."""
    HISTORY = "history"


class Grade(Enum):
    LOW = 1
    HIGH = 2


@dataclass
class Size:
    """In millimetres."""

    width: float
    height: float
    depth: float | None
    """How thick it is."""


@dataclass
class Format:
    size: Size
    pages: int
    marks: list[Genre]


@node("AUTHOR#{author_id}")
class Author:
    """Who writes."""

    author_id: ID
    name: str
    """As it stands on the cover."""

    books: Many[Wrote] = many()
    """What they wrote, by title."""
    debut: One[Wrote] = one(index=gsi2)
    notes: Many[Note] = many()
    home: One[Home] = one()


@node(
    "BOOK#{isbn}",
    gsi1("GENRE#{genre}", "{published}#{title}", lists="books_by_genre"),
    gsi2("BOOK", "{published}"),
    by_isbn(finds="book_by_code"),
)
class Book:
    """A printed book.

    Its ISBN is its name.
    """

    isbn: ID
    code: str = stored("Isbn")
    title: str
    genre: Genre
    grade: Grade | None
    published: datetime
    bought: date
    price: Decimal
    copies: int
    read_times: Long
    weight: float
    is_lent: bool
    cover: bytes
    words: list[str]
    gaps: list[int | None]
    colours: set[str]
    format: Format
    formats: list[Format] | None
    extra: JSON
    editor: Author | None
    """Who saw to it."""

    authors: Many[Wrote] = many()
    cover_story: One[Cover] = one()
    current: One[Price] = one()
    prices: Many[Price] = many()
    readings: Many[Reading] = many()

    @field(needs=("title",))
    def loud_title(self) -> str:
        """The title, shouted."""
        return self.title.upper()

    @field()
    async def excerpt(self, length: int, start: int = 0, end: str | None = None) -> str | None:
        return f"{self.title[start : start + length]}{end or ''}"

    @field(needs=("editor",))
    def reader(self) -> Author | None:
        return self.editor


@edge("{author}", "{book}", gsi1("{book}", "{author}"), gsi2("{author}", "{since}"))
class Wrote:
    """An author has written a book."""

    author: Author
    book: Book
    since: date
    share: Decimal | None
    translator: Author | None
    """Who put it into another language."""

    @field(needs=("share",))
    def percent(self) -> str:
        return f"{(self.share or 1) * 100:.0f} %"


@node("NOTE#{author.author_id}", "{day}#{number:03d}", gsi1("NOTES", "{day}", lists="diary"))
class Note:
    """A node whose key has an end in it, and more."""

    author: Author
    day: date
    number: int
    text: str | None


@node("{author}", "HOME")
class Home:
    author: Author
    street: str


@record("{book}", "PRICE#{since}")
class Price:
    """What it cost."""

    book: Book
    since: datetime
    price: Decimal


@record("{book}#{room}", "READ#{day}#{grade}")
class Reading:
    """A list that asks for the room."""

    book: Book
    room: str
    day: date
    grade: Grade


@edge("{book}", "COVER#{shade.name}", gsi1("COVERS", "{shade.name}", lists="covers"))
class Cover:
    """An edge that is listed from the root."""

    book: Book
    shade: Shade = stored("shade")
    gloss: bool


@node("SHADE#{name}", item=False)
class Shade:
    """The table holds no item for a shade."""

    name: ID

    covers: Many[Cover] = many(index=gsi1)


everything = Graph(
    Table("Everything", partition_key="PK", sort_key="SK", indexes=[gsi1, gsi2, by_isbn]),
    Author,
    Book,
    Wrote,
    Note,
    Home,
    Price,
    Reading,
    Cover,
    Shade,
    attribute_case="camel",
    type_attribute="kind",
    writes=True,
)
