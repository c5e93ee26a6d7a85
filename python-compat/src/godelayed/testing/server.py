"""A Redis within the process, whose time stands still until a test moves it on."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import redis
import redis.asyncio

try:
    import fakeredis

    importlib.import_module('lupa')  # without it, fakeredis knows no scripts
except ImportError as e:
    raise ImportError('godelayed.testing: expected fakeredis with Lua: pip install "godelayed[testing]"') from e


class Server:
    """Keys of its own, and clients for them. Threads may share it. Keys that expire do so by the real time."""

    def __init__(self) -> None:
        self._fake = fakeredis.FakeServer(version=(7, 0))
        self.ms = time.time_ns() // 1_000_000  # its time, since 1970

    def _time(self) -> list[bytes]:
        return [str(self.ms // 1000).encode(), str(self.ms % 1000 * 1000).encode()]

    def client(self) -> redis.Redis:
        """Returns a new client."""
        return fakeredis.FakeRedis(server=self._fake, connection_class=_connections(self._time))

    def async_client(self) -> redis.asyncio.Redis:
        """Returns a new client for asyncio."""
        return fakeredis.FakeAsyncRedis(server=self._fake, connection_class=_async_connections(self._time))


def _connections(clock: Callable[[], list[bytes]]) -> Any:
    class Connection(fakeredis.FakeRedisConnection):
        def _connect(self) -> Any:
            sock: Any = super()._connect()
            sock.time = clock  # answers the command TIME, in scripts too
            return sock

    return Connection


def _async_connections(clock: Callable[[], list[bytes]]) -> Any:
    class Connection(fakeredis.FakeAsyncRedisConnection):
        async def _connect(self) -> None:
            await super()._connect()
            sock: Any = self._sock
            sock.time = clock

    return Connection
