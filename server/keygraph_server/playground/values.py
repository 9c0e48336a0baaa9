"""Values for examples: key fields from a sample of the table's items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from keygraph.dynamo.items import Item
from keygraph.graph import Graph
from keygraph.keys.template import Slot
from keygraph.model.paths import AccessPath, ListOfIds, WalkedPath
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph.tables.walked_edges import far_node
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.schema.field_kinds import FieldKind, ListOf, NodeByKey, PathsBetween
from keygraph_resolvers.schema.walk_types import lists_by_name

_Texts = tuple[str, ...]


class TableValues:
    """Values for the arguments of root fields that find something in the table."""

    def __init__(self, graph: Graph, items: Iterable[Item]) -> None:
        self._graph = graph
        self._items: dict[str, list[Item]] = {name: [] for name in graph.types}
        self._found: dict[str, Counter[_Texts]] = {name: Counter() for name in graph.types}
        named: dict[str, Counter[_Texts]] = {name: Counter() for name in graph.types}
        for item in items:
            identified = graph.identified(item)
            if identified is not None:
                record, identity = identified
                self._items[record.name].append(item)
                self._found[record.name][identity] += 1
                _count_ends(named, record, item)
        for name, own in self._found.items():
            # A node that others refer to has nonempty lists. Of a node without an item, nothing else is known.
            for identity, count in named[name].items():
                if identity in own or graph.types[name].is_virtual:
                    own[identity] += count

    def __call__(self, kind: FieldKind) -> Mapping[str, object] | None:
        """The values of a root field's arguments by their names; None if the sample has none for it."""
        if isinstance(kind, NodeByKey):
            return self._of_node(kind.record)
        if isinstance(kind, PathsBetween):
            return self._of_path()
        return self._of_list(kind.path) if isinstance(kind, ListOf) else None

    def _of_node(self, record: RecordType) -> Mapping[str, object] | None:
        for identity, _ in self._found[record.name].most_common(1):
            return _values(record, dict(zip(record.identity, identity, strict=True)))
        return None

    def _of_list(self, path: AccessPath) -> Mapping[str, object] | None:
        for item in self._items[path.record.name]:
            texts = path.texts_of_item(item)
            if texts is not None:
                slots = [argument.slot for argument in path.required]
                return _values(path.record, {slot: texts.get(slot.name, "") for slot in slots})
        return None

    def _of_path(self) -> Mapping[str, object] | None:
        """Two nodes and the list that connects them, if possible through a third node."""
        short = None
        for name, followed in lists_by_name(self._graph).items():
            steps = dict(self._steps(followed.path))
            for near, far in steps.items():
                further = steps.get(far, near)
                short = short or {"from": near, "to": far, "via": [name]}
                if further not in (near, far):
                    return {"from": near, "to": further, "via": [name]}
        return short

    def _steps(self, path: WalkedPath) -> Iterator[tuple[str, str]]:
        """The ids of the nodes that a list connects, from the items in the sample."""
        owner = path.owner
        if owner is None:
            return
        for item in self._items[owner.name if isinstance(path, ListOfIds) else path.record.name]:
            near, nodes = _connected(path, owner, item)
            if near is not None:
                for record, far in nodes:
                    yield global_id(owner, near), global_id(record, far)


def _connected(
    path: WalkedPath, owner: RecordType, item: Item
) -> tuple[_Texts | None, list[tuple[RecordType, _Texts]]]:
    """The owner of a list and the nodes that one item of it connects with it."""
    if isinstance(path, ListOfIds):
        nodes = [path.end.nodes(each) for _, each in owner.readable_members(item, path.end)]
        return owner.read_identity(item), [(members[0], far) for members, far in nodes]
    far = far_node(path, item)
    return path.owner_of(item), [] if far is None else [far]


def _count_ends(named: dict[str, Counter[_Texts]], record: RecordType, item: Item) -> None:
    for end in record.ends.values():
        identity = record.readable_end(item, end)
        if identity is not None:
            nodes, own = end.nodes(identity)
            for node in nodes:
                named[node.name][own] += 1


def _values(record: RecordType, texts: Mapping[Slot, str]) -> Mapping[str, object] | None:
    """The values of slots by their arguments' names; None if a text cannot be read. Absent parts are left out."""
    try:
        return {
            camel(record.leaf_name(slot.path)): slot.text.value(text) for slot, text in texts.items() if text
        }
    except (ValueError, TypeError, ArithmeticError):
        return None
