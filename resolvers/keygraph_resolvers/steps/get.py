"""Reads nodes by their keys, continues from objects by their fields, and decides what the viewer sees.

`Named` starts `Get` with the nodes that a field of the root names. `Get` drops those that are hidden (`visible_so_far`),
begins the fields that need only keys, looks up the items (`look_up`, `keep_items`), and then begins the other fields
(`FieldsStep`). `ByType` distinguishes objects of several types, and `NodesOfUnknownType` reads those whose type is known only
after the read. The gate of access (`filter_visible`) stands here because it looks up the items that decide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any, TypeAlias, cast
from weakref import ref

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput, CorruptItem, without_frames
from keygraph.graph import Graph
from keygraph.keys.template import Slot
from keygraph.model.permissions import KnownRecord, Permissions
from keygraph.model.records import RecordType
from keygraph_resolvers.engine.requests import All, Begun, Beside, GetItems, Pause, Reads, Running, Start
from keygraph_resolvers.engine.worst import Described, KeyLookups, StepStart, Unstarted, Wait, Worst
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.naming.global_ids import as_in_keys, at_most, read_global_id
from keygraph_resolvers.naming.names import key_arguments
from keygraph_resolvers.read.access import links_of
from keygraph_resolvers.read.connection import Edge
from keygraph_resolvers.read.objects import Entity, Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.federation import read_representation, represented_item
from keygraph_resolvers.schema.field_kinds import Entities, NodeById, NodeByKey, NodesByIds
from keygraph_resolvers.schema.inputs import key_value
from keygraph_resolvers.steps.gather import Gather
from keygraph_resolvers.steps.lists import ListStep
from keygraph_resolvers.steps.selection import SelectedField, Selection
from keygraph_resolvers.steps.step import ItemStep, Step

NodeName: TypeAlias = tuple[RecordType, tuple[str, ...]]
"""A node's type and identity."""


class Named(Step):
    """Reads the nodes that a field of the root names."""

    def __init__(self, selected: SelectedField, gets: Mapping[str, Get]) -> None:
        self.suffix = selected.key
        self._selected = selected
        self._gets = gets

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        selected, [root] = self._selected, objects
        try:
            found = self._objects(op)
        except Exception as error:
            root.found[selected] = as_value(error)
            return []
        root.found[selected] = found if isinstance(selected.kind, NodesByIds) else found[0]
        groups = by_type(each for each in found if isinstance(each, Object))
        return [Start(self._gets[record.name], group) for record, group in groups]

    def _objects(self, run: Run) -> Sequence[Object | BadUserInput]:
        if not isinstance(self._selected.kind, Entities):
            return [Object(record, identity) for record, identity in self._nodes(run)]
        given = self._selected.arguments(run)["representations"]
        return [_entity(*each) for each in zip(self._named(run), given, strict=True)]

    def worst(self, run: Run) -> Worst:
        try:
            counted = dict[str, int]()
            for record, _ in self._nodes(run):
                counted[record.name] = counted.get(record.name, 0) + 1
        except Exception:
            yield Unstarted(tuple(StepStart(get, key=self._key) for get in self._gets.values()), self._nodes)
            return
        for name, count in counted.items():
            key = self._key if count == 1 else f"{count} global ids"
            yield StepStart(self._gets[name], count, key=key, identities=self._identities)

    def _identities(self, run: Run) -> set[tuple[str, ...]]:
        return {identity for _, identity in self._nodes(run)}

    def _nodes(self, run: Run) -> Sequence[NodeName]:
        """Returns the nodes. Raises BadUserInput or GraphQLError if the field names none."""
        return [each for each in self._named(run) if not isinstance(each, BadUserInput)]

    def _named(self, run: Run) -> Sequence[NodeName | BadUserInput]:
        """Returns the nodes; for a representation that names none, its error. Raises as `_nodes` does."""
        selected = self._selected
        return selected.constant or selected.cached(run, partial(self._found, run))

    @cached_property
    def _key(self) -> str:
        if isinstance(self._selected.kind, NodeByKey):
            return f"the argument {' and '.join(name for name, _, _ in self._parts)}"
        return "its global id"

    @cached_property
    def _parts(self) -> list[tuple[str, Slot, str]]:
        """The parts of the key that it takes: the argument, the slot, and the name in the model."""
        record = cast(NodeByKey, self._selected.kind).record
        return [(name, slot, record.leaf_name(slot.path)) for name, slot in key_arguments(record).items()]

    def _found(self, run: Run, given: Mapping[str, Any]) -> Sequence[NodeName | BadUserInput]:
        """Returns the nodes that its arguments name, of its possible types; a representation's error is only its own."""
        graph, gets = run.graph, self._gets
        match self._selected.kind:
            case NodeByKey(record):
                values = {
                    own: key_value(graph, record, slot, as_in_keys(name, slot, given.get(name)))
                    for name, slot, own in self._parts
                }
                return [(record, graph.identity(record, values))]
            case Entities():
                return [_represented(graph, gets, each) for each in given["representations"]]
            case NodeById():
                found = [read_global_id(graph, given["id"])]
            case _:
                texts = at_most("ids", given["ids"], run.limits.max_ids)
                found = [read_global_id(graph, text, "ids") for text in texts]
        return [_served(gets, each) for each in found]


