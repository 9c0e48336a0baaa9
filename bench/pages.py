"""Pages of the documentation of which a part is written by a measurement."""

from __future__ import annotations

import re


def with_part(page: str, name: str, text: str) -> str:
    """The page with that text between the markers of that name. Raises ValueError where it has none."""
    marked = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
    if not marked.search(page):
        raise ValueError(f"the page has no <!-- {name} --> and <!-- /{name} -->")
    return marked.sub(lambda _: text, page)
