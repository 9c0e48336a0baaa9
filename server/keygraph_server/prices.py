"""DynamoDB's on-demand prices, so that the console and the docs name one and the same: USD, Standard table class.

As public copies of AWS's price list of `AmazonDynamoDB` have them, of `DATE` at the latest. Prices change:
`KEYGRAPH_PRICES` replaces them.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

DATE = "2026-08-15"
"""The date of the price list that `ON_DEMAND` is from."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What DynamoDB charges in one region."""

    read: float
    """USD for a million read request units."""
    write: float
    """USD for a million write request units."""
    storage: float | None = None
    """USD for a GB of storage and a month, above the first 25 GB; None if it is not known."""

    def usd(self, read_units: float, write_units: float) -> float:
        """Returns the price of so many units."""
        return (read_units * self.read + write_units * self.write) / 1_000_000


ON_DEMAND = {
    "us-east-1": Prices(0.125, 0.625, 0.25),
    "us-east-2": Prices(0.125, 0.625, 0.25),
    "us-west-2": Prices(0.125, 0.625, 0.25),
    "eu-west-1": Prices(0.1415, 0.705, 0.283),
    "eu-central-1": Prices(0.1525, 0.7625, 0.306),
}
"""The prices of some regions."""


@dataclass(frozen=True, slots=True)
class PricesInUse:
    """The prices that the console computes with, and where they are from; `prices` is None if the region's are not known."""

    prices: Prices | None = None
    source: str = ""


def prices_in_use(setting: str | None) -> PricesInUse:
    """Returns the prices that `KEYGRAPH_PRICES` names; without it, those of the AWS region in the environment, and where
    there is none, those of us-east-1. Raises ValueError for a text that is neither a known region nor two prices."""
    if setting is not None and "/" in setting:
        return PricesInUse(_own(setting), "KEYGRAPH_PRICES")
    if setting is not None and setting not in ON_DEMAND:
        problem = f"{setting!r} is no region with a known price ({', '.join(ON_DEMAND)})"
        raise ValueError(f"{problem}; give USD per million read and write units: 0.125/0.625")
    region = setting or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    if region not in ON_DEMAND:
        return PricesInUse(None, f"no price of {region} is known: set KEYGRAPH_PRICES")
    return PricesInUse(ON_DEMAND[region], f"on-demand in {region}, {DATE}")


def _own(text: str) -> Prices:
    try:
        read, write = map(float, text.split("/"))
    except ValueError:
        raise ValueError(f"{text!r} is not two prices, such as 0.125/0.625") from None
    if not all(math.isfinite(each) and each >= 0 for each in (read, write)):
        raise ValueError(f"{text!r} has a price that is no amount of money")
    return Prices(read, write)
