"""An application's tasks: the decorator that registers functions, and the queues on which calls of them go."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import redis
import redis.asyncio

from . import aio
from . import registry as registries
from .address import client_of
from .errors import ArgumentsError
from .keys import check_name
from .options import Options
from .periodic import When, defined
from .queue import Queue
from .ref import Ref
from .registry import Backoff, Registry, described
from .signature import P, R, Signature, Typed
from .text import is_text
from .times import Seconds
from .typed import AsyncFunction, Function
from .worker.entries import Definition

if TYPE_CHECKING:
    from typing_extensions import Protocol, Unpack

    from .options import OptionValues

    class Decorator(Protocol):
        """What @task(...) applies to a function."""

        @overload
        def __call__(  # type: ignore[overload-overlap]
            self, function: Callable[P, Coroutine[Any, Any, R]], /
        ) -> CoroutineTask[P, R]: ...

        @overload
        def __call__(self, function: Callable[P, R], /) -> FunctionTask[P, R]: ...


AnyTask = TypeVar('AnyTask', bound='Task[..., Any]')

LOCAL = 'redis://localhost:6379/0'
_apps: weakref.WeakSet[Delayed] = weakref.WeakSet()
_memory: Any = None  # what all applications use instead of their servers while a test runs: see godelayed.testing
_MOST_OWNER = 128


class Delayed:
    """An application: the Redis server of its tasks, and the queue of those that name none.

    redis is a URL, a client of redis-py for one server or for Sentinel, or None for the URL in REDIS_URL, or
    redis://localhost:6379/0. Nothing connects before the first call. A URL with several hosts, redis://a:6379,b:6379,
    is that of a Redis Cluster, in which the names of queues contain a {tag}; with the parameter master its hosts are
    Sentinels: redis://s1:26379,s2:26379/0?master=main. queue is the name of the default queue; legacy, prefix, wait and
    check are those of Queue and hold for all queues. owner names the service to which the entries of periodic belong,
    up to 128 bytes; version keeps an old program, started while a new one is rolled out, from undoing what that has
    declared: nothing is declared once Redis knows a higher version of the owner. Threads may share it.
    """

    def __init__(
        self,
        redis: str | redis.Redis | None = None,
        *,
        queue: str = 'default',
        legacy: bool = False,
        prefix: str = '',
        wait: int = 0,
        check: bool = False,
        owner: str = '',
        version: int = 0,
    ) -> None:
        check_name(queue)
        if not is_text(owner) or len(owner.encode()) > _MOST_OWNER:
            raise ArgumentsError(f'owner {owner!r}: expected a str in Unicode of at most {_MOST_OWNER} bytes')
        if type(version) is not int or version < 0 or (version and not owner):
            raise ArgumentsError(f'version is {version!r}: expected 0, or a positive int with an owner')
        self.owner, self.version = owner, version
        self.entries: dict[str, dict[str, Definition]] = {}  # what periodic has declared, by queue and name
        self.default_queue = queue
        self.legacy = legacy
        self.prefix = prefix
        self._how: dict[str, Any] = {'legacy': legacy, 'prefix': prefix, 'wait': wait, 'check': check}
        self.url = redis if isinstance(redis, str) else None
        self._client: Any = client_of(redis, 'redis') if isinstance(redis, str) else redis
        self._lock = threading.Lock()
        self._forget()
        _apps.add(self)

    def _forget(self) -> None:
        """Forgets the queues, which belong to a client."""
        self._queues: dict[str, Queue] = {}
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Any, dict[str, aio.Queue]]] = (
            weakref.WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f'Delayed(queue={self.default_queue!r})'

    @property
    def client(self) -> redis.Redis:
        """The client for Redis; that of a cluster only knows its nodes, by any() and node(host, port)."""
        if _memory is not None:
            return cast('redis.Redis', _memory.redis)
        if self._client is None:
            self._client = client_of(os.environ.get('REDIS_URL') or LOCAL, 'REDIS_URL')
        return cast('redis.Redis', self._client)

    def queue(self, name: str | None = None) -> Queue:
        """Returns a queue of the application, None: the default one. All callers share one for each name."""
        name = self.default_queue if name is None else name
        with self._lock:
            q = self._queues.get(name)
            if q is None:
                q = self._queues[name] = Queue(name, self.client, **self._how)
            return q

    def aio_queue(self, name: str | None = None) -> aio.Queue:
        """Returns a queue for the running event loop, which has a client of its own.

        An application that was given a client instead of a URL has none: it raises ArgumentsError.
        """
        name = self.default_queue if name is None else name
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._loops:
                self._loops[loop] = self._aio_client(), {}
            client, queues = self._loops[loop]
            if name not in queues:
                queues[name] = aio.Queue(name, client, **self._how)
            return queues[name]

    def _aio_client(self) -> redis.asyncio.Redis:
        if _memory is not None:
            return cast('redis.asyncio.Redis', _memory.async_redis())
        if self._client is not None and self.url is None:
            raise ArgumentsError('Delayed was given a client: expected a URL, from which it makes clients for asyncio')
        client: redis.asyncio.Redis = client_of(self.url or os.environ.get('REDIS_URL') or LOCAL, 'redis', aio=True)
        return client

    @overload
    def task(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> CoroutineTask[P, R]: ...

    @overload
    def task(self, function: Callable[P, R], /) -> FunctionTask[P, R]: ...

    @overload
    def task(
        self,
        /,
        *,
        path: str | None = None,
        queue: str | None = None,
        retry: int | None = None,
        backoff: Backoff | None = None,
        max_backoff: Seconds | None = None,
        timeout: Seconds | None = None,
        archive_on_timeout: bool = False,
        isolated: bool = False,
        registry: Registry | None = None,
    ) -> Decorator: ...

    def task(
        self, function: Any = None, /, *, queue: str | None = None, registry: Registry | None = None, **settings: Any
    ) -> Any:
        """Registers a function, so that tasks may call it: @task, or @task(timeout=60). It makes a Task of it, which
        can still be called.

        path is the name that tasks use, module:qualname unless given. queue is where its calls go, the application's
        default queue unless given. The other settings apply to tasks that do not give them. retry is how often a failed
        task is tried again (negative: for ever; plain messages of keakon's package always say it themselves). backoff
        gives the waits before the retries: seconds, one after the other, or a function of the number of retries so far,
        which the worker calls. max_backoff is the longest of these waits. timeout is how long a task may run, in
        seconds. archive_on_timeout archives a task that took too long, even if it has retries left. isolated says that
        each call needs a process in which nothing else runs, which the worker can kill: then a coroutine does not run
        beside others, and a worker without processes refuses to start.
        """

        def register(f: Any) -> Any:
            if queue is not None:
                check_name(queue)
            made = described(f, app=self, queue=queue or self.default_queue, **settings)
            (registries.default if registry is None else registry).add(made)
            kind: Any = CoroutineTask if made.coroutine else FunctionTask
            return kind(self, made)

        return register if function is None else register(function)

    def periodic(
        self,
        spec: str,
        *,
        name: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: OptionValues | None = None,
        **when: Unpack[When],
    ) -> Callable[[AnyTask], AnyTask]:
        """Declares a periodic entry, which calls a task again and again: @app.periodic('@every 1m') above @app.task.

        Workers write the entries of the application's owner that their modules declare for their queues to Redis when
        they start, and remove those that the owner's code no longer declares: all workers of a queue and an owner must
        import the same. Whatever worker comes first enqueues a tick. spec and when are those of Queue.periodic.set.
        name stays when all else changes; the task's path unless given. args, kwargs and options are those of the calls.
        """

        def declare(task: AnyTask) -> AnyTask:
            if not isinstance(task, Task) or task.app is not self:
                raise ArgumentsError('@periodic: expected a task of the same application: put it above @app.task')
            entry = task.path if name is None else name
            if not self.owner:
                raise ArgumentsError(
                    f'periodic entry {entry!r}: the application has no owner: give Delayed the name of the service, so '
                    'that others do not remove its entries'
                )
            call = cast('Any', task).call(*args, **(kwargs or {}))
            made = defined(entry, spec, call, Options().merged(**(options or {})), self.legacy, when)
            if self.entries.setdefault(task.queue_name, {}).setdefault(entry, made) != made:
                raise ArgumentsError(f'periodic entry {entry!r} is declared twice: give each a name of its own')
            return task

        return declare


class Task(Typed[P, R]):
    """A registered function, with the parameters P and the result R. Calling it calls the function here and now.

    Type checkers know the parameters of delay and call, and what a reference's result is. `aio` is the same for
    asyncio.
    """

    __qualname__: str

    def __init__(self, app: Delayed, function: registries.Function) -> None:
        super().__init__(function.path, Signature(function.call))
        functools.update_wrapper(cast('Any', self), function.call, updated=())
        self.app = app
        self.function = function
        self.queue_name = function.queue or app.default_queue

    def __repr__(self) -> str:
        return f'Task({self.path!r})'

    def __reduce__(self) -> str:
        return self.__qualname__  # pickle finds it in its module, as it finds functions

    def options(self, **options: Unpack[OptionValues]) -> Function[P, R]:
        """Returns the function with options for its calls. See Options."""
        return Function(self.app.queue(self.queue_name).options(**options), self.path, self._signature)

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> Ref[R]:
        """Makes a worker call the function with these arguments, on the function's queue. Returns once Redis has the
        task. Queue.delay says which errors it raises."""
        return self.app.queue(self.queue_name).delay(self, *args, **kwargs)

    def ref(self, id: str) -> Ref[R]:
        """Returns a reference to the task with this id, which calls the function, without asking Redis."""
        return Ref(self.app.queue(self.queue_name), id, returns=self.returns)

    @property
    def aio(self) -> AsyncFunction[P, R]:
        """The function on a queue for the running event loop: await task.aio.delay(...)."""
        return AsyncFunction(self.app.aio_queue(self.queue_name), self.path, self._signature)


class FunctionTask(Task[P, R]):
    """A Task whose function is a plain one."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function itself, without a queue."""
        result: R = self.function.call(*args, **kwargs)
        return result


class CoroutineTask(Task[P, R]):
    """A Task whose function is a coroutine function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Calls the coroutine function itself, without a queue."""
        coroutine: Coroutine[Any, Any, R] = self.function.call(*args, **kwargs)
        return coroutine


def use(memory: Any) -> Any:
    """Makes all applications use memory.redis and memory.async_redis() from here on; None: their own servers. Returns
    what they have used."""
    global _memory
    before, _memory = _memory, memory
    for application in list(_apps):
        application._forget()
    return before


_default = Delayed()
task = _default.task  # for programs that need no application