def _served(gets: Mapping[str, Get], named: NodeName) -> NodeName:
    """Returns the node. Raises BadUserInput if the field cannot have its type."""
    name = named[0].name
    if name not in gets:
        raise BadUserInput(f"no {name} can be asked for by its `id`")
    return named


def _represented(graph: Graph, gets: Mapping[str, Get], given: object) -> NodeName | BadUserInput:
    try:
        return _served(gets, read_representation(graph, given))
    except BadUserInput as error:
        return without_frames(error)


def _entity(named: NodeName | BadUserInput, given: Mapping[str, Any]) -> Entity | BadUserInput:
    try:
        return named if isinstance(named, BadUserInput) else Entity(*named, represented_item(named[0], given))
    except BadUserInput as error:
        return without_frames(error)


class Get(Step):
    """Reads the nodes of one selection, if it selects more than their keys contain."""

    def __init__(
        self, fields: FieldsStep, record: RecordType, *, must_exist: bool = False, is_copied: bool = False
    ) -> None:
        """`must_exist`: the nodes are read in any case, to check that they exist. `is_copied`: they never are, since the
        records that name them have copies of what is selected."""
        self.breadth = len(record.table_keys.shard_texts)
        self.fields = fields
        self.record = record
        self.selection = fields.selection
        self.must_exist = must_exist
        self.reads = not record.is_virtual and (must_exist or (self.selection.needs_item and not is_copied))
        self.may_be_known = False
        """Whether an item of the type may have been read for another place of the query."""
        self._node = Described(kind="get node", records=(record,), step=ref(self), has_rules=True)

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        begun: Begun = []
        if op.access is not None:
            objects, undecided = visible_so_far(op.access, self.record, objects)
            if undecided:
                # Nothing below them is read before it is known that the viewer sees them.
                begun.append(Beside(run_visible(op, self.record, undecided, self.fields, reads=self.reads)))
        unread = [each for each in objects if each.item is None] if self.reads else ()
        begun += self.fields.run_by_key(op, objects, unread)
        if len(unread) < len(objects):
            there = [each for each in objects if each.item is not None] if unread else objects
            begun += self.fields.run_by_item(op, there)
        if unread:
            begun.append(Beside(self._read(op, unread)))
        return begun

    def _read(self, op: Run, unread: Sequence[Object]) -> Reads[Begun]:
        there = keep_items(op, (yield from look_up(op, self.record, unread)))
        return self.fields.run_by_item(op, there) if there else []

    def worst(self, run: Run) -> Worst:
        if self.selection.fields or self.must_exist:
            yield self._node
        if run.access is not None and run.access.decision(self.record) is False:
            return
        if run.access is not None and not run.access.is_decided_by_key(self.record):
            # Only a node's item may show that the viewer sees it.
            yield from worst_of_visible(run, self._node.records)
            yield from self.fields.worst(run)
            return
        yield from self.fields.worst_by_key(run, is_wanted=self.reads)
        if self.reads:
            is_gathered = self.fields.gather is not None and self.fields.gather.reads_node(run)
            if not is_gathered:
                yield KeyLookups(self._node.records)
            yield Wait("items", 2 if is_gathered else 1, 0 if self.may_be_known else 1)
        yield from self.fields.worst_by_item(run)


