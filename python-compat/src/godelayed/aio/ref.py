"""References to tasks: their states, their results and how they end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from .. import asks
from ..errors import CanceledError, UnavailableError, WaitTimeoutError
from ..info import Outcome, Progress, State, TaskInfo
from ..link import AsyncLink
from ..options import Options
from ..ref import Base, deadline, look_after
from ..text import one_line
from ..times import Seconds

if TYPE_CHECKING:
    from .queue import Queue

T = TypeVar('T')


async def answer(link: AsyncLink, ask: Generator[asks.Ask, Any, T]) -> T:
    """Runs the questions that a generator yields, and returns the generator's result."""
    try:
        step = next(ask)
        while True:
            step = ask.send(
                await (link.send(*step.keys) if step.script is None else link.run(step.script, step.keys, step.args))
            )
    except StopIteration as e:
        result: T = e.value
        return result


def _cancellations() -> int:
    """Returns how often this asyncio task was asked to cancel; 0 before Python 3.11, which does not count that."""
    cancelling: Callable[[], int] | None = getattr(asyncio.current_task(), 'cancelling', None)
    return cancelling() if cancelling is not None else 0


class Ref(Base):
    """Names an enqueued task. Keep its `id` to find the task from another process, with Queue.ref.

    A Python task of a legacy queue carries no id: it has one only while it is scheduled.
    """

    __slots__ = ('queue',)

    def __init__(
        self, queue: Queue, id: str, options: Options | None = None, made: int = 0, loose: bool = False
    ) -> None:
        super().__init__(id, options, made, loose)
        self.queue = queue

    def __repr__(self) -> str:
        return f'Ref({self})'

    def __str__(self) -> str:
        return one_line(f'{self.queue.name}/{self.id}')

    def __await__(self) -> Generator[Any, None, Any]:
        """Awaits the result of the task."""
        return self.result().__await__()

    async def result(self, timeout: Seconds | None = None) -> Any:
        """Waits until the task has ended and returns what its function returned, None if it returns nothing.

        timeout is in seconds, or a timedelta. None waits without a limit: for ever if there never was a task with this
        id. The task must have keep_result or retention. Redis tells the process when the task has ended, over one
        connection for all callers that wait. While Redis is unreachable, even at the first look, it keeps trying until
        the timeout is over.

        Errors: TaskError if the task has failed for good, CanceledError if it was cancelled, NoResultError,
        WaitTimeoutError.
        """
        self.check_kept(str(self))
        until = deadline(timeout)
        before = _cancellations()
        found: Outcome | None = None
        trouble = ''
        try:
            found = await self._outcome()
        except UnavailableError as e:
            trouble = f'; Redis could not be asked: {e}'
        if found is not None:
            return found.value()
        with self.queue._signals.listen(self.queue._settings.keys.ended(self.id)) as told:
            while True:
                if _cancellations() > before:  # redis-py swallowed a cancellation while it made or closed a connection
                    raise asyncio.CancelledError
                left = look_after() if until is None else min(look_after(), until - time.monotonic())
                if left <= 0:
                    raise WaitTimeoutError(f'task {self} has not ended within the timeout of {timeout}{trouble}')
                await told.wait(left)
                try:
                    found = await self._outcome()
                except UnavailableError as e:
                    trouble = f'; Redis could not be asked: {e}'
                if found is not None:
                    return found.value()
                if told.replaced:
                    raise CanceledError(
                        self.id,
                        'canceled',
                        'canceled',
                        'another task has taken its place, or its group leaves it out',
                        0,
                        0,
                        None,
                    )

    async def _outcome(self) -> Outcome | None:
        return await answer(self.queue._link, asks.outcome(self.queue._settings.keys, self.id, self.earliest()))

    async def state(self) -> State:
        """Asks Redis where the task is. The states are strings as well."""
        self.check_id()
        return await answer(self.queue._link, asks.state(self.queue._settings.keys, self.id))

    async def info(self) -> TaskInfo:
        """Asks Redis what it knows about the task."""
        self.check_id()
        return await answer(self.queue._link, asks.info(self.queue._settings.keys, self.id))

    async def progress(self) -> Progress:
        """Asks Redis for the last progress that the task reported; zeros if it has reported none, or if Redis knows
        nothing about the task any more."""
        return (await self.info()).progress

    async def cancel(self) -> None:
        """Cancels the task, wherever it is: a scheduled, retrying or parked task is removed, and a pending task never
        starts.

        The worker that has claimed a task is told, usually within milliseconds. Until then the task may still start,
        even after this method has returned; afterwards it does not start, or is told to end.

        Raises EndedError if the task is known to have ended. Redis knows nothing about most tasks that have ended; then
        this does nothing. Cancelling again changes nothing. Raises NoIdError if the task has no id, or has lost it.
        Workers of keakon's package and of go-delayed ignore cancellations.
        """
        self.check_id()
        await answer(self.queue._link, asks.cancel(self.queue._settings.keys, self.id, self._loose))

    async def delete(self) -> None:
        """Deletes an archived or completed task and everything that is kept of it. Raises NotArchivedError if it is
        neither."""
        self.check_id()
        await answer(self.queue._link, asks.delete(self.queue._settings.keys, self.id))

    async def run_again(self) -> None:
        """Makes an archived task pending again, with all its retries, as if it had never failed.

        Raises NotArchivedError if the task is not archived.
        """
        self.check_id()
        await answer(self.queue._link, asks.run_again(self.queue._settings.keys, self.id))
