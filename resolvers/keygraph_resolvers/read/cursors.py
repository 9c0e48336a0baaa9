"""Cursors: where an edge stands in its list, encrypted so that only the server can read and make them.

A cursor holds what tells the item apart inside the list. It is encrypted by AES-SIV (RFC 5297), which authenticates it
together with the list's path and what the list fixes: one of another list, a cut one or an invented one is refused. One
place of a list always has the same cursor, so that a client may compare cursors.
"""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from keygraph.dynamo.items import TypedValue, base64_text, from_typed, to_typed
from keygraph.dynamo.table import KeyValue
from keygraph.errors import BadUserInput
from keygraph.lists.listing import NeighbourList, Place

_BLOCK_BYTES = 16
"""Contents are filled up to a multiple of this: the length of a cursor does not tell the length of a key."""


class Cursors:
    """Makes and reads the cursors of all lists under one secret."""

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESSIV(hmac.digest(secret, b"keygraph cursors", "sha512"))

    def of(self, neighbours: NeighbourList) -> ListCursors:
        """The cursors of one list."""
        return ListCursors(self._cipher, neighbours)


class ListCursors:
    """Makes and reads the cursors of one list."""

    __slots__ = ("_about", "_cipher", "_neighbours")

    def __init__(self, cipher: AESSIV, neighbours: NeighbourList) -> None:
        path = neighbours.path
        owner = path.owner.name if path.owner else None
        self._cipher = cipher
        self._neighbours = neighbours
        self._about = [_dump([owner, path.name, path.record.name, path.keys.index_name, neighbours.values])]

    def cursor(self, place: Place) -> str:
        """The cursor of a place in the list."""
        shard, sort, others = self._neighbours.mark(place)
        plain_sort = None if sort is None else _plain(sort)
        content = _dump([shard, plain_sort, *map(_plain, others)])
        content += b" " * (-len(content) % _BLOCK_BYTES)
        return _text(self._cipher.encrypt(content, self._about))

    def place(self, name: str, text: str) -> Place:
        """The place that the cursor tells. Raises BadUserInput, naming the argument, where it is none of this list."""
        try:
            sealed = base64.urlsafe_b64decode((text + "=" * (-len(text) % 4)).encode("ascii"))
            if _text(sealed) != text:
                raise ValueError("written otherwise")
            shard, sort, *others = json.loads(self._cipher.decrypt(sealed, self._about))
            own = None if sort is None else _key_value(sort)
            return self._neighbours.place(shard, own, tuple(_key_value(value) for value in others))
        except (InvalidTag, ValueError):
            raise BadUserInput(f"{name}: it is not a cursor of this list") from None


def _text(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def _dump(content: Any) -> bytes:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=base64_text)
    return text.encode("utf-8", "surrogatepass")


def _plain(value: KeyValue) -> str | TypedValue:
    """A key's value in JSON: text as it is, a number and bytes in DynamoDB's typed form."""
    return value if isinstance(value, str) else to_typed(value)


def _key_value(value: str | TypedValue) -> KeyValue:
    return value if isinstance(value, str) else cast(KeyValue, from_typed(value))