@dataclass(eq=False)
class FieldsStep(ItemStep):
    """Continues from objects by the fields of one selection."""

    selection: Selection
    lists: Sequence[ListStep]
    """They need only the object's key, as `key_ends` do."""
    key_ends: Sequence[Step]
    by_item: Sequence[Step]
    selves: Sequence[ItemStep] = ()
    """They continue from the same objects: the fields of an edge whose node is the edge's own item."""

    def __post_init__(self) -> None:
        record, lists = self.selection.record, self.lists
        self.by_key = (*lists, *self.key_ends)
        self.gather = Gather(record, lists) if record is not None and record.gathers and lists else None
        # If one list has two names, the longer page is requested first, and the other one is a part of it.
        self._sorts = len({each.path for each in lists}) < len(lists)
        self.is_end = not (self.by_key or self.by_item or self.selves)
        """Whether nothing continues from its objects."""

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        return [*self.run_by_key(op, objects), *self.run_by_item(op, objects)]

    def run_by_key(self, op: Run, objects: Sequence[Object], unread: Collection[Object] = ()) -> Begun:
        begun: Begun = []
        for same in self.selves:
            begun += same.run_by_key(op, objects, unread)
        if self.gather is None and not self._sorts:
            for step in self.by_key:
                begun.append(Start(step, objects))
            return begun
        wanted = set(unread)
        lists = (self._lists_of(op, each, is_wanted=each in wanted) for each in objects)
        begun += [Beside(_in_turns(lists))] if self.gather is None else chain.from_iterable(lists)
        return [*begun, *(Start(step, objects) for step in self.key_ends)]

    def _lists_of(self, op: Run, owner: Object, *, is_wanted: bool) -> Begun:
        begun: Begun = []
        bound = [(step, connection) for step in self.lists for connection in step.bind(op, [owner])]
        bound.sort(key=lambda one: -one[1].query.extent.count)
        # A single list, without the item, is not read with anything else.
        if self.gather is not None and (len(bound) > 1 or (bound and is_wanted)):
            begun.append(self.gather.read(op, owner, bound, is_wanted=is_wanted))
        return begun + [Beside(step.read(op, [connection]), step) for step, connection in bound]

    def run_by_item(self, op: Run, objects: Sequence[Object]) -> Begun:
        begun: Begun = []
        for same in self.selves:
            begun += same.run_by_item(op, objects)
        for step in self.by_item:
            begun.append(Start(step, objects))
        return begun

    def worst_by_key(self, run: Run, *, is_wanted: bool) -> Worst:
        if self.gather is not None:
            yield from self.gather.worst(run, is_wanted=is_wanted)
        for step in self.key_ends if self.gather is not None else self.by_key:
            yield StepStart(step)
        for same in self.selves:
            yield from same.worst_by_key(run, is_wanted=is_wanted)

    def worst_by_item(self, run: Run) -> Worst:
        for step in self.by_item:
            yield StepStart(step)
        for same in self.selves:
            yield from same.worst_by_item(run)


def _in_turns(parts: Iterable[Begun]) -> Reads[None]:
    """Begins the parts, in turns with other operations."""
    for each in parts:
        yield each
        yield Pause()


# --- What the viewer sees -----------------------------------------------------------------------------------
# The gate of access, which all steps go through. It decides by key, then by item, then by the other items that rules
# need; what decides is looked up as it becomes known. Hidden objects are treated as nonexistent.


