"""What the graph of the histories keeps of other records: counts, sums, copies and summaries, in the plainest words there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Scan, Store, pages
from keygraph.errors import CorruptItem
from keygraph.model.node_shards import is_shard, shard_keys, with_shards
from tests.keygraph.histories.declared import graph
from tests.keygraph.histories.plain import Name, State, Values
from tests.keygraph.histories.table import is_of_others, name_of_item


async def wrong_values(store: Store, state: State, *, by_job: bool) -> list[str]:
    """What a table keeps otherwise than it follows from the records in it, `by_job` also what only a job keeps."""
    found, items = list[str](), list[Item]()
    async for page in pages(store, Scan(0, 1, consistent=True)):
        items += page.items
    by_key = {graph.table.key_of(item): item for item in items}
    shards = {key for key, item in by_key.items() if is_shard(item)}
    for key, item in by_key.items():
        record = graph.recognise(item)
        if record is None:
            continue  # the note of an idempotency key, or a shard
        own = shard_keys(record, key)
        shards.difference_update(own)
        item = with_shards(record, item, map(by_key.get, own))
        name = name_of_item(item)
        right = _right(state, name)
        for field in record.fields.values():
            if is_of_others(field) and field.kept != "as_of" and (by_job or not field.is_kept_later):
                try:
                    value = record.reader(field)(item)
                except CorruptItem as error:
                    value = str(error)
                if value != right[field.name]:
                    found.append(f"{name} has {field.name} {value!r}, not {right[field.name]!r}")
    return [*found, *(f"{key} is a shard of no node" for key in shards)]


def _right(state: State, name: Name) -> Values:
    type_, identity = name
    match type_:
        case "Person":
            return _of_person(state, name)
        case "Club":
            return _of_club(state, identity)
        case "Note" | "Deed":
            [end] = {"author", "person"} & state[name].keys() or {""}
            town = state.get(("Person", state[name].get(end, ())), {}).get("town")
            return {"town": town, "town_then": town}
    return {}


def _of_person(state: State, name: Name) -> Values:
    _, identity = name
    friends, seats = [*_all(state, "Friend", one=identity)], [*_all(state, "Seat", person=identity)]
    rounds = [each["rounds"] for each in friends if "rounds" in each]
    own = state[name]
    others = [*_all(state, "Person", mood=own["mood"])]
    better = [each for each in others if each.get("points", -1) > own.get("points", -1)]
    return {
        "friends_count": len(friends),
        "friends_then": len(friends),
        "rounds_played": sum(rounds),
        "rounds_mean": sum(rounds) / len(rounds) if rounds else None,
        "most_rounds": sorted(rounds, reverse=True)[:3],
        "noted_count": sum("note" in each and each["since"] >= 2 for each in friends),
        "notes_count": len([*_all(state, "Note", author=identity)]),
        "deeds_count": len([*_all(state, "Deed", person=identity)]),
        "rows": sum(each["row"] for each in seats),
        "ties": len(friends) + len(seats),
        "place": 1 + len(better) if "points" in own else None,
    }


def _of_club(state: State, identity: Any) -> Values:
    members = sorted(_all(state, "Member", club=identity), key=lambda each: str(each["person"][0]))
    deeds = [deed for each in members for deed in _all(state, "Deed", person=each["person"])]
    last: Values = members[-1] if members else {}
    return {
        "members_count": len(members),
        "since_all": sum(each["since"] for each in members),
        "last_since": last.get("since"),
        "last_role": last.get("role"),
        "first_since": min((each["since"] for each in members), default=None),
        "deeds_of_all": len(deeds),
    }


def _all(state: State, type_: str, **values: Any) -> Iterator[Values]:
    for (other, _), own in state.items():
        if other == type_ and all(own.get(name) == value for name, value in values.items()):
            yield own
