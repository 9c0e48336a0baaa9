"""How values are declared of which many are made for each request."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:

    def value(*, frozen: bool, slots: bool) -> Any:
        """A dataclass that type checkers hold frozen.

        Python takes three times as long to make one that is frozen (5.0 µs a `Query` against 1.6, by timeit).
        """
        return dataclasses.dataclass(slots=slots, unsafe_hash=frozen)


__all__ = ["value"]
