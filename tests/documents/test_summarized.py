"""What the articles let a scheduled process compute: the examples' summaries, as clients read them after the job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ENGINES, MakeStore
from tests.documents.samples import files_of, graph_of, serve
from tests.keygraph.summarized import AS_OF, summarize

ASKED = {
    "cargo": """{
        port(portId: "JPA") { shipCount containerCount containerCountAsOf place }
        ship(shipId: "MARIA") { containerCount pallets: palletCount }
        container(containerId: "009998") { boxCount place }
        other: container(containerId: "009999") { boxCount place }
        pallet(palletId: "B021002") { boxCount }
    }""",
    "billing": """{
        invoice(invoiceId: "92551") { billCount amount amountAsOf bills { aggregate { sum(field: AMOUNT) } totalCount } }
        bill(billId: "4224663") { total invoiced largest invoices { aggregate { sum(field: AMOUNT) } } }
    }""",
    "talent": """{
        person(nodeId: 1) { samePlaces { edges { score node { name } } } degree skillCount placeAmongPeers skills { totalCount } places { totalCount } dates { totalCount } }
        skill(nodeId: 4) { peopleCount place people { totalCount } }
    }""",
}


async def answer(name: str, make_store: MakeStore, folder: Path, *, summarized: bool = True) -> Any:
    served = await serve(graph_of(name), make_store, *files_of(name))
    if summarized:
        await summarize(served.graph, served.store, folder)
    return await served.ask(ASKED[name])


pytestmark = pytest.mark.parametrize("engine", ENGINES)


async def test_the_statistics_of_a_port(make_store: MakeStore, tmp_path: Path) -> None:
    assert await answer("cargo", make_store, tmp_path) == {
        "port": {"shipCount": 1, "containerCount": 2, "containerCountAsOf": AS_OF, "place": 1},
        "ship": {"containerCount": 2, "pallets": 3},
        "container": {"boxCount": 3, "place": 1},
        "other": {"boxCount": 2, "place": 2},
        "pallet": {"boxCount": 2},
    }


async def test_before_the_job_has_run_there_are_none(make_store: MakeStore, tmp_path: Path) -> None:
    found = await answer("cargo", make_store, tmp_path, summarized=False)
    assert found["port"] == dict.fromkeys(("shipCount", "containerCount", "containerCountAsOf", "place"))


async def test_what_an_invoice_comes_to(make_store: MakeStore, tmp_path: Path) -> None:
    """The numbers are those of the lists, which an aggregate reads."""
    found = await answer("billing", make_store, tmp_path)
    assert found == {
        "invoice": {
            "billCount": 2,
            "amount": "570",
            "amountAsOf": AS_OF,
            "bills": {"aggregate": {"sum": "570"}, "totalCount": 2},
        },
        "bill": {
            "total": "120",
            "invoiced": "120",
            "largest": ["92551"],
            "invoices": {"aggregate": {"sum": "120"}},
        },
    }


async def test_rankings_across_peers(make_store: MakeStore, tmp_path: Path) -> None:
    found = await answer("talent", make_store, tmp_path)
    person, skill = found["person"], found["skill"]
    assert person.pop("samePlaces") == {
        "edges": [{"score": 1.0, "node": {"name": name}} for name in ("Julia Novak", "Jonas Berg")]
    }
    lists = {name: person.pop(name)["totalCount"] for name in ("skills", "places", "dates")}
    assert person == {"degree": sum(lists.values()), "skillCount": lists["skills"], "placeAmongPeers": 2}
    assert person["degree"] == 5
    assert skill == {"peopleCount": 3, "place": 1, "people": {"totalCount": 3}}
