"""The playground's page and the routes that serve it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from keygraph_server.playground.assets import ASSETS_FOLDER, Asset, holds_all_assets, read_manifest

_HERE = Path(__file__).parent
CDN = "https://cdn.jsdelivr.net/npm"
# Relative, like every address of the page, so that it works behind a proxy that adds a path.
LOCAL = "playground/npm"


def playground_routes(
    title: str,
    default_queries: str,
    assets: Path | None = None,
    middleware: Sequence[Middleware] = (),
    *,
    asks_for_token: bool = False,
) -> list[BaseRoute]:
    """Routes for GraphiQL on `/` and its files under `/playground`.

    Args:
        title: the title of the page.
        default_queries: the GraphQL document in the editor on the first visit.
        assets: the folder of installed browser files, by default the one that `make install` fills. If a pinned file is
            missing there, the page loads all of them from a CDN.
        middleware: the middleware of the page and its files.
        asks_for_token: whether the page has a field for a token.
    """
    folder = ASSETS_FOLDER if assets is None else assets
    manifest = read_manifest()
    is_local = holds_all_assets(folder, manifest)
    content = render_page(
        title, default_queries, manifest, LOCAL if is_local else CDN, asks_for_token=asks_for_token
    )
    headers = {"content-security-policy": _content_security_policy(is_local)}

    async def show_page(request: Request) -> Response:
        return HTMLResponse(content, headers=headers)

    routes: list[BaseRoute] = [
        Route("/", show_page, name="playground", middleware=middleware),
        _folder("page", _HERE / "static", middleware),
    ]
    if is_local:
        routes.append(_folder("npm", folder, middleware))
    return routes


def _folder(name: str, files: Path, middleware: Sequence[Middleware]) -> Mount:
    app = StaticFiles(directory=files)
    return Mount(f"/playground/{name}", app, name=f"playground-{name}", middleware=middleware)


def render_page(
    title: str, default_queries: str, manifest: Sequence[Asset], base: str, *, asks_for_token: bool = False
) -> str:
    """The HTML of the page, which loads the pinned files from the address `base`."""
    return Template((_HERE / "page.html").read_text("utf-8")).substitute(
        title=escape(title),
        stylesheets="\n".join(_element(asset, base) for asset in manifest if asset.is_stylesheet),
        settings=_json_for_script(
            {"title": title, "queries": default_queries, "asksForToken": asks_for_token}
        ),
        scripts="\n".join(_element(asset, base) for asset in manifest if not asset.is_stylesheet),
    )


def _element(asset: Asset, base: str) -> str:
    # Browsers check the integrity of a file from another origin only with `crossorigin`.
    checked = f'integrity="{asset.integrity}" crossorigin="anonymous"'
    address = escape(f"{base}/{asset.address}")
    if asset.is_stylesheet:
        return f'<link rel="stylesheet" href="{address}" {checked}>'
    return f'<script src="{address}" {checked}></script>'


def _json_for_script(value: dict[str, str | bool]) -> str:
    # Inside a script element only `<` can end it or begin a comment (HTML, 4.12.1.3).
    return json.dumps(value).replace("<", "\\u003c")


def _content_security_policy(is_local: bool) -> str:
    cdn = "" if is_local else f" {CDN}/"
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src 'self'{cdn}",
            f"style-src 'self'{cdn}",
            f"font-src 'self' data:{cdn}",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )
