"""The nodes that an operation names at its root: by their key fields, or by their global ids."""

from __future__ import annotations

from keygraph.graph import Graph
from keygraph.names import camel
from keygraph_resolvers.plan.arguments import Arguments
from keygraph_resolvers.plan.field_plans import FieldPlan
from keygraph_resolvers.read.sources import Source
from keygraph_resolvers.schema.global_ids import read_global_id
from keygraph_resolvers.schema.inputs import key_value
from keygraph_resolvers.schema.meanings import NodeById, NodeByKey


def named_at_root(graph: Graph, selected: FieldPlan, arguments: Arguments) -> list[Source]:
    """The nodes that a field of the root names. Raises BadUserInput or GraphQLError where it names none."""
    given = arguments.of(selected)
    match selected.meaning:
        case NodeByKey(record):
            names = {camel(record.leaf_name(slot.path)): slot for slot in record.identity}
            values = {
                record.leaf_name(slot.path): key_value(graph, record, slot, given.get(name))
                for name, slot in names.items()
            }
            return [Source(record, graph.identity(record, values))]
        case NodeById():
            return [Source(*read_global_id(graph, given["id"]))]
    return [Source(*read_global_id(graph, text)) for text in given["ids"]]
