"""The graph: which type an item is of, and which values may make a key."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from keygraph import ID, BadUserInput, Graph, ModelError, Table, edge, node, record
from keygraph.dynamo.items import Item
from keygraph.keys.shapes import goes_before, is_narrower, is_special_case, shape
from keygraph.model.records import RecordType
from keygraph_examples.commerce import graph as commerce
from tests.keygraph.made_templates import TYPES, sources, texts, variants

TABLE = Table("Tests", partition_key="PK", sort_key="SK")
anything = st.text(st.characters(categories=None), max_size=12) | st.sampled_from(
    ["", "#", "\ud800", "1#SHARD3", "12345#SHARD0", "#SHARD1", "x" * 2042, "x" * 2043, "é" * 1021]
)


@pytest.mark.parametrize(
    ("user_id", "said"),
    [
        ("", "user_id of User is empty, and part of its key"),
        (
            "12345#SHARD3",
            'user_id of User would make a key of another shape, "USER#{user.user_id}#SHARD{shard}"',
        ),
        ("\udc00", "user_id of User cannot be written as UTF-8"),
        ("x" * 1020, "user_id of User would make a key of more than 1,024 bytes"),
        ("x" * 2044, "user_id of User would make a key of more than 2,048 bytes"),
        ("é" * 1022, "user_id of User would make a key of more than 2,048 bytes"),
        (None, "user_id of User is empty, and part of its key"),
    ],
)
def test_an_id_that_makes_no_key_is_refused(user_id: str | None, said: str) -> None:
    with pytest.raises(BadUserInput) as refused:
        commerce.identity(commerce.types["User"], {"user_id": user_id})
    assert str(refused.value) == said


def test_ids_that_look_strange_and_are_right() -> None:
    user = commerce.types["User"]
    for user_id in (
        "12345#SHARD",
        "12345#SHARDx",
        "12345#SHARD03",
        "PRODUCT#1",
        "名前",
        " ",
        "\n",
        "x" * 1019,
    ):
        assert commerce.identity(user, {"user_id": user_id}) == (user_id,)


# --- Ids ----------------------------------------------------------------------------------------------


def test_a_value_that_would_be_read_back_as_another() -> None:
    @node("REPO#{owner}#{name}")
    class Repository:
        owner: str
        name: str

    graph = Graph(TABLE, Repository).check()
    repository = graph.types["Repository"]
    assert graph.identity(repository, {"owner": "a", "name": "x#b"}) == ("a", "x#b")
    with pytest.raises(
        BadUserInput,
        match='owner of Repository cannot contain "#": it would be read back from the key as another value',
    ):
        graph.identity(repository, {"owner": "a#x", "name": "b"})


@pytest.mark.parametrize("written", ["shard", "shard:02d"])
def test_a_node_over_shards_has_a_key_in_each(written: str) -> None:
    @node("LOG#{" + written + "}", "LOG#{log_id}", shards=3)
    class Log:
        log_id: ID

    graph = Graph(TABLE, Log).check()
    log = graph.types["Log"]
    shards = ["0", "1", "2"] if written == "shard" else ["00", "01", "02"]
    assert graph.identity(log, {"log_id": "7"}) == ("7",)
    assert graph.table_keys(log, ("7",)) == [(f"LOG#{shard}", "LOG#7") for shard in shards]


def test_a_node_with_an_optional_part_in_its_key() -> None:
    @node("DOC#{doc_id}", "V{version?}")
    class Document:
        doc_id: ID
        version: int | None

    graph = Graph(TABLE, Document).check()
    document = graph.types["Document"]
    identity = document.read_identity({"PK": "DOC#1", "SK": "V"}) or ()
    graph.check_identity(document, identity)
    assert graph.table_keys(document, identity) == [("DOC#1", "V")]
    assert graph.identity(document, {"doc_id": "1", "version": None}) == identity


@pytest.mark.parametrize("sort_key", [None, "SK"])
@pytest.mark.parametrize(
    ("type_attribute", "is_named", "is_refused"),
    [("Type", False, False), (None, False, True), ("Type", True, True)],
)
def test_an_id_that_looks_like_another_types_key(
    sort_key: str | None, type_attribute: str | None, is_named: bool, is_refused: bool
) -> None:
    @node("{service_id}")
    class Service:
        service_id: ID

    @node("{service_id}-{number}")
    class Job:
        service_id: str
        number: int

    @node("NOTE#{note_id}")
    class Note:
        note_id: ID
        about: Service | Job | None

    table = Table("Tests", partition_key="PK", sort_key=sort_key)
    graph = Graph(table, Service, Job, *[Note] * is_named, type_attribute=type_attribute).check()
    assert graph.identity(graph.types["Job"], {"service_id": "jobs", "number": 4}) == ("jobs", "4")
    assert refuses(graph, graph.types["Service"], ("jobs-4",)) is is_refused


# --- Laws ---------------------------------------------------------------------------------------------


def refuses(graph: Graph, record: RecordType, identity: tuple[str, ...]) -> bool:
    try:
        graph.check_identity(record, identity)
    except BadUserInput:
        return True
    return False


def test_an_edge_to_itself_is_not_the_node() -> None:
    @node("USER#{user_id}")
    class User:
        user_id: ID

    @edge("{user}", "{friend}")
    class Friend:
        user: User
        friend: User

    graph = Graph(TABLE, User, Friend).check()
    assert graph.recognise({"PK": "USER#1", "SK": "USER#1"}) is graph.types["User"]
    graph.check_identity(graph.types["Friend"], ("1", "2"))
    assert refuses(graph, graph.types["Friend"], ("1", "1"))


def keeps_the_law_of_ids(graph: Graph, record: RecordType, identity: tuple[str, ...]) -> None:
    """An accepted identity is read back from its keys. They fit no other shape but more general ones, those whose own
    types would be refused these keys, and those of types with another type attribute. A partition may fit a narrower one
    of the same form."""
    for partition, sort in graph.table_keys(record, identity):
        item: Item = {"PK": partition, "SK": sort}
        assert record.read_identity(item) == identity
        for other in graph.types.values():
            own, others = record.table_keys, other.table_keys
            if other.is_virtual or (graph.type_values.exclude(record, other) and not others.shards):
                continue
            if others.partition.parse(partition) is not None:
                mine, theirs = shape(own.partition), shape(others.partition)
                # A partition of the same values may be both types': then the sort keys tell the items apart.
                is_shared = is_narrower(theirs, mine)
                assert is_shared or is_special_case(mine, theirs)
                if (
                    own.sort is not None
                    and others.sort is not None
                    and others.sort.parse(str(sort)) is not None
                ):
                    there = other.read_identity(item)
                    is_free = there is None or refuses(graph, other, there)
                    is_special = not is_shared and is_special_case(shape(own.sort), shape(others.sort))
                    assert is_free or is_special


@settings(max_examples=300)
@given(st.sampled_from(list(commerce.types)), st.lists(anything, min_size=2, max_size=2))
def test_no_id_of_the_shop_names_a_key_of_another_shape(name: str, values: list[str]) -> None:
    record = commerce.types[name]
    identity = tuple(values[: len(record.identity)])
    if len(identity) == len(record.identity) and not refuses(commerce, record, identity):
        keeps_the_law_of_ids(commerce, record, identity)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A graph of random keys, many of them special cases of others; types that `check` refuses are left out."""
    type_attribute = draw(st.sampled_from(["Type", None]))
    graph: Graph | None = None
    made: list[type] = []
    keys = draw(st.lists(sources(), min_size=2, max_size=2))
    for number in range(4):
        cls = type(f"Made{number}", (), {"__annotations__": dict(TYPES), "__module__": __name__})
        value = draw(st.sampled_from([None, "Same", "Same", f"Own{number}"]))
        candidate = Graph(
            TABLE, *made, record(*keys, type=value, lists=False)(cls), type_attribute=type_attribute
        )
        keys = [draw(variants(source)) for source in keys]
        try:
            graph = candidate.check()
        except ModelError:
            continue
        made.append(cls)
    assume(graph is not None)
    return graph or Graph(TABLE)


