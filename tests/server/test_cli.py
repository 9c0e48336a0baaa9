"""The command line as such: errors in one line, exit codes, and the commands `serve` and `schema`."""

from __future__ import annotations

import asyncio
import importlib
import io
import os
import re
import socket
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import typer

from keygraph.dynamo.store import CreateTable
from keygraph.dynamo.table import Index, Table
from keygraph.engines.dynamodb.retrying import Backoff
from keygraph.engines.open import open_store
from keygraph_server.cli import app, main
from keygraph_server.commands import serve
from keygraph_server.models import load_model, printed
from keygraph_server.settings import USUAL, Settings, environment_name
from tests.server.command_line import refused, run
from tests.server.library import MODEL

KEYGRAPH = Path(sys.executable).with_name("keygraph")


BAD_VALUES = [
    "\udcff", "-1", "inf", "nan", "9" * 30, "9" * 5_000, " ", "a\x9b\u202e\u2028\n", "/no/such/file", "http://[::1",
    "http://a:b/c", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
]  # fmt: skip
"""What nobody means: bytes that are no text, numbers beyond all bounds, halves of addresses, a cut-off key."""


@pytest.fixture(autouse=True)
def library(folder: Path) -> Path:
    (folder / "library.py").write_text(MODEL)
    return folder


