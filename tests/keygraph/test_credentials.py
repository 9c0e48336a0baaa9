"""AWS credentials that cannot be had: one sentence, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from keygraph.dynamo.store import DescribeTable, Query, Request
from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb.engine import open_dynamodb
from keygraph.engines.dynamodb.transport import TransportName
from keygraph.errors import Unavailable

table = Table("Shop", partition_key="PK", sort_key="SK")
NOBODY = "http://127.0.0.1:9"
"""No request gets as far as this endpoint."""
ROLE = "role_arn = arn:aws:iam::123456789012:role/reader"
PROCESS = "the credential_process of the AWS profile failed, or does not write credentials: run it to see why"


def printing(**members: object) -> str:
    """The process that writes credentials with these members."""
    written = {"Version": 1, "AccessKeyId": "AKIA", "SecretAccessKey": "hunter2", **members}
    return f"credential_process = echo '{json.dumps(written)}'"


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
    monkeypatch.chdir(tmp_path)
    for name, file in (("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "none")):
        monkeypatch.setenv(name, str(tmp_path / file))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "config").write_text(f"[default]\n{config}\n")
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