def visible_so_far(
    access: Permissions, record: RecordType, objects: Sequence[Object], names: Iterable[str] = ()
) -> tuple[Sequence[Object], Sequence[Object]]:
    """Returns the objects of a type that the viewer sees, and those for which something unread decides: that, or whether
    their fields `names` may be read."""
    rule = access.rule(record)
    decisions = [rule] if isinstance(rule, bool) else [rule.of_key(each.identity) for each in objects]
    if not names and decisions.count(True) == len(decisions):
        return objects, ()  # the keys of most objects decide
    visible: list[Object] = []
    undecided: list[Object] = []
    for each in objects:
        decision = access.decide(each)
        if decision is False:
            each.is_missing = True
        elif decision is True and all(isinstance(access.decide(each, "read", n), bool) for n in names):
            visible.append(each)
        else:
            undecided.append(each)
    return visible, undecided


def filter_visible(
    op: Run,
    record: RecordType,
    objects: Sequence[Object],
    wait: str = "visible",
    *,
    names: Sequence[str] = (),
    reads: bool = False,
) -> Reads[list[Object]]:
    """Returns the objects of a type that the viewer sees, after what decides it was read: their items, and other items
    that rules need. The others are then missing, or have an error.

    `names` are fields for which it is decided too whether they may be read; `reads`: the items are wanted in any case.
    """
    access = op.access
    if access is None:
        return [*objects]
    found, undecided = visible_so_far(access, record, objects, names)
    visible = [*found]
    while undecided:
        unread, linked = list[Object](), list[tuple[tuple[Object, Key], Key]]()
        for each in undecided:
            decisions = [access.decide(each, "read", name) for name in (None, *names)]
            keys = {key: None for decision in decisions for key in access.unknown_keys(each, decision)}
            linked += [((each, key), key) for key in keys]
            is_linked = all(isinstance(one, bool) or access.is_linked(record, one) for one in decisions)
            if each.item is None and (reads or not is_linked):
                unread.append(each)
            if keys:
                op.meter.take_lookups(len(keys))
                yield Pause()
        items, others = yield All([look_up(op, record, unread, wait), GetItems(linked, wait)])
        keep_items(op, items)
        for (each, key), answer in others:
            if isinstance(answer, Exception):
                each.error = answer
            else:
                access.learn(key, answer)
        left = [each for each in undecided if not each.is_missing and not each.error]
        found, undecided = visible_so_far(access, record, left, names)
        visible += found
    return visible


def run_visible(
    op: Run, record: RecordType, objects: Sequence[Object], then: Step, *, reads: bool = False
) -> Reads[Running]:
    """Continues from the objects that the viewer sees."""
    visible = yield from filter_visible(op, record, objects, reads=reads)
    return then.run(op, visible) if visible else []


def worst_of_visible(
    run: Run, records: tuple[RecordType, ...], number: int = 1, wait: str = "visible"
) -> Worst:
    """Yields what decides whether the viewer sees objects of a type, if only their items can show it."""
    yield KeyLookups(records, number)
    links = [link for record in records for link in links_of(run, record)]
    for needs_item in (False, True):
        some = [each for each in links if each.needs_item is needs_item]
        for each in some:
            yield KeyLookups((each.record,), number)
        if some or not needs_item:
            yield Wait(wait, 1, 0)


# --- Items -----------------------------------------------------------------------------------------------------

Answers: TypeAlias = "list[tuple[Object, Item | Exception | None]]"
"""Objects, each with the item that was found under its key, or the error of reading it."""


def by_type(objects: Iterable[Object]) -> Iterable[tuple[RecordType, list[Object]]]:
    found: dict[RecordType, list[Object]] = {}
    for each in objects:
        found.setdefault(each.record, []).append(each)
    return found.items()


def look_up(op: Run, record: RecordType, objects: Iterable[Object], wait: str = "items") -> Reads[Answers]:
    """Returns what was found for nodes of a type by their keys; a node that may be in several shards is looked up in all."""
    write = record.write_key
    answers: Answers
    if write is not None:
        answers = yield GetItems([(each, write(each.identity)) for each in objects], wait)
        return answers
    wanted = [(each, key) for each in objects for key in op.graph.table_keys(record, each.identity)]
    answers = yield GetItems(wanted, wait)
    return _in_one_shard(op, answers) if record.table_keys.shards else answers


