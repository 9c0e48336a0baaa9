"""The keys of records in the inputs of mutations: keys with lossy formats."""

from __future__ import annotations

import pytest

from keygraph import ID, Format, Graph, Many, Table, edge, node, record
from keygraph_resolvers import check
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, world

# --- Lossy formats ------------------------------------------------------------------------------------


@node("REPO#{name:lower}", "REPO")
class Repo:
    name: ID

    issues: Many[Issue]
    stars: Many[Star]


@node("USER#{login:lower}", "USER")
class User:
    login: ID


@node("{repo}", "ISSUE#{number:04d}")
class Issue:
    repo: Repo
    number: int
    title: str

    comments: Many[Comment]


@record("{issue.repo}#{issue.number:04d}", "COMMENT#{at}")
class Comment:
    issue: Issue
    at: str
    text: str


@edge("{repo}", "STAR#{user.login:lower}")
class Star:
    repo: Repo
    user: User
    note: str | None


hub = check(
    Graph(
        Table("Hub", partition_key="PK", sort_key="SK"),
        *(Repo, User, Issue, Comment, Star),
        formats={"lower": Format(str.lower)},
    )
)


@pytest.fixture
async def repos(make_store: MakeStore) -> World:
    """Two repositories, the first with an issue and a star."""
    made = world(hub, await make_store(hub.table))
    await made.ask(
        """mutation {
          book: createRepo(input: { name: "Book", issues: [{ number: 1, title: "Typo" }] }) { repo { name } }
          tea: createRepo(input: { name: "TEA" }) { repo { name } }
          ann: createUser(input: { login: "Ann" }) { user { login } }
          star: putStar(input: { repoName: "BOOK", userLogin: "ANN" }) { star { note } }
        }"""
    )
    return made


async def titles(repos: World) -> list[list[str]]:
    """The titles of the issues of each repository."""
    asked = '{ a: repo(name: "book") { ...Titles } b: repo(name: "tea") { ...Titles } }'
    found = await repos.ask(asked + " fragment Titles on Repo { issues { nodes { title } } }")
    return [[each["title"] for each in repo["issues"]["nodes"]] for repo in found.values()]


async def test_a_node_under_a_lossy_key_is_changed(repos: World) -> None:
    """Issues of a repository could be created, and every update, move or delete would fail with INTERNAL."""
    assert await titles(repos) == [["Typo"], []]
    answer = await repos.ask(
        'mutation { updateIssue(input: { repoName: "bOOk", number: 1, title: "Typos" }) '
        "{ issue { title repo { name } } } }"
    )
    assert answer["updateIssue"]["issue"] == {"title": "Typos", "repo": {"name": "Book"}}
    assert await titles(repos) == [["Typos"], []]
    answer = await repos.ask(
        'mutation { moveIssue(input: { repoName: "book", number: 1, to: { repoName: "Tea" } }) '
        "{ issue { title repo { name } } } }"
    )
    assert answer["moveIssue"]["issue"] == {"title": "Typos", "repo": {"name": "TEA"}}
    assert await titles(repos) == [[], ["Typos"]]
    answer = await repos.ask('mutation { deleteIssue(input: { repoName: "TEA", number: 1 }) { deletedId } }')
    assert answer["deleteIssue"]["deletedId"] == global_id(hub.types["Issue"], ("tea", "0001"))
    assert await titles(repos) == [[], []]


async def test_an_edge_between_lossy_keys_is_changed(repos: World) -> None:
    """A star could be put, and neither changed nor taken back."""
    of_stars = '{ repo(name: "book") { stars { edges { note node { login } } } } }'
    key = 'repoName: "book", userLogin: "ANN"'
    answer = await repos.ask(
        f'mutation {{ updateStar(input: {{ {key}, note: "!" }}) {{ star {{ note }} }} }}'
    )
    assert answer["updateStar"]["star"] == {"note": "!"}
    found = await repos.ask(of_stars)
    assert found["repo"]["stars"]["edges"] == [{"note": "!", "node": {"login": "Ann"}}]
    await repos.ask(f"mutation {{ deleteStar(input: {{ {key} }}) {{ deletedId }} }}")
    assert (await repos.ask(of_stars))["repo"]["stars"]["edges"] == []


async def test_records_are_created_with_a_node_under_a_lossy_key(repos: World) -> None:
    """An issue could not be created together with its comments."""
    answer = await repos.ask(
        'mutation { createIssue(input: { repoName: "TEA", number: 2, title: "Milk", '
        'comments: [{ at: "2024", text: "No." }] }) { issue { comments { nodes { text } } } } }'
    )
    assert answer["createIssue"]["issue"]["comments"]["nodes"] == [{"text": "No."}]


async def test_an_empty_key_is_refused_under_a_lossy_key(repos: World) -> None:
    """The key of no repository would be taken for a failure of the server."""
    mutation = 'mutation { deleteIssue(input: { repoName: "", number: 1 }) { deletedId } }'
    assert ("BAD_USER_INPUT", "name of Repo is empty") in await repos.errors(mutation)
