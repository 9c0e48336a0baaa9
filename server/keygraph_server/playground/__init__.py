"""The playground: GraphiQL with its explorer and a cost panel, served by the server itself."""

from keygraph_server.playground.page import playground_routes

__all__ = ["playground_routes"]
