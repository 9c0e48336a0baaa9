"""A node that is written in the same transaction as a record that names it is of a type that is allowed there."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph import ID, Graph, Table, node, record
from keygraph.codes import Code
from keygraph.writing.requests import Change, Create, Delete
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.written import Written

pytestmark = pytest.mark.parametrize("engine", ENGINES)


@node("ACCOUNT#{login}")
class Person:
    login: ID
    name: str | None = None


@node("ACCOUNT#{login}")
class Company:
    login: ID
    name: str | None = None


@record("PHOTO#{number}", "PHOTO")
class Photo:
    number: int
    of: Person
    by: Person | Company


graph = Graph(
    Table("Accounts", partition_key="pk", sort_key="sk"), Person, Company, Photo, type_attribute="kind"
).check()
person, company, photo = graph.types.values()


def photo_of(of: str, by: str) -> Create:
    return Create(photo, {"number": 1, "of": (of,), "by": (by,)})


@pytest.fixture
async def accounts(make_store: MakeStore) -> Written:
    accounts = Written(graph, await make_store(graph.table))
    await accounts.write(Create(person, {"login": "Ann"}), Create(company, {"login": "Acme"}))
    return accounts


NEW = Create(company, {"login": "Bolt"}), Create(person, {"login": "Bob"})
RENAMED = Change(company, ("Acme",), {"name": "Acme"}), Change(person, ("Ann",), {"name": "Ann"})
SAME = Change(company, ("Acme",), {}), Change(person, ("Ann",), {})


@pytest.mark.parametrize(
    ("others", "of", "by"),
    [(NEW, "Bolt", "Bolt"), (NEW, "Bolt", "Bob"), (RENAMED, "Acme", "Acme"), (RENAMED, "Acme", "Ann"), (SAME, "Acme", "Ann")],
)  # fmt: skip
async def test_a_node_of_another_type_is_no_node_there(
    accounts: Written, others: tuple[Any, ...], of: str, by: str
) -> None:
    [refusal] = await accounts.refusals(*others, photo_of(of, by))
    assert (refusal.code, refusal.message) == (Code.NOT_FOUND, "of_login: there is no Person with this key.")
    assert await accounts.item("PHOTO#1", "PHOTO") is None


@pytest.mark.parametrize(
    ("others", "of", "by"),
    [(NEW, "Bob", "Bolt"), (NEW, "Bob", "Bob"), (RENAMED, "Ann", "Acme"), (RENAMED, "Ann", "Ann"), (SAME, "Ann", "Acme")],
)  # fmt: skip
async def test_a_node_of_a_type_that_is_allowed(
    accounts: Written, others: tuple[Any, ...], of: str, by: str
) -> None:
    await accounts.write(*others, photo_of(of, by))
    assert await accounts.item("PHOTO#1", "PHOTO") is not None


async def test_a_node_that_is_deleted_is_named_by_nothing(accounts: Written) -> None:
    [refusal] = await accounts.refusals(Delete(person, ("Ann",)), photo_of("Ann", "Acme"))
    assert refusal.code == Code.NOT_FOUND
