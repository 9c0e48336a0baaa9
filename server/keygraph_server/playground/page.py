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

from keygraph_server.playground.assets import ASSETS_FOLDER, Asset, holds_all_assets, read_manifest
from keygraph_server.playground.examples import ExampleOperation
from keygraph_server.prices import PricesInUse

_HERE = Path(__file__).parent
CDN = "https://cdn.jsdelivr.net/npm"
# Relative, like every address of the page, so that it works behind a proxy that adds a path.
LOCAL = "playground/npm"


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


def playground_routes(
    settings: PageSettings, assets: Path | None = None, middleware: Sequence[Middleware] = ()
) -> list[BaseRoute]:
    """Routes for the page on `/` and its files under `/playground`.

    Args:
        settings: what the page is told.
        assets: the folder of installed browser files, by default the one that `make install` fills. If a pinned file is
            missing there, the page loads all of them from a CDN.
        middleware: the middleware of the page and its files.
    """
    folder = ASSETS_FOLDER if assets is None else assets
    manifest = read_manifest()
    is_local = holds_all_assets(folder, manifest)
    # On first request: a start need not wait for the examples.
    content = cache(lambda: render_page(settings, manifest, LOCAL if is_local else CDN))
    headers = {"content-security-policy": _content_security_policy([] if is_local else manifest)}

    async def answer_page(request: Request) -> Response:
        return HTMLResponse(content(), headers=headers)

    routes: list[BaseRoute] = [
        Route("/", answer_page, name="playground", middleware=middleware),
        _folder("page", _HERE / "static", middleware),
    ]
    if is_local:
        routes.append(_folder("npm", folder, middleware))
    return routes


def _folder(name: str, files: Path, middleware: Sequence[Middleware]) -> Mount:
    app = StaticFiles(directory=files)
    return Mount(f"/playground/{name}", app, name=f"playground-{name}", middleware=middleware)


def render_page(settings: PageSettings, manifest: Sequence[Asset], base: str) -> str:
    """The HTML of the page, which loads the pinned files from the address `base`."""
    page_settings = {
        "table": settings.table,
        "model": settings.model,
        "examples": [asdict(example) for example in settings.examples()],
        "asksForToken": settings.asks_for_token,
        "showsItems": settings.shows_items,
        "isLive": settings.is_live,
        "prices": asdict(settings.prices),
        "libraries": {
            asset.package: {"src": f"{base}/{asset.address}", "integrity": asset.integrity}
            for asset in manifest
            if asset.is_lazy
        },
    }
    loaded = [asset for asset in manifest if not asset.is_lazy]
    return Template((_HERE / "page.html").read_text("utf-8")).substitute(
        title=escape(settings.title),
        stylesheets="\n".join(_element(asset, base) for asset in loaded if asset.is_stylesheet),
        modules="\n".join(
            f'<link rel="modulepreload" href="playground/page/{file.name}">'
            for file in sorted((_HERE / "static").glob("*.js"))
        ),
        # Inside a script element only `<` can end it or begin a comment (HTML, 4.12.1.3).
        settings=json.dumps(page_settings).replace("<", "\\u003c"),
        scripts="\n".join(_element(asset, base) for asset in loaded if not asset.is_stylesheet),
    )


def _element(asset: Asset, base: str) -> str:
    # Browsers check the integrity of a file from another origin only with `crossorigin`.
    checked = f'integrity="{asset.integrity}" crossorigin="anonymous"'
    address = escape(f"{base}/{asset.address}")
    if asset.is_stylesheet:
        return f'<link rel="stylesheet" href="{address}" {checked}>'
    return f'<script src="{address}" {checked}></script>'


def _content_security_policy(of_cdn: Sequence[Asset]) -> str:
    """The policy of the page, which loads these files from the CDN, and no others of it: anybody may publish there."""
    scripts = [f" {CDN}/{asset.address}" for asset in of_cdn if not asset.is_stylesheet]
    stylesheets = [f" {CDN}/{asset.address}" for asset in of_cdn if asset.is_stylesheet]
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src 'self'{''.join(scripts)}",
            f"style-src 'self'{''.join(stylesheets)}",
            "font-src 'self' data:",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )
