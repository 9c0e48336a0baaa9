"""A server whose log nobody reads: it answers, and it stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from bench.compare.processes import free_port, full_pipe
from tests.end_to_end.processes import KEYGRAPH, START_SECONDS

pytestmark = pytest.mark.long


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_pipe_stops_neither_requests_nor_signals(tmp_path: Path, workers: int) -> None:
    with full_pipe() as pipe:
        port = free_port()
        server = subprocess.Popen(
            [KEYGRAPH, "serve", "--port", str(port), "--workers", str(workers)],
            cwd=tmp_path,
            stdout=pipe,
            stderr=pipe,
            env={**os.environ, "KEYGRAPH_LOG_LEVEL": "debug"},
            start_new_session=True,
        )
        new_connections = httpx.HTTPTransport(retries=10, limits=httpx.Limits(max_keepalive_connections=0))
        try:
            with httpx.Client(transport=new_connections, timeout=START_SECONDS) as client:
                for number in range(100):
                    if number == 50 and workers > 1:
                        server.send_signal(signal.SIGHUP)
                    query = {"query": "{ __typename }"}
                    answer = client.post(f"http://127.0.0.1:{port}/graphql", json=query)
                    assert answer.json() == {"data": {"__typename": "Query"}}
            server.send_signal(signal.SIGTERM)
            assert server.wait(START_SECONDS) == 0
        finally:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()
