"""Mirrors and counterparts: the other item of an edge, and the lists of an edge that has one."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from keygraph import ID, CorruptItem, Format, Graph, Index, Many, Table, edge, field, many, node, stored
from keygraph.dynamo.items import Item
from keygraph.model.counterparts import Counterpart

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


def test_a_mirror_of_ends_whose_keys_are_partly_attributes() -> None:
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
    found = other(INVOICES, OF_CUSTOMER)
    assert found.record.name == "InvoiceCustomer"
    keys = {
        attribute.name: template.render(found.texts)
        for of in found.record.keys.values()
        for attribute, template in zip(of.attributes, of.templates, strict=True)
    }
    assert {**keys, **found.attributes} == OF_INVOICE


def test_an_item_that_tells_no_counterpart_says_which_field() -> None:
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
    found = other(graph, FRIENDSHIP)
    mirror: Item = {"PK": "USER#b", "SK": "FRIEND#a", **found.attributes, **change}
    correspondence = graph.correspondences["Friendship"]
    assert list(correspondence.differences(FRIENDSHIP, mirror)) == differing
    assert list(correspondence.differences(mirror, FRIENDSHIP)) == differing


def test_a_counterpart_may_have_what_the_edge_has_not() -> None:
    both = INVOICES.correspondences
    assert list(both["CustomerInvoice"].differences(OF_CUSTOMER, {**OF_INVOICE, "reference": "x"})) == []
    changed: Item = {**OF_INVOICE, "amount": Decimal("99.6")}
    assert list(both["CustomerInvoice"].differences(OF_CUSTOMER, changed)) == ["amount"]
    assert list(both["InvoiceCustomer"].differences(changed, OF_CUSTOMER)) == ["amount"]


def test_counterparts_have_attributes_of_their_own() -> None:
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


def test_both_ends_in_indexes_are_no_choice_either() -> None:
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
    path = pairs.node_lists["Person", "friends"]
    assert (path.end, path.far_end, path.keys.index_name) == ("one", "two", "ByOne")
