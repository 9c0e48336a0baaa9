"""Ends of several types: what the declaration means, how keys are read, and what can be wrong."""

from __future__ import annotations

from datetime import date
from typing import Optional, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keygraph import ID, Graph, Index, Many, ModelError, Table, edge, field, many, node, record, stored
from keygraph.errors import BadUserInput, CorruptItem
from keygraph.items import Item
from keygraph.listing import bind
from keygraph.naming import union_name
from keygraph.records import RecordType
from keygraph.table import IndexKey
from tests.keygraph.checked import TABLE, by_date, mistakes

inverted = Index("Inverted", "SK", "PK")
by_holder = Index("ByHolder", "Holder", "PK")


@node("USER#{user_id}")
class User:
    user_id: ID


@node("ORG#{country}#{number:03d}")
class Organization:
    country: ID
    number: int


@node("ACCOUNT#{login}")
class Person:
    login: ID


@node("ACCOUNT#{login}")
class Company:
    login: ID


def types_of(*types: type, table: Table = TABLE) -> dict[str, RecordType]:
    return dict(Graph(table, *types, type_attribute="Type").check().types)


# --- What is declared ---------------------------------------------------------------------------------


def test_every_spelling_is_a_union() -> None:
    """A union that is written as Python allows would be no end, or no optional one."""

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
    shown = {name: (union_name(end.members), end.optional) for name, end in ends.items()}
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
    """The same members in another order would be another type of the schema."""

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
    names = [union_name(members) for members in graph.unions.values()]
    assert names == ["OrganizationOrUser", "PersonOrUserOrOrganization", "CompanyOrUser"]


# --- Reading ------------------------------------------------------------------------------------------


@record("{holder}", "CARD#{card_id}", by_date("{issuer}", "{day}"))
class Card:
    card_id: ID
    holder: User | Organization
    issuer: Organization | User | None
    lender: User | Organization | None = stored("Lender")
    day: date


def _end(card: RecordType, name: str, item: Item) -> tuple[list[str], tuple[str, ...]] | None:
    identity = card.end_identity(item, card.ends[name])
    if identity is None:
        return None
    members, own = card.ends[name].nodes(identity)
    return [member.name for member in members], own


def test_an_end_is_read_from_where_it_stands() -> None:
    """The holder of a card would be unknown where its key alone tells it, or an attribute."""
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
    with pytest.raises(CorruptItem, match=r"Card\.lender of an item is no key of User or Organization"):
        card.end_identity({**item, "Lender": "ORG#NO#1"}, card.ends["lender"])
    whole = card.completed(item)
    assert (whole["holder_id"], whole["issuer_id"]) == ("ORG#IS#007", "USER#ann")
    made = card.instance(item)
    assert (type(made.holder), made.holder.number) == (Organization, 7)
    assert (type(made.issuer), made.issuer.user_id) == (User, "ann")


def test_where_keys_are_alike_only_reading_tells() -> None:
    """A company would be taken for a person."""

    @record("{owner}", "SITE#{site_id}")
    class Site:
        site_id: ID
        owner: Person | Company
        admin: Company | Person | None
        other: Company | User | Person | None

    site = types_of(Person, Company, User, Site)["Site"]
    item: Item = {
        "PK": "ACCOUNT#x",
        "SK": "SITE#1",
        "Type": "Site",
        "admin_id": "y",
        "other_id": "ACCOUNT#z",
    }
    assert _end(site, "owner", item) == (["Person", "Company"], ("x",))
    assert _end(site, "admin", item) == (["Company", "Person"], ("y",))
    assert _end(site, "other", item) == (["Company", "Person"], ("z",))
    assert _end(site, "other", {**item, "other_id": "USER#z"}) == (["User"], ("z",))
    owner = site.instance(item).owner
    assert owner.login == "x"
    assert not isinstance(owner, Person | Company)


def test_a_special_key_goes_first() -> None:
    """A user would be taken for a team whose name is any text."""

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


def test_paths_from_each_member() -> None:
    """A list of one of the types would read the keys of another."""

    @node("USER#{user_id}")
    class User:
        user_id: ID
        cards: Many[Card] = many()
        held: Many[Share] = many()

    @node("ORG#{country}#{number:03d}")
    class Organization:
        country: ID
        number: int
        cards: Many[Card] = many()
        held: Many[Share] = many()

    @record("{holder}#CARDS", "{card_id}")
    class Card:
        card_id: ID
        holder: User | Organization

    @edge("{fund}", "{owner}", inverted())
    class Share:
        fund: Fund
        owner: User | Organization

    @node("FUND#{fund_id}")
    class Fund:
        fund_id: ID
        shares: Many[Share] = many()

    table = Table("Tests", partition_key="PK", sort_key="SK", indexes=[inverted])
    graph = Graph(table, User, Organization, Card, Share, Fund, type_attribute="Type").check()
    user, organization, fund = (graph.types[name] for name in ("User", "Organization", "Fund"))
    assert bind(graph, graph.path(user, "cards"), ("1",)).partitions == ("USER#1#CARDS",)
    assert bind(graph, graph.path(organization, "cards"), ("IS", "007")).partitions == ("ORG#IS#007#CARDS",)
    assert bind(graph, graph.path(organization, "held"), ("IS", "007")).partitions == ("ORG#IS#007",)
    shares = graph.path(fund, "shares")
    assert (shares.far_end, shares.nodes) == ("owner", (user, organization))
    assert shares.finds_by_node


