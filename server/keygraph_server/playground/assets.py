"""The browser files of the playground: their list, their installation, and a check of installed files.

`manifest.json` pins each file by package, version and hash, in the order in which the page loads them. npm installs
them from `package-lock.json`. They are never part of the source tree.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_NPM_INSTALL = (
    "ci",
    "--ignore-scripts",  # only files are needed, so no code of a package has to run
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    "--fetch-retries=1",
    "--fetch-timeout=20000",
)
_NPM_SECONDS = 120

ASSETS_FOLDER = _HERE / "assets"


class AssetError(Exception):
    """The files cannot be installed. The message is one line with the reason."""


@dataclass(frozen=True)
class Asset:
    """One file of an npm package.

    `integrity` is the value of the HTML attribute of that name (Subresource Integrity, section 3.1): the name of the
    hash, a hyphen, and the hash in base64.
    """

    package: str
    version: str
    path: str
    integrity: str
    is_lazy: bool = False
    """Whether the page loads it only when it is needed."""

    @property
    def address(self) -> str:
        """The path of the file, both in the folder of installed assets and on the CDN."""
        return f"{self.package}@{self.version}/{self.path}"

    @property
    def is_stylesheet(self) -> bool:
        return self.path.endswith(".css")

    def is_content(self, content: bytes) -> bool:
        """Whether these bytes are the content of the pinned file."""
        return self.integrity == f"sha384-{base64.b64encode(hashlib.sha384(content).digest()).decode()}"


def read_manifest() -> tuple[Asset, ...]:
    """The pinned files, in the order in which the page loads them."""
    rows: list[dict[str, Any]] = json.loads((_HERE / "manifest.json").read_text("utf-8"))
    return tuple(Asset(**row) for row in rows)


def holds_all_assets(folder: Path, manifest: Sequence[Asset]) -> bool:
    """Whether the folder has every pinned file, unchanged."""
    return all(
        (folder / asset.address).is_file() and asset.is_content((folder / asset.address).read_bytes())
        for asset in manifest
    )


def install_assets(folder: Path, manifest: Sequence[Asset], node_modules: Path | None = None) -> None:
    """Copies the pinned files into `folder`, from `node_modules` or from a fresh `npm ci`.

    Verifies every file before it writes the first one, so a failure leaves the folder unchanged.

    Raises:
        AssetError: npm is missing or fails, or a file is missing or is not the pinned one.
    """
    if node_modules is not None:
        _copy_assets(node_modules, folder, manifest)
        return
    with tempfile.TemporaryDirectory(prefix="keygraph-playground-") as scratch:
        _run_npm(Path(scratch))
        _copy_assets(Path(scratch) / "node_modules", folder, manifest)


def _copy_assets(node_modules: Path, folder: Path, manifest: Sequence[Asset]) -> None:
    contents: dict[str, bytes] = {}
    for asset in manifest:
        try:
            content = (node_modules / asset.package / asset.path).read_bytes()
        except OSError as error:
            raise AssetError(f"{asset.package} has no {asset.path}") from error
        if not asset.is_content(content):
            raise AssetError(f"{asset.path} of {asset.package} is not the file that manifest.json pins")
        contents[asset.address] = content
    # Remove files of an earlier manifest.
    shutil.rmtree(folder, ignore_errors=True)
    for address, content in contents.items():
        target = folder / address
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _run_npm(scratch: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise AssetError("npm was not found")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_HERE / name, scratch)
    try:
        done = subprocess.run(
            [npm, *_NPM_INSTALL],
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_NPM_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise AssetError(f"npm did not finish within {_NPM_SECONDS} seconds") from error
    except OSError as error:
        raise AssetError(f"npm could not be started: {error}") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise AssetError(f"npm failed: {lines[0] if lines else f'exit code {done.returncode}'}")
