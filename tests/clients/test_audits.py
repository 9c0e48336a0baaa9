"""The audits of the GraphQL over HTTP specification, by the package of its working group's reference server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clients.conftest import HERE, SECONDS, Serve, run


@pytest.mark.timeout(SECONDS + 100)
def test_every_audit_is_passed(packages: Path, serve: Serve) -> None:
    found = json.loads(run(HERE, "node", "audits.mjs", f"{serve().address()}/graphql"))
    assert [audit for audit in found if audit["status"] != "ok"] == []
    assert len(found) == 61
