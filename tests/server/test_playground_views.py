"""The playground's views in a real browser, with the network cut: no name resolves in it."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

import httpx
import pytest

from keygraph.tables.interchange import Interchange
from keygraph_examples import commerce
from keygraph_server.models import load_model
from keygraph_server.playground.data import described_graph
from tests.server.chromium import EDITOR, RESPONSE, VARIABLES, Page, needs_assets, needs_chromium, open_page
from tests.server.library import WRITES
from tests.server.pictures import PICTURES, ROOT, take_pictures
from tests.server.serving import served_example, served_model

pytestmark = [needs_assets, needs_chromium, pytest.mark.long]

QUERY = '{ user(userId: "12345") { name orders(first: 2) { nodes { total } } } }'
WRITE = f"{EDITOR}.setValue(%r)"
RUN = "document.querySelector('.graphiql-execute-button')"
ANSWER = f"{RESPONSE}.getValue()"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_example("commerce", tmp_path_factory.mktemp("shop")) as address:
        yield address


@pytest.fixture
def page(shop: str) -> Iterator[Page]:
    with open_page(shop) as opened:
        opened.wait_for(EDITOR)
        # The schema is there: what is run from now on has the ids of its nodes.
        opened.wait_for("document.querySelector('.graphiql-query-editor .view-line span')")
        opened.wait_for("window.keygraph?.state.schema")
        yield opened
        assert opened.complaints == []


def choose(page: Page, label: str, value: str) -> None:
    """Fill the field with a label."""
    field = f"[...document.querySelectorAll('label')].find((each) => each.innerText.startsWith({label!r}))?.querySelector('select, input')"
    page.fill(field, value)
    time.sleep(0.3)


def run(page: Page, query: str = QUERY) -> None:
    page.evaluate(WRITE % query)
    # GraphiQL reads the operations of a changed text a moment later.
    time.sleep(0.5)
    page.evaluate(f"{RUN}.click()")
    page.wait_for("document.querySelector('.cost-line')")


def texts(page: Page, selector: str) -> list[str]:
    """The texts of all elements that a selector finds."""
    found: list[str] = page.evaluate(
        f"[...document.querySelectorAll({selector!r})].map((each) => each.innerText.trim())"
    )
    return found


PICTURE = "const graph = document.querySelector('.canvas')._cyreg.cy; const boxes = graph.nodes().toArray()"
OUTSIDE = f"""(() => {{ {PICTURE};
    return boxes.map((each) => each.renderedPosition()).filter(({{ x, y }}) =>
        x < 0 || y < 0 || x > graph.width() || y > graph.height()).length }})()"""
"""How many nodes of a picture are not to be seen."""
COVERED = f"""(() => {{ {PICTURE};
    return graph.edges().flatMap((edge) => {{
        const [from, to] = [edge.sourceEndpoint(), edge.targetEndpoint()];
        const share = 7 / Math.hypot(to.x - from.x, to.y - from.y);
        const [x, y] = [to.x + share * (from.x - to.x), to.y + share * (from.y - to.y)];
        return boxes.filter((node) => {{
            const {{ x1, x2, y1, y2 }} = node.boundingBox({{ includeNodes: false, includeEdges: false, includeOverlays: false }});
            return x1 < x && x < x2 && y1 < y && y < y2;
        }}).map((node) => `${{node.data('label')}} is on the arrow to ${{edge.target().data('label')}}`);
    }}) }})()"""
"""The labels of a picture that cover an arrowhead."""
SMALLEST_LABEL = f"""(() => {{ {PICTURE};
    return Math.min(...boxes.map((each) => each.numericStyle('font-size') * graph.zoom())) }})()"""
"""The size of the smallest label of a picture, in pixels of the screen."""
SHOWN = f"""(() => {{ {PICTURE};
    const shown = boxes.filter((each) => each.style('label')).map((each) => each.boundingBox({{ includeNodes: false, includeEdges: false, includeOverlays: false }}));
    const meets = (one, other) => one.x1 + 3 < other.x2 - 3 && other.x1 + 3 < one.x2 - 3 && one.y1 + 3 < other.y2 - 3 && other.y1 + 3 < one.y2 - 3;
    return [boxes.length, shown.length, shown.filter((one, place) => shown.slice(place + 1).some((other) => meets(one, other))).length] }})()"""
"""How many nodes a picture has, how many of their labels it shows, and how many of those cover another."""
FAULTS = """(async () => {
    const { drawing } = await import(new URL('playground/page/diagram.js', document.baseURI));
    const found = [];
    for (const description of %s) {
        const { boxes, lines } = drawing(description);
        const inside = (box, x, y) => x > box.x + 1 && x < box.x + box.width - 1 && y > box.y - box.above && y < box.y + box.height;
        boxes.forEach((a, place) => boxes.slice(place + 1).forEach((b) => {
            if (a.x < b.x + b.width && b.x < a.x + a.width && a.y - a.above < b.y + b.height && b.y - b.above < a.y + a.height) {
                found.push(`${a.type.name} is on ${b.type.name}`);
            }
        }));
        for (const { path, key, start, room } of lines) {
            const line = document.createElementNS('http://www.w3.org/2000/svg', 'path');
            line.setAttribute('d', path);
            for (let at = 0; at < line.getTotalLength(); at += 5) {
                const { x, y } = line.getPointAtLength(at);
                boxes.filter((box) => inside(box, x, y)).forEach((box) => found.push(`${key} crosses ${box.type.name}`));
            }
            const isLeft = start.side === 'left';
            const label = { x: start.x + (isLeft ? -room - 6 : 6), y: start.y - 15, width: room, height: 12 };
            lines.filter(({ stop }) => room && label.x < stop.x + 9 && stop.x - 9 < label.x + label.width && label.y < stop.y + 4 && stop.y - 4 < label.y + label.height)
                .forEach((other) => found.push(`the name of ${key} is on the arrow of ${other.key}`));
        }
        const again = drawing(structuredClone(description));
        if (JSON.stringify(again.lines.map(({ path }) => path)) !== JSON.stringify(lines.map(({ path }) => path))) {
            found.push('drawn again it is another picture');
        }
    }
    return found;
})()"""
"""What is wrong with the diagrams of some models."""

NARROWED = """[...document.querySelectorAll('.graphiql-editors, .graphiql-response, .cost-requests, .side, .document, .attribute-line')]
    .filter((each) => each.offsetParent).filter((each) => {
        const { left, right, width } = each.getBoundingClientRect();
        return left < 0 || right > window.innerWidth || width < 200;
    }).map((each) => each.className)"""
"""The elements of a view that the window cuts, or that have too little room to be read."""


CATCH_FILES = """window.saved = []; URL.createObjectURL = (blob) => { window.saved.push(blob); return '#' };
    HTMLAnchorElement.prototype.click = () => {}; 1"""
"""Keeps the files that the page saves."""


class TestExamples:
    def test_each_opens_in_a_tab_of_its_own_and_runs(self, page: Page) -> None:
        assert page.evaluate("document.title") == "EcommerceData · Keygraph"
        names = texts(page, ".examples button strong")
        assert (names[0], "CreateUser" in names, names[-1][:3]) == ("CustomerWithOrders", True, "Put")
        assert "query CustomerWithOrders {" in page.evaluate(f"{EDITOR}.getValue()")
        page.click(".examples button", "Order")
        page.wait_for(f"{EDITOR}.getValue().startsWith('query Order ')")
        page.wait_for("document.querySelectorAll('.graphiql-tab').length === 2")
        time.sleep(0.5)
        page.evaluate(f"{RUN}.click()")
        page.wait_for(f"{ANSWER}.includes('ORD00')")
        # The same example again is the same tab.
        page.click(".graphiql-tab-button", "CustomerWithOrders")
        page.wait_for(f"{EDITOR}.getValue().startsWith('query CustomerWithOrders ')")
        page.click(".examples button", "Order")
        page.wait_for(f"{EDITOR}.getValue().startsWith('query Order ')")
        assert page.evaluate("document.querySelectorAll('.graphiql-tab').length") == 2

    def test_the_explorer_opens_at_what_the_editor_shows(self, page: Page) -> None:
        page.evaluate(WRITE % QUERY)
        page.evaluate("document.querySelector('[aria-label=\"Show GraphiQL Explorer\"]').click()")
        user = "document.querySelector('.explorer-panel .graphiql-explorer-user')"
        page.wait_for(f"{user} && {user}.getBoundingClientRect().top < 120")
        assert page.evaluate("document.querySelector('.explorer-panel').scrollTop") > 100


class TestCost:
    def test_requests_stand_by_round_trip_with_actual_and_bound(self, page: Page) -> None:
        run(page)
        summary = page.evaluate("document.querySelector('.cost-summary').innerText")
        assert summary == "2 requests in 1 round trip, 1 read unit (at most 1), $0.000125 per 1,000"
        assert texts(page, ".cost-trip h3") == ["Round trip 1"]
        assert texts(page, ".cost-path") == ["user", "user.orders"]
        assert texts(page, ".cost-ticks span")[0] == "0"
        assert page.evaluate(
            "[...document.querySelectorAll('.cost-bar')].every((bar) => bar.offsetWidth > 1)"
        )
        rows = [row.split("\t")[:5] for row in texts(page, ".cost-table tbody tr")]
        assert rows == [
            ["in all", "2", "2", "1", "1"],
            ["user", "1", "1", "1", "1"],
            ["user.orders", "1", "1", "1", "1"],
        ]
        [priced] = texts(page, ".cost-money")
        assert priced.startswith(
            "$0.000125 per 1,000 of this operation, at most $0.000125 (on-demand in us-east-1, "
        )
        page.click(".cost-meanings summary")
        assert "at most" in texts(page, ".cost-meanings dt")
        answer = page.evaluate(ANSWER)
        assert "John Doe" in answer
        assert "extensions" not in answer
        assert "keygraph_" not in answer

    def test_a_request_shows_its_place_and_its_keys(self, page: Page) -> None:
        run(page)
        page.click(".cost-line", "user.orders")
        page.wait_for("document.querySelector('.cost-request')")
        assert "GSI1PK = USER#12345 AND begins_with(GSI1SK, ORDER#)" in texts(page, ".cost-request dd")
        assert re.sub(r"\s", "", "".join(texts(page, ".marked-place"))) == "orders(first:2)"

    def test_it_is_folded_resized_and_switched_off(self, page: Page) -> None:
        run(page)
        height = "document.querySelector('.cost-content').offsetHeight"
        before = page.evaluate(height)
        page.evaluate("document.querySelector('.cost-handle').focus()")
        page.press("ArrowUp")
        page.wait_for(f"{height} === {before + 20}")
        page.click(".cost-fold")
        page.wait_for("!document.querySelector('.cost-content')")
        page.click(".cost-fold")
        page.click(".cost input")
        page.wait_for("!document.querySelector('.cost-line')")
        page.evaluate(f"{RUN}.click()")
        page.wait_for("document.querySelector('.graphiql-execute-button[aria-label^=Execute]')")
        assert page.evaluate("document.querySelector('.cost-summary').innerText") == ""
        page.click(".cost input")


class TestGraph:
    def test_an_answer_is_drawn_and_its_lists_are_followed(self, page: Page) -> None:
        run(page)
        page.click("[role=tab]", "Graph")
        page.wait_for("document.querySelector('.canvas canvas')")
        assert texts(page, ".all-nodes button") == [
            "John Doe User",
            "Order ORD001 Order",
            "Order ORD003 Order",
        ]
        page.click(".all-nodes button", "Order ORD003")
        page.click(".ways button", "items")
        page.wait_for("document.querySelectorAll('.all-nodes button').length === 5")
        assert texts(page, ".all-nodes button")[3:] == [
            "Wireless Headphones Product",
            "USB-C Cable Product",
        ]
        query = page.evaluate("document.querySelector('.asked pre').innerText")
        assert query.startswith("query OrderItems {")
        page.click(".asked button", "Open in the editor")
        page.wait_for(f"{EDITOR}.getValue().startsWith('query OrderItems ')")

    def test_what_is_drawn_stays_where_it_is(self, page: Page) -> None:
        standing = "Object.fromEntries(document.querySelector('.canvas')._cyreg.cy.nodes().map((each) => [each.id(), each.position()]))"
        run(page)
        page.click("[role=tab]", "Graph")
        page.wait_for(f"document.querySelector('.canvas')?._cyreg && Object.keys({standing}).length === 3")
        before = page.evaluate(standing)
        page.click(".all-nodes button", "Order ORD003")
        page.evaluate("document.querySelector('.canvas')._cyreg.cy.nodes(':selected').emit('dbltap') && 1")
        page.wait_for("document.querySelectorAll('.all-nodes button').length === 5")
        after = page.evaluate(standing)
        assert (len(before), len(after)) == (3, 5)
        assert {key: after[key] for key in before} == before
        # Every list of the order was followed, in one query.
        query = page.evaluate("document.querySelector('.asked pre').innerText")
        assert (query.count("items("), query.count("customer {")) == (1, 1)
        page.click(".legend label", "Product")
        page.wait_for(f"Object.keys({standing}).length === 3")
        page.click(".legend label", "Product")
        page.click("[role=tab]", "Schema")
        page.click("[role=tab]", "Graph")
        page.wait_for(f"document.querySelector('.canvas')?._cyreg && Object.keys({standing}).length === 5")
        assert page.evaluate(standing) == after

    def test_labels_of_many_nodes_are_readable(self, page: Page) -> None:
        page.resize(390, 844)
        run(
            page,
            "{ users { nodes { orders { nodes { items { nodes { name } } } } reviews { nodes { rating } } } } }",
        )
        page.click("[role=tab]", "Graph")
        page.wait_for("document.querySelector('.canvas')?._cyreg")
        # Once more when it is drawn: labels are measured then.
        time.sleep(1)
        nodes, shown, covering = page.evaluate(SHOWN)
        assert (nodes > shown > 5, covering) == (True, 0)
        assert page.evaluate(SMALLEST_LABEL) >= 9
        left_out = (
            "document.querySelector('.canvas')._cyreg.cy.nodes().filter((each) => !each.style('label'))"
        )
        page.evaluate(f"window.pointed = {left_out}.first(); window.pointed.emit('mouseover') && 1")
        assert page.evaluate("window.pointed.style('label') === window.pointed.data('label')")

    def test_a_picture_is_saved_as_png_and_svg(self, page: Page) -> None:
        page.evaluate(CATCH_FILES)
        run(page)
        page.click("[role=tab]", "Graph")
        page.wait_for("document.querySelector('.canvas canvas')")
        page.click(".canvas-tools button", "PNG")
        page.click(".canvas-tools button", "SVG")
        page.wait_for("window.saved.length === 2")
        assert page.evaluate("window.saved.map((each) => each.type)") == ["image/png", "image/svg+xml"]
        drawn = ElementTree.fromstring(page.evaluate("window.saved[1].text()"))
        labels = {"".join(text.itertext()) for text in drawn.iter("{http://www.w3.org/2000/svg}text")}
        assert labels == {"John Doe", "Order ORD001", "Order ORD003", "orders"}

    def test_a_path_is_drawn_as_one(self, tmp_path: Path) -> None:
        with served_example("social", tmp_path) as address, open_page(address) as opened:
            opened.wait_for("window.keygraph?.state.schema")
            opened.click(".examples button", "Path")
            opened.wait_for(f"{EDITOR}.getValue().startsWith('query Path ')")
            opened.evaluate("document.querySelector('[aria-label=\"Show GraphiQL Explorer\"]').click()")
            opened.wait_for("document.querySelector('.explorer-panel')?.innerText.includes('USER_FRIENDS')")
            opened.evaluate(f"{RUN}.click()")
            opened.wait_for("document.querySelector('.cost-line')")
            opened.click("[role=tab]", "Graph")
            opened.wait_for("document.querySelectorAll('.all-nodes button').length === 3")
            opened.evaluate("document.querySelectorAll('.all-nodes button')[1].click()")
            opened.wait_for("document.querySelectorAll('.edge-list button').length === 2")
            assert texts(opened, ".edge-list button") == [
                "USER_FRIENDS ← User Charlie",
                "USER_FRIENDS → User Eve",
            ]
            assert texts(opened, ".values dt") == ["id"]
            assert opened.complaints == []

    def test_what_is_added_to_draw_costs_nothing_and_changes_nothing(self, page: Page, shop: str) -> None:
        examples = httpx.post(f"{shop}playground/examples", json={}).json()
        for example in examples:
            if example["kind"] != "query":
                continue
            text = example["document"]
            sent = page.evaluate(f"window.keygraph.decorated({text!r}, window.keygraph.state.schema).text")
            assert "keygraph_id" in sent
            answers = [
                httpx.post(f"{shop}graphql", json={"query": each}, headers={"x-keygraph-cost": "true"}).json()
                for each in (text, sent)
            ]
            bounds = [answer["extensions"]["cost"]["bound"] for answer in answers]
            assert bounds[0] == bounds[1], example["name"]
            counts = [answer["extensions"]["cost"]["actual"]["requests"] for answer in answers]
            assert counts[0] == counts[1], example["name"]

    def test_errors_stand_where_they_are_in_the_editor(self, page: Page) -> None:
        text = '{ a: user(userId: "12345") { name orders(first: 1) { nodes { total } } } b: user(userId: "") { name } }'
        page.evaluate(WRITE % text)
        time.sleep(0.5)
        page.evaluate(f"{RUN}.click()")
        page.wait_for(f"{ANSWER}.includes('locations')")
        assert f'"column": {text.index("b: user") + 1}' in page.evaluate(ANSWER)


def test_the_pictures_of_the_docs_are_taken_of_this_build(page: Page, tmp_path: Path) -> None:
    take_pictures(page, tmp_path)
    taken = {file.name: file.read_bytes()[:24] for file in tmp_path.iterdir()}
    shown = {
        name
        for file in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
        for name in re.findall(r"images/(playground[^)]*\.png)", file.read_text("utf-8"))
    }
    assert shown == {file.name for file in PICTURES.glob("*.png")}
    # The beginning of a PNG has its size.
    assert taken == {name: (PICTURES / name).read_bytes()[:24] for name in shown}


class TestModel:
    def test_no_diagram_of_an_example_has_a_fault(self, page: Page) -> None:
        names = ("billing", "cargo", "commerce", "education", "social", "talent")
        models = [described_graph(load_model(f"keygraph_examples.{name}:graph").graph) for name in names]
        assert page.evaluate(FAULTS % json.dumps(models)) == []

    def test_its_text_is_large_enough_and_it_is_saved(self, page: Page) -> None:
        page.evaluate(CATCH_FILES)
        page.click("[role=tab]", "Schema")
        page.wait_for("document.querySelector('.er-box')")
        sizes = "[...document.querySelectorAll('.er text, .er tspan')].map((each) => parseFloat(getComputedStyle(each).fontSize))"
        assert page.evaluate(f"Math.min(...{sizes})") == 12
        width = "document.querySelector('.er svg').getBoundingClientRect().width"
        whole = page.evaluate(width)
        page.click(".canvas-tools button", "Fit")
        page.wait_for(f"{width} < {whole}")
        page.click(".canvas-tools [title='Full size']")
        page.wait_for(f"{width} === {whole}")
        page.click(".canvas-tools button", "PNG")
        page.click(".canvas-tools button", "SVG")
        page.wait_for("window.saved.length === 2")
        text = page.evaluate("window.saved.find((each) => each.type === 'image/svg+xml').text()")
        assert "var(" not in text
        labels = {
            "".join(each.itertext())
            for each in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")
        }
        assert {"customerOrders", "Query.users", "GSI2SK = {review_count:010d}#{product_id}"} <= labels

    def test_types_and_lists_with_their_requests(self, page: Page) -> None:
        page.click("[role=tab]", "Schema")
        page.click(".all-nodes button", "Order")
        page.wait_for("document.querySelector('.described')")
        assert "Query: PK = ORDER#{order_id} AND begins_with(SK, PRODUCT#)" in texts(page, ".described code")
        box = page.evaluate("document.querySelector('.er-box[data-id=Order]').textContent")
        for text in ("customer: User", "GSI1PK = USER#{customer.user_id}", "GSI1SK = ORDER#{order_date}"):
            assert text in box
        page.evaluate("document.querySelector('.er-list[data-id=\"Product.orders\"]').focus()")
        hovered = page.evaluate("document.querySelector('.er-hovered').innerText")
        assert (
            hovered
            == "Product.orders: Query GSI1: GSI1PK = PRODUCT#{product_id} AND begins_with(GSI1SK, ORDER#)"
        )
        page.press("Enter")
        page.wait_for("document.querySelector('.described h2').innerText === 'Product.orders'")
        page.click("[role=tab]", "Access paths")
        page.wait_for("document.querySelectorAll('.described').length > 10")

    def test_the_raw_items_behind_a_node(self, page: Page) -> None:
        run(page)
        page.click("[role=tab]", "Graph")
        page.click(".all-nodes button", "Order ORD003")
        page.click(".picked button", "Raw items")
        page.wait_for("document.querySelector('.partition')")
        assert texts(page, ".partition h2") == ["PK ORDER#ORD003"]
        assert "PRODUCT#ABC123" in texts(page, ".partition code")


class TestTable:
    def test_a_type_has_one_color_in_all_views(self, page: Page) -> None:
        run(page)
        page.click("[role=tab]", "Graph")
        page.wait_for("document.querySelector('.canvas')?._cyreg?.cy.nodes().length")
        drawn = page.evaluate(f"(() => {{ {PICTURE}; return boxes.at(-1).style('background-color') }})()")
        dot = "getComputedStyle([...document.querySelectorAll('.legend li')].find((each) => each.innerText.trim() === 'Order').querySelector('.dot')).backgroundColor"
        colors = [drawn.replace(",", ", "), page.evaluate(dot)]
        page.click("[role=tab]", "Schema")
        page.wait_for("document.querySelector('.er-box[data-id=Order]')")
        colors.append(
            page.evaluate("getComputedStyle(document.querySelector('.er-box[data-id=Order] rect')).stroke")
        )
        page.click("[role=tab]", "Table")
        page.wait_for("document.querySelector('.legend')")
        colors.append(page.evaluate(dot))
        assert len(set(colors)) == 1, colors

    def test_a_partition_is_queried_and_its_items_are_opened(self, page: Page) -> None:
        page.click("[role=tab]", "Table")
        page.wait_for("document.querySelectorAll('.partition').length > 5")
        assert texts(page, ".table-cost")[0].startswith("Scan, limit 50: 1 request, ")
        page.click(".partition button.link", "ORDER#ORD001")
        page.wait_for("document.querySelectorAll('.partition').length === 1")
        assert texts(page, ".table-cost") == [
            "Query: PK = ORDER#ORD001, limit 50: 1 request, 0.5 read units, $0.0000625 per 1,000, 2 items read"
        ]
        assert texts(page, ".partition code") == ["ORDER#ORD001", "PRODUCT#ABC123"]
        page.click(".partition li button", "PRODUCT#ABC123")
        page.wait_for("document.querySelector('.picked pre')?.innerText.includes('199.99')")
        assert "... on OrderItem {" in texts(page, ".picked pre")[0]
        page.click(".picked button", "Show in Graph")
        page.wait_for("document.querySelector('#tab-graph').ariaSelected === 'true'")
        page.wait_for("document.querySelectorAll('.all-nodes button').length === 1")

    def test_all_items_of_a_type_are_where_its_index_has_them(self, page: Page) -> None:
        page.click("[role=tab]", "Table")
        choose(page, "Type", "User")
        choose(page, "In", "GSI1")
        page.wait_for("document.querySelector('.partition h2').innerText === 'GSI1PK USER'")
        assert set(texts(page, ".row-type")) == {"User"}
        choose(page, "Type", "Tag")
        page.wait_for("document.querySelector('.table-cost').innerText.startsWith('Scan')")

    def test_pages_are_of_the_place_that_is_seen(self, page: Page) -> None:
        page.click("[role=tab]", "Table")
        choose(page, "Partition", "ORDER#ORD001")
        page.click(".actions button", "Next page")
        page.wait_for(
            "document.querySelector('.actions button:not([disabled])').innerText === 'Previous page'"
        )
        assert texts(page, ".table-cost") == [
            "Scan, limit 50: 1 request, 1 read unit, $0.000125 per 1,000, 50 items read"
        ]

    def test_an_item_is_changed_by_the_mutation_of_its_type(self, page: Page, shop: str) -> None:
        query = '{ order(orderId: "ORD001") { items { edges { quantity } } } }'
        page.click("[role=tab]", "Table")
        for quantity in ("3", "1"):
            page.click(".partition button.link", "ORDER#ORD001") if quantity == "3" else None
            page.click(".partition li button", "PRODUCT#ABC123")
            page.click(".picked button", "Edit")
            choose(page, "quantity", quantity)
            page.click(".write button", "Save")
            page.wait_for(
                f"document.querySelector('.partition ol')?.innerText.includes('quantity {quantity}')"
            )
            page.wait_for("document.querySelector('.table-cost').innerText.startsWith('updateOrderItem: ')")
            answer = httpx.post(f"{shop}graphql", json={"query": query}).json()
            assert answer["data"]["order"]["items"]["edges"] == [{"quantity": int(quantity)}]

    def test_it_offers_only_mutations_that_exist_and_that_a_rule_allows_and_empties_an_end(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "writes.py").write_text(WRITES, "utf-8")
        items = [("A#1", "A#1"), ("B#2", "B#2"), ("B#2", "A#1")]
        lines = [
            json.dumps({"PK": partition, "SK": sort, "name": "x", "near_id": "1"})
            for partition, sort in items
        ]
        (tmp_path / "writes.jsonl").write_text("\n".join(lines), "utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        with served_model("writes:graph", tmp_path / "writes.sqlite") as address, open_page(address) as page:
            page.wait_for("window.keygraph?.state.schema")
            page.click("[role=tab]", "Table")
            page.wait_for("document.querySelectorAll('.partition li').length === 3")
            offered = {}
            for name in ("A", "B", "Link"):
                place = f"[...document.querySelectorAll('.partition li button')].find((each) => each.querySelector('.row-type').innerText === {name!r})"
                page.evaluate(f"{place}.click()")
                page.wait_for(f"document.querySelector('.picked h2')?.innerText === {name!r}")
                page.wait_for("document.querySelector('.picked pre')")
                offered[name] = texts(page, ".picked .actions button")
                choose(page, "Type", name)
                offered[name] += [each for each in texts(page, ".actions button") if each.startswith("New ")]
                choose(page, "Type", "")
            assert offered == {
                "A": ["Show in Graph"],
                "B": ["Show in Graph", "Edit", "Delete", "New B"],
                "Link": ["Show in Graph", "Delete", "New Link"],
            }
            page.click(".partition li button", "B#2")
            page.click(".picked button", "Edit")
            page.click(".write label", "no nearId")
            page.click(".write button", "Save")
            page.wait_for("document.querySelector('.table-cost').innerText.startsWith('updateB: ')")
            answer = httpx.post(f"{address}graphql", json={"query": '{ b(bId: "2") { name near { name } } }'})
            assert answer.json()["data"]["b"] == {"name": "x", "near": None}
            assert page.complaints == []

    def test_an_item_is_made_and_deleted_and_an_error_is_shown(self, page: Page) -> None:
        page.click("[role=tab]", "Table")
        choose(page, "Type", "Category")
        page.click(".actions button", "New Category")
        values = {"categoryId": "cables", "name": "Cables again", "description": "More of them"}
        for name, value in values.items():
            choose(page, name, value)
        page.click(".write button", "Save")
        page.wait_for("document.querySelector('.write .note')")
        choose(page, "categoryId", "a-first")
        page.click(".write button", "Save")
        page.wait_for("document.querySelector('.table-cost').innerText.startsWith('createCategory: ')")
        page.click(".partition li button", "CATEGORY#a-first")
        page.click(".picked button", "Edit")
        # The key does not change.
        page.wait_for(
            "document.querySelector('.write') && !document.querySelector('.write [name=categoryId]')"
        )
        page.click(".picked button", "Delete")
        page.click(".picked button", "Really delete")
        page.wait_for("document.querySelector('.table-cost').innerText.startsWith('deleteCategory: ')")
        assert "CATEGORY#a-first" not in texts(page, ".partition code")

    def test_what_is_seen_is_saved(self, page: Page) -> None:
        page.evaluate(CATCH_FILES)
        page.click("[role=tab]", "Table")
        page.click(".partition button.link", "ORDER#ORD001")
        page.wait_for("document.querySelectorAll('.partition').length === 1")
        page.click(".actions button", "JSON lines")
        page.click(".actions button", "CSV")
        lines, rows = page.evaluate("Promise.all(window.saved.map((each) => each.text()))")
        reading = Interchange(commerce.graph)
        keys = ["ORDER#ORD001", "PRODUCT#ABC123"]
        assert [reading.read(line)["SK"] for line in lines.splitlines()] == keys
        assert [row["SK"] for row in csv.DictReader(io.StringIO(rows, newline=""))] == keys

    def test_a_spreadsheet_computes_nothing_of_a_file(self, page: Page) -> None:
        texts = ["=1+1", "+x", "-x", "@x", "\t=1", "\n=1", " =1", "\uff1d1+1", "-5", "1+1", "1;=1"]
        items = [{"PK": {"S": text}} for text in texts]
        rows = page.evaluate(
            "import(new URL('playground/page/export.js', document.baseURI)).then(({ csv }) => "
            f"csv({json.dumps(items)}, ['PK']))"
        )
        saved = [row["PK"] for row in csv.DictReader(io.StringIO(rows, newline=""))]
        assert saved == [*(f"'{text}" for text in texts[:8]), *texts[8:]]
        # To some programs, a semicolon separates fields, too.
        assert rows.endswith('"1;=1"\r\n')


class TestPage:
    def test_a_link_shares_a_tab_and_runs_nothing(self, page: Page, shop: str) -> None:
        page.evaluate(WRITE % "query Q($id: ID!) { user(userId: $id) { name } }")
        page.evaluate(f'{VARIABLES}.setValue(\'{{"id": "12345"}}\')')
        page.click("[role=tab]", "Table")
        page.click(".head-button", "Copy link")
        page.wait_for("document.querySelector('.page-note').innerText.includes('link is')")
        link = page.evaluate("location.href")
        with open_page(link) as other:
            other.wait_for("document.getElementById('tab-table')?.ariaSelected === 'true'")
            assert other.evaluate(f"{EDITOR}.getValue()").startswith("query Q($id: ID!)")
            assert other.evaluate(f"{VARIABLES}.getValue()") == '{"id": "12345"}'
            assert other.complaints == []
        text = 'mutation { deleteProduct(input: {productId: "ABC123"}) { clientMutationId } } # <img src=x onerror=a()>'
        with open_page(f"{shop}#{urlencode({'view': 'graph', 'query': text})}") as other:
            other.wait_for("document.querySelector('.empty button')")
            assert other.evaluate("document.querySelector('.page-note').innerText").startswith(
                "This mutation is from"
            )
            assert other.evaluate("document.querySelector('.empty button').innerText").startswith(
                "Run the mutation"
            )
            assert other.evaluate(f"{EDITOR}.getValue()") == text
            assert other.evaluate("document.querySelectorAll('img[src=x]').length") == 0
            assert other.evaluate("window.keygraph.state.asked") is None
            assert other.complaints == []

    def test_a_subscription_says_what_is_missing(self, page: Page) -> None:
        page.evaluate(WRITE % 'subscription { order(orderId: "ORD001") { status } }')
        time.sleep(0.5)
        page.evaluate(f"{RUN}.click()")
        page.wait_for(f"{ANSWER}.includes('KEYGRAPH_LIVE is off')")

    def test_views_turn_by_keys(self, page: Page) -> None:
        run(page)
        page.evaluate("document.getElementById('tab-query').focus()")
        for name in ("Graph", "Schema", "Table", "Access paths", "Query"):
            page.press("ArrowRight")
            page.wait_for(f"document.querySelector('[role=tab][aria-selected=true]').innerText === {name!r}")
            if name == "Graph":
                page.wait_for("document.querySelector('.canvas canvas')")
            # The views scroll, not the page.
            assert page.evaluate("document.documentElement.scrollHeight <= window.innerHeight"), name

    def test_an_editor_is_entered_and_left_by_keys(self, page: Page) -> None:
        for part in ("query-editor", "editor-tool"):
            page.evaluate(f"document.querySelector('.graphiql-{part} .graphiql-editor').focus()")
            page.press("Enter")
            page.wait_for("document.activeElement.matches('textarea')")
            page.press("Escape")
            page.wait_for(f"document.activeElement.matches('.graphiql-{part} .graphiql-editor')")

    def test_a_dialog_has_the_font_of_the_page(self, page: Page) -> None:
        page.click("[aria-label='Open settings dialog']")
        page.wait_for("document.querySelector('.graphiql-dialog')")
        fonts = page.evaluate(
            "['.graphiql-container', '.graphiql-dialog'].map((each) => getComputedStyle(document.querySelector(each)).fontFamily)"
        )
        assert fonts == ["system-ui, sans-serif"] * 2

    @pytest.mark.parametrize("width", [390, 768])
    def test_it_fits_a_narrow_window(self, page: Page, width: int) -> None:
        page.resize(width, 844)
        run(page, '{ user(userId: "12345") { name orders { nodes { items { nodes { name } } } } } }')
        for name in ("Query", "Graph", "Schema", "Table", "Access paths"):
            page.click("[role=tab]", name)
            if name == "Graph":
                page.wait_for("document.querySelector('.canvas')?._cyreg")
            time.sleep(0.5)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            if name == "Graph":
                assert page.evaluate(OUTSIDE) == 0
                assert page.evaluate(SMALLEST_LABEL) >= 9
                assert page.evaluate(COVERED) == []
            assert page.evaluate(NARROWED) == [], name
