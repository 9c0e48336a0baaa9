"""The playground's page and the routes that serve it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from string import Template

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from keygraph_server.playground.examples import ExampleOperation
from keygraph_server.prices import PricesInUse

_HERE = Path(__file__).parent
LIBRARIES = _HERE / "assets"
"""GraphiQL and what else `server/playground` bundles; a clone has it after `make install`, a wheel brings it."""
_CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        # Monaco, GraphiQL's editor, writes style elements and style attributes.
        "style-src 'self' 'unsafe-inline'",
        "worker-src 'self'",
        "font-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)


@dataclass(frozen=True)
class PageSettings:
    """The values that the page is rendered with."""

    table: str
    model: str = ""
    """The import string of the model."""
    examples: Callable[[], Sequence[ExampleOperation]] = tuple
    """Returns the examples to offer until the page has fetched those with values. The first is in the editor."""
    asks_for_token: bool = False
    """Whether the page has a field for a token."""
    shows_items: bool = False
    """Whether the page offers raw items of the table."""
    is_live: bool = False
    """Whether clients may subscribe."""
    prices: PricesInUse = field(default_factory=PricesInUse)

    @property
    def title(self) -> str:
        return f"{self.table} · Keygraph"


def playground_routes(settings: PageSettings, middleware: Sequence[Middleware] = ()) -> list[BaseRoute]:
    """Routes for the page on `/` and its files under `/playground`, with the middleware that all of them go through."""
    # On first request: a start need not wait for the examples.
    content = cache(lambda: render_page(settings))

    async def answer_page(request: Request) -> Response:
        return HTMLResponse(content(), headers={"content-security-policy": _CONTENT_SECURITY_POLICY})

    return [
        Route("/", answer_page, name="playground", middleware=middleware),
        _folder("page", _HERE / "static", middleware),
        _folder("libraries", LIBRARIES, middleware),
    ]


def _folder(name: str, files: Path, middleware: Sequence[Middleware]) -> Mount:
    app = StaticFiles(directory=files, check_dir=False)
    return Mount(f"/playground/{name}", app, name=f"playground-{name}", middleware=middleware)


def render_page(settings: PageSettings) -> str:
    """The HTML of the page. Its addresses are relative, so that it works behind a proxy that adds a path."""
    page_settings = {
        "table": settings.table,
        "model": settings.model,
        "examples": [asdict(example) for example in settings.examples()],
        "asksForToken": settings.asks_for_token,
        "showsItems": settings.shows_items,
        "isLive": settings.is_live,
        "prices": asdict(settings.prices),
    }
    return Template((_HERE / "page.html").read_text("utf-8")).substitute(
        title=escape(settings.title),
        modules="\n".join(
            f'<link rel="modulepreload" href="playground/page/{file.name}">'
            for file in sorted((_HERE / "static").glob("*.js"))
        ),
        # Inside a script element only `<` can end it or begin a comment (HTML, 4.12.1.3).
        settings=json.dumps(page_settings).replace("<", "\\u003c"),
    )
