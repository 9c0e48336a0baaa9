"""Tenants with a hierarchy in their sort keys. From shoaibrain/edforgewebclient on GitHub, its table of schools."""

from __future__ import annotations

from datetime import date

from keygraph import ID, Graph, Index, Many, Table, node, record

by_school = Index("GSI1", "gsi1pk", "gsi1sk")


@node("{tenant_id}", "TENANT")
class Tenant:
    tenant_id: ID
    name: str
    schools: Many[School]


@node("{tenant}", "SCHOOL#{school_id}")
class School:
    tenant: Tenant
    school_id: ID
    school_name: str
    years: Many[Year]
    classrooms: Many[Classroom]


@record(
    "{school.tenant.tenant_id}",
    "YEAR#{school.school_id}#{starts}",
    by_school("{school.tenant.tenant_id}#{school.school_id}", "YEAR#{starts}"),
)
class Year:
    school: School
    starts: date


@record(
    "{school.tenant.tenant_id}",
    "CLASSROOM#{classroom_id}",
    by_school("{school.tenant.tenant_id}#{school.school_id}", "CLASSROOM#{classroom_id}"),
)
class Classroom:
    school: School
    classroom_id: ID
    seats: int


graph = Graph(
    Table("saas-tenant-data", partition_key="tenantId", sort_key="entityKey", indexes=[by_school]),
    Tenant,
    School,
    Year,
    Classroom,
    attribute_case="camel",
    type_attribute="entityType",
)

ITEMS = """
{"tenantId": "tenant-abc", "entityKey": "TENANT", "entityType": "Tenant", "name": "North"}
{"tenantId": "tenant-xyz", "entityKey": "TENANT", "entityType": "Tenant", "name": "South"}
{"tenantId": "tenant-abc", "entityKey": "SCHOOL#s1", "entityType": "School", "schoolName": "Lincoln"}
{"tenantId": "tenant-abc", "entityKey": "SCHOOL#s2", "entityType": "School", "schoolName": "Curie"}
{"tenantId": "tenant-xyz", "entityKey": "SCHOOL#s1", "entityType": "School", "schoolName": "Noether"}
{"tenantId": "tenant-abc", "entityKey": "YEAR#s1#2024-08-01", "gsi1pk": "tenant-abc#s1", "gsi1sk": "YEAR#2024-08-01", "entityType": "Year", "schoolId": "s1"}
{"tenantId": "tenant-abc", "entityKey": "CLASSROOM#c7", "gsi1pk": "tenant-abc#s1", "gsi1sk": "CLASSROOM#c7", "entityType": "Classroom", "schoolId": "s1", "seats": 30}
{"tenantId": "tenant-abc", "entityKey": "CLASSROOM#c8", "gsi1pk": "tenant-abc#s1", "gsi1sk": "CLASSROOM#c8", "entityType": "Classroom", "schoolId": "s1", "seats": 24}
"""

ASKED = """
The schools of a tenant with their classrooms
{ tenant(tenantId: "tenant-abc") { name schools { nodes { schoolName classrooms { nodes { seats } } } } } }
{"tenant": {"name": "North", "schools": {"nodes": [{"schoolName": "Lincoln", "classrooms": {"nodes": [{"seats": 30}, {"seats": 24}]}}, {"schoolName": "Curie", "classrooms": {"nodes": []}}]}}}
"""
