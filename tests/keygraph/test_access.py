"""Who may see and change what, as a model says it: rules, what they mean for a viewer, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Table,
    create,
    delete,
    edge,
    field,
    fields,
    many,
    node,
    read,
    record,
    stored,
    update,
    viewer,
    write,
)
from keygraph.access.grants import Decision
from keygraph.dynamo.conditions import And, Eq, In, Not
from keygraph.model.permissions import KnownRecord, Permissions, Rule

by_customer = Index("by-customer", "customerKey", "orderKey")
by_day = Index("by-day", "day", "PK", projection="KEYS_ONLY")
TABLE = Table("Shop", partition_key="PK", sort_key="SK", indexes=[by_customer, by_day])


class Status(Enum):
    PENDING = "pending"
    PAID = "paid"


@node("USER#{user_id}", access=[read()])
class User:
    user_id: ID
    email: str = stored("Email", access=[read(where={"user_id": viewer("sub")}), update(role="support")])
    age: int = 0

    orders: Many[Order] = many(access=[read(where={"user_id": viewer("sub")})])

    @field(needs=("email",))
    def greeting(self) -> str:
        return f"Dear {self.email}"

    @field(needs=("email",), access=[read()])
    def masked(self) -> str:
        return f"{self.email[:1]}…"


@node(
    "ORDER#{order_id}",
    by_customer("{customer}", "{order_id}"),
    access=[
        read(where={"customer": viewer("sub")}),
        read(role=["support", "audit"], fields=["status"]),
        write(role="support", fields=["status"]),
        create(where={"customer": viewer("sub"), "status": Status.PENDING}),
    ],
)
class Order:
    order_id: ID
    customer: User
    status: Status
    note: str | None = None


shop = Graph(TABLE, User, Order).check()
USER, ORDER = shop.types["User"], shop.types["Order"]
OWN: Decision = In(("customer_id",), ("1", Decimal(1)))
FIRST_TWO: Decision = In(("customer_id",), ("1", Decimal(1), "2", Decimal(2)))


@pytest.mark.parametrize(
    ("claims", "seen", "note", "status"),
    [
        ({}, False, False, False),
        ({"sub": "1"}, OWN, OWN, OWN),
        ({"sub": None}, False, False, False),
        ({"sub": {"id": "1"}}, False, False, False),
        ({"sub": ["1", "2"]}, FIRST_TWO, FIRST_TWO, None),
        ({"roles": ["support"]}, True, False, True),
        ({"roles": "audit", "sub": "1"}, True, OWN, True),
        ({"roles": "supporter"}, False, False, False),
    ],
)
def test_of_several_rules_one_is_enough(
    claims: Any, seen: Decision, note: Decision, status: Decision
) -> None:
    found = Permissions(claims)
    assert found.decision(ORDER) == seen
    assert found.decision(ORDER, "read", "note") == note
    assert status is None or found.decision(ORDER, "read", "status") == status
    assert found.decision(ORDER, "read", "order_id") is True
    assert found.decision(ORDER, "delete") is False


def test_a_method_may_be_read_by_who_may_read_what_it_needs() -> None:
    found = Permissions({"sub": "1"})
    assert found.decision(USER, "read", "greeting") == In(("user_id",), ("1", Decimal(1)))
    assert found.decision(USER, "read", "masked") is True
    assert found.allows(KnownRecord(USER, ("1",)), "read", "greeting")
    assert not found.allows(KnownRecord(USER, ("2",)), "read", "greeting")
    assert [name for name in USER.order if USER.access and USER.access.is_restricted(name)] == [
        "email",
        "orders",
        "greeting",
    ]


@pytest.mark.parametrize(
    ("listing", "plain", "clerk", "hr"),
    [
        ([read(role="clerk", fields=["title", "band"])], False, True, True),
        ([update(role="clerk", fields=["title", "band"])], False, False, True),
        ([read(role="clerk", fields=["title"])], False, False, True),
    ],
)
def test_a_method_is_read_by_its_needs_or_by_a_read_rule_that_names_it(
    listing: list[Any], plain: bool, clerk: bool, hr: bool
) -> None:
    @node("JOB#{job_id}", access=[read(where={"public": True}), *listing, write(role="hr")])
    class Job:
        job_id: ID
        public: bool
        title: str
        pay: int = stored(access=[read(role="hr")])

        @field(needs=("pay", "title"))
        def band(self) -> str:
            return f"{self.title} {self.pay}"

    job = Graph(TABLE, Job).check().types["Job"]
    seen = KnownRecord(job, ("1",), {"PK": "JOB#1", "SK": "JOB#1", "job_id": "1", "public": True})
    for roles, is_allowed in (("none", plain), ("clerk", clerk), ("hr", hr)):
        assert Permissions({"roles": roles}).allows(seen, "read", "band") == is_allowed


def test_what_a_list_fixes_decides_before_anything_is_read() -> None:
    found, path = Permissions({"sub": "1"}), shop.node_lists[USER.name, "orders"]
    decision = found.decision(ORDER)
    assert not isinstance(decision, bool)
    rule = Rule(path, decision)
    assert rule.names == ["customer.user_id"]
    assert (rule.left(("1",)), rule.left(("2",))) == (True, False)
    assert (found.is_decided_by_key(path), found.is_decided_by_key(ORDER)) == (True, False)


def test_comparisons_with_claims() -> None:
    @node(
        "DOC#{doc_id}",
        access=[
            read(where={"or": [{"owner": viewer("sub")}, {"public": True}]}),
            update(where={"not": {"owner": {"in": [viewer("sub"), "nobody"]}}}),
            delete(where={"level": {"lte": viewer("level")}, "marks": {"contains": viewer("team")}}),
            create(where={"owner": {"ne": viewer("sub")}}),
        ],
    )
    class Doc:
        doc_id: ID
        owner: str
        public: bool
        level: int
        marks: set[str] | None = None

    doc = Graph(TABLE, Doc).check().types["Doc"]
    public, owned = Eq(("public",), True), Eq(("owner",), "a")
    nobody, known = Permissions(), Permissions({"sub": "a", "level": "3", "team": ["x"]})
    assert nobody.decision(doc) == public
    assert [nobody.decision(doc, action) for action in ("update", "delete", "create")] == [
        Not(Eq(("owner",), "nobody")),
        False,
        False,
    ]
    assert known.decision(doc) != public
    assert known.decision(doc, "update") == Not(In(("owner",), ("nobody", "a")))
    assert known.decision(doc, "create") == Not(owned)
    assert Permissions({"level": "high", "team": "x"}).decision(doc, "delete") is False
    assert isinstance(known.decision(doc, "delete"), And)


@pytest.mark.parametrize("compared", ["eq", "ne", "in", "gte", "beginsWith", "contains"])
def test_an_empty_claim_is_a_missing_one(compared: str) -> None:
    """Every text begins with an empty one."""
    team = {"team": {compared: viewer("team")}}

    @node("DOC#{doc_id}", access=[read(where=team), update(where={"not": team})])
    class Doc:
        doc_id: ID
        team: str

    doc = Graph(TABLE, Doc).check().types["Doc"]
    for empty in ("", [""], [None, ""]):
        found = Permissions({"team": empty})
        assert (found.decision(doc), found.decision(doc, "update")) == (False, False)


def test_a_field_that_is_missing_is_its_default() -> None:
    @node("DOC#{doc_id}", access=[read(where={"public": {"ne": True}}), update(where={"public": True})])
    class Doc:
        doc_id: ID
        public: bool = True

    doc, found = Graph(TABLE, Doc).check().types["Doc"], Permissions()
    assert not found.allows(KnownRecord(doc, ("1",), {"PK": "DOC#1", "SK": "DOC#1"}))
    assert found.allows(KnownRecord(doc, ("1",), {"PK": "DOC#1", "SK": "DOC#1"}), "update")


def test_the_wall_of_a_graph() -> None:
    @fields(access=[read()])
    class OfTenant:
        tenant_id: ID

    @node("T#{tenant_id}", "P#{project_id}", access=[read(role="admin"), write(role="admin")])
    class Project(OfTenant):
        project_id: ID

    @node("COUNTRY#{code}", access=[read()])
    class Country:
        code: ID

    @node("T#{tenant_id}", "NOTE#{note_id}")
    class Note(OfTenant):
        note_id: ID

    rules = [read(where={"tenant_id": viewer("tenant")}), read(role="root")]
    types = Graph(TABLE, Project, Country, Note, access=rules, shared=[Country]).check().types
    wall = Eq(("tenant_id",), "t")
    found = Permissions({"tenant": "t"})
    assert found.decision(types["Project"]) is False
    assert found.decision(types["Note"]) == wall
    assert found.decision(types["Country"]) is True
    assert found.decision(types["Note"], "update") is False
    admin = Permissions({"tenant": "t", "roles": ["admin"]})
    assert admin.decision(types["Project"]) == wall
    assert admin.decision(types["Project"], "update") == wall
    assert Permissions({"roles": ["root"]}).decision(types["Project"]) is False
    [wrong] = Graph(TABLE, Project, Country, access=rules).mistakes
    assert str(wrong) == (
        "Country: the graph's access rule 1 cannot be met: Country has no field tenant_id. "
        "Add the field, or write Graph(shared=[Country]) and give it rules of its own."
    )


def test_the_wall_knows_the_keys_of_ends() -> None:
    @node("T#{tenant_id}", "P#{project_id}")
    class Project:
        tenant_id: ID
        project_id: ID

        tasks: Many[Task]

    @record("T#{project.tenant_id}", "P#{project.project_id}#TASK#{number}")
    class Task:
        project: Project
        number: int

    graph = Graph(TABLE, Project, Task, access=[read(where={"tenant_id": viewer("tenant")})]).check()
    found = Permissions({"tenant": "t"})
    assert found.decide(KnownRecord(graph.types["Task"], ("t", "1", "1"))) is True
    assert found.decide(KnownRecord(graph.types["Task"], ("u", "1", "1"))) is False


def test_what_a_type_says_nothing_of_is_not_open_behind_the_wall() -> None:
    def mistakes(*rules: Any) -> list[str]:
        @node("T#{tenant_id}", "NOTE#{number}", access=[*rules])
        class Note:
            tenant_id: ID
            number: int

        own = {"tenant_id": viewer("tenant")}
        return [*map(str, Graph(TABLE, Note, access=[read(where=own), write(where=own)]).mistakes)]

    assert mistakes() == mistakes(read(), write(role="editor")) == []
    [found] = mistakes(read(role="editor"))
    assert "do not mention create and update and delete: everybody whom the graph's own rules let in" in found
    assert "create() if that is meant" in found
    [found] = mistakes(write(role="editor"))
    assert "do not mention read" in found


def test_without_rules_there_is_nothing_to_decide() -> None:
    @node("A#{a_id}")
    class A:
        a_id: ID

    @node("B#{b_id}", access=[read()])
    class B:
        b_id: ID

    assert not Graph(TABLE, A).has_access_rules
    assert Permissions().decision(Graph(TABLE, A).check().types["A"]) is True
    graph = Graph(TABLE, A, B).check()
    assert graph.has_access_rules
    assert Permissions({"roles": ["root"]}).decision(graph.types["A"]) is False


def _wrong(**access: Any) -> str:
    @node("USER#{user_id}")
    class Person:
        user_id: ID

    @edge("{one}", "LIKES#{other.user_id}", by_day("{day}", "{one}"), access=access.get("type", [read()]))
    class Likes:
        one: Person
        other: Person = stored(access=access.get("end", []))
        day: str = stored(access=access.get("field", []))
        size: int = 0
        status: Status = Status.PAID

    return "; ".join(mistake.problem for mistake in Graph(TABLE, Person, Likes).mistakes)


@pytest.mark.parametrize(
    ("access", "told"),
    [
        ({"type": read()}, "is not a list of rules"),
        ({"type": ["read"]}, "is not a list of rules"),
        ({"type": [read(where={"nothing": 1})]}, "Likes has no field nothing"),
        ({"type": [read(fields=["nothing"])]}, "Likes has no field nothing"),
        ({"type": [read(fields=[])]}, "nobody can satisfy it: fields= is empty"),
        ({"type": [read(role="")]}, "role='' is not a list of names"),
        ({"type": [read(role=[])]}, "nobody can satisfy it: role= is empty"),
        ({"type": [read(where={})]}, "where={} is not a mapping of fields to comparisons"),
        ({"type": [read(where={"size": "big"})]}, "size.eq='big' is not a value of type int"),
        ({"type": [read(where={"size": {"like": 1}})]}, "size has no like"),
        ({"type": [read(where={"size": {"in": []}})]}, "nobody can satisfy it"),
        (
            {"type": [read(where={"one": viewer("sub"), "and": [{"size": {"in": []}}]})]},
            "nobody can satisfy it",
        ),
        ({"type": [read(where={"one": {"name": "x"}})]}, "one.name is no key field of Person"),
        (
            {"type": [read(where={"day": {"between": {"from": viewer("a"), "to": "b"}}})]},
            "day.between takes no claim",
        ),
        (
            {"type": [read(where={"size": 1})]},
            "by-day does not project size, which decides who may read Likes.",
        ),
        (
            {"field": [read(where={"not": {"size": 1}})]},
            "by-day does not project size, which decides who may read Likes.day.",
        ),
        ({"type": [create()]}, ""),
        ({"end": [read()]}, "it is part of the key of Likes, which everybody who sees the record knows"),
        ({"field": [delete()]}, "a field is not deleted: use update()"),
        ({"field": [read(fields=["day"])]}, "fields= is for the rules of a type"),
    ],
)
def test_rules_that_cannot_be_meant(access: Any, told: str) -> None:
    assert told in _wrong(**access)
    assert told or not _wrong(**access)


def test_rules_of_writes_that_there_are_not() -> None:
    @node("A#{a_id}", writes=["create"], access=[update(role="x")])
    class A:
        a_id: ID

    [wrong] = Graph(TABLE, A).mistakes
    assert "there is no mutation of A for it" in wrong.problem


def test_conditions_on_what_a_key_loses() -> None:
    from keygraph import Format

    @node("USER#{name:lower}", access=[read(where={"name": viewer("sub")})])
    class Person:
        name: str

    [wrong] = Graph(TABLE, Person, formats={"lower": Format(str.lower)}).mistakes
    assert "in a lossy form" in wrong.problem


def test_a_link_that_is_no_key_lookup_is_a_mistake() -> None:
    def told(*where: Mapping[str, Any], **rules: Any) -> list[str]:
        @node("USER#{user_id}", access=[read()])
        class User:
            user_id: ID

        @node("GROUP#{group_id}", access=[read(where=each, **rules) for each in where])
        class Group:
            group_id: ID
            memberships: Many[Membership] = many()
            posts: Many[Post] = many()

        @edge("{group}", "MEMBER#{user.user_id}", access=[read(where={"group": {"posts": {"post_id": "1"}}})])
        class Membership:
            group: Group
            user: User
            role: str

        @node("POST#{post_id}", by_customer("{group}", "{post_id}"), access=[read()])
        class Post:
            post_id: ID
            group: Group

        made = Graph(TABLE, User, Group, Membership, Post)
        return [f"{each.where}: {each.problem}" for each in made.mistakes if each.where == "Group"]

    found = told(
        {"memberships": {"role": "admin"}},
        {"memberships": {"user": {"ne": viewer("sub")}}},
        {"memberships": {"user": viewer("sub"), "color": 1}},
        {"memberships": viewer("sub")},
        {"posts": {"post_id": viewer("sub")}},
        {"memberships": {"user": ""}},
    )
    lookup = 'Group: its access rule {} cannot be used: memberships is no key lookup: it does not say which user_id of Membership, by eq or in, such as {{"user": {{"user_id": "…"}}}}; it is in the key.'
    assert found[0] == lookup.format(1)
    assert found[1] == lookup.format(2)
    assert "Membership has no field color" in found[2]
    assert "is not a mapping of fields of Membership" in found[3]
    assert "posts is not a key lookup: the key of Post does not contain its Group" in found[4]
    assert "no key of Membership has '' in it" in found[5]
    assert told({"memberships": {"user": viewer("sub")}}, fields=["memberships"]) == []
    assert told({"memberships": {"user": viewer("sub"), "role": {"in": ["a", "b"]}}}) == []


def test_what_other_items_decide_is_said_of_a_type() -> None:
    @node("USER#{user_id}", access=[read()])
    class User:
        user_id: ID

    @node("GROUP#{group_id}", access=[read()])
    class Group:
        group_id: ID
        plan: str = stored(access=[read(where={"memberships": {"user": viewer("sub")}})])
        memberships: Many[Membership] = many()

    @edge("{group}", "MEMBER#{user.user_id}", access=[read()])
    class Membership:
        group: Group
        user: User

    [mistake] = Graph(TABLE, User, Group, Membership).mistakes
    assert mistake.where == "Group.plan"
    assert "only rules of a type do: write it there, with fields=['plan']" in mistake.problem


def test_rules_that_contradict_themselves_or_each_other_are_mistakes() -> None:
    def told(rules: list[Any], of_field: list[Any] | None = None, wall: list[Any] | None = None) -> list[str]:
        @node("THING#{thing_id}", access=rules)
        class Thing:
            thing_id: ID
            status: Status
            size: int
            tenant: str
            price: int = stored(default=0, access=of_field or [])

        made = Graph(TABLE, Thing, access=wall or [])
        return [f"{each.where}: {each.problem}" for each in made.mistakes]

    never: list[Mapping[str, Any]] = [
        {"and": [{"status": Status.PENDING}, {"status": Status.PAID}]},
        {"status": {"eq": Status.PAID, "ne": Status.PAID}},
        {"size": {"gt": 5, "lte": 5}},
        {"size": {"in": [1, 2], "gte": 3}},
        {"not": {"or": [{"size": {"exists": True}}, {"size": {"exists": False}}]}},
        {
            "and": [
                {"status": Status.PAID},
                {"or": [{"status": Status.PENDING}, {"size": {"lt": 1, "gt": 2}}]},
            ]
        },
    ]
    for where in never:
        assert told([read(where=where)]) == [
            "Thing: its access rule 1 cannot be used: nobody can satisfy it."
        ], where
    possible: list[Mapping[str, Any]] = [
        {"and": [{"status": Status.PENDING}, {"size": {"gt": 1, "lt": 3}}]},
        {"or": [{"and": [{"size": 1}, {"size": 2}]}, {"size": 3}]},
        {"size": {"gte": 5, "lte": 5}},
        {"not": {"status": Status.PAID}},
        {"and": [{"tenant": viewer("a")}, {"tenant": viewer("b")}]},
    ]
    for where in possible:
        assert told([read(where=where)]) == [], where
    excluded = "its access rule {} allows nothing: {} let nobody read what it is about."
    of_type, of_graph = "the rules of Thing", "the graph's own rules"
    support, audit = read(role="support"), read(role="audit")
    assert told([support], [audit]) == [f"Thing.price: {excluded.format(1, of_type)}"]
    assert told([support, read(where={"size": 1})], [audit]) == []
    assert told([support], [read(role=["audit", "support"])]) == []
    paid, pending = read(where={"status": Status.PAID}), read(where={"status": Status.PENDING})
    assert told([paid], [paid, pending]) == [f"Thing.price: {excluded.format(2, of_type)}"]
    assert told([paid, pending], wall=[paid]) == [f"Thing: {excluded.format(2, of_graph)}"]
    assert told([paid, read()], wall=[pending, paid]) == []


def test_a_rule_about_an_end_that_is_wrong_itself() -> None:
    @node("A#{a_id}", access=[read()])
    class A:
        a_id: ID

    @record("{a}", "LOG#{number}", access=[read(where={"a": viewer("sub")})])
    class Log:
        a: A
        number: int
        about: Other

    @record("{a}", "OTHER#{number}", access=[read()])
    class Other:
        a: A
        number: int

    found = Graph(TABLE, A, Log, Other).mistakes
    assert [(each.where, each.problem) for each in found] == [("Log.about", "Other is not a node.")]


def test_a_rule_about_a_node_whose_key_is_wrong() -> None:
    @node("A#{a_id}", access=[read()])
    class A:
        a_id: list[str]
        logs: Many[Log]

    @record(
        "{a}",
        "LOG#{number}",
        access=[read(where={"a": viewer("sub")}), read(where={"a": {"logs": {"number": 1}}})],
    )
    class Log:
        a: A
        number: int

    wall = [read(where={"a_id": viewer("sub")})]
    for found in (Graph(TABLE, A, Log), Graph(TABLE, A, Log, access=wall)):
        assert "A" in {each.where.partition(".")[0] for each in found.mistakes}
