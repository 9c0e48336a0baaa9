"""Jobs that are due at a time, are leased by workers, and come back where a lease ends: a table with nothing but a partition key.

After published designs of queues on DynamoDB: whoever leases a job takes it out of the sparse index of what is ready.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum

from keygraph import (
    ID,
    JSON,
    Epoch,
    Graph,
    Index,
    Many,
    Table,
    counts,
    created,
    field,
    many,
    new_id,
    node,
    record,
    rule,
    stored,
    ttl,
    version,
)

ready = Index("ready", "lane", "ready_at")
leases = Index("leases", "lease_lane", ("lease_ends", "N"))
of_job = Index("of-job", "of", "attempt")
of_worker = Index("of-worker", "worker", "lease_lane", projection="KEYS_ONLY")


class State(Enum):
    READY = "ready"
    LEASED = "leased"
    DEAD = "dead"


@node("queue.{name:[a-z]+}")
class Queue:
    name: ID
    paused: bool = False
    lanes: Many[Job] = many(index=ready)
    leased: Many[Job] = many(index=leases)
    leased_count: int = counts("leased")


@node("worker.{host}")
class Worker:
    host: ID
    jobs: Many[Job]


@node(
    "job.{job_id}",
    ready("{queue}.{urgency}", "{due}.{job_id}"),
    leases("{queue}", "{lease_ends}"),
    check=[
        rule(
            {"or": [{"state": {"ne": State.LEASED}}, {"lease_ends": {"exists": True}}]},
            "A lease ends.",
        ),
        rule({"tries": {"lte": 3}}, "A job is tried three times."),
    ],
)
class Job:
    job_id: ID = new_id()
    queue: Queue
    state: State = State.READY
    priority: int = 5
    due: datetime
    payload: JSON
    worker: Worker | None = stored("worker")
    lease_ends: datetime | None = stored("lease_ends", format=Epoch("ms"))
    tries: int = 0
    queued: datetime = created()
    times: int = version()
    attempts: Many[Attempt]

    @field(needs=("state", "priority"))
    def urgency(self) -> str | None:
        """The lane in which it waits."""
        return None if self.state is not State.READY else "high" if self.priority < 3 else "low"


@record("attempt.{job.job_id}.{number}", of_job("{job}", "{number:03d}"))
class Attempt:
    job: Job
    number: int
    error: str | None
    millis: int


@node("once.{token}")
class Token:
    """What was sent twice is queued once, for a day."""

    token: ID
    job: Job
    until: datetime = ttl("expires")


graph = Graph(
    Table("Jobs", partition_key="key", indexes=[ready, leases, of_job, of_worker]),
    Queue,
    Worker,
    Job,
    Attempt,
    Token,
    writes=True,
)

ITEMS = """
{"key": "queue.mail", "leased_count": 1}
{"key": "queue.pay", "paused": true, "leased_count": 0}
{"key": "worker.w1"}
{"key": "worker.w2"}
{"key": "job.a", "lane": "queue.mail.low", "ready_at": "2024-05-01T08:00:00.250000Z.a", "queue_name": "mail", "state": "ready", "priority": 5, "due": "2024-05-01T08:00:00.250000Z", "payload": {"to": ["x"]}, "queued": "2024-05-01T07:00:00Z", "times": 1}
{"key": "job.b", "lane": "queue.mail.low", "ready_at": "2024-05-01T08:00:00.750000Z.b", "queue_name": "mail", "state": "ready", "priority": 4, "due": "2024-05-01T08:00:00.750000Z", "payload": 7, "tries": 2, "queued": "2024-05-01T07:00:00Z", "times": 5}
{"key": "job.c", "lane": "queue.mail.high", "ready_at": "2024-05-01T09:00:00.000000Z.c", "queue_name": "mail", "state": "ready", "priority": 1, "due": "2024-05-01T09:00:00.000000Z", "payload": {"n": 1.50}, "queued": "2024-05-01T07:00:00Z", "times": 1}
{"key": "job.d", "lease_lane": "queue.mail", "lease_ends": 1714550400250, "queue_name": "mail", "state": "leased", "priority": 5, "due": "2024-05-01T07:59:00Z", "payload": [], "worker": "w1", "tries": 1, "queued": "2024-05-01T07:00:00Z", "times": 2}
{"key": "job.e", "queue_name": "mail", "state": "dead", "priority": 5, "due": "2024-04-01T07:59:00Z", "payload": {}, "tries": 3, "queued": "2024-04-01T07:00:00Z", "times": 9}
{"key": "attempt.e.1", "of": "job.e", "attempt": "001", "error": "no answer", "millis": 3000}
{"key": "attempt.e.2", "of": "job.e", "attempt": "002", "error": "refused", "millis": 12}
{"key": "attempt.d.1", "of": "job.d", "attempt": "001", "error": null, "millis": 1}
{"key": "once.t1", "job_id": "a", "expires": 4102444800}
{"key": "once.t0", "job_id": "e", "expires": 1700000000}
"""

ASKED = """
The next jobs of a queue, the urgent ones before others
{ queue(name: "mail") { paused leasedCount high: lanes(urgency: "high", due: {to: "2024-05-01T10:00:00Z"}, first: 5) { nodes { jobId payload } } low: lanes(urgency: "low", first: 1) { nodes { jobId due payload } pageInfo { hasNextPage } } } }
{"queue": {"paused": false, "leasedCount": 1, "high": {"nodes": [{"jobId": "c", "payload": {"n": 1.5}}]}, "low": {"nodes": [{"jobId": "a", "due": "2024-05-01T08:00:00.250000Z", "payload": {"to": ["x"]}}], "pageInfo": {"hasNextPage": true}}}}

