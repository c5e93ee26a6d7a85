"""The queue for a client that blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

import redis

from .calls import Call
from .coalescer import Coalescer
from .link import Link, run
from .periodic import Periodic
from .producer import Producer, checked_id
from .ref import Ref, Told
from .signature import P, R, Typed, call, returns_of


class Queue(Producer):
    """Enqueues calls of functions as tasks in Redis. Threads may share it, and it holds no connection of its own.

    redis is a client of redis-py for one server or for Sentinel. legacy is for queues shared with workers of go-delayed
    or of keakon's package: Python tasks have the form that those workers read, and a call that they could not read
    raises ArgumentsError. prefix is the same as that of the Go handle. wait is how many replicas must have a task
    before a call succeeds; if fewer confirm it, the call raises UnknownError. check compares each call with the
    functions that workers publish: one that no worker takes raises ArgumentsError. All programs that use one queue must
    open it with the same arguments, but for wait and check. An invalid name raises ArgumentsError.
    """

    def __init__(
        self,
        name: str,
        redis: redis.Redis,
        *,
        legacy: bool = False,
        prefix: str = '',
        wait: int = 0,
        check: bool = False,
    ) -> None:
        super().__init__(name, Link.of(redis), legacy, prefix, wait, check)
        self._coalescer = Coalescer(lambda messages: run(self._enqueue(messages)))

    def __len__(self) -> int:
        """The number of pending tasks."""
        return run(self._length())

    def __bool__(self) -> bool:
        return True

    @overload
    def delay(self, function: str, /, *args: Any, **kwargs: Any) -> Ref[Any]: ...

    @overload
    def delay(self, function: Typed[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Ref[R]: ...

    def delay(self, function: Any, /, *args: Any, **kwargs: Any) -> Ref[Any]:
        """Makes a worker call function with these arguments. Returns once Redis has the task.

        function is the path of a Go function (example.com/app/mail.Welcome) or of a Python function
        (mail.tasks:welcome), or a function that was registered with @task: then the arguments are checked, here and by
        type checkers. Threads that call it at the same time share round trips.

        Errors: ArgumentsError, DuplicateError, FullError, UnavailableError, UnknownError. Nothing was enqueued, except
        perhaps after UnknownError.
        """
        sent = run(self._delay(call(function, *args, **kwargs)))
        return Ref(self, *sent, returns_of(function))

    def delay_many(self, calls: Iterable[Call]) -> list[Ref[Any]]:
        """Enqueues calls in order, 1,000 or 1 MiB at a time. Redis accepts each such batch as a whole or not at all.

        If one of the calls is faulty, none is enqueued. A batch is at most 500 tasks if they are due later or in a
        group, and 100 with options that hold a lock or an id. When one of several batches fails, the error is a
        BatchError, which says how many of the first tasks were enqueued.
        """
        return [Ref(self, *sent) for sent in run(self._delay_many(calls))]

    def ref(self, id: str) -> Ref[Any]:
        """Returns a reference to the task with this id, without asking Redis."""
        return Ref(self, checked_id(id))

    @property
    def periodic(self) -> Periodic:
        """The periodic entries of the queue. The queue's options hold for the tasks of those that it sets."""
        return Periodic(self)

    def _listen(self, channel: str) -> Any:
        return Told(self._link, channel)
