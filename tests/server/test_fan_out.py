"""Servers that get the changes of the table from `keygraph follow`, through a Valkey or Redis server."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.server.command_line import refused, run
from tests.server.test_follow import following, line_with
from tests.server.test_live_transports import MODEL, NAME, QUERY, rename, serving
from tests.valkey import needs_valkey, valkey_server


async def name_of(event: Callable[[], Any]) -> str:
    kind, data = await event()
    assert kind == "next", data
    name: str = data["data"]["user"]["name"]
    return name


@needs_valkey
@pytest.mark.long
async def test_several_servers_send_what_one_worker_reads_and_what_has_changed_in_an_outage(
    tmp_path: Path,
) -> None:
    with valkey_server(tmp_path, "--requirepass", "s3cret") as valkey:
        address = valkey.address.replace("//", "//:s3cret@")
        settings = {"fan_out": SecretStr(address)}
        async with serving(tmp_path, **settings) as one, serving(tmp_path, **settings) as other:
            with following(f"sqlite:{tmp_path / 'shop.sqlite'}", MODEL, KEYGRAPH_FAN_OUT=address) as worker:
                line_with(worker, "Following the table")
                async with one.events(NAME) as first, other.events(NAME) as second:
                    assert [await name_of(each) for each in (first, second)] == ["John Doe"] * 2
                    await one.ask(rename("Jane"))
                    assert [await name_of(each) for each in (first, second)] == ["Jane"] * 2
                    valkey.kill()
                    assert "errors" not in await one.ask(rename("Jill"))
                    assert (await other.ask(QUERY))["data"]["user"]["name"] == "Jill"
                    assert "s3cret" not in line_with(worker, "the Valkey or Redis server of the fan-out")
                    valkey.start()
                    assert [await name_of(each) for each in (first, second)] == ["Jill"] * 2
                    await other.ask(rename("Joan"))
                    assert [await name_of(each) for each in (first, second)] == ["Joan"] * 2
                    assert one.app.state.live.counts.failures > 0


async def test_without_a_valkey_server_queries_go_on(tmp_path: Path) -> None:
    async with serving(tmp_path, fan_out=SecretStr("valkey://:s3cret@127.0.0.1:1")) as shop:
        async with shop.client.stream(
            "POST", "/graphql", json={"query": NAME}, headers={"accept": "text/event-stream"}
        ) as response:
            text = (await response.aread()).decode()
        assert "UNAVAILABLE" in text
        assert "s3cret" not in text
        assert (await shop.ask(QUERY))["data"]["user"]["name"] == "John Doe"


def test_what_cannot_be_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = run("follow", "--model", MODEL, "--store", "sqlite:shop.sqlite", "--fan-out", "valkey://:s3cret@")
    assert odd.exit_code == 1
    assert "--fan-out cannot be used: it is no address such as valkey://HOST:6379" in odd.stderr
    assert "s3cret" not in odd.stderr
    run("table", "create", "--model", MODEL, "--store", "sqlite:shop.sqlite")
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    assert "pip install 'keygraph[valkey]'" in refused(
        "follow", "--model", MODEL, "--store", "sqlite:shop.sqlite", "--fan-out", "valkey://localhost"
    )
