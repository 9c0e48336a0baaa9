"""Makes requests to the graph of the histories. Whoever chooses is given: a random generator, or hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from keygraph.model.record_keys import Texts
from keygraph.writing.requests import (
    Change,
    Create,
    Delete,
    Move,
    OnEdges,
    Put,
    Upsert,
    WriteRequest,
)
from tests.keygraph.histories.declared import Mood, graph
from tests.keygraph.histories.plain import name_of, thing

PEOPLE: tuple[Texts, ...] = (("Ann",), ("Bob",), ("Cy",))
PASSING: tuple[Texts, ...] = (("Dee",), ("Eve",))
"""Those who come and go: they are created, moved and deleted, and named by edges meanwhile."""
CLUBS: tuple[Texts, ...] = (("c1",), ("c2",))
_T = TypeVar("_T")
_NOTES = ("n1", "n2", "n3")
_TOWNS = ("Ulm", "Bonn", None)
person, club, _, note, friend, stay, member, seat, seated, deed, rumor = graph.types.values()


def stands_alone(request: WriteRequest) -> bool:
    """Whether a request is about so much that it is a transaction of its own."""
    return isinstance(request, Move) or (isinstance(request, Delete) and request.record is person)


class Pick(Protocol):
    """Chooses one of several."""

    def __call__(self, options: Sequence[_T], /) -> _T: ...


def beginning() -> list[WriteRequest]:
    """The nodes that are there from the start."""
    people = [Create(person, {"name": name}) for (name,) in PEOPLE]
    return [*people, *(Create(club, {"club_id": club_id}) for (club_id,) in CLUBS)]


class Asking:
    """Makes requests, each with a stamp of its own in what it writes."""

    def __init__(self, pick: Pick, stamp: str, others: Sequence[Texts] = ()) -> None:
        """`others` are ends that may not be there."""
        self._pick = pick
        self._stamp = stamp
        self._people = (*PEOPLE, *PEOPLE, *PASSING, *others)

    def requests(self) -> list[WriteRequest]:
        """A transaction, of which no two parts are of one thing."""
        asked = [self.request() for _ in range(self._pick([1, 1, 1, 1, 1, 1, 2, 3]))]
        alone = [each for each in asked if stands_alone(each)]
        if alone:
            return alone[:1]
        return [*{thing(name_of(each)): each for each in asked}.values()]

    def pair(self) -> list[WriteRequest]:
        """Two new notes, which nothing else is of: both are there, or none."""
        return [
            Create(note, {"note_id": f"{self._stamp}-{part}", "title": "new", "author": self._person()})
            for part in ("a", "b")
        ]

    def request(self) -> WriteRequest:
        makers: list[Callable[[], WriteRequest]] = [
            self._of_person,
            self.of_passing,
            self._of_note,
            self._of_friend,
            self._of_friend,
            self._of_stay,
            self._of_member,
            self._of_seat,
            self._of_seated,
            self._of_deed,
        ]
        return self._pick(makers)()

    # --- Each type ----------------------------------------------------------------------------------------

    def _of_person(self) -> WriteRequest:
        [name] = self._person()
        given = self._some(town=self._pick(_TOWNS), mood=self._pick([*Mood]), points=self._pick([0, 9]))
        match self._pick(["create", "upsert", "change", "change"]):
            case "create":
                return Create(person, {"name": name, **given})
            case "upsert":
                return Upsert(person, {"name": name, **given})
        if self._pick([True, False]):
            given.pop("points", None)
            return self._change(person, (name,), given, points=3, log=[self._stamp], tags={"a", "b"})
        return self._change(person, (name,), given, log=[self._stamp], taken={"tags": {"a"}})

    def of_passing(self) -> WriteRequest:
        [name] = one = self._pick(PASSING)
        match self._pick(["create", "create", "delete", "detach", "move"]):
            case "create":
                return Create(person, {"name": name, **self._some(town=self._pick(_TOWNS))})
            case "move":
                return Move(person, one, {"name": self._other(PASSING, one)[0]}, self._version())
            case "delete":
                return Delete(person, one, self._version())
        return Delete(person, one, on_edges=OnEdges.DETACH)

    def _of_note(self) -> WriteRequest:
        note_id, record = self._pick(_NOTES[:2]), self._pick([note, note, rumor])
        author, tag = self._pick([None, self._person()]), self._pick([None, ("t",)])
        ends = self._some(author=author, tag=tag) if record is note else {}
        values = {"note_id": note_id, "title": self._stamp, **ends}
        match self._pick(["create", "upsert", "change", "delete", "move"]):
            case "move":
                other = self._pick([each for each in _NOTES if each != note_id])
                return Move(record, (note_id,), {"note_id": other})
            case "create":
                return Create(record, values)
            case "upsert":
                return Upsert(record, values)
            case "delete":
                return Delete(record, (note_id,))
        given = self._some(title=self._stamp, **ends)
        return self._change(record, (note_id,), given, log=[self._stamp])

    def _of_friend(self) -> WriteRequest:
        one = self._person()
        other = self._other(self._people, one)
        texts = (*one, *other)
        given = self._some(note=self._pick([None, self._stamp]), rounds=self._pick([0, 5]))
        match self._pick(["put", "change", "change", "delete", "move"]):
            case "move":
                third = self._pick([each for each in PEOPLE if each not in (one, other)])
                return Move(friend, texts, {self._pick(["one", "other"]): third}, self._version())
            case "put":
                return Put(friend, {"one": one, "other": other, "since": self._pick([1, 2]), **given})
            case "delete":
                return Delete(friend, texts, self._version())
        given.pop("rounds", None)
        return self._change(friend, texts, given, rounds=1, log=[self._stamp])

    def _of_stay(self) -> WriteRequest:
        one, at = self._person(), self._pick(CLUBS)
        given, to = self._some(role=self._pick([None, "guest", "host"])), {"person": self._other(PEOPLE, one)}
        new = {"person": one, "club": at, "since": self._pick([1, 2])}
        return self._of_edge(stay, (*one, *at), new, given, to, since=1, log=[self._stamp])

    def _of_member(self) -> WriteRequest:
        one, at = self._person(), self._pick(CLUBS)
        given = self._some(role=self._pick([None, "guest", "host"]), badge=self._pick([None, self._stamp]))
        new, to = (
            {"person": one, "club": at, "since": self._pick([1, 2])},
            {"person": self._other(PEOPLE, one)},
        )
        return self._of_edge(member, (*at, *one), new, given, to, since=1)

    def _of_seat(self) -> WriteRequest:
        one, at, row = self._person(), self._pick(CLUBS), self._pick([1, 2])
        given, to = self._some(color=self._stamp, row=row), {"person": self._other(PEOPLE, one)}
        return self._of_edge(seat, (*one, *at), {"person": one, "club": at, "row": row}, given, to)

    def _of_seated(self) -> WriteRequest:
        one, at, row = self._person(), self._pick(CLUBS), self._pick([1, 2])
        given = self._some(color=self._stamp, cushion=self._pick([None, "soft"]))
        new, to = {"person": one, "club": at, "row": row}, {"row": 3 - row}
        return self._of_edge(seated, (*at, f"{row:02d}", *one), new, given, to)

    def _of_edge(
        self,
        record: Any,
        identity: Texts,
        new: dict[str, Any],
        given: dict[str, Any],
        to: dict[str, Any],
        **added: Any,
    ) -> WriteRequest:
        match self._pick(["put", "change", "delete", "move"]):
            case "move":
                return Move(record, identity, to)
            case "put":
                return Put(record, {**new, **given})
            case "delete":
                return Delete(record, identity)
        return self._change(record, identity, given, **added)

    def _of_deed(self) -> WriteRequest:
        one, at = self._person(), self._pick([1, 2])
        given, new = self._some(what=self._pick([None, "sang", self._stamp])), {"person": one, "at": at}
        texts = (*one, f"{at:03d}")
        asked = self._of_edge(deed, texts, new, given, {"at": 3 - at}, log=[self._stamp])
        return Create(deed, asked.values) if isinstance(asked, Put) and self._pick([True, False]) else asked

    # --- Parts ----------------------------------------------------------------------------------------

    def _person(self) -> Texts:
        return self._pick(self._people)

    def _other(self, several: Sequence[Texts], one: Texts) -> Texts:
        return self._pick([each for each in several if each != one])

    def _version(self) -> int | None:
        return self._pick([None, None, 1, 2])

    def _some(self, **values: Any) -> dict[str, Any]:
        return {name: value for name, value in values.items() if self._pick([True, False])}

    def _change(
        self,
        record: Any,
        identity: Texts,
        values: dict[str, Any],
        taken: dict[str, Any] | None = None,
        **added: Any,
    ) -> Change:
        version = self._version() if record.version else None
        return Change(record, identity, values, self._some(**added), taken or {}, version)
