"""What the site adds to the pages in this folder: those of the folder above, and what the contents do not name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parents[1]
_ABOVE = {
    "start.md": "README.md",  # the home page is this folder's own
    "SECURITY.md": "SECURITY.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
_LOGO = "server/keygraph_server/playground/static/icon.svg"
_PAGES = {name: page for page, name in _ABOVE.items()}
_FENCE = re.compile(r"^( *```\w+) [^\n`]*$", re.MULTILINE)
"""The first line of a block of code, whose further words are for tests: the site knows the language alone."""
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages above, and a last section with the pages that the contents do not name."""
    for page, name in _ABOVE.items():
        files.append(File.generated(config, page, content=(_ROOT / name).read_text("utf-8")))
    files.append(File.generated(config, "logo.svg", content=(_ROOT / _LOGO).read_text("utf-8")))
    named = set(_named(config.nav))
    # An error's page is found through the list of all errors.
    others = [file.src_uri for file in files.documentation_pages() if file.src_uri not in named]
    if others and config.nav is not None:
        config.nav.append({"More": sorted(others)})
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links lead to pages of the site. What is no page of it, such as a file of code, is named without a link."""
    markdown = _FENCE.sub(r"\1", markdown)
    above = page.file.src_uri in _ABOVE

    def led(match: re.Match[str]) -> str:
        picture, label, target, anchor = match.groups()
        place = target.removeprefix("docs/") if above else target.removeprefix("../")
        place = _PAGES.get(place, place) if above or target.startswith("../") else place
        folder = page.file.src_uri.rpartition("/")[0]
        is_found = files.get_file_from_path(place) or files.get_file_from_path(f"{folder}/{target}")
        if is_found is None:
            return label
        return f"{picture}[{label}]({place if files.get_file_from_path(place) else target}{anchor or ''})"

    parts = re.split(r"^( *```.*?^ *```)$", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if number % 2 else _LINK.sub(led, part) for number, part in enumerate(parts))


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """Let pages in folders find the script that lets the search work without a server."""
    up = "../" * page.file.dest_uri.count("/")
    return output.replace('src="iframe-worker.js"', f'src="{up}iframe-worker.js"')


def _named(nav: Any) -> list[str]:
    """The pages that the contents name."""
    if isinstance(nav, str):
        return [nav]
    within = nav.values() if isinstance(nav, dict) else nav or ()
    return [name for each in within for name in _named(each)]
