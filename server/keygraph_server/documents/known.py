"""Finds documents by id, and decides which are accepted.

Trusted documents are in a manifest. Automatic persisted queries are stored as clients send them, by Apollo's protocol
(https://www.apollographql.com/docs/apollo-server/performance/apq).
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Literal, TypeAlias

from keygraph.kept import SizedCache
from keygraph_server.documents.manifest import document_id
from keygraph_server.errors import RequestCode, RequestRefusedError

_BYTES_BESIDE = 300
"""The size of a stored document without its text: its id, and its entries in the cache."""


Accepted: TypeAlias = Literal["any", "trusted", "trusted-and-automatic"]
"""Which documents the server executes."""


class KnownDocuments:
    """Finds the document of a request."""

    def __init__(self, trusted: Mapping[str, str], accepted: Accepted, automatic_bytes: int) -> None:
        """`trusted` are documents by id. Automatic persisted queries may take `automatic_bytes`; 0 turns them off."""
        self._trusted = trusted
        self._trusted_texts = frozenset(trusted.values())
        self._accepted = accepted
        self.is_open = accepted == "any"
        """Whether clients may send any document."""
        self._most = 0 if accepted == "trusted" else automatic_bytes
        self._automatic: SizedCache[str, str] = SizedCache(self._most)

    @property
    def automatic_bytes(self) -> int:
        """The bytes that automatic persisted queries take."""
        return self._automatic.bytes

    def document_of(self, text: str | None, trusted_id: str | None, automatic_hash: str | None) -> str:
        """The document of a request, which has its text, an id, or a hash. Raises RequestRefusedError."""
        if text is None:
            return self._found(trusted_id or automatic_hash or "", is_automatic=trusted_id is None)
        if automatic_hash is not None and document_id(text) != automatic_hash:
            raise RequestRefusedError("sha256Hash is not the SHA-256 of the query")
        may_send_it = self._accepted == "trusted-and-automatic" and automatic_hash is not None and self._most
        if self.is_open or text in self._trusted_texts or may_send_it:
            return text
        raise _not_trusted()

    def _found(self, key: str, *, is_automatic: bool) -> str:
        found = self._trusted.get(key)
        if found is None and key in self._automatic:
            # What clients ask for is forgotten last.
            self._automatic.used[key] = monotonic()
            found = self._automatic[key]
        if found is not None:
            return found
        if self._accepted == "trusted" or (not self.is_open and not is_automatic):
            raise _not_trusted()
        if is_automatic and not self._most:
            # The client then stops sending hashes alone.
            raise RequestRefusedError(
                "PersistedQueryNotSupported", code=RequestCode.PERSISTED_QUERY_NOT_SUPPORTED
            )
        raise RequestRefusedError("PersistedQueryNotFound", code=RequestCode.PERSISTED_QUERY_NOT_FOUND)

    def keep(self, automatic_hash: str, text: str) -> None:
        """Stores the document of an executed operation, whose client has sent its hash."""
        if automatic_hash not in self._trusted:
            # Python stores a text with the width of its widest character, at most four bytes.
            size = _BYTES_BESIDE + len(text) * (1 if text.isascii() else 4)
            self._automatic.keep(automatic_hash, text, size)


EVERY_DOCUMENT = KnownDocuments({}, "any", 0)
"""For a server without a manifest and without automatic persisted queries."""


def _not_trusted() -> RequestRefusedError:
    return RequestRefusedError(
        "This server executes only the documents that it knows: add this one to its manifest.",
        code=RequestCode.DOCUMENT_NOT_TRUSTED,
    )
