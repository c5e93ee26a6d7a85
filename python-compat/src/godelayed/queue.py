"""The synchronous producer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import redis

from .coalescer import Coalescer
from .errors import ArgumentsError, BatchError, DelayedError
from .link import Link
from .options import Options
from .producer import Settings, checked_wait
from .ref import Ref, answer
from .task import Call, call
from .text import is_text

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import OptionValues


class Queue:
    """Enqueues calls of functions as tasks in Redis. Threads may share it, and it holds no connection of its own.

    redis is a client of redis-py for one server or for Sentinel. legacy is for queues shared with workers of go-delayed
    or of keakon's package: Python tasks have the form that those workers read, and a call that they could not read
    raises ArgumentsError. prefix is the same as that of the Go handle. wait is how many replicas must have a task
    before a call succeeds; if fewer confirm it, the call raises UnknownError. All programs that use one queue must open
    it with the same arguments. An invalid name raises ArgumentsError.
    """

    def __init__(self, name: str, redis: redis.Redis, *, legacy: bool = False, prefix: str = '', wait: int = 0) -> None:
        self._settings = Settings(name, prefix, legacy)
        self._wait = checked_wait(wait)
        self._link = Link.of(redis)
        self._coalescer = Coalescer(self._enqueue)
        self._options = Options()

    @property
    def name(self) -> str:
        """The name, without the prefix."""
        return self._settings.name

    def __repr__(self) -> str:
        return f'Queue({self.name!r})'

    def __len__(self) -> int:
        """The number of pending tasks."""
        k = self._settings.keys
        return sum(int(self._link.send('LLEN', key)) for key in (k.list, k.suspects))

    def __bool__(self) -> bool:
        return True

    def options(self, **options: Unpack[OptionValues]) -> Queue:
        """Returns a queue whose calls have these options, in addition to its own. README.md lists them in a table.

        An invalid value raises ArgumentsError at once. None removes an option.
        """
        q = copy.copy(self)
        q._options = self._options.merged(**options)
        return q

    def delay(self, function: str | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Ref:
        """Makes a worker call function with these arguments. Returns once Redis has the task.

        function is the path of a Go function (example.com/app/mail.Welcome) or of a Python function
        (mail.tasks:welcome), or a Python function that was registered with @task. Threads that call it at the same time
        share round trips.

        Errors: ArgumentsError, DuplicateError, FullError, UnavailableError, UnknownError. Nothing was enqueued, except
        perhaps after UnknownError.
        """
        s, options = self._settings, self._options
        c = call(function, *args, **kwargs)
        messages, now = s.messages((c,), options)
        if not s.settled and c.python:
            answer(self._link, s.settle())
        if s.plain(options):
            self._coalescer.enqueue(messages[0].message)
            self._announce()
            return Ref(self, messages[0].id, options, now, s.loose(c))
        for command in s.commands(messages, options):
            id = command.ids_of(self._link.run(command.script, command.keys, command.args, self._wait))[0]
        self._announce()
        return Ref(self, id, options, now, s.loose(c))

    def delay_many(self, calls: Iterable[Call]) -> list[Ref]:
        """Enqueues calls in order, 1,000 or 8 MiB at a time. Redis accepts each such batch as a whole or not at all.

        If one of the calls is faulty, none is enqueued. With options that hold a lock or an id, a batch is at most 100
        tasks. When one of several batches fails, the error is a BatchError, which says how many of the first tasks were
        enqueued.
        """
        calls = list(calls)
        if not calls:
            return []
        s, options = self._settings, self._options
        messages, now = s.messages(calls, options)
        if not s.settled and any(c.python for c in calls):
            answer(self._link, s.settle())
        refs: list[Ref] = []
        for command in s.commands(messages, options):
            try:
                ids = command.ids_of(self._link.run(command.script, command.keys, command.args, self._wait))
            except DelayedError as e:
                if len(command.ids) == len(calls):
                    raise
                raise BatchError(f'{len(refs)} of {len(calls)} tasks were enqueued: {e}', len(refs)) from e
            refs += [Ref(self, id, options, now, s.loose(c)) for id, c in zip(ids, calls[command.first :])]
        self._announce()
        return refs

    def ref(self, id: str) -> Ref:
        """Returns a reference to the task with this id, without asking Redis."""
        if not is_text(id):
            raise ArgumentsError(f'id {id!r}: expected a str in Unicode')
        return Ref(self, id)

    def _announce(self) -> None:
        """Makes the queue known to inspectors. Nothing depends on it, so it fails in silence."""
        s, announced = self._settings, self._link.announced
        ask = announced.ask(s.prefix, s.name, s.legacy)
        if ask is None or ask.script is None:
            return
        try:
            self._link.run(ask.script, ask.keys, ask.args)
            announced.done(s.prefix, s.name, s.legacy)
        except DelayedError as e:
            announced.done(s.prefix, s.name, s.legacy, e)

    def _enqueue(self, messages: list[bytes]) -> None:
        self._link.run(*self._settings.enqueue(messages), self._wait)
