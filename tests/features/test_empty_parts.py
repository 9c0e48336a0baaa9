"""An empty text in an attribute is an absent part of a key."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, many, node, read, record, rule, write
from keygraph.dynamo.items import Item
from keygraph.tables.item_keys import ItemKeys
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.worlds import World, filled, world
from tests.verified import verified

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
    made = world(graph.check(), await make_store(graph.table))
    scope = {"PK": "SCOPE#1", "SK": "SCOPE#1", "OwnerPK": "USER#1", "OwnerSK": "SCOPE#owner#"}
    await made.put(
        {"PK": "USER#1", "SK": "USER#1"},
        {"PK": "USER#1", "SK": "GRANT#owner#", "resource": ""},
        {**scope, "ownerId": "1", "userId": "1", "kind": "owner", "resource": ""},
    )
    assert (await verified(graph, made.tracer.store)).ordered() == []
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


def scope(number: int, key: str, **fields: Any) -> Item:
    own = f"SCOPE#{number}"
    return {
        "PK": own,
        "SK": own,
        "OwnerPK": "USER#1",
        "OwnerSK": key,
        "ownerId": "1",
        "userId": "1",
        "kind": "k",
        **fields,
    }


NULL, OTHERS = ["1", "2", "3"], ["4", "5"]
SCOPES = [
    scope(1, "SCOPE#k#"),
    scope(2, "SCOPE#k#", resource=""),
    scope(3, "SCOPE#k#", resource=None),
    scope(4, "SCOPE#k#a", resource="a"),
    scope(5, "SCOPE#k#b", resource="b"),
]
CONDITIONS = {
    "{eq: null}": NULL,
    "{exists: false}": NULL,
    "{exists: true}": OTHERS,
    "{ne: null}": OTHERS,
    '{eq: ""}': [],
    '{ne: ""}': NULL + OTHERS,
    '{ne: "a"}': [*NULL, "5"],
    '{lt: "b"}': ["4"],
    '{lte: "a"}': ["4"],
    '{between: {from: "", to: "a"}}': ["4"],
    '{beginsWith: ""}': OTHERS,
    '{in: ["", "a"]}': ["4"],
}


scopes = filled(graph.check(), [{"PK": "USER#1", "SK": "USER#1"}, *SCOPES])


@in_one_world("condition", CONDITIONS)
async def test_what_a_filter_takes_for_absent(scopes: World, condition: str) -> None:
    where = f"where: {{resource: {condition}}}"
    unlike = f"where: {{not: {{resource: {condition}}}}}"
    document = f"""{{ user(userId: 1) {{
      like: scopes({where}) {{ nodes {{ scopeId resource }} aggregate {{ max(field: RESOURCE) }} }}
      unlike: scopes({unlike}) {{ nodes {{ scopeId }} }}
    }} }}"""
    found = (await scopes.ask(document))["user"]
    wanted = CONDITIONS[condition]
    resources = {"4": "a", "5": "b"}
    nodes = sorted(found["like"]["nodes"], key=lambda node: node["scopeId"])
    assert nodes == [{"scopeId": each, "resource": resources.get(each)} for each in wanted]
    assert found["like"]["aggregate"]["max"] == max(
        (resources[each] for each in wanted if each in OTHERS), default=None
    )
    assert sorted(each["scopeId"] for each in found["unlike"]["nodes"]) == [
        n for n in NULL + OTHERS if n not in wanted
    ]


GRANT = {"PK": "USER#1", "SK": "GRANT#k#x", "resource": ""}
CONTRADICTIONS = [
    (GRANT, "Grant", "SK does not match resource", "SK does not match resource"),
    (scope(1, "SCOPE#k#x", resource=""), "Scope", "by-owner: OwnerSK does not match resource", None),
]


@pytest.mark.parametrize(("item", "type_", "problem", "refusal"), CONTRADICTIONS)
async def test_a_key_with_a_value_that_its_attribute_lacks(
    make_store: MakeStore, item: Item, type_: str, problem: str, refusal: str | None
) -> None:
    store = await make_store(graph.table, {"PK": "USER#1", "SK": "USER#1"}, item)
    assert [kind.what for kind, _ in (await verified(graph, store)).ordered()] == [problem]
    assert ItemKeys(graph.types[type_]).misread(item) == refusal


async def test_rules_read_an_empty_part_as_null(make_store: MakeStore) -> None:
    @node(
        "SCOPE#{scope_id}",
        by_owner("USER#{owner}", "SCOPE#{resource?}"),
        access=[read(where={"resource": {"eq": None}}), write()],
        check=[rule({"or": [{"resource": {"exists": True}}, {"note": {"eq": "none"}}]}, "Say none.")],
    )
    class Guarded:
        scope_id: ID
        owner: str
        resource: str | None
        note: str | None

    made = world(Graph(graph.table, Guarded).check(), await make_store(graph.table))
    await made.put(scope(1, "SCOPE#", resource="", owner="1"), scope(2, "SCOPE#a", resource="a", owner="1"))
    both = "{ one: guarded(scopeId: 1) { resource } two: guarded(scopeId: 2) { resource } }"
    assert await made.ask(both) == {"one": {"resource": None}, "two": None}
    changed = "mutation { updateGuarded(input: {scopeId: 1, note: %s}) { guarded { note } } }"
    assert await made.errors(changed % '"some"') == [("CONFLICT", "Say none.")]
    assert await made.ask(changed % '"none"') == {"updateGuarded": {"guarded": {"note": "none"}}}
