"""The guide's billing example: the two questions that its table and its index answer.

The guide shows its items in figures alone, so those of the sample are made from its words.
"""

from __future__ import annotations

import pytest

from keygraph_examples.billing import graph
from keygraph_resolvers import build_schema
from tests.conftest import MakeStore
from tests.documents.samples import files_of, serve, types_of
from tests.documents.served import Served, counted

INVOICE = "GetItem Invoice-92551 / Invoice-92551"
BILL = "GetItem Bill-4224687 / Bill-4224687"
INVOICES = "Query by-sort-key: SK = Bill-4224687 AND begins_with(PK, Invoice-)"
PARTS = (
    "BatchGetItem Invoice-92551 / Bill-4224687, Invoice-92552 / Bill-4224687, Invoice-92553 / Bill-4224687"
)


@pytest.fixture
async def sample(make_store: MakeStore) -> Served:
    return await serve(graph, make_store, *files_of("billing"))


def test_every_item_is_of_a_declared_type() -> None:
    assert files_of("billing") == ["billing.described.jsonl"]
    assert types_of(graph, *files_of("billing")) == {"Invoice": 3, "Bill": 3, "InvoiceBill": 5}


class TestInvoices:
    async def test_all_bills_of_an_invoice(self, sample: Served) -> None:
        assert await sample.ask("""{ invoice(invoiceId: "92551") {
          customer issuedOn dueOn
          bills { totalCount edges { amount note node { billId service billedOn total } } }
        } }""") == {
            "invoice": {
                "customer": "Northwind Traders",
                "issuedOn": "2024-02-01",
                "dueOn": "2024-03-02",
                "bills": {
                    "totalCount": 2,
                    "edges": [
                        {
                            "amount": "120",
                            "note": None,
                            "node": {
                                "billId": "4224663",
                                "service": "Line rental",
                                "billedOn": "2024-01-31",
                                "total": "120",
                            },
                        },
                        {
                            "amount": "450",
                            "note": "First half",
                            "node": {
                                "billId": "4224687",
                                "service": "Installation",
                                "billedOn": "2024-01-31",
                                "total": "900",
                            },
                        },
                    ],
                },
            }
        }
        assert sample.sent == [
            "BatchGetItem Bill-4224663 / Bill-4224663, Bill-4224687 / Bill-4224687",
            counted("Query: PK = Invoice-92551 AND begins_with(SK, Bill-)"),
            INVOICE,
            "Query: PK = Invoice-92551 AND begins_with(SK, Bill-)",
        ]


class TestBills:
    async def test_all_invoices_that_contain_a_part_of_a_bill(self, sample: Served) -> None:
        assert await sample.ask("""{ bill(billId: "4224687") {
          total invoices { totalCount edges { amount node { invoiceId } } }
        } }""") == {
            "bill": {
                "total": "900",
                "invoices": {
                    "totalCount": 3,
                    "edges": [
                        {"amount": "450", "node": {"invoiceId": "92551"}},
                        {"amount": "300", "node": {"invoiceId": "92552"}},
                        {"amount": "150", "node": {"invoiceId": "92553"}},
                    ],
                },
            }
        }
        assert sample.sent == [counted(INVOICES), BILL, INVOICES]

    async def test_what_the_index_lacks_is_fetched_if_it_is_selected(self, sample: Served) -> None:
        assert await sample.ask("""{ bill(billId: "4224687") {
          invoices { edges { amount note node { invoiceId } } }
        } }""") == {
            "bill": {
                "invoices": {
                    "edges": [
                        {"amount": "450", "note": "First half", "node": {"invoiceId": "92551"}},
                        {
                            "amount": "300",
                            "note": "Second half, less what Fabrikam pays",
                            "node": {"invoiceId": "92552"},
                        },
                        {"amount": "150", "note": None, "node": {"invoiceId": "92553"}},
                    ]
                }
            }
        }
        assert sample.sent == [PARTS, BILL, INVOICES]

    async def test_a_page_fetches_what_it_shows(self, sample: Served) -> None:
        assert await sample.ask("""{ bill(billId: "4224687") {
          invoices(first: 1, direction: DESC) { edges { note amount } pageInfo { hasNextPage } }
        } }""") == {
            "bill": {
                "invoices": {
                    "edges": [{"note": None, "amount": "150"}],
                    "pageInfo": {"hasNextPage": True},
                }
            }
        }
        assert sample.sent == [
            BILL,
            "GetItem Invoice-92553 / Bill-4224687",
            f"{INVOICES}, backward",
        ]

    async def test_the_invoices_themselves(self, sample: Served) -> None:
        assert await sample.ask("""{ bill(billId: "4224687") {
          service invoices(where: {amount: {gte: "300"}}) { edges { amount node { invoiceId customer dueOn } } }
        } }""") == {
            "bill": {
                "service": "Installation",
                "invoices": {
                    "edges": [
                        {
                            "amount": "450",
                            "node": {
                                "invoiceId": "92551",
                                "customer": "Northwind Traders",
                                "dueOn": "2024-03-02",
                            },
                        },
                        {
                            "amount": "300",
                            "node": {
                                "invoiceId": "92552",
                                "customer": "Northwind Traders",
                                "dueOn": "2024-03-31",
                            },
                        },
                    ]
                },
            }
        }
        assert sample.sent == [
            "BatchGetItem Invoice-92551 / Invoice-92551, Invoice-92552 / Invoice-92552",
            BILL,
            f"{INVOICES}, of these Amount >= 300",
        ]

    def test_a_filter_is_offered_on_what_the_index_has(self) -> None:
        schema = build_schema(graph).as_str()
        _, _, after = schema.partition("input BillInvoicesWhere {")
        offered, _, _ = after.partition("}")
        assert "amount:" in offered
        assert "note:" not in offered


class TestNested:
    async def test_invoices_with_their_bills_and_those_bills_invoices(self, sample: Served) -> None:
        assert await sample.ask("""{ invoice(invoiceId: "92552") { bills { nodes {
          service invoices { edges { amount node { invoiceId customer } } }
        } } } }""") == {
            "invoice": {
                "bills": {
                    "nodes": [
                        {
                            "service": "Installation",
                            "invoices": {
                                "edges": [
                                    {
                                        "amount": "450",
                                        "node": {"invoiceId": "92551", "customer": "Northwind Traders"},
                                    },
                                    {
                                        "amount": "300",
                                        "node": {"invoiceId": "92552", "customer": "Northwind Traders"},
                                    },
                                    {
                                        "amount": "150",
                                        "node": {"invoiceId": "92553", "customer": "Fabrikam"},
                                    },
                                ]
                            },
                        },
                        {
                            "service": "Data traffic",
                            "invoices": {
                                "edges": [
                                    {
                                        "amount": "75.5",
                                        "node": {"invoiceId": "92552", "customer": "Northwind Traders"},
                                    }
                                ]
                            },
                        },
                    ]
                }
            }
        }
        assert sample.sent == [
            "BatchGetItem Bill-4224687 / Bill-4224687, Bill-4224702 / Bill-4224702",
            "BatchGetItem Invoice-92551 / Invoice-92551, Invoice-92553 / Invoice-92553",
            "GetItem Invoice-92552 / Invoice-92552",
            INVOICES,
            "Query by-sort-key: SK = Bill-4224702 AND begins_with(PK, Invoice-)",
            "Query: PK = Invoice-92552 AND begins_with(SK, Bill-)",
        ]