What is due at an instant within a second
{ queue(name: "mail") { now: lanes(urgency: "low", due: {to: "2024-05-01T08:00:00.25Z"}) { totalCount nodes { jobId } } soon: lanes(urgency: "low", due: {from: "2024-05-01T08:00:00.251Z", to: "2024-05-01T08:00:01Z"}) { nodes { jobId } } all: lanes(urgency: "low", due: {from: "2024-05-01T08:00:00Z", to: "2024-05-01T08:00:00.9Z"}) { totalCount } } }
{"queue": {"now": {"totalCount": 1, "nodes": [{"jobId": "a"}]}, "soon": {"nodes": [{"jobId": "b"}]}, "all": {"totalCount": 2}}}

One job in its lane by what it is due at
{ queue(name: "mail") { lanes(urgency: "low", due: {eq: "2024-05-01T08:00:00.750000Z"}) { nodes { jobId tries } } } }
{"queue": {"lanes": {"nodes": [{"jobId": "b", "tries": 2}]}}}

Leases that have ended
{ queue(name: "mail") { leased(leaseEnds: {to: "2024-05-01T08:00:00.25Z"}) { nodes { jobId leaseEnds worker { host } } } held: leased(leaseEnds: {from: "2024-05-01T08:00:00.251Z"}) { totalCount } } }
{"queue": {"leased": {"nodes": [{"jobId": "d", "leaseEnds": "2024-05-01T08:00:00.250000Z", "worker": {"host": "w1"}}]}, "held": {"totalCount": 0}}}

What a worker has, in one queue as well
{ worker(host: "w1") { jobs { nodes { jobId state queue { name paused } } } pay: jobs(queueName: {eq: "pay"}) { totalCount } } }
{"worker": {"jobs": {"nodes": [{"jobId": "d", "state": "LEASED", "queue": {"name": "mail", "paused": false}}]}, "pay": {"totalCount": 0}}}

A job with its last attempt, and those from the second
{ job(jobId: "e") { state urgency attempts(last: 1) { nodes { number error } } later: attempts(number: {from: 2}) { nodes { millis } aggregate { max(field: MILLIS) } } } }
{"job": {"state": "DEAD", "urgency": null, "attempts": {"nodes": [{"number": 2, "error": "refused"}]}, "later": {"nodes": [{"millis": 12}], "aggregate": {"max": 12}}}}

Whether something was queued in the last day
{ token(token: "t1") { job { jobId state } } old: token(token: "t0") { token } }
{"token": {"job": {"jobId": "a", "state": "READY"}}, "old": null}

Waiting jobs that have failed before
{ queue(name: "mail") { lanes(urgency: "low", where: {tries: {gte: 2}, queued: {lt: "2024-05-01T07:00:00.001Z"}}) { nodes { jobId } } } }
{"queue": {"lanes": {"nodes": [{"jobId": "b"}]}}}

Jobs that are dead
{ deadJobs { nodes { jobId } } }
A dead job leaves both sparse indexes, and no other key has its state: it needs an index of its own.
"""

WRITES = """
A job is queued with its token, as the last of its lane
mutation { write(input: {actions: [{createJob: {jobId: "f", queueName: "mail", due: "2024-05-01T08:00:00.8Z", payload: {to: ["y"]}}}, {createToken: {token: "t2", jobId: "f", until: "2100-01-01T00:00:00.1Z"}}]}) { results { createToken { token { until } } } } }
{ queue(name: "mail") { lanes(urgency: "low", due: {from: "2024-05-01T08:00:00.7Z"}) { nodes { jobId } } } token(token: "t2") { until job { payload times } } }
{"queue": {"lanes": {"nodes": [{"jobId": "b"}, {"jobId": "f"}]}}, "token": {"until": "2100-01-01T00:00:01Z", "job": {"payload": {"to": ["y"]}, "times": 1}}}

