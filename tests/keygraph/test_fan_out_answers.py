"""What the fan-out's client reads of a server that answers without an end."""

from __future__ import annotations

import pytest

from keygraph import Table
from keygraph.changes import fan_out
from keygraph.changes.fan_out import PublishedChanges, fan_out_client
from keygraph.errors import Unavailable
from tests.listening import Endless, listening


@pytest.mark.parametrize(
    ("head", "part"),
    [
        (b"$9999999999\r\n", b"a" * 2**16),
        (b"*9999999999\r\n", b"$65536\r\n" + b"a" * 2**16 + b"\r\n"),
        (b"*9999999999\r\n", b":1\r\n" * 2**14),
    ],
)
async def test_an_answer_of_the_fan_out_without_an_end_is_not_read(
    head: bytes, part: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "_ANSWER_BYTES", 2**18)
    server = Endless(head, part)
    async with listening(server) as host:
        with pytest.raises(Unavailable, match="ValueError"):
            async with fan_out_client(f"valkey://{host}") as client:
                await PublishedChanges(client, Table("Shop", partition_key="pk")).start_at_latest()
    assert 0 < sum(server.written) < 2**26
