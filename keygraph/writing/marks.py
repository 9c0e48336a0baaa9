"""Marks on nodes: that no new record can name a node, and that its copies are not all written yet.

A node is marked before it is deleted or moved, or before a field changes that copies follow. It is marked before the search for records that name it, and is deleted only while it has its mark: every write of a
record that names it requires, in the same transaction, that it has no mark. A mark says until when it is valid, so one
left by a crash does not block writes for long. A writer that finds an expired mark removes it first, and it never
returns, so the clocks of two machines need not agree for a safe delete. Another delete of the node may continue under
the same mark. No field is stored in the attribute, so clients do not see it.

If a field has more copies than one transaction holds, the node changes first, and gets another mark until all copies are
as the node. It says where the search for them has come. New records may name the node meanwhile: they copy what it has
now. After a crash, the next write that reads this mark goes on from there.
"""

from __future__ import annotations

import time
import uuid
from decimal import Decimal
from typing import NamedTuple, cast

from keygraph.dynamo.actions import AttributeChange, Remove, SetTo, UpdateItem
from keygraph.dynamo.conditions import BeginsWith, Condition, Eq, Exists, Not
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.table import Key, Position

MARK = "keygraph:deleting"
_PATH = (MARK,)
COPYING = "keygraph:copying"
_COPYING_PATH = (COPYING,)
ADDED = "keygraph:added"
"""Where a node or a shard says how often something was added to its numbers. They may come back to what they were while
their lists are read: then it tells."""
SECONDS = 30
"""How long a mark is valid; what takes longer sets it again."""
SECONDS_OF_CHANGE = 5
"""How long the first mark is valid if the node is changed, which takes a search and one transaction."""
_LONGEST_SECONDS = 10 * SECONDS
UNMARKED: Condition = Not(Exists(_PATH))


def new_token() -> str:
    """Returns a token that distinguishes the marks of one delete from all others."""
    return f"{uuid.uuid4().hex}#"


def is_marked(item: Item | None) -> bool:
    return item is not None and MARK in item


def continued(item: Item) -> tuple[str, Condition]:
    """Returns the token of the delete that has marked an item, and the condition that the mark is there. The mark of
    another program has no token, and gets a new one."""
    mark = item[MARK]
    if isinstance(mark, str) and "#" in mark:
        token = mark.partition("#")[0] + "#"
        return token, has_mark(token)
    return new_token(), Eq(_PATH, mark)


def set_mark(token: str, seconds: int = SECONDS) -> AttributeChange:
    return SetTo(_PATH, f"{token}{int(time.time()) + seconds}")


def has_mark(token: str) -> Condition:
    return BeginsWith(_PATH, token)


def removal(key: Key, token: str) -> UpdateItem:
    """Returns the update that removes the mark of this token."""
    return UpdateItem(key, (Remove(_PATH),), has_mark(token))


def removal_of_old(key: Key, item: Item) -> UpdateItem | None:
    """Returns the update that removes an item's mark; None if the mark is still valid."""
    until = str(item[MARK]).partition("#")[2]
    is_valid = until.isdecimal() and len(until) < 20 and _is_valid(int(until))
    return None if is_valid else UpdateItem(key, (Remove(_PATH),), Eq(_PATH, item[MARK]))


def _is_valid(until: float | Decimal) -> bool:
    """Returns whether a mark is valid. None is for longer, but those of another program, and of clocks that are wrong."""
    now = time.time()
    return now <= until < now + _LONGEST_SECONDS


CLEARED: AttributeChange = Remove(_PATH)
COPIED: AttributeChange = Remove(_COPYING_PATH)
"""The changes that remove the two marks."""


class CopyingMark(NamedTuple):
    """What the mark of a node says whose copies are not all written."""

    token: str
    search: int = 0
    """The number of the search that has not ended, among those for the node's copies."""
    after: Position = ()
    """Where it has come."""
    is_repeated: bool = False
    """Whether a copy was found through an index whose keys may have changed since: then all is searched again."""

    until: Decimal = Decimal(0)
    """When somebody else goes on, in seconds since 1970."""

    unreadable: Value = None
    """What is there instead of a mark that can be read: its copies are searched from the beginning."""

    @property
    def renewed(self) -> CopyingMark:
        return self._replace(until=Decimal(int(time.time()) + SECONDS))

    @property
    def as_change(self) -> AttributeChange:
        stored: Item = {
            "token": self.token,
            "until": self.until,
            "search": Decimal(self.search),
            "after": [*self.after],
            "repeated": self.is_repeated,
        }
        return SetTo(_COPYING_PATH, stored)

    @property
    def is_there(self) -> Condition:
        """The condition that no other write has replaced or removed it."""
        if self.unreadable is not None:
            return Eq(_COPYING_PATH, self.unreadable)
        return Eq((COPYING, "token"), self.token)


def copying_mark(item: Item) -> CopyingMark:
    """Returns the mark of a node whose copies are not all written."""
    match item[COPYING]:
        case {
            "token": str(token),
            "search": Decimal() as search,
            "after": list(after),
            "repeated": bool(is_repeated),
            "until": Decimal() as until,
        } if search >= 0 and all(isinstance(each, str | Decimal | bytes) for each in after):
            position = cast(Position, tuple(after))
            return CopyingMark(token, int(search), position, is_repeated, until)
    return CopyingMark(new_token(), unreadable=item[COPYING])


def is_left(item: Item) -> bool:
    """Returns whether nobody has written copies of a marked node for a while."""
    return not _is_valid(copying_mark(item).until)
