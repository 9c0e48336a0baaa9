"""What introspection shows each viewer: nothing that no rule can give them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from graphql import build_client_schema, get_introspection_query, validate_schema

from keygraph import (
    ID,
    Graph,
    Many,
    Ranked,
    Reach,
    Table,
    counts,
    edge,
    many,
    node,
    ranked,
    reach,
    read,
    record,
    stored,
    write,
)
from keygraph_resolvers import NO_LIMITS, OperationRequest, Service, build_schema
from keygraph_resolvers.schema.strawberry_internals import core_schema
from tests.conftest import MakeStore
from tests.resolvers import test_access_writes
from tests.resolvers.test_access import AUDIT, HELP, A, B, graph
from tests.resolvers.worlds import SECRET


def service_of(served: Any, store: Any) -> Service:
    return Service(build_schema(served), store, secret=SECRET, shows_all=False, limits=NO_LIMITS)


@pytest.fixture
async def service(make_store: MakeStore) -> Service:
    return service_of(graph, await make_store(graph.table))


async def shown(service: Service, claims: Any) -> Any:
    """The schema that a viewer is shown, by types and the names of their fields."""
    found = await service.execute(OperationRequest(get_introspection_query(), viewer=claims))
    assert "errors" not in found, found
    made = build_client_schema(found["data"])
    assert validate_schema(made) == []
    return {
        name: {*type_.fields}
        for name, type_ in made.type_map.items()
        if hasattr(type_, "fields") and not name.startswith("__")
    }


async def test_fields_lists_and_filters_that_no_rule_gives(service: Service) -> None:
    found = await shown(service, AUDIT)
    assert "total" not in found["Order"]
    assert {"orderId", "state", "customer"} <= found["Order"]
    assert "total" not in found["OrderWhere"]
    assert "state" in found["OrderWhere"]
    assert "email" not in found["User"]
    assert "greeting" not in found["User"]
    assert "secrets" not in found["User"]
    assert "orders" in found["User"]
    helped = await shown(service, HELP)
    assert {"email", "greeting", "orders"} <= helped["User"]
    assert "total" in helped["OrderWhere"]
    assert "secrets" not in helped["User"]
    assert not {name for name in helped if name.startswith("UserSecrets")}
    assert "secrets" in (await shown(service, A))["User"]


async def test_nobody_in_particular(service: Service) -> None:
    found = await shown(service, None)
    assert "Order" not in found
    assert "order" not in found["Query"]
    assert "byState" not in found["Query"]
    assert "User" in found
    assert "customer" not in found


async def test_mutations_that_no_rule_allows(make_store: MakeStore) -> None:
    served = test_access_writes.graph
    service = service_of(served, await make_store(served.table))
    whole = {
        name: {*type_.fields}
        for name, type_ in core_schema(service.schema).type_map.items()
        if hasattr(type_, "fields")
    }
    nobody = await shown(service, None)
    # Everybody may write notes and parcels.
    open_to_all = ("Note", "Notes", "Parcel", "Parcels")
    told = {
        of: {name for name in nobody[of] if not name.endswith(open_to_all)}
        for of in ("Mutation", "WriteAction")
    }
    assert told == {
        "Mutation": {
            "createLine",
            "createLines",
            "putLine",
            "putLines",
            "upsertLine",
            "upsertLines",
            "write",
        },
        "WriteAction": {"createLine", "putLine", "upsertLine"},
    }
    own = await shown(service, {"sub": "a"})
    assert {"createOrder", "updateOrder", "deleteOrder", "putLikes"} <= own["Mutation"]
    assert not {"moveOrder", "deleteLine", "updateUser", "createUser"} & own["Mutation"]
    assert own["UpdateOrderInput"] == {
        "id",
        "orderId",
        "note",
        "expectedVersion",
        "clientMutationId",
        "idempotencyKey",
    }
    assert "discount" not in own["CreateOrderInput"]
    helped = await shown(service, {"roles": ["support"]})
    # Who sees no parcel can change none.
    assert {"updateParcel", "moveParcel", "deleteParcel"}.isdisjoint(helped["Mutation"])
    assert helped["Mutation"] >= {
        name for name in whole["Mutation"] if "Likes" not in name and "Parcel" not in name
    }


async def test_what_cannot_be_filled_in(make_store: MakeStore) -> None:
    @node("CLUB#{club_id}", access=[read(), write()])
    class Club:
        club_id: ID
        rank: int = stored(access=[read(), write(role="boss")])
        games: Many[Game]

    @record("{club}", "GAME#{number}", access=[read(), write()])
    class Game:
        club: Club
        number: int
        score: int = stored(access=[read(), write(role="boss")])
        note: str | None

    table = Table("Clubs", partition_key="PK", sort_key="SK")
    service = service_of(Graph(table, Club, Game, writes=True).check(), await make_store(table))
    boss, others = await shown(service, {"roles": ["boss"]}), await shown(service, {})
    assert {"createClub", "updateClub", "putGame"} <= boss["Mutation"]
    assert "games" in boss["CreateClubInput"]
    assert {"updateClub", "deleteClub"} <= others["Mutation"]
    assert not {"createClub", "createClubs", "upsertClub", "putGame"} & others["Mutation"]
    assert "CreateClubInput" not in others


async def test_filters_of_lists_of_several_types(make_store: MakeStore) -> None:
    @node("CLUB#{club_id}", access=[read()])
    class Club:
        club_id: ID
        events: Many[Game | Party]

    @record("{club}", "GAME#{number}", access=[read()])
    class Game:
        club: Club
        number: int
        score: int = stored(access=[read(role="boss")])

    @record("{club}", "PARTY#{number}", access=[read()])
    class Party:
        club: Club
        number: int

    table = Table("Clubs", partition_key="PK", sort_key="SK")
    service = service_of(Graph(table, Club, Game, Party, writes=True).check(), await make_store(table))
    boss, others = await shown(service, {"roles": ["boss"]}), await shown(service, {})
    assert boss["GameWhere"] - others["GameWhere"] == {"score"}


async def test_an_answer_that_was_kept_is_not_another_viewers(service: Service) -> None:
    document = '{ __type(name: "User") { fields { name } } }'
    answers = [
        (await service.execute(OperationRequest(document, viewer=claims)))["data"]
        for claims in (HELP, AUDIT, HELP, None)
    ]
    assert answers[0] == answers[2]
    assert [{"name": "email"} in each["__type"]["fields"] for each in answers] == [True, False, True, False]


async def test_viewers_who_are_shown_the_same_share_a_schema(service: Service) -> None:
    for number in range(40):
        await shown(service, {"sub": f"u{number}", "name": "n"})
    visible = service._core.visible
    assert visible is not None
    assert len(visible._kept) == 1
    for claims in (A, B, HELP, AUDIT, None):
        await service.execute(OperationRequest("{ __schema { queryType { name } } }", viewer=claims))
    assert len(visible._kept) <= 4


async def test_the_rest_of_the_operation_is_answered(service: Service) -> None:
    found = await service.execute(
        OperationRequest('{ user(userId: "a") { name } __type(name: "Secret") { name } }', viewer=B)
    )
    assert found["data"] == {"user": None, "__type": {"name": "Secret"}}
    found = await service.execute('{ __type(name: "Order") { name } }')
    assert found["data"] == {"__type": None}


async def test_aggregates_adds_and_rankings_by_what_no_rule_gives(make_store: MakeStore) -> None:
    @node("CAT#{cat_id}", access=[read(), write()])
    class Cat:
        cat_id: ID
        likes: Many[Like]
        best: Ranked[Cat] = ranked("likes", weight="warmth")

    @edge("{cat}", "LIKES#{other.cat_id}", access=[read(), write()])
    class Like:
        cat: Cat
        other: Cat
        warmth: int = stored(default=1, access=[read(role="vet"), write()])
        days: int = 0

    cats = Graph(Table("Cats", partition_key="PK", sort_key="SK"), Cat, Like, writes=True)
    service = service_of(cats, await make_store(cats.table))
    query = get_introspection_query()
    for roles, told in ([], {"DAYS"}), (["vet"], {"DAYS", "WARMTH"}):
        answer = await service.execute(OperationRequest(query, viewer={"roles": roles}))
        types = {each["name"]: each for each in answer["data"]["__schema"]["types"]}
        assert {each["name"] for each in types["LikeAggregateNumber"]["enumValues"]} == told
        assert {each["name"].upper() for each in types["LikeAddInput"]["inputFields"]} == told
        assert ("best" in {each["name"] for each in types["Cat"]["fields"]}) == ("WARMTH" in told)
        assert "warmth" in {each["name"] for each in types["UpdateLikeInput"]["inputFields"]}


async def test_lists_that_no_rule_gives_are_named_nowhere(make_store: MakeStore) -> None:
    @node("CLUB#{club_id}", access=[read()])
    class Club:
        club_id: ID
        events: Many[Game | Party]
        rivals: Many[Rival] = many(at="club")
        friends: Many[Friend] = many(at="club")
        foes: int = counts("rivals", access=[read()])
        circle: Reach[Club] = reach("rivals", "friends", depth=2)

    @record("{club}", "GAME#{number}", access=[read()])
    class Game:
        club: Club
        number: int
        score: int = 0

    @record("{club}", "PARTY#{number}", access=[read(role="boss")])
    class Party:
        club: Club
        number: int
        guests: int = 0

    @edge("{club}", "RIVAL#{other.club_id}", access=[read(role="boss")])
    class Rival:
        club: Club
        other: Club

    @edge("{club}", "FRIEND#{other.club_id}", access=[read()])
    class Friend:
        club: Club
        other: Club

    clubs = Graph(
        Table("Clubs", partition_key="PK", sort_key="SK"), Club, Game, Party, Rival, Friend, paths=True
    )
    service = service_of(clubs, await make_store(clubs.table))
    told = [
        json.dumps(
            await service.execute(OperationRequest(get_introspection_query(), viewer={"roles": roles}))
        )
        for roles in ([], ["boss"])
    ]
    # The name of a union that others may see is made of all its types.
    names = [sorted({*re.findall(r"\w*(?:party|rival)\w*", each, re.IGNORECASE)}) for each in told]
    assert names[0] == ["GameOrParty"]
    assert {"CLUB_RIVALS", "ClubRivalsEdge", "Party", "PartyAggregate", "PartyWhere", "party", "rivals"} <= {
        *names[1]
    }
