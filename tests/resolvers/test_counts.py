"""totalCount of lists at the root: what is counted where items do not say their types."""

from __future__ import annotations

from datetime import date

from keygraph import ID, Graph, Index, Table, node
from tests.conftest import MakeStore
from tests.resolvers.worlds import world

people = Index("People", "GSI1PK", "GSI1SK")


@node("USER#{user_id}", people("PEOPLE", "{joined}", lists="people"))
class Person:
    user_id: ID
    joined: date


@node("ROBOT#{robot_id}", people("PEOPLE", "R#{robot_id}"))
class Robot:
    robot_id: ID


@node("CITIES", "C#{city_id}")
class City:
    city_id: ID


@node("CITIES", "D#{number}#{city_id}")
class District:
    number: int
    city_id: str


untyped = Graph(
    Table("Untyped", partition_key="PK", sort_key="SK", indexes=[people]), Person, Robot, City, District
)


async def test_counts_at_the_root_of_items_without_types(make_store: MakeStore) -> None:
    """Where no attribute says what an item is, the number would be that of all that stands there."""
    made = world(untyped, await make_store(untyped.table))
    for n in range(3):
        day = f"2024-01-0{n + 1}"
        await made.put(
            {"PK": f"USER#u{n}", "SK": f"USER#u{n}", "GSI1PK": "PEOPLE", "GSI1SK": day},
            {"PK": f"USER#late{n}", "SK": f"USER#late{n}", "GSI1PK": "PEOPLE", "GSI1SK": f"soon {n}"},
            {"PK": f"USER#u{n}", "SK": "OTHER", "GSI1PK": "PEOPLE", "GSI1SK": day},
            {"PK": f"ROBOT#r{n}", "SK": f"ROBOT#r{n}", "GSI1PK": "PEOPLE", "GSI1SK": f"R#r{n}"},
            *({"PK": "CITIES", "SK": f"{key}{n}"} for key in ("C#c", "D#1#", "D#first#", "E#", "Z")),
        )
    for name in ("people", "robots", "cities", "districts"):
        found = await made.ask(f"{{ a: {name} {{ totalCount }} b: {name} {{ nodes {{ id }} }} }}")
        assert (found["a"]["totalCount"], len(found["b"]["nodes"])) == (3, 3), name


@node("SHIP#{ship_id}", "SHIP", people("SHIPS", "{name}", lists="ships"))
class Ship:
    ship_id: ID
    name: str


async def test_counts_in_an_index_of_what_says_the_type(make_store: MakeStore) -> None:
    """A copy of an item, in another place and with the same type and index keys, would be counted and never shown."""
    table = Table("Ships", partition_key="PK", sort_key="SK", indexes=[people])
    graph = Graph(table, Ship, type_attribute="kind").check()
    made = world(graph, await make_store(table))
    keys = [
        ("SHIP#1", "SHIP"),
        ("SHIP#2", "SHIP"),
        ("FLEET#1", "SHIP"),
        ("SHIP#2", "SHIP#OLD"),
        ("SHIP#2", "V"),
    ]
    for number, (partition, sort) in enumerate(keys):
        item = {"PK": partition, "SK": sort, "GSI1PK": "SHIPS", "GSI1SK": f"n{number}"}
        await made.put({**item, "name": f"n{number}", "kind": "Ship"})
    answer = await made.ask("{ ships { totalCount nodes { shipId } } }")
    assert answer == {"ships": {"totalCount": 2, "nodes": [{"shipId": "1"}, {"shipId": "2"}]}}
    assert made.operations == {"Query": 1, "Count": 1}


@node("LINE#{start}#TO#{end}", "LINE", people("LINES", "{opened}", lists="lines"))
class Line:
    start: str
    end: str
    opened: date


async def test_a_count_by_type_says_what_it_cannot_see(make_store: MakeStore) -> None:
    """The number would differ from what the pages show, and nobody could tell why."""
    table = Table("Lines", partition_key="PK", sort_key="SK", indexes=[people])
    made = world(Graph(table, Line, Ship, type_attribute="kind").check(), await make_store(table))
    for partition in ("LINE#a#TO#b", "LINE#a#AT#b", "LINE##TO#b"):
        keys = {"PK": partition, "SK": "LINE", "GSI1PK": "LINES", "GSI1SK": "2024-01-01"}
        await made.put({**keys, "kind": "Line"})
    answer = await made.ask("{ lines { totalCount nodes { end } } }")
    assert answer == {"lines": {"totalCount": 2, "nodes": [{"end": "b"}]}}
    asked = '{ __type(name: "%sConnection") { fields { name description } } }'
    for name, is_told in (("Line", True), ("Ship", False)):
        fields = (await made.ask(asked % name))["__type"]["fields"]
        [described] = [field["description"] for field in fields if field["name"] == "totalCount"]
        assert ("Edges that no page shows" in described) is is_told
