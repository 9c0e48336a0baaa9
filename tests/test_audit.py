"""What `make audit` looks at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit import LOCKS, ROOT


@pytest.mark.long
def test_every_lock_file_is_audited() -> None:
    ignored = {"node_modules", ".venv"}
    found = {path.parent for path in ROOT.rglob("package-lock.json") if not ignored & {*path.parts}}
    assert found == {ROOT / Path(folder) for folder in LOCKS}
