"""Employees, their titles and states: one index finds employees by name, title and state.

From the labs of AWS (amazon-dynamodb-labs, global secondary index key overloading).
"""

from __future__ import annotations

from datetime import date

from keygraph import ID, Graph, Index, Many, Table, node, record

gsi1 = Index("GSI_1", "GSI_1_PK", "GSI_1_SK")


@node("e#{employee_id}", "root", gsi1("root", "{name}", lists="employees"))
class Employee:
    employee_id: ID
    name: str
    hire_date: date
    titles: Many[Title]
    former_titles: Many[FormerTitle]
    states: Many[State]


@record(
    "{employee}",
    "current_title#{title}",
    gsi1("current_title#{title}", "{name}", lists="employees_with_title"),
)
class Title:
    employee: Employee
    title: str
    name: str


@record(
    "{employee}",
    "previous_title#{title}",
    gsi1("previous_title#{title}", "{name}", lists="employees_once_with_title"),
)
class FormerTitle:
    employee: Employee
    title: str
    name: str


@record("{employee}", "state#{state}", gsi1("state#{state}", "{name}", lists="employees_in"))
class State:
    employee: Employee
    state: str
    name: str


graph = Graph(
    Table("employees", partition_key="PK", sort_key="SK", indexes=[gsi1]), Employee, Title, FormerTitle, State
)

ITEMS = """
{"PK": "e#129", "SK": "root", "GSI_1_PK": "root", "GSI_1_SK": "Rhianna Cohen", "hire_date": "1995-07-01"}
{"PK": "e#129", "SK": "current_title#Director", "GSI_1_PK": "current_title#Director", "GSI_1_SK": "Rhianna Cohen"}
{"PK": "e#129", "SK": "previous_title#System Architect", "GSI_1_PK": "previous_title#System Architect", "GSI_1_SK": "Rhianna Cohen"}
{"PK": "e#129", "SK": "state#CA", "GSI_1_PK": "state#CA", "GSI_1_SK": "Rhianna Cohen"}
{"PK": "e#146", "SK": "root", "GSI_1_PK": "root", "GSI_1_SK": "Davy Ivens", "hire_date": "2010-02-16"}
{"PK": "e#146", "SK": "current_title#System Architect", "GSI_1_PK": "current_title#System Architect", "GSI_1_SK": "Davy Ivens"}
{"PK": "e#146", "SK": "state#CA", "GSI_1_PK": "state#CA", "GSI_1_SK": "Davy Ivens"}
"""

ASKED = """
Query all employees of a state
{ employeesIn(state: "CA") { nodes { employee { employeeId hireDate } name } } }
{"employeesIn": {"nodes": [{"employee": {"employeeId": "146", "hireDate": "2010-02-16"}, "name": "Davy Ivens"}, {"employee": {"employeeId": "129", "hireDate": "1995-07-01"}, "name": "Rhianna Cohen"}]}}

Query all employees with one specific current title
{ employeesWithTitle(title: "System Architect") { nodes { employee { employeeId } } } }
{"employeesWithTitle": {"nodes": [{"employee": {"employeeId": "146"}}]}}

Query all employees who had ever one specific title
{ now: employeesWithTitle(title: "System Architect") { nodes { name } } before: employeesOnceWithTitle(title: "System Architect") { nodes { name } } }
{"now": {"nodes": [{"name": "Davy Ivens"}]}, "before": {"nodes": [{"name": "Rhianna Cohen"}]}}

Query employees by name
{ employees(name: {eq: "Rhianna Cohen"}) { nodes { employeeId titles { nodes { title } } states { nodes { state } } } } }
{"employees": {"nodes": [{"employeeId": "129", "titles": {"nodes": [{"title": "Director"}]}, "states": {"nodes": [{"state": "CA"}]}}]}}
"""
