"""Caches of a process for repeated work: bounded in bytes, and counted."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")

_COLLECTED_BYTES = 1_000_000
"""When so much has made room for other values, garbage is collected: the collector counts what is made less what is freed."""
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


class SizedCache(OrderedDict[KeyT, ValueT]):
    """Keeps values within a number of bytes, which it counts: the first values make room for a new one.

    To keep what is used often, move it to the end on each use. A value larger than a quarter of the cache is not kept:
    it would push out all others.
    """

    def __init__(self, most_bytes: int) -> None:
        super().__init__()
        self._most = most_bytes
        self.bytes = self._dropped = 0
        self._sizes: dict[KeyT, int] = {}

    def keep(self, key: KeyT, value: ValueT, size: int) -> None:
        """Keeps a value of `size` bytes, as the last one."""
        if size > self._most // 4:
            return
        self.bytes += size - self._sizes.get(key, 0)
        self[key], self._sizes[key] = value, size
        self.move_to_end(key)
        while self.bytes > self._most:
            first, _ = self.popitem(last=False)
            size = self._sizes.pop(first)
            self.bytes, self._dropped = self.bytes - size, self._dropped + size
        if self._dropped > _COLLECTED_BYTES:
            self._dropped = 0
            gc.collect(1)
