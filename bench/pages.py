"""Pages of the documentation that have a part written by a measurement."""

from __future__ import annotations

import re


def with_part(page: str, name: str, text: str) -> str:
    """Returns the page with this text between the markers of that name. Raises ValueError if it has none."""
    marked = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
    if not marked.search(page):
        raise ValueError(f"the page has no <!-- {name} --> and <!-- /{name} -->")
    return marked.sub(lambda _: text, page)
