"""The playground: GraphiQL on the server's own address, with its explorer, for asking the graph by hand."""

from keygraph_server.playground.page import playground_routes

__all__ = ["playground_routes"]
