"""Walks whose results nodes keep: what `keygraph summarize` writes is what the same walk of a query finds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    One,
    Ranked,
    Reach,
    Ref,
    Table,
    edge,
    many,
    node,
    ranked,
    reach,
    read,
    stored,
)
from keygraph.dynamo.actions import DeleteItem
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Write
from keygraph.names import camel
from keygraph_resolvers import OperationRequest
from keygraph_resolvers.read.walked import WalkEdge
from tests.conftest import MakeStore
from tests.keygraph.exported import full_export, incremental_export
from tests.keygraph.summarized import AS_OF, AT, contents, summarize
from tests.resolvers.worlds import World, filled, within_bound, world

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
TRUSTED = {"weight": "trust", "include_first": True}
RECENT = {"decay": ("since", timedelta(days=10))}


@node("PERSON#{person_id}", gsi1("{town}", "PERSON#{person_id}"))
class Person:
    person_id: ID
    name: str | None
    town: Town | None
    mentors: list[Ref[Person]] = stored(default=[])

    friends: Many[Friend]
    boss: One[Reports] = many(at="who")
    staff: Many[Reports] = many(at="to")

    may_know: Ranked[Person] = ranked("friends", "friends")
    may_know_kept: Ranked[Person] = ranked("friends", "friends", kept="job", keep=4)
    trusted: Ranked[Person] = ranked("friends", "friends", **TRUSTED)
    trusted_kept: Ranked[Person] = ranked("friends", "friends", kept="job", keep=4, **TRUSTED)
    few: Ranked[Person] = ranked("friends", "friends", budget=3, kept="job", keep=4)
    recent: Ranked[Person] = ranked("friends", **RECENT)
    recent_kept: Ranked[Person] = ranked("friends", kept="job", keep=4, **RECENT)
    taught: Ranked[Person] = ranked("mentors", "mentors")
    taught_kept: Ranked[Person] = ranked("mentors", "mentors", kept="job", keep=4)
    network: Reach[Person] = reach("friends", depth=3)
    network_kept: Reach[Person] = reach("friends", depth=3, kept="job", keep=4)
    above: Reach[Person] = reach("boss", "mentors", depth=5)
    above_kept: Reach[Person] = reach("boss", "mentors", depth=5, kept="job", keep=4)
    below: Reach[Person] = reach("staff", depth=5)
    below_kept: Reach[Person] = reach("staff", depth=5, kept="job", keep=4)


@node("TOWN#{town_id}")
class Town:
    town_id: ID
    people: Many[Person]

    known: Reach[Person] = reach("people", "friends", depth=2)
    known_kept: Reach[Person] = reach("people", "friends", depth=2, kept="job", keep=4)


@edge("{one}", "FRIEND#{other.person_id}", mirror=True)
class Friend:
    one: Person
    other: Person
    trust: Decimal | None
    since: date | None


@edge("{who}", "REPORTS#{to.person_id}", gsi1("{to}", "REPORTS#{who.person_id}"))
class Reports:
    who: Person
    to: Person


graph = Graph(
    Table("Kept", partition_key="PK", sort_key="SK", indexes=[gsi1]),
    Person,
    Town,
    Friend,
    Reports,
    type_attribute="type",
)
empty = filled(graph.check())
on_all_engines = pytest.mark.parametrize("engine", ["sqlite", "moto", "local"])
on_sqlite = pytest.mark.parametrize("engine", ["sqlite"])


def person(name: object, town: str = "", mentors: str = "") -> Item:
    of_town = {"town_id": town, "GSI1PK": f"TOWN#{town}", "GSI1SK": f"PERSON#{name}"} if town else {}
    key = {"PK": f"PERSON#{name}", "SK": f"PERSON#{name}", "type": "Person", "person_id": str(name)}
    return {**key, **of_town, "name": f"the {name}", "mentor_person_ids": [*mentors]}


def town(name: str) -> Item:
    return {"PK": f"TOWN#{name}", "SK": f"TOWN#{name}", "type": "Town", "town_id": name}


def friends(one: str, other: str, trust: str | None = None, since: str | None = None) -> Iterator[Item]:
    own = {"trust": trust and Decimal(trust), "since": since}
    for a, b in dict.fromkeys(((one, other), (other, one))):
        yield {"PK": f"PERSON#{a}", "SK": f"FRIEND#{b}", "type": "Friend", **own}


def reports(who: str, to: str) -> Item:
    index = {"GSI1PK": f"PERSON#{to}", "GSI1SK": f"REPORTS#{who}"}
    return {"PK": f"PERSON#{who}", "SK": f"REPORTS#{to}", "type": "Reports", **index}


def any_items(seed: int) -> list[Item]:
    """A random table: some edges lead to nothing, others have no weight, and there are cycles."""
    any_ = random.Random(seed)
    names, more = "abcdefghij"[: any_.randint(2, 10)], "xyz"
    made = [town("u"), town("v")]
    made += [
        person(each, any_.choice(["", "u", "v"]), "".join(any_.choices(names + more, k=any_.randrange(2))))
        for each in names
    ]
    for _ in range(any_.randrange(3 * len(names))):
        trust, since = any_.choice([None, "1", "2.5", "-3"]), any_.choice([None, "2019-12-01", "2019-12-24"])
        made += friends(any_.choice(names), any_.choice(names + more), trust, since)
    made += [reports(each, any_.choice(names + more)) for each in names for _ in range(any_.randrange(3))]
    return [*{(item["PK"], item["SK"]): item for item in made}.values()]


def selected(owner: str, name: str) -> str:
    """A walk of a node, with all that both forms of it have."""
    of = "distance" if graph.walks[owner, name].is_reach else "score paths"
    return (
        f"{camel(name)}(first: 4) {{ totalCount pageInfo {{ hasNextPage isComplete }} "
        f"edges {{ {of} node {{ personId name }} }} }}"
    )


KEPT = [each for each in graph.walks if each[1].endswith("_kept")]
DOCUMENTS = {
    owner: f"query ($id: ID!) {{ {camel(owner.lower())}({owner.lower()}Id: $id) {{ {' '.join(walks)} }} }}"
    for owner in ("Person", "Town")
    for walks in [[selected(*each) for each in graph.walks if each[0] == owner and each[1] != "few"]]
}


@pytest.fixture
def at_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries weigh edges as of the time of the job."""
    monkeypatch.setattr("keygraph_resolvers.read.run.now", lambda: Decimal(int(AT.timestamp())))


