"""`beginsWith` on formats that keep how texts begin, as lower case does."""

from __future__ import annotations

import pytest

from keygraph import ID, Format, Graph, Index, Table, node, record
from keygraph.dynamo.items import Item
from keygraph_resolvers import build_schema
from tests.conftest import MakeStore
from tests.keygraph.checked import mistakes
from tests.resolvers.worlds import world

by_name = Index("by-name", "NamePK", "NameSK")


@node("PERSON#{person_id}", by_name("NAMES", "{surname:lower}#{given:initials}#{person_id}", lists="people"))
class Person:
    person_id: ID
    surname: str
    given: str


lower = Format(str.lower, prefixes=True)
graph = Graph(
    Table("People", partition_key="PK", sort_key="SK", indexes=[by_name]),
    Person,
    formats={"lower": lower, "initials": Format(lambda name: name[:1])},
).check()


def person(number: int, last: str, first: str) -> Item:
    key = f"PERSON#{number}"
    sort = f"{last.lower()}#{first[:1]}#{number}"
    return {"PK": key, "SK": key, "NamePK": "NAMES", "NameSK": sort, "surname": last, "given": first}


@pytest.mark.parametrize(
    ("range_", "wanted"),
    [
        ('beginsWith: "MAC"', ["Mac", "MacBeth", "macduff"]),
        ('beginsWith: "macB"', ["MacBeth"]),
        ('eq: "MAC"', ["Mac"]),
    ],
)
async def test_a_beginning_is_written_as_the_key_is(
    make_store: MakeStore, range_: str, wanted: list[str]
) -> None:
    made = world(graph, await make_store(graph.table))
    names = ["macduff", "MacBeth", "Mac", "Malcolm", "Banquo"]
    await made.put(*(person(number, name, "Ann") for number, name in enumerate(names)))
    found = (await made.ask(f"{{ people(surname: {{{range_}}}) {{ totalCount nodes {{ surname }} }} }}"))[
        "people"
    ]
    assert [each["surname"] for each in found["nodes"]] == wanted
    assert found["totalCount"] == len(wanted)
    refused = '{ people(surname: {beginsWith: "m"}, given: {eq: "Ann"}) { totalCount } }'
    assert await made.codes(refused) == ["BAD_USER_INPUT"]


def test_only_what_is_said_is_offered() -> None:
    arguments = build_schema(graph).as_str().partition("people(")[2].partition("): ")[0]
    assert "surname: StringPrefix" in arguments
    assert "given: StringEquals" in arguments

    @record("{number:short}", "A")
    class Thing:
        number: int

    table = Table("Things", partition_key="PK", sort_key="SK")
    formats = {"short": Format(str, int, prefixes=True)}
    told = mistakes(Thing, check=lambda _: Graph(table, Thing, formats=formats).check())
    assert any("prefixes=True is for text, and a field of type int is none" in each for each in told), told
