"""The measurement of access rules: both models answer alike, with the same requests."""

from __future__ import annotations

import pytest

from bench import access


@pytest.mark.long
async def test_rules_take_no_request_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_TURNS", 1)
    monkeypatch.setattr(access, "_OPERATIONS", 1)
    _, plain, guarded = await access.measured()
    assert plain == guarded == 64
