"""Limits: an operation that is too large is refused before it reads anything, or stopped while it runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keygraph_resolvers import OperationRequest
from keygraph_resolvers.engine import engine
from keygraph_resolvers.plan.bound import Bound
from tests.conftest import on_exact_engines
from tests.resolvers.worlds import World, book_item, loan_item, member_item

pytestmark = on_exact_engines

LOANS = '{ member(memberId: "ann") { name loans(first: %d) { nodes { title } } } }'


async def lend(books: World, count: int, **fields: Any) -> World:
    numbers = [f"{number:03d}" for number in range(count)]
    await books.put(member_item("ann"), *(loan_item("ann", each, "2024-01-01", **fields) for each in numbers))
    await books.put(*(book_item(each, **fields) for each in numbers))
    books.forget()
    return books


async def test_what_may_cost_more_than_the_limit_is_refused(books: World) -> None:
    limited = (await lend(books, 3)).served(cost_limit=20)
    [error] = (await limited.service.execute(LOANS % 100))["errors"]
    assert error == {
        "message": "This operation may cost 63 read units, and the limit is 20. "
        "Most of it, 62.5, is for member.loans. Ask for less there or around it: smaller pages, or fewer lists and counts.",
        "extensions": {
            "code": "COST_LIMIT",
            "bound": {"requests": 3, "roundTrips": 2, "items": 201, "readUnits": 63.0},
            "limit": 20,
            "mostExpensive": {"path": "member.loans", "readUnits": 62.5},
        },
    }
    assert limited.operations == {}
    assert "errors" not in await limited.service.execute(LOANS % 10)


async def test_an_operation_that_is_refused_again_is_not_computed_again(
    books: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = books.served(cost_limit=20)
    first = await limited.service.execute(LOANS % 100)
    monkeypatch.delattr(Bound, "_each_step")
    assert first["errors"][0]["extensions"]["code"] == "COST_LIMIT"
    assert await limited.service.execute(LOANS % 100) == first


async def test_bounds_of_new_page_sizes_are_computed_one_at_a_time(
    books: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "TURN_SECONDS", 0.0)
    service = books.served(cost_limit=20).service
    document = (
        (LOANS % 0).replace("{ member", "query ($first: Int) { member").replace("first: 0", "first: $first")
    )
    await service.execute(document, {"first": 1})
    events: list[str] = []
    total = Bound._total
    monkeypatch.setattr(Bound, "_total", lambda bound: (events.append("bound"), total(bound))[1])

    async def others() -> None:
        while events.count("bound") < 5:
            events.append("other")
            await asyncio.sleep(0)

    await asyncio.gather(
        *(service.execute(document, {"first": 90 + number}) for number in range(5)), others()
    )
    assert "bound bound" not in " ".join(events)


async def test_a_refusal_has_no_data_and_tells_its_cost_when_asked(books: World) -> None:
    limited = books.served(cost_limit=20)
    answer = await limited.service.execute(OperationRequest(LOANS % 100, with_cost=True))
    assert "data" not in answer
    told = answer["extensions"]["cost"]
    assert told["bound"]["readUnits"] == 63
    assert told["actual"] == {"requests": 0, "roundTrips": 0, "items": 0.0, "readUnits": 0.0, "waitedMs": 0.0}


async def test_the_field_that_costs_most_is_named_by_its_alias(books: World) -> None:
    limited = books.served(cost_limit=20)
    document = """{ few: member(memberId: "ann") { loans(first: 1) { nodes { title } } }
      many: member(memberId: "bob") { borrowed: loans(first: 90) { edges { node { title } } } } }"""
    [error] = (await limited.service.execute(document))["errors"]
    assert error["extensions"]["mostExpensive"] == {"path": "many.borrowed", "readUnits": 45.0 + 11.5}


async def test_an_operation_whose_items_are_larger_than_declared_is_stopped(books: World) -> None:
    limited = (await lend(books, 60, note="x" * 30_000)).served(cost_limit=60)
    answer = await asyncio.wait_for(limited.service.execute(LOANS % 60), 30)
    assert answer["data"] is None
    [error] = answer["errors"]
    # 60 edges of 30 KB are a page of 1 MB and another one; the books, 4 units each, are not read any more.
    numbers = error["extensions"]
    assert (numbers["code"], numbers["limit"]) == ("COST_LIMIT", 60)
    assert numbers["actual"]["readUnits"] > 60
    assert limited.operations.get("BatchGetItem", 0) == 0
    assert numbers["mostExpensive"]["path"] == "member.loans"
    assert error["message"].startswith("This operation has cost ")
    assert "it was stopped" in error["message"]


ALL_LOANS = "{ members(first: 60) { nodes { loans(first: 10) { nodes { title } } } } }"


async def lend_much(books: World) -> World:
    """Sixty members, of whom each has ten loans of 300 KB: 300 read units in three pages each."""
    for number in range(60):
        loans = (loan_item(f"m{number}", f"{each}", "2024-01-01", note="x" * 300_000) for each in range(10))
        await books.put(member_item(f"m{number}", GSI1PK="MEMBER", GSI1SK=f"{number:02d}"), *loans)
    books.forget()
    return books


@pytest.mark.parametrize("limit", [1_000, 3_000])
@pytest.mark.long
async def test_what_is_under_way_is_counted(books: World, limit: int) -> None:
    limited = (await lend_much(books)).served(cost_limit=limit)
    [error] = (await limited.service.execute(ALL_LOANS))["errors"]
    numbers = error["extensions"]
    assert (numbers["code"], numbers["limit"]) == ("COST_LIMIT", limit)
    # One page more than the limit is what nobody can know.
    assert limit < numbers["actual"]["readUnits"] <= limit + 178


async def test_what_is_reserved_is_given_back(books: World) -> None:
    for number in range(60):
        await books.put(member_item(f"m{number}", GSI1PK="MEMBER", GSI1SK=f"{number:02d}"))
    asked = books.served(cost_limit=600)
    answer = await asyncio.wait_for(asked.service.execute(OperationRequest(ALL_LOANS, with_cost=True)), 30)
    assert "errors" not in answer
    assert answer["extensions"]["cost"]["actual"]["requests"] == 61
    assert answer["extensions"]["cost"]["actual"]["roundTrips"] == 2


@pytest.mark.long
async def test_a_count_reserves_its_pages(books: World) -> None:
    limited = (await lend_much(books)).served(cost_limit=8_000, count_pages=1)
    document = "{ members(first: 60) { nodes { loans { totalCount } } } }"
    answer = await limited.service.execute(OperationRequest(document, with_cost=True))
    assert answer["extensions"]["cost"]["actual"]["readUnits"] <= 8_000 + 178


async def test_other_operations_go_on(books: World) -> None:
    limited = (await lend(books, 60, note="x" * 30_000)).served(cost_limit=60)
    small = '{ member(memberId: "ann") { name } }'
    answers = await asyncio.gather(
        limited.service.execute(LOANS % 60), *(limited.service.execute(small) for _ in range(20))
    )
    assert "errors" in answers[0]
    assert [answer["data"]["member"]["name"] for answer in answers[1:]] == ["Member ann"] * 20


@pytest.mark.parametrize(
    ("document", "depth"),
    [
        ("{ __typename }", 1),
        ("{ __schema { types { fields { type { ofType { ofType { name } } } } } } }", 4),
        ('{ member(memberId: "ann") { name } }', 1),
        (LOANS % 1, 2),
        ('{ member(memberId: "ann") { loans { edges { note node { title } } pageInfo { endCursor } } } }', 2),
        ('{ member(memberId: "ann") { ...A ... on Member { loans { edges { node { title } } } } } } '
         "fragment A on Member { loans { nodes { loans { totalCount } } } }", 3),
        ('mutation { createBook(input: { bookId: "b", title: "B" }) { book { loans { edges { note } } } } }', 2),
    ],
)  # fmt: skip
async def test_depth(books: World, document: str, depth: int) -> None:
    def limited(most: int) -> World:
        return books.served(depth_limit=most)

    assert "errors" not in await limited(depth).service.execute(document)
    if depth == 1:
        return  # a limit of 0 means none
    [error] = (await limited(depth - 1).service.execute(document))["errors"]
    assert error == {
        "message": f"This operation nests more than {depth - 1} root fields, lists and ends. "
        "Split it into several operations.",
        "extensions": {"code": "DEPTH_LIMIT", "depth": depth, "limit": depth - 1},
    }