async def compare(kept: World, folder: Path, **options: Any) -> None:
    """Compares what nodes keep with what the same walks find."""
    await summarize(graph, kept.tracer.store, folder, **options)
    for item in await contents(kept.tracer.store):
        owner, id_ = str(item["type"]), str(item["PK"]).partition("#")[2]
        if owner not in DOCUMENTS:
            continue
        [found] = (await kept.ask(DOCUMENTS[owner], id=id_)).values()
        for name in (name for of, name in KEPT if of == owner):
            of_kept, of_live = found[camel(name)], found[camel(name.removesuffix("_kept"))]
            # Nothing follows what is kept, and a reach is complete if all of it is kept.
            assert of_kept["pageInfo"].pop("hasNextPage") is False
            has_more = of_live["pageInfo"].pop("hasNextPage")
            if graph.walks[owner, name].is_reach:
                of_live["pageInfo"]["isComplete"] = not has_more
            assert of_kept == of_live, (name, id_)


@on_sqlite
@pytest.mark.usefixtures("at_the_time")
@pytest.mark.parametrize("seed", range(2))
async def test_a_node_keeps_what_its_walk_finds(make_store: MakeStore, tmp_path: Path, seed: int) -> None:
    served = world(graph, await make_store(graph.table, *any_items(seed)))
    await compare(served, tmp_path)


@on_sqlite
@pytest.mark.usefixtures("at_the_time")
async def test_exports_have_the_same_walks(make_store: MakeStore, tmp_path: Path) -> None:
    """Of items that changed after the full export, the incremental one has the newest state."""
    served, items = world(graph, await make_store(graph.table)), any_items(3)
    await served.put(*items)
    half, before = len(items) // 2, AT - timedelta(hours=1)
    full_export(tmp_path, "full", before, [*items[:half], person("zz", "u", "a")], table="Kept")
    changes = [(graph.table.key_of(each), each) for each in items[half:]]
    gone = ("PERSON#zz", "PERSON#zz")
    later = [({"PK": key[0], "SK": key[1]}, item, 1) for key, item in [*changes, (gone, None)]]
    incremental_export(tmp_path, "later", before, AT, later, table="Kept")
    await compare(served, tmp_path, folder_of_exports=tmp_path)


# --- What a query reads -------------------------------------------------------------------------------


@pytest.fixture
async def chain(empty: World, tmp_path: Path) -> World:
    """Who reports to whom: a, then b and c, then d, e and f; what is kept of them is computed."""
    pairs = ("ba", "ca", "db", "eb", "fc")
    await empty.put(*map(person, "abcdef"), *(reports(*each) for each in pairs))
    await summarize(graph, empty.tracer.store, tmp_path)
    empty.forget()
    return empty


