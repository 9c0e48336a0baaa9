"""Keys that are numbers or bytes, and tables and indexes without a sort key."""

from __future__ import annotations

from decimal import Decimal

import pytest

from keygraph import ID, BadUserInput, Graph, Index, Long, Many, Table, many, node, record
from keygraph.dynamo.store import BatchWrite
from keygraph_resolvers import Service, build_schema
from keygraph_resolvers.naming.names import LIST_ARGUMENTS
from tests.conftest import MakeStore
from tests.keygraph.checked import mistakes

by_score = Index("ByScore", "LeaguePK", ("Score", "N"))
by_owner = Index("ByOwner", "OwnerPK")

games = Table(
    "Games",
    partition_key=("GameNo", "N"),
    sort_key=("Played", "N"),
    indexes=[by_score, by_owner],
)


@node("{number}", "{number}", by_owner("OWNER#{owner}", lists="games_of"))
class Game:
    number: Long
    title: str
    owner: str
    plays: Many[Play] = many()


@record("{game.number}", "{played}", by_score("LEAGUE#{league}", "{score}", lists="best"))
class Play:
    game: Game
    played: Decimal
    league: str
    score: int


graph = Graph(games, Game, Play, attribute_case="pascal")

GAME: dict[str, object] = {"GameNo": 7, "Played": 7, "Number": 7, "Title": "Go", "OwnerPK": "OWNER#ada"}
PLAYS = [
    {"GameNo": 7, "Played": played, "LeaguePK": "LEAGUE#a", "Score": score}
    for played, score in ((-3, 5), ("0.5", 50), (9, 6), (10, 50), ("1E+20", 700))
]


def stored(item: dict[str, object]) -> dict[str, object]:
    numbers = ("GameNo", "Played", "Number", "Score")
    return {name: Decimal(str(value)) if name in numbers else value for name, value in item.items()}


@pytest.fixture
async def service(make_store: MakeStore) -> Service:
    store = await make_store(graph.check().table)
    await store.send(BatchWrite(tuple(stored(item) for item in [GAME, *PLAYS])))  # type: ignore[misc]
    return Service(build_schema(graph), store, secret=b"a secret")


async def ask(service: Service, query: str) -> dict[str, object]:
    answer = await service.execute(query)
    assert "errors" not in answer, answer
    return answer["data"]


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
async def test_pages_of_a_list_by_number(service: Service, direction: str) -> None:
    seen: list[int] = []
    after = "null"
    while True:
        answer = await service.execute(
            f"""{{ best(league: "a", first: 2, after: {after}, direction: {direction}) {{
              nodes {{ score }} pageInfo {{ hasNextPage endCursor }} }} }}"""
        )
        page = answer["data"]["best"]
        seen += [each["score"] for each in page["nodes"]]
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = f'"{page["pageInfo"]["endCursor"]}"'
    assert seen == sorted([5, 6, 50, 50, 700], reverse=direction == "DESC")


async def test_an_index_without_a_sort_key(service: Service) -> None:
    assert (
        await ask(service, '{ gamesOf(owner: "ada") { totalCount edges { cursor node { number } } } }') != {}
    )
    page = await ask(service, '{ gamesOf(owner: "ada") { totalCount nodes { number title } } }')
    assert page == {"gamesOf": {"totalCount": 1, "nodes": [{"number": 7, "title": "Go"}]}}
    listed = service.schema.as_str().partition("  gamesOf(")[2].partition("): GameConnection")[0]
    assert [name for name in LIST_ARGUMENTS if f"    {name}: " in listed] == ["first", "after", "where"]


def test_a_number_that_the_table_cannot_hold() -> None:
    with pytest.raises(BadUserInput) as refused:
        graph.identity(graph.types["Game"], {"number": 10**40 + 1})
    assert str(refused.value) == "number cannot be part of a key of Game"


def test_what_does_not_fit_a_keys_type() -> None:
    @node("GAME#{game_id}", "{title}")
    class Wrong:
        game_id: ID
        title: str

    @node("{name}")
    class Named:
        name: str

    @node("X#{digest}")
    class Digest:
        digest: bytes

    numbers = Table("Tests", partition_key=("N", "N"), sort_key=("S", "N"))
    texts = Table("Tests", partition_key="PK")
    assert mistakes(Wrong, table=numbers) == [
        'Wrong: the template "GAME#{game_id}" for N, which is of type N: a number is one placeholder and nothing '
        "else. Use a field of the key's type."
    ]
    assert mistakes(Named, table=numbers) == [
        'Named: the template "{name}" for N, which is of type N: a key that is a number cannot hold a field of type '
        "string. Use a field of the key's type."
    ]
    assert mistakes(Digest, table=texts) == [
        'Digest: the template "X#{digest}" for PK, which is of type S: bytes cannot be part of a key of type S. '
        "Use a field of the key's type."
    ]
