"""The undocumented parts of uvicorn that are used. No other module names them, except for the two protocol classes,
which modules of `connections` import: httptools may not be installed, and h11 is not needed if it is.
`tests/server/test_uvicorn_internals.py` holds all to the pinned version.

Of both protocol classes, for `connections.guarded`:

- `cycle` is the newest request. It has `response_started`, `response_complete`, `disconnected`, `keep_alive`, and
  `message_event`, which wakes an application that waits for its body. A disconnected cycle sends nothing.
- `on_response_complete` is called after the last byte of each answer, and starts the next request of the connection.
- `flow`, a `FlowControl`, pauses and resumes the transport. A cycle waits for `flow.drain` before it writes.
- `app` is the application, in a `ProxyHeadersMiddleware`, whose `trusted_hosts` are those of the proxies.
- `tasks` are the requests of all connections that are in the application.
- `shutdown` lets the running request finish, and `_unset_keepalive_if_required` stops the timer of idle connections.

Of `HttpToolsProtocol`, for `connections.httptools_protocol`: `pipeline` has the requests that wait for their turn, the
newest first; `_start_asgi_task` starts a request; `headers` is the list of fields that the parser adds to; the
parser calls `on_message_begin`, `on_headers_complete`, `on_body` and
`on_message_complete`, which are written anew. A cycle has `body`, `more_body`, `default_headers` and `access_log`.

Of `H11Protocol`, for `connections.h11_protocol`: `conn` is the h11 connection; `handle_events` takes all events from it
until NEED_DATA or PAUSED; `_should_upgrade` is asked for each request.

Of both, for a connection that becomes a WebSocket: `_get_upgrade` returns what the request asks for, from `headers`;
`config`, `server_state` and `app_state` are what uvicorn has given; `connections` are those of the server. h11's class calls
`handle_websocket_upgrade`.

Of `WSProtocol`, for `connections.websocket`: `conn` is the wsproto connection, whose events `handle_events` passes to
`handle_connect`, `handle_message`, `handle_close`, `handle_ping` and `handle_pong`; `queue` has the messages that wait, `buffer`
an incomplete one; `read_paused` is whether it has stopped to read because of them, `writable` whether the client takes what is
written; `close_sent` and `disconnected` are about the end.

Of `uvicorn.Server`, for `processes.server`: `startup` runs in the event loop, `servers` has the listening servers, and
`startup` makes connections by `config.http_protocol_class`, with `server_state` and `lifespan.state`;
`capture_signals` raises the signals that ended it once more.

Of `Process` and `Multiprocess`, for `processes.workers`: a `Process` answers pings in a thread (`pong`) and serves in
`target`; `Multiprocess` calls `init_processes`, `keep_subprocess_alive` twice a second, and `terminate_all` and
`join_all` at the end.

`ChangeReload` restarts a server when files change. `AutoHTTPProtocol` is the class of the installed parser. A worker
that ends with `STARTUP_FAILURE` is not started again.
"""

from __future__ import annotations

from uvicorn.config import STARTUP_FAILURE as STARTUP_FAILURE
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware as ProxyHeadersMiddleware
from uvicorn.protocols.http.auto import AutoHTTPProtocol as AutoHTTPProtocol
from uvicorn.protocols.http.flow_control import FlowControl as FlowControl
from uvicorn.supervisors import ChangeReload as ChangeReload
from uvicorn.supervisors import Multiprocess as Multiprocess
from uvicorn.supervisors.multiprocess import Process as Process
