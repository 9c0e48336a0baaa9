"""Limits what errors reveal to a client about costs and the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from keygraph.codes import Code

_TOO_EXPENSIVE = "The operation may cost more than the server allows: ask for smaller pages or fewer fields."
_OF_THE_STORE = {
    Code.UNAVAILABLE: "The data cannot be read or written at the moment.",
    Code.TIMEOUT: "The data could not be read or written in time.",
    Code.THROTTLED: "There are too many requests for this data at the moment.",
}


@dataclass(frozen=True, slots=True)
class Exposure:
    """What clients may see."""

    cost_details: bool = True
    endpoint_names: bool = True

    def conceal(self, errors: list[dict[str, Any]]) -> None:
        """Removes from errors what clients may not see."""
        for error in errors:
            code = error.get("extensions", {}).get("code")
            if not self.cost_details and code == Code.COST_LIMIT:
                error |= {"message": _TOO_EXPENSIVE, "extensions": {"code": code}}
            # An error without a path did not come from the store: the server itself is busy or stopping.
            if not self.endpoint_names and "path" in error and code in _OF_THE_STORE:
                error["message"] = _OF_THE_STORE[code]
