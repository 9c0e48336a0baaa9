"""The house: the modules that a nested query passes, the number of lines, and the imports between modules.

    python -m bench.house

prints the trace of one warm query, the lines of `keygraph/` and `resolvers/`, the import cycles, the folders that
import each other, the size of the largest folder, the result of the import rules, and duplicate statements.
tests/bench/test_house.py holds the limits.

The trace is counted as follows. The query is sent over HTTP, through the server's ASGI application in this process, on
the embedded engine with the shop's sample: one order of a user, its only item, and the product. It is sent three times,
and twelve times under `sys.setprofile`, of which the one that moves least counts. Operations are not logged, because
logging comes after the answer.

- A *module* is one of keygraph, keygraph_resolvers, keygraph_server or keygraph_examples with a function that is
  called.
- A *function* is identified by its module and its qualified name. Comprehensions and lambdas are functions too; the
  methods that dataclasses generate are not, and nothing moves to them. Each resumption of a coroutine or a generator is
  a call of it.
- A *move* is a call whose caller is in another module; the return from it is a second one. The caller is the next
  function of these packages further up the stack; library code between the two is skipped. A call without a caller, as
  from the event loop, is no move.

By this count, commit f30b2ba, before the rooms, passed 54 modules and 289 functions with 710 moves.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import grimp
from starlette.types import ASGIApp, Message

from keygraph_resolvers.engine import engine
from keygraph_server.app import create_app
from keygraph_server.commands.first_start import make_sample_file
from keygraph_server.http import graphql_http
from keygraph_server.models import load_model
from keygraph_server.settings import Settings

ROOT = Path(__file__).parents[1]
PACKAGES = ("keygraph", "keygraph_resolvers", "keygraph_server", "keygraph_examples")
"""The installed packages."""
COUNTED_FOLDERS = ("keygraph", "resolvers")
LINES_BEFORE = 24_415
"""The lines of these folders at commit f30b2ba: 17,114 in keygraph, 7,301 in resolvers."""
LINES_WANTED = LINES_BEFORE - 2_500
TOLD_ONCE = ("keygraph", "resolvers", "server")
"""The folders without duplicate statements."""
TWIN_SIZE = 40
MODULES_WANTED = 25
MOVES_WANTED = 214

DOCUMENT = (
    '{ user(userId: "12345") { name orders(first: 1) { nodes { orderId items { nodes { name } } } } } }'
)
"""One order with one item: more of them repeat moves and pass no other module."""
_WARM_UP, _TRACED = 3, 12
"""On a busy machine, an operation may wait for its turn in the event loop, and then moves more."""


# --- The trace ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Trace:
    """The modules, functions and moves of a thread while it is traced."""

    modules: dict[str, None] = field(default_factory=dict)
    """In the order in which they are first entered."""
    functions: set[tuple[str, str]] = field(default_factory=set)
    moves: int = 0

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        """Notes a call or a return that `sys.setprofile` reports."""
        module = _module_of(frame)
        if module is None or event not in ("call", "return"):
            return
        if event == "call":
            self.modules.setdefault(module)
        if frame.f_code.co_filename.startswith("<"):
            return
        self.functions.add((module, frame.f_code.co_qualname))
        self.moves += _caller_of(frame) not in (module, None)


def _module_of(frame: FrameType) -> str | None:
    """The module that a frame runs; None if it is not in one of our packages."""
    name = str(frame.f_globals.get("__name__", ""))
    return name if name.partition(".")[0] in PACKAGES else None


def _caller_of(frame: FrameType) -> str | None:
    """The module of the next frame of our packages further up; None if there is none."""
    above = frame.f_back
    while above is not None:
        module = _module_of(above)
        if module is not None:
            return module
        above = above.f_back
    return None


@contextmanager
def tracing() -> Iterator[Trace]:
    """Traces this thread inside the block."""
    before = sys.getprofile()
    trace = Trace()
    sys.setprofile(trace.note)
    try:
        yield trace
    finally:
        sys.setprofile(before)


def nested_query_trace() -> Trace:
    """Returns the trace of the nested query, warm. How long it takes does not count: no turn of the event loop is over
    meanwhile, and its client is not watched yet."""
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(engine, "TURN_SECONDS", 60.0),
        patch.object(graphql_http, "_UNWATCHED_SECONDS", 60.0),
    ):
        file = Path(folder) / "commerce.sqlite"
        settings = Settings(store=f"sqlite:{file}", log_operations=False)
        make_sample_file(load_model(settings.model), file)
        return asyncio.run(_traced(settings))


async def _traced(settings: Settings) -> Trace:
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        for _ in range(_WARM_UP):
            await _ask(app)
        answer, traces = await _ask(app), []
        for _ in range(_TRACED):
            with tracing() as trace:
                await _ask(app)
            traces.append(trace)
    [order] = answer["data"]["user"]["orders"]["nodes"]
    assert [item["name"] for item in order["items"]["nodes"]], answer
    return min(traces, key=lambda each: each.moves)


async def exchange(
    app: ASGIApp, messages: list[Message], *, leaves: bool = False, **scope: Any
) -> list[Message]:
    """Sends a request to `/graphql` as an ASGI server does. Returns what the application sends.

    `messages` are what it receives, the last one first; then the client leaves, or stays and sends nothing.
    """
    sent: list[Message] = []

    async def receive() -> Message:
        if messages:
            return messages.pop()
        if not leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    usual = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/graphql",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
        "state": {},
    }
    await app(usual | scope, receive, send)
    return sent


async def _ask(app: ASGIApp) -> Any:
    """Returns the answer to the query."""
    body = json.dumps({"query": DOCUMENT}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    sent = await exchange(app, [{"type": "http.request", "body": body, "more_body": False}], headers=headers)
    return json.loads(b"".join(message.get("body", b"") for message in sent))


# --- Lines --------------------------------------------------------------------------------------------


def lines_of(folder: Path) -> int:
    """The lines of the Python files in a folder and below it."""
    return sum(len(file.read_text("utf-8").splitlines()) for file in folder.rglob("*.py"))


# --- Imports ------------------------------------------------------------------------------------------


def imports() -> dict[str, set[str]]:
    """Returns the modules that each module of our packages and of bench imports.

    Imports inside functions and under TYPE_CHECKING count.
    """
    graph = grimp.build_graph(*PACKAGES, "bench", cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def folder_sizes(modules: Iterable[str]) -> Counter[str]:
    """The number of modules in each folder, without its `__init__`."""
    folders = {module for module in modules if _is_package(module)}
    return Counter(module.rpartition(".")[0] for module in modules if module not in folders)


def circles(imported: Mapping[str, set[str]]) -> list[list[str]]:
    """Returns the groups of modules in which each reaches every other through imports."""
    reached = {module: _reached_from(module, imported) for module in imported}
    groups = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in imported
        if module in reached[module]
    }
    return sorted(sorted(group) for group in groups)


def _reached_from(module: str, imported: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        new = imported.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def two_way_folders(imported: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Returns the pairs of folders that import each other.

    A module directly in a package counts as a folder: `keygraph.graph` may import rooms that import `keygraph.errors`.
    """
    arrows = {(room_of(module), room_of(other)) for module, others in imported.items() for other in others}
    rooms = sorted({room for arrow in arrows for room in arrow})
    return [(one, other) for one, other in combinations(rooms, 2) if {(one, other), (other, one)} <= arrows]


