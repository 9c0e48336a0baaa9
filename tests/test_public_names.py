"""The public names of each package: those of its `__init__`, and no others."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

PUBLIC = {
    "keygraph": {
        # What a model is declared with.
        *("Graph", "Table", "Index", "node", "edge", "record", "fields"),
        *("Many", "One", "many", "one", "stored", "field", "ref", "ID", "JSON", "Long"),
        *("Reach", "Ref", "Ranked", "reach", "ranked"),
        *("Format", "Epoch", "ULID", "KSUID"),
        *("created", "updated", "version", "new_id", "ttl", "rule"),
        *("copy", "counts", "sums", "average", "minimum", "maximum", "latest", "degree", "top", "rank"),
        *("read", "create", "update", "delete", "write", "viewer", "Viewer", "Context"),
        # What somebody needs who opens the table beside the server.
        "open_store",
        # What can go wrong.
        *("KeygraphError", "ModelError", "BadUserInput", "CorruptItem", "StoreError"),
    },
    "keygraph_resolvers": {
        *("GraphSchema", "Service", "build_schema", "check"),
        # What a document may be, and what can be seen of an operation.
        *("Limits", "NO_LIMITS", "Observation", "OperationRequest"),
    },
    "keygraph_server": set(),
    "keygraph_examples": set(),
}
PACKAGES = pytest.mark.parametrize("package", PUBLIC)


def imported(package: str) -> ModuleType:
    return importlib.import_module(package)


@PACKAGES
def test_the_names_are_those_that_are_promised(package: str) -> None:
    assert set(getattr(imported(package), "__all__", [])) == PUBLIC[package]


@PACKAGES
def test_each_name_is_there(package: str) -> None:
    module = imported(package)
    names = getattr(module, "__all__", [])
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(module, name)] == []


@PACKAGES
def test_no_other_name_is_there(package: str) -> None:
    module = imported(package)
    others = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert others == PUBLIC[package]


@PACKAGES
def test_each_package_says_what_it_is(package: str) -> None:
    assert imported(package).__doc__


@pytest.mark.parametrize("name", sorted(PUBLIC["keygraph"]))
def test_what_a_model_is_declared_with_is_described(name: str) -> None:
    value = getattr(imported("keygraph"), name)
    if getattr(value, "__module__", "").startswith("keygraph"):
        assert value.__doc__


def test_a_model_needs_keygraph_alone() -> None:
    program = (
        "import sys, keygraph_examples.commerce; "
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'keygraph_resolvers', 'keygraph_server', 'graphql',"
        " 'strawberry', 'starlette', 'uvicorn', 'aioboto3', 'boto3', 'botocore', 'typer', 'pydantic'}))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.strip() == ""
