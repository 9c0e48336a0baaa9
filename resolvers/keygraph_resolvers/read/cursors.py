"""Cursors: where an edge stands in its list, signed so that only cursors that the server made are accepted.

A cursor holds what tells the item apart inside the list and a MAC over that, over the list's path and over what the
list fixes. One of another list, a cut one or an invented one does not verify.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from typing import Any, cast

from keygraph.dynamo.items import TypedValue, base64_text, from_typed, to_typed
from keygraph.dynamo.table import KeyValue
from keygraph.errors import BadUserInput
from keygraph.lists.listing import NeighbourList, Place

_MAC_BYTES = 16


def cursor(secret: bytes, neighbours: NeighbourList, place: Place) -> str:
    """The cursor of a place in the list."""
    shard, sort, others = neighbours.mark(place)
    plain_sort = None if sort is None else _plain(sort)
    content = _dump([shard, plain_sort, *map(_plain, others)])
    sealed = _mac(secret, neighbours, content) + content
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def read_cursor(secret: bytes, neighbours: NeighbourList, name: str, text: str) -> Place:
    """The place that the cursor tells. Raises BadUserInput, naming the argument, where it does not verify."""
    try:
        sealed = base64.urlsafe_b64decode((text + "=" * (-len(text) % 4)).encode("ascii"))
        mac, content = sealed[:_MAC_BYTES], sealed[_MAC_BYTES:]
        if base64.urlsafe_b64encode(sealed).decode().rstrip("=") != text:
            raise ValueError("written otherwise")
        if not hmac.compare_digest(mac, _mac(secret, neighbours, content)):
            raise ValueError("another list's, or changed")
        shard, sort, *others = json.loads(content)
        own = None if sort is None else _key_value(sort)
        return neighbours.place(shard, own, tuple(_key_value(value) for value in others))
    except (binascii.Error, ValueError, UnicodeError):
        raise BadUserInput(f"{name}: it is not a cursor of this list") from None


def _mac(secret: bytes, neighbours: NeighbourList, content: bytes) -> bytes:
    path = neighbours.path
    owner = path.owner.name if path.owner else None
    about = _dump([owner, path.name, path.record.name, path.keys.index_name, neighbours.values])
    return hmac.digest(secret, len(about).to_bytes(4) + about + content, "sha256")[:_MAC_BYTES]


def _dump(content: Any) -> bytes:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=base64_text)
    return text.encode("utf-8", "surrogatepass")


def _plain(value: KeyValue) -> str | TypedValue:
    """A key's value in JSON: text as it is, a number and bytes in DynamoDB's typed form."""
    return value if isinstance(value, str) else to_typed(value)


def _key_value(value: str | TypedValue) -> KeyValue:
    return value if isinstance(value, str) else cast(KeyValue, from_typed(value))
