"""Subscriptions in the clients that define their protocols, graphql-ws and graphql-sse, and in Apollo Client, urql and
Relay as the page says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from keygraph_server.commands.first_start import make_sample_file
from keygraph_server.models import load_model
from tests.clients.conftest import SECONDS, Serve, run
from tests.clients.test_clients import PROGRAMS
from tests.end_to_end.processes import KEYGRAPH

pytestmark = [pytest.mark.timeout(SECONDS + 100), pytest.mark.long]

BEGIN = """
import WebSocket from "ws";
globalThis.WebSocket = WebSocket; // browsers and newer versions of node have it
const rename = (name) => fetch("ADDRESS/graphql", {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ query: `mutation { updateUser(input: {userId: "12345", name: "${name}"}) { user { name } } }` }),
});
await rename("John Doe");
const lines = [];
const print = (text) => new Promise((done) => process.stdout.write(`${text}\\n`, done));
// Each program prints the name whenever it changes.
console.log = async (text) => {
  lines.push(text);
  await print(text);
  if (lines.length === 1) await rename("Jane");
  if (lines.length === 2) await rename("Janet");
  if (lines.length === 3) process.exit();
};
"""
QUERY = 'const query = `subscription Name { user(userId: "12345") { id name } }`;\n'
SINK = """
const sink = { next: ({ data }) => console.log(data.user.name), error: (error) => { throw error; }, complete: () => {} };
"""
WS = f"""
import {{ createClient }} from "graphql-ws";
{QUERY}{SINK}
createClient({{ url: "ws://127.0.0.1:8000/graphql" }}).subscribe({{ query }}, sink);
"""
SSE = f"""
import {{ createClient }} from "graphql-sse";
{QUERY}{SINK}
createClient({{ url: "http://127.0.0.1:8000/graphql" }}).subscribe({{ query }}, sink);
"""
RELAY = f"""
{QUERY}
subscribe({{ text: query, name: "Name" }}, {{}}).subscribe({{ next: ({{ data }}) => console.log(data.user.name) }});
"""
LIVE_PROGRAMS = {
    "graphql-ws": WS,
    "graphql-sse": SSE,
    "apollo": PROGRAMS[4],
    "urql": PROGRAMS[5],
    "relay": PROGRAMS[6] + RELAY,
}


@pytest.fixture(scope="module")
def address(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A server with subscriptions on a table with a stream."""
    folder = tmp_path_factory.mktemp("live")
    store = f"sqlite:{folder / 'shop.sqlite'}"
    make_sample_file(load_model("keygraph_examples.commerce:graph"), folder / "shop.sqlite")
    run(folder, KEYGRAPH, "table", "update", "--stream", "--store", store)
    return serve(KEYGRAPH_LIVE="true", KEYGRAPH_STORE=store).address()


@pytest.mark.parametrize("name", LIVE_PROGRAMS)
def test_a_client_sees_each_change(application: Callable[[str], Path], address: str, name: str) -> None:
    folder, host = application("codegen"), address.removeprefix("http://")
    program = LIVE_PROGRAMS[name]
    assert "127.0.0.1:8000" in program
    # Imports come first, whatever stands before them; the rest of the beginning must run before the program.
    (folder / "begin.mjs").write_text(BEGIN.replace("ADDRESS", address), "utf-8")
    (folder / "program.mjs").write_text(
        'import "./begin.mjs";\n' + program.replace("127.0.0.1:8000", host), "utf-8"
    )
    assert run(folder, "node", "program.mjs").splitlines() == ["John Doe", "Jane", "Janet"]


CHANGES = """
import WebSocket from "ws";
import { ApolloClient, gql, InMemoryCache } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { createClient as overWebSocket } from "graphql-ws";
import { createClient as overEvents } from "graphql-sse";
import { cacheExchange, Client, fetchExchange } from "@urql/core";
globalThis.WebSocket = WebSocket; // browsers and newer versions of node have it
const query = `subscription { userChanged(userId: "12345") { kind old { name } new { id name } } }`;
const found = {};
const sink = (name) => ({
  next: ({ data }) => { found[name] ??= data.userChanged; },
  error: (error) => { throw error; },
  complete: () => {},
});
const socket = overWebSocket({ url: "ws://127.0.0.1:8000/graphql" });
socket.subscribe({ query }, sink("graphql-ws"));
overEvents({ url: "http://127.0.0.1:8000/graphql" }).subscribe({ query }, sink("graphql-sse"));
const apollo = new ApolloClient({ link: new GraphQLWsLink(socket), cache: new InMemoryCache() });
apollo.subscribe({ query: gql(query), fetchPolicy: "no-cache" }).subscribe(sink("apollo"));
const exchanges = [cacheExchange, fetchExchange];
const urql = new Client({ url: "http://127.0.0.1:8000/graphql", fetchSubscriptions: true, exchanges });
urql.subscription(query, {}).subscribe(sink("urql").next);
// What was changed before they listen is not sent.
for (let number = 0; Object.keys(found).length < 4; number += 1) {
  const query = `mutation { updateUser(input: {userId: "12345", name: "Name ${number}"}) { user { name } } }`;
  const headers = { "content-type": "application/json" };
  await fetch("http://127.0.0.1:8000/graphql", { method: "POST", headers, body: JSON.stringify({ query }) });
  await new Promise((done) => setTimeout(done, 50));
}
process.stdout.write(JSON.stringify(found), () => process.exit());
"""


def test_clients_hear_what_has_changed(application: Callable[[str], Path], address: str) -> None:
    folder, host = application("codegen"), address.removeprefix("http://")
    (folder / "changes.mjs").write_text(CHANGES.replace("127.0.0.1:8000", host), "utf-8")
    found = json.loads(run(folder, "node", "changes.mjs"))
    assert {*found} == {"graphql-ws", "graphql-sse", "apollo", "urql"}
    for each in found.values():
        assert each["kind"] == "UPDATED"
        assert each["new"]["name"].startswith("Name ")
        assert each["old"]["name"] != each["new"]["name"]
