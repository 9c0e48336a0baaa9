"""Employees, their offices and tasks: five indexes, each with a meaning for each type.

From the examples of ElectroDB (tywalch/electrodb, examples/taskManager), in the keys that it writes.
"""

from __future__ import annotations

from enum import Enum

from keygraph import ID, Graph, Index, Many, Table, node, stored

gsi1, gsi2, gsi3, gsi4, gsi5 = (
    Index(f"gsi{n}pk-gsi{n}sk-index", f"gsi{n}pk", f"gsi{n}sk") for n in range(1, 6)
)


class Team(Enum):
    DEVELOPMENT = "development"
    MARKETING = "marketing"


class Status(Enum):
    OPEN = "open"
    IN_PROGRESS = "in-progress"
    CLOSED = "closed"


@node(
    "$task-manager#country_{country}#state_{state}",
    "$office_1#city_{city}#zip_{zip}#officename_{office_name}",
    gsi1("$task-manager#officename_{office_name}", "$workplaces#office_1", finds="office_named"),
    type="Office",
)
class Office:
    country: str
    state: str
    city: str
    zip: str
    office_name: ID
    address: str


@node(
    "$task-manager#employee_{employee_id}",
    "$employee_1",
    gsi1(
        "$task-manager#officename_{office_name}",
        "$workplaces#employee_1#team_{team}#title_{title}#employee_{employee_id}",
        lists="coworkers",
    ),
    gsi2("$task-manager#team_{team}", "$employee_1#datehired_{date_hired}#title_{title}", lists="team"),
    gsi3("$task-manager#employee_{employee_id}", "$assignments#employee_1", lists=False),
    gsi4("$task-manager#title_{title}", "$employee_1#salary_{salary}", lists="employees_with_title"),
    gsi5("$task-manager#manager_{manager.employee_id}", "$employee_1#team_{team}#officename_{office_name}"),
    type="employee",
)
class Employee:
    employee_id: ID = stored("employee")
    first_name: str
    office_name: str
    title: str
    team: Team
    salary: str
    date_hired: str
    manager: Employee | None = stored("manager")
    reports: Many[Employee]
    tasks: Many[Task]


@node(
    "$task-manager#taskname_{task_name}",
    "$task_1#project_{project}#employee_{employee.employee_id}",
    gsi1(
        "$task-manager#project_{project}",
        "$task_1#employee_{employee.employee_id}#status_{status}",
        lists="tasks_of_project",
    ),
    gsi3("{employee}", "$assignments#task_1#project_{project}#status_{status}"),
    gsi4(
        "$task-manager#status_{status}",
        "$task_1#project_{project}#employee_{employee.employee_id}",
        lists="tasks_with_status",
    ),
    type="task",
)
class Task:
    task_name: ID
    project: str
    employee: Employee = stored("employee")
    status: Status
    points: int


graph = Graph(
    Table("electro", partition_key="pk", sort_key="sk", indexes=[gsi1, gsi2, gsi3, gsi4, gsi5]),
    Office,
    Employee,
    Task,
    type_attribute="__edb_e__",
    attribute_case="camel",
)