BELOW = """
query ($id: ID = "a", $first: Int, $after: String, $most: Int) {
  person(personId: $id) {
    belowKeptAsOf
    belowKept(first: $first, after: $after, maxDistance: $most) {
      totalCount
      pageInfo { hasNextPage hasPreviousPage endCursor isComplete }
      edges { distance node { personId name } }
    }
  }
}
"""


def names(answer: Any) -> str:
    return "".join(each["node"]["personId"] for each in answer["person"]["belowKept"]["edges"])


@on_all_engines
async def test_it_takes_the_node_and_one_batch(chain: World) -> None:
    answer = await chain.ask(BELOW)
    assert names(answer) == "bcde"
    assert answer["person"]["belowKeptAsOf"] == AS_OF
    assert chain.operations == {"GetItem": 1, "BatchGetItem": 1}
    chain.forget()
    found = await chain.ask('{ person(personId: "a") { belowKept { nodes { personId } } } }')
    assert found["person"]["belowKept"]["nodes"] == [{"personId": each} for each in "bcde"]
    # Keys answer it.
    assert chain.operations == {"GetItem": 1}
    # The list in the index cannot be read consistently, but what the node keeps can.
    live, kept = (
        f'query @consistent {{ person(personId: "a") {{ {name} {{ totalCount }} }} }}'
        for name in ("below", "belowKept")
    )
    assert await chain.codes(live) == ["BAD_USER_INPUT"]
    assert (await chain.ask(kept))["person"]["belowKept"] == {"totalCount": 5}


@on_sqlite
async def test_its_bound_is_what_it_takes(chain: World) -> None:
    for document in (BELOW, '{ person(personId: "a") { belowKept { totalCount nodes { personId } } } }'):
        answer = await chain.service.execute(OperationRequest(document, with_cost=True))
        cost = within_bound(answer)
        assert cost["bound"].items() <= cost["actual"].items(), document


@on_sqlite
async def test_pages_and_distances(chain: World) -> None:
    found, after = "", None
    for size in (1, 2, 2):
        answer = await chain.ask(BELOW, first=size, after=after)
        page = answer["person"]["belowKept"]["pageInfo"]
        assert (page["hasPreviousPage"], page["hasNextPage"]) == (found != "", len(found) + size < 4)
        found, after = found + names(answer), page["endCursor"]
        # Five were found, and four are kept.
        assert (answer["person"]["belowKept"]["totalCount"], page["isComplete"]) == (5, False)
    assert found == "bcde"
    near = (await chain.ask(BELOW, most=1))["person"]["belowKept"]
    assert (near["totalCount"], near["pageInfo"]["isComplete"], len(near["edges"])) == (2, True, 2)
    answer = await chain.service.execute(BELOW, {"most": 2})
    assert answer["data"]["person"]["belowKept"]["totalCount"] is None
    [warning] = answer["extensions"]["warnings"]
    assert warning["code"] == "COUNT_LIMIT"
    assert await chain.codes(BELOW, after="AAAA") == ["BAD_USER_INPUT"]
    assert await chain.codes(BELOW, most=6) == ["BAD_USER_INPUT"]


@on_sqlite
async def test_before_the_job_and_after_a_deletion(chain: World) -> None:
    await chain.put(person("g"))
    found = await chain.ask(BELOW, id="g")
    assert found == {"person": {"belowKept": None, "belowKeptAsOf": None}}
    key = ("PERSON#c", "PERSON#c")
    await chain.tracer.store.send(Write(DeleteItem(key)))
    found = await chain.ask(
        '{ person(personId: "a") { belowKept { nodes { name } edges { node { name } } } } }'
    )
    assert found["person"]["belowKept"]["nodes"] == [{"name": f"the {each}"} for each in "bde"]
    assert found["person"]["belowKept"]["edges"][1] == {"node": None}


@on_sqlite
async def test_a_ranking_that_did_not_read_everything_has_no_scores(empty: World, tmp_path: Path) -> None:
    await empty.put(*map(person, "abcd"), *friends("a", "b"), *friends("b", "c"), *friends("b", "d"))
    await summarize(graph, empty.tracer.store, tmp_path)
    few = "few { totalCount pageInfo { isComplete } edges { score paths node { personId } } }"
    # a has one friend and she has three, and that is one edge too many.
    answer = await empty.service.execute(
        f'{{ a: person(personId: "a") {{ {few} }} c: person(personId: "c") {{ {few} }} }}'
    )
    for found in answer["data"].values():
        assert (found["few"]["totalCount"], found["few"]["pageInfo"]) == (None, {"isComplete": False})
        assert {each["score"] for each in found["few"]["edges"]} == {None}
    assert {each["code"] for each in answer["extensions"]["warnings"]} == {"COUNT_LIMIT"}


