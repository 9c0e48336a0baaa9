"""What the image and the compose file start is what the command line offers and the pages say."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer.main
import yaml

from keygraph.changes.fan_out import check_fan_out

ROOT = Path(__file__).parents[2]


def read_dockerfile() -> list[tuple[str, str]]:
    text = (ROOT / "docker/Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def read_last_stage() -> dict[str, str]:
    """The instructions of the stage that becomes the image; of equal ones the last, as Docker has it."""
    instructions = read_dockerfile()
    start = max(at for at, (name, _) in enumerate(instructions) if name == "FROM")
    return dict(instructions[start:])


def read_services() -> dict[str, dict[str, Any]]:
    services: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker/compose.yaml").read_text("utf-8"))[
        "services"
    ]
    return services


def read_page_commands() -> list[list[str]]:
    text = "\n".join((ROOT / page).read_text("utf-8") for page in ("README.md", "docs/commands.md"))
    blocks = re.findall(r"^```(?:sh|shell|bash|console)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def parse_command(words: list[str]) -> dict[str, Any]:
    """Parse a `keygraph …` command by the command line's own rules, and return what its options became."""
    from keygraph_server.cli import app

    assert Path(words[0]).name == "keygraph"
    command: Any = typer.main.get_command(app)
    rest = words[1:]
    while hasattr(command, "commands"):
        _, command, rest = command.resolve_command(command.make_context("keygraph", rest), rest)
    params: dict[str, Any] = command.make_context(command.name, rest).params
    return params


COMPOSE_COMMANDS = {
    name: service["command"] for name, service in read_services().items() if "build" in service
}


class TestImage:
    def test_it_serves_on_every_interface(self) -> None:
        """A container that listens on its own loopback cannot be reached."""
        command = json.loads(read_last_stage()["CMD"])
        assert command[:2] == ["keygraph", "serve"]
        assert parse_command(command)["host"] == "0.0.0.0"

    def test_it_does_not_run_as_root(self) -> None:
        stage = read_last_stage()
        assert stage["USER"] == "keygraph"
        assert stage["RUN"].split()[0] == "useradd"
        assert stage["RUN"].split()[-1] == stage["USER"]

    def test_its_health_check_asks_the_port_that_serve_listens_on(self) -> None:
        stage = read_last_stage()
        port = parse_command(json.loads(stage["CMD"]))["port"]
        assert port in (None, 8000)
        assert stage["EXPOSE"] == "8000"
        assert "'http://127.0.0.1:8000/healthz'" in stage["HEALTHCHECK"]

    def test_what_it_copies_is_there(self) -> None:
        sources = [
            source
            for name, arguments in read_dockerfile()
            if name == "COPY" and not arguments.startswith("--from")
            for source in arguments.split()[:-1]
        ]
        assert len(sources) == 8
        assert [source for source in sources if not (ROOT / source).exists()] == []


class TestCompose:
    @pytest.mark.parametrize("service", COMPOSE_COMMANDS)
    def test_the_command_line_takes_its_commands(self, service: str) -> None:
        parse_command(COMPOSE_COMMANDS[service])

    @pytest.mark.parametrize("service", COMPOSE_COMMANDS)
    def test_its_commands_use_the_dynamodb_that_it_starts(self, service: str) -> None:
        command = COMPOSE_COMMANDS[service]
        store = urlsplit(command[command.index("--store") + 1])
        assert (store.scheme, store.hostname, store.port) == ("http", "dynamodb", 8000)
        assert read_services()["dynamodb"]["image"].startswith("amazon/dynamodb-local:")

    def test_the_server_starts_when_the_sample_is_loaded(self) -> None:
        services = read_services()
        assert services["server"]["depends_on"] == {"sample": {"condition": "service_completed_successfully"}}
        assert services["sample"]["depends_on"] == {"table": {"condition": "service_completed_successfully"}}
        assert services["table"]["depends_on"] == {"dynamodb": {"condition": "service_started"}}

    def test_the_sample_is_a_file_of_the_examples(self) -> None:
        sample = read_services()["sample"]
        assert sample["command"][1] == "load"
        assert (ROOT / sample["command"][2]).is_file()
        source, target, _ = sample["volumes"][0].split(":")
        assert (ROOT / "docker" / source).resolve() == ROOT / "examples"
        assert target == f"{read_last_stage()['WORKDIR']}/examples"

    def test_a_worker_and_two_servers_share_the_valkey_of_the_fan_outs_profile(self) -> None:
        services = read_services()
        own = {name: each for name, each in services.items() if each.get("profiles") == ["fan-out"]}
        assert [*own] == ["valkey", "stream", "follow", "live-1", "live-2"]
        environments = [own[name]["environment"] for name in ("follow", "live-1", "live-2")]
        assert {check_fan_out(each["KEYGRAPH_FAN_OUT"]) for each in environments} == {"valkey://valkey:6379"}
        assert [each.get("KEYGRAPH_LIVE") for each in environments] == [None, "true", "true"]
        assert parse_command(own["stream"]["command"])["stream"] is True
        # A worker that starts later would hand on what the servers know.
        assert own["live-1"]["depends_on"] == {"follow": {"condition": "service_started"}}
        ports = [port for each in services.values() for port in each.get("ports", ())]
        assert len({*ports}) == len(ports)

    def test_its_build_is_the_image(self) -> None:
        build = read_services()["server"]["build"]
        assert (ROOT / "docker" / build["context"]).resolve() == ROOT
        assert (ROOT / build["dockerfile"]).is_file()


class TestReadme:
    def test_it_says_how_to_start_docker(self) -> None:
        assert ["docker", "compose", "--file", "docker/compose.yaml", "up"] in read_page_commands()

    def test_its_docker_commands_name_files_that_are_there(self) -> None:
        named = [
            word
            for words in read_page_commands()
            if words[0] == "docker"
            for word in words
            if word.startswith("docker/")
        ]
        assert [name for name in named if not (ROOT / name).is_file()] == []

    def test_the_command_line_takes_its_commands(self) -> None:
        for words in read_page_commands():
            if Path(words[0]).name == "keygraph":
                parse_command(words)
