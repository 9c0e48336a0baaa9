"""What tests of every package share: servers of moto and DynamoDB Local, and stores on each engine."""

from __future__ import annotations

import functools
import inspect
import itertools
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Protocol

import botocore.session
import pytest
from hypothesis import settings
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable, DeleteTable, Store
from keygraph.dynamo.table import Table
from keygraph.engines.open import open_store
from tests import dynamodb_local

# A shell ignores Ctrl-C for what it starts with `&` or `nohup`, and so would all processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine may stop a test for longer than hypothesis's deadline at any moment.
settings.register_profile("without_deadlines", settings(), deadline=None)
settings.load_profile("without_deadlines")

LOCAL = pytest.param("local", marks=pytest.mark.dynamodb_local)
"""The parameter of tests on DynamoDB Local, for those that name their engines themselves."""
ENGINES = ("sqlite", "moto", LOCAL)

ENGINE_TESTS = [
    Path(__file__).parent / "keygraph" / f"test_{name}.py"
    for name in (
        *("bulk", "dynamodb", "engines", "engines_agree", "index_changes", "limits_agree", "limits_taken"),
        *("lost_answers", "pages_agree", "sampling", "sizes_agree", "table_streams", "typed_keys", "writes"),
    )
]
"""Where engines are tested themselves. What writes and reads through them is above them."""

LONG_FOLDERS = [Path(__file__).parent / name for name in ("clients", "packaging")]
"""What needs npm, a browser or a package index; left to `make test-all` with the tests that are marked as long."""

on_exact_engines = pytest.mark.parametrize("engine", ["sqlite", LOCAL])
"""Those that have DynamoDB's sizes and prices: moto's differences are named in test_engines_agree."""

NUMBERS = itertools.count()
"""Of the folders of tests."""


class MakeStore(Protocol):
    def __call__(self, table: Table, /, *items: Item) -> Awaitable[Store]:
        """Gives an open store with a new table, which has these items. What was made last under a name is the one that is
        there."""


def in_one_world(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Any], Any]:
    """Like `parametrize`, for rows that need no world of their own: it is made once, and each row is a subtest."""
    names = (names,) if isinstance(names, str) else names
    values = [dict(zip(names, row if len(names) > 1 else (row,), strict=True)) for row in rows]

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        @functools.wraps(test)
        async def each(*, subtests: pytest.Subtests, **fixtures: Any) -> None:
            for row in values:
                with subtests.test(**row):
                    await test(**fixtures, **row)

        signature = inspect.signature(test)
        kept = [each for name, each in signature.parameters.items() if name not in names]
        added = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        each.__signature__ = signature.replace(parameters=[*kept, added])  # type: ignore[attr-defined]
        return each

    return decorate


