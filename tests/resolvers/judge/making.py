"""Random models: nodes, and what joins them, under keys of every kind that a model can declare."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from random import Random

from tests.resolvers.judge.plain import (
    End,
    Field,
    Index,
    KeyPair,
    Listing,
    Method,
    Model,
    Part,
    Slot,
    Template,
    Type,
    Whole,
)
from tests.resolvers.judge.sharing import share_keys
from tests.resolvers.judge.values import (
    AWKWARD_TEXTS,
    COLOURS,
    DECIMALS,
    EXACT_DECIMALS,
    FLAGS,
    INSTANTS,
    LOWER,
    MOMENTS,
    NUMBERED_IDS,
    NUMBERS,
    PLAIN_TEXTS,
    SECONDS,
    SLUG,
    Form,
    Kind,
    day_kind,
    text_kind,
)

_NODES = ("Ant", "Bee", "Cat")
_OTHERS = ("Visit", "Loan", "Mark", "Deal")
_SHARDS = (("0", "1"), ("0", "1", "2"), ("1", "2", "3"), ("eu", "us"))
_WRITTEN = "Format(lambda value: value.strftime('%Y/%m/%d'), lambda text: datetime.strptime(text, '%Y/%m/%d').date(), ordered=True)"


def made_model(random: Random, name: str) -> Model:
    return _Maker(random, name).model()


class _Maker:
    def __init__(self, random: Random, name: str) -> None:
        self.random = random
        self.model_ = Model(name, [], {}, [], random.choice(["kind", None]))
        self.model_.formats = {
            "'lower'": "Format(str.lower)",
            "'newest'": "Format.reversed(99999)",
            "'short'": "Format.base(36, width=4)",
            "'tens'": "Format(lambda value: f'{value // 10 * 10:05d}', ordered=True)",
            "'slug'": "Format(lambda value: value.replace(' ', '-').lower())",
        }
        self.days = day_kind()
        if self.chance(4):
            self.model_.formats["date"] = _WRITTEN
            self.days = day_kind(lambda value: date.strftime(value, "%Y/%m/%d"))
        self.model_.awkward = self.chance(5)
        if not self.model_.awkward and self.chance(3):
            self.model_.separator = "#"
        self.model_.is_flat = self.chance(8)
        self.model_.is_camel = self.chance(3)
        self.indexes = 0

    def chance(self, out_of: int) -> bool:
        return self.random.randrange(out_of) == 0

    def pick_pool(self, kind: Kind, most: int = 4) -> Kind:
        return replace(kind, pool=tuple(self.random.sample(kind.pool, min(most, len(kind.pool)))))

    def texts(self, annotation: str = "str") -> Kind:
        pool = PLAIN_TEXTS + (AWKWARD_TEXTS * 2 if self.model_.awkward else ())
        return self.pick_pool(text_kind(tuple(dict.fromkeys(pool)), annotation, (LOWER, SLUG)))

    def kind(self) -> Kind:
        made = self.random.choice(
            [self.texts(), self.texts(), NUMBERS, DECIMALS, self.days, MOMENTS, INSTANTS, SECONDS, COLOURS]
        )
        return self.pick_pool(made)

    def model(self) -> Model:
        model = self.model_
        if not model.is_flat and self.chance(3):
            model.indexes["inverted"] = Index("inverted", ("SK", "PK"), is_inverted=True)
        for name in _NODES[: self.random.choice([2, 3, 3])]:
            model.types.append(self.node(name))
        for name in self.random.sample(_OTHERS, self.random.choice([2, 3])):
            model.types.append(self.other(name))
        if not model.is_flat and not model.awkward and self.chance(2):
            model.types += self.owned()
        share_keys(model, self.random)
        for node in model.nodes:
            beside = [
                each
                for each in node.lists
                if each.index is None and not each.required and not each.type.ends[each.end or ""].others
            ]
            partition = node.keys[None].partition
            node.is_gathered = bool(beside) and not node.is_virtual and len(partition) == 2 and self.chance(3)
        return model

    # --- Nodes ----------------------------------------------------------------------------------------

    def node(self, name: str) -> Type:
        made = Type(name, "node")
        head, low = name.upper(), name.lower()
        zone = Field("zone", self.pick_pool(self.texts(), 2), attribute="zone")
        own = Field(f"{low}_id", self.texts("ID"), attribute=f"{low}_id")
        if self.chance(3):
            own = Field(f"{low}_no", self.pick_pool(NUMBERS), attribute=f"{low}_no")
        forms = [each for each in own.kind.forms if not each.loses]
        form = LOWER if own.kind.is_text and self.chance(5) else self.random.choice(forms)
        shapes = ["one", "one", "profile", "two", "split", "virtual"]
        shape = self.random.choice(["one", "two", "virtual"] if self.model_.is_flat else shapes)
        slot = Slot((own.name,), forms[0] if shape == "virtual" else form)
        if shape in ("two", "split"):
            made.fields["zone"] = zone
        made.fields[own.name] = own
        made.identity = tuple(made.fields)
        zone_slot = Slot(("zone",), zone.kind.forms[0])
        if shape == "two":
            partition: Template = (f"{head}#", zone_slot, "#", slot)
            made.keys[None] = self.pair(partition, partition)
        elif shape == "split":
            made.keys[None] = KeyPair((f"{head}S#", zone_slot), (f"{head}#", slot))
        else:
            partition = (f"{head}#", slot)
            made.keys[None] = self.pair(partition, ("PROFILE",) if shape == "profile" else partition)
            made.is_virtual = shape == "virtual"
        if not made.is_virtual:
            self.give_fields(made, self.random.randint(1, 3))
            if self.chance(2):
                self.give_root(made)
        return made

    def pair(self, partition: Template, sort: Template) -> KeyPair:
        return KeyPair(partition, None if self.model_.is_flat else sort)

    def give_fields(self, made: Type, count: int) -> None:
        place = f"{made.name.lower()}_map." if self.chance(4) else ""
        for number in range(count):
            others = (FLAGS, NUMBERED_IDS, EXACT_DECIMALS)
            kind = self.pick_pool(self.random.choice(others)) if self.chance(4) else self.kind()
            name = f"{made.name.lower()}_{'xyzuvw'[number]}"
            made.fields[name] = Field(name, kind, self.chance(2), f"{place}{name}")
        if self.chance(3):
            texts = [
                field
                for field in made.fields.values()
                if field.kind.annotation == "str" and not field.optional
            ]
            days = [
                field
                for field in made.fields.values()
                if field.kind.annotation == "date" and not field.optional
            ]
            if texts:
                kind = text_kind(())
                made.methods["initial"] = Method("initial", texts[0].name, kind, "value[:1].upper()")
            elif days:
                made.methods["era"] = Method("era", days[0].name, text_kind(()), "'Y' + str(value.year)")

    # --- Parts of keys --------------------------------------------------------------------------------

    def refer(self, end: End) -> tuple[Template, Template]:
        """The partition of a node at an end, and what of its key stands in front of the sort key."""
        pair = end.node.keys[None]
        named = {part.path for part in pair.partition if isinstance(part, Slot)}
        is_whole = {path for (path,) in named} == {*end.node.identity}
        if is_whole and self.random.randrange(3):
            return (Whole(end.name),), ()
        partition = self.under(end, pair.partition)
        return partition, () if is_whole else self.under(end, (pair.sort or ())[1:])

    def refer_in_part(self, end: End) -> Template:
        """A partition in which several nodes are, whose names differ in the zone."""
        name = end.node.identity[-1]
        return (f"{end.node.name.upper()}IN#", Slot((end.name, name), self.form_of(end.node, name)))

    def form_of(self, node: Type, name: str) -> Form:
        pair = node.keys[None]
        slots = node.slots((*pair.partition, *(pair.sort or ())))
        return next(slot.form for slot in slots if slot.path == (name,))

    def under(self, end: End, template: Template) -> Template:
        return tuple(
            Slot((end.name, *part.path), part.form) if isinstance(part, Slot) else part for part in template
        )

    def head(self, made: Type, word: str = "") -> Template:
        """What a sort key begins with; nothing now and then, where items say their types."""
        if self.model_.type_attribute and self.chance(3):
            return ()
        return (f"{made.name.upper()}{word}#",)

    def slot(self, made: Type, name: str, *, is_certain: bool) -> Slot:
        kind = made.methods[name].kind if name in made.methods else made.fields[name].kind
        optional = name in made.fields and made.fields[name].optional
        return Slot((name,), self.random.choice(kind.forms), optional and not is_certain and self.chance(2))

    def candidates(self, made: Type, *, certain: bool) -> list[str]:
        names = [
            field.name
            for field in made.fields.values()
            if field.kind.forms and not (certain and field.optional) and field.name not in ("zone", "seq")
        ]
        return [*names, *made.methods, *made.methods]

    def parts(self, made: Type, count: int, *, certain: bool = False) -> list[Part]:
        names = [*dict.fromkeys(self.candidates(made, certain=certain))]
        self.random.shuffle(names)
        parts: list[Part] = []
        for name in names[:count]:
            parts += [self.slot(made, name, is_certain=certain), "#"]
        return parts[:-1]

    def told_apart(self, made: Type, sort: Template) -> Template:
        """The sort key, which begins with a word where it could begin with any text: keys of other types would fit it."""
        first = sort[0] if sort else ""
        if isinstance(first, Slot) and made.kind_of(first.path).is_text:
            return (f"{made.name.upper()}#", *sort)
        return sort

    def joined(self, *groups: Template) -> Template:
        parts: list[Part] = []
        for group in groups:
            if group and parts and not (isinstance(parts[-1], str) and parts[-1].endswith("#")):
                parts.append("#")
            parts += group
        return tuple(parts)

    # --- Lists ----------------------------------------------------------------------------------------

    def index(self, **given: object) -> Index:
        self.indexes += 1
        name = f"gsi{self.indexes}"
        # An index of keys alone does not have what says where such a value ends.
        projections = ["ALL"] if self.model_.awkward else ["ALL", "ALL", "ALL", "KEYS_ONLY"]
        projection = self.random.choice(projections)
        made = Index(name, (f"{name}pk", f"{name}sk"), projection=projection)
        made = replace(made, **given)  # type: ignore[arg-type]
        self.model_.indexes[name] = made
        return made

    def keys(self, made: Type, index: Index, partition: Template, sort: Template, *, is_whole: bool) -> None:
        """Gives the type its keys in an index, which has no sort key now and then. `is_whole`: the partition tells whose
        list it is."""
        if is_whole and not index.is_number and self.chance(6):
            self.model_.indexes[index.name] = replace(index, attributes=index.attributes[:1])
            made.keys[index.name] = KeyPair(partition, None)
        else:
            made.keys[index.name] = KeyPair(partition, sort)

    def give_root(self, made: Type) -> None:
        """A list at the root: all of a type, or those with a value."""
        partition: Template = (f"{made.name.upper()}S",)
        certain = [each for each in self.candidates(made, certain=True) if each not in made.identity]
        shards: tuple[str, ...] = ()
        if certain and self.chance(2):
            partition = (f"{partition[0]}#", self.slot(made, self.random.choice(certain), is_certain=True))
        elif self.chance(3):
            partition, shards = (f"{partition[0]}#",), self.random.choice(_SHARDS)
        taken = {part.path for part in partition if isinstance(part, Slot)}
        sort = self.sort_of(made, taken)
        numbers = [
            name for name in self.candidates(made, certain=False) if made.kind_of((name,)).annotation == "int"
        ]
        is_number = bool(numbers) and (numbers[0],) not in taken and self.chance(2)
        if is_number:
            sort = (Slot((numbers[0],), Form("", str)),)
        index = self.index(is_number=is_number)
        if shards:
            made.keys[index.name] = KeyPair(partition, sort, shards)
        else:
            self.keys(made, index, partition, sort, is_whole=True)
        is_one = not shards and len(partition) == 2 and self.chance(4)
        name = f"all_{made.name.lower()}s" if not is_one else f"{made.name.lower()}_found"
        self.model_.roots.append(Listing(name, None, made, index.name, None, is_one))

    def sort_of(self, made: Type, taken: set[tuple[str, ...]], head: Template = ()) -> Template:
        parts = self.parts(made, self.random.choice([1, 1, 2, 2, 3]))
        kept: list[Part] = []
        for part in parts:
            if isinstance(part, Slot) and part.path not in taken:
                kept += [part, "#"]
        return self.told_apart(made, self.joined(head, tuple(kept[:-1]))) or (f"{made.name.upper()}",)

    def other(self, name: str) -> Type:
        """An edge, a record, or a node that belongs to another."""
        made = Type(name, self.random.choice(["edge", "record", "record", "node"]))
        nodes = list(self.model_.nodes[:3])
        low = name.lower()
        first, second = self.random.choice(nodes), self.random.choice(nodes)
        is_family = first is second and "zone" in first.identity and self.chance(2)
        for number, node in enumerate((first, second)):
            end_name = f"{low}_{'from' if number == 0 else 'to'}"
            attributes = {key: f"{end_name}_{key}" for key in node.identity}
            if is_family or ("zone" in attributes and self.chance(4)):
                attributes["zone"] = f"{low}_zone"
            optional = number == 1 and made.kind != "edge" and self.chance(3)
            own = {f"{end_name}_{key}" for key in node.identity} == {*attributes.values()}
            is_whole = own and node.is_told_by_partition and self.chance(3)
            made.ends[end_name] = End(end_name, node, attributes, optional, is_whole=is_whole)
        if self.shares_with_an_optional_end(made):
            name_, end = list(made.ends.items())[1]
            made.ends[name_] = replace(end, optional=False)
        self.give_fields(made, self.random.randint(2, 4))
        near, far = made.ends.values()
        partition, front = self.refer(near)
        if made.kind == "node":
            key = Field(f"{low}_id", self.pick_pool(text_kind(PLAIN_TEXTS, "ID"), 9), attribute=f"{low}_id")
            made.fields = {key.name: key, **made.fields}
            made.identity = (key.name,)
            template: Template = (f"{name.upper()}#", Slot((key.name,), key.kind.forms[0]))
            made.keys[None] = self.pair(template, template)
            index = self.index()
            sort = self.sort_of(
                made, set(), self.joined(front, self.head(made)) if front else self.head(made)
            )
            self.keys(made, index, partition, sort, is_whole=not front)
            near.node.lists.append(Listing(f"{low}s", near.node, made, index.name, near.name))
        elif self.model_.is_flat:
            self.give_flat(made, near, far)
        elif made.kind == "edge":
            there, behind = self.refer(far)
            # From a node to itself it would have the node's own key.
            head = (f"{name.upper()}#",) if first is second else self.head(made)
            sort = self.told_apart(made, self.joined(head, front, there, behind))
            made.keys[None] = KeyPair(partition, sort)
            shared = {*near.attributes.values()} & {*far.attributes.values()}
            made.is_mirrored = first is second and not shared and not front and self.chance(2)
            is_one = not made.is_mirrored and self.chance(8)
            near.node.lists.append(Listing(f"{low}s", near.node, made, None, near.name, is_one))
            if "inverted" in self.model_.indexes and not front and not made.is_mirrored:
                made.keys["inverted"] = KeyPair(sort, partition)
                far.node.lists.append(Listing(f"{low}s_in", far.node, made, "inverted", far.name))
        else:
            made.fields["seq"] = Field("seq", replace(NUMBERS, pool=tuple(range(30))), attribute="seq")
            room = self.candidates(made, certain=True)
            taken: set[tuple[str, ...]] = set()
            if room and self.chance(4):
                slot = self.slot(made, self.random.choice(room), is_certain=True)
                taken = {slot.path}
                # Behind a key of several texts it would fit that key too.
                is_behind = len(near.node.identity) == 1 and self.chance(2)
                partition = (*partition, "#IN#", slot) if is_behind else ("IN#", slot, "#", *partition)
            parts = tuple(part for part in self.parts(made, self.random.choice([0, 1, 1, 2]), certain=True))
            if any(isinstance(part, Slot) and part.path in taken for part in parts):
                parts = ()
            unique = Slot(("seq",), NUMBERS.forms[0])
            sort = self.told_apart(made, self.joined(self.head(made), front, parts, (unique,)))
            made.keys[None] = KeyPair(partition, sort)
            near.node.lists.append(Listing(f"{low}s", near.node, made, None, near.name))
        if made.kind != "node" and not made.is_mirrored and not self.model_.is_flat and self.chance(3):
            self.give_local(made, near, front)
        self.leave_to_keys(made)
        if not made.is_mirrored:
            self.give_other_side(made, far)
        if self.chance(3):
            self.give_root(made)
        if self.chance(3):
            self.give_plain(made)
        return made

    def owned(self) -> list[Type]:
        """A record that belongs to a node of one of several types, and may name another such node."""
        members = [
            node
            for node in self.model_.nodes
            if not node.ends
            and {*node.certain}
            == {slot.path[0] for slot in node.slots(node.keys[None].partition)}
            == {*node.identity}
        ]
        if len(members) < 2:
            return []
        made = Type("Own", "record")
        for number, name in enumerate(("own_by", "own_seen")[: self.random.choice([1, 2])]):
            first, *others = self.random.sample(members, len(members))
            made.ends[name] = End(name, first, {}, number == 1, tuple(others))
        self.give_fields(made, self.random.randint(1, 3))
        made.fields["seq"] = Field("seq", replace(NUMBERS, pool=tuple(range(30))), attribute="seq")
        unique, whole = Slot(("seq",), NUMBERS.forms[0]), (Whole("own_by"),)
        parts = tuple(self.parts(made, self.random.choice([0, 1, 2]), certain=True))
        made.keys[None] = KeyPair(
            whole, self.told_apart(made, self.joined(self.head(made), parts, (unique,)))
        )
        index = self.index(projection="ALL")
        made.keys[index.name] = KeyPair(whole, self.sort_of(made, set(), ("OWNBY#",)))
        for node in made.ends["own_by"].nodes:
            node.lists.append(Listing("owns", node, made, None, "own_by"))
            node.lists.append(Listing("owns_by", node, made, index.name, "own_by", self.chance(8)))
        self.leave_to_keys(made)
        if self.chance(3):
            self.give_root(made)
        return [made]

    def give_flat(self, made: Type, near: End, far: End) -> None:
        """A key for a table without a sort key, and an index by which the first end finds it."""
        head, low = f"{made.name.upper()}#", made.name.lower()
        if made.kind == "edge":
            ends = [self.under(end, end.node.keys[None].partition) for end in (near, far)]
            made.keys[None] = KeyPair(self.joined((head,), *ends), None)
        else:
            made.fields["seq"] = Field("seq", replace(NUMBERS, pool=tuple(range(30))), attribute="seq")
            made.keys[None] = KeyPair((head, Slot(("seq",), NUMBERS.forms[0])), None)
        index = self.index()
        sort = self.sort_of(made, set(), self.head(made))
        self.keys(made, index, self.refer(near)[0], sort, is_whole=True)
        near.node.lists.append(Listing(f"{low}s", near.node, made, index.name, near.name))

    def give_local(self, made: Type, near: End, front: Template) -> None:
        """A local index, in which what stands in a partition is sorted otherwise."""
        index = self.index(is_local=True)
        index = self.model_.indexes[index.name] = replace(index, attributes=("PK", index.attributes[1]))
        partition, head = made.keys[None].partition, self.head(made, "IN")
        taken = {slot.path for slot in made.slots(partition)}
        sort = self.sort_of(made, taken, self.joined(front, head) if front else head)
        made.keys[index.name] = KeyPair(partition, sort)
        name = f"{made.name.lower()}s_beside"
        near.node.lists.append(Listing(name, near.node, made, index.name, near.name))

    def leave_to_keys(self, made: Type) -> None:
        """Some fields stand in the table's key alone."""
        pair = made.keys[None]
        if self.model_.awkward:
            return  # nothing would say where such a value ends
        for slot in made.slots((*pair.partition, *(pair.sort or ()))):
            name = slot.path[0]
            if len(slot.path) == 1 and name in made.fields and not slot.form.loses and self.chance(5):
                made.fields[name] = replace(made.fields[name], attribute=None)

    def shares_with_an_optional_end(self, made: Type) -> bool:
        ends = [*made.ends.values()]
        shared = {*ends[0].attributes.values()} & {*ends[1].attributes.values()}
        return bool(shared) and ends[1].optional

    def give_other_side(self, made: Type, far: End) -> None:
        """An index by which the other end finds it."""
        if self.chance(5):
            return
        partition, front = self.refer(far)
        index = self.index()
        is_told = far.node.identity[-1] in far.node.certain and index.projection == "ALL"
        if is_told and len(far.node.identity) > 1 and self.chance(3):
            # A part of its name: the others are attributes.
            partition, front = self.refer_in_part(far), ()
        head = self.head(made, "BY") if made.kind != "edge" or self.chance(2) else ()
        if self.model_.type_attribute is None and not head:
            head = (f"{made.name.upper()}BY#",)
        sort = self.sort_of(made, set(), self.joined(front, head) if front else head)
        is_whole = not front and "IN#" not in str(partition[0])
        self.keys(made, index, partition, sort, is_whole=is_whole)
        name = f"{made.name.lower()}s_to"
        far.node.lists.append(Listing(name, far.node, made, index.name, far.name, self.chance(8)))

    def give_plain(self, made: Type) -> None:
        ends = [
            end
            for end in made.ends.values()
            # An attribute holds the value and not the text of a key, so that it names no node whose key loses something.
            if len(end.node.certain) == 1 == len(end.attributes)
            and end.node.kind_of((end.node.identity[0],)).is_text
        ]
        texts = [
            field
            for field in made.fields.values()
            if field.kind.annotation in ("str", "date", "datetime")
            and field.attribute
            and "." not in field.attribute
            and not field.kind.stored_as
        ]
        if not ends or not texts:
            return
        end, field = self.random.choice(ends), self.random.choice(texts)
        [key] = end.node.identity
        index = self.index(attributes=(end.attributes[key], field.attribute), is_plain=True)
        value: Part = Slot((end.name, key), end.node.fields[key].kind.forms[0])
        made.keys[index.name] = KeyPair(
            (Whole(end.name) if end.is_whole else value,),
            (Slot((field.name,), field.kind.forms[0]),),
        )
        end.node.lists.append(
            Listing(f"{made.name.lower()}s_by_{index.name}", end.node, made, index.name, end.name)
        )
