"""Employees, orders and products of a manufacturer: an index on the sort key means names, jobs, customers and quarters.

From the Amazon DynamoDB Developer Guide (relational modeling, as an adjacency list).
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import Enum

from keygraph import ID, Graph, Index, Many, One, Table, edge, node, one, record

gsi1 = Index("GSI1", "SK", "Data")
gsi2 = Index("GSI2", "GSI2PK", "Data")


class Status(Enum):
    OPEN = "OPEN"
    CLOSED = "CLOSED"


@node("HR-EMPLOYEE{employee_id}", item=False)
class Employee:
    employee_id: ID
    details: One[Details] = one()
    job: One[Job] = one()
    hired: One[Hiring] = one()
    customers: Many[Customer]
    orders: Many[Represented]


@record("{employee}", "{name:[A-Z][a-z]+ [A-Z][a-z]+}", gsi1("{employee}", lists="employees_named"))
class Details:
    employee: Employee
    name: str
    email: str


@record("{employee}", "HR-CONFIDENTIAL", gsi1("{hire_date}", lists="employees_hired"))
class Hiring:
    employee: Employee
    hire_date: date
    salary: int


@record("{employee}", "JH-{title}", gsi1("{since}", lists="employees_with_job"))
class Job:
    employee: Employee
    title: str
    since: date


@edge("{employee}", "{warehouse}", gsi1("{since}"))
class Assignment:
    employee: Employee
    warehouse: Warehouse
    since: date


@record("{employee}", "{quarter:\\d{4}-Q[1-4]}", gsi1("{total:010d}", lists="representatives"))
class Quota:
    employee: Employee
    quarter: str
    total: int


@node("OE-CUSTOMER{customer_id}", "{representative}", gsi1("{name}"))
class Customer:
    customer_id: ID
    representative: Employee
    name: str


@node("OE-CUSTOMER{customer_id}", item=False)
class Buyer:
    customer_id: ID
    orders: Many[Placed]


@node("OE-ORDER{order_id}", item=False)
class Order:
    order_id: ID
    placed: One[Placed] = one()
    items: Many[OrderItem]


@record(
    "{order}",
    "{buyer}",
    gsi1("{status}-{placed}"),
    gsi2("{shard}", lists="orders", shards=3),
)
class Placed:
    order: Order
    buyer: Buyer
    status: Status
    placed: date


@record("{order}", "{representative}", gsi1("{status}-{placed}"))
class Represented:
    order: Order
    representative: Employee
    status: Status
    placed: date


@node("OE-PRODUCT{product_id}", "PRODUCT{product_id}", gsi1("{name}", lists=False))
class Product:
    product_id: ID
    name: str
    total: int
    order_items: Many[OrderItem]
    stock: Many[Stock]


@record("{order}", "{product}", gsi1("{status}-{placed}"))
class OrderItem:
    order: Order
    product: Product
    status: Status
    placed: date
    quantity: int
    price: Decimal


@edge("{product}", "{warehouse}", gsi1("STOCK{quantity:06d}"))
class Stock:
    product: Product
    warehouse: Warehouse
    quantity: int


@node("OE-WAREHOUSE{warehouse_id}", item=False)
class Warehouse:
    warehouse_id: ID
    employees: Many[Assignment]


graph = Graph(
    Table("OrderEntry", partition_key="PK", sort_key="SK", indexes=[gsi1, gsi2]),
    Employee,
    Details,
    Hiring,
    Job,
    Assignment,
    Quota,
    Customer,
    Buyer,
    Order,
    Placed,
    Represented,
    Product,
    OrderItem,
    Stock,
    Warehouse,
)

ITEMS = """
{"PK": "HR-EMPLOYEE1", "SK": "John Smith", "Data": "HR-EMPLOYEE1", "email": "john@x.org"}
{"PK": "HR-EMPLOYEE1", "SK": "HR-CONFIDENTIAL", "Data": "2015-11-08", "salary": 5000}
{"PK": "HR-EMPLOYEE1", "SK": "JH-Account Manager", "Data": "2016-02-01"}
{"PK": "HR-EMPLOYEE1", "SK": "2017-Q1", "Data": "0000025000"}
{"PK": "HR-EMPLOYEE2", "SK": "Mary Jones", "Data": "HR-EMPLOYEE2", "email": "mary@x.org"}
{"PK": "HR-EMPLOYEE2", "SK": "HR-CONFIDENTIAL", "Data": "2017-03-01", "salary": 4000}
{"PK": "HR-EMPLOYEE2", "SK": "JH-Account Manager", "Data": "2017-03-01"}
{"PK": "HR-EMPLOYEE2", "SK": "OE-WAREHOUSE1", "Data": "2017-03-01"}
{"PK": "HR-EMPLOYEE2", "SK": "2017-Q1", "Data": "0000048000"}
{"PK": "OE-CUSTOMER1", "SK": "HR-EMPLOYEE1", "Data": "Ace Building Supplies"}
{"PK": "OE-CUSTOMER2", "SK": "HR-EMPLOYEE1", "Data": "Boards and More"}
{"PK": "OE-ORDER1", "SK": "OE-CUSTOMER1", "Data": "OPEN-2017-02-03", "GSI2PK": "0"}
{"PK": "OE-ORDER1", "SK": "HR-EMPLOYEE1", "Data": "OPEN-2017-02-03"}
{"PK": "OE-ORDER1", "SK": "OE-PRODUCT1", "Data": "OPEN-2017-02-03", "quantity": 20, "price": 30.5}
{"PK": "OE-ORDER2", "SK": "OE-CUSTOMER1", "Data": "CLOSED-2017-01-10", "GSI2PK": "2"}
{"PK": "OE-ORDER2", "SK": "HR-EMPLOYEE1", "Data": "CLOSED-2017-01-10"}
{"PK": "OE-ORDER3", "SK": "OE-CUSTOMER2", "Data": "OPEN-2017-01-20", "GSI2PK": "1"}
{"PK": "OE-ORDER3", "SK": "HR-EMPLOYEE1", "Data": "OPEN-2017-01-20"}
{"PK": "OE-PRODUCT1", "SK": "PRODUCT1", "Data": "Quickcrete", "total": 120}
{"PK": "OE-PRODUCT1", "SK": "OE-WAREHOUSE1", "Data": "STOCK000050"}
{"PK": "OE-PRODUCT1", "SK": "OE-WAREHOUSE2", "Data": "STOCK000070"}
"""

ASKED = """
1. Employee details by employee id
{ employee(employeeId: "1") { details { name email } hired { hireDate } } }
{"employee": {"details": {"name": "John Smith", "email": "john@x.org"}, "hired": {"hireDate": "2015-11-08"}}}