The same once more
mutation { write(input: {actions: [{createJob: {jobId: "g", queueName: "mail", due: "2024-05-01T08:00:00.8Z", payload: 1}}, {createToken: {token: "t2", jobId: "g", until: "2100-01-01T00:00:00Z"}}]}) { clientMutationId } }
There is already a Token with this key.

A token that has expired is free
mutation { createToken(input: {token: "t0", jobId: "b", until: "2100-01-01T00:00:00Z"}) { token { job { jobId } } } }
{ token(token: "t0") { job { jobId } } job(jobId: "g") { state } }
{"token": {"job": {"jobId": "b"}}, "job": null}

A worker leases a job
mutation { updateJob(input: {jobId: "a", expectedVersion: 1, state: LEASED, workerHost: "w2", leaseEnds: "2024-05-01T08:01:00.5Z", add: {tries: 1}}) { job { times tries worker { jobs { nodes { jobId } } } } } }
{ queue(name: "mail") { leasedCount lanes(urgency: "low") { nodes { jobId } } leased(leaseEnds: {from: "2024-05-01T08:01:00.5Z"}) { nodes { jobId leaseEnds } } } worker(host: "w2") { jobs { totalCount } } }
{"queue": {"leasedCount": 2, "lanes": {"nodes": [{"jobId": "b"}, {"jobId": "f"}]}, "leased": {"nodes": [{"jobId": "a", "leaseEnds": "2024-05-01T08:01:00.500000Z"}]}}, "worker": {"jobs": {"totalCount": 1}}}

Another one that saw it too
mutation { updateJob(input: {jobId: "a", expectedVersion: 1, state: LEASED, workerHost: "w1", leaseEnds: "2024-05-01T08:01:00.6Z"}) { job { times } } }
This Job has changed: its version is 2.

A lease without an end
mutation { updateJob(input: {jobId: "b", state: LEASED, workerHost: "w1"}) { job { times } } }
A lease ends.

By nobody who is known
mutation { updateJob(input: {jobId: "b", state: LEASED, workerHost: "w3", leaseEnds: "2024-05-01T08:01:00.6Z"}) { job { times } } }
workerHost: there is no Worker with this key.

A lease is made longer by a millisecond
mutation { updateJob(input: {jobId: "a", leaseEnds: "2024-05-01T08:01:00.501Z"}) { job { leaseEnds } } }
{ queue(name: "mail") { leased(leaseEnds: {to: "2024-05-01T08:01:00.5Z"}) { nodes { jobId } } all: leased(leaseEnds: {to: "2024-05-01T08:01:00.501Z"}) { totalCount } } }
{"queue": {"leased": {"nodes": [{"jobId": "d"}]}, "all": {"totalCount": 2}}}

What a worker has lost comes back, later within the second
mutation { write(input: {actions: [{updateJob: {jobId: "d", state: READY, workerHost: null, leaseEnds: null, due: "2024-05-01T08:00:00.751Z"}}, {createAttempt: {jobId: "d", number: 2, error: "lost", millis: 60000}}]}) { clientMutationId } }
{ queue(name: "mail") { leasedCount lanes(urgency: "low", due: {to: "2024-05-01T08:00:00.751Z"}) { nodes { jobId } } } worker(host: "w1") { jobs { totalCount } } job(jobId: "d") { attempts { nodes { error } } worker { host } } }
{"queue": {"leasedCount": 1, "lanes": {"nodes": [{"jobId": "b"}, {"jobId": "d"}]}}, "worker": {"jobs": {"totalCount": 0}}, "job": {"attempts": {"nodes": [{"error": null}, {"error": "lost"}]}, "worker": null}}

One try too many
mutation { updateJob(input: {jobId: "b", add: {tries: 2}}) { job { tries } } }
A job is tried three times.

A job becomes urgent, and one goes to another queue
mutation { updateJobs(input: {inputs: [{jobId: "b", priority: 2}, {jobId: "f", queueName: "pay"}]}) { results { job { urgency } } } }
{ mail: queue(name: "mail") { high: lanes(urgency: "high") { nodes { jobId } } low: lanes(urgency: "low") { nodes { jobId } } } pay: queue(name: "pay") { lanes(urgency: "low") { nodes { jobId } } } }
{"mail": {"high": {"nodes": [{"jobId": "b"}, {"jobId": "c"}]}, "low": {"nodes": [{"jobId": "d"}]}}, "pay": {"lanes": {"nodes": [{"jobId": "f"}]}}}

A job is done: its attempts and its token go
mutation { one: deleteJob(input: {jobId: "d", onEdges: DETACH}) { detached } }
{ queue(name: "mail") { low: lanes(urgency: "low") { totalCount } } job(jobId: "d") { state } }
{"queue": {"low": {"totalCount": 0}}, "job": null}

A worker goes while it has a job
mutation { deleteWorker(input: {host: "w2"}) { deletedId } }
This Worker cannot be deleted. It is named by 1 Job (worker).
"""
