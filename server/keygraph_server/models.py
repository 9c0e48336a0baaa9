"""Loads models by import string, and finds the files that belong to them.

A model is `module:attribute`; `module` alone means its `graph`. By convention, `shop.graphql` next to `shop.py` has
queries to try, `shop.jsonl` and `shop.*.jsonl` have its sample, and a function `sample` in the module can make a sample
of any size.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from keygraph import Graph, ModelError
from keygraph_server.errors import CommandError, ModelNotLoadedError, SettingsError
from keygraph_server.settings import Settings

if TYPE_CHECKING:
    from keygraph_resolvers import GraphSchema

_DEFAULT_ATTRIBUTE = "graph"
_PACKAGES = map(importlib.util.find_spec, ("keygraph", "keygraph_resolvers", "keygraph_server"))
_LIBRARIES = (
    *(Path(spec.origin).parent for spec in _PACKAGES if spec and spec.origin),
    Path(importlib.__file__).parents[1],
)
"""The folders of code that is not part of a user's model."""
_FUTURE = "Begin the file with `from __future__ import annotations`, so that a type can be named before it is declared"
_WANTED = "Name a Graph, a schema made by build_schema, or a function without arguments that returns one"


def examples_folder() -> Path:
    spec = importlib.util.find_spec("keygraph_examples")
    [folder] = (spec and spec.submodule_search_locations) or [""]
    return Path(folder)


def example_names() -> list[str]:
    return sorted(file.stem for file in examples_folder().glob("*.graphql"))


@dataclass(frozen=True)
class Model:
    """A model to serve: a graph, its module, and the files next to the module."""

    name: str
    """Its import string."""
    module: ModuleType
    graph: Graph
    make_schema: Callable[[], GraphSchema]

    @cached_property
    def schema(self) -> GraphSchema:
        """The GraphQL schema. Commands that only check the model do not make it."""
        return self.make_schema()

    @property
    def sample_files(self) -> list[Path]:
        """`<module>.jsonl` and `<module>.*.jsonl` in this order; empty if there are none."""
        folder, name = self._place
        files = [folder / f"{name}.jsonl", *sorted(folder.glob(f"{name}.*.jsonl"))]
        return [file for file in files if file.is_file()]

    @property
    def queries(self) -> str | None:
        """The content of `<module>.graphql`; None if there is no such file."""
        folder, name = self._place
        file = folder / f"{name}.graphql"
        return file.read_text("utf-8") if file.is_file() else None

    @property
    def sample(self) -> Callable[..., Iterable[dict[str, Any]]] | None:
        """The function `sample` of the module; None if it has none."""
        found = getattr(self.module, "sample", None)
        return found if callable(found) else None

    @property
    def _place(self) -> tuple[Path, str]:
        file = Path(self.module.__file__ or self.module.__name__)
        # The files of a package are inside it and have its name.
        return file.parent, self.module.__name__.rpartition(".")[2]


def load_model(
    name: str,
    *,
    table: str | None = None,
    indexes: Mapping[str, str] = MappingProxyType({}),
    federation: bool = False,
    live: bool = False,
) -> Model:
    """Loads and checks the model with this import string.

    The working directory is searched first. `table` is the name of its table, if it is another than the model's, and
    `indexes` are those of its indexes, by the model's names; `federation` makes its schema a subgraph, `live` gives it subscriptions. Raises ModelNotLoadedError if the
    string does not lead to a model, and ModelError with every mistake in the graph.
    """
    # Imported here, so that commands that need no model, such as `--help`, start without GraphQL's libraries.
    from keygraph_resolvers.schema.types import GraphSchema, checked_types

    module_name, _, attribute = name.partition(":")
    attribute = attribute or _DEFAULT_ATTRIBUTE
    if not all(part.isidentifier() for part in [*module_name.split("."), attribute]):
        raise ModelNotLoadedError(f"{name!r} is not an import string", "Write --model module:name")
    module = _import(module_name)
    try:
        found = getattr(module, attribute)
    except AttributeError:
        raise ModelNotLoadedError(f"the module {module_name} has no {attribute}", _choices(module)) from None
    if inspect.isroutine(found):
        found = _call(found, f"{module_name}:{attribute}")
    if isinstance(found, Graph):
        graph = _on_table(found, table, indexes)
        return Model(
            name, module, graph, partial(checked_types(graph).schema, federation=federation, live=live)
        )
    if isinstance(found, GraphSchema):
        if federation and not found.is_subgraph:
            problem = f"{module_name}:{attribute} is not a subgraph, and KEYGRAPH_FEDERATION is set"
            raise ModelNotLoadedError(problem, "Build it with build_schema(graph, federation=True)")
        if live and not found.has_subscriptions:
            problem = f"{module_name}:{attribute} has no subscriptions, and KEYGRAPH_LIVE is set"
            raise ModelNotLoadedError(problem, "Build it with build_schema(graph, live=True)")
        graph = _on_table(found.graph, table, indexes)
        return Model(name, module, graph, lambda: found.remade(graph) if indexes else found)
    raise ModelNotLoadedError(
        f"{module_name}:{attribute} is {_kind(found)}",
        _WANTED,
    )


