"""Header values: each request's are read once, and what is remembered of them."""

from __future__ import annotations

from keygraph_server.http.requests import JSON, remembered, request_headers


def test_the_headers_of_a_request_are_read_once() -> None:
    fields = [(b"accept", b"text/html"), (b"content-type", b"application/json"), (b"accept", b"*/*;q=0.1")]
    scope = {"type": "http", "headers": fields}
    found = request_headers(scope)
    assert found.fields == {b"accept": b"text/html, */*;q=0.1", b"content-type": b"application/json"}
    assert (found.answer_type, found.body_problem) == (JSON, None)
    assert request_headers(scope) is found


def test_a_short_value_is_read_once_and_a_long_one_is_not_kept() -> None:
    read: list[bytes] = []

    @remembered
    def length(value: bytes) -> int:
        read.append(value)
        return len(value)

    short, long = b"a" * 256, b"a" * 257
    assert [length(value) for value in (short, short, long, long)] == [256, 256, 257, 257]
    assert read == [short, long, long]


def test_only_the_last_values_are_remembered() -> None:
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
