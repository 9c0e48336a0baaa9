"""Expiry: the time from which an item counts as missing. DynamoDB may delete expired items days later.

An item has expired if the attribute of its type's expiry is a number of seconds that is not in the future. Without the
attribute, or if it is not a number, DynamoDB never deletes the item, and it never expires.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from keygraph.dynamo.conditions import Condition, Le, Not
from keygraph.model.fields import Field

Now: TypeAlias = Decimal | str
"""A time in seconds since 1970; or a placeholder if a request is only shown."""
NOW_PLACEHOLDER = "{now}"


def now() -> Decimal:
    """Returns the time, in whole seconds since 1970."""
    return Decimal(int(time.time()))


def has_expired(expiry: Field, at: Now) -> Condition:
    """Returns the condition that an item has expired at a time."""
    return Le(expiry.attribute, at)


def is_live(expiry: Field, at: Now) -> Condition:
    """Returns the condition that an item has not expired at a time."""
    return Not(has_expired(expiry, at))


def whole_second(value: Any) -> Any:
    """Returns the time in whole seconds, as DynamoDB knows an expiry, rounded up so as not to expire early."""
    if isinstance(value, datetime) and value.microsecond:
        return value.replace(microsecond=0) + timedelta(seconds=1)
    return value
