"""Indexes that share key attributes with the table, with one another or with a field; sparse ones; virtual nodes.

One small table of desks: an inverted index, one that shares a half with the table, a local one on a plain field, one
whose keys are the attributes of an end and a field, and a sparse one whose sort key has an optional part.
"""

from __future__ import annotations

from datetime import date

from keygraph import ID, Index, Many, Table, edge, many, node, record, stored
from keygraph_resolvers import check
from tests.keygraph.checked import mistakes

inverted = Index("inverted", "SK", "PK")
by_floor = Index("by-floor", "floor", "PK")
by_day = Index("by-day", "PK", "since", local=True)
by_owner = Index("by-owner", "ownerName", "bought")
by_manager = Index("by-manager", "Manager", "ManagerSK")


@node("DESK#{desk_id}", by_floor(lists="desks_on"), by_owner())
class Desk:
    desk_id: ID
    floor: str
    owner: Firm | None
    bought: date | None
    users: Many[Use] = many()
    latest: Many[Use] = many(index=by_day)


@node("STAFF#{staff_id}", by_manager("TEAM#{manager.staff_id?}", "{desk_name?}#{staff_id}", lists="team"))
class Staff:
    staff_id: ID
    manager: Staff | None
    desk_name: str | None
    desks: Many[Use] = many()


@edge("{desk}", "{staff}")
class Use:
    desk: Desk
    staff: Staff
    since: date


@node("FIRM#{name}", item=False)
class Firm:
    name: ID
    desks: Many[Desk] = many()


TABLE = Table(
    "Desks",
    partition_key="PK",
    sort_key="SK",
    indexes=[inverted, by_floor, by_day, by_owner, by_manager],
)


def test_mistakes_of_shared_keys() -> None:
    @record("{desk}", "NOTE#{text}", by_day("{desk}", "{text}"))
    class Note:
        desk: Desk
        text: str
        since: date

    @record("{desk}", "BILL#{number}", inverted("BILL#{number}"))
    class Bill:
        desk: Desk
        number: int

    @record("{desk}", "FEE#{number}", by_floor())
    class Fee:
        desk: Desk
        number: int

    @record("{desk}", "TAX#{number}", by_owner("{desk}"), inverted(lists="taxes"))
    class Tax:
        desk: Desk
        number: int
        owner: str = stored("ownerName")

    types = (Desk, Staff, Use, Firm, Note, Bill, Fee, Tax)
    told = mistakes(*types, table=TABLE, attribute_case="camel", check=check)
    assert told == [
        'Note: since is the attribute of {since}, but by-day gives it the template "{text}". '
        "Leave that template out, or store {since} in another attribute.",
        "Bill: inverted is called with 1 template. It needs none: all its keys are known.",
        'Fee: by-floor is called without a template for floor. Say by-floor("…").',
        "the root: 2 fields are called taxes in the schema: "
        "the list of Tax in the inverted index inverted, the list of Tax in the index by-owner. "
        'Rename all but one: lists="…" names a list, and lists=False removes it.',
    ]


def test_mistakes_of_virtual_nodes() -> None:
    @node("FIRM#{name}", item=False)
    class Firm:
        name: ID
        city: str

    assert mistakes(Firm) == [
        "Firm.city: no item holds it, and it is not in the key. Add it to the key template, or remove it."
    ]


# --- Types of one key, in an index without their attribute --------------------------------------------

by_box = Index("by-box", "BoxPK", "BoxSK", projection="KEYS_ONLY")


@node("BOX#{box_id}", item=False)
class Box:
    box_id: ID
    pens: Many[Pen]
    caps: Many[Cap]


@node("DRAWER#{drawer_id}", item=False)
class Drawer:
    drawer_id: ID


@record("{drawer}", "{number:02d}", by_box("{box}", "PEN#{number}"))
class Pen:
    drawer: Drawer
    box: Box
    number: int


@record("{drawer}", "{number:02d}", by_box("{box}", "CAP#{number}"))
class Cap:
    drawer: Drawer
    box: Box
    number: int