def configured_model(settings: Settings) -> Model:
    """Loads and checks the model that the settings name, with the names of its table and indexes that
    they give. Raises as `load_model` does, and SettingsError for an index that the model does not have."""
    return load_model(
        settings.model,
        table=settings.table,
        indexes=settings.index_names,
        federation=settings.federation,
        live=settings.live,
    )


def known_types(graph: Graph, names: Iterable[str] | None) -> frozenset[str] | None:
    """Returns the requested types; None for all. Raises CommandError for one that has no items in the model."""
    types = frozenset(names or ())
    known = [name for name, record in graph.types.items() if not record.is_virtual]
    for name in sorted(types - {*known}):
        near = difflib.get_close_matches(name, known, 3)
        raise CommandError(
            f"the model has no items of a type {name}", f"Name one of {', '.join(near or known)}"
        )
    return types or None


def _on_table(graph: Graph, name: str | None, renamed: Mapping[str, str]) -> Graph:
    names = [index.name for index in graph.table.indexes]
    if unknown := renamed.keys() - {*names}:
        problem = f"KEYGRAPH_INDEXES cannot be used: the model has no index {min(unknown)}"
        raise SettingsError(problem, f"Its indexes: {' and '.join(names) or 'none'}")
    if len({renamed.get(each, each) for each in names}) < len({*names}):
        problem = "KEYGRAPH_INDEXES cannot be used: two indexes would have one name"
        raise SettingsError(problem, "Give each its own")
    return graph if name is None and not renamed else graph.on_table(name or graph.table.name, renamed)


def _import(name: str) -> ModuleType:
    # The first entry of a script's path is the script's folder, so the working directory goes before it.
    here = str(Path.cwd())
    if sys.path[:1] != [here]:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            problem = f"there is no module {error.name} in {here} or on Python's path"
            meant = difflib.get_close_matches(
                name.removesuffix(".py"), [file.stem for file in Path.cwd().glob("*.py")], 1
            )
            fix = "module:name, as in keygraph_examples.commerce:graph"
            raise ModelNotLoadedError(problem, f"Write --model {meant[0] if meant else fix}") from None
        raise _broken(name, error) from error
    except ModelError:
        raise
    except Exception as error:
        raise _broken(name, error) from error


def _call(function: Callable[[], object], name: str) -> object:
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        raise ModelNotLoadedError(f"the function {name} needs arguments", _WANTED) from None
    try:
        return function()
    except ModelError:
        raise
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> ModelNotLoadedError:
    if isinstance(error, SyntaxError) and error.filename:
        file, line, reason = error.filename, error.lineno, error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if not _is_library(frame.filename)]
        last = (own or list(frames))[-1]
        file, line, reason = last.filename, last.lineno, " ".join(str(error).split())
    what = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    fix = (
        _FUTURE
        if isinstance(error, NameError) and _names_early(file, error.name or reason)
        else "Fix that line"
    )
    return ModelNotLoadedError(f"{name} cannot be loaded: {file}:{line}: {what}", fix)


def _names_early(file: str, name: str) -> bool:
    """Whether a file names a class before it declares it, without the import that allows this."""
    text = Path(file).read_text("utf-8", "replace") if Path(file).is_file() else ""
    is_declared = re.search(rf"^class {re.escape(name)}\b", text, re.MULTILINE) is not None
    return is_declared and re.search(r"^from __future__ import .*\bannotations\b", text, re.MULTILINE) is None


def _is_library(file: str) -> bool:
    """Whether a file is not part of a user's model but of this server, Python or an installed package."""
    if file.startswith("<") or "site-packages" in file:
        return True
    return any(Path(file).is_relative_to(folder) for folder in _LIBRARIES)


def _choices(module: ModuleType) -> str:
    graphs = [name for name, value in vars(module).items() if isinstance(value, Graph)]
    if graphs:
        return "Write " + " or ".join(f"--model {module.__name__}:{name}" for name in graphs)
    return "Add one: graph = Graph(Table(…), …)"


def _kind(value: object) -> str:
    if value is None:
        return "None"
    return f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"


# --- The schema as text -------------------------------------------------------------------------------


def printed(schema: GraphSchema) -> str:
    """The schema in GraphQL's schema definition language, ending with a newline."""
    return schema.as_str().rstrip("\n") + "\n"


def difference(schema: GraphSchema, file: Path) -> str:
    """A unified diff from the file to the schema; empty if they are equal."""
    kept = file.read_text("utf-8", "replace")
    lines = difflib.unified_diff(
        kept.splitlines(keepends=True),
        printed(schema).splitlines(keepends=True),
        fromfile=str(file),
        tofile="the schema of the model",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
