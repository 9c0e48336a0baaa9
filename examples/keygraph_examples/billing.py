"""Invoices and bills: the table of the adjacency-list pattern in DynamoDB's guide to many-to-many relationships.

An invoice contains several bills, and a bill can belong in several invoices. A bill's partition has what is known of
the bill. An invoice's partition has an item for the invoice itself, and one for each bill that rolls up to it. All
bills of an invoice are thus one Query of the table. The other way round there is an index on the table's sort key, in
which all invoices that contain a part of a bill stand together. It projects the amounts alone: whoever asks for more
of such an item makes one more request.

The guide also says that a scheduled process can add up what is in a graph. `keygraph summarize` is that process here: it
computes what an invoice comes to, and how much of a bill is in invoices.

The guide shows its table in figures, so no item of it is quoted here: `billing.described.jsonl` is made from its words.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from keygraph import ID, Graph, Index, Many, Table, counts, edge, node, sums, top

by_sort_key = Index("by-sort-key", "SK", "PK", projection=["Amount"])


@node("Invoice-{invoice_id}")
class Invoice:
    """What a customer is asked to pay."""

    invoice_id: ID
    customer: str
    """Who pays it."""
    issued_on: date
    due_on: date
    """The last day to pay it."""

    bills: Many[InvoiceBill]
    """What it consists of: bills, each with the part of it that is in this invoice."""

    bill_count: int | None = counts("bills", kept="job")
    """How many bills it has a part of, counted by `keygraph summarize`."""
    amount: Decimal | None = sums("bills.amount", kept="job")
    """What it comes to."""


@node("Bill-{bill_id}")
class Bill:
    """What is charged for one service. Its amount may be spread over several invoices."""

    bill_id: ID
    service: str
    """What was provided."""
    billed_on: date
    total: Decimal
    """The whole amount, in all invoices together."""

    invoices: Many[InvoiceBill]
    """The invoices that contain a part of it."""

    invoiced: Decimal | None = sums("invoices.amount", kept="job")
    """How much of it is in invoices."""
    largest: list[ID] | None = top("invoices.amount", 3)
    """The three invoices that contain most of it."""


@edge("{invoice}", "{bill}")
class InvoiceBill:
    """A bill rolls up to an invoice, in full or in part."""

    invoice: Invoice
    bill: Bill
    amount: Decimal
    """How much of the bill is in the invoice."""
    note: str | None
    """What the invoice says about it."""
    # The index lacks it: from a bill's side it is fetched if it is asked for.


graph = Graph(
    Table("Billing", partition_key="PK", sort_key="SK", indexes=[by_sort_key]),
    Invoice,
    Bill,
    InvoiceBill,
    attribute_case="pascal",
    store_key_fields=False,
)
