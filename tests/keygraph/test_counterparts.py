"""Mirrors and counterparts: the other item of an edge, and the lists of an edge that has one."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from keygraph import ID, CorruptItem, Format, Graph, Index, Many, Table, edge, field, many, node, stored
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite
from keygraph.model.counterparts import Counterpart
from keygraph_resolvers import Service, build_schema
from tests.conftest import MakeStore

by_day = Index("ByDay", "DayPK", "DaySK")


@node("USER#{user_id}", "PROFILE")
class User:
    user_id: ID
    friends: Many[Friendship] = many(at="friend")
    newest_friends: Many[Friendship] = many(index=by_day)


@edge("{user}", "FRIEND#{friend.user_id}", by_day("{user}", "{since}#{friend}"), mirror=True)
class Friendship:
    user: User = stored("userId")
    friend: User = stored("info", "friendId")
    introduced_by: User | None
    since: date


@node("TEAM#{tenant}", "T#{number}")
class Team:
    tenant: str
    number: int


@edge("PEER#{one.tenant}#{one.number}", "{day}#{other.number}", mirror=True)
class Peer:
    """The second team's tenant is stored, and stands in no key."""

    one: Team = stored(tenant="tenant", number="number")
    other: Team = stored(tenant="otherTenant", number="otherNumber")
    day: date

    @field(needs=("day",))
    def month(self) -> str:
        return f"{self.day:%Y-%m}"


@node("CUSTOMER#{customer_id}")
class Customer:
    customer_id: ID


@node("INVOICE#{invoice_id}")
class Invoice:
    invoice_id: int


@edge("{customer}", "INVOICE#{issued}#{invoice.invoice_id:06d}", counterpart="InvoiceCustomer")
class CustomerInvoice:
    customer: Customer
    invoice: Invoice
    issued: datetime
    amount: Decimal = stored("money", "amount")
    is_pinned: bool | None
    """Of this one alone."""


@edge("{invoice}", "FOR#{payer.customer_id:lower}", by_day("{month}", "{invoice}"))
class InvoiceCustomer:
    payer: Customer = stored("PayerId")
    invoice: Invoice
    issued: datetime
    amount: Decimal
    reference: str = "none"
    """Of this one alone."""

    @field(needs=("issued",))
    def month(self) -> str:
        return f"M#{self.issued:%Y-%m}"


graph = Graph(
    Table("Net", partition_key="PK", sort_key="SK", indexes=[by_day]),
    User,
    Friendship,
    Team,
    Peer,
    attribute_case="camel",
    type_attribute="Type",
)


def other(of: Graph, item: Item) -> Counterpart:
    """The other item of an edge."""
    record = of.check().recognise(item)
    assert record is not None, of.why_refused(item)
    found = of.counterpart(record, item)
    assert found is not None
    return found


# --- The other item -----------------------------------------------------------------------------------

FRIENDSHIP: Item = {
    "PK": "USER#a",
    "SK": "FRIEND#b",
    "DayPK": "USER#a",
    "DaySK": "2024-02-03#USER#b",
    "Type": "Friendship",
    "userId": "a",
    "info": {"friendId": "b", "note": "of old"},
    "introducedById": "c",
    "since": "2024-02-03",
    "unknown": [Decimal(1)],
}


def test_a_mirror_is_the_same_edge_with_its_ends_exchanged() -> None:
    """The friend's item would say other things than the user's, or lose what no field declares."""
    found = other(graph, FRIENDSHIP)
    assert graph.table_keys(found.record, found.identity) == [("USER#b", "FRIEND#a")]
    assert found.attributes == {
        "Type": "Friendship",
        "userId": "b",
        "info": {"friendId": "a", "note": "of old"},
        "introducedById": "c",
        "since": "2024-02-03",
        "unknown": [Decimal(1)],
    }
    keys = [template.render(found.texts) for template in found.record.keys["ByDay"].templates]
    assert keys == ["USER#b", "2024-02-03#USER#a"]
    # What it was made from stays as it was.
    assert FRIENDSHIP["info"] == {"friendId": "b", "note": "of old"}


def test_the_mirror_of_the_mirror_is_the_item() -> None:
    """Two items would never be found to be each other's."""
    found = other(graph, FRIENDSHIP)
    [(partition, sort)] = graph.table_keys(found.record, found.identity)
    again = other(graph, {"PK": partition, "SK": sort, **found.attributes})
    assert again.attributes.items() <= FRIENDSHIP.items()
    assert graph.table_keys(again.record, again.identity) == [("USER#a", "FRIEND#b")]


