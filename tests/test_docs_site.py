"""The site of the documentation: it builds without a warning, and needs no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.server.chromium import needs_chromium, open_page

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    files = [file.relative_to(ROOT / "docs") for file in (ROOT / "docs").rglob("*.md")]
    pages = {file.with_name("index.html" if file.stem == "README" else f"{file.stem}.html") for file in files}
    assert {page for page in pages if not (site / page).is_file()} == set()
    contents = (site / "index.html").read_text("utf-8")
    for page in ("clients", "owners", "deploy", "glossary", "SECURITY", "CHANGELOG"):
        assert f'href="{page}.html"' in contents


def test_blocks_of_code_and_rows_of_tables_are_no_text(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert re.findall(r"```.*|<p>\|.*", page.read_text("utf-8")) == [], page.name


def test_links_between_pages_lead_somewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue
        text = page.read_text("utf-8")
        for target in re.findall(r'(?:href|src)="(?![a-z]+:|#)([^"#]+)', text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
        assert 'src="http' not in text
        assert re.findall(r'<link[^>]+rel="stylesheet"[^>]+href="http', text) == []


@needs_chromium
def test_it_can_be_searched_as_files(site: Path) -> None:
    pages = {
        "lambda": "deploy",
        "defer": "faq",
        "pricing": "faq",
        "pagination": "clients",
        "codegen": "clients",
    }
    with open_page((site / "index.html").as_uri()) as page:
        for word, name in pages.items():
            # Typed until it is heard: the field is there before the program that listens to it.
            page.wait_for(
                "(() => { const field = document.querySelector('[data-md-component=search-query]'); if (!field) return false;"
                f" field.focus(); field.value = {word!r}; field.dispatchEvent(new Event('keyup'));"
                f" return document.querySelector('.md-search-result__item a')?.href.includes('{name}.html'); }})()"
            )
        assert page.complaints == []
