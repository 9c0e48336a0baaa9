"""Keys that look like another type's, where the type attribute or the table's key tells the items apart."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, node, record
from keygraph.dynamo.store import Scan
from keygraph_resolvers import Service as Server
from keygraph_resolvers import build_schema
from tests.conftest import MakeStore
from tests.resolvers.worlds import world

codes = Index("byCode", "CodePK", "CodeSK")


@node("{service_id}", "SERVICE")
class Service:
    service_id: ID
    logs: Many[ServiceLog]


@node("{service_id}-{number}", "JOB")
class Job:
    service_id: str
    number: int
    logs: Many[JobLog]


@record("{service}", "LOG#{at}")
class ServiceLog:
    service: Service
    at: int


@record("{job}", "LOG#{at}")
class JobLog:
    job: Job
    at: int


@node("ERROR#{number}", codes("CODES", "{number:04d}"))
class Error:
    number: int


@node("ALERT#{code}", codes("CODES", "{code}"))
class Alert:
    code: ID


TYPES = (Service, Job, ServiceLog, JobLog, Error, Alert)

TABLE = Table("Services", partition_key="PK", sort_key="SK", indexes=[codes])

graph = Graph(TABLE, *TYPES, type_attribute="Type")

BOTH = """{
  service(serviceId: "jobs-4") { serviceId logs { totalCount nodes { at } } }
  job(serviceId: "jobs", number: 4) { number logs { totalCount nodes { at } } }
}"""


async def done(server: Server, document: str) -> Any:
    answer = await server.execute(document)
    assert "errors" not in answer, answer["errors"]
    return answer["data"]


def logs(*at: int) -> dict[str, Any]:
    return {"totalCount": len(at), "nodes": [{"at": each} for each in at]}


async def test_ids_that_look_like_another_types_keys(make_store: MakeStore) -> None:
    server = Server(build_schema(graph.check()), await make_store(TABLE), secret=b"secret" * 8)
    await done(
        server,
        """mutation {
          a: createService(input: {serviceId: "jobs-4", logs: [{at: 1}, {at: 2}]}) { service { serviceId } }
          b: createJob(input: {serviceId: "jobs", number: 4, logs: [{at: 3}]}) { job { number } }
        }""",
    )
    job = {"number": 4, "logs": logs(3)}
    assert await done(server, BOTH) == {"service": {"serviceId": "jobs-4", "logs": logs(1, 2)}, "job": job}
    gone = 'mutation { deleteService(input: {serviceId: "jobs-4", onEdges: DETACH}) { detached } }'
    assert await done(server, gone) == {"deleteService": {"detached": 2}}
    assert await done(server, BOTH) == {"service": None, "job": job}


async def test_keys_of_an_index_that_are_alike(make_store: MakeStore) -> None:
    server = Server(build_schema(graph.check()), await make_store(TABLE), secret=b"secret" * 8)
    await done(
        server,
        """mutation {
          a: createAlert(input: {code: "0042"}) { alert { code } }
          b: createError(input: {number: 42}) { error { number } }
        }""",
    )
    assert await done(
        server, "{ alerts { nodes { code } } errors(number: {eq: 42}) { nodes { number } } }"
    ) == {
        "alerts": {"nodes": [{"code": "0042"}]},
        "errors": {"nodes": [{"number": 42}]},
    }


class Files:
    """Types without an attribute that tells them apart, whose partitions have one form with and without a pattern."""

    @node("{policy_no:[A-Z]{2}-[0-9]+}", "POLICY")
    class Policy:
        policy_no: ID

    @node("{code}", "CODE")
    class Code:
        code: ID

    @record("{policy.policy_no}", "NOTE#{number}")
    class Note:
        policy: Files.Policy
        number: int

    @record("{policy_no}", "{name:[A-Z]+}")
    class Scan:
        policy_no: str
        name: str


@pytest.mark.parametrize("is_named", [False, True])
async def test_a_partition_with_and_without_a_pattern(make_store: MakeStore, *, is_named: bool) -> None:
    @record("OWNERS", "OWNER#{number}")
    class Owner:
        number: int
        owner: Files.Policy | Files.Code

    types = (Files.Policy, Files.Code, Files.Note, Files.Scan, *[Owner] * is_named)
    table = Table("Files", partition_key="PK", sort_key="SK")
    files = world(Graph(table, *types).check(), await make_store(table))
    await files.ask("""mutation {
      createPolicy(input: {policyNo: "HO-77"}) { policy { policyNo } }
      putNote(input: {policyNo: "HO-77", number: 3}) { note { number } }
      putScan(input: {policyNo: "HO-77", name: "X"}) { scan { name } }
    }""")
    of_policy = 'mutation { putScan(input: {policyNo: "HO-77", name: "POLICY"}) { scan { name } } }'
    assert await files.codes(of_policy) == ["BAD_USER_INPUT"]
    # Where an end says by the partition key which node it is, a code cannot look like a policy's number.
    code = 'mutation { createCode(input: {code: "HO-77"}) { code { code } } }'
    assert await files.codes(code) == ["BAD_USER_INPUT"] * is_named
    there = [item["SK"] for page in [await files.tracer.send(Scan())] for item in page.items]
    assert sorted(map(str, there)) == sorted(["POLICY", "NOTE#3", "X", *["CODE"] * (not is_named)])