def keygraph(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([KEYGRAPH, *words], capture_output=True, text=True, timeout=60, check=False)


def make_table(address: str, table: Table) -> None:
    async def make() -> None:
        async with open_store(address, table) as store:
            await store.send(CreateTable())

    asyncio.run(make())


class TestErrors:
    def test_credentials_that_cannot_be_had_are_a_line(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """AWS's library prints a traceback of its own where nothing takes its log."""
        role = "role_arn = arn:aws:iam::123456789012:role/reader\nweb_identity_token_file = token"
        (folder / "config").write_text(f"[default]\n{role}\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", "config")
        monkeypatch.setenv("AWS_REGION", "eu-central-1")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name, raising=False)
        result = keygraph("verify", "--model", "library", "--store", "aws")
        told = "keygraph: AWS credentials cannot be used: token: No such file or directory\n"
        assert (result.returncode, result.stdout, result.stderr) == (1, "", told)

    def test_an_expected_one_is_a_line_without_a_traceback(self) -> None:
        assert refused("schema", "--model", "library:grph") == (
            "the module library has no grph. Write --model library:graph.\n"
        )

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="The system has no such device.")
    def test_output_that_cannot_be_written_is_a_line(self) -> None:
        with Path("/dev/full").open("w") as full:
            ended = subprocess.run(
                [KEYGRAPH, "--version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
        assert ended.stderr.startswith("keygraph: it cannot read or write (No space left on device). ")

    def test_what_a_locale_has_no_characters_for_is_printed(
        self, library: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (library / "library.py").write_text(
            MODEL.replace("class Book:", 'class Book:\n    """Book → shelf."""\n', 1)
        )
        monkeypatch.setattr("sys.argv", ["keygraph", "schema", "--model", "library"])
        printed = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(printed, "ascii"))
        with pytest.raises(SystemExit, match="0"):
            main()
        assert "Book → shelf." in printed.getvalue().decode()

    def test_a_model_with_mistakes_lists_them(self, library: Path) -> None:
        (library / "library.py").write_text(MODEL.replace("{isbn}", "{isbm}"))
        result = run("schema", "--model", "library")
        assert result.exit_code == 1
        first, second = result.stderr.splitlines()
        assert first == "keygraph: the graph has 1 mistake:"
        assert second.startswith("  - Book: ")
        assert "{isbm} is not a field of Book" in second

    def test_a_setting_that_cannot_be_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KEYGRAPH_LOG_LEVEL", "loud")
        assert refused("schema", "--model", "library") == (
            "KEYGRAPH_LOG_LEVEL cannot be used: 'loud' is not 'debug', 'info', 'warning' or 'error'. "
            "See docs/settings.md for valid values.\n"
        )

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (["serve", "--nope"], "No such option: --nope"),
            (["serve", "--port", "http"], "Invalid value for '--port': 'http' is not a whole number"),
            (["serve", "--port", "65536"], "Invalid value for '--port'"),
            (["serve", "--workers", "0"], "Invalid value for '--workers'"),
            (["load", "--format", "xml"], "Invalid value for '--format': 'xml' is not one of"),
            (["explain"], "Missing argument 'QUERY'. Run `keygraph explain --help` to see the options."),
            (["table"], "Missing command. Run `keygraph table --help` to see the options."),
            (["serve", "--reload", "--workers", "2"], "--reload works with one worker only"),
            (
                ["serve", "library", "--model", "shop"],
                "the model is named twice: remove --model shop, or library",
            ),
            (["sreve"], "No such command 'sreve'"),
        ],
    )
    def test_wrong_options_are_exit_code_2(self, words: list[str], expected: str) -> None:
        result = run(*words)
        assert result.exit_code == 2
        assert expected in result.stderr
        assert result.stderr.startswith("keygraph: ")
        assert result.stderr.count("\n") == 1

    def test_the_command_alone_shows_its_help(self) -> None:
        result = run()
        assert result.exit_code == 2
        assert result.stderr.startswith("Usage: keygraph ")
        assert result.stderr.rstrip().endswith(
            "Create, describe or update the table, or compare it with the model."
        )

    def test_an_unexpected_error_is_not_hidden(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("keygraph_server.commands.schema.printed", lambda schema: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run("schema", "--model", "library")

    @pytest.mark.parametrize(
        "command",
        ["serve", "schema", "describe", "load", "export", "verify", "table create", "table describe"],
    )
    def test_every_command_takes_a_model_and_says_its_default(self, command: str) -> None:
        assert refused(*command.split(), "--model", "nope").startswith("there is no module nope in ")


def imported_by(code: str) -> set[str]:
    program = f"import sys; {code}; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(ended.stdout.splitlines()[-1].split())


class TestStart:
    def test_help_imports_no_library_but_that_of_the_command_line(self) -> None:
        loaded = imported_by("from keygraph_server.cli import app; app(['--help'], standalone_mode=False)")
        assert {"typer", "keygraph_server.cli"} <= loaded
        assert not loaded & {"aioboto3", "graphql", "keygraph", "pydantic", "rich", "starlette", "uvicorn"}

    def test_a_command_that_needs_no_schema_imports_no_graphql(self) -> None:
        loaded = imported_by("import keygraph_server.commands.load, keygraph_server.commands.table")
        assert not loaded & {"graphql", "strawberry", "uvicorn"}

    def test_a_server_imports_only_what_its_settings_need(self) -> None:
        start = "from keygraph_server.cli import app; app(['serve', '--help'], standalone_mode=False)"
        loaded = imported_by(start)
        assert {"strawberry", "uvicorn", "keygraph_server.app"} <= loaded
        unneeded = {"aioboto3", "botocore", "fastapi", "jwt", "opentelemetry", "prometheus_client", "rich"}
        own = {
            "keygraph.changes",
            "keygraph.draft",
            "keygraph_resolvers.live",
            "keygraph_server.commands.load",
        }
        assert not loaded & (unneeded | own)

    def test_a_lambda_handler_imports_no_server_of_connections(self) -> None:
        unneeded = {"aioboto3", "click", "h11", "httptools", "multiprocessing", "typer", "uvicorn"}
        for handler, needed in (
            ("graphql", "keygraph_server.app"),
            ("changes", "keygraph.changes.counting"),
        ):
            loaded = imported_by(f"from keygraph_server.lambdas import {handler}")
            assert needed in loaded
            assert not loaded & unneeded

    def test_dynamodb_is_reached_without_the_layers_of_awss_library(self) -> None:
        """Where the environment has all settings, as on Lambda."""
        names = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu-central-1"}
        opened = "open_store('aws', Table('Shop', partition_key='PK')).__aenter__()"
        loaded = imported_by(
            f"import asyncio, os; os.environ |= {names}; from keygraph import Table, open_store; asyncio.run({opened})"
        )
        assert "keygraph.engines.dynamodb.direct" in loaded
        assert not loaded & {"aioboto3", "aiohttp", "botocore.parsers", "botocore.utils", "urllib3"}

    def test_a_server_reads_its_model_and_builds_its_schema_once(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (folder / "library.py").write_text(MODEL)
        counted: Counter[str] = Counter()

        def counting(name: str, place: str) -> None:
            module, _, attribute = place.rpartition(".")
            real = getattr(importlib.import_module(module), attribute)

            def counted_call(*args: Any, **options: Any) -> Any:
                counted[name] += 1
                return real(*args, **options)

            monkeypatch.setattr(place, counted_call)

        counting("types", "keygraph_resolvers.schema.types.GraphTypes")
        counting("schema", "keygraph_resolvers.schema.types.GraphSchema")
        counting("served", "keygraph_server.app.create_app")
        monkeypatch.setattr(
            "keygraph_server.commands.serve.Server.run", lambda server, sockets: server.config.load()
        )
        # `serve` puts its settings there, for other processes.
        monkeypatch.setattr(os, "environ", os.environ.copy())
        assert run("serve", "--model", "library", "--port", "0").exit_code == 0
        assert counted == {"types": 1, "schema": 1, "served": 1}

    @pytest.mark.parametrize("command", [[KEYGRAPH], [sys.executable, "-m", "keygraph"]])
    def test_the_version(self, command: list[str]) -> None:
        shown = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert shown.stdout == f"keygraph {version('keygraph')}\n"

    def test_help_says_what_most_servers_set_and_how_to_see_the_rest(self) -> None:
        shown = run("serve", "--help").stdout
        told = set(re.findall(r"^  (KEYGRAPH_\w+)", shown, re.MULTILINE))
        assert told == {environment_name(name) for name in USUAL}
        assert len(told) + len(re.findall(r"^  --\w|^  \[?MODEL", shown, re.MULTILINE)) <= 24
        assert f"--help-all shows all {len(Settings.model_fields)}" in " ".join(shown.split())

    def test_all_help_says_every_setting(self) -> None:
        shown = run("serve", "--help-all").stdout
        assert [name for name in map(environment_name, Settings.model_fields) if name not in shown] == []
        assert re.search(
            r"KEYGRAPH_PORT +The port to listen on; 0 picks a free port\s+\[default: 8000\]", shown
        )
        assert "Undefined" not in shown
        # No text ends before it has said what can be set.
        assert "In production" not in shown
        rows = dict(re.findall(r"^  (KEYGRAPH_\w+) +(.*(?:\n {8,}.*)*)", shown, re.MULTILINE))
        for name, setting in Settings.model_fields.items():
            values = get_args(setting.annotation) if get_origin(setting.annotation) is Literal else ()
            told = "".join(rows.get(environment_name(name), "").split())
            assert [value for value in values if f"`{value}`" not in told] == [], name

    def test_help_says_what_an_option_is_by_default(self) -> None:
        group: Any = typer.main.get_command(app)
        silent = set()
        for name in group.list_commands(typer.Context(group)):
            _, command, _ = group.resolve_command(typer.Context(group), [name])
            for each in [command, *getattr(command, "commands", {}).values()]:
                silent |= {
                    f"{name} {option.opts[0]}"
                    for option in each.params
                    if option.param_type_name == "option"
                    and option.default is None
                    and not re.search("Default|Without", option.help)
                }
        # Without these, there is nothing.
        needed = {"copy --to"}
        others = {
            "explain --operation",
            "explain --variables",
            "follow --fan-out",
            "load --sample",
            "schema --check",
        }
        others |= {f"{name} --explain" for name in ("backfill", "summarize", "verify")}
        assert silent == needed | others

    def test_each_command_says_what_the_list_of_commands_says(self) -> None:
        group = typer.main.get_command(app)
        context = typer.Context(group)
        for name in group.list_commands(context):
            summary = group.get_command(context, name).short_help
            _, command, _ = group.resolve_command(context, [name])
            assert " ".join(command.help.split()).startswith(summary), name

    @pytest.mark.parametrize(
        "words",
        [["verify"], ["export", "-"], ["load", "none.jsonl"], ["table", "create"], ["draft", "Library"]],
    )
    def test_a_store_that_is_not_there_is_told_at_once(
        self, words: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Backoff, "pause", None)
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        model = [] if words[0] == "draft" else ["--model", "library"]
        Path("none.jsonl").touch()
        result = run(*words, *model, "--store", f"http://127.0.0.1:{port}")
        assert (result.exit_code, result.stdout) == (1, "")
        where = f"at 127.0.0.1:{port}: is it running?{' Nothing was loaded.' if words[0] == 'load' else ''}\n"
        assert result.stderr == f"keygraph: no connection to DynamoDB {where}"
        monkeypatch.setenv("HTTPS_PROXY", f"user:hunter2@127.0.0.1:{port}")
        result = run(*words, *model, "--store", "aws")
        assert result.stderr == f"keygraph: no connection to the proxy of DynamoDB {where}"
        monkeypatch.setenv("HTTPS_PROXY", "http://user:hunter2@proxy:port")
        result = run(*words, *model, "--store", "aws")
        assert result.stderr.startswith("keygraph: HTTPS_PROXY is not the address of a proxy: ")


class TestSchema:
    def test_it_prints_the_schema(self) -> None:
        result = run("schema", "--model", "library")
        assert result.exit_code == 0
        assert result.stdout == printed(load_model("library").schema)
        assert "type Book implements Node {\n" in result.stdout

    def test_a_file_that_is_the_schema_passes(self, library: Path) -> None:
        file = library / "schema.graphql"
        file.write_text(run("schema", "--model", "library").stdout)
        result = run("schema", "--model", "library", "--check", file)
        assert (result.exit_code, result.output) == (0, "")

    def test_a_difference_is_shown_with_what_it_means_for_clients(self, library: Path) -> None:
        file = library / "schema.graphql"
        file.write_text(
            run("schema", "--model", "library").stdout.replace("  title: String!\n", "  name: String\n", 1)
        )
        result = run("schema", "--model", "library", "--check", file)
        assert result.exit_code == 3
        assert result.stdout.startswith(f"--- {file}\n+++ the schema of the model\n@@")
        assert "\n-  name: String\n+  title: String!\n" in result.stdout
        assert result.stdout.endswith(
            "\n\nbreaking: Field Book.name was removed.\nsafe: Field Book.title was added.\n"
        )
        assert result.stderr == (
            f"keygraph: {file} is not the schema of the model. "
            f"If the change is intended, save it with `keygraph schema --model library > {file}`.\n"
        )

    @pytest.mark.parametrize(
        ("before", "after", "code", "change"),
        [
            ("  title: String!\n", "  title: Int!\n", 3, "breaking: Field Book.title changed type from Int! to String!."),
            ("SortDirection = ASC", "SortDirection = DESC", 4, "dangerous: Query.books(direction:) has changed defaultValue"),
            ("  title: String!\n", "  title: String\n", 5, "safe: Field Book.title changed type from String to String!."),
            ("  title: String!\n", "  title: String! @deprecated\n", 5, "safe: Only the order, the directives or"),
        ],
    )  # fmt: skip
    def test_the_exit_code_is_that_of_the_worst_change(
        self, library: Path, before: str, after: str, code: int, change: str
    ) -> None:
        printed_schema = run("schema", "--model", "library").stdout
        assert before in printed_schema
        Path("schema.graphql").write_text(printed_schema.replace(before, after, 1))
        result = run("schema", "--model", "library", "--check", "schema.graphql")
        assert (result.exit_code, f"\n{change}" in result.stdout) == (code, True)

    def test_changes_as_annotations_of_github(self, library: Path) -> None:
        text = run("schema", "--model", "library").stdout.replace("  title: String!\n", "  name: String\n", 1)
        Path("schema.graphql").write_text(text)
        line = text[: text.index("  name: String\n")].count("\n") + 1
        its_type = text[: text.index("type Book ")].count("\n") + 1
        result = run("schema", "--model", "library", "--check", "schema.graphql", "--format", "github")
        assert result.stdout.splitlines() == [
            f"::error file=schema.graphql,line={line},title=Breaking change::Field Book.name was removed.",
            f"::notice file=schema.graphql,line={its_type},title=Safe change::Field Book.title was added.",
        ]

    @pytest.mark.parametrize("text", ["type {", "scalar", "query { a }", "\xe9"])
    def test_a_file_that_is_no_schema(self, library: Path, text: str) -> None:
        Path("schema.graphql").write_text(text, "latin-1")
        assert refused("schema", "--model", "library", "--check", "schema.graphql").startswith(
            "schema.graphql is not a GraphQL schema: "
        )

    def test_a_subgraph_is_compared(self, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KEYGRAPH_FEDERATION", "true")
        text = run("schema", "--model", "library").stdout
        assert "@key" in text
        Path("schema.graphql").write_text(text.replace("  title: String!\n", "  title: String\n", 1))
        assert run("schema", "--model", "library", "--check", "schema.graphql").exit_code == 5

    def test_a_file_that_is_not_there_is_named(self, library: Path) -> None:
        assert refused("schema", "--model", "library", "--check", "schma.graphql") == (
            "there is no file schma.graphql. "
            "Create it with `keygraph schema --model library > schma.graphql`.\n"
        )


class TestServe:
    """What is checked before anything runs. The running process is in tests/end_to_end."""

    @pytest.mark.parametrize("words", [["library"], ["--model", "library"]])
    def test_the_model_is_named_alone_or_by_its_option(
        self, words: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        served: list[str] = []
        monkeypatch.setattr(serve, "_run", lambda model, *_, **__: served.append(model.name))
        assert run("serve", *words, "--port", "0").exit_code == 0
        assert served == ["library"]

    @pytest.mark.parametrize(
        ("prefix", "path", "expected"),
        [
            (".venv", "", ["  keygraph    . .venv/bin/activate makes the command `keygraph` available in another terminal"]),
            (".venv", ".venv/bin", []),
            ("usr", "", []),
        ],
    )  # fmt: skip
    def test_the_greeting_says_how_to_call_a_command_that_a_shell_does_not_find(
        self, prefix: str, path: str, expected: list[str], library: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = library / ".venv/bin"
        folder.mkdir(parents=True)
        (folder / "activate").touch()
        (folder / "keygraph").touch(0o755)
        monkeypatch.setattr(sys, "prefix", str(library / prefix))
        monkeypatch.setenv("PATH", str(library / path) if path else "/nowhere")
        monkeypatch.setattr(
            serve, "_run", lambda model, settings, listening, greet, **_: greet(model, settings)
        )
        result = run("serve", "library", "--port", "0")
        assert result.exit_code == 0
        assert [line for line in result.stdout.split("\n") if "activate" in line] == expected

    def test_a_missing_table(self, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KEYGRAPH_ENV", "production")
        monkeypatch.setenv("KEYGRAPH_LOG_FORMAT", "text")
        assert refused(
            "serve", "--model", "library", "--store", "sqlite:my library.sqlite", "--port", "0"
        ) == (
            "there is no table Library in sqlite:my library.sqlite. Create it with "
            "`keygraph table create --model library --store 'sqlite:my library.sqlite'`.\n"
        )
        assert not list(library.glob("*.sqlite"))
        monkeypatch.delenv("KEYGRAPH_ENV")
        monkeypatch.setattr(serve, "_run", lambda *_, **__: None)
        result = run("serve", "--model", "library", "--store", "sqlite:my library.sqlite", "--port", "0")
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.startswith("Created my library.sqlite without items.\n")

    @pytest.mark.parametrize("words", [[], ["--workers", "2"], ["--reload"]], ids=["one", "two", "reload"])
    @pytest.mark.parametrize(
        ("settings", "problem"),
        [
            ({"TRUSTED_DOCUMENTS": "missing.json"}, "missing.json cannot be read: No such file or directory"),
            ({"TRUSTED_DOCUMENTS": "library.py"}, "library.py is not JSON"),
            ({"DOCUMENTS": "trusted"}, "KEYGRAPH_DOCUMENTS is trusted, but there is no manifest"),
            ({"AUTH": "jwt"}, "KEYGRAPH_AUTH=jwt needs one source of keys"),
            ({"AUTH": "jwt", "JWT_KEY": "-----BEGIN PUBLIC KEY-----" * 2}, "KEYGRAPH_JWT_KEY cannot be used"),
            (
                {"AUTH": "jwt", "JWT_KEY": "x" * 32, "JWT_ALGORITHMS": "none"},
                "KEYGRAPH_JWT_ALGORITHMS names none, which is not accepted",
            ),
            ({"AUTH": "jwt", "JWT_KEY": "x" * 32, "JWT_ALGORITHMS": ","}, "KEYGRAPH_JWT_ALGORITHMS names no"),
            (
                {"AUTH": "jwt", "JWT_KEY": "x" * 32, "JWT_ALGORITHMS": "RS256"},
                "KEYGRAPH_JWT_ALGORITHMS allows RS256",
            ),
            ({"JWT_KEY": "x" * 32}, "KEYGRAPH_JWT_KEY is set, but KEYGRAPH_AUTH is none"),
            (
                {"AUTH": "header", "JWT_JWKS_URL": "https://issuer.example.com"},
                "KEYGRAPH_JWT_JWKS_URL is set, but KEYGRAPH_AUTH is header",
            ),
            ({"AUTH": "header", "AUTH_HEADERS": "X User"}, "KEYGRAPH_AUTH_HEADERS cannot be used: X User"),
            ({"AUTH": "header", "AUTH_HEADERS": "Host: sub"}, "KEYGRAPH_AUTH_HEADERS cannot be used: Host"),
            ({"AUTH_HEADERS": "X-A: sub"}, "KEYGRAPH_AUTH_HEADERS is set, but KEYGRAPH_AUTH is none"),
            ({"JWT_AUDIENCE": "shop"}, "KEYGRAPH_JWT_AUDIENCE is set, but KEYGRAPH_AUTH is none"),
            (
                {"TRUSTED_DOCUMENTS": "/dev/zero"},
                "KEYGRAPH_TRUSTED_DOCUMENTS cannot be used: /dev/zero is a pipe",
            ),
            (
                {"TRUSTED_DOCUMENTS": "pipe"},
                "KEYGRAPH_TRUSTED_DOCUMENTS cannot be used: pipe is a pipe or a device",
            ),
            ({"TRUSTED_DOCUMENTS": "."}, "KEYGRAPH_TRUSTED_DOCUMENTS cannot be used: . is a folder"),
            ({"STORE": "sqlite:pipe"}, "KEYGRAPH_STORE cannot be used: pipe is a pipe or a device"),
            ({"STORE": "sqlite:/dev/zero"}, "KEYGRAPH_STORE cannot be used: /dev/zero is a pipe or a device"),
            ({"STORE": "sqlite:."}, "KEYGRAPH_STORE cannot be used: . is a folder"),
            (
                {"STORE": "sqlite:odd.sqlite"},
                "the secret cannot be stored in odd.sqlite.secret: odd.sqlite.secret is a pipe or a device",
            ),
            (
                {"AUTH": "header", "AUTH_HEADERS": "X: sub, Y: sub"},
                "KEYGRAPH_AUTH_HEADERS cannot be used: Y: sub",
            ),
            ({"HOST": "a\x9b\nb\u202e"}, "a\\u009b\\nb\\u202e is not an address of this machine"),
        ],
    )
    def test_a_setting_is_refused_before_the_greeting(
        self, monkeypatch: pytest.MonkeyPatch, words: list[str], settings: dict[str, str], problem: str
    ) -> None:
        monkeypatch.setattr(os, "environ", os.environ.copy())
        monkeypatch.setattr("keygraph_server.commands.serve.uvicorn.Config", lambda *_, **__: 1 / 0)
        for name, value in settings.items():
            monkeypatch.setenv(f"KEYGRAPH_{name}", value)
        for pipe in ("pipe", "odd.sqlite.secret"):
            os.mkfifo(pipe)
        result = run("serve", "--model", "library", "--port", "0", *words)
        assert result.exit_code == 1
        assert "Keygraph serves" not in result.stdout
        assert [line for line in result.stderr.splitlines() if " INFO " not in line] == [
            result.stderr.splitlines()[-1]
        ]
        assert result.stderr.splitlines()[-1].startswith(f"keygraph: {problem}")

    def test_a_name_that_is_no_setting_is_a_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KEYGRAPH_PLAYGROND", "false")
        result = run("serve", "--model", "missing", "--port", "0")
        assert "No setting is named KEYGRAPH_PLAYGROND: see docs/settings.md" in result.stderr

    @pytest.mark.parametrize("name", Settings.model_fields)
    def test_a_bad_value_is_a_line_before_the_greeting_or_serves(
        self, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.setattr(os, "environ", os.environ.copy())
        monkeypatch.setattr("keygraph_server.commands.serve.uvicorn.Config", lambda *_, **__: 1 / 0)
        monkeypatch.setenv("KEYGRAPH_PORT", "0")
        monkeypatch.setenv("KEYGRAPH_MODEL", "library")
        monkeypatch.setenv("KEYGRAPH_AUTH", "header" if name == "auth_headers" else "jwt")
        monkeypatch.setenv(
            "KEYGRAPH_JWT_JWKS_URL" if name == "jwt_jwks_url" else "KEYGRAPH_JWT_KEY", "x" * 32
        )
        if name == "auth_headers":
            monkeypatch.delenv("KEYGRAPH_JWT_KEY")
        if name == "metrics_host":
            monkeypatch.setenv("KEYGRAPH_METRICS_PORT", "0")
        refused = 0
        for value in BAD_VALUES:
            monkeypatch.setenv(environment_name(name), value)
            try:
                result = run("serve")
            except ZeroDivisionError:
                continue
            refused += 1
            lines = [line for line in result.stderr.split("\n") if " INFO " not in line]
            assert (result.exit_code, lines[1:]) == (1, [""]), value
            assert lines[0].startswith("keygraph: ")
            assert lines[0].isprintable()
            assert len(lines[0]) < 1_000
            assert "Keygraph serves" not in result.stdout
        is_number = type(Settings.model_fields[name].default) in (int, float)
        assert refused >= (len(BAD_VALUES) if is_number else 1)

    def test_a_table_with_other_keys(self) -> None:
        by_kind = Index("by_kind", "kind", "isbn", projection="KEYS_ONLY")
        make_table(
            "sqlite:library.sqlite",
            Table("Library", partition_key="pk", sort_key=("sk", "N"), indexes=[by_kind]),
        )
        assert refused("serve", "--model", "library", "--store", "sqlite:library.sqlite", "--port", "0") == (
            "the table Library in sqlite:library.sqlite does not match the model: "
            "its keys are pk (S) and sk (N), but the model declares pk (S) and sk (S); "
            "the keys of its index by_kind are kind (S) and isbn (S), but the model declares kind (S) and title (S); "
            "its index by_kind projects keys alone (KEYS_ONLY), declared is ALL. "
            "Change the model or the table; `keygraph table describe` shows both.\n"
        )

    def test_a_port_in_use(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            result = run("serve", "--model", "library", "--port", port)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(f"keygraph: port {port} on 127.0.0.1 is in use. ")
        assert "or choose another: --port" in result.stderr
        assert not Path(".keygraph").exists()

    def test_a_host_of_another_machine(self) -> None:
        # 192.0.2.0/24 is for documentation (RFC 5737): no machine has it.
        assert refused("serve", "--model", "library", "--host", "192.0.2.1", "--port", "0") == (
            "192.0.2.1 is not an address of this machine. Choose another: --host 127.0.0.1.\n"
        )

    def test_a_store_of_no_known_form(self) -> None:
        assert refused("serve", "--model", "library", "--store", "redis:x", "--port", "0") == (
            "--store cannot be used: 'redis:x' is not a store: "
            "use sqlite:PATH, aws, or http://HOST:PORT. See docs/settings.md for valid values.\n"
        )

    def test_a_store_that_is_not_running(self) -> None:
        problem = refused("serve", "--model", "library", "--store", "http://127.0.0.1:9", "--port", "0")
        assert problem.startswith("the store http://127.0.0.1:9 does not answer: ")
        assert len(problem.splitlines()) == 1

    def test_a_file_that_is_no_database(self, library: Path) -> None:
        (library / "notes.txt").write_text("not a database, but long enough to be looked at as one" * 40)
        problem = refused("serve", "--model", "library", "--store", "sqlite:notes.txt", "--port", "0")
        assert "it is not a SQLite file" in problem
        assert len(problem.splitlines()) == 1
