"""Header values: each request's are read once, and what is remembered of them."""

from __future__ import annotations

from time import thread_time

import pytest

from keygraph_server.http.compression import takes_gzip
from keygraph_server.http.origins import Origins, is_forgeable
from keygraph_server.http.requests import JSON, remembered, request_headers
from tests.clocks import slowness


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
    # Only the last ones are kept.
    for count in range(257):
        length(b"%d" % count)
    read.clear()
    assert (length(b"256"), read) == (3, [])
    assert (length(b"0"), read) == (1, [b"0"])


@pytest.mark.parametrize("name", [b"accept", b"accept-encoding", b"content-type", b"content-encoding"])
@pytest.mark.parametrize("part", [b"a,", b"a;b,", b";", b"gzip;q=1,", b"application/json;q=1,"])
def test_a_value_of_many_parts_takes_no_time(name: bytes, part: bytes) -> None:
    """A head has 16 KB, and is read before any limit of an operation."""
    found, fields = [], [(name, part * (8_000 // len(part))), (name, part * (7_000 // len(part)))]
    for _ in range(3):
        began = thread_time()
        scope = {"type": "http", "headers": fields}
        takes_gzip(request_headers(scope).fields.get(b"accept-encoding", b""))
        is_forgeable(scope, Origins.of("none"))
        found.append((thread_time() - began) / slowness())
    assert min(found) < 0.0004


def test_a_value_of_many_parts_counts_as_a_missing_one() -> None:
    accept, encoding = b"text/html;q=0.9," * 32, b"gzip," + b"a," * 254
    assert (len(accept), len(encoding)) == (512, 513)
    for value, answer_type in ((accept, None), (accept + b"x", JSON)):
        found = request_headers({"type": "http", "headers": [(b"accept", value)]})
        assert found.answer_type == answer_type
    assert (takes_gzip(encoding[:512]), takes_gzip(encoding)) == (True, False)
