"""What the tests of `keygraph load` share: items, files of them, and what it prints but for the time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keygraph.dynamo.items import Item


def user(number: int, **attributes: Any) -> Item:
    key = f"USER#{number:05}"
    return {
        "PK": key,
        "SK": key,
        "Type": "User",
        "name": f"Name {number}",
        "email": f"{number}@example.com",
        "userType": "customer",
        "CreatedAt": "2024-01-01T00:00:00Z",
        **attributes,
    }


def write_lines(file: str, items: Iterable[Item | str]) -> Path:
    """A file with a line for each item; a text is a line as it is."""
    lines = [item if isinstance(item, str) else json.dumps(item) for item in items]
    Path(file).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return Path(file)


def without_times(text: str) -> str:
    """What was printed without how long it took."""
    return re.sub(r"in [\d.]+ s \([\d,]+ items/s\)", "in N s", text)
