"""aiohttp in the place of `keygraph.http1`: what the direct transport would cost on a general client."""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit

import aiohttp
from botocore import exceptions as boto
from yarl import URL

from keygraph.http1 import Reply
from keygraph.signing import host_of

_IDLE_SECONDS = 30.0
"""How long a connection may be idle; DynamoDB itself closes it after a minute or so."""


class AiohttpPool:
    """Connections to one endpoint."""

    def __init__(
        self,
        endpoint_url: str,
        tls: ssl.SSLContext | None,
        *,
        connections: int,
        connect_seconds: float,
        read_seconds: float,
    ) -> None:
        """`tls` is None for an `http:` endpoint; `read_seconds` is the longest silence within an answer."""
        parts = urlsplit(endpoint_url)
        # Without a user's name: aiohttp would make of it an Authorization header that is not ours.
        self._endpoint_url = f"{parts.scheme}://{host_of(parts)}{parts.path or '/'}"
        self._url = URL(self._endpoint_url, encoded=True)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=connections, ssl=tls or False, keepalive_timeout=_IDLE_SECONDS
            ),
            timeout=aiohttp.ClientTimeout(sock_connect=connect_seconds, sock_read=read_seconds),
            headers={"Accept-Encoding": "identity", "User-Agent": "keygraph"},
            skip_auto_headers=("Accept",),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def post(self, lines: str, body: bytes) -> Reply:
        """The answer, whole. Raises botocore's exceptions of connections and timeouts."""
        url = self._endpoint_url
        headers = dict(line.split(": ", 1) for line in lines.splitlines())
        try:
            async with self._session.post(
                self._url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                head = [b"%b: %b" % header for header in answer.raw_headers]
                checksum = answer.headers.get("x-amz-crc32")
                return Reply(
                    answer.status,
                    await answer.read(),
                    None if checksum is None else checksum.encode(),
                    b"\r\n".join([b"", *head]),
                )
        except aiohttp.ClientSSLError as error:
            raise boto.SSLError(endpoint_url=url, error=error) from error
        except aiohttp.ConnectionTimeoutError as error:
            raise boto.ConnectTimeoutError(endpoint_url=url, error=error) from error
        except aiohttp.ServerTimeoutError as error:
            raise boto.ReadTimeoutError(endpoint_url=url, error=error) from error
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError) as error:
            raise boto.ConnectionClosedError(endpoint_url=url, error=error) from error
        except (aiohttp.ClientConnectionError, OSError) as error:
            raise boto.EndpointConnectionError(endpoint_url=url, error=error) from error
        except aiohttp.ClientError as error:
            raise boto.HTTPClientError(error=error) from error

    async def close(self) -> None:
        """Closes every connection."""
        await self._session.close()
