"""The playground: a page to query and explore a graph, served by the server itself.

GraphiQL is its editor. Around it are examples with values of the table (`examples`, `values`), the cost of a query, the
answer as a picture of nodes and edges, the model as a diagram, and the table with its raw items. `page` serves the page,
`data` its data beside GraphQL, `items` its pages of raw items. The scripts are in `static`, one for each view; the libraries
that they use are bundled into `assets` by `server/playground`.
"""

from keygraph_server.playground.data import data_routes
from keygraph_server.playground.page import PageSettings, playground_routes

__all__ = ["PageSettings", "data_routes", "playground_routes"]