def test_an_index_on_the_attribute_of_a_union() -> None:
    """An index on the attribute that holds the key of the one or the other would be no path."""

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
    phones = bind(graph, graph.path(graph.types["User"], "phones"), ("1",))
    assert (phones.index_name, phones.partitions, phones.prefix) == ("ByHolder", ("USER#1",), "PHONE#")


def test_a_key_field_that_all_members_have() -> None:
    """A key of a field that each of the types has could not be written, or would list another type's items."""

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
    posts = bind(graph, graph.path(graph.types["Group"], "posts"), ("1",))
    assert (posts.index_name, posts.partitions, posts.prefix) == ("ByDate", ("GROUP#1",), "BY#1#")
    assert graph.types["Post"].leaf_name(("author", "user_id")) == "author_user_id"


def test_ids_under_a_union_keep_the_law_of_ids() -> None:
    """The key of one member's would be that of another type, or would be refused for the sake of another member."""

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
    """A node whose own key is made of another one's, of several types, could stand in no key."""

    @node("BADGE#{owner}")
    class Badge:
        owner: User | Organization
        worn: Many[Wear] = many()

    @record("{badge}#WORN", "{day}", by_date("{seen?}", "{badge}"))
    class Wear:
        badge: Badge
        day: date
        seen: User | Badge | None

    graph = Graph(TABLE, User, Organization, Badge, Wear, type_attribute="Type").check()
    badge, wear = graph.types["Badge"], graph.types["Wear"]
    worn = bind(graph, graph.path(badge, "worn"), ("ORG#IS#007",))
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
    seen = wear.instance(item).seen
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
    """The owner that was written would not be the owner that is read."""
    owned = LAWFUL.types["Owned"]
    try:
        LAWFUL.check_identity(owned, (owner, name))
    except BadUserInput:
        return
    [(partition, sort)] = LAWFUL.table_keys(owned, (owner, name))
    item: Item = {"PK": partition, "SK": sort, "Type": "Owned"}
    assert LAWFUL.recognise(item) is owned
    assert owned.identity_of(item) == (owner, name)
    identity = owned.end_identity(item, owned.ends["owner"])
    assert identity == (owner,)
    [member], own = owned.ends["owner"].nodes(identity)
    assert owned.ends["owner"].identity_of(member, own) == identity


# --- Mistakes -----------------------------------------------------------------------------------------


def test_members_that_cannot_be() -> None:
    """A member that is no node would be found by the first query."""

    @record("{user}", "LOG#{day}")
    class Log:
        user: User
        day: date

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        a: User | Log
        b: User | str
        c: User | Person
        d: Many[User | Organization] = many()

    assert mistakes(Post, User, Organization, Log) == [
        "Post.a: Log is no node. Each member of a union is a node that the graph lists.",
        "Post.b: str is no node. Each member of a union is a node that the graph lists.",
        "Post.c: Person is not listed in the graph. Each member of a union is a node that the graph lists.",
        "Post.d: a list is of one record type, not of User or Organization. "
        "Declare a list of each, or the edge that joins this node to them: its end may be the union.",
    ]


def template_mistakes(member: type, *keys: str | IndexKey) -> list[str]:
    """What `check` says of a node with an end that is a user or another type."""
    annotations = {"post_id": ID, "owner": User | member}
    cls = type("Post", (), {"__annotations__": annotations, "__module__": __name__})
    return mistakes(node(*keys)(cls), User, member)


