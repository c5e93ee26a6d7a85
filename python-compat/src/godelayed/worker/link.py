"""Long-lived connections for the loops of a worker, and calls of scripts over them."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

import redis
import redis.exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from .. import link as shared
from ..cluster import MOVED, Cluster, slot_of
from ..errors import DelayedError, UnavailableError
from ..kinds import is_list
from ..scripts import script
from ..text import of_redis

CALL_TIMEOUT = 5.0  # timeout of a call in seconds

# Options that a pool adds for features that these connections do not use.
_FOREIGN = ('maint_notifications', 'oss_cluster_maint', 'maintenance_', 'orig_', 'cache', 'event_dispatcher')


class UnreachableError(DelayedError):
    """There was no connection: nothing was sent."""


class UnansweredError(DelayedError):
    """The answer was lost: the command may or may not have run."""


class RefusedError(DelayedError):
    """Redis answered with an error. A script may have run in part."""


class WrongTypeError(RefusedError):
    """A key has another type than the command needs: another program uses it."""


class ReplyError(DelayedError):
    """The answer of Redis does not have the script's form; another version of the scripts may be in use."""


def size_of(reply: Any) -> str:
    """Describes a reply for an error without its content, which may be messages with arguments."""
    return str(len(reply)) if is_list(reply) else type(reply).__name__


def may_have_run(error: BaseException) -> bool:
    """Returns whether Redis may have written something in spite of the error."""
    return not isinstance(error, UnreachableError)


class Source:
    """Makes connections with the options of a client of redis-py, but without its retries: a claim must never be sent
    twice. In a cluster, they lead to the node that has a key."""

    def __init__(self, client: redis.Redis | Cluster, key: str = '') -> None:
        self._link = shared.Link.of(client)  # raises an error if the client cannot be used
        self.client = client
        self._key = key

    def of(self, key: str) -> Source:
        """Returns the source of connections to where a key is."""
        return Source(self.client, key) if isinstance(self.client, Cluster) else self

    @property
    def slot(self) -> int:
        """The slot of the key, 0 without a cluster."""
        return slot_of(self._key) if isinstance(self.client, Cluster) else 0

    def moved(self) -> None:
        """Notes that the key may be on another node now."""
        if isinstance(self.client, Cluster):
            self.client.forget()

    def current(self, connection: Any) -> bool:
        """Returns whether a connection leads to the server that serves now, as far as is known."""
        return self._link.current(connection)

    def give_up(self, connection: Any) -> None:
        """Notes that the server of a connection cannot serve any more: all connections are dialled anew."""
        if connection is not None:
            self._link.give_up(connection.godelayed[0])
        self.moved()

    def connect(self, timeout: float) -> Any:
        """Returns a new connection. timeout, in seconds, holds for each answer, and for connecting as well."""
        try:
            client: Any = self.client
            if isinstance(client, Cluster):
                client = shared.run(self._link.master(client, self._key))
            pool: Any = client.connection_pool
            kwargs = {name: value for name, value in pool.connection_kwargs.items() if not name.startswith(_FOREIGN)}
            kwargs.update(
                protocol=2,
                decode_responses=False,
                socket_timeout=timeout,
                socket_connect_timeout=min(timeout, CALL_TIMEOUT, kwargs.get('socket_connect_timeout') or CALL_TIMEOUT),
                health_check_interval=0,
                retry_on_timeout=False,
                retry_on_error=[],
                retry=Retry(NoBackoff(), 0),
            )
            connection = pool.connection_class(**kwargs)
            connection.connect()
            shared.run(self._link.meet(connection))
        except (redis.exceptions.RedisError, OSError, UnavailableError) as e:
            self.moved()
            raise UnreachableError(f'connecting to Redis: {e or type(e).__name__}') from e
        return connection


