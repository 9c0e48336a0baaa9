"""The first start without a store: a file with the model's sample, whole or not at all."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from keygraph.dynamo.items import Item
from keygraph.engines.open import open_store
from keygraph.tables.bulk import whole_table
from keygraph_server.commands.first_start import make_sample_file
from keygraph_server.errors import CommandError
from keygraph_server.models import Model, load_model
from tests.server.library import MODEL, book

FILE = Path(".keygraph/library.sqlite")


@pytest.fixture
def model(folder: Path) -> Model:
    (folder / "library.py").write_text(MODEL)
    return load_model("library")


def write_sample(name: str, *items: object) -> None:
    Path(name).write_text("\n".join(json.dumps(item) for item in items))


def items_of(model: Model) -> list[Item]:
    async def read() -> list[Item]:
        async with open_store(f"sqlite:{FILE}", model.graph.table) as store:
            return [item async for item in whole_table(store)]

    return sorted(asyncio.run(read()), key=lambda item: str(item["pk"]))


def test_it_has_the_items_of_every_sample_file(model: Model) -> None:
    write_sample("library.jsonl", book("1", "Emma"))
    write_sample("library.more.jsonl", book("2", "Ulysses"), book("3", "Mrs Dalloway"))
    assert make_sample_file(model, FILE) == 3
    assert items_of(model) == [book("1", "Emma"), book("2", "Ulysses"), book("3", "Mrs Dalloway")]


def test_without_a_sample_the_table_is_empty(model: Model) -> None:
    assert make_sample_file(model, FILE) == 0
    assert items_of(model) == []


def test_a_large_sample_is_loaded_to_its_end(model: Model) -> None:
    books = [book(f"{number:04}", f"Volume {number}") for number in range(601)]
    write_sample("library.jsonl", *books)
    assert make_sample_file(model, FILE) == 601
    assert items_of(model) == books


def test_a_file_that_is_there_is_left_alone(model: Model) -> None:
    write_sample("library.jsonl", book("1", "Emma"))
    make_sample_file(model, FILE)
    write_sample("library.jsonl", book("2", "Ulysses"))
    assert make_sample_file(model, FILE) is None
    assert items_of(model) == [book("1", "Emma")]


def test_no_file_is_created_beside_a_log_that_is_left(model: Model) -> None:
    FILE.parent.mkdir()
    FILE.with_name(f"{FILE.name}-wal").write_bytes(b"of a file that was moved away")
    with pytest.raises(CommandError, match="put the file back, or delete what is left of it"):
        make_sample_file(model, FILE)
    assert not FILE.exists()


def test_an_interrupted_start_leaves_no_file(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sample("library.jsonl", book("1", "Emma"))

    def interrupted(source: object, target: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make_sample_file(model, FILE)
    assert list(FILE.parent.iterdir()) == []
    assert make_sample_file(model, FILE) == 1


def test_a_start_that_another_one_has_overtaken_uses_its_file(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sample("library.jsonl", book("1", "Emma"))
    make_sample_file(model, FILE)
    inode = FILE.stat().st_ino
    # This one has looked before the file was there.
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", lambda path: False)
        assert make_sample_file(model, FILE) is None
    assert FILE.stat().st_ino == inode


def test_what_killed_starts_have_left_is_removed(model: Model) -> None:
    old, young = FILE.parent / ".first-start-old", FILE.parent / ".first-start-young"
    for scratch in (old, young):
        scratch.mkdir(parents=True)
        (scratch / "library.sqlite").touch()
    os.utime(old, (0, 0))
    make_sample_file(model, FILE)
    assert not old.exists()
    assert young.exists()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            '{"pk": "shelf_1", "sk": "shelf_1"}',
            "library.jsonl:2: this item (shelf_1 / shelf_1) matches no declared type",
        ),
        ('{"pk": ', "library.jsonl:2: it is not JSON"),
    ],
)
def test_a_sample_that_does_not_fit_is_named_with_its_line(model: Model, line: str, expected: str) -> None:
    Path("library.jsonl").write_text(f"{json.dumps(book('1', 'Emma'))}\n{line}\n")
    with pytest.raises(CommandError) as caught:
        make_sample_file(model, FILE)
    assert expected in caught.value.problem
    assert list(FILE.parent.iterdir()) == []


def test_a_folder_that_cannot_be_made(model: Model) -> None:
    FILE.parent.write_text("a file stands here")
    with pytest.raises(CommandError) as caught:
        make_sample_file(model, FILE)
    assert caught.value.problem == f"{FILE} cannot be created: File exists"
