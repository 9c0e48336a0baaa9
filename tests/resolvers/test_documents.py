"""Documents: read once, kept within bounds."""

from __future__ import annotations

from hashlib import sha256

from graphql import DocumentNode, GraphQLError

from keygraph_examples.commerce import graph
from keygraph_resolvers import DocumentLimits, build_schema
from keygraph_resolvers.plan.documents import Document, Documents, SizedCache

SCHEMA = build_schema(graph)._schema


def made(kept_bytes: int) -> Documents:
    return Documents(SCHEMA, graph, DocumentLimits(), kept_bytes)


def size_of(text: str) -> int:
    """How many bytes a document counts for."""
    read = made(10_000_000)
    read.read(text)
    return read.kept_bytes


def test_a_text_is_read_once() -> None:
    """Every request would be parsed and validated again, which costs more than to answer it."""
    read = made(1_000_000)
    assert read.read("{ __typename }") is read.read("{ __typename }".replace("x", "y"))


def test_what_was_asked_last_is_kept() -> None:
    """The document that an application asks all the time would be forgotten for one that came once."""
    read = made(5 * size_of("{ often: __typename }"))
    often, *others = [
        read.read(f"{{ {name}: __typename }}") for name in ("often", "other", "third", "fourth")
    ]
    assert read.read("{ often: __typename }") is often
    for name in ("fifth", "sixth"):
        read.read(f"{{ {name}: __typename }}")
        assert read.read("{ often: __typename }") is often
    assert read.read("{ other: __typename }") is not others[0]


def test_any_number_of_documents_takes_no_more_than_it_may() -> None:
    """A client that sends a thousand documents would make the process run out of memory."""
    read = made(200_000)
    for number in range(100):
        read.read(f"{{ a{number}: __typename }}")
        assert 0 < read.kept_bytes <= 200_000


def test_one_that_is_too_large_is_not_kept() -> None:
    """One client's document would drive those of all others out."""
    read = made(400_000)
    short, long = read.read("{ __typename }"), "{ __typename }".ljust(80_000)
    assert read.read(long) is not read.read(long)
    assert read.read("{ __typename }") is short


def test_plans_count() -> None:
    """A document of 45 KB with five directives would be thirty-two plans, and 377 MB."""
    read = made(200_000)
    names = [f"v{number}" for number in range(5)]
    text = f"query ({', '.join(f'${name}: Boolean!' for name in names)}) {{ %s }}"
    fields = " ".join(f'{name}: user(userId: "1") @include(if: ${name}) {{ name email }}' for name in names)
    document = read.read(text % fields)
    assert not document.errors
    for number in range(32):
        variables = {name: bool(number >> place & 1) for place, name in enumerate(names)}
        read.plan(document, document.operations[0], variables)
        assert read.kept_bytes <= 200_000


def test_of_what_is_refused_little_is_kept() -> None:
    """The texts of clients that send what cannot be executed would fill the memory, or drive out what others send."""
    read = made(10_000_000)
    valid = read.read("{ __typename }")
    kept, texts = read.kept_bytes, ["{", "{ nothing }", "{ a }" * 1000, f'{{ users(first: "{"x" * 9000}") }}']
    for text in texts:
        assert read.refusal(text) is None
        assert read.read(text).told == read.refusal(text) != []
    assert 0 < read.kept_bytes - kept < 6_000
    for number in range(3_000):
        read.keep(Document(DocumentNode(), [GraphQLError("x" * 300)], b"%d" % number))
    assert 500_000 < read.kept_bytes - kept <= 1_000_000
    assert read.refusal(texts[0]) is None
    assert read.read("{ __typename }") is valid


def test_what_is_kept_has_no_text_for_a_key() -> None:
    """A text would be kept twice, and found by comparing it."""
    read = made(1_000_000)
    read.read("{ __typename }")
    assert [*read.kept] == [sha256(b"{ __typename }").digest()]


# --- The cache ------------------------------------------------------------------------------------------


def test_what_was_asked_for_last_is_kept() -> None:
    """What is asked for all the time would be made anew."""
    cache: SizedCache[str, int] = SizedCache(100)
    for number, key in enumerate("abcd"):
        cache.keep(key, number, 25)
    cache.move_to_end("a")
    cache.keep("e", 4, 25)
    assert [cache.get(key) for key in "abcde"] == [0, None, 2, 3, 4]
    assert (cache.bytes, len(cache)) == (100, 4)


def test_what_is_kept_again_counts_once() -> None:
    """The cache would seem full that is empty."""
    cache: SizedCache[str, int] = SizedCache(100)
    for size in (25, 10, 20):
        cache.keep("a", size, size)
    assert (cache.get("a"), cache.bytes) == (20, 20)


def test_what_is_too_large_drives_nothing_out() -> None:
    """One large value would cost all others."""
    cache: SizedCache[str, int] = SizedCache(100)
    cache.keep("a", 1, 25)
    cache.keep("b", 2, 26)
    assert (cache.get("a"), cache.get("b"), cache.bytes) == (1, None, 25)


def test_nothing_is_kept_in_no_bytes() -> None:
    """A cache could not be turned off."""
    cache: SizedCache[str, int] = SizedCache(0)
    cache.keep("a", 1, 1)
    assert cache.get("a") is None
