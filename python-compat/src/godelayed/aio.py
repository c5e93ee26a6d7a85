"""The asynchronous producer: the names of the package, awaited.

q = godelayed.aio.Queue('mail', redis.asyncio.Redis())
await q.delay('example.com/app/mail.Welcome', 42, 'en')
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import redis.asyncio

from .errors import BatchError, DelayedError
from .link import AsyncLink
from .producer import Command, Settings
from .scripts import MODE
from .task import Call, Options, call

__all__ = ['Queue', 'Ref', 'call']


class Ref:
    """Names an enqueued task. Keep its `id` to find the task from another process, with Queue.ref."""

    __slots__ = ('id', 'queue')

    def __init__(self, queue: Queue, id: str) -> None:
        self.queue = queue
        self.id = id

    def __repr__(self) -> str:
        return f'Ref({self.queue.name}/{self.id})'


class Queue:
    """Makes calls of functions into tasks in Redis, like godelayed.Queue. It belongs to one event loop."""

    def __init__(self, name: str, redis: redis.asyncio.Redis, *, extended: bool = False, legacy: bool = False, prefix: str = '') -> None:
        self._settings = Settings(name, prefix, extended, legacy)
        self._link = AsyncLink(redis)
        self._options = Options()

    @property
    def name(self) -> str:
        return self._settings.name

    async def length(self) -> int:
        """The number of pending tasks."""
        return int(await self._link.send('LLEN', self._settings.keys.list))

    def options(self, **options: Any) -> Queue:
        """Returns a queue whose calls have these options, in addition to its own. See Options."""
        q = copy.copy(self)
        q._options = self._options.merged(**options)
        return q

    async def delay(self, function: str | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Ref:
        """Makes a worker call function with these arguments. Returns once Redis has the task."""
        return (await self.delay_many([call(function, *args, **kwargs)]))[0]

    async def delay_many(self, calls: Iterable[Call]) -> list[Ref]:
        """Enqueues calls in order, 1,000 or 8 MiB at a time; each such batch is accepted as a whole or not at all."""
        calls = list(calls)
        commands = list(self._settings.commands(calls, self._options))
        if any(c.python for c in calls) and not self._settings.settled:
            self._settings.check_form(await self._link.run(MODE, [self._settings.keys.mode], [self._settings.form]))
        refs: list[Ref] = []
        for command in commands:
            try:
                await self._run(command)
            except DelayedError as e:
                if len(commands) == 1:
                    raise
                raise BatchError(f'{len(refs)} of {len(calls)} tasks were enqueued: {e}', len(refs)) from e
            refs += [Ref(self, id) for id in command.ids]
        return refs

    def ref(self, id: str) -> Ref:
        """Returns a reference to the task with this id, without asking Redis."""
        return Ref(self, id)

    async def _run(self, command: Command) -> None:
        command.check(await self._link.run(command.script, command.keys, command.args))
