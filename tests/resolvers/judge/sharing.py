"""Types that share their keys with another: what an item says tells them apart, or what stands in the key.

A copy of a type has its templates and other names. Where items say their types, one key belongs to an item of either.
Otherwise a part of the key is a number of one type and any text of the other, which then takes no text that is such a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from tests.resolvers.judge.plain import (
    End,
    Field,
    KeyPair,
    Listing,
    Model,
    Part,
    Shared,
    Slot,
    Template,
    Type,
    Whole,
    across,
)
from tests.resolvers.judge.values import NUMBERS, PADDED, Form, text_kind

_COPIES = {
    "Ant": "Emu",
    "Bee": "Fox",
    "Cat": "Gnu",
    "Visit": "Tour",
    "Loan": "Lease",
    "Mark": "Note",
    "Deal": "Pact",
}
_TEXTS = ("0001", "0009", "0011", "x", "b1", "é")


def share_keys(model: Model, random: Random) -> None:
    """Gives some types of the model another one that can have the same keys."""
    if model.awkward:
        return
    copies: dict[Type, Type] = {}
    for type_ in [*model.types]:
        if type_.name not in _COPIES or type_.is_virtual or random.randrange(3):
            continue
        copy = _Copy(type_, model, random, copies)
        part = copy.part()
        if part and not (model.type_attribute and random.randrange(2)):
            model.types.append(copy.of_numbers(part))
        elif model.type_attribute:
            copies[type_] = copy.same()
            model.types.append(copies[type_])


class _Copy:
    """Makes one."""

    def __init__(self, type_: Type, model: Model, random: Random, copies: Mapping[Type, Type]) -> None:
        self.type, self.model, self.random = type_, model, random
        self.name = _COPIES[type_.name]
        # Where the nodes at its ends have copies too, it may be of those.
        self.nodes = {node: copy for node, copy in copies.items() if random.randrange(2)}
        self.made = Type(self.name, type_.kind, methods={}, is_mirrored=type_.is_mirrored)

    def renamed(self, name: str) -> str:
        head = self.type.name.lower()
        return self.name.lower() + name[len(head) :] if name.startswith(head) else name

    def part(self) -> Slot | None:
        """The part of its key that is a number in one type and a text in the other."""
        pair, type_ = self.type.keys[None], self.type
        template = pair.partition if pair.sort is None else pair.sort
        last = template[-1]
        has_head = isinstance(template[0], str) or template == pair.partition
        if (
            type_.kind == "edge"
            or not isinstance(last, Slot)
            or last.path[0] not in type_.fields
            or not has_head
        ):
            return None
        kind = type_.fields[last.path[0]].kind
        is_text = kind.annotation == "ID" and not (type_.kind == "node" and type_.ends)
        return last if (is_text and not last.form.spec) or last.path == ("seq",) else None

    def same(self) -> Type:
        self._copy_parts(self.type.fields)
        self._share({})
        return self.made

    def of_numbers(self, part: Slot) -> Type:
        """A type with a number where the other has a text, or the other way round."""
        [name] = part.path
        own = "code" if name == "seq" else f"{self.name.lower()}_no"
        fields = {each: field for each, field in self.type.fields.items() if each != name}
        self._copy_parts(fields)
        if name == "seq":
            field = Field(own, text_kind(_TEXTS), attribute=own)
            general, taken, slot = self.made, own, Slot((own,), Form("", str))
        else:
            field = Field(own, replace(NUMBERS, pool=(1, 9, 11)), attribute=own)
            general, taken, slot = self.type, name, Slot((own,), PADDED)
            kind = self.type.fields[name].kind
            self.type.fields[name] = replace(
                self.type.fields[name], kind=replace(kind, pool=(*kind.pool, *_TEXTS[:2]))
            )
        self.made.fields = {own: field, **self.made.fields}
        if not self.model.type_attribute:
            general.taken[taken] = tuple(text for text in _TEXTS if across(text) is not None)
            kind = general.fields[taken].kind
            pool = tuple(each for each in kind.pool if each not in general.taken[taken])
            general.fields[taken] = replace(general.fields[taken], kind=replace(kind, pool=pool))
        self._share({name: slot})
        return self.made

    def _copy_parts(self, fields: Mapping[str, Field]) -> None:
        made = self.made
        for field in fields.values():
            attribute = field.attribute and ".".join(map(self.renamed, field.attribute.split(".")))
            made.fields[self.renamed(field.name)] = replace(
                field, name=self.renamed(field.name), attribute=attribute
            )
        for method in self.type.methods.values():
            if method.need in fields:
                made.methods[method.name] = replace(method, need=self.renamed(method.need))
        for end in self.type.ends.values():
            node, name = self.nodes.get(end.node, end.node), self.renamed(end.name)
            attributes = {
                key: self.renamed(attribute)
                for key, attribute in zip(node.identity, end.attributes.values(), strict=True)
            }
            made.ends[name] = End(name, node, attributes, end.optional, is_whole=end.is_whole)

    def _share(self, parts: Mapping[str, Slot]) -> None:
        """Gives it the other's keys and lists, in indexes as well that have all attributes; `parts` are other ones."""
        type_, made, model = self.type, self.made, self.model
        for index, pair in type_.keys.items():
            of = model.indexes.get(index or "")
            if of is not None and (
                of.is_plain or of.projection != "ALL" or (of.is_written and self.random.randrange(2))
            ):
                continue
            templates = [self._template(each, parts) for each in (pair.partition, pair.sort or ())]
            slots = [slot for slot in (*templates[0], *templates[1]) if isinstance(slot, Slot)]
            if all(slot.path[0] in (*made.fields, *made.ends, *made.methods) for slot in slots):
                made.keys[index] = KeyPair(
                    templates[0], None if pair.sort is None else templates[1], pair.shards
                )
        made.identity = tuple(
            parts[name].path[0] if name in parts else self.renamed(name) for name in type_.identity
        )
        for listing in [*model.roots, *(each for node in model.nodes for each in node.lists)]:
            if listing.type is type_ and listing.index in made.keys:
                self._list(listing)
        names = {
            (parts[name].path[0] if name in parts else self.renamed(name)): name
            for name in type_.sources(type_.keys[None])
        }
        part = parts[next(iter(parts))].path[0] if parts else ""
        made.shares = Shared(type_, names, part)
        type_.shares = Shared(made, {there: here for here, there in names.items()}, next(iter(parts), ""))

    def _list(self, listing: Listing) -> None:
        name = listing.name.replace(self.type.name.lower(), self.name.lower())
        end = None if listing.end is None else self.renamed(listing.end)
        owner = listing.owner and self.nodes.get(listing.owner, listing.owner)
        copy = Listing(name, owner, self.made, listing.index, end, listing.is_one)
        (self.model.roots if owner is None else owner.lists).append(copy)

    def _template(self, template: Template, parts: Mapping[str, Slot]) -> Template:
        return tuple(self._part(part, parts) for part in template)

    def _part(self, part: Part, parts: Mapping[str, Slot]) -> Part:
        if isinstance(part, str):
            return part
        if isinstance(part, Whole):
            return Whole(self.renamed(part.end))
        if part.path[0] in parts:
            return parts[part.path[0]]
        path = (self.renamed(part.path[0]),)
        if len(part.path) == 2:
            end = self.type.ends[part.path[0]]
            keys = dict(zip(end.node.identity, self.made.ends[path[0]].node.identity, strict=True))
            path = (*path, keys[part.path[1]])
        return replace(part, path=path)