@on_sqlite
async def test_an_attribute_that_is_something_else(chain: World) -> None:
    far: Item = {"total": Decimal("1E125"), "nodes": []}
    of_text: Item = {"total": "1", "nodes": [["Person", ["a"], "1"]]}
    of_map: Item = {"total": Decimal(1), "nodes": {"Person": "a"}}
    no_key: Item = {"total": None, "nodes": [["Person", "a", Decimal(1)]]}
    for wrong in ("a", {"total": Decimal(1)}, no_key, far, of_text, of_map):
        await chain.put({**person("a"), "below_kept": wrong})
        assert await chain.codes(BELOW) == ["CORRUPT_ITEM"]


@on_sqlite
async def test_a_node_that_keeps_more_than_is_declared_takes_no_more(make_store: MakeStore) -> None:
    """The bound is of what is declared, which may have been more when the job ran."""
    own = hidden(user=[read(where={"is_open": True})], near=[read()], best=[read()]).check()
    served = world(own, await make_store(own.table))
    kept: Item = {"total": Decimal(900), "nodes": [["User", [f"u{n}"], Decimal(1)] for n in range(900)]}
    await served.put({"PK": "USER#a", "SK": "USER#a", "user_id": "a", "is_open": True, "near": kept})
    await served.service.execute('{ user(userId: "a") { near { totalCount nodes { userId } } } }')
    assert served.operations == {"GetItem": 1, "BatchGetItem": 1}


def test_more_ways_than_an_int_holds_are_null() -> None:
    """A few nodes that all know each other have that many over ten levels."""
    assert [WalkEdge(str, paths=2**31 - less).paths for less in (0, 1)] == [None, 2**31 - 1]


# --- Who may see it -----------------------------------------------------------------------------------


def hidden(**own: Any) -> Graph:
    """Users who may be hidden, and know each other by edges that may be."""

    @node("USER#{user_id}", access=own.get("user", [read()]))
    class User:
        user_id: ID
        is_open: bool
        knows: Many[Knows] = many(access=own.get("knows", ()))
        near: Reach[User] = reach("knows", depth=1, kept="job", access=own.get("near", ()))
        best: Ranked[User] = ranked("knows", weight="trust", kept="job", access=own.get("best", ()))

    @edge("{one}", "KNOWS#{other.user_id}", access=own.get("edge", [read()]))
    class Knows:
        one: User = stored(in_key=True)
        other: User = stored(in_key=True)
        trust: int = stored(access=own.get("trust", ()))

    return Graph(Table("Hidden", partition_key="PK", sort_key="SK"), User, Knows)


@pytest.mark.parametrize(
    ("rules", "wrong"),
    [
        ({}, []),
        ({"user": [read(where={"is_open": True})]}, ["near", "best"]),
        ({"edge": [read(where={"trust": 1})]}, ["near", "best"]),
        ({"knows": [read(role="hr")]}, ["near", "best"]),
        ({"trust": [read(role="hr")]}, ["best"]),
        ({"edge": [read(role="hr")], "near": [read(role="hr")], "best": [read()]}, []),
    ],
)
def test_what_would_tell_of_hidden_items_needs_a_rule(rules: dict[str, Any], wrong: list[str]) -> None:
    assert [each.where for each in hidden(**rules).mistakes] == [f"User.{name}" for name in wrong]


@on_sqlite
async def test_hidden_nodes_are_left_out(make_store: MakeStore, tmp_path: Path) -> None:
    own = hidden(user=[read(where={"is_open": True})], near=[read()], best=[read(role="hr")]).check()
    served = world(own, await make_store(own.table))
    for name in "abcd":
        key, is_open = f"USER#{name}", name != "b"
        await served.put({"PK": key, "SK": key, "user_id": name, "is_open": is_open})
        await served.put({"PK": "USER#a", "SK": f"KNOWS#{name}", "trust": Decimal(ord(name))})
    await summarize(own, served.tracer.store, tmp_path)
    walked = "{ totalCount nodes { userId } pageInfo { isComplete } }"
    document = f'{{ user(userId: "a") {{ nearAsOf near {walked} best {walked} }} }}'
    served.forget()
    answer = await served.service.execute(document)
    # What decides is read with one batch, and nothing more.
    assert served.operations == {"GetItem": 1, "BatchGetItem": 1}
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["FORBIDDEN"]
    assert answer["data"]["user"] == {
        "nearAsOf": AS_OF,
        "near": {
            "totalCount": 3,
            "nodes": [{"userId": "c"}, {"userId": "d"}],
            "pageInfo": {"isComplete": True},
        },
        "best": None,
    }
