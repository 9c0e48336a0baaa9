"""AWS credentials that cannot be had: one sentence, never a traceback."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import get_args

import pytest
from botocore.credentials import ReadOnlyCredentials

from keygraph.dynamo.store import DescribeTable, Query, Request
from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb import settings
from keygraph.engines.dynamodb.engine import open_dynamodb
from keygraph.engines.dynamodb.transport import TransportName
from keygraph.errors import Unavailable
from tests.listening import Endless, listening

table = Table("Shop", partition_key="PK", sort_key="SK")
NOBODY = "http://127.0.0.1:9"
"""No request gets as far as this endpoint."""
ROLE = "role_arn = arn:aws:iam::123456789012:role/reader"
PROCESS = "the credential_process of the AWS profile failed, or does not write credentials: run it to see why"


def printing(**members: object) -> str:
    """The process that writes credentials with these members."""
    written = {"Version": 1, "AccessKeyId": "AKIA", "SecretAccessKey": "hunter2", **members}
    return f"credential_process = echo '{json.dumps(written)}'"


def configure(config: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets AWS's default profile, in an environment that says nothing else of credentials."""
    monkeypatch.chdir(folder)
    for name, file in (("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "none")):
        monkeypatch.setenv(name, str(folder / file))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (folder / "config").write_text(f"[default]\n{config}\n")


@pytest.mark.parametrize("transport", get_args(TransportName))
@pytest.mark.parametrize("request_", [Query("A"), DescribeTable()], ids=["data", "table"])
@pytest.mark.parametrize(
    ("config", "told"),
    [
        (f"{ROLE}\nweb_identity_token_file = token", "token: No such file or directory"),
        (f"{ROLE}\nweb_identity_token_file = /dev/null", "Parameter validation failed: Invalid length for parameter WebIdentityToken"),
        (f"{ROLE}\nsource_profile = base", 'The source_profile "base" referenced in the profile "default" does not exist.'),
        (f"{ROLE}\nsource_profile = other\n[profile other]\nregion = x", 'The source profile "other" must have credentials.'),
        (f"{ROLE}\ncredential_source = Moon", "Moon"),
        ("credential_process = nowhere --now", "nowhere: No such file or directory"),
        ("credential_process = sh -c 'echo hunter2 >&2; exit 1'", PROCESS),
        ("credential_process = echo hunter2", "their source does not return credentials (JSONDecodeError)"),
        ("credential_process = echo {}", PROCESS),
        (printing(Version=2), PROCESS),
        (printing(Expiration="soon"), "their source does not return credentials (ParserError)"),
        (
            printing(Expiration="2099-01-01T00:00:00"),
            "their source does not return credentials (TypeError)",
        ),
        (
            printing(Expiration="2020-01-01T00:00:00Z"),
            "they have expired, and their source returns no newer ones",
        ),
        ("aws_access_key_id = AKIA", "Partial credentials found in config-file, missing: aws_secret_access_key"),
        (
            "aws_access_key_id = ÄKIA\naws_secret_access_key = hunter2",
            "they contain characters that no credentials have",
        ),
    ],
)  # fmt: skip
async def test_what_is_wrong_with_credentials_is_one_sentence(
    config: str,
    told: str,
    request_: Request[object],
    transport: TransportName,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    configure(config, tmp_path, monkeypatch)
    with pytest.raises(Unavailable) as failed:
        async with open_dynamodb(table, NOBODY, "eu-central-1", transport=transport) as store:
            await store.send(request_)
    message = str(failed.value)
    assert message.startswith("AWS credentials cannot be used: ")
    assert told in message
    assert "\n" not in message
    assert "hunter2" not in message + capfd.readouterr().err


async def test_a_profile_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("credential_process = none\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with pytest.raises(
        Unavailable, match=r"AWS's settings cannot be used: Unable to parse config file: .*config"
    ):
        async with open_dynamodb(table, NOBODY, "eu-central-1"):
            pass


# --- A source without an end ----------------------------------------------------------------------------


async def test_a_process_that_writes_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure("credential_process = yes hunter2", tmp_path, monkeypatch)
    with pytest.raises(Unavailable, match=PROCESS):
        async with open_dynamodb(table, NOBODY, "eu-central-1"):
            pass


@pytest.mark.parametrize(
    "variable", ["AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_SERVICE_ENDPOINT"]
)
async def test_of_what_a_source_writes_without_an_end_little_is_read(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Endless(b"HTTP/1.1 200 OK\r\n\r\n", b"hunter2 " * 2**13)
    configure("", tmp_path, monkeypatch)
    async with listening(server) as host:
        monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
        monkeypatch.setenv(variable, f"http://{host}")
        with pytest.raises(Unavailable, match="AWS credentials cannot be used"):
            async with open_dynamodb(table, None, "eu-central-1"):
                pass
    assert 0 < sum(server.written) < 2**25


# --- A process that hangs -------------------------------------------------------------------------------

HANGING = "credential_process = sh -c 'echo $$ >> started; sleep 600; true'"
LATE = "their source, such as the credential_process of the AWS profile, does not answer within {} seconds"


def is_running(folder: Path) -> bool:
    """Whether the one process that hung is there."""
    [number] = (folder / "started").read_text().split()
    return Path(f"/proc/{number}").exists()


async def ends_once(folder: Path) -> None:
    for _ in range(200):
        if not is_running(folder):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it is still running")


@pytest.mark.parametrize("transport", get_args(TransportName))
@pytest.mark.parametrize(
    "config",
    [HANGING, f"{ROLE}\nsource_profile = other\n[profile other]\nregion = eu-central-1\n{HANGING}"],
    ids=["own", "of a role's profile"],
)
async def test_a_process_that_hangs_ends_the_start(
    config: str, transport: TransportName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(config, tmp_path, monkeypatch)
    monkeypatch.setattr(settings, "_SOURCE_SECONDS", 0.5)
    with pytest.raises(Unavailable, match=LATE.format("0.5")):
        async with open_dynamodb(table, NOBODY, "eu-central-1", transport=transport):
            pass
    await ends_once(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("transport", get_args(TransportName))
async def test_a_process_that_hangs_when_credentials_expire(
    transport: TransportName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests fail well before their deadline. There is one process for all of them, which ends with the store."""
    members = {"Version": 1, "AccessKeyId": "AKIA", "SecretAccessKey": "hunter2"}
    (tmp_path / "answer").write_text(json.dumps({**members, "Expiration": "2020-01-01T00:00:00Z"}))
    script = "test -e first && { echo $$ >> started; sleep 600; }; touch first; cat answer"
    configure(f"credential_process = sh -c '{script}'", tmp_path, monkeypatch)
    async with open_dynamodb(table, NOBODY, "eu-central-1", transport=transport, deadline=2) as store:
        sent = await asyncio.gather(*(store.send(Query("A")) for _ in range(8)), return_exceptions=True)
        assert {type(each) for each in sent} == {Unavailable}
        assert all(LATE.format("1") in str(each) for each in sent)
        assert is_running(tmp_path)
    # The event loop may not run again.
    assert not is_running(tmp_path)


class Temporary:
    """Credentials whose source may hang when they are to be refreshed."""

    left = 3600
    asked = 0
    hangs = True

    def refresh_needed(self, refresh_in: int | None) -> bool:
        return self.left < (900 if refresh_in is None else refresh_in)

    async def get_frozen_credentials(self) -> ReadOnlyCredentials:
        if self.refresh_needed(None):
            self.asked += 1
            await asyncio.sleep(600 if self.hangs else 0)
        return ReadOnlyCredentials(f"AKIA{self.asked}", "hunter2", None)


async def test_credentials_are_used_until_they_expire() -> None:
    loaded = Temporary()
    checked = settings._CheckedCredentials(loaded, 0.2)
    first = await checked.get_frozen_credentials()
    for loaded.left in (800, 1):
        assert await checked.get_frozen_credentials() is first
    loaded.left = -1
    with pytest.raises(settings.UnusableCredentials, match=LATE.format("0.2")):
        await checked.get_frozen_credentials()
    assert loaded.asked == 1


async def test_credentials_of_a_quarter_of_an_hour_are_replaced_by_newer_ones() -> None:
    """AWS's library would refresh them at each request."""
    loaded = Temporary()
    loaded.hangs, loaded.left = False, 899
    checked = settings._CheckedCredentials(loaded, 1)
    first = await checked.get_frozen_credentials()
    loaded.left = 700
    assert await checked.get_frozen_credentials() is first
    loaded.left = 30
    assert await checked.get_frozen_credentials() is first
    assert checked.loading is not None
    await checked.loading
    loaded.left = 899
    assert (await checked.get_frozen_credentials()).access_key == "AKIA2"
    assert loaded.asked == 2
