"""The mark on a node that is being deleted or moved: nothing new may name it.

A node is marked before it is looked for what names it, and goes only while its mark is there: whoever writes a record
that names it asks, in the same transaction, that it has no mark. A mark says until when it is respected, so that one
that a crash left behind keeps nobody away for long. Whoever finds a later one removes it first, and it never comes back:
so the clocks of two machines need not agree for a node to be deleted safely. The same mark may be carried on by another
delete of the node. No field is stored in the attribute, so it is not shown.
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
_SECONDS = 30
"""How long a mark is respected; a delete that takes longer sets it anew."""
UNMARKED: Condition = Not(Exists(_PATH))


def new_token() -> str:
    """What tells the marks of one delete from all others."""
    return f"{uuid.uuid4().hex}#"


def is_marked(item: Item | None) -> bool:
    """Whether the item has a mark."""
    return item is not None and MARK in item


def token_of(item: Item) -> str:
    """The token of the item's mark."""
    return str(item[MARK]).partition("#")[0] + "#"


def set_mark(token: str) -> AttributeChange:
    """The change that marks an item from now on."""
    return SetTo(_PATH, f"{token}{int(time.time()) + _SECONDS}")


def has_mark(token: str) -> Condition:
    """The condition that an item has the mark of this token."""
    return BeginsWith(_PATH, token)


def removal(key: Key, token: str) -> UpdateItem:
    """What removes the mark of this token."""
    return UpdateItem(key, (Remove(_PATH),), has_mark(token))


def removal_of_old(key: Key, item: Item) -> UpdateItem | None:
    """What removes the mark of an item, if it is respected no more."""
    mark = str(item[MARK])
    until = mark.partition("#")[2]
    is_old = not until.isdigit() or int(until) < time.time()
    return UpdateItem(key, (Remove(_PATH),), Eq(_PATH, item[MARK])) if is_old else None
