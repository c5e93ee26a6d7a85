"""A Redis within the process, whose time stands still until a test moves it on."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from typing import Any, cast

import redis
import redis.asyncio
from redis.exceptions import ConnectionError, OutOfMemoryError

from ..scripts import script

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
        self.fault = ''  # how it fails those whom it may: down, full, lost, or '' for not at all

    def client(self, fails: bool = False) -> redis.Redis:
        """Returns a new client, which fails if fails is set and fault says so."""
        return fakeredis.FakeRedis(server=self._fake, connection_class=_connections(self, fails))

    def async_client(self) -> redis.asyncio.Redis:
        """Returns a new client for asyncio, which fails if fault says so."""
        return fakeredis.FakeAsyncRedis(server=self._fake, connection_class=_async_connections(self))

    def clock(self) -> list[bytes]:
        """Answers the command TIME, in scripts too."""
        return [str(self.ms // 1000).encode(), str(self.ms % 1000 * 1000).encode()]

    def connecting(self) -> None:
        """Raises what a program gets that connects."""
        if self.fault == 'down':
            raise ConnectionError('connection refused, says godelayed.testing')

    def sending(self, command: Sequence[Any]) -> bool:
        """Raises what a program gets that sends a command. Returns whether its answer is to be lost."""
        if not self.fault or command[0] not in ('EVAL', 'EVALSHA'):
            return False
        enqueues = any(
            command[1] in (s.sha, s.source) for s in map(script, ('enqueue', 'enlist', 'gather', 'schedule'))
        )
        if self.fault == 'full' and enqueues:
            raise OutOfMemoryError("OOM command not allowed when used memory > 'maxmemory'.")
        return self.fault == 'lost' and enqueues


_LOST = 'the connection broke, says godelayed.testing'


def _connections(server: Server, fails: bool) -> Any:
    class Connection(fakeredis.FakeRedisConnection):
        _loses = False

        def _connect(self) -> Any:
            sock: Any = super()._connect()
            sock.time = server.clock
            return sock

        def connect(self) -> None:
            if fails:
                server.connecting()
            super().connect()

        def send_command(self, *args: Any, **kwargs: Any) -> None:
            self._loses, base = fails and server.sending(args), cast('Any', super())
            base.send_command(*args, **kwargs)

        def read_response(self, *args: Any, **kwargs: Any) -> Any:
            reply = super().read_response(*args, **kwargs)
            if self._loses:
                cast('Any', self).disconnect()
                raise ConnectionError(_LOST)
            return reply

    return Connection


def _async_connections(server: Server) -> Any:
    class Connection(fakeredis.FakeAsyncRedisConnection):
        _loses = False

        async def _connect(self) -> None:
            await super()._connect()
            sock: Any = self._sock
            sock.time = server.clock

        async def connect(self) -> None:
            server.connecting()
            await cast('Any', super()).connect()

        async def send_command(self, *args: Any, **kwargs: Any) -> None:
            self._loses = server.sending(args)
            await super().send_command(*args, **kwargs)

        async def read_response(self, *args: Any, **kwargs: Any) -> Any:
            reply = await super().read_response(*args, **kwargs)
            if self._loses:
                await cast('Any', self).disconnect(nowait=True)
                raise ConnectionError(_LOST)
            return reply

    return Connection
