"""The playground: a page to ask a graph and to look at it, served by the server itself.

GraphiQL is its editor. Around it are examples with values of the table (`queries`, `values`), what a query costs, the answer
as a picture of nodes and edges, the model as a diagram, and raw items. `page` serves the page, `data` what it asks for beside
GraphQL, `assets` pins the browser files of others. The scripts are in `static`, one for each view.
"""

from keygraph_server.playground.data import data_routes
from keygraph_server.playground.page import PageSettings, playground_routes

__all__ = ["PageSettings", "data_routes", "playground_routes"]
