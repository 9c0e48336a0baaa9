"""Values: dataclasses that nothing changes.

That they are not changed is for type checkers to see: Python takes several times as long to make an object that refuses
it, and some are made for each request.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:

    def value(*, frozen: bool, slots: bool) -> Any:
        """A dataclass with a hash; `frozen` is what type checkers are told."""
        return dataclasses.dataclass(slots=slots, unsafe_hash=frozen)


__all__ = ["value"]
