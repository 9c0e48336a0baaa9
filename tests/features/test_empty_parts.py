"""An empty text in an attribute is an absent part of a key."""

from __future__ import annotations

from keygraph import ID, Graph, Index, Many, Table, many, node, record
from keygraph.tables.verify import Verification
from tests.conftest import MakeStore
from tests.resolvers.worlds import world

by_owner = Index("by-owner", "OwnerPK", "OwnerSK")


@node("USER#{user_id}")
class User:
    user_id: ID
    scopes: Many[Scope] = many(index=by_owner)
    grants: Many[Grant]


@node("SCOPE#{scope_id}", by_owner("{owner}", "SCOPE#{kind}#{resource?}"))
class Scope:
    scope_id: ID
    owner: User
    kind: str
    resource: str | None


@record("{owner}", "GRANT#{kind}#{resource?}")
class Grant:
    owner: User
    kind: str
    resource: str | None


graph = Graph(
    Table("Scopes", partition_key="PK", sort_key="SK", indexes=[by_owner]),
    User,
    Scope,
    Grant,
    attribute_case="camel",
)


async def test_an_empty_text_is_an_absent_part(make_store: MakeStore) -> None:
    """It would be in no list, `verify` would call its key ambiguous, and no update could move it."""
    made = world(graph.check(), await make_store(graph.table))
    scope = {"PK": "SCOPE#1", "SK": "SCOPE#1", "OwnerPK": "USER#1", "OwnerSK": "SCOPE#owner#"}
    await made.put(
        {"PK": "USER#1", "SK": "USER#1"},
        {"PK": "USER#1", "SK": "GRANT#owner#", "resource": ""},
        {**scope, "ownerId": "1", "userId": "1", "kind": "owner", "resource": ""},
    )
    verification = Verification(graph, made.tracer.store)
    await verification.run(lambda total: None)
    assert verification.report.ordered() == []
    document = """query ($kind: String!) { user(userId: 1) {
        scopes(kind: {eq: $kind}, resource: {eq: null}) { totalCount nodes { scopeId } }
        grants(kind: {eq: $kind}, resource: {eq: null}) { totalCount nodes { resource } }
    } }"""
    assert (await made.ask(document, kind="owner"))["user"] == {
        "scopes": {"totalCount": 1, "nodes": [{"scopeId": "1"}]},
        "grants": {"totalCount": 1, "nodes": [{"resource": None}]},
    }
    await made.ask('mutation { updateScope(input: {scopeId: 1, kind: "reader"}) { scope { kind } } }')
    assert (await made.ask(document, kind="reader"))["user"]["scopes"]["nodes"] == [{"scopeId": "1"}]
    errors = await made.errors(
        'mutation { updateScope(input: {scopeId: 1, resource: ""}) { scope { kind } } }'
    )
    assert errors == [("BAD_USER_INPUT", "resource of Scope is empty, and part of its key in by-owner")]
