"""What the inputs and payloads of all mutations have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum

import pytest

from keygraph import ID, Graph, Many, One, Table, edge, node, one, read, record, write
from tests.conftest import MakeStore
from tests.resolvers.schema_text import part
from tests.resolvers.worlds import World, world
from tests.schemas import schema_of

OPEN = [read(), write()]


@node("USER#{user_id}", "PROFILE", access=OPEN)
class User:
    user_id: ID
    name: str

    card: One[Card] = one()
    first_visit: One[Visit] = one()
    visits: Many[Visit]
    clubs: Many[Member]


@record("{user}", "CARD", access=OPEN)
class Card:
    user: User
    number: str
    issuer: Club | None


@record("{user}", "VISIT#{number:04d}", access=OPEN)
class Visit:
    user: User
    number: int
    page: str | None


class Rank(Enum):
    LOW = "low"
    HIGH = "high"


@dataclass
class Fee:
    amount: Decimal = Decimal("9.50")
    months: int | None = 12
    ranks: list[Rank] = field(default_factory=lambda: [Rank.LOW])


@node("CLUB#{club_id}", access=[read(), write(fields=["club_id", "name"])])
class Club:
    club_id: ID
    name: str
    stars: int = 3
    rank: Rank = Rank.HIGH
    note: str | None = "new"
    tags: set[str] = field(default_factory=set)
    fee: Fee = field(default_factory=Fee)


@edge("{user}", "{club}", access=OPEN)
class Member:
    user: User
    club: Club
    since: int = 1


graph = Graph(
    Table("Clubs", partition_key="pk", sort_key="sk"), User, Card, Visit, Club, Member, type_attribute="type"
).check()


def names(type_: str) -> list[str]:
    return [line.strip() for line in part(type_, schema_of(graph).as_str()).splitlines()[1:-1]]


async def problems(made: World, mutation: str) -> list[tuple[str, str, list[str | int]]]:
    """Each error's code, message and place in the input."""
    answer = await made.service.execute(f"mutation {{ {mutation} }}")
    errors = answer.get("errors", [])
    return [(each["extensions"]["code"], each["message"], each["extensions"]["path"]) for each in errors]


@pytest.fixture
async def clubs(make_store: MakeStore) -> World:
    """Ann and Bob, and two clubs."""
    made = world(graph, await make_store(graph.table))
    await made.ask(
        """mutation {
          createUsers(input: {inputs: [{userId: "a", name: "Ann"}, {userId: "b", name: "Bob"}]}) { clientMutationId }
          createClubs(input: {inputs: [{clubId: "1", name: "Chess"}, {clubId: "2", name: "Go"}]}) { clientMutationId }
        }"""
    )
    made.forget()
    return made


def test_what_is_created_with_a_node_has_the_name_of_its_list() -> None:
    """One neighbour is one object, and a list of the same end is preferred to it."""
    assert names("CreateUserInput")[2:-2] == [
        "card: UserCardInput",
        "visits: [UserVisitsInput!]",
        "clubs: [UserClubsInput!]",
    ]
    assert names("UserClubsInput") == ["clubId: ID!", "since: Int! = 1"]


async def test_one_neighbour_is_created_with_its_node(make_store: MakeStore) -> None:
    made = world(graph, await make_store(graph.table))
    given = '{userId: "a", name: "Ann", card: {number: "7"}, visits: [{number: 1}, {number: 2}]}'
    assert await made.ask(
        f"mutation {{ createUser(input: {given}) {{ user {{ card {{ number }} visits {{ totalCount }} }} }} }}"
    ) == {"createUser": {"user": {"card": {"number": "7"}, "visits": {"totalCount": 2}}}}
    given = '{userId: "b", name: "Bob", card: {number: "8", issuerId: "9"}}'
    assert await problems(made, f"createUser(input: {given}) {{ clientMutationId }}") == [
        ("NOT_FOUND", "issuerId: there is no Club with this key.", ["input", "card", "issuerId"])
    ]


@pytest.mark.parametrize(
    "mutation",
    [
        'createUsers(input: {inputs: [{userId: "x", name: "X"}], clientMutationId: "42"})',
        'createUsers(input: {inputs: [{userId: "x", name: "X"}], atomic: false, clientMutationId: "42"})',
        'write(input: {actions: [{createUser: {userId: "x", name: "X"}}], clientMutationId: "42"})',
        'createUser(input: {userId: "x", name: "X", clientMutationId: "42"})',
    ],
)
async def test_every_payload_returns_the_text_of_its_input(clubs: World, mutation: str) -> None:
    document = f"mutation {{ done: {mutation} {{ clientMutationId }} }}"
    assert await clubs.ask(document) == {"done": {"clientMutationId": "42"}}


# --- Defaults -----------------------------------------------------------------------------------------


def test_defaults_are_in_the_schema() -> None:
    """A field that may not be null takes no null, in an object as well as outside."""
    fee = 'fee: FeeInput! = { amount: "9.5", months: 12, ranks: [LOW] }'
    own = ["stars: Int! = 3", "rank: Rank! = HIGH", 'note: String = "new"', "tags: [String!]! = []", fee]
    assert names("CreateClubInput")[2:-2] == own
    assert names("FeeInput") == ['amount: Decimal! = "9.5"', "months: Int = 12", "ranks: [Rank!]! = [LOW]"]
    assert "stars: Int" in names("UpdateClubInput")


async def test_a_default_is_no_value_of_the_client(clubs: World) -> None:
    """The rules of the model let nobody write these fields."""
    selected = "{ club { stars rank note tags fee { amount months ranks } } }"
    create = 'createClub(input: {clubId: "%s", name: "Bridge"%s}) ' + selected
    fee = {"amount": "9.5", "months": 12, "ranks": ["LOW"]}
    club = {"stars": 3, "rank": "HIGH", "note": "new", "tags": [], "fee": fee}
    assert await clubs.ask(f"mutation {{ {create % (3, '')} }}") == {"createClub": {"club": club}}
    document = f"mutation ($input: CreateClubInput!) {{ createClub(input: $input) {selected} }}"
    given = {"clubId": "4", "name": "Bridge"}
    assert await clubs.ask(document, input=given) == {"createClub": {"club": club}}
    for more in ("stars: 4", "rank: LOW", "fee: {months: 1}"):
        assert await clubs.codes(f"mutation {{ {create % (5, f', {more}')} }}") == ["FORBIDDEN"]


@pytest.mark.parametrize("given", ["stars: null", "fee: {amount: null}", "fee: null"])
async def test_null_is_no_default(clubs: World, given: str) -> None:
    create = f'createClub(input: {{clubId: "3", name: "Bridge", {given}}}) {{ clientMutationId }}'
    assert await clubs.codes(f"mutation {{ {create} }}") == ["GRAPHQL_VALIDATION_FAILED"]
