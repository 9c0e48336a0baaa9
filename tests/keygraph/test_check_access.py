"""What access rules hide is told by nothing else: `check()` refuses a model in which it would be."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import pytest

from keygraph import (
    ID,
    JSON,
    Format,
    Graph,
    Index,
    Long,
    Many,
    Table,
    copy,
    counts,
    create,
    delete,
    field,
    latest,
    many,
    node,
    read,
    record,
    rule,
    stored,
    sums,
    update,
    viewer,
    write,
)
from keygraph.declare.declaration import Keeper
from keygraph.errors import Mistake

HIDDEN = [read(role="hr")]


def _mistakes(*types: type, indexes: Sequence[Index] = (), **options: Any) -> Sequence[Mistake]:
    return Graph(
        Table("Tests", partition_key="PK", sort_key="SK", indexes=indexes), *types, **options
    ).mistakes


def test_a_number_of_what_is_hidden() -> None:
    by_size = Index("by-size", "size_key")

    def wrong(of_things: Any, of_graph: Any = (), key: str = "{tenant}", **own: Any) -> list[str]:
        @node("B#{tenant}#{box_id}", by_size(key), access=[read()])
        class Box:
            tenant: str
            box_id: ID
            things: Many[Thing] = many(access=own.get("listed", ()))
            things_count: int = counts("things", access=own.get("count", ()))
            worth: Long = sums("things.worth", access=own.get("sum", ()))
            small: int | None = sums("things.worth", access=own.get("small", [read()]))

        @record("{box}", "THING#{number}", access=of_things)
        class Thing:
            box: Box
            number: int
            worth: int = stored(access=own.get("worth", ()))

        return [each.where for each in _mistakes(Box, Thing, indexes=[by_size], access=of_graph)]

    both = ["Box.things_count", "Box.worth"]
    assert wrong([read()]) == []
    assert wrong([read(role="clerk")]) == both
    assert wrong([read(role="clerk")], count=[read()]) == ["Box.worth"]
    assert wrong([read(role="clerk")], count=[read()], sum=[read(role="clerk")]) == []
    assert wrong([read()], worth=[read(role="clerk")]) == ["Box.worth"]
    # A sum of 32 bits tells whoever may add to it how much it lacks.
    assert wrong([read()], small=[read(role="clerk")]) == ["Box.small"]
    assert wrong([read()], listed=[read(role="clerk")]) == both
    # Whoever sees the box is behind the wall, as its things are.
    wall = [read(where={"tenant": viewer("tenant")})]
    assert wrong([read()], wall) == []
    assert wrong((), wall) == []
    assert wrong([read(where={"number": 1})], wall) == both
    assert wrong([read()], key="{things_count:03d}", count=[read()]) == []
    assert wrong([read()], key="{things_count:03d}", count=HIDDEN) == ["Box.things_count"]


@pytest.mark.parametrize("keeper", ["transaction", "job"])
def test_a_number_of_those_that_meet_a_condition_on_what_is_hidden(keeper: Keeper) -> None:
    def wrong(where: Any, **own: Any) -> list[str]:
        @node("B#{box_id}", access=[read()])
        class Box:
            box_id: ID
            things: Many[Thing]
            some_count: int | None = counts("things", where=where, kept=keeper, access=own.get("count", ()))
            some_weight: Long | None = sums("things.weight", where=where, kept=keeper)

        @record("{box}", "THING#{number}", access=[read()])
        class Thing:
            box: Box
            number: int
            weight: int
            worth: int = stored(access=HIDDEN)
            price: int = stored("worth", access=HIDDEN)

        return [each.where for each in _mistakes(Box, Thing) if each.kind == "access"]

    both = ["Box.some_count", "Box.some_weight"]
    assert wrong({"number": 1, "weight": {"gt": 1}}) == []
    assert wrong({"worth": {"gt": 1}}) == both
    assert wrong({"or": [{"number": 1}, {"not": {"price": 1}}]}) == both
    assert wrong({"worth": {"exists": True}}, count=[read()]) == ["Box.some_weight"]


def test_a_number_by_what_is_hidden() -> None:
    """A count tells why items are in the list: by their end, or because their key has a part; and what a wall hides."""
    by_owner, by_due = Index("by-owner", "owner_key", "due_key"), Index("by-due", "due_owner", "due")

    def wrong(wall: Any = (), shared: bool = False, **own: Any) -> list[str]:
        @node("B#{tenant}", access=[read()])
        class Box:
            tenant: ID
            zone: str = ""
            things: Many[Thing] = many(index=by_owner)
            late: Many[Thing] = many(index=by_due)
            things_count: int = counts("things")
            late_count: int = counts("late")

        rules: Any = [read()] if own else []

        @node("T#{tenant}#{number}", by_owner("{box}", "{number}"), by_due("{box}", "{due}"), access=rules)
        class Thing:
            tenant: ID
            number: int
            box: Box = stored(own.get("stored", "tenant"), access=own.get("end", ()))
            due: str | None = stored(access=own.get("due", ()))
            zone: str = ""

        found = _mistakes(Box, Thing, indexes=[by_owner, by_due], access=wall, shared=[Box] if shared else [])
        return [each.where for each in found]

    both = ["Box.things_count", "Box.late_count"]
    assert wrong(due=[read()]) == []
    assert wrong(due=HIDDEN) == ["Box.late_count"]
    assert wrong(stored="box_id", end=HIDDEN) == both
    assert wrong([read(where={"tenant": viewer("tenant")})]) == []
    assert wrong([read(where={"tenant": viewer("tenant")})], shared=True) == both
    assert wrong([read(where={"zone": viewer("zone")})]) == both


def test_a_copy_of_what_some_may_not_read() -> None:
    """What is refused or hidden would tell of the value, if a rule, a key or another name of its attribute uses it."""
    by_pay = Index("by-pay", "payKey")

    def wrong(
        seen: Any,
        template: str = "{number}",
        at: Any = ("pay",),
        end: Any = (),
        person: Any = (),
        **options: Any,
    ) -> list[str]:
        @node("PERSON#{person_id}", access=[read(), *person])
        class Person:
            person_id: ID
            pay: str = stored(access=seen)
            jobs: Many[Job]

        @node("TAG#{tag_id}", access=[read()])
        class Tag:
            tag_id: ID

        @record("{who}", "JOB#{number}", by_pay(template), **{"access": [read(), write()], **options})
        class Job:
            number: int
            who: Person
            tag: Tag | None = stored("tag_id", access=seen)
            boss: Person | None = stored(access=end)
            data: JSON | None = None
            pay: str | None = copy("boss.pay", *at, access=seen)

            @field(needs=("pay",))
            def band(self) -> str | None:
                return self.pay and self.pay[:1]

        return [f"{each.where}: {each.problem}" for each in _mistakes(Person, Tag, Job, indexes=[by_pay])]

    check, about = [rule({"pay": {"ne": "none"}}, "No pay.")], {"pay": "much"}
    told = "so refused writes would tell of Person.pay, which some viewers may not read."
    ruled = f"Job.pay: an access rule of Job is about it, {told}"
    assert wrong(HIDDEN) == wrong([read()], check=check) == []
    assert wrong(HIDDEN, check=check) == [f"Job.pay: a rule in check= is about it, {told}"]
    for template in ("{pay}", "{band}"):
        assert wrong([read()], template) == []
        assert wrong(HIDDEN, template) == [f"Job.pay: it stands in a key, {told}"]
    for action in (read, create, update):
        access: Any = [read(), write(), action(where=about)]
        assert wrong(HIDDEN, access=access) == [ruled]
        assert wrong([read()], access=access) == []
        assert wrong(HIDDEN, access=[read(), write(), action(where=about, role="hr")]) == []
    linked: Any = [update(where={"jobs": {"number": 1, "pay": "much"}})]
    assert wrong([read()], person=linked) == []
    assert wrong(HIDDEN, person=linked) == [f"Job.pay: an access rule of Person is about it, {told}"]
    assert wrong(HIDDEN, at=["tag_id"]) == [f"Job.pay: it is stored in the same attribute as tag, {told}"]
    assert (
        wrong(HIDDEN, at=["by"], type={"by": "much"})[-1] == f"Job.pay: type= is about its attribute, {told}"
    )
    assert wrong([read()], at=["data", "pay"]) == [
        "Job.pay: the server sets it, and whoever writes data, which is stored in the same attribute, would overwrite it."
    ]
    # Nobody learns it who may not read it anyway, and the copy tells who the boss is.
    assert wrong(HIDDEN, "{pay}", writes=False, access=[read()]) == []
    assert wrong(HIDDEN, "{pay}", access=[read(), write(role="hr")]) == []
    assert wrong((), end=HIDDEN) == [
        "Job.pay: it copies a field of boss, which has access rules, and has none itself."
    ]
    assert wrong([read()], end=HIDDEN) == []


def test_two_names_of_one_attribute() -> None:
    """Whoever may not read or write by one name may not do it by the other either."""

    def wrong(one: Any, other: Any, at: Any = ("owner_id",), **options: Any) -> list[str]:
        @node("USER#{user_id}", access=[read()])
        class User:
            user_id: ID

        @node("LOG#{log_id}", **{"access": [read(), write()], **options})
        class Log:
            log_id: ID
            owner: User = stored("owner_id", access=one)
            owner_id: str = stored(*at, access=other)

        return [f"{each.where}: {each.problem} {each.fix}" for each in _mistakes(User, Log)]

    admin, fixed = [read(), write(role="admin")], "Give owner_id and owner the same access=[…]."
    told = "Log.owner: owner_id is stored in the same attribute, and its rules for who may"
    assert wrong((), ()) == wrong(admin, admin) == wrong([read()], ()) == wrong(HIDDEN, HIDDEN) == []
    assert wrong(admin, ()) == wrong((), admin) == [f"{told} create it are not the same. {fixed}"]
    assert wrong(HIDDEN, ()) == wrong((), HIDDEN) == [f"{told} read it are not the same. {fixed}"]
    assert wrong((), HIDDEN, ("owner_id", "part")) == [f"{told} read it are not the same. {fixed}"]
    assert wrong(admin, (), writes=False, access=[read()]) == []
    assert wrong((), (), access=[read(fields=["owner"]), read(role="hr")]) == [
        f"{told} read it are not the same. {fixed}"
    ]


def test_a_part_of_an_end_does_not_tell_which_node_it_is() -> None:
    def wrong(end: Any, own: Any) -> list[str]:
        @node("T#{tenant}#USER#{user_id}", access=[read()])
        class User:
            tenant: ID
            user_id: ID

        @node("LOG#{log_id}", access=[read(), write()])
        class Log:
            log_id: ID
            tenant: str = stored(access=own)
            reader: User = stored(tenant="tenant", user_id="reader", access=end)

        return [each.where for each in _mistakes(User, Log)]

    assert wrong(HIDDEN, ()) == wrong(HIDDEN, HIDDEN) == []
    assert wrong((), HIDDEN) == ["Log.reader"]
    assert wrong([*HIDDEN, write(role="hr")], ()) == ["Log.reader"]


def test_another_name_of_what_is_in_the_key() -> None:
    def wrong(rules: Any) -> list[str]:
        @node("USER#{user_id}", access=[read()])
        class User:
            user_id: ID
            notes: Many[Note]

        @record("{owner}", "NOTE#{number}", access=[read(), write()])
        class Note:
            owner: User
            number: int
            owner_id: str = stored(access=rules)

        return [each.problem for each in _mistakes(User, Note)]

    assert wrong(()) == []
    assert wrong(HIDDEN) == [
        "it is stored in an attribute that is in the key of Note, which everybody who sees the record knows."
    ]


def _wrong_keys(template: str, secret: Any = str, own: Any = (), rules: Any = None) -> list[str]:
    """The mistakes of a type whose index has a key of this template and a hidden field of this type."""
    by_size = Index("by-size", "owner", "size_key")

    @node("LOG#{log_id}", by_size("{owner}", template), access=rules or [read(), write()])
    class Log:
        log_id: ID
        owner: str
        secret: Any = stored(access=HIDDEN)
        title: str = stored(access=own)
        number: int = 0

        @field(needs=("secret", "title"))
        def both(self) -> str:
            return f"{self.secret}{self.title}"

        @field(needs=("number", "title"))
        def named(self) -> str:
            return f"{self.number}{self.title}"

    Log.__annotations__["secret"] = secret
    found = _mistakes(Log, indexes=[by_size], formats={"dashes": Format("-".__mul__, len)})
    return [f"{each.where}: {each.problem} {each.fix}" for each in found]


def test_a_key_whose_length_tells_of_a_hidden_part() -> None:
    """A key has at most 1,024 bytes: how long a part can become would tell how long another one is."""

    def wrong(free: str) -> str:
        problem = f"it is in keys with {free}, so what {free} can be would tell its length to viewers who may not read it."
        return (
            f"Log.secret: {problem} Take one of them out, or let only those write {free} who may read secret."
        )

    assert _wrong_keys("{secret}#{title}") == _wrong_keys("{both}") == [wrong("title")]
    assert _wrong_keys("{secret}#{title}", datetime) == [wrong("title")]
    assert _wrong_keys("{secret:%B}#{title}", date) == [wrong("title")]
    assert _wrong_keys("{title}#{secret?}", date | None) == [wrong("title")]
    assert _wrong_keys("{secret}#{number:dashes}") == [wrong("number")]
    assert _wrong_keys("{secret}#{named}") == [wrong("number"), wrong("title")]
    assert _wrong_keys("{secret}#{title}", date) == _wrong_keys("{secret}#{log_id}") == []
    assert _wrong_keys("{secret}#{number}") == _wrong_keys("{secret}#{title}", rules=[read()]) == []
    hr = [read(), write(role="hr")]
    assert _wrong_keys("{secret}#{title}", own=hr) == _wrong_keys("{both}", own=hr) == []
    assert _wrong_keys("{secret}#{named}", own=hr) == [wrong("number")]


def test_a_key_that_is_there_only_with_a_hidden_field() -> None:
    """What no key can hold is refused only where there is one."""
    [problem] = _wrong_keys("{secret}", date | None)
    assert "it is in keys with owner, so what owner can be would tell if it has a value to" in problem
    assert _wrong_keys("{secret?}", date | None) == _wrong_keys("{secret}", date) == []

    def of_owner(sort: str, partition: str = "{owner}") -> list[str]:
        by_flag = Index("by-flag", "FlagPK", "FlagSK")

        @node("USER#{user_id}", access=[read()])
        class User:
            user_id: ID

        @node("TASK#{task_id}", by_flag(partition, sort), access=[read(), write()])
        class Task:
            task_id: ID
            owner: User
            flag: str | None = stored(default=None, access=HIDDEN)

        table = Table("Tasks", partition_key="PK", sort_key="SK", indexes=[by_flag])
        return [
            each.where for each in Graph(table, User, Task, formats={"lower": Format(str.lower)}).mistakes
        ]

    # Every user has such a partition key, but not such a sort key, and not a longer one, as of an I with a dot.
    assert of_owner("{flag}#{task_id}") == of_owner("{flag}", "{owner.user_id}") == []
    assert of_owner("{flag}#{owner.user_id}") == of_owner("{flag}", "TASKS#{owner}") == ["Task.flag"]
    assert of_owner("{flag}", "{owner.user_id:lower}") == ["Task.flag"]


def test_a_key_with_a_copy_tells_no_length() -> None:
    """Who changes the source of a copy, or the end from whose node it is, makes the key longer. So does who writes the
    last item of a list."""

    def wrong(
        *own: Any,
        follows: bool = True,
        placed: Any = None,
        key: str = "PLACE#{place_id}",
        free: str = "title",
        attribute: str = "ref",
        of_words: Any = None,
    ) -> list[str]:
        by_title = Index("by-title", "shelf", "size_key")

        @node("BOOK#{tenant}#{book_id}", access=[read(), *own])
        class Book:
            tenant: ID
            book_id: ID
            title: str

        @record("{place}", "VISIT#{visit_id}", access=[read(), *own])
        class Visit:
            place: Place
            visit_id: ID
            book: Book
            words: str = of_words

        @node(
            key,
            by_title("{shelf}", f"{{{free}?}}#{{secret}}"),
            access=[read(), placed or write(role="hr")],
        )
        class Place:
            place_id: ID
            shelf: str
            book: Book = stored(tenant="tenant", book_id="book_id")
            ref: str | None = stored(attribute)
            secret: str = stored(access=HIDDEN)
            title: str = copy("book.title", follows=follows, access=[read(), write(role="hr")])
            visits: Many[Visit]
            last: str | None = latest("visits.words", access=[read()])

        found = _mistakes(Book, Place, Visit, indexes=[by_title])
        return [f"{each.where}: {each.problem}" for each in found if "length" in each.problem]

    problem = "it is in keys with title, so what Book.title can be would tell its length to viewers who may not read it."
    assert wrong(update(role="editor")) == [f"Place.secret: {problem}"]
    assert wrong(write(role="hr")) == wrong(update(role="editor"), follows=False) == []
    # Who writes the end writes the copy.
    problem = problem.replace("what Book.title", "what book")
    assert wrong(follows=False, placed=write()) == [f"Place.secret: {problem}"]
    moved: Any = {"follows": False, "placed": write(), "key": "PLACE#{book.tenant}#{place_id}"}
    assert wrong(**moved) == []
    # An update cannot change an end that is in the key, but what has another name for a part of it.
    assert wrong(**moved, attribute="book_id") == [
        f"Place.secret: {problem.replace('what book', 'what ref')}"
    ]
    problem = problem.replace("title, so what book", "last, so what Visit.words")
    written = (wrong(own, free="last") for own in (write(), create(), delete()))
    assert [*written] == [[f"Place.secret: {problem}"]] * 3
    copied = wrong(update(role="editor"), free="last", of_words=copy("book.title", follows=True))
    assert [each.split()[9] for each in copied] == ["Visit.book", "Book.title"]
    assert wrong(write(role="hr"), free="last", placed=write()) == []


def test_a_field_of_every_rule_hides_nothing() -> None:
    """Whoever sees a record sees a field that all rules cover; another server's field decides nothing."""

    @node(
        "PERSON#{person_id}",
        access=[
            *HIDDEN,
            read(where={"person_id": viewer("sub")}, fields=["pay"]),
            read(where={"plan": "paid"}),
        ],
    )
    class Person:
        person_id: ID
        pay: str
        name: str
        plan: str | None = stored(external=True, default=None)

    graph = Graph(Table("People", partition_key="PK", sort_key="SK"), Person)
    assert [each.problem for each in graph.mistakes] == [
        "its access rule 3 cannot be used: nobody can satisfy it: another server has plan."
    ]
    access = graph.types["Person"].access
    assert access is not None
    assert [access.is_restricted(name) for name in ("pay", "name")] == [False, True]
