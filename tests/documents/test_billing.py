"""The guide's billing example: the two questions that its table and its index answer.

The guide shows its items in figures alone, so those of the sample are made from its words.
"""

from __future__ import annotations

from keygraph_examples.billing import graph
from keygraph_resolvers import build_schema
from tests.conftest import MakeStore, in_one_world
from tests.documents.samples import files_of, serve
from tests.documents.served import Pattern, patterns

SAMPLE = """
All bills of an invoice
{ invoice(invoiceId: "92551") {
  customer issuedOn dueOn
  bills { totalCount edges { amount note node { billId service billedOn total } } } } }
{"invoice": {"customer": "Northwind Traders", "issuedOn": "2024-02-01", "dueOn": "2024-03-02",
  "bills": {"totalCount": 2, "edges": [{"amount": "120", "note": null,
  "node": {"billId": "4224663", "service": "Line rental", "billedOn": "2024-01-31", "total": "120"}},
  {"amount": "450", "note": "First half", "node": {"billId": "4224687", "service": "Installation",
  "billedOn": "2024-01-31", "total": "900"}}]}}}
BatchGetItem Bill-4224663 / Bill-4224663, Bill-4224687 / Bill-4224687
Count: PK = Invoice-92551 AND SK BETWEEN Bill-\0 AND Bill-\U0010ffff
GetItem Invoice-92551 / Invoice-92551
Query: PK = Invoice-92551 AND begins_with(SK, Bill-)

All invoices that contain a part of a bill
{ bill(billId: "4224687") { total invoices { totalCount edges { amount node { invoiceId } } } } }
{"bill": {"total": "900", "invoices": {"totalCount": 3, "edges": [
  {"amount": "450", "node": {"invoiceId": "92551"}}, {"amount": "300", "node": {"invoiceId": "92552"}},
  {"amount": "150", "node": {"invoiceId": "92553"}}]}}}
Count by-sort-key: SK = Bill-4224687 AND PK BETWEEN Invoice-\0 AND Invoice-\U0010ffff
GetItem Bill-4224687 / Bill-4224687
Query by-sort-key: SK = Bill-4224687 AND begins_with(PK, Invoice-)

What the index lacks is fetched if it is selected
{ bill(billId: "4224687") { invoices { edges { amount note node { invoiceId } } } } }
{"bill": {"invoices": {"edges": [{"amount": "450", "note": "First half", "node": {"invoiceId": "92551"}},
  {"amount": "300", "note": "Second half, less what Fabrikam pays", "node": {"invoiceId": "92552"}},
  {"amount": "150", "note": null, "node": {"invoiceId": "92553"}}]}}}
BatchGetItem Invoice-92551 / Bill-4224687, Invoice-92552 / Bill-4224687, Invoice-92553 / Bill-4224687
GetItem Bill-4224687 / Bill-4224687
Query by-sort-key: SK = Bill-4224687 AND begins_with(PK, Invoice-)

A page fetches what it shows
{ bill(billId: "4224687") {
  invoices(first: 1, direction: DESC) { edges { note amount } pageInfo { hasNextPage } } } }
{"bill": {"invoices": {"edges": [{"note": null, "amount": "150"}], "pageInfo": {"hasNextPage": true}}}}
GetItem Bill-4224687 / Bill-4224687
GetItem Invoice-92553 / Bill-4224687
Query by-sort-key: SK = Bill-4224687 AND begins_with(PK, Invoice-), backward

The invoices themselves
{ bill(billId: "4224687") {
  service invoices(where: {amount: {gte: "300"}}) { edges { amount node { invoiceId customer dueOn } } } } }
{"bill": {"service": "Installation", "invoices": {"edges": [
  {"amount": "450", "node": {"invoiceId": "92551", "customer": "Northwind Traders", "dueOn": "2024-03-02"}},
  {"amount": "300", "node": {"invoiceId": "92552", "customer": "Northwind Traders",
  "dueOn": "2024-03-31"}}]}}}
BatchGetItem Invoice-92551 / Invoice-92551, Invoice-92552 / Invoice-92552
GetItem Bill-4224687 / Bill-4224687
Query by-sort-key: SK = Bill-4224687 AND begins_with(PK, Invoice-), of these Amount >= 300

Invoices with their bills, and those bills' invoices
{ invoice(invoiceId: "92552") { bills { nodes {
  service invoices { edges { amount node { invoiceId customer } } } } } } }
{"invoice": {"bills": {"nodes": [{"service": "Installation",
  "invoices": {"edges": [{"amount": "450", "node": {"invoiceId": "92551", "customer": "Northwind Traders"}},
  {"amount": "300", "node": {"invoiceId": "92552", "customer": "Northwind Traders"}},
  {"amount": "150", "node": {"invoiceId": "92553", "customer": "Fabrikam"}}]}},
  {"service": "Data traffic", "invoices": {"edges": [{"amount": "75.5",
  "node": {"invoiceId": "92552", "customer": "Northwind Traders"}}]}}]}}}
BatchGetItem Bill-4224687 / Bill-4224687, Bill-4224702 / Bill-4224702
BatchGetItem Invoice-92551 / Invoice-92551, Invoice-92553 / Invoice-92553
GetItem Invoice-92552 / Invoice-92552
Query by-sort-key: SK = Bill-4224687 AND begins_with(PK, Invoice-)
Query by-sort-key: SK = Bill-4224702 AND begins_with(PK, Invoice-)
Query: PK = Invoice-92552 AND begins_with(SK, Bill-)
"""


@in_one_world("pattern", patterns(SAMPLE))
async def test_each_question_is_answered(make_store: MakeStore, pattern: Pattern) -> None:
    await (await serve(graph, make_store, *files_of("billing"))).answers(pattern)


def test_a_filter_is_offered_on_what_the_index_has() -> None:
    schema = build_schema(graph).as_str()
    _, _, after = schema.partition("input BillInvoicesWhere {")
    offered, _, _ = after.partition("}")
    assert "amount:" in offered
    assert "note:" not in offered
