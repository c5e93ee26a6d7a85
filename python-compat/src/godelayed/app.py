"""An application's tasks: the decorator that registers functions, and the queues on which calls of them go."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast, overload

import redis
import redis.asyncio

from . import aio
from . import registry as registries
from .address import client_of
from .errors import ArgumentsError
from .keys import check_name
from .queue import Queue
from .ref import Ref
from .registry import Backoff, Registry, described
from .signature import P, R, Signature, Typed
from .times import Seconds
from .typed import AsyncFunction, Function

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


LOCAL = 'redis://localhost:6379/0'


class Delayed:
    """An application: the Redis server of its tasks, and the queue of those that name none.

    redis is a URL, a client of redis-py for one server or for Sentinel, or None for the URL in REDIS_URL, or
    redis://localhost:6379/0. Nothing connects before the first call. queue is the name of the default queue; the other
    arguments are those of Queue and hold for all queues. Threads may share it.
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
    ) -> None:
        check_name(queue)
        self.default_queue = queue
        self.legacy = legacy
        self.prefix = prefix
        self._how: dict[str, Any] = {'legacy': legacy, 'prefix': prefix, 'wait': wait, 'check': check}
        self.url = redis if isinstance(redis, str) else None
        self._client = client_of(redis, 'redis') if isinstance(redis, str) else redis
        self._lock = threading.Lock()
        self._queues: dict[str, Queue] = {}
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Any, dict[str, aio.Queue]]] = (
            weakref.WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f'Delayed(queue={self.default_queue!r})'

    @property
    def client(self) -> redis.Redis:
        """The client for Redis."""
        if self._client is None:
            self._client = client_of(os.environ.get('REDIS_URL') or LOCAL, 'REDIS_URL')
        return self._client

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

        If the application was given a client instead of a URL, the new one has the same address and options.
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
        if self._client is not None and self.url is None:
            raise ArgumentsError('Delayed was given a client: expected a URL, from which it makes clients for asyncio')
        url = self.url or os.environ.get('REDIS_URL') or LOCAL
        client_of(url, 'redis')  # checks it
        return redis.asyncio.Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType] - its types are not full

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


_default = Delayed()
task = _default.task  # for programs that need no application
