"""Drafts of tables with other conventions than the documents' have, and of tables without any."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from keygraph.draft.draft import why_not_read
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Index, Table
from keygraph_resolvers import build_schema
from tests.conftest import MakeStore
from tests.documents.served import Served
from tests.keygraph.drafts import GSI1, both, drafted, table, under

UUIDS = [str(uuid.UUID(int=number * 7919 + 12345678901234567890)) for number in range(20)]


def body(text: str) -> str:
    """What a draft declares: the classes, without what stands around them."""
    return text[text.index("\n\n\n") :].partition("\n\n\ngraph = ")[0].strip()


def class_of(text: str, name: str) -> str:
    blocks = body(text).split("\n\n\n")
    [found] = [block for block in blocks if f"\nclass {name}:" in block]
    return found


def test_a_table_without_a_sort_key(tmp_path: Path) -> None:
    items: list[Item] = [{"id": id_, "name": f"n{id_[-2:]}", "age": Decimal(7)} for id_ in UUIDS]
    with drafted(Table("Customers", partition_key="id"), items, tmp_path) as (text, _):
        assert body(text) == (
            '@node("{customer_id}")\nclass Customer:\n    customer_id: ID\n    name: str\n    age: int'
        )


def test_ids_without_a_prefix(tmp_path: Path) -> None:
    nodes = [both(id_, title="t") for id_ in UUIDS]
    edges = [under(UUIDS[n], UUIDS[n + 1], since="2024-01-01") for n in range(9)]
    with drafted(table(), [*nodes, *edges], tmp_path) as (text, graph):
        assert class_of(text, "ThingThing") == (
            '@edge("{thing}", "{to_thing.thing_id}")\n'
            "class ThingThing:\n    thing: Thing\n    to_thing: Thing\n    since: date"
        )
        assert graph.recognise(edges[0]) is graph.types["ThingThing"]
        assert graph.recognise(nodes[0]) is graph.types["Thing"]


def test_types_that_only_an_attribute_tells_apart(tmp_path: Path) -> None:
    posts: list[Item] = [{"id": id_, "__typename": "Post", "title": "t"} for id_ in UUIDS[:8]]
    comments: list[Item] = [
        {"id": UUIDS[8 + n], "__typename": "Comment", "postId": UUIDS[n % 3]} for n in range(8)
    ]
    by_post = Index("byPost", "postId", "id")
    declared = Table("Blog", partition_key="id", indexes=[by_post])
    with drafted(declared, [*posts, *comments], tmp_path) as (text, _):
        assert 'type_attribute="__typename"' in text
        assert class_of(text, "Post").endswith("    title: str\n\n    comments: Many[Comment]")
        assert "    post: Post" in class_of(text, "Comment")


@pytest.mark.parametrize(
    ("partition", "sort", "expected"),
    [
        ("id", ("ts", "N"), ["class Item", "    item_id: ID"]),
        ("deviceId", ("ts", "N"), ['@node("{device_id}", item=False)', '@record("{device}", "{ts}")']),
    ],
)
async def test_number_sort_keys(
    partition: str, sort: tuple[str, Any], expected: list[str], make_store: MakeStore, tmp_path: Path
) -> None:
    declared = Table("Readings", partition_key=partition, sort_key=sort)
    items: list[Item] = [
        {partition: str(n % 3), "ts": Decimal(1700000000000 + n), "value": Decimal(n) / 2} for n in range(9)
    ]
    with drafted(declared, items, tmp_path) as (text, graph):
        if partition != "deviceId":
            return
        assert all(line in text for line in expected)
        served = Served(graph, await make_store(declared))
        await served.load(
            *(f'{{"deviceId": "{i["deviceId"]}", "ts": {i["ts"]}, "value": 1.5}}' for i in items)
        )
        answer = await served.ask(
            '{ device(deviceId: "2") { items(ts: { from: 1700000000003 }) { nodes { ts value } } } }'
        )
        assert answer == {
            "device": {
                "items": {
                    "nodes": [
                        {"ts": 1700000000005, "value": "1.5"},
                        {"ts": 1700000000008, "value": "1.5"},
                    ]
                }
            }
        }


def test_binary_keys(tmp_path: Path) -> None:
    items: list[Item] = [{"k": bytes([n, 255]), "s": Decimal(n), "x": b"a"} for n in range(4)]
    with drafted(Table("Blobs", partition_key=("k", "B"), sort_key=("s", "N")), items, tmp_path) as (text, _):
        assert 'Table("Blobs", partition_key=("k", "B"), sort_key=("s", "N"))' in text
        assert "    k_id: bytes" in text
        assert "cannot be read" not in text


def test_heads_of_one_character(tmp_path: Path) -> None:
    users = [both(f"U#{n}") for n in range(5)]
    orders = [under(f"U#{n}", f"O#{n}{m}", amount=Decimal(m)) for n in range(5) for m in range(3)]
    with drafted(table(), [*users, *orders], tmp_path) as (text, _):
        assert '@node("U#{u_id}")' in text
        assert '@record("{u}", "O#{o_id}")' in text


@pytest.mark.parametrize(
    "declared",
    [table(Index("gsi", "a", "b")), Table("Tests", partition_key=("n", "N"), sort_key=("b", "B"))],
)
def test_an_empty_table(declared: Table, tmp_path: Path) -> None:
    with drafted(declared, [], tmp_path) as (text, graph):
        build_schema(graph)
        assert graph.table == declared
        assert "# doubt: the sample is empty: describe your items here" in text


@pytest.mark.long
def test_one_item_of_a_kind_among_thousands(tmp_path: Path) -> None:
    items = [both(f"USER#{n}", n=Decimal(n)) for n in range(3000)] + [both("ORG#1", x="y")]
    with drafted(table(), items, tmp_path) as (text, _):
        assert class_of(text, "Org") == (
            '@node("ORG#{org_id}")\nclass Org:\n    # doubt: the sample has only one item of it\n'
            "    org_id: ID\n    x: str"
        )


def test_several_items_of_one_node(tmp_path: Path) -> None:
    items = [under(f"USER#{n}", sort, a="b") for n in range(4) for sort in ("PROFILE", "SETTINGS")]
    with drafted(table(), items, tmp_path) as (text, _):
        assert '@node("USER#{user_id}", "PROFILE")' in text
        assert "    settings: One[UserSettings]" in text
        assert '@record("{user}", "SETTINGS")' in text


def test_nodes_of_several_key_fields(tmp_path: Path) -> None:
    items = [
        under(f"TENANT#t{t}#USER#u{u}", sort, email=f"{u}@x.y")
        for t in range(2)
        for u in range(3)
        for sort in ("PROFILE", f"DOC#d{u}")
    ]
    with drafted(table(), [*items, both("TENANT#t0"), both("TENANT#t1")], tmp_path) as (text, _):
        assert '@node("TENANT#{tenant_id}#USER#{user_id}", "PROFILE")' in text
        assert '@record("{user}", "DOC#{doc_id}")' in text
        assert '@node("TENANT#{tenant_id}")' in text


def test_keys_in_indexes_are_unified_with_fields(tmp_path: Path) -> None:
    repos = [
        both(
            f"REPO#o{n}#r{n}",
            owner=f"o{n}",
            repo=f"r{n}",
            GSI1PK=f"ACCOUNT#o{n}",
            GSI1SK=f"#REPO#r{n}",
        )
        for n in range(3)
    ]
    issues = [
        under(
            f"REPO#o{n}#r{n}",
            f"ISSUE#{m:07d}",
            number=Decimal(m),
            state="open",
            GSI1PK=f"REPO#o{n}#r{n}",
            GSI1SK=f"ISSUE#open#{m:07d}",
        )
        for n in range(3)
        for m in range(3)
    ]
    accounts = [both(f"ACCOUNT#o{n}") for n in range(3)]
    with drafted(table(GSI1), [*repos, *issues, *accounts], tmp_path) as (text, _):
        assert '@node("REPO#{owner}#{repo}", gsi1("{account}", "#REPO#{repo}"))' in text
        assert '@record("{repo}", "ISSUE#{number:07d}", gsi1("{repo}", "ISSUE#{state}#{number:07d}"))' in text
        assert "    repos: Many[Repo]" in class_of(text, "Account")


def test_indexes_are_declared_as_they_are(tmp_path: Path) -> None:
    declared = table(
        GSI1,
        Index("by-score", ("Score", "N"), projection=["a", "b"]),
        Index("lsi", "PK", "CreatedAt", local=True, projection="KEYS_ONLY"),
    )
    with drafted(declared, [both("A#1", CreatedAt="2024-01-01", Score=Decimal(3))], tmp_path) as (
        text,
        graph,
    ):
        assert graph.table == declared
        assert "    created_at: date\n" in text


def test_names_that_mean_something_else(tmp_path: Path) -> None:
    names = [
        *(
            "class",
            "import",
            "id",
            "shard",
            "first",
            "to",
            "many",
            "stored",
            "date",
            "a b",
            "a.b",
            "a-b",
            "ünï",
        ),
        *("__typename2", "1st", "userID", "user_id", "user-id", "$", "l", "cursor", "node", "from", "None"),
    ]
    items = [both(f"lambda#{n}", **dict.fromkeys(names, "x")) for n in range(3)]
    with drafted(table(), items, tmp_path) as (text, graph):
        build_schema(graph)
        [record] = graph.types.values()
        read = {record.fields[name].attribute[0] for name in record.fields}
        assert read >= set(names)
        for line in (
            "    class_: str\n",
            "    date_: str\n",
            '    first_value: str = stored("first")\n',
            "    l_: str\n",
            '    lambda_id_2: str = stored("id")\n',
            "    many_: str\n",
            '    field_1st: str = stored("1st")\n',
        ):
            assert line in text, line


@pytest.mark.parametrize(
    "word", ["Query", "Node", "Date", "Graph", "ID", "UserConnection", "True", "Enum", "Many", "String"]
)
def test_types_that_are_called_as_something_else(word: str, tmp_path: Path) -> None:
    items = [both(f"{word}#{n}", Type=word, query="x") for n in range(3)]
    with drafted(table(), items, tmp_path) as (_, graph):
        build_schema(graph)
        assert [record.type_value for record in graph.types.values()] == [word]


@pytest.mark.parametrize(
    ("values", "annotation"),
    [
        (["x", "y"], "str"),
        (["2024-01-31", "2024-02-01"], "date"),
        (["2024-01-31T10:00:00Z", "2024-02-01T00:00:00.5+02:00"], "datetime"),
        (["2024-01-31", "2024-02-31"], "str"),
        ([Decimal(1), Decimal(2**31 - 1)], "int"),
        ([Decimal(1), Decimal(2**31)], "Long"),
        ([Decimal(1), Decimal("1.5")], "Decimal"),
        ([Decimal("0.30000000000000004"), Decimal(1)], "float"),
        ([True, False], "bool"),
        ([b"x", b"y"], "bytes"),
        ([["a"], []], "list[str]"),
        ([[Decimal(1), None], [Decimal(2)]], "list[int | None]"),
        ([["a", Decimal(1)], []], "JSON"),
        ([frozenset(["a"]), frozenset(["b"])], "set[str]"),
        ([frozenset([Decimal("1.5")])] * 2, "set[Decimal]"),
        ([{"a": "b"}, {}], "JSON"),
        (["x", Decimal(1)], "JSON"),
        (["x", None], "str | None"),
    ],
)
def test_the_types_of_attributes(values: Sequence[Any], annotation: str, tmp_path: Path) -> None:
    items = [both(f"A#{n}", v=value) for n, value in enumerate(values)]
    with drafted(table(), items, tmp_path) as (text, _):
        assert f"    v: {annotation}\n" in f"{body(text)}\n"
        assert "cannot be read" not in text
    with drafted(table(), [*items, both("A#9")], tmp_path) as (text, _):
        assert f"    v: {annotation.removesuffix(' | None')} | None\n" in f"{body(text)}\n"


def test_parts_of_a_key_that_are_alike_by_chance(tmp_path: Path) -> None:
    items = [
        both("1#1"),
        under("1#1", "A"),
        under("1#2", "A"),
        both("A"),
        under("A#1", "A"),
        both("B#SHARD1"),
    ]
    with drafted(table(), items, tmp_path) as (_, graph):
        build_schema(graph)


def test_what_the_draft_does_not_read_is_named(tmp_path: Path) -> None:
    items = [both(f"USER#{n}", name="n") for n in range(4)] + [under("USER#", "x")]
    with drafted(table(), items, tmp_path) as (text, graph):
        refused = [item for item in items if why_not_read(graph, item)]
        assert ("doubt: 1 item of the sample cannot be read by these types:" in text) == bool(refused)


def test_an_attribute_with_whole_keys(tmp_path: Path) -> None:
    """An end is found by the whole key of its node, whatever its attribute is called."""
    people = [both(f"PERSON#{id_}", name=f"n{id_}") for id_ in UUIDS[:4]]
    owners = [f"PERSON#{UUIDS[n % 4]}" for n in range(6)]
    tasks = [both(f"TASK#{UUIDS[4 + n]}", owner=owner, size=Decimal(n)) for n, owner in enumerate(owners)]
    with drafted(table(), [*people, *tasks], tmp_path) as (text, graph):
        assert class_of(text, "Task") == (
            '@node("TASK#{task_id}")\n'
            'class Task:\n    task_id: ID\n    size: int\n    owner: Person = stored("owner", whole_key=True)'
        )
        task = graph.types["Task"]
        assert task.end_identity(tasks[1], task.ends["owner"]) == (UUIDS[1],)


def test_types_that_the_beginning_of_an_index_key_tells_apart(tmp_path: Path) -> None:
    """Items whose keys are plain ids are of the type that their index key begins with."""
    people = [both(id_, GSI1PK="CUSTOMER", GSI1SK=f"n{id_}", name=f"n{id_}") for id_ in UUIDS[:5]]
    orders = [both(id_, GSI1PK=f"ORDER#{UUIDS[3]}", GSI1SK=id_, total=Decimal(7)) for id_ in UUIDS[5:12]]
    with drafted(table(GSI1), [*people, *orders], tmp_path) as (text, graph):
        assert 'type={"GSI1PK": {"beginsWith": "ORDER#"}}' in class_of(text, "Order")
        assert {type_ and type_.name for type_ in map(graph.recognise, people)} == {"Customer"}
        assert {type_ and type_.name for type_ in map(graph.recognise, orders)} == {"Order"}


def test_lists_of_ids(tmp_path: Path) -> None:
    """A list whose members are all ids or keys of a node is a list of nodes; one of other texts stays a list."""
    mails = [both(f"MAIL#{id_}", subject="s") for id_ in UUIDS[:6]]
    threads: list[Item] = [
        both(
            f"THREAD#t{number}",
            mailIds=[*UUIDS[number : number + 3]],
            seen=frozenset([f"MAIL#{UUIDS[number]}"]),
            otherIds=["a", "b"],
        )
        for number in range(3)
    ]
    with drafted(table(), [*mails, *threads], tmp_path) as (text, graph):
        assert class_of(text, "Thread").endswith(
            '    mails: list[Ref[Mail]]\n    seen: set[Ref[Mail]] = stored("seen", whole_key=True)\n    other_ids: list[str]'
        ), text
        assert [why_not_read(graph, item) for item in (*mails, *threads)] == [None] * 9


def test_a_partition_behind_another_word_is_that_of_the_node_with_its_id(tmp_path: Path) -> None:
    """The partition of an index may hold some of the items only, though nothing but the index says which."""
    people = [under(f"user/{id_}", "-", name=f"n{id_}") for id_ in UUIDS[:4]]
    likes = [under(f"like/{UUIDS[n % 4]}", f"user/{UUIDS[3 - n % 4]}", at="2024-05-01") for n in range(4)]
    open_ = {"GSI1PK": "OPEN#north", "GSI1SK": "2024-05-01"}
    tasks = [both(f"task/t{n}", area="north", due="2024-05-01", **(open_ if n % 2 else {})) for n in range(4)]
    with drafted(table(GSI1), [*people, *likes, *tasks], tmp_path) as (text, graph):
        assert '@node("user/{user_id}", "-")' in text
        assert '@edge("like/{user.user_id}", "{to_user}")' in text, text
        assert '@node("task/{task_id}", gsi1("OPEN#{area}"))' in text
        assert "    gsi1_sk: date | None" in class_of(text, "Task")
        assert all(graph.recognise(item) for item in (*people, *likes, *tasks))


def test_words_that_stand_behind_ids_and_among_dates(tmp_path: Path) -> None:
    notes = [
        under(f"doc#d{n}", f"VERSION#{day}", text="x") for n in range(2) for day in ("LATEST", "2024-05-01")
    ]
    lists = [under(f"doc#d{n}#{word}", "doc#d9") for n in range(2) for word in ("cites", "copies")]
    with drafted(table(), [*notes, *lists], tmp_path) as (text, _):
        assert '@node("doc#{doc_id}", "VERSION#LATEST")' in text, text
        assert '@record("{doc}", "VERSION#{version_date}")' in text
        assert '@edge("{doc}#cites", "{to_doc}")' in text


def test_short_names_of_keys_and_letters_for_types(tmp_path: Path) -> None:
    """One item that has no type does not hide what tells the types of all others, nor an attribute that is not called an id."""
    keys = {"partition_key": "hk", "sort_key": "rk"}
    declared = Table("Clinics", **keys, indexes=[Index("byOther", "g1h", "g1r")])
    owners: list[Item] = [{"hk": f"own|{n:03}", "t": "O", "ownerNo": f"{n:03}"} for n in range(6)]
    pets: list[Item] = [
        {"hk": f"pet|P{n}", "t": "P", "ownerNo": f"00{n % 5}", "g1h": f"own|00{n % 5}", "g1r": f"pet|P{n}"}
        for n in range(20)
    ]
    visits: list[Item] = [
        {"hk": f"pet|P{n % 7}", "rk": f"visit|2024-01-{10 + n}", "t": "V", "fee": Decimal(n)}
        for n in range(20)
    ]
    items = [{"rk": item["hk"], **item} for item in (*owners, *pets, *visits)]
    setting: Item = {"hk": "cfg|app", "rk": "v1", "theme": "dark"}
    with drafted(declared, [*items, setting], tmp_path) as (text, graph):
        assert class_of(text, "Pet") == (
            '@node("pet|{pet_id}", by_other("{own}", "pet|{pet_id}"), type="P")\nclass Pet:\n    pet_id: ID\n'
            '    own: Own = stored("ownerNo")\n\n    visits: Many[PetVisit]'
        )
        assert 'type_attribute="t"' in text
        assert {type_ and type_.name for type_ in map(graph.recognise, items)} == {"Own", "Pet", "PetVisit"}
        assert graph.recognise(setting) is not None
    with drafted(declared, [*items, {**setting, "t": {"a": "b"}}], tmp_path) as (text, _):
        assert "type_attribute" not in text
