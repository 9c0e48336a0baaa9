"""Keys that look like another type's, where the type attribute or the table's key tells the items apart."""

from __future__ import annotations

from typing import Any

from keygraph import ID, Graph, Index, Many, Table, node, record
from keygraph_resolvers import Service as Server
from keygraph_resolvers import build_schema
from tests.conftest import MakeStore

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
    """The service `jobs-4` would be listed, but never found; or have the logs of the job 4 of `jobs`, and delete them."""
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
    """An alert could not have the code `0042`, though its key in the table is no error's."""
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
