"""A first model file for an unknown table, from its description and a sample of its items.

Items are grouped by their keys (`keys`, `kinds`). The groups become record types (`types`, `fields`), which get the
lists that their keys allow (`lists`) and are written as Python (`text`). Before the text is returned, it is checked:
the file can be imported, has no mistakes, and reads the whole sample except for the items that its comments name.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from keygraph.draft.fields import guess
from keygraph.draft.kinds import Kinds
from keygraph.draft.lists import add_lists, name_root_lists
from keygraph.draft.parts import DraftField, DraftType
from keygraph.draft.text import Draft, literal, model_text
from keygraph.draft.types import Drafter
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Table
from keygraph.errors import CorruptItem, Mistake, ModelError
from keygraph.graph import Graph
from keygraph.keys.template import Reference

_EXAMPLES = 10
_QUIET_PARTS = 3
"""After this many parts of the table without a new type, the sample is large enough."""
_TRIES = 200


def draft(
    table: Table,
    items: Sequence[Item],
    check: Callable[[Graph], object] = Graph.check,
    doubts: Sequence[str] = (),
) -> str:
    """Returns the text of a model file for the table, drafted from some of its items.

    `check` raises ModelError for a graph with mistakes; a server may have further rules for names. `doubts` are written
    before the doubts of the draft itself.
    """
    kinds = Kinds(table, items)
    drafter = Drafter(kinds)
    types = drafter.types or [_unknown(table)]
    head = kinds.head_key and kinds.head_key.name
    lead = kinds.reader.lead
    drafted = Draft(
        table, types, kinds.type_attribute, len(items), drafter.slashed_dates, head, lead and lead[1]
    )
    with imported_graph(model_text(drafted)) as graph:
        name_root_lists(drafted, graph)
    _fix(drafted, check)
    with imported_graph(model_text(drafted)) as graph:
        add_lists(drafted, graph)
        _let_be_absent(drafted, graph, items)
    _fix(drafted, check)
    with imported_graph(model_text(drafted)) as graph:
        refused = [(item, reason) for item in items if (reason := why_not_read(graph, item)) is not None]
    return model_text(
        drafted, [*(f"doubt: {doubt}" for doubt in (*doubts, *kinds.doubts)), *_notes(table, refused)]
    )


def _let_be_absent(drafted: Draft, graph: Graph, items: Sequence[Item]) -> None:
    """Makes optional what a type's items lack: those of a type that is left out may be read as another's."""
    types = {type_.name: type_ for type_ in drafted.types}
    for item in items:
        record = graph.recognise(item)
        if record is None:
            continue
        in_keys = {slot.path[0] for slot in record.slots.values()}
        for name, field in types[record.name].fields.items():
            if field.attribute and field.attribute not in item and name not in in_keys:
                field.optional = True


def _unknown(table: Table) -> DraftType:
    """A placeholder type for an empty sample."""
    type_ = DraftType("Item", "node", None, doubts=["the sample is empty: describe your items here"])
    parts = []
    for key, name in zip(table.keys, ("item_id", "sort_key"), strict=False):
        type_.fields[name] = DraftField(_ANNOTATIONS[key.type])
        parts.append((Reference((name,)),))
    type_.partition = parts[0]
    type_.sort = parts[-1] if len(parts) > 1 else ()
    return type_


_ANNOTATIONS = {"S": "ID", "N": "int", "B": "bytes"}


# --- Mistakes -----------------------------------------------------------------------------------------


def _fix(drafted: Draft, check: Callable[[Graph], object]) -> None:
    """Removes as little as possible of what `check` refuses, and leaves a doubt that says why."""
    tries: Counter[str] = Counter()
    for _ in range(_TRIES):
        with imported_graph(model_text(drafted)) as graph:
            found = mistakes_of(graph, check)
        if not found:
            return
        _take_back(drafted, found[0], tries)


def _take_back(drafted: Draft, mistake: Mistake, tries: Counter[str]) -> None:
    types = {type_.name: type_ for type_ in drafted.types}
    concerned = [types[name] for name in _names(mistake) if name in types]
    owner, _, member = mistake.where.partition(".")
    if owner in types and member in types[owner].lists:
        del types[owner].lists[member]
        return
    if mistake.kind == "not-told-apart" and len(concerned) > 1:
        _drop(drafted, min(concerned[:2], key=lambda type_: len(type_.items)), mistake)
        return
    type_ = concerned[0] if concerned else min(drafted.types, key=lambda type_: len(type_.items))
    tries[type_.name] += 1
    if tries[type_.name] == 1:
        type_.calls.clear()
        type_.root_lists.clear()
        type_.doubts.append(f"its keys in indexes are left out: {mistake.problem}")
    elif tries[type_.name] == 2 and type_.kind == "edge":
        type_.kind = "record"
    else:
        _drop(drafted, type_, mistake)


def _names(mistake: Mistake) -> dict[str, None]:
    """Returns the words of a mistake, among them the names of the types that it concerns."""
    return dict.fromkeys(re.findall(r"\w+", f"{mistake.where} {mistake.problem}"))


def _drop(drafted: Draft, type_: DraftType, mistake: Mistake) -> None:
    """Removes a type, and all types with an end of that type."""
    gone = {type_.name}
    while more := {
        each.name
        for each in drafted.types
        if each.name not in gone and any(end.target.name in gone for end in each.ends.values())
    }:
        gone |= more
    drafted.types = [each for each in drafted.types if each.name not in gone]
    drafted.types = drafted.types or [_unknown(drafted.table)]
    for each in drafted.types:
        each.fields |= {
            name: guess(field.attribute or name, each.items)
            for name, field in each.fields.items()
            if field.nodes is not None and field.nodes.target.name in gone
        }
        each.lists = {name: list_ for name, list_ in each.lists.items() if list_.of.name not in gone}
    concerned = next((each for each in drafted.types if each.name in _names(mistake)), drafted.types[0])
    concerned.doubts.append(f"{', '.join(sorted(gone))} left out: {mistake.problem}")


# --- Items that the draft cannot read -----------------------------------------------------------------


def _notes(table: Table, refused: Sequence[tuple[Item, str]]) -> list[str]:
    if not refused:
        return []
    noun = "item" if len(refused) == 1 else "items"
    found = [f"doubt: {len(refused):,} {noun} of the sample cannot be read by these types:"]
    for item, reason in sorted(refused, key=lambda each: each[1])[:_EXAMPLES]:
        key = ", ".join(f"{key.name} {literal(item.get(key.name))}" for key in table.keys)
        found.append(f"  {key}: {reason}")
    if len(refused) > _EXAMPLES:
        found.append(f"  and {len(refused) - _EXAMPLES:,} more")
    return found


# --- Trying a draft -----------------------------------------------------------------------------------

_numbers = itertools.count()


@contextmanager
def imported_graph(text: str) -> Iterator[Graph]:
    """Gives the graph that the text declares. It works only inside the context, because types are resolved on use."""
    name = f"_keygraph_draft_{next(_numbers)}"
    module = ModuleType(name)
    sys.modules[name] = module
    try:
        # Safe to run: all names in it are ours, and every text from the table is quoted.
        exec(compile(text, f"<{name}>", "exec"), vars(module))
        graph = vars(module)["graph"]
        if not isinstance(graph, Graph):
            raise TypeError("a draft declares no graph")
        yield graph
    finally:
        del sys.modules[name]


def mistakes_of(graph: Graph, check: Callable[[Graph], object]) -> Sequence[Mistake]:
    """Returns all mistakes that the check reports."""
    try:
        check(graph)
    except ModelError as error:
        return error.mistakes
    return ()


def why_not_read(graph: Graph, item: Item) -> str | None:
    """Why the graph cannot read an item; None if it can."""
    record = graph.recognise(item)
    if record is None:
        return "no type has such a key"
    try:
        for field in record.fields.values():
            record.reader(field)(item)
        for end in record.ends.values():
            if record.end_identity(item, end) is None and not end.optional:
                return f"{record.name}.{end.name} is missing"
    except (CorruptItem, ValueError) as error:
        return str(error)
    return None


# --- A growing sample ---------------------------------------------------------------------------------


class GrowingDraft:
    """A draft that is tried on one part of the table after another, and redone with the parts that it cannot read."""

    def __init__(self, table: Table, check: Callable[[Graph], object]) -> None:
        """`check` is passed to `draft`."""
        self._table = table
        self._check = check
        self._items: list[Item] = []
        self._types = 0
        self._quiet = 0
        self._text: str | None = None
        self.read = 0
        """The number of items it has been tried on."""

    @property
    def is_settled(self) -> bool:
        """Whether the last few parts had no new type."""
        return self._quiet >= _QUIET_PARTS

    def add(self, items: Sequence[Item], *, is_whole: bool) -> None:
        """Tries the draft on a part of the table. An incomplete part may hide types behind those that it shows."""
        self.read += len(items)
        if self._text is None or not self._reads(items):
            self._items += items
            self._text = draft(self._table, self._items, self._check)
            with imported_graph(self._text) as graph:
                types = len(graph.types)
            if types != self._types:
                self._types, self._quiet = types, 0
                return
        self._quiet += is_whole

    def text(self, doubts: Sequence[str] = ()) -> str:
        """Returns the model file, with these doubts added to its own."""
        if self._text is None or doubts:
            self._text = draft(self._table, self._items, self._check, doubts)
        return self._text

    def _reads(self, items: Sequence[Item]) -> bool:
        with imported_graph(self._text or "") as graph:
            return all(why_not_read(graph, item) is None for item in items)