def test_a_mirror_stores_what_the_item_stores() -> None:
    """Ids would appear in items of a table that keeps them in keys alone."""
    found = other(graph, {"PK": "USER#a", "SK": "FRIEND#b", "Type": "Friendship", "since": "2024-02-03"})
    assert found.attributes == {"Type": "Friendship", "since": "2024-02-03"}


def test_a_mirror_of_ends_whose_keys_are_partly_attributes() -> None:
    """The reciprocal would stand under another tenant's team."""
    item: Item = {
        "PK": "PEER#acme#7",
        "SK": "2024-02-03#12",
        "Type": "Peer",
        "otherTenant": "globex",
        "otherNumber": Decimal(12),
        "tenant": "acme",
    }
    found = other(graph, item)
    assert graph.table_keys(found.record, found.identity) == [("PEER#globex#12", "2024-02-03#7")]
    assert found.attributes == {
        "Type": "Peer",
        "otherTenant": "acme",
        "otherNumber": Decimal(7),
        "tenant": "globex",
    }


INVOICES = Graph(
    Table("Net", partition_key="PK", sort_key="SK", indexes=[by_day]),
    Customer,
    Invoice,
    CustomerInvoice,
    InvoiceCustomer,
    attribute_case="camel",
    type_attribute="Type",
    formats={"lower": Format(str.lower)},
)
OF_CUSTOMER: Item = {
    "PK": "CUSTOMER#ACME",
    "SK": "INVOICE#2024-02-03T10:00:00Z#000042",
    "Type": "CustomerInvoice",
    "customerId": "ACME",
    "money": {"amount": Decimal("99.5"), "currency": "EUR"},
    "isPinned": True,
}
OF_INVOICE: Item = {
    "PK": "INVOICE#42",
    "SK": "FOR#acme",
    "DayPK": "M#2024-02",
    "DaySK": "INVOICE#42",
    "Type": "InvoiceCustomer",
    "PayerId": "ACME",
    "invoiceId": Decimal(42),
    "issued": "2024-02-03T10:00:00Z",
    "amount": Decimal("99.5"),
}


def test_a_counterpart_has_the_same_nodes_and_the_shared_fields() -> None:
    """The invoice's side would tell another amount, or could not be found from the customer's."""
    found = other(INVOICES, OF_CUSTOMER)
    assert found.record.name == "InvoiceCustomer"
    keys = {
        attribute.name: template.render(found.texts)
        for of in found.record.keys.values()
        for attribute, template in zip(of.attributes, of.templates, strict=True)
    }
    assert {**keys, **found.attributes} == OF_INVOICE


def test_a_counterpart_that_names_nobody_is_kept_in_step_too() -> None:
    """What is written to an invoice's side would leave the customer's as it was."""
    found = other(INVOICES, OF_INVOICE)
    assert found.record.name == "CustomerInvoice"
    assert INVOICES.table_keys(found.record, found.identity) == [
        ("CUSTOMER#ACME", "INVOICE#2024-02-03T10:00:00Z#000042")
    ]
    assert found.attributes == {
        "Type": "CustomerInvoice",
        "customerId": "ACME",
        "invoiceId": Decimal(42),
        "issued": "2024-02-03T10:00:00Z",
        "money": {"amount": Decimal("99.5")},
    }


def test_a_type_without_either_has_no_other_item() -> None:
    """A node would be looked for twice."""
    assert graph.counterpart(graph.types["User"], {"PK": "USER#a", "SK": "PROFILE", "Type": "User"}) is None


def test_an_item_that_tells_no_counterpart_says_which_field() -> None:
    """A write would be refused without a reason."""
    with pytest.raises(CorruptItem, match=r"Friendship.introduced_by of an item is not a key of User"):
        other(graph, {**FRIENDSHIP, "introducedById": True})


# --- Whether two are kept in step ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "differing"),
    [
        ({}, []),
        ({"since": "2024-02-04"}, ["since"]),
        ({"introducedById": "d"}, ["introduced_by"]),
        ({"unknown": [Decimal(2)]}, [""]),
        # A map's other members are no field's.
        ({"info": {"friendId": "a", "note": "new"}}, []),
        # Keys are looked at where they stand.
        ({"DaySK": "2024-02-03#USER#z"}, []),
    ],
)
def test_what_differs_between_an_edge_and_its_mirror(change: Item, differing: list[str]) -> None:
    """Two friends would see different days, and nothing would say so."""
    found = other(graph, FRIENDSHIP)
    mirror: Item = {"PK": "USER#b", "SK": "FRIEND#a", **found.attributes, **change}
    correspondence = graph.correspondences["Friendship"]
    assert list(correspondence.differences(FRIENDSHIP, mirror)) == differing
    assert list(correspondence.differences(mirror, FRIENDSHIP)) == differing


