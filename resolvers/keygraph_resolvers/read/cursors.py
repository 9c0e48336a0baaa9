"""Cursors: where an edge stands in its list, signed so that only cursors that the server made are accepted.

A cursor holds what tells the item apart inside the list and a MAC over that, over the list's path and over what the
list fixes. One of another list, a cut one or an invented one does not verify.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from decimal import Decimal
from typing import Any

from keygraph.dynamo.table import KeyValue
from keygraph.errors import BadUserInput
from keygraph.lists.listing import NeighbourList, Place

_MAC_BYTES = 16


def cursor(secret: bytes, neighbours: NeighbourList, place: Place) -> str:
    """The cursor of a place in the list."""
    shard, sort, others = neighbours.mark(place)
    plain_sort = None if sort is None else _plain(sort)
    content = _dump([shard, plain_sort, *(_plain(value) for value in others)])
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
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _plain(value: KeyValue) -> str | dict[str, str]:
    """A key's value in JSON: text as it is, a number and bytes with their kind."""
    match value:
        case Decimal():
            return {"N": str(value)}
        case bytes():
            return {"B": base64.b64encode(value).decode()}
    return value


def _key_value(value: str | dict[str, str]) -> KeyValue:
    if isinstance(value, str):
        return value
    [(kind, text)] = value.items()
    return Decimal(text) if kind == "N" else base64.b64decode(text)