def _member(*keys: str, **options: bool) -> type:
    @node(*keys, **options)  # type: ignore[arg-type]
    class Club:
        club_id: ID
        user_id: ID
        number: int

    return Club


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            ("USER#{club_id}",),
            "Post.owner: the keys of User and Club are alike, and name their fields differently. "
            "Name the key fields alike, or give the keys literal text of their own.",
        ),
        (
            ("USER#{user_id}", "CLUB#{user_id}"),
            "Post.owner: a partition key can be of User and Club: USER#{user_id} and USER#{user_id}. "
            "Give each a literal prefix of its own, or make the keys alike.",
        ),
        (
            ("{club_id}#X",),
            "Post.owner: a partition key can be of User and Club: USER#{user_id} and {club_id}#X. "
            "Give each a literal prefix of its own, or make the keys alike.",
        ),
        (
            ("CLUB#{club_id}", "{number}"),
            "Post.owner: the partition key of Club does not identify it, and so does not tell which node it is. "
            "Put all its key fields into its partition template.",
        ),
    ],
)
def test_members_that_are_not_told_apart(keys: tuple[str, ...], said: str) -> None:
    """The owner of a post would be one node or another."""
    assert said in template_mistakes(_member(*keys), "POST#{post_id}")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("{owner.club_id}", "{owner.club_id} is no field of User. Its fields are user_id."),
        (
            "{owner.user_id}",
            "{owner.user_id} names no key field of Club. A template can name club_id.",
        ),
    ],
)
def test_a_field_that_not_all_members_have(key: str, said: str) -> None:
    """A key would have no text where the owner is of the other type."""
    assert template_mistakes(_member("CLUB#{club_id}"), f"POST#{key}#{{post_id}}") == [
        f'Post: the template "POST#{key}#{{post_id}}": {said}'
    ]


def test_a_field_that_is_written_differently() -> None:
    """A key would have two texts for one field."""

    @node("SEAT#{number:03d}")
    class Seat:
        number: int

    @node("DESK#{number:04d}")
    class Desk:
        number: int

    @record("AT#{place.number}", "{day}")
    class Booking:
        place: Seat | Desk
        day: date

    assert mistakes(Seat, Desk, Booking) == []

    @node("ROOM#{number}")
    class Room:
        number: ID

    @record("AT#{place.number}", "{day}")
    class Meeting:
        place: Seat | Room
        day: date

    assert mistakes(Seat, Room, Meeting) == [
        'Meeting: the template "AT#{place.number}": {place.number} does not stand alike in the keys of '
        "Seat and Room. Give it one type and one format in all of them."
    ]


def test_alike_keys_need_a_type() -> None:
    """Only reading tells alike keys apart, and then nothing would."""

    @record("{owner}", "SITE#{site_id}")
    class Site:
        site_id: ID
        owner: Person | Company

    assert mistakes(Person, Company, Site, type_attribute=None) == [
        "Person: its items cannot be told from those of Company: they say no type, and a key can be of both "
        "(ACCOUNT#{login} / ACCOUNT#{login} and ACCOUNT#{login} / ACCOUNT#{login}). "
        "Give one of them a type value or a literal prefix of its own."
    ]

    @node("ACCOUNT#{login}", item=False)
    class Ghost:
        login: ID

    @record("{owner}", "SITE#{site_id}")
    class Haunt:
        site_id: ID
        owner: Person | Ghost

    assert mistakes(Person, Ghost, Haunt) == [
        "Haunt.owner: the keys of Person and Ghost are alike, and there is no item of Ghost that tells its type. "
        "Give Ghost a key of its own."
    ]


def test_one_attribute_holds_the_key() -> None:
    """Attributes for each key field would not say of which type the node is."""

    @node("POST#{post_id}")
    class Post:
        post_id: ID
        owner: User | Organization = stored(user_id="UserId", number="OrgNumber")

    assert mistakes(Post, User, Organization) == [
        "Post.owner: one attribute holds the key of a User or Organization, which tells the type. "
        'Write stored("name").'
    ]


def test_names_that_collide() -> None:
    """Two types of the schema would have one name, and one of them be lost."""

    @node("UO#{user_id}")
    class UserOrOrganization:
        user_id: ID
        a: User | Organization
        b: User | PersonOrCompany
        c: User | Person | Company
        a_id: str | None

    @node("PC#{user_id}")
    class PersonOrCompany:
        user_id: ID

    found = mistakes(UserOrOrganization, PersonOrCompany, User, Organization, Person, Company)
    assert found == [
        "the union of User and Organization: the schema's name UserOrOrganization is that of UserOrOrganization too. "
        "Rename one.",
        "the union of User and Person and Company: the schema's name UserOrPersonOrCompany is that of the union of "
        "User and PersonOrCompany too. Rename one.",
    ]


def test_all_mistakes_are_told_at_once() -> None:
    """A second mistake would be told only when the first one is mended."""

    @node("POST#{owner}#{post_id}")
    class Post:
        post_id: ID
        owner: User | Member
        editor: User | Member
        reader: User | Person

    @node("USER#{member_id}")
    class Member:
        member_id: ID

    with pytest.raises(ModelError) as caught:
        Graph(TABLE, Post, User, Member, Person, type_attribute="Type").check()
    assert [mistake.where for mistake in caught.value.mistakes] == ["Post.owner", "Post.editor"]