def _in_one_shard(run: Run, answers: Answers) -> Answers:
    """Returns, for nodes that were looked up in all shards, the item that was found in one of them.

    If two items are the node, it is not known which one is meant: that is the node's error, unless the viewer may not
    see one of them.
    """
    graph, access = run.graph, run.access
    by_node: dict[Object, list[Item | Exception | None]] = {}
    for each, answer in answers:
        by_node.setdefault(each, []).append(answer)
    found: Answers = []
    for each, several in by_node.items():
        failed = [answer for answer in several if isinstance(answer, Exception)]
        there = [
            answer
            for answer in several
            if isinstance(answer, dict) and graph.is_of(answer, (each.record, *each.others))
        ]
        if len(there) > 1 and access is not None:
            there = [
                item
                for item in there
                if access.decide(KnownRecord(graph.recognise(item) or each.record, each.identity, item))
                is not False
            ]
        if len(there) > 1:
            problem = f"{each.record.name}: two items, in different shards, have the key of this one"
            failed.append(CorruptItem(problem))
        found.append((each, (failed or there or [None])[0]))
    return found


def keep_items(run: Run, answers: Iterable[tuple[Object, Item | Exception | None]]) -> list[Object]:
    """Keeps what was found for each node; returns those that exist."""
    graph, there = run.graph, []
    last, identify = None, None
    for each, answer in answers:
        if isinstance(answer, Exception):
            each.error = answer
            continue
        record, own = each.record, None
        if answer is not None:
            if identify is None or record is not last:
                last, identify = record, graph.identifier(record, record.keys[None])
            own = identify(answer)
            if own is None and each.others and graph.is_of(answer, each.others):
                own = record.read_identity(answer) or each.identity
        if own is None or (own != each.identity and record.attributes_of_identity and not _takes(each, own)):
            each.is_missing = True
        else:
            each.item = answer
            there.append(each)
    return there


def _takes(found: Object, identity: tuple[str, ...]) -> bool:
    """Returns whether an object takes the identity of its whole item: it was read in a list, by a key that may be read
    in several ways. If it was looked up by its identity, it does not: the item is another object's."""
    if isinstance(found, Edge):
        found.identity = identity
    return isinstance(found, Edge)


# --- Objects of several types ---------------------------------------------------------------------------


class ByType(Step):
    """Continues from objects that each have one of several types."""

    def __init__(self, steps: Mapping[str, Step]) -> None:
        """`steps` are the steps for each type, by its name."""
        self._steps = steps

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        return [Start(self._steps[record.name], group) for record, group in by_type(objects)]

    def worst(self, run: Run) -> Worst:
        for step in self._steps.values():
            yield StepStart(step)


class NodesOfUnknownType(ByType):
    """Nodes whose key may not determine the type: it is known after the node is read."""

    def __init__(self, gets: Mapping[str, Get]) -> None:
        super().__init__(gets)
        self._gets = gets
        self._node = Described(
            kind="get node", records=tuple(get.record for get in gets.values()), step=ref(self)
        )

    def run(self, op: Run, objects: Sequence[Object]) -> Begun:
        undecided = [each for each in objects if each.others and each.item is None]
        known = [each for each in objects if not each.others or each.item is not None]
        unread = [Beside(self._run_undecided(op, record, group)) for record, group in by_type(undecided)]
        return [*super().run(op, known), *unread]

    def _run_undecided(self, op: Run, record: RecordType, objects: Sequence[Object]) -> Reads[Begun]:
        there = keep_items(op, (yield from look_up(op, record, objects)))
        for each in there:
            if each.item is not None and (known := op.graph.recognise(each.item)) is not None:
                each.record, each.others = known, ()
        return [
            Beside(run_visible(op, own, group, self._gets[own.name].fields)) for own, group in by_type(there)
        ]

    def worst(self, run: Run) -> Worst:
        # Each node is read once. The key of some determines the type, so that what is below them starts at once.
        yield self._node
        yield KeyLookups(self._node.records)
        yield Wait("items", 1, 0)
        for get in self._gets.values():
            yield StepStart(get.fields)
