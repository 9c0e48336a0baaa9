"""What is used of uvicorn that it does not document, in the version that is installed."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

from keygraph_server.uvicorn_internals import FlowControl, Multiprocess, Process

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "server" / "keygraph_server"

OF_BOTH = {
    "_unset_keepalive_if_required",
    "on_response_complete",
    "shutdown",
    "pause_writing",
    "resume_writing",
    "data_received",
    "eof_received",
    "_get_upgrade",
}
OF_PARSER = {"on_message_begin", "on_headers_complete", "on_body", "on_message_complete", "_start_asgi_task"}
OF_WORKERS = {"init_processes", "keep_subprocess_alive", "terminate_all", "join_all", "restart_all"}
METHODS = {
    HttpToolsProtocol: OF_BOTH | OF_PARSER,
    H11Protocol: OF_BOTH | {"handle_events", "_should_upgrade", "handle_websocket_upgrade"},
    WSProtocol: {
        *("connection_made", "connection_lost", "data_received", "pause_writing", "resume_writing"),
        *("handle_events", "handle_close", "handle_connect", "handle_message", "handle_ping", "handle_pong"),
        *("receive", "shutdown", "stop_keepalive"),
    },
    FlowControl: {"drain", "pause_reading", "resume_reading", "pause_writing", "resume_writing"},
    uvicorn.Server: {"capture_signals", "startup", "shutdown"},
    Process: {"pong", "target", "kill", "join", "terminate", "wait_until_ready"},
    Multiprocess: OF_WORKERS | {"handle_ttin"},
}
ATTRIBUTES = {
    "cycle", "flow", "transport", "loop", "client", "tasks", "conn", "pipeline", "headers", "parser", "url",
    "response_started", "response_complete", "disconnected", "keep_alive", "message_event",
    "connections", "config", "queue", "buffer", "writable", "read_paused", "close_sent",
    "servers", "server_state", "lifespan", "http_protocol_class",
    "parent_conn", "child_conn", "processes", "processes_num", "signal_queue", "should_exit", "sockets",
}  # fmt: skip


def test_the_pinned_version_is_tested() -> None:
    assert f"uvicorn=={version('uvicorn')}" in (ROOT / "constraints.txt").read_text()


def test_internals_are_named_once() -> None:
    found = {
        path.name
        for path in SERVER.rglob("*.py")
        if re.search(r"^\s*(?:from|import) uvicorn\.", path.read_text(), re.MULTILINE)
    }
    assert found == {"uvicorn_internals.py", "h11_protocol.py", "httptools_protocol.py", "websocket.py"}


def test_the_methods_are_there() -> None:
    missing = {each.__name__: names - {*dir(each)} for each, names in METHODS.items()}
    assert not any(missing.values()), (missing, version("uvicorn"))


def test_the_attributes_are_there() -> None:
    """The same, for what is set in a constructor."""
    folder = Path(uvicorn.__file__).parent
    text = "\n".join(path.read_text() for path in folder.rglob("*.py"))
    missing = {name for name in ATTRIBUTES if not re.search(rf"\bself\.{name}\b", text)}
    assert not missing, version("uvicorn")
