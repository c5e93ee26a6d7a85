"""References to tasks: their states, their results and how they end."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

import redis.exceptions

from . import asks
from .errors import CanceledError, NoIdError, NoResultError, UnavailableError, WaitTimeoutError
from .info import Outcome, Progress, State, TaskInfo
from .link import Link
from .options import Options
from .text import one_line
from .times import Seconds, milliseconds

if TYPE_CHECKING:
    from .queue import Queue

T = TypeVar('T')

REPLACED = (
    b'replaced',
    'replaced',
    b'canceled',
    'canceled',
)  # what workers publish when a task has ended and left nothing behind

LOOK_EVERY = 5.0  # seconds between two looks of a caller that waits and has received no signal
_PAUSES = (0.05, 1.0)  # seconds, first and longest, between tries to subscribe while Redis is away


def answer(link: Link, ask: Generator[asks.Ask, Any, T]) -> T:
    """Runs the questions that a generator yields, and returns the generator's result."""
    try:
        step = next(ask)
        while True:
            step = ask.send(
                link.send(*step.keys) if step.script is None else link.run(step.script, step.keys, step.args)
            )
    except StopIteration as e:
        result: T = e.value
        return result


class Base:
    """What both kinds of references know without asking Redis.

    options are those of the call that made the task; None if unknown.
    """

    __slots__ = ('_loose', '_made', '_options', 'id')

    def __init__(self, id: str, options: Options | None, made: int, loose: bool) -> None:
        self.id = id
        self._loose = loose  # the message carries no id: the id names the task only while it is scheduled
        self._options = options
        self._made = made

    def earliest(self) -> int:
        """When the task was made, in ms since 1970: an older task with this id is another one. 0 if the id is random,
        because then there is no other."""
        return self._made if self._options is not None and self._options.task_id is not None else 0

    def check_kept(self, name: str) -> None:
        """Raises an error if nothing is kept of the task, because waiting for it would never end."""
        self.check_id()
        if self._options is None:
            return
        if not self._options.kept:
            raise NoResultError(
                f'task {name} was enqueued without keep_result or retention, so nothing tells of its end: give one to '
                'Queue.options'
            )
        if self._options.group is not None:
            raise NoResultError(
                f'call {name} is gathered with others, and one task is made of all: wait for that one by its id, that '
                'of the first'
            )

    def check_id(self) -> None:
        """Raises NoIdError if the id is empty."""
        if not self.id:
            raise NoIdError(
                'the task has no id: Python tasks of a legacy queue carry none, or Queue.ref was given an empty one'
            )


def pause(failures: int) -> float:
    """Returns how many seconds to wait after that many failures in a row."""
    return min(_PAUSES[0] * 2.0 ** min(failures, 10), _PAUSES[1])


def deadline(timeout: Seconds | None) -> float | None:
    """Returns when a timeout is over, by the monotonic clock."""
    return None if timeout is None else time.monotonic() + milliseconds(timeout, 'timeout') / 1000


def look_after() -> float:
    """Returns the seconds until the next look, somewhat random, so that callers do not all look at the same time."""
    return LOOK_EVERY * random.uniform(0.8, 1.2)


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

    def result(self, timeout: Seconds | None = None) -> Any:
        """Waits until the task has ended and returns what its function returned, None if it returns nothing.

        timeout is in seconds, or a timedelta. None waits without a limit: for ever if there never was a task with this
        id. The task must have keep_result or retention. Redis tells the caller when the task has ended, over a
        connection of the client that is in use meanwhile. While Redis is unreachable, even at the first look, it keeps
        trying until the timeout is over.

        Errors: TaskError if the task has failed for good, CanceledError if it was cancelled, NoResultError,
        WaitTimeoutError.
        """
        self.check_kept(str(self))
        until = deadline(timeout)
        link, keys = self.queue._link, self.queue._settings.keys
        found: Outcome | None = None
        failures, trouble = 0, ''
        try:
            found = self._outcome()
        except UnavailableError as e:
            failures, trouble = 1, f'; Redis could not be asked: {e}'
        if found is not None:
            return found.value()
        told: Any = None
        with contextlib.ExitStack() as stack:
            while True:
                left = look_after() if until is None else min(look_after(), until - time.monotonic())
                if left <= 0:
                    raise WaitTimeoutError(f'task {self} has not ended within the timeout of {timeout}{trouble}')
                try:
                    if failures:
                        found = self._outcome()
                    if told is None and found is None:
                        pubsub: Any = link.client.pubsub  # untyped
                        told = stack.enter_context(pubsub())
                        told.subscribe(keys.ended(self.id))
                    if found is None:
                        # A message says that the task has ended or that the subscription is active; None means that
                        # there was no message.
                        message = told.get_message(timeout=left)
                        found = self._outcome()
                        if found is None and message is not None and message['data'] in REPLACED:
                            raise CanceledError(
                                self.id,
                                'canceled',
                                'canceled',
                                'another task has taken its place, or its group leaves it out',
                                0,
                                0,
                                None,
                            )
                    failures = 0
                except (redis.exceptions.RedisError, UnavailableError) as e:
                    stack.close()
                    told, trouble = None, f'; Redis could not be asked: {e}'
                    time.sleep(
                        pause(failures) if until is None else max(0, min(pause(failures), until - time.monotonic()))
                    )
                    failures += 1
                if found is not None:
                    return found.value()

    def _outcome(self) -> Outcome | None:
        return answer(self.queue._link, asks.outcome(self.queue._settings.keys, self.id, self.earliest()))

    def state(self) -> State:
        """Asks Redis where the task is. The states are strings as well."""
        self.check_id()
        return answer(self.queue._link, asks.state(self.queue._settings.keys, self.id))

    def info(self) -> TaskInfo:
        """Asks Redis what it knows about the task."""
        self.check_id()
        return answer(self.queue._link, asks.info(self.queue._settings.keys, self.id))

    def progress(self) -> Progress:
        """Asks Redis for the last progress that the task reported; zeros if it has reported none, or if Redis knows
        nothing about the task any more."""
        return self.info().progress

    def cancel(self) -> None:
        """Cancels the task, wherever it is: a scheduled, retrying or parked task is removed, and a pending task never
        starts.

        The worker that has claimed a task is told, usually within milliseconds. Until then the task may still start,
        even after this method has returned; afterwards it does not start, or is told to end.

        Raises EndedError if the task is known to have ended. Redis knows nothing about most tasks that have ended; then
        this does nothing. Cancelling again changes nothing. Raises NoIdError if the task has no id, or has lost it.
        Workers of keakon's package and of go-delayed ignore cancellations.
        """
        self.check_id()
        answer(self.queue._link, asks.cancel(self.queue._settings.keys, self.id, self._loose))

    def delete(self) -> None:
        """Deletes an archived or completed task and everything that is kept of it. Raises NotArchivedError if it is
        neither."""
        self.check_id()
        answer(self.queue._link, asks.delete(self.queue._settings.keys, self.id))

    def run_again(self) -> None:
        """Makes an archived task pending again, with all its retries, as if it had never failed.

        Raises NotArchivedError if the task is not archived.
        """
        self.check_id()
        answer(self.queue._link, asks.run_again(self.queue._settings.keys, self.id))