class Link:
    """One connection, made when it is needed. It belongs to one thread at a time; other threads may only call cut."""

    def __init__(self, source: Source, timeout: float = CALL_TIMEOUT) -> None:
        self.source = source
        self.timeout = timeout
        self.dials = 0  # connections that were made
        self.on_dial: Callable[[], None] = lambda: None
        self._connection: Any = None
        self._cut = False

    @property
    def connected(self) -> bool:
        return self._connection is not None

    @property
    def current(self) -> bool:
        """Whether there is a connection that is not given up."""
        connection = self._connection
        return connection is not None and self.source.current(connection)

    def open(self) -> bool:
        """Connects unless there is a connection that is not given up, and returns whether it has made a new one."""
        if self._connection is not None:
            if self.source.current(self._connection):
                return False
            self.hang_up()
        if self._cut:
            raise UnreachableError('the connection was given up')
        self._connection = self.source.connect(self.timeout)
        if self._cut:  # cut was called meanwhile
            self.hang_up()
            raise UnreachableError('the connection was given up')
        self.dials += 1
        self.on_dial()
        return True

    def hang_up(self) -> None:
        """Closes the connection. The next call makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(redis.exceptions.RedisError, OSError):
                connection.disconnect()

    close = hang_up

    def cut(self) -> None:
        """Ends the call that is under way, and all later ones."""
        self._cut = True
        connection = self._connection
        sock = getattr(connection, '_sock', None)
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def send(self, *command: Any) -> None:
        """Sends a command without waiting for its answer."""
        self.open()
        try:
            try:
                self._connection.send_command(*command, check_health=False)
            except UnicodeEncodeError:  # nothing is sent yet: ids and keys of strangers may be no UTF-8, see text_of
                self._connection.send_command(*map(_as_read, command), check_health=False)
        except (redis.exceptions.RedisError, OSError) as e:
            self.hang_up()
            raise UnansweredError(f'{command[0]}: {e or type(e).__name__}') from e
        except BaseException:
            self.hang_up()
            raise

    def receive(self) -> Any:
        """Waits for an answer."""
        try:
            return self._connection.read_response()
        except redis.exceptions.ResponseError:
            raise
        except redis.exceptions.BusyLoadingError as e:  # for redis-py it is no answer
            raise self._refused('Redis', e) from e
        except (redis.exceptions.RedisError, OSError) as e:
            self.hang_up()
            raise UnansweredError(f'no answer from Redis: {e or type(e).__name__}') from e
        except BaseException:
            self.hang_up()
            raise

    def readable(self, timeout: float) -> bool:
        """Returns whether data arrives within timeout seconds."""
        try:
            return bool(self._connection.can_read(timeout=timeout))
        except (redis.exceptions.RedisError, OSError) as e:
            self.hang_up()
            raise UnansweredError(f'no answer from Redis: {e or type(e).__name__}') from e

    def do(self, *command: Any) -> Any:
        """Sends one command, once, and returns its answer."""
        try:
            self.send(*command)
            return self.receive()
        except redis.exceptions.ResponseError as e:
            raise self._refused(str(command[0]), e) from e

    def run(self, name: str, keys: Sequence[str], *args: Any) -> Any:
        """Runs the script of a name. It sends it a second time only if Redis answers that it does not know it."""
        found = script(name)
        try:
            try:
                self.send('EVALSHA', found.sha, len(keys), *keys, *args)
                return self.receive()
            except redis.exceptions.NoScriptError:
                self.send('EVAL', found.source, len(keys), *keys, *args)
                return self.receive()
        except redis.exceptions.ResponseError as e:
            raise self._refused(name, e) from e

    def _refused(self, what: str, error: redis.exceptions.RedisError) -> DelayedError:
        text = of_redis(error)
        if shared.gone(error):
            self.source.give_up(self._connection)
            self.hang_up()
            return UnreachableError(f'{what}: not run, for the server is a replica, or loads its data: {text}')
        if isinstance(error, MOVED):
            self.source.moved()
            self.hang_up()
            return UnreachableError(f'{what}: not run, for its slot is elsewhere or on its way: {text}')
        refused = WrongTypeError if 'WRONGTYPE' in text else RefusedError
        return refused(f'{what}: {text}')


def _as_read(value: Any) -> Any:
    """Returns a text as the bytes that text_of has read."""
    return value.encode('utf-8', 'surrogateescape') if isinstance(value, str) else value


class Backoff:
    """Spaces the attempts of one loop while Redis is away: 50 ms, doubled up to 1 s, ± 50 %."""

    def __init__(self) -> None:
        self._failures = 0

    def next(self) -> float:
        d = min(0.05 * (1 << min(self._failures, 6)), 1.0)
        self._failures += 1
        return jitter(d, 0.5)

    def reset(self) -> None:
        self._failures = 0


def jitter(d: float, part: float) -> float:
    """Returns d, changed at random by up to the given part of it in either direction."""
    return d * (1 + part * (2 * random.random() - 1))


class Complaints:
    """Limits how often a loop logs the same error: the first time, then once in ten seconds with a count."""

    INTERVAL = 10.0

    def __init__(self) -> None:
        self._logged: float | None = None
        self._skipped = 0

    def trouble(self, log: Any, text: str, error: BaseException) -> None:
        now = time.monotonic()
        if self._logged is not None and now - self._logged < self.INTERVAL:
            self._skipped += 1
            return
        more = f' ({self._skipped} more times)' if self._skipped else ''
        self._logged, self._skipped = now, 0
        log.warning('%s: %s%s', text, error, more)

    def relief(self, log: Any, text: str) -> None:
        if self._logged is not None:
            self._logged, self._skipped = None, 0
            log.info(text)
