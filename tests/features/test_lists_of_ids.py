"""Lists and sets of nodes' ids in one attribute, `list[Ref[Mail]]`: raw key fields, whole keys, of one type or several."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from keygraph import (
    ID,
    Epoch,
    Graph,
    Many,
    Ranked,
    Reach,
    Ref,
    Table,
    copy,
    field,
    node,
    ranked,
    reach,
    read,
    record,
    stored,
    ttl,
    viewer,
    write,
)
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Scan
from keygraph.errors import Unavailable
from keygraph.writing import ends
from keygraph_resolvers import OperationRequest, check
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore, in_one_world
from tests.keygraph.checked import mistakes
from tests.resolvers.worlds import World, filled, within_bound, world
from tests.schemas import schema_of
from tests.verified import verified

TABLE = Table("Threads", partition_key="PK", sort_key="SK")


@node("MAIL#{mail_id}", "MAIL")
class Mail:
    mail_id: ID
    subject: str


@node("LABEL#{number:04d}", "LABEL")
class Label:
    number: int
    name: str


@node("CRATE#{room}#{place}", "CRATE")
class Crate:
    room: str
    place: str
    color: str | None


@node("BOX#{box_id}", "BOX")
class Box:
    box_id: ID
    threads: Many[Thread]


@record("{box}", "THREAD#{number}")
class Thread:
    box: Box
    number: int
    last: Mail | None
    mails: list[Ref[Mail]] = stored(default=[])
    unread: set[Ref[Mail]] | None
    labels: list[Ref[Label]] = stored("tags", whole_key=True, default=[])
    crates: list[Ref[Crate]] | None = stored(whole_key=True)
    pinned: list[Ref[Mail | Crate]] | None = stored("data", "pins")

    @field(needs=("mails", "unread"))
    def told(self) -> str:
        return f"{[each.mail_id for each in self.mails]} {[each.mail_id for each in self.unread or ()]}"


graph = Graph(TABLE, Mail, Label, Crate, Box, Thread, writes=True)
CRATE = global_id(graph.types["Crate"], ("A", "3"))
MAIL = global_id(graph.types["Mail"], ("a",))

ITEMS: list[Item] = [
    {"PK": "BOX#1", "SK": "BOX"},
    *({"PK": f"MAIL#{each}", "SK": "MAIL", "subject": each.upper()} for each in "abc"),
    {"PK": "LABEL#0007", "SK": "LABEL", "name": "work"},
    {"PK": "CRATE#A#3", "SK": "CRATE", "color": "red"},
    {"PK": "BOX#1", "SK": "THREAD#1", "mail_ids": ["b", "a", "b", "x"], "unread_ids": frozenset(["c", "a"]), "last_id": "c",
        "tags": ["LABEL#0007"], "crate_ids": ["CRATE#A#3"], "data": {"pins": ["CRATE#A#3", "MAIL#a"]}},
    {"PK": "BOX#1", "SK": "THREAD#2", "mail_ids": ["a", "c"]},
]  # fmt: skip

mailbox = filled(graph, ITEMS)


@in_one_world(
    ("asked", "wanted"),
    [
        ("mails { subject }", [{"mails": [{"subject": "B"}, {"subject": "A"}, {"subject": "B"}, None]}, {"mails": [{"subject": "A"}, {"subject": "C"}]}]),
        ("mails { mailId }", [{"mails": [{"mailId": each} for each in "babx"]}, {"mails": [{"mailId": "a"}, {"mailId": "c"}]}]),
        ("mails(first: 1, skip: 1) { subject }", [{"mails": [{"subject": "A"}]}, {"mails": [{"subject": "C"}]}]),
        ("unread { subject } labels { number name }",
            [{"unread": [{"subject": "A"}, {"subject": "C"}], "labels": [{"number": 7, "name": "work"}]}, {"unread": None, "labels": []}]),
        ("crates { place color } pinned { __typename ... on Crate { color } ... on Mail { subject } }",
            [{"crates": [{"place": "3", "color": "red"}], "pinned": [{"__typename": "Crate", "color": "red"}, {"__typename": "Mail", "subject": "A"}]},
             {"crates": None, "pinned": None}]),
        ("told", [{"told": "['b', 'a', 'b', 'x'] ['a', 'c']"}, {"told": "['a', 'c'] []"}]),
    ],
)  # fmt: skip
async def test_reads(mailbox: World, asked: str, wanted: list[Any]) -> None:
    answer = await mailbox.ask(f'{{ box(boxId: "1") {{ threads {{ nodes {{ {asked} }} }} }} }}')
    assert answer == {"box": {"threads": {"nodes": wanted}}}


@in_one_world(
    ("where", "wanted"),
    [
        ('mailIds: {contains: "b"}', [1]),
        ('unreadIds: {contains: "a"}', [1]),
        ("labelNumbers: {contains: 7}", [1]),
        (f'crateIds: {{contains: "{CRATE}"}}', [1]),
        (f'pinnedIds: {{contains: "{MAIL}"}}', [1]),
        ('not: {mailIds: {contains: "b"}}', [2]),
        ("unreadIds: {exists: false}", [2]),
    ],
)
async def test_filters(mailbox: World, where: str, wanted: list[int]) -> None:
    answer = await mailbox.ask(
        f'{{ box(boxId: "1") {{ threads(where: {{{where}}}) {{ nodes {{ number }} }} }} }}'
    )
    assert [each["number"] for each in answer["box"]["threads"]["nodes"]] == wanted


async def test_all_lists_are_one_request_with_ordinary_ends(mailbox: World) -> None:
    query = "{ box(boxId: %s) { threads { nodes { mails { subject } unread { subject } last { subject } labels { name } } } } }"
    await mailbox.ask(query % '"1"')
    keys = [request for request in mailbox.tracer.requests if isinstance(request, BatchGet)]
    assert [len(request.keys) for request in keys] == [
        1,
        5,
    ]  # the box; three mails, one that is missing, and a label
    bound = mailbox.tracer.requests
    assert len(bound) == 3


async def test_keys_are_answered_without_a_read(mailbox: World) -> None:
    await mailbox.ask(
        '{ box(boxId: "1") { threads { nodes { mails { mailId id } labels { number } pinned { __typename } } } } }'
    )
    assert mailbox.operations == {"GetItem": 1, "Query": 1}


async def problems(mailbox: World) -> list[str]:
    return [kind.what for kind, _ in (await verified(graph, mailbox.tracer.store)).ordered()]


async def stored_item(mailbox: World, sort_key: str) -> Item:
    items = (await mailbox.tracer.store.send(Scan(consistent=True))).items
    [item] = [each for each in items if each["SK"] == sort_key]
    return {name: value for name, value in item.items() if name not in ("PK", "SK", "box_id", "number")}


PUT = 'putThread(input: {boxId: "1", number: 3, %s}) { thread { told } }'
UPDATE = 'updateThread(input: {boxId: "1", number: 2, %s}) { thread { told } }'


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (PUT % f'mailIds: ["c", "a", "c"], unreadIds: ["b"], labelNumbers: [7], crateIds: ["{CRATE}"]',
            {"mail_ids": ["c", "a", "c"], "unread_ids": frozenset("b"), "tags": ["LABEL#0007"], "crate_ids": ["CRATE#A#3"]}),
        (PUT % f'lastId: "a", pinnedIds: ["{MAIL}", "{CRATE}"]', {"mail_ids": [], "tags": [], "last_id": "a", "data": {"pins": ["MAIL#a", "CRATE#A#3"]}}),
        (UPDATE % 'mailIds: ["b"]', {"mail_ids": ["b"]}),
        (UPDATE % 'add: {mailIds: ["b", "c"], unreadIds: ["a"]}', {"mail_ids": ["a", "c", "b", "c"], "unread_ids": frozenset("a")}),
        ('upsertThread(input: {boxId: "1", number: 2, add: {labelNumbers: [7]}}) { clientMutationId }', {"mail_ids": ["a", "c"], "tags": ["LABEL#0007"]}),
    ],
)  # fmt: skip
async def test_writes(mailbox: World, asked: str, wanted: Item) -> None:
    await mailbox.ask(f"mutation {{ {asked} }}")
    assert await stored_item(mailbox, "THREAD#3" if asked.startswith("put") else "THREAD#2") == wanted


@in_one_world(
    ("asked", "code", "path"),
    [
        (PUT % 'mailIds: ["a", "y"]', "NOT_FOUND", ["input", "mailIds", 1]),
        (PUT % 'unreadIds: ["y"]', "NOT_FOUND", ["input", "unreadIds", 0]),
        (PUT % 'mailIds: ["a", ""]', "BAD_USER_INPUT", ["input", "mailIds", 1]),
        (PUT % f'mailIds: ["{MAIL}"]', "BAD_USER_INPUT", ["input", "mailIds", 0]),
        (PUT % f'crateIds: ["{MAIL}"]', "BAD_USER_INPUT", ["input", "crateIds", 0]),
        (UPDATE % 'mailIds: ["y"]', "NOT_FOUND", ["input", "mailIds", 0]),
        (UPDATE % 'add: {labelNumbers: [7, 8]}', "NOT_FOUND", ["input", "add", "labelNumbers", 1]),
        (UPDATE % 'mailIds: ["a"], add: {mailIds: ["a"]}', "BAD_USER_INPUT", ["input", "mailIds"]),
        ('write(input: {actions: [{deleteMail: {mailId: "a"}}, {updateThread: {boxId: "1", number: 2, mailIds: ["a"]}}]}) { clientMutationId }',
            "NOT_FOUND", ["input", "actions", 1, "updateThread", "mailIds", 0]),
        (UPDATE % f'mailIds: {json.dumps([*map(str, range(100))])}', "TRANSACTION_TOO_LARGE", ["input"]),
    ],
)  # fmt: skip
async def test_refused_writes(mailbox: World, asked: str, code: str, path: list[object]) -> None:
    before = (await mailbox.tracer.store.send(Scan(consistent=True))).items
    answer = await mailbox.service.execute(f"mutation {{ {asked} }}")
    told = [each["extensions"] for each in answer["errors"]]
    assert [(each["code"], each.get("path")) for each in told] == [(code, path)]
    assert (await mailbox.tracer.store.send(Scan(consistent=True))).items == before


async def test_too_many_nodes_are_refused_before_they_are_checked(
    mailbox: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(ends, "_is_open")
    names = json.dumps([*map(str, range(101))])
    [error] = (await mailbox.service.execute(f"mutation {{ {UPDATE % f'mailIds: {names}'} }}"))["errors"]
    assert error["extensions"]["code"] == "TRANSACTION_TOO_LARGE"


async def test_nodes_of_the_same_transaction(mailbox: World) -> None:
    """A node that is created with the list is found, and one that is deleted with it is not missing any more."""
    await mailbox.ask("""mutation { write(input: {actions: [
        {createMail: {mailId: "d", subject: "D"}}, {updateThread: {boxId: "1", number: 2, mailIds: ["d"]}}
    ]}) { clientMutationId } }""")
    answer = await mailbox.ask(
        '{ box(boxId: "1") { threads(number: {eq: 2}) { nodes { mails { subject } } } } }'
    )
    assert answer["box"]["threads"]["nodes"] == [{"mails": [{"subject": "D"}]}]


async def test_verify_and_corrupt_items(mailbox: World) -> None:
    """Verify names members whose node is missing and members that are no key; each is an error or null of its own."""
    assert await problems(mailbox) == ["mails points to a missing Mail"]
    await mailbox.put(
        {"PK": "BOX#1", "SK": "THREAD#3", "mail_ids": ["a", ""], "tags": ["LABEL#0007", "7"]},
        {"PK": "BOX#1", "SK": "THREAD#4", "mail_ids": "a", "data": {"pins": ["MAIL#a", "BOX#1"]}},
    )
    assert {*await problems(mailbox)} == {
        "mails points to a missing Mail",
        "Thread.mails of an item is not a key of Mail",
        "Thread.labels of an item is not of type list of int: it is a str",
        "Thread.mails of an item is not of type list of id: it is a str",
        "Thread.pinned of an item is not a key of Mail or Crate",
    }
    query = '{ box(boxId: "1") { threads(number: {eq: 3}) { nodes { mails { subject } } } } }'
    answer = await mailbox.service.execute(query)
    assert answer["data"] == {"box": {"threads": {"nodes": [{"mails": [{"subject": "A"}, None]}]}}}
    assert [(each["extensions"]["code"], each["path"][-2:]) for each in answer["errors"]] == [
        ("CORRUPT_ITEM", ["mails", 1])
    ]


async def test_deletes_do_not_look_for_lists(mailbox: World) -> None:
    await mailbox.ask('mutation { deleteMail(input: {mailId: "a"}) { detached } }')
    answer = await mailbox.ask(
        '{ box(boxId: "1") { threads(number: {eq: 2}) { nodes { mails { subject } } } } }'
    )
    assert answer["box"]["threads"]["nodes"] == [{"mails": [None, {"subject": "C"}]}]
    deletes = schema_of(graph)._schema.mutation_type.fields["deleteMail"].description
    names = "`Thread.last` or `Thread.mails` or `Thread.unread` or `Thread.pinned`"
    assert f"Records that name it as {names} are not found." in deletes


async def test_a_long_list_is_read_in_parts(mailbox: World) -> None:
    await mailbox.put({"PK": "BOX#1", "SK": "THREAD#3", "mail_ids": [*map(str, range(7)), "a"]})
    small, query = (
        mailbox.served(max_page_size=5),
        '{ box(boxId: "1") { threads(number: {eq: 3}) { nodes { mails%s { subject } } } } }',
    )
    assert await small.errors(query % "") == [
        ("BAD_USER_INPUT", "more than 5 nodes: read a part of them, with first and skip")
    ]
    assert await small.errors(query % "(first: 6)") == [("BAD_USER_INPUT", "first must be between 0 and 5")]
    assert await small.errors(query % "(skip: -1)") == [
        ("BAD_USER_INPUT", "skip must be between 0 and 409,600")
    ]
    answer = await small.ask(query % "(skip: 6)")
    assert answer["box"]["threads"]["nodes"] == [{"mails": [None, {"subject": "A"}]}]


@node(
    "PAGE#{page_id}",
    "PAGE",
    access=[
        read(where={"readers": {"contains": viewer("sub")}}),
        read(role="editor"),
        write(role="editor"),
        write(where={"readers": {"contains": viewer("sub")}}),
    ],
)
class Page:
    page_id: ID
    title: str
    readers: set[Ref[Person]] | None
    next: list[Ref[Page]] = stored("links", whole_key=True, default=[], access=[read(), write(role="editor")])


@node("PERSON#{person_id}", "PERSON", access=[read(), write()])
class Person:
    person_id: ID


async def test_hidden_nodes_are_as_if_absent(make_store: MakeStore) -> None:
    """A rule may ask for a member; who may not see a node gets null for it, cannot name it, and pays no less for it."""
    made = world(check(Graph(TABLE, Page, Person)), await make_store(TABLE))
    await made.put(
        {"PK": "PERSON#7", "SK": "PERSON"},
        {"PK": "PAGE#a", "SK": "PAGE", "title": "A", "reader_ids": frozenset("7"), "links": ["PAGE#b", "PAGE#c", "PAGE#d"]},
        {"PK": "PAGE#b", "SK": "PAGE", "title": "B", "reader_ids": frozenset("8")},
        {"PK": "PAGE#c", "SK": "PAGE", "title": "C", "reader_ids": frozenset("78")},
    )  # fmt: skip
    query, keys = '{ page(pageId: "a") { next { title } } }', '{ page(pageId: "a") { next { pageId } } }'
    for asked, wanted in ((query, [None, {"title": "C"}, None]), (keys, [None, {"pageId": "c"}, None])):
        assert (await made.service.execute(OperationRequest(asked, viewer={"sub": "7"})))["data"] == {
            "page": {"next": wanted}
        }
    assert (await made.service.execute(OperationRequest(query, viewer={"sub": "9"})))["data"] == {
        "page": None
    }
    for viewer_id, given, wanted in (
        ("7", 'readerIds: ["7", "9"]', "NOT_FOUND"), ("7", 'nextIds: ["b"]', "FORBIDDEN"), ("7", 'readerIds: ["8"]', "FORBIDDEN"),
        ("9", 'title: ""', "NOT_FOUND"), ("7", 'add: {readerIds: ["7"]}, title: "AA"', None),
    ):  # fmt: skip
        mutation = f'mutation {{ updatePage(input: {{pageId: "a", {given}}}) {{ page {{ title }} }} }}'
        answer = await made.service.execute(OperationRequest(mutation, viewer={"sub": viewer_id}))
        assert [each["extensions"]["code"] for each in answer.get("errors", [])] == [wanted] * (
            wanted is not None
        ), given
    for roles, next_id, wanted in (
        (["editor"], "b", None),
        (["editor"], "d", "NOT_FOUND"),
        ([], "b", "FORBIDDEN"),
    ):
        mutation = f'mutation {{ createPage(input: {{pageId: "z{next_id}", title: "", readerIds: ["7"], nextIds: ["{next_id}"]}}) {{ page {{ title }} }} }}'
        answer = await made.service.execute(OperationRequest(mutation, viewer={"sub": "7", "roles": roles}))
        assert [each["extensions"]["code"] for each in answer.get("errors", [])] == [wanted] * (
            wanted is not None
        ), roles


async def test_the_bound(mailbox: World) -> None:
    """Each list counts with `first`, also from a variable, or with the largest page; what is read never exceeds it."""
    query = 'query($n: Int) { box(boxId: "1") { threads(first: 2) { nodes { mails(first: $n) { subject } labels { number } } } } }'
    for number, keys in ((None, 200), (3, 6), (0, 0)):
        bound = mailbox.service.explain(query, {"n": number}).bound.total
        assert (bound.items, bound.round_trips) == (
            1 + 2 + keys,
            2 if keys else 1,
        )  # the box, its threads, and mails
        mailbox.forget()
        answer = await mailbox.service.execute(OperationRequest(query, {"n": number}, with_cost=True))
        assert (
            answer["extensions"]["cost"]["bound"]["requests"]
            == bound.requests
            >= sum(mailbox.operations.values())
        )
    [got] = mailbox.service.explain(query).steps[0].steps[0].steps[:1]
    assert (got.where.place, got.where.key, got.where.round_trip) == (
        "box.threads.mails",
        "the members of Thread.mails",
        2,
    )


@node("SITE#{site_id}", "SITE")
class Site:
    site_id: ID
    name: str
    links: list[Ref[Site]] = stored(default=[])
    reached: Reach[Site] = reach("links", depth=4)
    far: Ranked[Site] = ranked("links", "links")


sites = Graph(TABLE, Site, paths=True, writes=True)


def site(name: str, links: Any = ()) -> Item:
    return {
        "PK": f"SITE#{name}",
        "SK": "SITE",
        "name": name.upper(),
        "link_ids": [*links] if isinstance(links, str) else links,
    }


web = filled(
    sites,
    [
        *(site(each[0], each[1:]) for each in ("abcb", "bdx", "cda", "de", "ea", "f")),
        {**site("g"), "link_ids": "a"},
    ],
)


def batches(web: World) -> list[int]:
    return [len(request.keys) for request in web.tracer.requests if isinstance(request, BatchGet)]


async def test_everything_reachable(web: World) -> None:
    """Nearest first, each once; one BatchGetItem for the lists of a level, and nothing of the last one is read."""
    answer = await web.ask(
        '{ site(siteId: "a") { reached { totalCount edges { distance node { siteId } } } } }'
    )
    edges = answer["site"]["reached"]["edges"]
    assert [(each["distance"], each["node"]["siteId"]) for each in edges] == [
        (1, "b"),
        (1, "c"),
        (2, "d"),
        (2, "x"),
        (3, "e"),
    ]
    assert batches(web) == [1, 2, 2, 1]
    web.forget()
    near = await web.ask('{ site(siteId: "a") { name reached(maxDistance: 2) { nodes { siteId } } } }')
    assert [each["siteId"] for each in near["site"]["reached"]["nodes"]] == [*"bcdx"]
    assert batches(web) == [1, 2]


@pytest.mark.parametrize("size", [1, 2, 3])
async def test_pages_of_what_is_reachable(web: World, size: int) -> None:
    found, after = [], None
    for _ in range(9):
        query = (
            'query($first: Int, $after: String) { site(siteId: "a") { reached(first: $first, after: $after) {'
        )
        query += " nodes { name } edges { node { siteId } } pageInfo { hasNextPage endCursor } } } }"
        page = (await web.ask(query, first=size, after=after))["site"]["reached"]
        found += [each["node"]["siteId"] for each in page["edges"]]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert found == [*"bcdxe"]


async def test_long_lists_and_the_budget(web: World) -> None:
    """Each id counts as an item. What the budget leaves is on the next page, and a count is then unknown."""
    await web.put(site("l", [f"{number}" for number in range(25)] + ["d"]))
    asked = '{ site(siteId: "l") { reached(first: 30) { totalCount nodes { siteId } pageInfo { hasNextPage } } } }'
    answer = await web.served(read_budget=10).service.execute(asked)
    nodes = [{"siteId": f"{number}"} for number in range(10)]
    reached = {"totalCount": None, "nodes": nodes, "pageInfo": {"hasNextPage": True}}
    assert answer["data"] == {"site": {"reached": reached}}
    assert [each["code"] for each in answer["extensions"]["warnings"]] == ["COUNT_LIMIT"]


async def test_ranked_by_ids(web: World) -> None:
    """An id that is twice in a list is two ways."""
    answer = await web.ask('{ site(siteId: "a") { far { edges { node { siteId } score paths } } } }')
    edges = answer["site"]["far"]["edges"]
    assert [(each["node"]["siteId"], each["score"], each["paths"]) for each in edges] == [
        ("d", 3.0, 3),
        ("x", 2.0, 2),
    ]
    assert batches(web) == [1, 2]


@pytest.mark.parametrize(
    ("ends", "most", "wanted"),
    [("ae", 6, [*"abde"]), ("ae", 3, [*"abde"]), ("ae", 2, None), ("ea", 1, [*"ea"]), ("ax", 9, [*"abx"]), ("af", 9, None), ("aa", 0, ["a"]), ("ga", 3, None)],
)  # fmt: skip
async def test_paths_along_ids(web: World, ends: str, most: int, wanted: list[str] | None) -> None:
    """They are searched from the first node alone: no key finds who names a node."""
    ids = [global_id(sites.types["Site"], (end,)) for end in ends]
    query = f'{{ path(from: "{ids[0]}", to: "{ids[1]}", via: [SITE_LINKS], maxLength: {most}) {{ length edges {{ via }} nodes {{ ... on Site {{ siteId }} }} }} }}'
    way = (await web.ask(query))["path"]
    assert (way and [each["siteId"] for each in way["nodes"]]) == wanted
    assert way is None or way["edges"] == [{"via": "SITE_LINKS"}] * (len(wanted or ()) - 1)
    assert {*batches(web)} <= {1, 2}
    assert len(batches(web)) <= most
    [step] = web.service.explain(query).steps
    assert step.page == "from the first node"
    assert [request.operation for request in step.steps[0].requests] == ["BatchGetItem"]


async def test_bounds_of_walks_along_ids(web: World) -> None:
    """A hundred items a request, and one more for each round."""
    query = '{ site(siteId: "a") { reached(maxDistance: 1) { nodes { siteId } } } }'
    bound = web.served(read_budget=500).service.explain(query).bound.total
    assert (bound.items, bound.requests) == (501, 50)


async def test_walks_see_what_the_viewer_sees(make_store: MakeStore) -> None:
    """Nothing is found through a hidden node, and whose list may not be read leads nowhere."""

    @node(
        "PAGE#{leaf_id}",
        "PAGE",
        access=[read(where={"readers": {"contains": viewer("sub")}}), read(role="editor")],
    )
    class Leaf:
        leaf_id: ID
        readers: set[str] | None
        hides: bool = False
        next: list[Ref[Leaf]] = stored(default=[], access=[read(where={"hides": False}), read(role="editor")])
        all: Reach[Leaf] = reach("next", depth=5, access=[read()])

    made = world(check(Graph(TABLE, Leaf, paths=True)), await make_store(TABLE))
    for name, ids, readers, hides in (
        ("a", "bcd", "7", False),
        ("b", "e", "8", False),
        ("c", "f", "7", True),
        ("d", "g", "7", False),
        ("e", "", "7", False),
        ("f", "", "7", False),
        ("g", "", "7", False),
    ):
        await made.put(
            {
                "PK": f"PAGE#{name}",
                "SK": "PAGE",
                "readers": frozenset(readers),
                "next_ids": [*ids],
                "hides": hides,
            }
        )
    for viewer_of, wanted in (({"sub": "7"}, [*"cdg"]), ({"sub": "9", "roles": ["editor"]}, [*"bcdefg"])):
        answer = await made.service.execute(
            OperationRequest(
                '{ leaf(leafId: "a") { all { nodes { leafId } totalCount } } }', viewer=viewer_of
            )
        )
        assert answer["data"]["leaf"]["all"] == {
            "nodes": [{"leafId": each} for each in wanted],
            "totalCount": len(wanted),
        }
    refused = await made.service.execute(
        OperationRequest('{ leaf(leafId: "c") { all { nodes { leafId } } } }', viewer={"sub": "7"})
    )
    assert [each["extensions"]["code"] for each in refused["errors"]] == ["FORBIDDEN"]


@node("SPREAD#{shard}#{spread_id}", "SPREAD", shards=3)
class Spread:
    spread_id: ID
    links: list[Ref[Spread]] = stored(default=[])
    all: Reach[Spread] = reach("links", depth=4)


@node("BRIEF#{brief_id}", "BRIEF")
class Brief:
    brief_id: ID
    until: datetime | None = ttl()
    links: list[Ref[Brief]] = stored(default=[])
    all: Reach[Brief] = reach("links", depth=4)


@node("PLACE#{number:03d}#{letter}", "PLACE")
class Place:
    number: int
    letter: str
    links: set[Ref[Place | Brief]] | None = stored("map", "links", whole_key=True)
    all: Reach[Place] = reach("links", depth=4)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ('spread(spreadId: "a") { all { totalCount nodes { spreadId } } }', (3, [{"spreadId": each} for each in "bcd"])),
        ('brief(briefId: "1") { all { totalCount nodes { briefId } } }', (3, [{"briefId": each} for each in "235"])),
        ('brief(briefId: "1") { all { totalCount nodes { until } } }', (3, [{"until": None}])),
        ('place(number: 1, letter: "a") { all { totalCount nodes { number letter } } }',
            (2, [{"number": 2, "letter": "b"}, {"number": 3, "letter": "c"}])),
    ],
)  # fmt: skip
async def test_ids_of_spread_expired_and_several_types(
    make_store: MakeStore, query: str, wanted: Any
) -> None:
    """An expired node leads nowhere, and is looked up like any other; all shards of a node are one request."""
    made = world(check(Graph(TABLE, Spread, Brief, Place)), await make_store(TABLE))
    spread = [("0#a", "bc"), ("2#b", "d"), ("1#c", "a")]
    await made.put(
        *({"PK": f"SPREAD#{key}", "SK": "SPREAD", "link_ids": [*ids]} for key, ids in spread),
        *(
            {"PK": f"BRIEF#{key}", "SK": "BRIEF", "link_ids": [*ids]}
            for key, ids in (("1", "23"), ("3", "5"))
        ),
        {"PK": "BRIEF#2", "SK": "BRIEF", "link_ids": ["4"], "until": Decimal(1)},
        {"PK": "PLACE#001#a", "SK": "PLACE", "map": {"links": frozenset(["PLACE#002#b", "BRIEF#1"])}},
        {"PK": "PLACE#002#b", "SK": "PLACE", "map": {"links": frozenset(["PLACE#003#c"])}},
    )
    answer = await made.service.execute(OperationRequest(f"{{ {query} }}", with_cost=True))
    [found] = answer["data"].values()
    assert (found["all"]["totalCount"], found["all"]["nodes"]) == wanted
    cost = within_bound(answer)
    assert cost["actual"]["requests"] <= 4


async def test_a_failed_read_fails_the_walk(web: World, monkeypatch: pytest.MonkeyPatch) -> None:
    send = web.tracer.store.send

    async def failing(request: Any) -> Any:
        if isinstance(request, BatchGet) and any("SITE#d" in key for key in request.keys):
            raise Unavailable("the store is not available")
        return await send(request)

    monkeypatch.setattr(web.tracer.store, "send", failing)
    answer = await web.service.execute('{ site(siteId: "a") { name reached { nodes { siteId } } } }')
    assert answer["data"] == {"site": {"name": "A", "reached": None}}
    assert [(each["extensions"]["code"], each["path"]) for each in answer["errors"]] == [
        ("UNAVAILABLE", ["site", "reached", "nodes"])
    ]


def test_ids_that_do_not_show_the_type_are_not_followed() -> None:
    @node("TWIN#{n}")
    class Twin:
        n: ID

    @node("TWIN#{n}")
    class Other:
        n: ID

    @node("P#{p}")
    class Page:
        p: ID
        alike: list[Ref[Twin | Other]] = stored(whole_key=True)
        both: Reach[Twin] = reach("alike", depth=2)

    [mistake] = Graph(TABLE, Twin, Other, Page, type_attribute="type").mistakes
    assert (
        str(mistake)
        == "Page.both: it cannot follow Page.alike: the key of Twin or Other does not show its type. Name another list."
    )


def test_mistakes() -> None:
    @node("A#{a}", "{b}")
    class Half:
        a: ID
        b: ID

    @node("B#{b}#{number}", "B")
    class Several:
        b: ID
        number: int

    @node("N#{n}", "N")
    class Page:
        n: ID
        next: list[Ref[Page]]
        others: list[Ref[Page]] = stored("next_ns")
        all: Reach[Page] = reach("next", depth=2)
        weighed: Ranked[Page] = ranked("next", "next", weight="n")
        before: Many[Page]
        keyed: list[Ref[Page]] = stored(in_key=True)

    @record("R#{key}", "R")
    class Record:
        key: ID
        one: Ref[Page]
        some: list[Ref[Page] | None]
        other: set[Ref[Record]]
        given: list[Ref[Page]] = stored(default=["a"])
        copied: list[Ref[Page]] = copy("one.next")
        formatted: list[Ref[Page]] = stored(format=Epoch())

    @record("S#{key}", "S")
    class Halves:
        key: ID
        whole: list[Ref[Half]] = stored(whole_key=True)

    @record("U#{key}", "U")
    class Raw:
        key: ID
        several: list[Ref[Several]]

    @record("T#{pages}", "T")
    class Keyed:
        pages: list[Ref[Page]]

    ref_alone = "Ref stands for a member of a list or a set that is not None. Write list[Ref[Page]], or for an end Page."
    assert mistakes(Half, Several, Page, Record, Halves, Raw, Keyed) == [
        f"Record.one: {ref_alone}",
        f"Record.some: {ref_alone}",
        "Record.other: Record is not a node. An end is a node that the graph lists.",
        "Record.given: a new record names no nodes by default. Write stored(default=[]).",
        "Record.copied: nodes are not copied. Annotate it as a list of ids: list[ID].",
        "Record.formatted: format= is for fields; the key of a node is written as the node has it. Give it to the key field of the node.",
        'Keyed: the template "T#{pages}": {pages}: a field of type list of id cannot be part of a key. Use another field or format.',
        "Halves.whole: the partition key of Half does not identify it, so it does not show which node it is. "
        "Put all its key fields into its partition template, or remove whole_key=True.",
        'Page.others: the attribute next_ns is stored by next already. Give one of them another: stored("name").',
        "Raw.several: a member is one value, and Several has the key fields b, number. Store whole keys: stored(whole_key=True).",
        "Page.before: there is no path to Page: Page has no end that is a Page, and no key can hold Page.next or Page.others or Page.keyed. "
        "Give Page an index whose partition template contains that end.",
        "Page.keyed: in_key=True, and no key can be read back to it. Add it to a key template, or remove in_key=True.",
        "Page.weighed: weight: Page.next is a list of ids, which have no fields. "
        "Remove weight=, or let the walk end with a list of items.",
    ]