def room_of(module: str) -> str:
    """The folder of a module; a module directly in a package is its own."""
    folder = module if _is_package(module) else module.rpartition(".")[0]
    return folder if "." in folder else module


def _is_package(module: str) -> bool:
    if module.partition(".")[0] in ("keygraph", "bench"):
        return (ROOT / module.replace(".", "/")).is_dir()
    return any(
        (ROOT / top / module.replace(".", "/")).is_dir() for top in ("resolvers", "server", "examples")
    )


def import_rules() -> tuple[bool, str]:
    """Returns whether import-linter's contracts are kept, and its output."""
    wide = {**os.environ, "COLUMNS": "1000"}
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=wide)
    said = [
        line for line in done.stdout.splitlines() if line.endswith("BROKEN") or line.startswith("Contracts:")
    ]
    return done.returncode == 0, "\n".join(said) or done.stderr.strip()


# --- What stands twice ----------------------------------------------------------------------------------


def twins(sources: Mapping[str, str]) -> list[list[str]]:
    """Returns the groups of places, as `file:line`, with the same statements except for the names of variables.

    Runs of statements are compared; the first ones of a run make up `TWIN_SIZE` nodes of the syntax tree, about three
    lines. `sources` are files' texts, by name.
    """
    places: dict[tuple[object, ...], list[str]] = {}
    for name, source in sources.items():
        for row in _rows_of_statements(ast.parse(source)):
            for start in range(len(row)):
                size, end = 0, start
                while size < TWIN_SIZE and end < len(row):
                    size, end = size + sum(1 for _ in ast.walk(row[end])), end + 1
                if size >= TWIN_SIZE:
                    places.setdefault(_without_names(row[start:end]), []).append(
                        f"{name}:{row[start].lineno}"
                    )
    return [several for several in places.values() if len(several) > 1]


