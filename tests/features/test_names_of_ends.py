"""Ends whose attribute is named for the node's only key field, `stored(path="filePath")`, are called as the attribute."""

from __future__ import annotations

import pytest

from keygraph import ID, Graph, Index, Many, Ref, Table, node, stored
from keygraph_resolvers import check
from tests.conftest import MakeStore
from tests.keygraph.checked import mistakes
from tests.resolvers.worlds import World, world

by_folder = Index("ByFolder", "FolderPK", "FolderSK")
by_kind = Index("ByKind", "KindPK", "KindSK")
TABLE = Table("Files", partition_key="PK", sort_key="SK", indexes=[by_folder, by_kind])


@node("FOLDER#{path}", "FOLDER")
class Folder:
    path: ID
    files: Many[File]


@node(
    "FILE#{file_id}",
    "FILE",
    by_folder("{in_folder}", "FILE#{file_id}"),
    by_kind("KIND#{kind}#{in_folder.path}", "{copied_to.path?}", lists="files_of_kind"),
)
class File:
    file_id: ID
    kind: str
    in_folder: Folder = stored(path="path")
    copied_to: Folder | None = stored(path="CopyPath")
    seen_in: list[Ref[Folder]] = stored(path="seenPaths", default=[])
    old: Folder | None = stored("earlier")
    odd: Folder | None = stored(path="1st")


@pytest.fixture
async def files(make_store: MakeStore) -> World:
    made = world(check(Graph(TABLE, Folder, File)), await make_store(TABLE))
    for path in "ab":
        await made.ask(f'mutation {{ createFolder(input: {{path: "{path}"}}) {{ clientMutationId }} }}')
    given = 'path: "a", copyPath: "b", seenPaths: ["a", "b"], oldPath: "b", oddPath: "a"'
    await made.ask(
        f'mutation {{ createFile(input: {{fileId: "1", kind: "k", {given}}}) {{ clientMutationId }} }}'
    )
    return made


@pytest.mark.parametrize(
    "query",
    [
        'filesOfKind(kind: "k", path: "a")',
        'filesOfKind(kind: "k", path: "a", copyPath: {eq: "b"})',
        'folder(path: "a") { files(where: {copyPath: {eq: "b"}, seenPaths: {contains: "a"}, oldPath: {eq: "b"}})',
    ],
)
async def test_names_in_arguments_inputs_and_filters(files: World, query: str) -> None:
    whole = f"{{ {query} {{ nodes {{ inFolder {{ path }} copiedTo {{ path }} seenIn {{ path }} }} }} }}"
    answer = await files.ask(whole + " }" * query.startswith("folder"))
    found = answer["folder"]["files"] if query.startswith("folder") else answer["filesOfKind"]
    wanted = {"inFolder": {"path": "a"}, "copiedTo": {"path": "b"}, "seenIn": [{"path": "a"}, {"path": "b"}]}
    assert found["nodes"] == [wanted]


async def test_refusals_name_it_too(files: World) -> None:
    refused = 'mutation { updateFile(input: {fileId: "1", copyPath: "z"}) { clientMutationId } }'
    [error] = (await files.service.execute(refused))["errors"]
    assert error["extensions"] == {"code": "NOT_FOUND", "path": ["input", "copyPath"]}


def test_two_of_one_name() -> None:
    @node("PIECE#{piece_id}", "PIECE", by_kind("KIND#{path}#{folder.path}", "{piece_id}", lists="pieces"))
    class Piece:
        piece_id: ID
        path: str = stored("own")
        folder: Folder = stored(path="path")

    assert mistakes(Folder, File, Piece, table=TABLE, check=check) == [
        "the filter of Piece: two of its fields are called path in the schema. Rename one.",
        "the root.pieces: two of its arguments are called path. "
        "Rename the key template's field, and name its attribute with stored().",
    ]
