"""A graph in one DynamoDB table: declarations, keys, requests, stores.

This package contains no GraphQL and no HTTP. A model file uses only the names below.
"""

from keygraph.access.claims import Viewer
from keygraph.access.language import create, delete, read, update, viewer, write
from keygraph.declare.decorators import edge, field, fields, node, record, ref, rule
from keygraph.declare.specifiers import (
    Context,
    Many,
    One,
    Ranked,
    Reach,
    copy,
    counts,
    created,
    many,
    new_id,
    one,
    ranked,
    reach,
    stored,
    sums,
    ttl,
    updated,
    version,
)
from keygraph.dynamo.table import Index, Table
from keygraph.engines.open import open_store
from keygraph.errors import BadUserInput, CorruptItem, KeygraphError, ModelError, StoreError
from keygraph.graph import Graph
from keygraph.keys.formats import Epoch, Format
from keygraph.keys.timed_ids import KSUID, ULID
from keygraph.keys.types import ID, JSON, Long

__all__ = [
    "ID",
    "JSON",
    "KSUID",
    "ULID",
    "BadUserInput",
    "Context",
    "CorruptItem",
    "Epoch",
    "Format",
    "Graph",
    "Index",
    "KeygraphError",
    "Long",
    "Many",
    "ModelError",
    "One",
    "Ranked",
    "Reach",
    "StoreError",
    "Table",
    "Viewer",
    "copy",
    "counts",
    "create",
    "created",
    "delete",
    "edge",
    "field",
    "fields",
    "many",
    "new_id",
    "node",
    "one",
    "open_store",
    "ranked",
    "reach",
    "read",
    "record",
    "ref",
    "rule",
    "stored",
    "sums",
    "ttl",
    "update",
    "updated",
    "version",
    "viewer",
    "write",
]
