"""How names are written: attribute cases, GraphQL names, plurals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keygraph.names import camel, cased, end_names, pascal, plural, snake, with_article, words


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("user_id", ["user", "id"]),
        ("userId", ["user", "id"]),
        ("UserId", ["user", "id"]),
        ("userID", ["user", "id"]),
        ("HTTPServer", ["http", "server"]),
        ("order", ["order"]),
        ("_private_", ["private"]),
        ("line_2", ["line", "2"]),
        ("address2_line", ["address2", "line"]),
        ("__", []),
    ],
)
def test_a_name_has_its_words(name: str, found: list[str]) -> None:
    assert words(name) == found


@pytest.mark.parametrize(
    ("name", "as_snake", "as_camel", "as_pascal"),
    [
        ("user_id", "user_id", "userId", "UserId"),
        ("OrderItem", "order_item", "orderItem", "OrderItem"),
        ("created_at", "created_at", "createdAt", "CreatedAt"),
        ("GSI1Key", "gsi_1_key", "gsi1Key", "Gsi1Key"),
        ("x", "x", "x", "X"),
    ],
)
def test_a_name_in_each_case(name: str, as_snake: str, as_camel: str, as_pascal: str) -> None:
    assert snake(name) == as_snake
    assert camel(name) == as_camel
    assert pascal(name) == as_pascal


@pytest.mark.parametrize(
    ("case", "written"), [("snake", "user_id"), ("camel", "userId"), ("pascal", "UserId")]
)
def test_an_attribute_in_the_graphs_case(case: str, written: str) -> None:
    assert cased("user_id", case) == written


def test_snake_case_is_the_name_as_it_is() -> None:
    assert cased("userID_2", "snake") == "userID_2"


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("user", "users"),
        ("order_item", "order_items"),
        ("category", "categories"),
        ("day", "days"),
        ("address", "addresses"),
        ("box", "boxes"),
        ("branch", "branches"),
        ("dish", "dishes"),
        ("person", "people"),
        ("category_child", "category_children"),
        ("price_history", "price_histories"),
        ("y", "ys"),
    ],
)
def test_a_plural(one: str, many: str) -> None:
    assert plural(one) == many


@given(st.lists(st.from_regex("[a-z]{2,6}", fullmatch=True), min_size=1, max_size=4))
def test_the_cases_are_one_name(parts: list[str]) -> None:
    name = "_".join(parts)
    assert snake(camel(name)) == snake(pascal(name)) == name
    assert camel(pascal(name)) == camel(name)
    assert pascal(camel(name)) == pascal(name)


@pytest.mark.parametrize(
    ("end", "node", "field", "name"),
    [
        ("customer", "user", "user_id", "customer_id"),
        ("tag", "tag", "name", "tag_name"),
        ("page", "page", "page_name", "page_name"),
        ("tree", "tree", "tree_id", "tree_id"),
        ("second", "person", "person_id", "second_id"),
        ("second", "person", "owner_id", "second_owner_id"),
        ("product", "product", "sku", "product_sku"),
        ("kind", "kind", "kind", "kind"),
        ("owner", "app_user", "user_id", "owner_id"),
        ("parent_category", "category", "category_id", "parent_category_id"),
        ("parentCategory", "category", "categoryId", "parentCategoryId"),
        ("owner", "app_user", "userId", "ownerId"),
    ],
)
def test_a_key_field_is_called_after_the_end(end: str, node: str, field: str, name: str) -> None:
    assert end_names(end, node, [field]) == {field: name}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Order", "an Order"),
        ("User", "a User"),
        ("Unit", "a Unit"),
        ("Upload", "an Upload"),
        ("Event", "an Event"),
        ("Category", "a Category"),
    ],
)
def test_names_after_their_article(name: str, said: str) -> None:
    assert with_article(name) == said
