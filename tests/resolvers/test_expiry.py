"""Items that have expired are as if they were not there, however late DynamoDB deletes them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, One, Table, edge, node, one, record, ttl, version
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Count, Query
from keygraph.model import expiry
from keygraph_resolvers import OperationRequest
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore, on_exact_engines
from tests.keygraph.checked import mistakes
from tests.resolvers.worlds import World, filled, world

by_user = Index("by-user", "gp", "gs")
by_expiry = Index("by-expiry", "kind", ("expires", "N"))

PAST, FUTURE = Decimal(1_000_000_000), Decimal(4_000_000_000)


@node("USER#{user_id}", gather=True)
class User:
    user_id: ID
    name: str

    sessions: Many[Session]
    notes: Many[Note]
    latest: One[Session] = one()
    seen: Many[Sight]


@node("SESSION#{session_id}", by_user("{user}", "SESSION#{number:03d}"))
class Session:
    session_id: ID
    user: User
    number: int
    expires_at: datetime | None = ttl("expires")


@record("{user}", "NOTE#{number:03d}", by_expiry(lists="notes_by_expiry"))
class Note:
    user: User
    number: int
    kind: str
    expires: datetime = ttl()


@edge("{user}", "SEES#{session.session_id}")
class Sight:
    user: User
    session: Session
    until: datetime | None = ttl("expires")


@node("VOUCHER#{code}#{shard}", "V", by_user("MAIL#{mail}", "{code}", finds="voucher_by_mail"), shards=2)
class Voucher:
    code: ID
    mail: str
    until: datetime | None = ttl("expires")


@node("LOG#{log_id}", by_user("LOGS", "{log_id}"))
class Log:
    log_id: ID
    expires: int
    """When somebody else deletes it: nothing that this model says."""


graph = Graph(
    Table("Expiring", partition_key="pk", sort_key="sk", indexes=[by_user, by_expiry]),
    *(User, Session, Note, Sight, Voucher, Log),
    type_attribute="type",
    writes=True,
).check()


def session(number: int, expires: Decimal | None) -> Item:
    key = f"SESSION#s{number}"
    return {
        "pk": key, "sk": key, "gp": "USER#u", "gs": f"SESSION#{number:03d}", "type": "Session",
        "session_id": f"s{number}", "userId": "u", "number": Decimal(number), **expiring(expires),
    }  # fmt: skip


def expiring(expires: Decimal | None) -> Item:
    return {} if expires is None else {"expires": expires}


def note(number: int, expires: Decimal) -> Item:
    key = {"pk": "USER#u", "sk": f"NOTE#{number:03d}", "kind": "plain", "expires": expires}
    return {**key, "type": "Note", "number": Decimal(number)}


def sight(number: int, expires: Decimal | None) -> Item:
    return {"pk": "USER#u", "sk": f"SEES#s{number}", "type": "Sight", **expiring(expires)}


def voucher(code: str, shard: int, expires: Decimal | None) -> Item:
    key = {"pk": f"VOUCHER#{code}#{shard}", "sk": "V", "gp": "MAIL#a@b", "gs": code}
    return {**key, "type": "Voucher", "code": code, "mail": "a@b", **expiring(expires)}


USER = {"pk": "USER#u", "sk": "USER#u", "type": "User", "user_id": "u", "name": "Ann"}

asked = filled(
    graph,
    [
        USER,
        *(session(number, PAST if number % 3 else FUTURE) for number in range(12)),
        session(12, None),
        *(note(number, PAST + number if number % 2 else FUTURE + number) for number in range(6)),
        *(sight(number, PAST if number == 0 else FUTURE) for number in range(4)),
        voucher("A", 0, PAST),
        voucher("A", 1, FUTURE),
        voucher("B", 1, PAST),
        {"pk": "LOG#1", "sk": "LOG#1", "gp": "LOGS", "gs": "1", "type": "Log", "expires": PAST},
    ],
)


def numbers(found: Any) -> list[int]:
    return [each["number"] for each in found]


async def test_a_list_is_read_page_by_page(asked: World) -> None:
    document = """query ($after: String, $before: String, $first: Int, $last: Int) { user(userId: "u") {
        sessions(first: $first, last: $last, after: $after, before: $before) {
          totalCount nodes { number } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }"""
    found: list[int] = []
    after, more = None, True
    while more:
        page = (await asked.ask(document, first=2, after=after))["user"]["sessions"]
        assert page["totalCount"] == 5
        assert page["pageInfo"]["hasPreviousPage"] is bool(found)
        found += numbers(page["nodes"])
        after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
    assert found == [0, 3, 6, 9, 12]
    last = (await asked.ask(document, last=2))["user"]["sessions"]
    assert numbers(last["nodes"]) == [9, 12]
    before = (await asked.ask(document, last=2, before=last["pageInfo"]["startCursor"]))["user"]["sessions"]
    assert numbers(before["nodes"]) == [3, 6]


async def test_the_store_leaves_out_what_has_expired(asked: World) -> None:
    await asked.ask('{ user(userId: "u") { sessions { totalCount nodes { number } } } }')
    reads = [request for request in asked.tracer.requests if isinstance(request, Query | Count)]
    assert {type(request) for request in reads} == {Query, Count}
    assert {request.filter is not None for request in reads} == {True}


async def test_a_key_that_is_the_expiry(asked: World) -> None:
    notes = """{ notesByExpiry(kind: "plain", first: %s) {
        totalCount nodes { number expires } pageInfo { hasNextPage } } }"""
    found = (await asked.ask(notes % 2))["notesByExpiry"]
    assert numbers(found["nodes"]) == [0, 2]
    assert (found["totalCount"], found["pageInfo"]["hasNextPage"]) == (3, True)
    assert found["nodes"][0]["expires"] == "2096-10-02T07:06:40Z"
    assert (await asked.ask(notes % 3))["notesByExpiry"]["pageInfo"]["hasNextPage"] is False


async def test_nodes_by_their_keys(asked: World) -> None:
    types = graph.types
    over, live = global_id(types["Session"], ("s1",)), global_id(types["Session"], ("s3",))
    document = """query ($over: ID!, $live: ID!) {
        over: session(sessionId: "s1") { number } live: session(sessionId: "s3") { number }
        node(id: $over) { id } nodes(ids: [$over, $live]) { ... on Session { number } }
        a: voucher(code: "A") { until } b: voucher(code: "B") { until }
        found: voucherByMail(mail: "a@b") { code until }
        log(logId: "1") { expires } logs { totalCount } }"""
    found = await asked.ask(document, over=over, live=live)
    assert found == {
        "over": None,
        "live": {"number": 3},
        "node": None,
        "nodes": [None, {"number": 3}],
        # One of two shards has what is over: the other one is the node.
        "a": {"until": "2096-10-02T07:06:40Z"},
        "b": None,
        "found": {"code": "A", "until": "2096-10-02T07:06:40Z"},
        "log": {"expires": 1_000_000_000},
        "logs": {"totalCount": 1},
    }


@node("TICKET#{ticket_id}", by_user("TICKETS", "{ticket_id}"))
class Ticket:
    ticket_id: ID
    expires: datetime | None = ttl()


@on_exact_engines  # moto cannot compare a text with a number
async def test_only_numbers_expire(make_store: MakeStore) -> None:
    tickets = Graph(Table("Tickets", partition_key="pk", sort_key="sk", indexes=[by_user]), Ticket).check()
    made = world(tickets, await make_store(tickets.table))
    values = {
        "null": {"expires": None},
        "none": {},
        "past": {"expires": PAST},
        "text": {"expires": "1000000000"},
    }
    await made.put(
        *(
            {"pk": f"TICKET#{name}", "sk": f"TICKET#{name}", "gp": "TICKETS", "gs": name, **value}
            for name, value in values.items()
        )
    )
    found = await made.ask(
        '{ tickets { totalCount nodes { ticketId } } ticket(ticketId: "null") { expires } }'
    )
    assert found["tickets"] == {
        "totalCount": 3,
        "nodes": [{"ticketId": "none"}, {"ticketId": "null"}, {"ticketId": "text"}],
    }
    assert found["ticket"] == {"expires": None}


async def test_the_time_is_that_of_each_run(asked: World, monkeypatch: pytest.MonkeyPatch) -> None:
    document = '{ user(userId: "u") { sessions { totalCount nodes { number } } } session(sessionId: "s0") { number } }'
    before = await asked.ask(document)
    monkeypatch.setattr(expiry.time, "time", lambda: float(FUTURE))
    after = await asked.ask(document)
    assert [numbers(each["user"]["sessions"]["nodes"]) for each in (before, after)] == [
        [0, 3, 6, 9, 12],
        [12],
    ]
    assert [each["user"]["sessions"]["totalCount"] for each in (before, after)] == [5, 1]
    assert (before["session"], after["session"]) == ({"number": 0}, None)


async def test_the_bound_covers_what_has_expired(asked: World) -> None:
    await asked.put(*(session(number, PAST) for number in range(1, 300)))
    served = asked.served(read_budget=500)
    document = '{ user(userId: "u") { sessions(first: 2) { nodes { number } } } }'
    cost = (await served.service.execute(OperationRequest(document, with_cost=True)))["extensions"]["cost"]
    assert cost["open"] == ["user.sessions"]
    assert 300 < cost["actual"]["items"] <= cost["bound"]["items"]
    assert cost["actual"]["requests"] <= cost["bound"]["requests"]
    assert cost["actual"]["roundTrips"] <= cost["bound"]["roundTrips"]


async def test_types_that_do_not_expire_are_read_as_before(asked: World) -> None:
    cost = (await asked.service.execute(OperationRequest("{ logs { nodes { logId } } }", with_cost=True)))[
        "extensions"
    ]["cost"]
    assert cost["open"] == []
    [query] = asked.tracer.requests
    assert isinstance(query, Query)
    assert query.filter is None
    asked.forget()
    await asked.ask('{ log(logId: "1") { logId } }')
    [get] = asked.tracer.requests
    assert isinstance(get, BatchGet)
    assert get.projection is not None
    assert ("expires",) not in get.projection


# --- Writes -----------------------------------------------------------------------------------------------


@node("LOBBY#{name}", by_user("LOBBIES#{state}", "{expires_at}"))
class Lobby:
    name: ID
    state: str
    expires_at: datetime | None = ttl("expires")
    times: int = version()

    guests: Many[Guest]


@edge("{one}", "GUEST#{other.name}", mirror=True)
class Guest:
    one: Lobby
    other: Lobby
    note: str | None = None
    expires: datetime | None = ttl()


@node("ROOM#{name}#{shard}", "R", shards=3)
class Room:
    name: ID
    lobby: Lobby | None
    expires: datetime | None = ttl()


@record("{lobby}", "VISIT#{number}")
class Visit:
    lobby: Lobby
    number: int
    times: int = version()
    expires: datetime | None = ttl()


hotel = Graph(
    Table("Hotel", partition_key="pk", sort_key="sk", indexes=[by_user]),
    *(Lobby, Guest, Room, Visit),
    store_key_fields=False,
    writes=True,
).check()
BEFORE, LATER = "2001-09-09T01:46:40Z", "2096-10-02T07:06:40Z"


@pytest.fixture
async def written(make_store: MakeStore) -> World:
    """A hotel with a lobby that is over, and one that is not."""
    made = world(hotel, await make_store(hotel.table))
    for name, expires in (("old", f'"{BEFORE}"'), ("new", "null")):
        document = f'createLobby(input: {{name: "{name}", state: "open", expiresAt: {expires}}})'
        await made.ask(f"mutation {{ {document} {{ lobby {{ times }} }} }}")
    return made


async def test_an_expiry_is_stored_in_whole_seconds(written: World) -> None:
    made = await written.ask(
        """mutation { createLobby(input: {name: "a", state: "in", expiresAt: "2096-10-02T09:06:39.250+02:00"}) {
          lobby { expiresAt } } }"""
    )
    assert made["createLobby"]["lobby"]["expiresAt"] == LATER
    get = BatchGet((("LOBBY#a", "LOBBY#a"),), consistent=True)
    [item] = (await written.tracer.store.send(get)).items
    assert item is not None
    assert (item["expires"], item["gs"]) == (FUTURE, "4000000000")
    await written.ask('mutation { updateLobby(input: {name: "a", expiresAt: null}) { lobby { times } } }')
    [item] = (await written.tracer.store.send(get)).items
    assert item is not None
    assert not {"expires", "gs"} & item.keys()


async def test_what_has_expired_is_created_again(written: World) -> None:
    create = 'mutation { createLobby(input: {name: "old", state: "%s"}) { lobby { state times } } }'
    assert await written.codes(create.replace("old", "new") % "x") == ["ALREADY_EXISTS"]
    assert (await written.ask(create % "again"))["createLobby"]["lobby"] == {"state": "again", "times": 1}
    assert await written.codes(create % "twice") == ["ALREADY_EXISTS"]
    # Whatever is written in the place of what has expired begins anew.
    visit = """mutation { putVisit(input: {lobbyName: "new", number: 1, expires: %s}) { visit { times } } }"""
    times = [
        (await written.ask(visit % expires))["putVisit"]["visit"]["times"]
        for expires in ("null", f'"{BEFORE}"', "null", "null")
    ]
    assert times == [1, 2, 1, 2]
    upsert = 'mutation { upsertLobby(input: {name: "u", state: "s", expiresAt: %s}) { lobby { times } } }'
    await written.ask(upsert % f'"{BEFORE}"')
    assert (await written.ask(upsert % "null"))["upsertLobby"]["lobby"] == {"times": 1}
    assert (await written.ask(upsert % "null"))["upsertLobby"]["lobby"] == {"times": 2}


async def test_what_has_expired_is_not_there_to_be_changed(written: World) -> None:
    for document in (
        'updateLobby(input: {name: "old", state: "x"}) { lobby { name } }',
        f'updateLobby(input: {{name: "old", expiresAt: "{LATER}"}}) {{ lobby {{ name }} }}',
        'updateLobby(input: {name: "old", expectedVersion: 1, state: "x"}) { lobby { name } }',
        'deleteLobby(input: {name: "old"}) { deletedId }',
        'putVisit(input: {lobbyName: "old", number: 1}) { visit { times } }',
        'createRoom(input: {name: "r", lobbyName: "old"}) { room { name } }',
        'putGuest(input: {oneName: "new", otherName: "old"}) { guest { note } }',
    ):
        assert await written.codes(f"mutation {{ {document} }}") == ["NOT_FOUND"], document


async def test_edges_and_shards_that_have_expired(written: World) -> None:
    await written.ask('mutation { createLobby(input: {name: "b", state: "open"}) { lobby { name } } }')
    guest = """mutation { %sGuest(input: {oneName: "new", otherName: "b"%s}) { guest { note } } }"""
    guests = '{ lobby(name: "%s") { guests { totalCount edges { note } } } }'
    await written.ask(guest % ("put", f', expires: "{BEFORE}"'))
    assert (await written.ask(guests % "b"))["lobby"]["guests"] == {"totalCount": 0, "edges": []}
    delete = 'mutation { deleteGuest(input: {oneName: "new", otherName: "b"}) { clientMutationId } }'
    for document in (guest % ("update", ', note: "x"'), delete):
        assert await written.codes(document) == ["NOT_FOUND"]
    await written.ask(guest % ("put", ', note: "y"'))
    for name in ("new", "b"):
        assert (await written.ask(guests % name))["lobby"]["guests"] == {
            "totalCount": 1,
            "edges": [{"note": "y"}],
        }
    # In another shard than that of its key, where somebody has put it.
    over = {"pk": "ROOM#r#2", "sk": "R", "expires": PAST}
    await written.put(over, {**over, "pk": "ROOM#r#1"}, {**over, "pk": "ROOM#r#0"})
    assert await written.codes('mutation { deleteRoom(input: {name: "r"}) { deletedId } }') == ["NOT_FOUND"]
    create = 'mutation { createRoom(input: {name: "r", lobbyName: "b"}) { room { lobby { name } } } }'
    assert (await written.ask(create))["createRoom"]["room"] == {"lobby": {"name": "b"}}
    assert await written.codes(create) == ["ALREADY_EXISTS"]


async def test_what_has_expired_names_no_node(written: World) -> None:
    await written.ask(
        f"""mutation {{ createLobby(input: {{name: "c", state: "s", expiresAt: "{BEFORE}"}}) {{ lobby {{ name }} }}
          putVisit(input: {{lobbyName: "new", number: 1, expires: "{BEFORE}"}}) {{ visit {{ times }} }} }}"""
    )
    move = 'mutation { moveLobby(input: {name: "%s", to: {name: "%s"}}) { lobby { name } } }'
    assert await written.codes(move % ("c", "d")) == ["NOT_FOUND"]
    # In the place of what has expired.
    assert (await written.ask(move % ("new", "c")))["moveLobby"]["lobby"] == {"name": "c"}
    delete = 'mutation { deleteLobby(input: {name: "c"%s}) { deletedId } }'
    visit = 'mutation { putVisit(input: {lobbyName: "c", number: 2%s}) { visit { times } } }'
    await written.ask(visit % "")
    assert await written.codes(delete % "") == ["CONFLICT"]
    await written.ask(visit % f', expires: "{BEFORE}"')
    assert (await written.ask(delete % ", onEdges: DETACH"))["deleteLobby"]["deletedId"]


# --- The model --------------------------------------------------------------------------------------------


def test_mistakes() -> None:
    bare = Index("bare", "bp", "bs", projection="KEYS_ONLY")

    @node("TOKEN#{token_id}", bare("{owner}", "{token_id}"))
    class Token:
        token_id: ID
        owner: Owner
        until: datetime = ttl("expires")

    @node("OWNER#{owner_id}")
    class Owner:
        owner_id: ID
        until: datetime | None = ttl()
        tokens: Many[Token]

    @node("TWICE#{twice_id}")
    class Twice:
        twice_id: ID
        until: datetime = ttl("expires")
        again: datetime | None = ttl("later")

    @node("DAYS#{days_id}")
    class Days:
        days_id: ID
        days: int = ttl("expires")

    table = Table("Tokens", partition_key="PK", sort_key="SK", indexes=[bare])
    assert mistakes(Token, Owner, table=table) == [
        "Owner.until: it is stored in until, and the table's TTL attribute is expires: there is one. "
        'Write ttl("expires").',
        "Owner.tokens: bare does not project expires, by which expired items of Token are left out. Project expires too, "
        'or declare the field as stored(format=Epoch("s")), which hides nothing.',
    ]
    assert mistakes(Twice, Days) == [
        "Twice.again: until says already when the record expires. Keep one of them, and declare the other as "
        'stored(format=Epoch("s")).',
        "Days.days: ttl() is for a datetime, and it is of type int. Annotate it as a datetime.",
    ]
