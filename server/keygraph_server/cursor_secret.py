"""The secret that cursors are signed with: given, kept beside the SQLite file, or made for one start."""

from __future__ import annotations

import logging
import os
import secrets
import tempfile
from pathlib import Path

from pydantic import SecretStr

from keygraph_server.errors import SettingsError
from keygraph_server.settings import Settings

_log = logging.getLogger(__name__)

_BYTES = 32


def with_secret(settings: Settings) -> Settings:
    """The settings, with a secret in any case.

    Where none is given it is kept beside the SQLite file (`<file>.secret`), and made there by the first process that
    needs it. With another store it is a random one, and a line of the log says what that means. Raises SettingsError
    where the file cannot be used.
    """
    if settings.secret is not None:
        return settings
    if settings.sqlite_file is not None:
        secret = kept_secret(settings.sqlite_file.with_name(f"{settings.sqlite_file.name}.secret"))
    else:
        secret = secrets.token_hex(_BYTES)
        _log.warning(
            "KEYGRAPH_SECRET is not set: cursors will not survive a restart, and other processes will refuse them"
        )
    return settings.model_copy(update={"secret": SecretStr(secret)})


def kept_secret(file: Path) -> str:
    """The secret in the file, which is made where there is none. Raises SettingsError where that fails."""
    try:
        if not file.exists():
            _make(file)
        secret = file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is no text"
        problem = f"the secret cannot be kept in {file}: {reason}"
        raise SettingsError(problem, "Set KEYGRAPH_SECRET, or make the file readable") from None
    if not secret:
        raise SettingsError(f"{file} is empty", "Delete it, and a new secret is made")
    return secret


def _make(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Of mode 0600 from the start, and complete before it has its name, so that several workers agree on one.
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as made:
            made.write(secrets.token_hex(_BYTES) + "\n")
            made.flush()
            os.fsync(made.fileno())
        os.link(name, file)
    except FileExistsError:
        return
    finally:
        Path(name).unlink()
