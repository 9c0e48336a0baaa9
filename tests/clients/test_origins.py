"""Pages of other origins, in a real browser: Chromium enforces what a client library in Node does not ask for."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from tests.clients.conftest import Serve
from tests.server.chromium import Page, needs_chromium, open_page
from tests.server.serving import served

pytestmark = needs_chromium

PAGE_OF_LIST = 'query Q($after: String) { user(userId: "12345") { orders(first: 2, after: $after) { nodes { orderId } pageInfo { endCursor } } } }'
ASK = """(async () => {
  const url = %s, query = %s;
  const post = (variables) => fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables }),
  });
  const get = (variables) => fetch(`${url}?${new URLSearchParams({ query, variables: JSON.stringify(variables) })}`);
  const found = [];
  for (const ask of [post, get]) {
    try {
      const { data: { user: { orders: first } } } = await (await ask({})).json();
      const { data: { user: { orders: second } } } = await (await ask({ after: first.pageInfo.endCursor })).json();
      found.push([...first.nodes, ...second.nodes].map((each) => each.orderId).join(' '));
    } catch (error) {
      found.push(error.name);
    }
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A page that somebody's own development server serves."""
    app = Starlette(routes=[Route("/", lambda request: HTMLResponse("<title>Shop</title>"))])
    with served(app) as address, open_page(address) as opened:
        opened.wait_for("document.title === 'Shop'")
        yield opened


def asked(page: Page, address: str) -> list[str]:
    """The orders on two pages of a list, by POST and by GET; the error where the browser gives none."""
    found: list[str] = page.evaluate(ASK % (json.dumps(f"{address}/graphql"), json.dumps(PAGE_OF_LIST)))
    return found


def test_a_page_on_another_port_pages_through_a_list(page: Page, serve: Serve) -> None:
    assert asked(page, serve().address()) == ["ORD001 ORD003 ORD006"] * 2


def test_in_production_no_page_may_until_it_is_listed(page: Page, serve: Serve) -> None:
    settings = {"KEYGRAPH_ENV": "production"}
    assert asked(page, serve(**settings).address()) == ["TypeError"] * 2
    origin = page.evaluate("location.origin")
    assert (
        asked(page, serve(KEYGRAPH_CORS_ORIGINS=origin, **settings).address()) == ["ORD001 ORD003 ORD006"] * 2
    )
