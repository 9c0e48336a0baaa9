"""GraphQL over a graph: the schema that a graph gives, and a service that answers operations on it. No HTTP."""

from keygraph_resolvers.schema.names import check
from keygraph_resolvers.schema.types import GraphSchema, build_schema
from keygraph_resolvers.service import Service

__all__ = ["GraphSchema", "Service", "build_schema", "check"]
