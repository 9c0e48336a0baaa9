"""The files that keep the progress of a command, and by what they know whose progress it is."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from types import ModuleType

import pytest

from keygraph import Graph, Table
from keygraph_server.commands.verify import RunningVerification
from keygraph_server.jobs.checkpoint import StateFile
from keygraph_server.jobs.declaration import declaration_digest
from keygraph_server.settings import Settings
from tests.server.command_line import refused
from tests.server.tables import FILE, make_table

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("command", ["verify", "backfill"])
@pytest.mark.parametrize("name", ["notes.json", "folder", "folder/latin", "link", "dangling"])
def test_a_file_that_is_no_state_is_neither_replaced_nor_deleted(name: str, command: str) -> None:
    make_table(FILE)
    Path("notes.json").write_text('{"what": []}', "utf-8")
    Path("folder").mkdir()
    Path("folder/latin").write_bytes(b"\xff")
    Path("link").symlink_to("empty")
    Path("empty").touch()
    Path("dangling").symlink_to("nowhere")
    is_file = name not in {"folder", "link", "dangling"}
    before = Path(name).read_bytes() if is_file else b""
    what = "is not a file" if not is_file else "is there, and is not the progress of a Keygraph command"
    assert refused(command, "--store", FILE, "--state", name) == f"{name} {what}. Name another file.\n"
    assert Path(name).read_bytes() == before if is_file else Path(name).is_dir() or Path(name).is_symlink()


def test_an_empty_file_is_taken() -> None:
    Path("state.json").touch()
    StateFile.at(Path("state.json")).save({"items": 3})
    assert StateFile.at(Path("state.json")).read() == {"items": 3}


def test_a_state_is_readable_by_its_owner_and_leaves_nothing_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = StateFile.named("loads", "name")
    file.save({"last": "a value"})
    assert file.path.stat().st_mode & 0o777 == 0o600

    def full(path: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left on device"):
        file.save({"last": "another"})
    assert [each.name for each in file.path.parent.iterdir()] == [file.path.name]
    assert file.read() == {"last": "a value"}


def test_a_state_holds_no_password_of_a_store() -> None:
    settings = Settings(store="http://me:secret@localhost:8000")
    job = RunningVerification(Graph(Table("Notes", partition_key="pk")), settings, 1, 0, None, None)
    assert job._what[0] == "http://…@localhost:8000"


MODEL = """
from __future__ import annotations
from enum import Enum
from keygraph import ID, Graph, Many, Table, counts, many, node, record, stored

class Color(Enum):
    RED = "red"
    BLUE = "blue"

@node("BOX#{box_id}")
class Box:
    "A box."
    box_id: ID
    label: str = stored("label", default="none")
    things: Many[Thing]
    red_count: int | None = counts("things", where={"size": {"gt": 3}}, kept="job")

@record("{box}", "THING#{number}")
class Thing:
    box: Box
    number: int
    size: int
    color: Color

graph = Graph(Table("Boxes", partition_key="pk", sort_key="sk"), Box, Thing)
"""


def digest(model: str) -> str:
    module = ModuleType("boxes")
    sys.modules["boxes"] = module
    exec(compile(model, "boxes.py", "exec"), module.__dict__)
    found: Graph = module.graph  # type: ignore[attr-defined]
    return declaration_digest(found.check())


@pytest.mark.parametrize(
    ("text", "instead", "is_same"),
    [
        ("A box.", "A box or a crate.", True),
        ('BLUE = "blue"', 'BLUE = "azure"', False),
        ('where={"size": {"gt": 3}}, ', "", False),
        ('default="none"', 'default="no label"', False),
        ('stored("label"', 'stored("name"', False),
        ("THING#{number}", "THING#{number:04d}", False),
        ("things: Many[Thing]", 'things: Many[Thing] = many(at="box")', False),
        ("Box, Thing)", 'Box, Thing, ignore=["OLD#*"])', False),
    ],
)
def test_a_job_is_resumed_with_the_model_that_it_began_with(text: str, instead: str, is_same: bool) -> None:
    assert text in MODEL
    assert (digest(MODEL) == digest(MODEL.replace(text, instead))) is is_same


def test_the_name_of_a_source_need_not_be_utf_8() -> None:
    names = ("\udcff.jsonl", "\udcfe.jsonl")
    assert len({StateFile.named("loads", name).path for name in names}) == 2
