"""Items that have expired are as if they were not there, however late DynamoDB deletes them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, One, Table, edge, node, one, record, ttl
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Count, Query
from keygraph.model import expiry
from keygraph_resolvers.schema.global_ids import global_id
from tests.conftest import MakeStore, on_exact_engines
from tests.keygraph.checked import mistakes
from tests.resolvers.worlds import World, world

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


@pytest.fixture
async def asked(make_store: MakeStore) -> World:
    made = world(graph, await make_store(graph.table))
    await made.put(
        USER,
        *(session(number, PAST if number % 3 else FUTURE) for number in range(12)),
        session(12, None),
        *(note(number, PAST + number if number % 2 else FUTURE + number) for number in range(6)),
        *(sight(number, PAST if number == 0 else FUTURE) for number in range(4)),
        voucher("A", 0, PAST),
        voucher("A", 1, FUTURE),
        voucher("B", 1, PAST),
        {"pk": "LOG#1", "sk": "LOG#1", "gp": "LOGS", "gs": "1", "type": "Log", "expires": PAST},
    )
    return made


def numbers(found: Any) -> list[int]:
    return [each["number"] for each in found]


async def test_a_list_is_read_page_by_page(asked: World) -> None:
    """A client would see sessions that are over, or short pages, and a count that is not that of the list."""
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
    """A page would cost the transfer of all that is over, and a count the reading of keys."""
    await asked.ask('{ user(userId: "u") { sessions { totalCount nodes { number } } } }')
    reads = [request for request in asked.tracer.requests if isinstance(request, Query | Count)]
    assert [type(request) for request in reads] == [Query, Count]
    assert {request.filter is not None for request in reads} == {True}


async def test_a_key_that_is_the_expiry(asked: World) -> None:
    """DynamoDB would refuse the filter of a list that is sorted by the expiry."""
    notes = """{ notesByExpiry(kind: "plain", first: %s) {
        totalCount nodes { number expires } pageInfo { hasNextPage } } }"""
    found = (await asked.ask(notes % 2))["notesByExpiry"]
    assert numbers(found["nodes"]) == [0, 2]
    assert (found["totalCount"], found["pageInfo"]["hasNextPage"]) == (3, True)
    assert found["nodes"][0]["expires"] == "2096-10-02T07:06:40Z"
    assert (await asked.ask(notes % 3))["notesByExpiry"]["pageInfo"]["hasNextPage"] is False


async def test_lists_beside_a_node_and_edges(asked: World) -> None:
    """What is read together with its node, or by the keys of its ends, would have what is over."""
    ids = [global_id(graph.types["Session"], (f"s{number}",)) for number in range(4)]
    document = """query ($ids: [ID!]!) { user(userId: "u") { name
        notes { nodes { number } }
        latest { number }
        seen { totalCount edges { node { sessionId number } } }
        some: seen(to: $ids) { totalCount nodes { sessionId } } } }"""
    found = (await asked.ask(document, ids=ids))["user"]
    assert numbers(found["notes"]["nodes"]) == [0, 2, 4]
    assert found["latest"] == {"number": 0}
    # The edges of 1 and 2 stand, but these sessions are over.
    assert [edge["node"] and edge["node"]["number"] for edge in found["seen"]["edges"]] == [None, None, 3]
    assert found["seen"]["totalCount"] == found["some"]["totalCount"] == 3


async def test_nodes_by_their_keys(asked: World) -> None:
    """A client would sign somebody in by a session that is over."""
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
    """What DynamoDB never deletes would be hidden for ever."""
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
    """A session would live as long as the server that has kept the plan of a query."""
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
    """An operation would cost more than it was let in for."""
    await asked.put(*(session(number, PAST) for number in range(1, 300)))
    served = asked.served(read_budget=500)
    document = '{ user(userId: "u") { sessions(first: 2) { nodes { number } } } }'
    cost = (await served.service.execute(document, with_cost=True))["extensions"]["cost"]
    assert cost["open"] == ["user.sessions"]
    assert 300 < cost["actual"]["items"] <= cost["bound"]["items"]
    assert cost["actual"]["requests"] <= cost["bound"]["requests"]
    assert cost["actual"]["roundTrips"] <= cost["bound"]["roundTrips"]


async def test_types_that_do_not_expire_are_read_as_before(asked: World) -> None:
    """Every list of a table in which one type expires would have a filter, and be priced as such."""
    cost = (await asked.service.execute("{ logs { nodes { logId } } }", with_cost=True))["extensions"]["cost"]
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


def test_mistakes() -> None:
    """An expiry that nothing can look at would show what is over, or never delete it."""
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
        "Owner.until: it is stored in until, and another type's in expires: the TTL of a DynamoDB table is one attribute. "
        'Store all in one: ttl("expires").',
        "Owner.tokens: bare does not project expires, by which expired items of Token are left out. Project expires too, "
        'or declare the field as stored(format=Epoch("s")), which hides nothing.',
    ]
    assert mistakes(Twice, Days) == [
        "Twice.again: until says already when the record expires. Keep one of them, and declare the other as "
        'stored(format=Epoch("s")).',
        "Days.days: ttl() is for a datetime, and it is of type int. Annotate it as a datetime.",
    ]
