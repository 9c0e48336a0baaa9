"""A library of books, members and loans: keys hold labels and values in lower case, indexes hold three meanings.

From the examples of ElectroDB (tywalch/electrodb, examples/library), in the keys that it writes.
"""

from __future__ import annotations

from keygraph import ID, JSON, Format, Graph, Index, Many, Table, field, node, record, stored

gsi1 = Index("gsi1pk-gsi1sk-index", "gsi1pk", "gsi1sk")
gsi2 = Index("gsi2pk-gsi2sk-index", "gsi2pk", "gsi2sk")
gsi3 = Index("gsi3pk-gsi3sk-index", "gsi3pk", "gsi3sk")


@node("$library#authorlastname_{last_name:lower}#authorfirstname_{first_name:lower}", item=False)
class Writer:
    last_name: ID
    first_name: ID
    info: Many[Author]
    books: Many[Book]
    genres: Many[Genre]


@node("$library#isbn_{isbn}", item=False)
class Edition:
    isbn: ID
    copies: Many[Book]
    genres: Many[Genre]


@node(
    "$library#authorlastname_{last_name:lower}",
    "$author_1#authorfirstname_{first_name_key}#birthday_{birthday}",
    gsi2("{writer}", "$works#author_1"),
    type="author",
)
class Author:
    last_name: str = stored("authorLastName")
    first_name: str = stored("authorFirstName")
    writer: Writer = stored(last_name="authorLastName", first_name="authorFirstName")
    birthday: str
    bio: str

    @field(needs=("first_name",))
    def first_name_key(self) -> str:
        return self.first_name.lower()


@node(
    "{edition}",
    "$detail#book_1#bookid_{book_id}",
    gsi1("{member}", "$account#book_1#loanenddate_{loan_end_date:due}"),
    gsi2("{author}", "$works#book_1#loanenddate_{loan_end_date:due}"),
    gsi3(
        "$library#booktitle_{book_title:lower}", "$titles#book_1#releasedate_{release_date}", lists="editions"
    ),
    type="book",
)
class Book:
    edition: Edition = stored("isbn")
    book_id: ID
    book_title: str
    release_date: str
    author: Writer
    member: Member | None
    loan_end_date: str


@record(
    "{edition}",
    "$detail#genre_1#genre_{genre:lower}#subgenre_{subgenre:lower}",
    gsi1("$library#genre_{genre:lower}", "$genre_1#subgenre_{subgenre:lower}", lists="books_of_genre"),
    gsi2("{author}", "$works#genre_1#genre_{genre:lower}#subgenre_{subgenre:lower}"),
    gsi3(
        "$library#booktitle_{book_title:lower}",
        "$titles#genre_1#genre_{genre:lower}#subgenre_{subgenre:lower}",
        lists="genres_of_title",
    ),
    type="genre",
)
class Genre:
    edition: Edition = stored("isbn")
    genre: str
    subgenre: str
    book_title: str
    book_id: str
    author: Writer


@node(
    "$library#memberid_{member_id}",
    "$member_1",
    gsi1("$library#memberid_{member_id}", "$account#member_1", lists=False),
    type="member",
)
class Member:
    member_id: ID
    membership_end_date: str
    address: JSON
    loans: Many[Book]


graph = Graph(
    Table("electro", partition_key="pk", sort_key="sk", indexes=[gsi1, gsi2, gsi3]),
    Writer,
    Edition,
    Author,
    Book,
    Genre,
    Member,
    type_attribute="__edb_e__",
    attribute_case="camel",
    formats={"lower": Format(str.lower), "due": Format(str.lower, ordered=True)},
)

