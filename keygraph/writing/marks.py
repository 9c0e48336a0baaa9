"""The mark on a node that is being deleted or moved, so that no new record can name it.

A node is marked before the search for records that name it, and is deleted only while it has its mark: every write of a
record that names it requires, in the same transaction, that it has no mark. A mark says until when it is valid, so one
left by a crash does not block writes for long. A writer that finds an expired mark removes it first, and it never
returns, so the clocks of two machines need not agree for a safe delete. Another delete of the node may continue under
the same mark. No field is stored in the attribute, so clients do not see it.
"""

from __future__ import annotations

import time
import uuid

from keygraph.dynamo.actions import AttributeChange, Remove, SetTo, UpdateItem
from keygraph.dynamo.conditions import BeginsWith, Condition, Eq, Exists, Not
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key

MARK = "keygraph:deleting"
_PATH = (MARK,)
SECONDS = 30
"""How long a mark is valid; a delete that takes longer sets it again."""
UNMARKED: Condition = Not(Exists(_PATH))


def new_token() -> str:
    """Returns a token that distinguishes the marks of one delete from all others."""
    return f"{uuid.uuid4().hex}#"


def is_marked(item: Item | None) -> bool:
    """Returns whether the item has a mark."""
    return item is not None and MARK in item


def token_of(item: Item) -> str:
    """Returns the token of the item's mark."""
    return str(item[MARK]).partition("#")[0] + "#"


def set_mark(token: str) -> AttributeChange:
    """Returns the change that marks an item from now on."""
    return SetTo(_PATH, f"{token}{int(time.time()) + SECONDS}")


def has_mark(token: str) -> Condition:
    """Returns the condition that an item has the mark of this token."""
    return BeginsWith(_PATH, token)


def removal(key: Key, token: str) -> UpdateItem:
    """Returns the update that removes the mark of this token."""
    return UpdateItem(key, (Remove(_PATH),), has_mark(token))


def removal_of_old(key: Key, item: Item) -> UpdateItem | None:
    """Returns the update that removes an item's mark; None if the mark is still valid."""
    mark = str(item[MARK])
    until = mark.partition("#")[2]
    is_old = not until.isdigit() or int(until) < time.time()
    return UpdateItem(key, (Remove(_PATH),), Eq(_PATH, item[MARK])) if is_old else None
