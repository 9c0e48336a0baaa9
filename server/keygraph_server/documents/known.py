"""Finds documents by id, and decides which are accepted.

Trusted documents are in a manifest. Automatic persisted queries are stored as clients send them, by Apollo's protocol
(https://www.apollographql.com/docs/apollo-server/performance/apq).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from keygraph.kept import SizedCache
from keygraph_server.documents.manifest import document_id
from keygraph_server.errors import RequestCode, RequestRefusedError
from keygraph_server.settings.documents import Accepted

_BYTES_BESIDE = 300
"""The size of a stored document without its text: its id, and its entries in the cache."""


class Asked(Protocol):
    """The parts of a request that name its document."""

    @property
    def query(self) -> str | None: ...

    @property
    def document_id(self) -> str | None: ...

    @property
    def automatic_hash(self) -> str | None: ...


class KnownDocuments:
    """Finds the document of a request."""

    def __init__(self, trusted: Mapping[str, str], accepted: Accepted, automatic_bytes: int) -> None:
        """`trusted` are documents by id. Automatic persisted queries may take `automatic_bytes`; 0 turns them off."""
        self._trusted = trusted
        self._trusted_texts = frozenset(trusted.values())
        self._accepted = accepted
        self._most = 0 if accepted is Accepted.TRUSTED else automatic_bytes
        self._automatic: SizedCache[str, str] = SizedCache(self._most)

    @property
    def automatic_bytes(self) -> int:
        """The bytes that automatic persisted queries take."""
        return self._automatic.bytes

    def document_of(self, asked: Asked) -> str:
        """The document of a request. Raises RequestRefusedError."""
        if asked.query is None:
            return self._found(
                asked.document_id or asked.automatic_hash or "", is_automatic=asked.document_id is None
            )
        if asked.automatic_hash is not None and document_id(asked.query) != asked.automatic_hash:
            raise RequestRefusedError("sha256Hash is not the SHA-256 of the query")
        if self._accepted is Accepted.ANY or asked.query in self._trusted_texts:
            return asked.query
        if (
            self._accepted is Accepted.TRUSTED_AND_AUTOMATIC
            and asked.automatic_hash is not None
            and self._most
        ):
            return asked.query
        raise _not_trusted()

    def _found(self, key: str, *, is_automatic: bool) -> str:
        found = self._trusted.get(key)
        if found is None and key in self._automatic:
            # What clients ask for is forgotten last.
            self._automatic.move_to_end(key)
            found = self._automatic[key]
        if found is not None:
            return found
        if self._accepted is Accepted.TRUSTED or (self._accepted is not Accepted.ANY and not is_automatic):
            raise _not_trusted()
        if is_automatic and not self._most:
            # The client then stops sending hashes alone.
            raise RequestRefusedError(
                "PersistedQueryNotSupported", code=RequestCode.PERSISTED_QUERY_NOT_SUPPORTED
            )
        raise RequestRefusedError("PersistedQueryNotFound", code=RequestCode.PERSISTED_QUERY_NOT_FOUND)

    def keep(self, asked: Asked) -> None:
        """Stores the document of an executed operation if its client asked for that."""
        key, text = asked.automatic_hash, asked.query
        if key is not None and text is not None and key not in self._trusted:
            # Python stores a text with the width of its widest character, at most four bytes.
            self._automatic.keep(key, text, _BYTES_BESIDE + len(text) * (1 if text.isascii() else 4))


EVERY_DOCUMENT = KnownDocuments({}, Accepted.ANY, 0)
"""For a server without a manifest and without automatic persisted queries."""


def _not_trusted() -> RequestRefusedError:
    return RequestRefusedError(
        "This server executes only the documents that it knows: add this one to its manifest.",
        code=RequestCode.DOCUMENT_NOT_TRUSTED,
    )
