"""The graph of the histories in memory: what requests do to a dict of records, in the plainest words there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from keygraph.model.record_keys import Texts
from keygraph.writing.requests import Change, Create, Delete, Move, OnEdges, Upsert, WriteRequest
from tests.keygraph.histories.declared import Mood, graph

Name: TypeAlias = tuple[str, Texts]
"""A record's type and identity."""
Values: TypeAlias = dict[str, Any]
"""Its fields and ends by name, without those that have no value."""
State: TypeAlias = dict[Name, Values]

_SHARED = {
    "Stay": ("club", "person", "since", "role"),
    "Member": ("club", "person", "since", "role"),
    "Seat": ("club", "person", "row", "color"),
    "Seated": ("club", "person", "row", "color"),
}
_OTHER = {"Stay": "Member", "Member": "Stay", "Seat": "Seated", "Seated": "Seat"}
_RIVALS = {"Note": "Rumor", "Rumor": "Note"}
"""Types with the same keys, of which only one has each."""
_ENDS = {"author": "Person", "one": "Person", "other": "Person", "person": "Person", "club": "Club"}
_REQUIRED = {"title", "since", "row", "mood"}


class Refused(Exception):
    """With each code that may be told."""

    def __init__(self, codes: set[str]) -> None:
        self.codes = codes


def after(state: State, requests: Sequence[WriteRequest]) -> State:
    """The state after a transaction. Raises Refused."""
    new, codes = dict(state), set[str]()
    for request in requests:
        codes |= _apply(new, request)
    for request in requests:
        if not isinstance(request, Delete):
            codes |= _ends(new, request.values)
    if codes:
        raise Refused(codes)
    return new


def name_of(request: WriteRequest) -> Name:
    """The record that a request is of."""
    if isinstance(request, Change | Delete | Move):
        return (request.record.name, request.identity)
    return named(request.record.name, request.values)


def thing(name: Name) -> tuple[str, frozenset[str]]:
    """What a record is a part of: the two items of an edge are one thing."""
    type_, identity = name
    if type_ == "Seated":
        identity = (identity[0], identity[2])
    return {"Member": "Stay", "Seated": "Seat", "Rumor": "Note"}.get(type_, type_), frozenset(identity)


def things(request: WriteRequest) -> set[tuple[str, frozenset[str]]]:
    """The things that a request is of: a move is of two."""
    name = name_of(request)
    if not isinstance(request, Move):
        return {thing(name)}
    return {thing(name), thing(moved(name, request.values))}


def moved(name: Name, values: Mapping[str, Any]) -> Name:
    type_, identity = name
    record = graph.types[type_]
    parts = dict(zip((slot.path[0] for slot in record.identity), identity, strict=True))
    own: Values = {each: (text,) if each in record.ends else text for each, text in parts.items()}
    own |= {each: int(parts[each]) for each in ("row", "at") if each in parts}
    return named(type_, {**own, **values})


def named(type_: str, values: Mapping[str, Any]) -> Name:
    """The name of the record that has these values."""
    match type_:
        case "Person":
            identity: Texts = (values["name"],)
        case "Club":
            identity = (values["club_id"],)
        case "Note" | "Rumor":
            identity = (values["note_id"],)
        case "Friend":
            identity = (*values["one"], *values["other"])
        case "Stay" | "Seat":
            identity = (*values["person"], *values["club"])
        case "Member":
            identity = (*values["club"], *values["person"])
        case "Seated":
            identity = (*values["club"], f"{values['row']:02d}", *values["person"])
        case _:
            identity = (*values["person"], f"{values['at']:03d}")
    return (type_, identity)


def partner(type_: str, values: Values) -> tuple[Name, Values] | None:
    """The other record of an edge, as far as this one tells it."""
    if type_ == "Friend":
        told = {**values, "one": values["other"], "other": values["one"]}
        return named(type_, told), told
    if type_ not in _OTHER:
        return None
    told = {name: values[name] for name in _SHARED[type_] if name in values}
    return named(_OTHER[type_], told), told


# --- Requests -------------------------------------------------------------------------------------------


