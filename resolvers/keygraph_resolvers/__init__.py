"""GraphQL over a graph: the schema of the graph, and a service that answers operations on it. No HTTP.

A nested query whose plan is cached passes through these modules, here on the embedded engine, in the order of their
first calls (`python -m bench.house` prints them):

1. `keygraph_server.http.middleware`, `keygraph_server.http.requests`, `keygraph_server.http.graphql_http`,
   `keygraph_resolvers.read.meter`: read and check the HTTP request, count its memory and its requests to the store, and
   send the response.
2. `keygraph_resolvers.plan.documents`: holds the request, and finds its document's plan.
3. `keygraph.deadlines`: ends what takes too long.
4. `keygraph_resolvers.service`, `keygraph_resolvers.read.run`, `keygraph_resolvers.plan.bound`, `keygraph.admission`: take
   the operation, hold what its steps share, compute what it costs at most, check the limits, let it wait while too many
   others run, and return the response.
5. `keygraph_resolvers.engine.engine`, `keygraph_resolvers.read.objects`: drive the steps, which are generators, decide
   when to send a batch of keys, and keep the results.
6. `keygraph_resolvers.steps.get`, `keygraph.model.record_keys`, `keygraph_resolvers.read.loaders`: request nodes by
   their keys, find out from an item's keys which node it is, and read what is requested twice only once.
7. `keygraph_resolvers.steps.lists`, `keygraph_resolvers.read.connection`, `keygraph.lists.query`,
   `keygraph.lists.reading`: request pages of lists, take their arguments and build the pages, turn a list and its owner
   into a range of keys, and that into Query requests. `read/cursors.py` makes cursors if they are selected.
8. `keygraph.dynamo.store`, `keygraph.engines.sqlite.engine`, `keygraph.engines.sqlite.reads`, `keygraph.dynamo.rules`,
   `keygraph.engines.sqlite.layout`: answer the requests as DynamoDB does.
9. `keygraph_resolvers.answer.completion`: writes the answer, with its errors and nulls.
"""

from keygraph.limits import NO_LIMITS, Limits
from keygraph_resolvers.plan.documents import Observation, OperationRequest
from keygraph_resolvers.schema.types import GraphSchema, build_schema, check
from keygraph_resolvers.service import Service

__all__ = [
    "NO_LIMITS",
    "GraphSchema",
    "Limits",
    "Observation",
    "OperationRequest",
    "Service",
    "build_schema",
    "check",
]
