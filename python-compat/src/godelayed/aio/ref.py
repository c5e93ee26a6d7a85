"""References to tasks, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ..asks import Asks
from ..ref import Base
from ..signature import R
from ..times import Seconds

if TYPE_CHECKING:
    from .queue import Queue


class Ref(Base[R]):
    """Names an enqueued task, like godelayed.Ref. Its methods do the same and are awaited.

    Awaiting the reference awaits result(). All coroutines that wait for results share one connection.
    """

    __slots__ = ()

    queue: Queue

    def __await__(self) -> Generator[Any, None, R]:
        return self._result().__await__()

    @property
    def ref(self) -> Ref[Any]:
        """The same reference without a type: its result is the value as it came."""
        return Ref(self.queue, self.id, self._options, self._made, self._loose)

    def _cancellations(self) -> int:
        task = asyncio.current_task()
        return task.cancelling() if task is not None else 0

    async def result(self, timeout: Seconds | None = None) -> R:
        """Waits until the task has ended and returns what its function returned."""
        return await self._result(timeout)

    state = Asks._state
    info = Asks._info
    progress = Asks._progress
    cancel = Asks._cancel
    delete = Asks._delete
    run_again = Asks._run_again