ITEMS = """
{"pk": "$task-manager#country_us#state_or", "sk": "$office_1#city_portland#zip_97201#officename_hq", "gsi1pk": "$task-manager#officename_hq", "gsi1sk": "$workplaces#office_1", "__edb_e__": "Office", "country": "us", "state": "or", "city": "portland", "zip": "97201", "officeName": "hq", "address": "1 Main St"}
{"pk": "$task-manager#employee_e1", "sk": "$employee_1", "gsi1pk": "$task-manager#officename_hq", "gsi1sk": "$workplaces#employee_1#team_marketing#title_head#employee_e1", "gsi2pk": "$task-manager#team_marketing", "gsi2sk": "$employee_1#datehired_2012-01-01#title_head", "gsi3pk": "$task-manager#employee_e1", "gsi3sk": "$assignments#employee_1", "gsi4pk": "$task-manager#title_head", "gsi4sk": "$employee_1#salary_200000", "__edb_e__": "employee", "employee": "e1", "firstName": "Ann", "officeName": "hq", "title": "head", "team": "marketing", "salary": "200000", "dateHired": "2012-01-01"}
{"pk": "$task-manager#employee_e2", "sk": "$employee_1", "gsi1pk": "$task-manager#officename_hq", "gsi1sk": "$workplaces#employee_1#team_development#title_junior#employee_e2", "gsi2pk": "$task-manager#team_development", "gsi2sk": "$employee_1#datehired_2020-05-01#title_junior", "gsi3pk": "$task-manager#employee_e2", "gsi3sk": "$assignments#employee_1", "gsi4pk": "$task-manager#title_junior", "gsi4sk": "$employee_1#salary_110000", "gsi5pk": "$task-manager#manager_e1", "gsi5sk": "$employee_1#team_development#officename_hq", "__edb_e__": "employee", "employee": "e2", "firstName": "Bo", "officeName": "hq", "title": "junior", "team": "development", "salary": "110000", "dateHired": "2020-05-01", "manager": "e1"}
{"pk": "$task-manager#employee_e3", "sk": "$employee_1", "gsi1pk": "$task-manager#officename_hq", "gsi1sk": "$workplaces#employee_1#team_marketing#title_junior#employee_e3", "gsi2pk": "$task-manager#team_marketing", "gsi2sk": "$employee_1#datehired_2019-03-01#title_junior", "gsi3pk": "$task-manager#employee_e3", "gsi3sk": "$assignments#employee_1", "gsi4pk": "$task-manager#title_junior", "gsi4sk": "$employee_1#salary_090000", "gsi5pk": "$task-manager#manager_e1", "gsi5sk": "$employee_1#team_marketing#officename_hq", "__edb_e__": "employee", "employee": "e3", "firstName": "Cy", "officeName": "hq", "title": "junior", "team": "marketing", "salary": "090000", "dateHired": "2019-03-01", "manager": "e1"}
{"pk": "$task-manager#taskname_paint", "sk": "$task_1#project_135-53#employee_e2", "gsi1pk": "$task-manager#project_135-53", "gsi1sk": "$task_1#employee_e2#status_open", "gsi3pk": "$task-manager#employee_e2", "gsi3sk": "$assignments#task_1#project_135-53#status_open", "gsi4pk": "$task-manager#status_open", "gsi4sk": "$task_1#project_135-53#employee_e2", "__edb_e__": "task", "taskName": "paint", "project": "135-53", "employee": "e2", "status": "open", "points": 8}
{"pk": "$task-manager#taskname_roof", "sk": "$task_1#project_135-53#employee_e3", "gsi1pk": "$task-manager#project_135-53", "gsi1sk": "$task_1#employee_e3#status_open", "gsi3pk": "$task-manager#employee_e3", "gsi3sk": "$assignments#task_1#project_135-53#status_open", "gsi4pk": "$task-manager#status_open", "gsi4sk": "$task_1#project_135-53#employee_e3", "__edb_e__": "task", "taskName": "roof", "project": "135-53", "employee": "e3", "status": "open", "points": 21}
"""

ASKED = """
An office and its staff
{ officeNamed(officeName: "hq") { address city } coworkers(officeName: "hq") { nodes { employeeId title } } }
{"officeNamed": {"address": "1 Main St", "city": "portland"}, "coworkers": {"nodes": [{"employeeId": "e2", "title": "junior"}, {"employeeId": "e1", "title": "head"}, {"employeeId": "e3", "title": "junior"}]}}

An employee and all assigned tasks
{ employee(employeeId: "e2") { firstName tasks { nodes { taskName status points } } } }
{"employee": {"firstName": "Bo", "tasks": {"nodes": [{"taskName": "paint", "status": "OPEN", "points": 8}]}}}

Junior developers making more than 100,000
{ employeesWithTitle(title: "junior", salary: {from: "100001"}) { nodes { firstName salary } } }
{"employeesWithTitle": {"nodes": [{"firstName": "Bo", "salary": "110000"}]}}

Open tasks of a project of at most 13 points
{ tasksWithStatus(status: OPEN, project: {eq: "135-53"}, where: {points: {lte: 13}}) { nodes { taskName employee { firstName } } } }
{"tasksWithStatus": {"nodes": [{"taskName": "paint", "employee": {"firstName": "Bo"}}]}}

Members of a team hired between two dates
{ team(team: MARKETING, dateHired: {from: "2018-01-01", to: "2021-01-01"}) { nodes { firstName } } }
{"team": {"nodes": [{"firstName": "Cy"}]}}

Tasks of a project, by employee and status
{ tasksOfProject(project: "135-53", employeeId: {eq: "e3"}, status: {eq: OPEN}) { nodes { taskName } } }
{"tasksOfProject": {"nodes": [{"taskName": "roof"}]}}

Direct reports of a manager, by team
{ employee(employeeId: "e1") { reports(team: {eq: MARKETING}) { nodes { firstName manager { firstName } } } } }
{"employee": {"reports": {"nodes": [{"firstName": "Cy", "manager": {"firstName": "Ann"}}]}}}

Offices of a state, by city
{ offices(country: "us", state: "or", city: {eq: "portland"}) { nodes { officeName zip } } }
{"offices": {"nodes": [{"officeName": "hq", "zip": "97201"}]}}

A task
{ task(taskName: "roof", project: "135-53", employeeId: "e3") { points employee { firstName } } }
{"task": {"points": 21, "employee": {"firstName": "Cy"}}}

A task is closed
mutation { updateTask(input: {taskName: "paint", project: "135-53", employeeId: "e2", status: CLOSED}) { task { employee { tasks(project: {eq: "135-53"}, status: {eq: CLOSED}) { nodes { taskName } } } } } }
{"updateTask": {"task": {"employee": {"tasks": {"nodes": [{"taskName": "paint"}]}}}}}
"""
