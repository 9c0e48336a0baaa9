"""Relay, Apollo Client, urql and GraphQL Code Generator: built and run against a server, each as its makers say.

Each application pages through the three orders of a user, one at a time, and then changes the user's name.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.conftest import SECONDS, Serve, run
from tests.end_to_end.processes import KEYGRAPH

pytestmark = pytest.mark.timeout(SECONDS + 100)

Application = Callable[[str], Path]

PAGE = (Path(__file__).parents[2] / "docs/clients.md").read_text("utf-8")
PROGRAMS = re.findall(r"^```js\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
RELAY_ASKS = """
const text = `query($after: String) { user(userId: "12345") {
  orders(first: 2, after: $after) { nodes { orderId } pageInfo { endCursor } } } }`;
const ask = async (after) => {
  const asked = environment.getNetwork().execute({ text, name: "Orders", operationKind: "query" }, { after }, {});
  return (await asked.toPromise()).data.user.orders;
};
const first = await ask();
const found = [first, await ask(first.pageInfo.endCursor)].flatMap(({ nodes }) => nodes.map((each) => each.orderId));
"""

USER = "12345"
RESULT = {
    "name": "John Doe Jr.",
    "orders": [["ORD001", "199.99"], ["ORD003", "204.97"], ["ORD006", "149.94"]],
}


def result_of(folder: Path, script: str, address: str, *words: str) -> dict[str, Any]:
    """What an application prints. Those that share a server each change the name once more."""
    found: dict[str, Any] = json.loads(run(folder, "node", script, f"{address}/graphql", USER, *words))
    return {**found, "name": found["name"].replace(" Jr. Jr.", " Jr.").replace(" Jr. Jr.", " Jr.")}


def trusting(serve: Serve, folder: Path, documents: str) -> str:
    """The address of a server in production that executes the documents of the folder alone."""
    manifest = folder / "trusted.json"
    run(folder, KEYGRAPH, "trust", documents, "--output", manifest)
    address = serve(KEYGRAPH_ENV="production", KEYGRAPH_TRUSTED_DOCUMENTS=str(manifest)).address()
    refused = httpx.post(f"{address}/graphql", json={"query": "{ __typename }"}).json()
    assert refused["errors"][0]["extensions"]["code"] == "DOCUMENT_NOT_TRUSTED"
    return address


@pytest.fixture(scope="module")
def address(serve: Serve) -> str:
    return serve().address()


def test_the_first_lists_of_the_page(application: Application, address: str) -> None:
    folder = application("codegen")
    apollo, urql, relay, *_ = PROGRAMS
    for name, program in {"apollo": apollo, "urql": urql, "relay": relay + RELAY_ASKS}.items():
        assert "http://127.0.0.1:8000" in program
        served = program.replace("http://127.0.0.1:8000", address)
        (folder / f"{name}.mjs").write_text(f"{served}\nconsole.log({name!r}, ...found);\n", "utf-8")
    (folder / "all.mjs").write_text(
        "".join(f'import "./{name}.mjs";' for name in ("apollo", "urql", "relay"))
    )
    # They run at the same time.
    assert sorted(run(folder, "node", "all.mjs").splitlines()) == [
        f"{name} ORD001 ORD003 ORD006" for name in ("apollo", "relay", "urql")
    ]


def test_relay_with_trusted_documents(application: Application, serve: Serve) -> None:
    folder = application("relay")
    # The compiler wants both to be there.
    (folder / "src/__generated__").mkdir()
    (folder / "persisted.json").write_text("{}")
    run(folder, "node", "node_modules/relay-compiler/cli.js")
    address = trusting(serve, folder, "persisted.json")
    assert result_of(folder, "page.mjs", address) == {**RESULT, "requests": 4}


def test_apollo_client(application: Application, address: str) -> None:
    found = result_of(application("apollo"), "page.mjs", address, "text")
    assert found == {**RESULT, "sent": ["POST text"] * 3 + ["POST"]}


def test_apollo_client_with_automatic_persisted_queries(application: Application, address: str) -> None:
    found = result_of(application("apollo"), "page.mjs", address, "automatic")
    # The query once with its text, and the mutation too.
    assert found == {**RESULT, "sent": ["GET", "POST text", "GET", "GET", "POST", "POST"]}


def test_apollo_client_with_trusted_documents(application: Application, serve: Serve) -> None:
    folder = application("apollo")
    run(folder, "node", "node_modules/@apollo/generate-persisted-query-manifest/cli.js")
    manifest = json.loads((folder / "persisted-query-manifest.json").read_text("utf-8"))
    for operation in manifest["operations"]:
        assert hashlib.sha256(operation["body"].encode()).hexdigest() == operation["id"]
    address = trusting(serve, folder, "persisted-query-manifest.json")
    assert result_of(folder, "page.mjs", address, "manifest") == {**RESULT, "sent": ["POST"] * 4}


def test_urql(application: Application, address: str) -> None:
    found = result_of(application("urql"), "page.mjs", address, "text")
    assert found == {**RESULT, "sent": ["GET text"] * 3 + ["POST"]}


def test_urql_with_automatic_persisted_queries(application: Application, address: str) -> None:
    found = result_of(application("urql"), "page.mjs", address, "automatic")
    assert found == {**RESULT, "sent": ["GET", "GET text", "GET", "GET", "POST"]}


def test_code_generator_with_trusted_documents(application: Application, serve: Serve) -> None:
    folder = application("codegen")
    run(folder, "node_modules/.bin/graphql-codegen-esm", "--config", "codegen.json", "--silent")
    run(folder, "node_modules/.bin/tsc")
    address = trusting(serve, folder, "src/gql/persisted-documents.json")
    assert result_of(folder, "built/page.js", address) == RESULT
