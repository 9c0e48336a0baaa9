"""Ends of several types: what the declaration means, and how keys are read."""

from __future__ import annotations

from datetime import date
from typing import Optional, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keygraph import ID, Graph, Index, Many, Table, field, many, node, record, stored
from keygraph.dynamo.items import Item
from keygraph.errors import BadUserInput, CorruptItem
from keygraph.lists.query import ListForm
from keygraph.lists.ranges import beginning_with
from keygraph.model.instances import instance
from keygraph.model.records import RecordType
from tests.keygraph.checked import TABLE, by_date
from tests.keygraph.union_members import Company, Organization, Person, User

by_holder = Index("ByHolder", "Holder", "PK")


def types_of(*types: type) -> dict[str, RecordType]:
    return dict(Graph(TABLE, *types, type_attribute="Type").check().types)


# --- What is declared ---------------------------------------------------------------------------------


def test_every_spelling_is_a_union() -> None:
    @node("THING#{thing_id}")
    class Thing:
        thing_id: ID
        a: User | Organization
        b: User | Organization | None
        c: Optional[User | Organization]  # noqa: UP045
        d: Union[Organization, User, None]  # noqa: UP007
        e: User | Organization | User
        f: Organization

    ends = types_of(User, Organization, Thing)["Thing"].ends
    shown = {
        name: ("Or".join(member.name for member in end.members), end.optional) for name, end in ends.items()
    }
    assert shown == {
        "a": ("UserOrOrganization", False),
        "b": ("UserOrOrganization", True),
        "c": ("UserOrOrganization", True),
        "d": ("OrganizationOrUser", True),
        "e": ("UserOrOrganization", False),
        "f": ("Organization", False),
    }
    assert {name: dict(end.attributes) for name, end in ends.items() if name in "af"} == {
        "a": {(): ("a_id",)},
        "f": {("country",): ("f_country",), ("number",): ("f_number",)},
    }


def test_a_union_has_one_name() -> None:
    @node("THING#{thing_id}")
    class Thing:
        thing_id: ID
        a: Organization | User
        b: User | Organization
        c: Person | User | Organization

        @field(needs=("a",))
        def first(self) -> Company | User:
            raise NotImplementedError

    graph = Graph(TABLE, User, Organization, Person, Company, Thing, type_attribute="Type").check()
    names = ["Or".join(member.name for member in members) for members in graph.unions.values()]
    assert names == ["OrganizationOrUser", "PersonOrUserOrOrganization", "CompanyOrUser"]


# --- Reading ------------------------------------------------------------------------------------------


@record("{holder}", "CARD#{card_id}", by_date("{issuer}", "{day}"))
class Card:
    card_id: ID
    holder: User | Organization
    issuer: Organization | User | None = stored(in_key=True)
    lender: User | Organization | None = stored("Lender")
    day: date


def _end(card: RecordType, name: str, item: Item) -> tuple[list[str], tuple[str, ...]] | None:
    identity = card.end_identity(item, card.ends[name])
    if identity is None:
        return None
    members, own = card.ends[name].nodes(identity)
    return [member.name for member in members], own


def test_an_end_is_read_from_where_it_stands() -> None:
    card = types_of(User, Organization, Card)["Card"]
    item: Item = {
        "PK": "ORG#IS#007",
        "SK": "CARD#1",
        "DatePK": "USER#ann",
        "DateSK": "2024-01-01",
        "Lender": "USER#bob",
    }
    assert _end(card, "holder", item) == (["Organization"], ("IS", "007"))
    assert _end(card, "issuer", item) == (["User"], ("ann",))
    assert _end(card, "lender", item) == (["User"], ("bob",))
    assert _end(card, "issuer", {**item, "issuer_id": "ORG#NO#001"}) == (["Organization"], ("NO", "001"))
    assert _end(card, "lender", {**item, "Lender": None}) is None
    with pytest.raises(CorruptItem, match=r"Card\.lender of an item is not a key of User or Organization"):
        card.end_identity({**item, "Lender": "ORG#NO#1"}, card.ends["lender"])
    whole = card.completed(item)
    assert (whole["holder_id"], whole["issuer_id"]) == ("ORG#IS#007", "USER#ann")
    made = instance(card, item)
    assert (type(made.holder), made.holder.number) == (Organization, 7)
    assert (type(made.issuer), made.issuer.user_id) == (User, "ann")


def test_a_special_key_goes_first() -> None:
    @node("{name}")
    class Team:
        name: ID

    @record("X#{holder}", "CUP")
    class Cup:
        holder: Team | User

    made = Graph(TABLE, Team, User, Cup, type_attribute="Type").check()
    cup = made.types["Cup"]
    assert _end(cup, "holder", {"PK": "X#USER#1", "SK": "CUP"}) == (["User"], ("1",))
    assert _end(cup, "holder", {"PK": "X#USR", "SK": "CUP"}) == (["Team"], ("USR",))


# --- Paths --------------------------------------------------------------------------------------------