def _apply(state: State, request: WriteRequest) -> set[str]:
    name = name_of(request)
    type_, old = name[0], state.get(name)
    if isinstance(request, Upsert) and old is not None:
        key = {"name", "note_id"}
        values = {field: value for field, value in request.values.items() if field not in key}
        request = Change(request.record, name[1], values)
    match request:
        case Delete():
            if old is None:
                return {"NOT_FOUND"}
            if request.version not in (None, old.get("times")):
                return {"CONFLICT"}
            naming = _naming(state, name)
            if naming and request.on_edges is OnEdges.REFUSE:
                return {"CONFLICT"}
            for each in naming:
                if each[0] == "Note":
                    state[each] = {field: value for field, value in state[each].items() if field != "author"}
                elif each in state:
                    _set(state, each, None)
            _set(state, name, None)
        case Move():
            return _move(state, name, request)
        case Change():
            if {*request.values} & {"row"} and type_ == "Seated":
                return {"BAD_USER_INPUT", "NOT_FOUND"}
            if any(value is None and field in _REQUIRED for field, value in request.values.items()):
                return {"BAD_USER_INPUT", "NOT_FOUND"}
            if old is None:
                return {"NOT_FOUND"}
            if request.version not in (None, old.get("times")):
                return {"CONFLICT"}
            _set(state, name, _changed(old, request))
        case Create() | Upsert() if old is not None or _has_rival(state, name):
            return {"ALREADY_EXISTS"}
        case _:
            values = {**_defaults(type_), **request.values}
            if _is_kept(type_):
                values["times"] = 1 + (old or {}).get("times", 0)
            told = partner(type_, values)
            there = state.get(told[0]) if told else None
            back = partner(told[0][0], there) if told and there is not None else None
            if back and back[0] != name:
                return {"CONFLICT"}
            _set(state, name, values, is_whole=True)
    return set()


def _has_rival(state: State, name: Name) -> bool:
    return (_RIVALS.get(name[0], ""), name[1]) in state


def _naming(state: State, name: Name) -> list[Name]:
    """The records that name a node."""
    type_, identity = name
    ends = [end for end, of in _ENDS.items() if of == type_]
    return [each for each, values in state.items() if identity in (values.get(end) for end in ends)]


def _move(state: State, name: Name, request: Move) -> set[str]:
    type_, old, new = name[0], state.get(name), moved(name, request.values)
    is_there = new in state or _has_rival(state, new)
    if old is None:
        return {"NOT_FOUND"} | ({"ALREADY_EXISTS"} if is_there else set())
    is_refused = request.version not in (None, old.get("times")) or bool(_naming(state, name))
    values = {**old, **request.values}
    if _is_kept(type_):
        values["times"] += 1
    before, after_ = partner(type_, old), partner(type_, values)
    is_taken = after_ is not None and before is not None and after_[0] != before[0] and after_[0] in state
    codes = {"ALREADY_EXISTS"} if is_there or is_taken else set[str]()
    codes |= {"CONFLICT"} if is_taken or is_refused else set()
    if codes:
        return codes
    shared = _SHARED.get(type_, ())
    own = state[before[0]] if before is not None and shared else {}
    _set(state, name, None)
    state[new] = values
    if after_ is not None:
        kept = {field: value for field, value in own.items() if field not in shared}
        state[after_[0]] = {**kept, **after_[1]}
    return set()


def _is_kept(type_: str) -> bool:
    return graph.types[type_].version is not None


def _defaults(type_: str) -> Values:
    return {"mood": Mood.GOOD} if type_ == "Person" else {}


def _changed(old: Values, request: Change) -> Values:
    new = {**old, **request.values}
    for name, value in request.added.items():
        match value:
            case list():
                new[name] = [*new.get(name, []), *value]
            case set():
                new[name] = {*new.get(name, set()), *value}
            case _:
                new[name] = new.get(name, 0) + value
    for name, value in request.taken.items():
        new[name] = new.get(name, set()) - value
    if "times" in old:
        new["times"] += 1
    return new


def _set(state: State, name: Name, values: Values | None, *, is_whole: bool = False) -> None:
    """Puts the record, and the other one of an edge, which keeps what is its own unless both are written anew."""
    old = state.pop(name, None)
    before = partner(name[0], old) if old else None
    own: Values = {}
    if before is not None:
        own = {field: value for field, value in state.pop(before[0]).items() if field not in before[1]}
    if values is None:
        return
    state[name] = _without_nothing(values)
    told = partner(name[0], state[name])
    if told is not None:
        shared = _SHARED.get(name[0], ())
        kept = {} if is_whole or not shared else {f: v for f, v in own.items() if f not in shared}
        state[told[0]] = {**kept, **told[1]}


def _without_nothing(values: Values) -> Values:
    return {name: value for name, value in values.items() if value is not None and value != set()}


def _ends(state: State, values: Mapping[str, Any]) -> set[str]:
    """What is told of ends that are no nodes."""
    named_ = [(_ENDS[name], value) for name, value in values.items() if name in _ENDS and value is not None]
    return set() if all(each in state for each in named_) else {"NOT_FOUND"}
