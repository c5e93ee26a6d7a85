"""The synchronous producer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import redis

from .errors import BatchError, DelayedError
from .link import Link
from .producer import Command, Settings
from .scripts import MODE
from .task import Call, Options, call


class Ref:
    """Names an enqueued task. Keep its `id` to find the task from another process, with Queue.ref."""

    __slots__ = ('id', 'queue')

    def __init__(self, queue: Queue, id: str) -> None:
        self.queue = queue
        self.id = id

    def __repr__(self) -> str:
        return f'Ref({self.queue.name}/{self.id})'


class Queue:
    """Makes calls of functions into tasks in Redis. It may be shared by threads.

    redis is a client of redis-py. extended is for queues whose workers read extended Python messages, legacy for queues that go-delayed's
    or keakon's workers share, prefix is that of the Go handle. All programs that use one queue open it in the same way.
    """

    def __init__(self, name: str, redis: redis.Redis, *, extended: bool = False, legacy: bool = False, prefix: str = '') -> None:
        self._settings = Settings(name, prefix, extended, legacy)
        self._link = Link(redis)
        self._options = Options()

    @property
    def name(self) -> str:
        return self._settings.name

    def __len__(self) -> int:
        """The number of pending tasks."""
        return int(self._link.send('LLEN', self._settings.keys.list))

    def __bool__(self) -> bool:
        return True

    def options(self, **options: Any) -> Queue:
        """Returns a queue whose calls have these options, in addition to its own. See Options."""
        q = copy.copy(self)
        q._options = self._options.merged(**options)
        return q

    def delay(self, function: str | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Ref:
        """Makes a worker call function with these arguments. Returns once Redis has the task."""
        return self.delay_many([call(function, *args, **kwargs)])[0]

    def delay_many(self, calls: Iterable[Call]) -> list[Ref]:
        """Enqueues calls in order, 1,000 or 8 MiB at a time; each such batch is accepted as a whole or not at all."""
        calls = list(calls)
        commands = list(self._settings.commands(calls, self._options))
        if any(c.python for c in calls) and not self._settings.settled:
            self._settings.check_form(self._link.run(MODE, [self._settings.keys.mode], [self._settings.form]))
        refs: list[Ref] = []
        for command in commands:
            try:
                self._run(command)
            except DelayedError as e:
                if len(commands) == 1:
                    raise
                raise BatchError(f'{len(refs)} of {len(calls)} tasks were enqueued: {e}', len(refs)) from e
            refs += [Ref(self, id) for id in command.ids]
        return refs

    def ref(self, id: str) -> Ref:
        """Returns a reference to the task with this id, without asking Redis."""
        return Ref(self, id)

    def _run(self, command: Command) -> None:
        command.check(self._link.run(command.script, command.keys, command.args))
