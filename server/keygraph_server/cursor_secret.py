"""The secret that encrypts cursors: given, stored next to the SQLite file, or random for one run."""

from __future__ import annotations

import logging
import os
import secrets
import tempfile
from pathlib import Path

from pydantic import SecretStr

from keygraph_server.errors import SettingsError
from keygraph_server.settings import SECRET_CHARACTERS, Settings, check_file

_log = logging.getLogger(__name__)

_BYTES = 32


def with_secret(settings: Settings) -> Settings:
    """Returns the settings with a secret.

    If the settings have none, it is read from a file next to the SQLite file (`<file>.secret`), which the first process
    that needs it creates. With another store it is random, and a warning is logged. Raises SettingsError if the file
    cannot be used, and in production, where it is not random.
    """
    if settings.secret is not None:
        return settings
    if settings.sqlite_file is not None:
        secret = kept_secret(settings.sqlite_file.with_name(f"{settings.sqlite_file.name}.secret"))
    elif settings.is_production:
        problem = "KEYGRAPH_SECRET is not set: each process would refuse the cursors of the others"
        raise SettingsError(problem, "Make one with `openssl rand -hex 32`, and give it to all processes")
    else:
        secret = secrets.token_hex(_BYTES)
        _log.warning(
            "KEYGRAPH_SECRET is not set: cursors become invalid at a restart, and other processes refuse them"
        )
    return settings.model_copy(update={"secret": SecretStr(secret)})


def kept_secret(file: Path) -> str:
    """The secret in the file, which is created if it does not exist. Raises SettingsError if that fails."""
    try:
        if not file.exists():
            _make(file)
        secret = check_file(file).read_text("ascii").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, UnicodeDecodeError):
            reason = "it is not text"
        problem = f"the secret cannot be stored in {file}: {reason}"
        raise SettingsError(problem, "Set KEYGRAPH_SECRET, or fix the permissions of the file") from None
    if len(secret) < SECRET_CHARACTERS:
        problem = f"{file} has a secret of fewer than {SECRET_CHARACTERS} characters"
        raise SettingsError(problem, "Delete it, and Keygraph creates a new secret")
    return secret


def _make(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Created with mode 0600, and linked to its name only when complete, so that all workers agree on one secret.
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
