"""GraphQL over a graph: the schema of the graph, and a service that answers operations on it. No HTTP.

A nested query whose plan is cached passes through these modules, here on the embedded engine, in the order of their
first calls (`python -m bench.house` prints them):

1. `keygraph_server.http.middleware`, `keygraph_server.http.header_values`, `keygraph_server.http.graphql_http`,
   `keygraph_resolvers.read.meter`, `keygraph_server.documents.known`: read and check the HTTP request, count its memory
   and its requests to the store, find its document, and send the response.
2. `keygraph_resolvers.service`: takes the operation, checks the limits, and returns the response.
3. `keygraph_resolvers.plan.documents`: finds the document's plan.
4. `keygraph_resolvers.read.run`: holds what the steps of one request share.
5. `keygraph_resolvers.plan.bound`, `keygraph_resolvers.admission`: compute what the request costs at most, and let it
   wait while too many others run.
6. `keygraph_resolvers.read.objects`, `keygraph_resolvers.read.loaders`, `keygraph_resolvers.read.scheduler`: keep the
   results, send the Query of a list at once, and decide when to send a batch of keys.
7. `keygraph_resolvers.steps.get`, `keygraph_resolvers.steps.lists`, `keygraph_resolvers.read.connection`: run the
   steps, which take their arguments, read nodes by key and pages of lists, and build the pages. `read/cursors.py` makes
   cursors if they are selected.
8. `keygraph.lists.listing`, `keygraph.model.record_keys`, `keygraph.lists.reading`: turn a list and its owner into a
   range of keys, turn a page of it into Query requests, and find out from an item's keys which node it is.
9. `keygraph.dynamo.store`, `keygraph.engines.sqlite.engine`, `keygraph.engines.sqlite.reads`, `keygraph.dynamo.rules`,
   `keygraph.engines.sqlite.layout`: answer the requests as DynamoDB does.
10. `keygraph_resolvers.answer.completion`: writes the answer, with its errors and nulls.
"""

from keygraph_resolvers.naming.names import check
from keygraph_resolvers.plan.document_limits import NO_LIMITS, DocumentLimits
from keygraph_resolvers.schema.types import GraphSchema, build_schema
from keygraph_resolvers.service import Observed, Service

__all__ = ["NO_LIMITS", "DocumentLimits", "GraphSchema", "Observed", "Service", "build_schema", "check"]
