"""The file of trusted documents, in Apollo's form (written by `keygraph trust`, with each bound) or in Relay's.

Apollo's form is that of `@apollo/generate-persisted-query-manifest`: an object with a list of `operations`, each with
`id`, `name`, `type` and `body`. Relay's is one object with the document under each id.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from keygraph_server.errors import CommandError

_log = logging.getLogger(__name__)

PREFIX = "sha256:"
"""The beginning of an id in the specification. It is left out here, as by most clients."""
_FORMAT = "apollo-persisted-query-manifest"
_FIX = "Create it with `keygraph trust DIR`"


@dataclass(frozen=True, slots=True)
class TrustedDocument:
    """A document with one operation."""

    id: str
    name: str
    type: str
    """`query` or `mutation`."""
    body: str
    bound: Mapping[str, Any] = field(default_factory=dict)
    """The most that the operation costs."""


def document_id(body: str) -> str:
    """The id of a document: its SHA-256 in hexadecimal."""
    return hashlib.sha256(body.encode()).hexdigest()


def manifest_text(documents: Iterable[TrustedDocument]) -> str:
    """The content of the manifest."""
    content = {"format": _FORMAT, "version": 1, "operations": list(documents)}
    return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() + "\n"


def read_documents(file: Path) -> dict[str, str]:
    """The documents of a manifest by their ids. Raises CommandError if the file is not one."""
    try:
        content = orjson.loads(file.read_bytes())
        is_apollos = content.get("format") == _FORMAT
        listed = (
            [(each["id"], each["body"]) for each in content["operations"]] if is_apollos else content.items()
        )
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}", _FIX) from None
    except ValueError:
        raise CommandError(f"{file} is not JSON", _FIX) from None
    except (AttributeError, KeyError, TypeError):
        listed = [("", None)]
    if not all(isinstance(each, str) for pair in listed for each in pair):
        raise CommandError(f"{file} is neither Apollo's nor Relay's form of persisted documents", _FIX)
    found = {key.removeprefix(PREFIX): body for key, body in listed}
    repeated = len(listed) - len(found)
    differing = sum(len(key) == 64 and key != document_id(body) for key, body in found.items())
    if repeated or differing:
        problem = "%s: %d ids are given again, and %d look like a SHA-256 but are not that of their documents"
        _log.warning(problem, file, repeated, differing)
    return found