def test_a_counterpart_may_have_what_the_edge_has_not() -> None:
    """Fields of one of the two alone would be told as differences."""
    both = INVOICES.correspondences
    assert list(both["CustomerInvoice"].differences(OF_CUSTOMER, {**OF_INVOICE, "reference": "x"})) == []
    changed: Item = {**OF_INVOICE, "amount": Decimal("99.6")}
    assert list(both["CustomerInvoice"].differences(OF_CUSTOMER, changed)) == ["amount"]
    assert list(both["InvoiceCustomer"].differences(changed, OF_CUSTOMER)) == ["amount"]


def test_counterparts_have_attributes_of_their_own() -> None:
    """Two items that each hold what the other does not, also in a key of an index, could not be declared as a pair."""

    @edge("{user}", "FOLLOWS#{friend.user_id}", counterpart="Followed", writes=["update"])
    class Follows:
        user: User
        friend: User
        since: date
        is_muted: bool

    @edge("{friend}", "BY#{user.user_id}", by_day("SEEN#{seen_on}", "{rank}"), writes=["update"])
    class Followed:
        user: User
        friend: User
        since: date
        seen: datetime
        place: int

        @field(needs=("seen",))
        def seen_on(self) -> str:
            return f"{self.seen:%Y-%m}"

        @field(needs=("place", "since"))
        def rank(self) -> str:
            return f"{self.place:03d}#{self.since}"

    table = Table("Follows", partition_key="PK", sort_key="SK", indexes=[by_day])
    pair = Graph(table, User, Friendship, Follows, Followed, type_attribute="Type").check()
    item: Item = {
        "PK": "USER#a",
        "SK": "FOLLOWS#b",
        "Type": "Follows",
        "since": "2024-02-03",
        "is_muted": True,
    }
    found = other(pair, item)
    assert pair.table_keys(found.record, found.identity) == [("USER#b", "BY#a")]
    assert found.attributes == {"Type": "Followed", "user_id": "a", "friend_id": "b", "since": "2024-02-03"}
    assert {"seen_on", "rank"}.isdisjoint(found.texts)


# --- Reading ------------------------------------------------------------------------------------------


async def test_a_list_of_a_mirror_is_read_from_the_table_whichever_end_is_named(
    make_store: MakeStore,
) -> None:
    """`at="friend"` would ask for the user as an argument, or find nothing without an index of the other end."""
    store = await make_store(graph.table)
    items: list[Item] = [{"PK": f"USER#{name}", "SK": "PROFILE", "Type": "User"} for name in "ab"]
    mirror: Item = {
        **other(graph, FRIENDSHIP).attributes,
        "PK": "USER#b",
        "SK": "FRIEND#a",
        "DayPK": "USER#b",
        "DaySK": "2024-02-03#USER#a",
    }
    await store.send(BatchWrite((*items, FRIENDSHIP, mirror)))
    service = Service(build_schema(graph), store, secret=b"secret")
    for user, friend in (("a", "b"), ("b", "a")):
        edges = "{ edges { since node { userId } } }"
        document = f'{{ user(userId: "{user}") {{ friends {edges} newestFriends {edges} }} }}'
        expected = {"edges": [{"since": "2024-02-03", "node": {"userId": friend}}]}
        answer = await service.execute(document)
        assert answer == {"data": {"user": {"friends": expected, "newestFriends": expected}}}


def test_both_ends_in_indexes_are_no_choice_either() -> None:
    """A mirrored edge would have to say `at=` though both its ends are the same list."""
    by_one, by_two = Index("ByOne", "OnePK", "OneSK"), Index("ByTwo", "TwoPK", "TwoSK")

    @node("PERSON#{person_id}")
    class Person:
        person_id: ID
        friends: Many[Pair] = many()

    @edge(
        "PAIR#{one.person_id}-{two.person_id}",
        "PAIR",
        by_one("{one}", "{two}"),
        by_two("{two}", "{one}"),
        mirror=True,
    )
    class Pair:
        one: Person
        two: Person

    table = Table("Net", partition_key="PK", sort_key="SK", indexes=[by_one, by_two])
    pairs = Graph(table, Person, Pair, type_attribute="Type").check()
    path = pairs.path(pairs.types["Person"], "friends")
    assert (path.end, path.far_end, path.keys.index_name) == ("one", "two", "ByOne")