# --- What a run leaves out ------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--short`, which is `make test`; `--rest`, for who has run it; `--require-local`, which wants DynamoDB Local."""
    parser.addoption(
        "--short",
        action="store_true",
        help="Leave out DynamoDB Local, moto above the engines, and tests that are marked as long.",
    )
    parser.addoption("--rest", action="store_true", help="Leave out the tests that `--short` runs.")
    parser.addoption(
        "--require-local",
        action="store_true",
        help="Fail where nothing runs on DynamoDB Local, instead of skipping.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The markers by which tests are left out; a short run has neither a rest nor anything on DynamoDB Local."""
    if config.getoption("--short") and config.getoption("--require-local"):
        raise pytest.UsageError("--short leaves out the tests on DynamoDB Local that --require-local wants.")
    if config.getoption("--short") and config.getoption("--rest"):
        raise pytest.UsageError("--rest is what --short leaves out.")
    config.addinivalue_line("markers", "dynamodb_local: runs on DynamoDB Local")
    config.addinivalue_line("markers", "long: takes long, and is left to `make test-all`")


def _is_above_on_moto(item: pytest.Item) -> bool:
    return item.path not in ENGINE_TESTS and "moto" in item.nodeid


def _is_short(item: pytest.Item) -> bool:
    is_long = item.path.parent in LONG_FOLDERS or item.get_closest_marker("long")
    return not (is_long or item.get_closest_marker("dynamodb_local") or _is_above_on_moto(item))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Runs what lies above the engines on moto only where it does not run on DynamoDB Local, which is exact."""
    names = {item.nodeid for item in items} if dynamodb_local.missing() is None else set()

    def is_replaced(item: pytest.Item) -> bool:
        return _is_above_on_moto(item) and item.nodeid.replace("moto", "local") in names

    if config.getoption("--short"):
        left_out = [item for item in items if not _is_short(item)]
    elif config.getoption("--rest"):
        left_out = [item for item in items if _is_short(item) or is_replaced(item)]
    else:
        left_out = [item for item in items if is_replaced(item)]
    config.hook.pytest_deselected(items=left_out)
    kept = {*items} - {*left_out}
    items[:] = [item for item in items if item in kept]


def _ran_on_local(config: pytest.Config) -> int:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    passed = reporter.stats.get("passed", ()) if reporter else ()
    return sum("dynamodb_local" in report.keywords for report in passed)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says what the run left out, what ran on DynamoDB Local, or why nothing did."""
    if config.getoption("--short"):
        terminalreporter.write_line(
            "Left to `make test-all`: DynamoDB Local, moto except for the engines' own tests, and long tests"
        )
        return
    reason = dynamodb_local.missing()
    ran = f"{_ran_on_local(config):,} tests passed on it" if reason is None else reason
    terminalreporter.write_line(f"DynamoDB Local: {ran}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run that is to be on DynamoDB Local and is not has failed, whatever else passed."""
    config = session.config
    is_worker = hasattr(config, "workerinput")
    if (
        not is_worker
        and config.getoption("--require-local")
        and exitstatus == 0
        and not _ran_on_local(config)
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


# --- Engines ------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """The URL of a moto server in this process; every process of a parallel run has its own."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = one_at_a_time(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=MotoRequestHandler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


def one_at_a_time(app: Callable[[Any, Any], Iterable[bytes]]) -> Callable[[Any, Any], Iterable[bytes]]:
    """Moto copies its tables for a transaction, and fails if another request changes them meanwhile."""
    lock = Lock()

    def answer(environ: Any, start_response: Any) -> Iterable[bytes]:
        with lock:
            return [*app(environ, start_response)]

    return answer


@pytest.fixture(scope="session")
def local_endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a DynamoDB Local of this process's own; where it cannot run, its tests are skipped."""
    if (reason := dynamodb_local.missing()) is not None:
        told = f"DynamoDB Local: {reason}"
        if request.config.getoption("--require-local"):
            pytest.fail(told, pytrace=False)
        pytest.skip(told)
    with dynamodb_local.running() as url:
        yield url


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Which engine a test runs on: each in turn."""
    return str(request.param)


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder of the test's own. pytest's looks through those of all tests before for the next number."""
    return tmp_path_factory.mktemp(f"test-{next(NUMBERS)}", numbered=False)


@pytest.fixture(autouse=True)
def no_settings_of_aws(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keeps the credentials and settings of whoever runs the tests out of them."""
    nowhere = tmp_path_factory.getbasetemp()
    for name in (
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(nowhere / "no-credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(nowhere / "no-config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="session", autouse=True)
def one_reading_of_the_api() -> Iterator[None]:
    """Lets all clients share what AWS's libraries know of its API: each would read 2 MB of JSON again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", functools.cache(botocore.session.create_loader))
        yield


@pytest.fixture
async def make_store(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MakeStore]:
    """Makes stores on the engine; their tables, and what else they hold, go when the test ends.

    The table keeps its declared name: a file of its own for each on SQLite, one test at a time on a server.
    """
    numbers = itertools.count()
    async with AsyncExitStack() as stores:

        async def make(table: Table, /, *items: Item) -> Store:
            sqlite = f"sqlite:{tmp_path / f'{next(numbers)}.db'}"
            url = sqlite if engine == "sqlite" else str(request.getfixturevalue(f"{engine}_endpoint"))
            # Servers beside other tests may be slow.
            store = await stores.enter_async_context(open_store(url, table, deadline=60))
            await store.send(DeleteTable())
            await store.send(CreateTable())
            if items:
                await store.send(BatchWrite(items))
            if engine != "sqlite":
                stores.push_async_callback(store.send, DeleteTable())
            return store

        yield make
