"""What an operation must answer: which items are rows of a list, their order, its page, and what is null."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from tests.engine_order import order_among_equals
from tests.resolvers.judge.asked import ByKey, Compared, EndAt, Leaf, ListAt, Said, Selection, Where
from tests.resolvers.judge.items import GONE, Identity, Row
from tests.resolvers.judge.plain import Listing, Model, Path, Slot, Type

DEFAULT_SIZE = 20
SEPARATOR = "#"

Instance: TypeAlias = tuple[Listing, tuple[Any, ...] | None, tuple[str, ...]]
"""One list of one owner, with what was said of its partition."""


@dataclass(frozen=True)
class CursorOf:
    """Any text, always the same one, that is the cursor of the row."""

    listing: Listing
    row: Row


@dataclass(frozen=True)
class IdOf:
    """Any text, always the same one, that is the id of the node."""

    type: Type
    canonical: tuple[Any, ...]


@dataclass(frozen=True)
class Either:
    """What is expected, or null with an error: a value that no key can hold may be refused."""

    expected: Any


@dataclass(frozen=True)
class OneOf:
    """Any of some values."""

    values: tuple[Any, ...]


class Broken:
    """Null, with at least one error below."""


BROKEN = Broken()


class Null(Exception):
    """A field that must have a value has none."""


class Unknown(Exception):
    """The order of a list has to be learned first, because several of its rows share a sort key."""

    def __init__(self, listing: Listing, owner: Identity | None, said: Said) -> None:
        self.listing, self.owner, self.said = listing, owner, said


class Judge:
    """Knows the items of a table."""

    def __init__(self, model: Model, rows: Sequence[Row]) -> None:
        self.model = model
        self.rows = rows
        self.nodes = {
            (row.type, row.type.canonical(row.identity)): row
            for row in rows
            if row.type and row.type.kind == "node"
        }
        self.orders: dict[Instance, list[Row]] = {}
        """The rows of lists as they were shown."""

    # --- Lists ----------------------------------------------------------------------------------------

    def members(self, listing: Listing, owner: Identity | None, said: Said) -> list[Row]:
        type_, index = listing.type, self.model.indexes[listing.index] if listing.index else None
        found = []
        for row in self.rows:
            if row.type is not type_ and not (row.hidden is type_ and self.hides_types(listing)):
                continue
            if owner is not None and not self.is_owned(listing, row, owner):
                continue
            if index is not None and not all(
                isinstance(row.item.get(name), str | Decimal) for name in index.attributes
            ):
                continue
            if index is not None and index.is_plain and not all(row.item[name] for name in index.attributes):
                continue
            if all(self.is_equal(slot, listing, row, value) for slot, value in said.required.items()):
                found.append(row)
        return sorted(found, key=lambda row: self.sort_key(listing, row))

    def hides_types(self, listing: Listing) -> bool:
        """Whether what is read does not say which type an item is of."""
        return listing.index is not None and self.model.indexes[listing.index].projection == "KEYS_ONLY"

    def is_owned(self, listing: Listing, row: Row, owner: Identity) -> bool:
        """Whether the item says that this node is its owner."""
        end = listing.type.ends[listing.end or ""]
        identity = row.values_in(listing.index)[end.name]
        if identity is None or end.of(identity) is not listing.owner:
            return False
        return listing.owner.canonical(identity) == listing.owner.canonical(owner)

    def sort_key(self, listing: Listing, row: Row) -> Any:
        names = self.model.indexes[listing.index].attributes if listing.index else ("PK", "SK")
        value = row.item.get(names[1], "") if len(names) > 1 else ""
        return value.encode() if isinstance(value, str) else value

    def place(self, listing: Listing, row: Row) -> tuple[Any, ...]:
        """Where a row is in a list, also among rows with its sort key."""
        return self.sort_key(listing, row), *order_among_equals(row.key)

    def instance(self, listing: Listing, owner: Identity | None, said: Said) -> Instance:
        whose = None if owner is None or listing.owner is None else listing.owner.canonical(owner)
        return listing, whose, tuple(repr(value) for value in said.required.values())

    def ordered(self, listing: Listing, owner: Identity | None, said: Said) -> list[Row]:
        """The rows of a list in the order in which it is shown."""
        instance = self.instance(listing, owner, said)
        if instance in self.orders:
            return self.orders[instance]
        rows = self.members(listing, owner, said)
        keys = [self.sort_key(listing, row) for row in rows]
        if len(set(keys)) < len(keys) or any(self.is_doubtful(listing, row) for row in rows):
            raise Unknown(listing, owner, said)
        self.orders[instance] = rows
        return rows

    def is_doubtful(self, listing: Listing, row: Row) -> bool:
        """Whether its key may be read as another one, so that it may be left out."""
        if not self.model.awkward:
            return False
        pairs = [listing.keys, listing.type.keys[None]]
        slots = [
            slot
            for pair in pairs
            for template in (pair.partition, pair.sort or ())
            for slot in listing.type.slots(template)
        ]
        return any(
            SEPARATOR in slot.form.text(value)
            for slot in slots
            if (value := self.said(listing, row, slot)) is not None
        )

    def said(self, listing: Listing, row: Row, slot: Slot) -> Any:
        """What the keys by which the list is read say."""
        value = listing.type.value(row.values_in(listing.index), slot.path)
        return None if value is GONE else value

    def is_equal(self, slot: Slot, listing: Listing, row: Row, wanted: Any) -> bool:
        value = self.said(listing, row, slot)
        if value is None or wanted is None:
            return value is wanted
        return bool(slot.form.text(value) == slot.form.text(wanted) if slot.form.loses else value == wanted)

    def is_within(self, listing: Listing, row: Row, said: Said) -> bool:
        """Whether a row of the list is one of those that are asked for."""
        for slot, operators in said.ranged.items():
            kind, value = listing.type.kind_of(slot.path), self.said(listing, row, slot)
            for operator, wanted in operators.items():
                if operator == "eq":
                    if not self.is_equal(slot, listing, row, wanted):
                        return False
                elif value is None:
                    return False
                elif operator == "beginsWith":
                    if not value.startswith(wanted):
                        return False
                elif not _is_ordered(kind.order, operator, value, wanted):
                    return False
        if said.to is not None:
            if row.type is None:
                return False  # it is read by its key, and so as a whole
            far = row.values[listing.far_end.name] if listing.far_end else row.identity
            node = listing.far_end.node if listing.far_end else listing.type
            if node.canonical(far) not in map(node.canonical, said.to):
                return False
        return said.where is None or self.holds(said.where, listing.type, row)

    def holds(self, where: Where, type_: Type, row: Row) -> bool:
        if not isinstance(where, Compared):
            inner = [self.holds(each, type_, row) for each in where.inner]
            return {"and": all(inner), "or": any(inner), "not": not inner[0]}[where.word]
        order, wanted = type_.kind_of(where.path).order, where.value
        value = type_.value(row.values, where.path)
        value = None if value is GONE else value
        if where.operator == "exists":
            return (value is not None) == wanted
        if value is None or wanted is None:
            return {"eq": value is wanted, "ne": value is not wanted}.get(where.operator, False)
        match where.operator:
            case "eq":
                return bool(value == wanted)
            case "ne":
                return bool(value != wanted)
            case "in":
                return value in wanted
            case "between":
                return bool(order(wanted[0]) <= order(value) <= order(wanted[1]))
            case "beginsWith":
                return bool(value.startswith(wanted))
            case "contains":
                return wanted in value
        return _is_ordered(order, where.operator, value, wanted)

    # --- Answers --------------------------------------------------------------------------------------

    def answer(self, selection: Selection) -> Any:
        return _in_nullable_place(lambda: {key: self._root(each) for key, each in selection.items()})

    def _root(self, each: Any) -> Any:
        if isinstance(each, ListAt):
            return self._list(each, None)
        assert isinstance(each, ByKey)
        row = self.nodes.get((each.type, each.type.canonical(each.identity)))
        if row is None and not each.type.is_virtual:
            expected = None
        else:
            expected = self._object(each.type, each.identity, row, each.inner)
        values = dict(each.identity)
        may_be_refused = self._may_be_refused(iter(values.values())) or each.type.is_taken(values)
        return Either(expected) if may_be_refused else expected

    def _may_be_refused(self, values: Iterator[Any]) -> bool:
        return any(isinstance(value, str) and (SEPARATOR in value or not value) for value in values)

    def _node(self, type_: Type, identity: Identity | None, inner: Selection) -> Any:
        """A node that something refers to; None where it was looked for and is not there."""
        if identity is None:
            return None
        row = self.nodes.get((type_, type_.canonical(identity)))
        if row is None and not type_.is_virtual and self._needs_item(type_, inner):
            expected = None
        else:
            expected = self._object(type_, identity, row, inner)
        return Either(expected) if self._may_be_refused(value for _, value in identity) else expected

    def _needs_item(self, type_: Type, inner: Selection) -> bool:
        for each in inner.values():
            if isinstance(each, EndAt):
                return True
            if isinstance(each, Leaf) and each.name not in ("id", "__typename"):
                needed = type_.methods[each.name].need if each.name in type_.methods else each.name
                if needed not in type_.certain:
                    return True
        return False

    def _object(self, type_: Type, identity: Identity, row: Row | None, inner: Selection) -> Any:
        """An object in a place that may be null."""
        return _in_nullable_place(
            lambda: {key: self._field(type_, identity, row, each) for key, each in inner.items()}
        )

    def _field(self, type_: Type, identity: Identity, row: Row | None, each: Any) -> Any:
        match each:
            case Leaf("__typename"):
                return type_.name
            case Leaf("id"):
                return IdOf(type_, type_.canonical(identity))
            case Leaf(name):
                values = dict(identity) if row is None else row.values
                return self._leaf(type_, values, name)
            case EndAt(end, inners):
                assert row is not None
                found = row.values[end.name]
                return None if found is None else self._node(end.of(found), found, inners[end.of(found)])
        return self._list(each, identity)

    def _leaf(self, type_: Type, values: Mapping[str, Any], name: str) -> Any:
        if name in type_.methods:
            if values[type_.methods[name].need] is GONE:
                raise Null
            return type_.methods[name](values)
        value, kind = values[name], type_.fields[name].kind
        if value is GONE:
            raise Null
        return None if value is None else kind.shown(value)

    def _list(self, each: ListAt, owner: Identity | None) -> Any:
        said = each.said
        values = [value for _, value in owner or ()]
        values += said.required.values()
        values += [value for operators in said.ranged.values() for value in operators.values()]
        values += [value for identity in said.to or () for _, value in identity]
        expected = _in_nullable_place(lambda: {"": self._connection(each, owner)})
        expected = expected if expected is BROKEN else expected[""]
        may_be_refused = self._may_be_refused(iter(values)) and not isinstance(expected, Either)
        return Either(expected) if may_be_refused else expected

    def _connection(self, each: ListAt, owner: Identity | None) -> Any:
        listing, said = each.listing, each.said
        whole = self.ordered(listing, owner, said)
        if said.to is not None:  # they are read by key, and have the order of the table's keys
            whole = sorted(
                whole, key=lambda row: (self.sort_key(listing, row), *(text.encode() for text in row.key))
            )
        if said.descending:
            whole = whole[::-1]
        matching = [row for row in whole if self.is_within(listing, row, said)]
        if listing.is_one:
            if not matching or self.is_seen_through(each, matching[0]):
                return None
            return self._one(each, matching[0])
        low = 0 if said.after is None else whole.index(said.after) + 1
        high = len(whole) if said.before is None else whole.index(said.before)
        places = {row: place for place, row in enumerate(whole)}
        inside = [row for row in matching if low <= places[row] < high]
        is_last = said.last is not None
        size = said.last if is_last else DEFAULT_SIZE if said.first is None else said.first
        assert size is not None
        page = inside[max(0, len(inside) - size) :] if is_last else inside[:size]
        answer: dict[str, Any] = {}
        refusable = False
        shown = [row for row in page if not self.is_seen_through(each, row)]
        if each.edge is not None:
            answer["edges"] = [self._edge(each, row) for row in shown]
        if each.nodes:
            nodes = [self._neighbour(listing, row, each.nodes) for row in shown]
            if any(node is BROKEN for node in nodes):
                raise Null
            found = [node.expected if isinstance(node, Either) else node for node in nodes]
            answer["nodes"] = [node for node in found if node is not None]
            refusable = any(isinstance(node, Either) for node in nodes)
        if each.counts:
            answer["totalCount"] = len(matching)
        if each.looks:
            more = len(inside) > size
            turned = self._is_behind(said, matching, places, low, high, size, page)
            answer["pageInfo"] = {
                "hasNextPage": turned if is_last else more,
                "hasPreviousPage": more if is_last else turned,
                "startCursor": CursorOf(listing, page[0]) if page else None,
                "endCursor": CursorOf(listing, page[-1]) if page else None,
            }
        # The elements of `nodes` must have a value: where one is refused, the list is null.
        return Either(answer) if refusable else answer

    def _is_behind(
        self,
        said: Said,
        matching: list[Row],
        places: Mapping[Row, int],
        low: int,
        high: int,
        size: int,
        page: list[Row],
    ) -> Any:
        """Whether there is anything on the side from which the page was read, as far as a cursor says so."""
        is_last = said.last is not None
        if (said.before if is_last else said.after) is None:
            return False
        if not size or (not page and said.after and said.before):
            return OneOf((True, False))  # the edges of the cursors themselves may be told
        return any(places[row] >= high if is_last else places[row] < low for row in matching)

    def is_seen_through(self, each: ListAt, row: Row) -> bool:
        """Whether it is found that the row says another type: something is asked for that what is read does not have."""
        if row.type is not None:
            return False
        listing = each.listing
        pairs = [listing.type.keys[None], listing.keys]
        slots = [
            slot
            for pair in pairs
            for template in (pair.partition, pair.sort or ())
            for slot in listing.type.slots(template)
            if not slot.form.loses
        ]
        own = self._needed(listing.type, each.edge or {})
        inner = [*(each.edge_node or {}).values(), *(each.nodes or {}).values()]
        if listing.far_end is None:
            own |= self._needed(listing.type, each.edge_node or {}) | self._needed(
                listing.type, each.nodes or {}
            )
        elif inner:
            own |= {(listing.far_end.name, key) for key in listing.far_end.attributes}
        table = {
            slot.path
            for slot in listing.type.slots((*pairs[0].partition, *(pairs[0].sort or ())))
            if not slot.form.loses
        }
        told = {slot.path for slot in slots}
        optional = {
            path
            for path in told - table
            if (path[0] in listing.type.fields and listing.type.fields[path[0]].optional)
            or (path[0] in listing.type.ends and listing.type.ends[path[0]].optional)
        }
        index = self.model.indexes.get(listing.index or "")
        if index is not None and index.is_plain:
            optional = set()  # its keys are the attributes
        return not own <= told - optional

    def _needed(self, type_: Type, selection: Selection) -> set[Path]:
        found: set[Path] = set()
        for each in selection.values():
            if isinstance(each, EndAt):
                found |= {(each.end.name, key) for key in each.end.attributes} or {(each.end.name,)}
            elif isinstance(each, Leaf) and each.name in type_.methods:
                found.add((type_.methods[each.name].need,))
            elif isinstance(each, Leaf) and each.name in type_.fields:
                found.add((each.name,))
        return found

    def _one(self, each: ListAt, row: Row) -> Any:
        if each.listing.far_end is None:
            return self._neighbour(each.listing, row, each.edge_node or {})
        return self._edge(each, row)

    def _edge(self, each: ListAt, row: Row) -> Any:
        try:
            edge = {} if each.listing.is_one else {"cursor": CursorOf(each.listing, row)}
            edge |= {
                key: self._field(each.listing.type, (), row, leaf) for key, leaf in (each.edge or {}).items()
            }
            if each.edge_node:
                edge["node"] = self._neighbour(each.listing, row, each.edge_node)
        except Null:
            return BROKEN
        return edge

    def _neighbour(self, listing: Listing, row: Row, inner: Selection) -> Any:
        far = listing.far_end
        if far is not None:
            return self._node(far.node, row.values[far.name], inner)
        identity = tuple((name, row.values[name]) for name in listing.type.identity)
        return self._object(listing.type, identity, row, inner)


def _in_nullable_place(made: Callable[[], dict[str, Any]]) -> Any:
    """An object that is null where one of its fields must have a value and has none."""
    try:
        return made()
    except Null:
        return BROKEN


def _is_ordered(order: Any, operator: str, value: Any, wanted: Any) -> bool:
    here, there = order(value), order(wanted)
    return bool(
        {
            "from": here >= there,
            "to": here <= there,
            "lt": here < there,
            "lte": here <= there,
            "gt": here > there,
            "gte": here >= there,
        }[operator]
    )
