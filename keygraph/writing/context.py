"""What all functions of a write share: the graph, the viewer's rights, the items that were read, and the problems so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self, TypeAlias, TypeVar

from keygraph.codes import Code
from keygraph.dynamo.conditions import Path
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import InputPath
from keygraph.graph import Graph
from keygraph.model.fields import Field
from keygraph.model.permissions import KnownRecord, Permissions
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.resolve.derived import COUNTED
from keygraph.writing.items import ItemMaker, Refusals
from keygraph.writing.presence import Presence
from keygraph.writing.requests import Change, Delete, Done, Move, Put, WriteRequest, missing
from keygraph.writing.step import TransactionStep

Stored: TypeAlias = Mapping[Key, Item | None]
"""The items that were read for a transaction, by key."""
NOTHING_STORED: Stored = {}
_LASTING = COUNTED | {"created", "version"}
"""The fields that the server keeps even if another record replaces this one."""
Made: TypeAlias = "tuple[list[TransactionStep], Done]"
"""The steps of a request, and the resulting record."""

_Fact = TypeVar("_Fact")


class WriteContext:
    """One write. `graph.made(WriteContext)` is what all writes to a graph share."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.presence = Presence(graph)
        self.key_of = graph.table.key_of
        self.permissions = Permissions()
        self.is_guarded = False
        """Whether the viewer's permissions limit the write. Without rules in the graph, they do not."""
        self.stored = NOTHING_STORED
        self.refusals = Refusals()
        self.is_whole = False
        """Whether the changed items must be read."""
        self.are_others_read = False
        """Whether the nodes that the write adds to, and the other items of edges, must be read."""
        self.is_described = False
        """Whether nothing is read, because the write is only explained."""
        self.checked: set[tuple[Key, tuple[RecordType, ...]]] | None = None
        """The nodes that the transaction checks already, with the types that are allowed there; None if it checks each as
        often as it is named."""
        self.sent: Sequence[WriteRequest] = ()
        """The requests of this write, which choose the shards that stand for nodes; none: the nodes themselves are checked
        and added to (`keygraph.writing.shards`)."""
        self.conflicts = 0
        """How often other transactions have written the same items at the same moment."""
        self.unspread: frozenset[Key] = frozenset()
        """The nodes that this write creates, deletes or moves: no shard stands for them."""
        self.new_shards = dict[Key, TransactionStep]()
        """The steps that make shards which turned out to be missing; those of one try."""
        self.list_ends = dict[tuple[Field, Texts], Any]()
        """The first and last items of lists that are needed, as `keygraph.writing.tallies.ListEnd`; those of one try."""
        self._makers: dict[str, ItemMaker] = {}
        self._facts: defaultdict[Any, dict[str, Any]] = defaultdict(dict)

    def of(self, permissions: Permissions | None) -> Self:
        if permissions is None:
            return self
        made = self.separate()
        made.permissions, made.is_guarded = permissions, True
        return made

    def knowing(self, stored: Stored) -> Self:
        """Returns a copy that knows these items, and no problem."""
        made = object.__new__(type(self))  # copy.copy takes five times as long
        made.__dict__.update(self.__dict__, stored=stored, refusals=Refusals())
        return made

    def separate(self) -> Self:
        """Returns a copy with problems of its own."""
        return self.knowing(self.stored)

    def fact(self, find: Callable[[WriteContext, RecordType], _Fact], record: RecordType) -> _Fact:
        """Returns what a function finds of a type in this graph, whoever writes. It is found only once."""
        facts: dict[str, _Fact] = self._facts[find]
        if record.name not in facts:
            facts[record.name] = find(self, record)
        return facts[record.name]

    def maker(self, record: RecordType) -> ItemMaker:
        found = self._makers.get(record.name)
        if found is None:
            found = self._makers[record.name] = ItemMaker(self.graph, record)
        return found

    # --- Stored items -------------------------------------------------------------------------------------

    def read(self, record: RecordType, identity: Texts) -> list[Item]:
        """Returns the record's items among those that were read, whoever sees them."""
        if not self.stored:
            return []
        read = [self.stored.get(key) for key in self.graph.table_keys(record, identity)]
        return [item for item in read if item is not None and self.graph.recognise(item) is record]

    def perhaps_visible(self, record: RecordType, identity: Texts) -> list[Item]:
        """Returns the record's items among those read, without those that the viewer does not see, whatever other items
        decide: nothing is read for these."""
        found, decide = self.read(record, identity), self.permissions.decide
        return [item for item in found if decide(KnownRecord(record, identity, item), "read") is not False]

    def visible_at(self, key: Key) -> Item | None:
        """Returns the item under a key, if it was read and the viewer sees it."""
        item = self.stored.get(key)
        if item is None or not self.is_guarded:
            return item
        record = self.graph.recognise(item)
        return item if record is not None and self.is_visible(record, item) else None

    def found(self, record: RecordType, identity: Texts, where: InputPath) -> Item | None:
        """Returns the record's item among those read, if the viewer sees it. Refuses one that is in two shards."""
        found = [item for item in self.read(record, identity) if self.is_visible(record, item)]
        if len(found) > 1:
            problem = f"There are two items of this {record.name}, in two shards: delete one of them first."
            self.refusals.add(where, problem, code=Code.CONFLICT)
        return found[0] if found else None

    def place(self, request: Change | Delete | Move) -> tuple[Key, Item | None]:
        """Returns the key of the record, and its stored item if that was read. Refuses a missing one."""
        first, *_ = self.graph.table_keys(request.record, request.identity)
        if first not in self.stored:
            return first, None
        found = self.found(request.record, request.identity, request.where)
        if found is None:
            self.refusals.found.append(missing(request))
            return first, None
        return self.key_of(found), found

    def is_visible(self, record: RecordType, item: Item, name: str | None = None) -> bool:
        """Returns whether the viewer sees the record of this item, or a field of it, once the other items that decide are
        known."""
        identity = record.read_identity(item) if self.is_guarded else None
        return not self.is_guarded or (
            identity is not None
            and self.permissions.allows(KnownRecord(record, identity, item), "read", name)
        )

    def in_key(self, record: RecordType, identity: Texts) -> Item:
        """Returns the values that the key of a record holds."""
        return self.of_key(record, self.graph.table_keys(record, identity)[0])

    def of_key(self, record: RecordType, key: Key) -> Item:
        return record.completed(self.graph.table.attributes_of(key))

    # --- What a request changes ---------------------------------------------------------------------------

    def changed_attributes(self, request: Change | Move) -> set[Path]:
        """Returns the attributes that a change or a move writes. A change cannot change those in the table's key."""
        shared = self.maker(request.record).shared
        if isinstance(request, Move):
            return shared.changed(request.values)
        return shared.changed(request.values, {*request.added, *request.taken}) - shared.paths_in_key

    def changed_names(self, request: Change | Move) -> set[str]:
        """Returns the fields and ends that a request changes: all that are stored in an attribute that it writes."""
        names = request.names if isinstance(request, Change) else {*request.values}
        shared = self.maker(request.record).shared
        return names | shared.names_at(self.changed_attributes(request)) if shared.ends else names

    def names_in_key(self, record: RecordType) -> set[str]:
        """Returns the fields and ends in the table's key, and those that its methods need."""
        return self.maker(record).sources([record.table_keys])

    # --- Fields that the server keeps ---------------------------------------------------------------------

    def kept(self, record: RecordType, *, is_new: bool = False, before: Item | None = None) -> dict[str, Any]:
        """Returns the values of fields kept by every write, or by a new record, which may replace `before`. What is
        computed over lists is not among them (`keygraph.writing.items`)."""
        updated, lasting = self.fact(_kept_fields, record)
        fields = [*updated, *(each for each in lasting if each.kept not in COUNTED)] if is_new else updated
        if not fields:
            return {}
        at = datetime.now(UTC)
        values: dict[str | None, Any] = {"updated": at, "created": at, "version": 1}
        kept = {field.name: None if field.is_kept_later else values[field.kept] for field in fields}
        for field in fields if before is not None else ():
            value = None if field.kept == "updated" else record.reader(field)(before or {})
            if value is not None:
                kept[field.name] = value + 1 if field.kept == "version" else value
        return kept

    def lasting(self, record: RecordType) -> list[Field]:
        """Returns the fields of a type that survive its record's replacement."""
        return self.fact(_kept_fields, record)[1]

    def is_replaced(self, request: WriteRequest) -> bool:
        """Returns whether what a put replaces is read: for fields that survive, or to say if there was a record."""
        return isinstance(request, Put) and (
            request.is_read or bool(self.fact(_kept_fields, request.record)[1])
        )


def _kept_fields(_: WriteContext, record: RecordType) -> tuple[list[Field], list[Field]]:
    """Returns the fields that every write changes, and those that last."""
    fields = record.fields.values()
    updated = [field for field in fields if field.kept == "updated"]
    return updated, [field for field in fields if field.kept in _LASTING or field.is_kept_later]