def test_an_index_on_the_attribute_of_a_union() -> None:
    @node("USER#{user_id}")
    class User:
        user_id: ID
        phones: Many[Phone] = many()

    @node("PHONE#{phone_id}")
    class Phone:
        phone_id: ID
        holder: User | Organization | None = stored("Holder")

    table = Table("Tests", partition_key="PK", sort_key="SK", indexes=[by_holder])
    graph = Graph(table, User, Organization, Phone, type_attribute="Type").check()
    phones = ListForm(graph, graph.node_lists["User", "phones"]).of(("1",))
    assert (phones.path.keys.index, phones.partitions, phones.prefix) == (by_holder, ("USER#1",), "PHONE#")


def test_a_key_field_that_all_members_have() -> None:
    @node("GROUP#{user_id}")
    class Group:
        user_id: ID
        posts: Many[Post] = many()

    @node("POST#{author.user_id}#{number}", by_date("{author}", "BY#{author.user_id}#{number}"))
    class Post:
        author: User | Group
        number: int

    @record("{post}", "LIKE#{post.author.user_id}#{at}")
    class Like:
        post: Post
        at: date

    graph = Graph(TABLE, User, Group, Post, Like, type_attribute="Type").check()
    path = graph.node_lists["Group", "posts"]
    posts = ListForm(graph, path).of(("1",))
    assert (path.keys.index_name, posts.partitions) == ("ByDate", ("GROUP#1",))
    assert posts.reading.span == beginning_with("BY#1#")
    assert graph.types["Post"].leaf_name(("author", "user_id")) == "author_user_id"


def test_ids_under_a_union_keep_the_law_of_ids() -> None:
    @node("USER#{user_id}")
    class User:
        user_id: ID

    @node("ORG#{org_id}")
    class Organization:
        org_id: ID

    @record("ORG#{org_id}", "DEED#{number}")
    class Deed:
        org_id: ID
        number: ID

    @node("{owner}", "DEED#A#{name}")
    class Title:
        owner: User | Organization
        name: ID

    graph = Graph(TABLE, User, Organization, Deed, Title, type_attribute="Type").check()
    title = graph.types["Title"]
    assert graph.table_keys(title, ("USER#1", "x")) == [("USER#1", "DEED#A#x")]
    graph.check_identity(title, ("USER#1", "x"))
    graph.check_identity(title, ("ORG#1", "x"))
    graph = Graph(TABLE, User, Organization, Deed, Title).check()
    item: Item = {"PK": "ORG#1", "SK": "DEED#A#x"}
    assert graph.recognise(item) is graph.types["Title"]


def test_a_union_inside_the_key_of_a_node() -> None:
    @node("BADGE#{owner}")
    class Badge:
        owner: User | Organization
        worn: Many[Wear] = many()

    @record("{badge}#WORN", "{day}", by_date("{seen?}", "{badge}"))
    class Wear:
        badge: Badge
        day: date
        seen: User | Badge | None = stored(in_key=True)

    graph = Graph(TABLE, User, Organization, Badge, Wear, type_attribute="Type").check()
    badge, wear = graph.types["Badge"], graph.types["Wear"]
    worn = ListForm(graph, graph.node_lists[badge.name, "worn"]).of(("ORG#IS#007",))
    assert worn.partitions == ("BADGE#ORG#IS#007#WORN",)
    item: Item = {
        "PK": "BADGE#ORG#IS#007#WORN",
        "SK": "2024-01-01",
        "DatePK": "BADGE#USER#ann",
        "DateSK": "BADGE#ORG#IS#007",
    }
    assert _end(wear, "badge", item) == (["Badge"], ("ORG#IS#007",))
    assert _end(wear, "seen", item) == (["Badge"], ("USER#ann",))
    assert _end(wear, "seen", {**item, "DatePK": "BADGE#ann"}) is None
    seen = instance(wear, item).seen
    assert (type(seen.owner), seen.owner.user_id) == (User, "ann")


# --- Laws ---------------------------------------------------------------------------------------------


@node("U{user_id}")
class Short:
    user_id: ID


@node("{number}")
class Numbered:
    number: int


@node("{owner}-{name}", "{owner}/{name}")
class Owned:
    owner: Short | Numbered
    name: ID


LAWFUL = Graph(TABLE, Short, Numbered, Owned, type_attribute="Type").check()


@given(st.text("U1-a", min_size=1, max_size=4), st.text("U1-a", min_size=1, max_size=3))
def test_what_is_rendered_is_parsed_alike_or_refused(owner: str, name: str) -> None:
    owned = LAWFUL.types["Owned"]
    try:
        LAWFUL.check_identity(owned, (owner, name))
    except BadUserInput:
        return
    [(partition, sort)] = LAWFUL.table_keys(owned, (owner, name))
    item: Item = {"PK": partition, "SK": sort, "Type": "Owned"}
    assert LAWFUL.recognise(item) is owned
    assert owned.read_identity(item) == (owner, name)
    identity = owned.end_identity(item, owned.ends["owner"])
    assert identity == (owner,)
    [member], own = owned.ends["owner"].nodes(identity)
    assert owned.ends["owner"].identity_of(member, own) == identity
