"""Items that a table takes: checked once, by whoever has them first, and known as such by their type.

A load checks an item where its line is known, and the engine that writes it does not check it again. Everything
else that writes has its items checked by the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import NoReturn

from keygraph.dynamo.items import Item, Value, item_size, number_size, text_size, to_typed
from keygraph.dynamo.limits import (
    ITEM_BYTES,
    PARTITION_KEY_BYTES,
    SORT_KEY_BYTES,
    checked_key_bytes,
    refuse_index_keys,
    refuse_large,
    refuse_name,
    refuse_unstorable,
)
from keygraph.dynamo.table import KeyAttribute, Table
from keygraph.errors import BadUserInput

_KEY_LIMITS = (PARTITION_KEY_BYTES, SORT_KEY_BYTES)


class CheckedItem(dict[str, Value]):
    """An item that a BatchWrite into the table takes. Being made checks it; it is not changed after that."""

    __slots__ = ("keys_stored", "size", "table")

    def __init__(self, item: Mapping[str, Value], rules: WriteRules) -> None:
        """Raises BadUserInput for an item that DynamoDB refuses."""
        super().__init__(item)
        self.table = rules.table
        self.keys_stored, self.size = rules.keys_and_size(self)

    def _refuse_change(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("an item that has been checked is not changed")

    __setitem__ = __delitem__ = __ior__ = _refuse_change
    update = setdefault = pop = popitem = clear = _refuse_change


class WriteRules:
    """What DynamoDB asks of an item that is written into one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._same_table = table
        """The one that an item was checked for last: equal, and found so without a comparison."""
        limits: dict[str, int] = {}
        for keys in (table.keys, *(index.keys for index in table.indexes)):
            for key, limit in zip(keys, _KEY_LIMITS, strict=False):
                limits[key.name] = min(limit, limits.get(key.name, limit))
        self._keys: list[tuple[KeyAttribute, str, bool, int]] = [
            (key, key.name, key.type == "S", limits[key.name]) for key in table.key_attributes()
        ]
        self._own = frozenset(key.name for key in table.keys)
        self._has_local = any(index.local for index in table.indexes)

    def checked(self, item: Item) -> CheckedItem:
        """The item; itself where it has been checked for this table. Raises BadUserInput where DynamoDB refuses it."""
        if type(item) is CheckedItem:
            if item.table is self._same_table:
                return item
            if item.table == self.table:
                self._same_table = item.table
                return item
        return CheckedItem(item, self)

    def keys_and_size(self, item: Item) -> tuple[dict[str, bytes], int]:
        """The ordered bytes of the keys that the item has, of the table and its indexes, and its size.

        Raises BadUserInput for an item that DynamoDB refuses.
        """
        # Every item that is written comes through here, and nearly all of them are taken.
        keys: dict[str, bytes] = {}
        try:
            for key, name, is_text, limit in self._keys:
                if name not in item:
                    continue
                value = item[name]
                if is_text and type(value) is str:
                    stored = keys[name] = value.encode()
                    if not 0 < len(stored) <= limit:
                        return self._found_slowly(item)
                else:
                    keys[name] = checked_key_bytes(key, value, limit)
            size = _names_size(tuple(item))
            texts = "".join([value for value in item.values() if type(value) is str])
            size += len(texts) if texts.isascii() else text_size(texts)
            for value in item.values():
                if type(value) is str:
                    continue
                if type(value) is Decimal:
                    size += number_size(value)
                elif value is None or value is True or value is False:
                    size += 1
                else:
                    return self._found_slowly(item)
        except (ValueError, BadUserInput):
            return self._found_slowly(item)
        if size > ITEM_BYTES or self._has_local or not self._own <= keys.keys():
            return self._found_slowly(item)
        return keys, size

    def _found_slowly(self, item: Item) -> tuple[dict[str, bytes], int]:
        """The same, rule by rule: what says what is wrong with an item, and takes lists and maps."""
        table = self.table
        try:
            own = table.key_of(item)
        except KeyError as error:
            raise BadUserInput(f"The item lacks the key {error.args[0]}.") from None
        for attribute, own_value, limit in zip(table.keys, own, _KEY_LIMITS, strict=False):
            checked_key_bytes(attribute, own_value, limit)
        for index in table.indexes:
            refuse_index_keys(item, index)
        refuse_unstorable(item)
        try:
            for value in item.values():
                # A text that is none is found by its size.
                if type(value) is not str:
                    to_typed(value)
            size = item_size(item)
        except UnicodeEncodeError:
            raise BadUserInput("The item holds text that is no valid Unicode.") from None
        except ValueError as error:
            raise BadUserInput(f"The item holds {error}.") from None
        refuse_large(item, size, table)
        keys = {
            name: checked_key_bytes(key, item[name], limit)
            for key, name, _, limit in self._keys
            if name in item
        }
        return keys, size


@lru_cache(maxsize=1024)
def _names_size(names: tuple[str, ...]) -> int:
    """The size of an item's names, which many items have in common. Raises BadUserInput for one that is refused."""
    for name in names:
        refuse_name(name)
    return sum(map(text_size, names))


@lru_cache(maxsize=16)
def write_rules(table: Table) -> WriteRules:
    """The rules of the table."""
    return WriteRules(table)
