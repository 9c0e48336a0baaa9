"""aiohttp in the place of `keygraph.engines.dynamodb.http1`: what the direct transport would cost on a general client."""

from __future__ import annotations

import aiohttp
from botocore import exceptions as boto
from yarl import URL

from keygraph.engines.dynamodb.http1 import Reply

_IDLE_SECONDS = 30.0
"""How long a connection may be idle; DynamoDB itself closes it after a minute or so."""
_CONNECTIONS = 256
_CONNECT_SECONDS = 2.5
_READ_SECONDS = 5.0


class AiohttpPool:
    """Connections to an `http:` endpoint, as many and as patient as the direct transport's are by default."""

    def __init__(self, endpoint_url: str) -> None:
        self._endpoint_url = endpoint_url
        self._url = URL(endpoint_url, encoded=True)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS, keepalive_timeout=_IDLE_SECONDS),
            timeout=aiohttp.ClientTimeout(sock_connect=_CONNECT_SECONDS, sock_read=_READ_SECONDS),
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