@st.composite
def items(draw: st.DrawFn, graph: Graph) -> Item:
    record = draw(st.sampled_from(list(graph.types.values())))
    values = {slot.name: _text(draw, slot.path[0]) for slot in record.table_keys.slots}
    keys = [template.render(values) or "" for template in record.table_keys.templates]
    for number, key in enumerate(keys):
        if draw(st.integers(0, 3)) == 0:
            where = draw(st.integers(0, len(key)))
            keys[number] = key[:where] + draw(texts) + key[where + draw(st.integers(0, 1)) :]
    item: Item = {"PK": keys[0], "SK": keys[1]}
    value = draw(
        st.sampled_from(
            [
                graph.type_values.of(record).get("Type"),
                graph.type_values.of(record).get("Type"),
                "Same",
                None,
                "None's",
            ]
        )
    )
    return item if value is None else {**item, "Type": value}


def _text(draw: st.DrawFn, name: str) -> str:
    """A text for a field of that name, most often one of its type's."""
    type_ = TYPES[name]
    if type_ is int:
        return str(draw(st.sampled_from([0, 1, -1, 10, 110])))
    if type_ in (ID, str):
        return draw(texts)
    return str(draw(st.sampled_from([member.value for member in type_])))  # type: ignore[attr-defined]


RELAXED = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@RELAXED
@given(st.data())
@pytest.mark.long
def test_every_item_is_of_one_type(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    for _ in range(4):
        item = data.draw(items(graph))
        value = item.get("Type") if graph.type_attribute else None
        accepting = [
            record
            for record in graph.types.values()
            if graph.type_values.of(record).get("Type") == value and record.table_keys.parse(item) is not None
        ]
        special = [
            record
            for record in accepting
            if all(_is_special(record, other) for other in accepting if other is not record)
        ]
        if not accepting:
            assert graph.recognise(item) is None
        else:
            assert [graph.recognise(item)] == special


def _is_special(one: RecordType, other: RecordType) -> bool:
    mine, theirs = shape(*one.table_keys.templates), shape(*other.table_keys.templates)
    return goes_before(mine, theirs) and not goes_before(theirs, mine)


@RELAXED
@given(st.data())
@pytest.mark.long
def test_an_id_that_is_accepted_is_an_id_of_its_type(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    for _ in range(4):
        record = data.draw(st.sampled_from(list(graph.types.values())))
        identity = tuple(_text(data.draw, slot.path[0]) for slot in record.identity)
        if refuses(graph, record, identity):
            continue
        keeps_the_law_of_ids(graph, record, identity)
        [(partition, sort)] = graph.table_keys(record, identity)
        item: Item = {"PK": partition, "SK": sort}
        value = graph.type_values.of(record).get("Type")
        assert graph.recognise(item if value is None else {**item, "Type": value}) is record


@pytest.mark.long
def test_made_graphs_are_not_trivial() -> None:
    found: list[bool] = []

    # It asks how graphs are made, which a few tries by chance would not always show.
    @settings(RELAXED, derandomize=True)
    @given(graphs())
    def look(graph: Graph) -> None:
        pairs = combinations(graph.types.values(), 2)
        pairs = [pair for pair in pairs if not graph.type_values.exclude(*pair)]
        found.append(any(_is_special(one, other) or _is_special(other, one) for one, other in pairs))

    look()
    assert sum(found) > 3


@pytest.mark.parametrize("is_resolved", [False, True])
def test_a_graph_on_a_table_of_another_name_recognizes_its_items(is_resolved: bool) -> None:
    """Also one that nobody has looked at before, as a server with `KEYGRAPH_TABLE` loads it."""

    @node("USER#{user_id}")
    class User:
        user_id: ID

    graph = Graph(TABLE, User)
    if is_resolved:
        graph.check()
    other = graph.on_table("Others")
    item: Item = {"PK": "USER#1", "SK": "USER#1"}
    assert other.is_of(item, (other.types["User"],))
    assert other.recognise(item) is other.types["User"]
    assert graph.is_of(item, (graph.types["User"],))
