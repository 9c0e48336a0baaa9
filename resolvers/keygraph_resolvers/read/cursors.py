"""Cursors: the place of an edge in its list, encrypted so that only the server can read and make them.

A cursor holds the values that identify the item in the list. It is encrypted with AES-SIV (RFC 5297), which
authenticates it together with the list's path and fixed values: a cursor of another list, a truncated one or an
invented one is refused. A place in a list always has the same cursor, so that a client may compare cursors.
"""

from __future__ import annotations

import base64
import hmac
import json
import zlib
from collections.abc import Sequence
from typing import Any, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from keygraph.dynamo.items import TypedValue, base64_text, from_typed, to_typed
from keygraph.dynamo.table import KeyValue
from keygraph.errors import BadUserInput
from keygraph.lists.extent import Place
from keygraph.lists.query import ListQuery

_BLOCK_BYTES = 16
"""Contents are padded to a multiple of this."""
_HIDDEN_BLOCK_BYTES = 4608
"""The same of the keys of an item that the viewer need not see, in the table and in an index."""
_LONG = 4096
"""The size from which contents are compressed: those of a list never are."""


class Cursors:
    """Makes and reads all cursors with one secret."""

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESSIV(hmac.digest(secret, b"keygraph cursors", "sha512"))

    def seal(self, about: Any) -> Seal:
        """Returns the seal for the cursors of one list, or of anything else with this description."""
        return Seal(self._cipher, about)

    def of(self, query: ListQuery) -> Seal:
        path = query.path
        owner = path.owner.name if path.owner else None
        about = [
            owner,
            path.name,
            " or ".join(record.name for record in path.records),
            path.keys.index_name,
            query.values,
        ]
        return self.seal(about)


class Seal:
    """Encrypts the contents of one list's cursors. Long contents are compressed."""

    __slots__ = ("_about", "_cipher")

    def __init__(self, cipher: AESSIV, about: Any) -> None:
        self._cipher = cipher
        self._about = [_dump(about)]

    def sealed(self, content: Sequence[Any], hidden: Sequence[Any] | None = None) -> str:
        """`hidden` follows on the content. The length of the cursor does not reveal its length."""
        plain = _packed(content, longest=_LONG if hidden is None else 0)
        if hidden is not None:
            plain += _packed(hidden, block=_HIDDEN_BLOCK_BYTES)
        return _text(self._cipher.encrypt(plain, self._about))

    def opened(self, name: str, text: str) -> Any:
        """Returns the cursor's contents. Raises BadUserInput, naming the argument, if it is not one of this list."""
        try:
            sealed = base64.urlsafe_b64decode((text + "=" * (-len(text) % 4)).encode("ascii"))
            if _text(sealed) != text:
                raise ValueError("written otherwise")
            return _unpacked(self._cipher.decrypt(sealed, self._about))
        except (InvalidTag, ValueError):
            raise refused(name) from None

    def cursor(self, query: ListQuery, place: Place, *, is_hidden: bool = False) -> str:
        shard, sort, others = query.mark(place)
        content = [shard, None if sort is None else plain_value(sort), *map(plain_value, others)]
        return self.sealed([], content) if is_hidden else self.sealed(content)

    def place(self, query: ListQuery, name: str, text: str) -> Place:
        """Returns the place of the cursor. Raises BadUserInput, naming the argument, if it is not one of this list."""
        shard, sort, *others = self.opened(name, text)
        try:
            own = None if sort is None else key_value(sort)
            return query.place(shard, own, tuple(key_value(value) for value in others))
        except ValueError:
            raise refused(name) from None


def refused(name: str) -> BadUserInput:
    return BadUserInput(f"{name}: it is not a cursor of this list")


def _text(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def _packed(content: Sequence[Any], *, longest: int = _LONG, block: int = _BLOCK_BYTES) -> bytes:
    plain = _dump(content)
    if len(plain) > longest:
        plain = zlib.compress(plain)
    return plain + b" " * (-len(plain) % block)


def _unpacked(plain: bytes) -> list[Any]:
    if plain.startswith(b"["):
        return cast(list[Any], json.loads(plain))
    content = zlib.decompressobj()
    first, rest = json.loads(content.decompress(plain)), content.unused_data.lstrip()
    return [*first, *_unpacked(rest)] if rest else first


def _dump(content: Any) -> bytes:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=base64_text)
    return text.encode("utf-8", "surrogatepass")


def plain_value(value: KeyValue) -> str | TypedValue:
    """Returns a key's value in JSON: text as it is, a number and bytes in DynamoDB's typed form."""
    return value if isinstance(value, str) else to_typed(value)


def key_value(value: str | TypedValue) -> KeyValue:
    return value if isinstance(value, str) else cast(KeyValue, from_typed(value))
