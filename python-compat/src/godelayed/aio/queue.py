"""The queue for asyncio."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

import redis.asyncio

from ..calls import Call
from ..coalescer import AsyncCoalescer
from ..link import AsyncLink
from ..periodic import AsyncPeriodic
from ..producer import Producer, checked_id
from ..signature import P, R, Typed, call, returns_of
from .ref import Ref
from .signals import Signals


class Queue(Producer):
    """Enqueues calls of functions as tasks in Redis, like godelayed.Queue. It belongs to one event loop at a time.

    redis is a client of redis.asyncio for one server or for Sentinel. The other arguments are those of godelayed.Queue.
    """

    def __init__(
        self,
        name: str,
        redis: redis.asyncio.Redis,
        *,
        legacy: bool = False,
        prefix: str = '',
        wait: int = 0,
        check: bool = False,
    ) -> None:
        super().__init__(name, AsyncLink.of(redis), legacy, prefix, wait, check)
        self._signals = Signals(self._link)
        self._coalescer = AsyncCoalescer(self._enqueue)

    async def length(self) -> int:
        """The number of pending tasks."""
        return await self._length()

    @overload
    async def delay(self, function: str, /, *args: Any, **kwargs: Any) -> Ref[Any]: ...

    @overload
    async def delay(self, function: Typed[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Ref[R]: ...

    async def delay(self, function: Any, /, *args: Any, **kwargs: Any) -> Ref[Any]:
        """Makes a worker call function with these arguments, as godelayed.Queue.delay does.

        Calls at the same time share round trips. If the caller is cancelled before the task is sent, nothing is
        enqueued.
        """
        sent = await self._delay(call(function, *args, **kwargs))
        return Ref(self, *sent, returns_of(function))

    async def delay_many(self, calls: Iterable[Call]) -> list[Ref[Any]]:
        """Enqueues calls in order and in batches, as godelayed.Queue.delay_many does."""
        return [Ref(self, *sent) for sent in await self._delay_many(calls)]

    def ref(self, id: str) -> Ref[Any]:
        """Returns a reference to the task with this id, without asking Redis."""
        return Ref(self, checked_id(id))

    @property
    def periodic(self) -> AsyncPeriodic:
        """The periodic entries of the queue. The queue's options hold for the tasks of those that it sets."""
        return AsyncPeriodic(self)

    def _listen(self, channel: str) -> Any:
        return self._signals.listen(channel)
