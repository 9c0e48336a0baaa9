"""The environment of a run: the machine and the versions."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

_PACKAGES = {
    "strawberry": ("strawberry-graphql", "aiodataloader", "aioboto3", "aiobotocore", "uvicorn"),
    "floor-plain": ("aiohttp", "orjson"),
}
_APOLLO = Path(__file__).parent / "peers" / "apollo"


def told(servers: Sequence[str]) -> str:
    """Returns the machine, and the versions of the compared software."""
    versions = [f"Python {platform.python_version()}"]
    for server, packages in _PACKAGES.items():
        if server in servers:
            versions += [f"{package} {version(package)}" for package in packages]
    if "apollo" in servers:
        versions += _node_versions()
    return (
        f"{_processor()}, {os.cpu_count()} cores, which the store, the proxy, the clients and whatever else runs share. "
        f"{', '.join(dict.fromkeys(versions))}."
    )


def _node_versions() -> list[str]:
    node = shutil.which("node") or "node"
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    asked = json.loads((_APOLLO / "package.json").read_text("utf-8"))["dependencies"]
    return [f"Node {said.lstrip('v')}", *(f"{name} {number}" for name, number in asked.items())]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
