"""Sends commands and scripts to Redis, each of them only once.

Queues, references and links are written once, as coroutines. With a client that blocks, nothing that they await makes
them wait: run takes their result at the first step. With a client of redis.asyncio they wait in the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import redis
import redis.asyncio
import redis.asyncio.client
import redis.client
import redis.exceptions

from .announce import Announced
from .cluster import MOVED, Cluster
from .errors import ArgumentsError, DelayedError, FullError, UnavailableError, UnknownError
from .scripts import script
from .text import of_redis

P = ParamSpec('P')
S = TypeVar('S')
T = TypeVar('T')

_CALLS = 32
_MOVING = 5.0  # seconds for which a slot of a cluster may be on its way to another node
_ASK_EVERY = 1.0  # seconds for which a connection's server is taken to have the role that it had
_ANSWERS = (
    redis.exceptions.ResponseError,
    redis.exceptions.AuthenticationError,
    redis.exceptions.AuthorizationError,
)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine over a client that blocks, and returns its result."""
    try:
        coroutine.send(None)
    except StopIteration as e:
        result: T = e.value
        return result
    coroutine.close()
    raise RuntimeError('it waits for an event loop: expected a client that blocks')


class Blocking(Generic[S, P, T]):
    """A method of a class that waits where the other, which has the documentation, is a coroutine."""

    def __init__(self, method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, owner: S, _: object = None) -> Callable[P, T]:
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return run(self._method(owner, *args, **kwargs))

        return call


def gone(error: BaseException) -> bool:
    """Returns whether an answer says that the server cannot serve the connection any more, or not for long: it has
    become a replica, or loads the data of its master. Nothing was run then."""
    kinds = redis.exceptions.ReadOnlyError, redis.exceptions.BusyLoadingError, redis.exceptions.MasterDownError
    # Clients of Sentinel raise another error while they handle the first one.
    if isinstance(error, kinds) or isinstance(error.__context__, redis.exceptions.ReadOnlyError):
        return True
    if not isinstance(error, redis.exceptions.ResponseError):
        return False
    # Before version 7, Redis puts other text in front where a script has called the command.
    text = of_redis(error)
    marks = '-READONLY ', '-MASTERDOWN ', '-LOADING ', 'on a stale replica', 'instance state changed'
    return any(mark in text for mark in marks)


def explain(what: str, error: BaseException, *, reads: bool = False) -> DelayedError:
    """Converts the error of a command that was sent into one that says whether Redis may have written something.

    what names the command. reads says that the command changes nothing.
    """
    text = of_redis(error)
    if isinstance(error, redis.exceptions.BusyLoadingError):
        return UnavailableError(f'{what}: Redis has only just started: {text}')
    if gone(error):
        return UnavailableError(f'{what}: nothing was written, for another server is the master now: {text}')
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
_links: weakref.WeakKeyDictionary[Any, Link] = weakref.WeakKeyDictionary()


