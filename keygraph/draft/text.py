"""Writes a draft as a model file, formatted as ruff formats it (with its default line length or a longer one)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from keygraph.draft.names import ScopeNames, variable_name
from keygraph.draft.parts import DraftEnd, DraftField, DraftList, DraftType, TemplatePart
from keygraph.dynamo.table import Index, KeyAttribute, Table
from keygraph.keys.template import Reference
from keygraph.names import CASES, cased, plural, singular

_LINE = 88
_IMPORTED = {
    "datetime": ("date", "datetime"),
    "decimal": ("Decimal",),
    "keygraph": (
        *("ID", "JSON", "Format", "Graph", "Index", "Long", "Many", "One", "Ref", "Table"),
        *("edge", "many", "node", "one", "record", "stored"),
    ),
}
"""The names that a model file may import, by module, in ruff's order."""


@dataclass
class Draft:
    """The table, its types, and the size of the sample."""

    table: Table
    types: list[DraftType]
    type_attribute: str | None
    read: int
    """The number of items in the sample."""
    slashed_dates: bool = False
    """Whether dates are written like 2024/01/31."""
    head_key: str | None = None
    """The key of an index whose beginning is the types' value, if no attribute is."""
    separator: str | None = None
    """What no value in a key holds, if it follows a value at the beginning of all keys."""

    @property
    def attribute_case(self) -> str:
        """The case that fits the most names of attributes."""

        def explained(case: str) -> int:
            return sum(cased(name, case) == attribute for name, attribute in self._attributes)

        return max(CASES, key=explained)

    @property
    def _attributes(self) -> list[tuple[str, str]]:
        """The names of fields and ends, with their attributes."""
        found: list[tuple[str, str]] = []
        for type_ in self.types:
            found += [
                (_usual_name(name, field), field.attribute)
                for name, field in type_.fields.items()
                if field.attribute
            ]
            for name, end in type_.ends.items():
                found += _named_attributes(name, end).items()
        return found


def _usual_name(name: str, field: DraftField) -> str:
    """Returns the name after which an attribute of a field is called; that of a list of nodes has their key in it."""
    node = field.nodes and field.nodes.target
    return plural(node.names_at(singular(name))[node.key_paths[0]]) if node else name


def _named_attributes(name: str, end: DraftEnd) -> dict[str, str]:
    """Returns an end's attributes, by the name of each in Python."""
    names = end.target.names_at(name)
    return {names[path]: attribute for path, attribute in end.attributes.items()}


# --- Python texts -------------------------------------------------------------------------------------


def quoted(text: str) -> str:
    """Returns the text as a Python literal, in the quotes that need fewer escapes."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    escapes = {"\\": "\\\\", quote: f"\\{quote}"}
    inner = "".join(escapes.get(char) or (char if char.isprintable() else repr(char)[1:-1]) for char in text)
    return f"{quote}{inner}{quote}"


def literal(value: object) -> str:
    """Returns a text, False or None as a Python literal."""
    return quoted(value) if isinstance(value, str) else str(value)


def comment(text: str) -> str:
    """Returns the text as a comment on one line."""
    return "# " + "".join(char if char.isprintable() else repr(char)[1:-1] for char in " ".join(text.split()))


@dataclass(frozen=True)
class _PythonCall:
    """A call or a list, with its arguments: calls, lists or Python texts."""

    name: str
    arguments: Sequence[_PythonCall | str]
    brackets: str = "()"

    @property
    def on_one_line(self) -> str:
        inner = (each if isinstance(each, str) else each.on_one_line for each in self.arguments)
        return f"{self.name}{self.brackets[0]}{', '.join(inner)}{self.brackets[1]}"

    def lines(self, indent: int = 0, before: int = 0, after: int = 0) -> list[str]:
        """Returns its lines. `before` and `after` are the characters added to the first and the last line."""
        one = self.on_one_line
        if indent + before + len(one) + after <= _LINE or not self.arguments:
            return [" " * indent + one]
        found = [" " * indent + f"{self.name}{self.brackets[0]}"]
        for each in self.arguments:
            inner = [" " * (indent + 4) + each] if isinstance(each, str) else each.lines(indent + 4, after=1)
            found += [*inner[:-1], inner[-1] + ","]
        return [*found, " " * indent + self.brackets[1]]


def _prefixed(prefix: str, call: _PythonCall, indent: int = 0) -> list[str]:
    first, *rest = call.lines(indent, before=len(prefix))
    return [" " * indent + prefix + first.lstrip(), *rest]


# --- The file -----------------------------------------------------------------------------------------


def model_text(draft: Draft, notes: Iterable[str] = ()) -> str:
    """Returns the text of the model file, which ends with the notes as comments."""
    names = ScopeNames()
    variables = {index.name: names.take(variable_name(index.name)) for index in draft.table.indexes}
    case = draft.attribute_case
    blocks = [_class(draft, type_, variables, case) for type_ in draft.types]
    body = "\n\n\n".join("\n".join(lines) for lines in (*blocks, _graph(draft, variables, case)))
    indexes = [line for index in draft.table.indexes for line in _index(index, variables[index.name])]
    head = [
        _docstring(draft),
        "",
        "from __future__ import annotations",
        "",
        *_imports("\n".join([*indexes, body])),
    ]
    if indexes:
        head += ["", *indexes]
    tail = [comment(note) for note in notes]
    return "\n".join([*head, "", "", body, *(["", *tail] if tail else []), ""])


def _docstring(draft: Draft) -> str:
    noun = "item" if draft.read == 1 else "items"
    name = "".join(char if char.isprintable() else "?" for char in draft.table.name).replace("\\", "/")
    return (
        f'"""A first model of the table {name.replace(chr(34), chr(39))}, drafted from {draft.read:,} {noun} of it.\n\n'
        "Comments that begin with `doubt` say what is uncertain. Names come from keys and attributes: rename types and\n"
        'fields as you like, and keep the name of an attribute with stored().\n"""'
    )


