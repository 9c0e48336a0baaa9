"""The documents' tables, verified: the samples are right, and what the documents' own items lack is named."""

from __future__ import annotations

import pytest

from keygraph.tables.findings import Report
from tests.conftest import MakeStore
from tests.documents.samples import NAMES, files_of, graph_of, serve
from tests.documents.served import lines_of
from tests.verified import verified


def told(report: Report) -> list[str]:
    """Each finding: its type, what it is, the item's key, and the key that is missing."""
    return [
        f"{kind.type}: {kind.what}: {' / '.join(map(str, key))}"
        + (f" -> {' / '.join(map(str, other))}" if other else "")
        for kind, found in report.ordered()
        for key, other in found.examples
    ]


@pytest.mark.parametrize("name", NAMES)
async def test_the_sample_is_right(name: str, make_store: MakeStore) -> None:
    served = await serve(graph_of(name), make_store, *files_of(name))
    report = await verified(served.graph, served.store)
    assert told(report) == []
    assert report.total == len(lines_of(*files_of(name)))
    assert None not in report.items


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "social",
            [
                "Friendship: friend points to a missing User: USER#Bob / FRIEND#David -> USER#David / PROFILE",
                "Friendship: its mirror is missing: USER#Bob / FRIEND#David -> USER#David / FRIEND#Bob",
            ],
        ),
        ("education", []),
        (
            "cargo",
            [
                "ContainerPallet: pallet points to a missing Pallet: CONTAINER_009998 / PALLET_B021003"
                " -> PALLET_B021003 / PALLET_B021003"
            ],
        ),
        (
            "commerce",
            [
                "CategoryChild: child points to a missing Category: CATEGORY#electronics / CHILD#headphones"
                " -> CATEGORY#headphones / CATEGORY#headphones"
            ],
        ),
    ],
)
async def test_what_the_article_itself_leaves_out_is_named(
    name: str, expected: list[str], make_store: MakeStore
) -> None:
    served = await serve(graph_of(name), make_store, f"{name}.jsonl")
    assert told(await verified(served.graph, served.store)) == expected
