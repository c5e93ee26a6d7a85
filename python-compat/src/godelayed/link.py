"""Sends commands and scripts to Redis, each of them only once."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import redis
import redis.asyncio

from .announce import Announced
from .errors import ArgumentsError, DelayedError, FullError, UnavailableError, UnknownError
from .scripts import Script
from .text import of_redis

_CALLS = 32
_ANSWERS = (
    redis.exceptions.ResponseError,
    redis.exceptions.AuthenticationError,
    redis.exceptions.AuthorizationError,
)


def explain(what: str, error: BaseException, *, reads: bool = False) -> DelayedError:
    """Converts the error of a command that was sent into one that says whether Redis may have written something.

    what names the command. reads says that the command changes nothing.
    """
    text = of_redis(error)
    if isinstance(error, redis.exceptions.BusyLoadingError):
        return UnavailableError(f'{what}: Redis has only just started: {text}')
    if isinstance(error, _ANSWERS):
        if 'OOM' in text or 'MISCONF' in text or isinstance(error, redis.exceptions.OutOfMemoryError):
            return FullError(f'{what}: Redis refuses writes: {text}')
        return DelayedError(f'{what}: {text}')
    if reads:
        return UnavailableError(f'{what}: Redis did not answer: {text}')
    return UnknownError(f'{what}: Redis did not answer, and may or may not have run it: {text}')


def unreachable(what: str, error: BaseException) -> UnavailableError:
    """Returns the error of a command for which there was no connection."""
    return UnavailableError(
        f'{what}: nothing was sent, for there is no connection to Redis: {error or type(error).__name__}'
    )


_lock = threading.Lock()
_links: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def _places(client: Any) -> int:
    """Returns how many calls of a client may be under way at a time. Further calls wait, so that they do not ask for
    more connections than the client's pool has."""
    return max(1, min(_CALLS, getattr(client.connection_pool, 'max_connections', _CALLS) // 2))


def _patience(connection: Any) -> int:
    """Returns how long to wait for replicas, in ms. It is shorter than the connection's timeout, so that Redis can
    answer how many replicas have confirmed."""
    limit = getattr(connection, 'socket_timeout', None)
    return max(1, int(800 * min(5.0, limit if limit is not None else 5.0)))


def _check_replicas(what: str, reply: Any, wait: int, within: int) -> None:
    """Checks the answer to WAIT, which may be an error."""
    if isinstance(reply, BaseException):
        raise UnknownError(
            f'{what}: it was enqueued, and whether {wait} replicas have it is unknown: WAIT: {reply}'
        ) from reply
    if reply < wait:
        raise UnknownError(
            f'{what}: it was enqueued, and {reply} of {wait} replicas have confirmed it within {within} ms'
        )


class Link:
    """Sends commands over the connections of a client of redis-py. Threads may share it.

    It bypasses the client's own retries, which would enqueue a task twice when only the reply was lost. It returns
    replies as bytes, even if the client decodes.
    """

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self._places = threading.BoundedSemaphore(_places(client))
        self.announced = Announced()

    @classmethod
    def of(cls, client: redis.Redis) -> Link:
        """Returns the link of a client: all queues of a client share one."""
        if isinstance(client, redis.RedisCluster):
            raise ArgumentsError(
                'a redis.RedisCluster: expected a redis.Redis of one server or of Sentinel; clusters are not supported'
            )
        if not isinstance(client, redis.Redis) or isinstance(client, redis.client.Pipeline):
            raise ArgumentsError(f'expected a redis.Redis, found {type(client).__module__}.{type(client).__name__}')
        with _lock:
            link = _links.get(client)
            if not isinstance(link, cls):
                link = _links[client] = cls(client)
            return link

    def send(self, *command: Any) -> Any:
        """Sends a command that only reads and returns the undecoded reply.

        Errors are those of this package.
        """
        try:
            return self._once(str(command[0]), command)
        except redis.exceptions.RedisError as e:
            raise explain(str(command[0]), e, reads=True) from e

    def run(self, script: Script, keys: Sequence[str], args: Sequence[Any] = (), wait: int = 0) -> Any:
        """Runs a script, which Redis may not know yet.

        The script never runs twice. `wait` is the number of replicas that must confirm that they have what it wrote.
        """
        try:
            try:
                return self._once(script.name, ('EVALSHA', script.sha, len(keys), *keys, *args), wait)
            except redis.exceptions.NoScriptError:
                return self._once(script.name, ('EVAL', script.source, len(keys), *keys, *args), wait)
        except redis.exceptions.RedisError as e:
            raise explain(script.name, e, reads=script.reads) from e

    def _once(self, what: str, command: tuple[Any, ...], wait: int = 0) -> Any:
        with self._places:
            return self._on_connection(what, command, wait)

    def _on_connection(self, what: str, command: tuple[Any, ...], wait: int) -> Any:
        pool: Any = self.client.connection_pool
        try:
            connection: Any = pool.get_connection()
        except redis.exceptions.RedisError as e:
            raise unreachable(what, e) from e
        try:
            if wait:
                return self._waiting(what, connection, command, wait)
            connection.send_command(*command)
            return connection.read_response(disable_decoding=True)
        except redis.exceptions.ResponseError:
            raise
        except BaseException:
            connection.disconnect()
            raise
        finally:
            pool.release(connection)

    def _waiting(self, what: str, connection: Any, command: tuple[Any, ...], wait: int) -> Any:
        """Sends a command, and WAIT after it on the same connection."""
        within = _patience(connection)
        connection.send_packed_command(connection.pack_commands([command, ('WAIT', wait, within)]))
        replies: list[Any] = []
        for _ in range(2):
            try:
                replies.append(connection.read_response(disable_decoding=True))
            except redis.exceptions.ResponseError as e:
                replies.append(e)
        if isinstance(replies[0], BaseException):
            raise replies[0]
        _check_replicas(what, replies[1], wait, within)
        return replies[0]


class AsyncLink:
    """Link for asyncio."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        self.client = client
        self._most = _places(client)
        self.announced = Announced()
        self._loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def of(cls, client: redis.asyncio.Redis) -> AsyncLink:
        """Returns the link of a client: all queues of a client share one."""
        if isinstance(client, redis.asyncio.RedisCluster):
            raise ArgumentsError(
                'a redis.asyncio.RedisCluster: expected a redis.asyncio.Redis of one server or of Sentinel; clusters '
                'are not supported'
            )
        if not isinstance(client, redis.asyncio.Redis) or isinstance(client, redis.asyncio.client.Pipeline):
            raise ArgumentsError(
                f'expected a redis.asyncio.Redis, found {type(client).__module__}.{type(client).__name__}'
            )
        with _lock:
            link = _links.get(client)
            if not isinstance(link, cls):
                link = _links[client] = cls(client)
            return link

    def _enter(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._places = loop, asyncio.Semaphore(self._most)
        return self._places

    async def send(self, *command: Any) -> Any:
        """Sends a command that only reads and returns the undecoded reply.

        Errors are those of this package.
        """
        try:
            return await self._once(str(command[0]), command)
        except redis.exceptions.RedisError as e:
            raise explain(str(command[0]), e, reads=True) from e

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Any] = (), wait: int = 0) -> Any:
        """Runs a script, which Redis may not know yet.

        The script never runs twice. `wait` is the number of replicas that must confirm that they have what it wrote.
        """
        try:
            try:
                return await self._once(script.name, ('EVALSHA', script.sha, len(keys), *keys, *args), wait)
            except redis.exceptions.NoScriptError:
                return await self._once(script.name, ('EVAL', script.source, len(keys), *keys, *args), wait)
        except redis.exceptions.RedisError as e:
            raise explain(script.name, e, reads=script.reads) from e

    async def _once(self, what: str, command: tuple[Any, ...], wait: int = 0) -> Any:
        async with self._enter():
            return await self._on_connection(what, command, wait)

    async def _on_connection(self, what: str, command: tuple[Any, ...], wait: int) -> Any:
        pool: Any = self.client.connection_pool
        try:
            connection: Any = await pool.get_connection()
        except redis.exceptions.RedisError as e:
            raise unreachable(what, e) from e
        try:
            if wait:
                return await self._waiting(what, connection, command, wait)
            await connection.send_command(*command)
            return await connection.read_response(disable_decoding=True)
        except redis.exceptions.ResponseError:
            raise
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            await pool.release(connection)

    async def _waiting(self, what: str, connection: Any, command: tuple[Any, ...], wait: int) -> Any:
        """Sends a command, and WAIT after it on the same connection."""
        within = _patience(connection)
        await connection.send_packed_command(connection.pack_commands([command, ('WAIT', wait, within)]))
        replies: list[Any] = []
        for _ in range(2):
            try:
                replies.append(await connection.read_response(disable_decoding=True))
            except redis.exceptions.ResponseError as e:
                replies.append(e)
        if isinstance(replies[0], BaseException):
            raise replies[0]
        _check_replicas(what, replies[1], wait, within)
        return replies[0]
