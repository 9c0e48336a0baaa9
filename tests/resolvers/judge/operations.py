"""Random operations over a plain model, as far as its schema offers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Protocol

from tests.resolvers.judge.asked import ByKey, Compared, EndAt, Joined, Leaf, ListAt, Said, Selected, Where
from tests.resolvers.judge.items import GONE, Identity, Row
from tests.resolvers.judge.plain import Listing, Model, Path, Slot, Type
from tests.resolvers.judge.values import Kind

DEEPEST = 3


class Offered(Protocol):
    """What the schema offers of a list."""

    def operators(self, listing: Listing, slot: Slot) -> Sequence[str]:
        """What may be said of a part of the sort key; nothing where there is no such argument."""

    def compared(self, listing: Listing) -> Mapping[Path, Sequence[str]]:
        """The operators of `where` by what they compare."""

    def takes(self, listing: Listing, argument: str) -> bool:
        """Whether it has the argument."""

    def cursors(self, listing: Listing, owner: Identity | None, said: Said) -> Sequence[Row]:
        """The rows of a list whose cursors are known."""

    def ids(self, type_: Type) -> Sequence[Identity]:
        """The nodes of a type whose ids are known."""


class Maker:
    """Makes one operation."""

    def __init__(self, model: Model, rows: Sequence[Row], offered: Offered, random: Random) -> None:
        self.model = model
        self.rows = rows
        self.offered = offered
        self.random = random
        self.count = 0

    def chance(self, out_of: int) -> bool:
        return self.random.randrange(out_of) == 0

    def key(self, name: str) -> str:
        self.count += 1
        return f"{name.strip('_')}_{self.count}"

    def operation(self) -> dict[str, Selected]:
        selection: dict[str, Selected] = {}
        for _ in range(self.random.choice([1, 1, 2])):
            roots = [each for each in self.model.roots if self.is_served(each)]
            if roots and self.chance(3):
                listing = self.random.choice(roots)
                selection[self.key(listing.name)] = self.list_at(listing, 1, None, is_certain=True)
            else:
                type_ = self.random.choice(self.model.nodes)
                identity = self.identity(type_)
                inner = self.selection(type_, 1, identity)
                by_id = type_.canonical(identity) in map(
                    type_.canonical, self.offered.ids(type_)
                ) and self.chance(3)
                selection[self.key(type_.query)] = ByKey(type_, identity, inner, by_id)
        return selection

    def identity(self, type_: Type) -> Identity:
        """The name of a node, which mostly exists."""
        known = [row.identity for row in self.rows if row.type is type_]
        for row in self.rows:
            for end in row.type.ends.values() if row.type else ():
                if row.values[end.name] is not None and end.of(row.values[end.name]) is type_:
                    known.append(row.values[end.name])
        if known and self.random.randrange(20):
            return self.random.choice(known)
        fields = type_.fields
        pools = {name: (*fields[name].kind.pool, *type_.taken.get(name, ())) for name in type_.identity}
        return tuple((name, self.random.choice(pool)) for name, pool in pools.items())

    def is_served(self, listing: Listing) -> bool:
        return all(self.offered.operators(listing, slot) for slot in listing.required)

    # --- Selections -----------------------------------------------------------------------------------

    def selection(self, type_: Type, depth: int, identity: Identity | None = None) -> dict[str, Selected]:
        """Fields of an object. `identity` says which one it is, where that is known."""
        selection: dict[str, Selected] = {}
        lists = [each for each in type_.lists if self.is_served(each)] if type_.kind == "node" else []
        for _ in range(self.random.choice([1, 2, 3])):
            if lists and depth < DEEPEST and self.random.randrange(3):
                listing = self.random.choice(lists)
                made = self.list_at(listing, depth + 1, identity, is_certain=identity is not None)
                selection[self.key(listing.name)] = made
            else:
                selection |= self.leaf(type_, depth)
        return selection

    def leaf(self, type_: Type, depth: int) -> dict[str, Selected]:
        names = [*type_.fields, *type_.methods, "__typename"] + (["id"] if type_.kind == "node" else [])
        if type_.ends and self.chance(3):
            end = self.random.choice([*type_.ends.values()])
            inners = {node: self.selection(node, depth + 1) for node in end.nodes}
            return {self.key(end.name): EndAt(end, inners)}
        name = self.random.choice(names)
        return {self.key(name): Leaf(name)}

    def edge_fields(self, listing: Listing, depth: int) -> dict[str, Selected]:
        type_ = listing.type
        if listing.far_end is None:
            return {}
        names = [*type_.fields, *type_.methods]
        chosen = self.random.sample(names, min(len(names), self.random.randrange(3)))
        return {self.key(name): Leaf(name) for name in chosen}

    # --- Lists ----------------------------------------------------------------------------------------

    def list_at(self, listing: Listing, depth: int, owner: Identity | None, *, is_certain: bool) -> ListAt:
        """A list; `is_certain` says that it is known whose it is, so that cursors can be given."""
        said = self.said(listing, owner, is_certain=is_certain)
        far = listing.far_end.node if listing.far_end else listing.type
        if listing.is_one:
            return ListAt(listing, said, self.edge_fields(listing, depth), self.selection(far, depth), None)
        kinds = self.random.choice(["edges", "edges", "nodes", "both", "info"])
        edge = self.edge_fields(listing, depth) if kinds in ("edges", "both") else None
        edge_node = (
            self.selection(far, depth)
            if edge is not None and (listing.far_end is None or self.random.randrange(4))
            else None
        )
        nodes = self.selection(far, depth) if kinds in ("nodes", "both") else None
        return ListAt(
            listing, said, edge, edge_node, nodes, self.chance(3) or kinds == "info", self.chance(2)
        )

    def said(self, listing: Listing, owner: Identity | None, *, is_certain: bool) -> Said:
        said = Said()
        for slot in listing.required:
            said.required[slot] = self.value(listing, slot)
        if listing.is_one:
            return said
        self.say_ranges(listing, said)
        if self.chance(3):
            said.where = self.where(listing, 0)
        has_sort = self.offered.takes(listing, "last")
        match self.random.randrange(6):
            case 0:
                pass
            case 1 | 2 if has_sort:
                said.last = self.random.choice([0, 1, 2, 3, 5, 20])
            case _:
                said.first = self.random.choice([0, 1, 2, 3, 5, 20])
        said.descending = has_sort and self.chance(4)
        known = self.offered.cursors(listing, owner, said) if is_certain else ()
        if known and self.random.randrange(4):
            which = self.random.choice(["after", "after", "before", "both"] if has_sort else ["after"])
            if which != "before":
                said.after = self.random.choice(known)
            if which != "after":
                said.before = self.random.choice(known)
        far = listing.far_end.node if listing.far_end else listing.type
        ids = self.offered.ids(far)
        if ids and self.offered.takes(listing, "to") and self.chance(5):
            said.to = self.random.sample(ids, min(len(ids), self.random.choice([0, 1, 2, 3])))
        return said

    def say_ranges(self, listing: Listing, said: Said) -> None:
        """Something of the first parts of the sort key: all but the last one say `eq`."""
        offered = []
        for slot in listing.ranged:
            operators = self.offered.operators(listing, slot)
            if not operators or self.is_checked_by_value(listing, slot):
                break
            offered.append((slot, operators))
        count = min(len(offered), self.random.choice([0, 0, 1, 1, 2, 3]))
        row = self.row(listing)
        for number, (slot, operators) in enumerate(offered[:count]):
            is_last = number == count - 1
            value = self.value(listing, slot, row)
            ways = [("eq",)]
            if is_last:
                ways += [("from",), ("to",), ("from", "to")] if "from" in operators else []
                ways += [("beginsWith",)] if "beginsWith" in operators else []
            way = self.random.choice(ways)
            if value is None:
                said.ranged[slot] = {"eq": None}
            elif way == ("beginsWith",):
                said.ranged[slot] = {"beginsWith": value[: 1 + self.random.randrange(2)]}
            elif way == ("from", "to") and (other := self.value(listing, slot)) is not None:
                said.ranged[slot] = {"from": value, "to": other}
            else:
                said.ranged[slot] = {way[0]: value}

    def is_checked_by_value(self, listing: Listing, slot: Slot) -> bool:
        """Whether the argument goes by the items' fields where some have other values in their keys."""
        is_read_back = len(slot.path) == 1 and slot.path[0] in listing.type.fields and not slot.form.loses
        return not is_read_back and any(
            row.type is listing.type and listing.index in row.stale for row in self.rows
        )

    def row(self, listing: Listing) -> Row | None:
        rows = [row for row in self.rows if row.type is listing.type]
        return self.random.choice(rows) if rows else None

    def value(self, listing: Listing, slot: Slot, row: Row | None = None) -> Any:
        """A value for a part of a key, of an item or any."""
        type_ = listing.type
        kind: Kind = type_.kind_of(slot.path)
        row = self.row(listing) if row is None or self.chance(3) else row
        value = None if row is None else type_.value(row.values, slot.path)
        if value is None and slot.may_be_empty and self.chance(2):
            return None
        if (value is None or value is GONE or self.chance(8)) and kind.pool:
            value = self.random.choice(kind.pool)
        return "x" if value is None or value is GONE else value

    # --- Filters --------------------------------------------------------------------------------------

    def where(self, listing: Listing, depth: int, *, is_negated: bool = False) -> Where | None:
        if depth < 2 and self.chance(4):
            word = self.random.choice(["and", "or", "not"])
            count = 1 if word == "not" else self.random.choice([1, 2])
            below = is_negated or word == "not"
            several = (self.where(listing, depth + 1, is_negated=below) for _ in range(count))
            inner = [each for each in several if each is not None]
            return Joined(word, tuple(inner)) if inner else None
        offered = self.offered.compared(listing)
        if not offered:
            return None
        path = self.random.choice([*offered])
        kind = listing.type.kind_of(path)
        operators, pool = offered[path], kind.pool
        if is_negated and kind.annotation == "ID":
            # Whether a stored number contains a text is not decided, and so neither is the opposite.
            operators = [each for each in operators if each not in ("contains", "beginsWith")]
        operator = self.random.choice(operators)
        value: Any = self.random.choice(pool)
        match operator:
            case "exists":
                value = self.chance(2)
            case "in":
                value = self.random.sample(pool, min(len(pool), self.random.choice([1, 2])))
            case "between":
                value = sorted((value, self.random.choice(pool)), key=kind.order)
            case "beginsWith" | "contains":
                value = value[: 1 + self.random.randrange(2)]
            case "eq" | "ne" if self.chance(5):
                value = None
        return Compared(path, operator, value)