ITEMS = """
{"pk": "$library#authorlastname_king", "sk": "$author_1#authorfirstname_stephen#birthday_1947-09-21", "gsi2pk": "$library#authorlastname_king#authorfirstname_stephen", "gsi2sk": "$works#author_1", "__edb_e__": "author", "authorLastName": "King", "authorFirstName": "Stephen", "birthday": "1947-09-21", "bio": "Writes of Maine."}
{"pk": "$library#authorlastname_king", "sk": "$author_1#authorfirstname_owen#birthday_1977-02-21", "gsi2pk": "$library#authorlastname_king#authorfirstname_owen", "gsi2sk": "$works#author_1", "__edb_e__": "author", "authorLastName": "King", "authorFirstName": "Owen", "birthday": "1977-02-21", "bio": "His son."}
{"pk": "$library#isbn_978-1", "sk": "$detail#book_1#bookid_b1", "gsi1pk": "$library#memberid_m1", "gsi1sk": "$account#book_1#loanenddate_2024-05-01", "gsi2pk": "$library#authorlastname_king#authorfirstname_stephen", "gsi2sk": "$works#book_1#loanenddate_2024-05-01", "gsi3pk": "$library#booktitle_it", "gsi3sk": "$titles#book_1#releasedate_1986-09-15", "__edb_e__": "book", "isbn": "978-1", "bookId": "b1", "bookTitle": "It", "releaseDate": "1986-09-15", "authorLastName": "King", "authorFirstName": "Stephen", "memberId": "m1", "loanEndDate": "2024-05-01"}
{"pk": "$library#isbn_978-1", "sk": "$detail#book_1#bookid_b2", "gsi2pk": "$library#authorlastname_king#authorfirstname_stephen", "gsi2sk": "$works#book_1#loanenddate_available", "gsi3pk": "$library#booktitle_it", "gsi3sk": "$titles#book_1#releasedate_1986-09-15", "__edb_e__": "book", "isbn": "978-1", "bookId": "b2", "bookTitle": "It", "releaseDate": "1986-09-15", "authorLastName": "King", "authorFirstName": "Stephen", "loanEndDate": "AVAILABLE"}
{"pk": "$library#isbn_978-2", "sk": "$detail#book_1#bookid_b3", "gsi1pk": "$library#memberid_m1", "gsi1sk": "$account#book_1#loanenddate_2024-06-01", "gsi2pk": "$library#authorlastname_king#authorfirstname_stephen", "gsi2sk": "$works#book_1#loanenddate_2024-06-01", "gsi3pk": "$library#booktitle_it", "gsi3sk": "$titles#book_1#releasedate_2016-01-05", "__edb_e__": "book", "isbn": "978-2", "bookId": "b3", "bookTitle": "It", "releaseDate": "2016-01-05", "authorLastName": "King", "authorFirstName": "Stephen", "memberId": "m1", "loanEndDate": "2024-06-01"}
{"pk": "$library#isbn_978-1", "sk": "$detail#genre_1#genre_horror#subgenre_clowns", "gsi1pk": "$library#genre_horror", "gsi1sk": "$genre_1#subgenre_clowns", "gsi2pk": "$library#authorlastname_king#authorfirstname_stephen", "gsi2sk": "$works#genre_1#genre_horror#subgenre_clowns", "gsi3pk": "$library#booktitle_it", "gsi3sk": "$titles#genre_1#genre_horror#subgenre_clowns", "__edb_e__": "genre", "isbn": "978-1", "bookId": "b1", "bookTitle": "It", "genre": "horror", "subgenre": "Clowns", "authorLastName": "King", "authorFirstName": "Stephen"}
{"pk": "$library#memberid_m1", "sk": "$member_1", "gsi1pk": "$library#memberid_m1", "gsi1sk": "$account#member_1", "__edb_e__": "member", "memberId": "m1", "membershipEndDate": "2025-01-01", "address": {"city": "Bangor"}}
"""

