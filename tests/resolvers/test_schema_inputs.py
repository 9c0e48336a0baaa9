"""The inputs of lists: filters, the comparisons of each type, ranges."""

from __future__ import annotations

import pytest

from tests.resolvers.schema_text import fields, shows


def test_where() -> None:
    shows("""input BookWhere {
  isbn: IDCondition
  code: StringCondition
  title: StringCondition
  genre: GenreCondition
  grade: GradeCondition
  published: DateTimeCondition
  bought: DateCondition
  price: DecimalCondition
  copies: IntCondition
  readTimes: LongCondition
  weight: FloatCondition
  isLent: BooleanCondition
  cover: Base64Condition
  words: StringListCondition
  gaps: IntListCondition
  colours: StringListCondition
  format: AttributeCondition
  formats: FormatListCondition
  extra: AttributeCondition
  editorId: IDCondition
  and: [BookWhere!]
  or: [BookWhere!]
  not: BookWhere
}""")


ORDER = ["lt", "lte", "gt", "gte", "between"]


@pytest.mark.parametrize(
    ("name", "scalar", "operators"),
    [
        ("StringCondition", "String", ["eq", "ne", "in", *ORDER, "beginsWith", "contains"]),
        ("IDCondition", "ID", ["eq", "ne", "in", *ORDER, "beginsWith", "contains"]),
        ("IntCondition", "Int", ["eq", "ne", "in", *ORDER]),
        ("LongCondition", "Long", ["eq", "ne", "in", *ORDER]),
        ("FloatCondition", "Float", ["eq", "ne", "in", *ORDER]),
        ("DecimalCondition", "Decimal", ["eq", "ne", "in", *ORDER]),
        ("DateCondition", "Date", ["eq", "ne", "in", *ORDER]),
        ("DateTimeCondition", "DateTime", ["eq", "ne", "in", *ORDER]),
        ("BooleanCondition", "Boolean", ["eq", "ne"]),
        ("GenreCondition", "Genre", ["eq", "ne", "in"]),
        ("Base64Condition", "Base64", ["eq", "ne", "in", "beginsWith", "contains"]),
        ("StringListCondition", "String", ["contains"]),
        ("IntListCondition", "Int", ["contains"]),
        ("FormatListCondition", "", []),
        ("AttributeCondition", "", []),
    ],
)
def test_conditions(name: str, scalar: str, operators: list[str]) -> None:
    types = {"in": f"[{scalar}!]", "between": f"{scalar}Between"}
    shown = [f"{operator}: {types.get(operator, scalar)}" for operator in operators]
    assert fields(name) == [*shown, "exists: Boolean"]
    if "between" in operators:
        assert fields(types["between"]) == [f"from: {scalar}!", f"to: {scalar}!"]


@pytest.mark.parametrize(
    ("name", "scalar", "operators"),
    [
        ("DateRange", "Date", ["eq", "from", "to"]),
        ("DateTimeRange", "DateTime", ["eq", "from", "to"]),
        ("StringRange", "String", ["eq", "from", "to", "beginsWith"]),
        ("IDRange", "ID", ["eq", "from", "to", "beginsWith"]),
        ("IntRange", "Int", ["eq", "from", "to"]),
        ("GradeEquals", "Grade", ["eq"]),
    ],
)
def test_ranges(name: str, scalar: str, operators: list[str]) -> None:
    assert fields(name) == [f"{operator}: {scalar}" for operator in operators]
