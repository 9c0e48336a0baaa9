"""What the inputs and payloads of all mutations have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from keygraph import ID, Graph, Many, One, Table, edge, node, one, read, record, version, write
from keygraph_resolvers import OperationRequest, build_schema
from keygraph_resolvers.schema.strawberry_internals import core_schema
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
    points: int = 10


graph = Graph(
    Table("Clubs", partition_key="pk", sort_key="sk"),
    User,
    Card,
    Visit,
    Club,
    Member,
    type_attribute="type",
    writes=True,
).check()


@node("PAGE#{page_id}")
class Page:
    page_id: ID
    text: str
    revision: int = version()


versions = Graph(
    Table("Pages", partition_key="pk", sort_key="sk"), Page, type_attribute="type", writes=True
).check()


def names(type_: str) -> list[str]:
    return [line.strip() for line in part(type_, schema_of(graph).as_str()).splitlines()[1:-1]]


async def problems(made: World, mutation: str) -> list[tuple[str, str, list[str | int]]]:
    answer = await made.service.execute(f"mutation {{ {mutation} }}")
    errors = answer.get("errors", [])
    return [(each["extensions"]["code"], each["message"], each["extensions"]["path"]) for each in errors]


@pytest.fixture
async def clubs(make_store: MakeStore) -> World:
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
    assert names("UserClubsInput") == ["clubId: ID!", "since: Int! = 1", "points: Int! = 10"]


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


# --- Stored records -----------------------------------------------------------------------------------


async def test_a_stored_record_is_named_by_its_id_or_its_key(clubs: World) -> None:
    answer = await clubs.ask(
        """mutation {
          putMember(input: {userId: "a", clubId: "1", since: 1}) { member { id } }
          createUser(input: {userId: "c", name: "Cy"}) { user { id } }
        }"""
    )
    member, user = answer["putMember"]["member"]["id"], answer["createUser"]["user"]["id"]
    answer = await clubs.ask(
        f"""mutation {{
          updateMember(input: {{id: "{member}", since: 2}}) {{ member {{ id since }} }}
          both: updateMember(input: {{id: "{member}", userId: "a", clubId: "1", since: 3}}) {{ member {{ since }} }}
          moveMember(input: {{id: "{member}", to: {{clubId: "2"}}}}) {{ previousId member {{ id since club {{ name }} }} }}
          deleteUser(input: {{id: "{user}"}}) {{ deletedId }}
        }}"""
    )
    moved = answer["moveMember"]["member"].pop("id")
    assert answer == {
        "updateMember": {"member": {"id": member, "since": 2}},
        "both": {"member": {"since": 3}},
        "moveMember": {"previousId": member, "member": {"since": 3, "club": {"name": "Go"}}},
        "deleteUser": {"deletedId": user},
    }
    assert moved != member
    given = f'input: {{inputs: [{{id: "{moved}"}}, {{userId: "a", clubId: "1"}}], atomic: false}}'
    answer = await clubs.service.execute(
        f"mutation {{ deleteMembers({given}) {{ results {{ deletedId }} }} }}"
    )
    assert answer["data"] == {"deleteMembers": {"results": [{"deletedId": moved}, None]}}
    assert answer["errors"][0]["extensions"] == {"code": "NOT_FOUND", "path": ["input", "inputs", 1]}


async def test_an_id_that_names_no_such_record(clubs: World) -> None:
    user = (await clubs.ask('{ user(userId: "a") { id } }'))["user"]["id"]
    answer = await clubs.ask('mutation { putMember(input: {userId: "a", clubId: "1"}) { member { id } } }')
    member = answer["putMember"]["member"]["id"]
    for given, message, place in (
        ("", "userId of Member is missing: give the whole key, or id.", "userId"),
        ('userId: "a"', "clubId of Member is missing: give the whole key, or id.", "clubId"),
        (f'id: "{user}"', f"id: '{user}' is the id of a User. Pass the value of the `id` field of a Member, or its key.", "id"),
        ('id: "7"', "id: '7' is not a global id. Pass the value of the `id` field of a Member, or its key.", "id"),
        (f'id: "{member}", userId: "b", clubId: "1"', "id names another Member than the key fields do.", "id"),
    ):  # fmt: skip
        found = await problems(clubs, f"updateMember(input: {{{given}, since: 1}}) {{ clientMutationId }}")
        assert found[0] == ("BAD_USER_INPUT", message, ["input", place])


# --- Creating, or changing what is there ----------------------------------------------------------------


async def test_an_edge_is_created_upserted_and_put(clubs: World) -> None:
    key = 'userId: "a", clubId: "1"'
    create = f"createMember(input: {{{key}, since: 1}}) {{ member {{ since }} }}"
    assert await clubs.ask(f"mutation {{ {create} }}") == {"createMember": {"member": {"since": 1}}}
    assert await problems(clubs, create) == [
        ("ALREADY_EXISTS", "There is already a Member with this key.", ["input"])
    ]
    answer = await clubs.ask(
        f"""mutation {{
          old: upsertMember(input: {{{key}, add: {{since: 2}}}}) {{ created member {{ since points }} }}
          new: upsertMember(input: {{userId: "b", clubId: "1", since: 5, add: {{points: 2}}}}) {{
            created member {{ since points }}
          }}
          put: putMember(input: {{{key}, since: 7}}) {{ created member {{ since points }} }}
          other: putMember(input: {{userId: "b", clubId: "2"}}) {{ created member {{ since points }} }}
        }}"""
    )
    assert answer == {
        "old": {"created": False, "member": {"since": 3, "points": 10}},
        "new": {"created": True, "member": {"since": 5, "points": 12}},
        "put": {"created": False, "member": {"since": 7, "points": 10}},
        "other": {"created": True, "member": {"since": 1, "points": 10}},
    }


async def test_a_put_reads_only_if_its_payload_says_what_was_there(clubs: World) -> None:
    put = 'mutation { putMember(input: {userId: "a", clubId: "1", idempotencyKey: "k"}) { %s } }'
    for selected, operations in (
        ("clientMutationId", {"TransactWriteItems": 1}),
        ("created", {"BatchGetItem": 1, "TransactWriteItems": 1}),
    ):
        clubs.forget()
        answer = await clubs.service.execute(
            OperationRequest(put.replace('"k"', f'"{selected}"') % selected, with_cost=True)
        )
        cost = answer["extensions"]["cost"]
        assert clubs.operations == operations
        assert cost["actual"]["requests"] <= cost["bound"]["requests"]
    for _ in range(2):
        new = put.replace('"k"', '"n"').replace('"1"', '"2"') % "created"
        assert await clubs.ask(new) == {"putMember": {"created": True}}


async def test_an_upsert_of_a_version(make_store: MakeStore) -> None:
    made = world(versions, await make_store(versions.table))
    upsert = 'upsertPage(input: {pageId: "1", text: "a", %s}) { created page { revision } }'
    problem = ("NOT_FOUND", "There is no Page with this key.", ["input"])
    assert await problems(made, upsert % "expectedVersion: 1") == [problem]
    document = f"mutation {{ {upsert % 'clientMutationId: null'} }}"
    assert await made.ask(document) == {"upsertPage": {"created": True, "page": {"revision": 1}}}
    document = f"mutation {{ {upsert % 'expectedVersion: 1'} }}"
    assert await made.ask(document) == {"upsertPage": {"created": False, "page": {"revision": 2}}}
    problem = ("CONFLICT", "This Page has changed: its version is 2.", ["input"])
    assert await problems(made, upsert % "expectedVersion: 1") == [problem]


# --- Which mutations there are --------------------------------------------------------------------------


@node("SHELF#{shelf_id}")
class Shelf:
    shelf_id: ID


@edge("{shelf}", "STAMP#{other.shelf_id}")
class Stamp:
    shelf: Shelf
    other: Shelf
    place: int


USUAL_TABLE = Table("Shelves", partition_key="PK", sort_key="SK")


def names_of_mutations(**options: Any) -> list[str]:
    mutation = core_schema(build_schema(Graph(USUAL_TABLE, Shelf, Stamp, **options))).mutation_type
    return [] if mutation is None else [*mutation.fields]


def test_a_type_has_the_usual_mutations_and_others_where_the_model_asks_for_them() -> None:
    nodes, edges = ["createShelf", "updateShelf", "deleteShelf"], ["putStamp", "deleteStamp"]
    assert names_of_mutations() == [*nodes, *edges, "write"]
    assert names_of_mutations(writes=False) == []
    assert names_of_mutations(writes=["put", "delete", "bulk"]) == [
        *("deleteShelf", "putStamp", "deleteStamp", "deleteShelfs", "putStamps", "deleteStamps", "write"),
    ]
    every = [f"{action}Stamp" for action in ("create", "put", "update", "upsert", "move", "delete")]
    assert [name for name in names_of_mutations(writes=True) if "Stamp" in name] == [
        *every,
        *(f"{name}s" for name in every),
    ]


async def test_a_mutation_that_is_left_out_says_how_the_model_offers_it(make_store: MakeStore) -> None:
    served = world(Graph(USUAL_TABLE, Shelf, Stamp), await make_store(USUAL_TABLE))
    document = "mutation { moveShelf { id } putStamps { id } putStamp2 { id } }"
    told = [message for _, message in await served.errors(document)]
    assert told[0] == (
        "The model leaves out the mutation 'moveShelf'. "
        "Use 'createShelf' or 'updateShelf', or declare Shelf with writes=[…, \"move\"]."
    )
    assert told[1] == (
        "The model leaves out the mutation 'putStamps'. "
        'Use \'putStamp\', or declare Stamp with writes=[…, "put", "bulk"].'
    )
    assert told[2].startswith("Cannot query field 'putStamp2' on type 'Mutation'.")


def test_types_are_in_the_order_of_their_names() -> None:
    names = [*core_schema(build_schema(Graph(USUAL_TABLE, Shelf, Stamp))).type_map]
    assert names == sorted(names)


def test_a_list_whose_items_have_nothing_more_has_no_aggregate() -> None:
    @node("ROOM#{room_id}")
    class Room:
        room_id: ID
        keys: Many[Holder]

    @edge("{room}", "KEY#{other.room_id}")
    class Holder:
        room: Room
        other: Room

    types = core_schema(build_schema(Graph(USUAL_TABLE, Room, Holder))).type_map
    assert "aggregate" not in types["RoomKeysConnection"].fields  # type: ignore[attr-defined]  # an object type
    assert not [name for name in types if "Aggregate" in name]
