"""Caches of a process for repeated work: bounded in bytes, and counted."""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable
from functools import lru_cache
from time import monotonic
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")

_COLLECTED_BYTES = 1_000_000
"""When so much has made room for other values, garbage is collected: the collector counts what is made less what is freed."""
_LASTING_SECONDS = 10.0
"""What is used again so long after it came is kept before others."""
_KEPT: WeakKeyDictionary[Any, tuple[str, int]] = WeakKeyDictionary()
"""The caches of functions, with their names and the bytes of an entry."""


def kept(name: str, most: int, entry_bytes: int, *, typed: bool = False) -> Callable[[FunctionT], FunctionT]:
    """Makes a function remember its results for its last `most` arguments, as `lru_cache` does.

    An entry, which is the arguments and their result, takes at most `entry_bytes`: the function takes no long
    arguments, or raises for them. The bytes are counted under the name, together with all caches of that name.
    """

    def made(function: FunctionT) -> FunctionT:
        remembering = lru_cache(most, typed)(function)
        _KEPT[remembering] = name, entry_bytes
        return cast(FunctionT, remembering)

    return made


def kept_bytes() -> dict[str, int]:
    """Returns the most bytes that the functions of this process remember, by the names of their caches."""
    found: dict[str, int] = {}
    for remembering, (name, entry_bytes) in list(_KEPT.items()):
        found[name] = found.get(name, 0) + remembering.cache_info().currsize * entry_bytes
    return found


class SizedCache(dict[KeyT, ValueT]):
    """Keeps values within a number of bytes, which it counts: what was used last is kept.

    Whoever uses a value sets its time in `used`. Values that were used again ten seconds after they came are kept before
    others, up to five eighths of the bytes, so that ever new ones push out nothing that is used. A value larger than a quarter
    of the cache is not kept.
    """

    def __init__(self, most_bytes: int) -> None:
        super().__init__()
        self._most = most_bytes
        self.bytes = self._dropped = 0
        self.used: dict[KeyT, float] = {}
        """When each value was used last, by `monotonic`."""
        self._sizes: dict[KeyT, tuple[int, float]] = {}
        """The bytes of each value, and when it came."""

    def keep(self, key: KeyT, value: ValueT, size: int) -> None:
        """Keeps a value of `size` bytes, as the last one."""
        if size > self._most // 4:
            return
        now = monotonic()
        known, since = self._sizes.get(key, (0, now))
        self[key], self.used[key], self._sizes[key] = value, now, (size, since)
        self.bytes += size - known
        if self.bytes > self._most:
            self._make_room()

    def _make_room(self) -> None:
        """Drops values until an eighth of the bytes is free, but not the last one."""
        oldest = sorted(self.used, key=self.used.__getitem__)
        lasting, left = set(), self._most * 5 // 8
        for key in reversed(oldest):
            size, since = self._sizes[key]
            if self.used[key] - since > _LASTING_SECONDS and size <= left:
                lasting.add(key)
                left -= size
        for key in sorted(oldest[:-1], key=lasting.__contains__):
            if self.bytes <= self._most * 7 // 8:
                break
            del self[key], self.used[key]
            size, _ = self._sizes.pop(key)
            self.bytes, self._dropped = self.bytes - size, self._dropped + size
        if self._dropped > _COLLECTED_BYTES:
            self._dropped = 0
            gc.collect(1)
