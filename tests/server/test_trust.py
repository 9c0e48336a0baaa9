"""Trusted documents and automatic persisted queries: the manifest, what is taken, and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from keygraph_server.app import create_app
from keygraph_server.documents.known import Accepted, KnownDocuments
from keygraph_server.documents.manifest import read_documents
from keygraph_server.errors import CommandError, RequestRefusedError
from keygraph_server.settings import Settings
from tests.asgi import running
from tests.server.command_line import run
from tests.server.library import MODEL, book, library_settings, make_table, serving

SECRET = "a secret of more than 32 characters"
TITLE = """query Title($isbn: ID!) {
  book(isbn: $isbn) {
    ...Shown
  }
}

fragment Shown on Book {
  title
}"""
FIRST = "query First($first: Int) {\n  books(first: $first) {\n    nodes {\n      isbn\n    }\n  }\n}"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def documents(folder: Path) -> Path:
    """A folder with two operations, whose fragment is in a file of its own."""
    (folder / "library.py").write_text(MODEL)
    found = folder / "app"
    (found / "parts").mkdir(parents=True)
    (found / "a.graphql").write_text(
        "# comments and spaces are no part of a document\n"
        "query Title($isbn: ID!)   { book(isbn: $isbn) { ...Shown } }\n"
        "query First($first: Int) { books(first: $first) { nodes { isbn } } }\n"
    )
    (found / "parts/b.gql").write_text("fragment Shown on Book { title } type Book { title: String }")
    return found


def trust(source: object, *words: object) -> Any:
    return run("trust", source, "--model", "library", *words)


class TestCommand:
    def test_it_writes_each_operation_with_its_fragments_and_its_bound(
        self, documents: Path, folder: Path
    ) -> None:
        result = trust(documents)
        assert result.exit_code == 0, result.stderr
        manifest = json.loads((folder / "trusted-documents.json").read_text())
        assert (manifest["format"], manifest["version"]) == ("apollo-persisted-query-manifest", 1)
        first, title = manifest["operations"]
        assert {key: title[key] for key in ("id", "name", "type", "body")} == {
            "id": sha256(TITLE),
            "name": "Title",
            "type": "query",
            "body": TITLE,
        }
        assert title["bound"] == {
            "requests": 1,
            "roundTrips": 1,
            "items": 1,
            "readUnits": title["bound"]["readUnits"],
        }
        # The largest page, not the default one.
        assert (first["name"], first["bound"]["items"]) == ("First", 100)
        assert sha256(TITLE)[:12] in result.stdout

    @pytest.mark.parametrize(
        ("text", "items"),
        [
            ("query A($n: Int!) { books(last: $n) { nodes { isbn } } }", 100),
            ("query A($id: ID!) { node(id: $id) { ... on Book { title } } }", 1),
            ("query A($ids: [ID!]!) { nodes(ids: $ids) { ... on Book { title } } }", 100),
        ],
    )
    def test_the_bound_is_for_the_variables_that_ask_for_most(
        self, documents: Path, folder: Path, text: str, items: int
    ) -> None:
        (documents / "z.graphql").write_text(text)
        assert trust(documents).exit_code == 0
        operation = json.loads((folder / "trusted-documents.json").read_text())["operations"][0]
        assert (operation["name"], operation["bound"]["items"]) == ("A", items)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("query A { bok { title } }", "Cannot query field 'bok' on type 'Query'"),
            ("query A { books { nodes { ...Missing } } }", "Unknown fragment 'Missing'"),
            ("query A { books(first: 100000) { nodes { isbn } } }", "A: first must be between 0 and 100"),
            ("{ books { totalCount } }", "has an operation without a name"),
            ("query First { books { totalCount } }", "both define First"),
            ("query {", "is not a GraphQL document"),
        ],
    )
    def test_what_is_wrong_is_said_and_nothing_is_written(
        self, documents: Path, folder: Path, text: str, said: str
    ) -> None:
        (documents / "z.graphql").write_text(text)
        result = trust(documents)
        assert result.exit_code == 1
        assert said in result.stderr
        assert "z.graphql" in result.stderr
        assert not (folder / "trusted-documents.json").exists()

    def test_an_operation_above_the_limit_is_refused(
        self, documents: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KEYGRAPH_COST_LIMIT", "1")
        result = trust(documents)
        assert result.exit_code == 1
        assert "First: This operation may cost" in result.stderr

    def test_check_says_whether_the_manifest_is_up_to_date(self, documents: Path, folder: Path) -> None:
        assert trust(documents, "--check").exit_code == 1
        assert trust(documents, "--output", "kept.json").exit_code == 0
        assert trust(documents, "--output", "kept.json", "--check").exit_code == 0
        (documents / "new.graphql").write_text("query New { books { totalCount } }")
        result = trust(documents, "--output", "kept.json", "--check")
        assert result.exit_code == 1
        assert "kept.json is not up to date" in result.stderr
        # Who reads the manifest meanwhile has the whole of one.
        with (folder / "kept.json").open() as old:
            assert trust(documents, "--output", "kept.json").exit_code == 0
            assert "query New" not in old.read()

    @pytest.mark.parametrize(
        "content",
        [
            {"0a1b": TITLE},
            {"sha256:0a1b": TITLE},
            {
                "format": "apollo-persisted-query-manifest",
                "version": 1,
                "operations": [{"id": "0a1b", "name": "Title", "type": "query", "body": TITLE}],
            },
        ],
    )
    def test_documents_of_other_tools_keep_their_ids(
        self, documents: Path, folder: Path, content: object
    ) -> None:
        (folder / "persisted.json").write_text(json.dumps(content))
        assert "Wrote trusted-documents.json: 1 document. " in trust("persisted.json").stdout
        [operation] = json.loads((folder / "trusted-documents.json").read_text())["operations"]
        assert (operation["id"], operation["name"], operation["body"]) == ("0a1b", "Title", TITLE)

    @pytest.mark.parametrize(
        "content", ["[]", '{"a": 1}', "{", '{"format": "apollo-persisted-query-manifest"}']
    )
    def test_another_file_is_refused(self, documents: Path, folder: Path, content: str) -> None:
        (folder / "other.json").write_text(content)
        result = trust("other.json")
        assert result.exit_code == 1
        assert "other.json is" in result.stderr

    def test_an_empty_folder_is_refused(self, documents: Path, folder: Path) -> None:
        (folder / "empty").mkdir()
        assert "has no .graphql file" in trust("empty").stderr


NOT_TRUSTED = "DOCUMENT_NOT_TRUSTED"
NOT_FOUND = "PERSISTED_QUERY_NOT_FOUND"
ALL = get_args(Accepted)


class TestKnownDocuments:
    @pytest.mark.parametrize("accepted", ALL)
    @pytest.mark.parametrize(
        "asked", [(TITLE, None, None), (TITLE, None, sha256(TITLE)), (None, None, "t1"), (None, "t1", None)]
    )
    def test_trusted_ones_are_found_always(self, accepted: Accepted, asked: tuple[str | None, ...]) -> None:
        assert KnownDocuments({"t1": TITLE}, accepted, 0).document_of(*asked) == TITLE

    @pytest.mark.parametrize(
        ("asked", "outcomes"),
        [
            ((FIRST, None, None), [FIRST, NOT_TRUSTED, NOT_TRUSTED]),
            ((FIRST, None, sha256(FIRST)), [FIRST, NOT_TRUSTED, FIRST]),
            ((None, None, sha256(FIRST)), [NOT_FOUND, NOT_TRUSTED, NOT_FOUND]),
            ((None, "t2", None), [NOT_FOUND, NOT_TRUSTED, NOT_TRUSTED]),
            ((FIRST, None, sha256(TITLE)), ["BAD_USER_INPUT"] * 3),
            ((f"{TITLE} ", None, None), [f"{TITLE} ", NOT_TRUSTED, NOT_TRUSTED]),
        ],
    )
    def test_others_are_taken_as_the_setting_says(self, asked: Any, outcomes: list[str]) -> None:
        found = []
        for accepted in ALL:
            try:
                found.append(KnownDocuments({"t1": TITLE}, accepted, 10_000).document_of(*asked))
            except RequestRefusedError as refused:
                found.append(refused.code)
        assert found == outcomes

    @pytest.mark.parametrize("accepted", ["any", "trusted-and-automatic"])
    def test_automatic_ones_are_found_once_they_are_kept(self, accepted: Accepted) -> None:
        known = KnownDocuments({}, accepted, 10_000)
        known.keep(sha256(FIRST), FIRST)
        assert known.document_of(None, None, sha256(FIRST)) == FIRST

    def test_clients_are_told_where_there_are_none(self) -> None:
        with pytest.raises(RequestRefusedError) as caught:
            KnownDocuments({}, "any", 0).document_of(None, None, "00")
        assert caught.value.code == "PERSISTED_QUERY_NOT_SUPPORTED"

    def test_they_take_no_more_bytes_than_the_setting_says(self) -> None:
        known = KnownDocuments({}, "any", 10_000)
        texts = [f"query Q{number} {{ {'ä' * 100} }}" for number in range(100)]
        for text in texts:
            known.keep(sha256(text), text)
            known.keep(sha256(text), text)
            # What is asked for stays.
            assert known.document_of(None, None, sha256(texts[0])) == texts[0]
            assert known.automatic_bytes <= 10_000
        kept = [text for text in texts if known._automatic.get(sha256(text))]
        assert kept == [texts[0], *texts[-len(kept) + 1 :]]
        assert known.automatic_bytes == sum(300 + 4 * len(text) for text in kept) > 9_000
        known.keep(sha256("x" * 10_001), "x" * 10_001)
        assert len(known._automatic) == len(kept)


FOUND = {"data": {"book": {"title": "Emma"}}}
ISBN = {"isbn": "1"}


def code(response: httpx.Response) -> str:
    [error] = response.json()["errors"]
    found: str = error["extensions"]["code"]
    return found


class TestServer:
    @pytest.fixture
    async def trusting(self, documents: Path, folder: Path) -> Settings:
        assert trust(documents).exit_code == 0
        settings = library_settings(folder, trusted_documents="trusted-documents.json")
        await make_table(settings, book("1", "Emma"))
        return settings

    @pytest.mark.parametrize(
        "body",
        [
            {"documentId": sha256(TITLE)},
            {"documentId": f"sha256:{sha256(TITLE)}"},
            {"doc_id": sha256(TITLE), "query": ""},
            {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": sha256(TITLE)}}, "query": None},
            {"query": TITLE},
        ],
    )
    async def test_clients_name_documents_in_their_own_ways(
        self, trusting: Settings, body: dict[str, Any]
    ) -> None:
        async with running(create_app(trusting)) as client:
            posted = await client.post("/graphql", json={**body, "variables": ISBN})
            params = {
                name: value if isinstance(value, str) else json.dumps(value)
                for name, value in {**body, "variables": ISBN}.items()
                if value is not None
            }
            fetched = await client.get("/graphql", params=params)
        assert posted.json() == FOUND
        assert fetched.json() == FOUND

    async def test_others_are_refused_before_they_are_read(self, trusting: Settings) -> None:
        accept = {"accept": "application/graphql-response+json"}
        async with running(create_app(trusting)) as client:
            refused = await client.post("/graphql", json={"query": "{"}, headers=accept)
            unknown = await client.post("/graphql", json={"documentId": "00"}, headers=accept)
        assert (refused.status_code, code(refused)) == (400, NOT_TRUSTED)
        assert (unknown.status_code, code(unknown)) == (400, NOT_TRUSTED)

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ({"query": TITLE, "documentId": "00"}, "a request has a query or a documentId, not both"),
            ({"documentId": 1}, "documentId must be a string or null"),
            ({"extensions": {"persistedQuery": {"version": 2, "sha256Hash": "00"}}}, "version 1"),
            ({"extensions": {"persistedQuery": []}}, "version 1"),
            ({"documentId": ""}, "query must be a string"),
        ],
    )
    async def test_what_is_no_request_is_400(self, trusting: Settings, body: object, said: str) -> None:
        async with running(create_app(trusting)) as client:
            response = await client.post("/graphql", json=body)
        assert (response.status_code, code(response)) == (400, "BAD_USER_INPUT")
        assert said in response.text

    async def test_automatic_persisted_queries(self, documents: Path, folder: Path) -> None:
        settings = library_settings(folder)
        async with serving(settings, book("1", "Emma")) as client:

            async def ask(text: str | None, key: str) -> httpx.Response:
                persisted = {"persistedQuery": {"version": 1, "sha256Hash": key}}
                return await client.post(
                    "/graphql", json={"query": text, "variables": ISBN, "extensions": persisted}
                )

            missing = await ask(None, sha256(TITLE))
            assert (code(missing), missing.json()["errors"][0]["message"]) == (
                NOT_FOUND,
                "PersistedQueryNotFound",
            )
            assert (await ask(TITLE, sha256(TITLE))).json() == FOUND
            assert (await ask(None, sha256(TITLE))).json() == FOUND
            assert code(await ask("{ bad }", sha256("{ bad }"))) == "GRAPHQL_VALIDATION_FAILED"
            assert code(await ask(None, sha256("{ bad }"))) == NOT_FOUND
            assert code(await ask(TITLE, sha256("{ bad }"))) == "BAD_USER_INPUT"

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"documents": "trusted"}, "KEYGRAPH_DOCUMENTS is trusted, but there is no manifest"),
            ({"trusted_documents": "missing.json"}, "missing.json cannot be read"),
        ],
    )
    def test_a_server_without_its_manifest_does_not_start(
        self, documents: Path, folder: Path, given: dict[str, str], said: str
    ) -> None:
        with pytest.raises(CommandError, match=said):
            create_app(library_settings(folder, **given))


def test_ids_that_are_not_of_their_documents_are_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "documents.json"
    pairs = [("a", "{a}"), ("a", "{b}"), ("0" * 64, "{c}"), (sha256("{d}"), "{d}")]
    operations = [{"id": key, "body": body} for key, body in pairs]
    file.write_text(json.dumps({"format": "apollo-persisted-query-manifest", "operations": operations}))
    assert list(read_documents(file)) == ["a", "0" * 64, sha256("{d}")]
    assert "1 ids are given again, and 1 look like a SHA-256" in caplog.text