def most_calls(client: Any) -> int:
    """Returns how many calls of a client may be under way at a time. Further calls wait, so that they do not ask for
    more connections than the client's pool has."""
    return max(1, min(_CALLS, getattr(client.connection_pool, 'max_connections', _CALLS) // 2))


def patience(connection: Any) -> int:
    """Returns how long to wait for replicas, in ms. It is shorter than the connection's timeout, so that Redis can
    answer how many replicas have confirmed."""
    limit: float | None = getattr(connection, 'socket_timeout', None)
    return max(1, int(800 * min(5.0, limit if limit is not None else 5.0)))


class Link:
    """Sends commands over the connections of a client of redis-py. Threads may share it, or coroutines of one loop.

    It bypasses the client's own retries, which would enqueue a task twice when only the reply was lost. It returns
    replies as bytes, even if the client decodes.

    An address may stay while the server behind it changes. Open connections still lead to the old one, which refuses
    writes for ever, or takes them although nobody else reads them. So all connections are given up when an answer shows
    that (see gone), or when a server has another role or other data than the one before: each new connection is asked
    for them, and others when they are used and were not asked for a second. Those of an epoch that has passed are
    dialled anew.
    """

    name = 'redis.Redis'
    kind: Any = (redis.Redis, redis.client.Pipeline)
    rest: Any = staticmethod(time.sleep)

    def __init__(self, client: Any) -> None:
        self.client = client
        self.announced = Announced()
        self.epoch = 0
        self._server: tuple[bytes, bytes] | None = None  # role and replication id, as the last one answered
        self._mute = False  # servers do not let us ask
        self._verified = 0.0
        self.most = most_calls(client)
        self._semaphore: Any = threading.BoundedSemaphore(self.most)

    @classmethod
    def of(cls, client: Any) -> Link:
        """Returns the link of a client: all queues of a client share one."""
        single, pipeline = cls.kind
        one = client.any() if isinstance(client, Cluster) else client
        if isinstance(client, (redis.RedisCluster, redis.asyncio.RedisCluster)):
            raise ArgumentsError(f'a RedisCluster: expected Delayed with the URL of the cluster, or a {cls.name}')
        if not isinstance(one, single) or isinstance(one, pipeline):
            raise ArgumentsError(f'expected a {cls.name}, found {type(one).__module__}.{type(one).__name__}')
        with _lock:
            link = _links.get(client)
            if link is None:
                link = _links[client] = cls(client)
            return link

    async def do(self, done: Any) -> Any:
        """Returns the result of a call of the client, which has been waited for already."""
        return done

    def places(self) -> Any:
        """The semaphore that limits how many calls are under way."""
        return self._semaphore

    def cut(self, connection: Any) -> Any:
        """Closes a connection."""
        return connection.disconnect()

    def give_up(self, epoch: int) -> None:
        """Gives up all connections of an epoch. In a cluster, calls ask the nodes instead, which know who has a key."""
        if epoch == self.epoch and not isinstance(self.client, Cluster):
            self.epoch += 1

    async def meet(self, connection: Any) -> None:
        """Takes a new connection, and gives up earlier ones if they lead to another server."""
        if not self._mute and not isinstance(self.client, Cluster):
            who = await self._ask(connection)
            if self._server is not None and who != self._server and who[0]:
                self.give_up(self.epoch)
            self._server = who if who[0] else None
        self._stamp(connection)

    async def verify(self) -> None:
        """Asks a server for its role, at most once a second. Who uses a connection that gets no answers looks then
        whether its epoch has passed."""
        now = time.monotonic()
        if now - self._verified >= _ASK_EVERY and not self._mute and not isinstance(self.client, Cluster):
            self._verified = now
            with contextlib.suppress(DelayedError):
                await self.send('PING')

    def current(self, connection: Any) -> bool:
        """Returns whether a connection is not given up."""
        return connection is None or bool(connection.godelayed[0] == self.epoch)

    def adopt(self, connection: Any) -> None:
        """Notes a connection that a subscription has taken from the pool, unless it is known."""
        if connection is not None and not hasattr(connection, 'godelayed'):
            self._stamp(connection)

    def drop(self, connection: Any) -> None:
        """Notes that a subscription is about to close its connection, so that its next user dials anew."""
        if connection is not None:
            self._stamp(connection)

    def _stamp(self, connection: Any) -> None:
        connection.godelayed = self.epoch, time.monotonic()

    async def _freshen(self, connection: Any) -> None:
        """Dials a connection anew if it is given up, or leads to a server that is no master or not the last one."""
        epoch, asked = getattr(connection, 'godelayed', (self.epoch, None))
        if asked is None:  # it is new, or the program has used it until now
            await self.meet(connection)
            return
        if epoch == self.epoch:
            if self._mute or time.monotonic() - asked < _ASK_EVERY or isinstance(self.client, Cluster):
                return
            try:
                who = await self._ask(connection)
            except (redis.exceptions.RedisError, OSError):
                pass  # nothing was sent but the question
            else:
                if who[0] != b'slave' and (self._server is None or who == self._server):
                    self._server = who if who[0] else None
                    self._stamp(connection)
                    return
        await self.do(self.cut(connection))
        await self.do(connection.connect())
        await self.meet(connection)

    async def _ask(self, connection: Any) -> tuple[bytes, bytes]:
        """Returns the server's role and its replication id, which changes when another server becomes the master. What
        is unknown is empty."""
        for command in (('INFO', 'replication'), ('ROLE',)):
            try:
                await self.do(connection.send_command(*command))
                reply = await self.do(connection.read_response(disable_decoding=True))
            except redis.exceptions.ResponseError:  # the user may not ask
                continue
            reply = reply.encode() if isinstance(reply, str) else reply
            if isinstance(reply, bytes):
                fields = dict(line.split(b':', 1) for line in reply.split() if line.count(b':') == 1)
                role, data = fields.get(b'role', b''), fields.get(b'master_replid', b'')
            else:
                role, data = reply[0], b''
            if role:
                return role, data
        self._mute = True
        return b'', b''

    async def send(self, *command: Any) -> Any:
        """Sends a command that only reads and returns the undecoded reply.

        Errors are those of this package.
        """
        try:
            return await self._once(str(command[0]), command, next(iter(command[1:]), ''))
        except redis.exceptions.RedisError as e:
            raise explain(str(command[0]), e, reads=True) from e

    async def run(self, name: str, keys: Sequence[str | bytes], args: Sequence[Any] = (), wait: int = 0) -> Any:
        """Runs the script of a name, which Redis may not know yet.

        It never runs twice. `wait` is the number of replicas that must confirm that they have what it wrote.
        """
        found = script(name)
        try:
            try:
                return await self._once(name, ('EVALSHA', found.sha, len(keys), *keys, *args), keys[0], wait)
            except redis.exceptions.NoScriptError:
                return await self._once(name, ('EVAL', found.source, len(keys), *keys, *args), keys[0], wait)
        except redis.exceptions.RedisError as e:
            raise explain(name, e, reads=found.reads) from e

    async def _once(self, what: str, command: tuple[Any, ...], key: str | bytes, wait: int = 0) -> Any:
        places = self.places()
        await self.do(places.acquire())
        try:
            if isinstance(self.client, Cluster):
                return await self._on_node(self.client, what, command, key, wait)
            return await self._on_connection(self.client.connection_pool, what, command, wait)
        finally:
            places.release()

    async def _on_node(self, cluster: Cluster, what: str, command: tuple[Any, ...], key: str | bytes, wait: int) -> Any:
        """Sends a command to the node that has its key, and again where that node has not run it."""
        end = time.monotonic() + _MOVING
        while True:
            try:
                return await self._on_connection((await self.master(cluster, key)).connection_pool, what, command, wait)
            except MOVED as e:
                cluster.forget()
                if time.monotonic() > end:
                    text = f'{what}: nothing was run, for no node of the cluster has had its slot for {_MOVING:g} s'
                    raise UnavailableError(f'{text}: {of_redis(e)}') from e
                await self.do(self.rest(_MOVING / 50))
            except redis.exceptions.ResponseError:
                raise
            except (DelayedError, redis.exceptions.RedisError):
                cluster.forget()  # a replica may take over
                raise

    async def master(self, cluster: Cluster, key: str | bytes) -> Any:
        """Returns the client of the node that has a key. Raises UnavailableError if nobody knows it."""
        error: Exception | None = None
        for client in () if cluster.master(key) is not None else cluster.known():
            try:
                reply = await self._on_connection(client.connection_pool, 'CLUSTER SLOTS', ('CLUSTER', 'SLOTS'), 0)
                cluster.learn(reply, client)
                break
            except (DelayedError, redis.exceptions.RedisError) as e:
                error = e
        found = cluster.master(key)
        if found is None:
            text = f'no node of the cluster says who has the key {key!r}'
            raise UnavailableError(f'{text}: {of_redis(error)}' if error else text) from error
        return found

    async def _on_connection(self, pool: Any, what: str, command: tuple[Any, ...], wait: int) -> Any:
        try:
            connection: Any = await self.do(pool.get_connection())
        except redis.exceptions.RedisError as e:
            raise unreachable(what, e) from e
        try:
            try:
                await self._freshen(connection)
            except (redis.exceptions.RedisError, OSError) as e:
                raise unreachable(what, e) from e
            if wait:
                return await self._waiting(what, connection, command, wait)
            await self.do(connection.send_command(*command))
            return await self.do(connection.read_response(disable_decoding=True))
        except redis.exceptions.ResponseError as e:
            if gone(e):
                await self._leave(connection)
            raise
        except BaseException as e:
            if gone(e):
                await self._leave(connection)
            else:
                await self.do(self.cut(connection))
            raise
        finally:
            await self.do(pool.release(connection))

    async def _leave(self, connection: Any) -> None:
        """Closes a connection whose server cannot serve it any more, and gives up the others."""
        self.give_up(connection.godelayed[0])
        await self.do(self.cut(connection))

    async def _waiting(self, what: str, connection: Any, command: tuple[Any, ...], wait: int) -> Any:
        """Sends a command, and WAIT after it on the same connection."""
        within = patience(connection)
        await self.do(connection.send_packed_command(connection.pack_commands([command, ('WAIT', wait, within)])))
        replies: list[Any] = []
        for _ in range(2):
            try:
                replies.append(await self.do(connection.read_response(disable_decoding=True)))
            except redis.exceptions.ResponseError as e:
                replies.append(e)
        reply, confirmed = replies
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(confirmed, BaseException):
            raise UnknownError(
                f'{what}: it was enqueued, and whether {wait} replicas have it is unknown: WAIT: {confirmed}'
            ) from confirmed
        if confirmed < wait:
            raise UnknownError(
                f'{what}: it was enqueued, and {confirmed} of {wait} replicas have confirmed it within {within} ms'
            )
        return reply


class AsyncLink(Link):
    """Link for a client of redis.asyncio."""

    name = 'redis.asyncio.Redis'
    kind: Any = (redis.asyncio.Redis, redis.asyncio.client.Pipeline)
    rest: Any = staticmethod(asyncio.sleep)
    _loop: asyncio.AbstractEventLoop | None = None

    async def do(self, done: Any) -> Any:
        return await done

    def places(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._semaphore = loop, asyncio.Semaphore(self.most)
        return self._semaphore

    def cut(self, connection: Any) -> Any:
        return connection.disconnect(nowait=True)