def _rows_of_statements(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """The runs of consecutive statements inside functions."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef):
            rows = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
            yield from (row for row in rows if isinstance(row, list))


def _without_names(statements: Iterable[ast.stmt]) -> tuple[object, ...]:
    """Returns the content of statements, with numbers instead of the names of their variables."""
    numbers: dict[str, int] = {}
    told: list[object] = []
    for node in (node for statement in statements for node in ast.walk(statement)):
        told.append(type(node))
        for name, value in ast.iter_fields(node):
            if isinstance(node, ast.Name | ast.arg) and isinstance(value, str):
                told.append(numbers.setdefault(value, len(numbers)))
            elif not isinstance(value, ast.AST | list):
                told.append((name, type(value), value))
    return tuple(told)


def sources_in(*folders: str) -> dict[str, str]:
    """The texts of the Python files of some folders, by name."""
    files = (file for folder in folders for file in sorted((ROOT / folder).rglob("*.py")))
    return {str(file.relative_to(ROOT)): file.read_text("utf-8") for file in files}


# --- The report ---------------------------------------------------------------------------------------


def report_lines() -> Iterator[str]:
    """The report, line by line."""
    trace = nested_query_trace()
    yield f"{DOCUMENT}, asked over HTTP, passes"
    yield from (f"  {number:2} {module}" for number, module in enumerate(trace.modules, 1))
    yield f"{len(trace.modules)} modules (wanted: at most {MODULES_WANTED}), {len(trace.functions)} functions"
    yield f"{trace.moves} moves between modules (wanted: at most {MOVES_WANTED})"
    yield ""
    counts = {folder: lines_of(ROOT / folder) for folder in COUNTED_FOLDERS}
    total = sum(counts.values())
    shown = " + ".join(f"{count:,} in {folder}" for folder, count in counts.items())
    yield f"{total:,} lines ({shown}); they were {LINES_BEFORE:,} ({total - LINES_BEFORE:+,}); wanted: at most {LINES_WANTED:,}"
    yield ""
    imported = imports()
    yield from _listed("import circles (wanted: 0)", [" ".join(circle) for circle in circles(imported)])
    yield from _listed(
        "pairs of folders that import each other (wanted: 0)",
        [" and ".join(pair) for pair in two_way_folders(imported)],
    )
    [(folder, size)] = folder_sizes(imported).most_common(1)
    yield f"{size} modules in the largest folder, {folder}"
    yield import_rules()[1]
    yield from _listed(
        "rows of statements that stand twice (wanted: 0)",
        [" and ".join(places) for places in twins(sources_in(*TOLD_ONCE))],
    )


def _listed(name: str, found: Sequence[str]) -> Iterator[str]:
    yield f"{len(found)} {name}"
    yield from (f"  {each}" for each in found)


if __name__ == "__main__":
    print("\n".join(report_lines()))
