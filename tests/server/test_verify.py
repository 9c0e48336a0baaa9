"""`keygraph verify`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing import active_children
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Scan
from keygraph.dynamo.table import Table
from keygraph.errors import Throttled
from keygraph.tables.verify import Verification
from keygraph_examples.social import graph as social
from keygraph_server.errors import printable
from keygraph_server.jobs.checkpoint import StateFile
from tests.server.command_line import refused, run
from tests.server.tables import FILE, make_table

MODEL = ("--model", "keygraph_examples.social:graph")
RIGHT: list[Item] = [
    {"PK": "USER#Ann", "SK": "PROFILE", "name": "Ann"},
    {"PK": "USER#Ben", "SK": "PROFILE", "name": "Ben"},
    {"PK": "USER#Ann", "SK": "FRIEND#Ben", "friendship_since": "2024-02-03"},
    {"PK": "USER#Ben", "SK": "FRIEND#Ann", "friendship_since": "2024-02-03"},
]
WRONG: list[Item] = [
    {"PK": "USER#Ann", "SK": "BLOCKS#\x1b[2J", "reason": "a secret"},
    {"PK": "USER#Cid", "SK": "PROFILE", "name": ["a secret"]},
    {"PK": "USER#Cid", "SK": "FRIEND#Dan", "friendship_since": "2024-02-03"},
    {"PK": "USER#Cid", "SK": "FRIEND#Eve", "friendship_since": "2024-02-03"},
]

pytestmark = pytest.mark.usefixtures("folder")


def fill(address: str, items: list[Item]) -> None:
    make_table(address, items, social.table)


def stop_after(windows: int, monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> None:
    """Lets the verification end after so many windows of one item, by an error, or as by Ctrl-C."""
    monkeypatch.setattr("keygraph.tables.verify._WINDOW_ITEMS", 1)
    run_whole = Verification.run

    async def run_part(self: Verification, advance: Callable[[int], None]) -> None:
        def advanced(items: int) -> None:
            advance(items)
            if items == windows and error is not None:
                raise error
            if items == windows:
                signal.raise_signal(signal.SIGINT)

        await run_whole(self, advanced)

    monkeypatch.setattr(Verification, "run", run_part)


def test_a_right_table_is_exit_code_0(address: str) -> None:
    fill(address, RIGHT)
    result = run("verify", *MODEL, "--store", address)
    assert result.exit_code == 0
    assert result.stderr.startswith("Verified 4 items in ")
    assert result.stderr.endswith(" of Users: no problems.\n")
    assert [line.split() for line in result.stdout.splitlines()[3:]] == [["User", "2"], ["Friendship", "2"]]


# --- The report ---------------------------------------------------------------------------------------


def test_what_is_found_is_a_table_and_exit_code_3(address: str) -> None:
    fill(address, RIGHT + WRONG)
    result = run("verify", *MODEL, "--store", address)
    assert result.exit_code == 3
    assert result.stderr.endswith(" of Users: 6 problems.\n")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines() if line.strip(" ─")]
    assert lines[:7] == [
        "Table Users",
        "type items problems",
        "User 3 1",
        "Friendship 4 4",
        "no type 1 1",
        "Items that match no type",
        "type items what, and where",
    ]
    assert "USER#Ann / BLOCKS#\\u001b[2J" in lines
    after = lines.index("Items that do not match their declaration")
    assert lines[after:] == [
        "Items that do not match their declaration",
        "type items what, and where",
        "User 1 User.name of an item is not of type string: it is a list",
        "USER#Cid / PROFILE",
        "Ends whose node is missing",
        "type items what, and where",
        "Friendship 2 friend points to a missing User",
        "USER#Cid / FRIEND#Dan → USER#Dan / PROFILE",
        "USER#Cid / FRIEND#Eve → USER#Eve / PROFILE",
        "Edges whose mirror or counterpart is missing",
        "type items what, and where",
        "Friendship 2 its mirror is missing",
        "USER#Cid / FRIEND#Dan → USER#Dan / FRIEND#Cid",
        "USER#Cid / FRIEND#Eve → USER#Eve / FRIEND#Cid",
    ]
    assert "secret" not in result.output
    assert "\x1b" not in result.stdout


def test_json_for_a_program(address: str) -> None:
    fill(address, RIGHT + WRONG)
    result = run("verify", *MODEL, "--store", address, "--format", "json", "--examples", "1")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert (found["table"], found["items"]) == ("Users", 8)
    assert found["types"] == [
        {"type": "User", "items": 3, "problems": 1},
        {"type": "Friendship", "items": 4, "problems": 4},
        {"type": None, "items": 1, "problems": 1},
    ]
    assert [(each["problem"], each["type"], each["count"]) for each in found["problems"]] == [
        ("unknown", None, 1),
        ("unfit", "User", 1),
        ("dangling", "Friendship", 2),
        ("one-sided", "Friendship", 2),
    ]
    assert found["problems"][2] == {
        "problem": "dangling",
        "type": "Friendship",
        "what": "friend points to a missing User",
        "count": 2,
        "examples": [
            {
                "key": {"PK": "USER#Cid", "SK": "FRIEND#Dan"},
                "other": {"PK": "USER#Dan", "SK": "PROFILE"},
            }
        ],
    }
    assert found["problems"][0]["examples"] == [{"key": {"PK": "USER#Ann", "SK": "BLOCKS#\x1b[2J"}}]


def test_fields_and_attributes_without_each_other_are_named(address: str) -> None:
    fill(address, [{("full_name" if n == "name" else n): v for n, v in item.items()} for item in RIGHT])
    result = run("verify", *MODEL, "--store", address)
    lines = [" ".join(line.split()) for line in result.stdout.splitlines() if line.strip(" ─")]
    after = lines.index("Fields that no item has, and attributes without a field")
    assert lines[after:] == [
        "Fields that no item has, and attributes without a field",
        "type items what",
        "User 2 no item has the field name; full_name was probably meant, in which no field is stored",
    ]
    found = json.loads(run("verify", *MODEL, "--store", address, "--format", "json").stdout)
    assert found["attributes"] == [
        {"type": "User", "field": "name", "attribute": "name", "items": 2, "meant": "full_name"}
    ]


def test_only_some_types_are_verified() -> None:
    """What they point to is looked up, whatever its type."""
    fill(FILE, RIGHT + WRONG)
    every = run("verify", *MODEL, "--store", FILE, "--format", "json")
    some = run(
        "verify", *MODEL, "--store", FILE, "--format", "json", "--type", "Friendship", "--segments", "2"
    )
    whole, part = json.loads(every.stdout), json.loads(some.stdout)
    assert part["items"] == 4
    assert part["types"] == [each for each in whole["types"] if each["type"] == "Friendship"]
    assert part["problems"] == [each for each in whole["problems"] if each["type"] == "Friendship"] != []
    assert "Name one of Friendship" in refused("verify", *MODEL, "--store", FILE, "--type", "Freindship")


def test_few_examples_are_shown_with_how_many_more_there_are() -> None:
    fill(FILE, RIGHT + WRONG)
    shown = run("verify", *MODEL, "--store", FILE, "--examples", "1").stdout
    assert shown.count("and 1 more") == 2
    assert "Eve" not in shown
    without = run("verify", *MODEL, "--store", FILE, "--examples", "0").stdout
    assert "more" not in without
    assert "Cid" not in without


def test_it_changes_nothing(address: str) -> None:
    fill(address, RIGHT + WRONG)
    before = run("export", *MODEL, "--store", address, "--format", "typed").stdout
    run("verify", *MODEL, "--store", address)
    assert run("export", *MODEL, "--store", address, "--format", "typed").stdout == before


# --- Repairs ------------------------------------------------------------------------------------------

BROKEN: list[Item] = [
    *RIGHT,
    {"PK": "USER#Ben", "SK": "FRIEND#Cid", "friendship_since": "2024-02-03", "no\x1bte": "n" * 300},
    {"PK": "USER#Cid", "SK": "PROFILE", "name": "Cid"},
    {"PK": "USER#Cid", "SK": "FRIEND#Eve", "friendship_since": "2024-02-03"},
]
_LONG = f'{{"S":"{"n" * 194}…'


def exported(address: str) -> str:
    return run("export", *MODEL, "--store", address, "--format", "typed").stdout


def test_repairs_are_listed_and_made_with_yes(address: str) -> None:
    fill(address, BROKEN)
    before = exported(address)
    listed = [
        "+ USER#Cid / FRIEND#Ben: Friendship: its mirror is missing",
        '    friendship_since: none → {"S":"2024-02-03"}',
        f"    no\\u001bte: none → {_LONG}",
        "- USER#Cid / FRIEND#Eve: Friendship: friend points to a missing User",
        '    friendship_since: {"S":"2024-02-03"} → none',
    ]
    result = run("verify", *MODEL, "--store", address, "--repair", "--segments", "1")
    lines = result.stdout.splitlines()
    assert sorted(lines[: len(listed)]) == sorted(listed)
    assert (result.exit_code, exported(address)) == (3, before)
    assert result.stderr.endswith(
        " of Users: 3 problems.\n2 repairs are possible, and would delete 1 item. Nothing was changed. "
        "To make the changes, add --yes.\n"
    )
    result = run("verify", *MODEL, "--store", address, "--repair", "--yes", "--rate", "1000")
    assert sorted(result.stdout.splitlines()[: len(listed)]) == sorted(listed)
    assert result.exit_code == 0
    assert result.stderr.endswith(" of Users: no problems. 3 repaired.\n")
    assert run("verify", *MODEL, "--store", address).stderr.endswith(" of Users: no problems.\n")


def test_repairs_as_json(address: str) -> None:
    fill(address, BROKEN)
    result = run(
        "verify", *MODEL, "--store", address, "--repair", "--yes", "--only", "ends", "--format", "json"
    )
    found = json.loads(result.stdout)
    what = "friend points to a missing User"
    assert found["changes"] == [
        {
            "problem": "dangling",
            "type": "Friendship",
            "what": what,
            "key": {"PK": "USER#Cid", "SK": "FRIEND#Eve"},
            "before": {"friendship_since": {"S": "2024-02-03"}},
            "after": None,
        }
    ]
    assert {"problem": "dangling", "type": "Friendship", "what": what, "count": 1} in found["repaired"]
    assert [each["what"] for each in found["problems"]] == ["its mirror is missing"]
    assert result.exit_code == 3
    again = run("verify", *MODEL, "--store", address, "--repair", "--only", "ends,keys", "--format", "json")
    assert json.loads(again.stdout)["changes"] == []


def test_what_a_repair_sends_for_one_item_is_explained() -> None:
    fill(FILE, BROKEN)
    before = exported(FILE)

    def explained(key: str, *options: str) -> str:
        result = run("verify", *MODEL, "--store", FILE, "--repair", "--explain", key, *options)
        assert (result.exit_code, exported(FILE)) == (0, before)
        return result.stdout

    text = " ".join(explained("USER#Ben / FRIEND#Cid").split())
    assert "What is read GetItem: PK = USER#Ben AND SK = FRIEND#Cid " in text
    assert "PK = USER#Cid AND SK = FRIEND#Ben" in text[text.index("What is written TransactWriteItems") :]
    assert text.endswith("Before each write, the item is verified; after it, again.")
    key = "USER#Cid / FRIEND#Eve"
    [sent] = json.loads(explained(key, "--yes", "--only", "ends", "--format", "json"))["writes"]
    assert [(each["operation"], each["keys"]) for each in sent["actions"]] == [
        ("Delete", "PK = USER#Cid AND SK = FRIEND#Eve"),
        ("ConditionCheck", "PK = USER#Eve AND SK = FRIEND#Cid"),
        ("ConditionCheck", "PK = USER#Eve AND SK = PROFILE"),
    ]
    assert sent["actions"][-1]["condition"] == "NOT attribute_exists(PK)"
    right = json.loads(explained("USER#Ann / PROFILE", "--format", "json"))
    assert (right["writes"], right["stays"]) == ([], [])


def test_unusable_options_of_repairs_are_named() -> None:
    fill(FILE, RIGHT)
    for options, message in (
        (
            ["--repair", "--only", "ends,edges"],
            "--only does not know edges. Choose from ends, keys, mirrors, copies, counts.",
        ),
        (
            ["--yes"],
            "--yes, --only, --rate and --explain are options of --repair. Add --repair, or leave them out.",
        ),
    ):
        assert refused("verify", *MODEL, "--store", FILE, *options) == (f"{message}\n")


def test_interrupted_repairs_go_on_and_do_not_take_up_a_dry_run(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(FILE, BROKEN)
    words = ("verify", *MODEL, "--store", FILE, "--segments", "1", "--state", "state.json", "--repair")
    with monkeypatch.context() as patched:
        stop_after(4, patched)
        assert run(*words).exit_code == 130
    assert "does not belong to a verification" in run(*words, "--yes", "--resume").stderr
    with monkeypatch.context() as patched:
        stop_after(4, patched)
        assert run(*words, "--yes").exit_code == 130
    result = run(*words, "--yes", "--resume")
    assert result.exit_code == 0
    assert result.stderr.endswith(", 4 verified earlier: no problems. 3 repaired.\n")
    assert run("verify", *MODEL, "--store", FILE).exit_code == 0


# --- Errors -------------------------------------------------------------------------------------------


def test_a_missing_table_and_one_with_other_keys_are_one_line() -> None:
    result = run("verify", *MODEL, "--store", FILE)
    # A file without the table would look like a store to `serve`.
    assert not Path(FILE.removeprefix("sqlite:")).exists()
    assert (result.exit_code, result.stderr) == (
        1,
        "keygraph: there is no table Users. Create it with "
        f"`keygraph table create {' '.join(MODEL)} --store {FILE}`\n",
    )
    make_table(FILE, table=Table("Users", partition_key="id", sort_key=("at", "N")))
    assert refused("verify", *MODEL, "--store", FILE) == (
        "the keys of the table Users are id (S) and at (N), the model declares PK (S) and SK (S). "
        "Fix the model, or name another store.\n"
    )


# --- Interruptions ------------------------------------------------------------------------------------


def report_of(*options: str) -> Any:
    result = run("verify", *MODEL, "--store", FILE, "--format", "json", *options)
    assert result.exit_code == 3, result.output
    return json.loads(result.stdout)


ODD = "\x1b]0;title\x07 \x9b31m \u202e \u2028 \U000e0041 \ufe00\u2800"
"""Text that a terminal obeys, or displays as something else."""


@pytest.mark.parametrize("options", [(), ("--format", "json")])
@pytest.mark.parametrize(
    "command",
    [
        ("verify",),
        ("verify", "--repair"),
        ("verify", "--repair", "--explain", f"USER#{ODD} / FRIEND#Ann{ODD}"),
        ("backfill", "--dry-run"),
        ("table", "diff"),
    ],
)
def test_no_text_of_an_item_is_obeyed_by_a_terminal(
    command: tuple[str, ...], options: tuple[str, ...]
) -> None:
    """Names of attributes and values are escaped, as keys are; the JSON has the same values."""
    copied: Item = {"PK": f"USER#{ODD}", "SK": f"FRIEND#Ann{ODD}", "friendship_since": ODD, ODD: ODD}
    fill(FILE, [{"PK": f"USER#{ODD}", "SK": "PROFILE", "name": ODD, ODD: ODD}, copied, *WRONG])
    if command[0] == "table":
        options = ("--json",) if options else ()
    result = run(*command, *MODEL, "--store", FILE, *options)
    assert result.exit_code in (0, 3), result.output
    printed = result.output.replace("\n", "")
    assert printable(printed) == printed
    if options:
        assert repr(ODD)[1:-1] in str(json.loads(result.stdout))


@pytest.mark.parametrize("options", [(), ("--state", "state.json")])
@pytest.mark.parametrize("segments", ["1", "3"])
def test_an_interrupted_one_goes_on(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], segments: str
) -> None:
    fill(FILE, RIGHT + WRONG)
    whole = report_of()
    with monkeypatch.context() as patched:
        stop_after(5, patched)
        result = run("verify", *MODEL, "--store", FILE, "--segments", segments, *options)
    assert (result.exit_code, result.stdout, result.stderr) == (
        130,
        "",
        "keygraph: interrupted. 5 items were verified. Run it again with --resume to continue.\n",
    )
    assert Path("state.json").exists() == bool(options)
    resumed = run(
        "verify", *MODEL, "--store", FILE, "--segments", segments, "--resume", "--format", "json", *options
    )
    assert ", 5 verified earlier: 6 problems." in resumed.stderr
    assert json.loads(resumed.stdout) == whole
    assert resumed.exit_code == 3
    # What is done is not gone on from.
    assert not Path("state.json").exists()
    again = run("verify", *MODEL, "--store", FILE, "--segments", segments, "--resume", *options)
    assert again.stderr.startswith("Found no interrupted verification to resume. Verifying from the start.\n")


def test_an_error_of_the_store_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(FILE, RIGHT + WRONG)
    with monkeypatch.context() as patched:
        stop_after(2, patched, Throttled("DynamoDB refuses for load"))
        assert refused("verify", *MODEL, "--store", FILE, "--segments", "1") == (
            "DynamoDB refuses for load. 2 items were verified. Run it again with --resume to continue.\n"
        )
    resumed = run("verify", *MODEL, "--store", FILE, "--segments", "1", "--resume")
    assert ", 2 verified earlier: 6 problems." in resumed.stderr
    assert resumed.exit_code == 3


def test_a_state_of_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(FILE, RIGHT + WRONG)
    with monkeypatch.context() as patched:
        stop_after(2, patched)
        run("verify", *MODEL, "--store", FILE, "--state", "state.json")
    message = (
        "state.json does not belong to a verification of this table with this model and these options. "
        "Run it without --resume.\n"
    )
    resumed = ("verify", *MODEL, "--store", FILE, "--state", "state.json", "--resume")
    for words in (("--segments", "2"), ("--examples", "9")):
        assert refused(*resumed, *words) == message
    StateFile(Path("state.json")).save([1])
    assert refused(*resumed) == message


def test_a_state_that_cannot_be_kept_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(FILE, RIGHT + WRONG)
    Path("file").write_text("", "utf-8")
    stop_after(2, monkeypatch)
    result = run("verify", *MODEL, "--store", FILE, "--state", "file/state.json")
    assert (result.exit_code, result.stderr) == (
        130,
        "keygraph: interrupted. 2 items were verified. Run it again from the start.\n",
    )


def test_the_table_is_scanned_in_as_many_segments_as_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(FILE, RIGHT)
    seen: set[tuple[int, int]] = set()

    def scan(*words: Any, **named: Any) -> Scan:
        made = Scan(*words, **named)
        seen.add((made.segment, made.segments))
        return made

    monkeypatch.setattr("keygraph.tables.verify.Scan", scan)
    assert run("verify", *MODEL, "--store", FILE, "--segments", "3").exit_code == 0
    assert seen == {(0, 3), (1, 3), (2, 3)}
    assert run("verify", *MODEL, "--store", FILE, "--segments", "0").exit_code == 2


# --- Several processes --------------------------------------------------------------------------------


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes verify even a small file. This one verifies nothing."""

    def verified_page(*_: object) -> None:
        raise AssertionError("it is verified here")

    monkeypatch.setattr("keygraph_server.commands.verify._LARGE_FILE", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(Verification, "verified_page", verified_page)


@pytest.mark.long
def test_processes_report_what_one_does_and_go_on_after_an_interruption(
    request: pytest.FixtureRequest,
) -> None:
    fill(FILE, [*BROKEN, *WRONG])
    whole, some = report_of(), report_of("--type", "User")
    request.getfixturevalue("processes")
    assert report_of("--type", "User") == some
    with pytest.MonkeyPatch.context() as patched:
        stop_after(5, patched)
        assert run("verify", *MODEL, "--store", FILE).exit_code == 130
    assert report_of("--resume") == whole


@pytest.mark.long
@pytest.mark.usefixtures("processes")
def test_a_killed_process_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(FILE, RIGHT + WRONG)
    run_whole = Verification.run

    async def run_part(self: Verification, advance: Callable[[int], None]) -> None:
        def advanced(items: int) -> None:
            advance(items)
            for process in active_children() if items == 2 else ():
                process.kill()

        await run_whole(self, advanced)

    fail = Future.set_exception
    with monkeypatch.context() as patched:
        patched.setattr("keygraph.tables.verify._WINDOW_ITEMS", 1)
        patched.setattr(Verification, "run", run_part)
        # What waits for other pages is cancelled before they fail.
        patched.setattr(Future, "set_exception", lambda *failed: (Event().wait(0.1), fail(*failed)))
        result = run("verify", *MODEL, "--store", FILE, "--segments", "16")
    assert (result.exit_code, result.stdout) == (1, "")
    killed = "keygraph: a process that verifies a part of the table was killed. "
    # Pages that were verified before may arrive after that.
    found = re.fullmatch(
        killed + r"(\d) items were verified\. Run it again with --resume to continue\.\n", result.stderr
    )
    assert found is not None, result.stderr
    again = run("verify", *MODEL, "--store", FILE, "--segments", "16", "--resume")
    assert f", {found[1]} verified earlier: 6 problems." in again.stderr


ENDED = """
import os, signal, sys
from keygraph.tables.verify import Verification
from keygraph_server.cli import main
from keygraph_server.commands import verify

whole = Verification.run
Verification.run = lambda self, advance: whole(self, lambda items: {})
verify._LARGE_FILE, os.cpu_count = 0, lambda: 2
sys.argv[0] = "keygraph"
main()
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("end", "code", "printed"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
        ("os.killpg(0, signal.SIGINT)", 130, "keygraph: interrupted. "),
    ],
    ids=["killed", "interrupted"],
)
def test_processes_end_with_their_parent(end: str, code: int, printed: str) -> None:
    """Each of them has the pipe to which it could print, which is read until all have ended."""
    fill(FILE, RIGHT + WRONG)
    words = [sys.executable, "-c", ENDED.format(end), "verify", *MODEL, "--store", FILE]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, start_new_session=True)
    assert (ended.returncode, ended.stdout) == (code, "")
    # Python's resource tracker warns if it cannot end as usual.
    assert "Traceback" not in ended.stderr
    assert ended.stderr.startswith(printed)
