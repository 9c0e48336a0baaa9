"""Conditions on an item as it will be, as conditions on the item as it is."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from keygraph.dynamo.actions import (
    AddMembers,
    AddNumber,
    Append,
    AttributeChange,
    Remove,
    RemoveMembers,
    SetTo,
    changed,
)
from keygraph.dynamo.conditions import (
    And,
    Between,
    Condition,
    Contains,
    Eq,
    Exists,
    Ge,
    In,
    Lt,
    Ne,
    Not,
    Or,
    holds,
)
from keygraph.dynamo.foreseen import before
from keygraph.dynamo.items import Item

numbers = st.integers(-4, 4).map(Decimal)
letters = st.frozensets(st.sampled_from("abc"), min_size=1)
items = st.fixed_dictionaries(
    {"x": st.text("ab", max_size=2)},
    optional={"n": numbers, "s": letters, "l": st.lists(st.sampled_from("abc")), "m": st.just({"i": "a"})},
)
N, S, L, X, M = ("n",), ("s",), ("l",), ("x",), ("m",)
of_numbers = st.one_of(
    *(st.builds(kind, st.just(N), numbers) for kind in (Eq, Ne, Lt, Ge)),
    st.tuples(numbers, numbers).map(lambda pair: Between(N, *sorted(pair))),
    st.lists(numbers).map(lambda some: In(N, tuple(some))),
    st.sampled_from([Exists(N), Ne(N, None)]),
)
comparisons = st.one_of(
    of_numbers,
    st.sampled_from([Contains(path, letter) for path in (S, L) for letter in "abc"]),
    st.sampled_from([Exists(L), Ne(L, None), Eq(X, "a"), Exists(X), Exists(M), Eq(("m", "i"), "a")]),
)
conditions: st.SearchStrategy[Condition] = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        inner.map(Not), *(st.lists(inner, max_size=3).map(tuple).map(kind) for kind in (And, Or))
    ),
)
changes: st.SearchStrategy[list[AttributeChange]] = st.tuples(
    st.one_of(
        st.none(),
        numbers.map(lambda n: AddNumber(N, n)),
        numbers.map(lambda n: SetTo(N, n)),
        st.just(Remove(N)),
    ),
    st.one_of(st.none(), letters.map(lambda s: AddMembers(S, s)), letters.map(lambda s: RemoveMembers(S, s))),
    st.one_of(st.none(), st.lists(st.sampled_from("abc")).map(lambda some: Append(L, tuple(some)))),
    st.sampled_from([None, SetTo(X, "a"), Remove(X)]),
    st.sampled_from([None, SetTo(M, {"i": "b"}), Remove(M)]),
).map(lambda some: [each for each in some if each is not None])


@given(items, changes, conditions)
def test_it_holds_before_where_it_holds_afterwards(
    item: Item, some: list[AttributeChange], condition: Condition
) -> None:
    assert holds(before(condition, some), item) is holds(condition, changed(item, some))