def _imports(text: str) -> list[str]:
    used = set(re.findall(r"\w+", re.sub(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*', "", text)))
    found = {module: [name for name in names if name in used] for module, names in _IMPORTED.items()}
    lines = [f"from {module} import {', '.join(names)}" for module, names in found.items() if names]
    *standard, own = lines
    if len(own) > _LINE:
        own = "\n".join(["from keygraph import (", *(f"    {name}," for name in found["keygraph"]), ")"])
    return [*standard, *([""] if standard else []), own]


def _key(key: KeyAttribute) -> str:
    return quoted(key.name) if key.type == "S" else f'({quoted(key.name)}, "{key.type}")'


def _index(index: Index, variable: str) -> list[str]:
    arguments: list[_PythonCall | str] = [quoted(index.name), *map(_key, index.keys)]
    if isinstance(index.projection, tuple):
        arguments.append(_PythonCall("projection=", [quoted(name) for name in index.projection], "[]"))
    elif index.projection != "ALL":
        arguments.append(f"projection={quoted(index.projection)}")
    if index.local:
        arguments.append("local=True")
    return _prefixed(f"{variable} = ", _PythonCall("Index", arguments))


def _graph(draft: Draft, variables: dict[str, str], case: str) -> list[str]:
    table = draft.table
    arguments: list[_PythonCall | str] = [quoted(table.name), f"partition_key={_key(table.partition)}"]
    if table.sort is not None:
        arguments.append(f"sort_key={_key(table.sort)}")
    if table.indexes:
        arguments.append(_PythonCall("indexes=", [variables[index.name] for index in table.indexes], "[]"))
    rest = [type_.name for type_ in draft.types]
    if case != CASES[0]:
        rest.append(f"attribute_case={quoted(case)}")
    if draft.type_attribute is not None:
        rest.append(f"type_attribute={quoted(draft.type_attribute)}")
    if draft.separator is not None:
        rest.append(f"separator={quoted(draft.separator)}")
    if draft.slashed_dates:
        rest.append('formats={date: Format("{:%Y/%m/%d}".format, slashed_date, ordered=True)}')
    return [
        *(_SLASHED_DATE if draft.slashed_dates else []),
        *_prefixed("graph = ", _PythonCall("Graph", [_PythonCall("Table", arguments), *rest])),
    ]


_SLASHED_DATE = [
    "def slashed_date(text: str) -> date:",
    '    return datetime.strptime(text, "%Y/%m/%d").date()',
    "",
    "",
]


def _template(parts: Iterable[TemplatePart]) -> str:
    texts = (str(p) if isinstance(p, Reference) else p.replace("{", "{{").replace("}", "}}") for p in parts)
    return quoted("".join(texts))


def _class(draft: Draft, type_: DraftType, variables: dict[str, str], case: str) -> list[str]:
    lines = _doubts(type_.doubts)
    members = {name: _field(name, field, case) for name, field in type_.fields.items()}
    members |= {name: _end(name, end, case) for name, end in type_.ends.items()}
    # The fields of the table's key come first, in its order.
    in_key = [part.path[0] for part in (*type_.partition, *type_.sort) if isinstance(part, Reference)]
    for name in dict.fromkeys([*in_key, *members]):
        lines += members.get(name, [])
    if not type_.fields and not type_.ends:
        lines.append("    pass")
    if type_.lists:
        lines.append("")
    for name, list_ in type_.lists.items():
        lines += _list(name, list_, variables)
    return [*_prefixed("@", _decorator(draft, type_, variables)), f"class {type_.name}:", *lines]


def _decorator(draft: Draft, type_: DraftType, variables: dict[str, str]) -> _PythonCall:
    arguments: list[_PythonCall | str] = [_template(type_.partition)]
    sort = _template(type_.sort)
    if draft.table.sort is not None and type_.sort and (type_.kind != "node" or sort != arguments[0]):
        arguments.append(sort)
    for index in draft.table.indexes:
        call, named = type_.calls.get(index.name), type_.root_lists.get(index.name)
        inner = [_template(parts) for parts in call.templates] if call else []
        if call is not None and call.shards is not None:
            inner.append(f"shards={call.shards}")
        if named is not None:
            inner.append(f"lists={literal(named)}")
        if inner:
            arguments.append(_PythonCall(variables[index.name], inner))
    if draft.type_attribute is not None and not type_.is_virtual and type_.type_value != type_.name:
        arguments.append(f"type={literal(type_.type_value)}")
    if draft.head_key is not None and type_.type_value:
        arguments.append(f'type={{{quoted(draft.head_key)}: {{"beginsWith": {quoted(type_.type_value)}}}}}')
    if type_.is_virtual:
        arguments.append("item=False")
    if type_.shards is not None:
        arguments.append(f"shards={type_.shards}")
    own = type_.root_lists.get(None)
    if own is not None:
        arguments.append(f"lists={literal(own)}")
    return _PythonCall(type_.kind, arguments)


def _field(name: str, field: DraftField, case: str) -> list[str]:
    is_usual = field.attribute is None or field.attribute == cased(_usual_name(name, field), case)
    stored = [] if is_usual else [quoted(field.attribute or "")]
    if field.nodes is not None and field.nodes.whole_key:
        stored.append("whole_key=True")
    if field.attribute is None and field.optional:
        stored.append("in_key=True")
    return [*_doubts(field.doubts), *_member(f"{name}: {field}", "stored", stored)]


def _end(name: str, end: DraftEnd, case: str) -> list[str]:
    annotation = f"{end.target.name} | None" if end.optional else end.target.name
    if end.whole_key:
        stored = [*map(quoted, end.attributes.values()), "whole_key=True"]
    elif all(cased(usual, case) == attribute for usual, attribute in _named_attributes(name, end).items()):
        stored = []
    elif len(end.attributes) == 1:
        stored = [quoted(attribute) for attribute in end.attributes.values()]
    else:
        stored = [f"{path}={quoted(attribute)}" for path, attribute in end.attributes.items()]
    if end.optional and not end.attributes:
        stored.append("in_key=True")
    return [*_doubts(end.doubts), *_member(f"{name}: {annotation}", "stored", stored)]


def _list(name: str, list_: DraftList, variables: dict[str, str]) -> list[str]:
    arguments = [f"at={quoted(list_.at)}"] if list_.at else []
    if list_.index is not None:
        arguments.append(f"index={variables[list_.index.name]}")
    annotation = "One" if list_.is_one else "Many"
    return _member(f"{name}: {annotation}[{list_.of.name}]", annotation.lower(), arguments)


def _member(line: str, function: str, arguments: Sequence[str]) -> list[str]:
    """Returns the lines of a class's member: the result of a function if it has arguments."""
    return _prefixed(f"{line} = ", _PythonCall(function, arguments), 4) if arguments else [f"    {line}"]


def _doubts(doubts: Iterable[str]) -> list[str]:
    return [f"    {comment(f'doubt: {doubt}')}" for doubt in doubts]