2. Employee details by employee name
{ employeesNamed(name: "Mary Jones") { nodes { email employee { employeeId job { title } } } } }
{"employeesNamed": {"nodes": [{"email": "mary@x.org", "employee": {"employeeId": "2", "job": {"title": "Account Manager"}}}]}}

3. An employee's current job details
{ employee(employeeId: "1") { job { title since } } }
{"employee": {"job": {"title": "Account Manager", "since": "2016-02-01"}}}

4. Orders of a customer in a date range
{ buyer(customerId: "1") { open: orders(status: {eq: OPEN}, placed: {from: "2017-01-01", to: "2017-03-01"}) { nodes { order { orderId } placed } } closed: orders(status: {eq: CLOSED}, placed: {from: "2017-01-01"}) { nodes { order { orderId } } } } }
{"buyer": {"open": {"nodes": [{"order": {"orderId": "1"}, "placed": "2017-02-03"}]}, "closed": {"nodes": [{"order": {"orderId": "2"}}]}}}

5. All open orders in a date range across all customers
{ orders(status: {eq: OPEN}, placed: {from: "2017-01-01"}) { nodes { order { orderId } buyer { customerId } } } }
{"orders": {"nodes": [{"order": {"orderId": "3"}, "buyer": {"customerId": "2"}}, {"order": {"orderId": "1"}, "buyer": {"customerId": "1"}}]}}

6. Employees hired recently
{ employeesHired(hireDate: {from: "2017-01-01"}) { nodes { employee { employeeId details { name } } } } }
{"employeesHired": {"nodes": [{"employee": {"employeeId": "2", "details": {"name": "Mary Jones"}}}]}}

7. All employees in a warehouse
{ warehouse(warehouseId: "1") { employees { nodes { employeeId details { name } } } } }
{"warehouse": {"employees": {"nodes": [{"employeeId": "2", "details": {"name": "Mary Jones"}}]}}}

8. All order items of a product, and its stock at warehouses
{ product(productId: "1") { orderItems { nodes { quantity price order { orderId } } } stock { edges { quantity node { warehouseId } } } } }
{"product": {"orderItems": {"nodes": [{"quantity": 20, "price": "30.5", "order": {"orderId": "1"}}]}, "stock": {"edges": [{"quantity": 50, "node": {"warehouseId": "1"}}, {"quantity": 70, "node": {"warehouseId": "2"}}]}}}

9. Customers of an account representative
{ employee(employeeId: "1") { customers { nodes { customerId name } } } }
{"employee": {"customers": {"nodes": [{"customerId": "1", "name": "Ace Building Supplies"}, {"customerId": "2", "name": "Boards and More"}]}}}

10. Orders of an account representative by date
{ employee(employeeId: "1") { orders(status: {eq: OPEN}, placed: {from: "2017-02-01"}) { nodes { order { orderId placed { buyer { customerId } } } } } } }
{"employee": {"orders": {"nodes": [{"order": {"orderId": "1", "placed": {"buyer": {"customerId": "1"}}}}]}}}

11. All employees with a job title
{ employeesWithJob(title: "Account Manager") { nodes { employee { employeeId } since } } }
{"employeesWithJob": {"nodes": [{"employee": {"employeeId": "1"}, "since": "2016-02-01"}, {"employee": {"employeeId": "2"}, "since": "2017-03-01"}]}}

12. Stock by product and warehouse
{ product(productId: "1") { stock(warehouseId: {eq: "2"}) { edges { quantity } } } }
{"product": {"stock": {"edges": [{"quantity": 70}]}}}

13. Total stock of a product
{ product(productId: "1") { name total } }
{"product": {"name": "Quickcrete", "total": 120}}

14. Account representatives ranked by order total in a quarter
{ representatives(quarter: "2017-Q1", direction: DESC) { nodes { total employee { details { name } } } } }
{"representatives": {"nodes": [{"total": 48000, "employee": {"details": {"name": "Mary Jones"}}}, {"total": 25000, "employee": {"details": {"name": "John Smith"}}}]}}

A new order
mutation { putPlaced(input: {orderId: "4", buyerCustomerId: "2", status: OPEN, placed: "2017-05-01"}) { placed { buyer { orders { nodes { order { orderId } } } } } } }
{"putPlaced": {"placed": {"buyer": {"orders": {"nodes": [{"order": {"orderId": "3"}}, {"order": {"orderId": "4"}}]}}}}}
"""
