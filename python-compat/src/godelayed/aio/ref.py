"""References to tasks, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ..info import Progress, State, TaskInfo
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

    async def state(self) -> State:
        """Asks Redis where the task is."""
        return await self._state()

    async def info(self) -> TaskInfo:
        """Asks Redis what it knows about the task."""
        return await self._info()

    async def progress(self) -> Progress:
        """Asks Redis for the last progress that the task reported."""
        return await self._progress()

    async def cancel(self) -> None:
        """Cancels the task, wherever it is."""
        await self._cancel()

    async def delete(self) -> None:
        """Deletes an archived or completed task."""
        await self._delete()

    async def run_again(self) -> None:
        """Makes an archived task pending again."""
        await self._run_again()
