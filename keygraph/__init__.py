"""A graph in one DynamoDB table: declarations, keys, requests, stores.

This package knows nothing of GraphQL and HTTP. A model is declared with the names below and nothing else.
"""

from keygraph.declaration import Many, One, edge, field, fields, many, node, one, record, stored
from keygraph.engines import open_store
from keygraph.errors import BadUserInput, CorruptItem, KeygraphError, ModelError, StoreError
from keygraph.formats import Format
from keygraph.graph import Graph
from keygraph.table import Index, Table
from keygraph.types import ID, JSON, Long

__all__ = [
    "ID",
    "JSON",
    "BadUserInput",
    "CorruptItem",
    "Format",
    "Graph",
    "Index",
    "KeygraphError",
    "Long",
    "Many",
    "ModelError",
    "One",
    "StoreError",
    "Table",
    "edge",
    "field",
    "fields",
    "many",
    "node",
    "one",
    "open_store",
    "record",
    "stored",
]
