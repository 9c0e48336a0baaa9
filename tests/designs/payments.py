"""Recurring payments: two indexes on dates find what is due, and project a part of the item.

From the schema examples of AWS (aws-dynamodb-examples, recurring payments).
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from keygraph import ID, Epoch, Graph, Index, Many, Table, node, record, stored

reminders = Index(
    "GSI-1", "NextReminderDate", "LastReminderDate", projection=["SKU", "Email", "NextPaymentDate"]
)
payments = Index(
    "GSI-2", "NextPaymentDate", "LastPaymentDate", projection=["Email", "PaymentDay", "PaymentAmount", "SKU"]
)


@node("ACC#{account_id}", item=False)
class Account:
    account_id: ID
    subscriptions: Many[Plan]
    receipts: Many[Receipt]


@node(
    "{account}",
    "SUB#{subscription_id}#SKU#{sku}",
    reminders(lists="due_reminders"),
    payments(lists="due_payments"),
)
class Plan:
    """A subscription: GraphQL has that name for itself."""

    account: Account
    subscription_id: ID
    sku: ID = stored("SKU")
    email: str
    payment_day: int
    payment_amount: Decimal
    next_reminder_date: date
    last_reminder_date: date
    next_payment_date: date
    last_payment_date: date


@record("{account}", "REC#{processed_date}#SKU#{sku}")
class Receipt:
    account: Account
    processed_date: date
    sku: str = stored("SKU")
    processed_amount: Decimal
    expires: datetime = stored("TTL", format=Epoch())


graph = Graph(
    Table("ReoccuringPayments", partition_key="PK", sort_key="SK", indexes=[reminders, payments]),
    Account,
    Plan,
    Receipt,
    attribute_case="pascal",
)

ITEMS = """
{"PK": "ACC#123", "SK": "SUB#123#SKU#999", "SKU": "999", "Email": "a@x.org", "PaymentDay": 28, "PaymentAmount": 12.99, "NextReminderDate": "2023-06-21", "LastReminderDate": "2023-05-21", "NextPaymentDate": "2023-06-28", "LastPaymentDate": "2023-05-28"}
{"PK": "ACC#123", "SK": "SUB#124#SKU#888", "SKU": "888", "Email": "a@x.org", "PaymentDay": 1, "PaymentAmount": 5, "NextReminderDate": "2023-06-24", "LastReminderDate": "2023-05-24", "NextPaymentDate": "2023-07-01", "LastPaymentDate": "2023-06-01"}
{"PK": "ACC#456", "SK": "SUB#123#SKU#999", "SKU": "999", "Email": "b@x.org", "PaymentDay": 28, "PaymentAmount": 12.99, "NextReminderDate": "2023-06-21", "LastReminderDate": "2023-05-20", "NextPaymentDate": "2023-06-28", "LastPaymentDate": "2023-05-27"}
{"PK": "ACC#123", "SK": "REC#2023-05-28#SKU#999", "SKU": "999", "ProcessedDate": "2023-05-28", "ProcessedAmount": 12.99, "TTL": 1703721600}
"""

ASKED = """
Get all subscriptions for an account
{ account(accountId: "123") { subscriptions { nodes { subscriptionId sku paymentAmount } } } }
{"account": {"subscriptions": {"nodes": [{"subscriptionId": "123", "sku": "999", "paymentAmount": "12.99"}, {"subscriptionId": "124", "sku": "888", "paymentAmount": "5"}]}}}

Get all receipts for an account
{ account(accountId: "123") { receipts { nodes { processedDate processedAmount expires } } } }
{"account": {"receipts": {"nodes": [{"processedDate": "2023-05-28", "processedAmount": "12.99", "expires": "2023-12-28T00:00:00Z"}]}}}

Get specific subscription details
{ plan(accountId: "123", subscriptionId: "124", sku: "888") { email paymentDay nextReminderDate } }
{"plan": {"email": "a@x.org", "paymentDay": 1, "nextReminderDate": "2023-06-24"}}

Find accounts needing reminders for a specific date
{ dueReminders(nextReminderDate: "2023-06-21") { nodes { account { accountId } sku email nextPaymentDate } } }
{"dueReminders": {"nodes": [{"account": {"accountId": "456"}, "sku": "999", "email": "b@x.org", "nextPaymentDate": "2023-06-28"}, {"account": {"accountId": "123"}, "sku": "999", "email": "a@x.org", "nextPaymentDate": "2023-06-28"}]}}

Find accounts with payments due on a specific date
{ duePayments(nextPaymentDate: "2023-06-28") { nodes { account { accountId } paymentAmount lastPaymentDate } } }
{"duePayments": {"nodes": [{"account": {"accountId": "456"}, "paymentAmount": "12.99", "lastPaymentDate": "2023-05-27"}, {"account": {"accountId": "123"}, "paymentAmount": "12.99", "lastPaymentDate": "2023-05-28"}]}}

Create new subscription
mutation { createPlan(input: {accountId: "456", subscriptionId: "200", sku: "777", email: "b@x.org", paymentDay: 2, paymentAmount: 3, nextReminderDate: "2023-06-25", lastReminderDate: "2023-05-25", nextPaymentDate: "2023-07-02", lastPaymentDate: "2023-06-02"}) { plan { account { subscriptions { nodes { sku } } } } } }
{"createPlan": {"plan": {"account": {"subscriptions": {"nodes": [{"sku": "999"}, {"sku": "777"}]}}}}}

Create new receipt
mutation { putReceipt(input: {accountId: "456", processedDate: "2023-06-28", sku: "999", processedAmount: 12.99, expires: "2024-01-01T00:00:00Z"}) { receipt { account { receipts { nodes { processedDate } } } } } }
{"putReceipt": {"receipt": {"account": {"receipts": {"nodes": [{"processedDate": "2023-06-28"}]}}}}}

Update subscription
mutation { updatePlan(input: {accountId: "456", subscriptionId: "123", sku: "999", lastPaymentDate: "2023-06-28", nextPaymentDate: "2023-07-28"}) { plan { lastPaymentDate } } }
{"updatePlan": {"plan": {"lastPaymentDate": "2023-06-28"}}}

Find accounts with payments due, after the update
{ duePayments(nextPaymentDate: "2023-06-28") { nodes { account { accountId } } } }
{"duePayments": {"nodes": [{"account": {"accountId": "123"}}]}}
"""