ASKED = """
Copies of books by an author
{ writer(lastName: "King", firstName: "Stephen") { books { nodes { bookId bookTitle } } } }
{"writer": {"books": {"nodes": [{"bookId": "b1", "bookTitle": "It"}, {"bookId": "b3", "bookTitle": "It"}, {"bookId": "b2", "bookTitle": "It"}]}}}

Authors by last name and the beginning of the first
{ authors(lastName: "King", firstNameKey: {beginsWith: "ste"}) { nodes { firstName birthday } } }
{"authors": {"nodes": [{"firstName": "Stephen", "birthday": "1947-09-21"}]}}

Authors by full name
{ authors(lastName: "King", firstNameKey: {eq: "owen"}) { nodes { bio writer { books { totalCount } } } } }
{"authors": {"nodes": [{"bio": "His son.", "writer": {"books": {"totalCount": 0}}}]}}

An author with books and genres
{ writer(lastName: "King", firstName: "Stephen") { info { nodes { bio } } books { totalCount } genres { nodes { genre subgenre } } } }
{"writer": {"info": {"nodes": [{"bio": "Writes of Maine."}]}, "books": {"totalCount": 3}, "genres": {"nodes": [{"genre": "horror", "subgenre": "Clowns"}]}}}

Copies by ISBN
{ edition(isbn: "978-1") { copies { nodes { bookId } } } }
{"edition": {"copies": {"nodes": [{"bookId": "b1"}, {"bookId": "b2"}]}}}

Books on loan to a member
{ member(memberId: "m1") { loans { nodes { bookId loanEndDate } } } }
{"member": {"loans": {"nodes": [{"bookId": "b1", "loanEndDate": "2024-05-01"}, {"bookId": "b3", "loanEndDate": "2024-06-01"}]}}}

Books of a member by the end of the loan
{ member(memberId: "m1") { loans(loanEndDate: {from: "2024-05-15"}) { nodes { bookId } } } }
{"member": {"loans": {"nodes": [{"bookId": "b3"}]}}}

The number of books that a member has
{ member(memberId: "m1") { loans { totalCount } } }
{"member": {"loans": {"totalCount": 2}}}

A member and the books on loan
{ member(memberId: "m1") { membershipEndDate address loans { nodes { bookTitle } } } }
{"member": {"membershipEndDate": "2025-01-01", "address": {"city": "Bangor"}, "loans": {"nodes": [{"bookTitle": "It"}, {"bookTitle": "It"}]}}}

Available copies
{ writer(lastName: "King", firstName: "Stephen") { books(loanEndDate: {eq: "AVAILABLE"}, where: {bookId: {eq: "b2"}}) { nodes { bookId } } } }
{"writer": {"books": {"nodes": [{"bookId": "b2"}]}}}

Copies on loan
{ writer(lastName: "King", firstName: "Stephen") { books(loanEndDate: {to: "9999"}) { nodes { bookId } } } }
{"writer": {"books": {"nodes": [{"bookId": "b1"}, {"bookId": "b3"}]}}}

Copies by title
{ editions(bookTitle: "It") { totalCount nodes { releaseDate } } }
{"editions": {"totalCount": 3, "nodes": [{"releaseDate": "1986-09-15"}, {"releaseDate": "1986-09-15"}, {"releaseDate": "2016-01-05"}]}}

Editions of a title between two dates
{ editions(bookTitle: "It", releaseDate: {from: "2000", to: "2020"}) { nodes { releaseDate } } }
{"editions": {"nodes": [{"releaseDate": "2016-01-05"}]}}

A book and its genres, by ISBN
{ edition(isbn: "978-1") { copies(first: 1) { nodes { bookTitle } } genres { nodes { genre } } } }
{"edition": {"copies": {"nodes": [{"bookTitle": "It"}]}, "genres": {"nodes": [{"genre": "horror"}]}}}

A book and its genres, by title
{ editions(bookTitle: "It", first: 1) { nodes { releaseDate } } genresOfTitle(bookTitle: "It") { nodes { subgenre } } }
{"editions": {"nodes": [{"releaseDate": "1986-09-15"}]}, "genresOfTitle": {"nodes": [{"subgenre": "Clowns"}]}}

Copies of books of a genre and a subgenre
{ booksOfGenre(genre: "horror", subgenre: {eq: "Clowns"}) { nodes { bookTitle edition { copies { nodes { bookId } } } } } }
{"booksOfGenre": {"nodes": [{"bookTitle": "It", "edition": {"copies": {"nodes": [{"bookId": "b1"}, {"bookId": "b2"}]}}}]}}

Books of an author and a genre
{ writer(lastName: "King", firstName: "Stephen") { genres(genre: {eq: "horror"}) { nodes { bookTitle bookId } } } }
{"writer": {"genres": {"nodes": [{"bookTitle": "It", "bookId": "b1"}]}}}

A copy is borrowed
mutation { updateBook(input: {editionIsbn: "978-1", bookId: "b2", memberId: "m1", loanEndDate: "2024-07-01"}) { book { member { loans { nodes { bookId } } } } } }
{"updateBook": {"book": {"member": {"loans": {"nodes": [{"bookId": "b1"}, {"bookId": "b3"}, {"bookId": "b2"}]}}}}}
"""
