"""Header values: what is remembered of them."""

from __future__ import annotations

from keygraph_server.http.header_values import remembered


def test_a_short_value_is_read_once_and_a_long_one_is_not_kept() -> None:
    """Clients could fill the memory with long header values; or each request would parse its Accept again."""
    read: list[bytes] = []

    @remembered
    def length(value: bytes) -> int:
        read.append(value)
        return len(value)

    short, long = b"a" * 256, b"a" * 257
    assert [length(value) for value in (short, short, long, long)] == [256, 256, 257, 257]
    assert read == [short, long, long]


def test_only_the_last_values_are_remembered() -> None:
    """A client could fill the memory with many different short values."""
    read: list[bytes] = []

    @remembered
    def number(value: bytes) -> int:
        read.append(value)
        return int(value)

    for count in range(257):
        number(b"%d" % count)
    assert number(b"256") == 256
    assert len(read) == 257
    assert number(b"0") == 0
    assert len(read) == 258
