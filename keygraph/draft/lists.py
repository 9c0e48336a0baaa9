"""The lists of a draft: one for every path that its keys offer, each with its own name."""

from __future__ import annotations

import re

from keygraph.declare.declaration import ListOptions
from keygraph.draft.names import ScopeNames, field_name, variable_name
from keygraph.draft.parts import DraftList, DraftType
from keygraph.draft.text import Draft
from keygraph.dynamo.table import Index
from keygraph.graph import Graph
from keygraph.model.candidates import best, candidates
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph.names import plural, snake


def add_lists(draft: Draft, graph: Graph) -> None:
    """Gives nodes their lists. `graph` is the graph of the draft without lists."""
    types = {type_.name: type_ for type_ in draft.types}
    for owner in graph.nodes:
        for record in graph.types.values():
            if not record.is_virtual:
                for path in _paths(owner, record):
                    _add(types[owner.name], types[record.name], path, *_choice(owner, record, path))


def _paths(owner: RecordType, record: RecordType) -> list[AccessPath]:
    """Returns the best paths from the node through each end, and paths of other indexes that need no argument."""
    found = []
    for end in record.ends:
        paths = [
            path
            for path in candidates("_", owner, record, ListOptions(end, None, any_index=True))
            # If the node is not in the partition, a client would have to know all its other values.
            if any(slot.name in path.known for slot in path.keys.partition.slots) or not path.required
        ]
        chosen = best(paths)
        found += chosen
        found += [path for path in paths if path not in chosen and path.keys.index and not path.required]
    return found


def _choice(owner: RecordType, record: RecordType, path: AccessPath) -> tuple[str | None, Index | None]:
    """Returns the fewest options that make the path the only best one."""
    for at, index in ((None, None), (path.end, None), (None, path.keys.index), (path.end, path.keys.index)):
        found = best(candidates("_", owner, record, ListOptions(at, index, any_index=index is None)))
        if len(found) == 1 and found[0].end == path.end and found[0].keys is path.keys:
            return at, index
    return path.end, path.keys.index


def _add(owner: DraftType, of: DraftType, path: AccessPath, at: str | None, index: Index | None) -> None:
    is_one = path.keys.index is None and not path.rest.tokens
    whole = snake(of.name)
    own = whole.removeprefix(f"{snake(owner.name)}_") or whole
    if not is_one:
        own, whole = _several(own), _several(whole)
    wanted = [own, whole]
    if path.far_end is not None and not path.far_end.startswith("to_"):
        wanted.insert(0, plural(path.far_end.rstrip("_")))
    if path.far_end is not None and owner.name in {node.name for node in path.nodes}:
        # Both ends are of this type, so the name says which of them this node is.
        wanted = [f"{own}_as_{path.end}"] if at else wanted
    wanted.append(f"{own}_as_{path.end}")
    if path.keys.index is not None:
        wanted.append(f"{own}_{_by(path.keys.index.name)}")
    name = owner.names.take(*(field_name(each, owner.name) for each in wanted))
    owner.lists[name] = DraftList(of, is_one, at, index)


def _several(name: str) -> str:
    """Returns the plural of a name made of words of keys, which may be plurals already: `user_settings`."""
    return name if re.search("[^sui]s$", name) else plural(name)


def name_root_lists(draft: Draft, graph: Graph) -> None:
    """Gives a name to each root list whose usual name is taken."""
    types = {type_.name: type_ for type_ in draft.types}
    names = ScopeNames()
    for reserved in ("node", "nodes", *(snake(record.name) for record in graph.nodes)):
        names.take(reserved)
    for path in graph.root_lists:
        if names.is_free(path.name):
            names.take(path.name)
            continue
        index = path.keys.index_name
        usual = plural(snake(path.record.name))
        how = _by(index) if index else "of_table"
        types[path.record.name].root_lists[index] = names.take(f"{usual}_{how}")


def _by(index: str) -> str:
    return f"by_{snake(variable_name(index)).removeprefix('by_')}"
